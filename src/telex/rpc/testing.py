"""Two peers without a wire, and conversations written down as tests.

`linked_peers()` joins two real peers by channels in memory: same dialect, same bytes, no sockets.
`play()` reads a conversation and holds a peer to it, line by line, in the form `TELEX_TRACE=wire`
prints, so that a bug report can be pasted into a test:

    << {"jsonrpc":"2.0","id":1,"method":"double","params":{"n":2}}
    >> {"jsonrpc":"2.0","id":1,"result":4}

`<<` is what the peer gets and `>>` what it must send next; `...` stands for any value. Shipped, so
that people who build on telex can test the same way.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from telex.rpc import limits
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.peer import Peer
from telex.wire.events import Event, Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.rpc.channel import Channel, Receiver
    from telex.rpc.dialects import Dialect
    from telex.rpc.methods import Methods

_ANY = "\N{WHITE DIAMOND}any\N{WHITE DIAMOND}"


class MemoryChannel:
    """One end of a pair: what one sends, the other receives in the loop's next turn."""

    binary = True

    def __init__(self) -> None:
        self._other: MemoryChannel = self
        self._receiver: Receiver | None = None
        self._inbound: deque[bytes] = deque()
        self._inbound_bytes = 0
        self._paused = False
        self._closed = False
        self._delivering = False
        self._taken = asyncio.Event()

    @property
    def unsent(self) -> int:
        return self._other._inbound_bytes

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._schedule()

    def send(self, frame: bytes) -> None:
        if not self._closed and not self._other._closed:
            self._other._inbound.append(frame)
            self._other._inbound_bytes += len(frame)
            self._other._schedule()

    async def drained(self) -> None:
        while self.unsent > limits.OUTBOUND_BYTES and not self._closed:
            self._taken.clear()
            await self._taken.wait()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    def finish(self) -> None:
        """Say no more, and go on listening."""
        if self._other._receiver is not None:
            self._other._deliver()
            self._other._receiver.finished()

    async def close(self) -> None:
        for end, why in ((self, "closed here"), (self._other, "closed by the other side")):
            end._finish(why)

    def _schedule(self) -> None:
        if not self._delivering and self._receiver is not None:
            self._delivering = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivering = False
        if self._paused or self._closed or self._receiver is None or not self._inbound:
            return
        events: list[Event] = [Frame(frame) for frame in self._inbound]
        self._inbound.clear()
        self._inbound_bytes = 0
        self._other._taken.set()
        self._receiver.received(events)

    def _finish(self, why: str) -> None:
        if self._closed:
            return
        self._paused = False
        self._deliver()
        self._closed = True
        self._taken.set()
        if self._receiver is not None:
            self._receiver.lost(why)


def memory_channels() -> tuple[MemoryChannel, MemoryChannel]:
    """Two ends of one thing."""
    one, other = MemoryChannel(), MemoryChannel()
    one._other, other._other = other, one
    return one, other


@asynccontextmanager
async def linked_peers(
    ours: Methods | None = None, theirs: Methods | None = None, dialect: Dialect | None = None
) -> AsyncIterator[tuple[Peer, Peer]]:
    """Two peers that talk to each other, closed at the end."""
    spoken = dialect or JsonRpc(batches=True, cancel_method="$/cancelRequest")
    one, other = memory_channels()
    async with Peer(one, spoken, ours) as left, Peer(other, spoken, theirs) as right:
        yield left, right


class Script:
    """The other end of a channel, played by hand: what to say, and what must be heard."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._heard: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._over = False
        channel.open(self)

    def received(self, events: list[Event]) -> None:
        self._heard.extend(event.body for event in events if isinstance(event, Frame))
        self._news.set()

    def finished(self) -> None:
        self.lost("they say no more")

    def lost(self, why: str) -> None:
        self._over = True
        self._news.set()

    def say(self, frame: bytes) -> None:
        self._channel.send(frame)

    async def hear(self) -> bytes:
        """The next frame. Bounded, because a test that hangs says nothing."""
        async with asyncio.timeout(10):
            while not self._heard:
                if self._over:
                    raise AssertionError("the channel closed, and another frame was expected")
                self._news.clear()
                await self._news.wait()
        return self._heard.popleft()

    def heard_nothing_more(self) -> bool:
        return not self._heard


async def play(
    conversation: str, methods: Methods | None = None, dialect: Dialect | None = None
) -> None:
    """Hold a peer to a conversation. Raises AssertionError where it says something else."""
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, dialect or JsonRpc(batches=True), methods):
        for number, line in enumerate(conversation.strip().splitlines(), 1):
            arrow, _, body = line.strip().removeprefix("wire ").partition(" ")
            if arrow == "<<":
                script.say(body.encode())
            elif arrow == ">>":
                heard = (await script.hear()).decode()
                assert _alike(body, heard), (
                    f"line {number}: expected {body}\n       but heard {heard}"
                )
            elif line.strip():
                raise ValueError(f"line {number} begins with neither << nor >>: {line}")
        for _ in range(3):
            await asyncio.sleep(0)
        assert script.heard_nothing_more(), f"and then it said: {(await script.hear()).decode()}"


def _alike(expected: str, heard: str) -> bool:
    pattern = re.sub(r"(?<=[:,\[])\s*\.\.\.", f'"{_ANY}"', expected)
    return _fits(msgspec.json.decode(pattern), msgspec.json.decode(heard))


def _fits(expected: object, heard: object) -> bool:
    match expected, heard:
        case str(text), _ if text == _ANY:
            return True
        case dict(members), dict(others):
            return members.keys() == others.keys() and all(
                _fits(members[name], others[name]) for name in members
            )
        case list(items), list(others):
            return len(items) == len(others) and all(map(_fits, items, others))
        case _:
            return type(expected) is type(heard) and expected == heard
