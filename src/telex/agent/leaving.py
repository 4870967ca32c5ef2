"""A channel whose other side may have said all, and still listens until its runs are over.

`printf '…run.start…' | telex agent` ends its input at once. A peer would answer what is open and
close, before the run has told anything. This stands between them and keeps the end of the input to
itself until `pass_on`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telex.rpc.channel import Channel, Receiver
    from telex.wire.events import Event


class Staying:
    """The channel it is given, in everything else."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._receiver: Receiver | None = None
        self.said_all = asyncio.Event()

    def begin(self) -> None:
        """Now it reads: a channel may deliver at once, to a peer that must be known by then."""
        self._channel.open(self)

    def pass_on(self) -> None:
        """Now the receiver may hear that they say no more."""
        if self._receiver is not None:
            self._receiver.finished()

    # As a channel.

    @property
    def unsent(self) -> int:
        return self._channel.unsent

    @property
    def binary(self) -> bool:
        return self._channel.binary

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, frame: bytes) -> None:
        self._channel.send(frame)

    async def drained(self) -> None:
        await self._channel.drained()

    def pause(self) -> None:
        self._channel.pause()

    def resume(self) -> None:
        self._channel.resume()

    async def close(self) -> None:
        await self._channel.close()

    # As a receiver.

    def received(self, events: list[Event]) -> None:
        if self._receiver is not None:
            self._receiver.received(events)

    def finished(self) -> None:
        self.said_all.set()

    def lost(self, why: str) -> None:
        if self._receiver is not None:
            self._receiver.lost(why)
