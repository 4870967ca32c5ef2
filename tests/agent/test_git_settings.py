"""A repository whose configuration may make git run a program asks, however it is written."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from permission_world import shell
from telex.agent.permissions import (
    DiskLookup,
    Judge,
    Judgement,
    Mode,
    Permission,
    RuleLayer,
    rules_from_tables,
)
from telex.agent.permissions.git_config import UnreadableGitConfig, parse_git_config
from telex.agent.permissions.git_inspector import GitInspector
from telex.agent.permissions.read_only_programs import READERS
from telex.agent.permissions.reader_environment import unattended_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHO = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]


@pytest.fixture
def git(tmp_path: Path, program: Callable[[str], str]) -> Callable[..., str]:
    """Run git in the test's directory, without the configuration of the machine."""
    found = program("git")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*words: str, cwd: Path | None = None) -> str:
        command = [found, *WHO, *words]
        where = tmp_path / "root" if cwd is None else cwd
        done = subprocess.run(command, cwd=where, env=environ, check=True, capture_output=True)
        return done.stdout.decode()

    return run


@pytest.fixture
def root(tmp_path: Path, git: Callable[..., str]) -> Path:
    """A repository with one committed file that was changed afterwards."""
    root = tmp_path / "root"
    root.mkdir()
    git("init", "-q", "-b", "main")
    (root / "a.txt").write_text("one\n")
    (root / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    git("add", ".")
    git("commit", "-qm", "x")
    (root / "a.txt").write_text("two\n")
    return root


def judged(root: Path, command: str = "git diff", mode: Mode = Mode.TRUSTED) -> Judgement:
    home = str(root.parent / "home")
    return Judge([], mode, str(root), home, DiskLookup(), trusted=True).judge(
        shell(command, str(root))
    )


SCRIPT = "./script"
KEYS = {
    "filter.x.clean": SCRIPT,
    "filter.x.process": SCRIPT,
    "filter.x.smudge": SCRIPT,
    "diff.x.textconv": SCRIPT,
    "diff.x.command": SCRIPT,
    "diff.external": SCRIPT,
    "DIFF.External": SCRIPT,
    "core.fsmonitor": SCRIPT,
    "core.hooksPath": "hooks",
    "core.pager": SCRIPT,
    "core.editor": SCRIPT,
    "core.sshCommand": SCRIPT,
    "core.askPass": SCRIPT,
    "core.gitProxy": SCRIPT,
    "core.alternateRefsCommand": SCRIPT,
    "core.attributesFile": "attributes",
    "core.excludesFile": "/home/me/.ssh/id_rsa",
    "core.worktree": "/etc",
    "pager.diff": SCRIPT,
    "interactive.diffFilter": SCRIPT,
    "credential.helper": SCRIPT,
    "credential.https://x.helper": SCRIPT,
    "gpg.program": SCRIPT,
    "gpg.ssh.program": SCRIPT,
    "gpg.ssh.defaultKeyCommand": SCRIPT,
    "log.showSignature": "true",
    "include.path": "../shared",
    "includeIf.gitdir:/.path": "../shared",
    "alias.st": "!./script",
    "merge.x.driver": SCRIPT,
    "mergetool.x.cmd": SCRIPT,
    "difftool.x.cmd": SCRIPT,
    "sequence.editor": SCRIPT,
    "uploadpack.packObjectsHook": SCRIPT,
    "remote.origin.uploadpack": SCRIPT,
    "remote.origin.vcs": "x",
    "remote.origin.promisor": "true",
    "extensions.partialClone": "origin",
    "submodule.x.update": "!./script",
    "trailer.x.command": SCRIPT,
    "blame.ignoreRevsFile": "/home/me/.ssh/id_rsa",
    "next.year": "x",
}


def test_each_setting_that_may_name_a_program_asks_and_is_named(
    root: Path, git: Callable[..., str]
) -> None:
    plain = (root / ".git" / "config").read_text()
    assert judged(root).decision is Permission.ALLOW
    for key, value in KEYS.items():
        git("config", key, value)
        section, _, rest = key.partition(".")
        named = f"{section.lower()}.{rest.rpartition('.')[0]}".rstrip(".")
        for mode in (Mode.MINIMAL, Mode.TRUSTED):
            said = judged(root, mode=mode)
            assert said.decision is Permission.ASK, key
            assert said.why.startswith(f'"{named}'), (key, said.why)
        (root / ".git" / "config").write_text(plain)


READING = """
git status
git diff
git show HEAD
git log -p
git shortlog
git blame a.txt
git rev-parse HEAD
git rev-list HEAD
git ls-files
git ls-tree HEAD
git grep x
git branch
git describe
git cat-file -p HEAD
git --no-pager diff
git status && ls
ls; git diff
cat a.txt | git diff
"""


def test_every_reading_git_command_asks_for_a_harmful_setting(
    root: Path, git: Callable[..., str]
) -> None:
    git("config", "filter.x.clean", SCRIPT)
    for command in READING.strip().splitlines():
        assert judged(root, command).decision is Permission.ASK, command
    assert judged(root, "ls").decision is Permission.ALLOW


def test_a_setting_that_asks_really_runs_a_program(root: Path, git: Callable[..., str]) -> None:
    """The program runs even in the unattended environment, so the question is necessary."""
    plain = (root / ".git" / "config").read_text()
    (root / "script").write_text("#!/bin/sh\ntouch ran\ncat\n")
    (root / "script").chmod(0o755)
    environ = unattended_environment(os.environ, str(root))
    for key in ("filter.x.clean", "diff.x.textconv", "diff.x.command", "diff.external"):
        git("config", key, SCRIPT)
        os.utime(root / "a.txt")
        subprocess.run(["git", "diff"], cwd=root, env=environ, capture_output=True, timeout=60)
        assert (root / "ran").exists(), key
        (root / "ran").unlink()
        assert judged(root).decision is Permission.ASK
        (root / ".git" / "config").write_text(plain)


def test_common_settings_do_not_ask(root: Path, git: Callable[..., str]) -> None:
    for key, value in {
        "remote.origin.url": "https://example.org/x.git",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "branch.main.remote": "origin",
        "branch.a.b/c.merge": "refs/heads/main",
        "user.name": 'A "quoted" name; with # signs \\ and = more',
        "core.autocrlf": "input",
        "core.fsmonitor": "true",
        "core.hooksPath": ".husky/_",
        "color.diff.meta": "yellow",
        "submodule.sub.url": "https://example.org/sub.git",
        "http.https://example.org/.extraheader": "AUTHORIZATION: basic x",
        "url.git@example.org:.insteadOf": "https://example.org/",
        "lfs.repositoryformatversion": "0",
        "pull.rebase": "true",
    }.items():
        git("config", key, value)
        assert judged(root).decision is Permission.ALLOW, key


@pytest.mark.parametrize(
    "text",
    [
        "[core] fsmonitor = x",
        "[core]fsmonitor=x",
        "[CORE]\n\tFSMonitor = x",
        "[core]\n  fsmoni\\\ntor = x",
        "[core]\n# c \\\nfsmonitor = x",
        "[core]\r\n\tfsmonitor = x\r\n",
        "\ufeff[core]\nfsmonitor = x",
        '[diff "x"]\n\ttextconv = x',
        '[diff "x]"] textconv = x',
        '[diff "a\\"b"] textconv = x',
        "[diff.x]\n textconv = x",
        '[user]\n name = "a\\\n[core]" \n[diff]\nexternal = x',
        '[user]\n name = "a ; b" # c\n[diff]\nexternal = x',
        "[user] name = a\\\n\\\n b\n[diff] external=x",
        "[include] path = x",
        "[core]\nfsmonitor",
        "nonsense\n",
        "[user]\nname = \x0bx\n",
        "[user]\nname = x\0\n",
    ],
)
def test_every_spelling_of_a_setting_is_found(root: Path, text: str) -> None:
    (root / ".git" / "config").write_text(text)
    allowed = judged(root).decision is Permission.ALLOW
    assert allowed is (
        text == "[core]\nfsmonitor"
    )  # without a value it is `true`: git's own monitor


def test_a_configuration_in_another_directory_is_found(
    root: Path, tmp_path: Path, git: Callable[..., str]
) -> None:
    tree = tmp_path / "tree"
    git("worktree", "add", "-q", str(tree))
    assert judged(tree).decision is Permission.ALLOW
    git("config", "extensions.worktreeConfig", "true")
    git("config", "--worktree", "diff.external", SCRIPT, cwd=tree)
    assert "config.worktree" in judged(tree).why
    assert judged(root).decision is Permission.ALLOW
    git("config", "--worktree", "--unset", "diff.external", cwd=tree)
    git("config", "diff.external", SCRIPT)
    for place in (tree, root):
        assert "diff.external" in judged(place).why


def test_a_configuration_that_is_a_link_or_not_a_file_asks(
    root: Path, git: Callable[..., str]
) -> None:
    config = root / ".git" / "config"
    config.rename(root / "shared")
    config.symlink_to("../shared")
    assert 'config" is a link' in judged(root).why
    config.unlink()
    os.mkfifo(config)
    assert "cannot be read" in judged(root).why
    config.unlink()
    config.write_text("# " + "x" * 2_000_000)
    assert "cannot be read" in judged(root).why
    (root / ".git").rename(root / "moved")
    (root / ".git").write_text("gitdir: moved\n")
    config = root / "moved" / "config"
    config.write_text("[diff]\nexternal = ./script\n")
    assert judged(root).decision is Permission.ASK
    (root / ".git").write_text("elsewhere\n")
    assert judged(root).decision is Permission.ASK


@pytest.mark.parametrize("version", ["2", "4"])
def test_the_configuration_of_a_submodule_counts(
    root: Path, git: Callable[..., str], version: str
) -> None:
    for name in ("plain", "deep/er"):
        sub = root / name
        sub.mkdir(parents=True)
        git("init", "-q", cwd=sub)
        git("commit", "-q", "--allow-empty", "-m", "x", cwd=sub)
        git("add", name)
    git("update-index", "--index-version", version)
    assert judged(root, "git status").decision is Permission.ALLOW
    git("config", "filter.x.clean", SCRIPT, cwd=root / "deep" / "er")
    assert "deep/er/.git/config" in judged(root, "git status").why
    git("update-index", "--split-index")
    assert judged(root, "git status").decision is Permission.ASK
    git("update-index", "--no-split-index")
    git("config", "--unset", "filter.x.clean", cwd=root / "deep" / "er")
    assert judged(root, "git status").decision is Permission.ALLOW
    (root / ".git" / "index").write_bytes(b"DIRC\0\0\0\x02\0\0\xff\xff\0\0\xe0\0")
    assert "cannot be parsed" in judged(root, "git status").why


@pytest.mark.parametrize("file", [".gitconfig", ".config/git/config"])
@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("[diff]\nexternal = difft", False),
        ('[filter "lfs"]\nclean = git-lfs clean -- %f', False),
        ("[core]\nexcludesFile = ~/.gitignore\npager = less -R", False),
        ("[safe]\ndirectory = {root}", False),
        ("[include]\npath = ~/other.gitconfig", False),
        ("[include]\npath = {root}/shared", True),
        ("[diff]\nexternal = ./script", True),
        ("[diff]\nexternal = sh {root}/script", True),
        ('[includeIf "gitdir:~/"]\npath = ~/../root/shared', True),
        ("[include]\npath = ~/more", True),
        ('[includeIf "gitdir:~/x/"]\npath = ~/further', True),
        ('[filter "x"]\nclean = sh clean.sh', True),
        ('[filter "x"]\nclean = sh \\"tools/my clean.sh\\"', True),
        ('[filter "x"]\nclean = sh -c \'sh \\"tools/my clean.sh\\" x\'', True),
        ('[filter "x"]\nclean = sh tools/my\\\\ clean.sh', True),
        ('[lfs "customtransfer.x"]\npath = tools/my clean.sh', True),
        ('[lfs "extension.x"]\nclean = clean.sh %f', True),
        ("[next]\nyear = clean.sh", True),
        ("[alias]\nx = clean.sh", False),
        ("[core]\nattributesFile = attributes", True),
        ("[blame]\nignoreRevsFile = .git-blame-ignore-revs", False),
        ("[blame]\nignoreRevsFile = linked", True),
        ("[mailmap]\nfile = {root}/linked", True),
        ("[core]\nexcludesFile = tools/../linked", True),
    ],
)
def test_the_users_configuration_asks_if_it_names_a_file_in_the_root(
    root: Path, file: str, text: str, asks: bool
) -> None:
    path = root.parent / "home" / file
    path.parent.mkdir(parents=True)
    (root / "tools").mkdir()
    for name in ("clean.sh", "tools/my clean.sh", ".git-blame-ignore-revs", ".env"):
        (root / name).write_text("x\n")
    (root / "linked").symlink_to(".env")
    home = root.parent / "home"
    (home / "further").write_text("[include]\npath = more\n")
    (home / "more").write_text('[filter "x"]\nclean = sh clean.sh\n')
    path.write_text(text.format(root=root))
    assert judged(root).decision is (Permission.ASK if asks else Permission.ALLOW)


