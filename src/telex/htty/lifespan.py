"""An ASGI app's beginning and end: what it sets up before the first request, and takes down after
the last. An app that knows nothing of it is served without. Used by `asgi`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from telex.wire import limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

log = logging.getLogger("telex.htty")


class StartupFailed(Exception):
    """The app could not begin. The sentence holds what it said."""


class Lifespan:
    """One app, from `begin` to `end`."""

    def __init__(self, app: ASGIApp) -> None:
        self.state: dict[str, Any] = {}
        """What the app wants each of its requests to know."""
        self._app = app
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Until the app is ready, or has shown that it takes no part. Raises StartupFailed."""
        self._task = asyncio.create_task(self._run(), name="htty lifespan")
        self._to_app.put_nowait({"type": "lifespan.startup"})
        try:
            await self._began
        except BaseException:
            await self._cancel(self._task)
            raise

    async def end(self) -> None:
        """Let it take down what it set up, as long as `HTTY_GRACE_SECONDS`."""
        task = self._task
        if task is None:
            return
        if not task.done():
            self._to_app.put_nowait({"type": "lifespan.shutdown"})
            try:
                async with asyncio.timeout(limits.HTTY_GRACE_SECONDS):
                    await self._ended.wait()
            except TimeoutError:
                log.warning("the app did not shut down in %d s", limits.HTTY_GRACE_SECONDS)
        await self._cancel(task)

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        try:
            await self._app(scope, self._to_app.get, self._take)
        except Exception as error:
            if self._began.done() and self._began.exception() is None:
                log.error("the app failed outside of any request", exc_info=error)
        finally:
            self._ended.set()
            if not self._began.done():
                self._began.set_result(None)

    async def _take(self, message: Message) -> None:
        match message["type"]:
            case "lifespan.startup.complete":
                self._answer(None)
            case "lifespan.startup.failed":
                said = str(message.get("message", "")).strip()
                self._answer(StartupFailed(f"the app could not start: {said or 'it did not say'}"))
            case "lifespan.shutdown.complete":
                self._ended.set()
            case "lifespan.shutdown.failed":
                log.error("the app could not shut down: %s", message.get("message", ""))
                self._ended.set()
            case other:
                raise RuntimeError(f"{other!r} is no message of a lifespan")

    def _answer(self, failure: StartupFailed | None) -> None:
        if self._began.done():
            return
        if failure is None:
            self._began.set_result(None)
        else:
            self._began.set_exception(failure)

    async def _cancel(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        _ = await asyncio.wait({task}, timeout=limits.HTTY_GRACE_SECONDS)
