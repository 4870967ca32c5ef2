"""When a program has read what was typed: the kernel tells it to who asks in the right way.

Linux wakes those who wait to write into a terminal whenever its program has read nearly all there
was (`n_tty_check_unthrottle`), also if they could have written before. Edge-triggered, epoll hands
on each such wake-up. Where it does not, whoever waits for this must look for themselves.

Made by `Pty.reading`, for pages, which write the next piece when the last was read.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Reading:
    """Of one terminal. Close it."""

    def __init__(self, master: int, told: Callable[[], None]) -> None:
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._epoll.register(master, select.EPOLLOUT | select.EPOLLET)
        self._loop.add_reader(self._epoll.fileno(), self._woken)

    def _woken(self) -> None:
        self._epoll.poll(0)  # so that it is told once
        self._told()

    def close(self) -> None:
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
