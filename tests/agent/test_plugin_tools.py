"""Tools of plugins in the agent: judged like others, started by their first call, killed by a cancel."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, an_agent
from agent.working import gone
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.tools.plugins import PluginToolSource
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.config import places
from telex.plugins import discovery
from telex.plugins.plugin_tools import list_tools
from telex.plugins.supervisor import PluginSupervisors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.ui_side import Agent

COUNTER = Path(__file__).parents[2] / "examples" / "plugins" / "counter.py"
BUSY = f"""#!{sys.executable}
import os, time
from pathlib import Path
from telex.plugins.sdk import Plugin

plugin = Plugin("busy", version="1", description="Busy.")

@plugin.tool()
def work(told: str) -> str:
    Path(told).write_text(str(os.getpid()))
    time.sleep(60)
    return "done"

plugin.run()
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the plugins."""
    made = tmp_path / "plugins"
    made.mkdir(mode=0o700)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return made


def put(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(text)
    (directory / name).chmod(0o700)


@asynccontextmanager
async def agent_with_plugins(
    directory: Path, *steps: ScriptStep, mode: str = "minimal"
) -> AsyncIterator[tuple[Agent, PluginSupervisors]]:
    """An agent with the plugins of the directory."""
    environ = {**os.environ, "TELEX_PLUGIN_PATH": str(directory)}
    found = discovery.find(
        places.find({"TELEX_HOME": str(directory.parent / "home")}), environ
    ).found
    assert not [one.refusal for one in found if one.refusal]
    core = ScriptedCore("s", [*steps])
    async with PluginSupervisors(found) as keepers:
        tools = ToolRegistry(BUILTIN_TOOLS, PluginToolSource(keepers))
        async with an_agent(directory.parent, core, mode=mode, tools=tools) as agent:
            yield agent, keepers


async def test_a_plugins_tool_is_asked_about_and_its_plugin_started_only_then(
    directory: Path, tmp_path: Path
) -> None:
    shutil.copy(COUNTER, directory / "counter.py")
    add = ScriptStep(tool="counter.add", arguments={"a": 1, "b": 2})
    async with agent_with_plugins(directory, add) as (agent, keepers):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        assert question["params"]["message"].startswith("| counter.add\na: 1\nb: 2\n")
        assert keepers["counter"].running is None, "the plugin runs before it is permitted"
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "3"


async def test_a_problem_of_a_plugins_tool_is_a_result(directory: Path) -> None:
    shutil.copy(COUNTER, directory / "counter.py")
    put(directory, "broken", "#!/bin/sh\nexit 3\n")
    async with agent_with_plugins(directory, mode="full") as (agent, _):
        ui = await agent.connect(**ALL)
        for name, arguments, said in (
            ("counter.add", {"a": 1}, "add: "),
            ("counter.nothing", {}, "There is no tool counter.nothing; there are: counter.add."),
            ("broken.any", {}, "broken"),
        ):
            answer = await ui.call("tool.call", {"name": name, "arguments": arguments})
            assert not answer["ok"]
            assert said in answer["result"]
        assert (await ui.refusal("tool.call", {"name": "other.any"})).code == -32602
        bad = {"name": "counter.add", "arguments": [1]}
        assert (await ui.refusal("tool.call", bad)).code == -32602


async def test_a_plugin_lists_its_tools_once_and_again_for_an_unknown_tool(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(COUNTER, directory / "counter.py")
    lists = []

    async def counted(keepers: list[Any]) -> Any:
        lists.append(keepers[0].name)
        return await list_tools(keepers)

    monkeypatch.setattr("telex.agent.tools.plugins.list_tools", counted)
    async with agent_with_plugins(directory, mode="full") as (agent, keepers):
        ui = await agent.connect(**ALL)
        add = {"name": "counter.add", "arguments": {"a": 1, "b": 2}}
        for _ in range(3):
            assert (await ui.call("tool.call", add))["result"] == "3"
        assert len(lists) == 1
        await ui.call("tool.call", {"name": "counter.nothing"})
        assert len(lists) == 2
        running = keepers["counter"].running
        assert running is not None
        await running.close()
        assert (await ui.call("tool.call", add))["result"] == "3"
        assert len(lists) == 3


async def test_every_argument_of_a_plugins_tool_is_shown(directory: Path) -> None:
    """Built-in tools omit arguments with default values; the defaults of a plugin are unknown."""
    shutil.copy(COUNTER, directory / "counter.py")
    add = ScriptStep(tool="counter.add", arguments={"a": None, "cwd": "."})
    async with agent_with_plugins(directory, add) as (agent, _):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        assert question["params"]["message"].startswith('| counter.add\na: null\ncwd: "."\n')
        ui.answer(question, {"ok": False})
        await ui.until_ended(run)


async def said_through(fifo: Path) -> bytes:
    """Return the first text written to the pipe, without a thread that could block forever."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        loop.add_reader(descriptor, readable.set)
        await readable.wait()
        return os.read(descriptor, 100)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_a_cancel_stops_everything_of_the_tool(directory: Path, tmp_path: Path) -> None:
    put(directory, "busy", BUSY)
    told = tmp_path / "told"
    os.mkfifo(told)
    work = ScriptStep(tool="busy.work", arguments={"told": str(told)})
    async with agent_with_plugins(directory, work, mode="full") as (agent, _):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        pid = int(await said_through(told))
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"]
        assert gone(pid)
        assert ui.statuses(run)[-1] == "cancelled"
