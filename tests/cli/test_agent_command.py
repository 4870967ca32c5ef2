"""`telex agent` as a command: its doors, one shot, and what is done with its store."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from serving import telex_child
from telex.agent.permissions import Mode
from telex.cli import main
from telex.cli.agent.composition import warn_about_confinement
from telex.processes.sandbox import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Here = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("told")

HELLO = {
    "jsonrpc": "2.0",
    "id": "1",
    "method": "initialize",
    "params": {
        "protocol_version": "0",
        "client": {"name": "a test", "version": "1"},
        "ui_capabilities": {"supports_confirm": True, "supports_run_attach": True},
    },
}


def start(text: str) -> dict[str, object]:
    params = {"input": {"type": "text", "text": text}}
    return {"jsonrpc": "2.0", "id": "2", "method": "run.start", "params": params}


def agent(
    environ: dict[str, str], work: Path, *options: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    return telex_child(environ, work, "agent", *options)


def say(child: subprocess.Popen[str], *messages: object) -> None:
    assert child.stdin
    child.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
    child.stdin.flush()


def hear_until(child: subprocess.Popen[str], method: str) -> dict[str, dict[str, str]]:
    assert child.stdout
    for line in child.stdout:
        message: dict[str, dict[str, str]] = json.loads(line)
        if message.get("method") == method:
            return message
    raise AssertionError(f"it ended before {method}")


def test_piped_requests_are_answered_and_their_runs_reported_to_the_end(
    environ: dict[str, str], work: Path
) -> None:
    (work / "a.py").touch()
    with agent(environ, work) as child:
        piped = "".join(json.dumps(one) + "\n" for one in (HELLO, start("list *.py")))
        out, err = child.communicate(piped, timeout=60)
    messages = [json.loads(line) for line in out.splitlines()]
    assert [message.get("id") for message in messages[:2]] == ["1", "2"]
    assert messages[-2]["params"]["event"] == {"type": "final", "content": "a.py"}
    assert messages[-1]["params"]["status"] == "completed"
    assert (child.returncode, err) == (0, "")


def test_a_question_survives_the_runtimes_kill_and_is_answered_in_the_next_one(
    environ: dict[str, str], work: Path
) -> None:
    with agent(environ, work) as child:
        say(child, HELLO, start("run touch done"))
        question = hear_until(child, "ui.confirm.request")
        child.send_signal(signal.SIGKILL)
        child.wait(60)
    with agent(environ, work) as child:
        attach = {"run_id": question["params"]["run_id"]}
        say(child, HELLO, {"jsonrpc": "2.0", "id": "2", "method": "run.attach", "params": attach})
        again = hear_until(child, "ui.confirm.request")
        assert again == question
        assert not (work / "done").exists()
        say(child, {"jsonrpc": "2.0", "id": again["id"], "result": {"ok": True}})
        while hear_until(child, "run.status")["params"]["status"] != "completed":
            pass
        assert (work / "done").exists()


def test_the_socket_serves_several_uis_and_a_signal_ends_it(
    environ: dict[str, str], work: Path
) -> None:
    with agent(environ, work, "--socket", "a.sock") as child:
        assert child.stderr
        assert child.stderr.readline() == "telex: listening at unix:a.sock\n"
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as ui:
                ui.settimeout(10)
                ui.connect(os.path.relpath(work / "a.sock"))
                ui.sendall(json.dumps(HELLO).encode() + b"\n")
                answer = json.loads(ui.makefile().readline())
                assert answer["result"]["server"]["name"] == "telex-agent"
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        assert not (work / "a.sock").exists()


def test_pending_requests_get_an_error_when_the_runtime_ends(
    environ: dict[str, str], work: Path
) -> None:
    command = {"command": "touch began; sleep 100"}
    with agent(environ, work) as child:
        assert child.stdout
        say(child, HELLO, {"jsonrpc": "2.0", "id": 2, "method": "shell.exec", "params": command})
        assert json.loads(child.stdout.readline())["id"] == "1"
        until(lambda: (work / "began").exists())
        child.send_signal(signal.SIGTERM)
        (answer,) = [json.loads(line) for line in child.stdout]
        assert answer["id"] == 2
        assert answer["error"]["code"] == -32000
        assert answer["error"]["data"] == {"kind": "server_ending"}
        assert "server is shutting down" in answer["error"]["message"]
        assert child.wait(60) == 0


def until(condition: Callable[[], bool]) -> None:
    """What another process does to a file has no event to wait for."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_http_listener_serves_the_runtime_at_rpc_agent(
    environ: dict[str, str], work: Path
) -> None:
    import httpx

    token = "a-token-of-forty-characters-or-more-0123456789"
    with agent(environ | {"TELEX_TOKEN": token}, work, "--http", "127.0.0.1:0") as child:
        assert child.stderr
        assert child.stderr.readline().endswith("/rpc/automation\n")
        found = re.search(r"(http://\S+/rpc/agent)", child.stderr.readline())
        assert found is not None
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.post(found[1], json=HELLO, headers=headers, timeout=60)
        assert answer.json()["result"]["protocol_version"] == "0"
        assert httpx.post(found[1], json=HELLO, timeout=60).status_code == 401


