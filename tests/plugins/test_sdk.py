"""`telex.plugins.sdk`, with real plugins in their own processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from telex.plugins import protocol as spec
from telex.plugins.check.bench import CheckedProcess, Message, frame, message
from telex.plugins.sdk import Flag, Plugin, ToolCall
from telex.plugins.sdk.plugin import BadName
from telex.plugins.sdk.signature import NotConfigurable, Signature

SOURCE = '''
import asyncio, logging, sys, threading
from pathlib import Path
import msgspec
from telex.plugins.sdk import *

class Config(msgspec.Struct):
    colour: str = "red"
    size: int = 1

plugin = Plugin("tried", version="2", config=Config)
remote = plugin.group("remote", description="Those far away.")
stuck = threading.Event()

@plugin.command()
def say(call: CommandCall, text: str = "nothing", times: int = 1, into: Path | None = None,
        words: list[str] = [], dry_run: bool = False) -> None:
    """Say it all."""
    told = dict(given=list(call.args), text=text, times=times, into=repr(into), words=words,
                dry=dry_run, config=[plugin.config.colour, plugin.config.size])
    logging.info("said", extra=told)

@remote.command("add")
async def add_remote(call: CommandCall, name: str) -> None:
    logging.getLogger("far").warning("added %s", name)

@plugin.command()
def noisy() -> None:
    print("printed"); print("flushed", flush=True); sys.stdout.write("half a line"); sys.stdout.flush()
    logging.debug("too quiet")

@plugin.command()
def fail(how: str) -> None:
    if how == "said": raise Failed("It is broken.", data={"why": 1})
    if how == "config": raise InvalidConfig("how: not this")
    if how == "exit": sys.exit(3)
    open("/nonexistent/file")

@plugin.command()
async def slow(call: CommandCall) -> None:
    try:
        call.progress(message="waiting")
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        logging.info("stopped waiting")
        raise

@plugin.command()
def slow_thread(call: CommandCall) -> None:
    call.progress(1, 2)
    logging.info("it was " + ("cancelled" if call.wait_cancelled(60) else "forgotten"))

@plugin.command()
def deaf(call: CommandCall) -> None:
    call.progress(message="deaf")
    stuck.wait()

@plugin.command()
async def flood() -> None:
    for number in range(20_000): logging.info("%s %d", "x" * 200, number)
    print("flooded")

@plugin.task()
def link(call: TaskCall, source: Path) -> None:
    logging.info("%s", call.directory / source)
    raise RuntimeError("no links here")

@plugin.validate("link")
async def check(source: Path) -> None:
    if source.is_absolute(): raise InvalidConfig("source: has to be relative")

@plugin.tool()
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b

@plugin.tool()
async def divide(a: float, b: float) -> float:
    return a / b

@plugin.at_shutdown
def bye() -> None:
    logging.info("bye")

plugin.run()
'''


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sdk") / "tried.py"
    path.write_text(SOURCE)
    return path


@asynccontextmanager
async def started(source: Path) -> AsyncIterator[CheckedProcess]:
    subject = await CheckedProcess.start([sys.executable, str(source)], dict(os.environ), 10.0)
    try:
        yield subject
    finally:
        await subject.close()


@asynccontextmanager
async def ready(
    source: Path, *config: Message, level: str = "info"
) -> AsyncIterator[CheckedProcess]:
    async with started(source) as subject:
        shake = {"protocol": "rpp", "protocolVersion": 0, "capabilities": {"progress": True}}
        await subject.result("handshake", shake)
        logging = {"enabled": True, "level": level}
        await subject.result("initialize", {"logging": logging, "config": list(config)})
        yield subject


def logged(subject: CheckedProcess) -> list[Message]:
    return [said["params"] for said in subject.received if said.get("method") == "log"]


def pair(key: str, value: object) -> Message:
    return {"key": key, "value": value}


async def error(subject: CheckedProcess, method: str, params: Message) -> Message:
    return (await subject.request(method, params))["error"]


async def test_the_handshake_describes_the_parameters_of_functions(source: Path) -> None:
    async with started(source) as subject:
        shake = {"protocol": "rpp", "protocolVersion": 0, "capabilities": None}
        said = await subject.result("handshake", shake)
        assert (said["name"], said["version"]) == ("tried", "2")
        assert "capabilities" not in said, "the host mentioned none"
        assert {entry["key"]: entry["value"] for entry in said["configs"]} == {
            "colour": "red",
            "size": 1,
        }
        commands = {command["name"]: command for command in said["commands"]}
        types = {entry["key"]: entry["type"] for entry in commands["say"]["configs"]}
        assert types == {
            "text": "string",
            "times": "int",
            "into": "path",
            "words": "stringList",
            "dry-run": "bool",
        }
        assert commands["say"]["description"] == "Say it all."
        assert [one["name"] for one in commands["remote"]["commands"]] == ["add"]
        assert said["tasks"][0]["type"] == "link"
        answer = await error(subject, "runCommand", {"name": "say"})
        assert answer["code"] == spec.NOT_INITIALIZED
        shake["capabilities"] = {}
        said = await subject.result("handshake", shake)
        assert said["capabilities"] == {"cancel": True, "progress": True, "tools": True}
        bad = {"logging": {"enabled": True}, "config": [pair("size", "large")]}
        assert (await error(subject, "initialize", bad))["code"] == spec.INVALID_CONFIG


async def test_an_unknown_method_is_answered_with_the_nearest_names(source: Path) -> None:
    async with ready(source) as subject:
        for misspelt, meant in (("runComand", "runCommand"), ("tools/lst", "tools/list")):
            told = await error(subject, misspelt, {})
            assert (told["code"], told["data"]) == (-32601, {"nearest": [meant]})


async def test_values_reach_the_function_with_their_types(source: Path) -> None:
    async with ready(source, pair("size", 7), pair("colour", None)) as subject:
        config = [
            pair("text", "hé"),
            pair("into", "a/b"),
            pair("words", ["x", "y"]),
            pair("dry-run", True),
        ]
        await subject.result("setupCommand", {"name": "say", "args": ["1", "2"], "config": config})
        await subject.result("runCommand", {"name": "say"})
        await subject.result("runCommand", {"name": "say"})
        first, second = (line["fields"] for line in logged(subject))
        assert first["given"] == ["1", "2"]
        assert (first["text"], first["times"], first["words"], first["dry"]) == (
            "hé",
            1,
            ["x", "y"],
            True,
        )
        assert first["into"] == "PosixPath('a/b')"
        assert first["config"] == ["red", 7]
        assert (second["text"], second["given"], second["words"]) == ("nothing", [], []), (
            "set up once, run once"
        )
        await subject.result("runCommand", {"name": "remote.add", "config": [pair("name", "far")]})
        line = logged(subject)[-1]
        assert (line["level"], line["msg"], line["fields"]["logger"]) == (
            "warn",
            "added far",
            "far",
        )


async def test_each_failure_has_its_error_code(source: Path) -> None:
    async with ready(source) as subject:

        async def code(method: str, **params: Any) -> int:
            return (await error(subject, method, params))["code"]

        assert await code("setupCommand", name="nobody", args=[]) == spec.INVALID_COMMAND
        assert await code("setupCommand", name="remote", args=[]) == spec.NOT_RUNNABLE
        assert (
            await code("setupCommand", name="say", args=[], config=[pair("times", "x")])
            == spec.INVALID_CONFIG
        )
        assert await code("setupCommand", args=[]) == -32602
        said = await error(subject, "runCommand", {"name": "fail", "config": [pair("how", "said")]})
        assert said == {"code": spec.COMMAND_FAILED, "message": "It is broken.", "data": {"why": 1}}
        assert (
            await code("runCommand", name="fail", config=[pair("how", "config")])
            == spec.INVALID_CONFIG
        )
        said = await error(subject, "runCommand", {"name": "fail", "config": [pair("how", "")]})
        assert said["code"] == spec.COMMAND_FAILED
        assert "FileNotFoundError" in said["message"]
        assert 'open("/nonexistent' in logged(subject)[-1]["fields"]["traceback"]
        assert (
            await code("runCommand", name="fail", config=[pair("how", "exit")])
            == spec.COMMAND_FAILED
        )
        assert await code("validateTask", type="link", config=[]) == spec.INVALID_CONFIG
        assert (
            await code("validateTask", type="link", config=[pair("source", "/a")])
            == spec.INVALID_CONFIG
        )
        await subject.result("validateTask", {"type": "link", "config": [pair("source", "a")]})
        assert (
            await code("runTask", type="link", dir="/d", config=[pair("source", "a")])
            == spec.TASK_FAILED
        )
        assert "/d/a" in [line["msg"] for line in logged(subject)]


async def test_failures_of_tools_are_results(source: Path) -> None:
    async with ready(source) as subject:

        async def call(name: str, **arguments: Any) -> Any:
            return await subject.result("tools/call", {"name": name, "arguments": arguments})

        listed = (await subject.result("tools/list"))["tools"]
        assert [tool["name"] for tool in listed] == ["add", "divide"]
        assert listed[0]["inputSchema"]["required"] == ["a"]
        assert await call("add", a=1, b=2) == {"content": 3}
        assert await call("add", a=1) == {"content": 2}
        assert await call("divide", a=1, b=4) == {"content": 0.25}
        said = await call("divide", a=1, b=0)
        assert said["isError"] is True
        assert "ZeroDivisionError" in said["content"]
        assert (await error(subject, "tools/call", {"name": "add", "arguments": {"a": "x"}}))[
            "code"
        ] == -32602
        assert (await error(subject, "tools/call", {"name": "nobody"}))["code"] == -32602


async def test_print_never_writes_to_the_protocol(source: Path) -> None:
    async with ready(source) as subject:
        await subject.result("runCommand", {"name": "noisy"})
        await subject.result("shutdown")
        subject.send_message("exit")
        assert (await subject.exit()).code == 0
        assert subject.strays == []
        assert subject.stderr[:3] == ["printed", "flushed", "half a line"]
        assert [line["msg"] for line in logged(subject)] == ["bye"], "debug was not asked for"


@pytest.mark.parametrize(
    ("name", "last"), [("slow", "stopped waiting"), ("slow-thread", "it was cancelled")]
)
async def test_a_cancel_reaches_the_function(source: Path, name: str, last: str) -> None:
    async with ready(source) as subject:
        subject.send_message("runCommand", {"name": name, "progressToken": 5}, id="run")
        await subject.until(lambda said: said.get("method") == "$/progress", "progress")
        subject.send_message("$/cancelRequest", {"id": "run"})
        answer = await subject.answer("run", name)
        assert answer["error"]["code"] == spec.CANCELLED
        await subject.until(lambda said: said.get("params", {}).get("msg") == last, last)
        await subject.alive()
        assert subject.answers_to("run") == 1


async def test_an_endless_function_blocks_neither_other_calls_nor_exit(
    source: Path,
) -> None:
    async with ready(source) as subject:
        for number in range(3):
            subject.send_message(
                "runCommand", {"name": "deaf", "progressToken": number}, id=f"deaf-{number}"
            )
        await subject.until(lambda said: said.get("params", {}).get("token") == 2, "the third")
        assert (await subject.result("tools/call", {"name": "add", "arguments": {"a": 1}})) == {
            "content": 2
        }
        await subject.result("shutdown")
        after = await error(subject, "runCommand", {"name": "say"})
        assert after["code"] == spec.SHUTTING_DOWN
        subject.send_message("exit")
        assert (await subject.exit()).code == 0


async def test_eof_ends_the_plugin_even_during_calls(source: Path) -> None:
    async with ready(source) as subject:
        subject.send_message("runCommand", {"name": "deaf", "progressToken": 1})
        subject.send_message("runCommand", {"name": "deaf", "progressToken": 1}, id=1)
        await subject.until(lambda said: said.get("method") == "$/progress", "progress")
        subject.close_input()
        assert (await subject.exit()).code == 0


async def test_the_exit_code_is_0_after_shutdown_and_otherwise_1(source: Path) -> None:
    async with started(source) as subject:
        subject.send_message("exit")
        assert (await subject.exit()).code == 1
    async with started(source) as subject:
        subject.send(frame(message("shutdown", id=1)) + frame(message("exit")))
        assert (await subject.exit()).code == 0, "however quickly one follows the other"


async def test_generation_b_gets_its_own_form_of_answers(source: Path) -> None:
    async with started(source) as subject:
        said = await subject.result("handshake", {"protocol": "reginald", "protocolVersion": 0})
        assert said == {"protocol": "reginald", "protocolVersion": 0, "name": "tried"}
        params = {
            "cmd": "remote.add",
            "config": [pair("name", "x")],
            "pluginConfig": [pair("size", 3)],
        }
        assert await subject.result("runCommand", params) == {}
        task = {"taskType": "link", "config": [pair("source", "a")]}
        for method, params, code in (
            ("runTask", task, -32003),
            ("runCommand", {"cmd": "fail", "config": [pair("how", "said")]}, -32003),
            ("runCommand", {"cmd": "nobody"}, -32001),
            ("runCommand", {"cmd": "remote"}, -32002),
            ("handshake", {"protocol": "reginald", "protocolVersion": 9}, -32000),
            ("runCommand", {"cmd": "fail", "config": [pair("how", 5)]}, spec.INVALID_CONFIG),
        ):
            assert (await error(subject, method, params))["code"] == code, method
        assert await subject.result("shutdown") is True


async def test_logging_does_not_block_while_the_host_does_not_read(source: Path) -> None:
    async with ready(source) as subject:
        (out, _) = subject._reading
        out.pause_reading()
        subject.send_message("runCommand", {"name": "flood"}, id="flood")
        while "flooded" not in subject.stderr:
            subject._more.clear()
            await subject._more.wait()
        out.resume_reading()
        await subject.answer("flood", "flood")
        flooded = len(logged(subject))
        assert 1000 < flooded < 20_000, "5 MB were said, of which 1 MB may wait"
        await subject.result("runCommand", {"name": "say"})
        told = logged(subject)[flooded]["msg"]
        assert told == f"{20_000 - flooded} messages were dropped: the host did not read them"


def test_starting_a_plugin_by_hand_prints_what_it_is(source: Path) -> None:
    master, slave = pty.openpty()
    try:
        ran = subprocess.run(
            [sys.executable, str(source)],
            stdin=slave,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert ran.returncode == 1
    assert "telex plugin check" in ran.stderr
    assert ran.stdout == ""


def test_a_bad_declaration_raises_at_its_decorator() -> None:
    plugin = Plugin("tried")
    with pytest.raises(BadName, match="not a valid name"):
        Plugin("a b")

    @plugin.command("one")
    def one() -> None: ...

    with pytest.raises(BadName, match="twice"):
        plugin.command("one")(one)
    with pytest.raises(BadName, match="no task"):
        plugin.validate("nothing")(one)

    def untyped(x) -> None: ...  # type: ignore[no-untyped-def]  # the mistake
    def strange(x: dict[str, int]) -> None: ...

    with pytest.raises(NotConfigurable, match="needs a type"):
        plugin.command()(untyped)
    with pytest.raises(NotConfigurable, match="a configuration entry must be"):
        plugin.command()(strange)
    plugin.tool()(strange)  # a tool accepts any JSON


def test_parameters_may_have_a_description_a_flag_and_choices() -> None:
    def paint(
        call: ToolCall,
        how: Annotated[Literal["oil", "chalk"], "with what", Flag(shorthand="w")] = "oil",
    ) -> None: ...

    (entry,) = Signature(paint).configs()
    assert (entry.key, entry.value, entry.type, entry.description) == (
        "how",
        "oil",
        "string",
        "with what",
    )
    assert entry.flag == Flag(shorthand="w")
    assert Signature(paint).schema()["properties"]["how"]["description"] == "with what"
