"""A server for MCP clients, and the official Python SDK as the client."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from serving import serving
from telex.config.runtime_directory import SOCKET_NAME, find_runtime_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mcp import Client
    from mcp.types import CallToolResult

MODES = ("auto", "legacy", "2026-07-28")


@dataclass(frozen=True, slots=True)
class McpSite:
    """A running server: `telex mcp` with this environment finds it, and `/mcp` is at the URL."""

    environ: dict[str, str]
    work: Path
    url: str
    token: str
    pid: int

    @asynccontextmanager
    async def client(self, transport: str, mode: str, **more: Any) -> AsyncIterator[Client]:
        """A client of the SDK, connected by `stdio` or `http`."""
        from mcp import Client, StdioServerParameters

        if transport == "stdio":
            server: Any = StdioServerParameters(
                command=sys.executable,
                args=["-m", "telex", "mcp"],
                env=self.environ,
                cwd=self.work,
            )
            async with Client(server, mode=mode, **more) as client:
                yield client
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {"authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            server = streamable_http_client(self.url, http_client=http)
            async with Client(server, mode=mode, **more) as client:
                yield client


def mcp_site(directory: Path, **more: str) -> Iterator[McpSite]:
    """A server at the place where `telex mcp` looks for one."""
    work = directory / "work"
    work.mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "TELEX_HOME": str(directory / "home"),
        "TERM": "xterm",
        **more,
    }
    runtime = find_runtime_directory(environ)
    with serving(directory, socket=os.path.join(runtime, SOCKET_NAME), **environ) as one:
        yield McpSite(environ, work, f"{one.web}/mcp", one.token, one.process.pid)


def shown(result: CallToolResult) -> str:
    """The text of a result, as a model reads it."""
    return "\n".join(block.text for block in result.content if block.type == "text")
