"""A UI for one run: the same protocol as any other UI speaks, within this process."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.cli.agent import answering
from telex.cli.agent.making import served_agent
from telex.cli.agent.printing import AsJson, AsText
from telex.protocols.agent_ui import asking, codes, running
from telex.protocols.agent_ui.sessions import SessionListResult
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.rpc.testing import memory_channels
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.cli.agent.making import Wanted
    from telex.cli.agent.printing import Printing

NOBODY_ASKED: Final = (
    "telex: nobody could be asked here. Say it on a terminal, or allow it: --mode, or a rule"
    " (docs/reference/permissions.md)"
)
_CODES: Final = {"completed": 0, "error": 1, "cancelled": 130}


@dataclass(frozen=True, slots=True)
class Said:
    """What the person said, and how they want to hear of it."""

    text: str
    session: str | None = None
    last: bool = False
    """Go on with the session that was used last."""
    as_json: bool = False
    may_ask: bool = False


class OneShot:
    """Prints what it is told, and asks the person where it may."""

    def __init__(self, printing: Printing, may_ask: bool) -> None:
        self._printing = printing
        self._last_step_failed = False
        self.can = running.UiCapabilities(
            supports_confirm=may_ask, supports_prompt=may_ask, supports_pick=may_ask
        )
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.methods = Methods()
        self.methods.add("agent.event", self._event)
        self.methods.add("run.status", self._status)
        self.methods.add("run.context", self._context)
        self.methods.add("run.diagnostics", self._diagnostics)
        self.methods.add(asking.CONFIRM, answering.confirm)
        self.methods.add(asking.PROMPT, answering.prompt)
        self.methods.add(asking.PICK, answering.pick)

    def _event(self, params: running.AgentEventNotify) -> None:
        self._told("agent.event", params)
        match msgspec.json.decode(params.event):
            case {"type": "step_complete", "status": status}:
                self._last_step_failed = status == "error"

    def _status(self, params: running.RunStatusNotify) -> None:
        self._told("run.status", params)
        if params.status in _CODES and not self.code.done():
            failed = params.status == "completed" and self._last_step_failed
            self.code.set_result(1 if failed else _CODES[params.status])

    def _context(self, params: running.RunContextNotify) -> None:
        self._told("run.context", params)

    def _diagnostics(self, params: running.RunDiagnosticsNotify) -> None:
        self._told("run.diagnostics", params)

    def started(self, run: running.RunStartResult) -> None:
        self._print(self._printing.started, run)

    def _told(self, method: str, params: object) -> None:
        self._print(self._printing.told, method, params)

    def _print(self, how: Callable[..., None], *what: object) -> None:
        try:
            how(*what)
        except OSError as gone:  # `| head -1`, a full disk: nobody reads on, so the run is over
            if not self.code.done():
                self.code.set_exception(gone)


async def one_shot(wanted: Wanted, said: Said) -> int:
    """The exit code."""
    printing = AsJson() if said.as_json else AsText("" if said.may_ask else NOBODY_ASKED)
    ui = OneShot(printing, said.may_ask)
    async with served_agent(wanted, wanted.load()) as server:
        theirs, ours = memory_channels()
        serving = asyncio.create_task(server.converse(theirs))
        async with Peer(ours, JsonRpc(codes=codes.CODES), ui.methods) as peer:
            started = await _start(peer, ui.can, said)
            ui.started(started)
            code = await _until_ended(peer, ui, started.run_id)
        await serving
    return code


async def _start(peer: Peer, can: running.UiCapabilities, said: Said) -> running.RunStartResult:
    client = running.Named("telex agent exec", __version__)
    await peer.call("initialize", running.InitializeParams(codes.VERSION, client, can))
    session = await _last(peer) if said.last else said.session
    asked = {"input": {"type": "text", "text": said.text}, "session_id": session}
    started: running.RunStartResult = await peer.call(
        "run.start", asked, returns=running.RunStartResult
    )
    return started


async def _last(peer: Peer) -> str | None:
    """None where there is none yet."""
    listed: SessionListResult = await peer.call(
        "session.list", {"limit": 1}, returns=SessionListResult
    )
    return listed.sessions[0].session_id if listed.sessions else None


async def _until_ended(peer: Peer, ui: OneShot, run_id: str) -> int:
    with _interrupts() as interrupted:
        waiting = asyncio.create_task(interrupted.wait())
        either: set[asyncio.Future[Any]] = {waiting, ui.code}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not ui.code.done():
            await peer.call("run.cancel", running.RunCancelParams(run_id, "interrupted"))
        return await ui.code


@contextmanager
def _interrupts() -> Iterator[asyncio.Event]:
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    try:
        yield interrupted
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
