"""The TUI of another agent as a core: a program that behaves like one, in terminals of a server."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.ui_side import ALL, an_agent
from telex.adapters.plugin_registry import builtin_plugins
from telex.adapters.protocol import CoreIntents
from telex.agent.cores.adapter_core import AdapterCore
from telex.agent.cores.adapter_screen import unseen
from telex.agent.model_catalogue import ADAPTER, ModelChoice
from telex.agent.terminal_server import TerminalServer
from telex.automation.caller import SharedCaller
from telex.automation.protocol import Lease, Leased
from telex.automation.verb_protocol import METHOD, RunVerb, VerbOutput
from telex.redaction import Redactor
from telex.rpc.identity import AGENT
from telex.server.telex_server import ServerOptions, TelexServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.ui_side import Agent, Message, Ui

FAKE = Path(__file__).parent.parent / "adapters" / "fake_claude.py"
MANIFEST = next(one.manifest for one in builtin_plugins() if one.name == "claude-code")
REPL = msgspec.structs.replace(
    next(one.manifest for one in builtin_plugins() if one.name == "python-repl"),
    core=CoreIntents(
        prompt="evaluate",
        prompt_param="code",
        interrupt="interrupt",
        ready=("prompt", "debugger", "continuation"),
        said="result",
        answer="answer",
        answer_param="text",
    ),
)
RETURNING = {**ALL, "supports_run_attach": True}
YES, NO = {"ok": True}, {"ok": False}


def no_agent() -> Any:
    raise AssertionError("nobody asked for the agent")


class World:
    """A server of terminals with the program `claude` on PATH; agents come and go."""

    def __init__(self, directory: Path, server: TelexServer) -> None:
        self.directory, self.server = directory, server
        self.log = directory / "typed"
        self.log.touch()

    def program(self, *args: str, **knobs: object) -> None:
        """Install `claude`: the fake, with these arguments and knobs."""
        given = {
            "FAKE_LOG": self.log,
            "FAKE_STEP_MS": 5,
            **{f"FAKE_{k.upper()}": v for k, v in knobs.items()},
        }
        lines = [f"export {name}='{value}'" for name, value in given.items()]
        words = f"exec {sys.executable} -S {FAKE} {' '.join(args)}"
        (self.directory / "bin" / "claude").write_text("\n".join(["#!/bin/sh", *lines, words, ""]))
        (self.directory / "bin" / "claude").chmod(0o755)

    @asynccontextmanager
    async def agent(self, **options: Any) -> AsyncIterator[Agent]:
        async def sessions() -> SharedCaller:
            return SharedCaller(self.server.automation.automation, identity=AGENT)

        terminals = TerminalServer(sessions)
        manifest, within = options.pop("manifest", MANIFEST), options.pop("within", 20.0)
        core = AdapterCore(manifest, terminals, recognised_within=within, look_seconds=0.02)
        try:
            async with an_agent(self.directory, ModelChoice(ADAPTER, core), **options) as agent:
                yield agent
        finally:
            await terminals.close()

    def typed(self) -> list[str]:
        """What the program got, after the answer to its first question."""
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [next(iter(one.values())) for one in found][2:]

    def name(self) -> str:
        """The name of the only session."""
        (one,) = self.server.verbs.sessions()
        return one.name

    async def verb(self, *words: str) -> None:
        """Run a verb on the only session, as a person does."""
        caller = SharedCaller(self.server.automation.automation)
        asked = RunVerb(words, "/", {"TELEX_SESSION": self.name()})
        ran = await caller.call(METHOD, asked, VerbOutput)
        assert ran.code == 0, ran
        await caller.close()

    async def sees(self, text: str) -> None:
        await self.verb("wait", text, "--anywhere", "--max", "20s")

    def sessions(self) -> tuple[str, ...]:
        return self.server.automation.automation.session_ids()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose `bin` is on PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


@asynccontextmanager
async def a_world(place: Path, *args: str, **knobs: object) -> AsyncIterator[World]:
    server = TelexServer(ServerOptions(builtin_plugins()), Redactor(), no_agent, lambda: None)
    made = World(place, server)
    made.program(*args, **knobs)
    try:
        yield made
    finally:
        await server.close()


async def begun(ui: Ui, text: str, **more: Any) -> str:
    """Start a run in a new thread, allow the program, and let it trust the folder."""
    run = await ui.start(text, **more)
    question = await ui.until("ui.confirm.request")
    assert "Start claude-code?" in question["params"]["title"]
    assert "/bin/claude\nin /" in question["params"]["message"]
    ui.answer(question, YES)
    question = await ui.until("ui.confirm.request")
    assert "1. Yes, I trust this folder" in question["params"]["message"]
    ui.answer(question, YES)
    return run


def labels(question: Message) -> list[str]:
    return [item["label"] for item in question["params"]["items"]]


def said(ui: Ui, run: str, kind: str = "text") -> str:
    events = [one["event"] for one in ui.events(run)]
    return "\n".join(one["content"] for one in events if one["type"] == kind)


async def until_text(ui: Ui, run: str, part: str) -> str:
    """The next text of a run that contains this."""
    while True:
        event = (await ui.until("agent.event", run_id=run))["params"]["event"]
        if event["type"] == "text" and part in event["content"]:
            return str(event["content"])


async def test_the_program_answers_every_run_of_a_thread_and_asks_by_the_ui(place: Path) -> None:
    """Also a program that is slow, loses an Enter and draws in pieces."""
    async with a_world(place, swallow=1, slow_ms=40, redraw_ms=5) as world, world.agent() as agent:
        ui = await agent.connect(**ALL)
        run = await begun(ui, "hello\nthere")
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "You said 11 characters: hello"
        (name,) = {one["event"]["terminal"] for one in ui.events(run) if "terminal" in one["event"]}
        assert f"telex attach {name}" in said(ui, run)
        assert f"terminal {name}: completed_turn" in said(ui, run, "reasoning")

        run = await ui.start("ask permission")
        question = await ui.until("ui.pick.request")
        assert "claude-code: Bash: ls beds" in question["params"]["title"]
        assert labels(question)[0] == "Yes"
        assert "List the beds" in said(ui, run), "the whole dialog"
        ui.answer(question, {"ids": ["1"]})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "Three files."
        (call,) = [one["event"] for one in ui.events(run) if one["event"]["type"] == "tool_call"]
        assert (call["tool"], call["args"]) == ("Bash", {"summary": "ls beds", "terminal": name})
        assert [one for one in world.typed() if one in "123"] == ["1"]

        run = await ui.start("ask permission again")
        question = await ui.until("ui.pick.request")
        ui.answer(question, {"ids": ["3"]})
        assert await ui.until_ended(run) == "completed"
        assert "Three files" not in ui.final(run)
        assert [one for one in world.typed() if one in "123"] == ["1", "3"]

        run = await ui.start("/model")
        question = await ui.until("ui.pick.request")
        assert labels(question)[1] == "Sonnet"
        ui.answer(question, {"ids": ["2"]})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "Set model to Sonnet 4.5"

        run = await ui.start("/usage")
        question = await ui.until("ui.confirm.request")
        assert "27% used" in said(ui, run)
        ui.answer(question, YES)
        assert await ui.until_ended(run) == "completed"

        run = await ui.start("an error")
        assert await ui.until_ended(run) == "error"
        assert "529 Overloaded" in (why := ui.heard[-1]["params"]["message"])
        assert "try again in 30 s" in why
        assert len(world.sessions()) == 1
    assert world.sessions() == (), "the programs end with the agent"


async def test_a_cancel_interrupts_the_program_and_types_nothing_after(place: Path) -> None:
    async with a_world(place) as world, world.agent() as agent:
        ui = await agent.connect(**ALL)
        run = await begun(ui, "something slow in parts")
        while "thinking" not in (await ui.until("agent.event"))["params"]["event"].get("state", ""):
            pass
        await until_text(ui, run, "First this.")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        await world.sees("Interrupted by user")
        assert world.typed() == ["something slow in parts", "enter", "escape"]
        run = await ui.start("ask permission")
        await ui.until("ui.pick.request")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        await world.sees("What should Claude do instead")
        run = await ui.start("and now")
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "You said 7 characters: and now"


async def test_an_answer_counts_only_for_the_dialog_that_was_shown(place: Path) -> None:
    async with a_world(place) as world, world.agent() as agent:
        ui = await agent.connect(**ALL)
        run = await begun(ui, "ask permission")
        question = await ui.until("ui.pick.request")
        await world.verb("press", "esc")
        assert (await ui.until("ui.request.cancel"))["params"]["id"] == question["id"]
        ui.answer(question, {"ids": ["1"]})
        assert await ui.until_ended(run) == "completed"
        assert world.typed() == ["ask permission", "enter", "escape"]

        run = await ui.start("ask permission")
        ui.answer(await ui.until("ui.pick.request"), {"ids": []})
        assert await ui.until_ended(run) == "completed"
        assert "still waits for an answer" in ui.final(run)
        run = await ui.start("and a plan")
        ui.answer(await ui.until("ui.pick.request"), {"ids": ["1"]})
        question = await ui.until("ui.pick.request")
        assert "Three files." in said(ui, run), "of the turn before, which went on"
        assert labels(question)[2] == "No, keep planning"
        ui.answer(question, {"ids": []})
        assert await ui.until_ended(run) == "completed"
        assert "still waits for an answer, and nothing was typed" in ui.final(run)
        run = await ui.start("go on")
        question = await ui.until("ui.pick.request")
        assert labels(question)[2] == "No, keep planning"
        ui.answer(question, {"ids": ["3"]})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "You said 5 characters: go on"


async def test_an_unknown_screen_goes_to_the_person_and_the_run_waits(place: Path) -> None:
    async with a_world(place) as world, world.agent(within=0.3) as agent:
        fake = (place / "bin" / "claude").read_text()
        (place / "bin" / "claude").write_text(
            fake.replace("exec ", "echo 'A new kind of question?'; read answer; clear\nexec ")
        )
        ui = await agent.connect(**ALL)
        run = await ui.start("hello")
        ui.answer(await ui.until("ui.confirm.request"), YES)
        shown = await until_text(ui, run, "A new kind of question?")
        assert "telex attach claude-code-" in shown
        assert world.log.read_text() == ""
        await world.verb("press", "enter")
        ui.answer(await ui.until("ui.confirm.request"), YES)
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "You said 5 characters: hello"


async def test_a_program_that_does_not_move_is_not_taken_for_a_working_one(place: Path) -> None:
    async with a_world(place, step_ms=3_600_000) as world, world.agent(within=0.3) as agent:
        ui = await agent.connect(**ALL)
        run = await begun(ui, "hello")
        assert "does not know what to do with" in await until_text(ui, run, "Thinking…")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        await world.sees("Interrupted by user")
        holder = SharedCaller(world.server.automation.automation)
        (session,) = world.sessions()
        await holder.call("session.lease", Lease(session=session, holder="Ada"), Leased)
        run = await ui.start("more")
        assert await ui.until_ended(run) == "error"
        assert "Ada holds the lease" in ui.heard[-1]["params"]["message"]
        assert world.typed() == ["hello", "enter", "escape"]
        await holder.close()


async def test_the_end_of_the_program_and_a_login_are_errors_that_say_what_to_do(
    place: Path,
) -> None:
    async with a_world(place) as world, world.agent() as agent:
        ui = await agent.connect(**ALL)
        run = await begun(ui, "/exit")
        assert await ui.until_ended(run) == "error"
        assert "ended with exit code 0" in (why := ui.heard[-1]["params"]["message"])
        assert "Send a message to start it again" in why
        assert world.sessions() == ()
        world.program("--login")
        run = await ui.start("hello")
        assert await ui.until_ended(run) == "error"
        assert "wants a login" in (why := ui.heard[-1]["params"]["message"])
        assert "telex attach claude-code-" in why
        assert "does not know the conversation before" in said(ui, run)


async def test_two_threads_have_two_programs_and_each_is_asked_about(place: Path) -> None:
    async with a_world(place) as world, world.agent(mode="trusted") as agent:
        one, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run = await begun(one, "hello")
        run2 = await begun(other, "hello you")
        assert await one.until_ended(run) == await other.until_ended(run2) == "completed"
        assert one.final(run) == "You said 5 characters: hello"
        assert other.final(run2) == "You said 9 characters: hello you"
        assert len(world.sessions()) == 2
        third = await agent.connect(**ALL)
        run = await third.start("hello")
        third.answer(await third.until("ui.confirm.request"), NO)
        assert await third.until_ended(run) == "completed"
        assert "not started, as you said" in third.final(run)
        silent = await agent.connect()
        run = await silent.start("hello")
        assert await silent.until_ended(run) == "error"
        assert "no UI can ask you" in silent.heard[-1]["params"]["message"]
        assert len(world.sessions()) == 2


@pytest.mark.parametrize("meanwhile", ["nothing", "answered", "closed"])
async def test_an_open_dialog_is_answered_after_a_restart_if_it_still_stands(
    place: Path, meanwhile: str
) -> None:
    async with a_world(place) as world:
        async with world.agent() as agent:
            ui = await agent.connect(**RETURNING)
            run = await begun(ui, "ask permission")
            question = await ui.until("ui.pick.request")
            await ui.leave()
        assert len(world.sessions()) == 1
        if meanwhile == "closed":
            await world.verb("close", world.name())
        elif meanwhile == "answered":
            await world.verb("press", "esc")
            await world.sees("What should Claude do instead")
        async with world.agent() as agent:
            back = await agent.connect(**RETURNING)
            await back.call("run.attach", {"run_id": run})
            again = await back.until("ui.pick.request")
            assert again == question
            back.answer(again, {"ids": ["1"]})
            ended = await back.until_ended(run)
            assert (ended == "error") is (meanwhile == "closed")
            if meanwhile == "closed":
                assert "was not told your answer" in back.heard[-1]["params"]["message"]
            elif meanwhile == "answered":
                assert "Your answer was not typed" in said(back, run)
            else:
                assert back.final(run) == "Three files."
            assert [one for one in world.typed() if one in "123"] == ["1"] * (
                meanwhile == "nothing"
            )
        assert world.sessions() == ()


async def test_any_adapter_with_a_core_in_its_manifest_can_be_used(place: Path) -> None:
    async with a_world(place) as world, world.agent(manifest=REPL, mode="full") as agent:
        ui = await agent.connect(**ALL)
        found = await ui.call("model.list", {"provider": "adapter"})
        assert (found["models"], found["current"]) == (["python-repl"], "python-repl")
        run = await ui.start("6 * 7")
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "42"
        run = await ui.start("input('Your name? ')")
        question = await ui.until("ui.prompt.request")
        assert question["params"]["message"] == "Your name?"
        ui.answer(question, {"value": "Ada"})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run).endswith("'Ada'")


def test_only_what_was_not_said_before_is_emitted() -> None:
    one, two, three = ({"text": word} for word in ("one", "two", "three"))
    cut = {"text": "wo", "cut": True}
    for before, now, new in [
        ([], [one], [one]),
        ([one], [one, two], [two]),
        ([one, two], [one], []),
        ([one, two], [two, three], [three]),
        ([one, two], [cut, three], [three]),
        ([one, two, three], [cut, three], []),
        ([], [cut, three], [cut, three]),
        ([one], [two], [two]),
    ]:
        assert list(unseen(before, now)) == new, (before, now)
