"""`telex run` without a terminal, and its words when there is nothing to run."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from telex.passthrough.person_terminal import person_shell

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

RUN = [sys.executable, "-m", "telex", "run", "--"]


def test_a_program_that_does_not_exist_is_one_sentence_and_127(telex: Run) -> None:
    ran = telex("run", "--", "no-such-program")
    assert (ran.returncode, ran.stdout) == (127, "")
    assert ran.stderr.startswith("telex: there is no program no-such-program")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("content", ["", "#!/no/such/interpreter\n"])
def test_a_program_that_cannot_be_run_is_one_sentence_and_126(
    telex: Run, work: Path, content: str
) -> None:
    file = work / "file"
    file.write_text(content)
    file.chmod(0o700 if content else 0o600)
    ran = telex("run", "./file")
    assert ran.returncode == 126
    said = ran.stderr + ran.stdout
    assert "file cannot be run" in said
    assert said.count("\n") == 1


def test_run_and_record_without_a_command_start_the_persons_shell(telex: Run, work: Path) -> None:
    shell = work / "shell"
    shell.write_text("#!/bin/sh\necho this is $0 with $# arguments\n")
    shell.chmod(0o700)
    for command in (["run"], ["run", "--"], ["record", "demo.cast"]):
        ran = telex(*command, SHELL=str(shell))
        assert (ran.returncode, ran.stdout) == (0, f"this is {shell} with 0 arguments\n")
    assert f'"command":"{shell}"' in (work / "demo.cast").read_text()


@pytest.mark.parametrize(
    ("variable", "account", "started"),
    [
        (sys.executable, "/bin/sh", sys.executable),
        (None, sys.executable, sys.executable),
        ("/no/such/shell", sys.executable, sys.executable),
        ("python3", sys.executable, sys.executable),
        ("/etc/passwd", "/no/such/shell", "/bin/sh"),
        ("", "", "/bin/sh"),
        (None, None, "/bin/sh"),
    ],
)
def test_the_shell_is_that_of_the_environment_of_the_account_or_sh(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, account: str | None, started: str
) -> None:
    def entry(uid: int) -> pwd.struct_passwd:
        if account is None:
            raise KeyError(uid)
        return pwd.struct_passwd(("me", "x", uid, uid, "", "/", account))

    monkeypatch.setattr(pwd, "getpwuid", entry)
    monkeypatch.delenv("SHELL", raising=False)
    if variable is not None:
        monkeypatch.setenv("SHELL", variable)
    assert person_shell() == started


def test_the_exit_code_is_the_programs(telex: Run) -> None:
    assert telex("run", "--", "sh", "-c", "exit 7").returncode == 7
    assert telex("run", "--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_options_after_the_program_are_the_programs(telex: Run) -> None:
    ran = telex("run", "sh", "-c", "echo $0 --help", "-V")
    assert (ran.returncode, ran.stdout) == (0, "-V --help\n")


@pytest.mark.parametrize(
    ("given", "argv", "shown"),
    [
        ("one\ntwo\n", ["cat"], "one\ntwo\n"),
        ("no newline", ["cat"], "no newline"),
        ("", ["cat"], ""),
        ("b\na\n", ["sort"], "a\nb\n"),
        ("print(6 * 7)\n", [sys.executable, "-q"], ">>> 42\n>>> \n"),
        ("".join(f"{n}\n" for n in range(20000)), ["tail", "-1"], "19999\n"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_without_a_terminal_it_is_a_filter(
    given: str, argv: list[str], shown: str, kind: str, environ: dict[str, str], work: Path
) -> None:
    (work / "given").write_text(given)
    how = {"pipe": "cat given | ", "file": "< given "}[kind]
    command = shlex.join([*RUN, *argv])
    done = subprocess.run(
        ["sh", "-c", f"{how}{command}"],
        env=environ,
        cwd=work,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout.decode(), done.stderr) == (shown, b"")


def test_run_ends_quietly_when_the_reader_closes_the_pipe(environ: dict[str, str]) -> None:
    with subprocess.Popen(
        [*RUN, "yes"],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.read(4) == b"y\ny\n"
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 128 + signal.SIGPIPE


def test_a_program_that_stops_when_it_is_ended_does_not_stop_us(environ: dict[str, str]) -> None:
    """Nor who runs in our process group: a shell would have a stopped job, a pipeline hang."""
    stops = "signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))"
    script = f"import os, signal; {stops}; print('up', flush=True)\nwhile True: signal.pause()"
    with subprocess.Popen(
        [*RUN, sys.executable, "-c", script],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=0,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.read(3) == b"up\n"
        child.terminate()
        seen = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        child.kill()
        assert seen is not None
        assert seen.si_code == os.CLD_EXITED
        assert child.wait(60) == 128 + signal.SIGTERM


def test_the_pipes_it_was_given_stay_blocking(environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(RUN)} true; cat /proc/self/fdinfo/0 /proc/self/fdinfo/1 >&2"],
        env=environ,
        input=b"",
        capture_output=True,
        timeout=60,
        check=True,
    )
    flags = [int(line.split()[1], 8) for line in done.stderr.splitlines() if b"flags" in line]
    assert len(flags) == 2
    assert not any(flag & os.O_NONBLOCK for flag in flags)


def test_a_socket_it_was_given_is_blocking_again_afterwards(environ: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        subprocess.run(
            [*RUN, "echo", "x"], env=environ, stdin=theirs, stdout=theirs, timeout=60, check=True
        )
        assert ours.recv(9) == b"x\n"
        assert os.get_blocking(theirs.fileno())