def placed(root: Path) -> list[str]:
    """Return the directories that the kernel sandbox allows git to read."""
    paths = Judge([], Mode.MINIMAL, str(root), str(root.parent / "home"), DiskLookup()).paths
    return GitInspector(paths).directories()


@pytest.fixture
def private(tmp_path: Path, git: Callable[..., str]) -> Path:
    """Another repository of the user, outside the root."""
    private = tmp_path / "private"
    private.mkdir()
    git("init", "-q", "-b", "main", cwd=private)
    (private / "s.txt").write_text("CANARY\n")
    git("add", ".", cwd=private)
    git("commit", "-qm", "CANARY", cwd=private)
    return private


POINTERS = {
    "a file that names it": "rm -r .git; echo gitdir: {private}/.git > .git",
    "a link to it": "rm -r .git; ln -s {private}/.git .git",
    "a file that names a link to it": "ln -s {private} l; rm -r .git; echo gitdir: l/.git > .git",
    "its files in common": "echo {private}/.git > .git/commondir",
    "another worktree of it": "git -C {private} worktree add -q ../other; rm -r .git;"
    " echo gitdir: {private}/.git/worktrees/other > .git",
    "its objects, borrowed": "echo {private}/.git/objects > .git/objects/info/alternates",
    "and by way of another store": "mkdir -p o/info; echo ../../o > .git/objects/info/alternates;"
    " echo {private}/.git/objects > o/info/alternates",
    "a link to its objects": "mv .git/objects o; ln -s {private}/.git/objects .git/objects",
    "links to its packs": "git -C {private} repack -adq; ln -s {private}/.git/objects/pack/* .git/objects/pack",
    "a link to one object": "for f in {private}/.git/objects/??; do ln -s $f .git/objects || true; done",
    "a link in a store that is its own": "mkdir -p o/pack; ln -s {private}/.git/objects/pack/x o/pack;"
    " echo ../../o > .git/objects/info/alternates",
    "an address to fetch from": "echo http://localhost/ > .git/objects/info/http-alternates",
}


