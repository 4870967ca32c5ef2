"""tool_output_cache and its two companions: what a tool said at length, read on.

Lines are counted from 0 here, as the ids' own protocol has it.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.tools.reading import Count, Limit, PartLimit
from telex.agent.tools.searching import read_pattern
from telex.agent.tools.tool import ToolContext, ToolResult, tool
from telex.agent.uninterrupted import in_thread
from telex.wire.limits import AGENT_LISTED, AGENT_READ_LINES

Around = Annotated[int, Meta(ge=0, le=100)]


class Cached(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read an output that was too long for an answer, by its id. Lines are counted from 0; at most
    64 KiB at a time."""

    ref_id: str
    offset: Count = 0
    limit: Limit = AGENT_READ_LINES


class CachedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a part of one long line of such an output."""

    ref_id: str
    line_number: Annotated[int, Meta(ge=0, description="Counted from 0.")]
    char_offset: Count = 0
    char_limit: PartLimit = 10_000


class CachedGrep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find lines in such an output."""

    ref_id: str
    pattern: Annotated[str, Meta(min_length=1)]
    regex: Annotated[bool, Meta(description="The pattern is a regular expression (RE2).")] = False
    before: Around = 0
    after: Around = 0
    max_matches: Annotated[int, Meta(ge=1, le=AGENT_LISTED)] = 50


async def _read(asked: Cached, context: ToolContext) -> ToolResult:
    cache = context.cache
    return ToolResult(
        await in_thread(lambda _: cache.read(asked.ref_id, asked.offset, asked.limit))
    )


async def _line(asked: CachedLine, context: ToolContext) -> ToolResult:
    wanted = asked.line_number, asked.char_offset, asked.char_limit
    return ToolResult(await in_thread(lambda _: context.cache.line(asked.ref_id, *wanted)))


async def _grep(asked: CachedGrep, context: ToolContext) -> ToolResult:
    pattern = read_pattern(asked.pattern, regex=asked.regex)
    return ToolResult(
        await in_thread(
            lambda _: context.cache.grep(
                asked.ref_id,
                pattern,
                before=asked.before,
                after=asked.after,
                most=asked.max_matches,
            )
        )
    )


CACHED: Final = tool("tool_output_cache", Cached, _read)
CACHED_LINE: Final = tool("tool_output_cache_line", CachedLine, _line)
CACHED_GREP: Final = tool("tool_output_cache_grep", CachedGrep, _grep)
