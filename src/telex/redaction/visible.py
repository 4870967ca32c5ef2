"""What a reader sees of a text, and the escape sequences between.

A terminal shows `sk-ab` + red + `cd` as one word, so the rules read the visible characters and the
sequences stand aside. The body of an OSC, DCS, APC, PM or SOS string (a title, a link, a picture)
is not on the screen but may hold a secret all the same: each body is a text of its own.

This is the grammar a redactor needs and no more: it never executes anything, it works on decoded
text, and it has no maximum but that of one sequence. `wire.demux` is the one that reads bytes and
delivers bodies. Used by `lane` (to let sequences through the prefilter) and by `stream`.
"""

from __future__ import annotations

import re
from typing import Final

# Whatever moves no text counts as invisible, the 8-bit controls too: in decoded text they are
# stray, not introducers. Tab, the line breaks and form feed separate words and stay visible.
_CONTROLS: Final = r"\x00-\x08\x0e-\x1f\x7f-\x9f"
# So do characters without a width: the reader sees one word. They are few and none is Latin-1 but
# the soft hyphen, so a search over bytes has to be given text without them.
_ZERO_WIDTH: Final = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
)
# A CSI may be cut anywhere across feeds and is carried over until complete, so it needs a maximum;
# past it the introducer alone is the sequence and its parameters are text.
_PARAMETERS: Final = 256

# It begins with a set of characters, not with alternatives: `re` skips to the next one of a set
# three times as fast.
_SEQUENCE: Final = re.compile(
    rf"([{_CONTROLS}{_ZERO_WIDTH}]"
    rf"(?:(?<=\x1b)(?:\[[ -?]{{0,{_PARAMETERS}}}[@-~]|[ -/]{{1,16}}[0-~]|[0-~]))?)"
)
# As `_SEQUENCE`, for those that begin with ESC: a fixed first character is found faster than a set.
_ESCAPES: Final = re.compile(rb"\x1b(?:\[[ -?]{0,%d}+[@-~]|[ -/]{1,16}[0-~]|[0-~])" % _PARAMETERS)
_CONTROL_BYTES: Final = bytes({*range(9), *range(14, 32), *range(127, 160)})
_NO_WIDTH: Final = re.compile(f"[{_ZERO_WIDTH}]+")
_UNFINISHED: Final = re.compile(rf"\x1b(?:\[[ -?]{{0,{_PARAMETERS}}}|[ -/]{{0,16}})\Z")

_STRING_OPENS: Final = frozenset(f"\x1b{kind}" for kind in "]PX^_")
_STRING_OPEN: Final = re.compile(r"\x1b[\]PX^_]")
_STRING: Final = re.compile(r"\x1b[\]PX^_]([^\x07\x18\x1a\x1b]*+)(?:\x07|\x1b\\)")
_STRING_CLOSES: Final = ("\x1b", "\x07", "\x18", "\x1a")  # ST begins with ESC; so does any abort

TRANSPARENT: Final = rf"(?:[{_CONTROLS}](?:[ -?\[]*[@-~])?)*"
"""Sequences in any number, for a linear-time engine. Wider than the split above, and shorter: it
only ever helps to rule secrets out."""
ANY_CONTROL: Final = rf"[{_CONTROLS}]"

_ATOM: Final = re.compile(r"(\(\?[a-z]*:)|(\\.|\[[^]]*\]|[^()|?*+{}])(\{[0-9,]+\}|\?)?")


def permeable(pattern: str) -> str:
    """The same pattern, with escape sequences allowed after every character of it."""
    return _ATOM.sub(_permeable_atom, pattern)


def _permeable_atom(atom: re.Match[str]) -> str:
    opening, character, count = atom.groups(default="")
    return opening or f"(?:{character}{TRANSPARENT}){count}"


def split(text: str) -> tuple[list[str], str]:
    """Runs and sequences in turn, a run first and last; and the unfinished sequence at the end."""
    last = text.rfind("\x1b")
    if last >= 0 and _UNFINISHED.match(text, last):
        return _SEQUENCE.split(text[:last]), text[last:]
    return _SEQUENCE.split(text), ""


def without_zero_width(text: str) -> str:
    return text if text.isascii() else _NO_WIDTH.sub("", text)


def without_sequences(data: bytes) -> bytes:
    """What is left of a text, in Latin-1, without its sequences; for a search only."""
    return _ESCAPES.sub(b"", data).translate(None, _CONTROL_BYTES)


def apart(text: str) -> tuple[str, str] | None:
    """What the screen gets of a text, and the bodies of the control strings in it, one a line.

    Where a string stood there is a sequence. None if one of them is not over.
    """
    if "\x1b" not in text or not _STRING_OPEN.search(text):
        return text, ""
    bodies = "\n".join(_STRING.findall(text))
    screen = _STRING.sub("\x1b\\\\", text)
    return None if _STRING_OPEN.search(screen) else (screen, bodies)


def last_parts(text: str, least: int) -> tuple[list[str], str]:
    """As `split`, of the end of a text: at least the last `least` visible characters, if it has
    them. ESC always begins something new, so any ESC is a safe place to start from."""
    for size in (3 * least, 9 * least) if "\x1b" in text else (least, 3 * least):
        start = max(0, len(text) - size)
        escape = text.rfind("\x1b", 0, start)
        parts, unfinished = split(text[start if escape < 0 else escape :])
        if sum(map(len, parts[::2])) >= least:
            return parts, unfinished
    return split(text)


def count_at_end(parts: list[str], most: int) -> int:
    """How many visible characters stand in the last `most` of these parts."""
    if len(parts) == 1:
        return min(most, len(parts[0]))
    count = 0
    for run, sequence in zip(parts[::-2], [*parts[-2::-2], ""], strict=False):
        if len(run) >= most:
            return count + max(0, most)
        count += len(run)
        most -= len(run) + len(sequence)
    return count


def length_of_end(parts: list[str], count: int) -> int:
    """How long the end of these parts is that begins with the last `count` visible characters."""
    length = 0
    for run, sequence in zip(parts[::-2], ["", *parts[-2::-2]], strict=False):
        length += len(sequence)
        if count <= len(run):
            return length + count
        length += len(run)
        count -= len(run)
    return length


class TextOwner:
    """Whose text comes next: the screen's (0), or that of the n-th control string."""

    __slots__ = ("_strings", "number")

    def __init__(self) -> None:
        self.number = 0
        self._strings = 0

    def pass_over(self, sequence: str) -> bool:
        """Take note of a sequence; true when the text after it is another's."""
        before = self.number
        if before and sequence.startswith(_STRING_CLOSES):
            self.number = 0
        if sequence in _STRING_OPENS:
            self._strings += 1
            self.number = self._strings
        return self.number != before


def texts(text: str) -> list[str]:
    """What the screen shows of a whole text, then the body of each control string in it."""
    parts, _ = split(text)
    found: list[list[str]] = [[]]
    owner = TextOwner()
    for run, sequence in zip(parts[::2], [*parts[1::2], ""], strict=True):
        found[owner.number].append(run)
        if owner.pass_over(sequence) and owner.number:
            found.append([])
    return ["".join(runs) for runs in found]
