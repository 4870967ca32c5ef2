"""The filter for pages under `telex run`, which costs nothing until a program serves one.

The demux that finds JSON escapes also takes chunks out of the program's output. The first chunk
imports the rest (`page_opener`, HTTP/2), so a program without a page does not pay for the import.
If pages are switched off, chunks are dropped all the same: a screen must not show them.
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
    """The address is shown, and nothing is sent to the program before a browser opens it."""


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How a program's pages are shown."""

    open: PageOpening = PageOpening.ASK
    port: int = 0
    """The port of the gateway; 0 stands for any free port."""
    eager: bool = False
    """Send the first bytes, for programs that wait for the terminal to begin."""


class PageFilter:
    """Takes the chunks of one program out of its events.

    Args:
        options: How pages are shown; None drops all chunks.
        make_opener: Makes the `PageOpener`, with the first chunk.
    """

    def __init__(
        self, options: PageOptions | None, make_opener: Callable[[PageOptions], PageOpener]
    ) -> None:
        self._options = options
        self._make_opener = make_opener
        self._opener: PageOpener | None = None
        self.swallowed = 0

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for the program."""
        return {} if self._options is None else {VARIABLE: htty_chunk.VERSION.decode()}

    def begin(self) -> None:
        """Start with an eager opener, if that is wanted: the program runs."""
        if self._options is not None and self._options.eager:
            self._opener = self._make_opener(self._options)

    def filter_events(self, events: list[Event]) -> list[Event]:
        """Handle the chunks. Return the other events."""
        chunks = [event for event in events if _is_chunk(event)]
        for chunk in chunks:
            self._handle(chunk)
        if self._opener is not None:
            self._opener.side.poke()
        return [event for event in events if not _is_chunk(event)] if chunks else events

    def _handle(self, chunk: Event) -> None:
        if self._options is None or not isinstance(chunk, Claimed | Fault):
            self.swallowed += 1
            return
        if self._opener is None:
            self._opener = self._make_opener(self._options)
        if chunk.claim == htty_chunk.CHUNK:
            self._opener.side.receive_chunk(chunk)
        elif isinstance(chunk, Claimed):
            self._opener.raw_form()

    async def close(self) -> None:
        """Close the opener. The program has exited; its terminal is still open."""
        if self._opener is not None:
            await self._opener.close()


def _is_chunk(event: Event) -> bool:
    """Whether this is a chunk, or the announcement of the raw form, after which no chunk comes."""
    return isinstance(event, Claimed | Fault) and event.claim in (htty_chunk.CHUNK, htty_chunk.RAW)
