"""Encodings of messages as JSON: JSON-RPC 2.0, and JSON terminal escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.rpc.messages import Batch, Failure, Malformed, Message
    from telex.wire.events import Fault


class Dialect(Protocol):
    """The encoding that a peer uses. Implementations are stateless and may be shared."""

    @property
    def default_timeout(self) -> float | None:
        """Seconds a call waits when the caller gives no timeout; None means without limit."""
        ...

    @property
    def streams(self) -> bool:
        """Whether requests and replies may have several parts."""
        ...

    @property
    def cancels(self) -> bool:
        """Whether the dialect can express a cancel."""
        ...

    def new_id(self, count: int) -> int | str:
        """Return the id of this side's count-th call."""
        ...

    def encode(self, message: Message) -> bytes:
        """Return the body of one frame. Raises msgspec's errors for data that is not JSON."""
        ...

    def encode_batch(self, answers: Sequence[Message]) -> bytes: ...

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        """Return the message in a frame. No input makes it raise."""
        ...

    def answer_to(self, fault: Fault) -> Failure | None:
        """Return the error to send to a peer whose bytes were not a frame, if any."""
        ...
