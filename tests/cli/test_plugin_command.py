"""`telex plugin list`, `describe`, `run`, `task` and `trust`, as a person uses them: real plugins in
three languages, in both generations, well called and badly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest

from telex.cli.plugin import COMMANDS, command
from telex.cli.root import LazyCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "plugins"
ZOO = ROOT / "tests" / "plugins" / "zoo"
RUN_BY = {"greet.sh": "sh", "greet.mjs": "node", "greet.py": "python3"}

WORKER = """
import os, time
def run(m):
    name = m["params"]["name"]
    if name == "fail":
        speaking.write(id=m["id"], error={"code": -32004, "message": "it broke"})
    elif name == "group":
        speaking.write(id=m["id"], error={"code": -32003, "message": "say which"})
    elif name == "die":
        os._exit(7)
    elif name == "wait":
        os.write(2, b"waiting\\n")
        token = m["params"].get("progressToken")
        speaking.write(method="$/progress", params={"token": token, "done": 1, "total": 4})
        heard = speaking.read()
        os.write(2, heard["method"].encode() + b"\\n")
    elif name == "steps":
        token = m["params"]["progressToken"]
        for done in range(1, 4):
            speaking.write(method="$/progress", params={"token": token, "done": done, "total": 3})
            speaking.write(method="log", params={"level": "warn", "msg": f"step {done}"})
        speaking.write(id=m["id"], result={"content": "all done\\x1b[2J"})
    else:
        os.write(2, b"on stderr\\n")
        speaking.write(id=m["id"], result={})
names = ["fail", "group", "die", "wait", "steps", "fine"]
speaking.serve(
    handshake=lambda m: speaking.write(id=m["id"], result=speaking.introduction(
        name="worker", commands=[{"name": name} for name in names],
        configs=[{"key": "level", "type": "int", "value": 1}, {"key": "token"}],
        capabilities={"cancel": True, "progress": True})),
    runCommand=run)
