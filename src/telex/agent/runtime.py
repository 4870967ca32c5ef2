"""The runtime: the runs that go on, and everything that outlives a connection.

Knows connections only as those who listen and can be asked. What each method of the protocol means
is here and in the files it names; how a refusal is spelled on the wire is `server`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.agent.confirming import Confirming
from telex.agent.cores import Input
from telex.agent.feeds import Feed, Notice
from telex.agent.questions import Questions
from telex.agent.recalling import Recall
from telex.agent.runs import Run
from telex.agent.spending import Spending
from telex.agent.store import NewRun, NotKept, Refused, RunEnded, RunNotOurs, Status, StoreProblem
from telex.agent.tools.todo import Entry, Todos
from telex.agent.turns import Turn
from telex.agent.uninterrupted import to_the_end
from telex.protocols.agent_ui import extensions, running
from telex.wire.limits import AGENT_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


class NotThatFar(Exception):
    """The UI has an event that the run does not have: it means another run, or another store."""


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
        self._watching: set[Feed] = set()
        """Feeds of runs that wait since before a restart, from UIs that cannot answer them."""
        self._starting = 0
        self._resuming = asyncio.Lock()

    async def start(self, asked: Asked, connection: Connection) -> running.RunStartResult:
        """The run begins when the loop comes back to it: after the answer is sent."""
        if len(self.runs) + self._starting >= AGENT_RUNS:
            raise TooManyRuns(f"{AGENT_RUNS} runs go on; wait for one, or cancel one")
        core = self.cores[self.model]
        self._starting += 1
        try:
            run, todos = await self._kept(asked, _may_return(connection))
        finally:
            self._starting -= 1
        self.listen(run, connection)
        if asked.ui_context is not None:
            connection.ui_context = asked.ui_context
        said = Input(asked.text, asked.compact)
        self._begin(run, core, said, todos, connection.ui_context)
        return running.RunStartResult(run.run_id, run.session_id)

    async def _kept(self, asked: Asked, may_return: bool) -> tuple[Run, Todos]:
        run_id = f"run_{uuid.uuid4().hex}"
        session_id = asked.session_id
        if session_id is None:
            session_id = f"session_{uuid.uuid4().hex}"
        new = NewRun(
            run_id,
            session_id,
            asked.input,
            asked.text,
            _with_own(asked.meta, _Own(self.model, asked.compact)),
            asked.session_id is None,
            may_return,
        )
        todos = Todos() if new.new_thread else await self._todos(session_id)
        try:
            await to_the_end(self.store.start_run(new))
        except asyncio.CancelledError:
            await to_the_end(self._never_began(run_id))
            raise
        return self._run(run_id, session_id, new.meta), todos

    async def _never_began(self, run_id: str) -> None:
        """Nobody was told of it, and nobody waits for it: its session is free again."""
        with contextlib.suppress(StoreProblem):  # it is owed, or was never stored
            await self.store.end_run(run_id, Status.CANCELLED, "its UI left before it began")

    def _run(
        self, run_id: str, session_id: str, meta: bytes | None, recall: Recall | None = None
    ) -> Run:
        spent = Spending() if self.diagnostics else None
        return Run(run_id, session_id, self.store, self.questions, spent, recall, meta)

    def _begin(
        self, run: Run, core: Core, asked: Input, todos: Todos, ui_context: bytes | None
    ) -> None:
        self.runs[run.run_id] = run
        context = self.surroundings.for_tools(todos)
        turn = Turn(run, self.tools, self.confirming, context, ui_context, self._keep_todos)
        run.begin(core, asked, turn, self._over)

    def _over(self, run: Run) -> None:
        self.runs.pop(run.run_id, None)

    async def _todos(self, session_id: str) -> Todos:
        meta = (await self.store.thread(session_id)).meta
        if meta is None:
            return Todos()
        try:
            return Todos(tuple(msgspec.json.decode(meta, type=_ThreadMeta).todos))
        except msgspec.ValidationError:  # of an import; a session is more than its list
            return Todos()

    async def _keep_todos(self, session_id: str, todos: Todos) -> None:
        """With the thread, beside whatever else is kept with it."""
        meta = (await self.store.thread(session_id)).meta
        members = msgspec.json.decode(meta or b"{}", type=dict[str, msgspec.Raw])
        kept = {**members, "todos": todos.entries}
        await self.store.set_thread_meta(session_id, msgspec.json.encode(kept))

    def listen(self, run: Run, connection: Connection, after: int | None = None) -> Feed:
        """From now on this connection hears of the run; with `after`, of what was before too."""
        known = run.run_id in connection.feeds
        feed = self._feed(run.run_id, connection, after)
        run.feeds.add(feed)
        if not known:  # one that attaches anew was here
            (run.away.left if connection.gone else run.away.came)(connection.can)
        return feed

    def _feed(self, run_id: str, connection: Connection, after: int | None) -> Feed:
        """In place of the one that the connection had."""
        if (earlier := connection.feeds.pop(run_id, None)) is not None:
            self._sent(run_id, connection, earlier)
            earlier.close()
        feed = connection.feeds[run_id] = Feed(run_id, connection, self.store, after=after)
        feed.task.add_done_callback(lambda _: self._sent(run_id, connection, feed))
        return feed

    def _sent(self, run_id: str, connection: Connection, feed: Feed) -> None:
        if (run := self.runs.get(run_id)) is not None:
            run.feeds.discard(feed)
        self._watching.discard(feed)
        if connection.feeds.get(run_id) is feed:
            del connection.feeds[run_id]

    async def steer(self, run: Run, text: str) -> bool:
        """Whether it is said to the run; then it is stored. Raises `NotKept`."""
        if not run.can_be_steered():
            return False
        before = run.meta
        run.meta = meta = _with_said(
            before, text
        )  # before it is stored: what is said at the same time is added to it
        try:
            await self.store.set_run_meta(run.run_id, meta)
        except NotKept:
            run.meta = before
            raise
        except RunEnded:
            return False
        if not run.can_be_steered():
            return False
        run.steered.append(text)
        return True

    async def cancel(
        self, run_id: str, reason: str | None, connection: Connection
    ) -> running.RunCancelResult:
        """Raises `UnknownRun`, and `EndOwed`: an `ok` says that the run cannot come back."""
        if (run := self.runs.get(run_id)) is not None:
            ok = await run.cancel(reason)
            if (feed := connection.feeds.get(run_id)) is not None:
                await feed.sent()
            await self.store.settle(run_id)
            return running.RunCancelResult(ok, run.status)
        return await self._cancel_stored(run_id, reason)

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
            await self.store.end_run(run_id, Status.CANCELLED, reason)
        except RunEnded as ended:
            return running.RunCancelResult(False, Status(ended.status).value)
        except RunNotOurs:
            return running.RunCancelResult(False, stored.status.value)
        for feed in self._watchers(run_id):
            told = running.RunStatusNotify(run_id, "cancelled", reason)
            feed.notice(Notice("run.status", told))
            feed.finish()
        return running.RunCancelResult(True, "cancelled")

    async def attach(
        self, params: extensions.RunAttachParams, connection: Connection
    ) -> extensions.RunAttachResult:
        """Its feed begins after the answer is sent, like a run."""
        after = -1 if params.after_seq is None else params.after_seq
        stored = await self._found(params.run_id, after, connection)
        begin = None
        if stored.status is Status.AWAITING_UI and params.run_id not in self.runs:
            async with self._resuming:
                begin = await self._resumed(stored, connection)
        if (run := self.runs.get(params.run_id)) is not None:
            feed = self.listen(run, connection, after)
            feed.begin_after(run.telling.last_seq)
            run.tell_status_to(feed)
            for one in self.questions.of_run(run.run_id):
                run.offer(one, feed)
            if begin is not None:
                begin()
            return extensions.RunAttachResult(run.run_id, run.session_id, run.status)
        if not stored.status.ended:
            stored = await self.store.run(params.run_id)  # it may have ended just now
        feed = self._feed(stored.run_id, connection, after)
        status: running.RunStatus = stored.status.value
        told = running.RunStatusNotify(stored.run_id, status, stored.message)
        feed.notice(Notice("run.status", told))
        if stored.status.ended or connection.gone:
            feed.finish()
        else:
            self._watching.add(feed)
        return extensions.RunAttachResult(stored.run_id, stored.session_id, status)

    async def _found(self, run_id: str, after: int, connection: Connection) -> StoredRun:
        """Raises `UnknownRun`, `NotThatFar`, and `RunNotOurs` where another runtime tells of it."""
        stored = await self.store.run(run_id)
        if not stored.status.ended and stored.run_id not in self.runs:
            await self.store.look_after(stored.run_id)
            stored = await self.store.run(stored.run_id)
        if after > (last := await self.store.last_seq(stored.run_id)):
            raise NotThatFar(f"the last event of run {stored.run_id} is {last}")
        if not stored.status.ended and not stored.may_return and _may_return(connection):
            await self.store.may_return(stored.run_id)
        return stored

    def _watchers(self, run_id: str) -> set[Feed]:
        """Who watches a run that goes on, or ends, now; they are let go."""
        found = {feed for feed in self._watching if feed.run_id == run_id}
        self._watching -= found
        return found

    async def _resumed(
        self, stored: StoredRun, connection: Connection
    ) -> Callable[[], None] | None:
        """A run that waited when its runtime ended, if this connection can be asked; it is there,
        and begins again when the caller says so."""
        questions = await self.store.pending(stored.run_id)
        own = _own(stored.meta)
        core = self.cores.get(own.model)
        able = all(connection.can_be_asked(one.method) for one in questions)
        if core is None or not able or stored.run_id in self.runs or len(self.runs) >= AGENT_RUNS:
            return None
        try:
            await self.store.adopt(stored.run_id)
        except Refused:
            return None  # another runtime has it, or it has ended
        told = [event async for event in self.store.events(stored.run_id)]
        todos = await self._todos(stored.session_id)
        text = msgspec.json.decode(stored.input, type=running.TextInput).text
        recall = Recall(told, questions, await self.store.closed(stored.run_id))
        run = self._run(stored.run_id, stored.session_id, stored.meta, recall)
        run.steered.extend(recall.untaken(own.steered))
        run.feeds.update(self._watchers(run.run_id))
        for feed in run.feeds:
            feed.begin_after(recall.last_seq)
        self.runs[run.run_id] = run
        said, ui_context = Input(text, own.compact), connection.ui_context
        return lambda: self._begin(run, core, said, todos, ui_context)

    def left(self, connection: Connection) -> None:
        """It hears no more."""
        self.deafened(connection)
        for run_id, feed in connection.feeds.items():
            if (run := self.runs.get(run_id)) is not None:
                run.feeds.discard(feed)
        connection.close()

    def deafened(self, connection: Connection) -> None:
        """It answers no more. What it was asked waits for it, if it may come back."""
        if connection.gone:
            return
        connection.gone = True
        for run_id, feed in connection.feeds.items():
            if (run := self.runs.get(run_id)) is not None:
                run.away.left(connection.can)
            else:
                feed.finish()
        self.questions.left(connection)

    def choose(self, name: str, provider: str | None) -> None:
        """For the runs that begin from now on."""
        self.check_provider(provider)
        if name not in self.cores:
            known = ", ".join(self.cores)
            raise NoSuchModel(f"there is no model {name!r}; there are {known}")
        self.model = name

    def check_provider(self, provider: str | None) -> None:
        if provider not in (None, PROVIDER):
            raise NoSuchModel(f"no provider {provider!r} is configured; there is {PROVIDER!r}")

    async def close(self) -> None:
        """Every run ends; what waits for somebody who may come back goes on waiting. Idempotent."""
        self.questions.suspending = True
        for run in list(self.runs.values()):
            await run.suspend()
        await self.store.close()


def _may_return(connection: Connection) -> bool:
    return bool(connection.can.supports_run_attach)


class _ThreadMeta(msgspec.Struct):
    todos: list[Entry] = []


class _Own(msgspec.Struct, omit_defaults=True):
    """What a run needs beside its input to go on after a restart."""

    model: str = ""
    compact: bool = False
    steered: list[str] = []
    """All that was said to it meanwhile."""


class _RunMeta(msgspec.Struct, omit_defaults=True):
    """What the UI gave stays as it was, beside ours."""

    telex: _Own = msgspec.field(default_factory=_Own)
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _own(meta: bytes | None) -> _Own:
    return msgspec.json.decode(meta or b"{}", type=_RunMeta).telex


def _with_said(kept: bytes | None, text: str) -> bytes:
    meta = msgspec.json.decode(kept or b"{}", type=_RunMeta)
    meta.telex.steered = [*meta.telex.steered, text]
    return msgspec.json.encode(meta)


def _with_own(meta: bytes | None, own: _Own) -> bytes:
    given = msgspec.UNSET if meta is None else msgspec.Raw(meta)
    return msgspec.json.encode(_RunMeta(own, given))
