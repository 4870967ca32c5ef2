"""The interface between a peer and a transport. Structural types only.

A channel pushes each read to its receiver, in the event loop's own callback. The alternative, a
task that iterates over a channel, costs a wake-up per read: on a unix socket that was a quarter of
all sequential calls per second. Transports implement `Channel` without importing a peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from telex.rpc.identity import Identity
    from telex.wire.events import Event


class Receiver(Protocol):
    """The object that gets the events of a channel; `Peer` is one."""

    def received(self, events: list[Event]) -> None:
        """Accept frames, and the faults between them, in order. Must not block or raise."""
        ...

    def finished(self) -> None:
        """Accept EOF: the other side sends no more, but may still read.

        Answer the open requests, then close. `printf '…' | telex serve` and an HTTP POST end so.
        """
        ...

    def lost(self, why: str) -> None:
        """Accept the close of the channel, by either side. Called once, as the last call."""
        ...


class Channel(Protocol):
    """An open connection to another peer that carries whole frames both ways, in order."""

    @property
    def unsent(self) -> int:
        """How many bytes given to `send` the other side has not accepted yet."""
        ...

    @property
    def binary(self) -> bool:
        """Whether a frame may be arbitrary bytes and keeps its boundaries at the other end."""
        ...

    @property
    def identity(self) -> Identity:
        """The other side, as far as the transport can tell."""
        ...

    def open(self, receiver: Receiver) -> None:
        """Begin to read. Frames that arrived earlier were kept and are delivered now."""
        ...

    def send(self, frame: bytes) -> None:
        """Queue one frame. Never blocks; does nothing after close."""
        ...

    async def drained(self) -> None:
        """Wait until the buffer has room again, or the channel closed. Cancelling it is safe."""
        ...

    def pause(self) -> None:
        """Stop reading for now, so that the other side's writes block."""
        ...

    def resume(self) -> None: ...

    async def close(self) -> None:
        """Send the unsent bytes, as far as the other side accepts them, then close. Idempotent."""
        ...
