"""Questions about permission: the text shown, which answers count, and that nothing runs without one."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, HALF_CLOSED, an_agent
from telex.agent import PeerInfo, UiConfirmResult, connect
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.permissions import Permission, PermissionRequest
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions
from telex.agent.store import Store
from telex.processes.shielded import run_in_thread
from telex.transports import unix

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.ui_side import Agent, Message, Ui
    from telex.rpc.channel import Channel

pytestmark = pytest.mark.usefixtures("every_transport")

TOUCH = "run touch done"


def ran(agent: Agent) -> bool:
    return (agent.root / "done").exists()


def last_result(ui: Ui, run: str) -> str:
    """Return the result of the run's last tool."""
    events = [params["event"] for params in ui.events(run)]
    return str([event for event in events if event["type"] == "tool_result"][-1]["result"])


async def asked(ui: Ui, text: str = TOUCH) -> tuple[str, Message]:
    run = await ui.start(text)
    return run, await ui.until("ui.confirm.request")


async def test_an_allowed_command_runs_between_awaiting_and_running(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui)
        params = question["params"]
        assert question["id"].startswith("ui_")
        assert params["run_id"] == run
        assert params["title"] == "Run command?"
        assert params["message"].startswith('| touch done\nin "')
        assert (params["confirm_label"], params["cancel_label"]) == ("Allow", "Deny")
        assert ui.statuses(run) == ["running", "awaiting_ui"]
        assert ui.kinds(run)[-1] == "permission.ready"
        assert not ran(agent)
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert ui.statuses(run) == ["running", "awaiting_ui", "running", "completed"]
        assert ran(agent)


async def test_a_change_is_shown_before_the_question(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a").write_text("one\ntwo\n")
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "edit a: two => three")
        preview = ui.events(run)[-2]["event"]
        assert preview["type"] == "permission.preview"
        assert "-two" in preview["diff"]
        assert "+three" in preview["diff"]
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert (agent.root / "a").read_text() == "one\nthree\n"
        diff = await ui.call("run.diff", {"run_id": run})
        assert [file["path"] for file in diff["files"]] == ["a"]


async def test_only_the_call_that_was_shown_can_run(tmp_path: Path) -> None:
    """The file changes between the question and the answer."""
    async with an_agent(tmp_path) as agent:
        (agent.root / "a").write_text("two")
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "edit a: two => three")
        (agent.root / "a").write_text("two, and text that was not shown")
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert (agent.root / "a").read_text() == "two, and text that was not shown"
        assert "is not the expected file" in ui.final(run)


def swap(agent: Agent, link: str, target: str) -> None:
    (agent.root / link).unlink()
    (agent.root / link).symlink_to(target)


def a_link(agent: Agent) -> None:
    """`l` is a link to `good`; `bad` has the same content."""
    for name in ("good", "bad"):
        (agent.root / name).mkdir()
        (agent.root / name / "c").write_text("two")
        (agent.root / name / "run.sh").write_text("touch ran\n")
    (agent.root / "l").symlink_to("good")


