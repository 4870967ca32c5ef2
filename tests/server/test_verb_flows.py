"""Whole flows as an agent would write them: three calls, few tokens, no sleep.

What counts is all that an agent reads and writes: its command lines and what they print.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from shell_verbs import Opening, ShellVerbs
from token_count import count_tokens

TOKENS = 2500
SEEN_TOKENS = 300
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql"))


class Ledger:
    """Runs calls, and counts their tokens."""

    def __init__(self, telex: ShellVerbs) -> None:
        self._telex = telex
        self.calls = 0
        self.tokens = 0

    async def __call__(self, *argv: str) -> str:
        shown = await self._telex(*argv)
        self.calls += 1
        self.tokens += count_tokens(f"telex {shlex.join(argv)}\n{shown}")
        return shown


def git(directory: Path, *args: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(("git", *who, *args), cwd=directory, check=True, capture_output=True)


@pytest.mark.skipif(not shutil.which("tig"), reason="tig is not installed")
async def test_ten_steps_in_tig(verbs: Opening, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for number in range(1, 13):
        (tmp_path / "notes.txt").write_text(f"version {number}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", f"Write version {number}")
    async with verbs() as telex:
        agent = Ledger(telex)
        shown = await agent("do", "open --size 80x40 -- tig", "wait 'version 12'", "see")
        assert "Write version 12" in shown
        shown = await agent(
            "do",
            "press down down enter",
            "wait '+version 10'",
            "press q",
            "wait --gone '+version 10'",
            "type '/version 3'",
            "press enter",
            "wait 'commit 10 of 12'",
            "press enter",
            "wait '+version 3'",
            "see",
        )
        assert "-version 2" in shown
        assert await agent("do", "press Q", "wait --exit", "close") == ""
        print(f"\ntig: {agent.calls} calls, {agent.tokens} tokens")
        assert agent.calls <= 3
        assert agent.tokens <= TOKENS


@pytest.fixture
def database() -> Iterator[Path]:
    """A PostgreSQL server of the test's own; the directory of its socket."""
    if not (POSTGRES / "initdb").exists():
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # the path of a socket must be short
        place, data = Path(made), f"{made}/data"
        who: dict[str, Any] = {"cwd": made, "check": True, "capture_output": True}
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            shutil.chown(made, "postgres", "postgres")
            who |= {"user": "postgres", "group": "postgres", "extra_groups": []}
        make = (POSTGRES / "initdb", "-U", "ann", "-A", "trust", "--no-sync", data)
        subprocess.run(make, **who)
        options = f"-c listen_addresses= -c fsync=off -k {made}"
        control = (POSTGRES / "pg_ctl", "-D", data, "-l", f"{made}/log", "-w", "-o", options)
        subprocess.run((*control, "start"), **who)
        try:
            yield place
        finally:
            subprocess.run((*control, "-m", "immediate", "stop"), **who)


async def test_ten_steps_in_psql(verbs: Opening, database: Path) -> None:
    async with verbs() as telex:
        agent = Ledger(telex)
        program = f"psql -X -h {database} -U ann postgres"
        await agent("do", f"open db -- {program}", "wait postgres=#")
        shown = await agent(
            "do",
            "type 'create table fruit (id serial, name text, price int);' --enter",
            "wait 'CREATE TABLE'",
            """type "insert into fruit (name, price) values ('fig', 3), ('plum', 5);" --enter""",
            "wait 'INSERT 0 2'",
            "type 'begin; delete from fruit where price > 4;' --enter",
            "wait 'DELETE 1'",
            "type 'rollback;' --enter",
            "wait ROLLBACK",
            "type 'select name, price from fruit order by price;' --enter",
            "wait '(2 rows)'",
            "see",
        )
        assert " plum |     5" in shown
        assert await agent("do", r"type '\q' --enter", "wait --exit") == "exited 0\n"
        print(f"\npsql: {agent.calls} calls, {agent.tokens} tokens")
        assert agent.calls <= 3
        assert agent.tokens <= TOKENS


PROGRAMS = (
    *("bash --norc", "zsh -f", "fish --no-config", "sh", "python3 -q", "less notes.txt", "man ls"),
    *("vim -u NONE notes.txt", "vim -u NONE -c help", "vim -u NONE -d notes.txt other.txt", "top"),
    *("tig", "git log", "git log -p", "ls -l /usr/bin", "ps aux", "tmux -L telex-test", "sqlite3"),
    *("psql --help", "git status", "watch -n 60 ls -l", "python3 -m pydoc str", "rg version"),
    *("gdb -q", "node", "bc", "ed notes.txt", "env", "df", "more notes.txt"),
)


async def test_a_screen_is_few_tokens(verbs: Opening, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for number in range(1, 9):
        lines = [f"line {line} of version {number}\n" for line in range(40)]
        (tmp_path / "notes.txt").write_text("".join(lines))
        (tmp_path / "other.txt").write_text("".join(lines[::2]))
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", f"Write version {number}")
    there = [one for one in PROGRAMS if shutil.which(one.split()[0])]
    async with verbs() as telex:
        tokens = {}
        for name, program in enumerate(there):
            await telex("open", f"p{name}", "--", *program.split())
            tokens[program] = count_tokens(await telex("see", "-s", f"p{name}"))
        await telex("close", "--all")
    print(f"\nsee: {median(tokens.values()):g} tokens, median of {len(tokens)} programs")
    assert len(tokens) >= 15
    assert median(tokens.values()) <= SEEN_TOKENS, tokens
