"""`make bench` and `make soak` say how long they will take, before they begin."""

from __future__ import annotations

from pathlib import Path

from benchmarks import __main__ as bench

import soak_times

ROOT = Path(__file__).parent.parent


def test_make_bench_says_how_long_all_parts_or_one_will_take() -> None:
    whole = bench.expected(list(bench.PARTS))
    assert f"about {sum(bench.PARTS.values()) / 60:.0f} minutes" in whole
    assert bench.expected(["passthrough"]).endswith(": passthrough")


def test_every_part_of_the_benchmarks_has_a_duration() -> None:
    files = (ROOT / "benchmarks").glob("*.py")
    parts = {file.stem for file in files if "\ndef run() -> list[Row]:" in file.read_text()}
    assert parts == bench.PARTS.keys()


def test_make_soak_says_how_long_its_tests_took_the_last_time() -> None:
    kept = {f"{file.relative_to(ROOT)}::test_x": 60.0 for file in soak_times.counted_files()}
    whole = soak_times.expected([str(ROOT / "tests")], kept)
    assert whole.startswith(f"this takes about {len(kept)} minutes")
    one = soak_times.expected([f"{ROOT}/tests/redaction/test_recall.py::test_x"], kept)
    assert one.startswith("this takes about 60 seconds")


def test_a_soak_that_was_never_whole_says_what_it_does_not_know() -> None:
    everything = [str(ROOT / "tests")]
    assert soak_times.expected(everything, {}) == soak_times.UNKNOWN
    some = soak_times.expected(everything, {"tests/redaction/test_recall.py::test_x": 400.0})
    assert some.startswith("this takes more than 7 minutes: soaks here measured 1 of ")
