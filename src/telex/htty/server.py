"""Serves a page from a program, through its own terminal.

    async def main():
        await htty.serve(app, keys=typed)

`app` is any ASGI app. Meanwhile the program may print to the same terminal, and Ctrl-C still
interrupts it. `run` does the same without an event loop.
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
"""How long open requests may take when the page is stopped. Live updates never end by themselves,
and the person who pressed the key is waiting."""
STOPPED: Final = Ended(True, "the program stopped the page", 0)
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
    """Serve the app until the terminal ends it, `stop` is set, or this is cancelled.

    Args:
        app: Any ASGI app.
        keys: Called with the bytes that the person types.
        stop: Ends the page when it is set; open requests get a moment to complete.
        force: Serve even if it is unknown whether the terminal shows pages.
        environ: The environment to use; by default the process's own.
        opened: Called with the byte stream once the terminal is taken.

    Returns:
        How the connection ended.

    Raises:
        NoPages: The terminal does not show pages.
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
            if serving.cancel():  # it still sends GOAWAY
                await asyncio.wait({serving})
        return STOPPED if serving.cancelled() else await serving
    finally:
        serving.cancel()
        stopping.cancel()
        await asyncio.wait({serving, stopping})


def run(app: ASGIApp, *, keys: Callable[[bytes], None] | None = None, force: bool = False) -> Ended:
    """Serve the app in a program without an event loop. It blocks; other threads may print.

    Ctrl-C ends the page, and this returns, as web servers do.

    Args:
        app: Any ASGI app.
        keys: Called with the bytes that the person types.
        force: Serve even if it is unknown whether the terminal shows pages.

    Returns:
        How the connection ended.

    Raises:
        NoPages: The terminal does not show pages.
    """
    try:
        return asyncio.run(serve(app, keys=keys, force=force))
    except KeyboardInterrupt:
        return INTERRUPTED
    except NoPages as why:  # the traceback through the event loop is useless; the message is enough
        raise why.with_traceback(None) from None
