"""Something of the runtime held still for a while, so that something else happens just then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


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
