"""What a person reads in a question: escaped, and all of what an answer is about. Pure.

A question about permission is the runtime's own. One that a core asks is marked as the agent's,
and what the core says in it cannot act on the terminal or pass for another text. Used by
`confirming` and `turns`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.judging import shown
from telex.agent.judging.modes import PATH_ARGUMENTS, SHELL_ARGUMENT, SHELL_TOOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.bound_files import Bound
    from telex.agent.tools.registry import Prepared
    from telex.agent.tools.tool import Preview, ToolContext

AGENT: Final = "The agent asks: "


def of_the_agent(title: str) -> str:
    """A title that is nobody's but a core's."""
    return AGENT + shown(title)


def lines_shown(text: str) -> str:
    """What a core says: its lines are its own business."""
    return "\n".join(map(shown, text.split("\n")))


def message(
    call: Prepared, named: Prepared, preview: Preview[Any] | None, context: ToolContext
) -> str:
    """All that the call will use, and where; `named` is the same call as it was written."""
    given = msgspec.to_builtins(call.arguments)
    if preview is not None:
        lines = [preview.says]
    elif call.tool.name == SHELL_TOOL:
        lines = [shown(given.pop(SHELL_ARGUMENT)), f"in {shown(given.pop('cwd'))}"]
    else:
        lines = [shown(call.tool.name)]
    if preview is None:
        lines += _arguments(call, given)
    return "\n\n".join(["\n".join(lines), *_leads(call, named, context)])


def words_lead(files: Mapping[str, Bound]) -> list[str]:
    """Where the words of a command lead, those that do not lead where they seem to."""
    led = {one.seems: one.leads for one in files.values() if one.seems != one.leads}
    return [f"It names {seems}, and that leads to {leads}." for seems, leads in led.items()]


def _arguments(call: Prepared, given: dict[str, Any]) -> list[str]:
    """A default of ours says nothing; a plugin is given what it is given."""
    lines = []
    ours = isinstance(call.arguments, msgspec.Struct)
    defaults = (
        {one.name: one.default for one in msgspec.structs.fields(call.arguments)} if ours else {}
    )
    for name, value in given.items():
        if name in defaults and value == defaults[name]:
            continue
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        lines.append(f"{shown(name)}: {shown(text)}")
    return lines


def _leads(call: Prepared, named: Prepared, context: ToolContext) -> list[str]:
    """Where a path leads, if not where it seems to."""
    lines = []
    for name in (*PATH_ARGUMENTS, "cwd"):
        real, written = (getattr(one.arguments, name, None) for one in (call, named))
        if not (isinstance(real, str) and isinstance(written, str)):
            continue
        if os.path.normpath(context.cwd / written) != real:
            lines.append(f"It was named {shown(written)}, and that leads to {shown(real)}.")
    return lines
