"""Checks that prevent the effect of a mistake: each test fails if one check is removed."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.cores import ContextLeft
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.permissions import Permission, RuleLayer, ToolRule
from telex.agent.permissions.confirmation import AllowedCall
from telex.agent.protocol.events import FinalEvent, TextEvent
from telex.agent.store import transactions
from telex.agent.tools.todo import TodoList

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from agent.ui_side import Message, Ui
    from telex.agent.cores import CoreContext, CoreOutput, RunInput


def of(ui: Ui, method: str) -> list[Message]:
    return [message for message in ui.heard if message.get("method") == method]


# A UI gets no message whose capability it did not announce.


async def test_a_ui_without_supports_todos_gets_no_todos(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        plain, full = await agent.connect(), await agent.connect(**ALL)
        for ui, count in ((plain, 0), (full, 1)):
            assert await ui.until_ended(await ui.start("todo bread")) == "completed"
            assert len(of(ui, "todos.update")) == count


async def test_a_ui_without_supports_request_cancel_gets_no_cancel(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(supports_confirm=True)
        run = await ui.start("run touch done")
        await ui.until("ui.confirm.request")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        assert of(ui, "ui.request.cancel") == []


class Waiting:
    """A core that emits a text, waits for the test, and asks a question."""

    name = "waiting"
    details = BuiltinCore.details

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        yield TextEvent("about this")
        await self.go_on.wait()
        yield FinalEvent(f"{await context.prompt('Who?', '')}")


async def test_a_ui_whose_input_ended_is_not_asked_and_receives_the_end(tmp_path: Path) -> None:
    core = Waiting()
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until("agent.event")
        ui.finish()
        await ui.settle()
        core.go_on.set()
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "None"
        assert of(ui, "ui.prompt.request") == []


# The order of questions, notifications and the end.


async def test_a_question_that_could_not_be_stored_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = transactions.append_event

    def full(state: Any, run_id: str, event: bytes, *rest: Any) -> int:
        if b"about this" not in event:
            return append(state, run_id, event, *rest)
        problem = sqlite3.OperationalError("database or disk is full")
        problem.sqlite_errorcode, problem.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
        raise problem

    monkeypatch.setattr(transactions, "append_event", full)
    monkeypatch.setattr("telex.agent.store.writer.STORE_COMMIT_WRITES", 1)  # one write in a commit
    core = Waiting()
    core.go_on.set()
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "error"
        assert of(ui, "ui.prompt.request") == []
        assert await agent.runtime.store.pending() == []


async def test_a_run_ends_only_after_its_events_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, reached, go_on = transactions.append_event, threading.Event(), threading.Event()

    def slow(*given: Any) -> int:
        reached.set()
        go_on.wait(60)
        return append(*given)

    monkeypatch.setattr(transactions, "append_event", slow)
    async with an_agent(tmp_path, Waiting()) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run = await ui.start("go")
        assert await asyncio.to_thread(reached.wait, 10)
        cancel = ui.send("run.cancel", {"run_id": run})
        await ui.settle()
        assert (await other.call("run.attach", {"run_id": run}))["status"] == "running"
        go_on.set()
        assert (await ui.reply(cancel))["ok"] is True
        for one in (ui, other):
            assert await one.until_ended(run) == "cancelled"
            assert one.kinds(run) == ["text"]
        assert ui.statuses(run) == ["running", "cancelled"]
        assert other.statuses(run) in (["running", "cancelled"], ["cancelled"])  # attached later


class Counting:
    """A core that reports the context left, after each of its texts if it has any."""

    name = "counting"
    details = BuiltinCore.details

    def __init__(self, texts: int) -> None:
        self._texts = texts

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        for number in range(40):
            if number < self._texts:
                yield TextEvent(str(number))
            yield ContextLeft(99 - number)
        yield FinalEvent("done")


@pytest.mark.parametrize("texts", [40, 0])
async def test_the_queue_of_a_ui_that_does_not_read_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: int
) -> None:
    """Events beyond the limit are read from the store later; of other notices only the latest is
    kept."""
    monkeypatch.setattr("telex.agent.feeds.AGENT_FEED_ITEMS", 8)
    async with an_agent(tmp_path, Counting(texts)) as agent:
        slow, quick = await agent.connect(**ALL), await agent.connect(**ALL)
        peer, reading = next(iter(agent.server._connections)), asyncio.Event()
        notify = peer.notify

        async def held(method: str, params: object) -> None:
            await reading.wait()
            await notify(method, params)

        monkeypatch.setattr(peer, "notify", held)
        run = await slow.start("go")
        await quick.call("run.attach", {"run_id": run})
        assert await quick.until_ended(run) == "completed"
        reading.set()
        assert await slow.until_ended(run) == "completed"
        assert [params["seq"] for params in slow.events(run)] == list(range(texts + 1))
        left = [message["params"]["context_left_percent"] for message in of(slow, "run.context")]
        assert left[-1] == 60
        assert len(left) <= 9


# Permissions.


async def test_an_unasked_command_gets_an_environment_that_does_not_change_its_meaning(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    """bash runs no file that a variable names, and no `ls` of the workspace instead of the system's."""
    program("bash")
    async with an_agent(tmp_path) as agent:
        own, first = agent.root / "bin" / "ls", agent.root / "first"
        own.parent.mkdir()
        own.write_text("#!/bin/sh\ntouch own-ran\n")
        own.chmod(0o755)
        first.write_text("touch first-ran\n")
        workspace = await agent.workspace()
        workspace.context.environment = {
            "PATH": f"{own.parent}:{os.environ['PATH']}",
            "BASH_ENV": str(first),
            "ENV": str(first),
        }
        ui = await agent.connect(**ALL)
        run = await ui.start("run ls")
        assert await ui.until_ended(run) == "completed"
        assert of(ui, "ui.confirm.request") == []
        assert ui.final(run).split() == ["bin", "first"]
        assert sorted(os.listdir(agent.root)) == ["bin", "first"]


