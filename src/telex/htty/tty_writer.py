"""`TtyWriter`: a page's connection, written to a program's terminal only while the program reads.

Bytes written into a terminal are typed at whatever program reads it, including a shell's prompt
after the program has exited. So each chunk is written separately, right after a check that the
process group that announced the page is in the foreground of a terminal that neither echoes nor
edits lines, and is not an idle shell. Otherwise nothing is written; the program may come back
(Ctrl-Z, then `fg`). Nothing is written before `allow_writes`.

The next chunk follows when the previous one was read, or nearly. Bytes that are unread when a
program is stopped or killed are read by the shell, if the shell is faster than our discard. So at
most two chunks are unread at a time, and they contain no line end.

No event reports a program's return to the foreground, nor, except on Linux, its reads. So this
polls while something waits for that, at first after a millisecond and then ten times a second, and
at once when the terminal is active (`poke`).

It is a `ByteStream` for `Http2Connection`. Created by `client`, which detects where a connection
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from telex.htty import limits
from telex.processes.proc import answerable_group
from telex.wire import htty_chunk
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.terminal.pty import Pty

POLL_SECONDS: Final = 0.1
_SOON_SECONDS: Final = 0.001
LAST_SECONDS: Final = 0.25
"""Deadline of the final bytes. A program that reads needs less, and another may prompt next."""


def reads_raw_input(pty: Pty, group: int) -> bool:
    """Whether that group reads the typed bytes, unbuffered and without echo."""
    if pty.foreground() != group or answerable_group(group) is None:
        return False
    now = pty.line_settings()
    # Check the group again: between the two calls a shell may have come and made the terminal raw.
    return not now.canonical and not now.echo and pty.foreground() == group


class TtyWriter:
    """The bytes of one connection, in both directions."""

    def __init__(
        self,
        pty: Pty,
        group: int,
        alive: Callable[[], bool],
        lost: Callable[[], None],
        on_write: Callable[[bytes], None] | None = None,
    ) -> None:
        """Begin to write as soon as it is allowed.

        Args:
            alive: Checks whether the program still runs. Until its parent has noticed its exit, the
                terminal still reports its group, and bytes written then are for its successor.
            lost: Called when bytes were discarded that the program had not read.
            on_write: Called with each chunk that is written.
        """
        self.group: Final = group
        self._pty = pty
        self._alive = alive
        self._lost = lost
        self._on_write = on_write
        self._received = bytearray()
        self._more = asyncio.Event()
        self._unsent = bytearray()
        self._wanted = asyncio.Event()
        """Set when there may be something to write."""
        self._room = asyncio.Event()
        self._room.set()
        self._poked = asyncio.Event()
        self._permitted = self._mute = self._closed = False
        self._pending = False
        """Whether the latest chunk may not have been read."""
        self.last_write: float | None = None
        """When bytes were last written into the terminal."""
        self.written = 0
        """How many bytes of the connection were written so far."""
        self.held = False
        """Whether writing is paused, for a reason known to the owner."""
        self._pump = asyncio.create_task(self._write_loop())
        if (reading := pty.notify_read(self._poked.set)) is not None:
            self._pump.add_done_callback(lambda _: reading.close())

    # From the program

    def feed(self, data: bytes) -> bool:
        """Add received bytes. Returns False if the buffer is full, which the windows prevent."""
        if len(self._received) + len(data) > limits.HTTY_BEHIND_BYTES:
            return False
        if not self._closed:
            self._received += data
            self._more.set()
        return True

    async def read(self) -> bytes:
        while not self._received and not self._closed:
            self._more.clear()
            await self._more.wait()
        data = bytes(self._received[: limits.HTTY_READ_BYTES])
        del self._received[: len(data)]
        return data

    # To the program

    @property
    def waiting(self) -> bool:
        """Whether some bytes are not written yet."""
        return bool(self._unsent)

    def allow_writes(self) -> None:
        self._permitted = True
        self._wanted.set()

    def mute(self) -> None:
        """Write no more, from now on; received bytes are still read."""
        self._mute = True
        self._unsent.clear()
        self._room.set()

    def poke(self) -> None:
        """Check the foreground after activity on the terminal: another program may have come."""
        # At once, not in a later turn: a shell that reported a stopped job reads next.
        self._check_foreground()
        self._poked.set()

    def write(self, data: bytes) -> None:
        if self._mute or self._closed or not data:
            return
        self._unsent += data
        if len(self._unsent) >= limits.HTTY_UNSENT_BYTES:
            self._room.clear()
        self._wanted.set()

    async def drained(self) -> None:
        await self._room.wait()

    def close(self) -> None:
        """Close.

        Bytes written before, such as a GOAWAY, are sent if the program reads them soon.
        """
        if not self._closed:
            self._closed = True
            self._more.set()
            self._room.set()
            self._wanted.set()
            loop = asyncio.get_running_loop()
            last = loop.call_later(LAST_SECONDS, self.abort)
            self._pump.add_done_callback(lambda _: last.cancel())

    def abort(self) -> None:
        """End now, and discard unread bytes."""
        self._closed = True
        self.mute()
        self._more.set()
        self._pump.cancel()
        if self.unread():
            self._discard_unread()

    def unread(self) -> int:
        """Return how many written bytes the program has not read, as far as that is known: the
        kernel does not count an unfinished line."""
        if not self._pending:
            return 0
        pty = self._pty
        left = pty.unsent + pty.unread() or pty.line_settings().canonical * wire_limits.CHUNK_BYTES
        self._pending = left > 0
        return left

    def _discard_unread(self) -> None:
        self._pending = False
        self._pty.discard()

    async def closed(self) -> None:
        """Wait until its task has ended."""
        await asyncio.wait({self._pump})

    async def _write_loop(self) -> None:
        while True:
            while not (self._permitted and self._unsent):
                if self._closed:
                    return
                self._wanted.clear()
                await self._wanted.wait()
            if self._pty.unsent:
                await self._pty.drained()  # typed keys come first
            elif not self.held and reads_raw_input(self._pty, self.group) and self._alive():
                self._write_chunk()
                await self._wait_until_read()
            else:
                self._check_foreground()
                await self._wait_for_poke(POLL_SECONDS)

    def _write_chunk(self) -> None:
        piece = bytes(self._unsent[: wire_limits.CHUNK_BYTES])
        del self._unsent[: len(piece)]
        self.written += len(piece)
        self.last_write = asyncio.get_running_loop().time()
        chunk = htty_chunk.encode(piece)
        self._pty.write(chunk)
        self._pending = True
        if not self._alive():
            self._discard_unread()  # it was killed meanwhile, which is reported elsewhere
        if self._on_write is not None:
            self._on_write(chunk)
        if len(self._unsent) < limits.HTTY_UNSENT_BYTES:
            self._room.set()

    async def _wait_until_read(self) -> None:
        """Wait until all of it was read, or so much that another chunk may follow."""
        pause = _SOON_SECONDS
        await asyncio.sleep(0)  # so that text and keys get their turn
        while self.unread() >= (wire_limits.CHUNK_BYTES if self._unsent else 1):
            self._check_foreground()
            await self._wait_for_poke(pause)
            pause = min(2 * pause, POLL_SECONDS)

    def _check_foreground(self) -> None:
        """Discard unread bytes that another program would read.

        That is another foreground group, or, after the close, the same group once it reads lines:
        before the close, the group may still return to the connection.
        """
        if not self._pending:
            return
        pty = self._pty
        left = pty.foreground() != self.group
        if (left or (self._closed and not reads_raw_input(pty, self.group))) and self.unread():
            self._discard_unread()
            self._lost()

    async def _wait_for_poke(self, seconds: float) -> None:
        self._poked.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._poked.wait()
