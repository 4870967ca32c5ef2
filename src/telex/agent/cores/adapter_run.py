"""One run of the TUI of another agent: its states become events, its dialogs questions.

`AdapterRun.outputs` is the run. It types a text of the person by the prompt intent of the plugin,
and then follows the states until a prompt can be sent again, or the run cannot go on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from telex.agent.cores import RawEvent
from telex.agent.cores.adapter_screen import (
    AskedQuestion,
    ShownDialog,
    said_entries,
    stored_answer,
    subject,
    unseen,
    without_open_call,
)
from telex.agent.cores.adapter_start import (
    AdapterFailed,
    question_data,
    start_note,
    start_refusal,
    start_terminal,
)
from telex.agent.cores.adapter_terminal import (
    AdapterTerminal,
    SeenState,
    TerminalGone,
    TerminalProgramEnded,
    input_kinds,
)
from telex.agent.protocol import events
from telex.agent.protocol.ui_requests import PickItem
from telex.agent.terminal_server import NoTerminalServer
from telex.agent.tools.tool import new_id
from telex.automation.errors import NotPermitted, Refused, SessionProblem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence

    from telex.adapters.protocol import AdapterState, CoreIntents
    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.cores.adapter_core import AdapterCore

_CHANGED: Final = ("stale_dialog", "no_dialog")
"""The reasons of a plugin that refuses an answer because another dialog is shown, or none."""
_ADVICE: Final = {
    "rate_limit": "wait until the limit ends, or choose another model: telex agent models",
    "quota": "its account has nothing left; choose another model: telex agent models",
    "auth": "log in there: {attach}",
}


class Unanswered(Exception):
    """The person did not answer a question of the program; the message ends the run."""


@dataclass(slots=True)
class AdapterRun:
    """One run of the core."""

    core: AdapterCore
    context: CoreContext
    _terminal: AdapterTerminal | None = None
    _is_prompted: bool = False
    """Whether this run has typed something, so that the program works for it."""
    _seen: list[dict[str, Any]] = field(default_factory=list)
    """What the program has said in this turn, as far as it was emitted."""
    _old: list[dict[str, Any]] = field(default_factory=list)
    """What the program had said before the prompt of this turn."""
    _last_text: str | None = None
    """The newest text. It is emitted as `text` if anything follows it, else as the answer."""
    _last_state: str = ""
    _closed_panels: set[str] = field(default_factory=set)
    """The states of panels that were closed: a report may stay on the screen, and needs nothing."""
    _reached: SeenState = field(init=False)
    """The result of the last work that was watched."""
    _note: str = ""
    """What to say to the person next."""
    _steps: int = 0

    @property
    def terminal(self) -> AdapterTerminal:
        assert self._terminal is not None
        return self._terminal

    async def outputs(self, asked: RunInput) -> AsyncGenerator[CoreOutput, None]:
        question, answer = stored_answer(self.context.run_messages, self.core.name)
        texts = [asked.text]
        if question is not None and question.terminal is not None:
            async with aclosing(self._resume(question, answer)) as outputs:
                async for output in outputs:
                    yield output
            texts = []
        elif asked.compact and question is None:
            yield events.CompactionStartEvent(_now())
            yield events.CompactionCompleteEvent(_now(), compacted=False)
            texts = [asked.text] if asked.text.strip() else []
        if texts and (question is not None or self._known_terminal() is None):
            answered = None if question is None else answer == "yes"
            if refusal := await start_refusal(self.core, self.context, answered):
                yield events.FinalEvent(refusal)
                return
            self._terminal = await start_terminal(self.core, self.context)
            yield events.TextEvent(await start_note(self._terminal, self.context), _now())
        while True:
            for text in texts:
                async with aclosing(self._prompt(text)) as outputs:
                    async for output in outputs:
                        yield output
            if (more := await self.context.steered()) is None:
                break
            texts = [more]
        yield events.FinalEvent(self._last_text or "")

    async def interrupt(self) -> None:
        """Interrupt the program if it works for this run. Nothing is typed after that."""
        if self._terminal is None or not self._is_prompted:
            return
        with suppress(TerminalGone, TerminalProgramEnded, SessionProblem, NoTerminalServer):
            if not self._is_at_rest(await self._terminal.look()):
                await self._terminal.interrupt(self.core.intents.interrupt)

    # The start.

    def _known_terminal(self) -> AdapterTerminal | None:
        self._terminal = self.core.terminals.get(self.context.session_id)
        return self._terminal

    async def _resume(
        self, question: AskedQuestion, answer: str | None
    ) -> AsyncGenerator[CoreOutput, None]:
        """Continue after a restart with the answer to the dialog that stood on the terminal."""
        assert question.terminal is not None
        core, gone = self.core, "its terminal is gone"
        terminal = AdapterTerminal(core.server, core.name, question.terminal, {})
        try:
            terminal.inputs = await input_kinds(core.server, core.name)
            live = await terminal.is_live()
        except (SessionProblem, NoTerminalServer) as problem:
            live, gone = False, str(problem)
        if not live:
            raise AdapterFailed(
                f"{core.name} was not told your answer: {gone} since the restart. Send a message "
                f"to start a new {core.name}"
            )
        self._terminal = core.terminals[self.context.session_id] = terminal
        core.allowed.add(self.context.session_id)
        self._is_prompted = True
        if self._question(now := await terminal.look()) == question:
            self._seen = without_open_call(self._said(now))  # was emitted before the restart
        seen = None if answer is None else await self._type_answer(question, answer)
        async with aclosing(self._follow(seen or await self._wait())) as outputs:
            async for output in outputs:
                yield output

    # A turn.

    async def _prompt(self, text: str) -> AsyncGenerator[CoreOutput, None]:
        """Type a text of the person as a prompt, and follow the turn to its end."""
        core = self.core
        async with aclosing(self._follow(await self._wait(), before=True)) as outputs:
            async for output in outputs:
                yield output
        for output in self._held_text():
            yield output
        self._seen = []
        yield self._state_event("prompt", "your message is typed")
        self._is_prompted = True
        intent, param = _prompt_of(core.intents, text)
        turn = self.terminal.turn(intent, {param: text}, core.recognised_within)
        try:
            async with aclosing(self._watched(turn)) as outputs:
                async for output in outputs:
                    yield output
        except (Refused, NotPermitted) as refused:
            raise AdapterFailed(
                f"nothing was sent to {core.name}: {refused.args[0]}. Look: "
                f"{self.terminal.attach_command}"
            ) from None
        async with aclosing(self._follow(self._reached)) as outputs:
            async for output in outputs:
                yield output

    async def _watched(
        self, work: Coroutine[Any, Any, SeenState]
    ) -> AsyncGenerator[CoreOutput, None]:
        """Yield what the program does and says until the work has its result, in `_reached`. A
        look follows a change of the screen, at most one in `look_seconds`."""
        task = asyncio.create_task(work)
        sequence, drawn = 0, list[dict[str, Any]]()
        try:
            while await self._drew(task, sequence):
                state = await self.terminal.look()
                sequence = state.sequence
                if self.terminal.input_of(state) == "busy":
                    if state.state != self._last_state:
                        yield self._state_event(state.state, state.evidence)
                    # A screen may be half drawn: only what two looks have shown is emitted, and not
                    # the last entry, which grows.
                    before, drawn = drawn, self._said(state)
                    if drawn == self._old:
                        drawn = []  # the turn before, until the program has drawn the prompt
                    both = zip(drawn[:-1], before, strict=False)
                    same = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], both)]
                    for output in self._new_outputs(same):
                        yield output
                    for output in self._held_text():
                        yield output
                await asyncio.wait({task}, timeout=self.core.look_seconds)
            self._reached = await task
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # a look may have failed for the same reason

    async def _drew(self, task: asyncio.Task[SeenState], sequence: int) -> bool:
        """Wait until the program has drawn something since a sequence. False if the task is done
        before."""
        if task.done():
            return False
        drawing = asyncio.create_task(self.terminal.changed(sequence, stable=False))
        try:
            either: set[asyncio.Future[Any]] = {task, drawing}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                with suppress(TerminalGone):  # the next look says why
                    await drawing
            return not task.done()
        finally:
            drawing.cancel()
            await asyncio.wait({drawing})

    async def _follow(
        self, seen: SeenState, *, before: bool = False
    ) -> AsyncGenerator[CoreOutput, None]:
        """Follow the states until a prompt can be sent. With `before`, what the screen says is of
        an earlier turn."""
        is_shown, is_old, last_sequence = False, before, -1
        while True:
            state = seen.state
            if self._note:
                yield events.TextEvent(self._note, _now())
                self._note = ""
            if state.state != self._last_state and not (before and self._is_at_rest(state)):
                yield self._state_event(state.state, state.evidence)
            self._old = self._said(state) if before else self._old
            if seen.matched and not is_old:
                for output in self._new_outputs(without_open_call(self._said(state))):
                    yield output
            if seen.matched and self._is_at_rest(state):
                self._raise_if_failed(state, before=before)
                return
            if seen.matched and (question := self._question(state)) is not None:
                async with aclosing(self._ask(question, state)) as outputs:
                    async for output in outputs:
                        yield output
                answer = await self._answer(question, state)
                if is_old:  # the program goes on with an earlier turn, for this run
                    self._seen, is_old = without_open_call(self._said(state)), False
                work = self._wait() if answer is None else self._type_answer(question, answer)
                is_shown = False
            else:
                # A program that works moves something. If it does not, the state may be wrong.
                if self.terminal.input_of(state) == "busy" and state.sequence != last_sequence:
                    is_shown = False
                elif not is_shown:
                    is_shown = True
                    yield events.TextEvent(await self._unknown_screen(state), _now())
                last_sequence = state.sequence
                work = self._wait()
            async with aclosing(self._watched(work)) as outputs:
                async for output in outputs:
                    yield output
            seen = self._reached

    async def _wait(self) -> SeenState:
        return await self.terminal.wait(self.core.recognised_within)

    def _is_at_rest(self, state: AdapterState) -> bool:
        """Whether the program waits for a prompt, also after an error or with an unsent one."""
        kind = self.terminal.input_of(state)
        if state.state in self.core.intents.ready or state.state in self._closed_panels:
            return True
        return kind == "line" and "asked" not in state.metadata

    def _raise_if_failed(self, state: AdapterState, *, before: bool) -> None:
        if before or self.terminal.input_of(state) != "line":
            return
        if state.state in self.core.intents.ready:
            return
        facts = state.metadata
        given = facts.get("error")
        error: dict[str, Any] = given if isinstance(given, dict) else {}
        why = str(facts.get("error_text") or state.evidence)
        after = error.get("retry_after_s")
        advice = _ADVICE.get(str(error.get("kind")), "send the message again, or look: {attach}")
        when = f" It says to try again in {after} s." if after is not None else ""
        advice = advice.format(attach=self.terminal.attach_command)
        raise AdapterFailed(f"{self.core.name}: {why}.{when} To go on, {advice}")

    # What the program says.

    def _new_outputs(self, said: Sequence[dict[str, Any]]) -> Iterator[CoreOutput]:
        """Yield what was not emitted yet. The newest text is held back, as it may be the answer."""
        for one in unseen(self._seen, said):
            self._seen.append(one)
            yield from self._held_text()
            if "tool" in one:
                yield from self._step_events(one)
            elif one.get("text"):
                cut = f"[the beginning has left the screen; see {self.terminal.attach_command}]\n"
                self._last_text = (cut if one.get("cut") else "") + str(one["text"])

    def _said(self, state: AdapterState) -> list[dict[str, Any]]:
        return said_entries(state.metadata.get(self.core.intents.said))

    def _held_text(self) -> Iterator[CoreOutput]:
        """Yield the text that was held back, as something follows it."""
        if self._last_text is not None:
            yield events.TextEvent(self._last_text, _now())
            self._last_text = None

    def _step_events(self, said: Mapping[str, Any]) -> Sequence[CoreOutput]:
        self._steps += 1
        step, call, tool = f"terminal_{self._steps}", new_id(), str(said["tool"])
        summary = str(said.get("summary", ""))
        args = {"summary": summary, "terminal": self.terminal.name}
        return (
            events.StepStartEvent(step, f"{tool}: {summary}" if summary else tool, self._steps),
            events.ToolCallEvent(tool, args, call),
            events.ToolResultEvent(tool, str(said.get("result", "")), call),
            events.StepCompleteEvent(step, "completed", 0),
        )

    def _state_event(self, state: str, why: str) -> CoreOutput:
        """Return an event for a state, with the terminal's name for programs."""
        name, self._last_state = self.terminal.name, state
        event = {
            "type": "reasoning",
            "content": f"{self.core.name} in the terminal {name}: {state} ({why})",
            "timestamp": _now(),
            "terminal": name,
            "state": state,
        }
        return RawEvent(Raw(msgspec.json.encode(event)))

    # What the program asks.

    def _question(self, state: AdapterState) -> AskedQuestion | None:
        """Return the question of a state; None if nothing in it can be answered from here. Raises
        AdapterFailed for a login, which only a person can do."""
        facts, intents = state.metadata, self.core.intents
        kind = self.terminal.input_of(state)
        place = self.terminal.place
        if "login" in state.state or "login" in facts:
            login = facts.get("login")
            url = login.get("url") if isinstance(login, dict) else None
            where = f" at {url}" if url else ""
            raise AdapterFailed(
                f"{self.core.name} wants a login{where}. Log in on its terminal, and send the "
                f"message again: {self.terminal.attach_command}"
            )
        if kind == "menu" and intents.choose and (dialog := ShownDialog.of(state)) is not None:
            return AskedQuestion(place, dialog=dialog)
        if kind == "key" and intents.dismiss:
            return AskedQuestion(place, panel=state.state)
        if "asked" in facts and intents.answer:
            return AskedQuestion(place, line=str(facts["asked"]))
        return None

    async def _ask(
        self, question: AskedQuestion, state: AdapterState
    ) -> AsyncGenerator[CoreOutput, None]:
        """Show the person what the program shows. `_answer` asks."""
        for output in self._held_text():
            yield output
        dialog = question.dialog
        text = await self.terminal.screen() if dialog is None else dialog.text
        note = f"{self.core.name} asks in the terminal {self.terminal.name} ({state.state}):"
        yield events.TextEvent(f"{note}\n\n{text.strip()}", _now())

    async def _answer(self, question: AskedQuestion, state: AdapterState) -> str | None:
        """Ask the person. None if the question was answered on the terminal meanwhile. Raises
        Unanswered."""
        gone = asyncio.create_task(self._until_gone(question))
        try:
            answer = await self._asked(question, f"{self.core.name}: {subject(state)}", gone)
            answered_there = answer is None and gone.done()
        finally:
            gone.cancel()
            await asyncio.wait({gone})
        if answered_there:
            return None
        if answer is None or (question.panel is not None and answer != "yes"):
            raise Unanswered(
                f"{self.core.name} still waits for an answer, and nothing was typed. Send a "
                f"message to be asked again, or answer there: {self.terminal.attach_command}"
            )
        return answer

    async def _asked(
        self, question: AskedQuestion, title: str, gone: asyncio.Future[None]
    ) -> str | None:
        context, data, dialog = self.context, question_data(question), question.dialog
        if dialog is not None and not dialog.is_yes_or_no:
            items = [PickItem(str(n), label) for n, label in enumerate(dialog.options, 1)]
            return "\n".join(await context.pick(title, items, data=data, gone=gone)) or None
        if question.line is not None:
            return await context.prompt(title, question.line, data=data, gone=gone)
        text = "Close it?" if dialog is None else dialog.text
        confirmed = await context.confirm(title, text, data=data, gone=gone)
        return None if confirmed is None else "yes" if confirmed.ok else "no"

    async def _until_gone(self, question: AskedQuestion) -> None:
        """Wait until the program asks this no longer, for example because a person answered on its
        terminal."""
        # The next look says what happened instead.
        with suppress(AdapterFailed, TerminalProgramEnded, TerminalGone):
            while self._question(now := await self.terminal.look()) == question:
                await self.terminal.changed(now.sequence, stable=True)

    async def _type_answer(self, question: AskedQuestion, answer: str) -> SeenState:
        """Type the answer if what it answers still stands, and wait."""
        intents = self.core.intents
        now = await self.terminal.look()
        if self._question(now) != question:
            return await self._not_typed()
        params: dict[str, Any] = {}
        if (dialog := question.dialog) is not None:
            intent, params = intents.choose, {"option": dialog.option(answer)}
            if dialog.dialog_id:
                params["dialog_id"] = dialog.dialog_id
        elif question.line is not None:
            assert intents.answer_param is not None
            intent, params = intents.answer, {intents.answer_param: answer}
        else:
            intent = intents.dismiss
            self._closed_panels.add(now.state)
        assert intent is not None
        self._is_prompted = True
        try:
            return await self.terminal.turn(intent, params, self.core.recognised_within)
        except Refused as refused:
            if refused.data.get("reason") in _CHANGED:
                return await self._not_typed()
            raise self._kept_back(refused) from None
        except NotPermitted as held:
            raise self._kept_back(held) from None

    def _kept_back(self, why: SessionProblem) -> AdapterFailed:
        return AdapterFailed(
            f"your answer was not typed: {why.args[0]}. Answer there: "
            f"{self.terminal.attach_command}"
        )

    async def _not_typed(self) -> SeenState:
        self._note = (
            "Your answer was not typed: the terminal shows something else by now, perhaps because "
            "the question was answered there."
        )
        return await self._wait()

    async def _unknown_screen(self, state: AdapterState) -> str:
        screen = await self.terminal.screen()
        return (
            f"The adapter of {self.core.name} does not know what to do with this screen "
            f"({state.state}: {state.evidence}), and nothing is typed. Answer it there, or cancel: "
            f"{self.terminal.attach_command}\n\n{screen.rstrip()}"
        )


def _prompt_of(intents: CoreIntents, text: str) -> tuple[str, str]:
    """Return the intent that types a text, and its parameter."""
    if intents.command is not None and text.startswith("/") and "\n" not in text:
        assert intents.command_param is not None
        return intents.command, intents.command_param
    return intents.prompt, intents.prompt_param


def _now() -> int:
    return time.time_ns() // 1_000_000
