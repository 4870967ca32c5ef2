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
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.rpc.testing import memory_channels
from telex.version import __version__

if TYPE_CHECKING:
    from telex.cli.agent.making import Wanted

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
            self._line("agent.event", params)
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
            self._line("run.status", params)
        elif params.status == "error":
            explain(f"telex: the run failed: {params.message}")
        if params.status in _CODES and not self.ended.done():
            self.ended.set_result(params.status)

    def _context(self, params: running.RunContextNotify) -> None:
        if self._json:
            self._line("run.context", params)

    def _diagnostics(self, params: running.RunDiagnosticsNotify) -> None:
        if self._json:
            self._line("run.diagnostics", params)

    def _line(self, method: str, params: object) -> None:
        """In ASCII: a terminal obeys nothing of it."""
        line = msgspec.json.encode({"method": method, "params": params})
        click.echo(json.dumps(json.loads(line)))

    async def _confirm(self, params: asking.UiConfirmRequestParams) -> asking.UiConfirmResult:
        explain(f"{params.title}\n{params.message}", redact=False)
        said = await _typed(f"{params.confirm_label}? [y/N] ")
        return asking.UiConfirmResult(said.strip().lower() in ("y", "yes"))

    async def _prompt(self, params: asking.UiPromptRequestParams) -> asking.UiPromptResult:
        explain(f"{params.title}: {params.message}")
        return asking.UiPromptResult(await _typed("> ", hide=params.secret))

    async def _pick(self, params: asking.UiPickRequestParams) -> asking.UiPickResult:
        explain(params.title)
        for item in params.items:
            explain(f"  {item.id}. {item.label}")
        chosen = (await _typed("> ")).replace(",", " ").split()
        return asking.UiPickResult([item.id for item in params.items if item.id in chosen])


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
            asked = {"input": {"type": "text", "text": text}, "session_id": session}
            started: running.RunStartResult = await peer.call(
                "run.start", asked, returns=running.RunStartResult
            )
            code = await _until_ended(peer, ui, started.run_id)
        await serving
    return code


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
