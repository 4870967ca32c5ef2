"""The agent's client, with and without an event loop: runs, questions, errors, addresses."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
import pytest

import telex
import telex.agent as agent_api
from agent.holding import turns
from agent.ui_side import an_agent
from serving import telex_child
from telex.agent import client, limits, protocol, run_stream, sync
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.errors import ERRORS, to_agent_error
from telex.rpc.errors import ENDING, RpcError
from telex.rpc.testing import Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent.ui_side import Agent
    from telex.rpc.channel import Channel

WRITE = ScriptStep(tool="write", arguments={"file_path": "done", "content": "x"})


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert "telex" not in [thread.name for thread in threading.enumerate()]


def scripted(*steps: ScriptStep) -> ScriptedCore:
    return ScriptedCore("s", list(steps))


class Runtime:
    """A runtime that answers `initialize` with what it is told, and nothing else."""

    def __init__(self, **answer: Any) -> None:
        self._answer = answer
        self.hello: dict[str, Any] = {}

    async def __call__(self, channel: Channel) -> None:
        script = Script(channel)
        asked = json.loads(await script.hear())
        self.hello = asked["params"]
        if self._answer:
            message = {"jsonrpc": "2.0", "id": asked["id"], **self._answer}
            script.say(json.dumps(message).encode())
            with pytest.raises(AssertionError):  # the client closes
                await script.hear()


def introduced(version: str = "0", **more: Any) -> Runtime:
    server = {"name": "a runtime", "version": "9"}
    return Runtime(result={"protocol_version": version, "server": server, **more})


# Initialize.


async def test_the_functions_given_are_the_capabilities_announced() -> None:
    runtime = introduced()
    async with agent_api.in_process(runtime) as agent:
        assert agent.server == agent_api.PeerInfo("a runtime", "9")
        named = agent.server_capabilities
        assert not any(getattr(named, name) for name in named.__struct_fields__)
    words = ("request_cancel", "todos", "parallel_questions")
    always = {f"supports_{word}": True for word in words}
    assert runtime.hello["ui_capabilities"] == always
    assert runtime.hello["client"] == {"name": "telex", "version": telex.__version__}
    runtime = introduced(server_capabilities={"supports_run_steer": True, "supports_new": True})
    options: Any = {
        "confirm": bool,
        "prompt": str,
        "pick": list,
        "clipboard": str,
        "deltas": True,
        "keep_questions": True,
        "client": agent_api.PeerInfo("mine", "2"),
        "capabilities": agent_api.UiCapabilities(supports_markdown=True),
    }
    async with agent_api.in_process(runtime, **options) as agent:
        assert agent.server_capabilities.supports_run_steer
        assert not agent.server_capabilities.supports_run_diff
    words = ("confirm", "prompt", "pick", "clipboard_read", "deltas", "run_attach", "markdown")
    assert runtime.hello["ui_capabilities"] == {
        **always,
        **{f"supports_{word}": True for word in words},
    }
    assert runtime.hello["client"] == {"name": "mine", "version": "2"}


@pytest.mark.parametrize(
    ("runtime", "error", "words"),
    [
        (introduced("1"), agent_api.UnsupportedVersion, "speaks version 1 .* version 0"),
        (
            Runtime(error={"code": -32000, "message": "no room"}),
            agent_api.RuntimeFailed,
            "no room",
        ),
        (Runtime(result=7), agent_api.ConnectionLost, "did not answer"),
        (Runtime(), agent_api.ConnectionLost, "did not answer"),
    ],
)
async def test_a_runtime_that_cannot_be_used_is_an_error(
    runtime: Runtime, error: type[agent_api.AgentError], words: str
) -> None:
    with pytest.raises(error, match=words):
        async with agent_api.in_process(runtime):
            pass


async def test_a_client_chooses_its_workspace_and_sees_which_one_it_got(tmp_path: Path) -> None:
    async with an_agent(tmp_path, mode="trusted") as agent:
        async with agent.client() as client:
            assert client.workspace is not None
            assert client.workspace.mode == "trusted"
        chosen = agent_api.WorkspaceChoice(mode="minimal")
        async with agent.client(workspace=chosen) as client:
            root = str(agent.root)
            assert client.workspace == agent_api.WorkspaceInfo(root, root, "minimal", False)
        weaker = agent_api.WorkspaceChoice(mode="full")
        async with agent.client(workspace=weaker) as client:  # in the runtime's own process
            assert client.workspace is not None
            assert client.workspace.mode == "full"
        with pytest.raises(agent_api.InvalidParams, match=r"no such directory|No such file"):
            async with agent.client(workspace=agent_api.WorkspaceChoice("/nowhere/at/all")):
                pass


async def test_a_runtime_that_ignores_the_chosen_workspace_is_not_used() -> None:
    async with agent_api.in_process(plain := introduced()) as agent:
        assert agent.workspace is None
    assert "workspace" not in plain.hello
    with pytest.raises(agent_api.InvalidParams, match="does not let a client choose"):
        async with agent_api.in_process(
            introduced(), workspace=agent_api.WorkspaceChoice("/somewhere")
        ):
            pass


# Questions.


async def test_a_function_is_called_when_the_events_before_its_question_are_handled(
    tmp_path: Path,
) -> None:
    order: list[str] = []

    def confirm(question: agent_api.UiConfirmRequestParams) -> bool:
        order.append("confirm")
        return True

    steps = (ScriptStep(text="a"), ScriptStep(text="b"), WRITE, ScriptStep(final="c"))
    async with (
        an_agent(tmp_path, scripted(*steps)) as agent,
        agent.client(confirm=confirm) as ui,
    ):
        run = await ui.run_start("go")
        async for event in run:
            if not order:  # a program that takes its time: the question has come meanwhile
                await agent.runtime.runs[run.run_id].awaiting_answer.wait()
                await turns()
            order.append(type(event).__name__)
        assert order.index("confirm") == order.index("PermissionReadyEvent") + 1
        assert order[order.index("confirm") + 1] == "ToolResultEvent"
        assert (agent.root / "done").exists()


async def test_a_question_is_asked_also_when_the_program_does_not_iterate(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def confirm(question: agent_api.UiConfirmRequestParams) -> agent_api.UiConfirmResult:
        asked.set()
        return agent_api.UiConfirmResult(ok=True)

    steps = (ScriptStep(text="a"), ScriptStep(text="b"), WRITE)
    async with an_agent(tmp_path, scripted(*steps)) as agent, agent.client(confirm=confirm) as ui:
        await ui.run_start("go")
        await asked.wait()
        asked.clear()
        async for _ in await ui.run_start("go", new_session=True):
            break
        await asked.wait()


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda question: 1 / 0, "ZeroDivisionError"),
        (lambda question: "yes", "return a bool or a UiConfirmResult"),
    ],
)
async def test_a_function_that_fails_is_logged_and_has_not_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: Any, told: str
) -> None:
    async with an_agent(tmp_path, scripted(WRITE)) as agent, agent.client(confirm=function) as ui:
        run = await ui.run_start("go")
        with caplog.at_level(logging.ERROR, "telex.rpc"):
            assert (await run.wait()).status == "completed"
        assert told in caplog.text
        assert not (agent.root / "done").exists()


async def test_without_a_function_the_question_is_answered_with_no(tmp_path: Path) -> None:
    async with an_agent(tmp_path, scripted(WRITE)) as agent, agent.client() as ui:
        run = await ui.run_start("go")
        results = [one async for one in run if isinstance(one, agent_api.ToolResultEvent)]
        assert "denied" in results[0].result
        assert not (agent.root / "done").exists()


async def test_prompts_and_picks_are_answered_or_cancelled(tmp_path: Path) -> None:
    steps = (
        ScriptStep(prompt="Who?"),
        ScriptStep(pick=["red", "blue"]),
        ScriptStep(final="{last}"),
    )
    async with an_agent(tmp_path, scripted(*steps)) as agent:
        for prompt, pick, answer in (
            (lambda q: "Ada", lambda q: [q.items[1].id], "blue"),
            (lambda q: None, lambda q: (), ""),
            (
                lambda q: agent_api.UiPromptResult("Ada"),
                lambda q: agent_api.UiPickResult([q.items[0].id]),
                "red",
            ),
        ):
            async with agent.client(prompt=prompt, pick=pick) as ui:
                run = await ui.run_start("go")
                assert (await run.wait()).answer == answer


async def test_the_function_of_a_question_that_needs_no_answer_any_more_is_cancelled(
    tmp_path: Path,
) -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def confirm(question: agent_api.UiConfirmRequestParams) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return True

    async with an_agent(tmp_path, scripted(WRITE)) as agent, agent.client(confirm=confirm) as ui:
        run = await ui.run_start("go")
        await asked.wait()
        async with agent.client(confirm=lambda q: True) as other:
            assert (await (await other.run_attach(run.run_id)).wait()).status == "completed"
        await cancelled.wait()
        assert (await run.wait()).status == "completed"
        asked.clear()
        cancelled.clear()
        run = await ui.run_start("go")
        await asked.wait()
        assert (await run.cancel("changed my mind")).ok
        await cancelled.wait()
        assert await run.wait() == agent_api.RunResult("cancelled", "changed my mind", None)


async def test_a_client_is_closed_although_a_function_ignores_its_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "AGENT_CLIENT_CALLBACK_CANCEL_SECONDS", 0.01)
    asked, released, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def confirm(question: agent_api.UiConfirmRequestParams) -> bool:
        asked.set()
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()
        ended.set()
        return True

    async with an_agent(tmp_path, scripted(WRITE)) as agent:
        async with agent.client(confirm=confirm) as ui:
            await ui.run_start("go")
            await asked.wait()
        assert not ended.is_set()
        assert "1 functions that answer questions were cancelled and still run" in caplog.text
        released.set()
        await ended.wait()


# Runs.


@pytest.mark.parametrize("asks", [False, True])
async def test_a_program_that_is_slow_receives_every_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setattr(run_stream, "AGENT_CLIENT_MESSAGES", 4)
    steps = [ScriptStep(text=str(number), deltas=2) for number in range(30)]
    if asks:
        steps[20:20] = [ScriptStep(confirm="Go on?")]
    async with (
        an_agent(tmp_path, scripted(*steps)) as agent,
        agent.client(deltas=True, confirm=lambda q: True) as ui,
    ):
        run = await ui.run_start("go")
        if not asks:
            await agent.runtime.runs[run.run_id].ended()
        seqs = []
        async for message in run.messages():
            if isinstance(message, agent_api.RunEvent):
                seqs.append(message.seq)
                for _ in range(20):
                    await asyncio.sleep(0)
        assert seqs == list(range(31))
        assert run.result is not None
        assert run.result.status == "completed"


async def test_a_question_that_is_being_answered_is_not_refused_when_events_are_requested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime repeats it under the same id, as the run is attached again."""
    monkeypatch.setattr(run_stream, "AGENT_CLIENT_MESSAGES", 4)
    asked, go = asyncio.Event(), asyncio.Event()

    async def confirm(question: agent_api.UiConfirmRequestParams) -> bool:
        asked.set()
        await go.wait()
        return True

    texts = [ScriptStep(text=str(number)) for number in range(20)]
    steps = (*texts, ScriptStep(confirm="Go on?"), ScriptStep(final="{last}"))
    async with (
        an_agent(tmp_path, scripted(*steps)) as agent,
        agent.client(confirm=confirm) as ui,
    ):
        run = await ui.run_start("go")
        await asked.wait()
        async for message in run.messages():
            if isinstance(message, agent_api.RunEvent) and message.seq == 19:
                await turns()
                go.set()
        assert run.result == agent_api.RunResult("completed", None, "yes")


