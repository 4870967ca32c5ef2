"""`telex attach`: a session of a server on a person's terminal, and the terminal afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

import telex
from passthrough.person import TELEX, Person, at_terminal
from serving import Serve, serving
from telex.automation import protocol as spec
from telex.automation.dialer import dial
from telex.passthrough.attach_view import BLANK, PLAIN, NoSuchKey, control_key
from telex.rpc.errors import RpcError
from telex.rpc.methods import Methods
from telex.terminal.cells import Size
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from telex import Server, Terminal

DETACH = "\x1d"
BASH = ("bash", "--norc", "-i")
SIZES = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    with serving(tmp_path_factory.mktemp("server"), PS1="$ ") as one:
        yield one


@contextlib.asynccontextmanager
async def session(served: Serve, *argv: str, size: Size | None = None) -> AsyncIterator[Terminal]:
    there: Server
    more = {} if size is None else {"rows": size.rows, "cols": size.cols}
    async with telex.connect(served.unix) as there, await there.spawn(argv, **more) as term:
        yield term


def attach(served: Serve, term: Terminal, *options: str) -> tuple[str, ...]:
    return (*TELEX, "attach", "--to", served.unix, *options, term.id)


def screen_of(person: Person, size: Size) -> Screen:
    """Return the screen of a terminal after all output that the person saw."""
    screen = Screen(size)
    screen.feed(bytes(person.seen))
    return screen


def shown(person: Person) -> str:
    with contextlib.closing(screen_of(person, Size(24, 80))) as screen:
        return "\n".join(row.text for row in screen.rows())


async def test_the_screen_is_drawn_and_input_arrives_in_order(served: Serve) -> None:
    async with session(served, *BASH) as term:
        await term.wait("$ ")
        await term.type("echo be''fore\n")
        await term.wait("\nbefore")
        async with at_terminal(*attach(served, term)) as person:
            await person.sees("before")
            await person.asks("echo $((6*7))\r", "42\r\n")
            line = "echo " + "".join(f"{n:03}" for n in range(300))
            for letter in line:
                person.type(letter)
            await person.asks("\r", f"\r{line[5:45]}")
            person.type("exit 5\r")
            assert await person.leaves() == 5
            assert person.restored()


async def test_the_detach_key_leaves_the_program_running_and_restores_the_terminal(
    served: Serve,
) -> None:
    async with session(served, *BASH) as term:
        await term.wait("$ ")
        async with at_terminal(*attach(served, term)) as person:
            await person.sees("$ ")
            assert person.raw()
            person.type(f"echo la''st\r{DETACH}not typed")
            assert await person.leaves() == 0
            assert person.restored()
            await person.sees(f"telex: detached from {term.id}, which still runs")
        await term.wait("\nlast")
        assert "not typed" not in await term.text()


async def test_a_session_is_found_by_the_name_that_telex_open_gave(served: Serve) -> None:
    async with await dial(served.unix) as peer:

        async def verb(*argv: str) -> None:
            call = {"argv": argv, "cwd": "/", "env": {"PATH": os.environ["PATH"]}}
            assert (await peer.call("verb.run", call))["code"] == 0

        await verb("open", "mine", "--", "sh", "-c", "echo here; exec cat")
        refused = [(*TELEX, "attach", "--to", served.unix, "other")]
        async with session(served, "cat"):
            refused.append((*TELEX, "attach", "--to", served.unix))
            for words, said in zip(refused, ("no session 'other'", "which session?"), strict=True):
                async with at_terminal(*words) as person:
                    assert await person.leaves() == 1
                    await person.sees(said)
            async with at_terminal(*TELEX, "attach", "--to", served.unix, "mine") as person:
                await person.sees("here")
                await person.takes_keys()
                person.type(DETACH)
                assert await person.leaves() == 0
                await person.sees("telex: detached from mine, which still runs")
        with pytest.raises(RpcError, match="'mine' is the name of s"):
            await peer.call("session.properties", {"session": "mine"})
        await verb("close", "mine")
        assert await peer.call("session.list") == {"sessions": []}


@pytest.mark.parametrize("pressed", ["\x01", "\x1b[97;5u"])
async def test_another_detach_key_works_in_every_keyboard_encoding(
    served: Serve, pressed: str
) -> None:
    async with (
        session(served, "cat") as term,
        at_terminal(*attach(served, term, "--detach-key", "ctrl_a")) as person,
    ):
        await person.takes_keys()
        await person.asks("\x1dabc\r", "^]abc\r\n\x1dabc")
        person.type(pressed)
        assert await person.leaves() == 0


@pytest.mark.parametrize("name", ["a", "ctrl_a", "CTRL-A", "ctrl_]", "ctrl_\\", "ctrl_^", "ctrl__"])
def test_a_control_character_has_a_name(name: str) -> None:
    letter = name[-1].lower()
    assert control_key(name).search(bytes([ord(letter.upper()) - 64]))
    for precise in (b"x\x1b[%d;5u", b"\x1b[%d:65;133:1u", b"\x1b[27;5;%d~"):
        assert control_key(name).search(precise % ord(letter))
    assert not control_key(name).search(b"%c\x1b[%d;1u\x1b[%d;5:3u" % ((ord(letter),) * 3))


@pytest.mark.parametrize("name", ["", "ctrl_", "ctrl_1", "ctrl_ab", "enter", "ctrl_é", "ctrl_@"])
def test_a_detach_key_that_is_not_a_control_character_is_refused(name: str) -> None:
    with pytest.raises(NoSuchKey, match="is not a control character"):
        control_key(name)


async def test_the_session_has_the_size_of_the_terminal_and_follows_it(served: Serve) -> None:
    async with session(served, "sh", "-c", SIZES) as term:
        await term.wait("24 80")
        async with at_terminal(*attach(served, term), size=Size(30, 90)) as person:
            await person.sees("30 90")
            person.pty.resize(Size(20, 50))
            await person.sees("20 50")
            person.pty.resize(Size(1200, 1100))
            await person.sees("1000 1000")


async def test_read_only_neither_types_nor_resizes(served: Serve) -> None:
    async with session(served, "cat") as term:
        await term.type("hello\n")
        await term.wait("hello\nhello")
        async with at_terminal(*attach(served, term, "--read-only"), size=Size(30, 90)) as person:
            await person.sees("hello")
            person.type("typed\r")
            person.type(DETACH)
            assert await person.leaves() == 0
        snapshot = await term.snapshot(cells="none")
        assert "typed" not in snapshot.plain_text
        assert (snapshot.size.rows, snapshot.size.cols) == (24, 80)


async def test_input_that_is_not_text_does_not_end_the_attachment(served: Serve) -> None:
    async with session(served, "cat") as term, at_terminal(*attach(served, term)) as person:
        await person.takes_keys()
        person.type(b"a\xff\xfeb\xc3")
        person.type("\rnext é\r".encode())
        echoed = await person.sees("next é\r\n")
        await person.sees("a\ufffd\ufffdb\ufffd\r\nnext é\r\n", after=echoed)


async def test_the_exit_code_counts_signals_from_128(served: Serve) -> None:
    async with (
        session(served, "sh", "-c", "read x; kill -9 $$") as term,
        at_terminal(*attach(served, term)) as person,
    ):
        await person.takes_keys()
        person.type("\r")
        assert await person.leaves() == 137
        assert person.restored()


async def test_a_program_that_has_exited_shows_its_last_screen(served: Serve) -> None:
    async with session(served, "sh", "-c", "echo first; echo last; exit 3") as term:
        await term.wait_exit()
        async with at_terminal(*attach(served, term)) as person:
            assert await person.leaves() == 3
            assert person.restored()
            await person.sees("first")
            assert shown(person).split() == ["last"]  # the prompt on the last row scrolls


async def test_a_last_screen_of_many_pieces_is_drawn_whole(served: Serve) -> None:
    """Each cell has its own colour, so the screen does not fit into one message."""
    script = (
        "import sys; [sys.stdout.write(f'\\x1b[38;2;{r};{c};7;48;2;{c};{r};9m' + '.#'[c % 2])"
        " for r in range(40) for c in range(120)]; sys.stdout.write('\\x1b[40;110H\\x1b[mTHE-END')"
    )
    size = Size(40, 120)
    async with session(served, sys.executable, "-c", script, size=size) as term:
        await term.wait_exit()
        async with at_terminal(*attach(served, term), size=size) as person:
            assert await person.leaves() == 0
            assert len(person.seen) > 2 * 64 * 1024
            await person.sees("THE-END")
            with contextlib.closing(screen_of(person, size)) as screen:
                assert any("THE-END" in row.text for row in screen.rows())


async def test_each_piece_of_a_screen_has_a_flag_for_more_pieces(served: Serve) -> None:
    got: list[spec.SessionBytes] = []
    whole = asyncio.Event()

    def hear(piece: spec.SessionBytes) -> None:
        got.append(piece)
        if not piece.more:
            whole.set()

    methods = Methods()
    methods.add("session.bytes", hear)
    script = "import sys; sys.stdout.write('\\x1b[31ma\\x1b[32mb' * 8000)"
    async with session(served, sys.executable, "-c", script, size=Size(100, 200)) as term:
        await term.wait_exit()
        async with await dial(served.unix, methods=methods) as peer:
            await peer.call("session.attach", spec.Attach(session=term.id))
            await whole.wait()
    assert [piece.more for piece in got] == [True] * (len(got) - 1) + [False]
    assert [piece.reset for piece in got] == [True] + [False] * (len(got) - 1)
    assert len(got) > 1


async def test_modes_that_the_program_left_are_undone(served: Serve) -> None:
    modes = "1049 1 1000 1002 1003 1006 1004 2004"
    script = (
        f"for m in {modes}; do printf '\\033[?%sh' $m; done; printf '\\033[?25l\\033=\\033[>1u'"
    )
    async with session(served, "sh", "-c", f"{script}; echo full; read x") as term:
        await term.wait("full")
        async with at_terminal(*attach(served, term)) as person:
            await person.sees("full")
            with contextlib.closing(screen_of(person, Size(24, 80))) as screen:
                assert screen.alternate_screen
                assert screen.bracketed_paste
                assert screen.mouse_tracking
            person.type(DETACH)
            assert await person.leaves() == 0
            with contextlib.closing(screen_of(person, Size(24, 80))) as screen:
                assert not screen.alternate_screen
                assert not screen.bracketed_paste
                assert not screen.mouse_tracking
                assert not screen.application_cursor
                assert not screen.application_keypad
                assert screen.cursor.visible


def test_plain_resets_the_terminal_wherever_the_bytes_were_cut() -> None:
    """After PLAIN, a drawing is the same as on a fresh terminal, wherever output was cut."""
    wild = (
        b"\x1b[?6h\x1b[5;9r\x1b[4h\x1b(0\x0e\x1b[?69h\x1b[?7l\x1b[31;1m\x1b[?5h\x1b[>1u\x1b[?1049h"
        b"\x1b[>1ustuff\x1b[3;4H\x1b]2;title\x07\x1bPq#0\x1b\\"
    )
    with contextlib.closing(Screen(Size(10, 40))) as fresh:
        fresh.feed(b"\x1b[H\x1b[2Jlqk" + b"x" * 60)
        wanted = [row.text for row in fresh.rows()]
    for cut in range(len(wild)):
        with contextlib.closing(Screen(Size(10, 40))) as screen:
            screen.feed(wild[:cut] + BLANK + b"lqk" + b"x" * 60)
            assert [row.text for row in screen.rows()] == wanted, wild[:cut]
            assert not screen.alternate_screen


async def test_the_persons_screen_scrolls_into_the_scrollback(
    served: Serve,
) -> None:
    assert b"\x1bc" not in PLAIN
    assert b"\x1b[3J" not in PLAIN
    async with session(served, "cat") as term:
        await term.type("inside\n")
        command = " ".join(attach(served, term))
        async with at_terminal("sh", "-c", f"echo precious; {command}") as person:
            await person.sees("inside")
            await person.takes_keys()
            person.type(DETACH)
            assert await person.leaves() == 0
            with contextlib.closing(screen_of(person, Size(24, 80))) as screen:
                kept = screen.scrollback(0, screen.scrollback_length)
                assert "precious" in [row.text for row in kept]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_attachment_and_restores_the_terminal(
    served: Serve, number: signal.Signals
) -> None:
    async with session(served, "sh", "-c", "printf '\\033[?1049hfull'; read x") as term:
        await term.wait("full")
        async with at_terminal(*attach(served, term)) as person:
            await person.sees("full")
            os.kill(person.pid, number)
            assert await person.leaves() == 128 + number
            assert person.restored()
            with contextlib.closing(screen_of(person, Size(24, 80))) as screen:
                assert not screen.alternate_screen
        assert "full" in await term.text()


async def test_a_lost_server_is_reported_and_the_terminal_is_restored(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with serving(tmp_path_factory.mktemp("other")) as served:
        async with telex.connect(served.unix) as there:
            term = await there.spawn("cat")
            async with at_terminal(*attach(served, term)) as person:
                await person.takes_keys()
                await person.asks("x\r", "x\r\nx")
                served.kill()
                assert await person.leaves() == 1
                assert person.restored()
                await person.sees("telex: the connection to the server is closed")
                assert b"Traceback" not in person.seen
                assert b"never retrieved" not in person.seen


async def test_closing_the_session_ends_the_attachment(served: Serve) -> None:
    async with session(served, "cat") as term, at_terminal(*attach(served, term)) as person:
        await person.takes_keys()
        await term.close()
        assert await person.leaves() == 1
        assert person.restored()
        await person.sees("telex: the session was closed")


async def test_no_such_session_leaves_the_terminal_untouched(served: Serve) -> None:
    async with at_terminal(*TELEX, "attach", "--to", served.unix, "s99") as person:
        assert await person.leaves() == 1
        assert person.restored()
        assert bytes(person.seen).startswith(b"telex: there is no session 's99'")


async def test_two_clients_are_attached_at_once(served: Serve) -> None:
    async with (
        session(served, "sh", "-c", "echo begun; exec cat") as term,
        at_terminal(*attach(served, term)) as one,
        at_terminal(*attach(served, term)) as other,
    ):
        await one.sees("begun")
        await other.sees("begun")  # from now on it gets output, not a screen
        await one.asks("from one\r", "from one\r\nfrom one")
        await other.sees("from one\r\nfrom one")
        other.type("from other\r")
        await one.sees("from other\r\nfrom other")
        one.type(DETACH)
        assert await one.leaves() == 0
        await other.asks("still\r", "still\r\nstill")


async def test_input_without_the_lease_rings_the_bell(served: Serve) -> None:
    async with telex.connect(served.unix) as there, await there.spawn("cat") as term:
        asked = spec.Lease(session=term.id, holder="agent")
        await there._caller.call("session.lease", asked, spec.Leased)
        async with at_terminal(*attach(served, term)) as person:
            await person.takes_keys()
            await term.type("agent types\n")
            await person.sees("agent types")
            await person.asks("x", "\a")
            person.type(DETACH)
            assert await person.leaves() == 0
        assert "x" not in await term.text()


async def test_a_slow_terminal_under_a_flood_is_bounded_and_can_detach(served: Serve) -> None:
    async with (
        session(served, "yes", "an endless line") as term,
        at_terminal(*attach(served, term)) as person,
    ):
        await person.sees("an endless line")
        person.pty.pause()  # the person does not read
        before = (await term.snapshot(cells="none")).sequence
        await term.wait(telex.match.printed("an endless line"), 5, since=before)  # for others
        person.type(DETACH)
        async with asyncio.timeout(60):  # no process reads, and still the terminal is restored
            while not person.restored():
                await asyncio.sleep(0.005)
        person.pty.resume()
        assert await person.leaves() == 0


@pytest.mark.parametrize("then", ["read x", "exit 6"])
async def test_a_slow_terminal_shows_the_current_screen_when_it_reads_again(
    served: Serve, then: str
) -> None:
    script = f"echo begin; read x; seq 1 400000; echo THE-END; {then}"
    async with (
        session(served, "sh", "-c", script) as term,
        at_terminal(*attach(served, term)) as person,
    ):
        await person.sees("begin")
        await person.takes_keys()
        person.pty.pause()
        person.type("\r")
        await term.wait("THE-END", 20)
        person.pty.resume()
        await person.sees("THE-END")
        assert len(person.seen) < 2_000_000, "what was missed is not told"
        assert shown(person).rstrip().endswith("400000\nTHE-END")


async def test_without_a_terminal_it_is_a_filter_and_resizes_nothing(served: Serve) -> None:
    async with session(served, "sh", "-c", "read x; echo got $x; exit 4", size=Size(9, 33)) as term:
        process = await asyncio.create_subprocess_exec(
            *attach(served, term),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"hello\n")
        out = await process.stdout.read()
        assert await process.wait() == 4
        process.stdin.close()
        assert b"got hello" in out
        assert (await term.snapshot(cells="none")).size.cols == 33
