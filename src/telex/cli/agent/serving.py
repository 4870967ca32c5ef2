"""The doors of an agent: stdio, a unix socket, HTTP at `/rpc/agent`.

As `cli.doors` opens them for automation, with another service behind. Standard input's end is the
runtime's end only where it is the only door; then the runs it started are waited for first.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from telex.cli.agent.making import served_agent
from telex.cli.console import explain
from telex.cli.doors import SIGNALS
from telex.cli.logs import log_to_stderr
from telex.cli.redacting import redactor_of
from telex.transports.framed import FRAMINGS

if TYPE_CHECKING:
    from telex.agent.server import AgentServer
    from telex.cli.agent.making import Wanted
    from telex.cli.doors import Doors
    from telex.rpc.channel import Channel

log = logging.getLogger("telex.agent")


async def serve_agent(wanted: Wanted, doors: Doors) -> None:
    """Until a signal, or until standard input ends where nothing else is open."""
    settings = wanted.config.settings
    log_to_stderr(settings.logging.level, redactor_of(settings))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with (
            served_agent(wanted) as server,
            AsyncExitStack() as open_doors,
            asyncio.TaskGroup() as conversations,
        ):
            await _open(server, doors, open_doors, conversations, stop)
            await stop.wait()
            await server.close()
            await open_doors.aclose()
    except BaseExceptionGroup as failed:  # a door that could not be opened has its own sentence
        raise failed.exceptions[0] from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def _open(
    server: AgentServer,
    doors: Doors,
    open_doors: AsyncExitStack,
    conversations: asyncio.TaskGroup,
    stop: asyncio.Event,
) -> None:
    async def converse(channel: Channel) -> None:
        try:
            await server.converse(channel)
        except Exception:  # a fault of ours ends this conversation, and no other
            log.exception("a conversation ended by a fault")

    if doors.socket is not None:
        from telex.transports import unix

        listener = unix.listen(
            doors.socket,
            lambda channel: conversations.create_task(converse(channel)),
            FRAMINGS[doors.framing],
        )
        await open_doors.enter_async_context(listener)
        explain(f"telex: listening at unix:{doors.socket}")
    if doors.http is not None:
        from telex.cli.web import listening

        agent = listening({"agent": converse}, doors.http, doors.allow_remote)
        await open_doors.enter_async_context(agent)
    if doors.stdio:
        from telex.transports.stdio import open_stdio

        channel = await open_doors.enter_async_context(open_stdio(FRAMINGS[doors.framing]))
        talking = conversations.create_task(converse(channel))
        if doors.socket is None and doors.http is None:
            talking.add_done_callback(lambda _: stop.set())
