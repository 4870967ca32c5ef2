"""The pytest plugin: whole test files, run by pytest inside pytest."""

from __future__ import annotations

import base64
import json
import pickle
import re
import subprocess
import sys
import zlib
from pathlib import Path
from textwrap import dedent

import pytest

# Imported before an inner run, which forgets the modules that it was the first to import.
import telex.automation.locators
import telex.testing.failure_page
import telex.testing.failure_report
from telex.terminal.shown_screen import from_text
from telex.testing.golden_fixture import GoldenMismatch
from telex.testing.golden_place import (
    golden_name,
    recording_name,
    safe_name,
    stem_of,
    unused_goldens,
)

pytest_plugins = ("pytester",)

BASH = """
import asyncio, pathlib, pytest
BASH = ["bash", "--norc", "--noprofile"]
HOW = {"env": {"PS1": "$ "}, "rows": 6, "cols": 40}
"""


LEAN = ("-p", "no:hypothesispytest", "-p", "no:llmock", "-p", "no:anyio")
"""Options for a process of its own: without plugins that take long to load."""


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Write a test file, and run pytest on it in this process."""

    def run(source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=BASH + dedent(source))
        return pytester.runpytest_inprocess(*options)

    return run


def text(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def before_summary(result: pytest.RunResult) -> str:
    """The output up to the short summary, in which pytest repeats whole messages when CI is set."""
    return text(result).partition("short test summary info")[0]


def test_the_fixture_spawns_directly_and_by_with_and_ends_all_programs(run, tmp_path) -> None:
    result = run(
        f"""
        PIDS = pathlib.Path({str(tmp_path / "pids")!r})

        def pid(term):
            term.wait("$ ")
            mark = term.type("echo pid=$$.\\n")
            return term.wait(telex_match(r"pid=(\\d+)\\."), since=mark).evidence["capture"]

        def telex_match(pattern):
            import telex
            return telex.match.regex(pattern)

        def test_directly(telex):
            term, other = telex.spawn(BASH, **HOW), telex.spawn(BASH, **HOW)
            PIDS.write_text(" ".join([pid(term), pid(other)]))

        def test_by_with(telex):
            for one in PIDS.read_text().split():
                assert not pathlib.Path("/proc", one).exists()
            with telex.spawn(BASH, **HOW) as term:
                pid(term)
            with pytest.raises(telex.SessionClosed):
                term.text()

        @pytest.mark.filterwarnings("ignore:.*was never opened:RuntimeWarning")
        def test_a_coroutine(telex):
            async def main():
                async with telex.spawn(BASH, **HOW) as term:
                    await term.wait("$ ")
                with pytest.raises(RuntimeError, match="async with"):
                    telex.spawn(BASH).wait("$ ")
                with pytest.raises(RuntimeError, match="async with"):
                    await telex.spawn(BASH)
            asyncio.run(main())

        def test_public_names(telex):
            import telex as module
            for name in module.__all__:
                if name != "spawn":
                    assert getattr(telex, name) is getattr(module, name)
            assert set(module.__all__) <= set(dir(telex))
            with pytest.raises(telex.NotStarted):
                telex.spawn("no-such-program").text()
        """
    )
    result.assert_outcomes(passed=4)


def test_a_plain_test_starts_its_program_at_once_and_a_coroutine_is_warned(run) -> None:
    result = run(
        """
        def test_at_once(telex, tmp_path):
            term = telex.spawn(["sh", "-c", f"touch {tmp_path}/ran; cat"])
            assert term.terminal() is term.terminal()
            with telex.spawn(["sh", "-c", f"until test -e {tmp_path}/ran; do :; done"]) as other:
                assert other.wait_exit() == 0
            with pytest.raises(telex.NotStarted):
                telex.spawn("no-such-program")
            with term as same:
                same.type("hello")
            with pytest.raises(telex.OpenedTwice), term:
                pass

        @pytest.mark.filterwarnings("default")
        def test_never_opened(telex):
            async def main():
                telex.spawn("cat")
            asyncio.run(main())

        @pytest.fixture
        def plain(telex):
            return telex.spawn("cat")

        def test_started_before_the_loop(plain):
            async def main():
                async with plain:
                    pass
            with pytest.raises(RuntimeError, match="started outside of the coroutine"):
                asyncio.run(main())
        """
    )
    result.assert_outcomes(passed=3, warnings=1)
    result.stdout.fnmatch_lines(["*cat* was never opened*async with*"])


def test_an_option_of_the_ini_file_sets_the_length_of_waits(run, pytester: pytest.Pytester) -> None:
    late = """
        def test_late(telex):
            with pytest.raises(telex.TimedOut):
                telex.spawn("cat").wait("never")
            with pytest.raises(telex.TimedOut):
                telex.spawn("cat", timeout=0.01).find("never").wait()
        """
    pytester.makeini("[pytest]\ntelex_timeout = 0.05")
    run(late).assert_outcomes(passed=1)
    pytester.makeini("[pytest]\ntelex_timeout = soon")
    assert "telex_timeout is 'soon', not a number" in "\n".join(run(late).errlines)


def test_the_steps_of_a_locator_name_it(run) -> None:
    result = run(
        """
        def test_it(telex):
            term = telex.spawn(["sh", "-c", "read x; echo two; read x; echo Save; cat"])
            term.type("\\n")
            term.find("two").wait()
            term.type("\\n")
            assert term.find("Save", below="two").text() == "Save"
            term.find("Sawe", below="two").wait(0.05)
        """
    )
    result.assert_outcomes(failed=1)
    said = text(result)
    assert "wait for find('two'), at most 30 s" in said
    assert "wait for find('Save', below=find('two')), at most 30 s" in said
    assert "a change of the screen" not in said
    assert "TimedOut: find('Sawe', below=find('two')) did not come within 50 ms" in said
    assert "row 3 has a similar text: 'Save'" in said


def printing(text: str, then: str = "golden(term)") -> str:
    """A test of a program that prints a text and waits. The text ends in a full stop."""
    return f"""