@pytest.mark.parametrize(
    ("tool", "arguments", "made"),
    [
        ("write", {"file_path": "l/new", "content": "x"}, "new"),
        ("edit", {"file_path": "l/c", "old_string": "two", "new_string": "x"}, "c"),
        ("shell", {"command": "touch new", "cwd": "l"}, "new"),
    ],
)
async def test_a_yes_counts_for_the_place_that_was_shown(
    tmp_path: Path, tool: str, arguments: dict[str, object], made: str
) -> None:
    """The link changes while the question is open: the call uses the old target only."""
    core = ScriptedCore(
        "s", [ScriptStep(tool=tool, arguments=arguments), ScriptStep(final="{last}")]
    )
    async with an_agent(tmp_path, core) as agent:
        a_link(agent)
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        assert f"{agent.root}/good" in question["params"]["message"]
        assert 'The path "l' in question["params"]["message"]
        swap(agent, "l", "bad")
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert (agent.root / "good" / made).read_text() != "two"
        assert (agent.root / "bad" / made).exists() == (made == "c")
        assert (agent.root / "bad" / "c").read_text() == "two"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"file_path": "good/new", "content": "x"}),
        ("shell", {"command": "touch new", "cwd": "good"}),
    ],
)
async def test_a_path_that_became_a_link_after_the_question_is_refused(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    core = ScriptedCore(
        "s", [ScriptStep(tool=tool, arguments=arguments), ScriptStep(final="{last}")]
    )
    async with an_agent(tmp_path, core) as agent:
        a_link(agent)
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        (agent.root / "good").rename(agent.root / "away")
        (agent.root / "good").symlink_to("bad")
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert "now; nothing was done" in ui.final(run)
        assert not list(agent.root.glob("*/new"))


@pytest.mark.parametrize(
    "command", ["sh good/run.sh", "cd good && sh run.sh", "sh < good/run.sh", "sh l/run.sh"]
)
async def test_a_script_that_changed_after_the_question_does_not_run(
    tmp_path: Path, command: str
) -> None:
    async with an_agent(tmp_path) as agent:
        a_link(agent)
        ui = await agent.connect(**ALL)
        for change in (None, "touch other\n"):
            run, question = await asked(ui, f"run {command}")
            if change is not None:
                (agent.root / "good" / "run.sh").write_text(change)
            ui.answer(question, {"ok": True})
            await ui.until_ended(run)
        assert 'run.sh" has changed since the question; nothing was run' in ui.final(run)
        assert list(agent.root.rglob("ran"))
        assert not list(agent.root.rglob("other"))


async def test_a_script_named_in_one_word_with_its_option_is_bound_too(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "p.awk").write_text("BEGIN { print }")
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "run awk -fp.awk")
        (agent.root / "p.awk").write_text('BEGIN { system("touch done") }')
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert 'p.awk" has changed since the question; nothing was run' in ui.final(run)
        assert not ran(agent)


LED_ELSEWHERE = ["cp good/c d/", "cp good/c ./d", "echo evil > d/c", "echo evil >> o"]


@pytest.mark.parametrize("command", LED_ELSEWHERE)
async def test_a_yes_does_not_count_if_paths_of_a_command_lead_elsewhere_later(
    tmp_path: Path, command: str
) -> None:
    async with an_agent(tmp_path) as agent:
        a_link(agent)
        (agent.root / "d").mkdir()
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, f"run {command}")
        assert "leads to" not in question["params"]["message"]
        (agent.root / "d").rmdir()
        (agent.root / "d").symlink_to("bad")
        (agent.root / "o").symlink_to(tmp_path / "outside")
        (agent.root / "bad" / "c").unlink()
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert "now; nothing was done" in ui.final(run)
        assert not (agent.root / "bad" / "c").exists()
        assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("command", [*LED_ELSEWHERE, "rm -rf d/", "cd d && cp a b", "tar -Cd"])
async def test_a_question_shows_where_paths_of_a_command_lead(tmp_path: Path, command: str) -> None:
    async with an_agent(tmp_path) as agent:
        a_link(agent)
        (agent.root / "d").symlink_to("bad")
        (agent.root / "o").symlink_to(tmp_path / "outside")
        ui = await agent.connect(**ALL)
        _, question = await asked(ui, f"run {command} 2> /dev/stderr")
        said = question["params"]["message"]
        name, place = ("o", tmp_path / "outside") if " o" in command else ("d", agent.root / "bad")
        assert f'The command names "{agent.root}/{name}' in said
        assert f'which leads to "{place}' in said
        assert "names /dev" not in said


async def test_the_content_of_a_file_that_is_only_written_may_change(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "run echo mine >> log")
        (agent.root / "log").write_text("another's\n")
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert (agent.root / "log").read_text() == "another's\nmine\n"


async def test_a_call_that_would_fail_for_its_path_is_not_asked_about(tmp_path: Path) -> None:
    for mode in ("minimal", "full"):
        async with an_agent(tmp_path, mode=mode) as agent:
            ui = await agent.connect(**ALL)
            run = await ui.start("read /etc/hostname")
            assert await ui.until_ended(run) == "completed"
            assert "is outside the sandbox root" in ui.final(run)


async def test_the_question_about_a_change_shows_a_diff(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a").write_text("one\n" + " " * 12 + "two\n\n")
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "edit a: two => three")
        message, why = question["params"]["message"].split("\n\nWhy you are asked: ")
        indent = " " * 12
        assert message == (
            f'Edit "a" in 1 place:\n| @@ -1,3 +1,3 @@\n|  one\n| -{indent}two\n| +{indent}three\n|  '
        )
        ui.answer(question, {"ok": False})
        await ui.until_ended(run)
        run, question = await asked(ui, "write b: hello")
        message, why = question["params"]["message"].split("\n\nWhy you are asked: ")
        assert message.startswith('Write "b", 5 bytes, a new file:\n| +hello\n')
        assert why.startswith("mode minimal asks before ")
        ui.answer(question, {"ok": False})
        await ui.until_ended(run)