def test_a_client_over_http_gets_neither_a_weaker_mode_nor_a_wider_root(
    environ: dict[str, str], work: Path
) -> None:
    import httpx

    token = "a-token-of-forty-characters-or-more-0123456789"
    options = ("--mode", "trusted", "--root", ".", "--http", "127.0.0.1:0")
    (work / "inner").mkdir()
    with agent(environ | {"TELEX_TOKEN": token}, work, *options) as child:
        assert child.stderr
        assert child.stderr.readline().endswith("/rpc/automation\n")
        found = re.search(r"(http://\S+/rpc/agent)", child.stderr.readline())
        assert found is not None
        headers = {"Authorization": f"Bearer {token}"}

        def initialized(**workspace: str) -> Any:
            params = {**HELLO["params"], "workspace": workspace}
            body = {**HELLO, "params": params}
            return httpx.post(found[1], json=body, headers=headers, timeout=60).json()

        assert initialized()["result"]["workspace"]["mode"] == "trusted"
        narrower = initialized(mode="minimal", root=str(work / "inner"))["result"]["workspace"]
        assert (narrower["mode"], narrower["root"]) == ("minimal", os.path.realpath(work / "inner"))
        assert "full is weaker than trusted" in initialized(mode="full")["error"]["message"]
        assert "is outside" in initialized(root="/")["error"]["message"]


def test_one_shot_prints_the_answer_on_stdout_and_its_tool_calls_on_stderr(
    here: Here, work: Path
) -> None:
    (work / "a.py").touch()
    assert here("exec", "list *.py") == (0, "a.py\n", '> list {"pattern": "*.py"}\n')


def test_one_shot_as_json_has_every_notification(here: Here) -> None:
    _, out, _ = here("exec", "--json", "help")
    lines = [json.loads(line) for line in out.splitlines()]
    methods = ["run.start", "run.status", "run.context", "agent.event", "run.status"]
    assert [line["method"] for line in lines] == methods
    assert lines[-1]["params"]["status"] == "completed"


def test_one_shot_denies_calls_that_need_a_confirmation_without_a_terminal(
    here: Here, work: Path
) -> None:
    code, out, err = here("exec", "run touch done")
    assert (code, err.count("nobody could be asked here")) == (4, 1)
    assert "Permission denied" in out
    assert not (work / "done").exists()
    assert here("--mode", "full", "exec", "run touch done")[0] == 0
    assert (work / "done").exists()


def test_a_failure_is_printed_once_and_sets_the_exit_code(here: Here) -> None:
    code, out, err = here("exec", "read nope")
    assert (code, out) == (1, "nope: No such file or directory\n")
    assert "No such file" not in err
    assert here("exec", "read nope\nhelp")[0] == 1
    assert here("exec", "read nope\nlist")[0] == 0


