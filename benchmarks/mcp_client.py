"""Calls of an MCP server's tool: through telex, and by the bare SDK, in turns in the same run.

The server is the SDK's own, over stdio; each contestant has one of its own.
`telex` is what a core's call does once it is permitted; `with permission` is the whole of
`tool.call`: the judge, the rule that allows the tool, and the connection of a UI in memory.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from mcp import Client, StdioServerParameters

from benchmarks.figures import Row, against
from telex.agent.mcp_client.mcp_supervisor import ConfiguredServer, McpSite, McpSupervisor
from telex.agent.runtime_access import in_process
from telex.cli.agent.composition import Wanted, served_agent
from telex.config.mcp_settings import McpSection
from telex.redaction import Redactor

ROUNDS, CALLS = 5, 200
SERVER = ["-m", "benchmarks.ping_servers", "mcp"]
CONFIG = """\
[agent]
model = "builtin"
[[permission.rule]]
tool = "mcp_bench_*"
decision = "allow"
[mcp.bench]
command = {program}
args = {args}
env = {{ PYTHONPATH = {path} }}
"""

Call = Callable[[], Awaitable[object]]


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        measured = asyncio.run(_measured(Path(directory)))
    bare = {"bare SDK": measured["bare SDK"]}
    return [
        row
        for name, figure in (("telex", "permitted"), ("tool.call", "with permission"))
        for row in against(
            f"MCP calls one by one, {figure}", "/s", {"telex": measured[name], **bare}, {}
        )
    ]


async def _measured(place: Path) -> dict[str, list[float]]:
    """The rates, lowest first. One task opens and closes, as the SDK requires."""
    async with AsyncExitStack() as stack:
        calls = await _opened(stack, place)
        rates: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            await call()  # the server starts
        for _ in range(ROUNDS):
            for name, call in calls.items():
                rates[name].append(await _rate(call))
    return {name: sorted(found) for name, found in rates.items()}


async def _rate(call: Call) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        await call()
    return CALLS / (time.perf_counter() - start)


async def _opened(stack: AsyncExitStack, place: Path) -> dict[str, Call]:
    return {
        "telex": await _ours(stack, place),
        "tool.call": await _through_an_agent(stack, place),
        "bare SDK": await _bare(stack),
    }


async def _ours(stack: AsyncExitStack, place: Path) -> Call:
    section = McpSection(sys.executable, tuple(SERVER), cwd=str(Path.cwd()))
    site = McpSite(str(place), os.environ, Redactor(), place / "logs", place / "tokens.json")
    supervisor = McpSupervisor(ConfiguredServer("bench", section, "global"), site)
    stack.push_async_callback(supervisor.close)
    return lambda: supervisor.call("mcp_bench_echo", {"text": "hello"})


async def _bare(stack: AsyncExitStack) -> Call:
    server = StdioServerParameters(command=sys.executable, args=SERVER, cwd=Path.cwd())
    client = await stack.enter_async_context(Client(server))
    await client.list_tools()
    return lambda: client.call_tool("echo", {"text": "hello"})


async def _through_an_agent(stack: AsyncExitStack, place: Path) -> Call:
    home, root = place / "home", place / "root"
    home.mkdir(mode=0o700)
    root.mkdir()
    words = ", ".join(f'"{word}"' for word in SERVER)
    text = CONFIG.format(program=f'"{sys.executable}"', args=f"[{words}]", path=f'"{Path.cwd()}"')
    (home / "config.toml").write_text(text)
    os.environ["TELEX_HOME"] = str(home)
    wanted = Wanted(root=root)
    server = await stack.enter_async_context(served_agent(wanted, wanted.load()))
    agent = await stack.enter_async_context(in_process(server.converse))
    return lambda: agent.tool_call("mcp_bench_echo", {"text": "hello"})
