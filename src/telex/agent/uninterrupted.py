"""Work that a cancellation waits for: a file half written, a tree of processes half ended.

After a cancelled run nothing may happen any more. A thread cannot be stopped, and an ending that is
cut short leaves processes behind; so whoever cancels waits until the work is over, and the
cancellation is raised then. Used by the tools and by `commands`.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def to_the_end(work: Awaitable[T], on_cancel: Callable[[], None] | None = None) -> T:
    """What the work gives. However often this is cancelled meanwhile, the work goes on to its end;
    `on_cancel` may tell it that nobody wants the result."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as told:
            cancelled = told
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """The same for work that blocks. It is given what is set when nobody wants its result."""
    unwanted = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(None, work, unwanted)
    return await to_the_end(running, unwanted.set)
