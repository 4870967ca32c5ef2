"""`telex.adapt`, and `lua` matchers in `telex.spawn`."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import telex
from leftovers import children
from lua_plugins import CHATTY
from serving import Serve, serving
from telex import match
from telex.adapters import client, sync
from telex.adapters.protocol import PERMISSIONS, AdapterState, OfAdapter
from telex.automation.protocol import Closed

if TYPE_CHECKING:
    from collections.abc import Iterator

LUA = """
local M = {}
local function typed(text)
  return {actions = {telex.action.mark_transcript("typed"), telex.action.text(text .. "\\n")}}
end
function M.classify(ctx)
  local busy = not ctx.screen:find("ready>$")
  return {state = busy and "busy" or "ready", confidence = 1, evidence = "the last row"}
end
function M.say(params)
  if not params.text then telex.refuse("say_what", "there is nothing to say") end
  return typed(params.text)
end
function M.tell(params)  -- whatever it is called
  local text = {}
  for _, name in ipairs {"intent", "matcher", "params", "self", "timeout", "wait"} do
    text[#text + 1] = params[name]
  end
  return typed(table.concat(text, ","))
end
function M.throw() error("no idea") end
function M.rests(input)  -- at a prompt that came after what was typed
  local since = input.markers.typed or 0
  return input.transcript:sub(since - input.cursor - 1):find("ready>$") ~= nil
end
function M.shows(input) return input.screen:find(input.params.text, 1, true) ~= nil end
"""
WAITS = """
function M.wait_turn_matcher() return telex.matcher.lua("rests") end
function M.wait_text_matcher(params) return telex.matcher.contains_text(params.text) end
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a plain prompt and without plugins."""
    directory = tmp_path / "home"
    directory.mkdir()
    (directory / ".bashrc").write_text("PS1='$ '\n")
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.setenv("TELEX_HOME", str(directory / "telex"))
    return directory


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert "telex" not in {thread.name for thread in threading.enumerate()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    directory = tmp_path_factory.mktemp("server")
    written(directory / "home" / "data" / "adapters" / "chatty")
    written(directory / "home" / "data" / "adapters" / "stays", "session.spawn", name="stays")
    with serving(directory) as served:
        yield served


def written(
    directory: Path, *permissions: str, name: str = "chatty", source: str = LUA + WAITS
) -> Path:
    """Write a plugin to the disk."""
    directory.mkdir(parents=True)
    (directory / "main.lua").write_text(source + "return M\n")
    (directory / "manifest.toml").write_text(
        f'name = "{name}"\nkind = "adapter"\nversion = "1"\nruntime = "lua"\n'
        f'entrypoint = "main.lua"\npermissions = {json.dumps(permissions or PERMISSIONS)}\n'
        f"[default_target]\nprogram = {json.dumps(sys.executable)}\n"
        f"args = {json.dumps(['-c', CHATTY])}\nrows = 10\n"
    )
    return directory


# Use.


def test_a_shell_is_driven_by_its_state(home: Path) -> None:
    with telex.adapt("shell", cwd=home) as shell:
        state = shell.turn("run", command="false")
        assert isinstance(state, AdapterState)
        assert (state.state, state.last_intent) == ("prompt", "command_submitted")
        assert state.metadata == {
            "exit_code": 1,
            "command": "false",
            "cwd": str(home),
            "prompt": "$",
        }
        assert shell.state().rule == "osc133_prompt"


@pytest.mark.each_loop
async def test_a_program_is_driven_in_an_event_loop() -> None:
    async with telex.adapt("shell") as shell:
        state = await shell.turn("run", command="(exit 4)")
        assert state.metadata["exit_code"] == 4  # type: ignore[index]  # it has one


def test_python_is_driven_by_its_state(program: Any) -> None:
    with telex.adapt("python-repl", [program("python3"), "-q"]) as python:
        state = python.turn("evaluate", code="6 * 7")
        assert state.metadata["result"] == "42"  # type: ignore[index]  # it has one
        state = python.turn("evaluate", code="1 / 0")
        assert state.metadata["error"]["type"] == "ZeroDivisionError"  # type: ignore[index]


def test_adapt_returns_when_the_program_is_ready(tmp_path: Path) -> None:
    directory = written(tmp_path / "chatty")
    slow = [sys.executable, "-c", f"import time; time.sleep(0.3)\n{CHATTY}"]
    with telex.adapt(directory, slow) as chatty:
        assert chatty.state().state == "ready"
    with telex.adapt(directory, "sleep 100", ready=None) as chatty:
        assert chatty.state().state == "busy"


def test_every_method_of_an_adapted_program(tmp_path: Path) -> None:
    with telex.adapt(str(written(tmp_path / "chatty")), cols=50, env={"X": "1"}) as chatty:
        assert (chatty.plugin, chatty.id, chatty.session) == ("chatty", "e1", "s1")
        assert chatty.send("say", text="one").last_intent is None
        assert chatty.wait("wait_text_matcher", text="did one").sequence > 1
        assert chatty.wait(timeout=60).state == "ready"
        chatty.turn("say", text="two", wait="wait_text_matcher", wait_params={"text": "did two"})
        assert "did two" in chatty.text()
        size = chatty.snapshot().size
        assert (size.rows, size.cols) == (10, 50)
        assert len(chatty.snapshot(cells="none").cells or ()) == 0
        assert "did one\n" in chatty.transcript()
        assert "did one\r\n" in chatty.transcript(strip=False)
        inspection = chatty.inspect()
        assert (inspection.session, inspection.state.state) == ("s1", "ready")
        described = chatty.describe()
        assert {"name": "say"} in described.intents
        assert {"name": "wait_turn_matcher"} in described.wait_matchers


def test_a_parameter_may_have_any_name(tmp_path: Path) -> None:
    taken = {name: name for name in ("params", "timeout", "wait")}
    with telex.adapt(written(tmp_path / "chatty")) as chatty:
        chatty.turn("tell", params=taken, intent="intent", self="self", matcher="matcher")
        assert "did intent,matcher,params,self,timeout,wait\n" in chatty.text()
        chatty.send("tell", params={"params": "p"}, timeout="t", wait="w")
        chatty.wait("wait_text_matcher", params={"text": "did p,t,w\n"})


def test_in_this_process_an_adapted_program_is_read_as_it_is_unless_redact_is_true(
    server: Serve, tmp_path: Path
) -> None:
    plugin = written(tmp_path / "chatty")
    for how, masks in (({}, False), ({"redact": True}, True), ({"redact": False}, False)):
        with telex.adapt(plugin, **how) as chatty:
            chatty.turn("say", text="password=hunter2secret")
            for read in (chatty.text, chatty.transcript, chatty.inspect):
                assert ("hunter2secret" not in str(read())) is masks
                assert "hunter2secret" not in str(read(redact=True))
                assert "hunter2secret" in str(read(redact=False))
    with telex.adapt("chatty", at=server.unix) as far:
        far.turn("say", text="password=hunter2secret")
        assert "hunter2secret" not in far.text()


@pytest.mark.parametrize("way", ["unix", "web"])
async def test_adapt_with_an_address_drives_an_adapter_of_a_server(server: Serve, way: str) -> None:
    address = getattr(server, way)
    async with telex.adapt("chatty", at=address, token=server.token) as chatty:
        state = await chatty.turn("say", text="hello")
        assert (state.state, state.last_intent) == ("ready", None)
        assert "did hello" in await chatty.text()
        async with telex.connect(server.unix) as there:
            assert await there.sessions() == ()  # the session is owned by an adapter
            assert "did hello" in await there.terminal(chatty.session).text()
    async with telex.connect(server.unix) as there:
        with pytest.raises(telex.Refused, match="unknown session"):
            await there.terminal(chatty.session).text()


def test_a_server_is_used_without_an_event_loop_too(server: Serve, home: Path) -> None:
    before = children()
    with telex.adapt("shell", ["bash", "-i"], cwd=home, at=server.unix) as shell:
        shell.turn("run", command="echo $((6 * 7))")
        assert "\n42\n" in shell.text()
        assert "run" in {one["name"] for one in shell.describe().intents}
    assert not children() - before


# Failures.


@pytest.fixture(params=["here", "there"])
def opening(request: pytest.FixtureRequest, tmp_path: Path, server: Serve) -> Any:
    """`with opening() as chatty:`, in this process and on a server."""
    if request.param == "there":
        return lambda *command, **how: telex.adapt("chatty", *command, at=server.unix, **how)
    directory = written(tmp_path / "chatty")
    return lambda *command, **how: telex.adapt(directory, *command, **how)


def test_a_turn_that_times_out_shows_the_state_and_the_screen(opening: Any) -> None:
    with opening() as chatty, pytest.raises(telex.TimedOut) as caught:
        chatty.turn(
            "say", text="x", wait="wait_text_matcher", wait_params={"text": "never"}, timeout=0.3
        )
    assert caught.value.data["state"] == {
        "state": "ready",
        "confidence": 1.0,
        "evidence": "the last row",
        "sequence": caught.value.data["state"]["sequence"],
        "candidates": [],
        "last_intent": None,
        "metadata": {},
    }
    said = str(caught.value)
    assert re.match(r"'wait_text_matcher' of the plugin chatty did not come within \d+ ms\n", said)
    assert "the state: ready: the last row\n" in said
    assert "  | did x\n" in said
    assert str(pickle.loads(pickle.dumps(caught.value))) == said


REFUSED: list[Any] = [
    (lambda chatty: chatty.send("say"), "nothing to say", "say_what"),
    (lambda chatty: chatty.turn("sing"), "no intent 'sing'; there are .*say", "unknown_function"),
    (lambda chatty: chatty.wait("say"), "no wait matcher 'say'", "unknown_function"),
    (lambda chatty: chatty.send("say", text=object()), "object", None),
]


@pytest.mark.parametrize(("ask", "says", "reason"), REFUSED)
def test_invalid_manifests_are_refused_with_a_reason(
    opening: Any, ask: Any, says: str, reason: str | None
) -> None:
    with opening() as chatty:
        with pytest.raises(telex.Refused, match=says) as caught:
            ask(chatty)
        assert caught.value.data.get("reason") == reason
        assert chatty.state().state == "ready"


def test_a_failing_plugin_is_reported_by_its_name(opening: Any) -> None:
    with opening() as chatty:
        with pytest.raises(telex.PluginFailed, match=r"chatty: .*throw.*: .*no idea") as caught:
            chatty.send("throw")
        assert caught.value.data["kind"] == "threw"
        assert chatty.turn("say", text="x").state == "ready"


def test_the_exit_of_a_program_is_reported_with_its_screen(opening: Any) -> None:
    with opening() as chatty:
        with pytest.raises(
            telex.SessionClosed, match=r"exited with code 3(.|\n)*did leave"
        ) as caught:
            chatty.turn("say", text="leave")
        assert caught.value.data["child"]["exit_code"] == 3
        with pytest.raises(telex.SessionClosed):
            chatty.send("say", text="more")
        assert "did leave" in chatty.text()


def test_a_program_that_cannot_start_is_reported_with_the_reason(
    opening: Any, tmp_path: Path
) -> None:
    with pytest.raises(telex.NotStarted, match="no-such-program"), opening("no-such-program"):
        pass
    with pytest.raises(telex.NotStarted, match="nowhere"), opening(cwd=tmp_path / "nowhere"):
        pass
    with pytest.raises(ValueError, match="rows"):
        opening(rows=-1)
    with pytest.raises(ValueError, match="command is empty"):
        opening("")


def test_a_program_that_is_never_ready_is_ended(opening: Any) -> None:
    late = opening("sleep 100", ready=0.3)
    with pytest.raises(telex.TimedOut, match="the state: busy") as caught, late:
        pass
    assert "ready=None" in caught.value.__notes__[0]


def test_an_unknown_plugin_is_refused(server: Serve, tmp_path: Path) -> None:
    for how in ({}, {"at": server.unix}):
        with (
            pytest.raises(telex.Refused, match="did you mean shell") as caught,
            telex.adapt("shel", **how),  # type: ignore[arg-type]  # one value for all names
        ):
            pass
        assert caught.value.data["reason"] == "unknown_plugin"
    with pytest.raises(telex.Refused, match=r"there is no .*nowhere"), telex.adapt("./nowhere"):
        pass
    directory = written(tmp_path / "bad")
    (directory / "manifest.toml").write_text("name = 7\n")
    with pytest.raises(telex.Refused, match="name") as caught, telex.adapt(directory):
        pass
    assert caught.value.data["reason"] == "bad_manifest"


def test_a_path_is_a_path_and_a_name_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "shell", name="mine")
    monkeypatch.chdir(tmp_path)
    with telex.adapt(Path("shell")) as mine:
        assert mine.plugin == "mine"
    with telex.adapt("shell") as shell:
        assert shell.plugin == "shell"


def test_methods_without_their_permission_are_refused(tmp_path: Path) -> None:
    directory = written(tmp_path / "reads", "session.spawn", "screen.read", source=LUA)
    with telex.adapt(directory) as reads:  # without waiting; it is closed all the same
        with pytest.raises(telex.NotPermitted, match=r"input\.write"):
            reads.send("say", text="x")
        with pytest.raises(telex.NotPermitted) as caught:
            reads.wait()
        assert caught.value.data["required_permission"] == "matcher.wait"
        assert reads.state().state in {"busy", "ready"}


def test_closing_without_session_kill_is_refused_by_the_server(server: Serve) -> None:
    with (
        pytest.raises(telex.NotPermitted, match=r"session\.kill"),
        telex.adapt("stays", at=server.unix),
    ):
        pass


def test_adapt_does_not_wait_for_a_plugin_without_waits(tmp_path: Path) -> None:
    with telex.adapt(written(tmp_path / "chatty", source=LUA)) as chatty:
        chatty.send("say", text="x")
        with pytest.raises(telex.Refused, match="no wait matcher 'wait_turn_matcher'"):
            chatty.wait()


def test_the_end_of_the_server_is_reported(tmp_path: Path) -> None:
    with serving(tmp_path) as served, telex.adapt("shell", at=served.unix) as shell:
        served.kill()
        with pytest.raises(telex.ServerGone):
            shell.state()


# Start and end.


def test_leaving_the_block_leaves_no_process(opening: Any) -> None:
    before = children()
    with pytest.raises(ZeroDivisionError), opening() as chatty:
        chatty.send("say", text=str(1 / 0))
    assert children() == before
    with pytest.raises(telex.SessionClosed, match="block has ended"):
        chatty.state()


async def test_closing_is_idempotent_and_then_it_is_closed(opening: Any) -> None:
    async with opening() as chatty:
        await chatty.close()
        await chatty.close()
        with pytest.raises(telex.SessionClosed, match=f"{chatty.id} was closed"):
            await chatty.state()


async def test_leaving_an_adapter_that_another_client_closed_is_no_error(server: Serve) -> None:
    async with telex.adapt("chatty", at=server.unix) as chatty:
        await chatty._asking.call("adapter.close", OfAdapter(chatty.id), Closed)
        with pytest.raises(telex.Refused, match="unknown adapter"):
            await chatty.state()


async def test_a_cancelled_block_ends_its_program(opening: Any) -> None:
    before, began = children(), asyncio.Event()

    async def work() -> None:
        async with opening() as chatty:
            began.set()
            await chatty.wait("wait_text_matcher", text="never")

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == before


async def test_a_block_that_is_cancelled_while_it_ends_ends_its_program(opening: Any) -> None:
    before = children()
    stubborn = "trap '' HUP TERM INT; echo ready; while :; do sleep 0.1; done"
    chatty = await opening(["sh", "-c", stubborn], ready=None)
    await chatty.wait("wait_text_matcher", text="ready")
    closing = asyncio.create_task(chatty.close())
    await asyncio.sleep(0.05)  # while the process tree is being ended
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert children() == before


@pytest.mark.counted
async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path, counted: Any) -> None:
    directory, before = written(tmp_path / "chatty"), children()
    for number in range(counted(8, 60)):

        async def work() -> None:
            async with telex.adapt(directory):
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await asyncio.wait({task}, timeout=0.01 * number)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == before


def test_a_turn_in_another_thread_ends_with_the_block(tmp_path: Path) -> None:
    told: list[BaseException] = []

    def turning() -> None:
        try:
            chatty.turn("say", text="x", wait="wait_text_matcher", wait_params={"text": "never"})
        except telex.SessionClosed as closed:
            told.append(closed)

    with telex.adapt(written(tmp_path / "chatty")) as chatty:
        thread = threading.Thread(target=turning)
        thread.start()
        chatty.wait("wait_text_matcher", text="did x")
    thread.join(60)
    assert len(told) == 1


async def test_an_unclosed_program_warns(tmp_path: Path) -> None:
    forgotten = [await telex.adapt(written(tmp_path / "chatty"))]
    asking = forgotten[0]._asking
    with pytest.warns(ResourceWarning, match="not closed"):
        forgotten.clear()
    await asking.close()


# Predicates, for a program without an adapter.


def test_a_spawned_program_is_waited_for_by_a_predicate(tmp_path: Path) -> None:
    directory = written(tmp_path / "chatty")
    like_a_shell = CHATTY.replace("end=''", "end=' '")
    with telex.spawn([sys.executable, "-c", like_a_shell]) as term:
        shows = match.lua(str(directory), "shows", text="ready>")
        assert term.wait(shows).evidence["kind"] == "lua"
        assert term.wait(match.lua("shell", "person_is_needed"), 5)
        mark = term.type("x\n")
        term.wait(match.all_of("did x", shows), since=mark)
        with pytest.raises(telex.TimedOut, match="the predicate says no"):
            term.wait(match.lua(str(directory), "shows", text="never"), 0.2)


@pytest.mark.parametrize(
    ("plugin", "predicate", "says"),
    [
        ("shel", "person_is_needed", "did you mean shell"),
        ("./nowhere", "shows", "there is no .*nowhere"),
        ("shell", "is_anything", "shell: .*is_anything"),
    ],
)
def test_an_unknown_predicate_is_refused(plugin: str, predicate: str, says: str) -> None:
    with telex.spawn("cat") as term:
        with pytest.raises(telex.Refused, match=says):
            term.wait(match.lua(plugin, predicate))
        term.type("x\n")
        term.wait("x\nx")


def test_a_predicate_runs_on_the_server(server: Serve) -> None:
    with telex.connect(server.unix) as there, there.spawn("cat") as term:
        term.type("abc\n")
        term.wait(match.lua("chatty", "shows", text="abc\nabc"))


def test_a_program_without_such_matchers_loads_no_plugins() -> None:
    script = (
        "import sys, telex\n"
        "with telex.spawn('echo hello') as term: term.wait('hello')\n"
        "print(sorted(name for name in sys.modules if name.startswith('telex.adapters')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "['telex.adapters', 'telex.adapters.terminal_spawn']\n"


# The public interface.


def test_the_blocking_twin_has_the_same_methods() -> None:
    def public(kind: type) -> dict[str, Any]:
        return {
            name: member
            for name, member in vars(kind).items()
            if inspect.isfunction(member) and not name.startswith("_")
        }

    ours, theirs = public(sync.Adapted), public(client.AsyncAdapted)
    assert list(ours) == list(theirs)
    for name, method in theirs.items():
        assert inspect.signature(ours[name]) == inspect.signature(method), name
        assert ours[name].__doc__ == (method.__doc__ or "").replace("await ", ""), name
        assert ours[name].__doc__, f"{name} says what it does"
