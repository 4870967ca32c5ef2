"""The runtime: the active runs, and everything that outlives a connection.

Connections subscribe to runs and may be asked questions. The handlers of the protocol's methods
call the runtime (`handlers`); `errors` maps what it raises to wire codes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.agent.agent_run import AgentRun, RunCosts, RunLog, steering_read
from telex.agent.conversation import (
    IMAGE,
    message_text,
    to_stored,
    unanswered_calls,
    user_message,
)
from telex.agent.cores import RunInput
from telex.agent.errors import OtherRoot, TooManyRuns, WorkspaceRefused
from telex.agent.feeds import RunSubscriptions
from telex.agent.images import ImageRefused, StoredInput
from telex.agent.limits import AGENT_RUNS
from telex.agent.messages import UserMessage, decode_message
from telex.agent.permissions import InvalidRule, Mode
from telex.agent.protocol import events, runs
from telex.agent.questions import Questions
from telex.agent.run_context import RunContext
from telex.agent.run_settings import RunSettings, run_settings, with_run_settings
from telex.agent.run_states import EventOutOfOrder
from telex.agent.slash_commands import LoadedInput, effective_text
from telex.agent.store import (
    NewRun,
    RunEnded,
    RunNotOurs,
    Status,
    StoreError,
    StoreRefused,
    new_run_id,
    new_session_id,
)
from telex.agent.terminal_server import TerminalServer
from telex.agent.terminals import RuntimeTerminals
from telex.agent.tools.todo import TodoList, TodoStore
from telex.agent.ui_connection import unknown_ui
from telex.agent.workspace import Place
from telex.config.errors import ConfigError
from telex.processes.shielded import run_in_thread, run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.agent.messages import Message
    from telex.agent.model_catalogue import ModelCatalogue, ModelChoice
    from telex.agent.store import Store, StoredQuestion, StoredRun
    from telex.agent.ui_connection import UiConnection
    from telex.agent.workspace import Workspace, Workspaces
    from telex.rpc.identity import Identity

log = logging.getLogger("telex.agent")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The input and settings of a new run. `meta` and `ui_context` are JSON as received."""

    said: StoredInput
    loaded: LoadedInput | None = None
    """What the input called by `/name`."""
    session_id: str | None = None
    compact: bool = False
    meta: bytes | None = None
    ui_context: bytes | None = None
    """Replaces the context of the connection when the run begins."""


def _input_message(asked: RunRequest) -> UserMessage:
    """Return the message of the input, with what it called."""
    message = asked.said.message
    return message if asked.loaded is None else asked.loaded.added_to(message)


def _run_input(message: UserMessage, text: str, loaded: str, compact: bool) -> RunInput:
    effective = effective_text(message, loaded) if loaded else text
    return RunInput(effective, compact, is_skill=loaded == "skill")


