"""Questions of ours to the person's terminal, and the answers among what is typed there.

Each question goes between two others (`CSI 5 n`) that every terminal answers: what comes between
their answers is for us, and all that is typed goes on to the program. A program may ask `CSI 5 n`
itself, so its output is watched for that, and the answers to what it asked before us are its own.

One answer is not bound by the marks: a terminal may ask its own user whether the clipboard is told
(OSC 52), and answers when they have. Only while something is open is anything looked at. Pure:
bytes and time come in as arguments.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable

MARK: Final = b"\x1b[5n"
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
_CLIP_SECONDS: Final = 10.0 * limits.QUESTION_SECONDS
"""The same for the clipboard, which may be a password: whoever comes back to their terminal's
question minutes later does not mean the program that reads then."""


def patience(question: bytes) -> float:
    """Seconds to wait for the answer to this: the terminal's, or its user's."""
    return limits.QUESTION_SECONDS if question.startswith(_CLIP) else ANSWER_SECONDS


@dataclass(slots=True)
class _Open:
    told: Callable[[bytes], None]
    until: float
    before: int
    """Marks of the program's that are answered first."""
    clip: bool


class Asking:
    """At one terminal."""

    def __init__(self) -> None:
        self._open: deque[_Open] = deque()
        self._clips: deque[_Open] = deque()
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

    def printed(self, data: bytes, now: float) -> None:
        """The program printed this: did it ask for a mark? One cut in two is still one."""
        seen = self._printed + data if self._printed else data
        if b"\x1b" not in seen:
            self._printed = b""
            return
        if asked := seen.count(MARK):
            self._theirs = min(self._theirs + asked, limits.ATTRIBUTE_QUESTIONS)
            self._theirs_until = now + _LATE_SECONDS
        begun = _MARKING.search(seen, max(len(seen) - 3, 0))
        self._printed = begun[0] if begun else b""

    def ask(self, question: bytes, told: Callable[[bytes], None], now: float) -> bytes | None:
        """What to send; None if too much is open. `told` gets what the terminal answers, all of it,
        or is never called."""
        self._expire(now)
        if len(self._open) + len(self._clips) >= limits.ATTRIBUTE_QUESTIONS:
            return None
        clip = question.startswith(_CLIP)
        self._open.append(_Open(told, now + _LATE_SECONDS, self._theirs, clip))
        self._theirs = 0
        return MARK + question + MARK

    def typed(self, data: bytes, now: float) -> bytes:
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
                passed.append(self._heard(found[0], now))
            elif begun.fullmatch(data, at) and len(data) - at < 2 * limits.CLIPBOARD_CHARS:
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

    def _heard(self, answer: bytes, now: float) -> bytes:
        """An answer, ours or the program's."""
        ours = self._open[0] if self._open else None
        clip = answer.startswith(_CLIP)
        if clip and self._clips and not (self._inside and ours and ours.clip):
            self._clips.popleft().told(answer)
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

    def _end(self, ours: _Open, now: float) -> None:
        said, self._said, self._inside = self._said, b"", False
        if ours.clip and _CLIP not in said:
            ours.until = now + _CLIP_SECONDS
            self._clips.append(ours)
        else:
            ours.told(said)

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