def test_options_after_exec_override_options_before_it(here: Here, work: Path) -> None:
    assert here("--mode", "minimal", "exec", "--mode", "full", "run touch done")[0] == 0
    assert (work / "done").exists()


@pytest.mark.parametrize(
    "options",
    [("--approval-mode", "full-access"), ("--approval-mode=full",), ("--mode", "full-access")],
)
def test_the_mode_accepts_the_names_that_codelia_uses(
    here: Here, work: Path, options: tuple[str, ...]
) -> None:
    assert here(*options, "exec", "run touch done")[0] == 0
    assert (work / "done").exists()
    code, _, said = here("--approval-mode", "reckless", "exec", "help")
    assert (code, "'reckless' is not one of" in said) == (2, True)


@pytest.mark.parametrize(
    ("codelia", "telex", "told"),
    [
        *[("1", None, True), ("true", None, True), ("0", None, False), ("?", None, False)],
        *[("1", "0", False), ("0", "1", True), (None, None, False)],
    ],
)
def test_diagnostics_may_be_asked_for_as_codelia_asks_for_them(
    here: Here,
    monkeypatch: pytest.MonkeyPatch,
    codelia: str | None,
    telex: str | None,
    told: bool,
) -> None:
    for name, value in (("CODELIA_DIAGNOSTICS", codelia), ("TELEX_DIAGNOSTICS", telex)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    code, out, _ = here("exec", "--json", "help")
    assert (code, "run.diagnostics" in out) == (0, told)


def test_diagnostics_are_printed_for_people_too(here: Here) -> None:
    code, out, said = here("exec", "--diagnostics", "help")
    assert (code, "tokens" in out) == (0, False)
    assert "telex: 0 calls of a model, 0 tokens" in said


class _WithoutModels(BaseHTTPRequestHandler):
    """A server that knows no model: such an answer is not tried again."""

    def do_POST(self) -> None:
        self.send_error(404, "there is no model of that name")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_failed_run_says_its_reason_once(environ: dict[str, str], work: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), _WithoutModels)
    threading.Thread(target=server.serve_forever).start()
    config = Path(environ["TELEX_HOME"], "config.toml")
    config.parent.mkdir(mode=0o700, exist_ok=True)
    address = f"http://127.0.0.1:{server.server_port}/v1"
    config.write_text(f'[models.gone]\ndialect = "chat"\nbase_url = "{address}"\nmodel = "x"\n')
    try:
        with agent(environ, work, "exec", "help") as child:
            said = child.communicate(timeout=60)[1]
    finally:
        server.shutdown()
        server.server_close()
    assert child.returncode == 1
    assert said.count("404") == 1, said


def test_one_shot_reads_its_prompt_from_standard_input(environ: dict[str, str], work: Path) -> None:
    (work / "a.py").touch()
    with agent(environ, work, "exec", "-") as child:
        assert child.communicate("list\n", timeout=60)[0] == "a.py\n"


def in_bash(line: str, environ: dict[str, str], work: Path) -> subprocess.CompletedProcess[str]:
    """With `telex` as this one."""
    telex = f'telex() {{ {sys.executable} -m telex "$@"; }}'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{telex}\n{line}"],
        env=environ,
        cwd=work,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_one_shot_ends_quietly_when_the_reader_closes_the_pipe(
    environ: dict[str, str], work: Path
) -> None:
    more_than_a_pipe_holds = "printf 'list\\n%.0s' {1..200}"
    line = f"{more_than_a_pipe_holds} | telex agent exec --json - | head -1"
    done = in_bash(line, environ, work)
    assert (done.returncode, done.stderr) == (141, "")
    assert json.loads(done.stdout)["method"] == "run.start"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("how", ["", "--json"])
def test_an_answer_that_cannot_be_written_is_a_failure(
    environ: dict[str, str], work: Path, how: str
) -> None:
    done = in_bash(f"telex agent exec {how} help > /dev/full", environ, work)
    assert (done.returncode, done.stderr) == (1, "telex: No space left on device\n")


