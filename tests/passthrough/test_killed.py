"""After `kill -9` of telex, the person's terminal is restored."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from passthrough.person import BASH, SIZE, TELEX, Person, at_terminal
from telex.passthrough.person_terminal import ModeTracker
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RUN = (*TELEX, "run", "--")
Program = Callable[[str], str]


async def is_as_it_was(person: Person) -> None:
    """Wait until the modes are restored, by polling: there is no event for them."""
    async with asyncio.timeout(60):
        while not person.restored():
            await asyncio.sleep(0.01)


async def is_plain(person: Person, *but: str) -> None:
    """Wait until the person's terminal has no mode of a program."""
    async with asyncio.timeout(60):
        while set_on(person) - {*but}:
            await person.grows(len(person.seen))


def set_on(person: Person) -> set[str]:
    screen = Screen(SIZE)
    screen.feed(bytes(person.seen))
    try:
        modes = {
            "alternate screen": screen.alternate_screen,
            "mouse": screen.mouse_tracking,
            "paste": screen.bracketed_paste,
            "cursor keys": screen.application_cursor,
            "keypad": screen.application_keypad,
            "no cursor": not screen.cursor.visible,
            "keyboard": bool(re.search(rb"\x1b\[=[1-9]", screen.restore())),
        }
    finally:
        screen.close()
    return {mode for mode, is_set in modes.items() if is_set}


@asynccontextmanager
async def killed(*argv: str, shows: str, **env: str) -> AsyncIterator[Person]:
    """Kill telex when this text was seen. Its parent continues, and sets no modes itself."""
    async with at_terminal("sh", "-c", '"$@"; exec sleep 100', "sh", *argv, **env) as person:
        await person.sees(shows)
        async with asyncio.timeout(60):
            while person.restored():
                await asyncio.sleep(0.005)
        children = Path(f"/proc/{person.pid}/task/{person.pid}/children").read_text()
        os.kill(int(children), signal.SIGKILL)
        yield person


SETS_EVERYTHING = (
    r"\033[?1049h\033[?1000;1002;1006h\033[?1004h\033[?2004h\033[?1h\033=\033[?25l\033[>1u"
    r"\033[>4;2m\033[5 q\033[3;9r\033[?7l\033[4h\033[22;2t\033]2;mine\033\\"
)


async def test_every_mode_that_a_program_set_is_undone(tmp_path: Path) -> None:
    script = f"printf '{SETS_EVERYTHING}'; printf ready; sleep 100"
    async with killed(*RUN, "sh", "-c", script, shows="ready", TMPDIR=str(tmp_path)) as person:
        await is_as_it_was(person)
        await is_plain(person)
        for undone in ("[?1049l", "[?1004l", "[>4m", "[0 q", "[r", "[?7h", "[4l", "[23;2t"):
            await person.sees(f"\x1b{undone}")


@pytest.mark.parametrize(
    ("name", "arguments", "shows"),
    [
        ("vim", ("-u", "NONE", "-c", "set mouse=a title"), "~"),
        ("less", ("--mouse", "/etc/services"), "/etc/services"),
    ],
)
async def test_a_kill_on_the_alternate_screen_restores_the_terminal(
    program: Program, tmp_path: Path, name: str, arguments: tuple[str, ...], shows: str
) -> None:
    argv = (*RUN, program(name), *arguments)
    async with killed(*argv, shows=shows, TMPDIR=str(tmp_path), TERM="xterm-256color") as person:
        await is_as_it_was(person)
        await is_plain(person)


async def test_without_set_modes_nothing_is_written(tmp_path: Path) -> None:
    argv = (*RUN, "sh", "-c", "printf '\\033[1mready\\033[m'; sleep 100")
    async with killed(*argv, shows="ready", TMPDIR=str(tmp_path)) as person:
        await is_as_it_was(person)
        await person.sees("Killed")
        assert bytes(person.seen).count(b"\x1b") == 2


async def test_after_a_kill_the_shell_finds_its_terminal_restored(tmp_path: Path) -> None:
    """The shell sets its own modes at its prompt, and these stay."""
    async with at_terminal(*BASH, TMPDIR=str(tmp_path)) as person:
        await person.sees("$ ")
        command = " ".join(f"'{word}'" for word in RUN)
        person.type(
            f'{command} sh -c \'printf "\\033[?1049h\\033[?1000h"; echo $PPID re""ady; cat\'\r'
        )
        at = await person.sees(" ready")
        await person.takes_keys()
        leader = int(bytes(person.seen[:at]).split()[-2].split(b"h")[-1])
        os.kill(parent_of(leader), signal.SIGKILL)
        await person.sees("Killed")
        await is_plain(person, "paste")
        await person.asks("echo $((6*7))\r", "42")
        assert not person.raw()


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


