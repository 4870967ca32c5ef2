"""A socket in the event loop, for the server's ends of the sockets to the zygote and the workers.

Not an asyncio transport: to start a transport takes a task, and a plugin call is so short that the
layers of a transport would be most of its time. `send` writes at once; bytes that the kernel does
not accept are queued.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES: Final = 64 * 1024
"""Less than 128 KiB: the C library maps and unmaps a larger buffer for each read."""


class WorkerSocket:
    """Sends bytes in order, and calls `received` with bytes and `ended` at EOF."""

    def __init__(
        self, sock: socket.socket, received: Callable[[bytes], None], ended: Callable[[], None]
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._received, self._ended = received, ended
        self._unsent: deque[tuple[bytes, socket.socket | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock.fileno(), self._read)

    def send(self, data: bytes, along: socket.socket | None = None) -> None:
        """Send bytes, and pass on the socket `along`, whose descriptor here is closed. After
        `close` the bytes are dropped."""
        if self._sock.fileno() < 0:
            self._discard((data, along))
            return
        self._unsent.append((data, along))
        if len(self._unsent) == 1 and not self._write():
            self._loop.add_writer(self._sock.fileno(), self._on_writable)

    def close(self) -> None:
        """Stop to read and write, and drop unsent bytes. `ended` is not called."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
        while self._unsent:
            self._discard(self._unsent.popleft())

    def _read(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:  # the process exited before it read all that was sent
            data = b""
        if data:
            self._received(data)
        else:
            self.close()
            self._ended()

    def _on_writable(self) -> None:
        if self._write():
            self._loop.remove_writer(self._sock.fileno())

    def _write(self) -> bool:
        """Write queued bytes. Return whether all were sent."""
        while self._unsent:
            data, along = self._unsent.popleft()
            sent = self._offer(data, along)
            if sent < len(data):
                self._unsent.appendleft((data[sent:], None if sent else along))
                return False
        return True

    def _offer(self, data: bytes, along: socket.socket | None) -> int:
        """Return how many bytes the kernel accepted. Bytes to a closed socket count as accepted,
        because `_read` reports its EOF."""
        try:
            if along is None:
                return self._sock.send(data)
            return _send_along(self._sock, data, along)
        except BlockingIOError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            self._discard((data, along))
            return len(data)

    @staticmethod
    def _discard(unsent: tuple[bytes, socket.socket | None]) -> None:
        if unsent[1] is not None:
            unsent[1].close()


def _send_along(sock: socket.socket, data: bytes, along: socket.socket) -> int:
    sent = socket.send_fds(sock, [data], [along.fileno()])
    along.close()
    return sent
