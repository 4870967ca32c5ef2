"""Golden tests do not flake: many of them, many times, beside a busy loop."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TODO = Path(__file__).parent.parent.parent / "examples/todo.py"

SUITE = """
import sys
import pytest

HOW = {{"rows": 12, "cols": 50}}
SLOW = "for n in 1 2 3 4 5; do printf '\\\\033[3%dmline %d\\\\033[m\\\\n' $n $n; sleep 0.01; done; cat"

@pytest.mark.parametrize("n", range({count}))
def test_golden(telex, golden, n, pytestconfig):
    def written(term, text):
        # A golden is written as it is; the comparisons later have no such help.
        if pytestconfig.getoption("--telex-update"):
            term.wait(text, 60)

    match n % 5:
        case 0:
            term = telex.spawn([sys.executable, {todo!r}, "buy milk", f"item {{n}}"], **HOW)
            written(term, "q quit")
            golden(term, timeout=60)
            term.press("down", "space")
            written(term, "1 of 2 done")
            golden(term, timeout=60)
            term.type("d")
            written(term, "y deletes")
        case 1:
            term = telex.spawn(["bash", "--norc", "--noprofile"], env={{"PS1": "$ "}}, **HOW)
            written(term, "$ ")
            golden(term, timeout=60)
            term.type(f"for n in 1 2 3; do echo {{n}} $n; done\\n")
            written(term, f"{{n}} 3\\n$ ")
        case _:
            term = telex.spawn(["sh", "-c", f"echo {{n}}; {{SLOW}}"], **HOW)
            written(term, "line 5")
    golden(term, timeout=60)
"""


@pytest.mark.counted
def test_golden_tests_pass_every_time_beside_a_busy_loop(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    count, runs = counted(5, 100), counted(1, 50)
    workers = ["-n", "2"] if runs > 1 else []  # two more processes take seconds to start
    (tmp_path / "test_it.py").write_text(SUITE.format(count=count, todo=str(TODO)))

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={tmp_path}/base", *options]
        for name in ("cacheprovider", "hypothesispytest", "llmock", "anyio"):  # slow to load
            command += ["-p", f"no:{name}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout

    updated = run("--telex-update")
    assert f"{count} passed" in updated, updated
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    began, flakes = time.monotonic(), list[str]()
    try:
        for number in range(1, runs + 1):
            said = run(*workers)
            flakes += [] if re.search(rf"^{count} passed", said, re.MULTILINE) else [said]
            if number % 10 == 0:
                print(f"{number} of {runs} runs: {len(flakes)} flakes", flush=True)
    finally:
        busy.kill()
        busy.wait()
    seconds = time.monotonic() - began
    print(
        f"\n{count} golden tests x {runs} runs beside a busy loop: {len(flakes)} flakes, {seconds:.0f} s"
    )
    assert not flakes, flakes[0]
