"""Running telex for real: as a child of the test, with a home and an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from telex.agent.permissions import Mode
from telex.cli import main
from telex.cli.agent.composition import NOT_HELD, warn_about_confinement

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., CompletedProcess[str]]

SECONDS = 60


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A plain environment: nothing of the person who runs the tests."""
    return {"PATH": os.environ["PATH"], "TELEX_HOME": str(tmp_path / "home"), "TERM": "xterm"}


@pytest.fixture
def told(environ: dict[str, str]) -> None:
    """Not the first run: what this kernel does not hold was said before."""
    with redirect_stderr(StringIO()):
        warn_about_confinement(Path(environ["TELEX_HOME"], "state", NOT_HELD), Mode.MINIMAL)


# A filter by which landlock_create_ruleset is not known, as on an older kernel.
_WITHOUT_LANDLOCK = """
import os, struct, sys
from telex.processes.restrict import restrict
steps = (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7FFF0000)
restrict([["filter", b"".join(struct.pack("<HBBI", *step) for step in steps).hex()]])
os.execv(sys.executable, [sys.executable, "-m", "telex", *sys.argv[1:]])
"""


@pytest.fixture
def without_landlock() -> list[str]:
    """The words of a `telex` on a system without Landlock."""
    if sys.platform != "linux":
        pytest.skip("only Linux has filters")
    return [sys.executable, "-c", _WITHOUT_LANDLOCK]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The directory telex is run in."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def telex(environ: dict[str, str], work: Path) -> Run:
    """`telex("doctor", "--json", NO_COLOR="1")`: arguments, and additions to the environment."""

    def run(*args: str, **more: str) -> CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "telex", *args],
            env=environ | more,
            cwd=work,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )

    return run


@pytest.fixture
def on_terminal(environ: dict[str, str], work: Path) -> Run:
    """The same on a pseudo-terminal, 100 columns wide, where stdout and stderr are one."""

    def run(*args: str, **more: str) -> CompletedProcess[str]:
        ours, theirs = os.openpty()
        with os.fdopen(ours, "rb", buffering=0) as screen:
            child = subprocess.Popen(
                [sys.executable, "-m", "telex", *args],
                env=environ | {"COLUMNS": "100"} | more,
                cwd=work,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
            )
            os.close(theirs)
            shown = _until_hangup(screen.fileno())
            text = shown.decode().replace("\r\n", "\n")
            return CompletedProcess(child.args, child.wait(SECONDS), text, "")

    return run


@pytest.fixture
def inside(
    environ: dict[str, str],
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """As `telex`, in this process: a third of the time."""
    monkeypatch.setenv("TELEX_HOME", environ["TELEX_HOME"])
    monkeypatch.chdir(work)

    def run(*args: str, **more: str) -> CompletedProcess[str]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in more.items():
                patch.setenv(name, value)
            code = main(args)
        return CompletedProcess(args, code, *capfd.readouterr())

    return run


@pytest.fixture
def here(inside: Run) -> Callable[..., tuple[int, str, str]]:
    """`telex agent …` in this process: exit code, stdout, stderr."""

    def run(*args: str) -> tuple[int, str, str]:
        done = inside("agent", *args)
        return done.returncode, done.stdout, done.stderr

    return run


def _until_hangup(descriptor: int) -> bytes:
    shown = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # EIO: how Linux says that the last holder of the terminal is gone
            return shown
        if not piece:
            return shown
        shown += piece
