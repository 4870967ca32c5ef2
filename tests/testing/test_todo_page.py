"""The examples of docs/how-to/test-a-tui.md: they run, and the screens on the page are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import telex.automation.locators  # an inner run forgets what it imports first
import telex.testing.failure_report  # noqa: F401

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/how-to/test-a-tui.md").read_text()
_EXAMPLE = re.compile(r'```python title="test_todo.py"\n(.*?)```', re.DOTALL)


def test_the_examples_pass_and_the_page_shows_what_they_show(pytester: pytest.Pytester) -> None:
    source = "\n".join(_EXAMPLE.findall(PAGE))
    (pytester.path / "test_todo.py").write_text(source)
    (pytester.path / "todo.py").write_text((ROOT / "examples/todo.py").read_text())
    updated = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--telex-update")
    updated.assert_outcomes(passed=7)
    goldens = pytester.path / "__golden__/test_todo"
    deleted = (goldens / "test_the_question_before_deleting.deleted.txt").read_text()
    assert f"deleted.txt\n{deleted}```" in PAGE
    screen = re.findall(
        r"^ *\d+\|(.*)$", (goldens / "test_a_coroutine.txt").read_text(), re.MULTILINE
    )
    assert "```text\n" + "\n".join(screen) + "\n```" in PAGE
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=7)
    broken = (pytester.path / "todo.py").read_text().replace("A_REVERSE", "A_BOLD")
    (pytester.path / "todo.py").write_text(broken)
    quick = source.replace('golden(term, "deleted")', 'golden(term, "deleted", timeout=0.2)')
    quick = quick.replace(
        'golden(term)\n    term.type("d")\n    golden(term, "question")',
        'term.wait("done")\n    term.type("d")\n    term.wait("Delete?")',
    )
    quick = quick.replace('term.type("y")', 'term.type("y")\n    term.wait("0 of 1 done")')
    (pytester.path / "test_todo.py").write_text(quick)
    failed = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-k", "deleting")
    failed.assert_outcomes(failed=1, deselected=6)
    shown = "\n".join([line.removeprefix("E   ").strip() for line in failed.outlines])
    on_page = re.findall(r"```text\nGoldenMismatch: (.*?)```", PAGE, re.DOTALL)[0]
    for line in filter(None, on_page.split("\n")):
        assert line.strip() in shown, line
