"""A channel for ways that have coroutines and no callbacks: WebSocket and HTTP.

One task reads, one writes, and a queue stands between `send`, which never waits, and a pipe, which
may. `framed` needs neither, because a byte stream calls back; a WebSocket message and an HTTP
request must be awaited. What a pipe does is the transport's; when it does it, and how all of it
ends exactly once and within a few seconds, is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from telex.wire import limits
from telex.wire.events import Frame

if TYPE_CHECKING:
    from telex.rpc.channel import Receiver

CLOSE_SECONDS: Final = limits.CLOSE_SECONDS
_TOLD: Final = 200
"""Characters of the other side's own words that a sentence of ours quotes."""


class Ended(Exception):
    """Between a pipe and its channel: it is over; the sentence says why."""


class Pipe(Protocol):
    """Whole frames both ways, awaited. Reading and writing go on at the same time."""

    @property
    def binary(self) -> bool:
        """Whether a frame may be any bytes."""
        ...

    async def read(self) -> bytes | None:
        """The next frame; None, once, when they will say no more. Raises Ended. Cancelled only
        when nobody will read again."""
        ...

    async def write(self, frame: bytes) -> None:
        """Returns when there is room for another one. Raises Ended."""
        ...

    async def end(self) -> None:
        """Say goodbye and let go. Neither read nor write is running or will be."""
        ...

    def abort(self) -> None:
        """Let go at once: `end` took too long and was cancelled."""
        ...


class QueuedChannel:
    """A channel on a pipe. Made by the transports, opened by a peer."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._receiver: Receiver | None = None
        self._queue: deque[bytes] = deque()
        self._unsent = 0
        self._queued = asyncio.Event()
        self._taken = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def unsent(self) -> int:
        return self._unsent

    @property
    def binary(self) -> bool:
        return self._pipe.binary

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._tasks = {
            asyncio.create_task(self._read(receiver)),
            asyncio.create_task(self._write()),
        }
        for task in self._tasks:
            task.add_done_callback(self._stopped)

    def send(self, frame: bytes) -> None:
        if self._ending is None:
            self._queue.append(frame)
            self._unsent += len(frame)
            self._queued.set()

    async def drained(self) -> None:
        while self._unsent > limits.OUTBOUND_BYTES and not self._broken:
            self._taken.clear()
            await self._taken.wait()

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    async def close(self) -> None:
        """Send what is unsent if the other side takes it soon, then close. Idempotent; cancelling
        it does not stop it."""
        self._begin_to_end("closed here")
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _read(self, receiver: Receiver) -> None:
        while True:
            await self._flowing.wait()
            frame = await self._pipe.read()
            await self._flowing.wait()  # paused meanwhile: this one frame is held
            if self._ending is not None:
                continue  # nobody wants it, but the other side may not read until we do
            if frame is None:
                receiver.finished()
            else:
                receiver.received([Frame(frame)])

    async def _write(self) -> None:
        while True:
            while self._queue:
                await self._pipe.write(self._queue[0])
                self._unsent -= len(self._queue.popleft())
                self._taken.set()
            self._queued.clear()
            await self._queued.wait()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """A task's end is the channel's, unless the channel's end was the task's."""
        if task.cancelled():
            return
        self._broken = True
        self._taken.set()
        error = task.exception()
        self._begin_to_end(str(error) if isinstance(error, Ended) else "a fault here; see the log")
        if error is not None and not isinstance(error, Ended):
            raise error  # ours, not the other side's: the event loop's handler tells

    def _begin_to_end(self, why: str) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(why))
            self._flowing.set()

    async def _end(self, why: str) -> None:
        deadline = asyncio.get_running_loop().time() + CLOSE_SECONDS
        with contextlib.suppress(TimeoutError):  # what they do not take by then is lost
            async with asyncio.timeout_at(deadline):
                await self._flushed()
        self._broken = True
        self._taken.set()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._receiver is not None:
            self._receiver.lost(why)
        try:
            async with asyncio.timeout_at(deadline):
                await self._pipe.end()
        except TimeoutError:
            self._pipe.abort()

    async def _flushed(self) -> None:
        while self._queue and self._tasks and not self._broken:
            self._taken.clear()
            await self._taken.wait()


def printable(words: str) -> str:
    """The other side's words, fit for a log or a terminal."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in words)
    return shown if len(shown) <= _TOLD else f"{shown[:_TOLD]}…"