async def test_deltas_and_todo_lists_come_between_the_events(tmp_path: Path) -> None:
    steps = (
        ScriptStep(text="hello there", deltas=2),
        ScriptStep(reasoning="hm", deltas=1),
        ScriptStep(tool="todo", arguments={"action": "new", "entries": [{"content": "water"}]}),
    )
    async with an_agent(tmp_path, scripted(*steps)) as agent, agent.client(deltas=True) as ui:
        run = await ui.run_start("go")
        messages = [one async for one in run.messages()]
    deltas = [one for one in messages if isinstance(one, agent_api.RunDelta)]
    assert "".join(one.content for one in deltas if one.kind == "text") == "hello there"
    assert [one.kind for one in deltas][-1] == "reasoning"
    (todos,) = [one for one in messages if isinstance(one, agent_api.TodosUpdate)]
    assert todos.todos[0]["content"] == "water"
    assert ui.todos == []


async def test_an_event_of_an_unknown_kind_is_kept_as_it_came(tmp_path: Path) -> None:
    new = b'{"type":"text.v9","content":"x","more":[1]}'
    steps = [ScriptStep(event=run_stream.Raw(new))]
    async with an_agent(tmp_path, scripted(*steps)) as agent, agent.client() as ui:
        run = await ui.run_start("go")
        first = await anext(one async for one in run.messages() if hasattr(one, "seq"))
    assert first.event == agent_api.UnknownEvent("text.v9", json.loads(new))
    assert first.raw == new


