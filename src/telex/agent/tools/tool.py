"""The types of a tool, its context and its result. Tools of plugins use the same types.

A failure that the caller can react to is a result with `is_error`, so that a language model reads
it. Invalid arguments are refused before anything runs (`tool_registry`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from telex.agent.content_store import ContentStore
    from telex.agent.messages import Message
    from telex.agent.protocol.ui_requests import UiClipboardReadParams, UiClipboardReadResult
    from telex.agent.sandbox_files import Sandbox
    from telex.agent.skill_library import SkillLibrary
    from telex.agent.terminals import TerminalAccess
    from telex.agent.tools.output_cache import OutputCache
    from telex.agent.tools.todo import TodoList
    from telex.processes.sandbox import Confinement
    from telex.redaction import Redactor

ReadClipboard: TypeAlias = "Callable[[UiClipboardReadParams], Awaitable[UiClipboardReadResult]]"

A = TypeVar("A")
S = TypeVar("S", bound=msgspec.Struct)


class ToolFailed(Exception):
    """The tool failed; the message becomes the result."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The environment of a tool call, in one session of one runtime."""

    sandbox: Sandbox
    cwd: Path
    """The base of relative paths: a real path inside the sandbox."""
    cache: OutputCache
    versions: ContentStore
    """The old contents of the files that tools change."""
    environment: Mapping[str, str]
    """The environment of the runtime. `command_runner.agent_environment` filters it for
    commands."""
    redactor: Redactor
    todos: TodoList
    """The list of the session. The caller stores it when it has changed."""
    confinement: Confinement | None = None
    """The kernel sandbox for programs of this call; None if the person approved the call."""
    read_clipboard: ReadClipboard | None = None
    """Asks a UI for the clipboard of the person, and raises `ToolFailed`; None if no UI can."""
    skills: SkillLibrary | None = None
    """The skills of the workspace."""
    conversation: Callable[[], Awaitable[Sequence[Message]]] | None = None
    """Returns the messages that the caller of the tool sees; None outside a run."""
    terminals: TerminalAccess | None = None
    """The terminals of the thread; None outside a run."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call."""

    text: str
    is_error: bool = False
    details: Mapping[str, object] = field(default_factory=dict)
    """The result as data for programs: a hash, a path, a list."""
    image: bytes = b""
    """An image that belongs to the result, as `images.check_image` allows it."""


@dataclass(frozen=True, slots=True)
class Preview(Generic[A]):
    """The change that a call would make, shown before the person is asked."""

    path: str
    diff: str
    truncated: bool
    message: str
    """The whole change as text for a person, escaped."""
    pinned: A
    """The arguments with the hash of the file that the preview shows. A call with these arguments
    is refused if the file has changed since."""


@dataclass(frozen=True, slots=True)
class AgentTool(Generic[A]):
    """A tool: its name, its description and schema for language models, and its functions."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the arguments, which are an object."""
    read: Callable[[bytes], A]
    """Decodes the arguments from JSON. Raises `msgspec.DecodeError`."""
    run: Callable[[A, ToolContext], Awaitable[ToolResult]]
    """Runs the call. Raises `ToolFailed`. A cancel returns only after all its work has stopped."""
    preview: Callable[[A, ToolContext], Awaitable[Preview[A]]] | None = None
    only_reads: bool = False
    """Whether calls may run side by side, because they change nothing."""
    origin: str = ""
    """Where a tool of others comes from, as a question shows it: a sentence of telex, with foreign
    text between quotes."""


def tool(
    name: str,
    arguments: type[S],
    run: Callable[[S, ToolContext], Awaitable[ToolResult]],
    preview: Callable[[S, ToolContext], Awaitable[Preview[S]]] | None = None,
    *,
    only_reads: bool = False,
) -> AgentTool[S]:
    """Make a tool whose arguments are a struct. The docstring of the struct is the description."""
    description = " ".join((arguments.__doc__ or "").split())
    decoder = msgspec.json.Decoder(arguments)
    return AgentTool(
        name, description, _schema(arguments), decoder.decode, run, preview, only_reads
    )


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema with the object at the top level, as model APIs expect it."""
    _, definitions = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema = dict(definitions.pop(arguments.__name__))
    schema.pop("title", None)
    schema.pop("description", None)
    return {**schema, **({"$defs": definitions} if definitions else {})}


def new_id() -> str:
    return uuid.uuid4().hex
