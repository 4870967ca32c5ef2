"""The runtime: the runs that go on, and everything that outlives a connection.

Connections are subscribers that may be asked. The handlers of the protocol's methods call it
(`methods`); `errors` has the wire codes of what it raises.
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
    new_run_id,
    new_session_id,
)
from telex.agent.tools.todo import TodoList, TodoStore
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.agent_context import AgentContext
    from telex.agent.cores import Core
    from telex.agent.permissions.workspace_permissions import WorkspacePermissions
    from telex.agent.store import Store, StoredRun
    from telex.agent.tools.tool_registry import ToolRegistry
    from telex.agent.ui_connection import UiConnection

PROVIDER = "builtin"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is started with, read and kept as it came."""

    text: str
    input: bytes
    session_id: str | None = None
    compact: bool = False
    meta: bytes | None = None
    ui_context: bytes | None = None
    """Replaces the connection's, once the run begins."""


class AgentRuntime:
    """All runs of one store and one workspace. Close it."""

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
        """The first of the cores is the one that is used until another is chosen."""
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
        self.resume_lock = asyncio.Lock()
        """Held while a run that waits is looked at to go on, or to be cancelled."""
        self._starting = 0

    @property
    def full(self) -> bool:
        """Whether as many runs go on, or are about to, as may be."""
        return len(self.runs) + self._starting >= AGENT_RUNS

    async def start(self, asked: RunRequest, connection: UiConnection) -> runs.RunStartResult:
        """The run begins when the loop comes back to it: after the answer is sent."""
        if self.full:
            raise TooManyRuns(f"{AGENT_RUNS} runs go on; wait for one, or cancel one")
        core = self.cores[self.model]
        self._starting += 1
        try:
            run, todos = await self._store_run(asked, connection)
        finally:
            self._starting -= 1
        self.subscriptions.subscribe(run, connection)
        if asked.ui_context is not None:
            connection.ui_context = asked.ui_context
        said = RunInput(asked.text, asked.compact)
        self.begin(run, core, said, todos, connection.ui_context)
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
        return self.new_run(run_id, session_id, new.meta), todos

    async def _never_began(self, run_id: str) -> None:
        """No UI knows of it: its session is free again."""
        with contextlib.suppress(StoreError):  # it is written later, or was never stored
            await self.store.end_run(run_id, Status.CANCELLED, "its UI left before it began")

    def new_run(
        self, run_id: str, session_id: str, meta: bytes | None, replay: Replay | None = None
    ) -> AgentRun:
        costs = RunCosts() if self.diagnostics else None
        return AgentRun(run_id, session_id, self.store, self.questions, costs, replay, meta)

    def begin(
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

    async def steer(self, run: AgentRun, text: str) -> bool:
        """Store a text for the run to read. False once it has ended. Raises `NotKept`."""
        return await run_shielded(self._steer(run, text))

    async def _steer(self, run: AgentRun, text: str) -> bool:
        async with run.steering:  # each adds to what the one before it stored
            if not run.can_be_steered():
                return False
            meta = run_replay.with_steering(run.meta, text)
            try:
                await self.store.set_run_meta(run.run_id, meta)
            except RunEnded:
                return False
            run.meta = meta
            if not run.can_be_steered():
                return run.suspended  # it goes on later, and reads it then
            run.steered.append(text)
            return True

    async def cancel(
        self, run_id: str, reason: str | None, connection: UiConnection
    ) -> runs.RunCancelResult:
        """Raises `UnknownRun`, and `EndNotSaved`: an `ok` says that the run cannot come back."""
        if run_id not in self.runs:
            async with self.resume_lock:
                if run_id not in self.runs:
                    return await self._cancel_stored(run_id, reason)
        run = self.runs[run_id]
        ok = await run.cancel(reason)
        if (feed := connection.feeds.get(run_id)) is not None:
            await feed.wait_sent()
        await self.store.flush_end(run_id)
        return runs.RunCancelResult(ok, run.status)

    async def _cancel_stored(self, run_id: str, reason: str | None) -> runs.RunCancelResult:
        """One that has ended; or one that waits for an answer, and whose runtime has ended."""
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
        """What was said to a run that will not read it belongs to its history all the same."""
        stored_events = [event async for event in self.store.events(stored.run_id)]
        for text in Replay(stored_events).unread_steering(
            run_replay.run_settings(stored.meta).steered
        ):
            said = msgspec.json.encode(events.HiddenUserMessageEvent(text))
            await self.store.append(stored.run_id, said)

    def select_model(self, name: str, provider: str | None) -> None:
        """For the runs that begin from now on."""
        if provider not in (None, PROVIDER):
            raise NoSuchModel(f"no provider {provider!r} is configured; there is {PROVIDER!r}")
        if name not in self.cores:
            known = ", ".join(self.cores)
            raise NoSuchModel(f"there is no model {name!r}; there are {known}")
        self.model = name

    async def close(self) -> None:
        """End every run; a question to a UI that may come back stays open. Idempotent."""
        self.questions.suspending = True
        await asyncio.gather(*(run.suspend() for run in self.runs.values()))
        await self.store.close()
