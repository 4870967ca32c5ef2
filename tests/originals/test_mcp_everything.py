"""The agent with the tools of `@modelcontextprotocol/server-everything`, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent.mcp_servers import log_of, one_server
from originals.installing import from_npm
from telex.processes import spawn
from telex.processes.termination import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

PACKAGE, VERSION = "@modelcontextprotocol/server-everything", "2026.8.31"


@asynccontextmanager
async def reached_by(transport: str, node: str, program: str) -> AsyncIterator[dict[str, Any]]:
    """The table of the server."""
    if transport == "stdio":
        yield {"command": node, "args": [program, "stdio"]}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {"PATH": os.environ["PATH"], "PORT": str(port)}
    child = spawn.start([node, program, "streamableHttp"], env=env, reaping=True)
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    await asyncio.sleep(0.1)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        await child.end(AT_ONCE)
        for pipe in (child.stdin, child.stdout, child.stderr):
            assert pipe is not None
            pipe.close()


@pytest.mark.counted
@pytest.mark.deadline(600)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_its_tools_are_listed_and_called(
    program: Callable[[str], str], tmp_path: Path, transport: str, mode: str
) -> None:
    script = from_npm(program, PACKAGE, VERSION, "dist/index.js")
    async with (
        reached_by(transport, program("node"), str(script)) as table,
        one_server(tmp_path, {**table, "protocol": mode}) as server,
    ):
        assert server.state == "ready", f"{server.describe()} {log_of(tmp_path)}"
        assert len(server.listing.tools) >= 8
        assert not server.listing.problems
        echoed = await server.call("mcp_s_echo", {"message": "hello"})
        assert echoed.text == "Echo: hello"
        summed = await server.call("mcp_s_get-sum", {"a": 2, "b": 40})
        assert "42" in summed.text
        image = await server.call("mcp_s_get-tiny-image", {})
        assert image.image.startswith(b"\x89PNG")
        weather = await server.call("mcp_s_get-structured-content", {"location": "New York"})
        assert set(weather.details["structured"]) >= {"temperature", "humidity"}
        links = await server.call("mcp_s_get-resource-links", {"count": 2})
        assert links.text.count("[a link: ") == 2
        assert (await server.call("mcp_s_get-sum", {"a": "x"})).is_error
        print(f"{transport} {mode}: {len(server.listing.tools)} tools, all six calls answered")
