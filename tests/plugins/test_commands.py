"""Commands: found by name or alias, run in the form of each generation, cancelled."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from plugins.animals import RecordingHost, written
from telex.plugins import errors, plugin_commands
from telex.plugins import protocol as spec
from telex.plugins.client import start
from telex.plugins.plugin_commands import ChosenCommand, content_text, text_of

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = """
import json
asked = []
def note(m):
    asked.append([m["method"], m.get("params")])
    speaking.write(id=m["id"], result={"content": json.dumps(asked)})
"""
A = RECORDS + "speaking.serve(setupCommand=note, runCommand=note)\n"
B = (
    RECORDS
    + """
speaking.serve(
    handshake=lambda m: speaking.write(id=m["id"], result={
        "protocol": "reginald", "protocolVersion": 0, "name": "own"}),
    setupCommand=note, runCommand=note, initialize=note)
"""
)
MANIFEST_B = spec.PluginManifest("own", "own.py", commands=[spec.CommandEntry("remote")])
VALUES = (spec.KeyValue("force", value=True, type="bool"),)


async def told(
    directory: Path, source: str, chosen: ChosenCommand, manifest: spec.PluginManifest | None = None
) -> object:
    """Return the requests that the plugin received, which are its result."""
    async with start(written(directory, source, manifest), RecordingHost().settings()) as plugin:
        return json.loads(await plugin_commands.run(plugin, chosen) or "")


async def test_generation_a_is_set_up_with_arguments_and_values_and_then_run(
    tmp_path: Path,
) -> None:
    chosen = ChosenCommand(("remote", "add"), ("origin", "-x"), VALUES, (spec.KeyValue("no", 1),))
    config = [{"key": "force", "value": True, "type": "bool"}]
    assert await told(tmp_path, A, chosen) == [
        ["setupCommand", {"name": "remote.add", "args": ["origin", "-x"], "config": config}],
        ["runCommand", {"name": "remote.add"}],
    ]


async def test_generation_b_gets_path_values_and_plugin_values_in_one_request(
    tmp_path: Path,
) -> None:
    chosen = ChosenCommand(("remote", "add"), (), VALUES, (spec.KeyValue("level", 3, "int"),))
    params = {
        "cmd": "remote.add",
        "config": [{"key": "force", "value": True, "type": "bool"}],
        "pluginConfig": [{"key": "level", "value": 3, "type": "int"}],
    }
    assert await told(tmp_path, B, chosen, MANIFEST_B) == [["runCommand", params]]


def test_a_name_has_precedence_over_an_alias() -> None:
    there = [
        spec.CommandEntry("remove", aliases=["rm"]),
        spec.CommandEntry("rm"),
        spec.CommandEntry("ls"),
    ]
    assert plugin_commands.find_command(there, "rm") is there[1]
    assert plugin_commands.find_command(there[:1], "rm") is there[0]
    assert plugin_commands.find_command(there, "move") is None
    assert plugin_commands.find_command(None, "rm") is None


def test_invalid_entries_of_a_handshake_are_reported_by_field() -> None:
    said = spec.Introduced(
        "rpp",
        0,
        "own",
        configs=[spec.ConfigEntry("a", "no number", "int")],
        commands=[spec.CommandEntry("c", configs=[spec.ConfigEntry("k", flag=spec.Flag("--k"))])],
    )
    with pytest.raises(errors.PluginHandshakeFailed) as caught:
        plugin_commands.check("own", said)
    assert "`configs[0].value`" in str(caught.value)
    assert "`commands[0].configs[0].flag.name`" in str(caught.value)


BUSY = """
import os, select, time
def work(m):
    speaking.write(method="log", params={"level": "info", "msg": "begun"})
    os.write(2, b"busy\\n")
    %s
speaking.serve(
    handshake=lambda m: speaking.write(id=m["id"], result=speaking.introduction(capabilities=%s)),
    runCommand=work)
"""


async def interrupted(directory: Path, source: str, host: RecordingHost) -> str:
    """Return the reason of the plugin's end after a command was cancelled."""
    busy = asyncio.Event()
    settings = host.settings(on_stderr_line=lambda line: (host.lines.append(line), busy.set()))
    async with start(written(directory, source), settings) as plugin:
        running = asyncio.create_task(plugin_commands.run(plugin, ChosenCommand(("work",))))
        await busy.wait()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        return plugin.end_reason or "still there"


async def test_a_plugin_with_the_capability_receives_the_cancel_of_a_command_and_keeps_running(
    tmp_path: Path,
) -> None:
    listens = 'm = speaking.read(); os.write(2, m["method"].encode() + b"\\n")'
    host = RecordingHost()
    assert await interrupted(tmp_path, BUSY % (listens, {"cancel": True}), host) == "still there"
    assert host.lines == ["[own] busy", "[own] $/cancelRequest"]


async def test_a_busy_plugin_without_cancel_is_ended_without_shutdown(
    tmp_path: Path,
) -> None:
    host = RecordingHost()
    loop = asyncio.get_running_loop()
    began = loop.time()
    over = await interrupted(tmp_path, BUSY % ("time.sleep(60)", {}), host)
    assert over == "the plugin own was interrupted"
    assert loop.time() - began < 50, "it slept for its 60 s"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("hi", "hi"),
        ({"content": "hi"}, "hi"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}, "a\nb"),
        ({}, None),
        (None, None),
        (3, None),
        ({"content": {"a": 1}}, None),
        ("", None),
    ],
)
def test_the_text_of_a_result_is_its_content(result: object, text: str | None) -> None:
    assert text_of(result) == text


def test_content_that_is_no_text_is_shown_as_json() -> None:
    assert content_text({"a": [1, None]}) == '{"a": [1, null]}'
    assert content_text("a") == "a"
