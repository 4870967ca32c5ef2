"""What a change would do to a file, to be shown before it is made. Pure.

In the unified format, as `git apply` takes it: whoever keeps the old file and a difference that is
not truncated has the new one. Only what lies between the first and the last changed line is
compared, and not much of that: comparing takes time that grows with the square, and only
`AGENT_DIFF_LINES` are shown. Used by the tools that change files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_DIFF_LINES, AGENT_LINE_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARED: Final = 1000
"""Lines of either side that are compared."""
_AROUND: Final = 3
_TRUNCATED: Final = "...[difference truncated]..."
_UNENDED: Final = "\\ No newline at end of file"
_QUOTED: Final = re.compile(r'[\x00-\x1f"\\\x7f]')
_SURROGATES: Final = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    """Of one file."""

    header: str
    """Which file, and whether it is new."""
    rows: tuple[str, ...]
    """What changes, with what is around it."""
    truncated: bool
    """It cannot be applied: it is too long, or a line of it, or it is about bytes that are no
    UTF-8."""

    @property
    def text(self) -> str:
        if not self.header:
            return ""
        cut = [_TRUNCATED] * self.truncated
        return self.header + "".join(f"{row}\n" for row in (*self.rows, *cut))


def unified_diff(name: str, before: bytes | None, after: bytes) -> UnifiedDiff:
    """Empty where nothing changes; None is a file that is not there yet."""
    old, new = _lines(before or b""), _lines(after)
    shared = _shared_at_start(old, new)
    tail = _shared_at_end(old, new, shared)
    begin = max(0, shared - _AROUND)
    removed, added = (lines[begin : len(lines) - tail + _AROUND] for lines in (old, new))
    cut = max(len(removed), len(added)) > _COMPARED
    rows_of = _rows(removed[:_COMPARED], added[:_COMPARED], begin)
    found = list(islice(rows_of, AGENT_DIFF_LINES + 1))
    if not found and before is not None:
        return UnifiedDiff("", (), truncated=False)
    rows = tuple(map(_readable, found[:AGENT_DIFF_LINES]))
    cut |= len(found) > AGENT_DIFF_LINES or rows != tuple(found[:AGENT_DIFF_LINES])
    return UnifiedDiff(_header(name, is_new=before is None, rows=bool(rows)), rows, cut)


def marked_lines(mark: str, text: str) -> list[str]:
    """Each line of a text as a row of a difference."""
    return list(_marked(mark, _split(text)))


def _header(name: str, *, is_new: bool, rows: bool) -> str:
    a, b = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    header = f"diff --git {a} {b}\n" + "new file mode 100644\n" * is_new
    if not rows:
        return header
    # Behind a name with a space, git looks for the tab that ends it.
    end = "\t\n" if " " in name else "\n"
    return header + ("--- /dev/null\n" if is_new else f"--- {a}{end}") + f"+++ {b}{end}"


def _quoted(path: str) -> str:
    """As git does: a name cannot pass for another line."""
    if not _QUOTED.search(path):
        return path
    return '"' + _QUOTED.sub(lambda found: f"\\{ord(found[0]):03o}", path) + '"'


def _lines(content: bytes) -> list[str]:
    # Bytes that are no UTF-8 stay apart while they are compared; nobody can be shown them.
    return _split(content.decode("utf-8", "surrogateescape"))


def _split(text: str) -> list[str]:
    """Each with its end, so that a missing one at the end of a file is a difference."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _shared_at_start(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _shared_at_end(old: list[str], new: list[str], start: int) -> int:
    most = min(len(old), len(new)) - start
    return next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)


def _rows(old: list[str], new: list[str], begin: int) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_AROUND):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(begin, first[1], last[2])} +{_range(begin, first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            yield from _marked(" " if tag == "equal" else "-", old[a:b])
            if tag != "equal":
                yield from _marked("+", new[c:d])


def _range(begin: int, first: int, end: int) -> str:
    """Of no lines, the one before them is named."""
    count = end - first
    return f"{begin + first + bool(count)}" + (f",{count}" if count != 1 else "")


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _UNENDED


def _readable(row: str) -> str:
    clipped = row if len(row) <= AGENT_LINE_CHARS + 1 else row[: AGENT_LINE_CHARS + 1] + "…"
    return _SURROGATES.sub("\ufffd", clipped)
