"""A person at a terminal: what they type, what they see, and how they find it afterwards."""

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
from telex.terminal.cells import Size
from telex.terminal.pty import open_pty

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

TELEX = (sys.executable, "-m", "telex")
SIZE = Size(24, 80)
BASH = ("bash", "--norc", "--noprofile", "-i")
HUNG_UP = (Rung(signal.SIGHUP, 15.0), Rung(signal.SIGKILL, 5.0))
"""A terminal that closes waits for nobody's end; we do, since a killed one cannot tidy up."""


class Person:
    """At a terminal on which a command runs. Made by `at_terminal`."""

    def __init__(self, argv: tuple[str, ...], size: Size, env: Mapping[str, str | None]) -> None:
        self.seen = bytearray()
        self._mark = f"TELEX_TEST_MARK={os.urandom(8).hex()}".encode()
        self._more = asyncio.Event()
        self._over = asyncio.Event()
        name, _, value = self._mark.decode().partition("=")
        self.pty = open_pty(
            argv, size=size, env={**env, name: value}, output=self._see, ended=self._end
        )
        self.pid = self.pty.child.pid
        # Also ours, so that it can be looked at when nobody else has it open any more.
        self.line = os.open(os.readlink(f"/proc/{self.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
        self.found = self.modes()

    def _see(self, data: bytes) -> None:
        self.seen += data
        self._more.set()

    def _end(self) -> None:
        self._over.set()
        self._more.set()

    def modes(self) -> list[Any]:
        """How the terminal is set now."""
        return termios.tcgetattr(self.line)

    def raw(self) -> bool:
        """Whether somebody wants every key, the interrupt too. A shell's line editor does not."""
        return not self.modes()[3] & termios.ISIG

    async def takes_keys(self) -> None:
        """Until telex has taken the terminal. No event tells of it."""
        async with asyncio.timeout(10):
            while not self.raw():
                await asyncio.sleep(0.005)

    def type(self, keys: str | bytes) -> None:
        self.pty.write(keys.encode() if isinstance(keys, str) else keys)

    async def grows(self, size: int) -> None:
        """Until more than so many bytes were seen."""
        async with asyncio.timeout(10):
            while len(self.seen) <= size:
                assert not self._over.is_set(), f"it ended: {bytes(self.seen)!r}"
                self._more.clear()
                await self._more.wait()

    async def sees(self, text: str | bytes, *, after: int = 0) -> int:
        """Until the text stands there, `after` so many bytes; where it ends."""
        wanted = text.encode() if isinstance(text, str) else text
        while (at := self.seen.find(wanted, after)) < 0:
            try:
                await self.grows(len(self.seen))
            except TimeoutError:
                raise AssertionError(f"no {wanted!r} in {bytes(self.seen)!r}") from None
        return at + len(wanted)

    async def asks(self, keys: str, answer: str) -> int:
        """Type something and see its answer."""
        at = len(self.seen)
        self.type(keys)
        return await self.sees(answer, after=at)

    async def leaves(self) -> int:
        """The command's end: its exit code, counting signals from 128 as a shell would."""
        ended = await self.pty.child.wait()
        return ended.code if ended.code is not None else 128 + (ended.signal or 0)

    def others(self) -> list[str]:
        """Commands that run because of this one, without itself and its guardian."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if self._mark in (directory / "environ").read_bytes():
                    command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if (
                        command  # else it ended between the two readings, as a guardian may
                        and int(directory.name) != self.pid
                        and "telex.processes.guardian" not in command
                    ):
                        found.append(command)
        return found

    def restored(self) -> bool:
        return self.modes() == self.found


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
