"""The Python in the tutorial and how-to pages runs, and prints what the page says it prints."""

from __future__ import annotations

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
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_on_the_page_run_and_print_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    blocks = _BLOCK.findall(text)
    (tmp_path / "example.py").write_text(
        "\n".join(code for kind, code in blocks if kind == "python")
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "It prints:" in text:
        assert done.stdout == next(code for kind, code in blocks if kind == "text")


def test_there_are_examples_to_run() -> None:
    assert len(PAGES) >= 2
