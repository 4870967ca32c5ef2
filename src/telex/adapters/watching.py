"""What a plugin says of a live session, kept current: asked again whenever the screen changed, and
once more when it has stood still long enough for a turn to be over.

For whoever looks on (`telex adapter try` and `record`). One question at a time: what changes while
the plugin thinks is part of the next. Not an `adapter`, which is asked and does not ask by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from telex.adapters.asking import Said, ask
from telex.adapters.context import context
from telex.protocols.pty_adapters import COMPLETED_TURN_STABLE_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.lua.instance import Instance
    from telex.terminal.session import PtySession


async def watch(session: PtySession, instance: Instance, told: Callable[[Said], None]) -> None:
    """Tell what the plugin says of this session, until cancelled."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    session.watchers.add(changed.set)
    try:
        while True:
            changed.clear()
            seen = context(session, instance.plugin.permissions, loop.time())
            told(await ask(instance, seen))
            settled = seen["stable_ms"] >= COMPLETED_TURN_STABLE_MS
            until = session.last_change() + COMPLETED_TURN_STABLE_MS / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if settled else until + 0.001):
                    await changed.wait()
    finally:
        session.watchers.discard(changed.set)
