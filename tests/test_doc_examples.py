"""The Python in the tutorial and how-to pages runs, and prints what the page says it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [
    page
    for folder in ("tutorial", "how-to")
    for page in sorted((DOCS / folder).glob("*.md"))
    if "```python" in page.read_text()
]
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_PRINTED = re.compile(r"It prints:\n\n```text\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_on_the_page_run_and_print_the_documented_output(
    page: Path, tmp_path: Path
) -> None:
    text = page.read_text()
    (tmp_path / "example.py").write_text("\n".join(_PYTHON.findall(text)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "example.py"],
        cwd=tmp_path,
        env={**os.environ, "TELEX_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if printed := "".join(_PRINTED.findall(text)):
        assert done.stdout == printed


def test_there_are_examples_to_run() -> None:
    assert len(PAGES) >= 2
