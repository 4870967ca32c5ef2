"""What is hidden of text that holds no secrets: source code, diffs, what people do in a shell.

Everything hidden counts, also the passwords that tests and manuals make up.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from telex.redaction import Redactor

ROOT = Path(__file__).parents[2]
REDACTOR = Redactor()
LIMIT = 0.5
"""Hidden places in a thousand lines."""


def hidden_in(texts: Iterable[str]) -> tuple[int, list[str]]:
    """How many lines, and the lines with something hidden in them."""
    lines, found = 0, []
    for text in texts:
        lines += text.count("\n")
        for start, end in REDACTOR.spans(text):
            line = text[text.rfind("\n", 0, start) + 1 : start]
            found.append(f"{line[-60:]}>>>{text[start:end][:40]}<<<")
    return lines, found


def check(name: str, texts: Iterable[str], least: int, limit: float = LIMIT) -> None:
    lines, found = hidden_in(texts)
    rate = 1000 * len(found) / lines
    print(f"\n{name}: {len(found)} hidden in {lines} lines, {rate:.2f} in a thousand")
    assert lines >= least
    assert rate <= limit, found


def sources(directory: Path) -> Iterable[str]:
    for path in sorted(directory.rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text(encoding="utf-8", errors="replace")


def test_python_source_of_this_project_is_left_alone() -> None:
    check("src", sources(ROOT / "src"), least=40_000)


@pytest.mark.counted
def test_pythons_own_source_is_left_alone(counted: Callable[[int, int], int]) -> None:
    """Its library speaks of passwords and tokens more than most; its tests even more."""
    library = Path(sysconfig.get_path("stdlib"))
    names = [
        "asyncio",
        "email",
        "http",
        "urllib",
        "json",
        "importlib",
        "logging",
        "xml",
        "multiprocessing",
        "unittest",
    ]
    few = (text for name in names for text in sources(library / name))
    check("stdlib", few if counted(0, 1) == 0 else sources(library), least=40_000)


def test_the_history_of_this_project_is_left_alone() -> None:
    """Its tests are full of passwords. Those of the redactor itself are printed, and do not count:
    they would make this depend on how many examples it has."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is no clone")
    everything = ["git", "-C", str(ROOT), "log", "-p", "HEAD", "--", "."]
    for paths, limit in ((), 1.0), ((":(exclude)tests/redaction",), LIMIT):
        ran = subprocess.run([*everything, *paths], capture_output=True, check=True, timeout=120)
        name = f"git log -p {' '.join(paths)}"
        check(name, [ran.stdout.decode("utf-8", "replace")], least=2_000, limit=limit)


def test_nothing_is_hidden_of_what_people_do_in_a_shell() -> None:
    """With `mkdir -p`, `docker -p`, `ssh -p` and `env` among it."""
    shell = (ROOT / "tests" / "corpus" / "redaction" / "shell.txt").read_text()
    lines, found = hidden_in([shell, shell.replace("\n", "\r\n")])
    print(f"\nshell transcripts: {len(found)} hidden in {lines} lines")
    assert lines > 150
    assert not found
