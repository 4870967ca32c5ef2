"""The documentation keeps up with the code, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent

_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(
    r"\]\(<?([^)\s>]+)|^\[[^\]]+\]:\s*<?([^\s>]+)|\b(?:src|href)=\"([^\"]+)", re.MULTILINE
)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


def documents() -> list[Path]:
    written = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in written if page.exists()]


def links(text: str) -> list[str]:
    """Where a page's relative links point, without fragments."""
    found = ("".join(groups) for groups in _LINK.findall(_CODE.sub("", text)))
    return [unquote(link.partition("#")[0]) for link in found if not _ELSEWHERE.match(link)]


def test_the_generated_pages_are_current() -> None:
    command = [sys.executable, "-m", "scripts.render_docs", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


def test_every_relative_link_leads_to_a_file() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in documents()
        for link in links(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert not broken, "these links lead nowhere:\n" + "\n".join(broken)


def test_the_check_itself_sees_links_and_leaves_code_alone() -> None:
    page = """
[one](a.md) ![two](<b/c.png> "title") [three](d.md#part) [four][4] <img src="e.svg">
[web](https://example.org/x.md) [mail](mailto:a@example.org) [here](#below) `[code](f.md)`
```
[block](g.md)
```
[4]: ../h%20i.md
"""
    assert links(page) == ["a.md", "b/c.png", "d.md", "e.svg", "../h i.md"]
