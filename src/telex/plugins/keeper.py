"""One plugin over time: started when somebody needs it, started again when it failed, stopped when
nobody needs it for long.

A plugin that failed is not started again at once: each failure of late doubles the wait. One that
failed too often of late is left alone until its failures are old: a window that slides and not a
count, so that a plugin which fails once a week is never given up. Nothing is called twice: the
caller whose call was lost is told, and decides.

`plugin` is one life; `keepers` are all of a host's.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from telex.plugins import problems
from telex.plugins.plugin import Plugin, start
from telex.plugins.settings import Settings
from telex.plugins.window import Window
from telex.rpc.messages import ABSENT
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from telex.plugins.finding import Found
    from telex.protocols import plugin_v0 as spec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pace:
    """When a plugin is started again, and when it is stopped. Seconds."""

    failures: int = limits.PLUGIN_FAILURES
    window: float = limits.PLUGIN_WINDOW_SECONDS
    backoff: float = limits.PLUGIN_BACKOFF_MILLISECONDS / 1000
    longest: float = limits.PLUGIN_BACKOFF_SECONDS
    idle: float = limits.PLUGIN_IDLE_SECONDS

    def wait(self, failures: int) -> float:
        """From the last of so many failures to the next start."""
        return min(self.longest, self.backoff * 2 ** (failures - 1)) if failures else 0.0


class Keeper:
    """Close it. Belongs to the event loop it is used in."""

    def __init__(
        self, found: Found, settings: Settings | None = None, pace: Pace | None = None
    ) -> None:
        self.found, self.name = found, found.name
        self._settings, self._pace = settings or Settings(), pace or Pace()
        self._failures = Window(self._pace.failures, self._pace.window)
        self._last: problems.PluginFailed | None = None
        self._plugin: Plugin | None = None
        self._starting: asyncio.Task[Plugin] | None = None
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def running(self) -> Plugin | None:
        """The plugin, if it runs now."""
        return self._plugin if self._plugin and self._plugin.over is None else None

    async def call(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = limits.PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.Progress], None] | None = None,
    ) -> T:
        """As `Plugin.call`, of a plugin that is started for it if need be. The time is for both."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        async with self.using(timeout) as plugin:
            left = None if until is None else max(0.0, until - loop.time())
            answer: T = await plugin.call(
                method, params, returns=returns, timeout=left, on_progress=on_progress
            )
            return answer

    @asynccontextmanager
    async def using(self, timeout: float | None = None) -> AsyncIterator[Plugin]:
        """The running plugin, which is not stopped for being idle meanwhile."""
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            yield await self._within(timeout)
        finally:
            self._users -= 1
            self._watch_idleness()

    async def close(self) -> None:
        """Have it end, and wait for that. Whoever calls it afterwards is told so."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._plugin is not None:
            await self._plugin.close()

    async def _within(self, timeout: float | None) -> Plugin:
        try:
            async with asyncio.timeout(timeout):
                return await self._ready()
        except TimeoutError:
            what = f"could not be started within {problems.seconds(timeout or 0)}"
            raise problems.TimedOut(self.name, what, str(self._last or "")) from None

    async def _ready(self) -> Plugin:
        """The plugin that runs, or one that is started now, for all who ask at the same time."""
        if self._closed:
            raise problems.PluginOver(self.name, "was closed by its host")
        if (plugin := self.running) is not None:
            return plugin
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start(), name=f"start {self.name}")
            self._starting.add_done_callback(_seen)
        try:
            return await asyncio.shield(self._starting)
        except asyncio.CancelledError:
            if self._starting.cancelled():  # by `close`, and not we by our caller
                raise problems.PluginOver(self.name, "was closed by its host") from None
            raise

    async def _start(self) -> Plugin:
        loop = asyncio.get_running_loop()
        await self._settle()
        self._refuse_if_hopeless(loop.time())
        if (last := self._failures.last()) is not None:
            wait = self._pace.wait(self._failures.count(loop.time()))
            await asyncio.sleep(last + wait - loop.time())
        plugin = start(self.found, self._settings)
        try:
            await plugin.begin()
        except problems.PluginFailed as failure:
            self._fail(failure, loop.time())
            raise
        self._plugin = plugin
        return plugin

    async def _settle(self) -> None:
        """The one before is gone, and if it failed, that counts from when it did."""
        if (plugin := self._plugin) is None:
            return
        await plugin.gone()
        self._plugin = None
        if plugin.failed and plugin.why is not None and plugin.over_since is not None:
            self._fail(plugin.why, plugin.over_since)

    def _fail(self, failure: problems.PluginFailed, when: float) -> None:
        self._last = failure
        self._failures.add(when)

    def _refuse_if_hopeless(self, now: float) -> None:
        if (until := self._failures.full_until(now)) is None or self._last is None:
            return
        what = (
            f"failed {self._pace.failures} times within {self._pace.window:g} s and is left alone "
            f"for {until - now:.0f} s"
        )
        raise problems.LeftAlone(self.name, what, f"the last time it {self._last.reason}")

    def _watch_idleness(self) -> None:
        if self._users == 0 and not self._closed:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._pace.idle, self._stop)

    def _stop(self) -> None:
        if self.running is not None:
            self.running.signal_close()


def _seen(starting: asyncio.Task[Plugin]) -> None:
    """Those who waited were told; if none is left, nobody needs to be."""
    if not starting.cancelled():
        starting.exception()
