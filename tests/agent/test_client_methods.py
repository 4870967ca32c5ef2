"""Every method of the agent's client, over a child's pipes, a unix socket and a WebSocket.

The client is the blocking one, which calls the other: so both are used, and one runtime serves all
tests of a transport.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import telex.agent as agent_api
from serving import telex_child
from telex.agent.client import AsyncAgent
from telex.agent.protocol import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent import Agent

TOKEN = "a-token-of-forty-characters-or-more-0123456789"
SKILL = "---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n"


@dataclass
class Person:
    """Answers the questions, and remembers them."""

    ok: bool = True
    asked: list[str] = field(default_factory=list)

    def confirm(self, question: agent_api.UiConfirmRequestParams) -> bool:
        self.asked.append(question.title)
        return self.ok

    def prompt(self, question: agent_api.UiPromptRequestParams) -> str | None:
        self.asked.append(question.message)
        return "Ada" if self.ok else None

    def pick(self, question: agent_api.UiPickRequestParams) -> list[str]:
        self.asked.append(question.title)
        return [question.items[-1].id] if self.ok else []

    def clipboard(self, question: agent_api.UiClipboardReadParams) -> str:
        self.asked.append(question.purpose)
        return "copied"


@dataclass
class Place:
    """A client, the directory of its runtime, and the person at the client."""

    name: str
    agent: Agent
    work: Path
    person: Person

    def run(self, text: str, **more: Any) -> agent_api.RunResult:
        return self.agent.run_start(text, **more).wait()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A runtime behind a unix socket and HTTP: its directory and both addresses."""
    work = _work(tmp_path_factory)
    environ = {**os.environ, "TELEX_HOME": str(work.parent / "home"), "TELEX_TOKEN": TOKEN}
    doors = ("--socket", "a.sock", "--http", "127.0.0.1:0")
    with telex_child(environ, work, "agent", "--diagnostics", *doors) as child:
        assert child.stderr is not None
        told = [child.stderr.readline() for _ in range(3)]
        urls = [found[1] for line in told if (found := re.search(r"(http://\S+/rpc/agent)", line))]
        assert urls, told
        yield work, f"unix:{work / 'a.sock'}", urls[0]


def _work(factory: pytest.TempPathFactory) -> Path:
    work = factory.mktemp("agent") / "work"
    (work / ".agents/skills/tidy").mkdir(parents=True)
    (work / ".agents/skills/tidy/SKILL.md").write_text(SKILL)
    (work / "a.py").write_text("print()\n")
    return Path(os.path.realpath(work))


