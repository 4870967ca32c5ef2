"""Replies of the person's terminal: to our queries, and to the program's DA1.

All three are pure: bytes and time come in as arguments.
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
"""Are you there?"""
ANSWER_SECONDS: Final = 1.0
"""So long the person's terminal may take to answer; longer only where nobody would wait."""
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
"""For the rest of an answer that is more than a key: a clipboard's comes in many reads."""
_LATE_SECONDS: Final = 5.0
"""So long after its time an answer still is ours, and not typed into the program."""
_CLIP_SECONDS: Final = 10.0 * escapes_limits.QUESTION_SECONDS
"""The same for the clipboard, which may be a password: whoever comes back to their terminal's
question minutes later does not mean the program that reads then."""


def reply_seconds(question: bytes) -> float:
    """Seconds to wait for the answer to this: the terminal's, or its user's."""
    return escapes_limits.QUESTION_SECONDS if question.startswith(_CLIP) else ANSWER_SECONDS


@dataclass(slots=True)
class _OpenQuery:
    reply: Callable[[bytes], None]
    until: float
    before: int
    """Marks of the program's that are answered first."""
    clip: bool


class TerminalQueries:
    """Our queries to one terminal, and their replies among the input.

    Each query goes between two others (`CSI 5 n`) that every terminal answers: what comes between
    their answers is for us, and all else goes on to the program. A program may ask `CSI 5 n`
    itself, so its output is watched for that, and the replies to what it asked before us are its
    own.

    One reply is not bound by the marks: a terminal may ask its own user whether the clipboard may
    be read (OSC 52), and replies when they have answered. Input is searched only while a query is
    open.
    """

    def __init__(self) -> None:
        self._open: deque[_OpenQuery] = deque()
        self._clips: deque[_OpenQuery] = deque()
        """Questions for the clipboard, after their marks."""
        self._inside = False
        self._said = b""
        self._held = b""
        self.held_until: float | None = None
        """When to call `release`, if something is held back."""
        self._printed = b""
        self._theirs, self._theirs_until = 0, 0.0
        """Marks that the program printed after our last question."""
        self._passed = b""
        """The beginning of what may answer one of them."""

    def program_output(self, data: bytes, now: float) -> None:
        """The program printed this: did it ask for a mark? One cut in two is still one."""
        seen = self._printed + data if self._printed else data
        if b"\x1b" not in seen:
            self._printed = b""
            return
        if asked := seen.count(QUERY_MARK):
            self._theirs = min(self._theirs + asked, limits.ATTRIBUTE_QUESTIONS)
            self._theirs_until = now + _LATE_SECONDS
        begun = _MARKING.search(seen, max(len(seen) - 3, 0))
        self._printed = begun[0] if begun else b""

    def ask(self, question: bytes, reply: Callable[[bytes], None], now: float) -> bytes | None:
        """What to send; None if too much is open. `reply` gets the terminal's whole answer, or is
        never called."""
        self._expire(now)
        if len(self._open) + len(self._clips) >= limits.ATTRIBUTE_QUESTIONS:
            return None
        clip = question.startswith(_CLIP)
        self._open.append(_OpenQuery(reply, now + _LATE_SECONDS, self._theirs, clip))
        self._theirs = 0
        return QUERY_MARK + question + QUERY_MARK

    def person_input(self, data: bytes, now: float) -> bytes:
        """What of it is not for us."""
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
                passed.append(self._take_answer(found[0], now))
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
        """Nothing followed what was held back: it was a key."""
        held, self._held, self.held_until = self._held, b"", None
        return held

    def _expire(self, now: float) -> None:
        while self._open and now > self._open[0].until:
            self._open.popleft()
            self._inside, self._said = False, b""
        while self._clips and now > self._clips[0].until:
            self._clips.popleft()
        if now > self._theirs_until:
            self._theirs = 0

    def _take_answer(self, answer: bytes, now: float) -> bytes:
        """An answer, ours or the program's."""
        ours = self._open[0] if self._open else None
        clip = answer.startswith(_CLIP)
        if clip and self._clips and not (self._inside and ours and ours.clip):
            self._clips.popleft().reply(answer)
            return b""
        if ours is None:
            return answer
        mark = _THERE.fullmatch(answer)
        if not self._inside:
            if mark and ours.before:
                ours.before -= 1
                return answer
            self._inside = mark is not None
            return b"" if mark else answer
        if mark is None:
            self._said += answer
            return b""
        self._end(self._open.popleft(), now)
        return b""

    def _end(self, ours: _OpenQuery, now: float) -> None:
        said, self._said, self._inside = self._said, b"", False
        if ours.clip and _CLIP not in said:
            ours.until = now + _CLIP_SECONDS
            self._clips.append(ours)
        else:
            ours.reply(said)

    # Answers to the program's own, while none of ours is open: counted, and never held back.

    def _count_theirs(self, data: bytes) -> None:
        self._theirs = max(0, self._theirs - len(_THERE.findall(data)))
        begun = _THERE_BEGUN.search(data, max(len(data) - 3, 0)) if self._theirs else None
        self._passed = begun[0] if begun else b""

    def _finish_passed(self, data: bytes) -> int:
        """How much of it ends the answer whose beginning has gone on already."""
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
"""From its last byte on, which is rarer than its first: four times faster."""
_DA1_ASKING: Final = re.compile(rb"\x1b(?:\[0?)?\Z")
_DA1_ANSWER: Final = re.compile(rb"\x1b\[\?[0-9;]{0,64}c")
_DA1_BEGUN: Final = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,64})?)?\Z")
"""An answer that goes on in the next read, or a key."""

_DA1_HELD_SECONDS: Final = 0.025
_DA1_PATIENCE_SECONDS: Final = 5.0
"""So long after a question the keyboard is looked at; over a slow line an answer takes seconds."""


class AttributeFilter:
    """Adds our attribute to the terminal's own answer to "what are you?" (DA1).

    A program learns by `CSI c` what its terminal can do. The person's terminal answers for itself;
    we add that JSON escapes are understood too, and change nothing else. Output is searched for the
    query, and input only while one is open. An escape that may begin the answer is held back for a
    moment, and a lone one, which is a key, for no longer than 25 ms.
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
        """When to call `release`, if something is held back."""
        return self._release_at if self._held else None

    def program_output(self, data: bytes, now: float) -> None:
        """The program printed this: did it ask? A question cut in two is still one."""
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
        """What goes on to the program of what the person's terminal sent."""
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
        """Nothing followed what was held back: it was a key."""
        data, self._held = self._held, b""
        return data

    def _added_to(self, found: re.Match[bytes]) -> bytes:
        self._open -= 1
        reply = found[0]
        # There already, if what we run in adds it too.
        return reply if reply.endswith(self._added) else reply[:-1] + self._added


_UNSCANNED_BYTES: Final = limits.UNSEEN_BYTES // 64
"""More than is printed before an answer comes, on a line however long."""
_UNSCANNED_SECONDS: Final = 5.0
"""Nobody waits longer for an answer."""


_UNSCANNED_PART_BYTES: Final = 4096
"""Less than this is not kept by itself, since a program may print single letters."""


class UnscannedOutput:
    """The last output of a program, not yet searched for queries.

    A query in the output only matters once the terminal sends something that may be a reply, or we
    query it ourselves. Until then, looking at every escape of a program that paints would be
    wasted.
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
        """All of it, once."""
        taken = b"".join(self._parts) if now <= self._last + _UNSCANNED_SECONDS else b""
        self._parts.clear()
        self._weight = 0
        return taken
