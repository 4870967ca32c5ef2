"""`telex doctor`: run for real where it matters, and its looks one by one where that says more."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import telex as telex_package
from telex.cli.doctor import checks
from telex.cli.doctor.checks import (
    Finding,
    FindingMark,
    Requirement,
    all_limits,
    libraries,
    requirements,
)
from telex.processes.sandbox import Kernel
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


KEYS = "telex ok problems python platform terminal libraries programs kernel places config limits"


def test_json_has_the_documented_keys_in_their_order(telex: Run) -> None:
    ran = telex("doctor", "--json")
    seen = json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr, seen["ok"], seen["telex"]) == (0, "", True, __version__)
    assert list(seen) == KEYS.split()
    told = telex("doctor", "--help").stdout
    for key in KEYS.split():
        assert f"\n    {key} " in told


def test_json_output_contains_the_facts(telex: Run, environ: dict[str, str]) -> None:
    seen = json.loads(telex("doctor", "--json", TMUX="/tmp/t,1,0", SSH_CONNECTION="::1").stdout)
    assert seen["python"]["path"] == sys.executable
    assert seen["terminal"]["term"] == "xterm"
    assert seen["terminal"]["inside"] == ["tmux", "ssh"]
    assert (seen["terminal"]["stdin_tty"], seen["terminal"]["columns"]) == (False, None)
    assert seen["libraries"]["msgspec"]["ok"]
    assert seen["places"]["state"] == {
        "path": f"{environ['TELEX_HOME']}/state",
        "exists": False,
        "problem": None,
    }
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert seen["kernel"]["open_files"]["soft"] in {soft, None}
    values = {name: limit.value for name, limit in all_limits().items()}
    values["LUA_DEADLINE_MS"] = 800  # in this process it is another, for slow machines
    assert {name: limit["value"] for name, limit in seen["limits"].items()} == values


def test_people_get_one_screen_of_aligned_lines(telex: Run) -> None:
    ran = telex("doctor")
    first, *lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr, first) == (0, "", f"telex {__version__}")
    assert len(lines) <= 30
    for line in lines:
        assert line[19] == " " != line[20]
        assert line[:8].strip() in {"", "ok", "note"}
    for name in ("python", "platform", "terminal", "libraries", "kernel", "state", "limits"):
        assert any(line[8:].startswith(name) for line in lines)
    assert "LINE_BYTES 16 MiB" in ran.stdout


def test_nothing_is_made_by_looking(telex: Run, environ: dict[str, str]) -> None:
    telex("doctor")
    assert not Path(environ["TELEX_HOME"]).exists()


def test_colours_are_for_terminals_and_not_against_no_color(telex: Run, on_terminal: Run) -> None:
    assert "\x1b[32mok" in on_terminal("doctor").stdout
    assert "\x1b" not in on_terminal("doctor", NO_COLOR="1").stdout
    assert "\x1b" not in telex("doctor").stdout


def test_on_a_terminal_doctor_names_the_terminal(on_terminal: Run) -> None:
    said = on_terminal("doctor", NO_COLOR="1", TERM_PROGRAM="foot").stdout
    (line,) = [line for line in said.splitlines() if "terminal    " in line]
    assert "xterm" in line
    assert "foot" in line
    assert "no terminal" not in line


def test_a_missing_library_is_reported_with_its_install_command_and_fails() -> None:
    section = libraries(
        [
            "click<9,>=8.2",
            "msgspec<0.23,>=0.20",
            "uvloop>=0.21; extra == 'fast'",
            'x; extra == "dev"',
        ],
        {"click": "8.5.1"}.get,
    )
    fine, missing, optional = section.findings
    assert (fine.mark, fine.text.split()) == (FindingMark.OK, ["click", "8.5.1"])
    assert (missing.mark, missing.name) == (FindingMark.MISSING, "msgspec")
    assert missing.remedy == f"{sys.executable} -m pip install 'msgspec<0.23,>=0.20'"
    assert (optional.mark, optional.name) == (FindingMark.NOTE, "uvloop")
    assert optional.remedy == f"{sys.executable} -m pip install 'telex-terminal[fast]'"
    assert set(section.facts) == {"click", "msgspec", "uvloop"}


@pytest.mark.parametrize(
    ("version", "met"),
    [("8.1.9", False), ("8.2", True), ("8.2.0", True), ("8.10.1", True), ("9.0", False)],
)
def test_a_library_of_the_wrong_version_counts_as_missing(version: str, met: bool) -> None:
    assert Requirement.parse("click<9,>=8.2").met_by(version) is met


def test_the_doctor_understands_every_requirement_we_have() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *requirements()):
        one = Requirement.parse(line)
        assert one.name in line
        assert not one.wanted.strip("<>=,.0123456789 ")


def test_a_kernel_without_the_sandbox_is_reported_with_advice() -> None:
    def told(landlock: int, machine: str = "x86_64") -> Finding:
        section = checks.kernel(Kernel(linux=True, landlock=landlock, machine=machine))
        assert (section.facts["landlock"], section.facts["seccomp"]) == (landlock, bool(machine))
        assert ("Landlock 7" in section.findings[0].text) is (landlock == 7)
        return section.findings[-1]

    assert (told(7).name, told(7).mark) == ("kernel", FindingMark.OK)
    assert "not fully confined by the kernel: this kernel lets commands signal" in told(3).text
    assert (told(0).name, told(0).mark) == ("sandbox", FindingMark.NOTE)
    assert "not confined by the kernel: this kernel has no Landlock" in told(0).text
    assert "lsm=landlock" in told(0).remedy
    assert "no seccomp filter" in told(7, "").text


def test_a_kernel_that_refuses_landlock_is_reported(
    environ: dict[str, str], work: Path, without_landlock: list[str]
) -> None:
    argv = [*without_landlock, "doctor"]
    ran = subprocess.run(argv, env=environ, cwd=work, capture_output=True, text=True, check=True)
    assert "this kernel has no Landlock" in " ".join(ran.stdout.split())


# Hides msgspec as an environment that lost it would: neither importable nor known as installed.
WITHOUT_MSGSPEC = """
import importlib.metadata as metadata, sys
sys.modules["msgspec"] = None
found = metadata.version
def version(name):
    if name == "msgspec":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
