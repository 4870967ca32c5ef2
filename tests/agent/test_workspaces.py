"""One runtime, several workspaces: root and mode belong to the connection and to the run."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent.holding import held
from agent.ui_side import ALL, an_agent
from telex.agent.errors import WorkspaceRefused
from telex.agent.permissions import Mode
from telex.agent.protocol.runs import WorkspaceChoice
from telex.agent.store import Store
from telex.agent.workspace import WorkspacePolicy
from telex.rpc.identity import Identity

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Agent, Ui

RETURNING = {**ALL, "supports_run_attach": True}
HELLO = {"protocol_version": "0", "client": {"name": "a UI", "version": "1"}}
OWNER = Identity("process", "bash", os.getpid(), os.geteuid())
STRANGERS = {
    "nobody known": Identity("unknown"),
    "a token": Identity("token", "ci"),
    "another user": Identity("process", "bash", 1, os.geteuid() + 1),
    "a token that claims a process": Identity("token", pid=1, uid=os.geteuid()),
}


def roots(directory: Path) -> tuple[Path, Path]:
    for name in ("one", "two"):
        (directory / name).mkdir()
    return directory / "one", directory / "two"


async def joined(agent: Agent, root: Path | None = None, mode: str | None = None) -> Ui:
    """A UI of the server's own user, in a workspace that it chose."""
    choice = {"root": root and str(root), "mode": mode}
    return await agent.connect(workspace=choice, identity=OWNER, **RETURNING)


def questions(ui: Ui) -> list[Any]:
    return [message for message in ui.heard if message.get("method") == "ui.confirm.request"]


async def test_two_connections_with_two_roots_and_modes_never_mix(tmp_path: Path) -> None:
    one, two = roots(tmp_path)
    async with an_agent(tmp_path) as agent:
        strict, loose = await joined(agent, one), await joined(agent, two, "trusted")
        asking, acting = await strict.start("write x: 1"), await loose.start("write x: 2")
        question = await strict.until("ui.confirm.request")
        assert await loose.until_ended(acting) == "completed"
        assert (two / "x").read_text() == "2"
        assert not (one / "x").exists()
        strict.answer(question, {"ok": True})
        assert await strict.until_ended(asking) == "completed"
        assert (one / "x").read_text() == "1"
        assert questions(loose) == []


async def test_calls_outside_a_run_use_the_workspace_of_their_connection(tmp_path: Path) -> None:
    one, two = roots(tmp_path)
    (one / "only-one").touch()
    async with an_agent(tmp_path) as agent:
        here, there = await joined(agent, one), await joined(agent, two, "full")
        call = {"tool": "write", "arguments": {"file_path": "x", "content": ""}}
        assert (await here.call("permission.explain", call))["decision"] == "ask"
        assert (await there.call("permission.explain", call))["decision"] == "allow"
        for ui, seen in ((here, "only-one"), (there, "")):
            listed = await ui.call("tool.call", {"name": "list", "arguments": {"pattern": "*"}})
            assert ("only-one" in str(listed["result"])) is bool(seen)
            assert (await ui.call("shell.exec", {"command": "ls"}))["stdout"].strip() == seen
        outside = {"tool": "read", "arguments": {"file_path": str(one / "only-one")}}
        assert (await there.refusal("permission.explain", outside)).code == -32602
        inspected = await there.call("context.inspect", {})
        assert inspected["runtime_sandbox_root"] == str(two)


async def test_connections_with_equal_settings_share_a_workspace(tmp_path: Path) -> None:
    one, _ = roots(tmp_path)
    async with an_agent(tmp_path) as agent:
        opened = [
            await agent.runtime.open_workspace(WorkspaceChoice(str(one), mode), OWNER)
            for mode in ("minimal", "minimal", "trusted")
        ]
        assert opened[0] is opened[1]
        assert opened[0] is not opened[2]


async def test_initialize_says_which_workspace_it_chose(tmp_path: Path) -> None:
    one, _ = roots(tmp_path)
    async with an_agent(tmp_path, mode="trusted") as agent:
        answer = await agent.raw().call("initialize", HELLO)
        root = str(agent.root)
        chosen = {"root": root, "cwd": root, "mode": "trusted", "trusted": False}
        assert answer["workspace"] == chosen
        assert answer["server_capabilities"]["supports_workspace"] is True
        choice = {"root": f"{one}/../one", "mode": "full"}
        answer = await agent.raw(OWNER).call("initialize", {**HELLO, "workspace": choice})
        chosen = {"root": str(one), "cwd": str(one), "mode": "full", "trusted": False}
        assert answer["workspace"] == chosen


