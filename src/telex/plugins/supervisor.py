"""Supervisors of plugins: start a plugin at the first call, restart it after a failure, stop it
when it is idle.

A plugin that failed is started again after a wait, which doubles with each recent failure. A plugin
that failed too often within a sliding window is suspended until the failures are old. A plain count
would in time disable a plugin that fails once a week. A call is never repeated: the caller of a
lost call gets an error and decides.

    async with PluginSupervisors(discovery.find(…).found, settings) as supervisors:
        await supervisors["hello"].call("runCommand", …)

A failing plugin does not affect the others. `client` has one run of one plugin.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from telex.plugins import errors, limits
from telex.plugins.client import RunningPlugin, start
from telex.plugins.dialect import SlidingWindow
from telex.plugins.plugin_settings import CallDeadline, PluginSettings
from telex.rpc.messages import ABSENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from telex.plugins import protocol as spec
    from telex.plugins.discovery import FoundPlugin


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When a plugin is started again, and when it is stopped. All times are in seconds."""

    failures: int = limits.PLUGIN_FAILURES
    window: float = limits.PLUGIN_WINDOW_SECONDS
    backoff: float = limits.PLUGIN_BACKOFF_MILLISECONDS / 1000
    longest: float = limits.PLUGIN_BACKOFF_SECONDS
    idle: float = limits.PLUGIN_IDLE_SECONDS

    def wait(self, failures: int) -> float:
        """Return the wait from the last of so many failures to the next start."""
        return min(self.longest, self.backoff * 2 ** (failures - 1)) if failures else 0.0


class PluginSupervisor:
    """Runs one plugin, and restarts it. For one event loop; call `close()` at the end."""

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
        """The running plugin, or None."""
        return self._plugin if self._plugin and self._plugin.end_reason is None else None

    async def call(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | CallDeadline | None = limits.PLUGIN_CALL_SECONDS,
        on_progress: Callable[[spec.ProgressNotice], None] | None = None,
    ) -> T:
        """Call as `RunningPlugin.call`, after starting the plugin if it does not run. The timeout
        includes the start."""
        deadline = CallDeadline.of(timeout)
        async with self.acquire(deadline) as plugin:
            answer: T = await plugin.call(
                method, params, returns=returns, timeout=deadline, on_progress=on_progress
            )
            return answer

    @asynccontextmanager
    async def acquire(
        self, timeout: float | CallDeadline | None = None
    ) -> AsyncIterator[RunningPlugin]:
        """Start the plugin if it does not run, and keep it from being stopped as idle within this
        context."""
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            yield await self._within(CallDeadline.of(timeout))
        finally:
            self._users -= 1
            self._start_idle_timer()

    async def close(self) -> None:
        """End the plugin and wait. Later calls raise PluginEnded."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._plugin is not None:
            await self._plugin.close()

    async def _within(self, deadline: CallDeadline) -> RunningPlugin:
        try:
            async with deadline.clock():
                return await self._ready()
        except TimeoutError:
            hint = str(self._last or "")
            raise deadline.missed(self.name, "could not be started", hint) from None

    async def _ready(self) -> RunningPlugin:
        """Return the running plugin, or start it. Concurrent callers share one start."""
        if self._closed:
            raise errors.PluginEnded(self.name, "was closed by its host")
        if (plugin := self.running) is not None:
            return plugin
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start(), name=f"start {self.name}")
            self._starting.add_done_callback(_retrieve_exception)
        try:
            return await asyncio.shield(self._starting)
        except asyncio.CancelledError:
            if self._starting.cancelled():  # by `close`, and not this task by its caller
                raise errors.PluginEnded(self.name, "was closed by its host") from None
            raise

    async def _start(self) -> RunningPlugin:
        loop = asyncio.get_running_loop()
        await self._finish_previous()
        self._raise_if_suspended(loop.time())
        if (last := self._failures.last()) is not None:
            wait = self._pace.wait(self._failures.count(loop.time()))
            await asyncio.sleep(last + wait - loop.time())
        plugin = start(self.found, self._settings)
        try:
            await plugin.begin()
        except errors.PluginError as failure:
            self._record_failure(failure, loop.time())
            raise
        self._plugin = plugin
        return plugin

    async def _finish_previous(self) -> None:
        """Wait for the end of the previous process. Record its failure at the time it happened."""
        if (plugin := self._plugin) is None:
            return
        await plugin.wait_ended()
        self._plugin = None
        if plugin.failed and plugin.ended is not None and plugin.ended_at is not None:
            self._record_failure(plugin.ended, plugin.ended_at)

    def _record_failure(self, failure: errors.PluginError, when: float) -> None:
        self._last = failure
        self._failures.add(when)

    def _raise_if_suspended(self, now: float) -> None:
        if (until := self._failures.full_until(now)) is None or self._last is None:
            return
        what = (
            f"failed {self._pace.failures} times within {self._pace.window:g} s and is suspended "
            f"for {until - now:.0f} s"
        )
        raise errors.PluginSuspended(self.name, what, f"the last time it {self._last.reason}")

    def _start_idle_timer(self) -> None:
        if self._users == 0 and not self._closed:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._pace.idle, self._stop_idle)

    def _stop_idle(self) -> None:
        if self.running is not None:
            self.running.signal_close()


def _retrieve_exception(starting: asyncio.Task[RunningPlugin]) -> None:
    """Mark the exception as retrieved: if all callers were cancelled, asyncio would log it."""
    if not starting.cancelled():
        starting.exception()


class PluginSupervisors:
    """The supervisors of a host's plugins, by name. A context manager that ends all at its exit; it
    starts no plugin."""

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
            raise errors.PluginNotStarted(name, "does not exist", f"there are: {there}") from None

    def __iter__(self) -> Iterator[PluginSupervisor]:
        return iter(self._supervisors.values())

    def __len__(self) -> int:
        return len(self._supervisors)

    async def close(self) -> None:
        """End all plugins at the same time. A slow plugin does not delay the others."""
        ends = (supervisor.close() for supervisor in self._supervisors.values())
        outcomes = await asyncio.gather(*ends, return_exceptions=True)
        if failures := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
            raise ExceptionGroup("plugins could not be closed", failures)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
