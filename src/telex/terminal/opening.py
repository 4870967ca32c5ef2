"""One way to open a thing for both worlds: `async with` gives it, `with` gives its blocking twin.

The blocking one runs an event loop in a thread of its own, from `with` to its end; nothing of it
is left behind.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

T = TypeVar("T")


class Closable(Protocol):
    """What can be opened here."""

    async def close(self) -> None: ...


A = TypeVar("A", bound=Closable)
B = TypeVar("B")


class Portal:
    """An event loop in a thread, and a way to run something in it and wait for that."""

    def __init__(self) -> None:
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._main, name="telex", daemon=True)
        self._thread.start()
        self._loop = self._ready.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. An interrupt here cancels it there."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _main(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        self._over = asyncio.Event()
        self._ready.set_result(asyncio.get_running_loop())
        await self._over.wait()


class Opening(Generic[A, B]):
    """Something to be entered, once."""

    def __init__(
        self, start: Callable[[], Awaitable[A]], blocking: Callable[[A, Portal], B]
    ) -> None:
        self._start = start
        self._blocking = blocking
        self._opened: A | None = None
        self._portal: Portal | None = None

    def __await__(self) -> Generator[Any, None, A]:
        """Without a block: whoever awaits it closes it."""
        return self._start().__await__()

    async def __aenter__(self) -> A:
        self._opened = await self._start()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    def __enter__(self) -> B:
        self._portal = portal = Portal()
        try:
            self._opened = opened = portal.run(self._begin())
        except BaseException:
            portal.close()
            raise
        return self._blocking(opened, portal)

    def __exit__(self, *_: object) -> None:
        portal, opened = self._portal, self._opened
        if portal is None or opened is None:
            return
        try:
            portal.run(opened.close())
        finally:
            portal.close()

    async def _begin(self) -> A:
        return await self._start()