from telex.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_doctor_works_where_telex_does_not(environ: dict[str, str]) -> None:
    command = [sys.executable, "-c", WITHOUT_MSGSPEC, "doctor"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "missing msgspec" in done.stdout
    assert f"-> {sys.executable} -m pip install 'msgspec" in done.stdout
    done = subprocess.run(
        [*command, "--json"], env=environ, capture_output=True, text=True, check=False
    )
    seen = json.loads(done.stdout)
    assert (done.returncode, seen["ok"], list(seen)) == (1, False, KEYS.split())
    assert "msgspec" in [problem["name"] for problem in seen["problems"]]


def test_a_place_open_to_others_is_broken(telex: Run, environ: dict[str, str]) -> None:
    state = Path(environ["TELEX_HOME"]) / "state"
    state.mkdir(parents=True)
    state.chmod(0o755)
    ran = telex("doctor")
    assert ran.returncode == 1
    assert "broken  state" in ran.stdout
    assert f"chmod 700 {state}" in " ".join(ran.stdout.split())


def test_a_broken_configuration_is_reported_and_fails(telex: Run, environ: dict[str, str]) -> None:
    home = Path(environ["TELEX_HOME"])
    home.mkdir()
    (home / "config.toml").write_text("trace = 1\n")
    ran = telex("doctor", "--json")
    seen = json.loads(ran.stdout)
    assert (ran.returncode, seen["ok"]) == (1, False)
    assert seen["config"]["error"].endswith("trace must be a list, each one of wire, rpc; it is 1")
    assert telex("doctor", TELEX_HOME="nowhere").returncode == 1


def test_a_warning_and_exposed_secrets_are_notes_and_no_failure(
    telex: Run, environ: dict[str, str], work: Path
) -> None:
    home = Path(environ["TELEX_HOME"])
    home.mkdir()
    (home / "config.toml").write_text('zebra = 1\n[redaction]\nextra_literals = ["hunter2"]\n')
    (home / "config.toml").chmod(0o644)
    (work / ".telex").mkdir()
    (work / ".telex" / "config.toml").touch()
    ran = telex("doctor", "--json")
    seen = json.loads(ran.stdout)
    assert (ran.returncode, seen["ok"]) == (0, True)
    told = " ".join(problem["text"] + problem["remedy"] for problem in seen["problems"])
    assert "unknown key zebra" in told
    assert "it is not trusted" in told
    assert f"chmod 600 {home}/config.toml" in told
    assert "hunter2" not in ran.stdout
    assert seen["config"]["project_file"]["trust"] == "untrusted"


def test_a_system_we_do_not_know_is_missing_something() -> None:
    assert checks.system("linux").findings[0].mark is FindingMark.OK
    assert checks.system("win32").findings[0].mark is FindingMark.MISSING


def test_a_missing_program_is_a_note_with_how_to_get_it() -> None:
    (note,) = checks.programs(lambda _: None).findings
    assert (note.mark, note.name) == (FindingMark.NOTE, "bash")
    assert "package manager" in note.remedy
    (fine,) = checks.programs(lambda name: f"/bin/{name}").findings
    assert (fine.mark, fine.text) == (FindingMark.OK, "bash /bin/bash")


def test_few_open_files_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    section = checks.kernel()
    assert section.facts["open_files"] == {"soft": 256, "hard": None}
    assert (section.findings[1].mark, section.findings[1].remedy) == (
        FindingMark.NOTE,
        "ulimit -n 4096",
    )


def test_a_kernel_that_forbids_pidfds_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(_: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", forbid, raising=False)
    assert checks.kernel().facts["pidfd"] is False


def test_development_dependencies_are_not_offered() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [f'{line}; extra == "{extra}"' for extra, wanted in extras.items() for line in wanted]
    section = libraries(lines, lambda name: None)
    offered = {finding.name for finding in section.findings[1:]}
    assert offered == {"mcp", "uvloop"}, "the rest is for the tests and the benchmarks"
    assert section.facts.keys() == offered


def test_every_limit_has_a_unit_and_a_reason() -> None:
    found = all_limits()
    for file in sorted(Path(telex_package.__file__).parent.glob("*/limits.py")):
        names = re.findall(r"^(\w+): Final", file.read_text(), re.MULTILINE)
        assert {*names} - {"KIB", "MIB", "TABLE"} <= found.keys(), file
    assert all(limit.unit and limit.reason for limit in found.values())