async def test_a_change_too_large_for_a_diff_is_shown_whole(tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(500)) + "x" * 5000
    core = ScriptedCore(
        "s", [ScriptStep(tool="write", arguments={"file_path": "a", "content": content})]
    )
    async with an_agent(tmp_path, core) as agent:
        (agent.root / "a").write_text("before\n")
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        rows = question["params"]["message"].split("\n")
        assert [row[3:] for row in rows if row.startswith("| +")] == content.split("\n")
        await ui.call("run.cancel", {"run_id": run})


async def test_an_answer_with_another_digest_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from telex.agent.permissions import confirmation

    made = iter(["shown", "something else"])
    monkeypatch.setattr(confirmation, "_digest", lambda *_: next(made))
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui)
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        assert not ran(agent)


async def test_a_no_with_a_reason_continues_and_a_no_without_stops_the_turn(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s",
        [
            ScriptStep(tool="shell", arguments={"command": "touch done"}),
            ScriptStep(final="went on: {last}"),
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        ui.answer(question, {"ok": False, "reason": "use mkdir"})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "went on: Permission denied: use mkdir"
        for answer in ({"ok": False}, {"ok": False, "reason": "  "}):
            run, question = await asked(ui, "go")
            ui.answer(question, answer)
            assert await ui.until_ended(run) == "completed"
            assert "Turn stopped" in ui.final(run)
            assert ui.kinds(run)[-3:] == ["tool_result", "step_complete", "final"]
        assert not ran(agent)


@pytest.mark.parametrize("capabilities", [{}, {"supports_prompt": True, "supports_pick": True}])
async def test_a_call_that_needs_a_question_is_denied_if_no_ui_can_be_asked(
    tmp_path: Path, capabilities: dict[str, bool]
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**capabilities)
        run = await ui.start(TOUCH)
        assert await ui.until_ended(run) == "completed"
        assert 'no user can be asked here; "touch" is not a known read-only' in ui.final(run)
        assert not [m for m in ui.heard if "id" in m and "method" in m]
        assert not ran(agent)


async def test_prompt_and_pick_are_not_sent_to_a_ui_without_them(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(supports_confirm=True)
        run = await ui.start("ask your name\npick a, b")
        await ui.until_ended(run)
        assert ui.final(run) == "No answer.\nNo choice."
        full = await agent.connect(**ALL)
        run = await full.start("ask your name\npick a, b")
        full.answer(await full.until("ui.prompt.request"), {"value": "Ada"})
        full.answer(await full.until("ui.pick.request"), {"ids": ["2", "7"]})
        await full.until_ended(run)
        assert full.final(run) == "You said: Ada\nYou chose: b"
        run = await full.start("ask your name\npick a, b")
        full.answer(await full.until("ui.prompt.request"), {"value": None})
        full.answer(await full.until("ui.pick.request"), {"ids": []})
        await full.until_ended(run)
        assert full.final(run) == "No answer.\nNo choice."


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32601, "message": "what?"}},
        {"result": None},
        {"result": {"ok": "yes"}},
        {"result": {}},
        {"result": True},
        {"result": {"ok": True}, "error": {"code": 1, "message": "both"}},
    ],
    ids=["error", "null", "text", "empty", "true", "both"],
)
async def test_an_error_or_an_invalid_answer_counts_as_no_answer_and_nothing_runs(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui)
        ui.say({"jsonrpc": "2.0", "id": question["id"], **answer})
        assert await ui.until_ended(run) == "completed"
        assert not ran(agent)
        assert last_result(ui, run) == "Permission denied: the question was not answered"
        run, question = await asked(ui)
        ui.answer(question, {"ok": False})
        await ui.until_ended(run)
        assert last_result(ui, run) == "Permission denied: the user refused"


