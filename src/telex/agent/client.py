"""`telex.agent`: a client of the agent runtime, for programs with an event loop.

    async with telex.agent.spawn() as agent:
        run = await agent.run_start("list *.py")
        async for event in run:
            if isinstance(event, FinalEvent):
                print(event.content)

`AsyncAgent` has one method for each method of the protocol: `session.list` is `session_list`.
`sync` has the same for programs without an event loop.

    runtime_access     `spawn`, `connect`, `in_process`: the ways to a runtime
    run_stream         one run: its messages, in order, each event once
    ui_callbacks       the functions that answer the runtime's questions
    client_connection  the conversation, which survives the loss of its channel
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack

import msgspec
from msgspec import UNSET, Raw

from telex.agent import protocol
from telex.agent.client_connection import RuntimeConnection
from telex.agent.errors import AgentError, ConnectionLost
from telex.agent.protocol import extensions, runs, sessions
from telex.agent.run_stream import AsyncRun, RunDelta, RunEvent, SessionHistory, run_event
from telex.agent.ui_callbacks import UiCallbacks, UiOptions
from telex.processes.shielded import run_in_thread, run_shielded
from telex.rpc.methods import Methods
from telex.version import __version__

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from telex.agent.client_connection import Dialer
    from telex.agent.run_stream import RunMessage

T = TypeVar("T")

_CLIENT: Final = runs.PeerInfo("telex", __version__)


class AsyncAgent:
    """A connection to an agent runtime. Use it with `async with`, or close it.

    Methods are named for those of the protocol. Each raises an `AgentError` named for the
    condition, and `ConnectionLost` where the runtime cannot be reached.

    Attributes:
        session_id: The session in which `run_start` continues; None before the first run.
        todos: The todo list of this connection's own `tool_call`s.
        closed: Whether `close` was called.

    Example:
        async with telex.agent.spawn() as agent:
            run = await agent.run_start("list *.py")
            result = await run.wait()
            print(result.answer)
    """

    __module__ = "telex.agent"

    def __init__(self, dialer: Dialer, *, reconnect: float = 0.0, **ui: Unpack[UiOptions]) -> None:
        self.session_id: str | None = None
        self.todos: list[Any] = []
        self._runs: dict[str, AsyncRun] = {}
        self._unclaimed: dict[str, AsyncRun] = {}
        """Runs whose messages came before the answer to `run.start`, which has their id."""
        self._starting = 0
        self._context: runs.UiContext | None = None
        self._history: list[RunEvent] | None = None
        self._replays = asyncio.Lock()
        """Held by one request that replays events, so that each event finds its request."""
        self._replayed = asyncio.Event()
        self._callbacks = UiCallbacks(ui, self._handled)
        self.closed = False
        self._connection = RuntimeConnection(
            dialer,
            self._hello(ui, reconnect),
            self._methods(),
            reconnect=reconnect,
            on_connected=self._resume,
            on_lost=self._lost,
            on_ended=self._ended,
        )

    @property
    def server(self) -> runs.PeerInfo:
        """Name and version of the runtime."""
        return self._connection.server

    @property
    def server_capabilities(self) -> runs.ServerCapabilities:
        """The capabilities that the runtime announced."""
        return self._connection.capabilities

    @property
    def workspace(self) -> runs.WorkspaceInfo | None:
        """The root and the mode that the runtime works in; None if it does not say."""
        return self._connection.workspace

    def __repr__(self) -> str:
        return f"<telex.agent.AsyncAgent session_id={self.session_id!r} state={self._state!r}>"

    @property
    def _state(self) -> str:
        return "closed" if self.closed else self._connection.state

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> Self:
        """Connect. `spawn`, `connect` and `in_process` call it.

        Raises:
            CannotConnect: There is no runtime to connect to.
            AgentError: The runtime refused `initialize`, or did not answer.
        """
        await self._connection.open()
        return self

    async def close(self) -> None:
        """Close the connection. Idempotent.

        A runtime that `spawn` started ends. Runs in a runtime that others use continue there.
        """
        if not self.closed:
            self.closed = True
            await run_shielded(self._close())

    # Runs.

    async def run_start(
        self,
        text: str,
        *,
        images: Sequence[str | os.PathLike[str] | bytes] = (),
        session_id: str | None = None,
        new_session: bool = False,
        force_compaction: bool = False,
        ui_context: runs.UiContext | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> AsyncRun:
        """Send a message to the agent, which starts a run.

        Args:
            text: The message of the person.
            images: Images that belong to the message: the path of a file, its bytes, or an `https://`
                or `data:` URL. PNG, JPEG, GIF or WebP, at most 10, and at most 5 MiB each.
            session_id: Continue this session. By default the session of the last run that this
                client started, or a new one.
            new_session: Begin a new session in any case.
            force_compaction: Make the core's context smaller first.
            ui_context: Where the person works: files, a selection. Replaces the last one.
            meta: Stored with the run.

        Raises:
            RuntimeBusy: The session has a run that has not ended, or too many runs are active.
            SessionNotFound: There is no such session.
            InvalidParams: `session_id` and `new_session` are both given, or an image cannot be
                used: it is too large, of another type, or the model does not see images.
            OSError: The file of an image cannot be read.
            ConnectionLost: The connection was lost; whether the run was started is not known.
                `session_list` shows it.

        Example:
            run = await agent.run_start("list *.py", new_session=True)
            result = await run.wait()
            print(result.answer)
        """
        if session_id is None and not new_session:
            session_id = self.session_id
        params = runs.RunStartParams(
            _raw(await _input(text, images)),
            session_id,
            force_compaction or None,
            UNSET if ui_context is None else _raw(ui_context),
            UNSET if meta is None else _raw(meta),
            new_session or None,
        )
        self._starting += 1
        try:
            started = await self._call("run.start", params, runs.RunStartResult)
            run = self._unclaimed.pop(started.run_id, None)
        finally:
            self._starting -= 1
            if not self._starting:
                self._unclaimed.clear()
        self.session_id = started.session_id
        if ui_context is not None:
            self._context = ui_context
        if run is None:
            run = self._new_run(started.run_id)
        run.session_id = started.session_id
        self._runs[run.run_id] = run
        if run._ended:
            self._forget(run)
        return run

    async def run_attach(self, run_id: str, *, after_seq: int = -1) -> AsyncRun:
        """Follow a run that another client started, or that this program followed before.

        The events after `after_seq` are sent again, then everything that follows. Questions of the
        run that are open are asked here too. A run that ended is replayed. A run that this client
        follows already is returned as it is.

        Args:
            run_id: From `AsyncRun.run_id`, or from `session_list`.
            after_seq: The last event that the program has; -1 for all events.

        Raises:
            RunNotFound: There is no such run.
            RuntimeBusy: Another runtime, which still runs, owns it.
            InvalidParams: `after_seq` is beyond the run's last event.

        Example:
            listed = await agent.session_list(limit=1)
            run = await agent.run_attach(listed.sessions[0].run_id)
            async for event in run:
                print(event)
        """
        if (known := self._runs.get(run_id)) is not None:
            return known
        run = self._runs[run_id] = self._new_run(run_id, after_seq)
        try:
            await self._attach(run)
        except BaseException:
            self._runs.pop(run_id, None)
            raise
        return run

    async def run_cancel(self, run_id: str, reason: str | None = None) -> runs.RunCancelResult:
        """Cancel a run. When this returns, nothing of the run is executed any more.

        Args:
            run_id: The run.
            reason: Stored with the run, and shown to its other UIs.

        Returns:
            `ok` is False if the run had ended before; `status` is how.

        Raises:
            RunNotFound: There is no such run.
            RuntimeFailed: The end could not be stored; cancel again.
        """
        asked = runs.RunCancelParams(run_id, reason)
        return await self._call("run.cancel", asked, runs.RunCancelResult)

    async def run_steer(self, run_id: str, text: str) -> extensions.RunSteerResult:
        """Add a message of the person to a run while it is active.

        Args:
            run_id: The run.
            text: The core reads it before its next step.

        Returns:
            `ok` is False if the run had ended before.

        Raises:
            RunNotFound: There is no such run.
            InvalidParams: The text is empty.
        """
        asked = extensions.RunSteerParams(run_id, text)
        return await self._call("run.steer", asked, extensions.RunSteerResult)

    async def run_diff(self, run_id: str) -> extensions.RunDiffResult:
        """Return the changes that a run's `write` and `edit` made, file by file, in order.

        Args:
            run_id: The run, which may have ended long ago.

        Raises:
            RunNotFound: There is no such run.
        """
        asked = extensions.RunDiffParams(run_id)
        return await self._call("run.diff", asked, extensions.RunDiffResult)

    # Files, artifacts, history and todo lists.

    async def workspace_list(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        include_ignored: bool = False,
        match: str | None = None,
        limit: int = 200,
        cursor: str | None = None,
    ) -> extensions.WorkspaceListResult:
        """List a directory of the workspace, a page at a time.

        Args:
            path: The directory, relative to the cwd of the workspace.
            recursive: Also list everything below it, except hidden directories.
            include_ignored: Also list what git ignores.
            match: Only paths with these characters in this order, the best match first.
            limit: How many entries a page has.
            cursor: The `next_cursor` of the page before.

        Raises:
            InvalidParams: The path is outside the root, or no directory.

        Example:
            listed = await agent.workspace_list(recursive=True)
            for entry in listed.entries:
                print(entry.kind, entry.path)
        """
        asked = extensions.WorkspaceListParams(
            path, recursive, include_ignored, match, limit, cursor
        )
        return await self._call("workspace.list", asked, extensions.WorkspaceListResult)

    async def workspace_read(
        self, path: str, *, offset: int = 0, limit: int = 2000, redact: bool = True
    ) -> extensions.WorkspaceReadResult:
        """Read a page of a file of the workspace; an image is returned whole.

        Args:
            path: The file, relative to the cwd of the workspace.
            offset: How many lines to skip.
            limit: How many lines to return at most.
            redact: Mask secrets.

        Raises:
            InvalidParams: The path is outside the root, no file, or a file that is too large.
        """
        asked = extensions.WorkspaceReadParams(path, offset, limit, redact)
        return await self._call("workspace.read", asked, extensions.WorkspaceReadResult)

    async def workspace_search(
        self,
        pattern: str,
        path: str = ".",
        *,
        regex: bool = False,
        ignore_case: bool = False,
        glob: str | None = None,
        limit: int = 200,
        offset: int = 0,
        redact: bool = True,
    ) -> extensions.WorkspaceSearchResult:
        """Find the lines that contain a text in the files of the workspace.

        Args:
            pattern: The text.
            path: The file or the directory to search.
            regex: The pattern is a regular expression (RE2).
            ignore_case: Upper and lower case are equal.
            glob: Only files with such a path, for example `*.py`.
            limit: How many matches to return at most.
            offset: How many matches to skip.
            redact: Mask secrets.

        Raises:
            InvalidParams: The path is outside the root, or the pattern is not valid.
        """
        asked = extensions.WorkspaceSearchParams(
            pattern, path, regex, ignore_case, glob, limit, offset, redact
        )
        return await self._call("workspace.search", asked, extensions.WorkspaceSearchResult)

    async def artifact_read(
        self, artifact_id: str, *, offset: int = 0, limit: int = 262_144
    ) -> extensions.ArtifactReadResult:
        """Read a part of a long output, of an export, or of a run's changes.

        Args:
            artifact_id: A cache id of a result, the id of `history_export`, or `diff:RUN_ID`.
            offset: How many bytes to skip: the `next_offset` of the part before.
            limit: How many bytes to return at most.

        Raises:
            InvalidParams: There is no such artifact, or it was deleted.
        """
        asked = extensions.ArtifactReadParams(artifact_id, offset, limit)
        return await self._call("artifact.read", asked, extensions.ArtifactReadResult)

    async def history_export(
        self, session_id: str, *, format: Literal["markdown", "ndjson"] = "markdown"
    ) -> extensions.HistoryExportResult:
        """Export a session as an artifact, which `artifact_read` returns in parts.

        Args:
            session_id: The session.
            format: `markdown` for people, `ndjson` for `telex agent import`.

        Raises:
            SessionNotFound: There is no such session.
        """
        asked = extensions.HistoryExportParams(session_id, format)
        return await self._call("history.export", asked, extensions.HistoryExportResult)

    async def history_undo(
        self, session_id: str, *, run_id: str | None = None, dry_run: bool = False
    ) -> extensions.HistoryUndoResult:
        """Undo the file changes that a run made with `write` and `edit`: all of them, or none.

        Args:
            session_id: The session.
            run_id: The run; by default the last one that changed files and was not undone.
            dry_run: Only return what would be done.

        Raises:
            InvalidParams: A file was changed since, an old content is gone, or there is nothing
                to undo; the message says which.
        """
        asked = extensions.HistoryUndoParams(session_id, run_id, dry_run)
        return await self._call("history.undo", asked, extensions.HistoryUndoResult)

    async def terminal_list(self, session_id: str) -> extensions.TerminalListResult:
        """Return the terminals that the runs of a session opened.

        Args:
            session_id: The session.
        """
        asked = extensions.TerminalListParams(session_id)
        return await self._call("terminal.list", asked, extensions.TerminalListResult)

    async def todos_get(self, session_id: str) -> extensions.TodosResult:
        """Return the todo list of a session.

        Args:
            session_id: The session.

        Raises:
            SessionNotFound: There is no such session.
        """
        asked = extensions.TodosGetParams(session_id)
        return await self._call("todos.get", asked, extensions.TodosResult)

    async def todos_set(
        self, session_id: str, todos: Sequence[Mapping[str, Any]]
    ) -> extensions.TodosResult:
        """Replace the todo list of a session.

        Args:
            session_id: The session, which has no active run.
            todos: Entries with `content`, and optionally `status` and `priority`.

        Raises:
            RuntimeBusy: A run of the session is active.
            InvalidParams: An entry is not valid.
        """
        asked = extensions.TodosSetParams(session_id, list(todos))
        return await self._call("todos.set", asked, extensions.TodosResult)

    # Sessions and models.

    async def session_list(
        self,
        *,
        limit: int | None = None,
        scope: Literal["current_workspace", "all"] | None = None,
        workspace_root: str | None = None,
    ) -> sessions.SessionListResult:
        """List the stored sessions, the last used one first.

        Args:
            limit: How many at most; 50 by default, 0 for all.
            scope: `current_workspace` for those of one workspace. By default all, unless
                `workspace_root` is given.
            workspace_root: The workspace; by default the one that runs of this client are in.

        Raises:
            SessionListFailed: The store cannot be read.
        """
        asked = sessions.SessionListParams(limit, scope, workspace_root)
        return await self._call("session.list", asked, sessions.SessionListResult)

    async def session_history(
        self, session_id: str, *, max_runs: int | None = None, max_events: int | None = None
    ) -> SessionHistory:
        """Return the stored events of a session, oldest first.

        The messages of the person are `HiddenUserMessageEvent`s with the number -1.

        Args:
            session_id: The session.
            max_runs: Of the latest runs; 20 by default.
            max_events: The latest events; 1,500 by default.

        Raises:
            SessionNotFound: There is no such session.
            SessionLoadFailed: It is stored and cannot be read.

        Example:
            listed = await agent.session_list(limit=1)
            history = await agent.session_history(listed.sessions[0].session_id)
            for one in history.events:
                print(one.seq, one.event)
        """
        asked = sessions.SessionHistoryParams(session_id, max_runs, max_events)
        async with self._replays:
            await self._until_replayed()
            events: list[RunEvent] = []
            self._history = events
            try:
                answer = await self._call("session.history", asked, sessions.SessionHistoryResult)
            finally:
                self._history = None
        return SessionHistory(events, answer.runs, answer.truncated)

    async def model_list(
        self, *, provider: str | None = None, include_details: bool = False
    ) -> sessions.ModelListResult:
        """List the models of a provider.

        Args:
            provider: By default that of the current model.
            include_details: Also return context sizes and prices.
        """
        asked = sessions.ModelListParams(provider, include_details)
        return await self._call("model.list", asked, sessions.ModelListResult)

    async def model_set(
        self,
        name: str | None,
        *,
        provider: str | None = None,
        scope: sessions.ModelSource = "config",
    ) -> sessions.ModelSetResult:
        """Choose the model for the runs that begin from now on.

        Args:
            name: From `model_list`; None removes the choice of the session.
            provider: By default that of the current model, else any that has the model.
            scope: `session` chooses it for the current session of this client, or the next one that
                it begins; `config` for every session without a choice of its own.

        Raises:
            InvalidParams: There is no such model, or no such provider.
        """
        asked = sessions.ModelSetParams(name, provider, scope, reset=name is None)
        return await self._call("model.set", asked, sessions.ModelSetResult)

    # Tools, context and the shell.

    async def tool_call(
        self, name: str, arguments: Mapping[str, Any] | None = None
    ) -> sessions.ToolCallResult:
        """Call a tool of the runtime, outside of any run. Permissions are the same as in a run.

        Args:
            name: The tool, such as `read`.
            arguments: As the tool's schema has them.

        Returns:
            `ok` is False when the tool failed or a rule denies it; `result` then has the reason.

        Raises:
            UserCancelled: The person said no.
            InvalidParams: There is no such tool, or the arguments do not fit.
            ConnectionLost: The connection was lost; whether the tool ran is not known.

        Example:
            answer = await agent.tool_call("list", {"pattern": "*.py"})
            print(answer.result)
        """
        asked = sessions.ToolCallParams(name, UNSET if arguments is None else _raw(arguments))
        return await self._call("tool.call", asked, sessions.ToolCallResult)

    async def shell_exec(
        self, command: str, *, timeout_seconds: float | None = None, cwd: str | None = None
    ) -> sessions.ShellExecResult:
        """Run a command of the person's own in the runtime's workspace, without a question.

        Args:
            command: For the shell.
            timeout_seconds: 120 by default, 300 at most; then the command is ended.
            cwd: Inside the sandbox root, which is the default.

        Raises:
            InvalidParams: The command is empty, or `cwd` is outside the sandbox root.
            ConnectionLost: The connection was lost, which ends the command.
        """
        asked = sessions.ShellExecParams(command, timeout_seconds, cwd)
        return await self._call("shell.exec", asked, sessions.ShellExecResult)

    async def permission_explain(
        self, tool: str, arguments: Mapping[str, Any] | None = None
    ) -> extensions.PermissionExplainResult:
        """Explain whether a tool call would be allowed, asked about or denied. Nothing is run.

        Args:
            tool: The tool, such as `shell`.
            arguments: As in `tool_call`.

        Raises:
            InvalidParams: There is no such tool, or the arguments do not fit.

        Example:
            answer = await agent.permission_explain("shell", {"command": "rm -rf src"})
            print(answer.decision, answer.why)
        """
        given = UNSET if arguments is None else _raw(arguments)
        asked = extensions.PermissionExplainParams(tool, given)
        return await self._call("permission.explain", asked, extensions.PermissionExplainResult)

    async def context_inspect(
        self, *, include_agents: bool = True, include_skills: bool = True
    ) -> sessions.ContextInspectResult:
        """Return the context of the runtime: directories, instructions, skills.

        Args:
            include_agents: Also the AGENTS.md files in use.
            include_skills: Also the catalogue of skills.
        """
        asked = sessions.ContextInspectParams(include_agents, include_skills)
        return await self._call("context.inspect", asked, sessions.ContextInspectResult)

    async def skills_list(
        self, *, cwd: str | None = None, force_reload: bool = False
    ) -> sessions.SkillsListResult:
        """List the skills that are offered, and those that cannot be, with the reason.

        Args:
            cwd: As seen from this directory; by default the runtime's.
            force_reload: Read the files again.

        Raises:
            InvalidParams: `cwd` is outside the sandbox root.
        """
        asked = sessions.SkillsListParams(cwd, force_reload)
        return await self._call("skills.list", asked, sessions.SkillsListResult)

    async def commands_list(self) -> extensions.CommandsListResult:
        """List the commands and skills that `/name` at the beginning of an input calls.

        Example:
            listed = await agent.commands_list()
            for one in listed.commands:
                if one.not_offered is None:
                    print(f"/{one.name} {one.argument_hint}", one.description)
        """
        asked = extensions.CommandsListParams()
        return await self._call("commands.list", asked, extensions.CommandsListResult)

    async def mcp_list(
        self, *, scope: Literal["loaded", "configured"] | None = None
    ) -> sessions.McpListResult:
        """List the MCP servers of the runtime, with their state.

        Args:
            scope: `loaded` (the default), or `configured` for all that the settings name.
        """
        asked = sessions.McpListParams(scope)
        return await self._call("mcp.list", asked, sessions.McpListResult)

    async def auth_logout(self, *, clear_session: bool = True) -> sessions.AuthLogoutResult:
        """Sign out of the model's provider. The runtime asks first (`confirm`).

        Args:
            clear_session: The next run begins a new session.

        Raises:
            RuntimeBusy: A run is active.
        """
        asked = sessions.AuthLogoutParams(clear_session)
        answer = await self._call("auth.logout", asked, sessions.AuthLogoutResult)
        if answer.session_cleared:
            self.session_id = None
        return answer

    async def ui_context_update(self, context: runs.UiContext) -> None:
        """Send the runtime the place where the person works. It replaces the last one.

        Args:
            context: Directory, active file, selection. It is sent again after a reconnect.

        Example:
            file = telex.agent.ActiveFile("src/a.py")
            await agent.ui_context_update(telex.agent.UiContext(active_file=file))
        """
        self._context = context
        await self._connection.notify("ui.context.update", context)

    # Messages of the runtime, and the loss of the connection.

    async def _close(self) -> None:
        await self._connection.close()
        await self._callbacks.close()

    def _hello(self, ui: UiOptions, reconnect: float) -> runs.InitializeParams:
        capabilities = msgspec.structs.replace(
            self._callbacks.announced(ui.get("capabilities", runs.UiCapabilities())),
            supports_run_attach=ui.get("keep_questions", reconnect > 0),
            supports_request_cancel=True,
            supports_todos=True,
            supports_deltas=ui.get("deltas", False),
        )
        client, workspace = ui.get("client", _CLIENT), ui.get("workspace")
        return runs.InitializeParams(protocol.VERSION, client, capabilities, workspace)

    def _methods(self) -> Methods:
        methods = Methods()
        methods.add("agent.event", self._on_event)
        methods.add("run.status", self._on_status)
        methods.add("run.context", self._on_context)
        methods.add("run.diagnostics", self._on_diagnostics)
        methods.add("text.delta", self._on_text)
        methods.add("reasoning.delta", self._on_reasoning)
        methods.add("todos.update", self._on_todos)
        methods.add("ui.request.cancel", self._on_request_cancel)
        self._callbacks.add_to(methods)
        return methods

    async def _call(self, method: str, params: msgspec.Struct, returns: type[T]) -> T:
        return await self._connection.call(method, params, returns)

    def _on_event(self, params: runs.AgentEventNotify) -> None:
        event = run_event(params)
        known = self._runs.get(params.run_id)
        if self._history is not None and event.replay and not (known and known._replaying):
            self._history.append(event)
        else:
            self._deliver(params.run_id, event)

    def _on_status(self, params: runs.RunStatusNotify) -> None:
        self._deliver(params.run_id, params)
        self._replayed.set()
        run = self._runs.get(params.run_id)
        if run is not None and run._ended:
            self._forget(run)
        elif params.status == "running":
            self._callbacks.run_continues(params.run_id)

    def _on_context(self, params: runs.RunContextNotify) -> None:
        self._deliver(params.run_id, params)

    def _on_diagnostics(self, params: runs.RunDiagnosticsNotify) -> None:
        self._deliver(params.run_id, params)

    def _on_text(self, params: extensions.DeltaNotify) -> None:
        self._deliver(params.run_id, RunDelta(params.run_id, "text", params.content))

    def _on_reasoning(self, params: extensions.DeltaNotify) -> None:
        self._deliver(params.run_id, RunDelta(params.run_id, "reasoning", params.content))

    def _on_todos(self, params: extensions.TodosUpdate) -> None:
        if params.run_id is not None:
            self._deliver(params.run_id, params)
        else:
            self.todos = list(params.todos)

    def _on_request_cancel(self, params: extensions.UiRequestCancel) -> None:
        self._callbacks.withdraw(params.id)

    def _forget(self, run: AsyncRun) -> None:
        """The run has ended."""
        self._runs.pop(run.run_id, None)
        self._callbacks.run_ended(run.run_id)

    def _deliver(self, run_id: str, message: RunMessage) -> None:
        run = self._runs.get(run_id)
        if run is None and self._starting:
            run = self._unclaimed.get(run_id)
            if run is None:
                run = self._unclaimed[run_id] = self._new_run(run_id)
        if run is not None:
            run._receive(message)

    async def _handled(self, run_id: str | None) -> None:
        """Wait until the program has handled the messages that came before a question of a run."""
        if run_id is not None and (run := self._runs.get(run_id)) is not None:
            await run._handled()

    def _new_run(self, run_id: str, after_seq: int = -1) -> AsyncRun:
        return AsyncRun(self, self._attach_again, run_id, after_seq=after_seq)

    async def _attach_again(self, run: AsyncRun) -> None:
        """Request the events of a run that were dropped here."""
        try:
            await self._attach(run)
        except AgentError as error:
            self._runs.pop(run.run_id, None)
            run._fail(error)

    async def _attach(self, run: AsyncRun) -> None:
        """Have the events after the last received one sent, on whichever connection there is."""
        while True:
            try:
                await self._attach_once(run)
            except ConnectionLost:
                await self._connection.connected()
            else:
                return

    async def _attach_once(self, run: AsyncRun) -> None:
        async with self._replays:
            run._attaching()
            asked = extensions.RunAttachParams(run.run_id, run._last_received)
            run._attached(await self._call("run.attach", asked, extensions.RunAttachResult))

    async def _until_replayed(self) -> None:
        while any(run._replaying for run in self._runs.values()):
            self._replayed.clear()
            await self._replayed.wait()

    def _lost(self) -> None:
        if self._history is not None:
            self._history.clear()
        for run in self._runs.values():
            run._replaying = False
        self._replayed.set()

    async def _resume(self) -> None:
        """Restore on a new connection what the runtime knew of the old one."""
        if self._context is not None:
            await self._connection.notify("ui.context.update", self._context)
        for run in list(self._runs.values()):
            try:
                await self._attach_once(run)
            except ConnectionLost:
                raise
            except AgentError as error:
                self._runs.pop(run.run_id, None)
                run._fail(error)

    def _ended(self, error: ConnectionLost) -> None:
        for run in (*self._runs.values(), *self._unclaimed.values()):
            run._fail(error)
        self._runs.clear()
        self._callbacks.withdraw_all()
        self._replayed.set()


async def _input(
    text: str, images: Sequence[str | os.PathLike[str] | bytes]
) -> runs.TextInput | runs.PartsInput:
    if not images:
        return runs.TextInput(text)
    from telex.agent.images import parts_input  # few messages have an image

    return await run_in_thread(lambda _: parts_input(text, images))


def _raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