async def test_a_run_is_steered_while_another_run_is_active(tmp_path: Path) -> None:
    waiting, go = asyncio.Event(), asyncio.Event()

    async def confirm(question: agent_api.UiConfirmRequestParams) -> bool:
        waiting.set()
        await go.wait()
        return True

    steps = (ScriptStep(confirm="Go on?"), ScriptStep(final="{steered}"))
    async with an_agent(tmp_path, scripted(*steps)) as agent, agent.client(confirm=confirm) as ui:
        one, other = await asyncio.gather(
            ui.run_start("one", new_session=True), ui.run_start("other", new_session=True)
        )
        assert one.session_id != other.session_id
        await waiting.wait()
        assert (await one.steer("to the left")).ok
        go.set()
        ended = await asyncio.gather(one.wait(), other.wait())
        assert [result.answer for result in ended] == ["to the left", ""]


async def test_a_history_can_be_read_during_a_run_of_the_session(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def confirm(question: agent_api.UiConfirmRequestParams) -> bool:
        await go.wait()
        return True

    steps = (ScriptStep(text="a"), ScriptStep(confirm="Go on?"), ScriptStep(final="b"))
    async with an_agent(tmp_path, scripted(*steps)) as agent, agent.client(confirm=confirm) as ui:
        await answered(agent)
        run = await ui.run_start("go")
        reading = asyncio.create_task(collected(run))
        other = await ui.run_attach(run.run_id)
        assert other is run  # it is followed already
        history = await ui.session_history(run.session_id)
        said = next(one.event for one in history.events if one.run_id == run.run_id)
        assert said == agent_api.HiddenUserMessageEvent("go")
        go.set()
        assert [one.seq for one in await reading] == [0, 1]


async def answered(agent: Agent) -> None:
    """A run of another client, in another session, from its start to its end."""
    async with agent.client(confirm=lambda q: True) as other:
        run = await other.run_start("before")
        await run.wait()


async def collected(run: agent_api.AsyncRun) -> list[agent_api.RunEvent]:
    return [one async for one in run.messages() if isinstance(one, agent_api.RunEvent)]


# Errors and ends.


def test_every_code_of_the_protocol_has_an_exception() -> None:
    named = {one for one in vars(protocol).values() if isinstance(one, int) and one < 0}
    assert set(ERRORS) == named | set(protocol.CODES.values())
    for code, kind in ERRORS.items():
        error = to_agent_error(RpcError(code, "no", {"nearest": ["x"]}))
        assert type(error) is kind
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.code, again.data) == ("no", code, {"nearest": ["x"]})
    assert type(to_agent_error(RpcError(-32099, "new"))) is agent_api.AgentError
    assert isinstance(to_agent_error(RpcError.carrying(ENDING)), agent_api.ConnectionLost)


