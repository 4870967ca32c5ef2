"""Language models: what our client adds to an HTTP response that is read bare, in the same run.

The server is a process of its own on the loopback. It sends the answer in writes of one event each
for the first token, and in larger writes for the rate. Peers: httpx that reads the bytes, and httpx
that also decodes the JSON of every event, as any client has to.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import httpx

from benchmarks import model_runs
from benchmarks.figures import Row, against, in_turns
from telex.agent.messages import TextDelta, TextPart, UserMessage
from telex.agent.models import ModelRequest
from telex.agent.models.model_client import HttpModel
from telex.agent.models.model_dialect import Spelling
from telex.agent.models.model_registry import DialectName, dialect_of
from telex.agent.protocol.sessions import ModelDetails

ROUNDS, CALLS, EVENTS = 5, 40, 20_000
ASKED = ModelRequest("Be brief.", (UserMessage((TextPart("Say something."),)),))
BYTES, JSON = "httpx, bytes only", "httpx and JSON of each event"
DIALECTS: tuple[DialectName, ...] = ("chat", "responses", "messages")

SERVER = """
import asyncio, sys
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0])
            await reader.readexactly(length)
            path = head.split()[1].decode()
            if path.startswith("/endless"):
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n\\r\\n")
                short = BODIES[path.replace("endless", "short")]
                writer.write(short[:short.index(b"\\n\\n") + 2])
                await reader.read()
                writer.close()
                return
            body = BODIES[path]
            writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n"
                         b"content-length: %d\\r\\n\\r\\n" % len(body))
            for at in range(0, len(body), 16384):
                writer.write(body[at:at + 16384])
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
import json
BODIES = {path: body.encode() for path, body in json.load(sys.stdin).items()}
asyncio.run(main())
"""


def run() -> list[Row]:
    bodies = {
        f"/{size}{dialect_of(name).path}": _stream(name, events)
        for name in DIALECTS
        for size, events in (("short", 20), ("long", EVENTS))
    }
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(bodies))
        server.stdin.close()
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        rows = [row for name in DIALECTS for row in (*_first_token(url, name), *_rate(url, name))]
        return [*rows, _cancel(url), model_runs.memory_of_runs(url), model_runs.compaction()]
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def _stream(dialect: DialectName, events: int) -> str:
    def sse(*chunks: Any) -> str:
        return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)

    match dialect:
        case "chat":
            piece = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            return sse(*[piece] * events, end) + "data: [DONE]\n\n"
        case "responses":
            delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0}
            done = {"type": "response.completed", "response": {"status": "completed"}}
            return sse(*[{**delta, "delta": "word "}] * events, done)
        case "messages":
            start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
            text = {"type": "text_delta", "text": "word "}
            part = {"type": "content_block_delta", "index": 0, "delta": text}
            stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
            parts = [part] * events
            return sse(
                start, *parts, {"type": "content_block_stop"}, stop, {"type": "message_stop"}
            )


def _model(url: str, dialect: DialectName, size: str) -> HttpModel:
    async def key() -> str:
        return "key"

    spelling = Spelling("m", "bench")
    return HttpModel("m", dialect_of(dialect), f"{url}/{size}", spelling, ModelDetails(), key)


def _first_token(url: str, dialect: DialectName) -> list[Row]:
    """The time from the call to its first piece of text, on a connection that is open already."""

    async def ours() -> float:
        model = _model(url, dialect, "short")
        took = []
        for _ in range(CALLS):
            began = time.perf_counter()
            first = 0.0
            async with aclosing(model.stream(ASKED)) as events:
                async for event in events:
                    if not first and isinstance(event, TextDelta):
                        first = time.perf_counter() - began
            took.append(first)
        await model.aclose()
        return sorted(took)[CALLS // 2] * 1000

    async def bare() -> float:
        body = json.dumps(dialect_of(dialect).write(ASKED, Spelling("m", "bench"))).encode()
        took = []
        async with httpx.AsyncClient(verify=False, trust_env=False) as client:
            for _ in range(CALLS):
                began = time.perf_counter()
                first = 0.0
                where = f"{url}/short{dialect_of(dialect).path}"
                async with client.stream("POST", where, content=body) as response:
                    async for _chunk in response.aiter_raw():
                        first = first or time.perf_counter() - began
                took.append(first)
        return sorted(took)[CALLS // 2] * 1000

    measured = in_turns({"ours": _timed(ours), BYTES: _timed(bare)}, ROUNDS)
    mine, theirs = measured["ours"], measured[BYTES]
    figure, spread = f"models, {dialect}: first token", (mine[0], mine[-1])
    return [Row(figure, mine[0], "ms", theirs[0], BYTES, "3 ms more at most", spread)]


def _rate(url: str, dialect: DialectName) -> list[Row]:
    """Events in a second while an answer streams."""

    async def ours() -> float:
        model = _model(url, dialect, "long")
        began = time.perf_counter()
        count = 0
        async with aclosing(model.stream(ASKED)) as events:
            async for _ in events:
                count += 1
        took = time.perf_counter() - began
        await model.aclose()
        assert count >= EVENTS
        return count / took

    async def bare(decode: bool) -> float:
        where = f"{url}/long{dialect_of(dialect).path}"
        began = time.perf_counter()
        async with (
            httpx.AsyncClient(verify=False, trust_env=False) as client,
            client.stream("POST", where, content=b"{}") as response,
        ):
            kept = b""
            async for chunk in response.aiter_raw():
                if decode:
                    *whole, kept = (kept + chunk).split(b"\n\n")
                    for event in whole:
                        if event != b"data: [DONE]":
                            json.loads(event[6:])
        return EVENTS / (time.perf_counter() - began)

    measured = in_turns(
        {
            "ours": _timed(ours),
            JSON: _timed(lambda: bare(True)),
            BYTES: _timed(lambda: bare(False)),
        },
        ROUNDS,
    )
    return against(f"models, {dialect}: events while streaming", "/s", measured, {})


def _cancel(url: str) -> Row:
    """The time from a cancel in the middle of an answer until the socket is closed."""

    async def ours() -> float:
        model = _model(url, "chat", "endless")
        shown = asyncio.Event()

        async def call() -> None:
            async for _ in model.stream(ASKED):
                shown.set()

        task = asyncio.ensure_future(call())
        await shown.wait()
        began = time.perf_counter()
        task.cancel()
        await asyncio.wait([task])
        took = time.perf_counter() - began
        await model.aclose()
        return took * 1000

    took = in_turns({"ours": _timed(ours)}, ROUNDS * 4)["ours"]
    spread = (took[0], took[-1])
    return Row("models: cancel to closed socket", took[len(took) // 2], "ms", spread=spread)


def _timed(work: Callable[[], Coroutine[None, None, float]]) -> Callable[[], float]:
    return lambda: asyncio.run(work())
