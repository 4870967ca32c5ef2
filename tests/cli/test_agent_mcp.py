"""`telex agent mcp`, run for real; and what it costs where no MCP server is configured."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.config.errors import WrongValue
from telex.config.mcp_tables import with_server, without_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

RAW = Path(__file__).parents[1] / "agent" / "mcp_raw_server.py"
CANARY = "canary-7f3a-sesame"
FILE = """\
# my settings
[agent]
model = "builtin"  # for now

[mcp.old]
command = "old"
args = [
  "[mcp.new]",
]
# about its variables
[mcp.old.env]
A = "b"

# about models
[models.m]
model = "m"
"""


@pytest.fixture
def config_file(environ: dict[str, str]) -> Path:
    path = Path(environ["TELEX_HOME"]) / "config.toml"
    path.parent.mkdir(mode=0o700)
    path.write_text(FILE)
    return path


def test_add_and_remove_leave_the_rest_of_the_file_as_it_is(telex: Run, config_file: Path) -> None:
    added = telex(
        *("agent", "mcp", "add", "new", "--env", "LEVEL=debug", "--env-from", "TOKEN=MY_TOKEN"),
        *("--", "npx", "-y", 'a "server"'),
    )
    assert added.returncode == 0, added.stderr
    assert config_file.read_text() == FILE + (
        '\n[mcp.new]\ncommand = "npx"\nargs = ["-y", "a \\"server\\""]\n'
        'env = { "LEVEL" = "debug", "TOKEN" = { "env" = "MY_TOKEN" } }\n'
    )
    assert stat.S_IMODE(config_file.stat().st_mode) == 0o600
    again = telex("agent", "mcp", "add", "new", "--", "npx")
    assert again.returncode == 1
    assert "there is a table [mcp.new] already" in again.stderr
    assert telex("agent", "mcp", "remove", "new").returncode == 0
    assert config_file.read_text() == FILE
    assert telex("agent", "mcp", "remove", "old").returncode == 0
    left = config_file.read_text()
    assert left == FILE[: FILE.index("[mcp.old]")] + FILE[FILE.index("# about models") :]
    missing = telex("agent", "mcp", "remove", "old")
    assert (missing.returncode, "there is no table [mcp.old]" in missing.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x"], "must have either `command` or `url`"),
        (["x", "--url", "http://a", "--", "b"], "must have either"),
        (["a_b", "--", "c"], "letters, digits and -"),
        (["x", "--env", "API_KEY=hunter2", "--", "c"], "looks like a secret"),
        (["x", "--url", "http://a", "--header", "Authorization=Bearer hunter2"], "secret"),
        (["x", "--url", "http://a", "--header", "X-Api-Key=hunter2"], "--header-from X-Api-Key="),
        (["x", "--env", "API_KEY", "--", "c"], "has no '='"),
        (["x", "--", "server", "--token", "hunter2"], "--env-from NAME=VARIABLE"),
        (["x", "--", "db", "postgres://u:hunter2@h/d"], "--env-from NAME=VARIABLE"),
    ],
)
def test_add_refuses_what_cannot_be_used(
    telex: Run, config_file: Path, words: list[str], said: str
) -> None:
    refused = telex("agent", "mcp", "add", *words)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "hunter2" not in refused.stderr
    assert config_file.read_text() == FILE


def test_a_header_of_an_address_may_be_the_value_of_a_variable(
    telex: Run, config_file: Path
) -> None:
    words = ("--url", "http://a", "--header", "X-Team=b", "--header-from", "X-Api-Key=MY_KEY")
    added = telex("agent", "mcp", "add", "new", *words)
    assert added.returncode == 0, added.stderr
    headers = 'headers = { "X-Team" = "b", "X-Api-Key" = { "env" = "MY_KEY" } }\n'
    assert config_file.read_text().endswith(headers)


def test_a_file_of_an_unusual_form_is_refused_and_not_damaged() -> None:
    for text in ('mcp = { a = { command = "b" } }\n', '[mcp]\na.command = "b"\n'):
        with pytest.raises(WrongValue, match="by hand"):
            without_server(text, "a")
    with pytest.raises(WrongValue, match="by hand"):
        with_server('mcp = { a = { command = "b" } }\n', "c", {"command": "d"})
    assert with_server("", "c", {"command": "d"}) == '[mcp.c]\ncommand = "d"\n'
    quoted = '["mcp" . "a"]\ncommand = "b"\n# the end\n'
    assert without_server(quoted, "a") == "# the end\n"


def test_list_and_logs_show_the_servers_without_secrets(
    telex: Run, config_file: Path, environ: dict[str, str]
) -> None:
    empty = telex("agent", "mcp", "logs", "raw")
    assert (empty.returncode, "has not been started yet" in empty.stderr) == (1, True)
    config_file.write_text("")
    program = [sys.executable, "-I", "-S", str(RAW)]
    for name, kind in (("good", "garbage"), ("bad", "die_at_start")):
        words = ("--env-from", "SECRET=MY_CANARY", "--", *program, kind)
        assert telex("agent", "mcp", "add", name, *words).returncode == 0
    listed = telex("agent", "mcp", "list", MY_CANARY=CANARY)
    assert listed.stdout.splitlines()[0].endswith("garbage  (your config.toml)")
    checked = telex("agent", "mcp", "list", "--check", "--json", MY_CANARY=CANARY)
    good, bad = json.loads(checked.stdout)["servers"]
    assert (good["id"], good["state"], good["tools"], good["source"]) == (
        "good",
        "ready",
        2,
        "global",
    )
    assert (bad["state"], "exited with code 3" in bad["last_error"]) == ("error", True)
    logs = telex("agent", "mcp", "logs", "good")
    assert "[stderr] ready, with \\x1b[2J[REDACTED]" in logs.stdout
    for name in ("../../x", "a/b"):
        assert telex("agent", "mcp", "logs", name).returncode != 0
    said = "".join(one.stdout + one.stderr for one in (listed, checked, logs))
    assert CANARY not in said
    assert not any(
        CANARY.encode() in path.read_bytes()
        for path in Path(environ["TELEX_HOME"]).rglob("*")
        if path.is_file()
    )


def test_login_is_refused_where_there_is_none(telex: Run, config_file: Path) -> None:
    for words, said in (
        (["old"], "mcp.old has no login"),
        (["olds"], "there is no MCP server olds. Did you mean"),
        (["old", "--forget"], "no tokens of old are stored"),
    ):
        refused = telex("agent", "mcp", "login", *words)
        assert refused.returncode != 0
        assert said in refused.stderr


def test_trusting_a_project_shows_the_programs_that_it_would_start(
    telex: Run, config_file: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".telex").mkdir(parents=True)
    (project / ".telex" / "config.toml").write_text(
        '[mcp.its]\ncommand = "rm"\nargs = ["-rf", "x"]\n'
    )
    trusted = telex("config", "trust", str(project))
    assert 'MCP server its: {"command": "rm", "args": ["-rf", "x"]}' in trusted.stdout


@pytest.mark.fresh_start
def test_an_agent_whose_run_uses_no_mcp_server_does_not_import_the_sdk(
    environ: dict[str, str], config_file: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "telex", "agent", "exec", "ls"]
    for text in ('[agent]\nmodel = "builtin"\n', FILE):
        config_file.write_text(text)
        ran = subprocess.run(
            command,
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
        assert "telex.agent.runtime" in imported, ran.stderr[-1000:]
        assert not {"mcp", "mcp_types", "httpx2", "pydantic", "anyio"} & imported
        ours = any(name.startswith("telex.agent.mcp_client") for name in imported)
        assert ours == (text is FILE)
