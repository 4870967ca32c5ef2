"""`telex agent exec` as a UI: a client of a runtime in this process, for one run."""

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
from msgspec import UNSET, Raw

from telex.agent.permissions.confirmation import NO_CONFIRM
from telex.agent.protocol import runs, ui_requests
from telex.agent.protocol.events import (
    FinalEvent,
    ReasoningEvent,
    StepCompleteEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from telex.agent.protocol.extensions import TodosUpdate
from telex.agent.run_context import DENIED
from telex.agent.run_stream import RunEvent
from telex.agent.runtime_access import in_process
from telex.cli.agent.composition import served_agent
from telex.cli.console import explain, printable, say
from telex.version import __version__
from telex.wire.limits import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from telex.agent.client import AsyncAgent
    from telex.agent.protocol.events import AgentEvent
    from telex.agent.run_stream import AsyncRun, RunMessage
    from telex.agent.ui_callbacks import UiOptions
    from telex.cli.agent.composition import Wanted


# Reading a line from the terminal in the event loop.
#
# A read in a thread cannot be cancelled: the program would wait for Enter before it exits. So the
# event loop watches the terminal, which keeps its own line editing, and reads when a line is there.


async def read_typed_line(question: str, *, hide: bool = False, fresh: bool = False) -> str | None:
    """Return a line from standard input, which is a terminal; None at its end.

    Args:
        question: Printed on stderr before the line is read.
        hide: Do not echo the line.
        fresh: Discard input that was typed before the question was printed.
    """
    descriptor = sys.stdin.fileno()
    if fresh:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    click.echo(question, nl=False, err=True)
    typed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    with _echo_off(descriptor, hide), _reading(descriptor, typed):
        try:
            line = await typed
        except asyncio.CancelledError:
            click.echo(err=True)
            raise
    if hide or not line.endswith(b"\n"):
        click.echo(err=True)
    return line.decode(errors="replace").rstrip("\r\n") if line else None


@contextmanager
def _reading(descriptor: int, line: asyncio.Future[bytes]) -> Iterator[None]:
    def ready() -> None:
        if not line.done():
            line.set_result(os.read(descriptor, CHUNK_BYTES))

    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ready)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


@contextmanager
def _echo_off(descriptor: int, hide: bool) -> Iterator[None]:
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


# The functions that answer questions, at the terminal.


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
    """Turn a typed line into an answer. Everything but a yes is a no."""
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


# Printing a run: the answer for people, or every message for programs.


class Printer(Protocol):
    """Prints one run. Raises `OSError` where the output cannot be written."""

    def started(self, run: AsyncRun) -> None: ...

    def received(self, message: RunMessage) -> None: ...


class JsonPrinter:
    """Prints each notification as a line of ASCII, so that a terminal obeys nothing of it."""

    def started(self, run: AsyncRun) -> None:
        self._line("run.start", result=runs.RunStartResult(run.run_id, run.session_id))

    def received(self, message: RunMessage) -> None:
        match message:
            case RunEvent(run_id=run_id, seq=seq, raw=raw, meta=meta):
                kept = Raw(msgspec.json.encode(meta)) if meta else UNSET
                notice = runs.AgentEventNotify(run_id, seq, Raw(raw), kept)
                self._line("agent.event", params=notice)
            case runs.RunStatusNotify():
                self._line("run.status", params=message)
            case runs.RunContextNotify():
                self._line("run.context", params=message)
            case runs.LlmCallDiagnostics() | runs.SummaryDiagnostics():
                self._line("run.diagnostics", params=message)
            case TodosUpdate():
                self._line("todos.update", params=message)

    def _line(self, method: str, **members: object) -> None:
        encoded = msgspec.json.encode({"method": method, **members})
        click.echo(json.dumps(json.loads(encoded)))


