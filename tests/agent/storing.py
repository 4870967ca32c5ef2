"""Shared by the tests of the store: a store in a private directory, a counting clock, events."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from telex.agent.store import NewRun, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def opened(directory: Path, name: str = "store/telex.db") -> Store:
    """Open a store whose clock advances by a millisecond with each reading."""
    ticks = count(1_000)
    return await Store.open(directory / name, lambda: next(ticks))


async def begun(store: Store, run_id: str, session_id: str = "s", said: str = "hello") -> str:
    """Start a run; its session is created with the first run."""
    known = {thread.session_id for thread in await store.threads(None)}
    given = json.dumps({"type": "text", "text": said}).encode()
    await store.start_run(
        NewRun(run_id, session_id, given, said, new_thread=session_id not in known)
    )
    return run_id


def text(content: object) -> bytes:
    return json.dumps({"type": "text", "content": content}).encode()


async def contents(events: AsyncIterator[Any]) -> list[tuple[int, object]]:
    return [(event.seq, json.loads(event.event)["content"]) async for event in events]
