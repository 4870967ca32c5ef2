"""A person at a terminal that answers, as real ones do: what it is, where its cursor stands."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from host.person import HUNG_UP, SIZE, TELEX, Person
from telex.terminal.screen import Screen
from telex.wire import json_escape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from telex.terminal.cells import Size

RUN = (*TELEX, "run")
_CLIPBOARD = b"\x1b]52;c;?\x1b\\"


def frame(body: str) -> bytes:
    """What a program prints to say this."""
    return json_escape.encode(body.encode())


def printing(path: Path, *pieces: bytes) -> tuple[str, str]:
    """A command that prints exactly this."""
    path.write_bytes(b"".join(pieces))
    return ("cat", str(path))


class Seated(Person):
    """Made by `seated`."""

    def __init__(self, argv: tuple[str, ...], size: Size, env: Mapping[str, str | None]) -> None:
        self.screen = Screen(size)
        self.clipboard: bytes | None = None
        """What is in it, in base64, if the terminal tells that."""
        super().__init__(argv, size, env)

    def _see(self, data: bytes) -> None:
        super()._see(data)
        first, *rest = data.split(_CLIPBOARD)
        self.type(self.screen.feed(first))
        for part in rest:
            if self.clipboard is not None:
                self.type(b"\x1b]52;c;" + self.clipboard + b"\x1b\\")
            self.type(self.screen.feed(part))

    def rows(self) -> list[str]:
        return [row.text.rstrip() for row in self.screen.rows()]

    async def shows(self, text: str) -> None:
        """Until this stands on the screen."""
        while not any(text in row for row in self.rows()):
            try:
                await self.grows(len(self.seen))
            except TimeoutError:
                raise AssertionError(f"no {text!r} in {self.rows()!r}") from None

    async def hides(self, text: str) -> None:
        """Until it stands there no more."""
        while any(text in row for row in self.rows()):
            await self.grows(len(self.seen))


@contextlib.asynccontextmanager
async def seated(
    *argv: str, home: Path, size: Size = SIZE, **env: str | None
) -> AsyncIterator[Seated]:
    told = {"PS1": "$ ", "PROMPT_COMMAND": None, "TELEX_HOME": str(home), **env}
    person = Seated(argv, size, told)
    try:
        yield person
    finally:
        os.close(person.line)
        await person.pty.end(HUNG_UP)
        person.pty.close()
        person.screen.close()