class TextPrinter:
    """Prints the answer on stdout, and all else on stderr."""

    def __init__(self, hint: str = "") -> None:
        """`hint` is printed at the end if a call was denied because no person could be asked."""
        self._hint = hint
        self._error = ""
        """The result of a failed tool, which is printed unless it is the answer too."""
        self._denied = False

    def started(self, run: AsyncRun) -> None:
        """Print nothing: the ids are for programs."""

    def received(self, message: RunMessage) -> None:
        match message:
            case RunEvent(event=event):
                self._print_event(event)
            case runs.RunStatusNotify(status="error"):
                explain(f"telex: the run failed: {message.message}")
            case runs.LlmCallDiagnostics(call=call):
                used = call.usage
                tokens = f"{used.input_tokens} + {used.output_tokens} tokens, " if used else ""
                explain(f"telex: {call.model}: {tokens}{call.latency_ms} ms{_cost(call.cost_usd)}")
            case runs.SummaryDiagnostics(summary=total):
                calls = "1 call" if total.total_calls == 1 else f"{total.total_calls} calls"
                cost = _cost(total.total_cost_usd)
                explain(f"telex: {calls} of a model, {total.total_tokens} tokens{cost}")

    def _print_event(self, event: AgentEvent) -> None:
        match event:
            case FinalEvent(content=content):
                if content == self._error:
                    self._error = ""
                self._print_error()
                say(content)
                if self._denied and self._hint:
                    explain(self._hint)
            case TextEvent(content=content) | ReasoningEvent(content=content):
                self._print_error()
                explain(content)
            case ToolCallEvent(tool=tool, args=args):
                self._print_error()
                explain(f"> {tool} {json.dumps(args, ensure_ascii=False)}")
            case ToolResultEvent(is_error=True, result=result):
                self._error = result
                self._denied = self._denied or result.startswith(DENIED + NO_CONFIRM)

    def _print_error(self) -> None:
        if self._error:
            explain(f"! {self._error}")
        self._error = ""


def _cost(dollars: float | None) -> str:
    return "" if dollars is None else f", ${dollars:.4f}"


NOBODY_ASKED: Final = (
    "telex: nobody could be asked here. Say it on a terminal, or allow it: --mode, or a rule"
    " (docs/reference/permissions.md)"
)
_CODES: Final = {"completed": 0, "error": 1, "cancelled": 130}


@dataclass(frozen=True, slots=True)
class Said:
    """The message of the person, and the form of the answer."""

    text: str
    session: str | None = None
    last: bool = False
    """Continue the session that was used last in this workspace."""
    as_json: bool = False
    may_ask: bool = False


async def one_shot(wanted: Wanted, said: Said) -> int:
    """Run one text to its end. Returns the exit code."""
    printer: Printer = JsonPrinter() if said.as_json else TextPrinter(_hint(said))
    ui: UiOptions = {"client": runs.PeerInfo("telex agent exec", __version__)}
    if said.may_ask:
        ui |= {"confirm": confirm, "prompt": prompt, "pick": pick}
    async with (
        served_agent(wanted, wanted.load()) as server,
        in_process(server.converse, **ui) as agent,
    ):
        session_id = await _last_session(agent) if said.last else said.session
        run = await agent.run_start(said.text, session_id=session_id)
        printer.started(run)
        return await _cancelled_by_signals(run, _print_run(run, printer))


def _hint(said: Said) -> str:
    return "" if said.may_ask else NOBODY_ASKED


async def _last_session(agent: AsyncAgent) -> str | None:
    """The session that was used last in this workspace; None where nothing is stored."""
    listed = await agent.session_list(limit=1, scope="current_workspace")
    return listed.sessions[0].session_id if listed.sessions else None


async def _print_run(run: AsyncRun, printer: Printer) -> int:
    """Print a run to its end. Returns the exit code."""
    last_step, denied = 0, False
    async for message in run.messages():
        printer.received(message)
        match message:
            case RunEvent(event=ToolResultEvent(result=result, is_error=is_error)):
                denied = is_error and result.startswith(DENIED)
            case RunEvent(event=StepCompleteEvent(status=status)):
                last_step = 0 if status != "error" else 4 if denied else 1
    if run.status == "completed" and last_step:
        return last_step
    return _CODES[run.status]


async def _cancelled_by_signals(run: AsyncRun, printing: Coroutine[Any, Any, int]) -> int:
    """Return the result of the printing; a signal meanwhile cancels the run."""
    with _interrupts() as interrupted:
        ended = asyncio.create_task(printing)
        signalled = asyncio.create_task(interrupted.wait())
        try:
            await asyncio.wait({ended, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await run.cancel("interrupted")
            return await ended
        finally:
            for task in (ended, signalled):
                task.cancel()
            await asyncio.wait({ended, signalled})


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
