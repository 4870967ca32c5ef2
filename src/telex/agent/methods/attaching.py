"""`run.attach`: listen to a run that goes on, take up one that waits, or hear how one ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from telex.agent import run_meta
from telex.agent.away import who_answers
from telex.agent.cores import Input
from telex.agent.feeds import Notice
from telex.agent.recalling import Recall
from telex.agent.store import Refused, Status
from telex.protocols.agent_ui import extensions, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.connection import Connection
    from telex.agent.runs import Run
    from telex.agent.runtime import Runtime
    from telex.agent.store import Run as StoredRun


class NotThatFar(Exception):
    """The UI has an event that the run does not have: it means another run, or another store."""


async def run_attach(
    runtime: Runtime, params: extensions.RunAttachParams, connection: Connection
) -> extensions.RunAttachResult:
    """Its feed begins after the answer is sent, like a run."""
    after = -1 if params.after_seq is None else params.after_seq
    stored = await _found(runtime, params.run_id, after, connection)
    begin = None
    if stored.status is Status.AWAITING_UI and params.run_id not in runtime.runs:
        async with runtime.taking_up:
            begin = await _taken_up(runtime, stored, connection)
    if (run := runtime.runs.get(params.run_id)) is not None:
        _listens(runtime, run, connection, after)
        if begin is not None:
            begin()
        return extensions.RunAttachResult(run.run_id, run.session_id, run.status)
    if not stored.status.ended:
        stored = await runtime.store.run(params.run_id)  # it may have ended just now
    _watches(runtime, stored, connection, after)
    return extensions.RunAttachResult(stored.run_id, stored.session_id, stored.status.value)


async def _found(runtime: Runtime, run_id: str, after: int, connection: Connection) -> StoredRun:
    """Raises `UnknownRun`, `NotThatFar`, and `RunNotOurs` where another runtime tells of it."""
    store = runtime.store
    stored = await store.run(run_id)
    if not stored.status.ended and run_id not in runtime.runs:
        await store.look_after(run_id)
        stored = await store.run(run_id)
    if after > (last := await store.last_seq(run_id)):
        raise NotThatFar(f"the last event of run {run_id} is {last}")
    may_return = bool(connection.can.supports_run_attach)
    if may_return and not (stored.status.ended or stored.may_return):
        await store.may_return(run_id)
    return stored


def _listens(runtime: Runtime, run: Run, connection: Connection, after: int) -> None:
    feed = runtime.listening.to(run, connection, after)
    feed.begin_after(run.telling.last_seq)
    if not run.phases.ended:  # else it is told in a moment, to all
        run.tell_status_to(feed)
    for one in runtime.questions.of_run(run.run_id):
        run.offer(one, feed)


def _watches(runtime: Runtime, stored: StoredRun, connection: Connection, after: int) -> None:
    feed = runtime.listening.feed(stored.run_id, connection, after)
    status: running.RunStatus = stored.status.value
    told = running.RunStatusNotify(stored.run_id, status, stored.message)
    feed.notice(Notice("run.status", told))
    if stored.status.ended or connection.gone:
        feed.finish()
    else:
        runtime.listening.watch(feed)


async def _taken_up(
    runtime: Runtime, stored: StoredRun, connection: Connection
) -> Callable[[], None] | None:
    """A run that waited when its runtime ended, if this connection can be asked; it is there, and
    begins again when the caller says so."""
    store, own = runtime.store, run_meta.own(stored.meta)
    questions = await store.pending(stored.run_id)
    core = runtime.cores.get(own.model)
    able = all(connection.can_be_asked(one.method) for one in questions)
    if core is None or not able or stored.run_id in runtime.runs or runtime.full:
        return None
    try:
        await store.adopt(stored.run_id)
    except Refused:
        return None  # another runtime has it, or it has ended
    told = [event async for event in store.events(stored.run_id)]
    todos = await runtime.todos.of(stored.session_id)
    text = msgspec.json.decode(stored.input, type=running.TextInput).text
    recall = Recall(told, questions, await store.closed(stored.run_id))
    run = runtime.made(stored.run_id, stored.session_id, stored.meta, recall)
    run.steered.extend(recall.untaken(own.steered))
    if stored.may_return:
        run.away.left(who_answers(one.method for one in questions))
    run.feeds.update(runtime.listening.watchers(run.run_id))
    for feed in run.feeds:
        feed.begin_after(recall.last_seq)
    runtime.runs[run.run_id] = run
    said, ui_context = Input(text, own.compact), connection.ui_context
    return lambda: runtime.begin(run, core, said, todos, ui_context)
