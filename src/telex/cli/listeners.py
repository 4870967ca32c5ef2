"""The listeners of one server: stdio, a unix socket, HTTP. They are opened and closed together.

All listeners serve the same protocol, which `telex serve` or `telex agent` chooses. End of standard
input ends the server only if stdio is the only listener.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.cli.console import explain, printable
from telex.transports.channels import FRAMINGS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from telex.redaction import Redactor
    from telex.rpc.channel import Channel


if TYPE_CHECKING:
    Converse = Callable[[Channel], Awaitable[None]]

log = logging.getLogger("telex.serve")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Listeners:
    """The listeners to open: stdio, a unix socket, HTTP."""

    stdio: bool = True
    socket: Path | None = None
    http: tuple[str, int] | None = None
    allow_remote: bool = False
    framing: str = "ndjson"


async def serve_until_stopped(
    protocol: str,
    converse: Converse,
    listeners: Listeners,
    *,
    opened: Callable[[], None] = lambda: None,
    stopping: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until a signal, or until end of standard input if stdio is the only listener.
    `stopping` runs before the connections are closed."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with AsyncExitStack() as open_listeners, asyncio.TaskGroup() as conversations:
            await _open(protocol, converse, listeners, open_listeners, conversations, stop)
            opened()
            await stop.wait()
            if stopping is not None:
                await stopping()
            await open_listeners.aclose()
    except BaseExceptionGroup as failed:  # a listener that could not be opened explains itself
        raise failed.exceptions[0] from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def _open(
    protocol: str,
    converse: Converse,
    listeners: Listeners,
    open_listeners: AsyncExitStack,
    conversations: asyncio.TaskGroup,
    stop: asyncio.Event,
) -> None:
    async def alone(channel: Channel) -> None:
        try:
            await converse(channel)
        except Exception:  # a bug of ours ends this connection only
            log.exception("a connection ended by an internal error")

    framing = FRAMINGS[listeners.framing]
    if listeners.socket is not None:
        from telex.transports import unix

        listener = unix.listen(
            listeners.socket, lambda channel: conversations.create_task(alone(channel)), framing
        )
        await open_listeners.enter_async_context(listener)
        explain(f"telex: listening at unix:{listeners.socket}")
    if listeners.http is not None:
        from telex.cli.http_listener import serve_http

        await open_listeners.enter_async_context(
            serve_http({protocol: alone}, listeners.http, listeners.allow_remote)
        )
    if listeners.stdio:
        from telex.transports.stdio import open_stdio

        channel = await open_listeners.enter_async_context(open_stdio(framing))
        talking = conversations.create_task(alone(channel))
        if listeners.socket is None and listeners.http is None:
            talking.add_done_callback(lambda _: stop.set())


# The log of a long-running command: on standard error, redacted.


class _Plain(logging.Formatter):
    """Formats a message redacted, and without control characters."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return printable(self._redactor.redact(super().format(record)))


def log_to_stderr(level: str, redactor: Redactor) -> None:
    """Send this process's log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain(redactor))
    logger = logging.getLogger("telex")
    logger.setLevel(level.upper())
    logger.addHandler(handler)
