"""The runtime: the runs that go on, and everything that outlives a connection.

Knows connections only as those who listen and can be asked. What each method of the protocol means
is here and in the files it names; how a refusal is spelled on the wire is `server`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.agent import run_meta
from telex.agent.confirming import Confirming
from telex.agent.cores import Input
from telex.agent.listening import Listening
from telex.agent.questions import Questions
from telex.agent.recalling import Recall
from telex.agent.runs import Run
from telex.agent.spending import Spending
from telex.agent.store import (
    NewRun,
    RunEnded,
    RunNotOurs,
    Status,
    StoreProblem,
    new_run_id,
    new_session_id,
)
from telex.agent.todo_lists import TodoLists
from telex.agent.tools.todo import Todos
from telex.agent.turns import Turn
from telex.agent.uninterrupted import to_the_end
from telex.protocols.agent_ui import events, running
from telex.wire.limits import AGENT_RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.connection import Connection
    from telex.agent.cores import Core
    from telex.agent.permissions import Permissions
    from telex.agent.store import Run as StoredRun
    from telex.agent.store import Store
    from telex.agent.surroundings import Surroundings
    from telex.agent.tools.registry import Tools

PROVIDER = "builtin"


class TooManyRuns(Exception):
    """As many as may be go on already."""


class NoSuchModel(Exception):
    """There is no core of that name, or no such provider."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is started with, read and kept as it came."""

    text: str
    input: bytes
    session_id: str | None = None
    compact: bool = False
    meta: bytes | None = None
    ui_context: bytes | None = None
    """Replaces what the connection told before, once the run begins."""


