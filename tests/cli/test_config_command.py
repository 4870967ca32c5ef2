"""`telex config`, run for real."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def config_file(environ: dict[str, str]) -> Path:
    path = Path(environ["TELEX_HOME"]) / "config.toml"
    path.parent.mkdir(mode=0o700)
    return path


@pytest.fixture
def project_file(work: Path) -> Path:
    path = work / ".telex" / "config.toml"
    path.parent.mkdir()
    path.write_text('[logging]\nlevel = "debug"\n')
    return path


def rows(ran: CompletedProcess[str]) -> dict[str, list[str]]:
    assert ran.returncode == 0
    return {row[0]: row[1:] for row in (line.split(maxsplit=2) for line in ran.stdout.splitlines())}


def test_show_prints_each_value_with_its_origin(telex: Run, config_file: Path) -> None:
    config_file.write_text('[logging]\nlevel = "error"\n')
    ran = telex("--set", "trace=rpc", "config", "show", TELEX_REDACTION_REPLACEMENT="***")
    assert rows(ran) == {
        "trace": ['["rpc"]', "flag --set"],
        "logging.level": ['"error"', f"user file {config_file}"],
        "redaction.replacement": ['"***"', "environment TELEX_REDACTION_REPLACEMENT"],
        "redaction.extra_literals": ["[]", "default"],
        "agent.plugins": ["[]", "default"],
        "agent.model": ['""', "default"],
        "mcp_server.allow": ["[]", "default"],
        "mcp_server.deny": ["[]", "default"],
        "mcp_server.confirm": ["[]", "default"],
        "models": ["{}", "default"],
        "mcp": ["{}", "default"],
    }
    assert ran.stderr == ""


def test_show_as_json_says_the_same(telex: Run, config_file: Path) -> None:
    config_file.write_text('zebra = 1\n[logging]\nlevel = "error"\n')
    shown = json.loads(telex("config", "show", "--json").stdout)
    assert list(shown) == [
        *("settings", "user_file", "project_file", "permission_rules", "warnings")
    ]
    assert shown["settings"]["logging.level"] == {
        "value": "error",
        "hidden": 0,
        "origins": [{"source": "user file", "where": str(config_file)}],
    }
    assert shown["user_file"] == {"path": str(config_file), "exists": True}
    assert shown["project_file"] is None
    assert "unknown key zebra" in shown["warnings"][0]


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_secrets_are_counted_and_never_shown(telex: Run, config_file: Path, how: list[str]) -> None:
    config_file.write_text('[redaction]\nextra_literals = ["hunter2", "hunter3"]\n')
    ran = telex("config", "show", *how, TELEX_REDACTION_EXTRA_LITERALS="hunter4")
    assert ran.returncode == 0
    assert "hunter" not in ran.stdout + ran.stderr
    if how:
        secret = json.loads(ran.stdout)["settings"]["redaction.extra_literals"]
        assert (secret["value"], secret["hidden"]) == (None, 3)
        assert [one["source"] for one in secret["origins"]] == ["user file", "environment"]
    else:
        assert "(3 hidden)" in ran.stdout


def test_secrets_of_mcp_servers_are_hidden(
    telex: Run, config_file: Path, project_file: Path
) -> None:
    text = """[mcp.a]