def test_menu(telex, golden):
    term = telex.spawn(["printf", {text!r}], **HOW)
    term.wait_exit()
    {then}
"""


MASKED = r'golden(term, mask=[r"\d\d:\d\d", (0, 6, 1, 4)])'


def test_a_golden_is_missed_written_compared_and_told(run, pytester: pytest.Pytester) -> None:
    menu = printing("\x1b[1mSave\x1b[m  Quit  at 12:34", MASKED)
    missed = run(menu)
    missed.assert_outcomes(failed=1)
    missed.stdout.fnmatch_lines(
        [
            "*MissingGolden: there is no golden __golden__/test_it/test_menu.txt yet",
            "*if this screen is right: pytest --telex-update test_it.py::test_menu",
        ]
    )
    written = run(menu, "--telex-update")
    written.assert_outcomes(passed=1)
    written.stdout.fnmatch_lines(["golden written: __golden__/test_it/test_menu.txt"])
    file = pytester.path / "__golden__/test_it/test_menu.txt"
    assert file.read_text() == (
        "telex golden 1\nsize 40x6\ncursor row 0 column 20\n"
        'mask "\\\\d\\\\d:\\\\d\\\\d"\nmask rows 0-0 columns 6-9\n\n'
        "  0|Save  ▒▒▒▒  at ▒▒▒▒▒\n  0: 0-3 bold\n"
    )
    run(printing("\x1b[1mSave\x1b[m  Exit  at 23:45", MASKED)).assert_outcomes(passed=1)
    told = run(printing("Safe  Quit  at 12:34", MASKED))
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(
        [
            "E*the screen differs from __golden__/test_it/test_menu.txt (golden → screen)",
            "E*row 0, columns 0-3: bold → plain; 'Save' → 'Safe'",
            "E*0 Save  ▒▒▒▒  at ▒▒▒▒▒ │ Safe  ▒▒▒▒  at ▒▒▒▒▒",
            "E*if the screen is right: pytest --telex-update test_it.py::test_menu",
            "test_it.py:*: GoldenMismatch",  # the traceback ends in the caller's line
        ]
    )
    assert "golden_fixture.py" not in text(told)


def test_the_masks_of_the_call_count_and_a_difference_of_masks_is_told(
    run, pytester: pytest.Pytester
) -> None:
    file = pytester.path / "__golden__/test_it/test_menu.txt"
    run(printing("at 12:34", MASKED), "--telex-update").assert_outcomes(passed=1)
    swapped = r'golden(term, mask=[(0, 6, 1, 4), r"\d\d:\d\d", r"\d\d:\d\d"])'
    run(printing("at 23:45", swapped)).assert_outcomes(passed=1)
    fewer = r'golden(term, mask=[r"\d\d:\d\d", "at"])'
    told = run(printing("at 23:45", fewer))
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(
        [
            "E*the masks of this call differ from __golden__/test_it/test_menu.txt*",
            "E*mask rows 0-0 columns 6-9: only in the golden",
            'E*mask "at": only in the call',
            "E*if this call is right: pytest --telex-update test_it.py::test_menu",
        ]
    )
    both = run(printing("on 23:45", fewer))
    both.stdout.fnmatch_lines(
        ["E*the screen differs from *", "E*only in the golden", "E*row 0, columns 0-*"]
    )
    run(printing("at 23:45", fewer), "--telex-update").assert_outcomes(passed=1)
    assert [line for line in file.read_text().splitlines() if line.startswith("mask")] == [
        'mask "\\\\d\\\\d:\\\\d\\\\d"',
        'mask "at"',
    ]
    run(printing("at 11:11", fewer)).assert_outcomes(passed=1)
    run(printing("at 11:11"), "--telex-update").assert_outcomes(passed=1)
    assert "mask" not in file.read_text()


def test_a_mask_that_no_file_can_have_is_refused_at_the_call(run) -> None:
    result = run(
        """
        @pytest.mark.parametrize(("mask", "said"), [
            ((-1, 0, 1, 1), "is no region"), ((0, -1, 1, 1), "is no region"),
            ((0, 0, 0, 1), "is no region"), ((0, 0, 1, -3), "is no region"),
            ((0, 0, 20000, 1), "is no region"), ([(0, 9999, 1, 2)], "is no region"),
            ((6, 0, 1, 1), "rows 6-6 columns 0-0 is outside of a screen of 40 columns and 6 rows"),
            ((0, 40, 1, 1), "is outside of a screen"),
            ("(", "is not a regular expression: missing"),
            ("a{99999999999}", "is not a regular expression"),
            ("\\ud800", "is not a regular expression"),
        ])
        def test_refused(telex, golden, mask, said):
            term = telex.spawn(["printf", "one"], **HOW)
            term.wait_exit()
            with pytest.raises(ValueError, match=said):
                golden(term, mask=mask)

        def test_taken(telex, golden):
            term = telex.spawn(["printf", "one"], **HOW)
            term.wait_exit()
            golden(term, mask=[(5, 39, 1, 99), (0, 0, 1, 1)])
            with pytest.raises(TypeError, match="a mask is"):
                golden(term, mask=re.compile(b"x"))
        import re
        """,
        "--telex-update",
    )
    result.assert_outcomes(passed=12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("mask=(-1, 0, 1, 1)", "is no region"),
        ("mask=(9, 0, 1, 1)", "is outside of a screen"),
        ("mask='('", "is not a regular expression"),
        ("mask=5", "a mask is a regular expression or a region"),
        ("'a'", "was compared in this test before"),
        ("timeout='5'", "timeout must be a number of seconds; given is the str '5'"),
        ("timeout=None", "timeout must be a number of seconds"),
        ("masks='x'", "unexpected keyword argument 'masks'; did you mean 'mask'?"),
        ("colour=1", "unexpected keyword argument 'colour'; there are name, mask, timeout"),
    ],
)
def test_a_refused_call_of_golden_is_shown_in_the_test_alone(run, call: str, said: str) -> None:
    result = run(printing("one", f"golden(term, 'a')\n    golden(term, {call})"), "--telex-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_it.py:*: *"])
    assert said in text(result)
    assert set(re.findall(r"^(\S+\.py):\d+: ", text(result), re.MULTILINE)) == {"test_it.py"}


def test_a_missing_golden_shows_the_screen_once(run) -> None:
    result = run(printing("only once", "golden(term)"))
    result.assert_outcomes(failed=1)
    assert len(re.findall(r"\| only once", before_summary(result))) == 1


def test_two_goldens_of_a_test_never_share_a_file(run, pytester: pytest.Pytester) -> None:
    result = run(
        """
        @pytest.mark.parametrize(("names", "said"), [
            (["menu", "menu"], "the golden 'menu' was compared in this test before: give"),
            (["Menu", "menu"], "the golden 'menu' would have the file of the golden 'Menu' "),
            (["\\ud55c", "\\u1112\\u1161\\u11ab"], "would have the file of"),
            ([None, "2", None], "golden number 2, which has no name, would have the file of the"),
            ([None, None, "2"], "'2' would have the file of golden number 2, which has no name "),
            (["a/b", "a_b-c14cddc0"], "would have the file of"),
            (["a/B", "a/B"], "before"),
        ])
        def test_refused(telex, golden, names, said):
            term = telex.spawn(["printf", "one"], **HOW)
            term.wait_exit()
            for name in names[:-1]:
                golden(term, name)
            with pytest.raises(ValueError, match=said):
                golden(term, names[-1])

        def test_taken(telex, golden):
            term = telex.spawn(["printf", "one"], **HOW)
            term.wait_exit()
            for name in ("a/b", "a.b", "a b", "日" * 300, "日" * 301, "\\ud800", "\\ud801"):
                golden(term, name)
            with pytest.raises(TypeError, match="the name of a golden is a text, not 7"):
                golden(term, 7)
        """,
        "--telex-update",
    )
    result.assert_outcomes(passed=8)
    written = (pytester.path / "__golden__/test_it").glob("test_taken.*")
    assert len(list(written)) == 7


def test_long_names_fit_into_a_file_name() -> None:
    node = f"test_x.py::Test{'Ä' * 200}::test_{'日' * 90}[{'x' * 300}]"
    others = {stem_of(node), stem_of(node.replace("[x", "[y")), stem_of(node + "::more")}
    assert len(others) == 3
    for name in ("", "x" * 255, "日" * 200):
        assert all(len(golden_name(stem, name).encode()) <= 255 for stem in others)
    assert len(f"{recording_name('a/' * 300 + node)}-99.cast".encode()) <= 255


def test_recordings_of_two_tests_never_share_a_file() -> None:
    nodes = [
        "a/b.py::c",
        "a-b.py::c",
        "a.py::b::c",
        "a_b.py::c",
        "a.py::b-c",
        "a.b.py::c",
        "a.py::b[c]",
        "a.py::b[c/d]",
        "a.py::b[c-d]",
    ]
    assert len(set(map(recording_name, nodes))) == len(nodes)
    assert recording_name("tests/test_it.py::TestA::test_b") == "tests-test_it-TestA.test_b"


def test_a_place_without_room_for_goldens_is_named(run, pytester: pytest.Pytester) -> None:
    (pytester.path / "__golden__").write_text("")
    for options in ((), ("--telex-update",)):
        result = run(printing("one"), *options)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["E*__golden__ is a file, and goldens need a directory*"])
    (pytester.path / "__golden__").unlink()
    (pytester.path / "__golden__/test_it/test_menu.txt").mkdir(parents=True)
    result = run(printing("one"))
    result.stdout.fnmatch_lines(["E*test_menu.txt cannot be read or written: Is a directory"])


def test_a_golden_with_a_prompt_of_python_is_no_doctest(run) -> None:
    repl = printing(">>> 1 / 0\n")
    run(repl, "--telex-update").assert_outcomes(passed=1)
    run(repl).assert_outcomes(passed=1)


def test_one_mask_needs_no_list(run, pytester: pytest.Pytester) -> None:
    file = pytester.path / "__golden__/test_it/test_menu.txt"
    for mask, line in (('"Quit"', 'mask "Quit"'), ("(0, 6, 1, 4)", "mask rows 0-0 columns 6-9")):
        file.unlink(missing_ok=True)
        menu = printing("Save  Quit", f"golden(term, mask={mask})")
        run(menu, "--telex-update").assert_outcomes(passed=1)
        assert line in file.read_text().splitlines()
        assert "  0|Save  ▒▒▒▒" in file.read_text()


def test_an_equal_golden_is_not_written_again_and_syrupys_option_updates_too(
    run, pytester: pytest.Pytester
) -> None:
    run(printing("one"), "--telex-update").assert_outcomes(passed=1)
    again = run(printing("one"), "--telex-update")
    again.assert_outcomes(passed=1)
    assert "golden written" not in text(again)
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.addoption('--snapshot-update', action='store_true')"
    )
    changed = run(printing("two"), "--snapshot-update")
    changed.assert_outcomes(passed=1)
    changed.stdout.fnmatch_lines(["golden written: *"])
    run(printing("two")).assert_outcomes(passed=1)


def test_a_golden_waits_until_the_screen_is_equal(run) -> None:
    slow = """
