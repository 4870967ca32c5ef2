"""The same packets over the web's ways: a WebSocket, an HTTP request, a stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

import http_client
from telex.rpc.channel import Channel
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import websocket
from web import TOKEN, Site, serving


def methods() -> Methods:
    def echo(data: Any) -> Any:
        return data

    async def count(data: int) -> AsyncIterator[int]:
        for n in range(data):
            yield n

    table = Methods()
    table.add("test:echo", echo)
    table.add("test:count", count)
    return table


@asynccontextmanager
async def served() -> AsyncIterator[Site]:
    async def converse(channel: Channel) -> None:
        async with Peer(channel, JsonEscapes(), methods()) as peer:
            await peer.closed()

    async with serving(converse) as site:
        yield site


def over_websocket(site: Site) -> Awaitable[Channel]:
    return websocket.connect(site.websocket_url, TOKEN)


def over_events(site: Site) -> Awaitable[Channel]:
    return http_client.connect(site.url, TOKEN, events=True)


@pytest.mark.parametrize(
    "way", [over_websocket, over_events], ids=["a WebSocket", "a stream of events"]
)
async def test_the_same_peers_talk_and_stream_over(
    way: Callable[[Site], Awaitable[Channel]],
) -> None:
    async with served() as site, Peer(await way(site), JsonEscapes()) as peer:
        assert await peer.call("test:echo", "Ü\n\x1b\\") == "Ü\n\x1b\\"
        assert [n async for n in peer.stream("test:count", 3)] == [0, 1, 2]


async def test_a_packet_that_is_posted_is_answered_by_its_response() -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    async with served() as site, httpx.AsyncClient(headers=headers, trust_env=False) as client:
        asked = await client.post(site.url, content=b'{"command":"test:echo","rpcid":"1","data":7}')
        assert (asked.status_code, asked.content) == (200, b'{"resid":"1","data":7}')
        told = await client.post(site.url, content=b'{"command":"test:echo","data":7}')
        assert (told.status_code, told.content) == (202, b"")


async def test_an_answer_in_parts_reaches_the_client_that_posted_the_command() -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    async with served() as site, httpx.AsyncClient(headers=headers, trust_env=False) as client:
        asked = await client.post(
            site.url, content=b'{"command":"test:count","rpcid":"1","data":2}'
        )
        assert asked.headers["content-type"] == "application/x-ndjson"
        assert asked.content.splitlines() == [
            b'{"resid":"1","cont":true,"data":0}',
            b'{"resid":"1","cont":true,"data":1}',
            b'{"resid":"1"}',
        ]
    async with served() as site:
        channel = await http_client.connect(site.url, TOKEN)
        async with Peer(channel, JsonEscapes()) as peer:
            assert [n async for n in peer.stream("test:count", 3)] == [0, 1, 2]