def test_a_prompt_that_is_not_utf8_is_a_usage_error(environ: dict[str, str], work: Path) -> None:
    for line in ("telex agent exec $'list \\xff'", "printf '\\xff' | telex agent exec -"):
        done = in_bash(line, environ, work)
        assert (done.returncode, done.stderr.count("TEXT is not UTF-8")) == (2, 1)


def test_a_session_is_named_once_and_an_empty_name_is_none(here: Here) -> None:
    here("exec", "help")
    code, _, err = here("exec", "--session", "x", "--last", "help")
    assert (code, err.count("two sessions")) == (2, 1)
    assert here("exec", "--session", "", "help")[0] == 1


def test_only_denied_calls_are_reported_as_denied(here: Here, work: Path) -> None:
    (work / "log").write_text("Permission denied: of old\n")
    code, _, err = here("exec", "read log")
    assert (code, err) == (0, '> read {"file_path": "log"}\n')


def test_exec_with_a_listener_option_is_a_usage_error(here: Here) -> None:
    code, _, err = here("--socket", "here.sock", "exec", "help")
    assert (code, err.count("exec opens no listener")) == (2, 1)


def test_the_last_session_can_be_continued_and_sessions_are_listed(here: Here) -> None:
    assert here("sessions")[1] == "nothing is stored yet\n"
    here("exec", "todo water the plants")
    here("exec", "help")
    assert here("exec", "todo")[1] == "[nothing to do]\n"
    _, out, _ = here("sessions")
    watering = next(line.split()[0] for line in out.splitlines() if "water the plants" in line)
    assert len(out.splitlines()) == 3
    assert "1. [ ] water the plants" in here("exec", "--session", watering, "todo")[1]
    assert "1. [x]" in here("exec", "--last", "todo done 1")[1]


def test_a_session_is_continued_only_in_its_root(here: Here, work: Path) -> None:
    (work / "other").mkdir()
    here("exec", "todo water the plants")
    session = here("sessions")[1].splitlines()[-1].split()[0]
    assert "[nothing to do]" in here("--root", "other", "exec", "--last", "todo")[1]
    code, _, err = here("--root", "other", "exec", "--session", session, "todo")
    assert code == 1
    assert f"belongs to the root {os.path.realpath(work)}" in err
    assert "water the plants" in here("exec", "--session", session, "todo")[1]


def test_a_script_that_fails_is_an_exit_code(here: Here, work: Path) -> None:
    (work / "s.json").write_text('{"steps": [{"fail": "as told"}]}')
    code, _, err = here("--script", "s.json", "exec", "go")
    assert (code, err) == (1, "telex: the run failed: as told\n")
    (work / "s.json").write_text("{")
    code, _, err = here("--script", "s.json", "exec", "go")
    assert (code, err.count("\n")) == (1, 1)
    assert "is not a valid script" in err


def test_an_interrupt_cancels_the_run(environ: dict[str, str], work: Path) -> None:
    (work / "s.json").write_text('{"steps": [{"text": "here"}, {"wait": 60}]}')
    with agent(environ, work, "--script", "s.json", "exec", "--json", "go") as child:
        hear_until(child, "agent.event")
        child.send_signal(signal.SIGINT)
        assert hear_until(child, "run.status")["params"]["status"] == "cancelled"
        assert child.wait(60) == 130


def test_stored_sessions_can_be_exported_verified_and_imported(here: Here, work: Path) -> None:
    assert here("verify")[1] == "nothing is stored yet\n"
    here("exec", "help")
    assert here("verify")[1] == "1 sessions, 1 runs, 1 events\n"
    assert here("export", "--to", "a.ndjson")[0] == 0
    assert (work / "a.ndjson").stat().st_mode & 0o777 == 0o600
    assert here("export")[1] == (work / "a.ndjson").read_text()
    assert here("import", "a.ndjson")[0] == 1
    assert here("import", "--new-ids", "a.ndjson")[1].endswith("1 sessions, 1 runs, 1 events\n")
    assert here("verify")[1] == "2 sessions, 2 runs, 2 events\n"


