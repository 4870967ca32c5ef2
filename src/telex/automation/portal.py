"""One object for both kinds of callers: `async with` gives the asyncio client, `with` the blocking.

The blocking client runs an event loop in a thread (`Portal`) while its `with` block lasts. Every
client of telex uses this: `telex.spawn`, `telex.adapt`, `telex.escapes.connect`, `telex.agent`. So
this module imports nothing of automation before it has to raise one of its exceptions.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from concurrent import futures
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

T = TypeVar("T")


def hides_frames(info: Any) -> bool:
    """Return whether pytest leaves the frames of the client out of a traceback, for a module's
    `__tracebackhide__`: if the exception is a public one, raised on purpose. Then the traceback
    ends in the line of the test."""
    return type(info.value).__module__ == "telex"


__tracebackhide__ = hides_frames

CLOSE_SECONDS: Final = 10.0
"""How long `Portal.close` waits for its thread. Cancelled tasks need milliseconds."""


class Closable(Protocol):
    """An object with an asynchronous `close`."""

    async def close(self) -> None: ...


A = TypeVar("A", bound=Closable)
B = TypeVar("B")


def end_abandoned(
    loop: asyncio.AbstractEventLoop, end: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Close an object that was dropped without `close`, if its event loop still runs."""
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(end(), loop)


class OpenedTwice(RuntimeError):
    """The result of `spawn`, `connect`, `adapt` or `attach` was entered a second time."""

    __module__ = "telex"


class Portal:
    """An event loop in a thread. `run` executes a coroutine there and waits for its result."""

    def __init__(self) -> None:
        self._ready: futures.Future[asyncio.AbstractEventLoop] = futures.Future()
        self._thread = threading.Thread(target=self._main, name="telex", daemon=True)
        self._thread.start()
        self._loop = self._ready.result()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. KeyboardInterrupt cancels the coroutine, waits for
        its end, and is raised again."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a blocking call in the event loop of its own client would wait for itself; "
                "use a plain function, or the asyncio class"
            )
        work_item = self._begin(work)
        try:
            error = work_item.answer.exception()
        except BaseException:
            if not work_item.answer.done():
                self._loop.call_soon_threadsafe(work_item.cancel)
                futures.wait([work_item.answer])
            raise
        if error is None:
            return work_item.answer.result()
        try:
            raise error  # not by `result`, whose frames a traceback would show
        finally:
            del error, work_item  # the exception refers to this frame

    def close(self) -> None:
        """End the loop and wait for its thread. A task that swallows its cancellation keeps the
        thread; it is a daemon, so it ends with the process at the latest."""
        with self._lock:
            self._closed = True
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            sentence = "a task of this client ignores its cancellation; its thread was left running"
            warnings.warn(sentence, RuntimeWarning, stacklevel=3)

    def _begin(self, work: Coroutine[Any, Any, T]) -> _LoopTask[T]:
        """Start a coroutine, under the lock: the loop finishes all work accepted before `close`."""
        with self._lock:
            if self._closed:
                work.close()
                raise _closed("it was closed: its `with` block has ended")
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
    """A task in the loop's thread, and a future with its result for the calling thread."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.answer: futures.Future[T] = futures.Future()
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Cancel the task. The loop runs this after `begin`, as it keeps the order of callbacks."""
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
    """The result of `spawn`, `connect` or `adapt`: nothing has started yet. Enter it once.

    `with` gives the blocking object, `async with` the one for asyncio. `await` gives the latter
    without a block; then you must close it.

    Example:
        opening = telex.spawn("python3 -q")
        with opening as term:
            term.wait(">>> ")
    """

    __module__ = "telex"

    def __init__(
        self,
        start: Callable[[], Awaitable[A]],
        blocking: Callable[[A, Portal], B],
        made_by: str,
        name: str,
    ) -> None:
        """`made_by` is the call that made it, and `name` the usual name of what it gives: both are
        for the sentence that says how to open it."""
        self._start = start
        self._blocking = blocking
        self._made_by = made_by
        self._name = name
        self._used = False
        self._opened: A | None = None
        self._portal: Portal | None = None

    def __repr__(self) -> str:
        return f"<{self._made_by}, to be opened by `with`{', opened' if self._used else ''}>"

    if not TYPE_CHECKING:  # a type checker then reports the mistake as well

        def __getattr__(self, name: str) -> NoReturn:
            """Explain the usual mistake: using the object without entering it."""
            if name.startswith("_"):  # asked by Python and by tools that print objects
                raise AttributeError(f"DualContext has no attribute {name!r}")
            raise AttributeError(
                f"{self._made_by} is not open: write `with {self._made_by} as {self._name}:` "
                f"(or `async with`) and use `{self._name}.{name}` inside"
            )

    def __await__(self) -> Generator[Any, None, A]:
        """Start without a block. The caller must close the result."""
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
        """Start, and keep the result here: an interrupt may come before the caller gets it."""
        self._opened = await self._start()
        return self._opened

    def _use(self) -> None:
        if self._used:
            raise OpenedTwice("already opened; make a new one for each `with` block")
        self._used = True