async def test_a_runtime_that_ends_is_a_lost_connection(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent, agent.client() as ui:
        command = asyncio.create_task(ui.shell_exec("touch began; sleep 100"))
        while not (agent.root / "began").exists():
            await asyncio.sleep(0.01)
        await agent.close()
        with pytest.raises(agent_api.ConnectionLost, match="server is shutting down"):
            await command
        with pytest.raises(agent_api.ConnectionLost):
            await ui.model_list()


async def test_a_client_is_closed_once_and_then_it_is_closed(tmp_path: Path) -> None:
    async with (
        an_agent(tmp_path, scripted(ScriptStep(confirm="Go on?"))) as agent,
        agent.client(confirm=lambda q: asyncio.Event().wait()) as ui,
    ):
        run = await ui.run_start("go")
        await agent.runtime.runs[run.run_id].awaiting_answer.wait()
        await ui.close()
        await ui.close()
        with pytest.raises(agent_api.ConnectionLost, match="this client was closed"):
            await ui.session_list()
        with pytest.raises(agent_api.ConnectionLost, match="this client was closed"):
            await run.wait()


# Without an event loop.


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question waits for a thread that waits for its run, however slow the machine is."""
    monkeypatch.setattr(limits, "AGENT_CLIENT_UNATTENDED_SECONDS", 3600)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    work = tmp_path_factory.mktemp("runtime")
    environ = {**os.environ, "TELEX_HOME": str(work / "home")}
    with telex_child(environ, work, "agent", "--socket", "a.sock") as child:
        assert child.stderr is not None
        assert "listening" in child.stderr.readline()
        yield f"unix:{work / 'a.sock'}"


@pytest.mark.usefixtures("patient")
def test_a_plain_function_is_called_in_the_thread_that_waits(address: str) -> None:
    seen: list[tuple[str, int]] = []

    def prompt(question: agent_api.UiPromptRequestParams) -> str:
        seen.append((question.message, threading.get_ident()))
        return "Ada"

    async def pick(question: agent_api.UiPickRequestParams) -> list[str]:
        seen.append((question.title, threading.get_ident()))
        return [question.items[0].id]

    with agent_api.connect(address, prompt=prompt, pick=pick) as agent:
        run = agent.run_start("ask Who?\npick red, blue")
        assert [type(event).__name__ for event in run] == ["FinalEvent"]
        assert run.result is not None
        assert run.result.answer == "You said: Ada\nYou chose: red"
    assert seen[0][1] == threading.get_ident()
    assert seen[1][1] != threading.get_ident()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_exception_in_a_function_comes_out_of_the_loop(
    address: str, error: type[BaseException]
) -> None:
    def prompt(question: agent_api.UiPromptRequestParams) -> str:
        raise error

    with agent_api.connect(address, prompt=prompt) as agent:
        run = agent.run_start("ask Who?")
        with pytest.raises(error):
            for _ in run:
                pass
        run.cancel()
        assert run.wait().status in ("cancelled", "completed")
        assert agent.run_start("help").wait().status == "completed"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("follow", [agent_api.Run.wait, list])
def test_an_unrelated_request_answers_no_question_and_gets_no_exception_of_it(
    address: str, follow: Callable[[agent_api.Run], object]
) -> None:
    raised_in: list[str] = []
    asked = threading.Event()

    def prompt(question: agent_api.UiPromptRequestParams) -> str:
        raised_in.append(threading.current_thread().name)
        asked.set()
        raise ZeroDivisionError

    def wait() -> None:
        with pytest.raises(ZeroDivisionError):
            follow(run)

    with agent_api.connect(address, prompt=prompt) as agent:
        run = agent.run_start("ask Who?", new_session=True)
        while run.status != "awaiting_ui":
            agent.session_list()
        agent.session_list()  # the question is open, and this request leaves it
        assert not asked.is_set()
        waiter = threading.Thread(target=wait, name="waiter")
        waiter.start()
        while not asked.is_set():
            agent.session_list()
        waiter.join()
        assert run.wait().status == "completed"
    assert raised_in == ["waiter"]


def test_a_question_that_no_thread_waits_for_is_answered_in_the_callback_thread(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "AGENT_CLIENT_UNATTENDED_SECONDS", 0)
    callers: list[threading.Thread] = []
    asked = threading.Event()

    def prompt(question: agent_api.UiPromptRequestParams) -> str:
        callers.append(threading.current_thread())
        asked.set()
        if question.message == "Fail?":
            raise ZeroDivisionError
        return "Ada"

    with agent_api.connect(address, prompt=prompt) as agent:
        for text, answer in (("ask Who?", "You said: Ada"), ("ask Fail?", None)):
            asked.clear()
            run = agent.run_start(text, new_session=True)
            assert asked.wait(60)
            result = run.wait()
            assert result.status == "completed"
            assert answer is None or result.answer == answer
            callers[-1].join()  # the thread ends when no question is left
    assert [thread.name for thread in callers] == ["telex-callbacks"] * 2
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.usefixtures("patient")
def test_a_question_passes_to_the_callback_thread_when_its_waiter_leaves(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def prompt(question: agent_api.UiPromptRequestParams) -> str:
        asked.set()
        return "Ada"

    with agent_api.connect(address, prompt=prompt) as agent:
        run = agent.run_start("list\nask Who?", new_session=True)
        events = iter(run)
        next(events)
        while run.status != "awaiting_ui":
            agent.session_list()
        assert not asked.is_set()  # the loop that is open will take it
        monkeypatch.setattr(limits, "AGENT_CLIENT_UNATTENDED_SECONDS", 0)
        events.close()
        assert asked.wait(60)
        assert run.wait().status == "completed"


def test_a_run_that_ended_keeps_its_result_after_the_client_was_closed(address: str) -> None:
    with agent_api.connect(address) as agent:
        run = agent.run_start("help")
        result = run.wait()
    assert run.wait() == result == run.result
    assert list(run) == list(run.messages()) == []


def test_the_representation_has_id_and_state_in_one_line(address: str) -> None:
    with agent_api.connect(address) as agent:
        assert repr(agent) == "<telex.agent.Agent session_id=None state='connected'>"
        run = agent.run_start("help")
        run.wait()
        assert repr(run) == f"<telex.agent.Run run_id={run.run_id!r} status='completed'>"
        assert repr(run._run) == repr(run).replace("Run ", "AsyncRun ")
        assert repr(agent._agent) == repr(agent).replace("Agent ", "AsyncAgent ")
    assert repr(agent) == f"<telex.agent.Agent session_id={run.session_id!r} state='closed'>"


def test_a_loop_may_be_left_and_entered_again(address: str) -> None:
    with agent_api.connect(address) as agent:
        run = agent.run_start("list\nlist")
        seen = []
        while run.result is None or not seen or not isinstance(seen[-1], agent_api.FinalEvent):
            for event in run:
                seen.append(event)
                break
        assert [type(event).__name__ for event in seen][:2] == ["StepStartEvent", "ToolCallEvent"]
        assert run.last_seq == len(seen) - 1
        assert list(run) == []
        left = agent.run_start("help")
    assert not [*zip(range(9), _after_the_end(left), strict=False)]
    with pytest.raises(agent_api.ConnectionLost, match="closed"):
        agent.session_list()


def _after_the_end(run: agent_api.Run) -> Iterator[object]:
    with pytest.raises(agent_api.ConnectionLost, match="closed"):
        yield from run


def _public(kind: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


ONLY_THERE = {"open"}
"""Called by `spawn`, `connect` and `in_process`; a blocking client is opened by its `with`."""


@pytest.mark.parametrize(
    ("there", "twin"), [(client.AsyncAgent, sync.Agent), (run_stream.AsyncRun, sync.Run)]
)
def test_the_blocking_twin_has_the_same_methods(there: type, twin: type) -> None:
    ours, theirs = _public(twin), _public(there)
    assert set(ours) == set(theirs) - ONLY_THERE
    for name in ours:
        mine, other = inspect.signature(ours[name]), inspect.signature(theirs[name])
        assert mine.parameters.keys() == other.parameters.keys(), name
        for one, two in zip(mine.parameters.values(), other.parameters.values(), strict=True):
            assert (one.kind, one.default) == (two.kind, two.default), name
            assert _plain(one.annotation) == _plain(two.annotation), name
        if name != "messages":  # a generator, and an asynchronous one
            assert _plain(mine.return_annotation) == _plain(other.return_annotation), name
        assert not inspect.iscoroutinefunction(ours[name])
        assert ours[name].__doc__ == _without_await(theirs[name].__doc__), name
    assert twin.__doc__ == _without_await(there.__doc__)
    assert _properties(there) <= _properties(twin), "a property that programs do not use"


def _properties(kind: type) -> set[str]:
    return {
        name
        for name, member in vars(kind).items()
        if isinstance(member, property) and not name.startswith("_")
    }


def _plain(annotation: object) -> str:
    """Without the module of a type, and as a blocking one has it."""
    return re.sub(r"Async|runs\.|sessions\.|extensions\.", "", str(annotation))


def _without_await(text: str | None) -> str:
    assert text, "every public method says what it does"
    for word in ("await ", "async ", "Async"):
        text = text.replace(word, "")
    return text


# The ways to a runtime.


async def test_connecting_to_no_runtime_is_an_error_with_a_reason(tmp_path: Path) -> None:
    for opening, error, words in (
        (agent_api.spawn("no-such-program"), telex.CannotConnect, "no program no-such-program"),
        (agent_api.spawn(["true"]), agent_api.ConnectionLost, "exited with code 0"),
        (agent_api.spawn("sh -c 'exit 3'"), agent_api.ConnectionLost, "exited with code 3"),
        (agent_api.connect("somewhere"), telex.CannotConnect, "unix:PATH or ws://HOST:PORT/rpc/ag"),
        (agent_api.connect("unix:"), telex.CannotConnect, "telex agent --socket"),
        (
            agent_api.connect(f"unix:{tmp_path / 'x'}"),
            telex.CannotConnect,
            "start a server with: telex agent --socket",
        ),
        (agent_api.connect("ws://127.0.0.1:1"), telex.CannotConnect, "set TELEX_TOKEN"),
    ):
        with pytest.raises(error, match=words):
            async with opening:
                pass


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 200])
async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path, turns: int) -> None:
    """The fixtures of every test look for descriptors, processes and tasks that are left."""

    async def work() -> None:
        async with agent_api.spawn(["sh", "-c", "cat >/dev/null"], cwd=tmp_path):
            raise AssertionError("a program that prints nothing answered")

    task = asyncio.create_task(work())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.each_loop
async def test_a_child_that_closes_its_output_is_a_lost_connection(loop: str) -> None:
    with pytest.raises(agent_api.ConnectionLost, match="the program closed its pipes"):
        async with agent_api.spawn(["sh", "-c", "read line; exec >&-; sleep 600"]):
            pass


async def test_a_request_that_is_too_large_is_refused_here(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent, agent.client() as ui:
        with pytest.raises(agent_api.InvalidParams, match="bytes"):
            await ui.run_start("x" * 20_000_000)
        assert (await (await ui.run_start("help")).wait()).status == "completed"


def test_the_runtimes_directory_is_not_imported_from(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('imported from the workspace')\n")
    environ = {"TELEX_HOME": str(tmp_path / "home")}
    with (
        (tmp_path / "log").open("w") as log,
        agent_api.spawn(cwd=tmp_path, env=environ, stderr=log.fileno()) as agent,
    ):
        assert agent.run_start("help").wait().status == "completed"


def test_importing_the_client_loads_nothing_until_it_is_used() -> None:
    script = """
import sys, telex
telex.agent
print([m for m in ("asyncio", "msgspec", "telex.rpc.peer") if m in sys.modules])
telex.agent.spawn, telex.agent.Agent
names = "sqlite3 httpx websockets starlette click telex.agent.store telex.agent.runtime"
print([m for m in names.split() if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n[]\n"


def test_every_public_name_is_there() -> None:
    for name in agent_api.__all__:
        assert getattr(agent_api, name) is not None
    assert set(agent_api._MODULES) == set(agent_api.__all__)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = agent_api.nothing_of_the_kind


def test_dir_lists_the_public_names_only() -> None:
    assert dir(agent_api) == sorted(agent_api.__all__)


def test_public_classes_name_the_package_as_their_module() -> None:
    public = [getattr(agent_api, name) for name in agent_api.__all__]
    # A Struct keeps its module: msgspec resolves its annotations there.
    classes = [
        one for one in public if inspect.isclass(one) and not issubclass(one, msgspec.Struct)
    ]
    assert agent_api.UiOptions in classes
    assert {one.__name__: one.__module__ for one in classes} == {
        one.__name__: "telex.agent" for one in classes
    }
    assert get_type_hints(agent_api.UiOptions)["deltas"] is bool
