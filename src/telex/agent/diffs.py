"""Unified diffs, to show a change before it is made. Pure.

The format is that of `git apply`: the old file and a diff that is not truncated give the new file.
Only the lines between the first and the last changed line are compared, and at most `_COMPARED` of
them: the time to compare grows with the square, and only `AGENT_DIFF_LINES` are shown. Used by the
tools that change files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from telex.agent.limits import AGENT_DIFF_LINES, AGENT_LINE_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator

_Tag = Literal["replace", "delete", "insert", "equal"]
_COMPARED: Final = 1000
"""Lines of each side that are compared."""
_AROUND: Final = 3
_TRUNCATED: Final = "...[difference truncated]..."
_UNENDED: Final = "\\ No newline at end of file"
_QUOTED: Final = re.compile(r'[\x00-\x1f"\\\x7f]')
_SURROGATES: Final = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    """The unified diff of one file; the header is empty if nothing changes."""

    header: str
    """The lines that name the file, and whether it is new."""
    rows: tuple[str, ...]
    """The hunks: changed lines with their context."""
    truncated: bool
    """The diff cannot be applied: it or one of its lines is too long, or the file is not UTF-8."""

    @property
    def text(self) -> str:
        if not self.header:
            return ""
        cut = [_TRUNCATED] * self.truncated
        return self.header + "".join(f"{row}\n" for row in (*self.rows, *cut))


def unified_diff(name: str, before: bytes | None, after: bytes) -> UnifiedDiff:
    """Compare two contents of a file. `before` is None for a file that does not exist yet."""
    old, new = _lines(before or b""), _lines(after)
    opcodes = _Opcodes(old, new)
    found = list(islice(_rows(old, new, opcodes), AGENT_DIFF_LINES + 1))
    if not found and before is not None:
        return UnifiedDiff("", (), truncated=False)
    rows = tuple(map(_readable, found[:AGENT_DIFF_LINES]))
    cut = len(found) > AGENT_DIFF_LINES or rows != tuple(found[:AGENT_DIFF_LINES])
    return UnifiedDiff(
        _header(name, is_new=before is None, rows=bool(rows)), rows, cut or opcodes.cut
    )


def marked_lines(mark: str, text: str) -> list[str]:
    """Return each line of a text as a row of a diff."""
    return list(_marked(mark, _split(text)))


def _header(name: str, *, is_new: bool, rows: bool) -> str:
    a, b = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    header = f"diff --git {a} {b}\n" + "new file mode 100644\n" * is_new
    if not rows:
        return header
    # git expects a tab after a name that contains a space.
    end = "\t\n" if " " in name else "\n"
    return header + ("--- /dev/null\n" if is_new else f"--- {a}{end}") + f"+++ {b}{end}"


def _quoted(path: str) -> str:
    """Quote a path as git does, so that a line feed in it cannot begin another line."""
    if not _QUOTED.search(path):
        return path
    return '"' + _QUOTED.sub(lambda found: f"\\{ord(found[0]):03o}", path) + '"'


def _lines(content: bytes) -> list[str]:
    # surrogateescape keeps invalid UTF-8 bytes distinct for the comparison; `_readable` replaces
    # them.
    return _split(content.decode("utf-8", "surrogateescape"))


def _split(text: str) -> list[str]:
    """Split into lines with their ends, so that a missing line feed at the end is a difference."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _shared_at_start(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _shared_at_end(old: list[str], new: list[str], start: int) -> int:
    most = min(len(old), len(new)) - start
    return next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)


class _Opcodes(SequenceMatcher[str]):
    """The opcodes of a whole file, of which only the lines that are not shared are compared.

    The shared lines are opcodes too, so that each hunk has all its context. If the context were
    compared with the changed lines, it could be matched otherwise, and the last hunk could end
    without context before the end of the file: `git apply` refuses such a hunk.
    """

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._start = _shared_at_start(old, new)
        self._tail = _shared_at_end(old, new, self._start)
        self._ends = len(old), len(new)
        removed, added = (lines[self._start : len(lines) - self._tail] for lines in (old, new))
        self.cut = max(len(removed), len(added)) > _COMPARED
        super().__init__(None, removed[:_COMPARED], added[:_COMPARED])

    def get_opcodes(self) -> list[tuple[_Tag, int, int, int, int]]:
        start, tail, (old_end, new_end) = self._start, self._tail, self._ends
        codes: list[tuple[_Tag, int, int, int, int]] = []
        if start:
            codes.append(("equal", 0, start, 0, start))
        for tag, a, b, c, d in super().get_opcodes():
            codes.append((tag, start + a, start + b, start + c, start + d))
        if tail and not self.cut:
            codes.append(("equal", old_end - tail, old_end, new_end - tail, new_end))
        return codes


def _rows(old: list[str], new: list[str], opcodes: _Opcodes) -> Iterator[str]:
    for group in opcodes.get_grouped_opcodes(_AROUND):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            yield from _marked(" " if tag == "equal" else "-", old[a:b])
            if tag != "equal":
                yield from _marked("+", new[c:d])


def _range(first: int, end: int) -> str:
    """Format a hunk range. A range without lines names the line before it."""
    count = end - first
    return f"{first + bool(count)}" + (f",{count}" if count != 1 else "")


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _UNENDED


def _readable(row: str) -> str:
    clipped = row if len(row) <= AGENT_LINE_CHARS + 1 else row[: AGENT_LINE_CHARS + 1] + "…"
    return _SURROGATES.sub("\ufffd", clipped)
