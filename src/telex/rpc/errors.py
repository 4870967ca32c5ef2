"""What can go wrong in a conversation, and how it is named on the wire.

A `Problem` is the error a message carries: a value. Exceptions are for our own side: `RpcError`
carries a problem out of a handler or out of a call, and the others say why a call has no answer.

    CallError                 a call brought no result
    ├── RpcError              the other side said no, with a problem
    ├── CallTimedOut          it did not answer in time; a cancel was sent
    ├── PeerGone              the channel closed, or was closed, before the answer
    ├── UnexpectedReply       it answered with something of another type
    └── StreamOverrun         its parts came faster than they were taken
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
"""JSON-RPC has numbers, JSON escapes have `EC…` words."""


class Condition(Enum):
    """What went wrong, before a protocol gives it a code. The value is the sentence for it."""

    PARSE = "The message is not valid JSON."
    REQUEST = "The message is not a valid request."
    METHOD = "There is no such method."
    PARAMS = "The parameters are not valid."
    INTERNAL = "Something went wrong inside; the details are in the log."
    CANCELLED = "The request was cancelled."
    TIMED_OUT = "The request was not done in time."
    CLOSING = "This side is closing."


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
    Condition.CLOSING, "The server is ending: it was told to stop.", {"kind": "server_ending"}
)
"""What a server that ends answers to all that it has not answered."""


class CallError(Exception):
    """A call brought no result."""


class RpcError(CallError):
    """A problem on its way: raised by a handler to send it, and by a call that received it."""

    def __init__(self, code: Code | Condition, message: str, data: object = UNSET) -> None:
        super().__init__(message)
        self.problem = Problem(code, message, data)

    @classmethod
    def carrying(cls, problem: Problem) -> RpcError:
        return cls(problem.code, problem.message, problem.data)

    def __str__(self) -> str:
        return f"{self.problem.message} ({self.problem.code})"


class CallTimedOut(CallError):
    """The other side did not answer in time."""


class PeerGone(CallError):
    """The channel closed before the answer came."""


class UnexpectedReply(CallError):
    """The answer is not of the type that was asked for."""


class StreamOverrun(CallError):
    """The parts of a stream came faster than they were taken."""
