"""Both dialects: encoded messages decode to themselves, and no bytes make them raise."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.rpc import limits
from telex.rpc.dialects import strict_json
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import Condition, Problem
from telex.rpc.messages import (
    ABSENT,
    Cancel,
    Failure,
    Malformed,
    Notification,
    Part,
    Raw,
    Reply,
    Request,
)
from telex.wire.events import Fault, Reason

RPC = JsonRpc(batches=True, cancel_method="$/cancelRequest")
ESCAPES = JsonEscapes()

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain_ids = st.from_regex(r"[A-Za-z0-9._:-]{1,8}", fullmatch=True)
ids = st.integers() | text
values = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | text | st.lists(text, max_size=2)
)
data = values | st.just(ABSENT)
structured = (
    st.dictionaries(text, values, max_size=3) | st.lists(values, max_size=3) | st.just(ABSENT)
)
problems = st.builds(Problem, st.integers(-40000, 40000), text, data)
coded = st.builds(Problem, st.sampled_from(["ECDENIED", "ECX1"]), text.map(str.strip))

rpc_messages = (
    st.builds(Request, ids, text.filter(lambda m: m != "$/cancelRequest"), structured)
    | st.builds(Notification, text.filter(lambda m: m != "$/cancelRequest"), structured)
    | st.builds(Reply, ids, values)
    | st.builds(Failure, st.none() | ids, problems)
    | st.builds(Cancel, ids)
)
escape_messages = (
    st.builds(
        Request,
        plain_ids,
        text,
        data,
        st.none() | st.integers(1, 9000).map(lambda ms: ms / 1000),
        st.booleans(),
    )
    | st.builds(Part, plain_ids, data | st.binary(max_size=9), st.booleans())
    | st.builds(Notification, text, data)
    | st.builds(Reply, plain_ids, data | st.binary(max_size=9), st.booleans())
    | st.builds(Failure, plain_ids, coded)
    | st.builds(Cancel, plain_ids)
)


def opened(message: Any) -> Any:
    """Return the message with its raw data decoded, for comparison."""
    if isinstance(getattr(message, "data", None), Raw):
        fields = {name: getattr(message, name) for name in message.__slots__}
        return type(message)(**{**fields, "data": msgspec.json.decode(message.data)})
    return message


@given(rpc_messages)
def test_a_json_rpc_message_decodes_to_itself(message: Any) -> None:
    assert opened(RPC.decode(RPC.encode(message))) == message


@given(escape_messages)
def test_a_json_escape_packet_decodes_to_itself(message: Any) -> None:
    assert opened(ESCAPES.decode(ESCAPES.encode(message))) == message


fragments = st.sampled_from(
    [
        b'{"jsonrpc":"2.0"',
        b',"id":',
        b',"method":"x"',
        b"1",
        b"null",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b",",
        b":",
        b"\\ud800",
        b"\xff",
        b'"command":"c"',
        b'"rpcid":"r"',
        b'"data64":"QQ"',
        b'"resid":"r"',
        b'"cont":true',
    ]
)


@given(st.lists(fragments, max_size=12).map(b"".join) | st.binary(max_size=60))
def test_no_bytes_make_a_dialect_raise(body: bytes) -> None:
    for dialect in (RPC, ESCAPES):
        dialect.decode(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"m","params":[NaN],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":[Infinity],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":["\\ud800"],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":["\xff"],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":["\xed\xa0\x80"],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":["\n"],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":[1,],"id":1}',
        b'{"jsonrpc":"2.0","method":"m","params":[01],"id":1}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"m","id":1}',
        b'{"jsonrpc":"2.0","method":"m","id":1} x',
        b"",
        b"\x00",
    ],
)
def test_json_is_decoded_strictly(body: bytes) -> None:
    for dialect in (RPC, ESCAPES):
        decoded = dialect.decode(body)
        assert isinstance(decoded, Malformed)
        assert decoded.problem.code is Condition.PARSE


@pytest.mark.parametrize(
    ("depth", "too_deep"), [(1, False), (64, False), (65, True), (100_000, True)]
)
@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
def test_nesting_is_bounded_without_touching_the_stack(
    depth: int, too_deep: bool, pair: tuple[str, str]
) -> None:
    levels = len(pair[1])
    body = pair[0] * (depth // levels) + "0" + pair[1] * (depth // levels)
    if depth % levels:
        body = "[" + body + "]"
    assert strict_json.too_deep(body.encode()) is too_deep


def test_a_message_nested_too_deep_is_refused() -> None:
    for depth, taken in ((limits.JSON_DEPTH - 1, True), (limits.JSON_DEPTH, False)):
        params = b"[" * depth + b"]" * depth
        body = b'{"jsonrpc":"2.0","method":"m","params":%b,"id":1}' % params
        assert isinstance(RPC.decode(body), Request) is taken


def test_many_brackets_side_by_side_or_inside_strings_are_not_deep() -> None:
    assert not strict_json.too_deep(b"[" + b",".join([b'{"a":[1]}'] * 1000) + b"]")
    assert not strict_json.too_deep(json.dumps(["[" * 1000, '"[{\\']).encode())


@given(
    st.recursive(
        st.just([]),
        lambda v: st.lists(v, max_size=3) | st.dictionaries(text, v, max_size=2),
        max_leaves=200,
    )
)
def test_the_measured_depth_is_the_real_depth(value: Any) -> None:
    def depth(v: Any) -> int:
        inner = v.values() if isinstance(v, dict) else v
        return 1 + max(map(depth, inner), default=0)

    padded = [value, *[[]] * limits.JSON_DEPTH]  # enough brackets for the count not to decide
    assert strict_json.too_deep(json.dumps(padded).encode()) is (depth(padded) > limits.JSON_DEPTH)


def test_an_unterminated_string_is_scanned_once() -> None:
    hostile = b'"' + b'\\"' * 500_000 + b"[" * 65
    assert strict_json.too_deep(b"[" * 65 + hostile)


def test_absent_and_null_data_stay_distinguishable() -> None:
    assert ESCAPES.decode(b'{"resid":"1"}') == Reply("1", ABSENT)
    null = ESCAPES.decode(b'{"resid":"1","data":null}')
    assert isinstance(null, Reply)
    assert bytes(null.data) == b"null"
    assert RPC.encode(Reply(1)) == b'{"jsonrpc":"2.0","id":1,"result":null}'


def test_waves_reqid_is_read_as_rpcid() -> None:
    decoded = ESCAPES.decode(b'{"command":"x","reqid":"7"}')
    assert isinstance(decoded, Request)
    assert decoded.id == "7"


def test_data64_is_json_in_base64_unless_its_datatype_is_binary() -> None:
    encoded = base64.b64encode(b'{"a":1}')
    as_json = ESCAPES.decode(b'{"command":"x","data64":"%b"}' % encoded)
    assert opened(as_json) == Notification("x", {"a": 1})
    as_bytes = ESCAPES.decode(b'{"command":"x","datatype":"binary","data64":"%b"}' % encoded)
    assert as_bytes == Notification("x", b'{"a":1}')


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        ("ECTIMEOUT: Request timed out", Problem("ECTIMEOUT", "Request timed out")),
        (
            "EC-TIME: timeout waiting for response",
            Problem("EC-TIME", "timeout waiting for response"),
        ),
        ("ECHO failed", Problem("", "ECHO failed")),
        ("no: such thing", Problem("", "no: such thing")),
    ],
)
def test_an_error_code_is_a_word_before_a_colon(error: str, problem: Problem) -> None:
    body = json.dumps({"resid": "1", "error": error}).encode()
    assert ESCAPES.decode(body) == Failure("1", problem)


@pytest.mark.parametrize(
    ("packet", "answered"),
    [
        ('{"command":"x","cont":true}', False),
        ('{"command":"x","timeout":5}', False),
        ('{"command":"x","cancel":true}', False),
        ('{"data":1}', False),
        ("{}", False),
        ('{"command":"x","rpcid":"1","error":"no"}', True),
        ('{"command":"x","rpcid":"1","resid":"2"}', False),
        ('{"command":"x","rpcid":"1","data":1,"data64":"MQ=="}', True),
        ('{"command":"x","rpcid":"1","data64":"M"}', True),
        ('{"command":"x","rpcid":"1","data64":"MQ=\\n="}', True),
        ('{"command":"x","rpcid":"1","data64":"QQ=="}', True),
        ('{"command":"x","rpcid":"1","datatype":"binary","data":"x"}', True),
        ('{"command":"x","rpcid":"not plain"}', False),
        ('{"command":"x","rpcid":"\\u001b[31m"}', False),
        ('{"command":"x","rpcid":""}', False),
        ('{"command":"x","rpcid":"%s"}' % ("x" * 65), False),
        ('{"command":7,"rpcid":"1"}', False),
    ],
)
def test_a_packet_that_breaks_a_rule_is_answered_only_where_its_id_is_plain(
    packet: str, answered: bool
) -> None:
    decoded = ESCAPES.decode(packet.encode())
    assert isinstance(decoded, Malformed)
    assert (decoded.answer is not None) is answered


def test_the_standard_errors_of_escapes_never_quote_the_request() -> None:
    for condition in Condition:
        failure = Failure("1", Problem.of(condition, "evil \x1b]0;text\x07"))
        body = ESCAPES.encode(failure)
        assert b"evil" not in body
        assert json.loads(body)["error"].startswith("EC")
    hostile = Problem.of(Condition.METHOD, data={"nearest": ["evil \x1b]0;text\x07"]})
    assert b"evil" not in ESCAPES.encode(Failure("1", hostile))


def test_the_five_reserved_codes_are_json_rpcs_and_a_protocol_may_add_its_own() -> None:
    def code(dialect: JsonRpc, condition: Condition) -> int:
        return int(json.loads(dialect.encode(Failure(1, Problem.of(condition))))["error"]["code"])

    reserved = [
        Condition.PARSE,
        Condition.REQUEST,
        Condition.METHOD,
        Condition.PARAMS,
        Condition.INTERNAL,
    ]
    assert [code(RPC, c) for c in reserved] == [-32700, -32600, -32601, -32602, -32603]
    assert code(RPC, Condition.CANCELLED) == -32603
    assert code(JsonRpc(codes={Condition.CANCELLED: -32005}), Condition.CANCELLED) == -32005


def test_a_frame_that_could_not_be_read_is_answered_in_json_rpc_and_not_in_escapes() -> None:
    fault = Fault(Reason.TOO_LONG, 0, "a line of more than 5 bytes")
    answer = RPC.answer_to(fault)
    assert answer is not None
    assert answer.id is None
    assert "too long" in answer.problem.message
    assert ESCAPES.answer_to(fault) is None


def test_json_rpc_cannot_express_parts() -> None:
    for message in (Part(1), Reply(1, more=True)):
        with pytest.raises(ValueError, match="cannot express"):
            RPC.encode(message)
    with pytest.raises(ValueError, match="cannot express"):
        JsonRpc().encode(Cancel(1))


def test_a_response_may_spell_the_method_it_does_not_have_as_null() -> None:
    decoded = RPC.decode(
        b'{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":{},"error":null}'
    )
    assert opened(decoded) == Reply(1, {})


def test_a_protocol_may_have_ids_of_text_for_its_own_calls() -> None:
    assert JsonRpc(id_prefix="ui_").new_id(7) == "ui_7"
    assert JsonRpc().new_id(7) == 7
