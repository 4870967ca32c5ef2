"""Splits a terminal's output into bytes for the screen and control strings for telex.

Feed the demux the bytes that a program wrote. Bytes outside every claim come back as `Visible`,
unchanged and at once. Each control string with a claimed prefix comes back whole as `Claimed`, and
its bytes are never visible, however the reads fall. The split happens on raw bytes and before any
emulator, because an emulator that does not know a control string may paint it.

Three facts of terminals make this small:

*An ESC begins a new sequence, wherever it stands.* So an introducer is an introducer in any
context, and finding one is a substring search (`Introducers`), with no parser for the rest of the
stream.

*A partial introducer shows nothing.* So at the end of a read the demux holds at most a few bytes
that may become an introducer, and needs no clock to release them: the next byte decides. Only a
reader of keystrokes, where a lone ESC is a key, calls `flush()` when its own clock says so.

*An ESC aborts the sequence that it interrupts.* Cutting a string out of the stream must not join
the two ends again: `ESC ] 231`, a claimed string, `98;…` would smuggle a new claim past the demux
into the visible bytes. Where a partial introducer stands right before the cut, CAN takes the place
of the ESC that interrupted it. Everything else around a cut joins up as if the string had never
been sent, so a frame written by one program into the middle of another's output harms neither.

Used by every `PtySession`, by `telex run`, and by programs that read replies among keystrokes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.wire.escape import CAN, ESC, Claim, Ending, find_end
from telex.wire.events import Claimed, Event, Fault, Reason, Visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


BEGINS: Final = 256
"""How many bytes of a string that is too long its fault keeps: enough for the id of a packet."""


class Demux:
    """Splits one direction of one terminal stream. Sans-IO; feed it from one place."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._introducers = Introducers(claims)
        self._offset = 0
        """Stream position of the next byte to examine."""
        self._held = b""
        """Outside a string: a partial introducer. Inside: an ESC that may begin the terminator."""
        self._dangling = False
        """Whether the last visible bytes end in a partial introducer that another ESC aborted."""
        self._inside: Claim | None = None
        self._began = 0
        self._body: bytearray | None = None
        """The open string's body so far, or None once it is too long to keep."""

    def feed(self, data: bytes) -> list[Event]:
        """Return the events in these bytes. No input makes it raise."""
        if self._inside is None and not self._held and self._introducers.absent_from(data):
            self._offset += len(data)
            self._dangling &= not data
            return [Visible(data)] if data else []
        return self._divide(self._held + data)

    def flush(self) -> list[Event]:
        """Release a held partial introducer as visible bytes. An open string stays claimed."""
        if self._inside is not None or not self._held:
            return []
        released, self._held, self._dangling = self._held, b"", True
        self._offset += len(released)
        return [Visible(released)]

    def eof(self) -> list[Event]:
        """End the stream: held bytes become visible, and an open string is a truncation fault."""
        if self._inside is None:
            return self.flush()
        return self._close_with(Reason.TRUNCATED, "the stream ended inside the control string")

    def _divide(self, data: bytes) -> list[Event]:
        """Split a read, with the bytes held before it, into parts outside and inside strings."""
        self._held = b""
        events: list[Event] = []
        self._introducers.start(data)
        at = 0
        while at < len(data):
            if self._inside is None:
                at = self._pass_visible(data, at, events)
            else:
                at = self._collect(self._inside, data, at, events)
        self._offset += len(data) - len(self._held)
        return events

    def _pass_visible(self, data: bytes, at: int, events: list[Event]) -> int:
        """Emit the bytes before the next introducer as visible. Return where to continue."""
        begin = self._introducers.next(at)
        pending = self._introducers.beginning_before(begin, at)
        end = begin - pending if begin == len(data) else begin
        self._held = data[end:begin]
        if at < end:
            events.append(Visible(data[at:end]))
            self._dangling = pending > 0 and self._introducers.beginning_before(end, at) > 0
        return begin if begin == len(data) else self._open(begin, events)

    def _open(self, begin: int, events: list[Event]) -> int:
        """Enter the string whose introducer stands at `begin`. Return where its body starts."""
        if self._dangling:
            events.append(Visible(CAN))
            self._dangling = False
        self._inside = claim = self._introducers.claim_at(begin)
        self._began = self._offset + begin
        self._body = bytearray()
        return begin + len(claim.introducer)

    def _collect(self, claim: Claim, data: bytes, at: int, events: list[Event]) -> int:
        """Collect the body, or skip it once it is too long. Return where to continue."""
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
        """Close the open string with a fault, unless it already had one for its length."""
        faults: list[Event] = [] if self._body is None else [self._fault(reason, detail)]
        self._held, self._body, self._inside = b"", None, None
        return faults

    def _fault(self, reason: Reason, detail: str, begins: bytes = b"") -> Fault:
        return Fault(reason, self._began, f"{self._inside}: {detail}", self._inside, begins)


