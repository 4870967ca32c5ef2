"""Additions of telex to the protocol. Each is used only if the other side announced its capability.

| method | who | capability |
|---|---|---|
| `run.attach` | UI requests | `supports_run_attach`; a UI with it may come back |
| `run.steer` | UI requests | server `supports_run_steer` |
| `run.diff` | UI requests | server `supports_run_diff` |
| `permission.explain` | UI requests | server `supports_permission_explain` |
| `workspace.list`, `.read`, `.search` | UI requests | server `supports_workspace_files` |
| `artifact.read` | UI requests | server `supports_artifacts` |
| `history.export`, `history.undo` | UI requests | server `supports_history` |
| `todos.get`, `todos.set` | UI requests | server `supports_todos` |
| `commands.list` | UI requests | server `supports_commands` |
| `terminal.list` | UI requests | server `supports_terminals` |
| `ui.clipboard.read` | runtime requests | UI `supports_clipboard_read` |
| `ui.request.cancel` | runtime notifies | UI `supports_request_cancel` |
| `text.delta`, `reasoning.delta` | runtime notifies | UI `supports_deltas` |
| `todos.update` | runtime notifies | UI `supports_todos` |
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from telex.agent.protocol.runs import RunStatus
from telex.agent.protocol.sessions import SkillProblem


class RunAttachParams(Struct, frozen=True):
    run_id: str
    after_seq: Annotated[int, Meta(ge=-1)] | None = None
    """The last event that the UI has; -1, the default, if it has none."""


class RunAttachResult(Struct, frozen=True):
    """Sent first; then the events after `after_seq`, each once; then the open questions."""

    run_id: str
    session_id: str
    status: RunStatus


class RunSteerParams(Struct, frozen=True):
    run_id: str
    text: Annotated[str, Meta(min_length=1)]


class RunSteerResult(Struct, frozen=True):
    """The answer to `run.steer`; `ok` is false once the run has ended."""

    ok: bool
    status: RunStatus


class RunDiffParams(Struct, frozen=True):
    run_id: str


class FileDiff(Struct, frozen=True):
    """The change of one file, in the format of `git apply` unless it is `truncated`."""

    path: str
    diff: str
    truncated: bool


class RunDiffResult(Struct, frozen=True):
    """The changes of `write` and `edit`, in order. Changes by commands are not known."""

    run_id: str
    files: list[FileDiff]


class PermissionExplainParams(Struct, frozen=True):
    tool: str
    arguments: Raw | UnsetType = UNSET


class PermissionExplainResult(Struct, frozen=True):
    """The decision about a call. The call is not run, and no question is asked."""

    decision: Literal["allow", "ask", "deny"]
    why: str
    details: Any = None


class UiRequestCancel(Struct, frozen=True, omit_defaults=True):
    """A question needs no answer any more: the UI should close it."""

    id: str
    reason: Literal["answered", "withdrawn"]
    run_id: str | None = None


class DeltaNotify(Struct, frozen=True):
    """A piece of the next `text` or `reasoning` event, which repeats all pieces. Not stored."""

    run_id: str
    content: str


class TodosUpdate(Struct, frozen=True, omit_defaults=True):
    """The whole todo list, sent each time it changes."""

    session_id: str
    todos: Any
    """A list of `{id, content, status, …}`, the entries of the tool `todo`."""
    run_id: str | None = None


# Files of the workspace, for a UI that shows a tree, a preview or a picker of files.


class WorkspaceListParams(Struct, frozen=True):
    path: str | None = None
    """A directory, relative to the cwd of the workspace, or absolute inside its root. Default: the
    cwd."""
    recursive: bool | None = None
    """Also everything below it: hidden directories and those of version control are not entered."""
    include_ignored: bool | None = None
    """Also what git ignores (`.gitignore`, `.git/info/exclude`)."""
    match: str | None = None
    """Only paths that contain these characters in this order, the best match first: for a picker
    of files. Cannot be combined with `cursor`."""
    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """Default: 200."""
    cursor: str | None = None
    """The `next_cursor` of the page before."""


class WorkspaceEntry(Struct, frozen=True, omit_defaults=True):
    """A file, a directory or a link. `path` is relative to the listed directory."""

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int | None = None
    """The bytes of a file."""
    ignored: bool = False


class WorkspaceListResult(Struct, frozen=True, omit_defaults=True):
    """A page of a listing, sorted by path."""

    path: str
    """The directory, relative to the root."""
    entries: list[WorkspaceEntry]
    next_cursor: str | None = None
    """None on the last page."""
    incomplete: bool = False
    """The directory has more entries than one request visits."""


class WorkspaceReadParams(Struct, frozen=True):
    path: str
    offset: Annotated[int, Meta(ge=0)] | None = None
    """The number of lines to skip."""
    limit: Annotated[int, Meta(ge=1, le=2000)] | None = None
    """Default: 2,000."""
    redact: bool | None = None
    """Mask secrets, as in everything that a server sends; true unless it is false."""


class WorkspaceReadResult(Struct, frozen=True, omit_defaults=True):
    """A page of a text file; an image whole; of any other file only its size."""

    path: str
    """Relative to the root."""
    kind: Literal["text", "image", "binary"]
    size: int
    sha256: str
    media_type: str
    text: str | None = None
    """The lines with their ends. A part that is not UTF-8 is replaced."""
    data: str | None = None
    """An image, in base64."""
    lines: int | None = None
    """The lines of the whole file."""
    next_offset: int | None = None
    """None on the last page."""


class WorkspaceSearchParams(Struct, frozen=True):
    pattern: Annotated[str, Meta(min_length=1)]
    path: str | None = None
    regex: bool | None = None
    """The pattern is a regular expression (RE2), not a text."""
    ignore_case: bool | None = None
    glob: Annotated[str, Meta(min_length=1)] | None = None
    """Only in files with such a path."""
    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """Default: 200."""
    offset: Annotated[int, Meta(ge=0)] | None = None
    """The number of matches to skip."""
    redact: bool | None = None


class WorkspaceMatch(Struct, frozen=True):
    """A matching line of a file."""

    path: str
    """Relative to the root."""
    line: int
    """Counted from 1."""
    text: str


class WorkspaceSearchResult(Struct, frozen=True, omit_defaults=True):
    """A page of matches, in the order of paths and lines."""

    matches: list[WorkspaceMatch]
    next_offset: int | None = None
    note: str | None = None
    """Why there may be more matches than were found."""


# Long outputs and differences by id.


class ArtifactReadParams(Struct, frozen=True):
    artifact_id: str
    """The cache id in a result, the id of `history.export`, `diff:RUN_ID`, or `image:SHA256`."""
    offset: Annotated[int, Meta(ge=0)] | None = None
    """The number of bytes to skip."""
    limit: Annotated[int, Meta(ge=4, le=1_048_576)] | None = None
    """Default: 262,144."""


class ArtifactReadResult(Struct, frozen=True, omit_defaults=True):
    """A part of an artifact, cut between two characters. Secrets were masked when it was stored."""

    artifact_id: str
    media_type: str
    size: int
    """The bytes of the whole artifact."""
    text: str
    """Empty for an image."""
    next_offset: int | None = None
    """None on the last part."""
    data: str | None = None
    """The bytes of an image, in base64."""


# The history of a session.


class HistoryExportParams(Struct, frozen=True):
    session_id: str
    format: Literal["markdown", "ndjson"] | None = None
    """Default: `markdown`. `ndjson` is the format that `telex agent import` reads."""


class HistoryExportResult(Struct, frozen=True):
    """The export is an artifact; read it with `artifact.read`."""

    session_id: str
    format: Literal["markdown", "ndjson"]
    artifact_id: str
    size: int
    """Its bytes."""


class HistoryUndoParams(Struct, frozen=True):
    session_id: str
    run_id: str | None = None
    """The run whose changes are undone. Default: the last run that changed files
    and was not undone."""
    dry_run: bool | None = None
    """Only say what would be done."""


class UndoneFile(Struct, frozen=True):
    """A file as it was before the run, and the change that brought it there."""

    path: str
    """Relative to the root."""
    action: Literal["restored", "deleted"]
    """A file that the run created is deleted."""
    diff: str
    """The change of the undo, as text."""


class HistoryUndoResult(Struct, frozen=True):
    """The files of one run as they were before it. All are changed, or none."""

    run_id: str
    files: list[UndoneFile]
    dry_run: bool


# The todo list of a session.


class TodosGetParams(Struct, frozen=True):
    session_id: str


class TodosSetParams(Struct, frozen=True):
    session_id: str
    todos: list[Any]
    """Entries `{content, status?, priority?}`; ids are given anew."""


class TodosResult(Struct, frozen=True):
    """The todo list of a session."""

    session_id: str
    todos: Any
    """A list of `{id, content, status, priority}`."""


# Commands and skills that a person calls by `/name`.


class CommandsListParams(Struct, frozen=True):
    pass


class OfferedCommand(Struct, frozen=True, omit_defaults=True):
    """A command, or a skill, which `/name arguments` at the beginning of an input calls."""

    name: str
    """Without the slash."""
    description: str
    argument_hint: str
    """For a person, such as `[file] [line]`; may be empty."""
    kind: Literal["command", "skill"]
    source: Literal["project", "user"]
    path: str
    not_offered: str | None = None
    """Why `/name` does not call it. Default: it does."""


class CommandsListResult(Struct, frozen=True):
    """The commands, the nearest first, then the skills, and the invalid files."""

    commands: list[OfferedCommand]
    errors: list[SkillProblem]
    truncated: bool
    """There are more than a list holds."""


# The terminals of a session.


class TerminalListParams(Struct, frozen=True):
    session_id: str


class ListedTerminal(Struct, frozen=True):
    """A terminal that the runs of a session opened."""

    name: str
    id: str
    program: str
    """The command line, masked and as one line."""
    input: str
    """What the program waits for: an input state of docs/reference/input-state.md, or `exited`."""
    attach: str
    """The command with which a person looks at it, and takes it over."""


class TerminalListResult(Struct, frozen=True):
    """The terminals of a session, in the order in which they were opened."""

    session_id: str
    terminals: list[ListedTerminal]