class AgentRuntime:
    """All runs of one store, in any number of workspaces. `close` suspends or ends them.

    The store may be unopened: it is prepared when the first connection chooses its workspace.
    """

    def __init__(
        self,
        store: Store,
        workspaces: Workspaces,
        models: ModelCatalogue,
        *,
        diagnostics: bool = False,
        terminals: TerminalServer | None = None,
    ) -> None:
        self.store = store
        self.terminals = RuntimeTerminals(terminals or TerminalServer())
        self.workspaces = workspaces
        self.models = models
        self.diagnostics = diagnostics
        self.questions = Questions(store)
        self.runs: dict[str, AgentRun] = {}
        self.subscriptions = RunSubscriptions(self.runs, self.questions, store)
        self.todos = TodoStore(store)
        self._resume_lock = asyncio.Lock()
        """Held while a suspended run is resumed or cancelled."""
        self._starting = 0

    @property
    def full(self) -> bool:
        """Whether the limit of active and starting runs is reached."""
        return len(self.runs) + self._starting >= AGENT_RUNS

    async def open_workspace(
        self, asked: runs.WorkspaceChoice | None = None, identity: Identity | None = None
    ) -> Workspace:
        """Open the workspace of a connection, and the store if this is the first one. Raises what
        `Workspaces.choose` raises."""
        await self.store.prepare()
        return await self.workspaces.choose(asked, identity)

    async def start(self, asked: RunRequest, connection: UiConnection) -> runs.RunStartResult:
        """Store a new run and begin it. Its first step comes after the response is sent, because
        its task runs in a later step of the event loop. Raises `TooManyRuns`, `OtherRoot`,
        `ImageRefused` and store errors."""
        if self.full:
            raise TooManyRuns(f"{AGENT_RUNS} runs are active; wait for one to end, or cancel one")
        self._starting += 1
        try:
            current = await self.models.current(asked.session_id, connection.model)
            named = "" if asked.loaded is None else asked.loaded.model
            choice = await self.models.find(named, None) if named else current
            if asked.said.has_images and choice.core.details.supports_images is False:
                raise ImageRefused(
                    f"the model {choice.name} does not see images; choose another one with "
                    "model.set, or send a text"
                )
            run, todos = await self._store_run(asked, connection, choice)
            if asked.session_id is None and connection.model is not None:
                await self.models.set_for_session(run.session_id, current)
        finally:
            self._starting -= 1
        self.subscriptions.subscribe(run, connection)
        if asked.ui_context is not None:
            connection.ui_context = asked.ui_context
        message, loaded = _input_message(asked), asked.loaded
        context = self._context(
            run, choice, connection.workspace, todos, connection.ui_context, [message]
        )
        kind = "" if loaded is None else loaded.kind
        self._begin(run, choice, _run_input(message, asked.said.text, kind, asked.compact), context)
        return runs.RunStartResult(run.run_id, run.session_id)

    async def _store_run(
        self, asked: RunRequest, connection: UiConnection, choice: ModelChoice
    ) -> tuple[AgentRun, TodoList]:
        run_id = new_run_id()
        session_id = new_session_id() if asked.session_id is None else asked.session_id
        ui_context = connection.ui_context if asked.ui_context is None else asked.ui_context
        workspace = connection.workspace
        place = workspace.describe()
        if asked.session_id is not None:
            await self._check_root(session_id, place.root)
        new = NewRun(
            run_id,
            session_id,
            asked.said.input,
            asked.said.text,
            with_run_settings(
                asked.meta,
                RunSettings(
                    *(choice.name, choice.provider, asked.compact),
                    *(place.root, place.cwd, place.mode),
                    "" if asked.loaded is None else asked.loaded.kind,
                ),
            ),
            asked.session_id is None,
            bool(connection.capabilities.supports_run_attach),
            workspace.context.workspace(ui_context),
            to_stored(_input_message(asked)),
        )
        todos = TodoList() if new.new_thread else await self.todos.load(session_id)
        try:
            await run_shielded(self.store.start_run(new))
        except asyncio.CancelledError:
            await run_shielded(self._never_began(run_id))
            raise
        return self._new_run(run_id, session_id, new.meta), todos

    async def _check_root(self, session_id: str, root: str) -> None:
        """Raise `OtherRoot` for a session whose last run was in another root that still exists:
        what was read there must not be mixed with the permissions here."""
        last = (await self.store.thread(session_id)).last_run_id
        if last is None:
            return
        try:
            before = run_settings((await self.store.run(last)).meta).root
        except msgspec.DecodeError:  # an imported run may have any meta
            return
        if before not in ("", root) and await run_in_thread(lambda _: os.path.isdir(before)):
            raise OtherRoot(
                f"session {session_id} belongs to the root {before}, and this connection has the "
                f"root {root}; connect with that root (--root, or workspace.root of initialize), "
                "or start a new session"
            )

    async def _never_began(self, run_id: str) -> None:
        """End a run that no UI knows of, so that its session is free again."""
        with contextlib.suppress(StoreError):  # the end is stored later, or the run never was
            await self.store.end_run(run_id, Status.CANCELLED, "its UI left before the run began")

    def _new_run(
        self, run_id: str, session_id: str, meta: bytes | None, log: RunLog | None = None
    ) -> AgentRun:
        costs = RunCosts() if self.diagnostics else None
        return AgentRun(run_id, session_id, self.store, self.questions, costs, meta, log)

    async def resume(self, stored: StoredRun, connection: UiConnection) -> Callable[[], None] | str:
        """Restore a run that awaited an answer when its runtime ended, from its log.

        Return the function that begins it: the caller subscribes the connection first. Return the
        reason where the run cannot continue here: this connection cannot answer its questions, its
        model or its root is missing, another runtime has the run, or too many runs are active. A
        run whose log does not allow it to continue is ended, with the reason.
        """
        async with self._resume_lock:
            return await self._resume(stored, connection)

    async def _resume(
        self, stored: StoredRun, connection: UiConnection
    ) -> Callable[[], None] | str:
        store, settings = self.store, run_settings(stored.meta)
        questions = await store.pending(stored.run_id)
        choice = await self.models.for_resume(stored.session_id, settings)
        if stored.run_id in self.runs:
            return "it has been resumed"
        if not all(connection.can_be_asked(question.method) for question in questions):
            return "this UI cannot answer its question"
        if choice is None:
            return f"its model {settings.model} is missing; see: telex agent models"
        workspace = await self._workspace_of(stored.run_id, settings, connection)
        if workspace is None:
            return f"its root {settings.root} is missing, or is another directory now"
        if self.full:
            return f"{AGENT_RUNS} runs are active"
        try:
            await store.adopt(stored.run_id)
        except StoreRefused as refused:  # another runtime has it, or it has ended
            return str(refused)
        messages = [decode_message(one.message) for one in await store.run_messages(stored.run_id)]
        waiting = {call.id for call in unanswered_calls(messages)}
        try:
            past = RunLog.of([event async for event in store.events(stored.run_id)], messages)
        except EventOutOfOrder as problem:
            return await self._cannot_continue(stored.run_id, str(problem))
        if not waiting.issuperset(question.call for question in questions):
            return await self._cannot_continue(stored.run_id, "an earlier telex stored it")
        todos = await self.todos.load(stored.session_id)
        text = message_text(messages[0], IMAGE) if messages else ""
        run = self._new_run(stored.run_id, stored.session_id, stored.meta, past)
        if stored.may_return:
            run.departures.add(unknown_ui(question.method for question in questions))
        run.feeds.update(self.subscriptions.take_watchers(run.run_id))
        for feed in run.feeds:
            feed.begin_after(past.last_seq)
        self.runs[run.run_id] = run
        context = self._context(
            run, choice, workspace, todos, connection.ui_context, messages, questions
        )
        asked = RunInput(text, settings.compact)
        if messages and isinstance(messages[0], UserMessage):
            asked = _run_input(messages[0], text, settings.loaded, settings.compact)
        return lambda: self._begin(run, choice, asked, context)

    async def _cannot_continue(self, run_id: str, why: str) -> str:
        """End a run that waits for an answer and cannot be resumed by any runtime."""
        message = f"the run cannot continue after the restart: {why}"
        log.warning("run %s: %s", run_id, message)
        await self.store.end_run(run_id, Status.ERROR, message)
        self.subscriptions.publish_end(runs.RunStatusNotify(run_id, "error", message))
        return message

    async def _workspace_of(
        self, run_id: str, settings: RunSettings, connection: UiConnection
    ) -> Workspace | None:
        """Open the workspace in which a run was started, whichever connection resumes it. None
        where it is missing. A run that is older than its settings uses the connection's."""
        if not settings.root:
            return connection.workspace
        try:
            place = Place(settings.root, settings.cwd, Mode(settings.mode))
            return await self.workspaces.reopen(place)
        except (ValueError, WorkspaceRefused, InvalidRule, ConfigError) as problem:
            log.warning("run %s cannot continue: %s", run_id, problem)
            return None

    def _context(
        self,
        run: AgentRun,
        choice: ModelChoice,
        workspace: Workspace,
        todos: TodoList,
        ui_context: bytes | None,
        messages: Iterable[Message],
        pending: Iterable[StoredQuestion] = (),
    ) -> RunContext:
        return RunContext(
            run,
            choice.name,
            workspace,
            self.store,
            self.questions,
            todos,
            ui_context,
            self.todos.save,
            messages,
            pending,
            terminals=self.terminals.of(run.session_id),
            sees_images=choice.core.details.supports_images is not False,
        )

    def _begin(
        self, run: AgentRun, choice: ModelChoice, asked: RunInput, context: RunContext
    ) -> None:
        self.runs[run.run_id] = run
        run.begin(choice.core, asked, context, self._forget)

    def _forget(self, run: AgentRun) -> None:
        self.runs.pop(run.run_id, None)

    async def cancel(
        self, run_id: str, reason: str | None, connection: UiConnection
    ) -> runs.RunCancelResult:
        """Cancel a run, and answer when its end is stored: after an `ok` it cannot be resumed.

        Raises `UnknownRun` and `EndNotSaved`.
        """
        if run_id not in self.runs:
            async with self._resume_lock:
                if run_id not in self.runs:
                    return await self._cancel_stored(run_id, reason)
        run = self.runs[run_id]
        ok = await run.cancel(reason)
        if (feed := connection.feeds.get(run_id)) is not None:
            await feed.wait_sent()
        await self.store.flush_end(run_id)
        return runs.RunCancelResult(ok, run.status)

    async def _cancel_stored(self, run_id: str, reason: str | None) -> runs.RunCancelResult:
        """Cancel a run that is not active: it has ended, or it awaits an answer since before a
        restart."""
        stored = await self.store.run(run_id)
        if stored.status.ended:
            unsaved = self.store.has_unsaved_end(run_id)
            await self.store.flush_end(run_id)
            ok = unsaved and stored.status is Status.CANCELLED
            return runs.RunCancelResult(ok, stored.status.value)
        try:
            await self.store.adopt(run_id)
            await self._store_unread_steering(stored)
            await self.store.end_run(run_id, Status.CANCELLED, reason)
        except RunEnded as ended:
            return runs.RunCancelResult(False, Status(ended.status).value)
        except RunNotOurs:
            return runs.RunCancelResult(False, stored.status.value)
        self.subscriptions.publish_end(runs.RunStatusNotify(run_id, "cancelled", reason))
        return runs.RunCancelResult(True, "cancelled")

    async def _store_unread_steering(self, stored: StoredRun) -> None:
        """Add the steering texts that the run did not read to its history."""
        messages = [decode_message(m.message) for m in await self.store.run_messages(stored.run_id)]
        for text in run_settings(stored.meta).steered[steering_read(messages) :]:
            event = msgspec.json.encode(events.HiddenUserMessageEvent(text))
            message = to_stored(user_message(text))
            await self.store.appending(stored.run_id, event, message=message)

    async def close(self) -> None:
        """Suspend or end every run, and close the store. A question to a UI that may reconnect
        stays open. Idempotent."""
        self.questions.suspending = True
        await asyncio.gather(*(run.suspend() for run in self.runs.values()))
        await self.models.close()
        await self.terminals.close()
        await self.store.close()
