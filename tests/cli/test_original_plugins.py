"""The original plugins, in both generations, under `telex plugin`: their conversations as they were
recorded, answered by a plugin that knows nothing else and takes nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., CompletedProcess[str]]

TESTS = Path(__file__).parents[1]
CORPUS = TESTS / "corpus" / "plugin_v0" / "conversations.json"
RECORDED = {one["name"]: one for one in json.loads(CORPUS.read_text()) if one["side"] == "plugin"}

REPLAY = """
import json
for who, recorded in json.load(open(__file__ + ".json")):
    if who == "plugin":
        speaking.write(**{k: v for k, v in recorded.items() if k != "jsonrpc"})
    elif (heard := speaking.read()) != recorded:
        sys.exit(f"the host said {json.dumps(heard)}, and not {json.dumps(recorded)}")
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    directory = tmp_path / "home" / "data" / "plugins"
    directory.mkdir(parents=True, mode=0o700)
    return directory


def script(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    zoo = str(TESTS / "plugins" / "zoo")
    head = f"#!{sys.executable} -S\nimport sys\nsys.path.insert(0, {zoo!r})\nimport speaking\n"
    path.write_text(head + source)
    path.chmod(0o700)


def installed(plugins: Path, name: str, source: str, manifest: dict[str, Any] | None) -> Path:
    """A plugin of this source, where telex looks first; a manifest makes it a directory."""
    path = plugins / name / name if manifest else plugins / name
    script(path, source)
    if manifest:
        (path.parent / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.mark.parametrize("name", RECORDED)
def test_the_original_plugin_receives_the_recorded_messages(
    name: str, inside: Run, plugins: Path, work: Path
) -> None:
    one = RECORDED[name]
    path = installed(plugins, one["command"][2], REPLAY, one["manifest"])
    said = json.dumps(one["messages"]).replace("/project", str(work))
    path.with_name(f"{path.name}.json").write_text(said)
    (work / "tasks.toml").write_text(one.get("tasks", ""))
    ran = inside(*one["command"])
    assert "the host said" not in ran.stderr, ran.stderr
    assert ran.returncode == one["exit"], ran.stderr


def test_log_records_of_the_go_plugin_are_shown_with_their_attributes(
    inside: Run, plugins: Path, work: Path
) -> None:
    one = RECORDED["B: a command with values, and what it logs"]
    path = installed(plugins, "reginald-go", REPLAY, one["manifest"])
    path.with_name(f"{path.name}.json").write_text(json.dumps(one["messages"]))
    ran = inside(*one["command"])
    assert ran.stderr.splitlines() == ["[reginald-go] running command cmd=versions"]


# Errors, in the numbers of each generation.

ERRS = """
protocol = sys.argv[0].rpartition("/")[2]
def handshake(m):
    if m["params"]["protocol"] != protocol or m["params"].keys() - {"protocol", "protocolVersion"}:
        speaking.write(id=m["id"], error={"code": -32602, "message": "invalid params", "data": {}})
    else:
        names = [{"name": "it", "config": [{"key": "code", "type": "int"}]}]
        speaking.write(id=m["id"], result=dict(
            name=protocol, protocol=protocol, protocolVersion=0, commands=names))
def run(m):
    (code,) = [pair["value"] for pair in m["params"].get("config") or SET_UP]
    speaking.write(id=m["id"], error={"code": code, "message": "no", "data": "because"})
SET_UP = []
def set_up(m):
    SET_UP[:] = m["params"]["config"]
    speaking.write(id=m["id"], result={})
speaking.serve(handshake=handshake, setupCommand=set_up, runCommand=run)
"""
FAILED, CALLED_WRONGLY = 1, 2


@pytest.mark.parametrize(
    ("protocol", "code", "exit_code"),
    [
        ("reginald", -32000, FAILED),  # a handshake error, out of place
        ("reginald", -32001, CALLED_WRONGLY),
        ("reginald", -32002, CALLED_WRONGLY),
        ("reginald", -32003, FAILED),
        ("rpp", -32000, FAILED),  # what the original calls a failed command
        ("rpp", -32602, FAILED),
        ("rpp", -32002, CALLED_WRONGLY),
        ("rpp", -32004, FAILED),
        ("rpp", -32050, CALLED_WRONGLY),
    ],
)
def test_an_error_code_is_interpreted_by_the_protocol_of_the_plugin(
    protocol: str, code: int, exit_code: int, inside: Run, plugins: Path
) -> None:
    installed(plugins, protocol, ERRS, None)
    ran = inside("plugin", "run", protocol, "it", "--code", str(code))
    assert (ran.returncode, "no (because)" in ran.stderr) == (exit_code, True), ran.stderr


def test_a_plugin_that_knows_no_capabilities_is_asked_again_without_them(
    inside: Run, plugins: Path
) -> None:
    for protocol in ("reginald", "rpp"):  # both without a manifest, and both refuse the member
        installed(plugins, protocol, ERRS, None)
        ran = inside("plugin", "describe", "--json", protocol)
        assert json.loads(ran.stdout)["protocol"] == f"{protocol} 0", ran.stderr


# The real thing.

GO = TESTS / "plugins" / "go"
MANIFEST = {
    "name": "strict",
    "executable": "strict",
    "domain": "go",
    "doc": "A plugin of generation B, made with the types of the original's SDK.",
    "config": [{"key": "greeting", "value": "Hello", "type": "string", "flag": {}}],
    "commands": [
        {
            "name": "greet",
            "usage": "greet [options]",
            "description": "Greet somebody.",
            "config": [
                {"key": "name", "value": "world", "type": "string", "flag": {"shorthand": "n"}},
                {"key": "times", "value": 1, "type": "int"},
                {"key": "loud", "value": False, "type": "bool"},
                {"key": "tags", "value": [], "type": "stringList"},
            ],
        },
        {"name": "group", "usage": "group", "description": "Not runnable."},
        {"name": "fail", "usage": "fail", "description": "Fail."},
        {"name": "unknown", "usage": "unknown", "description": "The plugin does not know it."},
    ],
    "tasks": [
        {
            "taskType": "install",
            "description": "Say what it got.",
            "config": [
                {
                    "alternatives": [
                        {"key": "u1", "type": "stringList", "value": []},
                        {
                            "key": "u2",
                            "keyType": "string",
                            "values": [{"key": "inner", "type": "int", "value": 3}],
                        },
                    ]
                },
            ],
        }
    ],
}


@pytest.fixture
def strict(plugins: Path, tmp_path: Path, program: Callable[[str], str]) -> Path:
    """A plugin in Go that decodes with the original SDK, which the module proxy has."""
    source = tmp_path / "source"
    shutil.copytree(GO, source)
    directory = plugins / "strict"
    directory.mkdir(mode=0o700)
    built = subprocess.run(
        [program("go"), "build", "-trimpath", "-o", str(directory / "strict"), "."],
        cwd=source,
        env={**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"the original's SDK cannot be built here: {built.stderr[-300:]}")
    (directory / "manifest.json").write_text(json.dumps(MANIFEST))
    return directory


@pytest.mark.counted
@pytest.mark.soak  # it needs a Go compiler and a module proxy
def test_a_go_plugin_with_the_originals_sdk_works_under_telex(
    strict: Path, telex: Run, work: Path
) -> None:
    def run(*words: str) -> tuple[int, str]:
        ran = telex("plugin", "run", "strict", *words)
        return ran.returncode, ran.stderr

    assert run("greet", "-n", "Bob", "--times", "2", "--loud", "--tags", "a,b") == (
        0,
        '[strict] HELLO BOB! x2 [a b] attempt={"deep": 1}\n',
    )
    assert run("--greeting", "Hi", "greet")[1].startswith("[strict] Hi world! x1 []")
    for word, code, said in (
        ("group", 2, "command not runnable (group)"),
        ("unknown", 2, "invalid command (unknown command: unknown)"),
        ("fail", 1, "command error (it broke)"),
    ):
        exit_code, stderr = run(word)
        assert (exit_code, said in stderr) == (code, True), stderr
    tasks = "[[task]]\nid='a'\ntype='go/install'\n"
    tasks += "[[task]]\nid='b'\ntype='install'\nconfig={u2={x={}}}\n"
    (work / "tasks.toml").write_text(tasks)
    ran = telex("plugin", "task", "strict", "--config", "tasks.toml")
    assert (ran.returncode, ran.stdout) == (0, "2 done, 0 failed, 0 not run\n"), ran.stderr
    assert "[strict] u1 stringList []" in ran.stderr
    ran = telex("plugin", "check", "--json", "--run", "greet", str(strict))
    report = json.loads(ran.stdout)
    failed = {one["id"] for one in report["clauses"] if one["result"] == "failed"}
    assert {one for one in failed if one.startswith("id.")} == {"id.string", "id.type", "id.any"}
    assert not {one for one in failed if one.startswith(("frame.", "concurrent", "params."))}
    print(f"\nGo plugin with the original's SDK: 7 runs, 2 tasks; check: {report['score']}")
