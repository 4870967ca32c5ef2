"""Resolving paths on a real disk, in repositories with hostile links."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.ui_side import ALL, an_agent
from permission_world import shell
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.limits import AGENT_LINK_NAMES
from telex.agent.permissions import (
    DiskLookup,
    Judge,
    Mode,
    Permission,
    PermissionRequest,
    RuleLayer,
    path_walk,
    rules_from_tables,
)
from telex.agent.permissions.bound_files import find_bound_files
from telex.agent.permissions.path_walk import (
    LINKS_FOLLOWED,
    PATH_MAX,
    Link,
    LinkFollower,
    follow_links,
)
from telex.agent.permissions.reader_environment import unattended_environment
from telex.agent.permissions.sensitive_names import BACKUP_NAMES, SECRET_NAMES, is_secret
from telex.agent.sandbox_files import OutsideSandbox, Sandbox, find_sandbox
from telex.agent.skills import find_skills

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OUTSIDE = "what the person keeps outside\n"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A root and a file outside it; the working directory of telex is in neither."""
    found = Path(os.path.realpath(tmp_path)) / "root"
    found.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text(OUTSIDE)
    yield found
    shutil.rmtree(tmp_path)  # pytest cannot remove directories that are too deep


def judge_in(root: Path, mode: Mode = Mode.MINIMAL, **more: object) -> Judge:
    return Judge([], mode, str(root), str(root.parent / "home"), DiskLookup(), **more)  # type: ignore[arg-type] # fields of Judge


def decides(
    root: Path, command: str, mode: Mode = Mode.MINIMAL, cwd: Path | None = None
) -> Permission:
    return judge_in(root, mode).judge(shell(command, str(cwd or root))).decision


def printed(command: str, cwd: Path) -> str:
    done = subprocess.run(
        ["/bin/bash", "-c", command], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def cloned(repository: Path, into: Path, program: Callable[[str], str]) -> Path:
    """Return the clone of a repository with hostile links."""
    git = program("git")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run([git, *words], cwd=repository, check=True, timeout=60)
    clone = into / "clone"
    subprocess.run([git, "clone", "-q", repository, clone], check=True, timeout=60)
    return clone


def deep(start: Path, names: list[str]) -> None:
    """Create nested directories, also if their path is too long for one system call."""
    at = os.open(start, os.O_RDONLY)
    try:
        for name in names:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
    finally:
        os.close(at)


# Links that the kernel generates


def test_a_committed_link_to_proc_self_cwd_asks(
    root: Path, program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "l").symlink_to("/proc/self/cwd")
    (root / "x").write_text("decoy\n")
    (root / "src").mkdir()
    (root / "src" / "x").symlink_to(root.parent / "outside" / "kept")
    clone = cloned(root, root.parent, program)
    monkeypatch.chdir(clone)
    command = "cd src && cat ../l/x"
    assert printed(command, clone) == OUTSIDE, "the shell reads the file"
    assert decides(clone, command) is Permission.ASK
    assert decides(clone, "cat ../l/x", cwd=clone / "src") is Permission.ASK
    assert decides(clone, "echo y > ../l/x", Mode.TRUSTED, cwd=clone / "src") is Permission.ASK


def test_a_link_to_proc_self_cwd_asks_also_from_a_subdirectory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "l").symlink_to("/proc/self/cwd")
    (root / "x").symlink_to(root.parent / "outside" / "kept")
    (root / "sub").mkdir()
    (root / "sub" / "x").write_text("decoy\n")
    monkeypatch.chdir(root / "sub")
    assert printed("cat l/x", root) == OUTSIDE
    assert decides(root, "cat l/x") is Permission.ASK


MAGIC = [
    "/proc/self/cwd",
    "/proc/self/root",
    "/proc/self/fd",
    "/proc/self/fd/0",
    "/proc/self/exe",
    "/proc/self",
    "/proc/thread-self/cwd",
    "/proc/thread-self/root/etc",
    "/proc/PID/cwd",
    "/proc/PID/task/PID/cwd",
    "/proc/1/root",
    "/proc/sys/kernel/hostname",
    "/proc/cpuinfo",
    "/proc/mounts",
    "/proc/../etc/hostname",
    "/dev/fd",
    "/dev/fd/0",
    "/dev/stdin",
    "/dev/tty",
    "/dev/null",
    "/dev/shm",
    "../../../../../../../../../../proc/self/cwd",
    "../../../../../../../../../../proc/self/root/etc/hostname",
    "../../../../../../../../../../dev/fd/0",
    "/./proc//self/./cwd/",
    "/etc/../proc/self/cwd",
    "/usr/bin/../../proc/self/cwd",
]