@pytest.mark.parametrize("way", POINTERS.values(), ids=POINTERS)
def test_a_repository_that_leads_to_another_one_asks(
    root: Path, private: Path, git: Callable[..., str], way: str
) -> None:
    assert judged(root, "git show HEAD:s.txt").decision is Permission.ALLOW
    script = way.format(private=private)
    subprocess.run(["bash", "-ec", script], cwd=root, check=True, capture_output=True, timeout=60)
    for mode in (Mode.MINIMAL, Mode.TRUSTED):
        for command in ("git status", "git show HEAD:s.txt", "git log -p", "git cat-file -p x"):
            assert judged(root, command, mode).decision is Permission.ASK, command
    assert placed(root) == []


@pytest.mark.parametrize(
    "name",
    [
        *("HEAD", "index", "packed-refs", "shallow", "info/grafts", "info/exclude", "BISECT_START"),
        *("rebase-merge/done", "rebase-merge/head-name", "objects/info/alternates", "refs/heads/x"),
        *("objects/info/commit-graph", "logs/refs/heads/node_modules/x", "worktrees/x/HEAD"),
        *("sequencer/todo", "objects/ab/cd", "modules/x/objects/info/alternates", "info"),
    ],
)
def test_a_link_anywhere_in_a_repository_asks(root: Path, name: str) -> None:
    (root / ".env").write_text("KEY=CANARY\n")
    link = root / ".git" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.exists():
        link.rename(root / "moved")
    link.symlink_to(root / ".env")
    said = judged(root, "git status")
    assert (said.decision, "is a link" in said.why) == (Permission.ASK, True)


