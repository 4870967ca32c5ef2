"""JSON-RPC 2.0, strictly, and the same in both directions.

Decisions where the specs differ:

- An explicit null id makes a notification, or is refused where the protocol requires it.
- Ids are integers, however they are spelled (`1.0` is 1), or strings; any other id is an invalid
  request.
- Null members count as omitted, so a success may carry `"error": null`.
- A response with both or neither of result and error is malformed, as is a request with either. The
  call of ours that has its id fails.
- Batches are accepted where the protocol accepts them.
- A cancel exists only where the protocol defines a method for it (`$/cancelRequest`).

Used by automation, plugins and the agent, each with its own error numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from telex.rpc import limits
from telex.rpc.dialects import strict_json
from telex.rpc.errors import RESERVED, Code, Condition, Problem
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from telex.wire.events import Fault


class _Error(Struct, omit_defaults=True):
    code: int
    message: str
    data: Any = UNSET


class _Envelope(Struct):
    """The members of any message, as received."""

    jsonrpc: str
    id: int | float | str | UnsetType | None = UNSET
    method: str | UnsetType | None = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: _Error | UnsetType | None = UNSET


class _Asked(Struct, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    """A request or notification, as it is sent."""

    method: str
    id: int | str | UnsetType = UNSET
    params: Any = UNSET


class _Answered(Struct, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    """A response, as it is sent."""

    id: int | str | None
    result: Any = UNSET
    error: _Error | UnsetType = UNSET


_NULL = Raw(b"null")
_one = msgspec.json.Decoder(_Envelope)
_loose = msgspec.json.Decoder()
_several = msgspec.json.Decoder(list[Raw])
_cancel_params = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class JsonRpc:
    """The JSON-RPC dialect, with the options that a protocol chooses."""

    codes: Mapping[Condition, int] = field(default_factory=lambda: RESERVED)
    """The protocol's numbers for conditions; those it does not name are internal errors."""
    batches: bool = False
    null_ids: bool = True
    """Whether a request may have `"id": null`, which makes it a notification."""
    cancel_method: str | None = None
    cancel_member: str = "id"
    """The parameter of the cancel method that has the id of the request."""
    id_prefix: str = ""
    """Prefix of this side's own ids; without one the ids are integers."""
    default_timeout: float | None = None
    streams: ClassVar[bool] = False

    @property
    def cancels(self) -> bool:
        return self.cancel_method is not None

    def new_id(self, count: int) -> Id:
        return f"{self.id_prefix}{count}" if self.id_prefix else count

    def encode(self, message: Message) -> bytes:
        return _encode(self._outgoing(message))

    def encode_batch(self, answers: Sequence[Message]) -> bytes:
        return _encode([self._outgoing(answer) for answer in answers])

    def _outgoing(self, message: Message) -> Struct:
        match message:
            case Request(id, method, data):
                return _Asked(method, id, data)
            case Notification(method, data):
                return _Asked(method, UNSET, data)
            case Reply(id, data, more=False):
                return _Answered(id, _NULL if data is ABSENT else data)
            case Failure(id, problem):
                return _Answered(id, error=self._error(problem))
            case Cancel(id) if self.cancel_method is not None:
                return _Asked(self.cancel_method, UNSET, {self.cancel_member: id})
            case Part() | Reply() | Cancel():
                raise ValueError(f"JSON-RPC cannot express {message}")

    def _error(self, problem: Problem) -> _Error:
        return _Error(self._number(problem.code), problem.message, problem.data)

    def _number(self, code: Code | Condition) -> int:
        if isinstance(code, Condition):
            return self.codes.get(code, RESERVED[Condition.INTERNAL])
        if isinstance(code, str):
            raise TypeError(f"JSON-RPC error codes are numbers, not {code!r}")
        return code

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        if body.lstrip()[:1] == b"[":
            return self._decode_batch(body)
        return self._decode_one(body)

    def _decode_batch(self, body: bytes) -> Malformed | Batch:
        if not self.batches:
            return _invalid("This protocol does not accept batches.")
        try:
            members = strict_json.decode(body, _several)
        except strict_json.NotStrictJson as error:
            return _unparsable(str(error))
        if not 0 < len(members) <= limits.BATCH_MESSAGES:
            return _invalid(f"A batch has 1 to {limits.BATCH_MESSAGES} messages.")
        return Batch(tuple(self._decode_one(bytes(member)) for member in members))

    def _decode_one(self, body: bytes) -> Message | Malformed:
        try:
            envelope = strict_json.decode(body, _one)
        except strict_json.NotStrictJson as error:
            return _unparsable(str(error))
        except msgspec.ValidationError as error:
            return _misshapen(body, str(error))
        if envelope.jsonrpc != "2.0":
            return _misshapen(body, 'The member `jsonrpc` is not "2.0".')
        if isinstance(envelope.id, float):
            if (whole := _whole(envelope.id)) is None:
                return _misshapen(body, f"The id {envelope.id!r} is not an integer up to 2**53.")
            envelope.id = whole
        if isinstance(envelope.method, str):
            return self._asked(envelope, envelope.method)
        return _answered(envelope)

    def _asked(self, envelope: _Envelope, method: str) -> Message | Malformed:
        id = envelope.id if isinstance(envelope.id, (int, str)) else None
        if id is None and envelope.id is not UNSET and not self.null_ids:
            return _invalid("The id is null: omit it, or give it a value.")
        if _answers(envelope):
            problem = Problem.of(Condition.REQUEST, "It has a method, and a result or an error.")
            return Malformed(problem, Failure(id, problem), id)
        params = envelope.params
        if isinstance(params, Raw) and memoryview(params)[0] not in b"{[":
            if not _is_null(params):
                return _invalid("The member `params` is neither an object nor an array.", id)
            params = UNSET
        if method == self.cancel_method:
            return _cancelled(params, self.cancel_member)
        return Notification(method, params) if id is None else Request(id, method, params)

    def answer_to(self, fault: Fault) -> Failure | None:
        return Failure(None, Problem.of(Condition.PARSE, f"({fault.reason}: {fault.detail})"))


