"""One object for both worlds: `async with` gives the asyncio client, `with` its blocking twin.

The blocking twin runs an event loop in a thread of its own (`Portal`), from `with` to its end;
nothing of it is left behind. Used by every client of telex: `telex.spawn`, `telex.adapt`,
`telex.escapes.connect`, `telex.htty.open`. So it loads nothing of automation until it raises.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

T = TypeVar("T")


class Closable(Protocol):
    """Something that must be closed."""

    async def close(self) -> None: ...


A = TypeVar("A", bound=Closable)
B = TypeVar("B")


class OpenedTwice(RuntimeError):
    """A `DualContext` is entered a second time."""


class Portal:
    """An event loop in a thread, and a way to run something in it and wait for that."""

    def __init__(self) -> None:
        self._ready: futures.Future[asyncio.AbstractEventLoop] = futures.Future()
        self._thread = threading.Thread(target=self._main, name="telex", daemon=True)
        self._thread.start()
        self._loop = self._ready.result()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. An interrupt here cancels it there, and goes on when it is over."""
        work_item = self._begin(work)
        try:
            return work_item.answer.result()
        except BaseException:
            if not work_item.answer.done():
                self._loop.call_soon_threadsafe(work_item.cancel)
                futures.wait([work_item.answer])
            raise

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _begin(self, work: Coroutine[Any, Any, T]) -> _LoopTask[T]:
        """Under the lock: what the loop accepts before it is told to end, it also ends."""
        with self._lock:
            if self._closed:
                work.close()
                raise _closed("it was closed: the block it was made for is over")
            work_item = _LoopTask(work)
            self._loop.call_soon_threadsafe(work_item.begin)
        return work_item

    def _main(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        self._over = asyncio.Event()
        self._ready.set_result(asyncio.get_running_loop())
        await self._over.wait()


def _closed(sentence: str) -> Exception:
    from telex.automation.errors import SessionClosed

    return SessionClosed(sentence, {})


class _LoopTask(Generic[T]):
    """Some work in the loop's thread, and its answer for another one."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.answer: futures.Future[T] = futures.Future()
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Comes after `begin`, as the loop keeps the order."""
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.answer.set_exception(_closed("it was closed meanwhile"))
        elif (error := task.exception()) is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(task.result())


class DualContext(Generic[A, B]):
    """A context manager to be entered once: by `async with`, or by `with` for the blocking twin."""

    def __init__(
        self, start: Callable[[], Awaitable[A]], blocking: Callable[[A, Portal], B]
    ) -> None:
        self._start = start
        self._blocking = blocking
        self._used = False
        self._opened: A | None = None
        self._portal: Portal | None = None

    def __await__(self) -> Generator[Any, None, A]:
        """Without a block: whoever awaits it closes it."""
        self._use()
        return self._start().__await__()

    async def __aenter__(self) -> A:
        self._use()
        self._opened = await self._start()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    def __enter__(self) -> B:
        self._use()
        self._portal = Portal()
        try:
            return self._blocking(self._portal.run(self._begin()), self._portal)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._portal is None:
            return
        try:
            if self._opened is not None:
                self._portal.run(self._opened.close())
        finally:
            self._portal.close()

    async def _begin(self) -> A:
        """Kept from here on: an interrupt may come between its start and its answer."""
        self._opened = await self._start()
        return self._opened

    def _use(self) -> None:
        if self._used:
            raise OpenedTwice("it was opened already; ask for a new one for each block")
        self._used = True
