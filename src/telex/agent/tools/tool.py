"""What a tool is. The tools of plugins are made from the same parts.

A failure that the caller can do something about is an answer with `is_error`, so that a language
model reads it; bad arguments are refused before anything runs (`tool_registry`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from telex.agent.sandbox_files import Sandbox
    from telex.agent.tools.output_cache import OutputCache
    from telex.agent.tools.todo import TodoList
    from telex.processes.sandbox import Confinement
    from telex.redaction import Redactor

A = TypeVar("A")
S = TypeVar("S", bound=msgspec.Struct)


class ToolFailed(Exception):
    """The tool could not do it; the sentence is the answer."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool works with, in one thread of one runtime."""

    sandbox: Sandbox
    cwd: Path
    """Where relative paths begin, inside the sandbox and without links."""
    cache: OutputCache
    environment: Mapping[str, str]
    """The runtime's own; what a command gets of it is `command_runner`."""
    redactor: Redactor
    todos: TodoList
    """The thread's, kept by whoever keeps the thread."""
    confinement: Confinement | None = None
    """What the kernel holds a program of this call to; None where the person decided."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    text: str
    is_error: bool = False
    details: Mapping[str, object] = field(default_factory=dict)
    """The same for programs: a hash, a path, a list."""


@dataclass(frozen=True, slots=True)
class Preview(Generic[A]):
    """What a call would change, to be shown before permission is asked."""

    path: str
    diff: str
    truncated: bool
    message: str
    """The same for a person: whole and escaped."""
    pinned: A
    """The arguments, bound to the file as it was looked at: run these, and a file that has changed
    since is refused."""


@dataclass(frozen=True, slots=True)
class AgentTool(Generic[A]):
    """One tool."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of its arguments, an object."""
    read: Callable[[bytes], A]
    """The arguments from their JSON; `msgspec.DecodeError` where they are none."""
    run: Callable[[A, ToolContext], Awaitable[ToolResult]]
    """Raises `ToolFailed`. When it is cancelled it returns after nothing of it runs any more."""
    preview: Callable[[A, ToolContext], Awaitable[Preview[A]]] | None = None


def tool(
    name: str,
    arguments: type[S],
    run: Callable[[S, ToolContext], Awaitable[ToolResult]],
    preview: Callable[[S, ToolContext], Awaitable[Preview[S]]] | None = None,
) -> AgentTool[S]:
    """A tool whose arguments are a struct. Its docstring is the description."""
    described = " ".join((arguments.__doc__ or "").split())
    decoder = msgspec.json.Decoder(arguments)
    return AgentTool(name, described, _schema(arguments), decoder.decode, run, preview)


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The object itself at the top, where those who offer tools to models want it."""
    _, definitions = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema = dict(definitions.pop(arguments.__name__))
    schema.pop("title", None)
    schema.pop("description", None)
    return {**schema, **({"$defs": definitions} if definitions else {})}


def new_id() -> str:
    return uuid.uuid4().hex