@pytest.mark.parametrize("target", MAGIC)
def test_a_link_into_proc_or_dev_asks_in_every_mode_and_for_every_use(
    root: Path, target: str
) -> None:
    (root / "l").symlink_to(target.replace("PID", str(os.getpid())))
    (root / "again").symlink_to("l")
    (root / "d").mkdir()
    (root / "d" / "l").symlink_to("../again")
    for path in ("l", "again", "d/l", "d/../l", "./l", "l/.", "l/x", str(root / "d" / "l")):
        for mode in Mode:
            assert decides(root, f"cat {path}", mode) is Permission.ASK, path
            assert decides(root, f"wc -l < {path}", mode) is Permission.ASK, path
            assert decides(root, f"echo x > {path}", mode) is Permission.ASK, path
        for mode in (Mode.MINIMAL, Mode.TRUSTED):
            assert decides(root, f"cd {path} && cat x", mode) is Permission.ASK, path
        for tool in ("read", "list", "search", "write", "edit"):
            judged = judge_in(root, Mode.FULL).judge(
                PermissionRequest(tool, {"path": path}, str(root))
            )
            assert judged.decision is Permission.ASK, tool
            assert not judged.remember, "it may lead elsewhere later"
        with pytest.raises(OutsideSandbox, match="cannot resolve"):
            Sandbox(root).place(path, root)


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/self/cwd/x",
        "/dev/fd/0",
        "/dev/tty",
        "/dev/sda",
        "/./dev/fd/1",
        "../" * 20 + "proc/self/cwd/x",
    ],
)
def test_a_written_path_into_proc_or_dev_asks_in_every_mode(root: Path, path: str) -> None:
    for mode in Mode:
        assert decides(root, f"cat {path}", mode) is Permission.ASK
        assert decides(root, f"cat < {path}", mode) is Permission.ASK


def test_dev_null_and_standard_streams_need_no_question(root: Path) -> None:
    assert decides(root, "ls 2> /dev/null") is Permission.ALLOW
    assert decides(root, "cat < /dev/null") is Permission.ALLOW
    assert decides(root, "cat /proc/cpuinfo", Mode.FULL) is Permission.ALLOW


def test_mode_full_asks_after_a_cd_through_a_magic_link(root: Path) -> None:
    (root / "l").symlink_to("/proc/self/cwd")
    assert decides(root, "cd l && cat x", Mode.FULL) is Permission.ASK


def test_a_pattern_through_a_magic_link_asks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "l").symlink_to("/proc/self/cwd")
    (root / "a").mkdir()
    (root / "a" / "x").write_text("a\n")
    (root / "x").symlink_to(root.parent / "outside" / "kept")
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    assert printed("cat */x", root).endswith(OUTSIDE), "the shell matches l/x too"
    for command in ("cat */x", "cat l/*", "cat ?/x", "cat */../l/x", "ls */"):
        assert decides(root, command) is Permission.ASK, command


