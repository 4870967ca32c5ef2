"""A person at a terminal that replies to queries, as real ones do: DA1, the cursor."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from passthrough.person import HUNG_UP, SIZE, TELEX, Person
from telex.passthrough.person_surface import SECOND_PROBE
from telex.terminal.screen import Screen
from telex.wire import json_escape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from telex.terminal.cells import Size

RUN = (*TELEX, "run")
_CLIPBOARD = b"\x1b]52;c;?\x1b\\"


def frame(body: str) -> bytes:
    """Return a frame with this JSON."""
    return json_escape.encode(body.encode())


def printing(path: Path, *pieces: bytes) -> tuple[str, str]:
    """Return a command that prints exactly these bytes."""
    path.write_bytes(b"".join(pieces))
    return ("cat", str(path))


class Seated(Person):
    """A person at a terminal with an emulator. Made by `seated`."""

    def __init__(
        self,
        argv: tuple[str, ...],
        size: Size,
        env: Mapping[str, str | None],
        cwd: Path | None = None,
    ) -> None:
        self.screen = Screen(size)
        self.clipboard: bytes | None = None
        """The clipboard in base64, if programs may read it."""
        super().__init__(argv, size, env, cwd)

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

    def is_shown(self, text: str) -> bool:
        """Whether a text is on the screen, also across the end of a row."""
        cols = self.screen.size.cols
        return text in "".join([row.text.ljust(cols) for row in self.screen.rows()])

    async def shows(self, text: str) -> None:
        """Wait until this text is on the screen."""
        while not self.is_shown(text):
            try:
                await self.grows(len(self.seen))
            except TimeoutError:
                raise AssertionError(f"no {text!r} in {self.rows()!r}") from None

    async def hides(self, text: str) -> None:
        """Wait until this text is not on the screen any more."""
        while self.is_shown(text):
            await self.grows(len(self.seen))


class Kitty(Seated):
    """A person at a terminal that shows pictures and reports its version."""

    def _see(self, data: bytes) -> None:
        rest = data
        for question, answer in _KITTY.items():
            if question in rest:
                before, _, rest = rest.partition(question)
                super()._see(before)
                self.type(answer)
        super()._see(rest)


_KITTY = {
    b"\x1b[>q": b"\x1bP>|kitty(0.42.1)\x1b\\",
    SECOND_PROBE[: SECOND_PROBE.index(b"\x1b]")]: b"\x1b_Gi=31;OK\x1b\\",
}
"""Replies to queries, in the order of the queries."""


@contextlib.asynccontextmanager
async def seated(
    *argv: str,
    home: Path,
    cwd: Path | None = None,
    size: Size = SIZE,
    kind: type[Seated] = Seated,
    **env: str | None,
) -> AsyncIterator[Seated]:
    told = {"PS1": "$ ", "PROMPT_COMMAND": None, "TELEX_HOME": str(home), **env}
    person = kind(argv, size, told, cwd)
    try:
        yield person
    finally:
        os.close(person.line)
        await person.pty.end(HUNG_UP)
        person.pty.close()
        person.screen.close()