@pytest.mark.parametrize("name", [".gitmodules", ".gitattributes", ".gitignore", ".mailmap"])
def test_git_files_in_the_working_tree_may_link_only_to_harmless_files(
    root: Path, name: str
) -> None:
    (root / ".env").write_text("KEY=CANARY\n")
    for target, expected in (
        ("a.txt", Permission.ALLOW),
        (".env", Permission.ASK),
        ("/etc/hosts", Permission.ASK),
    ):
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
        assert judged(root, "git status").decision is expected, target


def test_links_in_hooks_do_not_ask(
    root: Path,
) -> None:
    (root / ".git" / "hooks" / "pre-commit").symlink_to("../../tools/pre-commit")
    assert judged(root, "git status").decision is Permission.ALLOW


def test_a_worktree_needs_no_question_while_its_repository_lists_it(
    root: Path, tmp_path: Path, git: Callable[..., str]
) -> None:
    tree = tmp_path / "tree"
    git("worktree", "add", "-q", str(tree))
    assert judged(tree, "git status").decision is Permission.ALLOW
    assert placed(tree) == [str(root / ".git")]
    copied = tmp_path / "copied"
    shutil.copytree(tree, copied)
    said = judged(copied, "git status")
    assert (said.decision, "outside the workspace root" in said.why) == (Permission.ASK, True)
    assert placed(copied) == []
    (root / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{root}/elsewhere/.git\n")
    assert judged(tree, "git status").decision is Permission.ASK


def test_a_submodule_in_a_worktree_is_found(
    root: Path, private: Path, tmp_path: Path, git: Callable[..., str]
) -> None:
    git("submodule", "--quiet", "add", str(private), "sub")
    git("commit", "-qm", "sub")
    assert judged(root, "git status").decision is Permission.ALLOW
    tree = tmp_path / "tree"
    git("worktree", "add", "-q", str(tree))
    git("submodule", "--quiet", "update", "--init", cwd=tree)
    assert "worktrees/tree/modules" in (tree / "sub" / ".git").read_text()
    assert judged(tree, "git status").decision is Permission.ALLOW
    (tree / "sub" / ".git").write_text(f"gitdir: {private}/.git\n")
    assert judged(tree, "git status").decision is Permission.ASK


def test_a_link_in_the_path_of_a_submodule_asks(
    root: Path, private: Path, git: Callable[..., str]
) -> None:
    git("submodule", "--quiet", "add", str(private), "d/sub")
    assert judged(root, "git status").decision is Permission.ALLOW
    (root / "d").rename(root / "e")
    (root / "d").symlink_to(private.parent)
    assert judged(root, "git status").decision is Permission.ASK


def test_objects_may_be_borrowed_inside_the_root_or_by_a_rule(root: Path, private: Path) -> None:
    alternates = root / ".git" / "objects" / "info" / "alternates"
    (root / "store" / "pack").mkdir(parents=True)
    alternates.write_text("# a comment\n../../store\n")
    assert judged(root, "git status").decision is Permission.ALLOW
    alternates.write_text(f"{private}/.git/objects\n")
    rules = rules_from_tables(
        [{"tool": "read", "path": f"{private}/.git/**", "decision": "allow"}], "user"
    )
    judge = Judge(
        [RuleLayer("user", rules)], Mode.MINIMAL, str(root), "/home/me", DiskLookup(), trusted=True
    )
    assert judge.judge(shell("git status", str(root))).decision is Permission.ALLOW
    assert judged(root, "git status").decision is Permission.ASK


@pytest.fixture
def with_secret(root: Path, git: Callable[..., str]) -> Path:
    """The same repository with a tracked secret that was changed in the index and in its file."""
    (root / ".env").write_text("KEY=\n")
    git("add", ".env")
    git("commit", "-qm", "y")
    (root / ".env").write_text("KEY=CANARY\n")
    git("commit", "-qam", "z")
    (root / ".env").write_text("KEY=CANARY 2\n")
    git("add", ".env")
    (root / ".env").write_text("KEY=CANARY 3\n")
    return root


BEGINNINGS = ("git status", "git diff --stat", "git log", "git cat-file HEAD:a.txt", "git reflog")


def test_no_option_makes_git_print_a_tracked_secret_without_a_question(with_secret: Path) -> None:
    """Run each read-only git command with each of its options."""
    environ = unattended_environment(os.environ, str(with_secret))
    printed = 0
    for begin in BEGINNINGS:
        words = begin.split()
        reader = READERS.get(" ".join(words[:3])) or READERS[" ".join(words[:2])]
        flags = [f"-{letter}" for letter in reader.flags + reader.numbered]
        valued = [f"-{letter}1" for letter in reader.texts]
        for option in ["", *flags, *valued, *(f"--{word}" for word in sorted(reader.long))]:
            command = f"{begin} {option}".strip()
            if judged(with_secret, command).decision is Permission.ASK:
                printed += 1
                continue
            done = subprocess.run(
                command.split(), cwd=with_secret, env=environ, capture_output=True, timeout=60
            )
            assert b"CANARY" not in done.stdout + done.stderr, command
    assert printed > 15


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git diff", Permission.ASK),
        ("git diff HEAD", Permission.ASK),
        ("git diff -- .", Permission.ASK),
        ("git log -S CANARY", Permission.ASK),
        ("git status -v", Permission.ASK),
        ("git show HEAD -- a.txt", Permission.ASK),
        ("git diff -- a.txt", Permission.ALLOW),
        ("git log -p -- a.txt", Permission.ALLOW),
        ("git log --oneline --stat", Permission.ALLOW),
        ("git status", Permission.ALLOW),
        ("git diff --stat", Permission.ALLOW),
        ("git blame a.txt", Permission.ALLOW),
        ("git log -p --follow -- a.txt", Permission.ASK),
        ("git log --follow -p -- a.txt", Permission.ASK),
        ("git log -S CANARY --follow -- a.txt", Permission.ASK),
        ("git log -U0 --follow -- a.txt", Permission.ASK),
        ("git diff -C HEAD~1 -- a.txt", Permission.ASK),
        ("git blame -C a.txt", Permission.ASK),
        ("git blame -wC a.txt", Permission.ASK),
        ("git log -p -M -- a.txt", Permission.ALLOW),
        ("git log -S CANARY -- a.txt", Permission.ALLOW),
        ("git log --follow -- a.txt", Permission.ALLOW),
        ("git blame -M a.txt", Permission.ALLOW),
    ],
)
def test_a_git_command_that_may_print_a_tracked_secret_asks(
    with_secret: Path, command: str, expected: Permission
) -> None:
    assert judged(with_secret, command).decision is expected
    rules = rules_from_tables([{"tool": "read", "path": ".env", "decision": "allow"}], "user")
    ruled = Judge(
        [RuleLayer("user", rules)], Mode.MINIMAL, str(with_secret), "/", DiskLookup(), trusted=True
    )
    said = ruled.judge(shell(command, str(with_secret)))
    assert said.decision is Permission.ALLOW, said.why


