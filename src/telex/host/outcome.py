"""How a run ends: with the program, by a signal to us, or by a fault of ours.

What goes on beside it, in tasks, ends with it, and a fault in one of them is the end. Used by
`run.Host`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

HURRY_SECONDS: Final = 1.0
"""How long the last output may take to be shown when we are told to end."""


class Outcome:
    """Of one run."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[int | None] = self._loop.create_future()
        """The exit code, where it is not the program's."""
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def end(self, code: int | None) -> None:
        """It is over; without a code, because the program is."""
        if code is not None:
            self._hurry.set()
        if not self.over.done():
            self.over.set_result(code)

    def fail(self, error: BaseException) -> None:
        self._hurry.set()
        if not self.over.done():
            self.over.set_exception(error)

    def fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of ours broke in a callback. Going on would lose output or keys."""
        self.fail(context.get("exception") or RuntimeError(context["message"]))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside all else, and no longer than it."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def stop_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.fail(error)

    async def unless_hurried(self, work: Awaitable[None]) -> None:
        """To its end; not for ever, once we were told to end."""
        flushed = asyncio.ensure_future(work)
        hurried = self._loop.create_task(self._hurry.wait())
        try:
            await asyncio.wait({flushed, hurried}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({flushed}, timeout=HURRY_SECONDS)
        finally:
            flushed.cancel()
            hurried.cancel()
