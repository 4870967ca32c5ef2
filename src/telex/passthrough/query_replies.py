"""Finds replies of the person's terminal among the input: to our queries, and to the program's DA1.

All three classes are pure: bytes and time come in as arguments.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.escapes import limits as escapes_limits
from telex.passthrough import limits

if TYPE_CHECKING:
    from collections.abc import Callable


QUERY_MARK: Final = b"\x1b[5n"
"""A status query (DSR), to which every terminal replies."""
ANSWER_SECONDS: Final = 1.0
"""How long the person's terminal may take to reply."""
_MARKING: Final = re.compile(rb"\x1b(?:\[5?)?\Z")
_THERE: Final = re.compile(rb"\x1b\[[03]n")
_THERE_BEGUN: Final = re.compile(rb"\x1b(?:\[[03]?)?\Z")
_ANSWER: Final = re.compile(
    rb"\x1b(?:\[[?>]?[0-9;]{1,64}(?:[Rcnt]|\$y)"
    rb"|\][0-9]{1,4};[^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)"
    rb"|[P_][01>G][^\x07\x18\x1a\x1b]*\x1b\\)"
)
_BEGUN: Final = re.compile(
    rb"\x1b(?:\[(?:[?>]?[0-9;]{0,64}\$?)?"
    rb"|\](?:[0-9]{1,4}(?:;[^\x07\x18\x1a\x1b]*\x1b?)?)?"
    rb"|[P_](?:[01>G][^\x07\x18\x1a\x1b]*\x1b?)?)?"
)
_CLIP: Final = b"\x1b]52;"
_CLIP_ANSWER: Final = re.compile(rb"\x1b\]52;[^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)")
_CLIP_BEGUN: Final = re.compile(rb"\x1b(?:\](?:5(?:2(?:;[^\x07\x18\x1a\x1b]*\x1b?)?)?)?)?")
_KEY_SECONDS: Final = 0.025
_REST_SECONDS: Final = 1.0
"""How long to hold a beginning that is longer than a key: the clipboard comes in many reads."""
_LATE_SECONDS: Final = 5.0
"""A reply that is so late still is ours, and is not written to the program."""
_CLIP_SECONDS: Final = 10.0 * escapes_limits.QUESTION_SECONDS
"""The same for the clipboard, which may be a password: a person who answers their terminal's
question minutes later does not mean the program that reads by then."""


def reply_seconds(query: bytes) -> float:
    """Return the seconds to wait for a reply. For the clipboard, the terminal may ask its user."""
    return escapes_limits.QUESTION_SECONDS if query.startswith(_CLIP) else ANSWER_SECONDS


@dataclass(slots=True)
class _OpenQuery:
    reply: Callable[[bytes], None]
    until: float
    before: int
    """Replies to the program's own marks that come first."""
    clip: bool


