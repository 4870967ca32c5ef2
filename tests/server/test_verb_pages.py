"""The pages about verbs show what the verbs print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from shell_verbs import Opening

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = ["tutorial/from-a-shell.md", "how-to/give-an-agent-a-terminal.md"]


def conversations(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Each command of the page, its standard input, and what it prints."""
    for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
        for said in re.split(r"^\$ (?=telex )", block, flags=re.MULTILINE)[1:]:
            command, _, shown = said.partition("\n")
            if command.endswith(" <<'END'"):
                stdin, shown = shown.split("END\n", 1)
                yield command.removesuffix(" <<'END'"), stdin, shown
            else:
                yield command, None, shown


def pattern(shown: str) -> str:
    """The page as a pattern: a line of … stands for some lines, … for a part of a line."""
    shown = re.sub(r"(?<=until )\d\d:\d\d", "…", shown)
    lines = [
        r"(?:.*\n)*?" if line == "…\n" else re.escape(line).replace("…", ".*?")
        for line in shown.splitlines(keepends=True)
    ]
    return re.sub(r"(?<=seq\\ )\d+", r"\\d+", "".join(lines))


def sequence(text: str) -> str:
    """The number of the last screen that was seen."""
    return "".join(re.findall(r"  seq (\d+)", text)[-1:])


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_shows_what_the_verbs_print(verbs: Opening, name: str) -> None:
    async with verbs() as telex:
        seen: dict[str, str] = {}
        for command, stdin, shown in conversations((DOCS / name).read_text()):
            _, *argv = shlex.split(re.sub(r"(?<=--since )\d+", lambda n: seen[n[0]], command))
            result = await telex.run(*argv, stdin=stdin)
            told = re.sub(r" \(try: [^)]*\)", "", result.stdout + result.stderr)
            assert re.fullmatch(pattern(shown), told), f"{command}\n{told}"
            seen[sequence(shown)] = sequence(told)
            if argv[0] == "open":  # a slow machine shows the prompt later than a reader would type
                name = told.split(maxsplit=1)[0].rstrip(":")
                await telex.run("wait", "-s", name, "--regex", r"\S", "--max", "20s")


def test_the_pages_have_commands() -> None:
    assert all(len(list(conversations((DOCS / name).read_text()))) > 8 for name in PAGES)
