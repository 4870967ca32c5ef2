"""Events of a terminal, for the program that subscribed to them.

    async with term.events("event:key", "event:resize") as events:
        async for event in events:
            ...

Subscribed on entering and unsubscribed on leaving; a plain `async for` does both by itself. Who
reads too slowly loses the subscription with `StreamOverrun`, and not the newest keys in silence.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from telex.escapes.catalogue import EVENTS
from telex.escapes.own_tty import NotSupported
from telex.rpc.errors import CallError, PeerGone, StreamOverrun
from telex.rpc.inbox import Inbox
from telex.wire import limits

if TYPE_CHECKING:
    from telex.rpc.methods import Methods

SUBSCRIBE, UNSUBSCRIBE = "term:subscribe", "term:unsubscribe"


@dataclass(frozen=True, slots=True)
class TerminalEvent:
    """Something happened at the terminal."""

    name: str
    data: Any
    """Of the type the catalogue has for it; plain JSON for an event that it does not know."""


Ask = Callable[..., Awaitable[object]]
"""How the terminal is asked."""


class Listening:
    """Who listens to what. The terminal is asked when the first does, and told after the last."""

    def __init__(
        self, methods: Methods, ask: Ask, ended: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._methods = methods
        self._ask = ask
        self._ended = ended
        """Returns when the terminal is gone."""
        self._watch: asyncio.Task[None] | None = None
        self._listening: set[Events] = set()
        self._names: Counter[str] = Counter()

    def to(self, names: tuple[str, ...]) -> Events:
        for name in names:
            if self._methods.get(name) is None:
                self._methods.add(name, self._handler(name))
        return Events(self, names)

    @property
    def names(self) -> list[str]:
        """What is subscribed to now."""
        return sorted(+self._names)

    async def begin(self, events: Events) -> None:
        self._watch = self._watch or asyncio.create_task(self._watched())
        self._listening.add(events)
        new = [name for name in events.names if not self._names[name]]
        self._names.update(events.names)
        try:
            if new:
                await self._subscribed(new)
        except BaseException:
            await self.end(events)
            raise

    async def end(self, events: Events) -> None:
        if gone := self._forget(events):
            with contextlib.suppress(CallError):  # who does not even answer tells nothing more
                await self._ask(UNSUBSCRIBE, {"events": gone})

    async def renew(self) -> None:
        """Subscribe once more to all of it."""
        if self.names:
            await self._subscribed(self.names)

    def fail(self, error: Exception) -> None:
        """Whoever listens hears nothing more but this."""
        for events in self._listening:
            events.end(error)

    async def close(self) -> None:
        """Nobody is told anything any more."""
        for events in self._listening:
            events.end()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})

    async def _watched(self) -> None:
        await self._ended()
        self.fail(PeerGone("the terminal is gone, and tells of nothing more"))

    async def _subscribed(self, names: list[str]) -> None:
        # The person may be asked, and takes longer than a terminal does.
        patience = limits.ESCAPE_TIMEOUT_SECONDS
        answer = await self._ask(SUBSCRIBE, {"events": names}, timeout=patience)
        told = answer.get("events") if isinstance(answer, dict) else None
        if isinstance(told, list) and (never := sorted(set(names) - set(told))):
            raise NotSupported(f"this terminal does not tell of {', '.join(never)}")

    def _forget(self, events: Events) -> list[str]:
        """What nobody listens to any more."""
        if events not in self._listening:
            return []
        self._listening.discard(events)
        self._names.subtract(events.names)
        return [name for name in events.names if not self._names[name]]

    def _handler(self, name: str) -> Callable[[Any], None]:
        def heard(data: Any) -> None:
            for events in self._listening:
                if name in events.names:
                    events.put(TerminalEvent(name, data))

        known = EVENTS.get(name)
        heard.__annotations__["data"] = Any if known is None else known.payload
        return heard


class Events:
    """What one reader listens to. Made by `AnsweringTerminal.events`."""

    def __init__(self, listening: Listening, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self._to = listening
        self._inbox: Inbox[TerminalEvent] = Inbox()
        self._entered = False

    def put(self, event: TerminalEvent) -> None:
        if not self._inbox.put(event):
            self._inbox.end(StreamOverrun(f"{event.name}: too many events came and were not taken"))

    async def __aenter__(self) -> Self:
        self._entered = True
        await self._to.begin(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._inbox.end()
        await self._to.end(self)

    async def __aiter__(self) -> AsyncIterator[TerminalEvent]:
        if self._entered:
            async for event in self._inbox:
                yield event
        else:
            async with self:
                async for event in self._inbox:
                    yield event

    def end(self, error: Exception | None = None) -> None:
        """Nothing more comes."""
        self._inbox.end(error)
