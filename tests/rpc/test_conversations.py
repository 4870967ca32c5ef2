"""JSON-RPC 2.0 as conversations: the specification's own examples, and ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Struct

from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import RpcError
from telex.rpc.methods import Methods
from telex.rpc.testing import play


class Minuend(Struct):
    minuend: int
    subtrahend: int


def methods() -> Methods:
    table = Methods()

    def subtract(params: Minuend) -> int:
        return params.minuend - params.subtrahend

    def total(params: list[int]) -> int:
        return sum(params)

    async def slow(params: Minuend) -> int:
        await asyncio.sleep(0)
        return params.minuend - params.subtrahend

    def nothing(params: Any) -> None:
        return None

    def refuse(params: Any) -> None:
        raise RpcError(-32004, "You may not.", {"method": "refuse"})

    table.add("subtract", subtract)
    table.add("sum", total)
    table.add("slow", slow)
    table.add("update", nothing)
    table.add("refuse", refuse)
    return table


CONVERSATIONS = {
    "named parameters are decoded into the handler's type": """
        << {"jsonrpc":"2.0","method":"subtract","params":{"subtrahend":23,"minuend":42},"id":3}
        >> {"jsonrpc":"2.0","result":19,"id":3}
    """,
    "positional parameters too": """
        << {"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":"1"}
        >> {"jsonrpc":"2.0","result":7,"id":"1"}
    """,
    "a notification gets no response, not even for an unknown method": """
        << {"jsonrpc":"2.0","method":"update","params":[1,2,3,4,5]}
        << {"jsonrpc":"2.0","method":"foobar"}
    """,
    "an explicit null id is a notification": """
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":null}
    """,
    "a result of null is a result": """
        << {"jsonrpc":"2.0","method":"update","params":[],"id":1}
        >> {"jsonrpc":"2.0","result":null,"id":1}
    """,
    "an unknown method is -32601": """
        << {"jsonrpc":"2.0","method":"foobar","id":"1"}
        >> {"jsonrpc":"2.0","error":{"code":-32601,"message":...},"id":"1"}
    """,
    "invalid JSON is -32700 with a null id, and the conversation continues": """
        << {"jsonrpc":"2.0","method":"foobar,"params":"bar","baz]
        >> {"jsonrpc":"2.0","error":{"code":-32700,"message":...},"id":null}
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":1}
        >> {"jsonrpc":"2.0","result":1,"id":1}
    """,
    "an invalid request is -32600": """
        << {"jsonrpc":"2.0","method":1,"params":"bar"}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
    """,
    "a batch of invalid JSON is one -32700": """
        << [{"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":"1"},{"jsonrpc":"2.0","method"
        >> {"jsonrpc":"2.0","error":{"code":-32700,"message":...},"id":null}
    """,
    "an empty batch is -32600": """
        << []
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
    """,
    "an invalid batch gets an error for each member": """
        << [1,2,3]
        >> [{"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null},{"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null},{"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}]
    """,
    "a batch is answered in one frame, without its notifications": """
        << [{"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":"1"},{"jsonrpc":"2.0","method":"update","params":[7]},{"jsonrpc":"2.0","method":"subtract","params":{"minuend":42,"subtrahend":23},"id":"2"},{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},{"jsonrpc":"2.0","method":"slow","params":{"minuend":3,"subtrahend":1},"id":"9"}]
        >> [{"jsonrpc":"2.0","result":7,"id":"1"},{"jsonrpc":"2.0","result":19,"id":"2"},{"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null},{"jsonrpc":"2.0","error":{"code":-32601,"message":...},"id":"5"},{"jsonrpc":"2.0","result":2,"id":"9"}]
    """,
    "a batch of notifications gets no answer": """
        << [{"jsonrpc":"2.0","method":"update","params":[1]},{"jsonrpc":"2.0","method":"update","params":[7]}]
    """,
    "integer and string ids are distinct and are returned unchanged": """
        << {"jsonrpc":"2.0","method":"slow","params":{"minuend":2,"subtrahend":1},"id":1}
        << {"jsonrpc":"2.0","method":"slow","params":{"minuend":4,"subtrahend":1},"id":"1"}
        >> {"jsonrpc":"2.0","result":1,"id":1}
        >> {"jsonrpc":"2.0","result":3,"id":"1"}
    """,
    "fractional, boolean and object ids are -32600": """
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":1.5}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":true}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":{}}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
    """,
    "an id that is a whole number is that integer, however it is spelled": """
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":1.0}
        >> {"jsonrpc":"2.0","result":1,"id":1}
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":2e1}
        >> {"jsonrpc":"2.0","result":1,"id":20}
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":-0.0}
        >> {"jsonrpc":"2.0","result":1,"id":0}
        << {"jsonrpc":"1.0","method":"sum","params":[1],"id":3.0}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":3}
    """,
    "a number too large to be exact is not an id": """
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":1e300}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
        << {"jsonrpc":"2.0","method":"sum","params":[1],"id":9007199254740994.0}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
    """,
    "an empty array of parameters is an empty object": """
        << {"jsonrpc":"2.0","method":"subtract","params":[],"id":1}
        >> {"jsonrpc":"2.0","error":{"code":-32602,"message":"The parameters are not valid. Object missing required field `minuend`"},"id":1}
        << {"jsonrpc":"2.0","method":"sum","params":[ ],"id":2}
        >> {"jsonrpc":"2.0","result":0,"id":2}
    """,
    "another jsonrpc, or none, is -32600 with the id": """
        << {"jsonrpc":"1.0","method":"sum","params":[1],"id":7}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":7}
        << {"method":"sum","params":[1],"id":8}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":8}
    """,
    "parameters that are neither object nor array are -32600, and null counts as omitted": """
        << {"jsonrpc":"2.0","method":"update","params":3,"id":1}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":1}
        << {"jsonrpc":"2.0","method":"update","params":null,"id":2}
        >> {"jsonrpc":"2.0","result":null,"id":2}
    """,
    "parameters of the wrong type are -32602 with the place of the error": """
        << {"jsonrpc":"2.0","method":"subtract","params":{"minuend":"x","subtrahend":1},"id":1}
        >> {"jsonrpc":"2.0","error":{"code":-32602,"message":"The parameters are not valid. Expected `int`, got `str` - at `$.minuend`"},"id":1}
        << {"jsonrpc":"2.0","method":"subtract","id":2}
        >> {"jsonrpc":"2.0","error":{"code":-32602,"message":...},"id":2}
    """,
    "unknown members are tolerated": """
        << {"jsonrpc":"2.0","method":"subtract","params":{"minuend":1,"subtrahend":1,"x":1},"id":1,"meta":{}}
        >> {"jsonrpc":"2.0","result":0,"id":1}
    """,
    "a handler's own error keeps its code, message and data": """
        << {"jsonrpc":"2.0","method":"refuse","params":{},"id":1}
        >> {"jsonrpc":"2.0","error":{"code":-32004,"message":"You may not.","data":{"method":"refuse"}},"id":1}
    """,
    "responses with an unknown id get no response": """
        << {"jsonrpc":"2.0","result":1,"id":99}
        << {"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":99}
        << {"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":null}
        << {"jsonrpc":"2.0","result":1,"error":{"code":1,"message":"x"},"id":1}
        << {"jsonrpc":"2.0","error":7,"id":1}
    """,
    "a second request with an id that is being served is refused": """
        << {"jsonrpc":"2.0","method":"slow","params":{"minuend":2,"subtrahend":1},"id":1}
        << {"jsonrpc":"2.0","method":"slow","params":{"minuend":2,"subtrahend":1},"id":1}
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":1}
        >> {"jsonrpc":"2.0","result":1,"id":1}
    """,
}


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
async def test_the_conversation_goes_as_written(conversation: str) -> None:
    await play(conversation, methods())


async def test_a_protocol_without_batches_refuses_a_batch_as_an_invalid_request() -> None:
    await play(
        """
        << [{"jsonrpc":"2.0","method":"sum","params":[1],"id":1}]
        >> {"jsonrpc":"2.0","error":{"code":-32600,"message":...},"id":null}
        """,
        methods(),
        JsonRpc(),
    )


async def test_play_itself_fails_on_a_wrong_response_and_on_an_unexpected_one() -> None:
    with pytest.raises(AssertionError, match="line 2"):
        await play(
            """
            << {"jsonrpc":"2.0","method":"sum","params":[1],"id":1}
            >> {"jsonrpc":"2.0","result":2,"id":1}
            """,
            methods(),
        )
    with pytest.raises(AssertionError, match="unexpected message"):
        await play('<< {"jsonrpc":"2.0","method":"sum","params":[1],"id":1}', methods())
