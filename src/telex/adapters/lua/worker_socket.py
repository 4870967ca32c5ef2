"""A socket in the event loop, with nothing between: for the server's ends of those to workers.

Not an asyncio transport: starting one takes a task, and a call of a plugin is short enough that the
layers between would be most of it. Writes are tried at once; what the kernel does not take waits.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES: Final = 64 * 1024
"""Less than 128 KiB: what is larger, the C library maps and unmaps for each read."""


class WorkerSocket:
    """Bytes out in order, bytes in as they come, and the other side's end."""

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
        """Send, with a socket that is given away; ours of it is closed. A closed one takes all."""
        if self._sock.fileno() < 0:
            self._give_up((data, along))
            return
        self._unsent.append((data, along))
        if len(self._unsent) == 1 and not self._write():
            self._loop.add_writer(self._sock.fileno(), self._go_on)

    def close(self) -> None:
        """No more of either. `ended` is not called."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
        while self._unsent:
            self._give_up(self._unsent.popleft())

    def _read(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:  # it ended with something of ours unread
            data = b""
        if data:
            self._received(data)
        else:
            self.close()
            self._ended()

    def _go_on(self) -> None:
        if self._write():
            self._loop.remove_writer(self._sock.fileno())

    def _write(self) -> bool:
        """Whether all is sent."""
        while self._unsent:
            data, along = self._unsent.popleft()
            sent = self._offer(data, along)
            if sent < len(data):
                self._unsent.appendleft((data[sent:], None if sent else along))
                return False
        return True

    def _offer(self, data: bytes, along: socket.socket | None) -> int:
        """How much the kernel took. What nobody is there to read counts as taken: the reader will
        see the end."""
        try:
            if along is None:
                return self._sock.send(data)
            return _send_along(self._sock, data, along)
        except BlockingIOError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            self._give_up((data, along))
            return len(data)

    @staticmethod
    def _give_up(unsent: tuple[bytes, socket.socket | None]) -> None:
        if unsent[1] is not None:
            unsent[1].close()


def _send_along(sock: socket.socket, data: bytes, along: socket.socket) -> int:
    sent = socket.send_fds(sock, [data], [along.fileno()])
    along.close()
    return sent
