"""Plugins over time: each is started when somebody needs it, started again when it failed, and
stopped when nobody needed it for long.

A plugin that failed is not started again at once: each failure of late doubles the wait. One that
failed too often of late is suspended until its failures are old: a window that slides and not a
count, so that a plugin which fails once a week is never given up. Nothing is called twice: the
caller whose call was lost is told, and decides.

    async with PluginSupervisors(discovery.find(…).found, settings) as supervisors:
        await supervisors["hello"].call("runCommand", …)

What one plugin does touches none of the others. `client` is one life of one of them.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from telex.plugins import errors, limits
from telex.plugins.client import RunningPlugin, start
from telex.plugins.conversation import SlidingWindow
from telex.plugins.plugin_settings import PluginSettings
from telex.rpc.messages import ABSENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from types import TracebackType

    from telex.plugins import protocol as spec
    from telex.plugins.discovery import FoundPlugin


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When a plugin is started again, and when it is stopped. Seconds."""

    failures: int = limits.PLUGIN_FAILURES
    window: float = limits.PLUGIN_WINDOW_SECONDS
    backoff: float = limits.PLUGIN_BACKOFF_MILLISECONDS / 1000
    longest: float = limits.PLUGIN_BACKOFF_SECONDS
    idle: float = limits.PLUGIN_IDLE_SECONDS

    def wait(self, failures: int) -> float:
        """From the last of so many failures to the next start."""
        return min(self.longest, self.backoff * 2 ** (failures - 1)) if failures else 0.0


class PluginSupervisor:
    """One plugin over time. Belongs to the event loop it is used in; call `close()` at the end."""

    def __init__(
        self,
        found: FoundPlugin,
        settings: PluginSettings | None = None,
        pace: RestartPolicy | None = None,
    ) -> None:
        self.found, self.name = found, found.name
        self._settings, self._pace = settings or PluginSettings(), pace or RestartPolicy()
        self._failures = SlidingWindow(self._pace.failures, self._pace.window)
        self._last: errors.PluginError | None = None
        self._plugin: RunningPlugin | None = None
        self._starting: asyncio.Task[RunningPlugin] | None = None
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def running(self) -> RunningPlugin | None:
        """The plugin, if it runs now."""
        return self._plugin if self._plugin and self._plugin.end_reason is None else None

    async def call(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = limits.PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> T:
        """As `RunningPlugin.call`, of a plugin started for it if need be. The time is for both."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        async with self.acquire(timeout) as plugin:
            left = None if until is None else max(0.0, until - loop.time())
            answer: T = await plugin.call(
                method, params, returns=returns, timeout=left, on_progress=on_progress
            )
            return answer

    @asynccontextmanager
    async def acquire(self, timeout: float | None = None) -> AsyncIterator[RunningPlugin]:
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

    async def _within(self, timeout: float | None) -> RunningPlugin:
        try:
            async with asyncio.timeout(timeout):
                return await self._ready()
        except TimeoutError:
            what = f"could not be started within {errors.seconds(timeout or 0)}"
            raise errors.PluginTimedOut(self.name, what, str(self._last or "")) from None

    async def _ready(self) -> RunningPlugin:
        """The plugin that runs, or one that is started now, for all who ask at the same time."""
        if self._closed:
            raise errors.PluginEnded(self.name, "was closed by its host")
        if (plugin := self.running) is not None:
            return plugin
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start(), name=f"start {self.name}")
            self._starting.add_done_callback(_seen)
        try:
            return await asyncio.shield(self._starting)
        except asyncio.CancelledError:
            if self._starting.cancelled():  # by `close`, and not we by our caller
                raise errors.PluginEnded(self.name, "was closed by its host") from None
            raise

    async def _start(self) -> RunningPlugin:
        loop = asyncio.get_running_loop()
        await self._settle()
        self._refuse_if_hopeless(loop.time())
        if (last := self._failures.last()) is not None:
            wait = self._pace.wait(self._failures.count(loop.time()))
            await asyncio.sleep(last + wait - loop.time())
        plugin = start(self.found, self._settings)
        try:
            await plugin.begin()
        except errors.PluginError as failure:
            self._fail(failure, loop.time())
            raise
        self._plugin = plugin
        return plugin

    async def _settle(self) -> None:
        """The one before is gone, and if it failed, that counts from when it did."""
        if (plugin := self._plugin) is None:
            return
        await plugin.wait_ended()
        self._plugin = None
        if plugin.failed and plugin.ended is not None and plugin.ended_at is not None:
            self._fail(plugin.ended, plugin.ended_at)

    def _fail(self, failure: errors.PluginError, when: float) -> None:
        self._last = failure
        self._failures.add(when)

    def _refuse_if_hopeless(self, now: float) -> None:
        if (until := self._failures.full_until(now)) is None or self._last is None:
            return
        what = (
            f"failed {self._pace.failures} times within {self._pace.window:g} s and is left alone "
            f"for {until - now:.0f} s"
        )
        raise errors.PluginSuspended(self.name, what, f"the last time it {self._last.reason}")

    def _watch_idleness(self) -> None:
        if self._users == 0 and not self._closed:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._pace.idle, self._stop)

    def _stop(self) -> None:
        if self.running is not None:
            self.running.signal_close()


def _seen(starting: asyncio.Task[RunningPlugin]) -> None:
    """Those who waited were told; if none is left, nobody needs to be."""
    if not starting.cancelled():
        starting.exception()


class PluginSupervisors:
    """A host's plugins by name; nothing is started by this. A context manager."""

    def __init__(
        self,
        found: Iterable[FoundPlugin],
        settings: PluginSettings | None = None,
        pace: RestartPolicy | None = None,
    ) -> None:
        self._supervisors = {one.name: PluginSupervisor(one, settings, pace) for one in found}

    def __getitem__(self, name: str) -> PluginSupervisor:
        try:
            return self._supervisors[name]
        except KeyError:
            there = ", ".join(sorted(self._supervisors)) or "none"
            raise errors.PluginNotStarted(name, "is not there", f"there are: {there}") from None

    def __iter__(self) -> Iterator[PluginSupervisor]:
        return iter(self._supervisors.values())

    def __len__(self) -> int:
        return len(self._supervisors)

    async def close(self) -> None:
        """End all at once. Each goes down its own ladder, however long the others take."""
        ends = (supervisor.close() for supervisor in self._supervisors.values())
        outcomes = await asyncio.gather(*ends, return_exceptions=True)
        if mistakes := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
            raise ExceptionGroup("plugins could not be closed", mistakes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
