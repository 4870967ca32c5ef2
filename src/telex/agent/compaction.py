"""Compaction of a conversation that fills the context window: what is kept, what is summarized.

The newest messages are kept as they are. Everything before them becomes one message of the person:
a summary that the model writes, the last request in the person's own words, the open todos and the
files that were used. The instructions are sent with every call, so they are not part of it. Pure.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.conversation import IMAGE, message_text
from telex.agent.excerpts import both_ends, excerpt
from telex.agent.limits import AGENT_SUMMARY_FILES, AGENT_SUMMARY_RESULT_BYTES
from telex.agent.messages import (
    AssistantMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.messages import Message

SUMMARY_HEAD: Final = (
    "[Summary of the conversation until now. The messages before it are not available any more.]"
)
SUMMARY_TASK: Final = """\
Write a summary of the conversation below, for yourself: you will continue the work with this \
summary in place of the conversation. Keep what is needed for that: the goal and the wishes of \
the person, decisions and their reasons, what was done and with what result, names of files, \
functions and commands, errors that are not solved, and the next steps. Leave out what is finished \
and has no effect any more. Write plain text, without an introduction."""


def cut_index(messages: Sequence[Message], sizes: Sequence[float], most: float) -> int:
    """Return the index of the first message that is kept: the kept ones have at most the size
    `most` together. A call is never separated from its result. At least one message is not kept.

    Args:
        sizes: The size of each message.
    """
    index, size = len(messages), 0.0
    while index > 1 and (size := size + sizes[index - 1]) <= most:
        index -= 1
    while index < len(messages) and isinstance(messages[index], ToolResultMessage):
        index += 1
    return index


def transcript(messages: Sequence[Message], most: int) -> str:
    """Return messages as text with at most about `most` bytes, for the call that summarizes them.
    Text has a place in any model, calls of tools that are not offered have not. Of a conversation
    that is too long, the beginning and the end are kept."""
    head = _lines(messages, most // 2)
    rest = messages[len(head) :]
    tail = _lines(rest[::-1], most // 2)[::-1]
    left_out = len(rest) - len(tail)
    gap = [f"[{left_out} messages are left out here]"] if left_out else []
    return both_ends("\n\n".join(line for line in (*head, *gap, *tail) if line), most)


def _lines(messages: Sequence[Message], most: int) -> list[str]:
    """Return the first messages as text, each one, until they have `most` characters."""
    lines: list[str] = []
    size = 0
    for message in messages:
        if size >= most:
            break
        lines.append(_line(message))
        size += len(lines[-1])
    return lines


def _line(message: Message) -> str:
    match message:
        case UserMessage():
            return f"PERSON: {message_text(message, IMAGE)}"
        case ToolResultMessage(is_error=is_error):
            shown, _ = excerpt(message_text(message, IMAGE), AGENT_SUMMARY_RESULT_BYTES)
            return f"{'ERROR' if is_error else 'RESULT'}: {shown}"
        case AssistantMessage(parts=parts):
            return "\n".join(line for part in parts if (line := _part(part)))


def _part(part: TextPart | ReasoningPart | ToolCallPart) -> str:
    match part:
        case TextPart(text):
            return f"AGENT: {text}"
        case ToolCallPart(name=name, arguments=arguments):
            given = bytes(arguments).decode("utf-8", "replace")
            return f"CALL: {name} {excerpt(given, AGENT_SUMMARY_RESULT_BYTES)[0]}"
        case _:
            return ""


def summary_text(
    summary: str, removed: Sequence[Message], kept: Sequence[Message], todos: str
) -> str:
    """Return the message that stands for the removed ones."""
    parts = [SUMMARY_HEAD, summary.strip()]
    requests = [one for one in removed if isinstance(one, UserMessage)]
    if requests and not any(isinstance(one, UserMessage) for one in kept):
        parts.append(f"The last request of the person:\n{message_text(requests[-1], IMAGE)}")
    if todos:
        parts.append(f"Open todos:\n{todos}")
    if files := files_used(removed):
        parts.append("Files that were used:\n" + "\n".join(files))
    return "\n\n".join(parts)


class _FileArguments(msgspec.Struct):
    file_path: str | None = None
    path: str | None = None


def files_used(messages: Sequence[Message]) -> list[str]:
    """Return the files that tools were called with, the last used ones, each once."""
    found: deque[str] = deque(maxlen=AGENT_SUMMARY_FILES)
    for message in messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            try:
                given = msgspec.json.decode(call.arguments, type=_FileArguments)
            except msgspec.DecodeError:
                continue
            if file := given.file_path or given.path:
                if file in found:
                    found.remove(file)
                found.append(file)
    return list(found)
