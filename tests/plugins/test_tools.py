"""Tools of all plugins: unique names, calls, and failures as results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plugins.animals import RecordingHost, animal, written
from telex.plugins import protocol as spec
from telex.plugins.limits import PLUGIN_TOOLS
from telex.plugins.plugin_tools import list_tools
from telex.plugins.supervisor import PluginSupervisors

if TYPE_CHECKING:
    from pathlib import Path

    from telex.plugins.discovery import FoundPlugin

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"type": "integer", "x-own": None}},
}
SOURCE = """
import json
schema = json.loads(%r)
def call(m):
    name, given = m["params"]["name"], m["params"].get("arguments")
    if name == "echo":
        speaking.write(id=m["id"], result={"content": given})
    elif name == "fails":
        speaking.write(id=m["id"], result={"content": "not today", "isError": True})
    elif name == "refuses":
        speaking.write(id=m["id"], error={"code": -32602, "message": "a is missing"})
    elif name == "strange":
        speaking.write(id=m["id"], result=3)
    elif name == "dies":
        sys.exit(1)
speaking.serve(**{
    "handshake": lambda m: speaking.write(id=m["id"], result=speaking.introduction(
        capabilities={"tools": True})),
    "tools/list": lambda m: speaking.write(id=m["id"], result={"tools": [
        {"name": name, "inputSchema": schema} for name in %r]}),
    "tools/call": call,
})
"""


def with_tools(directory: Path, *names: str) -> FoundPlugin:
    return written(directory, SOURCE % (json.dumps(SCHEMA), names))


NAMES = ("echo", "fails", "refuses", "strange", "dies", "sleeps")


async def test_a_failing_plugin_does_not_hide_the_tools_of_others(tmp_path: Path) -> None:
    plugins = [with_tools(tmp_path, "echo", "echo"), animal("exits_at_once")]
    plugins.append(animal("answers_late"))  # a plugin without tools
    async with PluginSupervisors(plugins, RecordingHost().settings()) as supervisors:
        found = await list_tools(supervisors)
    assert list(found.by_name) == ["own.echo"]
    assert len(found.problems) == 2
    assert found.problems[0] == "the plugin own has a tool own.echo, and so has own"
    assert found.problems[1].startswith("the plugin exits_at_once ")


async def test_a_schema_and_any_json_are_passed_on_unchanged(tmp_path: Path) -> None:
    async with PluginSupervisors(
        [with_tools(tmp_path, *NAMES)], RecordingHost().settings()
    ) as supervisors:
        found = await list_tools(supervisors)
        assert found.by_name["own.echo"].tool.input_schema == SCHEMA
        arguments = {"a": [None, {"b": None}], "c": "ü"}
        assert await found.call("own.echo", arguments) == spec.ToolOutput(arguments)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own.fails", "not today"),
        ("own.refuses", "a is missing"),
        ("own.strange", "own.strange returned a result that is no object."),
        ("own.dies", "the plugin own "),
        ("own.sleeps", "the plugin own did not answer tools/call within 0."),
        ("own.none", "There is no tool own.none; there are: own.echo, "),
    ],
)
async def test_every_failure_of_a_tool_call_is_a_result(
    tmp_path: Path, name: str, said: str
) -> None:
    async with PluginSupervisors(
        [with_tools(tmp_path, *NAMES)], RecordingHost().settings()
    ) as supervisors:
        found = await list_tools(supervisors)
        result = await found.call(name, {}, timeout=0.3 if name == "own.sleeps" else 5)
    assert result.is_error
    assert str(result.content).startswith(said)


async def test_a_plugin_with_too_many_tools_has_none(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(PLUGIN_TOOLS + 1)]
    async with PluginSupervisors(
        [with_tools(tmp_path, *names)], RecordingHost().settings()
    ) as supervisors:
        found = await list_tools(supervisors)
    assert not found.by_name
    assert str(PLUGIN_TOOLS) in found.problems[0]
