"""initialize, runs, and the UI's context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, UnsetType

from telex.agent.runtime import Asked
from telex.agent.store import Refused, StoreProblem
from telex.protocols.agent_ui import codes, extensions, running
from telex.rpc.errors import Condition, RpcError
from telex.version import __version__

if TYPE_CHECKING:
    from telex.agent.connection import Connection
    from telex.agent.runtime import Runtime

SERVER: Final = running.Named("telex-agent", __version__)


def initialize(
    runtime: Runtime, params: running.InitializeParams, connection: Connection
) -> running.InitializeResult:
    """Whatever version they speak, ours is told: they may go on with it or leave."""
    connection.can = params.ui_capabilities or running.UiCapabilities()
    connection.name = f"{params.client.name} {params.client.version}"
    connection.initialized = True
    can = running.ServerCapabilities(supports_run_diagnostics=runtime.diagnostics)
    return running.InitializeResult(codes.VERSION, SERVER, can)


async def run_start(
    runtime: Runtime, params: running.RunStartParams, connection: Connection
) -> running.RunStartResult:
    """In the session that is named, else in the connection's current one, else in a new one.

    One at a time on a connection: a second `run.start` in the same read finds the session of the
    first, and is refused as busy there.
    """
    if params.session_id is not None and params.new_session:
        raise RpcError(Condition.PARAMS, "`session_id` and `new_session` exclude each other.")
    said = msgspec.json.decode(params.input, type=running.TextInput)
    meta = _kept(params.meta)
    if meta is not None:
        msgspec.json.decode(meta, type=dict[str, Raw])
    ui_context = _context(params.ui_context)
    async with connection.starting:
        current = None if params.new_session else connection.session_id
        asked = Asked(
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
    runtime: Runtime, asked: Asked, connection: Connection
) -> running.RunStartResult:
    try:
        return await runtime.start(asked, connection)
    except Refused:
        raise
    except StoreProblem as problem:
        code = codes.INTERNAL if asked.session_id is None else codes.SESSION_LOAD_FAILED
        raise RpcError(code, str(problem)) from problem


async def run_cancel(
    runtime: Runtime, params: running.RunCancelParams, connection: Connection
) -> running.RunCancelResult:
    return await runtime.cancel(params.run_id, params.reason, connection)


def ui_context_update(runtime: Runtime, params: Raw, connection: Connection) -> None:
    """The whole snapshot is replaced: what is not said any more does not hold any more."""
    connection.ui_context = _context(params)


async def run_steer(
    runtime: Runtime, params: extensions.RunSteerParams, connection: Connection
) -> extensions.RunSteerResult:
    """The core hears it when it next looks; `ok` is false once the run is over."""
    if (run := runtime.runs.get(params.run_id)) is not None:
        return extensions.RunSteerResult(await runtime.steer(run, params.text), run.status)
    stored = await runtime.store.run(params.run_id)
    return extensions.RunSteerResult(False, stored.status.value)


async def run_diff(
    runtime: Runtime, params: extensions.RunDiffParams, connection: Connection
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
    kept = _kept(raw)
    if kept is not None:
        msgspec.json.decode(kept, type=running.UiContext)
    return kept


def _kept(raw: Raw | UnsetType) -> bytes | None:
    given = b"null" if isinstance(raw, UnsetType) else bytes(raw)
    return None if given == b"null" else _one_line(given)


def _one_line(raw: bytes) -> bytes:
    """A body that came by HTTP may have line breaks between members; what is stored has none."""
    return msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw
