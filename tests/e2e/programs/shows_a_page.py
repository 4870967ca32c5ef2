"""Shows a page with what pages have, and scrolls text past meanwhile, until Ctrl-C."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import sys
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from telex import htty

EVERY = 0.02  # seconds between two lines of text, and between two updates
PAGE = """<!doctype html><title>a page through ssh</title><h1>A page</h1>
<button>Click</button> <input type="file"> <p id="clicks"></p> <p id="sent"></p> <p id="live"></p>
<script>
  const put = (id, text) => document.getElementById(id).textContent = text;
  document.querySelector('button').onclick = async () =>
    put('clicks', await (await fetch('click', {method: 'POST'})).text());
  document.querySelector('input').onchange = async event =>
    put('sent', await (await fetch('file', {method: 'POST', body: event.target.files[0]})).text());
  new EventSource('live').onmessage = event => put('live', event.data);
</script>"""

clicks = itertools.count(1)


async def page(request: Request) -> Response:
    return HTMLResponse(PAGE)


async def click(request: Request) -> Response:
    number = next(clicks)
    print(f"click {number} came", flush=True)
    return PlainTextResponse(f"{number} clicked")


async def file(request: Request) -> Response:
    found, size = hashlib.sha256(), 0
    async for piece in request.stream():
        found.update(piece)
        size += len(piece)
    print(f"file of {size} bytes came", flush=True)
    return PlainTextResponse(f"{size} {found.hexdigest()}")


async def live(request: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        for number in itertools.count():
            yield f"data: {number}\n\n"
            await asyncio.sleep(EVERY)

    return StreamingResponse(events(), media_type="text/event-stream")


async def scroll() -> None:
    for number in itertools.count():
        print(f"line {number} of the text", flush=True)
        await asyncio.sleep(EVERY)


async def main() -> None:
    app = Starlette(
        routes=[
            Route("/", page),
            Route("/click", click, methods=["POST"]),
            Route("/file", file, methods=["POST"]),
            Route("/live", live),
        ]
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(scroll())
        await htty.serve(app)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("interrupted, and over")
        sys.exit(7)
