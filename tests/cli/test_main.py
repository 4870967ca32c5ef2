"""`telex` itself: what it lists and loads, and how every kind of end looks from outside."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

import telex.cli
from telex.__main__ import VERBS
from telex.automation import verb_commands
from telex.cli import command_end, main
from telex.cli.console import printable
from telex.cli.root import COMMANDS, FILES, LazyCommand, root
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


CHEAP = {"click", "telex"}
"""What may be loaded to print a help text, besides the standard library."""

COSTLY = {
    "asyncio",
    "ssl",
    "socket",
    "subprocess",
    "tomllib",
    "json",
    "importlib.metadata",
    "logging",
}


def test_version_is_one_line(telex: Run) -> None:
    ran = telex("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"telex {__version__}\n", "")


def test_help_lists_every_command_with_its_line(telex: Run) -> None:
    ran = telex("--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    words = " ".join(ran.stdout.split())  # a long line is wrapped
    for name, line in COMMANDS.items():
        assert f" {name} {line}" in words
    assert ran.stdout.index("Drive programs:") < ran.stdout.index("Your terminal:")


@pytest.mark.parametrize("args", [["--help"], ["--version"], []])
def test_help_and_version_load_nothing_heavy(args: list[str]) -> None:
    script = (
        "import sys; from telex.cli import main; main(sys.argv[1:]);"
        "print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    site = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - {"__main__"}
    # The `site` module may have brought in what an editable installation needs.
    assert {name for name in site if not name.startswith("_")} == CHEAP
    assert not loaded & COSTLY
    assert not {name for name in loaded if name.startswith(("telex.config", "telex.wire"))}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_table_is_the_commands_own(name: str) -> None:
    stand_in = root.commands[name]
    assert isinstance(stand_in, LazyCommand)
    assert stand_in.load().get_short_help_str(limit=1000) == COMMANDS[name]


def test_every_file_with_a_command_is_in_the_table() -> None:
    names = {module.name for module in pkgutil.iter_modules(telex.cli.__path__)}
    files = {name: importlib.import_module(f"telex.cli.{name}") for name in names}
    found = {name for name, file in files.items() if hasattr(file, "command")}
    assert found == set(COMMANDS) - VERBS - set(FILES)
    assert set(verb_commands.VERBS) == VERBS


def test_a_usage_error_is_one_line_with_code_2(telex: Run) -> None:
    for args, said in (
        (
            ["doctr"],
            "telex: No such command 'doctr'. Did you mean 'doctor'? (try: telex --help)\n",
        ),
        (["doctor", "--jsn"], "(try: telex doctor --help)\n"),
        (["completions"], "telex: Missing argument"),
        (["--set", "trace", "doctor"], "'trace' has no '='; write KEY=VALUE"),
    ):
        ran = telex(*args)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert said in ran.stderr
        assert ran.stderr.count("\n") == 1


def test_telex_alone_shows_its_help_as_a_usage_error(telex: Run) -> None:
    ran = telex()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("Usage: telex ")


def test_an_error_of_ours_is_one_line_and_a_traceback_only_on_demand(
    telex: Run,
) -> None:
    ran = telex("config", "path", TELEX_HOME="here")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "telex: TELEX_HOME must be an absolute path; it is 'here'\n"
    ran = telex("config", "path", TELEX_HOME="here", TELEX_DEBUG="1")
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr
    assert ran.stderr.endswith("telex: TELEX_HOME must be an absolute path; it is 'here'\n")


class Refused(Exception):
    exit_code = 3


Refused.__module__ = "telex.somewhere"


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (Refused("not on this system"), "telex: not on this system", 3),
        (TimeoutError(), "telex: timed out", 124),
        (TimeoutError("no prompt after 3 s"), "telex: no prompt after 3 s", 124),
        (FileNotFoundError(2, "No such file", "/x"), "telex: /x: No such file", 1),
        (OSError("odd"), "telex: odd", 1),
        (click.ClickException("no"), "telex: no", 1),
        (click.Abort(), None, 130),
        (KeyboardInterrupt(), None, 130),
        (BrokenPipeError(), None, 141),
        (click.exceptions.Exit(7), None, 7),
    ],
)
def test_each_kind_of_end_has_its_line_and_code(
    error: BaseException, line: str | None, code: int
) -> None:
    assert (command_end(error).line, command_end(error).code) == (line, code)


@pytest.fixture
def broken_command() -> Iterator[None]:
    @root.command("broken")
    def _broken() -> None:
        raise ZeroDivisionError("a bug")

    yield
    del root.commands["broken"]


@pytest.mark.usefixtures("broken_command")
def test_a_bug_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broken"]) == 1
    said = "telex: internal error: ZeroDivisionError: a bug (TELEX_DEBUG=1 shows where)\n"
    assert capsys.readouterr().err == said


WAITING = """
import signal, sys
from telex.cli import main
from telex.cli.root import root

@root.command()
def wait():
    print("ready", flush=True)
    signal.pause()

sys.exit(main(["wait"]))
"""


def test_ctrl_c_ends_quietly_with_130() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, b"", b"")


def run_into(stdout: int, environ: dict[str, str], work: Path) -> tuple[int, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "telex", "doctor"],
        env=environ,
        cwd=work,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_closed_pipe_ends_quietly(environ: dict[str, str], work: Path) -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    try:
        assert run_into(ours, environ, work) == (141, b"")
    finally:
        os.close(ours)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a disk that is full")
def test_a_full_disk_is_one_line(environ: dict[str, str], work: Path) -> None:
    with open("/dev/full", "wb") as full:
        code, err = run_into(full.fileno(), environ, work)
    assert (code, err) == (1, b"telex: No space left on device\n")


def test_without_a_stdout_the_code_is_still_the_answer(
    environ: dict[str, str], work: Path, program: Callable[[str], str]
) -> None:
    command = f"exec {sys.executable} -m telex doctor >&-"
    done = subprocess.run(
        [program("bash"), "-c", command], env=environ, cwd=work, stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_control_characters_are_escaped_for_printing() -> None:
    assert printable("a\x1b]0;x\x07\tb\u202ec\udcff\n") == "a\\x1b]0;x\\x07\\tb\\u202ec\\udcff\n"
    assert printable("Ångström ✓ 日本") == "Ångström ✓ 日本"


def test_a_hostile_directory_name_is_printed_harmlessly(telex: Run, tmp_path: Path) -> None:
    ran = telex("config", "path", TELEX_HOME=f"{tmp_path}/\x1b[2J")
    assert ran.stdout == f"{tmp_path}/\\x1b[2J/config.toml\n"


def test_text_that_the_output_cannot_hold_is_spelled_out(telex: Run, tmp_path: Path) -> None:
    ran = telex("config", "path", TELEX_HOME=f"{tmp_path}/日", PYTHONIOENCODING="latin-1")
    assert (ran.returncode, ran.stdout) == (0, f"{tmp_path}/\\u65e5/config.toml\n")


def test_the_installed_script_is_the_same_program(environ: dict[str, str]) -> None:
    script = os.path.join(os.path.dirname(sys.executable), "telex")
    done = subprocess.run(
        [script, "doctor", "--json"], env=environ, capture_output=True, check=True
    )
    assert json.loads(done.stdout)["telex"] == __version__
