"""The history of a session as Markdown, for people: what they said, what the agent did and said.

Pure: stored events in, text out. Texts of tools and programs stand in fenced blocks whose fence is
longer than any in the text, so that they cannot end the block.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.excerpts import excerpt
from telex.agent.protocol.events import (
    EVENTS,
    AgentEvent,
    FinalEvent,
    HiddenUserMessageEvent,
    ReasoningEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from telex.agent.store import StoredEvent

_TAGS: Final = {kind.__struct_config__.tag: kind for kind in EVENTS}
_FENCES: Final = re.compile(r"`{3,}")


class _Tagged(msgspec.Struct):
    type: str = ""


def session_markdown(session_id: str, events: Iterable[StoredEvent]) -> Iterator[str]:
    """Yield the parts of the text."""
    yield f"# Session {session_id}\n"
    said = ""
    for stored in events:
        event = _decode(stored.event)
        # An answer repeats the text before it.
        if isinstance(event, FinalEvent) and event.content == said:
            continue
        said = event.content if isinstance(event, TextEvent) else said
        yield from _part(event)


def _decode(raw: bytes) -> AgentEvent | None:
    kind = _TAGS.get(msgspec.json.decode(raw, type=_Tagged).type)
    return None if kind is None else msgspec.json.decode(raw, type=kind)


def _part(event: AgentEvent | None) -> Iterator[str]:
    match event:
        case HiddenUserMessageEvent(content=content):
            yield f"\n## You\n\n{content}\n"
        case TextEvent(content=content) | FinalEvent(content=content):
            yield f"\n{content}\n" if content else ""
        case ReasoningEvent(content=content):
            quoted = "\n".join(f"> {line}".rstrip() for line in content.split("\n"))
            yield f"\n{quoted}\n"
        case ToolCallEvent(tool=tool, args=args):
            yield f"\n**{tool}**\n\n{_fenced(msgspec.json.encode(args).decode(), 'json')}"
        case ToolResultEvent(result=result, is_error=is_error):
            heading = "\nfailed:\n\n" if is_error else "\n"
            yield heading + _fenced(excerpt(result)[0])
        case _:
            return


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"