@pytest.fixture(scope="module", params=["stdio", "unix", "websocket"])
def connected(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    person = Person()
    names = ("confirm", "prompt", "pick", "clipboard")
    ui: Any = {name: getattr(person, name) for name in names}
    with contextlib.ExitStack() as stack:
        if request.param == "stdio":
            work = _work(tmp_path_factory)
            environ = {"TELEX_HOME": str(work.parent / "home")}
            log = stack.enter_context((work.parent / "log").open("w"))
            opening = agent_api.spawn(
                arguments=["--diagnostics"], cwd=work, env=environ, stderr=log.fileno(), **ui
            )
        else:
            work, unix, web = request.getfixturevalue("served")
            address = unix if request.param == "unix" else web
            opening = agent_api.connect(address, token=TOKEN, **ui)
        yield Place(request.param, stack.enter_context(opening), work, person)


@pytest.fixture
def place(connected: Place) -> Place:
    connected.person.ok = True
    connected.person.asked.clear()
    return connected


def test_initialize_names_the_runtime_and_its_capabilities(place: Place) -> None:
    assert place.agent.server.name == "telex-agent"
    assert place.agent.server_capabilities.supports_run_attach
    assert place.agent.server_capabilities.supports_run_diagnostics


def test_a_run_is_started_and_its_messages_come_in_order(place: Place) -> None:
    run = place.agent.run_start("list *.py", new_session=True, meta={"from": "a test"})
    messages = list(run.messages())
    assert [m.seq for m in messages if isinstance(m, agent_api.RunEvent)] == [0, 1, 2, 3, 4]
    assert isinstance(messages[0], agent_api.RunStatusNotify)
    assert any(isinstance(m, agent_api.RunContextNotify) for m in messages)
    assert any(isinstance(m, agent_api.SummaryDiagnostics) for m in messages)
    last = messages[-1]
    assert isinstance(last, agent_api.RunStatusNotify)
    assert (last.status, run.status, run.last_seq) == ("completed", "completed", 4)
    assert run.result == agent_api.RunResult("completed", None, "a.py")
    assert run.session_id == place.agent.session_id


def test_the_next_run_continues_the_session_unless_a_new_session_is_requested(place: Place) -> None:
    place.run("todo water the plants", new_session=True)
    first = place.agent.session_id
    assert "water the plants" in (place.run("todo").answer or "")
    assert place.agent.session_id == first
    place.run("help", new_session=True)
    assert place.agent.session_id != first
    assert "water the plants" in (place.run("todo", session_id=first).answer or "")
    with pytest.raises(agent_api.InvalidParams, match="exclude each other"):
        place.run("help", session_id=first, new_session=True)
    with pytest.raises(agent_api.SessionNotFound) as refused:
        place.run("help", session_id="nothing")
    assert refused.value.code == -32004


def test_questions_are_answered_by_the_functions(place: Place) -> None:
    run = place.agent.run_start("run touch yes\nask Who?\npick red, blue", new_session=True)
    assert "You said: Ada\nYou chose: blue" in (run.wait().answer or "")
    assert (place.work / "yes").exists()
    assert place.person.asked[0] == "Run command?"
    assert len(place.person.asked) == 3
    place.person.ok = False
    denied = place.run("run touch no", new_session=True)
    assert "denied" in (denied.answer or "")
    assert not (place.work / "no").exists()


def test_a_run_is_cancelled(place: Place) -> None:
    run = place.agent.run_start("run sleep 600", new_session=True)
    assert isinstance(next(iter(run)), agent_api.StepStartEvent)
    with pytest.raises(agent_api.RuntimeBusy):
        place.run("help", session_id=run.session_id)
    assert run.cancel("enough") == agent_api.RunCancelResult(True, "cancelled")
    assert run.wait() == agent_api.RunResult("cancelled", "enough", None)
    assert run.cancel() == agent_api.RunCancelResult(False, "cancelled")
    with pytest.raises(agent_api.RunNotFound):
        place.agent.run_cancel("run_nothing")


def test_a_run_that_has_ended_is_attached_to_steered_and_compared(place: Place) -> None:
    run = place.agent.run_start(f"write {place.name}: a line", new_session=True)
    run.wait()
    again = place.agent.run_attach(run.run_id)
    replayed = [one for one in again.messages() if isinstance(one, agent_api.RunEvent)]
    assert [one.seq for one in replayed] == list(range(run.last_seq + 1))
    assert all(one.replay for one in replayed)
    assert again.session_id == run.session_id
    rest = place.agent.run_attach(run.run_id, after_seq=run.last_seq - 1)
    assert [type(event) for event in rest] == [agent_api.FinalEvent]
    assert not run.steer("and another").ok
    (changed,) = run.diff().files
    assert "+a line" in changed.diff
    with pytest.raises(agent_api.InvalidParams, match="last event"):
        place.agent.run_attach(run.run_id, after_seq=99)
    for method in (place.agent.run_attach, place.agent.run_diff):
        with pytest.raises(agent_api.RunNotFound):
            method("run_nothing")
    with pytest.raises(agent_api.InvalidParams):
        place.agent.run_steer(run.run_id, "")


def test_sessions_are_listed_and_their_history_is_read(place: Place) -> None:
    run = place.agent.run_start("list *.py", new_session=True)
    events = [one for one in run.messages() if isinstance(one, agent_api.RunEvent)]
    (listed,) = place.agent.session_list(limit=1).sessions
    assert (listed.session_id, listed.run_id) == (run.session_id, run.run_id)
    inside = place.agent.session_list(scope="current_workspace")
    assert inside.current_workspace_root == str(place.work)
    assert place.agent.session_list(workspace_root="/nowhere").sessions == []
    history = place.agent.session_history(run.session_id)
    said, *stored = history.events
    assert said.seq == -1
    assert said.event == agent_api.HiddenUserMessageEvent("list *.py")
    assert [(one.seq, one.raw) for one in stored] == [(one.seq, one.raw) for one in events]
    assert (history.runs, history.truncated) == (1, False)
    short = place.agent.session_history(run.session_id, max_runs=1, max_events=2)
    assert (len(short.events), short.truncated) == (2, True)
    with pytest.raises(agent_api.SessionNotFound):
        place.agent.session_history("nothing")


def test_models_are_listed_and_chosen(place: Place) -> None:
    models = place.agent.model_list(include_details=True)
    assert models.current in models.models
    assert models.details is not None
    assert place.agent.model_set(models.models[0]).name == models.models[0]
    assert place.agent.model_list(provider="nobody").models == []
    with pytest.raises(agent_api.InvalidParams, match="nothing"):
        place.agent.model_set("nothing")


def test_a_tool_is_called_with_and_without_a_question(place: Place) -> None:
    assert place.agent.tool_call("list", {"pattern": "*.py"}).ok
    assert place.person.asked == []
    assert place.agent.tool_call("write", {"file_path": "made", "content": "x"}).ok
    assert (place.work / "made").read_text() == "x"
    assert place.person.asked == ["Run tool?"]
    place.person.ok = False
    with pytest.raises(agent_api.UserCancelled) as said_no:
        place.agent.tool_call("write", {"file_path": "unmade", "content": "x"})
    assert said_no.value.code == -32003
    with pytest.raises(agent_api.InvalidParams):
        place.agent.tool_call("nothing")


def test_the_clipboard_is_read_after_a_question(place: Place) -> None:
    assert place.agent.tool_call("clipboard_read", {}).result == "copied"
    assert place.person.asked == ["Run tool?", "text_paste"]


def test_an_image_is_sent_with_a_message(place: Place) -> None:
    with pytest.raises(agent_api.InvalidParams, match="builtin does not see images"):
        place.agent.run_start("look", images=[b"GIF89a"], new_session=True)


def test_the_todo_list_of_tool_calls_is_kept(place: Place) -> None:
    place.agent.tool_call("todo", {"action": "new", "entries": [{"content": "water"}]})
    assert [entry["content"] for entry in place.agent.todos] == ["water"]


def test_files_of_the_workspace_are_listed_read_and_searched(place: Place) -> None:
    listed = place.agent.workspace_list(match="apy").entries
    assert [(entry.path, entry.kind, entry.size) for entry in listed] == [("a.py", "file", 8)]
    assert place.agent.workspace_read("a.py").text == "print()\n"
    (found,) = place.agent.workspace_search("print", glob="*.py").matches
    assert (found.path, found.line) == ("a.py", 1)


def test_a_session_is_exported_and_its_changes_are_undone(place: Place) -> None:
    name = f"undo-{place.name}"
    run = place.agent.run_start(f"write {name}: a line", new_session=True)
    run.wait()
    exported = place.agent.history_export(run.session_id)
    text = place.agent.artifact_read(exported.artifact_id).text
    assert f"## You\n\nwrite {name}: a line" in text
    assert "+a line" in place.agent.artifact_read(f"diff:{run.run_id}").text
    (undone,) = place.agent.history_undo(run.session_id).files
    assert (undone.path, undone.action) == (name, "deleted")
    assert not (place.work / name).exists()


def test_the_todo_list_of_a_session_is_read_and_replaced(place: Place) -> None:
    run = place.agent.run_start("todo water", new_session=True)
    run.wait()
    assert [one["content"] for one in place.agent.todos_get(run.session_id).todos] == ["water"]
    kept = place.agent.todos_set(run.session_id, [{"content": "rest"}]).todos
    assert kept == place.agent.todos_get(run.session_id).todos
    with pytest.raises(agent_api.InvalidParams):
        place.agent.todos_set(run.session_id, [{"content": ""}])


def test_a_command_of_the_person_runs_in_the_workspace(place: Place) -> None:
    done = place.agent.shell_exec("pwd; exit 3", timeout_seconds=20)
    assert (done.stdout, done.exit_code) == (f"{place.work}\n", 3)
    with pytest.raises(agent_api.InvalidParams):
        place.agent.shell_exec("pwd", cwd="/")


def test_a_permission_is_explained(place: Place) -> None:
    explained = place.agent.permission_explain("shell", {"command": "rm -rf /"})
    assert explained.decision == "ask"
    assert explained.why
    assert place.agent.permission_explain("list").decision == "allow"


def test_skills_servers_and_context_are_listed(place: Place) -> None:
    assert [skill.name for skill in place.agent.skills_list(force_reload=True).skills] == ["tidy"]
    [listed] = place.agent.commands_list().commands
    assert (listed.name, listed.kind, listed.source) == ("tidy", "skill", "project")
    assert "not trusted" in (listed.not_offered or "")
    with pytest.raises(agent_api.InvalidParams, match="not trusted"):
        place.agent.run_start("/tidy up")
    assert place.agent.mcp_list(scope="configured").servers == []
    file = agent_api.ActiveFile("a.py", "python")
    place.agent.ui_context_update(agent_api.UiContext(str(place.work), active_file=file))
    context = place.agent.context_inspect(include_agents=False)
    assert context.runtime_sandbox_root == str(place.work)
    assert context.ui_context is not None
    assert context.ui_context.active_file_path == "a.py"
    assert context.agents is None


def test_signing_out_asks_and_forgets_the_session(place: Place) -> None:
    place.run("help")
    place.person.ok = False
    assert place.agent.auth_logout().cancelled
    assert place.agent.session_id is not None
    place.person.ok = True
    assert place.agent.auth_logout().session_cleared
    assert place.agent.session_id is None
    assert place.person.asked == ["Sign out?", "Sign out?"]


def test_every_method_of_the_protocol_has_a_method_here() -> None:
    there = {name.replace(".", "_") for name in METHODS} - {"initialize"}
    assert there == {name for name in vars(AsyncAgent) if name in there}
