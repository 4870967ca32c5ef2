"""Messages <-> JSON, in two spellings: JSON-RPC 2.0, and JSON terminal escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.rpc.messages import Batch, Failure, Malformed, Message
    from telex.wire.events import Fault


class Dialect(Protocol):
    """What a peer needs of a spelling. Implementations are stateless and may be shared."""

    @property
    def default_timeout(self) -> float | None:
        """Seconds a call waits when the caller did not say; None is for as long as it takes."""
        ...

    @property
    def streams(self) -> bool:
        """Whether requests and replies may come in parts."""
        ...

    @property
    def cancels(self) -> bool:
        """Whether a cancel has a spelling here."""
        ...

    def new_id(self, count: int) -> int | str:
        """The id of this side's count-th call."""
        ...

    def encode(self, message: Message) -> bytes:
        """One frame's body. Raises what msgspec raises for data that is not JSON."""
        ...

    def encode_batch(self, answers: Sequence[Message]) -> bytes: ...

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        """Never raises for what the bytes are."""
        ...

    def answer_to(self, fault: Fault) -> Failure | None:
        """What to tell a peer whose bytes were not even a frame."""
        ...