class Unwrap:
    """A demux that also parses the claimed strings, so it has the interface of a codec."""

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


# A fast search for the introducers of claimed control strings in a read.
#
# Nearly no read contains an introducer, but a program that paints a whole screen sends an ESC every
# few bytes. So the search must not stop at each ESC. Introducers with a common beginning form one
# family and are searched together, from their second byte on: the regex engine skips ahead to that
# byte, which is rare, and tests for the ESC before it only where the rest matches. Before that, one
# memchr for a byte that the whole family has in common dismisses most reads.


class _Family:
    """The introducers of one kind of control string, searched together."""

    def __init__(self, members: list[bytes]) -> None:
        first, last = min(members), max(members)
        common = next(first[:n] for n in range(len(first), 0, -1) if last.startswith(first[:n]))
        self.telltale = max(common)
        """The highest byte of it: the bytes of colour codes (digits, `;`, `[`) sort below it."""
        rests = b"|".join(re.escape(member.removeprefix(common)) for member in members)
        tail, whole = re.escape(common[1:]), re.escape(common)
        self._search = re.compile(b"%b(?<=%b)(?:%b)" % (tail, whole, rests)).search

    def find(self, data: bytes, at: int = 0) -> int:
        """Return where the next member stands, or the length of the data."""
        found = self._search(data, at + 1)
        return found.start() - 1 if found else len(data)


class Introducers:
    """Finds the introducers of some claims in one read at a time."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._claims = {claim.introducer: claim for claim in claims}
        kinds = {introducer[:2] for introducer in self._claims}
        self._families = [
            _Family([i for i in self._claims if i.startswith(kind)]) for kind in kinds
        ]
        self._beginnings = frozenset(
            introducer[:n] for introducer in self._claims for n in range(1, len(introducer))
        )
        self._longest = max(map(len, self._beginnings), default=1)
        self._read = b""
        self._ahead: list[int] = []
        """Where each family was found next; less than the search position if not searched yet."""

    def absent_from(self, read: bytes) -> bool:
        """Whether the read certainly has no introducer and does not end in a partial one."""
        for family in self._families:
            if family.telltale in read and family.find(read) < len(read):
                return False
        esc = read.rfind(ESC, -self._longest)
        return esc < 0 or read[esc:] not in self._beginnings

    def start(self, read: bytes) -> None:
        """Search this read from now on."""
        self._read = read
        self._ahead = [-1 if family.telltale in read else len(read) for family in self._families]

    def next(self, at: int) -> int:
        """Return where the next introducer stands, at `at` or later; else the read's length."""
        for index, where in enumerate(self._ahead):
            if where < at:
                self._ahead[index] = self._families[index].find(self._read, at)
        return min(self._ahead, default=len(self._read))

    def claim_at(self, begin: int) -> Claim:
        """Return the claim whose introducer stands at `begin`."""
        for introducer, claim in self._claims.items():
            if self._read.startswith(introducer, begin):
                return claim
        raise LookupError(f"no introducer at byte {begin}")

    def beginning_before(self, end: int, at: int = 0) -> int:
        """Return how many bytes just before `end`, from `at` on, are a partial introducer."""
        esc = self._read.rfind(ESC, max(at, end - self._longest), end)
        return end - esc if esc >= 0 and self._read[esc:end] in self._beginnings else 0
