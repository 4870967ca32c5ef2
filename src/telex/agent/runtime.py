"""The runtime: the active runs, and everything that outlives a connection.

Connections subscribe to runs and may be asked questions. The handlers of the protocol's methods
call the runtime (`handlers`); `errors` maps what it raises to wire codes.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.agent import run_replay
from telex.agent.agent_run import AgentRun, RunCosts
from telex.agent.cores import RunInput
from telex.agent.errors import NoSuchModel, TooManyRuns
from telex.agent.feeds import RunSubscriptions
from telex.agent.limits import AGENT_RUNS
from telex.agent.permissions.confirmation import Confirmer
from telex.agent.protocol import events, runs
from telex.agent.questions import Questions
from telex.agent.run_context import RunContext
from telex.agent.run_replay import Replay
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
from telex.agent.tools.todo import TodoList, TodoStore
from telex.agent.ui_connection import unknown_ui
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.agent.agent_context import AgentContext
    from telex.agent.cores import Core
    from telex.agent.permissions.workspace_permissions import WorkspacePermissions
    from telex.agent.store import Store, StoredRun
    from telex.agent.tools.tool_registry import ToolRegistry
    from telex.agent.ui_connection import UiConnection

PROVIDER = "builtin"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The input and settings of a new run. `input`, `meta` and `ui_context` are JSON as
    received."""

    text: str
    input: bytes
    session_id: str | None = None
    compact: bool = False
    meta: bytes | None = None
    ui_context: bytes | None = None
    """Replaces the context of the connection when the run begins."""


class AgentRuntime:
    """All runs of one store and one workspace. `close` suspends or ends them."""

    def __init__(
        self,
        store: Store,
        context: AgentContext,
        permissions: WorkspacePermissions,
        tools: ToolRegistry,
        cores: Mapping[str, Core],
        *,
        diagnostics: bool = False,
    ) -> None:
        """The first core is used until `select_model` chooses another."""
        self.store = store
        self.context = context
        self.tools = tools
        self.cores = dict(cores)
        self.model = next(iter(self.cores))
        self.diagnostics = diagnostics
        self.questions = Questions(store)
        self.confirmer = Confirmer(permissions, store)
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

    async def start(self, asked: RunRequest, connection: UiConnection) -> runs.RunStartResult:
        """Store a new run and begin it. Its first step comes after the response is sent, because
        its task runs in a later step of the event loop. Raises `TooManyRuns` and store errors."""
        if self.full:
            raise TooManyRuns(f"{AGENT_RUNS} runs are active; wait for one to end, or cancel one")
        core = self.cores[self.model]
        self._starting += 1
        try:
            run, todos = await self._store_run(asked, connection)
        finally:
            self._starting -= 1
        self.subscriptions.subscribe(run, connection)
        if asked.ui_context is not None:
            connection.ui_context = asked.ui_context
        run_input = RunInput(asked.text, asked.compact)
        self._begin(run, core, run_input, todos, connection.ui_context)
        return runs.RunStartResult(run.run_id, run.session_id)

    async def _store_run(
        self, asked: RunRequest, connection: UiConnection
    ) -> tuple[AgentRun, TodoList]:
        run_id = new_run_id()
        session_id = new_session_id() if asked.session_id is None else asked.session_id
        ui_context = connection.ui_context if asked.ui_context is None else asked.ui_context
        new = NewRun(
            run_id,
            session_id,
            asked.input,
            asked.text,
            run_replay.with_run_settings(
                asked.meta, run_replay.RunSettings(self.model, asked.compact)
            ),
            asked.session_id is None,
            bool(connection.capabilities.supports_run_attach),
            self.context.workspace(ui_context),
        )
        todos = TodoList() if new.new_thread else await self.todos.load(session_id)
        try:
            await run_shielded(self.store.start_run(new))
        except asyncio.CancelledError:
            await run_shielded(self._never_began(run_id))
            raise
        return self._new_run(run_id, session_id, new.meta), todos

    async def _never_began(self, run_id: str) -> None:
        """End a run that no UI knows of, so that its session is free again."""
        with contextlib.suppress(StoreError):  # the end is stored later, or the run never was
            await self.store.end_run(run_id, Status.CANCELLED, "its UI left before the run began")

    def _new_run(
        self, run_id: str, session_id: str, meta: bytes | None, replay: Replay | None = None
    ) -> AgentRun:
        costs = RunCosts() if self.diagnostics else None
        return AgentRun(run_id, session_id, self.store, self.questions, costs, replay, meta)

    async def resume(
        self, stored: StoredRun, connection: UiConnection
    ) -> Callable[[], None] | None:
        """Restore a run that awaited an answer when its runtime ended, to be replayed.

        Return the function that begins it: the caller subscribes the connection first. Return None
        where the run cannot continue here: this connection cannot answer its questions, its core is
        missing, another runtime has the run, or too many runs are active.
        """
        async with self._resume_lock:
            return await self._resume(stored, connection)

    async def _resume(
        self, stored: StoredRun, connection: UiConnection
    ) -> Callable[[], None] | None:
        store, settings = self.store, run_replay.run_settings(stored.meta)
        questions = await store.pending(stored.run_id)
        core = self.cores.get(settings.model)
        able = all(connection.can_be_asked(question.method) for question in questions)
        if core is None or not able or stored.run_id in self.runs or self.full:
            return None
        try:
            await store.adopt(stored.run_id)
        except StoreRefused:
            return None  # another runtime has it, or it has ended
        stored_events = [event async for event in store.events(stored.run_id)]
        todos = await self.todos.load(stored.session_id)
        text = msgspec.json.decode(stored.input, type=runs.TextInput).text
        replay = Replay(stored_events, questions, await store.closed(stored.run_id))
        run = self._new_run(stored.run_id, stored.session_id, stored.meta, replay)
        if stored.may_return:
            run.departures.add(unknown_ui(question.method for question in questions))
        run.feeds.update(self.subscriptions.take_watchers(run.run_id))
        for feed in run.feeds:
            feed.begin_after(replay.last_seq)
        self.runs[run.run_id] = run
        asked, ui_context = RunInput(text, settings.compact), connection.ui_context
        return lambda: self._begin(run, core, asked, todos, ui_context)

    def _begin(
        self, run: AgentRun, core: Core, asked: RunInput, todos: TodoList, ui_context: bytes | None
    ) -> None:
        self.runs[run.run_id] = run
        context = self.context.tool_context(todos)
        run_context = RunContext(
            run, self.tools, self.confirmer, context, ui_context, self.todos.save
        )
        run.begin(core, asked, run_context, self._forget)

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
        stored_events = [event async for event in self.store.events(stored.run_id)]
        for text in Replay(stored_events).unread_steering(
            run_replay.run_settings(stored.meta).steered
        ):
            event = msgspec.json.encode(events.HiddenUserMessageEvent(text))
            await self.store.append(stored.run_id, event)

    def select_model(self, name: str, provider: str | None) -> None:
        """Choose the core for runs that begin from now on. Raises `NoSuchModel`."""
        if provider not in (None, PROVIDER):
            raise NoSuchModel(f"unknown provider {provider!r}; the only provider is {PROVIDER!r}")
        if name not in self.cores:
            known = ", ".join(self.cores)
            raise NoSuchModel(f"unknown model {name!r}; known models: {known}")
        self.model = name

    async def close(self) -> None:
        """Suspend or end every run, and close the store. A question to a UI that may reconnect
        stays open. Idempotent."""
        self.questions.suspending = True
        await asyncio.gather(*(run.suspend() for run in self.runs.values()))
        await self.store.close()
