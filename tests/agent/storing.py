"""What the tests of the store share: a store in a private directory, a clock that counts, events."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from telex.agent.store import NewRun, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def opened(directory: Path, name: str = "store/telex.db") -> Store:
    """A store whose clock goes on by a millisecond each time it is looked at."""
    ticks = count(1_000)
    return await Store.open(directory / name, lambda: next(ticks))


async def begun(store: Store, run_id: str, session_id: str = "s", said: str = "hello") -> str:
    """A run, in a session that is made with its first one."""
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
