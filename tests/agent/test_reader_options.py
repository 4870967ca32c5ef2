"""The options in readers.toml have the same meaning in the real programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from permission_world import judge_of, shell
from telex.agent.permissions import DiskLookup, Judge, Mode, Permission
from telex.agent.permissions.read_only_programs import READERS, parse_reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAIN = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}
NEEDS = re.compile(r"requires (?:a|an) (?:value|argument)")
ANOTHER_VERSION = re.compile(r"invalid option|unrecogni|wasn't expected|unknown option")


@pytest.fixture
def repository(tmp_path: Path, program: Callable[[str], str]) -> Path:
    git = program("git")
    (tmp_path / "file").write_text("x\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "file"], [*who, "commit", "-qm", "x"]):
        subprocess.run([git, *words], cwd=tmp_path, env=PLAIN, check=True, timeout=60)
    return tmp_path


def complaint(command: list[str], cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=PLAIN, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    return done.stderr.decode(errors="replace")


@pytest.mark.parametrize("name", sorted(set(READERS) - {"echo", "find"}))
def test_options_listed_with_a_value_require_one(name: str, repository: Path) -> None:
    """An option with an optional value would hide the option after it."""
    reader = READERS[name]
    if shutil.which(name.split()[0]) is None:
        pytest.skip(f"there is no {name} here")
    begin = [*name.split(), *(["x"] if name == "rg" else [])]
    flags = [f"-{letter}" for letter in reader.flags + reader.numbered]
    valued = [f"-{letter}" for letter in reader.texts]
    for option in [*flags, *(f"--{word}" for word in reader.long)]:
        said = complaint([*begin, option], repository)
        assert not NEEDS.search(said), (name, option, said)
    for option in [*valued, *(f"--{word}" for word in reader.long_texts)]:
        said = complaint([*begin, option], repository)
        assert NEEDS.search(said) or ANOTHER_VERSION.search(said), (name, option, said)


@pytest.mark.parametrize(
    "hidden",
    [
        "-U --output=out",
        "-S --output=out",
        "-n --output=out",
        "--author -- --output=out",
        "--author --output=out",
        "-S -- --output=out",
        "--unified --output=out",
        "-M --output=out",
        "-- --output=out",
    ],
)
def test_no_option_of_git_hides_another_that_writes(repository: Path, hidden: str) -> None:
    judge = Judge([], Mode.TRUSTED, str(repository), "/home/me", DiskLookup(), trusted=True)
    judged = judge.judge(shell(f"git log -1 -p {hidden}", str(repository)))
    assert judged.decision is Permission.ASK


@pytest.mark.parametrize(
    "command",
    [
        "git log -1 -U5",
        "git log -U -p -- src",
        "git diff --unified=3 --stat=80",
        "git log --author me --since=yesterday",
        "head -n -5 README.md",
        "cut -d - -f1 README.md",
        "grep -c -- --flag README.md",
        "ls --sort=time --color=never",
        "rg --color never TODO",
        "date --rfc-3339=seconds",
        "date --rfc-3339 seconds",
    ],
)
def test_options_in_common_use_still_only_read(command: str) -> None:
    expected = Permission.ASK if command.endswith(" seconds") else Permission.ALLOW
    assert judge_of({}).judge(shell(command)).decision is expected


@pytest.mark.parametrize("name", sorted(READERS))
def test_no_reader_reads_file_names_from_a_file(name: str) -> None:
    """The names in such a file are not judged."""
    for option in (
        "files0-from=x",
        "files-from=x",
        "from-file=x",
        "pathspec-from-file=x",
        "file=x",
    ):
        found = parse_reader([*name.split(), f"--{option}"])
        assert found is not None
        assert found[1].refused or name == "echo", (name, option)


def test_no_reader_reads_a_response_file() -> None:
    assert judge_of({}).judge(shell("strings @README.md")).decision is Permission.ASK