"""


def test_each_line_of_help_is_the_first_of_its_command() -> None:
    for name, line in COMMANDS.items():
        lazy = command.commands[name]
        assert isinstance(lazy, LazyCommand)
        assert (lazy.load().help or "").startswith(line.removesuffix("."))


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """The directory telex looks in first."""
    directory = tmp_path / "home" / "data" / "plugins"
    directory.mkdir(parents=True, mode=0o700)
    return directory


def written(path: Path, source: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    head = f"#!{sys.executable} -S\nimport sys\nsys.path.insert(0, {str(ZOO)!r})\nimport speaking\n"
    path.write_text(head + source)
    path.chmod(0o700)
    return path


@pytest.fixture
def worker(plugins: Path) -> Path:
    return written(plugins / "worker.py", WORKER)


def installed(plugins: Path, example: str) -> None:
    copy = plugins / example
    shutil.copy(EXAMPLES / example, copy)
    copy.chmod(0o700)


# Three languages, from list to task.


@pytest.mark.parametrize("example", RUN_BY)
def test_a_plugin_in_any_language_is_listed_described_run_and_given_tasks(
    example: str, telex: Run, plugins: Path, work: Path, program: Callable[[str], str]
) -> None:
    program(RUN_BY[example])
    installed(plugins, example)
    ran = telex("plugin", "list")
    assert ran.stdout.split() == ["greet", "-", "ok", str(plugins / example)]
    about = json.loads(telex("plugin", "describe", "greet", "--json").stdout)
    assert about["protocol"] == "rpp 0"
    assert [one["key"] for one in about["commands"][0]["values"]] == ["name", "loud"]
    ran = telex("plugin", "run", "greet", "hello", "--name", "Zoë", "--loud")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.strip() in ("[greet] HELLO, ZOË!", "[greet] HELLO, ZOë!")
    (work / "tasks.toml").write_text(
        '[[task]]\nid = "second"\ntype = "greet/write"\nrequires = ["first"]\n'
        'config = { path = "two", text = "b" }\n'
        '[[task]]\nid = "first"\ntype = "write"\nconfig = { path = "one", text = "ä" }\n'
    )
    ran = telex("plugin", "task", "greet", "--config", "tasks.toml")
    assert (ran.returncode, ran.stdout) == (0, "2 done, 0 failed, 0 not run\n"), ran.stderr
    assert [(work / name).read_text() for name in ("one", "two")] == ["ä", "b"]
    assert ran.stderr.index("first: done") < ran.stderr.index("second: done")


# run


def test_a_value_comes_from_the_config_the_environment_or_a_flag_the_strongest_last(
    inside: Run, plugins: Path, environ: dict[str, str]
) -> None:
    installed(plugins, "greet.py")
    config = Path(environ["TELEX_HOME"]) / "config.toml"
    config.write_text('[plugins.greet.hello]\nname = "file"\n')
    hello = ("plugin", "run", "greet", "hello")
    assert inside(*hello).stderr == "[greet] Hello, file!\n"
    more = {"TELEX_GREET_HELLO_NAME": "variable"}
    assert inside(*hello, **more).stderr == "[greet] Hello, variable!\n"
    assert inside(*hello, "--name", "flag", **more).stderr == "[greet] Hello, flag!\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["worker", "fine"], 0, "[worker] on stderr\n"),
        (["worker", "fail"], 1, "telex: worker: it broke\n"),
        (["worker", "die"], 1, "telex: the plugin worker "),
        (["worker", "group"], 2, "telex: worker: say which (try: telex plugin run worker group"),
        (["worker", "fien"], 2, "telex: there is no command fien; did you mean fine? (try: "),
        (["worker", "--level", "x", "fine"], 2, "telex: --level: worker.level must be a whole"),
        (["--leve", "worker", "fine"], 2, "telex: No such option '--leve'"),
        (["worker"], 2, "Usage: telex plugin run worker [OPTIONS] COMMAND [ARGS]...\n"),
        (["worcer", "fine"], 1, "telex: there is no plugin worcer; did you mean worker?\n"),
        (["broken", "fine"], 1, "telex: the plugin broken "),
        (["open", "fine"], 4, "telex: the plugin open is not run: "),
    ],
)
def test_the_exit_code_distinguishes_failures_usage_errors_and_unusable_plugins(
    words: list[str], code: int, said: str, inside: Run, worker: Path
) -> None:
    written(worker.parent / "broken", "sys.exit(1)")
    written(worker.parent / "open", WORKER).chmod(0o722)
    ran = inside("plugin", "run", *words)
    assert ran.stderr.startswith(said)
    assert (ran.returncode, ran.stdout) == (code, "")


def test_help_needs_no_more_than_the_handshake(inside: Run, worker: Path) -> None:
    ran = inside("plugin", "run", "worker", "--help", TELEX_WORKER_LEVEL="not a number")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Commands:\n  fail\n" in ran.stdout.replace("  \n", "\n")
    ran = inside("plugin", "run", "worker", "fine", "-h")
    assert ran.stdout.startswith("Usage: telex plugin run worker fine [OPTIONS] [ARGS]...\n")
    assert "--level NUMBER" in ran.stdout


def test_text_that_a_command_answers_with_is_printed_and_not_obeyed(
    inside: Run, worker: Path
) -> None:
    ran = inside("plugin", "run", "worker", "steps")
    assert (ran.returncode, ran.stdout) == (0, "all done\\x1b[2J\n")
    lines = ran.stderr.splitlines()
    assert lines == [
        "worker: 33% (1 of 3)",
        *(f"[worker] warning: step {number}" for number in (1, 2, 3)),
    ]


def test_on_a_terminal_a_bar_is_drawn_and_taken_away(on_terminal: Run, worker: Path) -> None:
    shown = on_terminal("plugin", "run", "worker", "steps").stdout
    assert f"worker: {'█' * 8}{'─' * 16} 33% (1 of 3)" in shown
    assert shown.endswith("\r\x1b[Kall done\\x1b[2J\n")


def test_ctrl_c_cancels_the_command_and_ends_the_plugin(
    environ: dict[str, str], work: Path, worker: Path
) -> None:
    argv = [sys.executable, "-m", "telex", "plugin", "run", "worker", "wait"]
    with subprocess.Popen(argv, env=environ, cwd=work, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stderr is not None
            assert "[worker] waiting\n" in iter(child.stderr.readline, "")
            child.send_signal(signal.SIGINT)
            rest = child.stderr.read()
            assert child.wait(60) == 130
        finally:
            child.kill()
    assert "[worker] $/cancelRequest\n" in rest


def test_a_command_of_generation_b_is_found_by_its_path_and_given_all_values(
    inside: Run, plugins: Path
) -> None:
    entry = {"key": "force", "type": "bool", "value": False, "flag": {"shorthand": "f"}}
    manifest = {
        "name": "old",
        "executable": "main",
        "version": "0.3",
        "help": "What it is for.",
        "config": [{"key": "root", "type": "path"}],
        "commands": [
            {"name": "remote", "commands": [{"name": "add", "aliases": ["new"], "config": [entry]}]}
        ],
    }
    written(
        plugins / "old" / "main",
        """
