"""An ASGI app with several kinds of responses: `telex htty serve --asgi paged:app`."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

PIECE = bytes(range(256)) * 128


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await echo(receive, send)
    elif scope["type"] == "http":
        await page(scope["path"], receive, send)


async def page(path: str, receive: Any, send: Any) -> None:
    """Serve `/bytes/N`, `/upload`, `/events`; any other path is a short text."""

    async def body(data: bytes, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": more})

    kind = b"text/event-stream" if path == "/events" else b"text/plain"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    match path.split("/"):
        case ["", "bytes", count]:
            left = int(count)
            while left > 0:
                await body(PIECE[:left])
                left -= len(PIECE)
            await body(b"", False)
        case ["", "upload"]:
            await body(await digest(receive), False)
        case ["", "events"]:
            for number in range(5):
                await body(b"data: %d\n\n" % number)
                await asyncio.sleep(0.02)  # so that events arrive one by one
            await body(b"", False)
        case _:
            await body(b"a few words", False)


async def digest(receive: Any) -> bytes:
    found, size, more = hashlib.sha256(), 0, True
    while more:
        message = await receive()
        found.update(message.get("body", b""))
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    return f"{size} {found.hexdigest()}".encode()


async def echo(receive: Any, send: Any) -> None:
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        else:
            await send({**message, "type": "websocket.send"})
