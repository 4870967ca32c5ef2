"""`git diff` asks if it would compare files that are not tracked, which may be secrets."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from permission_world import DeclaredFiles, shell
from telex.agent.permissions import DiskLookup, Judge, Judgement, Mode, Permission
from telex.agent.permissions.reader_environment import unattended_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CANARY = "K=CANARY"


@pytest.fixture
def root(tmp_path: Path, program: Callable[[str], str]) -> Path:
    """A repository with two directories and an untracked secret in one of them."""
    git = program("git")
    root = tmp_path / "proj"
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        (root / name / "x.txt").write_text("one\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "x"]):
        subprocess.run([git, *words], cwd=root, check=True)
    (root / "a" / ".env").write_text(f"{CANARY}\n")
    (root / "a" / "x.txt").write_text("two\n")
    (tmp_path / "link").symlink_to(root)
    (root / "up").symlink_to(".")
    return root


def judged(root: Path, command: str, cwd: str = "") -> Judgement:
    judge = Judge(
        [], Mode.MINIMAL, str(root), str(root.parent / "home"), DiskLookup(), trusted=True
    )
    return judge.judge(shell(command, cwd or str(root)))


def printed(root: Path, command: str) -> str:
    environment = unattended_environment({**os.environ, "HOME": str(root.parent)}, str(root))
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=root, env=environment, capture_output=True, timeout=60
    )
    return done.stdout.decode("utf-8", "replace")  # objects of git are bytes


OUTSIDE = """
git diff b ../proj
git diff ../proj b
git diff ../proj/b ../proj/a
git diff -- ../proj/b ../proj/a
git diff --stat ../proj/b ../proj/a
git diff --word-diff b ../proj/a
git --no-pager diff b ../proj/a
git -C . diff b ../proj/a
git diff b a/../../proj/a
git diff b up/../../proj/a
git diff /dev/null a
git diff a /dev/null
cd a && git diff ../../proj/b .
cd a && git diff ../b ../../proj/a
cd up/a && git diff ../b ../../proj/a
git diff {above}/link/b {root}/../link/a
git diff {root}/b {root}/../proj/../link/a
git diff /{root}/b /{root}/a
"""


def test_a_git_diff_of_a_path_outside_the_working_tree_asks(root: Path) -> None:
    leaked = 0
    for line in OUTSIDE.strip().splitlines():
        command = line.format(root=root, above=root.parent)
        assert judged(root, command).decision is Permission.ASK, command
        leaked += CANARY in printed(root, command)
    assert leaked > 8  # git really prints the secret


INSIDE = """
git diff
git diff b a
git diff -- b a
git diff a/../b a
git diff HEAD -- a
git diff main -- a b
git diff main...HEAD
git diff HEAD HEAD -- a/x.txt
git diff {root}/b {root}/a
git diff ///{root}/b {root}/../proj/a
git diff a/x.txt b/x.txt
cd a && git diff ../b .
cd a && git diff ../b ../a
cd a && git diff -- ..
"""


def test_a_git_diff_of_paths_inside_prints_only_tracked_files(root: Path) -> None:
    for line in INSIDE.strip().splitlines():
        command = line.format(root=root)
        said = judged(root, command)
        assert said.decision is Permission.ALLOW, (command, said.why)
        assert CANARY not in printed(root, command), command


BROKEN = {
    "bare": "git config core.bare true",
    "valueless": "printf '[core]\\nbare\\n' >> .git/config",
    "empty": "rm -rf .git && mkdir .git",
    "no head": "rm .git/HEAD",
    "odd head": "echo x > .git/HEAD",
    "no objects": "rm -rf .git/objects",
    "no refs": "rm -rf .git/refs",
    "another version": "git config core.repositoryformatversion 99",
    "another extension": "git config core.repositoryformatversion 1; git config extensions.refstorage x",
    "next year": "git config core.repositoryformatversion 1; git config extensions.next true",
}


@pytest.mark.parametrize("how", BROKEN)
def test_directories_ask_if_git_may_find_no_repository(root: Path, how: str) -> None:
    subprocess.run(["/bin/sh", "-c", BROKEN[how]], cwd=root, check=True)
    for command in ("git diff b a", f"git diff {root}/b {root}/a", "git diff -- b a"):
        assert judged(root, command).decision is Permission.ASK, command
    assert CANARY in printed(root, "git diff b a") + printed(root, f"git diff {root}/b {root}/a")


def test_a_repository_of_another_user_is_not_used_by_git(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judged(root, "git diff b a").decision is Permission.ALLOW
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert judged(root, "git diff b a").decision is Permission.ASK
    assert judged(root, "git diff HEAD").decision is Permission.ALLOW
    assert DeclaredFiles().is_own("/")


def test_git_grep_does_not_read_files_without_a_repository(root: Path) -> None:
    (root.parent / ".gitconfig").write_text("[grep]\nfallbackToNoIndex = true\n")
    (root / ".git" / "HEAD").unlink()
    assert CANARY not in printed(root, "git grep CANARY")
