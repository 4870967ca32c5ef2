"""Handlers of `initialize`, `run.*` and `ui.context.update`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, UnsetType

from telex.agent import protocol, run_replay
from telex.agent.cores import RunInput
from telex.agent.errors import SeqBeyondEnd
from telex.agent.feeds import Notice
from telex.agent.protocol import extensions, runs
from telex.agent.run_replay import Replay
from telex.agent.runtime import RunRequest
from telex.agent.store import Status, StoreError, StoreRefused
from telex.agent.ui_connection import unknown_ui
from telex.rpc.errors import Condition, RpcError
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.agent_run import AgentRun
    from telex.agent.runtime import AgentRuntime
    from telex.agent.store import StoredRun
    from telex.agent.ui_connection import UiConnection


SERVER: Final = runs.PeerInfo("telex-agent", __version__)


def initialize(
    runtime: AgentRuntime, params: runs.InitializeParams, connection: UiConnection
) -> runs.InitializeResult:
    """The answer has our version whatever theirs is: they may go on with it or leave."""
    connection.capabilities = params.ui_capabilities or runs.UiCapabilities()
    connection.name = f"{params.client.name} {params.client.version}"
    connection.initialized = True
    can = runs.ServerCapabilities(supports_run_diagnostics=runtime.diagnostics)
    return runs.InitializeResult(protocol.VERSION, SERVER, can)


async def run_start(
    runtime: AgentRuntime, params: runs.RunStartParams, connection: UiConnection
) -> runs.RunStartResult:
    """In the session that is named, else in the connection's current one, else in a new one.

    One at a time on a connection: a second `run.start` in the same read finds the session of the
    first, and is refused as busy there.
    """
    if params.session_id is not None and params.new_session:
        raise RpcError(Condition.PARAMS, "`session_id` and `new_session` exclude each other.")
    said = msgspec.json.decode(params.input, type=runs.TextInput)
    meta = _raw_or_none(params.meta)
    if meta is not None:
        msgspec.json.decode(meta, type=dict[str, Raw])
    ui_context = _context(params.ui_context)
    async with connection.starting:
        current = None if params.new_session else connection.session_id
        asked = RunRequest(
            said.text,
            _one_line(bytes(params.input)),
            current if params.session_id is None else params.session_id,
            bool(params.force_compaction),
            meta,
            ui_context,
        )
        started = await _started(runtime, asked, connection)
        connection.session_id = started.session_id
    return started


async def _started(
    runtime: AgentRuntime, asked: RunRequest, connection: UiConnection
) -> runs.RunStartResult:
    try:
        return await runtime.start(asked, connection)
    except StoreRefused:
        raise
    except StoreError as problem:
        code = protocol.INTERNAL if asked.session_id is None else protocol.SESSION_LOAD_FAILED
        raise RpcError(code, str(problem)) from problem


async def run_cancel(
    runtime: AgentRuntime, params: runs.RunCancelParams, connection: UiConnection
) -> runs.RunCancelResult:
    return await runtime.cancel(params.run_id, params.reason, connection)


def ui_context_update(runtime: AgentRuntime, params: Raw, connection: UiConnection) -> None:
    """Replaces the whole snapshot."""
    connection.ui_context = _context(params)


async def run_steer(
    runtime: AgentRuntime, params: extensions.RunSteerParams, connection: UiConnection
) -> extensions.RunSteerResult:
    """The core reads it when it next looks; `ok` is false once the run is over."""
    if (run := runtime.runs.get(params.run_id)) is not None:
        return extensions.RunSteerResult(await runtime.steer(run, params.text), run.status)
    stored = await runtime.store.run(params.run_id)
    return extensions.RunSteerResult(False, stored.status.value)


async def run_diff(
    runtime: AgentRuntime, params: extensions.RunDiffParams, connection: UiConnection
) -> extensions.RunDiffResult:
    """From what is stored beside each `tool_result`, so also of a run from long ago."""
    found: list[extensions.FileDiff] = []
    async for event in runtime.store.events(params.run_id):
        if event.meta is not None:
            details = msgspec.json.decode(event.meta, type=_Meta).details
            if details.diff and details.path:
                found.append(extensions.FileDiff(details.path, details.diff, details.truncated))
    return extensions.RunDiffResult(params.run_id, found)


class _Details(msgspec.Struct):
    path: str = ""
    diff: str = ""
    truncated: bool = False


class _Meta(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


def _context(raw: Raw | UnsetType) -> bytes | None:
    """As it came, once it is known to be one."""
    kept = _raw_or_none(raw)
    if kept is not None:
        msgspec.json.decode(kept, type=runs.UiContext)
    return kept


def _raw_or_none(raw: Raw | UnsetType) -> bytes | None:
    given = b"null" if isinstance(raw, UnsetType) else bytes(raw)
    return None if given == b"null" else _one_line(given)


def _one_line(raw: bytes) -> bytes:
    """A body that came by HTTP may have line breaks between members; what is stored has none."""
    return msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw


async def run_attach(
    runtime: AgentRuntime, params: extensions.RunAttachParams, connection: UiConnection
) -> extensions.RunAttachResult:
    """Subscribe to a run that goes on, resume one that waits, or replay one that ended. The feed
    begins after the answer is sent, like a run."""
    after = -1 if params.after_seq is None else params.after_seq
    stored = await _find_run(runtime, params.run_id, after, connection)
    begin = None
    if stored.status is Status.AWAITING_UI and params.run_id not in runtime.runs:
        async with runtime.resume_lock:
            begin = await _resume(runtime, stored, connection)
    if (run := runtime.runs.get(params.run_id)) is not None:
        _subscribe(runtime, run, connection, after)
        if begin is not None:
            begin()
        return extensions.RunAttachResult(run.run_id, run.session_id, run.status)
    if not stored.status.ended:
        stored = await runtime.store.run(params.run_id)  # it may have ended just now
    _watch(runtime, stored, connection, after)
    return extensions.RunAttachResult(stored.run_id, stored.session_id, stored.status.value)


async def _find_run(
    runtime: AgentRuntime, run_id: str, after: int, connection: UiConnection
) -> StoredRun:
    """Raises `UnknownRun`, `SeqBeyondEnd`, and `RunNotOurs` where another runtime has it."""
    store = runtime.store
    stored = await store.run(run_id)
    if not stored.status.ended and run_id not in runtime.runs:
        await store.end_if_abandoned(run_id)
        stored = await store.run(run_id)
    if after > (last := await store.last_seq(run_id)):
        raise SeqBeyondEnd(f"the last event of run {run_id} is {last}")
    may_return = bool(connection.capabilities.supports_run_attach)
    if may_return and not (stored.status.ended or stored.may_return):
        await store.may_return(run_id)
    return stored


def _subscribe(runtime: AgentRuntime, run: AgentRun, connection: UiConnection, after: int) -> None:
    feed = runtime.subscriptions.subscribe(run, connection, after)
    feed.begin_after(run.publisher.last_seq)
    if not run.phases.ended:  # else it is sent in a moment, to all
        run.send_status_to(feed)
    for one in runtime.questions.of_run(run.run_id):
        run.offer(one, feed)


def _watch(runtime: AgentRuntime, stored: StoredRun, connection: UiConnection, after: int) -> None:
    feed = runtime.subscriptions.open_feed(stored.run_id, connection, after)
    status: runs.RunStatus = stored.status.value
    notice = runs.RunStatusNotify(stored.run_id, status, stored.message)
    feed.add_notice(Notice("run.status", notice))
    if stored.status.ended or connection.gone:
        feed.finish()
    else:
        runtime.subscriptions.watch(feed)


async def _resume(
    runtime: AgentRuntime, stored: StoredRun, connection: UiConnection
) -> Callable[[], None] | None:
    """Make a run that waited when its runtime ended, if this connection can be asked. It begins
    when the caller calls what this returns."""
    store, settings = runtime.store, run_replay.run_settings(stored.meta)
    questions = await store.pending(stored.run_id)
    core = runtime.cores.get(settings.model)
    able = all(connection.can_be_asked(one.method) for one in questions)
    if core is None or not able or stored.run_id in runtime.runs or runtime.full:
        return None
    try:
        await store.adopt(stored.run_id)
    except StoreRefused:
        return None  # another runtime has it, or it has ended
    stored_events = [event async for event in store.events(stored.run_id)]
    todos = await runtime.todos.load(stored.session_id)
    text = msgspec.json.decode(stored.input, type=runs.TextInput).text
    replay = Replay(stored_events, questions, await store.closed(stored.run_id))
    run = runtime.new_run(stored.run_id, stored.session_id, stored.meta, replay)
    run.steered.extend(replay.unread_steering(settings.steered))
    if stored.may_return:
        run.departures.add(unknown_ui(one.method for one in questions))
    run.feeds.update(runtime.subscriptions.take_watchers(run.run_id))
    for feed in run.feeds:
        feed.begin_after(replay.last_seq)
    runtime.runs[run.run_id] = run
    said, ui_context = RunInput(text, settings.compact), connection.ui_context
    return lambda: runtime.begin(run, core, said, todos, ui_context)
