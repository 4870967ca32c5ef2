"""The tool by which a language model reads a skill: its text, then the files that the text names.

A skill whose text is in the conversation already, unchanged, is not repeated. After a compaction
its text is gone, so that it is loaded again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.limits import AGENT_READ_LINES
from telex.agent.messages import TextPart, ToolResultMessage, UserMessage
from telex.agent.skill_library import SkillRefused
from telex.agent.tools.file_tools import Limit, text_page
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.agent.messages import Message

NO_SKILLS: Final = "there are no skills here"


class SkillLoadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Load a skill: its instructions and the list of its files; or, with `file`, read one of these
    files. Load a skill before a task that its description matches."""

    name: Annotated[
        str, Meta(min_length=1, description="Its name, or its path if several have that name.")
    ]
    file: Annotated[
        str | None, Meta(description="A file in the folder of the skill, relative to it.")
    ] = None
    offset: Annotated[int, Meta(ge=0, description="Number of lines of `file` to skip.")] = 0
    limit: Limit = AGENT_READ_LINES


async def _load(asked: SkillLoadArguments, context: ToolContext) -> ToolResult:
    library = context.skills
    if library is None:
        raise ToolFailed(NO_SKILLS)
    try:
        skill = await library.find(asked.name)
        if asked.file:
            path, content = await library.read_file(skill, asked.file)
            return text_page(asked.offset, asked.limit, path, content)
        loaded = await library.load(skill)
    except SkillRefused as refused:
        raise ToolFailed(str(refused)) from refused
    details = {"skill": skill.name, "path": skill.path}
    if context.conversation is not None and _contains(await context.conversation(), loaded.head):
        text = f"The skill {skill.name} is in this conversation already, and has not changed since."
        return ToolResult(text, details={**details, "repeated": True})
    return ToolResult(loaded.text, details=details)


def _contains(conversation: Iterable[Message], head: str) -> bool:
    """Return whether a message has the text of the skill, which begins with its head."""
    return any(
        isinstance(part, TextPart) and part.text.lstrip("\n").startswith(head)
        for message in conversation
        if isinstance(message, ToolResultMessage | UserMessage)
        for part in message.parts
    )


SKILL_LOAD: Final = tool("skill_load", SkillLoadArguments, _load, only_reads=True)
