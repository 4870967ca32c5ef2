"""A sandbox with a tool context, for the tests of the tools."""

from __future__ import annotations

import os
from pathlib import Path

from telex.agent.content_store import ContentStore
from telex.agent.sandbox_files import Sandbox
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.todo import TodoList
from telex.agent.tools.tool import ToolContext, ToolResult
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.redaction import Redactor
from telex.wire.limits import MIB

TOOLS = ToolRegistry(BUILTIN_TOOLS)


def context_in(directory: Path, **environment: str) -> ToolContext:
    """Return a context with the root `work` in the directory, and a cache beside it."""
    root = Path(os.path.realpath(directory)) / "work"
    root.mkdir(exist_ok=True)
    cache = OutputCache(root.parent / "cache", Redactor())
    given = {"PATH": os.environ["PATH"], "HOME": str(directory), **environment}
    versions = ContentStore(root.parent / "versions", MIB)
    return ToolContext(Sandbox(root), root, cache, versions, given, Redactor(), TodoList())


async def call(context: ToolContext, name: str, **arguments: object) -> ToolResult:
    return await TOOLS.call(name, arguments, context)


async def said(context: ToolContext, name: str, **arguments: object) -> str:
    result = await call(context, name, **arguments)
    assert not result.is_error, result.text
    return result.text


async def refused(context: ToolContext, name: str, **arguments: object) -> str:
    result = await call(context, name, **arguments)
    assert result.is_error, result.text
    return result.text


def gone(pid: int) -> bool:
    """Return whether a process has exited, reaped or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
