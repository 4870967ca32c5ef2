"""What `telex agent exec` prints of a run: for people, or each notification for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import click
import msgspec

from telex.agent.confirming import NO_CONFIRM
from telex.agent.turns import DENIED
from telex.cli.console import explain, say
from telex.protocols.agent_ui import running

if TYPE_CHECKING:
    from telex.protocols.agent_ui.running import RunStartResult


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
            case running.AgentEventNotify():
                self._event(json.loads(bytes(params.event)))
            case running.RunStatusNotify(status="error"):
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
