"""The filter for pages under `telex run`, which costs nothing until a program serves one.

Chunks are taken out of the program's output by the same demux that finds JSON escapes. The first
of them imports the rest (`page_opener`, HTTP/2), so a program without a page does not pay for it.
Where pages are not wanted the chunks are swallowed all the same: no screen should show them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from telex.wire import htty_chunk
from telex.wire.events import Claimed, Event, Fault

if TYPE_CHECKING:
    from telex.passthrough.page_opener import PageOpener

VARIABLE: Final = "HTTY"


class PageOpening(StrEnum):
    """Whether a page is opened in the person's browser."""

    ALWAYS = "always"
    ASK = "ask"
    NEVER = "never"
    """Then its address is shown, and nothing is said to the program before somebody opens it."""


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Whether and how a program's pages are shown."""

    open: PageOpening = PageOpening.ASK
    port: int = 0
    """The gateway's; 0 is any."""
    eager: bool = False
    """Speak first, to programs that wait for it."""


class PageFilter:
    """The filter of one program's terminal. `opener` makes what shows pages, when one is needed."""

    def __init__(
        self, wanted: PageOptions | None, opener: Callable[[PageOptions], PageOpener]
    ) -> None:
        self._wanted = wanted
        self._make = opener
        self._opener: PageOpener | None = None
        self.swallowed = 0

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the program."""
        return {} if self._wanted is None else {VARIABLE: htty_chunk.VERSION.decode()}

    def begin(self) -> None:
        """The program runs."""
        if self._wanted is not None and self._wanted.eager:
            self._opener = self._make(self._wanted)

    def filter_events(self, events: list[Event]) -> list[Event]:
        """Handles the chunks; returns the other events."""
        chunks = [event for event in events if _is_chunk(event)]
        for chunk in chunks:
            self._take(chunk)
        if self._opener is not None:
            self._opener.side.poke()
        return [event for event in events if not _is_chunk(event)] if chunks else events

    def _take(self, chunk: Event) -> None:
        if self._wanted is None or not isinstance(chunk, Claimed | Fault):
            self.swallowed += 1
            return
        if self._opener is None:
            self._opener = self._make(self._wanted)
        if chunk.claim == htty_chunk.CHUNK:
            self._opener.side.receive_chunk(chunk)
        elif isinstance(chunk, Claimed):
            self._opener.raw_form()

    async def close(self) -> None:
        """The program has ended, and its terminal is still there."""
        if self._opener is not None:
            await self._opener.close()


def _is_chunk(event: Event) -> bool:
    """Also the announcement of another form, after which no chunk comes."""
    return isinstance(event, Claimed | Fault) and event.claim in (htty_chunk.CHUNK, htty_chunk.RAW)
