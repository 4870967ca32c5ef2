"""`TtyWriter`: a page's connection, written to a program's terminal only while the program reads.

Bytes written into a terminal are typed at whoever reads it, a shell's prompt too once the program
is gone. So each chunk is written by itself, right after a check that the process group that
announced the page is in the foreground of a terminal that neither echoes nor edits lines, and is
not an idle shell. While it is not, nothing is written; it may come back (Ctrl-Z, then `fg`).
Nothing is written before `allow_writes`.

The next chunk follows when the one before it is read, or nearly: what is unread when a program is
stopped or killed is read by the shell, if the shell is quicker than we are to discard it. So at
most two chunks are unread at a time, and no line ends in them.

There is no event for a program's return to the foreground, nor, except on Linux, for its reads. So
this polls, at first after a millisecond and then ten times a second, while something waits for
that, and at once when the terminal is active (`poke`).

A `ByteStream` for `Http2Connection`. Made by `client`, which knows where a connection ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol

from telex.htty import limits
from telex.processes.proc import answerable_group
from telex.wire import htty_chunk
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.terminal.line_discipline import LineSettings
    from telex.terminal.pty import ReadNotifier

LOOK_SECONDS: Final = 0.1
_SOON_SECONDS: Final = 0.001
LAST_SECONDS: Final = 0.25
"""For what is said last. A program that reads takes less, and another may ask its person next."""


class PtyLike(Protocol):
    """A program's terminal, as `terminal.pty.Pty` is one."""

    @property
    def unsent(self) -> int: ...
    @property
    def paused(self) -> bool: ...
    def write(self, data: bytes) -> None: ...
    def unread(self) -> int: ...
    def notify_read(self, callback: Callable[[], None]) -> ReadNotifier | None: ...
    def discard(self) -> None: ...
    async def drained(self) -> None: ...
    def foreground(self) -> int | None: ...
    def line_settings(self) -> LineSettings: ...


def reads_raw_input(pty: PtyLike, group: int) -> bool:
    """Whether that group reads what is typed, byte by byte and unseen."""
    if pty.foreground() != group or answerable_group(group) is None:
        return False
    now = pty.line_settings()
    # Another look, for they are two questions: the shell that came between them made it raw.
    return not now.canonical and not now.echo and pty.foreground() == group


class TtyWriter:
    """One connection's bytes, both ways."""

    def __init__(
        self,
        pty: PtyLike,
        group: int,
        alive: Callable[[], bool],
        lost: Callable[[], None],
        on_write: Callable[[bytes], None] | None = None,
    ) -> None:
        """`alive` looks whether the program is. Until its parent has seen its end, the terminal
        still names it, and what is written then is for who comes after it. `lost` is called when
        something was taken back that the program had not read. `on_write` gets each chunk that is
        written."""
        self.group: Final = group
        self._pty = pty
        self._alive = alive
        self._lost = lost
        self._on_write = on_write
        self._came = bytearray()
        self._more = asyncio.Event()
        self._unsent = bytearray()
        self._wanted = asyncio.Event()
        """Something may be there to be written."""
        self._room = asyncio.Event()
        self._room.set()
        self._poked = asyncio.Event()
        self._permitted = self._mute = self._closed = False
        self._pending = False
        """Whether the latest chunk may not have been read."""
        self.last_write: float | None = None
        """When something was written into the terminal last."""
        self.written = 0
        """Bytes of the connection, so far."""
        self.held = False
        """Whether to wait with what is to be written, for a reason that is known elsewhere."""
        self._pump = asyncio.create_task(self._write_on())
        if (reading := pty.notify_read(self._poked.set)) is not None:
            self._pump.add_done_callback(lambda _: reading.close())

    # What the program sent.

    def feed(self, data: bytes) -> bool:
        """Whether there was room for it. A program that keeps to the windows never has too much."""
        if len(self._came) + len(data) > limits.HTTY_BEHIND_BYTES:
            return False
        if not self._closed:
            self._came += data
            self._more.set()
        return True

    async def read(self) -> bytes:
        while not self._came and not self._closed:
            self._more.clear()
            await self._more.wait()
        data = bytes(self._came[: limits.HTTY_READ_BYTES])
        del self._came[: len(data)]
        return data

    # What goes to it.

    @property
    def waiting(self) -> bool:
        """Whether something was not written yet."""
        return bool(self._unsent)

    def allow_writes(self) -> None:
        self._permitted = True
        self._wanted.set()

    def mute(self) -> None:
        """Write no more, from this moment on; what comes is still read."""
        self._mute = True
        self._unsent.clear()
        self._room.set()

    def poke(self) -> None:
        """Something happened at the terminal: perhaps somebody else is in the foreground."""
        # Not in a turn of its own: a shell that has said that a job was stopped reads next.
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
        """What was written before this still goes, if the program takes it soon: a GOAWAY."""
        if not self._closed:
            self._closed = True
            self._more.set()
            self._room.set()
            self._wanted.set()
            loop = asyncio.get_running_loop()
            last = loop.call_later(LAST_SECONDS, self.abort)
            self._pump.add_done_callback(lambda _: last.cancel())

    def abort(self) -> None:
        """End it now, and take back what was not read."""
        self._closed = True
        self.mute()
        self._more.set()
        self._pump.cancel()
        if self.unread():
            self._discard_unread()

    def unread(self) -> int:
        """How much was written that the program has not read, for all that is known: of what was
        typed into a line that is not ended, the kernel does not tell."""
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
        """Until nothing of it runs any more."""
        await asyncio.wait({self._pump})

    async def _write_on(self) -> None:
        while True:
            while not (self._permitted and self._unsent):
                if self._closed:
                    return
                self._wanted.clear()
                await self._wanted.wait()
            if self._pty.unsent:
                await self._pty.drained()  # keys stand before this
            elif not self.held and reads_raw_input(self._pty, self.group) and self._alive():
                self._write_chunk()
                await self._until_read()
            else:
                self._check_foreground()
                await self._poke_or(LOOK_SECONDS)

    def _write_chunk(self) -> None:
        piece = bytes(self._unsent[: wire_limits.CHUNK_BYTES])
        del self._unsent[: len(piece)]
        self.written += len(piece)
        self.last_write = asyncio.get_running_loop().time()
        chunk = htty_chunk.encode(piece)
        self._pty.write(chunk)
        self._pending = True
        if not self._alive():
            self._discard_unread()  # it was killed meanwhile, which will be told
        if self._on_write is not None:
            self._on_write(chunk)
        if len(self._unsent) < limits.HTTY_UNSENT_BYTES:
            self._room.set()

    async def _until_read(self) -> None:
        """All of it, or so much that another chunk may follow."""
        pause = _SOON_SECONDS
        await asyncio.sleep(0)  # text and keys have their turn, in any case
        while self.unread() >= (wire_limits.CHUNK_BYTES if self._unsent else 1):
            self._check_foreground()
            await self._poke_or(pause)
            pause = min(2 * pause, LOOK_SECONDS)

    def _check_foreground(self) -> None:
        """Who would read what the program has not? Another, or the same that now reads lines: as
        long as the connection lasts it may be back, but not after that."""
        if not self._pending:
            return
        pty = self._pty
        left = pty.foreground() != self.group
        if (left or (self._closed and not reads_raw_input(pty, self.group))) and self.unread():
            self._discard_unread()
            self._lost()

    async def _poke_or(self, seconds: float) -> None:
        self._poked.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._poked.wait()
