"""The same packets without a terminal: one codec, one peer, several ways to travel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from linking import TRANSPORTS, Server, Transport
from telex.rpc.channel import Channel
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import unix


class EscapesServer(Server):
    """The contract's server, in the other dialect."""

    def serve(self, channel: Channel) -> Peer:
        peer = Peer(channel, JsonEscapes(), self._methods)
        self.peers.append(peer)
        return peer


def server() -> EscapesServer:
    def echo(data: Any) -> Any:
        return data

    methods = Methods()
    methods.add("test:echo", echo)
    return EscapesServer(methods)


async def test_the_same_packets_travel_one_a_line_over_a_socket(tmp_path: Path) -> None:
    served = server()
    async with unix.listen(tmp_path / "t.sock", served.serve):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "t.sock"))
        writer.write(b'{"command": "test:echo", "rpcid": "1", "data": "two\\nlines"}\n')
        assert await reader.readline() == b'{"resid":"1","data":"two\\nlines"}\n'
        writer.close()
        await writer.wait_closed()
        await served.close()


@pytest.mark.parametrize("transport", TRANSPORTS, ids=str)
async def test_the_same_peers_talk_over_every_transport(
    transport: Transport, tmp_path: Path
) -> None:
    served = server()
    text = "Ü✓🙂\n\x1b]23199;0;{}\x07"
    async with (
        transport.open(served, tmp_path) as channel,
        Peer(channel, JsonEscapes()) as client,
    ):
        assert await client.call("test:echo", text) == text
        await client.close()
        await served.close()