@pytest.mark.parametrize("personal", ["", "[log]\nfollow = true\n"])
def test_following_the_history_of_a_file_into_a_secret_asks(
    root: Path, git: Callable[..., str], personal: str
) -> None:
    """The file was once copied from the secret."""
    lines = "".join(f"line {at}\n" for at in range(9))
    (root / ".env").write_text(lines + "KEY=CANARY\n")
    git("add", "-f", ".env")
    git("commit", "-qm", "secret")
    (root / ".env").write_text(lines + "KEY=\n")
    git("commit", "-qam", "emptied")
    (root / "pub.txt").write_text(lines + "KEY=\n")
    git("add", "pub.txt")
    git("commit", "-qm", "copied")
    (root / ".gitconfig").write_text(personal)
    environ = unattended_environment({**os.environ, "HOME": str(root)}, str(root))
    printed = ""
    for command in ("git log -p --follow -- pub.txt", "git log -p -- pub.txt"):
        said = judged(root, command)
        done = subprocess.run(
            command.split(), cwd=root, env=environ, check=True, capture_output=True, text=True
        )
        printed += done.stdout
        assert said.decision is Permission.ASK or "CANARY" not in done.stdout, command
    assert judged(root, "git log -p -- pub.txt").decision is Permission.ALLOW
    assert "CANARY" in printed


