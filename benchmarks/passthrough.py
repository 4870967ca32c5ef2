"""`telex run` beside `script` and beside nothing: how fast a program's output reaches a terminal.

Each runs on a terminal of its own that is read as fast as it comes, as a terminal emulator would.
"""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import streams
from benchmarks.figures import Row, against, in_turns

ROUNDS = 7


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        file, empty = Path(directory) / "stream", Path(directory) / "empty"
        file.write_bytes(streams.plain())
        empty.touch()
        ways = _ways(file)
        measured = in_turns({name: rate(argv, file) for name, argv in ways.items()}, ROUNDS)
        nothing = in_turns({name: _seconds(argv) for name, argv in _ways(empty).items()}, ROUNDS)
    rows = against("passed through", "MB/s", measured, {"script": ">= 1 x"})
    took = {name: statistics.median(seconds) * 1e3 for name, seconds in nothing.items()}
    return [*rows, Row("wrapped around nothing", took["telex"], "ms", took["script"], "script")]


def _ways(file: Path) -> dict[str, list[str]]:
    return {
        "telex": [sys.executable, "-m", "telex", "run", "--", "cat", str(file)],
        "script": ["script", "-qec", f"cat {file}", "/dev/null"],
        "no wrapper": ["cat", str(file)],
    }


def rate(argv: list[str], file: Path) -> Callable[[], float]:
    """MB/s from the first byte on: starting Python is measured by itself."""

    def measure() -> float:
        _, first, last = _drained(argv)
        return file.stat().st_size / 1e6 / (last - first)

    return measure


def _seconds(argv: list[str]) -> Callable[[], float]:
    def measure() -> float:
        began, _, last = _drained(argv)
        return last - began

    return measure


def _drained(argv: list[str]) -> tuple[float, float, float]:
    """When it began, when the first byte came, and when it was over."""
    master, slave = pty.openpty()
    began = first = time.perf_counter()
    with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True):
        os.close(slave)
        try:
            os.read(master, 1)
            first = time.perf_counter()
            while os.read(master, 65536):
                pass
        except OSError:  # nobody has it open any more
            pass
    os.close(master)
    return began, first, time.perf_counter()
