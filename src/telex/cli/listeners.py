"""The listeners of one server: stdio, a unix socket, HTTP. They are opened and closed together.

Standard input and output carry one protocol, which `telex serve` or `telex agent` chooses. The
socket and HTTP carry all protocols. End of standard input ends the server only if stdio is the only
listener.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from telex.cli.console import explain, printable
from telex.transports.channels import FRAMINGS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from pathlib import Path

    from telex.redaction import Redactor
    from telex.transports.http import HttpProtocol, SessionProtocol

    Converse = Callable[[Any], Awaitable[None]]
    """Serves one channel; that of a socket shows its first event too."""

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


@dataclass(frozen=True, slots=True)
class Conversations:
    """The functions that serve one connection of each listener."""

    stdio: Converse
    socket: Converse | None = None
    http: Mapping[str, Converse | SessionProtocol | HttpProtocol] = field(default_factory=dict)
    """By the name of the protocol in the path."""


async def serve_until_stopped(
    conversations: Conversations,
    listeners: Listeners,
    stop: asyncio.Event,
    *,
    opened: Callable[[], None] = lambda: None,
    stopping: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until `stop` is set, by a signal, or by end of standard input if stdio is the only
    listener. `stopping` runs before the connections are closed."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with AsyncExitStack() as open_listeners, asyncio.TaskGroup() as tasks:
            stop_listening = await _open(conversations, listeners, open_listeners, tasks, stop)
            opened()
            await stop.wait()
            stop_listening()  # a new call starts another server, instead of a refusal by this one
            if stopping is not None:
                await stopping()
            await open_listeners.aclose()
    except BaseExceptionGroup as failed:  # a listener that could not be opened explains itself
        raise failed.exceptions[0] from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def _open(
    conversations: Conversations,
    listeners: Listeners,
    open_listeners: AsyncExitStack,
    tasks: asyncio.TaskGroup,
    stop: asyncio.Event,
) -> Callable[[], None]:
    """Open the listeners, and return how the unix socket stops to accept connections."""
    stop_listening: Callable[[], None] = lambda: None  # noqa: E731
    framing = FRAMINGS[listeners.framing]
    if listeners.socket is not None and conversations.socket is not None:
        from telex.transports import unix

        on_socket = _alone(conversations.socket)
        listener = unix.listen(
            listeners.socket, lambda channel: tasks.create_task(on_socket(channel)), framing
        )
        stop_listening = (await open_listeners.enter_async_context(listener)).stop_listening
        explain(f"telex: listening at unix:{listeners.socket}")
    if listeners.http is not None:
        from telex.cli.http_listener import serve_http
        from telex.transports.http import HttpProtocol, SessionProtocol

        by_protocol = {
            name: one if isinstance(one, (SessionProtocol, HttpProtocol)) else _alone(one)
            for name, one in conversations.http.items()
        }
        await open_listeners.enter_async_context(
            serve_http(by_protocol, listeners.http, listeners.allow_remote)
        )
    if listeners.stdio:
        from telex.transports.stdio import open_stdio

        channel = await open_listeners.enter_async_context(open_stdio(framing))
        talking = tasks.create_task(_alone(conversations.stdio)(channel))
        if listeners.socket is None and listeners.http is None:
            talking.add_done_callback(lambda _: stop.set())
    return stop_listening


def _alone(converse: Converse) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Return the function with an end of its own: a bug of ours ends this connection only."""

    async def alone(channel: Any) -> None:
        try:
            await converse(channel)
        except Exception:
            log.exception("a connection ended by an internal error")

    return alone


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
