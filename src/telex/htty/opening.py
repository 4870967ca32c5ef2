"""A page's byte stream, opened: `async with htty.open_stream() as stream`.

    async with htty.open_stream() as stream:
        stream.write(b"…")
        data = await stream.read()

Inside the block the terminal is taken: text may still be printed, and what is typed comes by
`stream.typed()` or to `keys`. `stream.close()` ends the stream and not the terminal. The block's
end gives the terminal back, and another block may follow.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from telex.automation.portal import shielded
from telex.htty.page_tty import open_ends
from telex.htty.support import standard_terminal, supported
from telex.htty.tty_stream import TtyStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping


@contextlib.asynccontextmanager
async def open_stream(
    *,
    keys: Callable[[bytes], None] | None = None,
    force: bool = False,
    fd: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[TtyStream]:
    """Raises `NoPages` where nobody would show one; `force` sends it all the same.

    `keys` is called with what is typed. `fd` is a descriptor of another terminal than this
    program's own.
    """
    fd = standard_terminal() if fd is None else fd
    found = await supported(os.environ if environ is None else environ, fd, force=force)
    stream = TtyStream(
        open_ends(fd), keys=keys, wrap=found.wrap, round_trip=found.round_trip, typed=found.typed
    )
    try:
        yield stream
    finally:
        await shielded(stream.finish())