class TerminalQueries:
    """Sends our queries to one terminal, and takes their replies out of the input.

    Each query is sent between two marks (`CSI 5 n`), to which every terminal replies. Replies
    between the replies to the marks are ours, and all other input is for the program. A program may
    send `CSI 5 n` too, so its output is searched for it, and the replies to marks that the program
    sent before ours belong to the program.

    One reply does not stay between the marks: a terminal may ask its user whether a program may
    read the clipboard (OSC 52), and replies after the user has answered. Input is searched only
    while a query is open.
    """

    def __init__(self) -> None:
        self._open: deque[_OpenQuery] = deque()
        self._clips: deque[_OpenQuery] = deque()
        """Queries for the clipboard whose marks have been replied to."""
        self._inside = False
        self._reply = b""
        self._held = b""
        self.held_until: float | None = None
        """When to call `release`, if input is held back."""
        self._tail = b""
        self._theirs, self._theirs_until = 0, 0.0
        """Marks that the program sent after our last query."""
        self._passed = b""
        """The beginning of a possible reply to one of them, already passed on."""

    def program_output(self, data: bytes, now: float) -> None:
        """Count the marks in the program's output, also one that two reads share."""
        seen = self._tail + data if self._tail else data
        if b"\x1b" not in seen:
            self._tail = b""
            return
        if asked := seen.count(QUERY_MARK):
            self._theirs = min(self._theirs + asked, limits.ATTRIBUTE_QUESTIONS)
            self._theirs_until = now + _LATE_SECONDS
        begun = _MARKING.search(seen, max(len(seen) - 3, 0))
        self._tail = begun[0] if begun else b""

    def ask(self, query: bytes, reply: Callable[[bytes], None], now: float) -> bytes | None:
        """Return the bytes to send; None if too many queries are open.

        `reply` is called with the terminal's whole reply, or never.
        """
        self._expire(now)
        if len(self._open) + len(self._clips) >= limits.ATTRIBUTE_QUESTIONS:
            return None
        clip = query.startswith(_CLIP)
        self._open.append(_OpenQuery(reply, now + _LATE_SECONDS, self._theirs, clip))
        self._theirs = 0
        return QUERY_MARK + query + QUERY_MARK

    def person_input(self, data: bytes, now: float) -> bytes:
        """Take our replies out of the input. Return the rest."""
        self._expire(now)
        data = self.release() + data
        passed, at = [], 0
        if self._passed:
            at = self._finish_passed(data)
            passed.append(data[:at])
        while (self._open or self._clips) and (begin := data.find(b"\x1b", at)) >= 0:
            passed.append(data[at:begin])
            at = begin
            answer, begun = (_ANSWER, _BEGUN) if self._open else (_CLIP_ANSWER, _CLIP_BEGUN)
            if self._theirs and not self._open and (found := _THERE.match(data, at)):
                self._theirs -= 1
                passed.append(found[0])
                at = found.end()
            elif found := answer.match(data, at):
                at = found.end()
                passed.append(self._take_reply(found[0], now))
            elif begun.fullmatch(data, at) and len(data) - at < 2 * escapes_limits.CLIPBOARD_CHARS:
                self._held = data[at:]
                seconds = _KEY_SECONDS if len(self._held) < 3 else _REST_SECONDS
                self.held_until = now + seconds
                return b"".join(passed)
            else:
                passed.append(data[at : at + 1])
                at += 1
        rest = data[at:]
        if self._theirs:
            self._count_theirs(rest)
        return b"".join([*passed, rest])

    def release(self) -> bytes:
        """Return held input: nothing followed it in time, so it was a key."""
        held, self._held, self.held_until = self._held, b"", None
        return held

    def _expire(self, now: float) -> None:
        while self._open and now > self._open[0].until:
            self._open.popleft()
            self._inside, self._reply = False, b""
        while self._clips and now > self._clips[0].until:
            self._clips.popleft()
        if now > self._theirs_until:
            self._theirs = 0

    def _take_reply(self, reply: bytes, now: float) -> bytes:
        """Keep a reply that is ours; return one that is the program's."""
        ours = self._open[0] if self._open else None
        clip = reply.startswith(_CLIP)
        if clip and self._clips and not (self._inside and ours and ours.clip):
            self._clips.popleft().reply(reply)
            return b""
        if ours is None:
            return reply
        mark = _THERE.fullmatch(reply)
        if not self._inside:
            if mark and ours.before:
                ours.before -= 1
                return reply
            self._inside = mark is not None
            return b"" if mark else reply
        if mark is None:
            self._reply += reply
            return b""
        self._finish(self._open.popleft(), now)
        return b""

    def _finish(self, ours: _OpenQuery, now: float) -> None:
        reply, self._reply, self._inside = self._reply, b"", False
        if ours.clip and _CLIP not in reply:
            ours.until = now + _CLIP_SECONDS
            self._clips.append(ours)
        else:
            ours.reply(reply)

    # Replies to the program's own marks while no query of ours is open: counted, never held back.

    def _count_theirs(self, data: bytes) -> None:
        self._theirs = max(0, self._theirs - len(_THERE.findall(data)))
        begun = _THERE_BEGUN.search(data, max(len(data) - 3, 0)) if self._theirs else None
        self._passed = begun[0] if begun else b""

    def _finish_passed(self, data: bytes) -> int:
        """Return how many bytes complete the reply whose beginning was already passed on."""
        begun, self._passed = self._passed, b""
        seen = begun + data
        if found := _THERE.match(seen):
            if self._theirs:
                self._theirs -= 1
            elif self._open and self._open[0].before:
                self._open[0].before -= 1
            return found.end() - len(begun)
        if _THERE_BEGUN.fullmatch(seen):
            self._passed = seen
            return len(data)
        return 0


