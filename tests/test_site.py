"""`make site` builds the documentation as a website without warnings, and without other hosts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS) for page in DOCS.rglob("*.md"))

_LOADED = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?([^\"> ]+)|<link[^>]+href=\"?([^\"> ]+)")
_LINK = re.compile(r"<a[^>]+href=\"?([^\"> #]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("build")
    command = [sys.executable, "-m", "scripts.build_site", str(build)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout
    return build / "site"


def html(site: Path, page: Path) -> Path:
    return (
        site / page.parent / "index.html"
        if page.stem == "README"
        else site / page.with_suffix("") / "index.html"
    )


def test_every_page_is_built_with_its_markdown_beside_it(site: Path) -> None:
    assert not [page for page in PAGES if not html(site, page).exists()]
    assert not [page for page in PAGES if not (site / page).exists()]
    index = (site / "llms.txt").read_text()
    assert not [page for page in PAGES if page.name != "README.md" and f"({page})" not in index]


def test_every_page_is_reachable_from_the_start(site: Path) -> None:
    start = (site / "index.html").resolve()
    seen, todo = {start}, [start]
    while todo:
        page = todo.pop()
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            target = target / "index.html" if target.is_dir() else target
            if target.suffix == ".html" and target.exists() and target not in seen:
                seen.add(target)
                todo.append(target)
    assert not [page for page in PAGES if html(site, page).resolve() not in seen]


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = {
        "".join(match)
        for page in PAGES
        for match in _LOADED.findall(html(site, page).read_text(encoding="utf-8"))
    }
    assert not [
        link for link in loaded if re.match(r"[a-z]+:|//", link) and not link.startswith("data:")
    ]
