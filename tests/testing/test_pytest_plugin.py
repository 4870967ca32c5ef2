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
import telex.testing.failure_page
import telex.testing.failure_report
from telex.testing.golden_file import from_text
from telex.testing.golden_fixture import GoldenMismatch
from telex.testing.golden_place import safe_name, stem_of, unused_goldens

pytest_plugins = ("pytester",)

BASH = """
import asyncio, pathlib, pytest
BASH = ["bash", "--norc", "--noprofile"]
HOW = {"env": {"PS1": "$ "}, "rows": 6, "cols": 40}
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Write a test file, and run pytest on it in this process."""

    def run(source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=BASH + dedent(source))
        return pytester.runpytest_inprocess(*options)

    return run


def text(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


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
    # Masks are kept in the file, so the second of these needs none of its own.
    run(printing("\x1b[1mSave\x1b[m  Exit  at 23:45", MASKED)).assert_outcomes(passed=1)
    run(printing("\x1b[1mSave\x1b[m  Exit  at 23:45")).assert_outcomes(passed=1)
    told = run(printing("Safe  Quit  at 12:34"))
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
    for content, said in (
        ("telex golden 7\n", "version 7 of the golden format, and this telex reads up to 1"),
        ("hello\n", "line 1 is not `telex golden`"),
    ):
        (directory / "test_menu.txt").write_text(content)
        result = run(printing("one"))
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"E*__golden__/test_it/test_menu.txt: *{said}*"])
    run(printing("one"), "--telex-update").assert_outcomes(passed=1)
    run(printing("one")).assert_outcomes(passed=1)


def test_a_comparison_that_was_not_awaited_is_an_error(run) -> None:
    result = run(
        """
        @pytest.mark.filterwarnings("ignore")
        def test_forgotten(telex, golden):
            async def main(awaited):
                async with telex.spawn(["cat"], **HOW) as term:
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
            "  the last screen, 40x6, cursor row *",
            "  | *",
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
    shown += (artifacts / "test_it-test_fails.cast").read_text()
    assert "sk-abcdef" not in shown
    assert "hunter2" not in shown
    assert "sk-abcdef" not in text(result).partition("- telex -")[2]


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
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "2")
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines(
        [
            "2 unused goldens; to remove:",
            "  rm __golden__/test_it/test_gone.txt",
            "  rm '__golden__/test_it/test_one[[]1].old.txt'",
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