@pytest.mark.parametrize("is_asked", [False, True])
async def test_only_an_approved_command_gets_variables_that_change_programs(
    tmp_path: Path, is_asked: bool
) -> None:
    acting = {"GIT_EXTERNAL_DIFF": "a", "LD_AUDIT": "", "LESSOPEN": "b", "PYTHONPATH": "c"}
    async with an_agent(tmp_path, mode="minimal" if is_asked else "full") as agent:
        workspace = await agent.workspace()
        workspace.context.environment = {"PATH": os.environ["PATH"], "X": "x", **acting}
        ui = await agent.connect(**ALL)
        run = await ui.start("run printenv")
        if is_asked:
            ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert of(ui, "ui.confirm.request") == [] or is_asked
        has = {line.partition("=")[0] for line in ui.final(run).splitlines()}
        assert has & {"X", *acting} == ({"X", *acting} if is_asked else {"X"})


@pytest.mark.parametrize("answer", [{"ok": True}, {"ok": False, "reason": "no"}])
async def test_a_rule_that_was_not_offered_is_not_remembered(
    tmp_path: Path, answer: dict[str, object]
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "it").write_text("touch done\n")
        ui = await agent.connect(**ALL)
        for _ in range(2):
            run = await ui.start("run sh it")
            question = await ui.until("ui.confirm.request")
            assert not question["params"].get("allow_remember")
            ui.answer(question, {**answer, "remember": True})
            assert await ui.until_ended(run) == "completed"
        assert await agent.runtime.store.decisions() == []
        assert (agent.root / "done").exists() is answer["ok"]


@pytest.mark.parametrize(
    ("ids", "chosen"),
    [
        (["7", "2"], "You chose: b"),
        (["7"], "No choice."),
        (["2", "1"], "You chose: b"),
    ],
    ids=["one of them unknown", "unknown", "several"],
)
async def test_the_first_offered_item_of_a_pick_counts(
    tmp_path: Path, ids: list[str], chosen: str
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("pick a, b")
        ui.answer(await ui.until("ui.pick.request"), {"ids": ids})
        await ui.until_ended(run)
        assert ui.final(run) == chosen


async def test_signing_out_is_refused_while_a_run_is_active(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("ask x")
        await ui.until("ui.prompt.request")
        assert (await ui.refusal("auth.logout", {})).code == -32001
        assert of(ui, "ui.confirm.request") == []
        await ui.call("run.cancel", {"run_id": run})
        logout = ui.send("auth.logout", {})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        assert (await ui.reply(logout))["ok"] is True


@pytest.mark.parametrize("link", [False, True])
async def test_a_command_of_the_person_starts_inside_the_sandbox(
    tmp_path: Path, link: bool
) -> None:
    async with an_agent(tmp_path) as agent:
        ui, cwd = await agent.connect(), ".."
        if link:
            (agent.root / "out").symlink_to("..")
            cwd = "out"
        refused = await ui.refusal("shell.exec", {"command": "touch done", "cwd": cwd})
        assert refused.code == -32602
        assert "outside" in refused.message
        assert not (tmp_path / "done").exists()


async def test_a_file_that_changed_after_its_preview_is_not_overwritten(tmp_path: Path) -> None:
    """Also if the change would still apply, and if the file did not exist."""
    steps = [
        ScriptStep(tool="edit", arguments={"file_path": "a", "old_string": "1", "new_string": "2"}),
        ScriptStep(tool="write", arguments={"file_path": "b", "content": "ours"}),
    ]
    async with an_agent(tmp_path, ScriptedCore("s", steps)) as agent:
        (agent.root / "a").write_text("1")
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        for name, theirs in (("a", "1 and more"), ("b", "theirs")):
            question = await ui.until("ui.confirm.request")
            (agent.root / name).write_text(theirs)
            ui.answer(question, {"ok": True})
            await ui.until("agent.event")
            assert (await ui.until("agent.event"))["params"]["event"]["type"] == "step_complete"
            assert (agent.root / name).read_text() == theirs
        assert await ui.until_ended(run) == "completed"


@pytest.mark.parametrize("mode", ["minimal", "full"])
@pytest.mark.parametrize("has_rule", [False, True])
async def test_only_read_only_commands_get_a_git_that_runs_no_programs(
    tmp_path: Path, mode: str, has_rule: bool
) -> None:
    """A `git push` that a rule or the mode allows needs ssh and its hooks."""
    async with an_agent(tmp_path, mode=mode) as agent:
        workspace = await agent.workspace()
        confirmer = workspace.confirmer
        call = workspace.tools.prepare("shell", {"command": "ls"})
        context = workspace.context.tool_context(TodoList())
        if has_rule:
            rule = ToolRule(Permission.ALLOW, "shell", command=("ls",))
            confirmer.permissions.layers = [RuleLayer("user", (rule,))]
        verdict = await confirmer.confirm(call, context)
        assert isinstance(verdict, AllowedCall)
        restricted = "GIT_CONFIG_COUNT" in verdict.context.environment
        assert restricted == (mode == "minimal" and not has_rule)
