"""`telex agent models`, `login` and `logout`, run for real."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

CANARY = "sk-canary-9f8e7d6c5b4a39281706"


@pytest.fixture
def config_file(environ: dict[str, str]) -> Path:
    path = Path(environ["TELEX_HOME"]) / "config.toml"
    path.parent.mkdir(mode=0o700)
    path.write_text(
        '[agent]\nmodel = "work"\n[models.work]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
        '[models.openai]\nkey = { env = "MINE" }\n'
    )
    return path


def log_in(environ: dict[str, str], name: str, typed: str) -> CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "telex", "agent", "login", name],
        env=environ,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_models_are_listed_with_the_reason(telex: Run, config_file: Path) -> None:
    listed = telex("agent", "models", ANTHROPIC_API_KEY=CANARY)
    assert listed.stdout.splitlines() == [
        "* work  m  (chat, http://127.0.0.1:9/v1, no key)",
        "      [models.work] in the configuration",
        "  openai  gpt-5.6  (responses, https://api.openai.com/v1, no key: MINE is not set)",
        "      [models.openai] in the configuration",
        "  anthropic  claude-sonnet-5  (messages, https://api.anthropic.com/v1, key from ANTHROPIC_API_KEY)",
        "      ANTHROPIC_API_KEY is set",
        "  openrouter: OPENROUTER_API_KEY is not set",
        "  claude-code: there is no program claude on PATH",
    ]
    as_json = telex("agent", "models", "--json", MINE=CANARY)
    found = json.loads(as_json.stdout)
    assert [(one["name"], one["default"], one["key"]) for one in found["models"]] == [
        ("work", True, None),
        ("openai", False, "MINE"),
    ]
    assert CANARY not in listed.stdout + listed.stderr + as_json.stdout + as_json.stderr


def test_the_tui_of_another_agent_is_a_model_where_its_program_is_installed(
    telex: Run, config_file: Path, tmp_path: Path
) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    config_file.write_text(config_file.read_text().replace('"work"', '"claude-code"', 1))
    listed = telex("agent", "models", PATH=path)
    assert f"* claude-code  (adapter, {program})" in listed.stdout.splitlines()
    (one,) = json.loads(telex("agent", "models", "--json", PATH=path).stdout)["adapters"]
    assert (one["name"], one["default"], one["program"]) == ("claude-code", True, str(program))
    program.unlink()
    ran = telex("agent", "exec", "hello", PATH=path)
    assert ran.returncode != 0
    assert "claude-code cannot be used: there is no program claude on PATH" in ran.stderr


def test_a_key_is_stored_and_forgotten_and_never_shown(
    telex: Run, config_file: Path, environ: dict[str, str]
) -> None:
    stored = log_in(environ, "anthropic", f"{CANARY}\n")
    path = Path(environ["TELEX_HOME"]) / "state" / "keys.json"
    server = "https://api.anthropic.com"
    assert stored.stdout == f"stored the key of anthropic in {path}; only {server} gets it\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {"anthropic": {"key": CANARY, "server": server}}
    listed = telex("agent", "models")
    assert "key from telex agent login" in listed.stdout
    forgot = telex("agent", "logout")
    assert forgot.stdout == "forgot the key of anthropic\n"
    again = telex("agent", "logout", "anthropic")
    assert (again.returncode, again.stderr) == (1, "telex: no key of anthropic is stored\n")
    shown = [stored, listed, forgot, again]
    assert all(CANARY not in one.stdout + one.stderr for one in shown)


def test_mistakes_at_login_are_answered(config_file: Path, environ: dict[str, str]) -> None:
    unknown = log_in(environ, "antropic", CANARY)
    assert unknown.returncode == 2
    assert "Did you mean anthropic?" in unknown.stderr
    bad = log_in(environ, "anthropic", f"{CANARY} {CANARY}\n")
    assert bad.returncode == 1
    assert "this is not a key" in bad.stderr
    assert CANARY not in unknown.stderr + bad.stderr + unknown.stdout + bad.stdout


def test_a_mistake_in_a_table_is_told_with_its_place(telex: Run, config_file: Path) -> None:
    config_file.write_text('[models.work]\nbase_uri = "http://127.0.0.1:9/v1"\n')
    ran = telex("agent", "models")
    assert ran.returncode != 0
    assert (
        f"{config_file}: models.work: unknown member base_uri. Did you mean base_url?" in ran.stderr
    )
    config_file.write_text('[models.work]\nmodel = "m"\n')
    ran = telex("agent", "models")
    assert ran.returncode != 0
    assert "models.work: base_url is missing" in ran.stderr
