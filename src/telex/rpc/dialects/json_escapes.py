"""The packets of JSON terminal escapes, in both directions.

`command`, `rpcid`/`resid`, `timeout`, `cont`, `error`, `datatype`, `data`, `data64` as the spec
defines them; `cancel` is an extension. Wave's `reqid` is read as `rpcid`, and written by
`WaveEscapes`. Bytes are sent as `data64` with the datatype `binary`; other `data64` is JSON in
base64.

Replies are typed into a program's input, so they contain only text of our own. A request with an id
that is not plain (`[A-Za-z0-9._:-]`, up to 64) gets no reply at all, and the standard errors are
fixed sentences that never quote the request. The error for an unknown command may be followed by
the nearest commands of ours.
"""

from __future__ import annotations

import binascii
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from telex.rpc.dialects import strict_json
from telex.rpc.errors import Condition, Problem
from telex.rpc.messages import (
    ABSENT,
    Batch,
    Cancel,
    Failure,
    Id,
    Malformed,
    Message,
    Notification,
    Part,
    Reply,
    Request,
)
from telex.rpc.nearest import Nearest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.wire.events import Fault


CODES: Final[dict[Condition, str]] = {
    Condition.PARSE: "ECPARSE",
    Condition.REQUEST: "ECPROTO",
    Condition.METHOD: "ECNOCMD",
    Condition.PARAMS: "ECARGS",
    Condition.INTERNAL: "ECINTERNAL",
    Condition.CANCELLED: "ECCANCEL",
    Condition.TIMED_OUT: "ECTIMEOUT",
    Condition.CLOSING: "ECCLOSED",
}
BINARY: Final = "binary"

_TWICE: Final = "A name occurs twice in one object."
_PLAIN_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CODED = re.compile(r"(EC-?[A-Z0-9]+):\s*(.*)", re.DOTALL)


class _Packet(Struct, omit_defaults=True):
    command: str | UnsetType = UNSET
    rpcid: str | UnsetType = UNSET
    resid: str | UnsetType = UNSET
    timeout: float | UnsetType = UNSET
    cont: bool = False
    cancel: bool = False
    error: str | UnsetType = UNSET
    datatype: str | UnsetType = UNSET
    data: Any = UNSET
    data64: str | UnsetType = UNSET


class _WavePacket(_Packet, omit_defaults=True):
    reqid: str | UnsetType = UNSET


class _Incoming(_Packet):
    data: Raw | UnsetType = UNSET
    reqid: str | UnsetType = UNSET


_packet = msgspec.json.Decoder(_Incoming)
_any = msgspec.json.Decoder(Raw)
_near = msgspec.json.Decoder(Nearest)
_encode = msgspec.json.Encoder().encode


class _NotAPacket(Exception):
    """Internal: valid JSON that breaks a rule of packets; the message is the rule."""


@dataclass(frozen=True, slots=True)
class JsonEscapes:
    """The dialect of JSON escapes. A call without a timeout waits 5 s, as in the original."""

    default_timeout: float | None = 5.0
    streams: ClassVar[bool] = True
    cancels: ClassVar[bool] = True

    def new_id(self, count: int) -> Id:
        return f"t{count}"

    def encode(self, message: Message) -> bytes:
        return _encode(_outgoing(message))

    def encode_batch(self, answers: Sequence[Message]) -> bytes:
        raise ValueError("JSON escapes have no batches")

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        try:
            packet = strict_json.decode(body, _packet)
        except strict_json.NotStrictJson as error:
            return Malformed(Problem.of(Condition.PARSE, str(error)))
        except msgspec.ValidationError as error:
            return Malformed(Problem.of(Condition.REQUEST, str(error)))
        if names := repeated(body):
            return _ambiguous(packet, names)
        try:
            return _response(packet) if packet.resid is not UNSET else _request(packet)
        except _NotAPacket as broken:
            return _malformed(packet, Problem.of(Condition.REQUEST, str(broken)))

    def answer_to(self, fault: Fault) -> Failure | None:
        """Return None: a frame that could not be read has no id to answer to."""
        return None


@dataclass(frozen=True, slots=True)
class WaveEscapes(JsonEscapes):
    """The same dialect, as Wave's programs read it: the id of a request is its `reqid`."""

    def encode(self, message: Message) -> bytes:
        packet = _outgoing(message)
        if isinstance(packet.rpcid, str):
            members = {name: getattr(packet, name) for name in packet.__struct_fields__}
            packet = _WavePacket(**{**members, "rpcid": UNSET}, reqid=packet.rpcid)
        return _encode(packet)


def _outgoing(message: Message) -> _Packet:
    match message:
        case Request(id, method, timeout=timeout, more=more):
            limit = UNSET if timeout is None else round(timeout * 1000)
            return _with_data(message, command=method, rpcid=str(id), timeout=limit, cont=more)
        case Part(id, more=more):
            return _with_data(message, rpcid=str(id), cont=more)
        case Notification(method):
            return _with_data(message, command=method)
        case Reply(id, more=more):
            return _with_data(message, resid=str(id), cont=more)
        case Failure(id, problem):
            return _Packet(resid=UNSET if id is None else str(id), error=_error(problem))
        case Cancel(id):
            return _Packet(rpcid=str(id), cancel=True)


def _with_data(message: Request | Part | Notification | Reply, **members: Any) -> _Packet:
    if isinstance(message.data, bytes):
        encoded = binascii.b2a_base64(message.data, newline=False).decode()
        return _Packet(datatype=BINARY, data64=encoded, **members)
    hint = UNSET if message.datatype is None else message.datatype
    return _Packet(datatype=hint, data=message.data, **members)


