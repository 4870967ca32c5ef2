"""The plugin protocol's messages: clauses that no test of framing or dialect shows by itself."""

from __future__ import annotations

import json

import pytest

from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.messages import ABSENT, Failure, Malformed, Notification, Reply, Request
from telex.wire.content_length import ContentLengthDecoder
from telex.wire.events import Frame

DIALECT = JsonRpc()

EXAMPLE = """\
{
 "jsonrpc": "2.0",
 "id": 1,
 "method": "handshake",
 "params": {
  "protocol": "rpp"
 }
}
"""


def test_content_may_be_laid_out_over_lines_as_the_spec_prints_it() -> None:
    content = EXAMPLE.replace("\n", "\r\n").encode()
    wire = b"Content-Length: %d\r\n\r\n%b" % (len(content), content)
    events = ContentLengthDecoder().feed(wire + wire)
    assert events == [Frame(content)] * 2
    request = DIALECT.decode(content)
    assert isinstance(request, Request)
    assert (request.id, request.method) == (1, "handshake")
    assert json.loads(bytes(request.data)) == {"protocol": "rpp"}


@pytest.mark.parametrize(
    "answer",
    [
        '{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}',
        '{"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","id":1,"error":null}',
    ],
)
def test_an_answer_with_both_or_neither_of_result_and_error_is_no_answer(answer: str) -> None:
    assert isinstance(DIALECT.decode(answer.encode()), Malformed)


def test_members_that_are_null_count_as_omitted() -> None:
    def decoded(members: str) -> object:
        return DIALECT.decode(f'{{"jsonrpc":"2.0",{members}}}'.encode())

    assert decoded('"id":null,"method":"log","params":null') == Notification("log", ABSENT)
    assert decoded('"id":1,"method":"shutdown","params":null') == Request(1, "shutdown", ABSENT)
    success = decoded('"id":1,"result":{},"error":null')
    assert isinstance(success, Reply)
    failure = decoded('"id":1,"result":null,"error":{"code":-32603,"message":"x","data":null}')
    assert isinstance(failure, Failure)
    assert failure.problem.code == -32603
