"""The pytest plugin: what the fixture costs a test beyond its program, and a golden and a locator
beside those of tui-test.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import telex
from benchmarks import peers
from benchmarks.figures import Row, in_turns
from telex.testing.golden_fixture import Golden, GoldenPlace
from telex.testing.spawned_programs import SpawnedPrograms

PROGRAM = ["sh", "-c", "echo ready; exec cat"]
COMPARED = 200
FULL = ["sh", "-c", "for n in $(seq 58); do printf '%0199d\\n' $n; done; echo needle; exec cat"]


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        return [*_fixture(Path(directory)), *_golden(Path(directory)), *_locator(), *_import()]


def _fixture(directory: Path) -> list[Row]:
    def with_fixture() -> float:
        began = time.perf_counter()
        programs = SpawnedPrograms(lambda: directory / "trace.cast")
        term = programs.spawn(PROGRAM)
        term.wait("ready")
        programs.close()
        (directory / "trace.cast").unlink()
        return (time.perf_counter() - began) * 1000

    def without() -> float:
        began = time.perf_counter()
        with telex.spawn(PROGRAM) as term:
            term.wait("ready")
        return (time.perf_counter() - began) * 1000

    # The best of each: what others took of the machine is nobody's merit.
    best = {
        name: measured[0]
        for name, measured in in_turns({"with": with_fixture, "without": without}, 60).items()
    }
    figure, beyond = "a test with one program", max(0.0, best["with"] - best["without"])
    return [
        Row(figure, best["with"], "ms", best["without"], "telex.spawn alone"),
        Row("the fixture, beyond its program", beyond, "ms", target="<= 5"),
    ]


def _golden(directory: Path) -> list[Row]:
    ours = []
    programs = SpawnedPrograms(lambda: None)
    try:
        term = programs.spawn(PROGRAM, rows=peers.ROWS, cols=peers.COLS)
        term.wait("ready")
        for update in (True, *[False] * COMPARED):  # a test compares a name once
            golden = Golden(GoldenPlace(directory, "bench", "bench", "", update, 80))
            began = time.perf_counter()
            golden(term, "one")
            ours.append((time.perf_counter() - began) * 1000)
    finally:
        programs.close()
    figure, middle = "golden, equal, 80x24", statistics.median(ours[1:])
    theirs = statistics.median(peers.compared_by_tui_test(20))
    return [Row(figure, middle, "ms", theirs, "tui-test, expect_snapshot", target="<= 5")]


def _locator() -> list[Row]:
    ours = []
    with telex.spawn(FULL, rows=60, cols=200) as term:
        locator = term.find("needle")
        locator.wait()
        for _ in range(COMPARED):
            began = time.perf_counter()
            locator.get()
            ours.append((time.perf_counter() - began) * 1000)
    theirs = statistics.median(peers.located_by_tui_test(FULL, "needle", 200, 60))
    return [
        Row(
            "locator, 200x60",
            statistics.median(ours),
            "ms",
            theirs,
            "tui-test, get_by_text().wait()",
        )
    ]


def _import() -> list[Row]:
    code = (
        "import time, pytest; began = time.perf_counter(); import telex.testing.pytest_plugin;"
        "print((time.perf_counter() - began) * 1000)"
    )
    took = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(7)
    ]
    return [Row("plugin loaded by pytest", statistics.median(took), "ms", target="<= 5")]