async def test_a_disconnected_ui_counts_as_a_no(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect()
        run, _ = await asked(ui)
        await other.call("run.attach", {"run_id": run})
        await ui.leave()
        assert await other.until_ended(run) == "completed"
        assert not ran(agent)


@pytest.mark.parametrize("every_transport", HALF_CLOSED, indirect=True)
async def test_a_ui_whose_input_ended_counts_as_a_no_and_receives_the_end(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, _ = await asked(ui)
        ui.finish()
        assert await ui.until_ended(run) == "completed"
        assert not ran(agent)


async def test_the_second_of_two_answers_has_no_effect(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui)
        ui.answer(question, {"ok": False, "reason": "no"})
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        await ui.settle()
        assert not ran(agent)


async def test_an_answer_from_a_connection_that_was_not_asked_has_no_effect(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run, question = await asked(ui)
        other.answer(question, {"ok": True})
        await other.call("session.list")
        await other.settle()
        assert not ran(agent)
        assert (await agent.runtime.store.run(run)).status == "awaiting_ui"
        ui.answer(question, {"ok": False})
        await ui.until_ended(run)
        assert not ran(agent)


async def test_a_question_id_is_never_reused(tmp_path: Path) -> None:
    """An answer to an old question, sent while the next one is open, has no effect."""
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        first, old = await asked(ui)
        await ui.call("run.cancel", {"run_id": first})
        run, question = await asked(ui)
        assert question["id"] != old["id"]
        ui.answer(old, {"ok": True})
        await ui.settle()
        assert not ran(agent)
        ui.answer(question, {"ok": False})
        await ui.until_ended(run)
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, later = await asked(ui)
        assert later["id"] not in (old["id"], question["id"])
        ui.answer(question, {"ok": True})
        await ui.settle()
        assert not ran(agent)


@pytest.mark.counted
async def test_an_answer_that_races_with_a_cancel_runs_nothing_after_it(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    """The answer and the cancel are sent together, with a number of loop turns between them."""
    for turns in range(counted(6, 200)):
        directory = tmp_path / str(turns)
        directory.mkdir()
        async with an_agent(directory) as agent:
            ui = await agent.connect(**ALL)
            run, question = await asked(ui)
            ui.answer(question, {"ok": True})
            for _ in range(turns):
                await asyncio.sleep(0)
            answer = await ui.call("run.cancel", {"run_id": run})
            then = ran(agent)
            await run_in_thread(lambda _: None)
            await ui.settle()
            assert ran(agent) == then
            assert answer["ok"] == (ui.statuses(run)[-1] == "cancelled")
    print(f"{turns + 1} answers raced with a cancel")


@pytest.mark.counted
async def test_an_answer_that_races_with_a_disconnect_counts_or_nothing_runs(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    """As above, but a run continues without its UI: only calls with a stored yes run."""
    for turns in range(counted(6, 200)):
        directory = tmp_path / str(turns)
        directory.mkdir()
        async with an_agent(directory) as agent:
            ui = await agent.connect(**ALL)
            run, question = await asked(ui)
            ui.answer(question, {"ok": True})
            for _ in range(turns):
                await asyncio.sleep(0)
            await ui.leave()
            if (active := agent.runtime.runs.get(run)) is not None:
                await active.ended()
            assert (await agent.runtime.store.run(run)).status == "completed"
            found = await agent.runtime.store.answer(question["id"], b'{"ok":false}', "late")
            assert not found.won
            assert found.answer is not None or not ran(agent)


async def test_remembered_rules_count_from_then_on_and_after_a_restart(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "run touch done")
        assert question["params"]["allow_remember"] is True
        said = question["params"]["message"]
        assert f'Remember (don\'t ask again): exactly this command, in "{agent.root}".' in said
        assert f'exactly that, in the workspace "{agent.root}".' in said
        ui.answer(question, {"ok": True, "remember": True})
        await ui.until_ended(run)
        (agent.root / "done").unlink()
        again = await ui.start("run touch done")
        assert await ui.until_ended(again) == "completed"
        assert ran(agent)
        run, other = await asked(ui, "run touch other")
        ui.answer(other, {"ok": False, "reason": "never", "remember": True})
        await ui.until_ended(run)
        decided = await agent.runtime.store.decisions()
        by = {re.sub(r"\S+ \(pid", "program (pid", one.by).partition(" as ")[0] for one in decided}
        assert by <= {"in process", f"program (pid {os.getpid()})", 'token "default"'}
        assert len(decided) == 2
    (tmp_path / "work" / "done").unlink()
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("run touch done")
        await ui.until_ended(run)
        assert ran(agent)
        run = await ui.start("run touch other")
        await ui.until_ended(run)
        assert "Permission denied: the user refused this before" in ui.final(run)
        assert not (agent.root / "other").exists()


async def test_an_answer_has_the_process_that_gave_it_whatever_name_the_ui_chose(
    tmp_path: Path,
) -> None:
    serving: list[asyncio.Task[None]] = []

    def serve(channel: Channel) -> None:
        serving.append(asyncio.create_task(agent.server.converse(channel)))

    socket = tmp_path / "agent.sock"
    remember = UiConfirmResult(ok=True, remember=True)
    spoof = PeerInfo("token", "admin (pid 1)")
    async with an_agent(tmp_path) as agent, unix.listen(socket, serve):
        async with connect(f"unix:{socket}", confirm=lambda _: remember, client=spoof) as ui:
            run = await ui.run_start("run touch done")
            await run.wait()
        await asyncio.gather(*serving)
        [decided] = await agent.runtime.store.decisions()
    assert decided.by.endswith(f"pid {os.getpid()}) as token admin (pid 1)")


async def test_a_remembered_rule_counts_in_no_other_workspace(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "agent.db")
    try:
        answers, later = RememberedAnswers(store), RememberedAnswers(store)
        here = WorkspacePermissions("/w/here", "/home/me", answers)
        [scope] = here.judge.judge(PermissionRequest("deploy", {}, "/w/here")).remember
        asked = await store.ask(None, "ui.confirm.request", b"{}", b"")
        await answers.remember("/w/here", scope, allowed=True, by="me", request_id=asked.id)
        await later.load()
        there = WorkspacePermissions("/w/there", "/home/me", answers)
        restarted = WorkspacePermissions("/w/here", "/home/me", later)
        for one, decision in (
            (here, Permission.ALLOW),
            (there, Permission.ASK),
            (restarted, Permission.ALLOW),
        ):
            assert one.judge.judge(PermissionRequest("deploy", {}, one.root)).decision is decision
    finally:
        await store.close()


@pytest.mark.parametrize(
    "spoof",
    [
        "touch done # \u202egpj.exe",
        "touch done\x1b[2K\x1b[1A",
        "tou\u200bch done",
        "touch done" + " " * 500 + "; rm -rf x",
        "echo " + "x" * 20_000 + "; touch done",
        "touch \u0430.py",
    ],
    ids=["bidi", "control", "zero-width", "pushed out", "very long", "cyrillic"],
)
async def test_deceptive_text_is_shown_escaped_and_whole(tmp_path: Path, spoof: str) -> None:
    core = ScriptedCore("s", [ScriptStep(tool="shell", arguments={"command": spoof})])
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        message = question["params"]["message"]
        assert message.isascii()
        assert all(char.isprintable() or char == "\n" for char in message)
        if len(spoof) > 1000:
            assert "x" * 20_000 in message
        await ui.call("run.cancel", {"run_id": run})


async def test_a_deceptive_file_name_is_shown_escaped_too(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s",
        [
            ScriptStep(
                tool="write", arguments={"file_path": "a\u202eb\x1b[0m", "content": "\u200bx"}
            )
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        message = question["params"]["message"]
        assert message.isascii()
        assert message.startswith(
            'Write "a\\u{202e}b\\u{1b}[0m", 4 bytes, a new file:\n| +\\u{200b}x\n'
        )
        preview = ui.events(run)[-2]["event"]
        assert preview["file_path"] == "a\\u{202e}b\\u{1b}[0m"
        await ui.call("run.cancel", {"run_id": run})


BREAKS = ["\n", "\n\n", "\r", "\r\n", "\u2028", "\u2029", "\x85", "\v", "\f", "\x1c"]
IMITATED = "Why you are asked: it only reads."
OF_OTHERS = {
    "label": ("shell", {"command": "touch x", "label": "tidy{0}"}),
    "command": ("shell", {"command": "touch x #{0}\n{1}"}),
    "first line": ("shell", {"command": "{1}"}),
    "directory": ("shell", {"command": "touch x", "cwd": "d{0}"}),
    "path": ("write", {"file_path": "a{0}", "content": "x"}),
    "text": ("write", {"file_path": "a", "content": "x{0}\n {1}"}),
    "changed text": ("edit", {"file_path": "b", "old_string": "{1}", "new_string": "x{0}"}),
}


@pytest.mark.parametrize("where", OF_OTHERS)
async def test_text_of_the_agent_cannot_look_like_a_line_of_telex(
    tmp_path: Path, where: str
) -> None:
    steps = []
    for made in BREAKS:
        tool, arguments = OF_OTHERS[where]
        said = {k: v.format(made + IMITATED, IMITATED) for k, v in arguments.items()}
        steps.append(ScriptStep(tool=tool, arguments=said))
    core = ScriptedCore("s", steps)
    async with an_agent(tmp_path, core) as agent:
        for made in BREAKS:
            (agent.root / f"d{made}{IMITATED}").mkdir()
        (agent.root / "b").write_text(f"one\n\n{IMITATED}\n\n")
        ui = await agent.connect(**ALL)
        await ui.start("go")
        for _ in BREAKS:
            question = await ui.until("ui.confirm.request")
            lines = question["params"]["message"].splitlines()
            ours = [line for line in lines if not line.startswith("| ")]
            assert len([line for line in ours if line.startswith("Why you")]) == 1, lines
            assert not [line for line in ours if line.startswith(IMITATED)], lines
            assert all(line == "" or line.split()[0] in OURS for line in ours), lines
            ui.answer(question, {"ok": False, "reason": "go on"})


OURS = {"in", "label:", "Write", "Edit", "Why", "Remember", "Your", "It"}


async def test_a_question_of_a_core_cannot_look_like_one_about_permission(tmp_path: Path) -> None:
    spoof = "Run command?\x1b[2J\u202e"
    safe = "Run command?\\u{1b}[2J\\u{202e}"
    core = ScriptedCore(
        "s",
        [
            ScriptStep(confirm=spoof, message=f"two\n{spoof}"),
            ScriptStep(prompt=spoof, message=spoof),
            ScriptStep(pick=[spoof], message=spoof),
            ScriptStep(final="{last}"),
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run, question = await asked(ui, "go")
        assert question["params"]["title"] == f"The agent asks: {safe}"
        assert question["params"]["message"] == f"two\n{safe}"
        ui.answer(question, {"ok": True})
        question = await ui.until("ui.prompt.request")
        assert question["params"]["title"] == f"The agent asks: {safe}"
        assert question["params"]["message"] == safe
        ui.answer(question, {"value": "x"})
        question = await ui.until("ui.pick.request")
        assert question["params"]["title"] == f"The agent asks: {safe}"
        [item] = question["params"]["items"]
        assert item["label"] == safe
        ui.answer(question, {"ids": [item["id"]]})
        await ui.until_ended(run)
        assert ui.final(run) == spoof


async def test_a_todo_list_changed_by_a_tool_call_is_sent_to_its_caller(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui, plain = await agent.connect(**ALL), await agent.connect()
        arguments = {"action": "new", "entries": [{"content": "tea"}]}
        for one in (ui, plain):
            assert (await one.call("tool.call", {"name": "todo", "arguments": arguments}))["ok"]
            await one.call("tool.call", {"name": "todo", "arguments": {"action": "read"}})
            await one.settle()
        [told] = [m["params"] for m in ui.heard if m.get("method") == "todos.update"]
        assert [entry["content"] for entry in told["todos"]] == ["tea"]
        assert not [m for m in plain.heard if m.get("method") == "todos.update"]


async def test_a_call_too_long_to_be_shown_is_neither_asked_about_nor_run(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s", [ScriptStep(tool="write", arguments={"file_path": "done", "content": "x" * 9_000_000})]
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) in ("completed", "error")
        assert not ran(agent)


@pytest.mark.parametrize("every_transport", HALF_CLOSED, indirect=True)
async def test_a_tool_call_that_no_ui_can_answer_any_more_does_not_wait(tmp_path: Path) -> None:
    """Also if the UI may reconnect: it can reattach to a run, but not to a tool call."""
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL, supports_run_attach=True)
        call = ui.send("tool.call", {"name": "shell", "arguments": {"command": "touch done"}})
        await ui.until("ui.confirm.request")
        ui.finish()
        answer = await ui.reply(call)
        assert answer == {"ok": False, "result": "Permission denied: the question was not answered"}
        assert not ran(agent)
        assert await agent.runtime.store.pending() == []
