"""What a person reads in a question: escaped, and all of what an answer is about. Pure.

A line of ours begins with a word of ours. What an agent, a plugin or a file says is behind a mark
(`marked_off`), or between quotes.

A question about permission is the runtime's own. One that a core asks is marked as the agent's,
and what the core says in it cannot act on the terminal or pass for another text. Used by
`confirmation` and `turns`.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.permissions import escaped, in_line, in_quotes, marked_off
from telex.agent.permissions.tool_rules import PATH_ARGUMENTS, SHELL_ARGUMENT, SHELL_TOOL

if TYPE_CHECKING:
    from telex.agent.permissions.bound_files import BoundFiles
    from telex.agent.tools.tool import Preview, ToolContext
    from telex.agent.tools.tool_registry import PreparedCall

AGENT: Final = "The agent asks: "


def agent_title(title: str) -> str:
    """A title that is nobody's but a core's."""
    return AGENT + in_line(title)


def escaped_lines(text: str) -> str:
    """What a core says: its lines are its own business."""
    return "\n".join(map(escaped, text.split("\n")))


def question_message(
    call: PreparedCall, named: PreparedCall, preview: Preview[Any] | None, context: ToolContext
) -> str:
    """All that the call will use, and where; `named` is the same call as it was written."""
    given = msgspec.to_builtins(call.arguments)
    if preview is not None:
        lines = [preview.message]
    elif call.tool.name == SHELL_TOOL:
        command, cwd = given.pop(SHELL_ARGUMENT), given.pop("cwd")
        lines = [marked_off(command), f"in {in_quotes(cwd)}"]
    else:
        lines = [marked_off(in_line(call.tool.name))]
    if preview is None:
        lines += _arguments(call, given)
    return "\n\n".join(["\n".join(lines), *_leads(call, named, context)])


def link_notes(bound: BoundFiles) -> list[str]:
    """Where the words of a command lead, those that do not lead where they seem to; which of them
    stand for too many files; and why others may run than are known."""
    led = {one.seems: one.leads for one in bound.files.values() if one.seems != one.leads}
    told = [
        f"It names {in_quotes(seems)}, and that leads to {in_quotes(leads)}."
        for seems, leads in led.items()
    ]
    told += [
        f"What will run cannot be known, as {why}: your answer is bound to the files that are "
        "named, and to no others."
        for why in bound.unknown
    ]
    return told + [
        f"{in_quotes(pattern)} stands for more files than are looked at, or for ones that nobody "
        "knows. Your answer is not bound to what is in them."
        for pattern in bound.unlisted
    ]


def _arguments(call: PreparedCall, given: dict[str, Any]) -> list[str]:
    """A default of ours says nothing; a plugin is given what it is given."""
    lines = []
    ours = isinstance(call.arguments, msgspec.Struct)
    defaults = (
        {one.name: one.default for one in msgspec.structs.fields(call.arguments)} if ours else {}
    )
    for name, value in given.items():
        if name in defaults and value == defaults[name]:
            continue
        is_text = isinstance(value, str)
        text = in_quotes(value) if is_text else in_line(msgspec.json.encode(value).decode())
        lines.append(f"{_name(name)}: {text}")
    return lines


def _name(name: str) -> str:
    """Of an argument, which a plugin's may choose as it likes."""
    return name if re.fullmatch(r"[a-z][a-z0-9_]*", name) else in_quotes(name)


def _leads(call: PreparedCall, named: PreparedCall, context: ToolContext) -> list[str]:
    """Where a path leads, if not where it seems to."""
    lines = []
    for name in (*PATH_ARGUMENTS, "cwd"):
        real, written = (getattr(one.arguments, name, None) for one in (call, named))
        if not (isinstance(real, str) and isinstance(written, str)):
            continue
        if posixpath.normpath(context.cwd / written) != real:
            says = f"It was named {in_quotes(written)}, and that leads to {in_quotes(real)}."
            lines.append(says)
    return lines
