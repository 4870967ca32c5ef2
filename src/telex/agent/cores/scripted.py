"""A core that plays a file of steps: what a demo shows and what a test needs, the same each time.

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

`{input}` is what the person said, `{steered}` what they said since then (`run.steer`), and `{last}`
what the step before brought. Without a `final` step,
the last answer is the final one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from telex.agent.cores import ContextLeft, RawEvent, TextDelta
from telex.agent.protocol import events
from telex.agent.protocol.sessions import ModelDetails
from telex.agent.protocol.ui_requests import PickItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.agent.cores import CoreContext, CoreOutput, RunInput


class BadScript(ValueError):
    """A file that is no script; the sentence says where."""


class ScriptFailed(Exception):
    """The script said so."""


class ScriptStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One of its members says what it does; `message`, `arguments` and `deltas` go with some."""

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
        raise BadScript(f"{path} is no script: {error}") from error
    except RecursionError as error:
        raise BadScript(f"{path} is no script: it is nested too deeply") from error
    for number, step in enumerate(script.steps, 1):
        if len(kinds := _kinds(step)) != 1:
            what = f"{' and '.join(kinds)} are two steps" if kinds else "it says nothing to do"
            raise BadScript(f"{path}, step {number}: {what}")
    return ScriptedCore(script.name, script.steps)


_BESIDE = {"deltas", "arguments", "message"}


def _kinds(step: ScriptStep) -> list[str]:
    """What it is to do: one thing, if it is a good step."""
    given = (name for name in step.__struct_fields__ if name not in _BESIDE)
    return [name for name in given if getattr(step, name) not in (None, UNSET)]


class ScriptedCore:
    """One script, played from its beginning in each run."""

    details = ModelDetails()

    def __init__(self, name: str, steps: list[ScriptStep]) -> None:
        self.name = name
        self._steps = steps

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        playing = _ScriptPlayer(asked, context)
        if asked.compact:
            for said in _compacted(False):
                yield said
        for step in self._steps:
            async for said in playing.play(step):
                yield said
                if isinstance(said, events.FinalEvent):
                    return
        yield events.FinalEvent(playing.last)


class _ScriptPlayer:
    def __init__(self, asked: RunInput, context: CoreContext) -> None:
        self._asked = asked
        self._context = context
        self.last = ""

    async def play(self, step: ScriptStep) -> AsyncIterator[CoreOutput]:
        """What a step says. Steps that ask or act bring `last`."""
        if step.text is not None or step.reasoning is not None:
            content = await self._filled(step.text or step.reasoning or "")
            for said in _spoken(step, content):
                yield said
        elif not isinstance(step.event, UnsetType):
            yield RawEvent(Raw(msgspec.json.format(bytes(step.event), indent=-1)))
        elif step.context is not None:
            yield ContextLeft(step.context)
        elif step.retry is not None:
            yield events.LlmRetryEvent("scripted", "overloaded", 2, 3, 0, "backoff")
        elif step.compact is not None:
            for said in _compacted(step.compact):
                yield said
        elif step.final is not None:
            yield events.FinalEvent(await self._filled(step.final))
        else:
            self.last = await self._done(step)

    async def _done(self, step: ScriptStep) -> str:
        context = self._context
        if step.tool is not None:
            return (await context.call(step.tool, step.arguments)).text
        if step.confirm is not None:
            answer = await context.confirm(step.confirm, step.message)
            return "yes" if answer is not None and answer.ok else "no"
        if step.prompt is not None:
            return await context.prompt(step.prompt, step.message) or ""
        if step.pick is not None:
            items = [PickItem(label, label) for label in step.pick]
            return ", ".join(await context.pick(step.message or "Choose", items))
        if step.wait is not None:
            await asyncio.sleep(step.wait)
        if step.fail is not None:
            raise ScriptFailed(step.fail)
        return self.last

    async def _filled(self, text: str) -> str:
        if "{steered}" in text:
            text = text.replace("{steered}", await self._steered())
        return text.replace("{input}", self._asked.text).replace("{last}", self.last)

    async def _steered(self) -> str:
        texts = []
        while (said := await self._context.steered()) is not None:
            texts.append(said)
        return "\n".join(texts)


def _spoken(step: ScriptStep, content: str) -> list[CoreOutput]:
    is_text = step.text is not None
    size = -(-len(content) // step.deltas) if step.deltas else 0
    pieces = [content[at : at + size] for at in range(0, len(content), size)] if size else []
    whole = events.TextEvent if is_text else events.ReasoningEvent
    return [
        *(TextDelta("text" if is_text else "reasoning", piece) for piece in pieces),
        whole(content, _now()),
    ]


def _compacted(done: bool) -> list[CoreOutput]:
    return [events.CompactionStartEvent(_now()), events.CompactionCompleteEvent(_now(), done)]


def _now() -> int:
    return time.time_ns() // 1_000_000
