"""The other end of a program's terminal, for tests of the program's side: it takes chunks out of
the program's output, keeps the text, and types keys and chunks. It does not parse HTTP/2."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from typing import TYPE_CHECKING, Any

from telex.htty.chunk_stream import ChunkReceiver
from telex.wire import htty_chunk
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.wire.escape import Claim


class FarEnd:
    """The terminal's side of a PTY; `fd` is the program's side."""

    def __init__(self, *, answers: bool, claims: tuple[Claim, ...]) -> None:
        self.ours, self.fd = os.openpty()
        os.set_blocking(self.ours, False)
        self.found = termios.tcgetattr(self.fd)
        self.shown = bytearray()
        self.carried = bytearray()
        self.faults: list[Claimed | Fault] = []
        self._answers = answers
        self._demux = Demux(claims)
        self._receiver = ChunkReceiver()
        self._queue = bytearray()
        self._more = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.resume()

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.fd)

    def restored(self) -> bool:
        return self.modes() == self.found

    def left(self) -> bytes:
        """Return the bytes that the next program would read."""
        raw = self.modes()
        raw[3] &= ~termios.ICANON
        raw[6][termios.VMIN] = raw[6][termios.VTIME] = 0
        termios.tcsetattr(self.fd, termios.TCSANOW, raw)
        return os.read(self.fd, 4096)

    def readable(self) -> int:
        """Return how many bytes of output are unread; Linux reports at most 4 KiB."""
        (count,) = struct.unpack("i", fcntl.ioctl(self.ours, termios.FIONREAD, bytes(4)))
        return int(count)

    def pause(self) -> None:
        self._loop.remove_reader(self.ours)

    def resume(self) -> None:
        self._loop.add_reader(self.ours, self._read)

    def type(self, data: bytes) -> None:
        self._queue += data
        self._loop.add_writer(self.ours, self._write)

    def send(self, data: bytes) -> None:
        self.type(htty_chunk.encode(data))

    @property
    def unsent(self) -> int:
        return len(self._queue)

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self._more.clear()
                await self._more.wait()

    async def carries(self, wanted: bytes) -> None:
        await self.until(lambda: wanted in self.carried)

    async def shows(self, wanted: bytes) -> None:
        await self.until(lambda: wanted in self.shown)

    def _read(self) -> None:
        try:
            data = os.read(self.ours, 65536)
        except BlockingIOError:
            return
        except OSError:
            self._loop.remove_reader(self.ours)
            return
        for event in self._demux.feed(data):
            match event:
                case Visible(visible):
                    self._show(visible)
                case Claimed() | Fault():
                    self._carry(event)
        self._more.set()

    def _show(self, visible: bytes) -> None:
        if self._answers:
            for _ in range(visible.count(b"\x1b[c")):
                self.type(b"\x1b[?62;22c")
        self.shown += visible.replace(b"\x1b[c", b"")

    def _carry(self, event: Claimed | Fault) -> None:
        found = self._receiver.take(event)
        if isinstance(found, bytes):
            self.carried += found
        else:
            self.faults.append(event)

    def _write(self) -> None:
        try:
            while self._queue:
                del self._queue[: os.write(self.ours, self._queue[:4096])]
        except BlockingIOError:
            return
        self._loop.remove_writer(self.ours)
        self._more.set()

    def hang_up(self) -> None:
        if self.ours >= 0:
            self._loop.remove_reader(self.ours)
            self._loop.remove_writer(self.ours)
            os.close(self.ours)
            self.ours = -1


@contextlib.asynccontextmanager
async def far_end(
    *, answers: bool = True, claims: tuple[Claim, ...] = (htty_chunk.CHUNK,)
) -> AsyncIterator[FarEnd]:
    """Open a terminal. `answers` responds to DA1; without `claims`, chunks count as text."""
    end = FarEnd(answers=answers, claims=claims)
    try:
        yield end
    finally:
        end.hang_up()
        os.close(end.fd)


class Shown:
    """The text that a program printed outside of chunks."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._more = asyncio.Event()

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace")

    def add(self, data: bytes) -> None:
        self._data += data
        self._more.set()

    async def sees(self, wanted: str) -> None:
        async with asyncio.timeout(60):
            while wanted not in self.text:
                self._more.clear()
                await self._more.wait()
