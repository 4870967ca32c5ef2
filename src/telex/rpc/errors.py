"""The errors of a conversation, and their names on the wire.

A `Problem` is the error that a message carries: a value. Exceptions are for our own side:
`RpcError` carries a problem out of a handler or out of a call; the others mean that a call got no
response.

    CallError                 a call returned no result
    ├── RpcError              the other side returned an error, with a problem
    ├── CallTimedOut          no response in time; a cancel was sent
    ├── PeerGone              the channel closed, or was closed, before the response
    ├── UnexpectedReply       the response has another type
    └── StreamOverrun         the parts arrived faster than they were read
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

Code = int | str
"""JSON-RPC uses numbers, JSON escapes use `EC…` words."""


class Condition(Enum):
    """The kind of an error, before a protocol gives it a code. The value is its message."""

    PARSE = "The message is not valid JSON."
    REQUEST = "The message is not a valid request."
    METHOD = "There is no such method."
    PARAMS = "The parameters are not valid."
    INTERNAL = "Internal error; the details are in the log."
    CANCELLED = "The request was cancelled."
    TIMED_OUT = "The request timed out."
    CLOSING = "This peer is closing."


RESERVED: Final[Mapping[Condition, int]] = MappingProxyType(
    {
        Condition.PARSE: -32700,
        Condition.REQUEST: -32600,
        Condition.METHOD: -32601,
        Condition.PARAMS: -32602,
        Condition.INTERNAL: -32603,
    }
)
"""JSON-RPC 2.0 §5.1. A protocol adds its own numbers for the rest, or they are internal errors."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a message carries it."""

    code: Code | Condition
    message: str
    data: object = UNSET

    @classmethod
    def of(cls, condition: Condition, detail: str = "", data: object = UNSET) -> Problem:
        return cls(condition, f"{condition.value} {detail}".rstrip(), data)


ENDING: Final = Problem(
    Condition.CLOSING, "The server is shutting down.", {"kind": "server_ending"}
)
"""The response of a server that shuts down to every request it has not answered."""


class CallError(Exception):
    """A call returned no result."""


class RpcError(CallError):
    """Carries a problem: a handler raises it to send one, a call raises it on receiving one."""

    def __init__(self, code: Code | Condition, message: str, data: object = UNSET) -> None:
        super().__init__(message)
        self.problem = Problem(code, message, data)

    @classmethod
    def carrying(cls, problem: Problem) -> RpcError:
        return cls(problem.code, problem.message, problem.data)

    def __str__(self) -> str:
        return f"{self.problem.message} ({self.problem.code})"


class CallTimedOut(CallError):
    """The other side did not respond in time."""


class PeerGone(CallError):
    """The channel closed before the response arrived."""


class UnexpectedReply(CallError):
    """The response does not have the type that the caller gave."""


class StreamOverrun(CallError):
    """The parts of a stream arrived faster than they were read."""
