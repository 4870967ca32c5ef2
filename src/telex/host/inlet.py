"""Bytes from the person, or from whatever stands in for one, as they come.

One read a turn and nothing kept: a key is with the program before the next thing is looked at.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

from telex.host.apart import ready_always
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable


class Inlet:
    """Reads a non-blocking descriptor from `resume` to its end, or until closed."""

    def __init__(self, fd: int, got: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._fd = fd
        self._got = got
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._flowing = False
        self._over = False
        self._always = ready_always(fd)
        """No event loop watches a file; but then it never makes anybody wait."""

    def resume(self) -> None:
        if not self._flowing and not self._over:
            self._flowing = True
            if self._always:
                self._loop.call_soon(self._read)
            else:
                self._loop.add_reader(self._fd, self._read)

    def pause(self) -> None:
        if self._flowing and not self._always:
            self._loop.remove_reader(self._fd)
        self._flowing = False

    def close(self) -> None:
        self.pause()
        self._over = True

    def _read(self) -> None:
        if not self._flowing:
            return
        try:
            data = os.read(self._fd, limits.OUTPUT_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""  # a terminal that has hung up
        if not data:
            self.close()
            self._ended()
            return
        if self._always:
            self._loop.call_soon(self._read)
        self._got(data)
