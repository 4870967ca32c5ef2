"""Long text in small answers: its two ends, one page of it, or the lines that match. Pure."""

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
    """The lines of a text, by line feeds only; an end of the last one begins no other."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def excerpt(text: str, most_bytes: int = AGENT_EXCERPT_BYTES) -> tuple[str, bool]:
    """The text, or both ends of it; and whether something is missing."""
    fewer = _by_lines(text)
    shown = _by_size(fewer, most_bytes)
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


def _by_size(text: str, most: int) -> str:
    if len(text) * 4 <= most:  # no character has more bytes
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    half = most // 2
    begin, end = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    return f"{begin}\n{_BY_SIZE}\n{end}"


@dataclass(frozen=True, slots=True)
class TextPage:
    """Some numbered lines."""

    text: str
    shown: int
    """How many of the lines asked for."""
    total: int
    """How many lines there are."""
    clipped: bool
    """Whether one of them was too long to be shown whole."""


def page(content: bytes, offset: int, limit: int, *, first: int = 0) -> TextPage:
    """Lines from `offset` on, at most `limit` of them and `AGENT_READ_BYTES`. `first` is the
    number of the first line of all."""
    total = count_lines(content)
    begun = content.split(b"\n", offset + limit)[offset : offset + limit]
    wanted = [line.decode("utf-8", "replace") for line in begun[: max(0, total - offset)]]
    rows = list(
        fitting(f"{first + offset + at:5d}  {clip(line)}" for at, line in enumerate(wanted))
    )
    long = any(len(line) > AGENT_LINE_CHARS for line in wanted[: len(rows)])
    return TextPage("\n".join(rows), len(rows), total, long)


def nth_line(content: bytes, number: int) -> str | None:
    """One line, counted from 0; None where there are fewer."""
    if number >= count_lines(content):
        return None
    return content.split(b"\n", number + 1)[number].decode("utf-8", "replace")


def count_lines(content: bytes) -> int:
    """An end of the last line begins no other."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def clip(line: str) -> str:
    return clipped(line.removesuffix("\r"), AGENT_LINE_CHARS, "...[line clipped]")


def fitting(rows: Iterable[str]) -> Iterator[str]:
    """As many of the rows as go into one answer."""
    left = AGENT_READ_BYTES
    for row in rows:
        left -= len(row.encode("utf-8", "replace")) + 1
        if left < 0:
            return
        yield row


def part_of_line(line: str, offset: int, limit: int) -> str:
    """Some characters of a long line, and where to go on."""
    end = offset + min(limit, AGENT_LINE_PART_CHARS)
    more = f"\n[characters {offset} to {end - 1} of {len(line)}; go on with {end}]"
    return line[offset:end] + (more if end < len(line) else "")


def line_pattern(source: str, *, regex: bool, ignore_case: bool = False) -> Pattern:
    """A text or a regular expression, in which `^` and `$` are the ends of a line. Raises
    `NoPattern`."""
    flags = "(?mi)" if ignore_case else "(?m)"
    return Pattern(flags + (source if regex else re2.escape(source)))


def matching_lines(pattern: Pattern, text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that the pattern fits by itself. Counted from 0.

    One pass over the text: matching line by line costs RE2 nine microseconds a line, and most lines
    fit nothing.

    In the whole text a match may take several lines (`^\\s*x` begins at the blank one above), so
    each line of such a match is asked again.
    """
    number, at = 0, 0  # the line that begins at `at`; all before it are done
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
