"""The channel that runs through a program's terminal, seen from the terminal: 23198 in, 23199 out.

What a demux took out of the program's output comes in by `claimed` and `fault`; what a peer sends
is typed into the program's input. 23199 in the output is an echo of ours, and only counted.

Nothing is typed that nobody waits for. `attentive`, the dialect that belongs to this channel, knows
who asked. While the terminal echoes, frames are held for a moment, in which a program that asks
first and turns the echo off next can do so; then they are dropped, because an echo would show them
to the person and nobody reads them. How much is typed is limited by number, by weight, and by what
the program leaves unread. The program's output is never held up: it may be the output of `cat`, and
nobody there would ever read an answer.

    inband = InBand(pty.write, pty.foreground)
    peer = Peer(inband, inband.dialect, service.methods)

Used by `session_side` and by `telex run`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from telex.escapes.attentive import Allowance, Attentive, Bare
from telex.wire import json_escape, limits
from telex.wire.events import Claimed, Fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from telex.rpc.channel import Receiver

GRACE_SECONDS: Final = 0.05
"""How long a frame waits for the terminal to stop echoing."""


async def _at_once() -> None:
    return


class InBand:
    """One terminal's. Its peer is made with `dialect`."""

    binary = False

    def __init__(
        self,
        write: Callable[[bytes], None],
        foreground: Callable[[], int | None],
        *,
        echoes: Callable[[], bool] = lambda: False,
        unread: Callable[[], int] = lambda: 0,
        read: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        """`write` types into the program, and `foreground` says which process group reads that,
        None if it is none that should be answered. `echoes` says whether the terminal shows what is
        typed, `unread` how many typed bytes wait for the program, and `read` waits until none do.
        """
        self._write, self._foreground = write, foreground
        self._echoes, self._unread, self._read = echoes, unread, read
        self._loop = asyncio.get_running_loop()
        self.dialect = Attentive(foreground, self._loop.time, self._has_room)
        self.echoed = 0
        """Frames of ours that came back."""
        self.unheard = 0
        """Frames for a terminal that went on echoing."""
        self.ignored = 0
        """Frames that came when there was no room for what they ask, or nobody to serve them."""
        self._count = Allowance(limits.ESCAPE_REPLIES)
        self._weight = Allowance(limits.ESCAPE_REPLY_BYTES)
        self._held: deque[tuple[int | None, bytes]] = deque()
        self._letting_go: asyncio.TimerHandle | None = None
        self._receiver: Receiver | None = None
        self._paused = False
        self._closed = False

    # What the program says.

    def claimed(self, string: Claimed) -> None:
        """A control string of either number, from the program's output."""
        if string.claim == json_escape.TO_PROGRAM:
            self.echoed += 1
        elif self._receiver is None or self._closed or self._paused:
            self.ignored += 1
        else:
            self.dialect.with_length = json_escape.has_length(string.body)
            self._receiver.received([json_escape.parse(string)])

    def fault(self, fault: Fault) -> None:
        """A control string that was too long, or cut short."""
        if fault.claim == json_escape.TO_PROGRAM:
            self.echoed += 1
        elif self._receiver is not None and not self._closed:
            self._receiver.received([fault])

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def pause(self) -> None:
        """What comes now is not served, rather than kept, and the program is not held up."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    # What it is told.

    @property
    def unsent(self) -> int:
        held = sum([len(frame) for _, frame in self._held]) if self._held else 0
        return held + self._unread()

    def send(self, frame: bytes) -> None:
        if not frame or self._closed:  # empty is what the dialect makes of what reaches nobody
            return
        length = not isinstance(frame, Bare)
        sent = json_escape.encode(frame, json_escape.TO_PROGRAM, length=length)
        now = self._loop.time()
        self._count.spend(1, now)
        self._weight.spend(len(sent), now)
        if self._held or self._echoes():
            self._hold(sent)
        else:
            self._write(sent)

    async def drained(self) -> None:
        """Until more may be sent. A stream waits here, so that it is paced and never cut."""
        if self._unread() > limits.ESCAPE_UNREAD_BYTES:
            await self._read()
        now = self._loop.time()
        if (pause := max(self._count.wait(now), self._weight.wait(now))) > 0:
            await asyncio.sleep(pause)  # the rate is the point

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._held.clear()
        if self._letting_go is not None:
            self._letting_go.cancel()
        if self._receiver is not None:
            self._receiver.lost("closed here")

    def _has_room(self) -> bool:
        now = self._loop.time()
        allowed = self._count.left(now) and self._weight.left(now)
        return allowed and self.unsent <= limits.ESCAPE_UNREAD_BYTES

    def _hold(self, sent: bytes) -> None:
        if self.unsent > limits.ESCAPE_UNREAD_BYTES:
            self.unheard += 1
            return
        self._held.append((self._foreground(), sent))
        if self._letting_go is None:
            self._letting_go = self._loop.call_later(GRACE_SECONDS, self._let_go)

    def _let_go(self) -> None:
        """To the program for which it was held, if that still is there and does not echo now."""
        self._letting_go = None
        reader = None if self._echoes() else self._foreground()
        while self._held:
            meant, sent = self._held.popleft()
            if reader is not None and meant == reader:
                self._write(sent)
            else:
                self.unheard += 1
