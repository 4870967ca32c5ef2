"""The ways into one server: stdio, a unix socket, HTTP. Opened together, closed together.

Every door serves the same sessions. Standard input's end is the server's end only where it is the
only door.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.cli.console import explain
from telex.terminal.registry import warm_up
from telex.transports.framed import FRAMINGS

if TYPE_CHECKING:
    from pathlib import Path

    from telex.adapters.server import AutomationServer
    from telex.rpc.channel import Channel

log = logging.getLogger("telex.serve")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Doors:
    """Which doors to open."""

    stdio: bool = True
    socket: Path | None = None
    http: tuple[str, int] | None = None
    allow_remote: bool = False
    framing: str = "ndjson"
    serial: bool = False
    """One request at a time on each connection."""


async def serve(service: AutomationServer, doors: Doors) -> None:
    """Until a signal, or until standard input ends where nothing else is open. Then every program
    is ended."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with AsyncExitStack() as open_doors, asyncio.TaskGroup() as conversations:
            await _open(service, doors, open_doors, conversations, stop)
            warm_up()
            await stop.wait()
            await open_doors.aclose()
    except BaseExceptionGroup as failed:  # a door that could not be opened has its own sentence
        raise failed.exceptions[0] from None
    finally:
        await service.close()
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def _open(
    service: AutomationServer,
    doors: Doors,
    open_doors: AsyncExitStack,
    conversations: asyncio.TaskGroup,
    stop: asyncio.Event,
) -> None:
    async def converse(channel: Channel) -> None:
        try:
            await service.converse(channel, one_at_a_time=doors.serial)
        except Exception:  # a fault of ours ends this conversation, and no other
            log.exception("a conversation ended by a fault")

    if doors.socket is not None:
        from telex.transports import unix

        framing = FRAMINGS[doors.framing]
        listener = unix.listen(
            doors.socket, lambda channel: conversations.create_task(converse(channel)), framing
        )
        await open_doors.enter_async_context(listener)
        explain(f"telex: listening at unix:{doors.socket}")
    if doors.http is not None:
        from telex.cli.web import listening

        await open_doors.enter_async_context(
            listening({"automation": converse}, doors.http, doors.allow_remote)
        )
    if doors.stdio:
        from telex.transports.stdio import open_stdio

        channel = await open_doors.enter_async_context(open_stdio(FRAMINGS[doors.framing]))
        talking = conversations.create_task(converse(channel))
        if doors.socket is None and doors.http is None:
            talking.add_done_callback(lambda _: stop.set())
