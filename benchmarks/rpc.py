"""Calls per second between two processes, with the MCP Python SDK's ping in the same run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from benchmarks.figures import Row
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.peer import Peer
from telex.transports import stdio, unix
from telex.transports.channels import NDJSON, FramedChannel

CALLS = 5_000
SERVER = [sys.executable, "-m", "benchmarks.ping_servers"]


def run() -> list[Row]:
    mcp = asyncio.run(_mcp_pings())
    rows = []
    for place, alone, together in [
        ("unix socket", ">= 8,000; >= 10 x", ">= 25,000"),
        ("stdio", "", ""),
    ]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            sequential, pipelined = runner.run(_measure(place))
        rows += [
            Row(f"calls over {place}, one by one", sequential, "/s", mcp, "MCP SDK ping", alone),
            Row(f"calls over {place}, pipelined", pipelined, "/s", mcp, "MCP SDK ping", together),
        ]
    return rows


async def _measure(place: str) -> tuple[float, float]:
    async with _unix_peer() if place == "unix socket" else _stdio_peer() as peer:
        for _ in range(500):
            await peer.call("ping")
        sequential = max([await _one_by_one(peer) for _ in range(3)])
        pipelined = max([await _all_at_once(peer) for _ in range(3)])
    return sequential, pipelined


async def _one_by_one(peer: Peer) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        await peer.call("ping")
    return CALLS / (time.perf_counter() - start)


async def _all_at_once(peer: Peer) -> float:
    start = time.perf_counter()
    await asyncio.gather(*(peer.call("ping") for _ in range(4 * CALLS)))
    return 4 * CALLS / (time.perf_counter() - start)


@asynccontextmanager
async def _unix_peer() -> AsyncIterator[Peer]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "bench.sock"
        child = subprocess.Popen([*SERVER, "unix", str(path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        async with Peer(await unix.connect(path), JsonRpc()) as peer:
            yield peer
        child.communicate()


@asynccontextmanager
async def _stdio_peer() -> AsyncIterator[Peer]:
    child = subprocess.Popen([*SERVER, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    channel = FramedChannel(NDJSON)
    await stdio.attach(channel, os.dup(child.stdout.fileno()), os.dup(child.stdin.fileno()))
    child.stdin.close()
    async with Peer(channel, JsonRpc()) as peer:
        yield peer
    child.stdout.close()
    child.wait()


async def _mcp_pings() -> float:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    with open(os.devnull, "w") as quiet:
        server = StdioServerParameters(command=SERVER[0], args=[*SERVER[1:], "mcp"])
        async with (
            stdio_client(server, errlog=quiet) as (reading, writing),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            count = 1000
            for _ in range(100):
                await session.send_ping()
            start = time.perf_counter()
            for _ in range(count):
                await session.send_ping()
            return count / (time.perf_counter() - start)
