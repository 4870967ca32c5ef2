"""A terminal's output, split in two: what is for the screen, and what is for us.

Feed it the bytes a program wrote. What nobody claimed comes back as `Visible`, byte for byte and at
once; each control string with a claimed prefix comes back whole as `Claimed`, and its bytes are
never visible, however the reads fall. This happens on raw bytes and before any emulator, because an
emulator that does not know a string may paint it.

Three facts of terminals make this small:

*An ESC begins anew, wherever it stands.* So an introducer is an introducer in any context, and
finding one is a substring search (`introducers`), with no parser for everything else in the stream.

*A piece of an introducer shows nothing.* So at the end of a read, at most a few bytes that may
become one are held, and no clock is needed to let them go: the next byte decides. Only a reader of
keystrokes, where a lone ESC is a key, calls `flush()` when its own clock says so.

*What an ESC interrupts is dead.* Cutting a string out of the stream must not bring the two ends
together again: `ESC ] 231`, a claimed string, `98;…` would smuggle a new claim past us into what is
visible. Where a piece of an introducer stands right before the cut, CAN takes the place of the ESC
that interrupted it. Everything else around a cut joins up as if the string had never been sent, so
that a frame written by one program into the middle of another's output harms neither.

Used by every `PtySession`, by `telex run`, and by programs that read replies among keystrokes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.wire.escape import CAN, Claim, Ending, find_end
from telex.wire.events import Claimed, Event, Fault, Reason, Visible
from telex.wire.introducers import Introducers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BEGINS: Final = 256
"""Bytes told of a string that is too long: enough for the id of a packet."""


class Demux:
    """One direction of one terminal stream. Sans-IO; feed it from one place."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._introducers = Introducers(claims)
        self._offset = 0
        """Where in the stream the next byte to look at stands."""
        self._held = b""
        """Outside a string: a beginning of an introducer. Inside: the ESC that may end it."""
        self._dangling = False
        """Whether what was shown last ends in a beginning that something else interrupted."""
        self._inside: Claim | None = None
        self._began = 0
        self._body: bytearray | None = None
        """The open string's body so far; None once it is too long to keep."""

    def feed(self, data: bytes) -> list[Event]:
        """What these bytes bring. Never raises for what the bytes are."""
        if self._inside is None and not self._held and self._introducers.absent_from(data):
            self._offset += len(data)
            self._dangling &= not data
            return [Visible(data)] if data else []
        return self._divide(self._held + data)

    def flush(self) -> list[Event]:
        """Let go of a held beginning as visible bytes. An open string stays claimed."""
        if self._inside is not None or not self._held:
            return []
        released, self._held, self._dangling = self._held, b"", True
        self._offset += len(released)
        return [Visible(released)]

    def eof(self) -> list[Event]:
        """No more bytes: what was held is visible, and an open string was cut short."""
        if self._inside is None:
            return self.flush()
        return self._close_with(Reason.TRUNCATED, "the stream ended inside the control string")

    def _divide(self, data: bytes) -> list[Event]:
        """A read, with what was held before it, in pieces: outside, inside, outside…"""
        self._held = b""
        events: list[Event] = []
        self._introducers.look_at(data)
        at = 0
        while at < len(data):
            if self._inside is None:
                at = self._pass_visible(data, at, events)
            else:
                at = self._collect(self._inside, data, at, events)
        self._offset += len(data) - len(self._held)
        return events

    def _pass_visible(self, data: bytes, at: int, events: list[Event]) -> int:
        """Outside: what stands before the next introducer is visible. Returns where to go on."""
        begin = self._introducers.next(at)
        pending = self._introducers.beginning_before(begin, at)
        end = begin - pending if begin == len(data) else begin
        self._held = data[end:begin]
        if at < end:
            events.append(Visible(data[at:end]))
            self._dangling = pending > 0 and self._introducers.beginning_before(end, at) > 0
        return begin if begin == len(data) else self._open(begin, events)

    def _open(self, begin: int, events: list[Event]) -> int:
        """An introducer stands here: from now on, inside. Returns where the body starts."""
        if self._dangling:
            events.append(Visible(CAN))
            self._dangling = False
        self._inside = claim = self._introducers.claim_at(begin)
        self._began = self._offset + begin
        self._body = bytearray()
        return begin + len(claim.introducer)

    def _collect(self, claim: Claim, data: bytes, at: int, events: list[Event]) -> int:
        """Inside: keep the body, or only skip it once it is too long. Returns where to go on."""
        stop, after, ending = find_end(data, at, claim.kind)
        if self._body is not None:
            if len(self._body) + stop - at > claim.max_body:
                begins = bytes(self._body[:BEGINS] or data[at : at + BEGINS])
                detail = f"more than {claim.max_body} bytes"
                events.append(self._fault(Reason.TOO_LONG, detail, begins))
                self._body = None
            else:
                self._body += data[at:stop]
        match ending:
            case Ending.OPEN:
                self._held = data[after:]
                return len(data)
            case Ending.COMPLETE:
                events += self._complete(claim)
            case Ending.ABORTED:
                events += self._close_with(Reason.ABORTED, "another control cut the string short")
        return after

    def _complete(self, claim: Claim) -> list[Event]:
        body, self._body, self._inside = self._body, None, None
        return [] if body is None else [Claimed(claim, bytes(body), self._began)]

    def _close_with(self, reason: Reason, detail: str) -> list[Event]:
        """The open string is no more. One fault a string: a string too long has had its own."""
        faults: list[Event] = [] if self._body is None else [self._fault(reason, detail)]
        self._held, self._body, self._inside = b"", None, None
        return faults

    def _fault(self, reason: Reason, detail: str, begins: bytes = b"") -> Fault:
        return Fault(reason, self._began, f"{self._inside}: {detail}", self._inside, begins)


class Unwrap:
    """A demux whose claimed strings are parsed too: the shape of a codec, beside visible bytes."""

    def __init__(self, parsers: dict[Claim, Callable[[Claimed], Event]]) -> None:
        self._parsers = parsers
        self._demux = Demux(parsers)

    def feed(self, data: bytes) -> list[Event]:
        return [self._parsed(event) for event in self._demux.feed(data)]

    def flush(self) -> list[Event]:
        return self._demux.flush()

    def eof(self) -> list[Event]:
        return self._demux.eof()

    def _parsed(self, event: Event) -> Event:
        return self._parsers[event.claim](event) if isinstance(event, Claimed) else event
