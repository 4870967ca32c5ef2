"""Waits that somebody can end by name: an id that the caller chose, good while the wait lasts.

The id is bound before anything else is done, so that a wait can be ended while it still queues for
its turn. Used by `session.wait` and `adapter.wait`, each with names of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from telex.rpc.errors import Condition, RpcError

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class NamedWaits:
    """The waits under way that have a name."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[str, asyncio.Task[Any]]] = {}

    async def run(self, id: str | None, owner: str, waiting: Coroutine[Any, Any, T]) -> T:
        """Wait, and let `cancel` end it if it has a name. `owner` is what it waits on."""
        if id is None:
            return await waiting
        if id in self._waits:
            waiting.close()
            raise RpcError(Condition.PARAMS, f"a wait with the id {id!r} is under way already")
        task = asyncio.create_task(waiting)
        self._waits[id] = (owner, task)
        try:
            await asyncio.wait({task})
            if task.cancelled():
                raise RpcError(Condition.CANCELLED, f"the wait {id!r} was cancelled")
            return task.result()
        finally:
            task.cancel()
            del self._waits[id]

    def cancel(self, id: str) -> str | None:
        """End a wait. What it waited on; None if there is no such wait, or it is over."""
        owner, task = self._waits.get(id, (None, None))
        return owner if task is not None and task.cancel() else None
