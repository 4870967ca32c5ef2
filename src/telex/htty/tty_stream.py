"""A program's end of a page's byte stream: chunks through its own terminal, among text and keys.

    async with htty.open_stream() as stream:
        stream.write(b"…")
        data = await stream.read()

Inside the block the terminal is taken: text may still be printed, and typed keys arrive by
`stream.typed()` or at the `keys` callback. `stream.close()` is local: no more is written, reading
is over, and the terminal stays taken. The end of the block gives it back (`finish`), after
everything that the terminal still had under way has arrived: the shell must not read it as a
command. Another block may follow.

Out: what is written in one turn of the event loop goes out together, in chunks that no other output
can land inside (`page_tty.AtomicWriter`). In: every byte is read as it comes, even while we cannot
write (two sides that both write first would wait for ever), and sorted: chunks belong to the
stream, bytes between them were typed, for the program. HTTP/2 is not known here.
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
"""How long what may be a key is held while chunks come: the rest of one may be a lost packet away.
Long for a key, and no key at all would be worse: without its ESC a chunk is typed text."""
RECENT_SECONDS: Final = 0.1
"""How long after a chunk an ESC is sooner the next one than a key."""

CLOSED: Final = "closed here"

_GONE: Final = (errno.EIO, errno.ECONNRESET)
"""How Linux says that a terminal has hung up; and a socket, where stdin is one."""
_INTRODUCER: Final = len(htty_chunk.CHUNK.introducer)


class TtyStream:
    """A `ByteStream`. It reads from the start; typed keys go to `keys`, or wait for `typed`."""

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
        """What ended it, a sentence; None while it lasts."""
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
        self._letting_go: asyncio.TimerHandle | None = None
        self._tail = b""
        """What came last: an ESC in it may be held."""
        self._chunk_came = -RECENT_SECONDS
        self._came = bytearray()
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
            self._hand_on(typed)
        self._arm()

    # --- the stream

    async def read(self) -> bytes:
        while not self._came and self.why is None:
            self._more.clear()
            await self._more.wait()
        taken = bytes(self._came[: limits.HTTY_READ_BYTES])
        del self._came[: limits.HTTY_READ_BYTES]
        if len(self._came) < limits.HTTY_UNREAD_BYTES:
            self._arm()
        return taken

    def write(self, data: bytes) -> None:
        if self.why is not None or not data:
            return
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(data)
        self._pending_size += len(data)

    @property
    def unsent(self) -> int:
        return self._pending_size + self._writes.unsent

    async def drained(self) -> None:
        while self.why is None and self.unsent >= limits.HTTY_UNSENT_BYTES:
            self._room.clear()
            self._writes.awaited = True
            if self.unsent >= limits.HTTY_UNSENT_BYTES:  # else it was told before it was asked
                await self._room.wait()

    def close(self) -> None:
        self._flush()
        self._end(CLOSED)

    async def typed(self) -> bytes:
        """What was typed, at least a byte of it; empty once no more will come."""
        return await self._unread_keys.take()

    def _flush(self) -> None:
        """What was written in this turn, in pieces that are a write each."""
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
        """From the writing thread: there is room, or it failed, or it has ended."""
        self._writes.awaited = False  # whoever still waits asks again
        self._room.set()
        if self._writes.failure is not None:
            self._end(f"nobody takes what is written: {self._writes.failure.strerror}")
        if self._writes.ended.is_set():
            self._written.set()

    # --- what comes in

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
            self._let_go()
            self._sort(self._demux.eof())
            self._end("the terminal hung up" if self.tty else "standard input has ended")
            self._unread_keys.end()
            return
        self._hold(data)
        if len(self._came) >= limits.HTTY_UNREAD_BYTES:
            self._disarm()

    def _taken(self) -> tuple[bytes, bool]:
        """All there is, within a turn's measure, and whether that was the last."""
        pieces: list[bytes] = []
        left = limits.HTTY_READ_BYTES
        try:
            while left > 0:
                if not (data := os.read(self._ends.reading, left)):
                    return b"".join(pieces), True
                pieces.append(data)
                left -= len(data)
                if self.tty is None:
                    break  # a pipe that others read too: a second read might wait
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
            self._came += found
            self._more.set()

    def _typed(self, data: bytes) -> None:
        for piece in self._answers.feed(data):
            if isinstance(piece, DeviceAttributes):
                self._answered.set()
            else:
                self._hand_on(piece)

    def _hand_on(self, typed: bytes) -> None:
        """In a turn of its own: a fault of the program's must not cost us the chunks behind it."""
        if self._keys is None:
            self._unread_keys.add(typed)
        else:
            self._loop.call_soon(self._keys, typed)

    def _hold(self, data: bytes) -> None:
        """Have the clock let go of what may be a key, if nothing comes after it."""
        if self._letting_go is not None:
            self._letting_go.cancel()
            self._letting_go = None
        self._tail = (self._tail + data)[-_INTRODUCER:]
        if ESC not in self._tail:
            return
        recent = self._loop.time() - self._chunk_came < RECENT_SECONDS or self._answers.due
        alone = self._tail.endswith(ESC) and not recent
        seconds = KEY_SECONDS if alone else HELD_SECONDS
        self._letting_go = self._loop.call_later(seconds, self._let_go)

    def _let_go(self) -> None:
        if self._letting_go is not None:
            self._letting_go.cancel()
            self._letting_go = None
        self._sort(self._demux.flush())
        if released := self._answers.release():
            self._hand_on(released)

    # --- the end

    def _end(self, why: str) -> None:
        if self.why is None:
            self.why = why
            self._more.set()
            self._room.set()

    async def finish(self) -> None:
        """Close it, wait until nothing is under way either way, and give the terminal back."""
        self.close()
        self._came.clear()
        self._arm()  # for what still comes, if it was more than anybody took
        try:
            settled = await self._quiet()
        finally:
            self._finished = True
            self._disarm()
            self._let_go()
            self._unread_keys.end()
            self._writes.drop()  # the thread ends, and closes its descriptor, once it can
        self._release(settled)
        await asyncio.sleep(0)  # the last key has its turn

    def _release(self, settled: bool) -> None:
        if self.tty is None:
            os.close(self._ends.reading)
            return
        if not settled and not self._hung_up.is_set():
            self.tty.discard_input()
        self.tty.close()

    async def _quiet(self) -> bool:
        """Whether all that was under way has surely come.

        The terminal answers DA1 after everything before it, and so after the last chunk it was
        given is dealt with. A multiplexer would answer for itself, and too soon.
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
    """Whether one of them came."""
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
    """Raises `NoPages` where nobody would show one; `force` sends it all the same.

    `keys` is called with what is typed. `fd` is a descriptor of another terminal than this
    program's own.
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
