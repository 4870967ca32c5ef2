"""read, read_line: text files, in pages.

Lines are numbered from 1, as compilers, editors and `search` number them; `offset` says how many
are passed over. The hash that comes along is what `write` and `edit` take as `expected_hash`.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.excerpts import count_lines, nth_line, page
from telex.agent.files import digest, read_text
from telex.agent.output_cache import part_of_line
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool
from telex.agent.uninterrupted import in_thread
from telex.wire.limits import AGENT_LINE_PART_CHARS, AGENT_READ_LINES

Path = Annotated[str, Meta(min_length=1, description="Inside the sandbox root.")]
Count = Annotated[int, Meta(ge=0)]
Limit = Annotated[int, Meta(ge=1, le=AGENT_READ_LINES)]
PartLimit = Annotated[int, Meta(ge=1, le=AGENT_LINE_PART_CHARS)]


class Read(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a text file: numbered lines, and the SHA-256 of the whole file. At most 2000 lines and
    64 KiB at a time; go on with `offset`."""

    file_path: Path
    offset: Annotated[int, Meta(ge=0, description="How many lines to pass over.")] = 0
    limit: Limit = AGENT_READ_LINES


class ReadLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a part of one line that is too long for `read`."""

    file_path: Path
    line_number: Annotated[int, Meta(ge=1, description="As `read` numbers them, from 1.")]
    char_offset: Count = 0
    char_limit: PartLimit = 10_000


async def _read(asked: Read, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    return await in_thread(lambda _: _page(asked, place, read_text(context.sandbox, place)))


def _page(asked: Read, place: str, content: bytes) -> ToolResult:
    found, told = page(content, asked.offset, asked.limit, first=1), []
    if asked.offset and asked.offset >= found.total:
        raise _too_far(place, found.total)
    if found.clipped:
        told.append("long lines are clipped: read_line has them whole")
    if (after := asked.offset + found.shown) < found.total:
        told.append(f"lines {asked.offset + 1} to {after} of {found.total}: go on with {after}")
    if b"\r\n" in content:
        told.append("lines end in CR LF")
    sha256 = digest(content)
    notes = "; ".join([*told, f"sha256 {sha256}"])
    text = f"{found.text}\n[{notes}]" if found.total else f"[the file is empty; {notes}]"
    return ToolResult(text, details={"sha256": sha256, "lines": found.total})


async def _read_line(asked: ReadLine, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    content = await in_thread(lambda _: read_text(context.sandbox, place))
    line = nth_line(content, asked.line_number - 1)
    if line is None:
        raise _too_far(place, count_lines(content))
    return ToolResult(part_of_line(line, asked.char_offset, asked.char_limit))


def _too_far(place: str, lines: int) -> ToolFailed:
    return ToolFailed(f"{place} has {lines} lines; ask for an earlier one")


READ: Final = tool("read", Read, _read)
READ_LINE: Final = tool("read_line", ReadLine, _read_line)
