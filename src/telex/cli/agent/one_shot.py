"""A UI for one run: the same protocol as any other UI speaks, within this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import termios
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import click
import msgspec

from telex.agent import protocol
from telex.agent.permissions.confirmation import NO_CONFIRM
from telex.agent.protocol import runs, ui_requests
from telex.agent.protocol.sessions import SessionListResult
from telex.agent.run_context import DENIED
from telex.cli.agent.composition import served_agent
from telex.cli.console import explain, printable, say
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.rpc.testing import memory_channels
from telex.version import __version__
from telex.wire.limits import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.agent.protocol.runs import RunStartResult
    from telex.cli.agent.composition import Wanted


# A line that the person types, waited for in the event loop: a cancel ends the waiting.
#
# Reading in a thread cannot be cancelled, and the program would hang at its end until Enter is
# pressed. So the terminal is read when it has something; it keeps its own line editing.


async def read_typed_line(question: str, *, hide: bool = False, fresh: bool = False) -> str | None:
    """What was typed on standard input, a terminal; None at its end. `fresh`: what was typed before
    the question was there is no answer to it."""
    descriptor = sys.stdin.fileno()
    if fresh:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    click.echo(question, nl=False, err=True)
    came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    with _silent(descriptor, hide), _reading(descriptor, came):
        try:
            line = await came
        except asyncio.CancelledError:
            click.echo(err=True)
            raise
    if hide or not line.endswith(b"\n"):
        click.echo(err=True)
    return line.decode(errors="replace").rstrip("\r\n") if line else None


@contextmanager
def _reading(descriptor: int, came: asyncio.Future[bytes]) -> Iterator[None]:
    def ready() -> None:
        if not came.done():
            came.set_result(os.read(descriptor, CHUNK_BYTES))

    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ready)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


@contextmanager
def _silent(descriptor: int, hide: bool) -> Iterator[None]:
    if not hide:
        yield
        return
    before = termios.tcgetattr(descriptor)
    silent = termios.tcgetattr(descriptor)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


# The person at the terminal answers what a run asks.


async def confirm(params: ui_requests.UiConfirmRequestParams) -> ui_requests.UiConfirmResult:
    explain(f"\n{params.title}\n{params.message}\n", redact=False)
    return answer_of(await read_typed_line(_choices(params), fresh=True) or "", params)


async def prompt(params: ui_requests.UiPromptRequestParams) -> ui_requests.UiPromptResult:
    explain(f"{params.title}: {params.message}")
    if (given := params.default_value) is None:
        return ui_requests.UiPromptResult(await read_typed_line("> ", hide=params.secret))
    said = await read_typed_line(f"[{printable(given)}] > ", hide=params.secret)
    return ui_requests.UiPromptResult(given if said == "" else said)


async def pick(params: ui_requests.UiPickRequestParams) -> ui_requests.UiPickResult:
    explain(params.title)
    for item in params.items:
        detail = f"  ({item.detail})" if item.detail else ""
        explain(f"  {item.id if item.id != item.label else '-'}  {item.label}{detail}")
    said = (
        await read_typed_line("one or several, with commas: " if params.multi else "which: ") or ""
    )
    chosen = {part.strip() for part in (said.split(",") if params.multi else [said])}
    return ui_requests.UiPickResult(
        [item.id for item in params.items if not chosen.isdisjoint((item.id, item.label))]
    )


def _choices(params: ui_requests.UiConfirmRequestParams) -> str:
    always = ", [a]lways" if params.allow_remember else ""
    reason = ", or say why not" if params.allow_reason else ""
    return click.style(f"[y]es{always}, [N]o{reason}: ", bold=True)


def answer_of(said: str, params: ui_requests.UiConfirmRequestParams) -> ui_requests.UiConfirmResult:
    """What the person typed, as an answer. Only a yes is a yes."""
    match said.strip().lower():
        case "y" | "yes":
            return ui_requests.UiConfirmResult(ok=True)
        case "a" | "always" if params.allow_remember:
            return ui_requests.UiConfirmResult(ok=True, remember=True)
        case "" | "n" | "no":
            return ui_requests.UiConfirmResult(ok=False)
    return ui_requests.UiConfirmResult(
        ok=False, reason=said.strip() if params.allow_reason else None
    )


# What `telex agent exec` prints of a run: for people, or each notification for programs.


class Printing(Protocol):
    def started(self, run: RunStartResult) -> None: ...

    def told(self, method: str, params: object) -> None: ...


class AsJson:
    """Lines in ASCII: a terminal obeys nothing of them."""

    def started(self, run: RunStartResult) -> None:
        self._line({"method": "run.start", "result": run})

    def told(self, method: str, params: object) -> None:
        self._line({"method": method, "params": params})

    def _line(self, message: object) -> None:
        click.echo(json.dumps(json.loads(msgspec.json.encode(message))))


class AsText:
    """The answer on stdout, all else on stderr."""

    def __init__(self, hint: str = "") -> None:
        self._hint = hint
        """Said at the end, when something was denied because nobody could be asked."""
        self._error = ""
        self._denied = False

    def started(self, run: RunStartResult) -> None:
        """Nobody needs to know."""

    def told(self, method: str, params: object) -> None:
        match params:
            case runs.AgentEventNotify():
                self._event(json.loads(bytes(params.event)))
            case runs.RunStatusNotify(status="error"):
                explain(f"telex: the run failed: {params.message}")

    def _event(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "final", "content": str(content)}:
                if content == self._error:  # what went wrong is the answer: once is enough
                    self._error = ""
                self._failed()
                say(content)
                if self._denied and self._hint:
                    explain(self._hint)
            case {"type": "text" | "reasoning", "content": str(content)}:
                self._failed()
                explain(content)
            case {"type": "tool_call", "tool": tool, "args": args}:
                self._failed()
                explain(f"> {tool} {json.dumps(args, ensure_ascii=False)}")
            case {"type": "tool_result", "is_error": True, "result": str(result)}:
                self._error = result
                self._denied = self._denied or result.startswith(DENIED + NO_CONFIRM)

    def _failed(self) -> None:
        if self._error:
            explain(f"! {self._error}")
        self._error = ""


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
        self.can = runs.UiCapabilities(
            supports_confirm=may_ask, supports_prompt=may_ask, supports_pick=may_ask
        )
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.methods = Methods()
        self.methods.add("agent.event", self._event)
        self.methods.add("run.status", self._status)
        self.methods.add("run.context", self._context)
        self.methods.add("run.diagnostics", self._diagnostics)
        self.methods.add(ui_requests.CONFIRM, confirm)
        self.methods.add(ui_requests.PROMPT, prompt)
        self.methods.add(ui_requests.PICK, pick)

    def _event(self, params: runs.AgentEventNotify) -> None:
        self._told("agent.event", params)
        match msgspec.json.decode(params.event):
            case {"type": "step_complete", "status": status}:
                self._last_step_failed = status == "error"

    def _status(self, params: runs.RunStatusNotify) -> None:
        self._told("run.status", params)
        if params.status in _CODES and not self.code.done():
            failed = params.status == "completed" and self._last_step_failed
            self.code.set_result(1 if failed else _CODES[params.status])

    def _context(self, params: runs.RunContextNotify) -> None:
        self._told("run.context", params)

    def _diagnostics(self, params: runs.RunDiagnosticsNotify) -> None:
        self._told("run.diagnostics", params)

    def started(self, run: runs.RunStartResult) -> None:
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
        async with Peer(ours, JsonRpc(codes=protocol.CODES), ui.methods) as peer:
            started = await _start(peer, ui.can, said)
            ui.started(started)
            code = await _until_ended(peer, ui, started.run_id)
        await serving
    return code


async def _start(peer: Peer, can: runs.UiCapabilities, said: Said) -> runs.RunStartResult:
    client = runs.PeerInfo("telex agent exec", __version__)
    await peer.call("initialize", runs.InitializeParams(protocol.VERSION, client, can))
    session = await _last(peer) if said.last else said.session
    asked = {"input": {"type": "text", "text": said.text}, "session_id": session}
    started: runs.RunStartResult = await peer.call("run.start", asked, returns=runs.RunStartResult)
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
            await peer.call("run.cancel", runs.RunCancelParams(run_id, "interrupted"))
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
