"""The visible characters of a text, and the escape sequences between them.

A terminal shows `sk-ab` + red + `cd` as one word, so the rules read visible characters only. The
body of an OSC, DCS, APC, PM or SOS string (a title, a link, a picture) is not on the screen but may
contain a secret: each body is read as a text of its own.

This module has only the grammar that a redactor needs. It executes nothing, works on decoded text,
and limits only the length of one sequence. `wire.demux` is the parser that reads bytes and delivers
bodies. `prefilter` and `stream` use this module.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Control characters are invisible. The 8-bit controls are too: in decoded text they are stray
# characters, not introducers. Tab, line breaks and form feed separate words and count as visible.
_CONTROLS: Final = r"\x00-\x08\x0e-\x1f\x7f"
# Characters without a width are invisible, because a reader sees one word around them.
_BEYOND_ASCII: Final = (
    *("\x80-\x9f", "\xad-\xad", "\u034f-\u034f", "\u061c-\u061c", "\u180e-\u180e"),
    *("\u200b-\u200f", "\u202a-\u202e", "\u2060-\u2064", "\u2066-\u206f", "\ufeff-\ufeff"),
)
# An unfinished CSI is carried over to the next feed, so it needs a maximum. Past the maximum the
# introducer alone is the sequence and its parameters are text.
_PARAMETERS: Final = 256

# The pattern begins with a set of characters instead of alternatives, because `re` finds the next
# member of a set three times as fast.
_SEQUENCE: Final = re.compile(
    rf"([{_CONTROLS}{''.join(_BEYOND_ASCII)}]"
    rf"(?:(?<=\x1b)(?:\[[ -?]{{0,{_PARAMETERS}}}[@-~]|[ -/]{{1,16}}[0-~]|[0-~]))?)"
)
# The sequences that begin with ESC. A fixed first character is found faster than a set.
_ESCAPES: Final = re.compile(rb"\x1b(?:\[[ -?]{0,%d}+[@-~]|[ -/]{1,16}[0-~]|[0-~])" % _PARAMETERS)
_CONTROLS_TO_NUL: Final = bytes(
    0 if code < 9 or 13 < code < 32 or code == 127 else code for code in range(256)
)
_UNFINISHED: Final = re.compile(rf"\x1b(?:\[[ -?]{{0,{_PARAMETERS}}}|[ -/]{{0,16}})\Z")

_STRING_OPENS: Final = frozenset(f"\x1b{kind}" for kind in "]PX^_")
_STRING_OPEN: Final = re.compile(r"\x1b[\]PX^_]")
_STRING: Final = re.compile(r"\x1b[\]PX^_]([^\x07\x18\x1a\x1b]*+)(?:\x07|\x1b\\)")
_STRING_CLOSES: Final = ("\x1b", "\x07", "\x18", "\x1a")  # ST and aborting sequences begin with ESC


def _in_utf_8(characters: str) -> bytes:
    """Return a pattern over UTF-8 for a range of characters that differ in their last byte only."""
    first, last = (each.encode() for each in characters.split("-"))
    return b"%b[%b-%b]" % (first[:-1], first[-1:], last[-1:])


INVISIBLE_BEYOND_ASCII: Final = b"|".join(map(_in_utf_8, _BEYOND_ASCII))
INVISIBLE: Final = b"[%b]|%b" % (_CONTROLS.encode(), INVISIBLE_BEYOND_ASCII)
"""A pattern for one invisible character, over the bytes of UTF-8."""
_INVISIBLE: Final = re.compile(INVISIBLE_BEYOND_ASCII)
_SEQUENCES: Final = rb"(?:[%b](?:[ -?\[]*[@-~])?|%b)*" % (
    _CONTROLS.encode(),
    INVISIBLE_BEYOND_ASCII,
)
"""Any number of sequences, for a linear-time engine. The pattern is shorter than `_SEQUENCE` and
accepts more; it only serves to exclude secrets."""


def with_sequences_between(literal: bytes) -> bytes:
    """Return a pattern for this literal with escape sequences between any two of its bytes."""
    return _SEQUENCES.join(re.escape(literal[at : at + 1]) for at in range(len(literal)))


def split(text: str) -> tuple[list[str], str]:
    """Return runs of visible characters and sequences in turn, a run first and last; and the
    unfinished sequence at the end."""
    end = end_of_finished(text)
    return _SEQUENCE.split(text[:end]), text[end:]


def end_of_finished(text: str) -> int:
    """Return where the unfinished sequence at the end of a text begins, or the end."""
    last = text.rfind("\x1b")
    return last if last >= 0 and _UNFINISHED.match(text, last) else len(text)


def offset_of(parts: list[str], count: int) -> int:
    """Return the offset in these parts after this many visible characters."""
    before = bisect_left([*accumulate(map(len, parts[::2]))], count)
    return count + sum(map(len, parts[1 : 2 * before : 2]))


def with_nuls(data: bytes) -> bytes:
    """Return UTF-8 text with a NUL in the place of each escape sequence and control character."""
    return _ESCAPES.sub(b"\0", data).translate(_CONTROLS_TO_NUL)


def with_nuls_beyond_ascii(data: bytes) -> bytes:
    """Return UTF-8 text with a NUL in the place of each invisible character beyond ASCII."""
    return _INVISIBLE.sub(b"\0", data)


def split_control_strings(text: str) -> tuple[str, str] | None:
    """Return the text of the screen, and the bodies of the control strings, one in each line.

    A sequence stands in the place of each string. None if a string is unfinished.
    """
    if "\x1b" not in text or not _STRING_OPEN.search(text):
        return text, ""
    bodies = "\n".join(_STRING.findall(text))
    screen = _STRING.sub("\x1b\\\\", text)
    return None if _STRING_OPEN.search(screen) else (screen, bodies)


def last_parts(text: str, least: int) -> tuple[list[str], str]:
    """Return the end of a text as `split` does, with at least the last `least` visible characters
    if it has them. ESC always begins a new sequence, so any ESC is a safe start."""
    for size in (3 * least, 9 * least) if "\x1b" in text else (least, 3 * least):
        start = len(text) - size
        if start <= 0:
            break
        escape = text.rfind("\x1b", 0, start)
        parts, unfinished = split(text[start if escape < 0 else escape :])
        if sum(map(len, parts[::2])) >= least:
            return parts, unfinished
    return split(text)


def ends_within(parts: list[str], most: int, count: int) -> bool:
    """Whether the last `most` characters of these parts hold the last `count` visible ones."""
    return count <= sum(map(len, parts[::2])) and length_of_end(parts, count) <= most


def length_of_end(parts: list[str], count: int) -> int:
    """Return the length of the end of these parts that begins with the last `count` visible
    characters."""
    length = 0
    for run, sequence in zip(parts[::-2], ["", *parts[-2::-2]], strict=False):
        length += len(sequence)
        if count <= len(run):
            return length + count
        length += len(run)
        count -= len(run)
    return length


def opens_string(sequences: Iterable[str]) -> bool:
    """Whether one of these sequences begins a control string."""
    return not _STRING_OPENS.isdisjoint(sequences)


class TextOwner:
    """The owner of the text that comes next: 0 for the screen, n for the n-th control string."""

    __slots__ = ("_strings", "number")

    def __init__(self) -> None:
        self.number = 0
        self._strings = 0

    def pass_over(self, sequence: str) -> bool:
        """Read a sequence and return whether the text after it has another owner."""
        before = self.number
        if before and sequence.startswith(_STRING_CLOSES):
            self.number = 0
        if sequence in _STRING_OPENS:
            self._strings += 1
            self.number = self._strings
        return self.number != before


def texts(text: str) -> list[str]:
    """Return the text of the screen, then the body of each control string."""
    parts, _ = split(text)
    found: list[list[str]] = [[]]
    owner = TextOwner()
    for run, sequence in zip(parts[::2], [*parts[1::2], ""], strict=True):
        found[owner.number].append(run)
        if owner.pass_over(sequence) and owner.number:
            found.append([])
    return ["".join(runs) for runs in found]