command = "server"
args = ["-v", "--token", "hunter2"]
env = { API_KEY = "hunter3", LEVEL = "debug", TOKEN = { env = "MY_TOKEN" } }
[mcp.b]
url = "https://mcp.example.com/mcp"
headers = { X-Api-Key = "hunter4", X-Team = "red" }
"""
    config_file.write_text(text)
    project_file.write_text(text)
    for words in (["config", "show"], ["config", "show", "--json"], ["config", "trust"]):
        ran = telex(*words)
        assert ran.returncode == 0, ran.stderr
        assert "hunter" not in ran.stdout + ran.stderr
        for part in ("server -v --token [REDACTED]", "debug", "MY_TOKEN", "X-Api-Key", "red"):
            assert part in ran.stdout


def test_an_unknown_key_is_a_warning_on_stderr_and_no_failure(
    telex: Run, config_file: Path
) -> None:
    config_file.write_text('[logging]\nlevell = "error"\n')
    ran = telex("config", "show")
    assert ran.returncode == 0
    said = f"telex: warning: {config_file}: unknown key logging.levell; did you mean logging.level?"
    assert ran.stderr == said + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[logging]\nlevel = 3",
            ": logging.level must be one of debug, info, warning, error; it is 3",
        ),
        ("[logging", ":1:9: Expected ']' at the end of a table declaration"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_with_the_place(
    telex: Run, config_file: Path, text: str, said: str
) -> None:
    config_file.write_text(text)
    ran = telex("config", "show")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"telex: {config_file}{said}\n")


def test_a_wrong_flag_is_a_usage_error(telex: Run) -> None:
    ran = telex("--set", "logging.level=loud", "config", "show")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("telex: --set: logging.level must be one of debug, ")
    assert telex("--set", "level=info", "config", "show").returncode == 2


def test_path_prints_where_the_file_would_be_and_makes_nothing(
    telex: Run, environ: dict[str, str]
) -> None:
    home = Path(environ["TELEX_HOME"])
    assert telex("config", "path").stdout == f"{home}/config.toml\n"
    assert not home.exists()


def test_a_project_file_counts_from_trust_to_untrust_or_change(
    telex: Run, project_file: Path
) -> None:
    ran = telex("config", "show")
    assert rows(ran)["logging.level"] == ['"warning"', "default"]
    assert f"warning: {project_file}: not read, it is not trusted" in ran.stderr

    ran = telex("config", "trust")
    assert (ran.returncode, ran.stdout) == (0, f"trusted {project_file}; it sets logging.level\n")
    ran = telex("config", "show")
    assert rows(ran)["logging.level"] == ['"debug"', f"project file {project_file}"]
    assert ran.stderr == ""

    project_file.write_text('[logging]\nlevel = "info"\n')
    assert "it changed since you trusted it" in telex("config", "show").stderr
    shown = json.loads(telex("config", "show", "--json").stdout)
    assert shown["project_file"]["trust"] == "changed since it was trusted"

    telex("config", "trust", str(project_file.parent.parent))
    assert rows(telex("config", "show"))["logging.level"][0] == '"info"'
    assert "no longer trusted" in telex("config", "untrust").stdout
    assert rows(telex("config", "show"))["logging.level"][0] == '"warning"'
    assert "was not trusted" in telex("config", "untrust", str(project_file)).stdout


def test_a_project_file_that_cannot_be_understood_is_not_trusted(
    telex: Run, project_file: Path
) -> None:
    project_file.write_text("[")
    ran = telex("config", "trust")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"telex: {project_file}:1:2: ")
    assert "not trusted" in telex("config", "show").stderr


@pytest.mark.parametrize("verb", ["trust", "untrust"])
def test_where_there_is_no_project_file_there_is_nothing_to_trust(telex: Run, verb: str) -> None:
    ran = telex("config", verb)
    assert ran.returncode == 1
    assert ran.stderr.startswith("telex: there is no .telex/config.toml here")


def test_trust_is_kept_only_in_a_private_place(
    telex: Run, project_file: Path, config_file: Path
) -> None:
    state = config_file.parent / "state"
    (state / "trusted").mkdir(parents=True)
    (state / "trusted").chmod(0o777)
    ran = telex("config", "trust")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "open to others (0777)" in ran.stderr
    assert project_file.exists()


def test_rules_that_a_project_brings_are_named_when_it_is_trusted_and_when_shown(
    telex: Run, project_file: Path, config_file: Path
) -> None:
    project_file.write_text('[[permission.rule]]\ndecision = "allow"\n')
    config_file.write_text(
        '[[permission.rule]]\ntool = "shell"\ncommand = "git push"\ndecision = "deny"\n'
    )
    own = ["permission.rule", 'deny shell: command="git push"', str(config_file)]
    assert _last_rows(telex("config", "show")) == [own]
    allows = "allow every tool: any arguments"
    said = f"trusted {project_file}; it sets what the agent may do\n  {allows}\n"
    assert telex("config", "trust").stdout == said
    project = ["permission.rule", allows, str(project_file)]
    assert _last_rows(telex("config", "show")) == [own, project]


def _last_rows(shown: CompletedProcess[str]) -> list[list[str]]:
    lines = [line for line in shown.stdout.splitlines() if line.startswith("permission.rule ")]
    return [re.split(r" {2,}", line) for line in lines]


def test_a_project_whose_rules_cannot_be_read_is_not_trusted(
    telex: Run, project_file: Path
) -> None:
    project_file.write_text('[[permission.rule]]\ndecision = "perhaps"\n')
    ran = telex("config", "trust")
    assert (ran.returncode, ran.stderr.count("perhaps")) == (1, 1)
    assert "trusted" not in ran.stdout
