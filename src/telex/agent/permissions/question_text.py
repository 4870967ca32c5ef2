"""The text of questions: complete, and with all foreign text escaped. Pure.

A line of telex begins with a word of telex. Text of an agent, a plugin or a file is behind a mark
(`marked_off`) or between quotes.

Questions about permissions come from the runtime itself. A question of a core is marked as the
agent's, and its text cannot act on the terminal or look like another text. Used by `confirmation`
and `run_context`.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.permissions import escaped, in_line, in_quotes, in_sentence, marked_off
from telex.agent.permissions.tool_rules import PATH_ARGUMENTS, SHELL_ARGUMENT, SHELL_TOOL

if TYPE_CHECKING:
    from telex.agent.permissions.bound_files import BoundFiles
    from telex.agent.tools.tool import Preview, ToolContext
    from telex.agent.tools.tool_registry import PreparedCall

AGENT: Final = "The agent asks: "


def agent_title(title: str) -> str:
    """Return a title that is marked as one of a core."""
    return AGENT + in_line(title)


def escaped_lines(text: str) -> str:
    """Escape the text of a core, and keep its line breaks."""
    return "\n".join(map(escaped, text.split("\n")))


def question_message(
    call: PreparedCall, named: PreparedCall, preview: Preview[Any] | None, context: ToolContext
) -> str:
    """Return everything that the call will use, and its directory. `named` is the same call before
    its paths were resolved."""
    given = msgspec.to_builtins(call.arguments)
    if preview is not None:
        lines = [preview.message]
    elif call.tool.name == SHELL_TOOL:
        command, cwd = given.pop(SHELL_ARGUMENT), given.pop("cwd")
        lines = [marked_off(command), f"in {in_quotes(cwd)}"]
    else:
        lines = [marked_off(in_line(call.tool.name))]
        lines += [in_sentence(call.tool.origin)] if call.tool.origin else []
    if preview is None:
        lines += _arguments(call, given)
    return "\n\n".join(["\n".join(lines), *_resolved_paths(call, named, context)])


def link_notes(bound: BoundFiles) -> list[str]:
    """Return the notes about a command's files: words that lead to another path than it seems,
    files that may run without being known, and patterns with too many matches."""
    linked = {file.seems: file.leads for file in bound.files.values() if file.seems != file.leads}
    notes = [
        f"The command names {in_quotes(seems)}, which leads to {in_quotes(leads)}."
        for seems, leads in linked.items()
    ]
    notes += [
        f"Not all files that will run are known, because {why}. "
        "Your answer covers only the files that the command names."
        for why in bound.unknown
    ]
    return notes + [
        f"The pattern {in_quotes(pattern)} matches too many files, or files that are not known. "
        "Your answer does not cover their content."
        for pattern in bound.unlisted
    ]


def _arguments(call: PreparedCall, given: dict[str, Any]) -> list[str]:
    """Return a line for each argument. Defaults of built-in tools are left out; a plugin's
    arguments are all shown."""
    lines = []
    is_built_in = isinstance(call.arguments, msgspec.Struct)
    fields = msgspec.structs.fields(call.arguments) if is_built_in else ()
    defaults = {field.name: field.default for field in fields}
    for name, value in given.items():
        if name in defaults and value == defaults[name]:
            continue
        is_text = isinstance(value, str)
        text = in_quotes(value) if is_text else in_line(msgspec.json.encode(value).decode())
        lines.append(f"{_name(name)}: {text}")
    return lines


def _name(name: str) -> str:
    """Return the name of an argument, quoted unless it is plain: a plugin may choose any name."""
    return name if re.fullmatch(r"[a-z][a-z0-9_]*", name) else in_quotes(name)


def _resolved_paths(call: PreparedCall, named: PreparedCall, context: ToolContext) -> list[str]:
    """Return a note for each path that leads to another path than it seems."""
    lines = []
    for name in (*PATH_ARGUMENTS, "cwd"):
        real, written = (getattr(each.arguments, name, None) for each in (call, named))
        if not (isinstance(real, str) and isinstance(written, str)):
            continue
        if posixpath.normpath(context.cwd / written) != real:
            lines.append(f"The path {in_quotes(written)} leads to {in_quotes(real)}.")
    return lines