async def test_an_answer_is_remembered_for_the_root_in_every_mode(tmp_path: Path) -> None:
    one, two = roots(tmp_path)
    async with an_agent(tmp_path) as agent:
        first, other_mode = await joined(agent, one), await joined(agent, one, "trusted")
        run = await first.start("write done: 1")
        question = await first.until("ui.confirm.request")
        first.answer(question, {"ok": False, "remember": True, "reason": "no"})
        await first.until_ended(run)
        for ui, refused in ((other_mode, True), (await joined(agent, two, "trusted"), False)):
            run = await ui.start("write done: 1")
            await ui.until_ended(run)
            assert ("the user refused this before" in ui.final(run)) is refused


async def test_an_answer_that_is_remembered_while_another_ui_connects_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("write done: 1")
        question = await ui.until("ui.confirm.request")
        read = held(monkeypatch, Store, "decisions", done=True)
        connecting = asyncio.create_task(agent.connect(**ALL))
        await read.reached.wait()
        ui.answer(question, {"ok": False, "remember": True, "reason": "no"})
        await ui.until_ended(run)
        read.open()
        other = await connecting
        run = await other.start("write done: 1")
        await other.until_ended(run)
        assert "the user refused this before" in other.final(run)


# Which workspace a connection may have.


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("own", ["minimal", "trusted", "full"])
@pytest.mark.parametrize("asked", ["minimal", "trusted", "full"])
def test_a_stranger_gets_no_weaker_mode_than_the_server(
    tmp_path: Path, stranger: str, own: str, asked: str
) -> None:
    policy = WorkspacePolicy(Mode(own), tmp_path)
    order = ["minimal", "trusted", "full"]
    choice = WorkspaceChoice(mode=asked)  # type: ignore[arg-type]  # one of the three
    if order.index(asked) > order.index(own):
        with pytest.raises(WorkspaceRefused, match=f"{asked} is weaker than {own}"):
            policy.choose(choice, STRANGERS[stranger])
    else:
        assert policy.choose(choice, STRANGERS[stranger]).mode == asked
    assert policy.choose(choice, OWNER).mode == asked
    assert policy.choose(WorkspaceChoice(), STRANGERS[stranger]).mode == own


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_gets_no_wider_root_than_the_server(tmp_path: Path, stranger: str) -> None:
    one, two = roots(tmp_path)
    (one / "inner").mkdir()
    (one / "link").symlink_to(two)
    policy = WorkspacePolicy(root=one)
    for inside in (one, one / "inner"):
        choice = WorkspaceChoice(str(inside))
        assert policy.choose(choice, STRANGERS[stranger]).root == str(inside)
    for outside in (two, tmp_path, one / "link", one / ".." / "two", f"{one}-"):
        os.makedirs(outside, exist_ok=True)
        choice = WorkspaceChoice(str(outside))
        with pytest.raises(WorkspaceRefused, match=f"is outside {one}, the root of this server"):
            policy.choose(choice, STRANGERS[stranger])
        assert policy.choose(choice, OWNER).root == os.path.realpath(outside)


async def test_a_refused_workspace_opens_nothing_and_another_one_may_be_named(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw(STRANGERS["a token"])
        first = ui.send("initialize", {**HELLO, "workspace": {"mode": "full"}})
        later = ui.send("shell.exec", {"command": "touch ran"})
        with pytest.raises(Exception, match=r"-32602: .*full is weaker than minimal"):
            await ui.reply(first)
        with pytest.raises(Exception, match=r"-32600: .*only after 'initialize'"):
            await ui.reply(later)
        assert (await ui.refusal("session.list")).code == -32600
        assert (await ui.call("initialize", HELLO))["workspace"]["mode"] == "minimal"
        assert list(agent.root.iterdir()) == []


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ("relative", "is not an absolute path"),
        ("", "is not an absolute path"),
        ("/no/such/directory", "No such file or directory"),
        ("/etc/passwd", "is not a directory"),
        ("/\0", "no path"),
    ],
)
async def test_a_root_that_is_no_directory_is_refused(tmp_path: Path, root: str, why: str) -> None:
    async with an_agent(tmp_path) as agent:
        hello = {**HELLO, "workspace": {"root": root}}
        refused = await agent.raw(OWNER).refusal("initialize", hello)
        assert refused.code == -32602
        assert why in refused.message


async def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        hello = {**HELLO, "workspace": {"mode": "yolo"}}
        assert (await agent.raw(OWNER).refusal("initialize", hello)).code == -32602


