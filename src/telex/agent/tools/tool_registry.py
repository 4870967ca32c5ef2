"""All tools by name, the built-in ones, and a call of one: from raw JSON to an answer.

A call has two steps, because permission is asked between them: `prepare` reads the arguments, and
`PreparedCall.run` does what they say. What a tool answers is bounded here, whoever wrote the tool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.command_runner import not_kept_note
from telex.agent.excerpts import excerpt
from telex.agent.limits import AGENT_READ_BYTES, AGENT_TOOL_RESULT_BYTES
from telex.agent.sandbox_files import FileRefused, OutsideSandbox
from telex.agent.tools.file_tools import EDIT, LIST, READ, READ_LINE, WRITE
from telex.agent.tools.output_cache import CACHED, CACHED_GREP, CACHED_LINE, NoSuchOutput
from telex.agent.tools.search import SEARCH
from telex.agent.tools.shell import SHELL
from telex.agent.tools.todo import TODO
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, new_id
from telex.config.errors import ConfigError
from telex.processes.shielded import run_in_thread
from telex.processes.spawn import StartFailed
from telex.processes.termination import TreeSurvived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from telex.agent.tools.tool import AgentTool, Preview


Raw = bytes | msgspec.Raw
"""Arguments as they came."""

_TOOL_ERRORS = (
    *(ToolFailed, FileRefused, OutsideSandbox, NoSuchOutput),
    *(StartFailed, TreeSurvived, ConfigError),
)
"""What is an answer. Everything else that is raised is a mistake of ours."""


class UnknownTool(LookupError):
    """There is no tool of that name (-32602)."""


class BadArguments(ValueError):
    """The arguments are not what the tool takes (-32602)."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that can be made."""

    tool: AgentTool[Any]
    arguments: Any

    async def preview(self, context: ToolContext) -> Preview[Any] | ToolResult | None:
        """What it would change; the failure if it would fail; None for a tool that changes no
        file. Nothing is changed."""
        if self.tool.preview is None:
            return None
        try:
            return await self.tool.preview(self.arguments, context)
        except (*_TOOL_ERRORS, OSError) as error:
            return _failure(error)

    def pinned(self, preview: Preview[Any]) -> PreparedCall:
        """The same call, bound to what was shown."""
        return replace(self, arguments=preview.pinned)

    def with_arguments(self, **places: str) -> PreparedCall:
        """The same call of a tool of ours, with paths in place of those it was given."""
        return replace(self, arguments=msgspec.structs.replace(self.arguments, **places))

    async def run(self, context: ToolContext) -> ToolResult:
        try:
            result = await self.tool.run(self.arguments, context)
        except (*_TOOL_ERRORS, OSError) as error:
            return _failure(error)
        return await _bounded(result, context)


class ToolRegistry:
    """Tools by name. Of two with one name, the first has it: a plugin's takes none of ours."""

    def __init__(
        self,
        tools: Iterable[AgentTool[Any]],
        more: Callable[[str], AgentTool[Any] | None] = lambda name: None,
    ) -> None:
        """`more` knows tools that are made when they are named: `tools.plugins`."""
        self._tools: dict[str, AgentTool[Any]] = {}
        self._more = more
        for one in tools:
            self._tools.setdefault(one.name, one)

    def __iter__(self) -> Iterator[AgentTool[Any]]:
        return iter(self._tools.values())

    def prepare(self, name: str, arguments: Raw | Mapping[str, object] | None) -> PreparedCall:
        """Raises `UnknownTool`, `BadArguments`."""
        if (tool := self._tools.get(name) or self._more(name)) is None:
            known = ", ".join(self._tools)
            raise UnknownTool(f"there is no tool {name!r}; there are {known}")
        try:
            return PreparedCall(tool, tool.read(_json(arguments)))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise BadArguments(f"bad arguments for {name}: {error}") from error

    async def call(
        self, name: str, arguments: Raw | Mapping[str, object] | None, context: ToolContext
    ) -> ToolResult:
        """Both steps."""
        return await self.prepare(name, arguments).run(context)


def _json(arguments: Raw | Mapping[str, object] | None) -> bytes:
    if isinstance(arguments, (bytes, msgspec.Raw)):
        return bytes(arguments) or b"{}"
    return msgspec.json.encode(arguments or {})


def _failure(error: Exception) -> ToolResult:
    if isinstance(error, OSError) and error.filename is not None:
        return ToolResult(f"{error.filename}: {error.strerror}", is_error=True)
    return ToolResult(str(error), is_error=True)


async def _bounded(result: ToolResult, context: ToolContext) -> ToolResult:
    if len(result.text) * 4 <= AGENT_TOOL_RESULT_BYTES:
        return result
    if len(result.text.encode("utf-8", "replace")) <= AGENT_TOOL_RESULT_BYTES:
        return result
    ref_id = new_id()
    note = f"[the whole is in the tool output cache: {ref_id}]"
    try:
        await run_in_thread(lambda _: context.cache.save(ref_id, result.text))
    except (OSError, ConfigError) as error:  # what was done is done, and is note
        note = not_kept_note(error)
    shown, _ = excerpt(result.text, AGENT_READ_BYTES)
    return replace(result, text=f"{shown}\n{note}")


BUILTIN_TOOLS: Final[tuple[AgentTool[Any], ...]] = (
    *(READ, READ_LINE, WRITE, EDIT, SEARCH, LIST, SHELL, TODO),
    *(CACHED, CACHED_LINE, CACHED_GREP),
)
"""Our own, in the order in which they are offered."""
