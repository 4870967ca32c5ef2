"""The verbs of the shell: time, processor time and tokens, beside tmux and an empty Python.

Each contestant is a whole process, as a script or an agent starts it, and they take turns. The
processor time is that of the caller; a server does its part elsewhere, as tmux's does.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Row, in_turns

ROUNDS = 40
PROGRAM = ["bash", "--norc", "--noprofile"]
SCREENS = (
    "vim --clean /etc/passwd",
    "less /etc/services",
    "top -b -n 1 | head -24; exec cat",
    "python3 -q",
    "bash --norc",
    "git --help; exec cat",
    "ls -la /; exec cat",
    "df -h; exec cat",
    "ps aux | head -20; exec cat",
    "nano /etc/hosts",
    "cat /etc/os-release; exec cat",
    "man ls",
    "env --help; exec cat",
    "tar --help | head -24; exec cat",
    "seq 30; exec cat",
    "uname -a; exec cat",
    "id; exec cat",
    "mount | head -20; exec cat",
    "sh -c 'echo $0'; exec cat",
    "tmux -V; exec cat",
)
LONGEST = "2"
"""The bar: processor time of a verb as a multiple of an empty Python's."""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": directory,
            "TELEX_HOME": directory,
            "TMUX_TMPDIR": directory,
            "TERM": "xterm-256color",
        }
        telex = [str(Path(sys.executable).parent / "telex")]
        try:
            _run([*telex, "open", "bench", "--", *PROGRAM], environ)
            return [*_measured(telex, environ), *_tokens(telex, environ)]
        finally:
            _run([*telex, "server", "stop"], environ)


def _measured(telex: list[str], environ: dict[str, str]) -> list[Row]:
    calls = {
        "see": [*telex, "see"],
        "type": [*telex, "type", "x"],
        "python": [sys.executable, "-c", "pass"],
    }
    tmux = shutil.which("tmux")
    if tmux is not None:
        _run([tmux, "-f", "/dev/null", "new-session", "-d", "-s", "bench", *PROGRAM], environ)
        calls["capture-pane"] = [tmux, "capture-pane", "-p", "-t", "bench"]
        calls["send-keys"] = [tmux, "send-keys", "-t", "bench", "x"]
    try:
        wall = in_turns({name: _wall(call, environ) for name, call in calls.items()}, ROUNDS)
        spent = in_turns({name: _spent(call, environ) for name, call in calls.items()}, ROUNDS)
    finally:
        if tmux is not None:
            _run([tmux, "kill-server"], environ)
    middle = {name: statistics.median(measured) for name, measured in wall.items()}
    cpu = {name: statistics.median(measured) for name, measured in spent.items()}
    rows = []
    for verb, peer in (("see", "capture-pane"), ("type", "send-keys")):
        target = f"<= {LONGEST} x"
        rows += [
            Row(f"telex {verb}, a call", middle[verb], "ms", middle.get(peer), f"tmux {peer}"),
            Row(
                f"telex {verb}, processor", cpu[verb], "ms", cpu["python"], "python -c pass", target
            ),
        ]
    return rows


def _tokens(telex: list[str], environ: dict[str, str]) -> list[Row]:
    """What an agent reads: the skill, its manual, and the screens of some programs."""
    count, counter = token_counter()

    def printed(*words: str) -> str:
        call = [*telex, *words]
        return subprocess.run(call, env=environ, capture_output=True, text=True, check=True).stdout

    screens = []
    for number, program in enumerate(SCREENS):
        if shutil.which(program.split()[0]) is not None:
            name = f"screen{number}"
            printed("open", name, "--", "sh", "-c", program)
            screens.append(count(printed("see", "-s", name)))
            printed("close", name)
    middle = statistics.median(screens)
    return [
        Row("telex skill", count(printed("skill")), "tokens", None, counter, "<= 250"),
        Row(
            "telex skill get core",
            count(printed("skill", "get", "core")),
            "tokens",
            None,
            counter,
            "<= 1800",
        ),
        Row(
            f"telex see, median of {len(screens)} programs",
            middle,
            "tokens",
            None,
            counter,
            "<= 300",
        ),
    ]


def token_counter() -> tuple[Callable[[str], int], str]:
    """A real tokenizer, where its data can be had; else a quarter of the bytes."""
    try:
        encoding = importlib.import_module("tiktoken").get_encoding("o200k_base")
    except (ImportError, OSError):  # OSError: its data is downloaded at the first use
        return lambda text: len(text.encode()) // 4, "bytes / 4"
    return lambda text: len(encoding.encode(text)), "o200k"


def _wall(call: list[str], environ: dict[str, str]) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        _run(call, environ)
        return (time.perf_counter() - began) * 1000

    return measure


def _spent(call: list[str], environ: dict[str, str]) -> Callable[[], float]:
    def measure() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(call, environ)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    return measure


def _run(call: list[str], environ: dict[str, str]) -> None:
    subprocess.run(
        call, env=environ, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True
    )
