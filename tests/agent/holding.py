"""Something of the runtime held still for a while, so that something else happens just then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from agent.ui_side import Ui


class Gate:
    """Whoever comes to it waits until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def passed(self) -> None:
        self.reached.set()
        await self._opened.wait()

    def open(self) -> None:
        self._opened.set()


def held(patch: pytest.MonkeyPatch, owner: type, method: str, *, done: bool = False) -> Gate:
    """A coroutine method that waits at a gate before what it does or, `done`, after it."""
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
    """Time enough for what can go on to do so."""
    for _ in range(50):
        await asyncio.sleep(0)


async def lost_at(gate: Gate, ui: Ui) -> None:
    """The connection is lost while something it asked for stands at the gate."""
    await gate.reached.wait()
    leaving = asyncio.create_task(ui.leave())
    await turns()
    gate.open()
    await leaving