def _answered(envelope: _Envelope) -> Message | Malformed:
    id = envelope.id if isinstance(envelope.id, (int, str)) else None
    result, error = envelope.result, envelope.error
    if isinstance(error, _Error):
        if result is not UNSET and not _is_null(result):
            problem = Problem.of(Condition.REQUEST, "It has both result and error.")
            return Malformed(problem, spoils=id)
        return Failure(id, Problem(error.code, error.message, error.data))
    if result is UNSET:
        problem = Problem.of(Condition.REQUEST, "It has no method, result or error.")
        return Malformed(problem, Failure(id, problem) if error is UNSET else None, id)
    if id is None:
        return Malformed(Problem.of(Condition.REQUEST, "It is a result without an id."))
    return Reply(id, result)


def _answers(envelope: _Envelope) -> bool:
    result = envelope.result
    given = isinstance(result, Raw) and not _is_null(result)
    return given or isinstance(envelope.error, _Error)


def _is_null(value: Raw) -> bool:
    return bytes(value) == b"null"


def _cancelled(params: Raw | UnsetType, member: str) -> Message | Malformed:
    try:
        id = _cancel_params.decode(params if isinstance(params, Raw) else b"{}").get(member)
    except msgspec.DecodeError as error:
        return Malformed(Problem.of(Condition.PARAMS, str(error)))
    if isinstance(id, float):
        id = _whole(id)
    if not isinstance(id, (int, str)) or isinstance(id, bool):
        return Malformed(Problem.of(Condition.PARAMS, f"The member `{member}` is not an id."))
    return Cancel(id)


def _whole(number: float) -> int | None:
    """Return the integer that a float id stands for. Beyond 2**53 it would not be exact."""
    return int(number) if number.is_integer() and abs(number) <= 2**53 else None


def _unparsable(detail: str) -> Malformed:
    problem = Problem.of(Condition.PARSE, detail)
    return Malformed(problem, Failure(None, problem))


def _invalid(detail: str, id: Id | None = None) -> Malformed:
    problem = Problem.of(Condition.REQUEST, detail)
    return Malformed(problem, Failure(id, problem))


def _misshapen(body: bytes, detail: str) -> Malformed:
    """Return the error for valid JSON of the wrong shape, with the id where it can be read.

    A response is never answered, because two peers could then answer each other forever.
    """
    try:
        value = _loose.decode(body)
    except msgspec.DecodeError as error:  # a number out of range, which the envelope did not check
        return _unparsable(str(error))
    members = value if isinstance(value, dict) else {}
    id = members.get("id")
    id = _whole(id) if isinstance(id, float) else id
    if not isinstance(id, (int, str)) or isinstance(id, bool):
        id = None
    if members.get("method") is None and ("result" in members or "error" in members):
        return Malformed(Problem.of(Condition.REQUEST, detail), spoils=id)
    return _invalid(detail, id)
