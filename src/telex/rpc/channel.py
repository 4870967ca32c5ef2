"""What a peer needs of a transport, and what a transport needs of a peer. Structural types only.

A channel pushes what it read to its receiver, in the event loop's own callback. The other way
round, a task that iterates over a channel, costs a wake-up per read: on a unix socket that was a
quarter of all sequential calls per second. Transports implement `Channel` without importing a peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from telex.wire.events import Event


class Receiver(Protocol):
    """Who gets what a channel reads."""

    def received(self, events: list[Event]) -> None:
        """Frames, and the faults between them, in order. Must not block and must not raise."""
        ...

    def finished(self) -> None:
        """The other side will say no more, but may still listen: answer what is open, then close.

        `printf '…' | telex serve` and one HTTP POST end like this.
        """
        ...

    def lost(self, why: str) -> None:
        """The channel is closed, by either side. Called once, and nothing comes after it."""
        ...


class Channel(Protocol):
    """An open way to another peer: whole frames both ways, in order."""

    @property
    def unsent(self) -> int:
        """Bytes given to `send` that the other side's end has not taken yet."""
        ...

    @property
    def binary(self) -> bool:
        """Whether a frame may be any bytes, and is known for what it is at the other end."""
        ...

    def open(self, receiver: Receiver) -> None:
        """Begin to read. What came before is kept and delivered now."""
        ...

    def send(self, frame: bytes) -> None:
        """Queue one frame. Never blocks; after close it does nothing."""
        ...

    async def drained(self) -> None:
        """Wait until there is room again, or the channel closed. Cancelling it changes nothing."""
        ...

    def pause(self) -> None:
        """Read no further for now; the other side will feel it."""
        ...

    def resume(self) -> None: ...

    async def close(self) -> None:
        """Send what is unsent, as far as the other side takes it, then close. Idempotent."""
        ...