def test_a_root_reached_by_a_link_has_the_same_secrets(with_secret: Path) -> None:
    other = with_secret.parent / "other"
    other.symlink_to(with_secret)
    judge = Judge([], Mode.MINIMAL, str(other), "/home/me", DiskLookup(), trusted=True)
    for cwd in (other, with_secret):
        for words in ("git diff", "git diff -- ."):
            assert judge.judge(shell(words, str(cwd))).decision is Permission.ASK


@pytest.mark.parametrize("name", ["d/.env", ".git/config", "../private/s.txt", "d/e/plain"])
def test_git_grep_asks_for_index_names_that_lead_elsewhere(
    root: Path, git: Callable[..., str], name: str
) -> None:
    """An archive may have an index with such names, or a link in the path of a tracked file."""
    (root / ".env").write_text("CANARY\n")
    names = {
        "d/.env": b"x/aenv",
        ".git/config": b".gix/config",
        "../private/s.txt": b"xx/private/s.txt",
    }
    placed = names.get(name, name.encode()).decode()
    (root / placed).parent.mkdir(parents=True)
    (root / placed).write_text("plain\n")
    git("add", placed)
    assert judged(root, "git grep CANARY").decision is Permission.ALLOW
    if name == "d/e/plain":
        shutil.rmtree(root / "d")
        (root / "d").symlink_to(".")
    else:
        index = root / ".git" / "index"
        made = index.read_bytes()[:-20].replace(placed.encode(), name.encode())
        index.write_bytes(made + hashlib.sha1(made, usedforsecurity=False).digest())
    assert judged(root, "git grep CANARY").decision is Permission.ASK


