"""A page, served by a program through its own terminal.

    async def main():
        await htty.serve(app, keys=typed)

`app` is any ASGI app. Meanwhile the program prints what it likes to the same terminal, and Ctrl-C
still interrupts it. `run` is the same without an event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from telex.htty.asgi import AsgiServer
from telex.htty.h2.http2_connection import Ended
from telex.htty.support import NoPages
from telex.htty.tty_stream import CLOSED, open_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp

    from telex.htty.tty_stream import TtyStream

STOP_SECONDS: Final = 1.0
"""For requests under way, when the page is stopped. Live updates never end by themselves, and the
person who pressed the key is waiting."""
STOPPED: Final = Ended(True, "it was ended here", 0)
INTERRUPTED: Final = Ended(True, "it was interrupted", 0)


async def serve(
    app: ASGIApp,
    *,
    keys: Callable[[bytes], None] | None = None,
    stop: asyncio.Event | None = None,
    force: bool = False,
    environ: Mapping[str, str] | None = None,
    opened: Callable[[TtyStream], None] | None = None,
) -> Ended:
    """Until the terminal ends it, or `stop` is set, or this is cancelled. How it ended is returned.

    `keys` is called with what the person types. With `stop`, requests under way get a moment to be
    done. Raises `NoPages` where nobody would show a page, unless `force` is given.
    """
    async with open_stream(keys=keys, force=force, environ=environ) as stream:
        if opened is not None:
            opened(stream)
        ended = await _served(AsgiServer(app), stream, stop or asyncio.Event())
    if ended.graceful or stream.why in (None, CLOSED):
        return ended
    return replace(ended, sentence=stream.why or "")


async def _served(server: AsgiServer, stream: TtyStream, stop: asyncio.Event) -> Ended:
    serving = asyncio.create_task(server.serve(stream))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            server.close(STOPPED.sentence)
            await asyncio.wait({serving}, timeout=STOP_SECONDS)
            if serving.cancel():  # it still says GOAWAY
                await asyncio.wait({serving})
        return STOPPED if serving.cancelled() else await serving
    finally:
        serving.cancel()
        stopping.cancel()
        await asyncio.wait({serving, stopping})


def run(app: ASGIApp, *, keys: Callable[[bytes], None] | None = None, force: bool = False) -> Ended:
    """The same, for a program without an event loop: it blocks, and other threads may print.

    Ctrl-C ends the page, and this returns, as web servers do. Raises `NoPages`.
    """
    try:
        return asyncio.run(serve(app, keys=keys, force=force))
    except KeyboardInterrupt:
        return INTERRUPTED
    except NoPages as why:  # the way through the event loop says nothing, and the sentence all
        raise why.with_traceback(None) from None
