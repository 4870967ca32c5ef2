"""The registry of tools, the built-in tools, and a call of a tool: from raw JSON to its result.

A call has two steps, because permission is checked between them: `prepare` decodes the arguments,
and `PreparedCall.run` executes the call. The size of the result is limited here, for every tool.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from telex.agent.command_runner import not_kept_note
from telex.agent.excerpts import excerpt
from telex.agent.images import ImageRefused
from telex.agent.limits import AGENT_READ_BYTES, AGENT_TOOL_RESULT_BYTES
from telex.agent.messages import ToolSpec
from telex.agent.sandbox_files import FileRefused, OutsideSandbox
from telex.agent.tools.clipboard import CLIPBOARD_READ
from telex.agent.tools.file_tools import EDIT, LIST, READ, READ_LINE, VIEW_IMAGE, WRITE
from telex.agent.tools.output_cache import CACHED, CACHED_GREP, CACHED_LINE, NoSuchOutput
from telex.agent.tools.search import SEARCH
from telex.agent.tools.shell import SHELL
from telex.agent.tools.skill_load import SKILL_LOAD
from telex.agent.tools.terminal_tools import TERMINAL_TOOLS
from telex.agent.tools.todo import TODO
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, new_id
from telex.config.errors import ConfigError
from telex.processes.shielded import run_in_thread
from telex.processes.spawn import StartFailed
from telex.processes.termination import TreeSurvived

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from telex.agent.tools.tool import AgentTool, Preview


Raw = bytes | msgspec.Raw
"""Arguments as received."""

_TOOL_ERRORS = (
    *(ToolFailed, FileRefused, OutsideSandbox, NoSuchOutput, ImageRefused),
    *(StartFailed, TreeSurvived, ConfigError),
)
"""Exceptions that become a result with `is_error`. Any other exception is a bug."""


class UnknownTool(LookupError):
    """No tool has that name (-32602)."""


class BadArguments(ValueError):
    """The arguments do not match the schema of the tool (-32602)."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A tool with decoded arguments."""

    tool: AgentTool[Any]
    arguments: Any

    async def preview(self, context: ToolContext) -> Preview[Any] | ToolResult | None:
        """Return the change that the call would make, without making it; the failure if the call
        would fail; None for a tool that changes no file."""
        if self.tool.preview is None:
            return None
        try:
            return await self.tool.preview(self.arguments, context)
        except (*_TOOL_ERRORS, OSError) as error:
            return _failure(error)

    def pinned(self, preview: Preview[Any]) -> PreparedCall:
        """Return the same call, bound to the file that the preview shows."""
        return replace(self, arguments=preview.pinned)

    def with_arguments(self, **places: str) -> PreparedCall:
        """Return the same call of a built-in tool with other paths."""
        return replace(self, arguments=msgspec.structs.replace(self.arguments, **places))

    async def run(self, context: ToolContext) -> ToolResult:
        try:
            result = await self.tool.run(self.arguments, context)
        except (*_TOOL_ERRORS, OSError) as error:
            return _failure(error)
        return await _bounded(result, context)


class ToolSource(Protocol):
    """Tools that are created on demand."""

    def named(self, name: str) -> AgentTool[Any] | None: ...

    async def specs(self) -> Sequence[ToolSpec]: ...


class ToolRegistry:
    """Tools by name. Of two tools with the same name the first counts, so that a plugin cannot
    replace a built-in tool."""

    def __init__(self, tools: Iterable[AgentTool[Any]], *more: ToolSource) -> None:
        """`more` have the tools that are created on demand by name: those of `tools.plugins` and of
        `mcp_client`."""
        self._tools: dict[str, AgentTool[Any]] = {}
        self._more = more
        for each in tools:
            self._tools.setdefault(each.name, each)

    def __iter__(self) -> Iterator[AgentTool[Any]]:
        return iter(self._tools.values())

    def prepare(self, name: str, arguments: Raw | Mapping[str, object] | None) -> PreparedCall:
        """Decode the arguments of a call. Raises `UnknownTool`, `BadArguments`."""
        if (tool := self._find(name)) is None:
            known = ", ".join(self._tools)
            raise UnknownTool(f"unknown tool {name!r}; known tools: {known}")
        try:
            return PreparedCall(tool, tool.read(_json(arguments)))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise BadArguments(f"invalid arguments for {name}: {error}") from error

    def _find(self, name: str) -> AgentTool[Any] | None:
        found = self._tools.get(name)
        others = (source.named(name) for source in self._more)
        return found or next((tool for tool in others if tool is not None), None)

    def only_reads(self, name: str) -> bool:
        """Whether calls of the tool may run side by side; False for an unknown one."""
        found = self._find(name)
        return found is not None and found.only_reads

    async def specs(self) -> tuple[ToolSpec, ...]:
        """Return all tools as a model sees them. Starts the plugins and the MCP servers."""
        listed = await asyncio.gather(*(source.specs() for source in self._more))
        specs = {
            each.name: ToolSpec(each.name, each.description, dict(each.schema), each.only_reads)
            for each in self
        }
        for spec in chain.from_iterable(listed):
            specs.setdefault(spec.name, spec)
        return tuple(specs.values())

    async def call(
        self, name: str, arguments: Raw | Mapping[str, object] | None, context: ToolContext
    ) -> ToolResult:
        """Prepare and run a call in one step."""
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
    note = f"[the whole result is in the tool output cache: {ref_id}]"
    try:
        await run_in_thread(lambda _: context.cache.save(ref_id, result.text))
    except (OSError, ConfigError) as error:  # the call has had its effect, so its result counts
        note = not_kept_note(error)
    shown, _ = excerpt(result.text, AGENT_READ_BYTES)
    return replace(result, text=f"{shown}\n{note}")


BUILTIN_TOOLS: Final[tuple[AgentTool[Any], ...]] = (
    *(READ, READ_LINE, VIEW_IMAGE, WRITE, EDIT, SEARCH, LIST, SHELL, TODO),
    *(SKILL_LOAD, CLIPBOARD_READ, CACHED, CACHED_LINE, CACHED_GREP),
    *TERMINAL_TOOLS,
)
"""The built-in tools, in the order in which they are offered to a model."""