class Runtime:
    """Close it."""

    def __init__(
        self,
        store: Store,
        surroundings: Surroundings,
        permissions: Permissions,
        tools: Tools,
        cores: Mapping[str, Core],
        *,
        diagnostics: bool = False,
    ) -> None:
        """The first of the cores is the one that is used until another is chosen."""
        self.store = store
        self.surroundings = surroundings
        self.tools = tools
        self.cores = dict(cores)
        self.model = next(iter(self.cores))
        self.diagnostics = diagnostics
        self.questions = Questions(store)
        self.confirming = Confirming(permissions, store)
        self.runs: dict[str, Run] = {}
        self.listening = Listening(self.runs, self.questions, store)
        self.todos = TodoLists(store)
        self.taking_up = asyncio.Lock()
        """Held while a run that waits is looked at to go on, or to be cancelled."""
        self._starting = 0

    @property
    def full(self) -> bool:
        """Whether as many runs go on, or are about to, as may be."""
        return len(self.runs) + self._starting >= AGENT_RUNS

    async def start(self, asked: Asked, connection: Connection) -> running.RunStartResult:
        """The run begins when the loop comes back to it: after the answer is sent."""
        if self.full:
            raise TooManyRuns(f"{AGENT_RUNS} runs go on; wait for one, or cancel one")
        core = self.cores[self.model]
        self._starting += 1
        try:
            run, todos = await self._kept(asked, connection)
        finally:
            self._starting -= 1
        self.listening.to(run, connection)
        if asked.ui_context is not None:
            connection.ui_context = asked.ui_context
        said = Input(asked.text, asked.compact)
        self.begin(run, core, said, todos, connection.ui_context)
        return running.RunStartResult(run.run_id, run.session_id)

    async def _kept(self, asked: Asked, connection: Connection) -> tuple[Run, Todos]:
        run_id = new_run_id()
        session_id = new_session_id() if asked.session_id is None else asked.session_id
        ui_context = connection.ui_context if asked.ui_context is None else asked.ui_context
        new = NewRun(
            run_id,
            session_id,
            asked.input,
            asked.text,
            run_meta.with_own(asked.meta, run_meta.Own(self.model, asked.compact)),
            asked.session_id is None,
            bool(connection.can.supports_run_attach),
            self.surroundings.workspace(ui_context),
        )
        todos = Todos() if new.new_thread else await self.todos.of(session_id)
        try:
            await to_the_end(self.store.start_run(new))
        except asyncio.CancelledError:
            await to_the_end(self._never_began(run_id))
            raise
        return self.made(run_id, session_id, new.meta), todos

    async def _never_began(self, run_id: str) -> None:
        """Nobody was told of it, and nobody waits for it: its session is free again."""
        with contextlib.suppress(StoreProblem):  # it is owed, or was never stored
            await self.store.end_run(run_id, Status.CANCELLED, "its UI left before it began")

    def made(
        self, run_id: str, session_id: str, meta: bytes | None, recall: Recall | None = None
    ) -> Run:
        spent = Spending() if self.diagnostics else None
        return Run(run_id, session_id, self.store, self.questions, spent, recall, meta)

    def begin(
        self, run: Run, core: Core, asked: Input, todos: Todos, ui_context: bytes | None
    ) -> None:
        self.runs[run.run_id] = run
        context = self.surroundings.for_tools(todos)
        turn = Turn(run, self.tools, self.confirming, context, ui_context, self.todos.keep)
        run.begin(core, asked, turn, self._over)

    def _over(self, run: Run) -> None:
        self.runs.pop(run.run_id, None)

    async def steer(self, run: Run, text: str) -> bool:
        """Whether it is said to the run; then it is stored. Raises `NotKept`."""
        return await to_the_end(self._steer(run, text))

    async def _steer(self, run: Run, text: str) -> bool:
        async with run.steering:  # each adds to what the one before it stored
            if not run.can_be_steered():
                return False
            meta = run_meta.with_said(run.meta, text)
            try:
                await self.store.set_run_meta(run.run_id, meta)
            except RunEnded:
                return False
            run.meta = meta
            if not run.can_be_steered():
                return run.suspended  # it goes on later, and hears it then
            run.steered.append(text)
            return True

    async def cancel(
        self, run_id: str, reason: str | None, connection: Connection
    ) -> running.RunCancelResult:
        """Raises `UnknownRun`, and `EndOwed`: an `ok` says that the run cannot come back."""
        if run_id not in self.runs:
            async with self.taking_up:
                if run_id not in self.runs:
                    return await self._cancel_stored(run_id, reason)
        run = self.runs[run_id]
        ok = await run.cancel(reason)
        if (feed := connection.feeds.get(run_id)) is not None:
            await feed.sent()
        await self.store.settle(run_id)
        return running.RunCancelResult(ok, run.status)

    async def _cancel_stored(self, run_id: str, reason: str | None) -> running.RunCancelResult:
        """One that has ended; or one that waits for an answer, and whose runtime has ended."""
        stored = await self.store.run(run_id)
        if stored.status.ended:
            owed = self.store.owes(run_id)
            await self.store.settle(run_id)
            ok = owed and stored.status is Status.CANCELLED
            return running.RunCancelResult(ok, stored.status.value)
        try:
            await self.store.adopt(run_id)
            await self._tell_untaken(stored)
            await self.store.end_run(run_id, Status.CANCELLED, reason)
        except RunEnded as ended:
            return running.RunCancelResult(False, Status(ended.status).value)
        except RunNotOurs:
            return running.RunCancelResult(False, stored.status.value)
        self.listening.over(running.RunStatusNotify(run_id, "cancelled", reason))
        return running.RunCancelResult(True, "cancelled")

    async def _tell_untaken(self, stored: StoredRun) -> None:
        """What was said to a run that will not hear it stands in its history all the same."""
        told = [event async for event in self.store.events(stored.run_id)]
        for text in Recall(told).untaken(run_meta.own(stored.meta).steered):
            said = msgspec.json.encode(events.HiddenUserMessage(text))
            await self.store.append(stored.run_id, said)

    def choose(self, name: str, provider: str | None) -> None:
        """For the runs that begin from now on."""
        if provider not in (None, PROVIDER):
            raise NoSuchModel(f"no provider {provider!r} is configured; there is {PROVIDER!r}")
        if name not in self.cores:
            known = ", ".join(self.cores)
            raise NoSuchModel(f"there is no model {name!r}; there are {known}")
        self.model = name

    async def close(self) -> None:
        """Every run ends; what waits for somebody who may come back goes on waiting. Idempotent."""
        self.questions.suspending = True
        await asyncio.gather(*(run.suspend() for run in self.runs.values()))
        await self.store.close()
