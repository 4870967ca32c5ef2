"""The cache of long tool outputs, and the tools that read it.

Each output is a private file, redacted before it is written. The oldest outputs are deleted when
there are too many, or when they are too large together. Several runtimes may share the directory,
so a file may be deleted by another process at any time. The cache blocks; the tools run it in a
thread. Lines are counted from 0 here, as in the protocol of `shell.exec`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.excerpts import (
    clip,
    count_lines,
    fitting,
    lines_of,
    matching_lines,
    nth_line,
    page,
    part_of_line,
)
from telex.agent.limits import (
    AGENT_CACHED_BYTES,
    AGENT_CACHED_OUTPUTS,
    AGENT_LISTED,
    AGENT_READ_LINES,
    AGENT_SHELL_OUTPUT_BYTES,
)
from telex.agent.tools.file_tools import Count, Limit, PartLimit
from telex.agent.tools.search import read_pattern
from telex.agent.tools.tool import ToolContext, ToolResult, tool
from telex.config.places import write_private
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.redaction import Redactor
    from telex.terminal.patterns import Pattern


_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_SUFFIX: Final = ".txt"


class NoSuchOutput(Exception):
    """No output has that id, or it was deleted; or the output has fewer lines."""


@dataclass(frozen=True, slots=True)
class OutputCache:
    """The cached outputs in one directory."""

    directory: Path
    redactor: Redactor
    most_files: int = AGENT_CACHED_OUTPUTS
    most_bytes: int = AGENT_CACHED_BYTES

    def save(self, ref_id: str, text: str) -> None:
        """Redact an output and store it under an id that the caller made."""
        content = self.redactor.redact(text).encode("utf-8", "replace")
        write_private(self._path(ref_id), content[: 2 * AGENT_SHELL_OUTPUT_BYTES])
        self._evict()

    def save_file(self, ref_id: str, content: bytes) -> None:
        """Store a text whose secrets are masked already, whole."""
        write_private(self._path(ref_id), content)
        self._evict()

    def read_bytes(self, ref_id: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Return a part of an output, and the size of the whole, in bytes."""
        content = self._read_output(ref_id)
        return content[offset : offset + limit], len(content)

    def read(self, ref_id: str, offset: int, limit: int) -> str:
        """Return the lines from `offset` on, counted from 0."""
        content = self._read_output(ref_id)
        found = page(content, offset, limit)
        if offset and offset >= found.total:
            raise NoSuchOutput(f"{ref_id} has only {found.total} lines; line {offset} is missing")
        after = offset + found.shown
        rows = [found.text] if found.text else []
        if found.clipped:
            rows.append("[long lines are clipped; use tool_output_cache_line to read them]")
        if after < found.total:
            rows.append(
                f"[lines {offset} to {after - 1} of {found.total}; continue with offset {after}]"
            )
        return "\n".join(rows) or "[no lines]"

    def line(self, ref_id: str, number: int, offset: int, limit: int) -> str:
        """Return a part of one line."""
        content = self._read_output(ref_id)
        line = nth_line(content, number)
        if line is None:
            total = count_lines(content)
            raise NoSuchOutput(f"{ref_id} has only {total} lines; line {number} is missing")
        return part_of_line(line, offset, limit)

    def grep(self, ref_id: str, pattern: Pattern, *, before: int, after: int, most: int) -> str:
        """Return the matching lines, with `:` after their numbers, and their context, with `-`."""
        text = self._read_output(ref_id).decode("utf-8", "replace")
        hits = [number for number, _ in islice(matching_lines(pattern, text), most + 1)]
        if not hits:
            return "[no line matches]"
        rows = list(fitting(_around(lines_of(text), hits[:most], before, after)))
        if len(hits) > most:
            rows.append(f"[only the first {most} matches]")
        return "\n".join(rows)

    def _path(self, ref_id: str) -> Path:
        if not _ID.fullmatch(ref_id):
            raise NoSuchOutput(f"{ref_id!r} is not a valid output id")
        return self.directory / (ref_id + _SUFFIX)

    def _read_output(self, ref_id: str) -> bytes:
        try:
            return self._path(ref_id).read_bytes()
        except FileNotFoundError:
            raise NoSuchOutput(
                f"there is no output {ref_id}; old outputs are deleted, so run the command again"
            ) from None

    def _evict(self) -> None:
        kept, size = 0, 0
        for path, status in sorted(self._files(), key=lambda found: -found[1].st_mtime_ns):
            kept, size = kept + 1, size + status.st_size
            # The newest stays, however large: its id has just been returned.
            if kept > 1 and (kept > self.most_files or size > self.most_bytes):
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.directory.glob(f"*{_SUFFIX}"):
            try:
                yield path, path.stat()
            except FileNotFoundError:
                continue


def _around(lines: list[str], hits: list[int], before: int, after: int) -> Iterator[str]:
    wanted, done = set(hits), 0
    for hit in hits:
        for at in range(max(done, hit - before), min(len(lines), hit + after + 1)):
            yield f"{at:5d}{':' if at in wanted else '-'} {clip(lines[at])}"
        done = max(done, hit + after + 1)


Around = Annotated[int, Meta(ge=0, le=100)]


class CachedArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read an output that was too long for a result, by its id. Lines are counted from 0; at most
    64 KiB at a time."""

    ref_id: str
    offset: Count = 0
    limit: Limit = AGENT_READ_LINES


class CachedLineArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a part of one long line of a cached output."""

    ref_id: str
    line_number: Annotated[int, Meta(ge=0, description="Counted from 0.")]
    char_offset: Count = 0
    char_limit: PartLimit = 10_000


class CachedGrepArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find lines in a cached output."""

    ref_id: str
    pattern: Annotated[str, Meta(min_length=1)]
    regex: Annotated[bool, Meta(description="The pattern is a regular expression (RE2).")] = False
    before: Around = 0
    after: Around = 0
    max_matches: Annotated[int, Meta(ge=1, le=AGENT_LISTED)] = 50


async def _read_cached(asked: CachedArguments, context: ToolContext) -> ToolResult:
    cache = context.cache
    return ToolResult(
        await run_in_thread(lambda _: cache.read(asked.ref_id, asked.offset, asked.limit))
    )


async def _read_cached_line(asked: CachedLineArguments, context: ToolContext) -> ToolResult:
    wanted = asked.line_number, asked.char_offset, asked.char_limit
    return ToolResult(await run_in_thread(lambda _: context.cache.line(asked.ref_id, *wanted)))


async def _grep_cached(asked: CachedGrepArguments, context: ToolContext) -> ToolResult:
    pattern = read_pattern(asked.pattern, regex=asked.regex)
    return ToolResult(
        await run_in_thread(
            lambda _: context.cache.grep(
                asked.ref_id,
                pattern,
                before=asked.before,
                after=asked.after,
                most=asked.max_matches,
            )
        )
    )


CACHED: Final = tool("tool_output_cache", CachedArguments, _read_cached, only_reads=True)
CACHED_LINE: Final = tool(
    "tool_output_cache_line", CachedLineArguments, _read_cached_line, only_reads=True
)
CACHED_GREP: Final = tool(
    "tool_output_cache_grep", CachedGrepArguments, _grep_cached, only_reads=True
)
