"""`make site`: the documentation as a website in `build/site`, with its Markdown beside each page.

The pages link to files of the repository outside `docs/` (examples, tests). The build copies such a
file into the site and points the link there, so that the site is complete without the repository.
Coding agents read `llms.txt` (an index) and the `.md` file that stands beside every page.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
FILES: Final = "files"
"""The directory of the site for files from outside `docs/`."""

_LINK: Final = re.compile(r"(\]\(<?)([^)\s>#]+)")
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


def main() -> None:
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build")
    source, site = build / "docs", build / "site"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    pages = copy_docs(source)
    # Beside the copy: zensical looks for docs/, and keeps its cache, beside its configuration.
    shutil.copyfile(ROOT / "mkdocs.yml", build / "mkdocs.yml")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    built = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    print(built.stdout + built.stderr, end="")
    if built.returncode:
        sys.exit(built.returncode)
    for page in pages:
        (site / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / page, site / page)
    (site / "llms.txt").write_text(llms_index(source, pages), encoding="utf-8")
    print(f"{len(pages)} pages in {site}")


def copy_docs(source: Path) -> list[Path]:
    """Copy `docs/`, with every link that leaves it rewritten. Returns the pages."""
    pages = []
    for path in sorted(DOCS.rglob("*")):
        if path.is_dir():
            continue
        page = path.relative_to(DOCS)
        target = source / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            pages.append(page)
            target.write_text(rewritten(path, source), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    return pages


def rewritten(path: Path, source: Path) -> str:
    """Return a page whose links to files outside `docs/` lead to copies of them."""

    def point(match: re.Match[str]) -> str:
        link = match[2]
        if _ELSEWHERE.match(link):
            return match[0]
        linked = (path.parent / link).resolve()
        if linked.is_relative_to(DOCS) or not linked.exists():
            return match[0]
        name = linked.relative_to(ROOT)
        up = "../" * len(path.relative_to(DOCS).parent.parts)
        if linked.is_dir():
            return f"{match[1]}{up}{FILES}/{directory_page(linked, source / FILES, name)}"
        copy = source / FILES / name.with_name(name.name + ".txt")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(linked, copy)
        return f"{match[1]}{up}{copy.relative_to(source)}"

    return _LINK.sub(point, path.read_text(encoding="utf-8"))


def directory_page(directory: Path, files: Path, name: Path) -> str:
    """Write a list of a directory's files, and return its path below `files/`."""
    listing = files / name / "listing.txt"
    listing.parent.mkdir(parents=True, exist_ok=True)
    names = sorted(one.name for one in directory.iterdir() if not one.name.startswith("_"))
    listing.write_text("\n".join(names) + "\n", encoding="utf-8")
    return str(listing.relative_to(files))


def llms_index(source: Path, pages: list[Path]) -> str:
    """Return `llms.txt`: one line for each page, by directory."""
    lines = [
        "# telex",
        "",
        "> Drive, test and share any terminal program from code, agents and web pages.",
        "",
    ]
    for folder in ("tutorial", "how-to", "reference", "explain", "specs", "decisions"):
        lines += [f"## {folder}", ""]
        for page in pages:
            if page.parts[0] == folder:
                title = _TITLE.search((source / page).read_text(encoding="utf-8"))
                lines.append(f"- [{title[1] if title else page.stem}]({page})")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
