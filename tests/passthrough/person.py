"""A person at a terminal: their input, the output that they see, and the modes afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telex.processes.termination import Rung
from telex.terminal import line_discipline
from telex.terminal.cells import Size
from telex.terminal.pty import open_pty

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

TELEX = (sys.executable, "-m", "telex")
SIZE = Size(24, 80)
BASH = ("bash", "--norc", "--noprofile", "-i")
HUNG_UP = (Rung(signal.SIGHUP, 15.0), Rung(signal.SIGKILL, 5.0))
"""We wait longer than a terminal window does, since a killed telex cannot clean up."""


class Person:
    """A person at a terminal on which a command runs. Made by `at_terminal`."""

    def __init__(
        self,
        argv: tuple[str, ...],
        size: Size,
        env: Mapping[str, str | None],
        cwd: Path | None = None,
    ) -> None:
        self.seen = bytearray()
        self._mark = f"TELEX_TEST_MARK={os.urandom(8).hex()}".encode()
        self._more = asyncio.Event()
        self._over = asyncio.Event()
        name, _, value = self._mark.decode().partition("=")
        self.pty = open_pty(
            argv,
            cwd=str(cwd) if cwd else None,
            size=size,
            env={**env, name: value},
            output=self._see,
            ended=self._end,
        )
        self.pid = self.pty.child.pid
        # Open here too, so that its modes can be read after all programs have closed it.
        self.line = os.open(os.readlink(f"/proc/{self.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
        self.found = _first_modes(size)

    def _see(self, data: bytes) -> None:
        self.seen += data
        self._more.set()

    def _end(self) -> None:
        self._over.set()
        self._more.set()

    def modes(self) -> list[Any]:
        """Return the current modes of the terminal."""
        return termios.tcgetattr(self.line)

    def raw(self) -> bool:
        """Whether a program reads every key, also Ctrl-C. A shell's line editor does not."""
        return not self.modes()[3] & termios.ISIG

    async def takes_keys(self) -> None:
        """Wait until telex has taken the terminal, by polling: there is no event for it."""
        async with asyncio.timeout(60):
            while not self.raw():
                await asyncio.sleep(0.005)

    def type(self, keys: str | bytes) -> None:
        self.pty.write(keys.encode() if isinstance(keys, str) else keys)

    async def grows(self, size: int) -> None:
        """Wait until more than so many bytes were seen."""
        async with asyncio.timeout(60):
            while len(self.seen) <= size:
                assert not self._over.is_set(), f"it ended: {bytes(self.seen)!r}"
                self._more.clear()
                await self._more.wait()

    async def sees(self, text: str | bytes, *, after: int = 0) -> int:
        """Wait for a text after so many bytes. Return where it ends."""
        wanted = text.encode() if isinstance(text, str) else text
        while (at := self.seen.find(wanted, after)) < 0:
            try:
                await self.grows(len(self.seen))
            except TimeoutError:
                raise AssertionError(f"no {wanted!r} in {bytes(self.seen)!r}") from None
        return at + len(wanted)

    async def asks(self, keys: str, answer: str) -> int:
        """Type keys and wait for the answer."""
        at = len(self.seen)
        self.type(keys)
        return await self.sees(answer, after=at)

    async def leaves(self) -> int:
        """Wait for the exit, and until all output before it was read. Return the exit code; for a
        signal, 128 plus it."""
        ended = await self.pty.child.wait()
        async with asyncio.timeout(60):
            await self._over.wait()
        return ended.code if ended.code is not None else 128 + (ended.signal or 0)

    def others(self) -> list[str]:
        """Return the commands that this one has started, without its guardian."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has exited meanwhile
                if self._mark in (directory / "environ").read_bytes():
                    command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if (
                        command  # else it exited between the two reads, as a guardian may
                        and int(directory.name) != self.pid
                        and "telex.processes.guardian" not in command
                    ):
                        found.append(command)
        return found

    def restored(self) -> bool:
        return self.modes() == self.found


def _first_modes(size: Size) -> list[Any]:
    """Return the modes of a new terminal. Those of the person's own would be read too late: a
    program that starts fast has set them by then."""
    master, slave = os.openpty()
    try:
        line_discipline.prepare(slave, size)
        return termios.tcgetattr(slave)
    finally:
        os.close(master)
        os.close(slave)


@contextlib.asynccontextmanager
async def at_terminal(*argv: str, size: Size = SIZE, **env: str | None) -> AsyncIterator[Person]:
    person = Person(argv, size, {"PS1": "$ ", "PROMPT_COMMAND": None, **env})
    try:
        yield person
    finally:
        if person.line >= 0:
            os.close(person.line)
        await person.pty.end(HUNG_UP)
        person.pty.close()
