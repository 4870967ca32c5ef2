"""Finish even if cancelled: work that a cancellation waits for.

A file half written, a tree of processes half ended: a thread cannot be stopped, and an ending that
is cut short leaves processes behind. So a cancelled caller waits until the work is over, and the
cancellation is raised then.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def run_shielded(work: Awaitable[T], on_cancel: Callable[[], None] | None = None) -> T:
    """The work's result. However often this is cancelled meanwhile, the work goes on to its end;
    `on_cancel` may let it know that nobody wants the result."""
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
    """The same for work that blocks, in a thread. Its event is set when nobody wants the result."""
    unwanted = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(None, work, unwanted)
    return await run_shielded(running, unwanted.set)
