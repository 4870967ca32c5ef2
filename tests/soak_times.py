"""How long `make soak` takes: the line that it prints before it begins.

Its tests take from a second to many minutes, and differ from machine to machine, so each soak keeps
the duration of each of its tests in pytest's cache, and the next one adds them up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from benchmarks.figures import minutes

ROOT = Path(__file__).parent.parent
KEPT = "telex/soak_seconds"
"""The name in pytest's cache: by the test's id."""
UNKNOWN = "this may take more than an hour: no soak was measured here yet, the next one will know"


def expected(arguments: Sequence[str], kept: Mapping[str, float]) -> str:
    """Return the line for these arguments of pytest: directories, files or tests."""
    places = [Path(argument.partition("::")[0]).resolve() for argument in arguments]
    files = [file for file in counted_files() if any(map(file.is_relative_to, places))]
    seconds: dict[Path, float] = defaultdict(float)
    for test, duration in kept.items():
        seconds[ROOT / test.partition("::")[0]] += duration
    known = [file for file in files if file in seconds]
    if not known:
        return UNKNOWN
    whole = minutes(sum(seconds[file] for file in known))
    if len(known) < len(files):
        return (
            f"this takes more than {whole}: soaks here measured {len(known)} of {len(files)} files"
        )
    return f"this takes about {whole}, as these tests did in the last soak here"


def counted_files() -> list[Path]:
    """The files with tests of a soak."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [file for file in files if "@pytest.mark.counted" in file.read_text()]


def measured(reports: Iterable[object]) -> dict[str, float]:
    """Return the seconds of each test, with its fixtures."""
    seconds: dict[str, float] = defaultdict(float)
    for report in reports:
        if isinstance(report, pytest.TestReport) and not report.skipped:
            seconds[report.nodeid] += report.duration
    return dict(seconds)
