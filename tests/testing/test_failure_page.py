"""The page of failures: its size, and what a browser makes of it."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import shlex
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from browser import browser
from telex import TimedOut, match
from telex.terminal.shown_screen import from_text
from telex.testing import limits
from telex.testing.failure_page import failure_page
from telex.testing.failure_report import encode_failure, summary
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
        clear = "printf '\\033[H\\033[2J'"
        term = programs.spawn(["sh", "-c", f"read line; {clear}; {script}"], **size)
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
    try:
        raise TimedOut(GRAVE, {})
    except TimedOut as error:
        failures.append(encode_failure("test_x.py::test_z", "call", error, traces))
    page = tmp_path / "report.html"
    page.write_text(failure_page(failures))
    async with browser(program("chromium"), tmp_path) as chromium:
        tab = await chromium.open(page.as_uri())
        assert await tab.until("document.querySelectorAll('nav a').length") == 3
        assert await tab.until("document.title") == "3 failed tests · telex"
        marked = "[...document.querySelectorAll('.screen .old, .screen .new')].map(e => e.textContent).join()"
        assert await tab.until(marked) == "v,f"
        await tab.until("location.hash = '#1'")
        slid = "[...document.querySelectorAll('.steps button')].map(e => e.textContent).join()"
        assert "type 'what is typed" in await tab.until(slid)
        assert "<img src=x" in await tab.until(
            "document.querySelector('.player .screen').textContent"
        )
        assert await tab.until("document.images.length + 1") == 1
        await tab.until("location.hash = '#2'")
        line = "document.querySelector('.source')?.textContent"
        assert "raise TimedOut(GRAVE" in await tab.until(line)


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


TOKEN = "ghp_" + "aB3dE6gH9" * 4
PIECES = [TOKEN[at : at + 10] for at in range(0, 40, 10)]


def test_no_frame_shows_a_part_of_a_token(tmp_path: Path) -> None:
    pieces = [f"\x1b[2;{1 + 10 * n}H{piece}" for n, piece in enumerate(PIECES)]
    drawn = "\n".join(reversed(pieces))
    lines = [
        *drawn.split("\n"),  # from its end, in pieces, each of which stands for a moment
        f"\x1b[3;1H{TOKEN}",
        "\x1b[3;1Hdone now:",  # over the beginning of it
        f"\x1b[2;1H{TOKEN}\x1b[2;20H\x1b[K",  # of which the end is erased
    ]
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    script = f'while IFS= read -r line; do printf %s "$line"; sleep 0.05; done < {tmp_path}/lines'
    traces = traced(script, tmp_path / "a.cast", rows=5, cols=60)
    data = encode_failure(f"test_x.py::test_y[{TOKEN}]", "call", None, traces)
    terminal = unpacked(data)["terminals"][0]
    assert len(terminal["frames"]) > 5
    texts = ["".join([run[1] for run in row]) for row in terminal["rows"]]
    assert traces[0].keep_recording(tmp_path / "kept.cast")
    kept = (tmp_path / "kept.cast").read_text()
    told = traces[0].conceal(f'type "printf {TOKEN[:20]}; printf {TOKEN[20:]}"')
    for text in [*texts, unpacked(data)["test"], summary(traces, []), kept, told]:
        for at in range(4, len(TOKEN) - 8):
            assert TOKEN[at : at + 8] not in text, text
    assert any("done now:***" in text for text in texts)


def typed_into(script: str, keys: list[str], path: Path, ready: str = "Pin:") -> str:
    """What a report tells about keys that were typed into a script."""
    programs = SpawnedPrograms(lambda: path)
    try:
        term = programs.spawn(["bash", "-c", script], rows=5, cols=60)
        term.wait(ready)
        term.wait(match.stable(50))
        for key in keys:
            term.type(key) if len(key) > 1 or key == "\t" else term.press(key)
        term.press("enter")
        term.wait_exit()
        traces = programs.finished()
        return summary(traces, []) + json.dumps(
            unpacked(encode_failure("t.py::test", "call", None, traces))
        )
    finally:
        programs.close()


def test_steps_do_not_tell_what_the_terminal_did_not_show(tmp_path: Path) -> None:
    asking = {
        "raw": "stty raw -echo; printf Pin:; head -c 8 > /dev/null; stty sane",
        "canonical": "stty -echo; printf Pin:; read word; stty sane",
        "dots": "stty raw -echo; printf Pin:; for n in 1 2 3 4 5 6 7 8; do head -c 1 >/dev/null; printf '*'; done; stty sane",
        "shown": "read -p 'Pin: Password: ' word; sleep 0.1",
    }
    for name, script in asking.items():
        for keys in (["hunter2"], [*"hunter2"]):
            told = typed_into(script, keys, tmp_path / f"{name}{len(keys)}.cast")
            assert "hunter2" not in told, name
            assert "press 'h'" not in told, name
            assert "hidden character" in told or "REDACTED" in told, name
    told = typed_into("read -p Pin: word", [*"plain words"], tmp_path / "plain.cast")
    assert "press 'p'" in told


def test_the_lines_of_the_test_are_there_without_secrets_and_cut(tmp_path: Path) -> None:
    source = tmp_path / "test_x.py"
    filler = "".join([f"        'line {n}',\n" for n in range(30)])
    source.write_text(
        "def deep(*words):\n    raise ValueError\n"
        f"def test_it():\n    deep(\n        'hunter2-xyz', '{TOKEN}',\n{filler}    )\n"
    )
    programs = SpawnedPrograms(lambda: None)
    try:
        term = programs.spawn(["bash", "-c", "stty -echo; printf Pin:; read word"])
        term.wait("Pin:")
        term.type("hunter2-xyz\n")
        term.wait_exit()
        traces = programs.finished()
    finally:
        programs.close()
    names: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)  # its own file
    try:
        names["test_it"]()
    except ValueError as problem:
        error = problem
    data = unpacked(encode_failure("t", "call", error, traces, lambda path: path.split("/")[-1]))
    *_, outer, inner = data["lines"]
    assert inner == ["test_x.py:2", "raise ValueError"]
    assert outer[0] == "test_x.py:4"
    assert outer[1].startswith("deep(\n")
    assert "'line 5'" in outer[1]
    assert "'line 9'" not in outer[1]
    assert "hunter2" not in outer[1]
    assert TOKEN[8:20] not in outer[1]


LOGIN = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"Pin: ")
shown = True
while (key := os.read(0, 1)) not in b"\\r\\n":
    if key in (b"\\t", b"/"):
        shown = False
        os.write(1, b"\\r\\nword: ")
    else:
        os.write(1, key if shown else b"*")
os.write(1, b"\\r\\n")
"""


