"""All tools by name, and a call of one: from raw JSON to an answer.

A call has two steps, because permission is asked between them: `prepare` reads the arguments, and
`Prepared.run` does what they say. What a tool answers is bounded here, whoever wrote the tool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.excerpts import excerpt
from telex.agent.files import FileRefused
from telex.agent.output_cache import NoSuchOutput
from telex.agent.sandbox import OutsideSandbox
from telex.agent.shell_exec import not_kept
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, new_id
from telex.agent.uninterrupted import in_thread
from telex.config.errors import ConfigError
from telex.processes.spawn import StartFailed
from telex.processes.termination import TreeSurvived
from telex.wire.limits import AGENT_READ_BYTES, AGENT_TOOL_RESULT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from telex.agent.tools.tool import Preview, Tool

Raw = bytes | msgspec.Raw
"""Arguments as they came."""

_SAID = (
    *(ToolFailed, FileRefused, OutsideSandbox, NoSuchOutput),
    *(StartFailed, TreeSurvived, ConfigError),
)
"""What is an answer. Everything else that is raised is a mistake of ours."""


class UnknownTool(LookupError):
    """There is no tool of that name (-32602)."""


class BadArguments(ValueError):
    """The arguments are not what the tool takes (-32602)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that can be made."""

    tool: Tool[Any]
    arguments: Any

    async def preview(self, context: ToolContext) -> Preview[Any] | ToolResult | None:
        """What it would change; the failure if it would fail; None for a tool that changes no
        file. Nothing is changed."""
        if self.tool.preview is None:
            return None
        try:
            return await self.tool.preview(self.arguments, context)
        except (*_SAID, OSError) as error:
            return _failure(error)

    def pinned(self, preview: Preview[Any]) -> Prepared:
        """The same call, bound to what was shown."""
        return replace(self, arguments=preview.pinned)

    def at(self, **places: str) -> Prepared:
        """The same call of a tool of ours, with paths in place of those it was given."""
        return replace(self, arguments=msgspec.structs.replace(self.arguments, **places))

    async def run(self, context: ToolContext) -> ToolResult:
        try:
            result = await self.tool.run(self.arguments, context)
        except (*_SAID, OSError) as error:
            return _failure(error)
        return await _bounded(result, context)


class Tools:
    """Tools by name. Of two with one name, the first has it: a plugin's takes none of ours."""

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        more: Callable[[str], Tool[Any] | None] = lambda name: None,
    ) -> None:
        """`more` knows tools that are made when they are named: `plugged`."""
        self._tools: dict[str, Tool[Any]] = {}
        self._more = more
        for one in tools:
            self._tools.setdefault(one.name, one)

    def __iter__(self) -> Iterator[Tool[Any]]:
        return iter(self._tools.values())

    def prepare(self, name: str, arguments: Raw | Mapping[str, object] | None) -> Prepared:
        """Raises `UnknownTool`, `BadArguments`."""
        if (tool := self._tools.get(name) or self._more(name)) is None:
            known = ", ".join(self._tools)
            raise UnknownTool(f"there is no tool {name!r}; there are {known}")
        try:
            return Prepared(tool, tool.read(_json(arguments)))
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
    told = f"[the whole is in the tool output cache: {ref_id}]"
    try:
        await in_thread(lambda _: context.cache.save(ref_id, result.text))
    except (OSError, ConfigError) as error:  # what was done is done, and is told
        told = not_kept(error)
    shown, _ = excerpt(result.text, AGENT_READ_BYTES)
    return replace(result, text=f"{shown}\n{told}")