import json
speaking.serve(
    handshake=lambda m: speaking.write(id=m["id"], result={
        "protocol": "reginald", "protocolVersion": 0, "name": "old"}),
    runCommand=lambda m: speaking.write(id=m["id"], result=json.dumps(m["params"])),
    shutdown=lambda m: speaking.write(id=m["id"], result=True))
""",
    )
    (plugins / "old" / "manifest.json").write_text(json.dumps(manifest))
    assert inside("plugin", "list").stdout.split()[:3] == ["old", "0.3", "ok"]
    ran = inside("plugin", "run", "old", "remote", "new", "-f", "--root", "/srv")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "cmd": "remote.add",
        "config": [{"key": "force", "value": True, "type": "bool"}],
        "pluginConfig": [{"key": "root", "value": "/srv", "type": "path"}],
    }
    assert "What it is for." in inside("plugin", "run", "old", "--help").stdout
    assert inside("plugin", "run", "old", "remote", "new", "x").returncode == 2


# list, describe


def test_list_runs_no_plugin_and_reports_each_defect(inside: Run, worker: Path, work: Path) -> None:
    written(worker.parent / "trap", f"open({str(work / 'ran')!r}, 'w')")
    written(worker.parent / "open", WORKER).chmod(0o722)
    ran = inside("plugin", "list", TELEX_PLUGIN_PATH="/nowhere")
    assert [line.split()[0] for line in ran.stdout.splitlines() if line[0] != " "] == [
        "open",
        "trap",
        "worker",
    ]
    assert "chmod go-w" in ran.stdout
    assert "telex: warning: there is no directory /nowhere" in ran.stderr
    said = json.loads(inside("plugin", "list", "--json").stdout)
    assert [(one["name"], one["problem"] is None) for one in said["plugins"]] == [
        ("open", False),
        ("trap", True),
        ("worker", True),
    ]
    assert not (work / "ran").exists()


def test_describe_shows_values_with_their_origin_and_no_secrets(inside: Run, worker: Path) -> None:
    secret = "ghp_" + "aB3" * 12
    more = {"TELEX_WORKER_LEVEL": "4", "TELEX_WORKER_TOKEN": secret}
    ran = inside("plugin", "describe", "worker", **more)
    assert ran.returncode == 0
    assert "level = 4 (environment TELEX_WORKER_LEVEL)" in ran.stdout
    assert "speaks rpp 0, with cancel, progress" in ran.stdout
    assert "What the system sees to:" in ran.stdout
    whole = inside("plugin", "describe", "worker", "--json", **more).stdout
    assert secret not in ran.stdout + whole
    about: dict[str, Any] = json.loads(whole)
    assert about["values"][0]["value"] == 4
    assert about["enforced"] or about["lacking"]


def test_tools_are_described_and_can_be_tried(inside: Run, plugins: Path) -> None:
    installed(plugins, "counter.py")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    about = json.loads(inside("plugin", "describe", "counter", "--json", PATH=path).stdout)
    assert [tool["name"] for tool in about["tools"]] == ["add"]
    assert about["tools"][0]["inputSchema"]["required"] == ["a", "b"]
    call = ("plugin", "run", "--tool", "counter", "add")
    ran = inside(*call, '{"a": 1, "b": 2}', PATH=path)
    assert (ran.returncode, ran.stdout) == (0, "3\n")
    ran = inside(*call, PATH=path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("telex: add: ")
    assert inside(*call, "[1]").returncode == 2


# task


def test_a_failed_task_is_reported_with_the_tasks_that_it_stopped(
    inside: Run, plugins: Path, work: Path
) -> None:
    installed(plugins, "greet.py")
    file = work / "sub" / "tasks.toml"
    file.parent.mkdir()
    file.write_text(
        '[[task]]\nid = "bad"\ntype = "write"\nconfig = { path = "/nowhere/x" }\n'
        '[[task]]\nid = "next"\ntype = "write"\nrequires = ["bad"]\nconfig = { path = "y" }\n'
        '[[task]]\nid = "good"\ntype = "write"\nconfig = { path = "z" }\n'
    )
    ran = inside("plugin", "task", "greet", "--config", "sub/tasks.toml", "--dry-run")
    assert (ran.returncode, ran.stdout) == (0, "1. bad (write), good (write)\n2. next (write)\n")
    assert not (work / "sub" / "z").exists()
    ran = inside("plugin", "task", "greet", "--config", "sub/tasks.toml")
    assert ran.returncode == 1
    first, second, third = ran.stdout.splitlines()
    assert first.startswith("bad: failed: ")
    assert second == "next: not run, it requires bad"
    assert third == "1 done, 1 failed, 1 not run"
    assert (work / "sub" / "z").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[[task]]\nid = "a"\ntype = "write"\nrequires = ["a"]', "circle: a → a"),
        ('[[task]]\nid = "a"\ntype = "write"', "task a: path: say which file to write."),
        ('[[task]]\nid = "a"\ntype = "wirte"', "greet has no tasks of the type wirte"),
    ],
)
def test_invalid_tasks_are_a_usage_error_and_no_task_runs(
    content: str, said: str, inside: Run, plugins: Path, work: Path
) -> None:
    installed(plugins, "greet.py")
    (work / "tasks.toml").write_text(
        f'[[task]]\nid = "good"\ntype = "write"\nconfig = {{ path = "x" }}\n{content}'
    )
    ran = inside("plugin", "task", "greet", "--config", "tasks.toml")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert not (work / "x").exists()


# trust


def test_a_projects_plugins_run_once_they_are_trusted_and_until_they_change(
    inside: Run, work: Path
) -> None:
    theirs = work / ".telex" / "plugins"
    written(theirs / "worker.py", f"import beside\n{WORKER}")
    (theirs / "beside.py").write_text("x = 1\n")
    fine = ("plugin", "run", "worker", "fine")
    ran = inside(*fine)
    assert ran.returncode == 4
    assert "telex plugin trust" in ran.stderr
    ran = inside("plugin", "trust")
    assert (ran.returncode, ran.stdout) == (0, f"trusted {theirs} as it is, with: worker\n")
    # Twice: what Python would leave beside it would be a change.
    assert [inside(*fine).returncode for _ in range(2)] == [0, 0]
    (theirs / "beside.py").write_text("x = 2\n")
    assert inside(*fine).returncode == 4
    inside("plugin", "trust")
    assert inside("plugin", "trust", "--remove").stdout == f"{theirs} is no longer trusted\n"
    assert inside(*fine).returncode == 4


def test_trust_without_a_plugin_directory_is_an_error(inside: Run, work: Path) -> None:
    ran = inside("plugin", "trust")
    assert ran.returncode == 1
    assert ran.stderr == f"telex: there is no .telex/plugins in {work} or its project\n"
