"""What a change would do to a file, to be shown before it is made. Pure.

Only what lies between the first and the last changed line is compared, and not much of that:
comparing takes time that grows with the square, and only `AGENT_DIFF_LINES` are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Final

from telex.wire.limits import AGENT_DIFF_LINES, AGENT_LINE_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARED: Final = 1000
"""Lines of either side that are compared."""
_AROUND: Final = 3
_TRUNCATED: Final = "...[difference truncated]..."


@dataclass(frozen=True, slots=True)
class Difference:
    """In the unified format."""

    text: str
    truncated: bool


def difference(name: str, before: bytes, after: bytes) -> Difference:
    """Empty where nothing changes."""
    old, new = _lines(before), _lines(after)
    shared = _shared_at_start(old, new)
    tail = _shared_at_end(old, new, shared)
    begin, removed, added = max(0, shared - _AROUND), len(old) - tail, len(new) - tail
    cut = max(removed, added) - begin > _COMPARED
    window = _window(old, begin, removed), _window(new, begin, added)
    rows = list(islice(_rows(*window, begin), AGENT_DIFF_LINES + 1))
    cut |= len(rows) > AGENT_DIFF_LINES
    if not rows:
        return Difference("", truncated=False)
    told = [f"--- {name}", f"+++ {name}", *rows[:AGENT_DIFF_LINES], *([_TRUNCATED] * cut)]
    return Difference("\n".join(told), cut)


def _lines(content: bytes) -> list[str]:
    """Each with its end, so that a missing one at the end of a file is a difference."""
    return content.decode("utf-8", "replace").split("\n") if content else []


def _shared_at_start(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _shared_at_end(old: list[str], new: list[str], start: int) -> int:
    most = min(len(old), len(new)) - start
    return next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)


def _window(lines: list[str], begin: int, end: int) -> list[str]:
    return lines[begin : min(end + _AROUND, begin + _COMPARED)]


def _rows(old: list[str], new: list[str], begin: int) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_AROUND):
        first, last = group[0], group[-1]
        yield (
            f"@@ -{begin + first[1] + 1},{last[2] - first[1]} "
            f"+{begin + first[3] + 1},{last[4] - first[3]} @@"
        )
        for tag, a, b, c, d in group:
            yield from _marked(" " if tag == "equal" else "-", old[a:b])
            if tag != "equal":
                yield from _marked("+", new[c:d])


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + (line if len(line) <= AGENT_LINE_CHARS else line[:AGENT_LINE_CHARS] + "…")
