"""Real programs, driven as a person would: shells, editors, pagers, what they ask of a terminal."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.automation import protocol as spec
from telex.automation.notices import Connection
from telex.automation.server import AutomationService
from telex.processes.child import Exit
from telex.redaction import Redactor
from telex.rpc.errors import Condition, RpcError
from telex.terminal import actions
from telex.terminal.actions import (
    BracketedPaste,
    Eof,
    Interrupt,
    Key,
    Mouse,
    MouseEvent,
    Paste,
    Resize,
    Signal,
    Text,
)
from telex.terminal.cells import Size
from telex.terminal.session import Program, PtySession
from telex.terminal.waits import matchers
from telex.terminal.waits.matchers import (
    AllOf,
    ContainsText,
    CursorAt,
    ScreenRegex,
    ScreenStable,
    Stability,
    TextAbsent,
    TranscriptContains,
    TranscriptRegex,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    Find = Callable[[str], str]

PROMPT = ScreenRegex(r"\$ \z")


@asynccontextmanager
async def running(*argv: str, size: Size | None = None, **env: str) -> AsyncIterator[PtySession]:
    async with PtySession(Program(argv, env=env, size=size or Size())) as session:
        yield session


@asynccontextmanager
async def bash(**env: str) -> AsyncIterator[PtySession]:
    async with running("bash", "--norc", "--noprofile", PS1="$ ", **env) as session:
        await session.wait(ContainsText("$ "))
        yield session


@asynccontextmanager
async def child(code: str, size: Size | None = None) -> AsyncIterator[PtySession]:
    """A Python program, in raw mode from its beginning on."""
    raw = "import sys, os, tty, signal; tty.setraw(0)\ndef say(*a): os.write(1, ' '.join(map(str, a)).encode() + b'\\r\\n')\n"
    async with running(sys.executable, "-c", raw + code, size=size) as session:
        yield session


async def run(session: PtySession, line: str, answer: str) -> str:
    """Type a line, and wait for its answer. What the screen says then."""
    mark = await session.act(Text(f"{line}\n"))
    found = await session.wait(ContainsText(answer, since=mark))
    return found.moment.snapshot.plain_text


# bash.


async def test_bash_stops_lists_and_resumes_jobs() -> None:
    async with bash() as session:
        await run(session, "sleep 1000", "")
        await _started(session, "sleep")
        await session.act(Key("ctrl_z"))
        await session.wait(ContainsText("Stopped"))
        assert "sleep 1000" in await run(session, "jobs", "[1]+  Stopped")
        await run(session, "sleep 2000 &", "[2]")
        shown = await run(session, "jobs -r", "Running")
        assert "sleep 2000" in shown
        mark = await session.act(Text("fg %1\n"))
        await session.wait(TranscriptContains("sleep 1000\r\n", since=mark))
        await _started(session, "sleep")
        await session.act(Interrupt())
        await session.wait(ContainsText("^C"))
        assert "gone" in await run(session, "kill %2; wait; echo all go''ne", "gone")


async def _started(session: PtySession, name: str) -> None:
    """bash has given the terminal to this child, which is what it is to be: until then an interrupt
    may still find bash's own handlers. There is no event for that, so it is asked."""
    async with asyncio.timeout(60):
        while _foreground(session) != name:
            await asyncio.sleep(0.005)


