"""Work that finishes even if its caller is cancelled.

A file may be half written, or a process tree half ended: a thread cannot be stopped, and a
termination that is cut short leaves processes behind. So a cancelled caller waits until the work is
done, and only then raises the cancellation.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def run_shielded(work: Awaitable[T], on_cancel: Callable[[], None] | None = None) -> T:
    """Return the result of the work, which runs to completion however often this is cancelled.

    Args:
        on_cancel: Called at each cancellation, to signal that the result is no longer wanted.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()


async def run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run blocking work in a thread, shielded; its event is set when the caller is cancelled."""
    unwanted = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(None, work, unwanted)
    return await run_shielded(running, unwanted.set)
