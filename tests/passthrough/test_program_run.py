"""`telex run` on a person's terminal is transparent, and leaves no trace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from passthrough.person import TELEX, Person, at_terminal
from telex.processes import proc
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUN = (*TELEX, "run", "--")

SIZES = """
import fcntl, os, signal, struct, termios
def tell(*_):  # by one write: print cannot be reentered
    size = struct.unpack("4H", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\\0" * 8))
    os.write(1, b"%d %d %d %d\\n" % size)
signal.signal(signal.SIGWINCH, tell)
tell()
while True:
    signal.pause()
"""

PATIENT = """
import os, signal
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"interrupted\\n"))  # print cannot be reentered
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


async def test_input_and_output_pass_and_the_exit_code_is_the_programs() -> None:
    async with at_terminal(*RUN, "bash", "--norc") as person:
        await person.sees("$ ")
        assert person.raw()
        await person.asks("echo $((6*7))\r", "42\r\n")
        person.type("exit 5\r")
        assert await person.leaves() == 5
        assert person.restored()


async def test_the_program_has_the_size_of_the_terminal_and_follows_it() -> None:
    async with at_terminal(
        *RUN, sys.executable, "-c", SIZES, size=Size(30, 90, 900, 600)
    ) as person:
        await person.sees("30 90 900 600\r\n")
        person.pty.resize(Size(20, 50, 500, 400))
        await person.sees("20 50 500 400\r\n")


async def test_the_program_knows_the_persons_terminal_by_its_name() -> None:
    script = 'echo "[$TERM|$COLORTERM|$TERM_PROGRAM|$TELEX|${HTTY-none}|${TMUX-none}]"; stty -a'
    outside = {"TERM": "vt220", "COLORTERM": None, "TERM_PROGRAM": "xyz", "HTTY": "7", "TMUX": "x"}
    async with at_terminal(
        "sh", "-c", 'stty erase ^G; exec "$@"', "sh", *RUN, "sh", "-c", script, **outside
    ) as person:
        await person.sees(f"[vt220||xyz|{__version__}|1|none]\r\n")
        await person.sees("erase = ^G")
        assert await person.leaves() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_program_and_restores_the_terminal(
    number: signal.Signals,
) -> None:
    async with at_terminal(*RUN, "sh", "-c", "trap '' HUP TERM; echo ready; sleep 100") as person:
        await person.sees("ready")
        assert person.raw()
        os.kill(person.pid, number)
        assert await person.leaves() == 128 + number
        assert person.restored()
        assert not person.others()


async def test_the_output_of_a_program_that_is_ended_is_shown() -> None:
    script = "trap 'seq 20000; exit' HUP; echo ready; while :; do sleep 0.01; done"
    async with at_terminal(*RUN, "sh", "-c", script) as person:
        await person.sees("ready")
        os.kill(person.pid, signal.SIGTERM)
        assert await person.leaves() == 143
        await person.sees("\r\n20000\r\n")


async def test_an_interrupt_sent_to_telex_reaches_the_program() -> None:
    async with at_terminal(*RUN, sys.executable, "-c", PATIENT) as person:
        await person.sees("ready")
        os.kill(person.pid, signal.SIGINT)
        at = await person.sees("interrupted")
        person.type("\x03")
        await person.sees("interrupted", after=at)
        person.type("\x1c")
        assert await person.leaves() == 128 + signal.SIGQUIT
        assert person.restored()


async def test_a_killed_program_is_reported_as_a_shell_would() -> None:
    async with at_terminal(*RUN, "sh", "-c", "echo =$$=; exec sleep 100") as person:
        end = await person.sees("=\r\n")
        os.kill(int(person.seen[:end].split(b"=")[1]), signal.SIGKILL)
        assert await person.leaves() == 137
        assert person.restored()


CRASH = """
import sys
from telex.cli import main
from telex.passthrough.program_run import ProgramRun
def output(self, data):
    raise ZeroDivisionError("a bug")
ProgramRun.program_output = output
sys.exit(main(sys.argv[1:]))
"""


async def test_an_exception_in_telex_ends_the_run_and_restores_the_terminal() -> None:
    argv = (sys.executable, "-c", CRASH, "run", "--", "sh", "-c", "echo ready; sleep 100")
    async with at_terminal(*argv) as person:
        assert await person.leaves() == 1
        await person.sees("telex: internal error: ZeroDivisionError: a bug")
        assert person.restored()
        assert not person.others()


async def test_a_terminal_that_hangs_up_ends_everything() -> None:
    async with at_terminal(*RUN, "sh", "-c", "trap '' HUP; echo =$$=; sleep 100") as person:
        end = await person.sees("=\r\n")
        program = int(person.seen[:end].split(b"=")[1])
        watched = proc.pidfd(program)
        assert watched is not None
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(watched, gone.set)
        os.close(person.line)
        person.line = -1
        person.pty.close()
        await person.pty.child.wait()
        await gone.wait()
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)


