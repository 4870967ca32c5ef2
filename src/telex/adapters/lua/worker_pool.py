"""All plugin instances of one server: where they are made, and where every process of them ends.

`WorkerPool` is the way into this package. The zygote, which forks workers, is started when the
first is needed; one that was killed is replaced when the next is.
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
    """Makes instances. Whoever has one closes it."""

    def __init__(self) -> None:
        self._zygote: Zygote | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._instances: set[Instance] = set()
        self._closed = False

    def instance(self, plugin: LuaPlugin) -> Instance:
        """A plugin in a worker of its own, which is started with the first call."""
        instance = Instance(plugin, self._fork, self._instances.discard)
        if self._closed:
            instance.close_nowait()
        else:
            self._instances.add(instance)
        return instance

    async def close(self) -> None:
        """End everything. Calls that wait get a problem of kind `closed`."""
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

    def _fork(self) -> Worker:
        if self._zygote is None:
            self._zygote = Zygote(self._lost)
        return self._zygote.fork()

    def _lost(self, zygote: Zygote) -> None:
        self._zygote = None
        ending = asyncio.create_task(_end(zygote.child))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


async def _end(child: Child) -> None:
    """See that a helper which has ended, or is about to, leaves nobody of its tree behind."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.CLOSE_SECONDS):
            await child.wait()  # it reaps its workers before it goes
    await child.end(AT_ONCE)