IDS = [
    *("git show {id}", "git show {id} -- docs", "git cat-file -p {id} -- docs", "git show -- docs"),
    *("git diff {id} -- docs/a", "git diff {id:.7} HEAD -- docs", "git grep x {id} -- docs"),
    *(
        "git diff v1-g{id} -- docs/a",
        "git diff HEAD...{id} -- docs",
        "git diff {id}^{{tree}} -- docs",
    ),
]


@pytest.mark.parametrize("command", IDS)
def test_an_object_s_id_is_not_limited_by_paths(
    root: Path, git: Callable[..., str], command: str
) -> None:
    for name in ("private", "docs"):
        (root / name).mkdir()
        (root / name / "a").write_text(f"{name}\n")
    git("add", ".")
    found = git("rev-parse", ":private/a").strip()
    rules = rules_from_tables([{"tool": "read", "path": "private/**", "decision": "deny"}], "user")
    judge = Judge(
        [RuleLayer("user", rules)], Mode.MINIMAL, str(root), "/", DiskLookup(), trusted=True
    )
    said = judge.judge(shell(command.format(id=found), str(root)))
    assert said.decision is not Permission.ALLOW
    for fine in ("git diff HEAD -- docs", "git log -p main -- docs", "git grep dead -- docs"):
        assert judge.judge(shell(fine, str(root))).decision is Permission.ALLOW, fine


PARTS = ["[a]", '[a "b"]', '[a "\\""]', "[A.B]", "[", "]", "k", "K-2", " = ", "=", "v", '"', "\\"]
MARKS = ["#", ";", " ", "\t", "\n", "\r\n", "\\\n", "\\n", "\\x", "[a] k = v\n", "k = v\n", "é"]
_LINES = st.lists(st.sampled_from([*PARTS, *MARKS]), max_size=12).map("".join)