def test_each_field_of_a_typed_text_is_judged(tmp_path: Path) -> None:
    script = shlex.join([sys.executable, "-c", LOGIN])
    for number, keys in enumerate(
        (
            ["administrator\thunter2xyz"],
            ["administrator", "\t", "hunter2xyz"],
            ["administrator\t", "hunter2xyz"],
            [*"administrator", "\t", *"hunter2xyz"],
            ["administrator/hunter2xyz"],
        )
    ):
        told = typed_into(script, keys, tmp_path / f"{number}.cast")
        assert "hunter2" not in told, keys
        assert "press 'h'" not in told, keys
    told = typed_into(script, ["administrator of all"], tmp_path / "plain.cast")
    assert "'administrator of all'" in told


def test_a_key_that_opens_a_field_does_not_hide_the_text_after_it(tmp_path: Path) -> None:
    script = (
        "stty raw -echo; printf Pin:; head -c 1 >/dev/null; printf '\r\nNew item: ';"
        "dd bs=1 count=12 2>/dev/null; stty sane"
    )
    told = typed_into(script, ["a", "water grass"], tmp_path / "a.cast")
    assert "press 'a'" in told
    assert "type 'water grass'" in told


def test_a_hidden_text_is_hidden_wherever_it_comes_again(tmp_path: Path) -> None:
    script = "read -s -p Pin: word; echo; read -p user: user; echo got $word; sleep 60"
    programs = SpawnedPrograms(lambda: tmp_path / "a.cast")
    errors: list[BaseException] = [RuntimeError("no login with hunter2xyz")]
    try:
        term = programs.spawn(["bash", "-c", script, "hunter2xyz"], rows=5, cols=60)
        term.wait("Pin:")
        term.type("hunter2xyz\n")
        term.wait("user:")
        term.type("hunter2xyz\n")
        term.wait("got hunter2xyz")
        for look in (
            lambda: term.wait("hunter2xyz!", timeout=0.01),
            lambda: term.find("hunter2xyz!").click(timeout=0.01),
            lambda: term.wait("." * 180 + "hunter2xyz", timeout=0.01),
        ):
            with pytest.raises(TimedOut) as caught:
                look()
            errors.append(caught.value)
        traces = programs.finished()
        assert traces[0].keep_recording(tmp_path / "kept.cast")
    finally:
        programs.close()
    screens = [from_text(f"{word} hunter2xyz", 2, 30) for word in ("a", "b")]
    for error in [*errors, GoldenMismatch("screen with hunter2xyz", *screens)]:
        data = encode_failure("t.py::test[hunter2xyz]", "call", error, traces)
        assert re.findall(".{30}hunte.*", json.dumps(unpacked(data))) == []
    assert "hunte" not in summary(traces, [])
    kept = tmp_path / "kept.cast"
    assert "hunter2xyz" not in kept.read_text()
    assert "got **********" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_command_that_the_program_names_is_not_hidden_on_its_screen(tmp_path: Path) -> None:
    script = "stty raw -echo; printf 'Pin: say leave to end'; head -c 6 > /dev/null; stty sane"
    told = typed_into(script, ["leave"], tmp_path / "a.cast")
    assert "say leave to end" in told
    assert "type 5 hidden characters" in told


def test_long_names_commands_and_titles_are_cut_with_a_sign(tmp_path: Path) -> None:
    noise = random.Random(2)
    long = "".join([chr(noise.randrange(0x100, 0x2000)) for _ in range(20_000)])
    programs = SpawnedPrograms(lambda: tmp_path / "a.cast")
    try:
        term = programs.spawn(["sh", "-c", "printf '\\033]0;%s\\007' \"$0\"; cat", long])
        term.wait(match.stable(50))
        term.type(long + "\n")
        try:
            term.wait(long, timeout=0.01)
        except TimeoutError as late:
            error = late
        traces = programs.finished()
    finally:
        programs.close()
    data = encode_failure(f"t.py::test[{long}]", "call", error, traces)
    assert len(failure_page([data] * 20)) <= 300_000
    found = unpacked(data)
    assert found["test"].endswith("…")
    assert found["terminals"][0]["command"].endswith("…")
    assert len(found["test"]) <= limits.COMMAND_CHARS
    assert max(map(len, summary(traces, []).splitlines())) < 1000


def test_the_summary_names_inverse_text_and_tells_a_screen_once(tmp_path: Path) -> None:
    traces = traced("printf 'Open \\033[7mSave\\033[m'", tmp_path / "a.cast", rows=2, cols=20)
    assert re.search(r"  inverse: row \d, columns 5-8: 'Save'", summary(traces, []))
    late = TimedOut("'x' did not come within 9 ms", {"screen_tail": "Open Save"})
    assert "| Open Save" in summary(traces, [], ValueError("x"))
    assert "| Open Save" not in summary(traces, [], late)
