"""Parts of a file on their way into a program, and the keys that stop or end it.

A part is typed, and who reads the terminal then reads it. Ctrl-Z and Ctrl-C change who that is:
the kernel throws away what the program has not read, and what follows comes to the shell, as if
the person had typed it. So such a key waits a moment until the program has read what was sent, and
nothing follows it until the program is there again: in the foreground, and without echo. The kernel
tells of neither, so there is a look now and then, while a stream waits and at no other time.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from telex.escapes.foreground import answerable

if TYPE_CHECKING:
    from telex.terminal.pty import Pty

LOOK_SECONDS: Final = 0.1
_READ_SECONDS: Final = 0.3
"""So long a key waits for a program that does not read. Then what was sent is thrown away."""
_READ_LOOK_SECONDS: Final = 0.005
_LEAVING_SECONDS: Final = 0.5
"""After such a key, a program that has not left the foreground will not leave it for that key."""


class Flow:
    """Into the programs on one terminal."""

    def __init__(self, pty: Pty) -> None:
        self._pty = pty
        self._loop = asyncio.get_running_loop()
        self._not_before = float("-inf")

    def ends_with(self, data: bytes) -> bool:
        """Whether a key in this is a signal, with which the program may leave."""
        now = self._pty.line_settings()
        signals = (now.interrupt, now.quit, now.suspend) if now.signals else ()
        return any(one and one in data for one in signals)

    async def clear(self) -> None:
        """Send no more. Returns when all that was sent is read, or thrown away."""
        self._not_before = float("inf")
        try:
            async with asyncio.timeout(_READ_SECONDS):
                await self._pty.drained()
                await self._read()
        except TimeoutError:
            self._pty.discard()
        finally:
            self._not_before = self._loop.time() + _LEAVING_SECONDS

    async def _read(self) -> None:
        """Until nothing was unread for two looks: bytes may be on their way within the kernel."""
        looks = 0
        while looks < 2:
            await asyncio.sleep(_READ_LOOK_SECONDS)
            looks = 0 if self._pty.unread() else looks + 1

    async def open(self, group: int) -> bool:
        """Until something can be sent to it. False if it is gone."""
        while not self._is_open(group):
            if not exists(group):
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    def _is_open(self, group: int) -> bool:
        return (
            self._loop.time() >= self._not_before
            and self.reads(group)
            and not self._pty.line_settings().echo
        )

    def reads(self, group: int) -> bool:
        """Whether it is in the foreground."""
        return answerable(self._pty.foreground()) == group


def exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's, as under sudo
        return True
    return True