@pytest.mark.parametrize("text", ["not = [toml", '[[permission.rule]]\ncomand = "rm"\n'])
def test_rules_that_cannot_be_read_keep_the_agent_from_starting(
    here: Here, environ: dict[str, str], text: str
) -> None:
    home = Path(environ["TELEX_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    code, out, err = here("exec", "help")
    assert (code, out) == (1, "")
    assert "config.toml" in err


def test_a_rule_of_the_persons_own_counts(here: Here, environ: dict[str, str], work: Path) -> None:
    home = Path(environ["TELEX_HOME"])
    home.mkdir(exist_ok=True)
    rule = '[[permission.rule]]\ntool = "shell"\ncommand = "touch"\ndecision = "allow"\n'
    (home / "config.toml").write_text(rule)
    here("exec", "run touch done")
    assert (work / "done").exists()


def test_a_projects_rules_count_once_it_is_trusted(here: Here, work: Path) -> None:
    (work / ".telex").mkdir()
    rule = '[[permission.rule]]\ntool = "shell"\ncommand = "touch"\ndecision = "allow"\n'
    (work / ".telex" / "config.toml").write_text(rule)
    here("exec", "run touch done")
    assert not (work / "done").exists()
    assert main(["config", "trust"]) == 0
    here("exec", "run touch done")
    assert (work / "done").exists()


def test_git_runs_unasked_only_in_a_workspace_that_is_trusted(
    here: Here, work: Path, program: Callable[[str], str]
) -> None:
    """What a repository says of itself can make git run anything."""
    subprocess.run([program("git"), "init", "-q"], cwd=work, check=True)
    (work / ".telex").mkdir()
    (work / ".telex" / "config.toml").write_text("")
    assert "Permission denied" in here("exec", "run git status --short")[1]
    assert main(["config", "trust"]) == 0
    assert here("exec", "run git status --short")[1].endswith("\n?? .telex/\n")


def test_configured_plugins_have_their_tools_in_it(
    here: Here, environ: dict[str, str], work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = Path(environ["TELEX_HOME"]) / "data" / "plugins"
    plugins.mkdir(parents=True, mode=0o700)
    shutil.copy(Path(__file__).parents[2] / "examples" / "plugins" / "counter.py", plugins)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    step = {"tool": "counter.add", "arguments": {"a": 1, "b": 2}}
    (work / "s.json").write_text(json.dumps({"steps": [step]}))
    asked = ("--mode", "full", "--script", "s.json", "exec", "go")
    assert "Unknown tool" in here(*asked)[1]
    monkeypatch.setenv("TELEX_AGENT_PLUGINS", "counter,nothing")
    code, out, err = here(*asked)
    assert (code, out) == (0, "3\n")
    assert "there is no plugin nothing" in err


def test_the_first_run_without_the_kernels_sandbox_says_so_and_the_next_does_not(
    environ: dict[str, str], work: Path, without_landlock: list[str]
) -> None:
    def said(*words: str) -> str:
        argv = [*without_landlock, "agent", "exec", *words, "run cat file"]
        ran = subprocess.run(argv, env=environ, cwd=work, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        assert "inside" in ran.stdout + ran.stderr
        return ran.stderr

    environ["TELEX_HOME"] += "-that-was-never-used"
    (work / "file").write_text("inside")
    missing = "telex: warning: the kernel's sandbox is missing: this kernel has no Landlock"
    assert missing not in said("--mode", "full")
    assert missing in said()
    assert missing not in said()


def test_the_confinement_warning_is_repeated_when_its_reason_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(kernel: Kernel) -> str:
        warn_about_confinement(tmp_path / "state" / "told", Mode.MINIMAL, kernel)
        return capsys.readouterr().err

    assert "on Linux only" in said(Kernel(linux=False, landlock=0))
    assert said(Kernel(linux=False, landlock=0)) == ""
    assert "no Landlock" in said(Kernel(linux=True, landlock=0, machine="x86_64"))
    assert "no seccomp filter" in said(Kernel(linux=True, landlock=7))
    assert said(Kernel(linux=True, landlock=7, machine="x86_64")) == ""