def test_slow(telex, golden, pytestconfig):
    term = telex.spawn(["sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.05; done; cat"], **HOW)
    if pytestconfig.getoption("--telex-update"):
        term.wait("3")
    golden(term, timeout=60)
"""
    run(slow, "--telex-update").assert_outcomes(passed=1)
    result = run(slow)
    result.assert_outcomes(passed=1)


def test_a_terminal_that_the_fixture_did_not_open_is_compared_alike(run) -> None:
    both = """
def test_menu({fixtures}):
    import telex as module
    with {spawn}(["printf", r"\\033[1;31mone\\033[m 日本"], **HOW) as term:
        term.wait_exit()
        golden(term)
        with pytest.raises(TypeError, match="golden needs a terminal, not str"):
            golden("term")
        with pytest.raises(TypeError, match="a mask is"):
            golden(term, mask=[7])
    with pytest.raises(module.SessionClosed):
        golden(term)
"""
    traced = both.format(fixtures="telex, golden", spawn="telex.spawn")
    run(traced, "--telex-update").assert_outcomes(passed=1)
    run(traced).assert_outcomes(passed=1)
    run(both.format(fixtures="golden", spawn="module.spawn")).assert_outcomes(passed=1)


def test_names_are_safe_and_each_golden_has_its_own_file(run, pytester: pytest.Pytester) -> None:
    source = """
    class TestMenu:
        @pytest.mark.parametrize("given", ["a/b", "a b", "ä", "..", "x" * 300])
        def test_opens(self, telex, golden, given):
            term = telex.spawn(["printf", given], **HOW)
            term.wait_exit()
            golden(term)
            golden(term)
            golden(term, "the end/start")
    """
    run(source, "--telex-update").assert_outcomes(passed=5)
    names = [path.name for path in (pytester.path / "__golden__/test_it").iterdir()]
    assert len(names) == 15
    assert all(len(name) < 255 for name in names)
    assert {"TestMenu.test_opens[a b].txt", "TestMenu.test_opens[a b].2.txt"} <= set(names)
    result = run(source)
    result.assert_outcomes(passed=5)
    assert "unused golden" not in text(result)


def test_a_golden_is_written_when_the_program_has_answered(run, pytester: pytest.Pytester) -> None:
    late = """
