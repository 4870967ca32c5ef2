"""The packets of JSON escapes, as conversations and as a peer sees them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.errors import RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.rpc.testing import Script, linked_peers, memory_channels, play

ESCAPES = JsonEscapes()


def methods() -> Methods:
    table = Methods()

    def echo(data: Any) -> Any:
        return data

    async def wait(data: Any) -> Any:
        await asyncio.sleep(0)
        return data

    async def count(data: int) -> AsyncIterator[int]:
        for n in range(data):
            yield n
        if data > 2:
            raise RpcError("ECLIMIT", "That is too many.")

    async def gather(data: Any, call: CallContext) -> list[Any]:
        parts = [msgspec.json.decode(part.data) async for part in call.parts]
        return [data, *parts]

    for name, handler in {"echo": echo, "wait": wait, "count": count, "gather": gather}.items():
        table.add(f"test:{name}", handler)
    return table


CONVERSATIONS = {
    "a command with an rpcid is answered by its resid": """
        << {"command":"test:echo","rpcid":"550e8400-e29b-41d4-a716-446655440000","data":{"row":1}}
        >> {"resid":"550e8400-e29b-41d4-a716-446655440000","data":{"row":1}}
    """,
    "a command without an rpcid is never answered": """
        << {"command":"test:echo","data":1}
        << {"command":"test:unknown","data":1}
        << {"command":"test:count","data":"not a number"}
    """,
    "a name that stands twice in one object is ECPARSE": """
        << {"command":"test:echo","command":"test:count","rpcid":"1"}
        >> {"resid":"1","error":"ECPARSE: The message is not valid JSON."}
        << {"command":"test:echo","rpcid":"2","data":{"a":[{"b":1,"\\u0062":2}]}}
        >> {"resid":"2","error":"ECPARSE: The message is not valid JSON."}
        << {"command":"test:echo","rpcid":"3","rpcid":"4"}
        << {"command":"test:echo","rpcid":"5","data":{"data":[{"data":"data"},{"data":1}]}}
        >> {"resid":"5","data":{"data":[{"data":"data"},{"data":1}]}}
    """,
    "a first packet without a command begins nothing": """
        << {"rpcid":"9","data":1}
        << {"rpcid":"9","data":1,"cont":true}
        << {"command":"test:echo","rpcid":"1","data":2}
        >> {"resid":"1","data":2}
    """,
    "an rpcid that is being served is refused to a second command": """
        << {"command":"test:wait","rpcid":"1","data":1}
        << {"command":"test:wait","rpcid":"1","data":2}
        >> {"resid":"1","error":"ECPROTO: The message is not a valid request."}
        >> {"resid":"1","data":1}
    """,
    "a request comes in parts until one has no cont": """
        << {"command":"test:gather","rpcid":"1","cont":true,"data":{"a":1}}
        << {"rpcid":"1","cont":true,"data":"of another form"}
        << {"rpcid":"1","data":[3]}
        >> {"resid":"1","data":[{"a":1},"of another form",[3]]}
    """,
    "an answer goes out in parts, the last without cont": """
        << {"command":"test:count","rpcid":"1","data":2}
        >> {"resid":"1","cont":true,"data":0}
        >> {"resid":"1","cont":true,"data":1}
        >> {"resid":"1"}
    """,
    "a stream that fails ends with its error": """
        << {"command":"test:count","rpcid":"1","data":3}
        >> {"resid":"1","cont":true,"data":0}
        >> {"resid":"1","cont":true,"data":1}
        >> {"resid":"1","cont":true,"data":2}
        >> {"resid":"1","error":"ECLIMIT: That is too many."}
    """,
    "a failure is an error in words": """
        << {"command":"test:unknown","rpcid":"1"}
        >> {"resid":"1","error":"ECNOCMD: There is no such method."}
    """,
    "an unknown command is answered with the nearest names, and nothing of what was asked": """
        << {"command":"test:ehco","rpcid":"1"}
        >> {"resid":"1","error":"ECNOCMD: There is no such method. Did you mean test:echo?"}
        << {"command":"test:echo\\u001b]0;x\\u0007","rpcid":"2"}
        >> {"resid":"2","error":"ECNOCMD: There is no such method. Did you mean test:echo?"}
    """,
    "unknown fields are tolerated": """
        << {"command":"test:echo","rpcid":"1","data":1,"route":"elsewhere","future":{}}
        >> {"resid":"1","data":1}
    """,
}


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
async def test_the_packets_go_as_written(conversation: str) -> None:
    await play(conversation, methods(), ESCAPES)


async def test_a_call_says_in_milliseconds_how_long_it_waits() -> None:
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, ESCAPES) as peer:
        for timeout, told in [({}, 5000), ({"timeout": 0.25}, 250), ({"timeout": None}, None)]:
            calling = asyncio.create_task(peer.call("x", **timeout))
            heard = json.loads(await script.hear())
            assert heard.get("timeout") == told
            script.say(json.dumps({"resid": heard["rpcid"]}).encode())
            await calling


async def test_an_error_ends_a_stream_even_where_more_was_announced() -> None:
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, ESCAPES) as peer:
        reading = asyncio.create_task(anext(aiter(peer.stream("x"))))
        id = json.loads(await script.hear())["rpcid"]
        script.say(json.dumps({"resid": id, "error": "ECX: no", "cont": True}).encode())
        with pytest.raises(RpcError, match="no"):
            await reading
        script.say(json.dumps({"resid": id, "data": "more"}).encode())
        while not peer.counts.unknown:
            await asyncio.sleep(0)


async def test_answers_find_their_calls_in_any_order() -> None:
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, ESCAPES) as peer:
        calls = [asyncio.create_task(peer.call("x", n)) for n in range(3)]
        asked = [json.loads(await script.hear()) for _ in calls]
        assert len({packet["rpcid"] for packet in asked}) == 3
        for packet in reversed(asked):
            script.say(json.dumps({"resid": packet["rpcid"], "data": packet["data"]}).encode())
        assert await asyncio.gather(*calls) == [0, 1, 2]


async def test_either_side_asks() -> None:
    async with linked_peers(methods(), methods(), ESCAPES) as (terminal, program):
        assert await program.call("test:echo", "to the terminal") == "to the terminal"
        assert await terminal.call("test:echo", "to the program") == "to the program"
