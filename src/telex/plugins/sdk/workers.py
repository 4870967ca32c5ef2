"""The threads that plain functions run in.

Not an executor of the standard library: Python waits for those when it exits, and a plugin that is
told to end must not wait for a function that does not look at `call.cancelled`. These threads are
daemons. There are never more than calls at once, which the peer bounds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Workers:
    """Belongs to the event loop it is made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._free = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Its result, or what it raises. Cancelling this stops the waiting and not the work."""
        done: asyncio.Future[Any] = self._loop.create_future()
        if self._free:
            self._free -= 1
        else:
            threading.Thread(target=self._work, name="plugin worker", daemon=True).start()
        self._jobs.put((work, done))
        return await done

    def _work(self) -> None:
        while True:
            work, done = self._jobs.get()
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  it is raised again, where it is awaited
                told: tuple[Callable[[Any], None], Any] = (done.set_exception, _told(error))
            else:
                told = (done.set_result, result)
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(self._finish, done, *told)

    def _finish(self, done: asyncio.Future[Any], tell: Callable[[Any], None], what: Any) -> None:
        self._free += 1
        if not done.done():
            tell(what)


def _told(error: BaseException) -> BaseException:
    """A function that calls `sys.exit` has failed; the plugin has not been told to end."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    told = RuntimeError(f"it raised {error!r}")
    told.__cause__ = error
    return told
