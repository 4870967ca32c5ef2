"""Handlers of the methods by which a UI looks: files, artifacts, history and todo lists.

They belong to the namespaces that the spec reserves (§8); each has its capability. They follow the
same rules as `handlers`.
"""

from __future__ import annotations

import base64
import contextlib
import os
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent import protocol, workspace_files
from telex.agent.errors import OtherRoot
from telex.agent.history_text import session_markdown
from telex.agent.images import REFERENCE, image_type
from telex.agent.protocol import extensions
from telex.agent.run_settings import run_settings
from telex.agent.sandbox_files import FileRefused
from telex.agent.tools.output_cache import NoSuchOutput
from telex.agent.tools.search import SearchArguments, find_lines
from telex.agent.tools.todo import NewEntry, TodoArguments, TodoList
from telex.agent.tools.tool import new_id
from telex.agent.undo import CannotUndo, FileChange, RunChanges
from telex.processes.shielded import run_in_thread
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from telex.agent.runtime import AgentRuntime
    from telex.agent.ui_connection import UiConnection

_DIFF: Final = "diff:"
_PART_BYTES: Final = 262_144
_MATCHES: Final = 200
"""The size of a part and the number of matches, unless the UI asks for another."""


async def workspace_list(
    runtime: AgentRuntime, params: extensions.WorkspaceListParams, connection: UiConnection
) -> extensions.WorkspaceListResult:
    context = connection.workspace.context
    with _named(params.path or os.curdir):
        return await run_in_thread(
            lambda stop: workspace_files.list_page(context.sandbox, context.cwd, params, stop)
        )


async def workspace_read(
    runtime: AgentRuntime, params: extensions.WorkspaceReadParams, connection: UiConnection
) -> extensions.WorkspaceReadResult:
    context = connection.workspace.context
    with _named(params.path):
        return await run_in_thread(
            lambda _: workspace_files.read_page(
                context.sandbox, context.cwd, params, context.redactor
            )
        )


async def workspace_search(
    runtime: AgentRuntime, params: extensions.WorkspaceSearchParams, connection: UiConnection
) -> extensions.WorkspaceSearchResult:
    """Search as the tool `search` does."""
    context = connection.workspace.context
    skipped = params.offset or 0
    most = skipped + (params.limit or _MATCHES)
    asked = SearchArguments(
        params.pattern,
        params.path or os.curdir,
        bool(params.regex),
        bool(params.ignore_case),
        params.glob,
        most,
    )
    with _named(asked.path):
        found = await find_lines(asked, context.tool_context(connection.todos))
    shown = str if params.redact is False else context.redactor.redact
    matches = [
        extensions.WorkspaceMatch(hit.place, hit.line, shown(hit.text))
        for hit in found.hits[skipped:most]
    ]
    after = most if len(found.hits) > most else None
    return extensions.WorkspaceSearchResult(matches, after, found.note or None)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Raise `FileRefused` with the path that the UI gave, where the system has an error."""
    try:
        yield
    except OSError as error:
        raise FileRefused(f"{path}: {error.strerror}") from error


async def artifact_read(
    runtime: AgentRuntime, params: extensions.ArtifactReadParams, connection: UiConnection
) -> extensions.ArtifactReadResult:
    offset, limit = params.offset or 0, params.limit or _PART_BYTES
    context, data = connection.workspace.context, None
    if params.artifact_id.startswith(REFERENCE):
        sha256 = params.artifact_id.removeprefix(REFERENCE)
        image = await run_in_thread(lambda _: context.images.load(sha256))
        if image is None:
            raise NoSuchOutput(f"{params.artifact_id} is not stored, or not any more")
        part, size = image[offset : offset + limit], len(image)
        media_type = image_type(image) or "application/octet-stream"
        data = base64.b64encode(part).decode()
    elif params.artifact_id.startswith(_DIFF):
        diff = await _diff_of(runtime, params.artifact_id.removeprefix(_DIFF))
        part, size = diff[offset : offset + limit], len(diff)
        media_type = "text/x-diff"
    else:
        part, size = await run_in_thread(
            lambda _: context.cache.read_bytes(params.artifact_id, offset, limit)
        )
        media_type = "text/plain"
    if offset and offset >= size:
        raise NoSuchOutput(f"{params.artifact_id} has only {size} bytes")
    end = offset + len(part)
    if end < size and data is None:
        part = _whole_characters(part)
        end = offset + len(part)
    return extensions.ArtifactReadResult(
        params.artifact_id,
        media_type,
        size,
        part.decode("utf-8", "replace") if data is None else "",
        end if end < size else None,
        data,
    )


def _whole_characters(part: bytes) -> bytes:
    """Remove a character at the end of which bytes are missing."""
    begin = len(part) - 1
    while begin > len(part) - 4 and part[begin] & 0b1100_0000 == 0b1000_0000:
        begin -= 1
    first = part[begin]
    length = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    return part if begin + length <= len(part) else part[:begin]


async def _diff_of(runtime: AgentRuntime, run_id: str) -> bytes:
    return "".join([details.diff async for details in _details(runtime, run_id)]).encode()


async def history_export(
    runtime: AgentRuntime, params: extensions.HistoryExportParams, connection: UiConnection
) -> extensions.HistoryExportResult:
    """Store the export as an artifact, because a session may be of any length."""
    if params.format == "ndjson":
        content = b"".join([part async for part in runtime.store.export(params.session_id)])
    else:
        history = await runtime.store.history(params.session_id, _ALL, _ALL)
        events = [event async for event in history]
        content = "".join(session_markdown(params.session_id, events)).encode()
    cache, artifact_id = connection.workspace.context.cache, new_id()
    await run_in_thread(lambda _: cache.save_file(artifact_id, content))
    written_as = params.format or "markdown"
    return extensions.HistoryExportResult(params.session_id, written_as, artifact_id, len(content))


_ALL: Final = 2**31
"""More runs and events than a session has."""


class _ChangeDetails(msgspec.Struct):
    path: str = ""
    diff: str = ""
    written: bool = False
    sha256: str = ""
    sha256_before: str | None = None


class _ResultMeta(msgspec.Struct):
    details: _ChangeDetails = msgspec.field(default_factory=_ChangeDetails)


async def _details(runtime: AgentRuntime, run_id: str) -> AsyncIterator[_ChangeDetails]:
    async for event in runtime.store.events(run_id):
        if event.meta is not None:
            yield msgspec.json.decode(event.meta, type=_ResultMeta).details


async def history_undo(
    runtime: AgentRuntime, params: extensions.HistoryUndoParams, connection: UiConnection
) -> extensions.HistoryUndoResult:
    """Restore the files of a run. Only in the root of the run, and not while the session has an
    active run. Raises `CannotUndo`."""
    if any(run.session_id == params.session_id for run in runtime.runs.values()):
        raise CannotUndo("a run of this session is active; wait for it, or cancel it")
    context = connection.workspace.context
    undone = await _undone_runs(runtime, params.session_id)
    run_id, changes = params.run_id, RunChanges(())
    if run_id is None:
        run_id, changes = await _last_change(runtime, params.session_id, undone, connection)
    elif run_id in undone:
        raise CannotUndo(f"the changes of run {run_id} are undone already")
    else:
        changes = await _changes_of(runtime, run_id, connection)
    if not changes.files:
        raise CannotUndo(f"run {run_id} changed no files with write or edit")
    dry_run = bool(params.dry_run)
    files = await run_in_thread(
        lambda _: changes.undo(context.sandbox, context.versions, dry_run=dry_run)
    )
    if not dry_run:
        await _store_undone(runtime, params.session_id, [*undone, run_id])
    return extensions.HistoryUndoResult(run_id, files, dry_run)


async def _last_change(
    runtime: AgentRuntime, session_id: str, undone: list[str], connection: UiConnection
) -> tuple[str, RunChanges]:
    """Return the last run of a session that changed files and was not undone."""
    for run_id in reversed(await runtime.store.run_ids(session_id)):
        if run_id not in undone:
            changes = await _changes_of(runtime, run_id, connection)
            if changes.files:
                return run_id, changes
    raise CannotUndo(f"session {session_id} has no changes of files that can be undone")


class _StoredUndone(msgspec.Struct):
    undone_runs: list[str] = []


async def _undone_runs(runtime: AgentRuntime, session_id: str) -> list[str]:
    """Return the runs that were undone, which are stored in the session's `meta`."""
    meta = (await runtime.store.thread(session_id)).meta
    return msgspec.json.decode(meta or b"{}", type=_StoredUndone).undone_runs


