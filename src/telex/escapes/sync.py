"""The blocking twin of `client`: a method waits where the other is awaited.

Written out for the reason that `telex.automation.sync` is; a test holds it to `client`.
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
    from telex.escapes.client import AnsweringTerminal, TerminalEvent, TerminalEventStream
    from telex.escapes.commands.core import TermReported, What
    from telex.escapes.commands.terminal_extensions import FileSent

T = TypeVar("T")

_OVER: Final = object()


class BlockingAnsweringTerminal(CommandMethods):
    """A terminal that answers. See `AnsweringTerminal`, whose methods these are."""

    def __init__(self, terminal: AnsweringTerminal, portal: Portal) -> None:
        self._terminal = terminal
        self._run = portal.run

    @property
    def via(self) -> str:
        return self._terminal.via

    @property
    def capabilities(self) -> dict[str, Any]:
        return self._terminal.capabilities

    @property
    def round_trip(self) -> float | None:
        return self._terminal.round_trip

    @property
    def maxframe(self) -> int:
        return self._terminal.maxframe

    @property
    def echoes(self) -> int:
        return self._terminal.echoes

    def supports(self, name: str) -> bool:
        return self._terminal.supports(name)

    def detect(self) -> dict[str, Any]:
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
        answers = self._terminal.stream(name, data, returns=returns, timeout=timeout, parts=parts)
        return self._each(answers)

    def tell(self, name: str, data: object = ABSENT) -> None:
        """Waits, unlike the other's, while the terminal takes no more."""
        self._run(self._told(name, data))

    def flushed(self) -> None:
        self._run(self._terminal.flushed())

    def events(self, *names: str) -> BlockingEventStream:
        return BlockingEventStream(self._terminal.events(*names), self)

    def typed(self) -> bytes:
        return self._run(self._terminal.typed())

    def report(self, what: What) -> TermReported:
        return self._run(self._terminal.report(what))

    def paste(self, *, selection: Literal["clipboard", "primary"] = "clipboard") -> str:
        return self._run(self._terminal.paste(selection=selection))

    def send_file(self, path: str | os.PathLike[str], *, name: str | None = None) -> int:
        return self._run(self._terminal.send_file(path, name=name))

    def receive_file(self, name: str, path: str | os.PathLike[str]) -> FileSent:
        return self._run(self._terminal.receive_file(name, path))

    def close(self) -> None:
        self._run(self._terminal.close())

    async def _told(self, name: str, data: object) -> None:
        await self._terminal.flushed()
        self._terminal.tell(name, data)

    def _each(self, parts: AsyncIterator[T]) -> Iterator[T]:
        try:
            while (part := self._run(_next(parts))) is not _OVER:
                yield part
        finally:
            self._run(_ended(parts))


class BlockingEventStream:
    """The events of the terminal: `for`, or `with` to know that the subscription holds."""

    def __init__(self, events: TerminalEventStream, terminal: BlockingAnsweringTerminal) -> None:
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


async def _ended(parts: Any) -> None:
    await parts.aclose()