def test_late(telex, golden):
    term = telex.spawn(["sh", "-c", "stty -echo; sleep 0.4; echo ready; read line; sleep 0.4; echo done; cat"], **HOW)
    golden(term)
    term.wait("ready")
    term.type("x\\n")
    golden(term, "done")
"""
    run(late, "--telex-update").assert_outcomes(passed=1)
    written = pytester.path / "__golden__/test_it"
    assert "ready" in (written / "test_late.txt").read_text()
    assert "done" in (written / "test_late.done.txt").read_text()


def test_a_blank_screen_is_not_written_and_a_restless_one_is_warned_of(
    run, pytester: pytest.Pytester
) -> None:
    script = r"printf '\033[?25l'; while :; do printf '\r%05d' $((n += 1)); sleep 0.02; done"
    result = run(
        f"""
        SCRIPT = {script!r}

        def test_blank(telex, golden):
            golden(telex.spawn(["bash", "-c", "printf '\\\\033[2J'; sleep 60"], **HOW), timeout=0.5)

        def test_late(telex, golden):
            term = telex.spawn(["bash", "-c", "printf '\\\\033[2J'; sleep 1; echo late; sleep 60"])
            golden(term)

        def test_restless(telex, golden):
            golden(telex.spawn(["bash", "-c", SCRIPT], **HOW), timeout=0.5)

        def test_masked(telex, golden):
            golden(telex.spawn(["bash", "-c", SCRIPT], **HOW), mask=(0, 0, 1, 40), timeout=0.5)
        """,
        *("--telex-update", "-W", "default"),
    )
    result.assert_outcomes(passed=3, failed=1, warnings=1)
    assert "the screen is blank, so __golden__/test_it/test_blank.txt was not written" in text(
        result
    )
    assert "the screen never rested, so __golden__/test_it/test_restless.txt" in text(result)
    written = pytester.path / "__golden__/test_it"
    assert not (written / "test_blank.txt").exists()
    assert "late" in (written / "test_late.txt").read_text()


def test_names_of_tests_that_had_to_change_stay_different() -> None:
    assert stem_of("a/test_x.py::TestA::test_b[1-x]") == "TestA.test_b[1-x]"
    assert stem_of("test_x.py::test_b[a::b.py::c]").startswith("test_b[a__b_py__c]-")
    assert safe_name("a/b") != safe_name("a.b")
    assert "/" not in safe_name("../../etc/passwd")


def test_unused_goldens_are_listed_unless_their_tests_did_not_run(
    run, pytester: pytest.Pytester
) -> None:
    both = """
    def test_one(telex, golden):
        term = telex.spawn(["printf", "one"], **HOW)
        term.wait_exit()
        golden(term)
        golden(term, "more")

    def test_two(telex, golden):
        term = telex.spawn(["printf", "two"], **HOW)
        term.wait_exit()
        golden(term)
    """
    run(both, "--telex-update").assert_outcomes(passed=2)
    less = both.replace('golden(term, "more")', "pass")
    result = run(less)
    result.stdout.fnmatch_lines(
        ["1 unused golden; to remove:", "  rm __golden__/test_it/test_one.more.txt"]
    )
    gone = both.partition("    def test_two")[0]
    run(gone).stdout.fnmatch_lines(["  rm __golden__/test_it/test_two.txt"])
    for options in (["-k", "two"], ["test_it.py::test_two"]):
        assert "unused golden" not in text(run(less, *options)), options
    failing = gone.replace("golden(term)", "assert 0", 1)
    run(failing).assert_outcomes(failed=1)
    assert "unused golden" not in text(run(failing, "--lf"))


def test_goldens_of_a_module_that_is_gone_are_listed_in_a_run_of_its_directory(
    run, pytester: pytest.Pytester
) -> None:
    for place in ("__golden__/test_old", "below/__golden__/test_gone", "__golden__/test_kept"):
        (pytester.path / place).mkdir(parents=True)
        (pytester.path / place / "test_a.txt").write_text("telex golden 1\n")
    (pytester.path / "test_kept.py").write_text(
        "import pytest; pytest.skip(allow_module_level=True)\n"
    )
    run(printing("one"), "--telex-update")
    old = "  rm __golden__/test_old/test_a.txt"
    below = "  rm below/__golden__/test_gone/test_a.txt"
    for options, listed in (
        ([], [old, below]),
        (["."], [old, below]),
        (["below", "test_it.py"], [below]),
        (["test_it.py"], []),
        (["-k", "menu"], []),
        (["-k", "menu", "-n", "1"], []),
        (["-m", "not slow and slow"], []),
        (["test_it.py::test_menu"], []),
        (["--lf"], []),
    ):
        if "-n" in options:
            result = pytester.runpytest_subprocess(*LEAN, *options)
        else:
            result = pytester.runpytest_inprocess(*options)
        assert [line for line in result.outlines if line.startswith("  rm ")] == listed, options


def test_a_file_without_a_test_counts_as_unused_only_in_a_whole_run() -> None:
    existing = {"/g/m": ["test_a.txt", "test_a.2.txt", "test_b[1.5].txt"]}
    collected = {"m::a": "/g/m/test_a"}
    found = unused_goldens(
        existing, collected, passed={"m::a"}, used={"/g/m/test_a.txt"}, whole=True
    )
    assert found == ["/g/m/test_a.2.txt", "/g/m/test_b[1.5].txt"]
    found = unused_goldens(existing, collected, passed=set(), used=set(), whole=False)
    assert found == []


def test_a_golden_of_a_newer_telex_and_a_broken_one_are_named(
    run, pytester: pytest.Pytester
) -> None:
    directory = pytester.path / "__golden__/test_it"
    directory.mkdir(parents=True)
    newer = b"telex golden 7\nsize 2x2\nsound on\n"
    for content, said in (
        (b"hello\n", "line 1 is not `telex golden`"),
        (b"telex golden 0\n", "line 1 has version 0, and the first version is 1"),
        (b"telex golden 1\nsize 2x1\ncursor hidden\n\n  0|\xff\n", "line 5 is not UTF-8: "),
        ("telex golden 1\n".encode("utf-16"), "line 1 is not UTF-8"),
        (newer, "line 1 has version 7 of the golden format, and this telex reads up to 1"),
    ):
        (directory / "test_menu.txt").write_bytes(content)
        result = run(printing("one"))
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"E*__golden__/test_it/test_menu.txt: *{said}*"])
    result = run(printing("one"), "--telex-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*NewerGolden: *use a newer telex, or remove the file*"])
    assert (directory / "test_menu.txt").read_bytes() == newer
    (directory / "test_menu.txt").write_bytes(b"hello\n")
    run(printing("one"), "--telex-update").assert_outcomes(passed=1)
    text = (directory / "test_menu.txt").read_text()
    (directory / "test_menu.txt").write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    run(printing("one")).assert_outcomes(passed=1)


def test_a_comparison_that_was_not_awaited_is_an_error(run) -> None:
    result = run(
        """
        @pytest.mark.filterwarnings("ignore")
        def test_forgotten(telex, golden):
            async def main(awaited):
                async with telex.spawn(["sh", "-c", "echo ready; cat"], **HOW) as term:
                    if awaited:
                        await golden(term)
                    else:
                        golden(term)
            asyncio.run(main(True))
            asyncio.run(main(False))
        """,
        "--telex-update",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*write `await golden(term)`*"])


FAILING = """
    def test_fails(telex):
        term = telex.spawn(BASH, **HOW)
        term.wait("$ ")
        term.type("echo API_KEY=sk-abcdef1234567890abcdef1234567890\\n")
        term.wait("API_KEY")
        term.type("read -s word\\n")
        term.wait("-s word")
        {secret}
        term.press("ctrl_c")
        term.wait("never", timeout=0.05)
