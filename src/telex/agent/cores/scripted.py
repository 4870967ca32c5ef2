"""A core that plays a file of steps, the same each time: for demos and tests.

    {"name": "demo", "steps": [
      {"reasoning": "They want to see the files."},
      {"text": "Let me look.", "deltas": 3},
      {"tool": "list", "arguments": {"pattern": "*.py"}},
      {"confirm": "Go on?", "message": "It may take a while."},
      {"prompt": "Your name"}, {"pick": ["one", "two"]},
      {"context": 80}, {"retry": "overloaded"}, {"compact": true},
      {"event": {"type": "text", "content": "with members of your own", "x": 1}},
      {"wait": 0.5}, {"fail": "as if something broke"},
      {"final": "You said {input}; the last answer was {last}."}]}

`{input}` stands for the input of the run, `{steered}` for the texts of `run.steer` since then, and
`{last}` for the result of the last step. Without a `final` step, the last result is the final
answer.

Each action is stored with the number of its step and a hash of the script. After a restart the
script continues after the last stored action; a script that was changed meanwhile fails.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from telex.agent.conversation import message_text
from telex.agent.cores import ContextLeft, RawEvent, TextDelta
from telex.agent.messages import AssistantMessage, ReasoningPart, ToolResultMessage
from telex.agent.protocol import events
from telex.agent.protocol.sessions import ModelDetails
from telex.agent.protocol.ui_requests import PickItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.messages import Message


class BadScript(ValueError):
    """A file that is not a valid script; the message says where."""


class ScriptFailed(Exception):
    """Raised by a `fail` step."""


class ScriptChanged(Exception):
    """The script is not the one that the run began with, so it cannot continue the run."""


class ScriptStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One step. Exactly one member is the action; `message`, `arguments` and `deltas` are
    parameters of some actions."""

    text: str | None = None
    reasoning: str | None = None
    deltas: int = 0
    tool: str | None = None
    arguments: dict[str, Any] = {}
    confirm: str | None = None
    prompt: str | None = None
    pick: list[str] | None = None
    message: str = ""
    context: Annotated[int, Meta(ge=0, le=100)] | None = None
    retry: str | None = None
    compact: bool | None = None
    event: Raw | UnsetType = UNSET
    wait: float | None = None
    fail: str | None = None
    final: str | None = None


class CoreScript(Struct, frozen=True, forbid_unknown_fields=True):
    steps: list[ScriptStep]
    name: str = "scripted"


def read_script(path: Path) -> ScriptedCore:
    """Raises `BadScript`, and `OSError`."""
    try:
        script = msgspec.json.decode(path.read_bytes(), type=CoreScript)
    except msgspec.DecodeError as error:
        raise BadScript(f"{path} is not a valid script: {error}") from error
    except RecursionError as error:
        raise BadScript(f"{path} is not a valid script: it is nested too deeply") from error
    for number, step in enumerate(script.steps, 1):
        if len(kinds := _kinds(step)) != 1:
            problem = f"{' and '.join(kinds)} are two steps" if kinds else "the step has no action"
            raise BadScript(f"{path}, step {number}: {problem}")
    return ScriptedCore(script.name, script.steps)


_PARAMETERS = {"deltas", "arguments", "message"}


def _kinds(step: ScriptStep) -> list[str]:
    """Return the actions that a step names; a valid step names one."""
    given = (name for name in step.__struct_fields__ if name not in _PARAMETERS)
    return [name for name in given if getattr(step, name) not in (None, UNSET)]


