"""Block a coroutine of the runtime at a gate, so that a test can act at exactly that point."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from agent.ui_side import Ui


class Gate:
    """A gate: callers block until it is opened; `reached` is set by the first."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def passed(self) -> None:
        self.reached.set()
        await self._opened.wait()

    def open(self) -> None:
        self._opened.set()


def held(patch: pytest.MonkeyPatch, owner: type, method: str, *, done: bool = False) -> Gate:
    """Patch a coroutine method to wait at a gate before its work or, with `done`, after it."""
    gate, work = Gate(), getattr(owner, method)

    async def waiting(self: Any, *given: Any, **named: Any) -> Any:
        if not done:
            await gate.passed()
        found = await work(self, *given, **named)
        if done:
            await gate.passed()
        return found

    patch.setattr(owner, method, waiting)
    return gate


async def turns() -> None:
    """Give ready tasks of the event loop time to run."""
    for _ in range(50):
        await asyncio.sleep(0)


async def lost_at(gate: Gate, ui: Ui) -> None:
    """Disconnect while a request of the connection waits at the gate."""
    await gate.reached.wait()
    leaving = asyncio.create_task(ui.leave())
    await turns()
    gate.open()
    await leaving
