"""The documentation keeps up with the code, and its links lead somewhere."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "telex"

_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

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


def test_every_member_of_a_generated_table_has_a_meaning() -> None:
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    assert pages
    assert [page.name for page in pages if "| None |" in page.read_text()] == []


def test_every_relative_link_leads_to_a_file() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in documents()
        for link in links(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert not broken, "these links lead nowhere:\n" + "\n".join(broken)


PUBLIC = {"agent", "escapes", "htty", "match", "plugins.sdk", "recordings", "rpc.testing"}


def test_no_how_to_imports_a_private_module() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
    private = [
        f"{page.relative_to(ROOT)}: telex.{module}"
        for page in pages
        for module in re.findall(
            r"^\s*(?:from|import) telex\.([a-z_.0-9]+)",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        if module not in PUBLIC
    ]
    assert not private, "readers copy these imports of private modules:\n" + "\n".join(private)


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


def definitions(file: Path) -> set[str]:
    """The functions, classes and methods of a file: `main`, `Pty`, `Pty.write`."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, _DEFINITION):
            found.add(node.name)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            found |= {f"{node.name}.{one.name}" for one in inner if isinstance(one, _DEFINITION)}
    return found


def test_every_function_that_the_architecture_names_exists() -> None:
    """Written `file.py:name`, or `Class.method` once the file was named."""
    page = (ROOT / "docs" / "explain" / "architecture.md").read_text()
    defined = {str(f.relative_to(SOURCE)): definitions(f) for f in SOURCE.rglob("*.py")}
    anywhere = set().union(*defined.values())
    in_files = re.findall(r"`([\w/]+\.py):([\w.]+)`", page)
    methods = re.findall(r"`([A-Z]\w+\.\w+)`", page)
    assert len(in_files) > 50
    wrong = [f"{file}:{name}" for file, name in in_files if name not in defined.get(file, ())]
    wrong += [name for name in methods if name not in anywhere]
    wrong += [file for file in re.findall(r"`([\w/]+\.py)`", page) if not _is_file(file)]
    assert not wrong, f"these were renamed or moved: {wrong}"


def test_every_file_that_a_table_of_the_architecture_names_exists() -> None:
    page = (ROOT / "docs" / "explain" / "architecture.md").read_text()
    packages = page.partition("## The packages")[2].partition("\n## ")[0]
    rows = re.findall(
        r"^\|[^|]*\|(.*)\|$", re.sub(r"\((?:[^()]|\(\))*\)", "", packages), re.MULTILINE
    )
    named = [name for row in rows for name in re.findall(r"`([a-z][\w/.]*)`", row)]
    there = {one.stem for one in SOURCE.rglob("*.py")} | {one.name for one in SOURCE.rglob("*")}
    assert len(named) > 200
    wrong = [name for name in named if name.rstrip("/").rpartition("/")[2] not in there]
    assert not wrong, f"these were renamed, merged or moved: {wrong}"


def test_every_file_that_a_package_lists_is_in_it() -> None:
    """Written in the docstring of a package as `name   what it has`."""
    wrong, count = [], 0
    for package in SOURCE.rglob("__init__.py"):
        words = ast.get_docstring(ast.parse(package.read_text())) or ""
        for line in re.findall(r"^ *([a-z][\w/ ]*?)   +[^ →]+ (?!.*→)", words, re.MULTILINE):
            names = [name.rstrip("/") for name in line.split()]
            count += len(names)
            wrong += [
                f"{package.parent.name}: {name}" for name in names if not _is_in(package, name)
            ]
    assert count > 150
    assert not wrong, f"these were renamed, merged or moved: {wrong}"


def _is_in(package: Path, name: str) -> bool:
    return (package.parent / name).exists() or (package.parent / f"{name}.py").exists()


def _is_file(name: str) -> bool:
    """Whether a path on the page exists in the repository, in telex, or in one of its packages."""
    return (ROOT / name).exists() or (SOURCE / name).exists() or any(SOURCE.glob(f"*/{name}"))
