"""The channel through a program's own terminal: 23198 frames out, 23199 frames in among keystrokes.

Input is separated: frames go to the peer, replies to DA1 to their query, and all other bytes are
keys, kept until they are read. Our own frames, echoed by the terminal, are counted and dropped.

A lone ESC may be a key or the beginning of a response. It is released as a key after 25 ms, or, if
a response is due, after the time that the response may take.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, ClassVar, Final

from telex.escapes import limits
from telex.escapes.errors import FrameTooLarge
from telex.escapes.probe import DA1_QUERY, DA1Answers, DeviceAttributes, RoundTrip
from telex.escapes.protocol import TOO_LARGE
from telex.rpc import limits as rpc_limits
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.identity import UNKNOWN
from telex.rpc.messages import Failure, Message, Reply
from telex.terminal import limits as terminal_limits
from telex.transports import limits as transports_limits
from telex.wire import json_escape
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from telex.escapes.probe import MultiplexerWrap
    from telex.rpc.channel import Receiver
    from telex.rpc.messages import Batch, Malformed
    from telex.wire.events import Event, Fault

KEY_SECONDS: Final = 0.025
"""How long a lone ESC is held: less than a person notices."""
LOST_SECONDS: Final = 5.0
"""A reply that is so late counts as lost when the next query is sent."""
FINISH_SECONDS: Final = 2.0
"""How long a program that is being stopped waits until the terminal has taken the rest of a frame.
A busy machine takes half a second for a large frame; a terminal that takes nothing is not worth a
longer wait."""


class TypedKeys:
    """A queue of keys that were not read yet. Beyond the limit the newest are lost, and counted."""

    def __init__(self) -> None:
        self.lost = 0
        self._waiting = bytearray()
        self._ended = False
        self._more = asyncio.Event()

    def add(self, data: bytes) -> None:
        room = limits.KEYS_UNREAD_BYTES - len(self._waiting)
        self._waiting += data[:room]
        self.lost += max(0, len(data) - room)
        self._more.set()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    async def take(self) -> bytes:
        """Wait for keys and return all, at least one byte; empty once no more will come."""
        while not self._waiting and not self._ended:
            self._more.clear()
            await self._more.wait()
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken


class TtyChannel:
    """A channel on a non-blocking descriptor of a terminal that does not echo. It reads from its
    construction on, and does not own the descriptor.
    """

    binary = False
    identity = UNKNOWN

    def __init__(self, fd: int, round_trip: RoundTrip) -> None:
        self.keys = TypedKeys()
        self.wrap: MultiplexerWrap | None = None
        """The form in which frames pass a multiplexer."""
        self.echoes = 0
        """Frames of ours that the terminal echoed."""
        self.awaiting = 0
        """The number of due responses."""
        self._fd = fd
        self._round_trip = round_trip
        self._loop = asyncio.get_running_loop()
        self._demux = Demux((json_escape.TO_PROGRAM, json_escape.TO_TERMINAL))
        self._answers = DA1Answers()
        self._asked: deque[tuple[float, asyncio.Future[DeviceAttributes | None]]] = deque()
        self._receiver: Receiver | None = None
        self._release_timer: asyncio.TimerHandle | None = None
        self._queue = bytearray()
        self._wholes: deque[int] = deque()
        """The remaining bytes in the queue of each `write`."""
        self._cut = False
        """Whether the first of them has been sent in part."""
        self._writes = threading.Lock()
        """Held during a write, since a signal handler may write too, in any thread."""
        self._finish_asked = False
        self.finished: Callable[[], None] = lambda: None
        """Called after a write during which `finish` returned False."""
        self._room = asyncio.Event()
        self._room.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._why: str | None = None
        self._loop.add_reader(fd, self._read)

    # --- out

    @property
    def unsent(self) -> int:
        return len(self._queue)

    def send(self, frame: bytes) -> None:
        sent = json_escape.encode(frame, json_escape.TO_TERMINAL)
        self.write(sent if self.wrap is None else self.wrap.around(sent))

    def write(self, data: bytes) -> None:
        """Write bytes to the terminal unchanged."""
        if self._why is not None or not data:
            return
        waiting = bool(self._queue)
        self._queue += data
        self._wholes.append(len(data))
        if not waiting:
            self._write()
            if self._queue and self._why is None:
                self._empty.clear()
                self._loop.add_writer(self._fd, self._write)
        if len(self._queue) > rpc_limits.OUTBOUND_BYTES:
            self._room.clear()

    async def drained(self) -> None:
        await self._room.wait()

    async def flushed(self) -> None:
        """Wait until the terminal has taken all bytes, or has hung up."""
        await self._empty.wait()

    def _write(self) -> None:
        with self._writes:
            self._write_queue()
        while self._finish_asked:
            with self._writes:
                asked, self._finish_asked = self._finish_asked, False
            if asked:
                self.finished()

    def _write_queue(self) -> None:
        try:
            while self._queue:
                self._remove_sent(os.write(self._fd, self._queue[: terminal_limits.WRITE_BYTES]))
        except BlockingIOError:
            pass
        except OSError as error:
            self._end(f"cannot write to the terminal: {error.strerror}")
            return
        if len(self._queue) <= rpc_limits.OUTBOUND_BYTES // 4:
            self._room.set()
        if not self._queue and not self._empty.is_set():
            self._loop.remove_writer(self._fd)
            self._empty.set()

    def _remove_sent(self, count: int) -> None:
        del self._queue[:count]
        while count and count >= self._wholes[0]:
            count -= self._wholes.popleft()
            self._cut = False
        if count:
            self._wholes[0] -= count
            self._cut = True

    def finish(self) -> bool:
        """Write the rest of a frame before we stop, in a signal handler: the shell's output must
        not be taken for that rest. Wait at most `FINISH_SECONDS`.

        Returns False during a write, which may be the very code that the signal interrupted;
        `finished` is called after that write.
        """
        self._finish_asked = True
        if not self._writes.acquire(blocking=False):
            return False
        try:
            self._finish_asked = False
            until = time.monotonic() + FINISH_SECONDS
            while self._cut and (left := until - time.monotonic()) > 0:
                if select.select([], [self._fd], [], left)[1]:
                    with contextlib.suppress(BlockingIOError):
                        self._remove_sent(os.write(self._fd, self._queue[: self._wholes[0]]))
        finally:
            self._writes.release()
        return True

    # --- in

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        if self._why is not None:
            receiver.lost(self._why)

    def pause(self) -> None:
        if self._why is None:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if self._why is None:
            self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, terminal_limits.OUTPUT_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""  # Linux reports a hang-up by EIO
        if not data:
            self._end("the terminal hung up")
            return
        self._dispatch(self._demux.feed(data))
        self._restart_timer()

    def _dispatch(self, events: list[Event]) -> None:
        frames: list[Event] = []
        for event in events:
            match event:
                case Visible(visible):
                    self._take_input(self._answers.feed(visible))
                case Claimed(json_escape.TO_PROGRAM):
                    frames.append(json_escape.parse(event))
                case Claimed() | Fault(claim=json_escape.TO_TERMINAL):
                    self.echoes += 1
                case Fault():
                    frames.append(event)
        if frames and self._receiver is not None:
            self._receiver.received(frames)

    def _take_input(self, pieces: list[DeviceAttributes | bytes]) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                self.keys.add(piece)
            elif not (asked := self._asked.popleft()[1]).done():
                asked.set_result(piece)

    def _restart_timer(self) -> None:
        """Release held input as keys later, if nothing follows it."""
        if self._release_timer is not None:
            self._release_timer.cancel()
        due = self.awaiting or any(not asked.done() for _, asked in self._asked)
        seconds = self._round_trip.patience if due else KEY_SECONDS
        self._release_timer = self._loop.call_later(seconds, self._release)

    def _release(self) -> None:
        self._release_timer = None
        self._dispatch(self._demux.flush())
        if released := self._answers.release():
            self.keys.add(released)

    # --- the sentinel

    async def attributes(self, seconds: float) -> DeviceAttributes | None:
        """Send DA1 and wait for the reply. After it, all earlier queries have their replies.

        None if no reply came in time. A later reply is still removed from the input.
        """
        if self._why is not None:
            return None
        asked: asyncio.Future[DeviceAttributes | None] = self._loop.create_future()
        began = self._loop.time()
        self._forget(began - LOST_SECONDS)
        self._asked.append((began, asked))
        self._answers.due += 1
        self.write(DA1_QUERY)
        try:
            async with asyncio.timeout(seconds):
                found = await asked
        except TimeoutError:
            return None
        if found is not None:
            self._round_trip.took(self._loop.time() - began)
        return found

    def _forget(self, before: float) -> None:
        """Forget queries whose reply counts as lost: the next reply belongs to the next query."""
        while self._asked and self._asked[0][0] < before and self._asked[0][1].done():
            self._asked.popleft()
            self._answers.due -= 1

    # --- the end

    async def close(self) -> None:
        """Send the queue, if the terminal takes it soon. The descriptor stays open."""
        try:
            async with asyncio.timeout(transports_limits.CLOSE_SECONDS):
                await self.flushed()
        except TimeoutError:
            pass  # the terminal takes nothing any more, so the rest of the queue is lost
        self._end("closed here")

    def _end(self, why: str) -> None:
        if self._why is not None:
            return
        self._why = why
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        if self._release_timer is not None:
            self._release_timer.cancel()
        self._queue.clear()
        self._wholes.clear()
        self._cut = False
        self._room.set()
        self._empty.set()
        self.keys.end()
        for _, asked in self._asked:
            if not asked.done():
                asked.set_result(None)
        if self._receiver is not None:
            self._receiver.lost(why)


# The dialect of the program's side: frames within the terminal's limit, with ids of its own.
#
# A terminal cuts off a frame longer than its buffer, or shows it. So a request that does not fit
# raises an exception here, and a response that does not fit becomes ECLIMIT.
#
# Ids begin with random letters of this program, so that a late response to a program that has
# exited is not taken for a response to this one.


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
