"""Plugins: how many calls a second, and how long until one is ready.

The peers do the same in the same run, each with its own client and server over stdio: pygls a
custom request after `initialize`, and the MCP SDK its ping. Ours is a call of a tool, which decodes
arguments and encodes a result; the examples in other languages answer `setupCommand`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import uvloop

from benchmarks.figures import Row, against, in_turns
from telex.plugins.client import start
from telex.plugins.discovery import FoundPlugin
from telex.plugins.plugin_settings import PluginSettings

ROUNDS, SECONDS = 3, 0.4
EXAMPLES = Path(__file__).parent.parent / "examples/plugins"
SDK = [sys.executable, "-m", "benchmarks.ping_servers", "sdk"]
PYGLS = [sys.executable, "-m", "benchmarks.ping_servers", "pygls"]
MCP = [sys.executable, "-m", "benchmarks.ping_servers", "mcp"]
PEERS = ("pygls", "MCP SDK")

Ping = Callable[[], Awaitable[object]]
Opened = Callable[[], AbstractAsyncContextManager[Ping]]


def run() -> list[Row]:
    everyone: dict[str, Opened] = {**_ours(), "pygls": _pygls, "MCP SDK": _mcp}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        def each(
            measure: Callable[[Opened], Coroutine[None, None, float]],
        ) -> dict[str, list[float]]:
            def measured(way: Opened) -> float:
                return runner.run(measure(way))

            return in_turns({who: partial(measured, way) for who, way in everyone.items()}, ROUNDS)

        rates, starts = each(_rate), each(_start)
    return [row for name in _ours() for row in (*_rates(name, rates), *_starts(name, starts))]


def _rates(name: str, measured: dict[str, list[float]]) -> list[Row]:
    shown = {"telex": measured[name], **{peer: measured[peer] for peer in PEERS}}
    return against(f"plugin calls one by one, {name}", "/s", shown, {})


def _starts(name: str, measured: dict[str, list[float]]) -> list[Row]:
    """Times, so the least of each."""
    ours, figure = measured[name], f"plugin start until ready, {name}"
    return [
        Row(figure, ours[0], "ms", measured[peer][0], peer, "", (ours[0], ours[-1]))
        for peer in PEERS
    ]


def _ours() -> dict[str, Opened]:
    return {
        "SDK": partial(_plugin, SDK, "tools/call", {"name": "ping"}),
        "SDK, in a thread": partial(_plugin, SDK, "tools/call", {"name": "ping_in_a_thread"}),
        **_examples(),
    }


def _examples() -> dict[str, Opened]:
    found: dict[str, Opened] = {}
    for name, program in (("greet.py", "python3"), ("greet.mjs", "node"), ("greet.sh", "sh")):
        if shutil.which(program):
            argv = [str(EXAMPLES / name)]
            found[name] = partial(_plugin, argv, "setupCommand", {"name": "hello", "args": []})
    return found


async def _rate(opened: Opened) -> float:
    async with opened() as ping:
        await ping()
        began = time.perf_counter()
        count = 0
        while (took := time.perf_counter() - began) < SECONDS:
            for _ in range(10):
                await ping()
            count += 10
    return count / took


async def _start(opened: Opened) -> float:
    began = time.perf_counter()
    async with opened():
        return (time.perf_counter() - began) * 1e3


@asynccontextmanager
async def _plugin(argv: list[str], method: str, params: object) -> AsyncIterator[Ping]:
    path = Path(argv[0]).resolve()
    settings = PluginSettings(
        command=lambda found: argv, on_stderr_line=lambda line: None, cwd=os.getcwd()
    )
    async with start(FoundPlugin(path.stem, path, None, path), settings) as plugin:
        yield lambda: plugin.call(method, params)


@asynccontextmanager
async def _pygls() -> AsyncIterator[Ping]:
    from lsprotocol.types import ClientCapabilities, InitializeParams
    from pygls.lsp.client import LanguageClient

    client = LanguageClient("bench", "1")
    await client.start_io(*PYGLS)
    await client.initialize_async(InitializeParams(capabilities=ClientCapabilities()))
    yield lambda: client.protocol.send_request_async("ping", {})
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


@asynccontextmanager
async def _mcp() -> AsyncIterator[Ping]:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    with open(os.devnull, "w") as quiet:
        server = StdioServerParameters(command=MCP[0], args=MCP[1:])
        async with (
            stdio_client(server, errlog=quiet) as (reading, writing),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            yield session.send_ping