async def test_all_of_the_last_output_is_shown() -> None:
    async with at_terminal(*RUN, "sh", "-c", "seq 100000; exit 3") as person:
        assert await person.leaves() == 3
        await person.sees("100000\r\n")
    assert bytes(person.seen) == b"".join(b"%d\r\n" % n for n in range(1, 100001))


async def test_a_terminal_that_does_not_read_holds_the_program_and_ctrl_c_still_works() -> None:
    async with at_terminal(*RUN, "yes") as person:
        await person.sees("y\r\ny")
        person.pty.pause()
        grown = [resident_pages(person.pid)]
        while len(grown) < 10 and (len(grown) < 2 or grown[-1] - grown[-2] >= 100):
            await asyncio.sleep(0.5)  # time to fill all buffers, and to import the responder
            grown.append(resident_pages(person.pid))
        assert grown[-1] - grown[-2] < 100, grown
        person.type("\x03")
        await asyncio.sleep(0.1)
        person.pty.resume()
        assert await person.leaves() == 130
        assert person.restored()


async def test_the_last_output_waits_for_a_terminal_that_reads_late(tmp_path: Path) -> None:
    said = tmp_path / "said"
    script = f"echo ready; read x; seq 11000; touch {said}"
    async with at_terminal(*RUN, "sh", "-c", script) as person:
        await person.sees("ready\r\n")
        person.pty.pause()
        person.type("\r")
        async with asyncio.timeout(60):
            while not said.exists():
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # the program has exited by now, and telex must still run
        assert person.pty.child.exit is None
        person.pty.resume()
        assert await person.leaves() == 0
        await person.sees("\r\n11000\r\n")


async def test_other_processes_never_find_the_terminal_non_blocking() -> None:
    script = f"{' '.join(RUN)} sh -c 'echo ready; read x'; echo after"
    async with at_terminal("sh", "-c", script) as person:
        await person.sees("ready")
        with open(f"/proc/{person.pid}/fdinfo/1") as info:
            flags = int(next(line for line in info if line.startswith("flags")).split()[1], 8)
        assert not flags & os.O_NONBLOCK
        person.type("\r")
        await person.sees("after")


async def test_a_key_that_is_pressed_alone_is_not_delayed() -> None:
    echo = "import os, tty; tty.setraw(0); os.write(1, b'ready'); os.write(1, repr(os.read(0, 9)).encode())"
    async with at_terminal(*RUN, sys.executable, "-c", echo) as person:
        await person.sees("ready")
        person.type("\x1b")
        await person.sees(r"b'\x1b'")


async def test_telex_run_adds_nothing_to_the_output() -> None:
    async with at_terminal(*RUN, "sh", "-c", "printf 'no newline'; exit 4") as person:
        assert await person.leaves() == 4
        await person.sees("no newline")
    assert person.seen == b"no newline"


class Look:
    """A person's terminal with an emulator."""

    def __init__(self, person: Person, screen: Screen) -> None:
        self._person, self._screen, self._drawn = person, screen, 0

    async def until(self, like: Callable[[str], bool]) -> str:
        """Wait until the screen satisfies a condition, and reply to queries meanwhile."""
        while not like(text := self._screen.snapshot(0).plain_text):
            await self._person.grows(self._drawn)
            self._draw()
        return text

    async def settled(self) -> str:
        """Return the screen when nothing more is drawn."""
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(0.3):
                    await self._person.grows(self._drawn)
                self._draw()
        return self._screen.snapshot(0).plain_text

    def _draw(self) -> None:
        new = bytes(self._person.seen[self._drawn :])
        self._drawn += len(new)
        self._person.type(self._screen.feed(new))


@pytest.mark.parametrize("name", ["vim", "less", "bash"])
async def test_the_screen_is_the_same_with_telex_and_without(
    name: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    file = tmp_path / "text"
    file.write_text("".join(f"line {n} ✓ 日本 \t tab\n" for n in range(100)))
    commands = {
        "vim": (
            [program("vim"), "-n", "-u", "NONE", "--cmd", "set shortmess=aFT", str(file)],
            "50G3x:set number\r",
            " 50 e 49",
        ),
        "less": ([program("less"), str(file)], "50g", "line 60 "),
        "bash": (
            ["bash", "--norc"],
            "ls -l /etc/pass*; tput cols; echo o'n'e\r",
            "\none\n",
        ),
    }
    argv, keys, until = commands[name]
    looks: list[str] = []
    for through in ((), RUN):
        screen = Screen(Size(24, 80))
        async with at_terminal(*through, *argv, TERM="xterm-256color") as person:
            look = Look(person, screen)
            await look.until(lambda text: ("$" if name == "bash" else "line 3") in text)
            person.type(keys)
            if looks:
                await look.until(lambda text: text == looks[0])
            await look.until(lambda text: until in text)
            looks.append(await look.settled())
        screen.close()
    assert looks[0] == looks[1]


def resident_pages(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as told:
        return int(told.read().split()[1])
