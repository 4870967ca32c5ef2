"""A test kit: two connected peers, and conversations written down as tests.

`linked_peers()` joins two real peers by channels in memory: same dialect, same bytes, no sockets.
`play()` reads a conversation and checks a peer against it, line by line, in the format that
`TELEX_TRACE=wire` prints, so a bug report can be pasted into a test:

    << {"jsonrpc":"2.0","id":1,"method":"double","params":{"n":2}}
    >> {"jsonrpc":"2.0","id":1,"result":4}

`<<` is sent to the peer, and `>>` is the next message that the peer must send; `...` stands for any
value. The kit is installed with telex, so that people who build on telex can test the same way.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.memory import MemoryChannel, memory_channels
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.wire.events import Event, Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.rpc.channel import Channel
    from telex.rpc.dialects import Dialect

__all__ = ["MemoryChannel", "Methods", "Script", "linked_peers", "memory_channels", "play"]

_ANY = "\N{WHITE DIAMOND}any\N{WHITE DIAMOND}"


@asynccontextmanager
async def linked_peers(
    ours: Methods | None = None, theirs: Methods | None = None, dialect: Dialect | None = None
) -> AsyncIterator[tuple[Peer, Peer]]:
    """Create two peers that are connected to each other; both are closed at the end."""
    shared = dialect or JsonRpc(batches=True, cancel_method="$/cancelRequest")
    one, other = memory_channels()
    async with Peer(one, shared, ours) as left, Peer(other, shared, theirs) as right:
        yield left, right


HEAR_SECONDS: Final = 60.0
"""How long a test waits for a frame, also on a slow machine."""


class Script:
    """The other end of a channel, driven by a test: `say` sends a frame, `hear` receives one."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._received: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._closed = False
        channel.open(self)

    def received(self, events: list[Event]) -> None:
        self._received.extend(event.body for event in events if isinstance(event, Frame))
        self._news.set()

    def finished(self) -> None:
        self.lost("the other side sends no more")

    def lost(self, why: str) -> None:
        self._closed = True
        self._news.set()

    def say(self, frame: bytes) -> None:
        self._channel.send(frame)

    async def hear(self) -> bytes:
        """Return the next frame. The wait is bounded, so that a test fails instead of hanging."""
        async with asyncio.timeout(HEAR_SECONDS):
            while not self._received:
                if self._closed:
                    raise AssertionError("the channel closed, but another frame was expected")
                self._news.clear()
                await self._news.wait()
        return self._received.popleft()

    def heard_nothing_more(self) -> bool:
        return not self._received


async def play(
    conversation: str, methods: Methods | None = None, dialect: Dialect | None = None
) -> None:
    """Check a peer against a conversation. Raises AssertionError where the peer deviates."""
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, dialect or JsonRpc(batches=True), methods):
        for number, line in enumerate(conversation.strip().splitlines(), 1):
            arrow, _, body = line.strip().removeprefix("wire ").partition(" ")
            if arrow == "<<":
                script.say(body.encode())
            elif arrow == ">>":
                got = (await script.hear()).decode()
                assert _alike(body, got), (
                    f"line {number}: expected {body}\n       but received {got}"
                )
            elif line.strip():
                raise ValueError(f"line {number} begins with neither << nor >>: {line}")
        for _ in range(3):
            await asyncio.sleep(0)
        assert script.heard_nothing_more(), f"unexpected message: {(await script.hear()).decode()}"


def _alike(expected: str, got: str) -> bool:
    pattern = re.sub(r"(?<=[:,\[])\s*\.\.\.", f'"{_ANY}"', expected)
    return _fits(msgspec.json.decode(pattern), msgspec.json.decode(got))


def _fits(expected: object, got: object) -> bool:
    match expected, got:
        case str(text), _ if text == _ANY:
            return True
        case dict(members), dict(others):
            return members.keys() == others.keys() and all(
                _fits(members[name], others[name]) for name in members
            )
        case list(items), list(others):
            return len(items) == len(others) and all(map(_fits, items, others))
        case _:
            return type(expected) is type(got) and expected == got
