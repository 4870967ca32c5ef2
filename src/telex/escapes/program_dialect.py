"""The dialect of the program's side: frames within the terminal's limit, with ids of its own.

A terminal cuts off a frame longer than its buffer, or shows it. So a request that does not fit
raises an exception here, and a response that does not fit becomes ECLIMIT.

Ids begin with random letters of this program, so that a late response to a program that has exited
is not taken for a response to this one.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, ClassVar, Final

from telex.escapes import limits
from telex.escapes.errors import FrameTooLarge
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.errors import Problem
from telex.rpc.messages import Failure, Message, Reply
from telex.wire import json_escape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from telex.rpc.messages import Batch, Malformed
    from telex.wire.events import Fault

TOO_LARGE: Final = Problem("ECLIMIT", "The response is too large for a frame.")

_BESIDE: Final = 160
"""The bytes of a packet without its data64: the names of its members and a long id."""


class ProgramDialect:
    """JSON escapes in frames of limited size. The limit is known after `detect`."""

    default_timeout: ClassVar[float | None] = JsonEscapes().default_timeout
    streams: ClassVar[bool] = True
    cancels: ClassVar[bool] = True

    def __init__(self) -> None:
        self._packets = JsonEscapes()
        self._mark = secrets.token_hex(4)
        self.json_bytes = limits.SENT_CONTROL_STRING_BYTES - json_escape.AROUND
        """The most bytes of JSON in one frame."""

    @property
    def piece_bytes(self) -> int:
        """The bytes that fit, in base64, into one part of a stream."""
        return max(3, (self.json_bytes - _BESIDE) // 4 * 3)

    async def pieces(self, data: bytes) -> AsyncIterator[bytes]:
        """Cut bytes into parts that fit into a frame."""
        for at in range(0, len(data), self.piece_bytes):
            yield data[at : at + self.piece_bytes]

    def new_id(self, count: int) -> str:
        return f"{self._mark}.{count}"

    def encode(self, message: Message) -> bytes:
        body = self._packets.encode(message)
        if (size := json_escape.json_bytes(body)) <= self.json_bytes:
            return body
        if isinstance(message, (Reply, Failure)):
            return self._packets.encode(Failure(message.id, TOO_LARGE))
        raise FrameTooLarge(
            f"a frame has {size} bytes of JSON, but this terminal reads at most {self.json_bytes}; "
            "send bytes as the parts of a stream (parts=…)"
        )

    def encode_batch(self, answers: Sequence[Message]) -> bytes:
        return self._packets.encode_batch(answers)

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        return self._packets.decode(body)

    def answer_to(self, fault: Fault) -> Failure | None:
        return self._packets.answer_to(fault)
