"""The blocking twin of `client`: each method blocks where the method of `client` is awaited.

The methods are written out, for the reason given in `telex.automation.sync`; a test compares them
with `client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from telex.escapes.client_commands import CommandMethods
from telex.rpc.messages import ABSENT
from telex.rpc.peer import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Iterator

    from telex.automation.portal import Portal
    from telex.escapes.client import AsyncAnsweringTerminal, AsyncTerminalEventStream, TerminalEvent
    from telex.escapes.commands.core import TermReported, What
    from telex.escapes.commands.terminal_extensions import FileSent

T = TypeVar("T")

_OVER: Final = object()


class AnsweringTerminal(CommandMethods):
    """The terminal of this program. Made by `connect`, which says what happens if the terminal has
    no JSON escapes.
    """

    __module__ = "telex.escapes"

    def __init__(self, terminal: AsyncAnsweringTerminal, portal: Portal) -> None:
        self._terminal = terminal
        self._run = portal.run

    @property
    def via(self) -> str:
        """The way to the peer: `terminal`, `tmux`, `screen`, `socket`; `nothing` without one."""
        return self._terminal.via

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities in the response to `detect`, by system, unchecked."""
        return self._terminal.capabilities

    @property
    def round_trip(self) -> float | None:
        """Seconds of the slowest response so far."""
        return self._terminal.round_trip

    @property
    def maxframe(self) -> int:
        """The most bytes of JSON that the terminal reads in one frame."""
        return self._terminal.maxframe

    @property
    def echoes(self) -> int:
        """How many frames of ours the terminal has echoed."""
        return self._terminal.echoes

    def supports(self, name: str) -> bool:
        """Whether the terminal supports a command or event, by its response to `detect`.

        Args:
            name: The name, such as "image:show".
        """
        return self._terminal.supports(name)

    def detect(self) -> dict[str, Any]:
        """Detect the terminal's capabilities again."""
        return self._run(self._terminal.detect())

    def call(
        self,
        name: str,
        data: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = DEFAULT_TIMEOUT,
        parts: bytes | None = None,
    ) -> T:
        """Send a request and wait for the response.

        Args:
            name: The command.
            data: Its data.
            returns: The type of the result.
            timeout: Seconds to wait, 5 by default. The clock is paused while the person is asked
                to allow the command.
            parts: Further parts of the request. Bytes are cut into as many parts as needed.

        Raises:
            NotSupported: There is no peer.
            RpcError: The terminal refused, with its code.
            CallTimedOut: No response came in time.
            CallError: The base of these two, and of other failures of a call.
            FrameTooLarge: The request is larger than the terminal's limit.
        """
        call = self._terminal.call(name, data, returns=returns, timeout=timeout, parts=parts)
        answer: T = self._run(call)
        return answer

    def stream(
        self,
        name: str,
        data: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = None,
        parts: bytes | None = None,
    ) -> Iterator[T]:
        """Send a request like `call`, and yield the parts of the response as they arrive.

        Args:
            name: The command.
            data: Its data.
            returns: The type of a part.
            timeout: Seconds to wait for each part; None waits without a limit.
            parts: Further parts of the request, as for `call`.

        Raises:
            NotSupported: There is no peer.
            CallError: The terminal refused, or the call failed.
        """
        answers = self._terminal.stream(name, data, returns=returns, timeout=timeout, parts=parts)
        return self._each(answers)

    def tell(self, name: str, data: object = ABSENT) -> None:
        """Send a command as a notification: there is no response, not even an error. Waits while
        the terminal does not read.

        Args:
            name: The command.
            data: Its data.
        """
        self._run(self._tell(name, data))

    def flushed(self) -> None:
        """Wait until the terminal has read enough that more can be sent."""
        self._run(self._terminal.flushed())

    def events(self, *names: str) -> TerminalEventStream:
        """Subscribe to events. Use `for`; or `with` first, to know when the
        subscription has begun.

        Args:
            names: Names of events, such as "event:resize".
        """
        return TerminalEventStream(self._terminal.events(*names), self)

    def typed(self) -> bytes:
        """Wait for keys. Returns at least one byte; empty once the terminal has hung up."""
        return self._run(self._terminal.typed())

    def report(self, what: What) -> TermReported:
        """Query the terminal: the position of its cursor, its size, its colours.

        Args:
            what: The value to report, such as "cursor" or "size-cells".

        Raises:
            NotSupported: There is no peer.
            CallError: The terminal does not report it, or the call failed.
        """
        return self._run(self._terminal.report(what))

    def paste(self, *, selection: Literal["clipboard", "primary"] = "clipboard") -> str:
        """Read the person's clipboard. The person is asked to allow it.

        Args:
            selection: The clipboard, or the primary selection of X11.

        Raises:
            NotSupported: There is no peer.
            CallError: The person did not allow it, or the call failed.
        """
        return self._run(self._terminal.paste(selection=selection))

    def send_file(self, path: str | os.PathLike[str], *, name: str | None = None) -> int:
        """Send the person a file. The person is asked to allow it.

        Args:
            path: The file.
            name: Its name for the person; by default its own.

        Returns:
            The number of bytes that were saved.

        Raises:
            OSError: The file cannot be read.
            CallError: The person did not allow it, or the call failed.
        """
        return self._run(self._terminal.send_file(path, name=name))

    def receive_file(self, name: str, path: str | os.PathLike[str]) -> FileSent:
        """Receive a file of the person into a new file at `path`. The person is asked to allow it.

        Args:
            name: The name of the file in the directory where the person started telex.
            path: The new file.

        Raises:
            FileExistsError: `path` exists. The person is not asked then.
            FileCutShort: The file was received incompletely. `path` is removed.
        """
        return self._run(self._terminal.receive_file(name, path))

    def close(self) -> None:
        """Restore the terminal. Idempotent."""
        self._run(self._terminal.close())

    async def _tell(self, name: str, data: object) -> None:
        await self._terminal.flushed()
        self._terminal.tell(name, data)

    def _each(self, parts: AsyncIterator[T]) -> Iterator[T]:
        try:
            while (part := self._run(_next(parts))) is not _OVER:
                yield part
        finally:
            self._run(_close(parts))


class TerminalEventStream:
    """A stream of events. Use `for`; or `with` first, to know that the subscription has begun."""

    def __init__(self, events: AsyncTerminalEventStream, terminal: AnsweringTerminal) -> None:
        self._events = events
        self._terminal = terminal

    def __enter__(self) -> Self:
        self._terminal._run(self._events.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal._run(self._events.__aexit__())

    def __iter__(self) -> Iterator[TerminalEvent]:
        return self._terminal._each(aiter(self._events))


async def _next(parts: AsyncIterator[Any]) -> Any:
    return await anext(parts, _OVER)


async def _close(parts: Any) -> None:
    await parts.aclose()
