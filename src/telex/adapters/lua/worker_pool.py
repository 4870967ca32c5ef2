"""All plugin instances of one server, and the zygote that forks their workers.

The zygote is started for the first worker. A zygote that was killed is replaced for the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

from telex.adapters.lua.instance import Instance
from telex.adapters.lua.zygote import Worker, Zygote
from telex.processes.termination import AT_ONCE
from telex.transports import limits

if TYPE_CHECKING:
    from types import TracebackType

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.processes.child import Child


class WorkerPool:
    """Creates instances, and ends all their processes on `close`."""

    def __init__(self) -> None:
        self._zygote: Zygote | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._instances: set[Instance] = set()
        self._closed = False

    def instance(self, plugin: LuaPlugin) -> Instance:
        """Return a new instance of the plugin. Its worker is started by the first call."""
        instance = Instance(plugin, self._start_worker, self._instances.discard)
        if self._closed:
            instance.close_nowait()
        else:
            self._instances.add(instance)
        return instance

    async def close(self) -> None:
        """End all workers and the zygote, and wait. Pending calls fail with kind `closed`."""
        self._closed = True
        for instance in list(self._instances):
            instance.close_nowait()
        if self._zygote is not None:
            self._zygote.close()
        if self._endings:
            await asyncio.wait(self._endings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _start_worker(self) -> Worker:
        if self._zygote is None:
            self._zygote = Zygote(self._on_zygote_end)
        return self._zygote.start_worker()

    def _on_zygote_end(self, zygote: Zygote) -> None:
        self._zygote = None
        ending = asyncio.create_task(_end_zygote(zygote.child))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


async def _end_zygote(child: Child) -> None:
    """Wait for a zygote whose socket closed, then end the rest of its process tree."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.CLOSE_SECONDS):
            await child.wait()  # the zygote reaps its workers before it exits
    await child.end(AT_ONCE)