def _foreground(session: PtySession) -> str:
    try:
        return Path(f"/proc/{session.pty.foreground()}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


async def test_an_interrupt_stops_a_program_and_not_the_shell() -> None:
    async with bash() as session:
        await run(session, "sleep 1000", "")
        await _started(session, "sleep")
        await session.act(Interrupt())
        assert await run(session, "echo code=$?", "code=130")


async def test_an_interrupt_overtakes_a_paste_that_the_program_does_not_read() -> None:
    async with bash() as session:
        await run(session, "stty -echo; sleep 1000", "")
        await _started(session, "sleep")
        paste = asyncio.create_task(session.act(Paste("echo never\n" * 45_000)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert session.pty.unsent > 200_000
        await session.act(Interrupt())
        mark = await session.act(Text("\nstty echo; echo co''de\n"))
        await session.wait(ContainsText("code", since=mark))
        await paste
        assert session.transcript.text().count("never") < 45_000 / 10


async def test_end_of_file_ends_cat_and_then_the_shell() -> None:
    async with bash() as session:
        await run(session, "cat; echo en''ded", "")
        await _started(session, "cat")
        await run(session, "some words", "some words\nsome words")
        await session.act(Eof())
        await session.wait(ScreenRegex(r"ended\n\$ ?\z"))  # before its prompt, bash reads no keys
        await session.act(Eof())
        assert await session.ended() == Exit(0)


async def test_a_signal_hits_the_job_in_the_foreground_and_not_the_shell() -> None:
    async with bash() as session:
        await run(session, "sleep 1000", "")
        await _started(session, "sleep")
        await session.act(Signal("term"))
        await session.wait(ContainsText("Terminated"))
        assert await run(session, "echo code=$?", "code=143")


async def test_a_paste_is_typed_as_it_is() -> None:
    async with bash() as session:
        await session.act(Text("cat > /dev/null; echo ba''ck\n"))
        await _started(session, "cat")
        await session.act(Paste("one\ntwo\tthree\n"))
        await session.wait(ContainsText("two     three"))
        await session.act(Eof())
        await session.wait(ContainsText("back"))


async def test_text_typed_in_small_pieces_arrives_whole_and_in_order() -> None:
    text = "".join(f"{number:04}" for number in range(300))
    async with child(
        "say('ready'); got = b''\nwhile len(got) < 1200: got += os.read(0, 4096)\nsay(got.decode())"
    ) as session:
        await session.wait(ContainsText("ready"))
        streamed = actions.Streamed(text, chunk_chars=7, delay_ms=0)
        after = asyncio.create_task(session.act(actions.StreamText(streamed)))
        await asyncio.sleep(0)
        await session.act(Text("never in between"))
        await after
        await session.ended()
        assert text in session.transcript.text()


PIECES = (
    "\x1b[201~", "\x9b201~", "\x1b", "[201~", "\n", "\r", "touch PWNED\n", "; touch PWNED;", "\x03",
    "\x1a", "\x04", "\x16", "\x18", "\x1b[200~", "é漢", "$(touch PWNED)", "`touch PWNED`", "\t", "\x00",
    "\x1b\x1b[201~", "\x1b[201~\ntouch PWNED\n", "\x0f", "\x15", "\x1b.", "\x12", "x", " ",
)  # fmt: skip


@pytest.mark.counted
@pytest.mark.deadline(60)
async def test_nothing_pasted_between_brackets_is_ever_run(
    counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    """Whatever is in it: bash shows it, and has run none of it until somebody presses enter."""
    chosen = random.Random(5)
    shell = ("bash", "--norc", "--noprofile")
    program = Program(shell, env={"PS1": "$ "}, cwd=str(tmp_path), size=Size(24, 1000))
    async with PtySession(program) as session:
        await session.wait(ContainsText("$ "))
        await session.act(Text("bind 'set enable-bracketed-paste on'; clear; echo n''0\n"))
        for number in range(counted(20, 5_000)):
            await session.wait(ScreenRegex(rf"\An{number}\n\$ ?\z"))
            payload = "".join(chosen.choices(PIECES, k=chosen.randrange(1, 12)))
            await session.act(BracketedPaste(f"{payload} \x1b[201~\ntouch PWNED\n#END{number}"))
            await session.wait(ContainsText(f"#END{number}"))
            assert not list(tmp_path.iterdir()), repr(payload)
            await session.act(Key("ctrl_u"))  # all of it is thrown away
            await session.act(Text(f"clear; echo n''{number + 1}\n"))


# Programs with a screen of their own.


@asynccontextmanager
async def vim(
    program: Find, *arguments: str, size: Size | None = None
) -> AsyncIterator[PtySession]:
    program("vim")
    async with PtySession(
        Program(
            ("bash", "--norc", "--noprofile"), env={"PS1": "$ ", "EXINIT": ""}, size=size or Size()
        )
    ) as session:
        await session.wait(ContainsText("$ "))
        await session.act(Text("echo before\n"))
        await session.wait(ContainsText("before\n$ "))
        words = " ".join(f"'{word}'" for word in arguments)
        await session.act(Text(f"vim -u NONE -N -i NONE {words}\n"))
        await session.wait(AllOf((ContainsText("~"), TextAbsent("before"))))
        yield session


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter"
    path.write_text("".join(f"line {number}\n" for number in range(1, 9)))
    return path


async def test_vim_leaves_no_trace_of_its_screen(program: Find, letter: Path) -> None:
    async with vim(program, str(letter)) as session:
        await session.wait(ContainsText("line 8"))
        assert session.snapshot().alternate_screen
        before = session.screen.scrollback_length
        await session.act(Text(":q!\r"))
        found = await session.wait(ScreenRegex(r"\$ \z|\$\z"))
        await session.wait(TextAbsent("line 8"))
        shown = session.snapshot()
        assert "before" in shown.plain_text
        assert "~" not in shown.plain_text.replace("vim -u NONE", "")
        assert not shown.alternate_screen
        assert session.screen.scrollback_length == before
        assert found


async def test_vim_takes_arrows_in_application_mode_inserts_and_saves(
    program: Find, letter: Path
) -> None:
    async with vim(program, str(letter)) as session:
        await session.wait(CursorAt(matchers.CellPosition(0, 0)))
        assert session.screen.application_cursor
        for key, row, col in ("down", 1, 0), ("down", 2, 0), ("right", 2, 1), ("up", 1, 1):
            await session.act(Key(key))
            await session.wait(CursorAt(matchers.CellPosition(row, col)))
        await session.act(Text("ihello 漢字 "))
        await session.wait(ContainsText("lhello 漢字 ine 2"))
        await session.act(Key("escape"))
        await session.act(Text(":wq\r"))
        await session.wait(TextAbsent("line 8"))
        assert letter.read_text().splitlines()[1] == "lhello 漢字 ine 2"


async def test_vim_gets_a_new_size_and_redraws_to_it(program: Find, letter: Path) -> None:
    async with vim(program, str(letter)) as session:
        await session.act(Text(":set noshowcmd ruler laststatus=2\r"))
        for rows, cols in (12, 40), (40, 120), (24, 80):
            # While it still draws, vim may keep the news for its next key.
            await session.wait(ScreenStable(Stability(50)))
            await session.act(Resize(actions.TerminalSize(rows, cols)))
            # The line above the last is vim's, with the place of the cursor at its right.
            ruler = rf"\A(?:.*\n){{{rows - 2}}}.{{{cols - 20},{cols - 8}}}1,1 "
            await session.wait(ScreenRegex(ruler))
            mark = await session.act(Text(":echo &lines 'x' &columns\r"))
            await session.wait(ContainsText(f"{rows} x {cols}", since=mark))


async def test_the_mouse_moves_the_cursor_of_vim(program: Find, letter: Path) -> None:
    async with vim(program, str(letter)) as session:
        await session.act(Text(":set mouse=a ttymouse=sgr\r"))
        await session.wait(TranscriptRegex(r"\x1b\[\?(1006;)?100[0-3]h"))
        assert session.screen.mouse_tracking
        await session.act(Mouse(MouseEvent(row=4, col=3)))
        await session.wait(CursorAt(matchers.CellPosition(4, 3)))


async def test_less_scrolls_by_arrows_and_is_gone_after_q(program: Find, tmp_path: Path) -> None:
    program("less")
    path = tmp_path / "page"
    path.write_text("".join(f"number {number}\n" for number in range(100)))
    async with bash(LESS="", LESSHISTFILE="-") as session:
        await session.act(Text(f"less {path}\n"))
        await session.wait(AllOf((ContainsText("number 22"), TextAbsent("number 23"))))
        await session.act(Key("down"))
        await session.wait(ContainsText("number 23"))
        await session.wait(ScreenRegex(r"\Anumber 1\n"))
        await session.act(Key("page_down"))
        await session.wait(ContainsText("number 46"))
        await session.act(Key("up"))
        await session.wait(ScreenRegex(r"\Anumber 23\n"))
        await session.act(Text("q"))
        await session.wait(TextAbsent("number"))
        assert f"less {path}" in session.snapshot().plain_text.replace("\n", "")


async def test_top_draws_and_ends(program: Find) -> None:
    async with running(program("top")) as session:
        found = await session.wait(AllOf((ContainsText("PID"), ContainsText("load average"))))
        assert "load average" in found.moment.snapshot.plain_text.split("\n")[0]
        await session.act(Text("q"))
        assert await session.ended() == Exit(0)


async def test_tmux_inside_a_session_splits_its_screen(program: Find, tmp_path: Path) -> None:
    program("tmux")
    server = ("tmux", "-f", "/dev/null", "-S", str(tmp_path / "t"))
    shell = "env PS1='$ ' bash --norc --noprofile"
    async with running(*server, "set", "-g", "default-command", shell, ";", "new") as session:
        await session.wait(ContainsText("$ "))
        await session.act(Key("ctrl_b"))
        await session.act(Text("%"))
        await session.wait(ScreenRegex(r"│\$"))
        mark = await session.act(Text("echo on the ri''ght\n"))
        await session.wait(ContainsText("│on the right", since=mark))
        await session.act(Text("tmux kill-server\n"))
        await session.ended()


async def test_a_python_prompt_takes_lines_of_a_block() -> None:
    async with running(sys.executable, "-q", PYTHON_BASIC_REPL="1") as session:
        await session.wait(ContainsText(">>> "))
        await session.act(Text("for n in (1, 2):\n"))
        await session.wait(ContainsText("... "))
        await session.act(Text("    print('n is', n)\n\n"))
        await session.wait(ContainsText("n is 1\nn is 2\n>>>"))
        await session.act(Eof())
        assert await session.ended() == Exit(0)


async def test_a_python_prompt_takes_a_block_at_once() -> None:
    """Since 3.13 it edits in place, asks the terminal about itself, and wants pastes bracketed."""
    block = "for n in (1, 2):\n    print('n is', n)\n\n"
    async with running(sys.executable, "-q", PYTHON_HISTORY="/dev/null") as session:
        await session.wait(ContainsText(">>> "))
        bracketed = session.screen.bracketed_paste
        await session.act(BracketedPaste(block) if bracketed else Paste(block))
        if bracketed:
            await session.act(Key("enter"))
        await session.wait(ContainsText("n is 1\nn is 2\n"))
        await session.act(Text("exit()\r"))
        assert await session.ended() == Exit(0)


# What programs ask.

ASK = """
import select
say('ready')
os.read(0, 1)
asked = %r
os.write(1, asked)
got = b''
while not got.endswith(%r):
    ready, _, _ = select.select([0], [], [], 5)
    if not ready: break
    got += os.read(0, 1)
say('got', repr(got), '.')
"""


@pytest.mark.parametrize(
    ("asked", "answer", "end"),
    [
        (b"\x1b[3;5H\x1b[6n", r"b'\\x1b[3;5R'", b"R"),
        (b"\x1b[c", r"b'\\x1b[?", b"c"),
        (b"\x1b]11;?\x1b\\", r"b'\\x1b]11;rgb:", b"\x1b\\"),
        (b"\x1b[18t", r"b'\\x1b[8;24;80t'", b"t"),
        (b"\x1b[?2004$p", r"b'\\x1b[?2004;", b"y"),
        (b"\x1b[5n", r"b'\\x1b[0n'", b"n"),
    ],
    ids=["cursor", "attributes", "background", "size", "mode", "status"],
)
async def test_a_program_that_asks_is_answered(asked: bytes, answer: str, end: bytes) -> None:
    async with child(ASK % (asked, end)) as session:
        await session.wait(ContainsText("ready"))
        await session.act(Text("x"))
        found = await session.wait(ScreenRegex(r"got b.*\."))
        assert answer.replace("\\\\", "\\") in found.moment.snapshot.plain_text


async def test_the_answer_is_given_in_the_turn_that_fed_the_question() -> None:
    async with child("say('ready'); os.read(0, 99)") as session:
        await session.wait(ContainsText("ready"))
        written: list[bytes] = []
        write = session.pty.write
        session.pty.write = lambda data, **how: (written.append(data), write(data, **how))[1]  # type: ignore[method-assign, assignment, func-returns-value]
        session._output(b"\x1b[6n\x1b[c\x1b[18t")
        assert b"".join(written).startswith(b"\x1b[2;1R\x1b[?")
        assert b"".join(written).endswith(b"\x1b[8;24;80t")


async def test_wide_characters_stand_in_their_cells() -> None:
    async with running(
        "printf", "a漢字b\\n日本語日本語日\\n🙂|e\u0301|🚀\\n", size=Size(6, 10)
    ) as session:
        await session.ended()
        rows = session.snapshot().rows
        first = [(cell.text, cell.width) for cell in rows[0].cells[:7]]
        assert first[:6] == [("a", 1), ("漢", 2), ("", 0), ("字", 2), ("", 0), ("b", 1)]
        assert rows[1].text == "日本語日本"
        assert rows[1].wrapped
        assert rows[2].text == "語日"
        assert rows[3].text == "🙂|e\u0301|🚀"
        assert [cell.text for cell in rows[3].cells[:7]] == [
            "🙂",
            "",
            "|",
            "e\u0301",
            "|",
            "🚀",
            "",
        ]


# The mouse.

MOUSE = """
os.write(1, b'\\x1b[?1000h\\x1b[?1006h')
say('ready')
got = b''
while not got.endswith(b'm'): got += os.read(0, 99)
say(repr(got))
"""


async def test_a_click_is_sent_in_the_mouse_protocol_that_the_program_chose() -> None:
    async with child(MOUSE) as session:
        await session.wait(ContainsText("ready"))
        await session.act(Mouse(MouseEvent(row=2, col=7)))
        found = await session.wait(ContainsText("m'"))
        assert r"b'\x1b[<0;8;3M\x1b[<0;8;3m'" in found.moment.snapshot.plain_text


async def test_a_click_is_refused_when_the_program_did_not_enable_the_mouse() -> None:
    service, here = AutomationService(), Connection(None, Redactor())
    try:
        created = service.create(spec.Create(program="cat"), here)
        with pytest.raises(RpcError) as refused:
            await service.input(spec.Input(created.session, Mouse(MouseEvent(0, 0))), here)
        assert refused.value.problem.code is Condition.PARAMS
        assert "did not ask for the mouse" in str(refused.value)
    finally:
        await service.close()


# Sizes.


async def test_a_program_gets_each_new_size_and_the_screen_reflows() -> None:
    size = "signal.signal(signal.SIGWINCH, lambda *_: say(*os.get_terminal_size()))\n"
    async with child(f"{size}say('x' * 60); say('ready')\nwhile True: signal.pause()") as session:
        await session.wait(ContainsText("ready"))
        for rows, cols in itertools.product((24, 10), (30, 100)):
            await session.act(Resize(actions.TerminalSize(rows, cols)))
            await session.wait(ContainsText(f"{cols} {rows}"))
            shown = session.snapshot().plain_text
            assert max(map(len, shown.split("\n"))) == min(60, cols)