def test_a_proc_file_system_asks_at_any_mount_point(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's tree has its own `proc`; a test cannot mount one, so the list of mounts says
    so."""
    (root / "proc" / "1").mkdir(parents=True)
    (root / "proc" / "1" / "environ").write_text("PASSWORD=x")
    mounts = root.parent / "mounts"
    escaped = str(root / "proc").replace(" ", "\\040")
    mounts.write_text(f"22 27 0:21 / {escaped} rw,relatime shared:1 - proc proc rw\n")
    assert decides(root, "cat proc/1/environ") is Permission.ALLOW
    monkeypatch.setattr("telex.processes.proc._MOUNTS", str(mounts))
    for mode in Mode:
        assert decides(root, "cat proc/1/environ", mode) is Permission.ASK


def test_magic_links_of_a_second_proc_are_recognised_by_their_size() -> None:
    for path in ("/proc/self", "/proc/self/cwd", "/proc/self/root", "/proc/self/exe"):
        found = DiskLookup().link(path)
        assert found is not None
        assert found.is_magic, path


# Paths that are too long, or cannot be read


def long_way(root: Path, names: int) -> str:
    """Create a link to a directory whose path is too long for one system call, and in it a link
    that leads outside. Return the name of the first link."""
    parts = ["d" * 250] * names
    deep(root, parts)
    above = ""
    for at in range(0, names, 8):  # a link for every eight directories
        (root / f"s{at}").symlink_to("/".join(filter(None, [above, *parts[at : at + 8]])))
        above = f"s{at}"
    at = os.open(root / above, os.O_RDONLY)
    try:
        os.symlink(root.parent / "outside" / "kept", "x", dir_fd=at)
        os.symlink("../" * names + "../outside", "out", dir_fd=at)
    finally:
        os.close(at)
    return above


@pytest.mark.parametrize("names", [15, 16, 17, 40])
def test_a_path_beyond_path_max_asks(root: Path, names: int) -> None:
    link = long_way(root, names)
    for path in (f"{link}/x", f"{link}/out/kept"):
        assert printed(f"cat {path}", root) == OUTSIDE
        for mode in (Mode.MINIMAL, Mode.TRUSTED):
            assert decides(root, f"cat {path}", mode) is Permission.ASK
            assert decides(root, f"echo y > {path}", mode) is Permission.ASK
        with pytest.raises(OutsideSandbox):
            Sandbox(root).place(path, root)
    assert decides(root, f"cd {link} && cat x") is Permission.ASK
    assert decides(root, f"cat {link[0]}*/x") is Permission.ASK


def test_a_resolved_path_just_below_the_limit_is_followed_and_one_at_it_is_not(
    root: Path,
) -> None:
    room = PATH_MAX - 1 - len(str(root)) - 1  # the bytes left below the root
    parts = ["d" * 200] * (room // 201 - 1)
    rest = room - 201 * len(parts)
    deep(root, parts)
    inner = "/".join(parts)
    (root / "l").symlink_to(inner)
    above = "g" * (rest // 2)
    fits = "f" * (rest - len(above) - 1)
    too_long = fits + "f"
    deep(root, [*parts, above])
    assert len(f"{root}/{inner}/{above}/{fits}") == PATH_MAX - 1
    assert decides(root, f"cat l/{above}/{fits}") is Permission.ALLOW
    assert decides(root, f"cat l/{above}/{too_long}") is Permission.ASK


def test_a_too_long_name_asks_and_counts_as_text_in_mode_full(root: Path) -> None:
    assert decides(root, "cat " + "n" * 255) is Permission.ALLOW
    assert decides(root, "cat " + "n" * 256) is Permission.ASK
    assert decides(root, "cat " + "é" * 128) is Permission.ASK, "bytes count"
    assert decides(root, f"git commit -m '{'long ' * 200}'", Mode.FULL) is Permission.ALLOW


def test_more_links_than_the_kernel_follows_ask_and_as_many_do_not(root: Path) -> None:
    (root / "l0").write_text("here\n")
    for at in range(LINKS_FOLLOWED + 1):
        (root / f"l{at + 1}").symlink_to(f"l{at}")
    assert printed(f"cat l{LINKS_FOLLOWED}", root) == "here\n"
    assert decides(root, f"cat l{LINKS_FOLLOWED}") is Permission.ALLOW
    assert decides(root, f"cat l{LINKS_FOLLOWED + 1}") is Permission.ASK


class FailingLookup(LinkFollower):
    """A lookup with errors that a test cannot cause on every disk."""

    def __init__(self, number: int) -> None:
        self.number = number

    def link(self, path: str) -> Link | None:
        if path == "/a/b":
            raise OSError(self.number, os.strerror(self.number), path)
        return None


def test_any_error_except_not_found_makes_a_path_unknown() -> None:
    import errno

    for number in (errno.ENOENT, errno.ENOTDIR):
        assert follow_links("/a/b/c", FailingLookup(number)).unknown == ""
    for name in ("EACCES", "ELOOP", "ENAMETOOLONG", "EIO", "EPERM", "ESTALE", "ENOMEM", "EINVAL"):
        way = follow_links("/a/b/c", FailingLookup(getattr(errno, name)))
        assert way.unknown, name
        assert way.end == "/a/b/c"


# Paths that can be resolved


def test_a_path_is_resolved_as_the_kernel_does_with_every_link_listed(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "f").write_text("here\n")
    (root / "l").symlink_to("a/b")
    (root / "m").symlink_to(f"{root}/l/../b")
    for path in ("m/f", "l/../b/f", "l//./f", "a/b/../../m/f", "m/../../l/f"):
        assert (
            DiskLookup().real(f"{root}/{path}") == os.path.realpath(root / path) == f"{root}/a/b/f"
        )
    assert DiskLookup().resolve(f"{root}/m/f").passed == (
        f"{root}/m/f",
        f"{root}/l/../b/f",
        f"{root}/l/../b/f",
        f"{root}/a/b/../b/f",
    )
    assert decides(root, "cat m/f l/../b/f") is Permission.ALLOW


def test_names_that_are_not_utf8_are_resolved_unchanged(root: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    (root / odd).symlink_to(root.parent / "outside")
    (root / "l").symlink_to(odd)
    assert DiskLookup().real(f"{root}/l/kept") == str(root.parent / "outside" / "kept")
    assert decides(root, "cat l/kept") is Permission.ASK


def test_a_secret_name_in_the_middle_of_a_chain_of_links_asks(root: Path) -> None:
    (root / ".aws").mkdir()
    (root / ".aws" / "l").symlink_to("../plain")
    (root / "plain").write_text("x")
    (root / "a").symlink_to(".aws/l")
    (root / "b").symlink_to(".aws/../plain")
    (root / ".config").symlink_to("kept")
    (root / "kept" / "gh").mkdir(parents=True)
    (root / "c").symlink_to(".config/gh")
    for path in ("a", "b", "c/hosts.yml"):
        for mode in Mode:
            assert decides(root, f"cat {path}", mode) is Permission.ASK, path


# Guarded names before and after links, and the targets of guarded links


@pytest.fixture
def linked(root: Path) -> Path:
    for name in ("docs", "hooks", ".git/info", "cfg/commands", "cmds", "src", "scripts"):
        (root / name).mkdir(parents=True)
    for name in ("docs/guide.md", "docs/other.md", "hooks/pre-commit", "cmds/x.md", "src/x"):
        (root / name).write_text("x\n")
    (root / "AGENTS.md").symlink_to("docs/guide.md")
    (root / ".git" / "hooks").symlink_to("../hooks")
    (root / ".claude").symlink_to("cfg")
    (root / "cfg" / "more").symlink_to("../cmds")
    (root / "src" / "link").symlink_to("../AGENTS.md")
    return root


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        "docs/guide.md",
        "src/link",
        "src/../AGENTS.md",
        "DOCS/GUIDE.MD",
        ".git/hooks/pre-commit",
        "hooks/pre-commit",
        "hooks/new",
        ".claude/commands/x.md",
        "cfg/commands/x.md",
        "cfg/new",
        "cmds/x.md",
        ".claude/../src/x",
    ],
)
def test_the_target_of_a_guarded_link_is_guarded_under_every_name(linked: Path, path: str) -> None:
    judge = judge_in(linked, Mode.TRUSTED)
    assert decides(linked, f"echo x > {path}", Mode.TRUSTED) is Permission.ASK
    assert decides(linked, f"echo x >> {linked}/{path}", Mode.TRUSTED) is Permission.ASK
    for tool in ("write", "edit"):
        judged = judge.judge(PermissionRequest(tool, {"path": path}, str(linked)))
        assert judged.decision is Permission.ASK


@pytest.mark.parametrize("path", ["docs/other.md", "src/x", "new", "docs/deep/new", "scripts/x"])
def test_files_next_to_a_guarded_target_are_written_without_a_question(
    linked: Path, path: str
) -> None:
    assert decides(linked, f"echo x > {path}", Mode.TRUSTED) is Permission.ALLOW


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ("[core]\n\thooksPath = scripts", "scripts/pre-push"),
        ("[core] hookspath = ./scripts/ # ours", "scripts/pre-push"),
        ('[core]\n\thooksPath = "scripts/in \\\n here"', "scripts/in  here/x"),
        ("[core]\n\tfsmonitor = src/x", "src/x"),
        ('[filter "x"]\n\tclean = sh scripts/clean.sh %f', "scripts/clean.sh"),
        ('[filter "a b.c"]\n\tprocess = "cd scripts; ./p"', "scripts"),
        ('[diff "x"]\n\ttextconv = scripts/conv', "scripts/conv"),
        ("[diff]\n\texternal = ./scripts/d", "scripts/d"),
        ('[merge "x"]\n\tdriver = scripts/m %O %A', "scripts/m"),
        ("[alias]\n\tx = !sh src/x", "src/x"),
        ("[filter \"x\"]\n\tclean = sh 'scripts/my clean.sh'", "scripts/my clean.sh"),
        ('[lfs "customtransfer.x"]\n\tpath = scripts/a b', "scripts/a b"),
        ('[lfs "extension.x"]\n\tclean = scripts/x %f', "scripts/x"),
        ("[next]\n\tyear = scripts/x", "scripts/x"),
        ("[include]\n\tpath = ../docs/git", "docs/git"),
        ('[includeIf "gitdir:/"]\n\tpath = ../docs/git', "docs/git"),
    ],
)
def test_files_named_in_git_configuration_are_guarded(linked: Path, config: str, path: str) -> None:
    def asks() -> Permission:
        arguments = {"path": path}
        return (
            judge_in(linked, Mode.TRUSTED)
            .judge(PermissionRequest("write", arguments, str(linked)))
            .decision
        )

    if path != "scripts":
        assert asks() is Permission.ALLOW
    (linked / ".git" / "config").write_text(config)
    if path == "scripts":  # a bare word counts only if such a file exists
        (linked / "scripts").rmdir()
        (linked / "scripts").touch()
    assert asks() is Permission.ASK
    assert decides(linked, "echo x > src/new", Mode.TRUSTED) is Permission.ALLOW


@pytest.mark.parametrize("place", [".", "..", "l/x", "loop"])
def test_every_write_asks_if_the_hooks_path_is_the_root_or_unknown(
    linked: Path, place: str
) -> None:
    (linked / "l").symlink_to("/proc/self/cwd")
    (linked / "loop").symlink_to("loop")
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ALLOW
    (linked / ".git" / "config").write_text(f"[core]\nhooksPath = {place}\n")
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ASK
    (linked / ".git" / "config").write_text("[core]\nhooksPath = /dev/null\n")
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ALLOW


def test_files_named_in_an_included_configuration_are_guarded(linked: Path) -> None:
    (linked / ".git" / "config").write_text("[include]\npath = ../docs/git\n")
    (linked / "docs" / "git").write_text("[core]\nhooksPath = scripts\n[include]\npath = git\n")
    assert decides(linked, "echo x > scripts/pre-push", Mode.TRUSTED) is Permission.ASK


def test_git_uses_the_same_hooks_directory(root: Path, program: Callable[[str], str]) -> None:
    git = program("git")
    subprocess.run([git, "init", "-q"], cwd=root, check=True, timeout=60)
    (root / "tools").mkdir()
    assert decides(root, "echo x > tools/pre-push", Mode.TRUSTED) is Permission.ALLOW
    subprocess.run([git, "config", "core.hooksPath", "tools"], cwd=root, check=True, timeout=60)
    found = printed("git rev-parse --git-path hooks", root).strip()
    assert found == "tools"
    assert decides(root, "echo x > tools/pre-push", Mode.TRUSTED) is Permission.ASK
    # The configuration of a worktree is in its repository.
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(
        [git, *who, "commit", "-q", "--allow-empty", "-m", "x"], cwd=root, check=True, timeout=60
    )
    tree = root.parent / "tree"
    subprocess.run([git, "worktree", "add", "-q", tree], cwd=root, check=True, timeout=60)
    assert decides(tree, "echo x > tools/pre-push", Mode.TRUSTED) is Permission.ASK
    assert decides(tree, "echo x > src", Mode.TRUSTED) is Permission.ALLOW


def test_a_repository_above_the_root_may_name_hooks_inside_it(root: Path) -> None:
    (root / "sub" / "hooks").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\nhooksPath = sub/hooks\n")
    assert decides(root / "sub", "echo x > hooks/pre-push", Mode.TRUSTED) is Permission.ASK
    assert decides(root / "sub", "echo x > other", Mode.TRUSTED) is Permission.ALLOW


def test_a_guarded_link_above_the_root_guards_its_target(root: Path) -> None:
    inner = root / "sub"
    (inner / "docs").mkdir(parents=True)
    (inner / "hooks").mkdir()
    (root / ".git").mkdir()
    (root / "CLAUDE.md").symlink_to("sub/docs/x.md")
    (root / ".git" / "hooks").symlink_to("../sub/hooks")
    assert decides(inner, "echo x > docs/x.md", Mode.TRUSTED) is Permission.ASK
    assert decides(inner, "echo x > hooks/pre-push", Mode.TRUSTED) is Permission.ASK
    assert decides(inner, "echo x > docs/y.md", Mode.TRUSTED) is Permission.ALLOW


OBEYED_BY_NAME = """
.rvmrc .direnv/flake.rc devenv.nix flake.nix .bsp/sbt.json .luarc.json .luarc.jsonc rust-analyzer.toml .merlin
coc-settings.json .run/x.run.xml .RData startup.m prek.toml hk.pkl .rusty-hook.toml grumphp.yml .nano-staged.json
gptme.toml GROK.md .grok/x .devin/x CODEBUDDY.md IFLOW.md .sourcegraph/x .vibe/x .pi/x .mergify.yml app.json heroku.yml
.platform/x .platform.app.yaml .ebextensions/x action.yml circle.yml evergreen.yml sub/IFLOW.md sub/action.yml
"""
NOT_OBEYED = "action.py app.js startup.py platform/x pi/x run/x vibe.md flake.lock Makefile package.json docs/x.md"


def test_writing_a_guarded_name_asks(linked: Path) -> None:
    for path in OBEYED_BY_NAME.split():
        assert decides(linked, f"echo x > {path}", Mode.TRUSTED) is Permission.ASK, path
    for path in NOT_OBEYED.split():
        assert decides(linked, f"echo x > {path}", Mode.TRUSTED) is Permission.ALLOW, path


def test_every_write_asks_if_a_guarded_link_cannot_be_resolved(linked: Path) -> None:
    (linked / ".vimrc").symlink_to("/dev/null")
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ALLOW
    (linked / "docs" / "CLAUDE.md").symlink_to("/proc/self/cwd/x")
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ASK


def test_a_tree_too_large_to_scan_for_links_asks(
    linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.permissions.disk.AGENT_WALKED", 5)
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ASK


def test_a_tree_made_of_links_is_judged_in_bounded_time(linked: Path) -> None:
    (linked / ".claude").unlink()
    (linked / ".claude").mkdir()
    for at in range(2100):
        (linked / ".claude" / f"l{at}").symlink_to(f"../src/{at}")
    body = "a/../" * 700
    (linked / "a").mkdir()
    for at in range(40):
        (linked / f"w{at}").symlink_to(f"w{at + 1}/{body}")
    words = " ".join(f"w0/{at}" for at in range(100))
    began = time.process_time()
    assert decides(linked, "echo x > src/x", Mode.TRUSTED) is Permission.ASK
    assert decides(linked, f"cat {words}") is Permission.ASK
    assert time.process_time() - began < 10  # minutes without a bound


def test_a_checkout_inside_a_guarded_directory_name_is_written_as_usual(root: Path) -> None:
    inner = root / ".claude" / "worktrees" / "x"
    (inner / "docs").mkdir(parents=True)
    (inner / "l").symlink_to(inner / "docs")
    for path in ("docs/x", "l/x", f"{inner}/l/../docs/x"):
        assert decides(inner, f"echo x > {path}", Mode.TRUSTED) is Permission.ALLOW
    assert decides(inner, "echo x > .claude/x", Mode.TRUSTED) is Permission.ASK


def test_a_shell_asks_before_it_writes_to_a_hard_linked_file(root: Path) -> None:
    os.link(root.parent / "outside" / "kept", root / "same")
    assert decides(root, "echo x > same", Mode.TRUSTED) is Permission.ASK
    written = judge_in(root, Mode.TRUSTED).judge(
        PermissionRequest("write", {"path": "same"}, str(root))
    )
    assert written.decision is Permission.ALLOW, "the tool does not change the other hard link"


# Rules


def test_a_restricting_rule_matches_every_spelling_of_a_path(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data" / "x").write_text("x")
    (root / "private").symlink_to("data")
    (root / "a").symlink_to("private/x")
    rules = rules_from_tables([{"tool": "read", "path": "private/**", "decision": "deny"}], "user")
    judge = Judge([RuleLayer("user", rules)], Mode.FULL, str(root), "/home/me", DiskLookup())
    for path in ("private/x", "data/x", "a", "PRIVATE/x", "Data/X"):
        assert judge.judge(shell(f"cat {path}", str(root))).decision is Permission.DENY, path
    assert judge.judge(shell("rg x data", str(root))).decision is not Permission.ALLOW


def test_no_rule_allows_a_path_that_cannot_be_resolved(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "l").symlink_to("/proc/self/cwd")
    rules = rules_from_tables(
        [{"tool": "read", "path": each, "decision": "allow"} for each in ("docs/**", "/proc/**")],
        "user",
    )
    judge = Judge([RuleLayer("user", rules)], Mode.MINIMAL, str(root), "/home/me", DiskLookup())
    assert judge.judge(shell("cat docs/l/x", str(root))).decision is Permission.ASK
    assert judge.judge(shell("cat /proc/loadavg", str(root))).decision is Permission.ALLOW


# Other code that resolves links


def test_bound_files_are_resolved_like_judged_paths(root: Path) -> None:
    (root / "l").symlink_to("/proc/self/cwd")
    (root / "m").symlink_to("a")
    (root / "a").write_text("x")
    judge, command = judge_in(root), "sh l/x m"
    judged = judge.judge(shell(command, str(root)))
    found = find_bound_files(judged, judge.paths, Sandbox(root), root, command).files
    assert "differs from process to process" in found[f"{root}/l/x"].leads
    assert str(os.getcwd()) not in found[f"{root}/l/x"].leads
    assert found[f"{root}/m"].leads == f"{root}/a"


def test_no_skill_is_read_through_an_unresolvable_path(root: Path) -> None:
    outside = root.parent / "outside" / "mine"
    outside.mkdir()
    (outside / "SKILL.md").write_text("---\nname: mine\ndescription: private\n---\n")
    (root / ".agents" / "skills").mkdir(parents=True)
    link = long_way(root, 40)
    at = os.open(root / link, os.O_RDONLY)
    os.symlink(outside, "mine", dir_fd=at)
    os.close(at)
    (root / ".agents" / "skills" / "mine").symlink_to(f"../../{link}/mine")
    (root / ".agents" / "skills" / "cwd").symlink_to("/proc/self/cwd")
    assert (root / ".agents" / "skills" / "mine" / "SKILL.md").exists()
    found = find_skills(root, root, root.parent / "home")
    assert not found.skills
    assert not found.errors


def test_a_root_that_cannot_be_resolved_is_refused(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(OutsideSandbox, match="--root"):
        find_sandbox(root, root / "loop")


def test_path_has_no_program_that_the_agent_may_have_written(root: Path) -> None:
    beside = root.parent / "bin"
    beside.mkdir()
    for name in ("built", "deep"):
        (root / name).mkdir()
    (beside / "other").symlink_to(root / "built" / "other")
    path = f"{beside}:/usr/bin"
    assert unattended_environment({"PATH": path}, str(root))["PATH"] == path
    (beside / "rg").symlink_to(root / "built" / "rg")
    assert unattended_environment({"PATH": path}, str(root))["PATH"] == "/usr/bin"
    (root.parent / "cwd").symlink_to("/proc/self/cwd")
    for place in (
        f"{root.parent}/cwd",
        f"{root.parent}/cwd/bin",
        f"{root}/deep/..",
        "/proc/self/cwd",
    ):
        assert (
            unattended_environment({"PATH": f"{place}:/usr/bin"}, str(root))["PATH"] == "/usr/bin"
        ), place


def test_telex_s_own_files_and_links_of_the_home_to_secrets_ask_before_they_are_read(
    root: Path,
) -> None:
    home = root.parent / "home"
    (home / "dots" / "ssh").mkdir(parents=True)
    (home / ".ssh").symlink_to("dots/ssh")
    (home / ".config").mkdir()
    (home / ".config" / "gh").symlink_to("../dots/hub")
    judge = Judge([], Mode.FULL, str(home), str(home), DiskLookup(), own=[str(home / "telex")])
    for path in ("dots/ssh/config", "dots/hub/x", "telex/config.toml", "telex/state/telex.db"):
        for tool in ("read", "write", "search"):
            judged = judge.judge(PermissionRequest(tool, {"path": path}, str(home)))
            assert judged.decision is Permission.ASK, path
    assert judge.judge(shell("cat dots/other", str(home))).decision is Permission.ALLOW


# Names


def test_rg_skips_secrets_and_reads_files_that_are_named(
    root: Path, program: Callable[[str], str]
) -> None:
    rg = program("rg")
    plain = [name for name in SECRET_NAMES.single if not name.startswith(".")]
    made = [name.replace("*", "x") for name in plain]
    open_deep = [
        name for name in SECRET_NAMES.deep if not name.startswith("/") and "." not in name[:1]
    ]
    made += [
        name.replace("**/", "sub/").replace("*", "x") for name in open_deep if "/." not in name
    ]
    added = [one.replace("[0-9]", "12") for one in BACKUP_NAMES["added"]]
    made += [f"{name}{one}" for name in ("x.key", "token.txt", "secrets/x.yml") for one in added]
    made += [f"x.pem{one}{two}" for one in added for two in (".bak", ".1", "~")]
    made += [f"#{name}#" for name in ("x.key", "token.txt")]
    for name in (*made, *(f"sub/{name.upper()}" for name in made), "main.py", "sub/main.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if not (root / name).is_dir():
            (root / name).write_text("needle\n")
    (root / ".ignore").write_text("!*\n!*.pem\n")

    def found(*words: str) -> set[str]:
        done = subprocess.run(
            [rg, "-l", "needle", *words],
            cwd=root,
            env=unattended_environment(os.environ, str(root)),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return set(done.stdout.split())

    assert decides(root, "rg -l needle") is Permission.ALLOW
    assert found() == {"main.py", "sub/main.py"}
    for name in made:
        assert is_secret(f"{root}/{name}"), name
    for command in ("rg needle secrets", "cd secrets && rg needle", "rg needle secrets/sub"):
        assert decides(root, command) is Permission.ASK, command
    assert decides(root, "rg -l needle secrets.yml") is Permission.ASK
    assert found("secrets.yml") == {"secrets.yml"}


@pytest.mark.parametrize(
    "name", [".ignore", ".rgignore", ".gitignore", "sub/.ignore", ".git/info/exclude"]
)
def test_rg_prints_no_line_of_a_secret_linked_as_an_ignore_file(
    root: Path, program: Callable[[str], str], name: str
) -> None:
    rg = program("rg")
    (root / ".env").write_text("A=1\nX={CANARY\n[z-a]CANARY\n")
    (root / ".git" / "info").mkdir(parents=True)
    (root / "sub").mkdir()
    (root / "sub" / "main.py").write_text("needle\n")
    (root / name).symlink_to(root / ".env")
    command = ["needle", "missing", "."]
    assert decides(root, " ".join(["rg", *command])) is Permission.ALLOW
    environment = unattended_environment(os.environ, str(root))

    def said(environ: dict[str, str]) -> str:
        done = subprocess.run(
            [rg, *command], cwd=root, env=environ, capture_output=True, text=True, timeout=60
        )
        return done.stdout + done.stderr

    open_to_all = {k: v for k, v in environment.items() if k != "RIPGREP_CONFIG_PATH"}
    assert "CANARY" in said(open_to_all)
    assert "CANARY" not in said(environment)
    assert "sub/main.py" in said(environment)
    assert "missing" in said(environment)  # a missing file is still reported


# Through the whole agent


async def test_a_question_says_that_a_path_cannot_be_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_agent(tmp_path) as agent:
        outside = tmp_path / "kept"
        outside.write_text(OUTSIDE)
        (agent.root / "l").symlink_to("/proc/self/cwd")
        (agent.root / "x").write_text("decoy\n")
        (agent.root / "src").mkdir()
        (agent.root / "src" / "x").symlink_to(outside)
        monkeypatch.chdir(agent.root)
        ui = await agent.connect(**ALL)
        run = await ui.start("run cd src && cat ../l/x")
        question = await ui.until("ui.confirm.request")
        assert "telex cannot determine where" in question["params"]["message"]
        assert not question["params"].get("allow_remember")
        ui.answer(question, {"ok": False, "reason": "no"})
        await ui.until_ended(run)
        assert OUTSIDE.strip() not in str(ui.events(run))


@pytest.mark.parametrize("tool", ["read", "list", "search", "write", "edit", "shell"])
async def test_file_tools_follow_no_magic_link_and_fail_without_a_question(
    tmp_path: Path, tool: str
) -> None:
    arguments: dict[str, object] = {
        "read": {"file_path": "l/x"},
        "list": {"path": "l"},
        "search": {"pattern": "x", "path": "l"},
        "write": {"file_path": "l/x", "content": "y"},
        "edit": {"file_path": "l/x", "old_string": "x", "new_string": "y"},
        "shell": {"command": "ls", "cwd": "l"},
    }[tool]
    core = ScriptedCore(
        "s", [ScriptStep(tool=tool, arguments=arguments), ScriptStep(final="{last}")]
    )
    async with an_agent(tmp_path, core) as agent:
        (agent.root / "l").symlink_to("/proc/self/cwd")
        (agent.root / "x").write_text("x\n")
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until_ended(run)
        assert "cannot resolve l" in ui.final(run)
        assert (agent.root / "x").read_text() == "x\n"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({".git/commondir": "../shared"}, "shared"),
        ({".git/commondir": "../shared\n"}, "shared/deep"),
        ({"vendor/lib/.git": "gitdir: ../meta\n"}, "vendor/meta"),
        ({"vendor/lib/.git": "gitdir: ../meta", "vendor/meta/commondir": "../common"}, "vendor/common"),
        ({"vendor/lib/.git/commondir": "../../../shared"}, "shared"),
        ({"vendor/lib/.git/config": "[core]\nhooksPath = ../../shared"}, "shared"),
    ],
)  # fmt: skip
def test_writing_the_directories_of_any_repository_in_the_root_asks(
    linked: Path, files: dict[str, str], place: str
) -> None:
    writes = [f"echo x > {place}/{name}" for name in ("hooks/pre-commit", "config")]
    for name in ("hooks", "."):
        (linked / place / name).mkdir(parents=True, exist_ok=True)
    assert {decides(linked, write, Mode.TRUSTED) for write in writes} == {Permission.ALLOW}
    for name, text in files.items():
        (linked / name).parent.mkdir(parents=True, exist_ok=True)
        (linked / name).write_text(text)
    assert {decides(linked, write, Mode.TRUSTED) for write in writes} == {Permission.ASK}
    assert decides(linked, "echo x > src/new", Mode.TRUSTED) is Permission.ALLOW


def test_many_repositories_below_the_root_do_not_make_every_write_ask(linked: Path) -> None:
    for at in range(40):
        (linked / f"clone{at}" / ".git").mkdir(parents=True)
        (linked / f"clone{at}" / ".git" / "config").write_text("[core]\nbare = false\n")
    (linked / "broken").mkdir()
    (linked / "broken" / ".git").write_text("nothing that git knows\n")
    assert decides(linked, "echo x > src/new", Mode.TRUSTED) is Permission.ALLOW


def test_a_pattern_is_judged_by_each_directory_that_it_lists(root: Path) -> None:
    """Also by directories that it reaches through links."""
    (root / "src").mkdir()
    (root / "src" / "x").touch()
    (root / "out").symlink_to(root.parent / "outside")
    for command in ("echo */*", "echo ou?/*", "echo out/*", "echo */kept", "printf %s o*/k*"):
        assert decides(root, command) is Permission.ASK, command
    for command in ("echo src/*", "echo sr?/*", "echo *", "echo nothing*", "printf %s s*/x*"):
        assert decides(root, command) is Permission.ALLOW, command


@pytest.mark.parametrize("mode", Mode)
def test_the_names_added_by_long_links_are_limited(
    root: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").mkdir()
    long = "a/../" * 800
    for number in range(40):
        (root / f"l{number}").symlink_to(long + (f"l{number + 1}" if number < 39 else "a"))
        (root / f"m{number}").symlink_to(long + "a")
        (root / "a" / f"m{number}").symlink_to("../a/" * 400)
    look_up, count = path_walk._look_up, 0

    def counted(place: str, name: str, disk: LinkFollower) -> tuple[Link | None, str]:
        nonlocal count
        count += 1
        return look_up(place, name, disk)

    monkeypatch.setattr(path_walk, "_look_up", counted)
    pairs = " ".join(f"m{one}/m{other}/x" for one in range(20) for other in range(20))
    for command in (
        "cat l* a/*",
        f"cat {pairs}",
        f"(cat {pairs})",
        f"cd a; cat {pairs}",
        "cat */.*",
    ):
        count = 0
        assert decides(root, command, mode) is Permission.ASK, command
        # The names of the words themselves add few. Without a limit there would be a million.
        assert count < 5 * AGENT_LINK_NAMES, command
