"""Parts of long texts for tool results: both ends, one page, or the matching lines. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import re2

from telex.agent.limits import (
    AGENT_EXCERPT_BYTES,
    AGENT_EXCERPT_LINES,
    AGENT_LINE_CHARS,
    AGENT_LINE_PART_CHARS,
    AGENT_READ_BYTES,
)
from telex.terminal.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_BY_SIZE: Final = "...[truncated by size]..."


def lines_of(text: str) -> list[str]:
    """Split a text at line feeds. A final line feed does not begin another line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def excerpt(text: str, most_bytes: int = AGENT_EXCERPT_BYTES) -> tuple[str, bool]:
    """Return the text, or both ends of it; and whether text is missing."""
    fewer = _by_lines(text)
    shown = both_ends(fewer, most_bytes)
    return shown, shown is not text


def clipped(text: str, most: int, mark: str) -> str:
    return text if len(text) <= most else text[:most] + mark


def _by_lines(text: str) -> str:
    if text.count("\n") < AGENT_EXCERPT_LINES:
        return text
    lines = lines_of(text)
    half, omitted = AGENT_EXCERPT_LINES // 2, len(lines) - AGENT_EXCERPT_LINES
    if omitted <= 0:
        return text
    end = "\n" if text.endswith("\n") else ""
    parts = [*lines[:half], f"...[{omitted} lines omitted]...", *lines[-half:]]
    return "\n".join(parts) + end


def both_ends(text: str, most: int) -> str:
    """Return the text, or its beginning and its end, with at most about `most` bytes."""
    if len(text) * 4 <= most:  # a character has at most 4 bytes
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    half = most // 2
    begin, end = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    return f"{begin}\n{_BY_SIZE}\n{end}"


@dataclass(frozen=True, slots=True)
class TextPage:
    """A page of numbered lines."""

    text: str
    shown: int
    """The number of lines on the page."""
    total: int
    """The number of lines in the whole text."""
    clipped: bool
    """Whether a line was too long to be shown whole."""


def page(content: bytes, offset: int, limit: int, *, first: int = 0) -> TextPage:
    """Return the lines from `offset` on, at most `limit` lines and `AGENT_READ_BYTES`. `first` is
    the number of the first line of the text."""
    total = count_lines(content)
    begun = content.split(b"\n", offset + limit)[offset : offset + limit]
    wanted = [line.decode("utf-8", "replace") for line in begun[: max(0, total - offset)]]
    rows = list(
        fitting(f"{first + offset + at:5d}  {clip(line)}" for at, line in enumerate(wanted))
    )
    long = any(len(line) > AGENT_LINE_CHARS for line in wanted[: len(rows)])
    return TextPage("\n".join(rows), len(rows), total, long)


def nth_line(content: bytes, number: int) -> str | None:
    """Return one line, counted from 0; None if there are fewer lines."""
    if number >= count_lines(content):
        return None
    return content.split(b"\n", number + 1)[number].decode("utf-8", "replace")


def count_lines(content: bytes) -> int:
    """Count lines as `lines_of` splits them."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def clip(line: str) -> str:
    return clipped(line.removesuffix("\r"), AGENT_LINE_CHARS, "...[line clipped]")


def fitting(rows: Iterable[str]) -> Iterator[str]:
    """Yield as many of the rows as fit into one result (`AGENT_READ_BYTES`)."""
    left = AGENT_READ_BYTES
    for row in rows:
        left -= len(row.encode("utf-8", "replace")) + 1
        if left < 0:
            return
        yield row


def part_of_line(line: str, offset: int, limit: int) -> str:
    """Return a part of a long line, with a note at which offset to continue."""
    end = offset + min(limit, AGENT_LINE_PART_CHARS)
    more = f"\n[characters {offset} to {end - 1} of {len(line)}; continue at {end}]"
    return line[offset:end] + (more if end < len(line) else "")


def line_pattern(source: str, *, regex: bool, ignore_case: bool = False) -> Pattern:
    """Compile a text or a regular expression, in which `^` and `$` match at the ends of a line.
    Raises `PatternError`."""
    flags = "(?mi)" if ignore_case else "(?m)"
    return Pattern(flags + (source if regex else re2.escape(source)))


def matching_lines(pattern: Pattern, text: str) -> Iterator[tuple[int, str]]:
    """Yield number (from 0) and text of each line that the pattern matches by itself.

    The whole text is searched at once: matching line by line costs RE2 nine microseconds per line,
    and most lines do not match. A match in the whole text may span several lines (`^\\s*x` begins
    at the blank line above), so each line of such a match is matched again by itself.
    """
    number, at = 0, 0  # the line that begins at `at`; all lines before it are done
    for match in pattern.finditer(text):
        start, end = match.span
        if end < at:
            continue
        begin = max(at, text.rfind("\n", 0, start) + 1)
        number, at = number + text.count("\n", at, begin), begin
        while at <= end and at < len(text):
            line_end = _line_end(text, at)
            if (start >= at and end <= line_end) or pattern.search(text[at:line_end]) is not None:
                yield number, text[at:line_end]
            number, at = number + 1, line_end + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)
