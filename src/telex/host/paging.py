"""Pages under `telex run`: the joint, which costs nothing until a program serves one.

Chunks are taken out of the program's output by the same demux that finds JSON escapes. The first
of them loads the rest (`page_showing`, HTTP/2): that a program ran which serves no page is not
noticed. Where pages are not wanted the chunks are swallowed all the same: no screen should show
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from telex.wire import htty_chunk
from telex.wire.events import Claimed, Event, Fault

if TYPE_CHECKING:
    from telex.host.page_showing import PageShowing

VARIABLE: Final = "HTTY"


class Open(StrEnum):
    """Whether a page is opened in the person's browser."""

    ALWAYS = "always"
    ASK = "ask"
    NEVER = "never"
    """Then its address is shown, and nothing is said to the program before somebody opens it."""


@dataclass(frozen=True, slots=True)
class PagesWanted:
    """That a program may serve pages, and how they are shown."""

    open: Open = Open.ASK
    port: int = 0
    """The gateway's; 0 is any."""
    eager: bool = False
    """Speak first, to programs that wait for it."""


class Paging:
    """Of one program's terminal. `showing` makes what shows pages, once one is needed."""

    def __init__(
        self, wanted: PagesWanted | None, showing: Callable[[PagesWanted], PageShowing]
    ) -> None:
        self._wanted = wanted
        self._make = showing
        self._showing: PageShowing | None = None
        self.swallowed = 0

    @property
    def told(self) -> dict[str, str]:
        """What the program finds in its environment."""
        return {} if self._wanted is None else {VARIABLE: htty_chunk.VERSION.decode()}

    def begin(self) -> None:
        """The program runs."""
        if self._wanted is not None and self._wanted.eager:
            self._showing = self._make(self._wanted)

    def sift(self, events: list[Event]) -> list[Event]:
        """What of it is not ours."""
        chunks = [event for event in events if _is_chunk(event)]
        for chunk in chunks:
            self._take(chunk)
        if self._showing is not None:
            self._showing.side.poke()
        return [event for event in events if not _is_chunk(event)] if chunks else events

    def _take(self, chunk: Event) -> None:
        if self._wanted is None or not isinstance(chunk, Claimed | Fault):
            self.swallowed += 1
            return
        if self._showing is None:
            self._showing = self._make(self._wanted)
        if chunk.claim == htty_chunk.CHUNK:
            self._showing.side.receive_chunk(chunk)
        elif isinstance(chunk, Claimed):
            self._showing.raw_form()

    async def close(self) -> None:
        """The program has ended, and its terminal is still there."""
        if self._showing is not None:
            await self._showing.close()


def _is_chunk(event: Event) -> bool:
    """Also the announcement of another form, after which no chunk comes."""
    return isinstance(event, Claimed | Fault) and event.claim in (htty_chunk.CHUNK, htty_chunk.RAW)