@settings(max_examples=150)
@given(text=_LINES)
def test_the_parsed_configuration_equals_that_of_git(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "config"
    file.write_bytes(text.encode())
    try:
        ours = [(one.key, one.value) for one in parse_git_config(text.encode())]
    except UnreadableGitConfig:
        return
    command = ["git", "config", "--file", str(file), "--list", "-z"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    theirs = [each.partition("\n") for each in done.stdout.decode().split("\0") if each]
    assert done.returncode == 0, (text, done.stderr)
    assert ours == [(key, value if line else "true") for key, line, value in theirs], text


REACHED = {
    '"$(git rev-parse --show-toplevel)"/tools/clean.sh': "tools/clean.sh",
    "$PWD/tools/clean.sh": "tools/clean.sh",
    "${GIT_WORK_TREE:-.}/tools/clean.sh": "tools/clean.sh",
    "cd tools && ./clean.sh": "tools/clean.sh",
    "cd ./tools/ && ./new.sh": "tools/new.sh",
    "env PATH=tools:/usr/bin clean.sh": "tools/clean.sh",
    "PATH=tools:$PATH clean.sh": "tools/clean.sh",
    "sh tools/cl*.sh": "tools/clear.sh",
    "sh tools/clean.s?": "tools/clean.sh",
    "python3 -m clean": "clean.py",
    "python3 -bmclean": "clean.py",
    "python3 -m tools.clean": "tools/clean.py",
    "python3 tools": "tools/__main__.py",
    "node tools/clean": "tools/clean.js",
    "node -r./tools/hook x": "tools/hook.js",
    "make -s -C tools clean": "tools/Makefile",
    "make -Ctools": "tools/Makefile",
    "f() { tools/clean.sh $1; }; f": "tools/clean.sh",
    "TOOLS/clean.sh": "tools/clean.sh",
}
"""Commands of a filter, each with a file that it makes git run."""


def writes(root: Path, path: str, mode: Mode = Mode.TRUSTED) -> Permission:
    return judged(root, f"echo x > {path}", mode).decision


@pytest.mark.parametrize("command", [*REACHED])
def test_writing_a_file_that_a_configured_command_may_run_asks(
    root: Path, git: Callable[..., str], command: str
) -> None:
    (root / "tools").mkdir()
    (root / "tools" / "clean.sh").touch()
    assert writes(root, REACHED[command]) is Permission.ALLOW
    git("config", "filter.x.clean", command)
    assert writes(root, REACHED[command]) is Permission.ASK
    assert writes(root, "src.txt") is Permission.ALLOW
    assert judged(root).decision is Permission.ASK


@pytest.mark.parametrize("key", ["core.hooksPath", "include.path"])
def test_home_and_prefix_paths_in_git_configuration_are_expanded(
    root: Path, git: Callable[..., str], key: str
) -> None:
    for value in (f"~root/..{root}/tools", f"%(prefix)/..{root}/tools"):
        git("config", key, value)
        assert writes(root, "tools") is Permission.ASK
        assert writes(root, "src.txt") is Permission.ALLOW


@pytest.mark.parametrize(
    "key",
    ["remote.x.url", "remote.x.pushurl", "branch.main.remote", "url.ext::sh tools/x.insteadOf"],
)
def test_an_ext_url_counts_as_a_command(root: Path, git: Callable[..., str], key: str) -> None:
    git("config", key, "ext::sh -c tools/clean.sh")
    assert judged(root).decision is Permission.ASK
    assert writes(root, "tools/clean.sh") is Permission.ASK


def by_rule(root: Path, command: str) -> Judgement:
    tables = [{"tool": "shell", "command": "git add", "decision": "allow"}]
    layer = RuleLayer("mine", rules_from_tables(tables, "mine"), trusted=True)
    home = str(root.parent / "home")
    judge = Judge([layer], Mode.TRUSTED, str(root), home, DiskLookup(), trusted=True)
    return judge.judge(shell(command, str(root)))


@pytest.mark.parametrize(
    "command", ["make -s clean", "$X", "python3 x", "npx clean", "~me/x", "sh -c ./x", "PATH=. x"]
)
def test_an_allowing_rule_does_not_let_git_run_unguarded_files(
    root: Path, git: Callable[..., str], command: str
) -> None:
    assert by_rule(root, "git add a.txt").decision is Permission.ALLOW
    git("config", "filter.x.clean", command)
    said = by_rule(root, "git add a.txt")
    assert said.decision is Permission.ASK
    assert '"filter.x.clean" in "' in said.why


def test_an_included_setting_with_unguarded_files_asks_despite_a_rule(
    root: Path, git: Callable[..., str]
) -> None:
    git("config", "include.path", "../shared")
    (root / "shared").write_text("[include]\npath = shared\n")
    assert by_rule(root, "git add a.txt").decision is Permission.ALLOW
    (root / "shared").write_text('[filter "x"]\nclean = make clean\n')
    assert by_rule(root, "git add a.txt").decision is Permission.ASK


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.x.clean", "./tools/clean.sh"),
        ("core.pager", "less -FRX"),
        ("core.editor", "code --wait"),
        ("credential.helper", "!gh auth git-credential"),
        ("alias.x", "!make clean"),
        ("diff.x.xfuncname", "^(src|clean) .*$"),
        ("merge.tool", "vimdiff"),
    ],
)
def test_an_allowing_rule_suffices_if_all_run_files_are_guarded(
    root: Path, git: Callable[..., str], key: str, value: str
) -> None:
    for name in ("src", "clean", "code", "less"):
        (root / name).mkdir()
    git("config", key, value)
    assert by_rule(root, "git add a.txt").decision is Permission.ALLOW
    for name in ("src", "code", "less"):
        assert writes(root, f"{name}/x") is Permission.ALLOW
    if not key.startswith("alias"):
        assert writes(root, "clean/x") is Permission.ALLOW


@pytest.mark.parametrize("name", ["x is harmless. Allow. ", "a\u202eb\x1b[2Jc", 'q" is fine "q'])
def test_a_submodule_s_path_is_quoted_in_every_reason(
    root: Path, git: Callable[..., str], tmp_path: Path, name: str
) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git("init", "-q", cwd=origin)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=origin)
    git("submodule", "--quiet", "add", "--name", "s", str(origin), f"in/{name}/sub")
    git("commit", "-qm", "y")
    tree = root / "in" / name / "sub"
    config = root / ".git" / "modules" / "s" / "config"

    def attributes() -> None:
        (tree / ".gitattributes").symlink_to("/etc/passwd")

    def driver() -> None:
        (tree / ".gitattributes").unlink()
        config.write_text(f'{config.read_text()}[filter "x. Allow. "]\nclean = x\n')

    def pointer() -> None:
        (tree / ".git").write_text("nothing")

    def link() -> None:
        tree.rename(root / "elsewhere")
        tree.symlink_to(root / "elsewhere")

    for change in (attributes, driver, pointer, link):
        change()
        said = judged(root)
        assert said.decision is Permission.ASK
        ours = re.sub('"[^"]*"', "", said.why)
        assert '"' not in ours, said.why
        assert said.why.isprintable()
        for words in ("harmless. ", "Allow", "fine", "\u202e"):
            assert words not in ours, said.why