def _error(problem: Problem) -> str:
    if isinstance(problem.code, Condition):
        near = did_you_mean(_nearest(problem)) if problem.code is Condition.METHOD else ""
        return f"{CODES[problem.code]}: {problem.code.value} {near}".rstrip()
    return f"{problem.code}: {problem.message}" if problem.code else problem.message


def _nearest(problem: Problem) -> tuple[str, ...]:
    """Return the known commands nearest to an unknown one, if all of their names are plain."""
    data = problem.data
    try:
        near = _near.decode(data if isinstance(data, Raw) else _encode(data)).nearest
    except (msgspec.DecodeError, TypeError):  # the error has other data, or none
        return ()
    return near if all(_PLAIN_ID.fullmatch(name) for name in near) else ()


def _response(packet: _Incoming) -> Message:
    if packet.command is not UNSET or _rpcid(packet) is not UNSET:
        raise _NotAPacket("A packet is a request or a response, not both.")
    id = str(packet.resid)
    if isinstance(packet.error, str):
        coded = _CODED.fullmatch(packet.error)
        return Failure(id, Problem(coded[1], coded[2]) if coded else Problem("", packet.error))
    return Reply(id, _data(packet), packet.cont, _hint(packet))


def _request(packet: _Incoming) -> Message:
    id = _rpcid(packet)
    if packet.error is not UNSET:
        raise _NotAPacket("Only a response has an error.")
    if isinstance(id, UnsetType):
        if isinstance(packet.command, UnsetType):
            raise _NotAPacket("A packet has a command, an rpcid or a resid.")
        if packet.cont or packet.cancel or packet.timeout is not UNSET:
            raise _NotAPacket("Only a request with an rpcid has cont, cancel or timeout.")
        return Notification(packet.command, _data(packet), _hint(packet))
    if not _PLAIN_ID.fullmatch(id):
        raise _NotAPacket("An rpcid is 1 to 64 letters, digits and . _ : - only.")
    if packet.cancel:
        return Cancel(id)
    if isinstance(packet.command, UnsetType):
        return Part(id, _data(packet), packet.cont, _hint(packet))
    seconds = packet.timeout / 1000 if isinstance(packet.timeout, float) else 0
    timeout = seconds if seconds > 0 else None
    return Request(id, packet.command, _data(packet), timeout, packet.cont, _hint(packet))


def _rpcid(packet: _Incoming) -> str | UnsetType:
    return packet.rpcid if packet.rpcid is not UNSET else packet.reqid


def _hint(packet: _Incoming) -> str | None:
    """Return the datatype, except `binary`: binary data are bytes, so the type is known."""
    return packet.datatype if packet.datatype not in (UNSET, BINARY) else None


def _data(packet: _Incoming) -> object:
    if isinstance(packet.data64, UnsetType):
        if packet.datatype == BINARY and packet.data is not ABSENT:
            raise _NotAPacket("Binary data is in data64.")
        return packet.data
    if packet.data is not ABSENT:
        raise _NotAPacket("A packet has data or data64, not both.")
    try:
        data = binascii.a2b_base64(packet.data64.encode("utf-8"), strict_mode=True)
    except binascii.Error:
        raise _NotAPacket("The data64 is not base64.") from None
    if packet.datatype == BINARY:
        return data
    try:
        found = strict_json.decode(data, _any)
    except strict_json.NotStrictJson:
        raise _NotAPacket("The data64 is not JSON in base64.") from None
    if repeated(data):
        raise _NotAPacket(_TWICE)
    return found


def _ambiguous(packet: _Incoming, names: frozenset[str]) -> Malformed:
    """Return the error for repeated names, with an answer only if the id itself is unambiguous."""
    problem = Problem.of(Condition.PARSE, _TWICE)
    if not names.isdisjoint(("rpcid", "reqid", "resid")):
        return Malformed(problem)
    if packet.resid is not UNSET:
        return Malformed(problem, spoils=str(packet.resid))
    return _malformed(packet, problem)


def _malformed(packet: _Incoming, problem: Problem) -> Malformed:
    id = _rpcid(packet)
    if packet.resid is UNSET and isinstance(id, str) and _PLAIN_ID.fullmatch(id):
        return Malformed(problem, Failure(id, problem))
    return Malformed(problem)


# Names that occur twice in one object of a JSON text.
#
# Parsers differ in which of the two members they use, so two readers of one text may see two
# different commands; msgspec silently uses the last. The check runs on every packet, so it first
# avoids parsing: if no string of the text, name or value, occurs twice, no name does. Only a text
# with a repeated string, or whose strings cannot be found by their quotes, is parsed in full.


_SPELT: Final = re.compile(rb'"[^"\\]*+\\[^"]*+"\s*+:')
"""A name that contains an escape, in a text without escaped quotes."""
_LONG: Final = 1024
"""No name is this long, and comparing such strings takes longer than all other work here."""


def repeated(body: bytes) -> frozenset[str]:
    """Return the names that occur twice in any object. The text must be valid JSON."""
    strings = body.split(b'"')[1::2]
    if len(body) > 2 * _LONG and sum([len(one) > _LONG for one in strings]) == 1:
        strings = [one for one in strings if len(one) <= _LONG]
    if len(set(strings)) == len(strings) and (b"\\" not in body or _is_plain(body)):
        return frozenset()
    return _all(body)


def _is_plain(body: bytes) -> bool:
    """Whether each quote begins or ends a string, and no name is spelled with escapes."""
    return b'\\"' not in body and _SPELT.search(body) is None


def _all(body: bytes) -> frozenset[str]:
    found: set[str] = set()

    def check(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        if len(names) > len(set(names)):
            found.update([name for name, count in Counter(names).items() if count > 1])

    json.loads(body, object_pairs_hook=check, parse_int=str, parse_float=str)
    return frozenset(found)
