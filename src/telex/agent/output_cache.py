"""What tools said at length, kept so that it can be read on: one private file for each output.

Secrets are taken out before anything is written. The oldest outputs leave when there are too many
or they are too large together. Several runtimes may share the directory, so a file that is gone
when we come to it is no surprise. Everything blocks: the callers run it in a thread.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from telex.agent.excerpts import clip, count_lines, fitting, lines_of, nth_line, page
from telex.agent.matching import matching_lines
from telex.config.places import write_private
from telex.wire.limits import (
    AGENT_CACHED_BYTES,
    AGENT_CACHED_OUTPUTS,
    AGENT_LINE_PART_CHARS,
    AGENT_SHELL_OUTPUT_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.redaction import Redactor
    from telex.terminal.patterns import Pattern

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_SUFFIX: Final = ".txt"


class NoSuchOutput(Exception):
    """Nothing is kept under that id, or not any more; or there is no such line in it."""


@dataclass(frozen=True, slots=True)
class OutputCache:
    """The outputs in one directory."""

    directory: Path
    redactor: Redactor
    most_files: int = AGENT_CACHED_OUTPUTS
    most_bytes: int = AGENT_CACHED_BYTES

    def save(self, ref_id: str, text: str) -> None:
        """Keep it, without its secrets, under an id of ours."""
        content = self.redactor.redact(text).encode("utf-8", "replace")
        write_private(self._path(ref_id), content[: 2 * AGENT_SHELL_OUTPUT_BYTES])
        self._let_go()

    def read(self, ref_id: str, offset: int, limit: int) -> str:
        """Lines from `offset` on, counted from 0."""
        content = self._content(ref_id)
        found = page(content, offset, limit)
        if offset and offset >= found.total:
            raise NoSuchOutput(f"{ref_id} has {found.total} lines; line {offset} is not there")
        after = offset + found.shown
        told = [found.text] if found.text else []
        if found.clipped:
            told.append("[long lines are clipped; read one whole with tool_output_cache_line]")
        if after < found.total:
            told.append(f"[lines {offset} to {after - 1} of {found.total}; go on with {after}]")
        return "\n".join(told) or "[no lines]"

    def line(self, ref_id: str, number: int, offset: int, limit: int) -> str:
        """A part of one line."""
        content = self._content(ref_id)
        line = nth_line(content, number)
        if line is None:
            total = count_lines(content)
            raise NoSuchOutput(f"{ref_id} has {total} lines; line {number} is not there")
        return part_of_line(line, offset, limit)

    def grep(self, ref_id: str, pattern: Pattern, *, before: int, after: int, most: int) -> str:
        """The lines with a match, `:` behind their numbers, and those around them, `-`."""
        text = self._content(ref_id).decode("utf-8", "replace")
        hits = [number for number, _ in islice(matching_lines(pattern, text), most + 1)]
        if not hits:
            return "[no line matches]"
        rows = list(fitting(_around(lines_of(text), hits[:most], before, after)))
        if len(hits) > most:
            rows.append(f"[the first {most} matches; there are more]")
        return "\n".join(rows)

    def _path(self, ref_id: str) -> Path:
        if not _ID.fullmatch(ref_id):
            raise NoSuchOutput(f"{ref_id!r} is not the id of an output")
        return self.directory / (ref_id + _SUFFIX)

    def _content(self, ref_id: str) -> bytes:
        try:
            return self._path(ref_id).read_bytes()
        except FileNotFoundError:
            raise NoSuchOutput(
                f"there is no output {ref_id}; the oldest outputs leave, so run the command again"
            ) from None

    def _let_go(self) -> None:
        kept, size = 0, 0
        for path, status in sorted(self._files(), key=lambda found: -found[1].st_mtime_ns):
            kept, size = kept + 1, size + status.st_size
            # The newest stays, however large: somebody has just been told of it.
            if kept > 1 and (kept > self.most_files or size > self.most_bytes):
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.directory.glob(f"*{_SUFFIX}"):
            try:
                yield path, path.stat()
            except FileNotFoundError:
                continue


def part_of_line(line: str, offset: int, limit: int) -> str:
    """Some characters of a long line, and where to go on."""
    end = offset + min(limit, AGENT_LINE_PART_CHARS)
    more = f"\n[characters {offset} to {end - 1} of {len(line)}; go on with {end}]"
    return line[offset:end] + (more if end < len(line) else "")


def _around(lines: list[str], hits: list[int], before: int, after: int) -> Iterator[str]:
    wanted, done = set(hits), 0
    for hit in hits:
        for at in range(max(done, hit - before), min(len(lines), hit + after + 1)):
            yield f"{at:5d}{':' if at in wanted else '-'} {clip(lines[at])}"
        done = max(done, hit + after + 1)