_DA1_ASKED: Final = re.compile(rb"c(?:(?<=\x1b\[c)|(?<=\x1b\[0c))")
"""Searched by its last byte, which is rarer than its first: four times faster."""
_DA1_ASKING: Final = re.compile(rb"\x1b(?:\[0?)?\Z")
_DA1_ANSWER: Final = re.compile(rb"\x1b\[\?[0-9;]{0,64}c")
_DA1_BEGUN: Final = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,64})?)?\Z")
"""A reply that continues in the next read, or a key."""

_DA1_HELD_SECONDS: Final = 0.025
_DA1_PATIENCE_SECONDS: Final = 5.0
"""How long after a query the input is searched: over a slow line a reply takes seconds."""


class AttributeFilter:
    """Adds our attribute to the terminal's reply to DA1 (`CSI c`).

    A program asks for its terminal's abilities by `CSI c`. The person's terminal replies for
    itself; this filter adds the attribute for JSON escapes, and changes nothing else. Output is
    searched for the query, and input only while a query is open. An ESC that may begin the reply is
    held back for at most 25 ms, since it may be the Escape key.
    """

    def __init__(self, attribute: int) -> None:
        self._added = b";%dc" % attribute
        self._tail = b""
        self._open = 0
        self._until = 0.0
        self._held = b""
        self._release_at = 0.0

    @property
    def held_until(self) -> float | None:
        """When to call `release`, if input is held back."""
        return self._release_at if self._held else None

    def program_output(self, data: bytes, now: float) -> None:
        """Count the DA1 queries in the program's output, also one that two reads share."""
        seen = self._tail + data if self._tail else data
        if b"\x1b" not in seen:  # ten times faster than the rest
            self._tail = b""
            return
        if asked := len(_DA1_ASKED.findall(seen)):
            self._open = min(self._open + asked, limits.ATTRIBUTE_QUESTIONS)
            self._until = now + _DA1_PATIENCE_SECONDS
        begun = _DA1_ASKING.search(seen, max(len(seen) - 3, 0))
        self._tail = begun[0] if begun else b""

    def person_input(self, data: bytes, now: float) -> bytes:
        """Add the attribute to DA1 replies in the input. Return the input for the program."""
        if not self._open and not self._held:
            return data
        data, self._held = self._held + data, b""
        if now > self._until:
            self._open = 0
        data = _DA1_ANSWER.sub(self._added_to, data, count=self._open) if self._open else data
        if self._open and (begun := _DA1_BEGUN.search(data)):
            self._held = begun[0]
            self._release_at = now + _DA1_HELD_SECONDS
            data = data[: begun.start()]
        return data

    def release(self) -> bytes:
        """Return held input: nothing followed it in time, so it was a key."""
        data, self._held = self._held, b""
        return data

    def _added_to(self, found: re.Match[bytes]) -> bytes:
        self._open -= 1
        reply = found[0]
        # An outer telex may have added the attribute already.
        return reply if reply.endswith(self._added) else reply[:-1] + self._added


_UNSCANNED_BYTES: Final = limits.UNSEEN_BYTES // 64
"""More than a program prints between a query and its reply, on any line."""
_UNSCANNED_SECONDS: Final = 5.0
"""No program waits longer for a reply."""


_UNSCANNED_PART_BYTES: Final = 4096
"""Shorter parts are joined, since a program may print single letters."""


class UnscannedOutput:
    """Keeps the last output of a program until it is searched for queries.

    A query in the output only matters once the terminal sends a possible reply, or we send a query
    ourselves. To search all escape sequences of a program that draws would be wasted time.
    """

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._weight = 0
        self._last = 0.0

    def add(self, data: bytes, now: float) -> None:
        self._last = now
        self._weight += len(data)
        if self._parts and len(self._parts[-1]) < _UNSCANNED_PART_BYTES:
            self._parts[-1] += data
        else:
            self._parts.append(data)
        while self._weight > _UNSCANNED_BYTES and len(self._parts) > 1:
            self._weight -= len(self._parts.popleft())

    def take(self, now: float) -> bytes:
        """Return the kept output, and forget it."""
        taken = b"".join(self._parts) if now <= self._last + _UNSCANNED_SECONDS else b""
        self._parts.clear()
        self._weight = 0
        return taken