async def test_a_server_without_a_root_uses_the_directory_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = roots(tmp_path)
    (one / ".git").mkdir()
    (one / "src").mkdir()
    async with an_agent(tmp_path, policy=WorkspacePolicy()) as agent:
        monkeypatch.chdir(one / "src")
        answer = await agent.raw(OWNER).call("initialize", HELLO)
        assert (answer["workspace"]["root"], answer["workspace"]["cwd"]) == (
            str(one),
            str(one / "src"),
        )
        monkeypatch.chdir(two)
        answer = await agent.raw(OWNER).call("initialize", HELLO)
        assert answer["workspace"]["root"] == str(two)
        two.rmdir()
        refused = await agent.raw(OWNER).refusal("initialize", HELLO)
        assert refused.code == -32602
        assert "name a directory that exists" in refused.message
        two.mkdir()
        for stranger in STRANGERS.values():
            refused = await agent.raw(stranger).refusal("initialize", HELLO)
            assert refused.code == -32602
            assert '"workspace": {"root":' in refused.message
            choice = {"workspace": {"root": str(two)}}
            answer = await agent.raw(stranger).call("initialize", {**HELLO, **choice})
            assert answer["workspace"]["root"] == str(two)


# Sessions and runs keep their root.


async def test_a_session_is_not_continued_from_another_root(tmp_path: Path) -> None:
    one, two = roots(tmp_path)
    text = {"input": {"type": "text", "text": "write x: 1"}}
    async with an_agent(tmp_path, mode="trusted") as agent:
        here, there = await joined(agent, one), await joined(agent, two)
        started = await here.call("run.start", text)
        await here.until_ended(started["run_id"])
        again = {**text, "session_id": started["session_id"]}
        refused = await there.refusal("run.start", again)
        assert refused.code == -32602
        assert f"belongs to the root {one}, and this connection has the root {two}" in (
            refused.message
        )
        assert not (two / "x").exists()
        same = await joined(agent, one, "full")
        assert (await same.call("run.start", again))["session_id"] == started["session_id"]


async def test_a_session_whose_root_is_gone_continues_elsewhere(tmp_path: Path) -> None:
    one, two = roots(tmp_path)
    text = {"input": {"type": "text", "text": "help"}}
    async with an_agent(tmp_path) as agent:
        here, there = await joined(agent, one), await joined(agent, two)
        started = await here.call("run.start", text)
        await here.until_ended(started["run_id"])
        one.rename(tmp_path / "moved")
        again = await there.call("run.start", {**text, "session_id": started["session_id"]})
        assert await there.until_ended(again["run_id"]) == "completed"


async def test_a_run_is_resumed_in_its_own_root_and_mode_by_any_connection(
    tmp_path: Path,
) -> None:
    one, two = roots(tmp_path)
    async with an_agent(tmp_path) as agent:
        ui = await joined(agent, one, "trusted")
        run = await ui.start("ask first\nwrite x: 1\nrun touch y")
        await ui.until("ui.prompt.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        back = await joined(agent, two, "full")
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.prompt.request"), {"value": "1"})
        question = await back.until("ui.confirm.request")  # mode full would not ask
        assert (one / "x").read_text() == "1"  # mode minimal would ask
        back.answer(question, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (one / "y").exists()
        assert list(two.iterdir()) == []


@pytest.mark.parametrize("linked", [False, True])
async def test_a_run_whose_root_is_gone_is_not_resumed_elsewhere(
    tmp_path: Path, linked: bool
) -> None:
    one, two = roots(tmp_path)
    async with an_agent(tmp_path) as agent:
        ui = await joined(agent, one)
        run = await ui.start("run touch x")
        await ui.until("ui.confirm.request")
        await ui.leave()
    one.rename(tmp_path / "moved")
    if linked:
        one.symlink_to(two)
    async with an_agent(tmp_path) as agent:
        back = await joined(agent, two, "full")
        assert (await back.call("run.attach", {"run_id": run}))["status"] == "awaiting_ui"
        await back.settle()
        assert questions(back) == []
        assert list(two.iterdir()) == []


async def test_an_attached_run_keeps_its_workspace(tmp_path: Path) -> None:
    one, two = roots(tmp_path)
    async with an_agent(tmp_path) as agent:
        ui, other = await joined(agent, one), await joined(agent, two, "full")
        run = await ui.start("run touch x\nrun touch y")
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        await ui.until("ui.confirm.request")
        await other.call("run.attach", {"run_id": run})
        await ui.leave()
        other.answer(await other.until("ui.confirm.request"), {"ok": True})
        assert await other.until_ended(run) == "completed"
        assert sorted(path.name for path in one.iterdir()) == ["x", "y"]
        assert list(two.iterdir()) == []


# The store.


async def test_the_store_is_opened_by_the_first_initialize(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        assert (await ui.refusal("session.list")).code == -32600
        assert not (tmp_path / "state").exists()
        await ui.call("initialize", HELLO)
        assert (tmp_path / "state" / "telex.db").exists()