"""


def test_a_failure_leaves_a_summary_a_page_and_a_recording_without_secrets(
    run, pytester: pytest.Pytester
) -> None:
    secret = """
        term.wait(telex.match.stable(50))
        term.type("hunter2-and-more")"""
    result = run(FAILING.format(secret=secret))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- telex -*",
            "bash --norc --noprofile",
            "*s  wait for '$ ', at most 30 s*",
            "*s  press ctrl_c*",
            "*s  wait for 'never', at most 0.05 s (* ms): *",
            "  the last screen is shown above, 40x6, cursor row *",
            "recording: .telex-artifacts/test_it-test_fails.cast*",
            "what the terminals showed: .telex-artifacts/report.html",
        ]
    )
    artifacts = pytester.path / ".telex-artifacts"
    assert sorted(path.name for path in artifacts.iterdir()) == [
        ".gitignore",
        "report.html",
        "test_it-test_fails.cast",
    ]
    shown = failures_in(artifacts / "report.html")
    assert "wait for 'never'" in shown
    assert "API_KEY" in shown
    (lines,) = [json.loads(one)["lines"] for one in shown.splitlines()]
    (place, source) = lines[-1]
    assert re.fullmatch(r"test_it\.py:\d+", place)
    assert source == 'term.wait("never", timeout=0.05)'
    shown += (artifacts / "test_it-test_fails.cast").read_text()
    assert "sk-abcdef" not in shown
    assert "hunter2" not in shown
    assert "sk-abcdef" not in text(result).partition("- telex -")[2]


def test_the_step_of_a_golden_has_no_secret_of_its_name(run, pytester: pytest.Pytester) -> None:
    token = "ghp_" + "aB3dE6gH9" * 4
    result = run(
        f"""
        def test_named(telex, golden):
            term = telex.spawn(["bash", "-c", "echo ready; sleep 60"])
            term.wait("ready")
            golden(term, {token!r})
        """
    )
    steps = before_summary(result).partition("- telex -")[2]
    assert "golden test_named." in steps
    assert token not in steps
    (page,) = pytester.path.rglob("*.html")
    assert token not in failures_in(page)


def failures_in(page: Path) -> str:
    """The data of a page, as its script unpacks it."""
    found = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    packed = json.loads(found[1])["failures"]
    return "".join([zlib.decompress(base64.b64decode(one)).decode() for one in packed])


def test_traces_can_be_kept_always_or_never_and_elsewhere(run, pytester: pytest.Pytester) -> None:
    two = """
    def test_passes(telex):
        telex.spawn(BASH, **HOW).wait("$ ")
        telex.spawn(BASH, **HOW).wait("$ ")

    def test_fails(telex):
        telex.spawn(BASH, **HOW).wait("$ ")
        assert 0
    """
    expected = {"on": 3, "off": 0, "on-failure": 1}
    for trace, count in expected.items():
        result = run(two, "--telex-trace", trace, "--telex-artifacts", f"kept-{trace}")
        result.assert_outcomes(passed=1, failed=1)
        assert len(list((pytester.path / f"kept-{trace}").glob("*.cast"))) == count
        assert (pytester.path / f"kept-{trace}/report.html").exists()
        result.stdout.fnmatch_lines(["  the last screen, 40x6, cursor row 0 column 2:"])
    assert not (pytester.path / ".telex-artifacts").exists()
    (pytester.path / "file").write_text("")
    result = run(two, "--telex-artifacts", "file")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["  the last screen, 40x6, *", "the page of failures cannot be written: *"]
    )


def test_a_run_removes_what_the_run_before_has_written_and_nothing_else(
    run, pytester: pytest.Pytester
) -> None:
    token = "ghp_" + "aB3dE6gH9" * 4
    two = f"""
    @pytest.mark.parametrize("token", ["{token}", "b"])
    def test_one(telex, token):
        telex.spawn(BASH, **HOW).wait("$ ")
        assert {{one}}

    def test_other(): pass
    """
    artifacts = pytester.path / ".telex-artifacts"
    run(two.format(one=0)).assert_outcomes(failed=2, passed=1)
    assert len(list(artifacts.glob("*.cast"))) == 2
    assert not [path for path in artifacts.iterdir() if "aB3dE6gH9" in path.name]
    (artifacts / "mine.cast").write_text("")
    run(two.format(one=0), "-k", "other").assert_outcomes(passed=1, deselected=2)
    assert len(list(artifacts.glob("*.cast"))) == 3
    run(two.format(one='token != "b"')).assert_outcomes(failed=1, passed=2)
    assert sorted(path.name for path in artifacts.glob("*.cast")) == [
        "mine.cast",
        next(path.name for path in artifacts.glob("test_it*.cast")),
    ]
    run(two.format(one=1)).assert_outcomes(passed=3)
    assert {path.name for path in artifacts.iterdir()} == {".gitignore", "mine.cast"}
    (artifacts / "report.html").write_text("<html>of somebody else</html>")
    run(two.format(one=1)).assert_outcomes(passed=3)
    assert (artifacts / "report.html").exists()


def test_an_interrupted_wait_shows_the_screen(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it=BASH
        + dedent(
            """
            import os, signal, threading

            def test_waits(telex):
                term = telex.spawn(["sh", "-c", "echo here I am; cat"], **HOW)
                term.wait("here I am")
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                term.wait("never")
            """
        )
    )
    result = pytester.runpytest_subprocess(*LEAN)
    result.stdout.fnmatch_lines(
        ["*- telex -*", "*wait for 'never', *: was cancelled", "  | here I am"]
    )


def test_a_run_without_terminals_writes_nothing(run, pytester: pytest.Pytester) -> None:
    result = run("def test_fails(): assert 0")
    result.assert_outcomes(failed=1)
    assert "telex" not in text(result).replace(str(pytester.path), "").replace("telex-", "")
    assert not (pytester.path / ".telex-artifacts").exists()


def test_failures_and_unused_goldens_are_told_under_xdist(run, pytester: pytest.Pytester) -> None:
    source = """
    @pytest.mark.parametrize("n", range(4))
    def test_one(telex, golden, n):
        term = telex.spawn(["printf", str(n)], **HOW)
        term.wait_exit()
        golden(term)

    @pytest.mark.parametrize("n", range(3))
    def test_fails(telex, n):
        telex.spawn(["printf", "seen"], **HOW).wait("seen")
        assert 0
    """
    run(source, "--telex-update").assert_outcomes(passed=4, failed=3)
    (pytester.path / "__golden__/test_it/test_one[1].old.txt").write_text("telex golden 1\n")
    (pytester.path / "__golden__/test_it/test_gone.txt").write_text("telex golden 1\n")
    (pytester.path / "__golden__/test_old").mkdir()  # its module is gone
    (pytester.path / "__golden__/test_old/test_a.txt").write_text("telex golden 1\n")
    result = pytester.runpytest_subprocess(*LEAN, "-p", "no:cacheprovider", "-n", "2")
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines(
        [
            "3 unused goldens; to remove:",
            "  rm __golden__/test_it/test_gone.txt",
            "  rm '__golden__/test_it/test_one[[]1].old.txt'",
            "  rm __golden__/test_old/test_a.txt",
            "what the terminals showed: .telex-artifacts/report.html",
        ]
    )
    data = failures_in(pytester.path / ".telex-artifacts/report.html")
    assert all(f"test_fails[{n}]" in data for n in range(3))


def test_pytest_loads_nothing_heavy_before_a_test_uses_a_fixture() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import telex.testing.pytest_plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "telex",
        "telex.testing",
        "telex.testing.pytest_plugin",
        "telex.version",
    ]


def test_exceptions_of_goldens_travel_between_processes() -> None:
    screen = from_text("one", 2, 10)
    problem = pickle.loads(pickle.dumps(GoldenMismatch("it differs", screen, screen)))
    assert (str(problem), problem.expected) == ("it differs", screen)
    assert telex.testing.GoldenMismatch is GoldenMismatch
    assert all(getattr(telex.testing, name).__name__ == name for name in telex.testing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Goldfish'"):
        telex.testing.Goldfish  # noqa: B018