async def test_a_killed_recorder_or_player_restores_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "demo.cast"
    script = "printf '\\033[?1049h\\033[?25l'; printf ready; sleep 100"
    argv = (*TELEX, "record", str(file), "--", "sh", "-c", script)
    async with killed(*argv, shows="ready", TMPDIR=str(tmp_path)) as person:
        await is_as_it_was(person)
        await is_plain(person)
    with file.open("a") as recording:
        recording.write('[100.0, "o", "never"]\n')
    async with killed(*TELEX, "replay", str(file), shows="ready") as person:
        await is_as_it_was(person)
        await is_plain(person)


async def test_a_killed_attach_restores_the_terminal(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    home = {"TELEX_HOME": str(tmp_path / "home")}
    async with at_terminal(*TELEX, "serve", "--socket", str(socket), **home) as server:
        await server.sees("listening")
        created = '{"program": "sh", "args": ["-c", "printf \\"\\\\033[?1049h\\\\033[?1000h\\"; echo ready; cat"]}'
        call = (*TELEX, "call", "--to", f"unix:{socket}", "session.create", created)
        async with at_terminal(*call, **home) as caller:
            await caller.sees("s1")
            await caller.leaves()
        attach = (*TELEX, "attach", "--to", f"unix:{socket}", "s1")
        async with killed(*attach, shows="ready", **home) as person:
            await is_as_it_was(person)
            await is_plain(person)


PAGE = """
from telex.htty.page_tty import PageTty
import signal
tty = PageTty(0)
print("ready", end="", flush=True)
signal.pause()
"""


async def test_a_killed_program_with_a_page_restores_the_terminal() -> None:
    async with killed(sys.executable, "-c", PAGE, shows="ready") as person:
        await is_as_it_was(person)
        await person.sees("\x1b\\")


# The modes that are undone.


@pytest.mark.parametrize(
    ("shown", "undo"),
    [
        (b"plain \x1b[1;31mred\x1b[m", b""),
        (b"\x1b[?25l\x1b[?25h", b""),
        (b"\x1b[?1049h\x1b[?1049l", b""),
        (b"\x1b[>1u\x1b[<u", b""),
        (b"\x1b[>1u\x1b[>5u\x1b[<2u", b""),
        (b"\x1b[2;5r\x1b[r", b""),
        (b"\x1b[22;0;0t\x1b[23;0;0t", b""),
        (b"\x1b[>4;1m\x1b[>4m", b""),
        (b"\x1b[?1049h\x1b[?1000h\x1bc", b""),
        (b"\x1b[?1049h", b"\x1b[?1049l"),
        (b"\x1b[>1u\x1b[?1049h\x1b[>3u", b"\x1b[<1u\x1b[?1049l\x1b[<1u"),
        (b"\x1b]11;#000000\x07\x1b]4;1;red\x1b\\", b"\x1b]104\x1b\\\x1b]111\x1b\\"),
        (b"\x1b]8;;http://a\x1b\\here", b"\x1b]8;;\x1b\\"),
        (b"\x1b[?1000;1006h", b"\x1b[?1000l\x1b[?1006l"),
    ],
)
def test_modes_that_a_program_did_not_reset_are_undone(shown: bytes, undo: bytes) -> None:
    tracker = ModeTracker()
    tracker.feed(shown)
    assert tracker.undo() == (b"\x18" + undo + b"\x1b(B\x0f\x1b[m" if undo else b"")
    for at in range(len(shown)):
        cut = ModeTracker()
        cut.feed(shown[:at])
        cut.feed(shown[at:])
        assert cut.undo() == tracker.undo(), at


def test_the_number_of_tracked_modes_is_bounded() -> None:
    tracker = ModeTracker()
    for number in range(10_000):
        tracker.feed(b"\x1b[?%dh\x1b[22;%dt\x1b[>1u\x1b]4;%d;red\x07" % (number, number, number))
    assert len(tracker.undo()) < 2000
