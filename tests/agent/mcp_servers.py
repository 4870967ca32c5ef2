"""MCP servers for the tests of the client: configured as a person configures them."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telex.agent.mcp_client.mcp_supervisor import (
    ConfiguredServer,
    McpPace,
    McpSite,
    McpSupervisor,
)
from telex.agent.mcp_client.mcp_tool_source import McpToolSources
from telex.agent.tools.tool import ToolFailed
from telex.config.mcp_settings import read_mcp_servers
from telex.redaction import Redactor
from telex.transports.web_server import listen_without_auth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.agent.mcp_client.mcp_tool_source import McpToolSource

HERE = Path(__file__).parent
SECRET = "sesame-open-4711"
"""A secret that no rule recognises by itself."""
SOON = McpPace(failures=3, window=600, backoff=0.01)
MANY = McpPace(failures=1000, window=0.05, backoff=0.05)
"""A server is tried again and again."""


def raw(kind: str, told: Path | None = None, **more: object) -> dict[str, Any]:
    """The table of a server without any library. It has the secret in its environment."""
    program = [str(HERE / "mcp_raw_server.py"), kind, *([str(told)] if told else [])]
    return {
        "command": sys.executable,
        "args": ["-I", "-S", *program],
        "env": {"SECRET": {"env": "MY_SECRET"}},
        "protocol": "legacy",
        **more,
    }


def sdk(**more: object) -> dict[str, Any]:
    """The table of a server of the official SDK, on standard streams."""
    program = str(HERE / "mcp_sdk_server.py")
    return {
        "command": sys.executable,
        "args": [program],
        "env": {"SECRET": {"env": "MY_SECRET"}, "PLAIN": "plain"},
        **more,
    }


def a_runtime(directory: Path, pace: McpPace = SOON) -> McpToolSources:
    """The servers of a runtime whose files are in the directory."""
    (directory / "state").mkdir(mode=0o700, exist_ok=True)
    return McpToolSources(pace)


def opened(sources: McpToolSources, directory: Path, **tables: dict[str, Any]) -> McpToolSource:
    """The servers of these tables, for a workspace in the directory."""
    sections = read_mcp_servers(tables, "config.toml: mcp")
    servers = [ConfiguredServer(name, one, "global") for name, one in sections.items()]
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "MY_SECRET": SECRET}
    state = directory / "state"
    site = McpSite(str(directory), environ, Redactor(), state / "logs", state / "tokens.json")
    return sources.open("here", servers, site)


@asynccontextmanager
async def configured(
    directory: Path, pace: McpPace = SOON, **tables: dict[str, Any]
) -> AsyncIterator[McpToolSource]:
    """The servers of these tables. At the end nothing of them runs."""
    sources = a_runtime(directory, pace)
    try:
        yield opened(sources, directory, **tables)
    finally:
        await sources.close()


@asynccontextmanager
async def one_server(
    directory: Path, table: dict[str, Any], pace: McpPace = SOON
) -> AsyncIterator[McpSupervisor]:
    """The supervisor of one server, named `s`, after its first attempt to start."""
    async with configured(directory, pace, s=table) as source:
        (server,) = source.supervisors
        server.wake()
        await server.until_started()
        yield server


async def failure(server: McpSupervisor, tool: str, **arguments: object) -> str:
    """The message of a call that fails."""
    try:
        result = await server.call(tool, arguments)
    except ToolFailed as failed:
        return str(failed)
    raise AssertionError(f"{tool} returned {result}")


async def until(server: McpSupervisor, state: str) -> None:
    """Wait for a state of a server whose keeper runs."""
    async with asyncio.timeout(30):
        while server.state != state:
            await server._next_change()


def log_of(directory: Path) -> str:
    return "".join(path.read_text() for path in sorted((directory / "state" / "logs").glob("*")))


@asynccontextmanager
async def serving(app: Any, port: int = 0, front: Any = None) -> AsyncIterator[str]:
    """Serve an app on a loopback port of this process, and return its address. `front` gets the
    requests in its place."""
    async with (
        app.router.lifespan_context(app),
        listen_without_auth(front or app, port=port) as address,
    ):
        yield address.url
    for task in asyncio.all_tasks():  # a library of the SDK's server watches for ever
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher":
            task.cancel()
            await asyncio.wait({task})
