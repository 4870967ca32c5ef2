"""All plugin instances of one server: where they are made, and where every process of them ends.

`Nursery` is the way into this package. The helper process that forks workers is started when the
first is needed; one that was killed is replaced when the next is.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

from telex.adapters.lua.forks import Forks, Worker
from telex.adapters.lua.instance import Instance
from telex.processes.termination import AT_ONCE
from telex.wire import limits

if TYPE_CHECKING:
    from types import TracebackType

    from telex.adapters.sources import Plugin
    from telex.processes.child import Child


class Nursery:
    """Makes instances. Whoever has one closes it."""

    def __init__(self) -> None:
        self._forks: Forks | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._instances: set[Instance] = set()
        self._closed = False

    def instance(self, plugin: Plugin) -> Instance:
        """A plugin in a worker of its own, which is started with the first call."""
        instance = Instance(plugin, self._fork, self._instances.discard)
        if self._closed:
            instance.shut()
        else:
            self._instances.add(instance)
        return instance

    async def close(self) -> None:
        """End everything. Calls that wait get a problem of kind `closed`."""
        self._closed = True
        for instance in list(self._instances):
            instance.shut()
        if self._forks is not None:
            self._forks.close()
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
        if self._forks is None:
            self._forks = Forks(self._lost)
        return self._forks.fork()

    def _lost(self, forks: Forks) -> None:
        self._forks = None
        ending = asyncio.create_task(_end(forks.child))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


async def _end(child: Child) -> None:
    """See that a helper which has ended, or is about to, leaves nobody of its tree behind."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.CLOSE_SECONDS):
            await child.wait()  # it reaps its workers before it goes
    await child.end(AT_ONCE)
