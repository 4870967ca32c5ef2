"""Additions of telex to the protocol. Each is used only if the other side announced its capability.

| method | who | capability |
|---|---|---|
| `run.attach` | UI requests | `supports_run_attach`; a UI with it may come back |
| `run.steer` | UI requests | server `supports_run_steer` |
| `run.diff` | UI requests | server `supports_run_diff` |
| `permission.explain` | UI requests | server `supports_permission_explain` |
| `ui.request.cancel` | runtime notifies | UI `supports_request_cancel` |
| `text.delta`, `reasoning.delta` | runtime notifies | UI `supports_deltas` |
| `todos.update` | runtime notifies | UI `supports_todos` |
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from telex.agent.protocol.runs import RunStatus


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
