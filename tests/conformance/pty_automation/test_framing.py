"""The automation protocol's framing: clauses that no transport test shows by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from linking import Server
from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Methods
from telex.transports import unix


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[Path]:
    gate = asyncio.Event()

    async def echo(params: Any, call: CallContext) -> Any:
        await call.peer.notify("noted", {"text": "one\ntwo"})
        return params

    async def wait() -> str:
        await gate.wait()
        return "waited"

    def release() -> None:
        gate.set()

    methods = Methods()
    for name, handler in {"echo": echo, "wait": wait, "release": release}.items():
        methods.add(name, handler)
    server = Server(methods)
    async with unix.listen(directory / "t.sock", server.serve) as listener:
        yield listener.path
        await server.close()


def request(id: int, method: str, **params: object) -> bytes:
    return (
        b"%b\n"
        % json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    )


async def test_every_line_that_goes_out_is_one_compact_message(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(request(1, "echo", text="Ü\r\n✓", more=[1, {"a": None}]))
        lines = [await reader.readline() for _ in range(2)]
        writer.close()
        await writer.wait_closed()
    told, answer = map(json.loads, lines)
    assert told == {"jsonrpc": "2.0", "method": "noted", "params": {"text": "one\ntwo"}}
    assert answer["result"] == {"text": "Ü\r\n✓", "more": [1, {"a": None}]}
    for line, message in zip(lines, (told, answer), strict=True):
        assert (
            line.decode() == f"{json.dumps(message, separators=(',', ':'), ensure_ascii=False)}\n"
        )


async def test_each_connection_to_the_socket_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        first, second = [await asyncio.open_unix_connection(str(path)) for _ in range(2)]
        first[1].write(request(1, "wait"))
        second[1].write(b"no message\n")
        assert json.loads(await second[0].readline())["error"]["code"] == -32700
        second[1].write(request(1, "release"))  # the same id, and another call
        assert json.loads(await second[0].readline()) == {"jsonrpc": "2.0", "id": 1, "result": None}
        assert json.loads(await first[0].readline())["result"] == "waited"
        for _, writer in (first, second):
            writer.close()
            await writer.wait_closed()
