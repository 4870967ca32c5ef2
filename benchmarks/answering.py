"""The other end of the rpc benchmarks, in a process of its own: answers `ping` until it is left.

python -m benchmarks.answering unix PATH | stdio | mcp
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from telex.rpc.channel import Channel
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer


def ping() -> dict[str, object]:
    return {}


def _peer(channel: Channel) -> Peer:
    methods = Methods()
    methods.add("ping", ping)
    return Peer(channel, JsonRpc(), methods)


async def over_unix(path: Path) -> None:
    from telex.transports import unix

    gone = asyncio.Event()

    def serve(channel: Channel) -> None:
        peer = _peer(channel)
        task = asyncio.create_task(peer.closed())
        task.add_done_callback(lambda _: gone.set())

    async with unix.listen(path, serve):
        print("ready", flush=True)
        await gone.wait()


async def over_stdio() -> None:
    from telex.transports.stdio import open_stdio

    async with open_stdio() as channel:
        await _peer(channel).closed()


def with_the_mcp_sdk() -> None:
    from mcp.server import MCPServer

    MCPServer("bench").run("stdio")


def main() -> None:
    match sys.argv[1:]:
        case ["unix", path]:
            _run(over_unix(Path(path)))
        case ["stdio"]:
            _run(over_stdio())
        case ["mcp"]:
            with_the_mcp_sdk()


def _run(work: object) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
