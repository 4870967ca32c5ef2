"""A program's end of a page's byte stream: chunks through its own terminal, among text and keys.

    async with htty.open_stream() as stream:
        stream.write(b"…")
        data = await stream.read()

Inside the block the terminal is taken: text may still be printed, and typed keys arrive by
`stream.typed()` or at the `keys` callback. `stream.close()` is local: no more is written, reading
ends, and the terminal stays taken. The end of the block restores the terminal (`finish`), after
everything that the terminal still had under way has arrived: the shell must not read it as a
command. Another block may follow.

Output: bytes written in one turn of the event loop are sent together, in chunks that no other
output can land inside (`page_tty.AtomicWriter`). Input: every byte is read as it arrives, even
while we cannot write (two sides that both write first would deadlock), and sorted: chunks belong to
the stream, bytes between them were typed, for the program. HTTP/2 is not used here.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

from telex.escapes.probe import DA1_QUERY, DA1Answers, DeviceAttributes, RoundTrip
from telex.escapes.tty_channel import KEY_SECONDS, TypedKeys
from telex.htty import limits
from telex.htty.chunk_stream import ChunkReceiver, StreamAborted
from telex.htty.page_tty import AtomicWriter, open_tty_ends
from telex.htty.support import find_support, standard_terminal
from telex.processes.shielded import run_shielded
from telex.transports import limits as transports_limits
from telex.wire import htty_chunk
from telex.wire import limits as wire_limits
from telex.wire.demux import Demux
from telex.wire.escape import ESC
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from telex.escapes.probe import MultiplexerWrap
    from telex.htty.page_tty import TtyEnds


HELD_SECONDS: Final = 0.5
"""How long a possible key is held while chunks arrive: the rest of a chunk may be delayed by a lost
packet. It is long for a key, but without its ESC a chunk would be typed text."""
RECENT_SECONDS: Final = 0.1
"""How long after a chunk an ESC is more likely the next chunk than a key."""

CLOSED: Final = "closed here"

_GONE: Final = (errno.EIO, errno.ECONNRESET)
"""How Linux reports that a terminal has hung up; and a socket, where stdin is one."""
_INTRODUCER: Final = len(htty_chunk.CHUNK.introducer)


class TtyStream:
    """A program's end of a page's byte stream; it implements `ByteStream`.

    It reads from the start. Typed keys are passed to `keys`, or wait for `typed`.
    """

    __module__ = "telex.htty"

    def __init__(
        self,
        ends: TtyEnds,
        *,
        keys: Callable[[bytes], None] | None = None,
        wrap: MultiplexerWrap | None = None,
        round_trip: RoundTrip | None = None,
        typed: bytes = b"",
    ) -> None:
        self.why: str | None = None
        """Why the stream ended, as a sentence; None while it is open."""
        self.tty = ends.tty
        self._ends = ends
        self._wrap = wrap
        self._round_trip = round_trip or RoundTrip()
        self._unread_keys = TypedKeys()
        self._keys = keys
        self._loop = asyncio.get_running_loop()
        self._demux = Demux((htty_chunk.CHUNK,))
        self._receiver = ChunkReceiver()
        self._answers = DA1Answers()
        self._release_timer: asyncio.TimerHandle | None = None
        self._tail = b""
        """The last received bytes: an ESC in them may be held."""
        self._chunk_came = -RECENT_SECONDS
        self._received = bytearray()
        self._more = asyncio.Event()
        self._reading = False
        self._hung_up = asyncio.Event()
        self._answered = asyncio.Event()
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._room = asyncio.Event()
        self._written = asyncio.Event()
        self._finished = False
        self._writes = AtomicWriter(ends.writing, self._loop, self._settled)
        if ends.tty is not None:
            ends.tty.writes = self._writes
        if typed:
            self._pass_keys(typed)
        self._arm()

    # --- the byte stream

    async def read(self) -> bytes:
        """Return received bytes, at least one; empty when the stream has ended."""
        while not self._received and self.why is None:
            self._more.clear()
            await self._more.wait()
        taken = bytes(self._received[: limits.HTTY_READ_BYTES])
        del self._received[: limits.HTTY_READ_BYTES]
        if len(self._received) < limits.HTTY_UNREAD_BYTES:
            self._arm()
        return taken

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent. Does nothing after the stream has ended.

        Args:
            data: The bytes.
        """
        if self.why is not None or not data:
            return
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(data)
        self._pending_size += len(data)

    @property
    def unsent(self) -> int:
        """The number of bytes that are queued and not sent yet."""
        return self._pending_size + self._writes.unsent

    async def drained(self) -> None:
        """Wait until there is room in the queue, or the stream has ended."""
        while self.why is None and self.unsent >= limits.HTTY_UNSENT_BYTES:
            self._room.clear()
            self._writes.awaited = True
            if self.unsent >= limits.HTTY_UNSENT_BYTES:  # else there was room before `awaited`
                await self._room.wait()

    def close(self) -> None:
        """Send the queued bytes, and end the stream."""
        self._flush()
        self._end(CLOSED)

    async def typed(self) -> bytes:
        """Return typed bytes, at least one; empty when the stream has ended."""
        return await self._unread_keys.take()

    def _flush(self) -> None:
        """Queue the bytes of this turn, in pieces that are one write each."""
        data = memoryview(b"".join(self._pending))
        self._pending, self._pending_size = [], 0
        if self.why is not None or not data:
            return
        self._receiver.answering = True
        for at in range(0, len(data), self._ends.piece_bytes):
            self._writes.put(self._chunks(data[at : at + self._ends.piece_bytes]))

    def _chunks(self, data: memoryview) -> bytes:
        if self._wrap is None:
            return htty_chunk.encode(data, self._ends.chunk_bytes)
        size = min(self._ends.chunk_bytes, wire_limits.CHUNK_BYTES)
        pieces = (data[at : at + size] for at in range(0, len(data), size))
        return b"".join(self._wrap.around(htty_chunk.encode(piece)) for piece in pieces)

    def _settled(self) -> None:
        """Called by the writing thread: there is room, or it failed, or it has ended."""
        self._writes.awaited = False  # a caller that still waits sets it again
        self._room.set()
        if self._writes.failure is not None:
            self._end(f"the output is closed: {self._writes.failure.strerror}")
        if self._writes.ended.is_set():
            self._written.set()

    # --- input

    def _arm(self) -> None:
        if not self._reading and not self._hung_up.is_set() and not self._finished:
            self._reading = True
            self._loop.add_reader(self._ends.reading, self._read)

    def _disarm(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._ends.reading)

    def _read(self) -> None:
        data, ended = self._taken()
        if not data and not ended:
            return
        self._sort(self._demux.feed(data))
        if ended:
            self._disarm()
            self._hung_up.set()
            self._release_held()
            self._sort(self._demux.eof())
            self._end("the terminal hung up" if self.tty else "standard input has ended")
            self._unread_keys.end()
            return
        self._hold(data)
        if len(self._received) >= limits.HTTY_UNREAD_BYTES:
            self._disarm()

    def _taken(self) -> tuple[bytes, bool]:
        """Read what is available, up to the limit of a turn; also return whether it was the end."""
        pieces: list[bytes] = []
        left = limits.HTTY_READ_BYTES
        try:
            while left > 0:
                if not (data := os.read(self._ends.reading, left)):
                    return b"".join(pieces), True
                pieces.append(data)
                left -= len(data)
                if self.tty is None:
                    break  # another process may read the pipe too, so a second read could block
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in _GONE:
                raise
            return b"".join(pieces), True
        return b"".join(pieces), False

    def _sort(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Visible(data):
                    self._typed(data)
                case Claimed() | Fault():
                    self._chunk_came = self._loop.time()
                    self._carry(event)

    def _carry(self, event: Claimed | Fault) -> None:
        found = self._receiver.take(event)
        if isinstance(found, StreamAborted):
            self._end(found.sentence)
        elif found and self.why is None:
            self._received += found
            self._more.set()

    def _typed(self, data: bytes) -> None:
        for piece in self._answers.feed(data):
            if isinstance(piece, DeviceAttributes):
                self._answered.set()
            else:
                self._pass_keys(piece)

    def _pass_keys(self, typed: bytes) -> None:
        """Pass keys to the program in a later turn, so that its errors do not lose chunks."""
        if self._keys is None:
            self._unread_keys.add(typed)
        else:
            self._loop.call_soon(self._keys, typed)

    def _hold(self, data: bytes) -> None:
        """Set a timer that releases a possible key, if nothing follows it."""
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        self._tail = (self._tail + data)[-_INTRODUCER:]
        if ESC not in self._tail:
            return
        recent = self._loop.time() - self._chunk_came < RECENT_SECONDS or self._answers.due
        alone = self._tail.endswith(ESC) and not recent
        seconds = KEY_SECONDS if alone else HELD_SECONDS
        self._release_timer = self._loop.call_later(seconds, self._release_held)

    def _release_held(self) -> None:
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        self._sort(self._demux.flush())
        if released := self._answers.release():
            self._pass_keys(released)

    # --- the end

    def _end(self, why: str) -> None:
        if self.why is None:
            self.why = why
            self._more.set()
            self._room.set()

    async def finish(self) -> None:
        """Close, wait until no data is under way in either direction, and restore the terminal."""
        self.close()
        self._received.clear()
        self._arm()  # read the rest, even if the buffer was full
        try:
            settled = await self._quiet()
        finally:
            self._finished = True
            self._disarm()
            self._release_held()
            self._unread_keys.end()
            self._writes.drop()  # the thread ends and closes its descriptor when it can
        self._release(settled)
        await asyncio.sleep(0)  # so that the last key is passed on

    def _release(self, settled: bool) -> None:
        if self.tty is None:
            os.close(self._ends.reading)
            return
        if not settled and not self._hung_up.is_set():
            self.tty.discard_input()
        self.tty.close()

    async def _quiet(self) -> bool:
        """Return whether all data under way has certainly arrived.

        The terminal responds to DA1 after everything before it, and so after the last chunk it got.
        A multiplexer would respond by itself, and too soon.
        """
        asks = self.tty is not None and self._wrap is None and not self._hung_up.is_set()
        if asks:
            self._answers.due += 1
            self._writes.put(DA1_QUERY)
        self._writes.close()
        if (
            not await _any_event_within(transports_limits.CLOSE_SECONDS, self._written)
            or self.tty is None
        ):
            return False
        await _any_event_within(self._round_trip.patience, self._answered, self._hung_up)
        return self._answered.is_set()


async def _any_event_within(seconds: float, *events: asyncio.Event) -> bool:
    """Wait for one of the events. Returns whether one occurred in time."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for wait in waits:
            wait.cancel()


@contextlib.asynccontextmanager
async def open_stream(
    *,
    keys: Callable[[bytes], None] | None = None,
    force: bool = False,
    fd: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[TtyStream]:
    """Take the terminal, and open a byte stream to the program that shows pages.

    Args:
        keys: Called with typed bytes.
        force: Open even if it is unknown whether the terminal shows pages.
        fd: A descriptor of a terminal other than this program's own.
        environ: The environment to use; by default the process's own.

    Raises:
        NoPages: Pages are not shown here.
    """
    fd = standard_terminal() if fd is None else fd
    found = await find_support(os.environ if environ is None else environ, fd, force=force)
    stream = TtyStream(
        open_tty_ends(fd),
        keys=keys,
        wrap=found.wrap,
        round_trip=found.round_trip,
        typed=found.typed,
    )
    try:
        yield stream
    finally:
        await run_shielded(stream.finish())
