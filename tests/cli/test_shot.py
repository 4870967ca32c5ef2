"""`telex shot`: a picture of a program's screen, or why there is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from disks import limited
from telex.cli import main
from telex.processes import proc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., CompletedProcess[str]]

SECRET = "password=hunter2secret"


@pytest.fixture
def telex(
    work: Path,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """In this process, as a picture needs no more, and many of them much less."""
    monkeypatch.chdir(work)
    monkeypatch.setenv("TELEX_HOME", environ["TELEX_HOME"])

    def run(*args: str, **env: str) -> CompletedProcess[str]:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        code = main(args)
        return CompletedProcess(args, code, *capfd.readouterr())

    return run


RESTLESS = f"echo {SECRET}; while :; do printf '\\r%s' $(date +%N); sleep 0.02; done"


def test_it_is_text_on_stdout_when_the_program_has_ended(telex: Run) -> None:
    ran = telex("shot", "--", "printf", "one\\n  two\\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "one\n  two\n", "")


def test_keys_are_pressed_after_the_typed_text(telex: Run, work: Path) -> None:
    (work / "lines").write_text("".join([f"line {n}\n" for n in range(1, 100)]))
    ran = telex(
        *("shot", "--size", "40x6", "--type", "/line 50\\n", "--press", "down"),
        *("--press", "page_down", "--", "less", "lines"),
    )
    assert (ran.returncode, ran.stdout.splitlines()[:2]) == (0, ["line 56", "line 57"])
    ran = telex("shot", "--press", "ctlr_c", "--", "cat")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "ctrl_c" in ran.stderr


def test_it_is_taken_when_the_screen_is_still_and_the_program_is_ended(
    telex: Run, work: Path
) -> None:
    ran = telex("shot", "--", "sh", "-c", "echo $$ > pid; echo waiting; exec sleep 100")
    assert (ran.returncode, ran.stdout) == (0, "waiting\n")
    pid = (work / "pid").read_text().strip()
    assert not any(process.alive for process in proc.ps_rows("-p", pid))


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.txt", b"hello"),
        ("a.ans", b"\x1b["),
        ("a.svg", b"<svg"),
        ("a.html", b"<!doctype html>"),
        ("a.png", b"\x89PNG\r\n"),
    ],
)
def test_the_file_name_selects_the_image_format(
    telex: Run, work: Path, name: str, begins: bytes
) -> None:
    ran = telex("shot", "-o", name, "--", "printf", "\\033[31mhello")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    drawn = (work / name).read_bytes()
    assert drawn.lower().startswith(begins.lower())


def test_another_name_is_refused_before_anything_runs(telex: Run, work: Path) -> None:
    ran = telex("shot", "-o", "a.jpg", "--", "touch", "ran")
    assert ran.returncode == 1
    assert ".png" in ran.stderr
    assert not (work / "ran").exists()
    assert telex("shot", "-o", "a.jpg", "--kind", "svg", "--", "echo", "x").returncode == 0
    assert (work / "a.jpg").read_text().startswith("<svg")


def test_titles_and_texts_of_a_hostile_program_stay_text(telex: Run, work: Path) -> None:
    script = "printf '\\033]2;</title><script>x</script>\\007<b onload=x>&\\302\\233'"
    for name in ("a.html", "a.svg"):
        assert telex("shot", "-o", name, "--", "sh", "-c", script).returncode == 0
        drawn = (work / name).read_text()
        assert "<script>" not in drawn
        assert "<b onload" not in drawn
        assert "&lt;b" in drawn
    ran = telex("shot", "--", "sh", "-c", script)
    assert "\x9b" not in ran.stdout
    assert "\x1b" not in ran.stdout


@pytest.mark.parametrize("kind", ["text", "ansi", "svg", "html"])
def test_secrets_are_masked_unless_raw(telex: Run, kind: str) -> None:
    shown = telex("shot", "--kind", kind, "--", "echo", SECRET).stdout
    assert "hunter2" not in shown
    shown = telex("shot", "--raw", "--kind", kind, "--", "echo", SECRET).stdout
    assert "hunter2secret" in shown


def test_a_secret_whose_beginning_has_scrolled_away_is_masked(telex: Run) -> None:
    wrapped = f"password={'hunter2' * 30}"
    ran = telex("shot", "--size", "20x5", "--", "sh", "-c", f"printf {wrapped}; sleep 9")
    assert ran.returncode == 0
    assert "password=" not in ran.stdout
    assert "hunter2" not in ran.stdout


def test_a_listed_secret_is_masked_too(telex: Run) -> None:
    ran = telex("shot", "--", "echo", "swordfish", TELEX_REDACTION_EXTRA_LITERALS="swordfish")
    assert "swordfish" not in ran.stdout


def test_a_screen_that_is_never_still_is_124_and_shown(telex: Run, work: Path) -> None:
    ran = telex("shot", "-o", "a.png", "--timeout", "0.5", "--", "sh", "-c", RESTLESS)
    assert (ran.returncode, ran.stdout) == (124, "")
    assert ran.stderr.startswith(
        "telex: the screen did not stop changing within 0.5 s; it shows:\n"
    )
    assert "password=" in ran.stderr
    assert "hunter2" not in ran.stderr
    assert not (work / "a.png").exists()


def test_an_empty_text_is_a_wrong_option(telex: Run) -> None:
    ran = telex("shot", "--wait", "", "--", "true")
    assert ran.returncode == 2
    assert "--wait: the text is empty" in ran.stderr


def test_a_text_that_does_not_come_is_124_and_named(telex: Run) -> None:
    ran = telex("shot", "--wait", "never", "--timeout", "0.4", "--", "sh", "-c", "echo x; sleep 9")
    assert ran.returncode == 124
    assert ran.stderr.startswith("telex: 'never' did not appear within 0.4 s; it shows:\nx\n")
    script = f"echo never; {RESTLESS}"
    ran = telex("shot", "--wait", "never", "--timeout", "0.4", "--", "sh", "-c", script)
    assert ran.stderr.startswith("telex: the screen did not stop changing")


def test_a_program_that_ends_before_the_text_came_is_1_and_shown(telex: Run) -> None:
    ran = telex("shot", "--wait", "never", "--", "echo", SECRET)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "'never' did not appear: the program exited with code 0" in ran.stderr
    assert "password=" in ran.stderr
    assert "hunter2" not in ran.stderr


def test_typed_input_is_sent_before_the_wait(telex: Run) -> None:
    script = 'read a; echo "<$a>"; read b; echo "[$b]"; read c'
    ran = telex(
        *("shot", "--type", "one\\n", "--type", "t\\\\two\\n", "--wait", "[t"),
        *("--", "sh", "-c", f"echo go; {script}"),
    )
    assert ran.returncode == 0, ran.stderr
    assert "<one>" in ran.stdout
    assert "[t" in ran.stdout


def test_typing_at_a_program_that_has_ended_is_a_sentence(telex: Run) -> None:
    ran = telex("shot", "--type", "x", "--", "echo", "over")
    assert ran.returncode == 1
    assert "nothing reads what is typed" in ran.stderr


def test_a_program_that_cannot_start_is_127_or_126(telex: Run, work: Path) -> None:
    ran = telex("shot", "--", "no-such-program")
    assert (ran.returncode, ran.stdout) == (127, "")
    assert "no-such-program" in ran.stderr
    (work / "plain").write_text("x")
    assert telex("shot", "--", "./plain").returncode == 126


def test_a_place_that_cannot_be_written_is_a_sentence(telex: Run, work: Path) -> None:
    ran = telex("shot", "-o", "nowhere/a.png", "--", "echo", "x")
    assert ran.returncode == 1
    assert ran.stderr == "telex: nowhere/a.png: No such file or directory\n"
    assert telex("shot", "-o", str(work), "--", "echo", "x").returncode == 2


def test_a_picture_for_which_there_is_no_room_leaves_no_half(telex: Run, work: Path) -> None:
    lines = 'for n in $(seq 290); do printf "\\033[3%dm%0250d\\n" $((n % 8)) $n; done'
    with limited():
        ran = telex("shot", "-o", "a.svg", "--size", "300x300", "--", "sh", "-c", lines)
    assert ran.returncode == 1
    assert "a.svg: File too large" in ran.stderr
    assert not (work / "a.svg").exists()


@pytest.mark.parametrize("size", ["0x80", "24x0", "24", "x", "1001x80", "24x80x2", "-1x2"])
def test_a_size_is_columns_and_rows(telex: Run, size: str) -> None:
    ran = telex("shot", "--size", size, "--", "echo", "x")
    assert ran.returncode == 2
    assert "COLSxROWS" in ran.stderr


def test_the_program_finds_that_size(telex: Run) -> None:
    ran = telex("shot", "--size", "33x7", "--", "stty", "size")
    assert (ran.stdout, ran.stderr) == ("7 33\n", "")


def test_a_size_in_the_old_order_is_taken_as_written_with_a_note(telex: Run) -> None:
    ran = telex("shot", "--size", "24x80", "--", "stty", "size")
    assert (ran.returncode, ran.stdout) == (0, "80 24\n")
    assert ran.stderr == (
        "telex: note: 24x80 was taken as 24 columns and 80 rows; "
        "for 80 columns and 24 rows write 80x24\n"
    )


def test_ctrl_c_ends_it_and_the_program(environ: dict[str, str], work: Path) -> None:
    fifo = work / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "telex", "shot", "--wait", "never", "--"),
            *("sh", "-c", "echo $$ > fifo; exec sleep 100"),
        ],
        cwd=work,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        pid = fifo.read_text().strip()
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr
        assert child.stderr.read() == ""
    assert not any(process.alive for process in proc.ps_rows("-p", pid))
