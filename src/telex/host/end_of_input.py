"""The end of a file or pipe that is typed into a program's terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.terminal.pty import Pty


async def end_again(pty: Pty, *, line_open: bool) -> AsyncIterator[None]:
    """Whoever reads on gets the end of file, and gets it again after the program has turned the
    line discipline off or on: what was typed before that it does not read as an end.

    Yields when it is time to wait until the program says something.
    """
    while True:
        await pty.drained()
        characters = pty.line_settings()
        eof = characters.eof or b"\x04"
        # The first one only hands over a line that was not finished.
        pty.write(eof * 2 if line_open else eof)
        line_open = False
        while pty.line_settings().canonical == characters.canonical:
            yield
