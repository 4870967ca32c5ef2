"""The page of failures: its size, and what a browser makes of it."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import zlib
from typing import TYPE_CHECKING, Any

from browser import browser
from telex import match
from telex.testing import limits
from telex.testing.failure_page import failure_page
from telex.testing.failure_report import encode_failure, summary
from telex.testing.golden_file import from_text
from telex.testing.golden_fixture import GoldenMismatch
from telex.testing.spawned_programs import SpawnedPrograms
from telex.testing.terminal_trace import matcher_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from telex.testing.terminal_trace import TerminalTrace

GRAVE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


def traced(script: str, path: Path, **size: int) -> list[TerminalTrace]:
    """The trace of a shell script that ended by itself."""
    programs = SpawnedPrograms(lambda: path)
    try:
        term = programs.spawn(["sh", "-c", f"stty -echo -icanon; read line; {script}"], **size)
        term.type("what is typed\n")
        term.wait_exit()
        return programs.finished()
    finally:
        programs.close()


def test_twenty_failures_of_the_worst_kind_fit_into_300_kilobytes(tmp_path: Path) -> None:
    noise = random.Random(1)
    codes = [
        f"\x1b[38;5;{noise.randrange(256)}m{chr(noise.randrange(33, 126))}" for _ in range(5000)
    ]
    (tmp_path / "noise").write_text("".join(codes))
    traces = traced(f"cat {tmp_path}/noise", tmp_path / "a.cast", rows=40, cols=120)
    screens = [from_text("".join(codes)[n:], 40, 120) for n in (0, 7)]
    for error in (None, GoldenMismatch("it differs", *screens)):
        data = encode_failure("test_x.py::test_y", "call", error, traces)
        assert len(data) <= limits.FAILURE_BYTES
        assert unpacked(data)["terminals"][0]["command"].startswith("sh ")
        assert len(failure_page([data] * 20)) <= 300_000
    assert '"left_out":\n3' in failure_page([data] * (limits.PAGE_FAILURES + 3)).replace(
        ":3", ":\n3"
    )


def unpacked(data: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(data)))


def test_frames_are_the_screens_that_stood_for_a_moment(tmp_path: Path) -> None:
    script = "for n in 1 2 3; do printf '\\033[1;1H\\033[J\\033[3%dmstep %d' $n $n; sleep 0.1; done"
    traces = traced(script, tmp_path / "a.cast", rows=3, cols=20)
    terminal = unpacked(encode_failure("t.py::test", "call", None, traces))["terminals"][0]
    rows = [terminal["rows"][frame["rows"][0]] for frame in terminal["frames"]]
    assert [["red", "step 1"]] in rows
    assert rows[-1] == [["yellow", "step 3"]]
    assert terminal["exit"] == "exited with code 0"
    said = summary(traces, ["a.cast"])
    assert "  | step 3" in said
    assert "type 'what is typed\\n'" in said


async def test_a_browser_shows_the_page_and_runs_nothing_of_the_programs_output(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    (tmp_path / "printed").write_text(f"\x1b]0;{GRAVE}\x07\x1b[1m{GRAVE}\x1b[m")
    script = f"cat {tmp_path}/printed"
    traces = await asyncio.to_thread(traced, script, tmp_path / "a.cast", rows=8, cols=50)
    problem = GoldenMismatch(GRAVE, from_text("Save", 2, 9), from_text("Safe", 2, 9))
    failures = [
        encode_failure(f"test_x.py::test_y[{GRAVE}]", "call", error, traces)
        for error in (problem, None)
    ]
    page = tmp_path / "report.html"
    page.write_text(failure_page(failures))
    async with browser(program("chromium"), tmp_path) as chromium:
        tab = await chromium.open(page.as_uri())
        assert await tab.until("document.querySelectorAll('nav a').length") == 2
        assert await tab.until("document.title") == "2 failed tests · telex"
        marked = "[...document.querySelectorAll('.screen .old, .screen .new')].map(e => e.textContent).join()"
        assert await tab.until(marked) == "v,f"
        await tab.until("location.hash = '#1'")
        slid = "[...document.querySelectorAll('.steps button')].map(e => e.textContent).join()"
        assert "type 'what is typed" in await tab.until(slid)
        assert "<img src=x" in await tab.until(
            "document.querySelector('.player .screen').textContent"
        )
        assert await tab.until("document.images.length + 1") == 1


def test_each_matcher_has_its_words() -> None:
    said = {
        "any of 'done', the exit": match.any_of("done", match.exited()),
        "all of the pattern 'x', not any of 'y'": match.all_of(
            match.regex("x"), match.none_of("y")
        ),
        "'y' to be gone": match.absent("y"),
        "the cursor at row 1 column 2": match.cursor(1, 2),
        "no change for 250 ms": match.stable(),
        "the exit with code 3": match.exited(3),
        "the predicate p.q": match.lua("p", "q"),
        "the printed text 'z'": match.printed("z"),
        "the title 't'": match.title("t"),
    }
    assert {matcher_words(matcher) for matcher in said.values()} == set(said)


def test_the_summary_names_each_of_several_terminals(tmp_path: Path) -> None:
    traces = traced("true", tmp_path / "a.cast", rows=2, cols=10)
    assert summary(traces, []).startswith("sh -c ")
    assert "terminal 2 of 2: sh -c " in summary(traces * 2, [])
    assert summary([], []) == ""