async def _store_undone(runtime: AgentRuntime, session_id: str, undone: list[str]) -> None:
    meta = (await runtime.store.thread(session_id)).meta
    members = msgspec.json.decode(meta or b"{}", type=dict[str, msgspec.Raw])
    changed = {**members, "undone_runs": undone}
    await runtime.store.set_thread_meta(session_id, msgspec.json.encode(changed))


async def _changes_of(runtime: AgentRuntime, run_id: str, connection: UiConnection) -> RunChanges:
    """Return the changes of a run. Raises `OtherRoot` for a run in another root."""
    root = str(connection.workspace.context.sandbox.root)
    before = run_settings((await runtime.store.run(run_id)).meta).root
    if before not in ("", root):
        raise OtherRoot(
            f"run {run_id} changed files in {before}, and this connection has the root {root}; "
            "connect with that root (--root, or workspace.root of initialize)"
        )
    return RunChanges.of(
        [
            FileChange(found.path, found.sha256_before, found.sha256)
            async for found in _details(runtime, run_id)
            if found.written and found.sha256_before is not None
        ]
    )


async def todos_get(
    runtime: AgentRuntime, params: extensions.TodosGetParams, connection: UiConnection
) -> extensions.TodosResult:
    todos = await runtime.todos.load(params.session_id)
    return extensions.TodosResult(params.session_id, msgspec.to_builtins(todos.entries))


async def todos_set(
    runtime: AgentRuntime, params: extensions.TodosSetParams, connection: UiConnection
) -> extensions.TodosResult:
    """Replace the list of a session that has no active run: a run has its own copy of it."""
    if any(run.session_id == params.session_id for run in runtime.runs.values()):
        raise RpcError(protocol.BUSY, "a run of this session is active; it owns the todo list")
    entries = msgspec.convert(params.todos, tuple[NewEntry, ...])
    todos = TodoList()
    todos.change(TodoArguments("new", entries) if entries else TodoArguments("clear"))
    await runtime.todos.save(params.session_id, todos)
    return extensions.TodosResult(params.session_id, msgspec.to_builtins(todos.entries))


async def commands_list(
    runtime: AgentRuntime, params: extensions.CommandsListParams, connection: UiConnection
) -> extensions.CommandsListResult:
    """List the commands and skills that a person can call by `/name`."""
    return await connection.workspace.context.slash_commands.describe()


async def terminal_list(
    runtime: AgentRuntime, params: extensions.TerminalListParams, connection: UiConnection
) -> extensions.TerminalListResult:
    listed = await runtime.terminals.listed(params.session_id)
    return extensions.TerminalListResult(params.session_id, listed)