class ScriptedCore:
    """Plays one script from its beginning in each run."""

    details = ModelDetails()

    def __init__(self, name: str, steps: list[ScriptStep]) -> None:
        self.name = name
        self._steps = steps

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        first, last = self._continuation(context.run_messages)
        player = _ScriptPlayer(asked, context, last)
        if asked.compact and not first:
            for output in _compaction_events(False):
                yield output
        for number, step in enumerate(self._steps[first:], first):
            async for output in player.play(step, _ScriptPosition(self._hash(), number)):
                yield output
                if isinstance(output, events.FinalEvent):
                    return
        yield events.FinalEvent(player.last)

    def _hash(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self._steps)).hexdigest()[:16]

    def _continuation(self, messages: Sequence[Message]) -> tuple[int, str]:
        """Return the step to continue with, and the result of the last one. Raises
        `ScriptChanged`."""
        results = [one for one in messages if isinstance(one, ToolResultMessage)]
        if not results:
            return 0, ""
        said = next(one for one in reversed(messages) if isinstance(one, AssistantMessage))
        for part in said.parts:
            if isinstance(part, ReasoningPart) and part.provider == self.name:
                position = msgspec.json.decode(part.opaque, type=_ScriptPosition)
                if position.script != self._hash():
                    break
                step = self._steps[position.step]
                return position.step + 1, _stored_result(step, results[-1])
        raise ScriptChanged(f"the script {self.name} has changed since the run began")


class _ScriptPosition(Struct, frozen=True):
    """Stored with each action: which step of which script it is."""

    script: str
    step: int


def _stored_result(step: ScriptStep, result: ToolResultMessage) -> str:
    text = message_text(result)
    if step.tool is not None:
        return text
    if step.confirm is not None:
        return "yes" if text == "yes" else "no"
    return "" if result.is_error else text.replace("\n", ", ")


class _ScriptPlayer:
    """Plays the steps of one run. `last` is the result of the last step that asked or acted."""

    def __init__(self, asked: RunInput, context: CoreContext, last: str) -> None:
        self._asked = asked
        self._context = context
        self.last = last

    async def play(self, step: ScriptStep, position: _ScriptPosition) -> AsyncIterator[CoreOutput]:
        """Yield the output of a step. Steps that ask or act set `last` instead."""
        if step.text is not None or step.reasoning is not None:
            content = await self._fill(step.text or step.reasoning or "")
            for output in _text_events(step, content):
                yield output
        elif not isinstance(step.event, UnsetType):
            yield RawEvent(Raw(msgspec.json.format(bytes(step.event), indent=-1)))
        elif step.context is not None:
            yield ContextLeft(step.context)
        elif step.retry is not None:
            yield events.LlmRetryEvent("scripted", "overloaded", 2, 3, 0, "backoff")
        elif step.compact is not None:
            for output in _compaction_events(step.compact):
                yield output
        elif step.final is not None:
            yield events.FinalEvent(await self._fill(step.final))
        else:
            self.last = await self._execute(step, Raw(msgspec.json.encode(position)))

    async def _execute(self, step: ScriptStep, data: Raw) -> str:
        context = self._context
        if step.tool is not None:
            return (await context.call(step.tool, step.arguments, data=data)).text
        if step.confirm is not None:
            answer = await context.confirm(step.confirm, step.message, data=data)
            return "yes" if answer is not None and answer.ok else "no"
        if step.prompt is not None:
            return await context.prompt(step.prompt, step.message, data=data) or ""
        if step.pick is not None:
            items = [PickItem(label, label) for label in step.pick]
            return ", ".join(await context.pick(step.message or "Choose", items, data=data))
        if step.wait is not None:
            await asyncio.sleep(step.wait)
        if step.fail is not None:
            raise ScriptFailed(step.fail)
        return self.last

    async def _fill(self, text: str) -> str:
        if "{steered}" in text:
            text = text.replace("{steered}", await self._steered())
        return text.replace("{input}", self._asked.text).replace("{last}", self.last)

    async def _steered(self) -> str:
        texts = []
        while (steered := await self._context.steered()) is not None:
            texts.append(steered)
        return "\n".join(texts)


def _text_events(step: ScriptStep, content: str) -> list[CoreOutput]:
    is_text = step.text is not None
    size = -(-len(content) // step.deltas) if step.deltas else 0
    pieces = [content[at : at + size] for at in range(0, len(content), size)] if size else []
    whole = events.TextEvent if is_text else events.ReasoningEvent
    return [
        *(TextDelta("text" if is_text else "reasoning", piece) for piece in pieces),
        whole(content, _now()),
    ]


def _compaction_events(done: bool) -> list[CoreOutput]:
    return [events.CompactionStartEvent(_now()), events.CompactionCompleteEvent(_now(), done)]


def _now() -> int:
    return time.time_ns() // 1_000_000
