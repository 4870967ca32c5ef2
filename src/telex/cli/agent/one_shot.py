"""A UI for one run: the same protocol as any other UI speaks, within this process."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from telex.cli.agent.making import served_agent
from telex.cli.console import explain, say
from telex.protocols.agent_ui import asking, codes, running
from telex.protocols.agent_ui.sessions import SessionListResult
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.rpc.testing import memory_channels
from telex.version import __version__

if TYPE_CHECKING:
    from telex.cli.agent.making import Wanted

LAST: Final = ""
"""Instead of a session's id: the one that was used last."""
_CODES: Final = {"completed": 0, "error": 1, "cancelled": 130}


class OneShot:
    """Prints what it is told, and asks the person where it may."""

    def __init__(self, as_json: bool, may_ask: bool) -> None:
        self._json = as_json
        self.can = running.UiCapabilities(
            supports_confirm=may_ask, supports_prompt=may_ask, supports_pick=may_ask
        )
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.methods = Methods()
        self.methods.add("agent.event", self._event)
        self.methods.add("run.status", self._status)
        self.methods.add("run.context", self._context)
        self.methods.add("run.diagnostics", self._diagnostics)
        self.methods.add(asking.CONFIRM, self._confirm)
        self.methods.add(asking.PROMPT, self._prompt)
        self.methods.add(asking.PICK, self._pick)

    def _event(self, params: running.AgentEventNotify) -> None:
        if self._json:
            self._told("agent.event", params)
            return
        match json.loads(bytes(params.event)):
            case {"type": "final", "content": str(content)}:
                say(content)
            case {"type": "text" | "reasoning", "content": str(content)}:
                explain(content)
            case {"type": "tool_call", "tool": tool, "args": args}:
                explain(f"> {tool} {json.dumps(args, ensure_ascii=False)}")
            case {"type": "tool_result", "is_error": True, "result": str(result)}:
                explain(f"! {result}")

    def _status(self, params: running.RunStatusNotify) -> None:
        if self._json:
            self._told("run.status", params)
        elif params.status == "error":
            explain(f"telex: the run failed: {params.message}")
        if params.status in _CODES and not self.ended.done():
            self.ended.set_result(params.status)

    def _context(self, params: running.RunContextNotify) -> None:
        if self._json:
            self._told("run.context", params)

    def _diagnostics(self, params: running.RunDiagnosticsNotify) -> None:
        if self._json:
            self._told("run.diagnostics", params)

    def _told(self, method: str, params: object) -> None:
        self.line({"method": method, "params": params})

    def line(self, message: object) -> None:
        """In ASCII: a terminal obeys nothing of it."""
        click.echo(json.dumps(json.loads(msgspec.json.encode(message))))

    async def _confirm(self, params: asking.UiConfirmRequestParams) -> asking.UiConfirmResult:
        explain(f"{params.title}\n{params.message}", redact=False)
        return answer_of(await _typed(_choices(params)), params)

    async def _prompt(self, params: asking.UiPromptRequestParams) -> asking.UiPromptResult:
        explain(f"{params.title}: {params.message}")
        return asking.UiPromptResult(await _typed("> ", hide=params.secret))

    async def _pick(self, params: asking.UiPickRequestParams) -> asking.UiPickResult:
        explain(params.title)
        for item in params.items:
            explain(f"  {item.id}. {item.label}")
        chosen = (await _typed("> ")).replace(",", " ").split()
        return asking.UiPickResult([item.id for item in params.items if item.id in chosen])


def _choices(params: asking.UiConfirmRequestParams) -> str:
    always = ", [a]lways" if params.allow_remember else ""
    reason = ", or say why not" if params.allow_reason else ""
    return f"[y]es{always}, [N]o{reason}: "


def answer_of(said: str, params: asking.UiConfirmRequestParams) -> asking.UiConfirmResult:
    """What the person typed, as an answer. Only a yes is a yes."""
    match said.strip().lower():
        case "y" | "yes":
            return asking.UiConfirmResult(ok=True)
        case "a" | "always" if params.allow_remember:
            return asking.UiConfirmResult(ok=True, remember=True)
        case "" | "n" | "no":
            return asking.UiConfirmResult(ok=False)
    return asking.UiConfirmResult(ok=False, reason=said.strip() if params.allow_reason else None)


async def _typed(question: str, *, hide: bool = False) -> str:
    def ask() -> str:
        try:
            text: str = click.prompt(
                question,
                default="",
                show_default=False,
                prompt_suffix="",
                hide_input=hide,
                err=True,
            )
        except click.Abort:
            return ""
        return text

    return await asyncio.to_thread(ask)


async def one_shot(
    wanted: Wanted, as_json: bool, may_ask: bool, text: str, session: str | None
) -> int:
    """The exit code."""
    ui = OneShot(as_json, may_ask)
    async with served_agent(wanted) as server:
        theirs, ours = memory_channels()
        serving = asyncio.create_task(server.converse(theirs))
        async with Peer(ours, JsonRpc(codes=codes.CODES), ui.methods) as peer:
            client = running.Named("telex agent exec", __version__)
            hello = running.InitializeParams(codes.VERSION, client, ui.can)
            await peer.call("initialize", hello)
            if session == LAST:
                session = await _last(peer)
            asked = {"input": {"type": "text", "text": text}, "session_id": session}
            started: running.RunStartResult = await peer.call(
                "run.start", asked, returns=running.RunStartResult
            )
            if as_json:
                ui.line({"method": "run.start", "result": started})
            code = await _until_ended(peer, ui, started.run_id)
        await serving
    return code


async def _last(peer: Peer) -> str | None:
    """None where there is none yet."""
    listed: SessionListResult = await peer.call(
        "session.list", {"limit": 1}, returns=SessionListResult
    )
    return listed.sessions[0].session_id if listed.sessions else None


async def _until_ended(peer: Peer, ui: OneShot, run_id: str) -> int:
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    waiting = asyncio.create_task(interrupted.wait())
    try:
        either: set[asyncio.Future[Any]] = {waiting, ui.ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ui.ended.done():
            await peer.call("run.cancel", running.RunCancelParams(run_id, "interrupted"))
        return _CODES[await ui.ended]
    finally:
        waiting.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
