"""Compare the judge with real commands in random trees of links.

A command that is allowed without a question may print only files inside the root and no secret, and
may write only inside the root and no guarded file. The number of commands that ask is printed.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from permission_world import shell
from telex.agent.permissions import DiskLookup, Judge, Mode, Permission
from telex.agent.permissions.reader_environment import unattended_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES = ("a", "b", "c", "d")
FILES = ("f", "g", "AGENTS.md", ".env", "secrets.yml")
LONG = "n" * 240
LINKS = ("l", "m", "n", "o", "p", "f", "b", ".git", "AGENTS.md", "CLAUDE.md", "x.env", ".claude")


@dataclass
class Tree:
    """A random root, files outside it, and random commands to try there."""

    top: Path
    choose: random.Random
    directories: list[str] = field(default_factory=lambda: [""])
    links: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.top / "root"

    def make(self) -> None:
        for side in ("outside", "root"):
            self.directories = [""]
            (self.top / side).mkdir()
            for _ in range(self.choose.randint(1, 6)):
                self._directory(self.top / side)
            for _ in range(self.choose.randint(2, 8)):
                self._file(self.top / side)
        if self.choose.random() < 0.12:
            self._long()
        if self.choose.random() < 0.1:
            self._chain()
        for _ in range(self.choose.randint(2, 12)):
            self._link()

    def _directory(self, side: Path) -> None:
        name = os.path.join(self.choose.choice(self.directories), self.choose.choice(NAMES))
        (side / name).mkdir(exist_ok=True)
        self.directories.append(name)

    def _file(self, side: Path) -> None:
        name = self.choose.choice(FILES)
        place = side / self.choose.choice(self.directories) / name
        if not os.path.lexists(place):
            kind = "secret" if name in (".env", "secrets.yml") else "in"
            place.write_text(f"{'out' if side.name == 'outside' else kind}:{place}\n")

    def _link(self) -> None:
        name = os.path.join(self.choose.choice(self.directories), self.choose.choice(LINKS))
        if len(name) > 2000:
            return
        with contextlib.suppress(FileExistsError):
            os.symlink(self._target(), self.root / name)
            self.links.append(name)

    def _target(self) -> str:
        choose = self.choose
        match choose.randrange(8):
            case 0 | 1 | 2:
                return self.relative()
            case 3:
                return f"{self.root}/{self.relative()}"
            case 4:
                return f"{self.top}/outside/{self.relative()}"
            case 5:
                return "../" * choose.randint(1, 4) + f"outside/{self.relative()}"
            case 6:
                return self._magic()
        return choose.choice([*self.links, "l"]) if choose.random() < 0.7 else "."

    def _magic(self) -> str:
        choose = self.choose
        up = choose.choice(("/", "//", "/./", "/tmp/../", "../" * 25))
        held = choose.choice(
            (
                "proc/self/cwd",
                "proc/self/root" + str(self.top / choose.choice(("root", "outside"))),
                f"proc/{os.getpid()}/cwd",
                f"proc/{os.getpid()}/root{self.root}",
                "proc/thread-self/cwd",
                "proc/self/task/../cwd",
                "proc/self/fd/../cwd",
                "dev/fd/../cwd",
                "dev/../" + str(self.root).lstrip("/"),
                "proc/self",
            )
        )
        return up + held + choose.choice(("", "/", "/" + self.relative()))

    def _chain(self) -> None:
        length = self.choose.choice((39, 40, 41, 60))
        last = self.relative()
        for at in range(length):
            os.symlink(last, self.root / f"chain{at}")
            last = f"chain{at}"
        self.links.append(last)

    def _long(self) -> None:
        """Create a directory beyond PATH_MAX, and links that each cover a part of its path."""
        depth = self.choose.randint(14, 22)
        at, above, names = os.open(self.root, os.O_RDONLY), "", []
        try:
            for number in range(depth):
                os.mkdir(LONG, dir_fd=at)
                below = os.open(LONG, os.O_RDONLY, dir_fd=at)
                os.close(at)
                at = below
                names.append(LONG)
                if len(names) == 6 or number == depth - 1:
                    name = f"deep{number}"
                    os.symlink("/".join(filter(None, [above, *names])), self.root / name)
                    self.links.append(name)
                    above, names = name, []
            for name in ("f", "l", "b"):
                target = self._target() if name == "l" else "../" * depth + "../outside/f"
                os.symlink(target, name, dir_fd=at)
        finally:
            os.close(at)

    def relative(self) -> str:
        choose = self.choose
        parts = [
            choose.choice((*NAMES, *FILES[:2], *LINKS, *self.links, "..", "..", ".", ""))
            for _ in range(choose.randint(0, 3))
        ]
        path = "/".join([*parts, choose.choice((*FILES, *FILES, *LINKS, "", ".."))]).lstrip("/")
        return path or "f"

    def guided(self, start: Path, *, to_directory: bool = False) -> str:
        """Return a path that mostly exists: its names are those that this process sees."""
        choose, parts = self.choose, list[str]()
        for _ in range(choose.randint(1, 5)):
            place = os.path.join(start, *parts)
            try:
                names = sorted(os.listdir(place))
            except OSError:
                break
            if os.path.realpath(place).startswith(("/proc", "/dev")):
                break  # the content differs from run to run
            odd = choose.random()
            if odd < 0.15 or not names:
                parts.append(choose.choice(("..", ".", "")))
            elif odd < 0.25:
                parts.append(choose.choice((*NAMES, *FILES, *LINKS)))
            else:
                parts.append(choose.choice(names))
        if to_directory and parts and choose.random() < 0.6:
            parts = parts[:-1]
        return "/".join(parts).lstrip("/") or "."

    def inside(self) -> Path:
        """Return a real directory of the root."""
        real = [path for path in self._real_directories() if len(str(path)) < 2000]
        return self.choose.choice(real)

    def _real_directories(self) -> list[Path]:
        return [self.root / name for name in dict.fromkeys(self.directories)]

    def path(self, start: Path) -> str:
        if self.choose.random() < 0.15:
            return f"{self.root}/{self.guided(self.root)}"
        return self.guided(start)

    def moved(self, cwd: Path) -> tuple[str, Path]:
        """Return the argument of a `cd`, and the directory from which the next path starts."""
        directory = self.guided(cwd, to_directory=True)
        return shlex.quote(directory), cwd / directory

    def reading(self, cwd: Path) -> str:
        choose = self.choose
        directory, there = self.moved(cwd)
        path, further = shlex.quote(self.path(cwd)), shlex.quote(self.path(there))
        match choose.randrange(10):
            case 0 | 1 | 2:
                return f"cat {path}"
            case 3:
                return f"cat < {path}"
            case 4 | 5:
                return f"cd {directory} && cat {further}"
            case 6:
                return f"cd {directory}; cat {further}"
            case 7:
                again, there = self.moved(there)
                return f"cd {directory} && cd {again} && head -n 1 {shlex.quote(self.path(there))}"
            case 8:
                return f"cat {choose.choice(('*', '?', '*/*', f'{directory}/*', '*/f', '*/../f'))}"
        return f"cd {directory} && cat {choose.choice(('*', '*/f', '../*/f', '*/*'))}"

    def writing(self, cwd: Path) -> str:
        directory, there = self.moved(cwd)
        mark = self.choose.choice((">", ">>"))
        if self.choose.random() < 0.5:
            return f"echo changed {mark} {shlex.quote(self.path(cwd))}"
        return f"cd {directory} && echo changed {mark} {shlex.quote(self.path(there))}"


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[Callable[[int], Tree]]:
    here = os.getcwd()
    made: list[Path] = []

    def make(seed: int) -> Tree:
        os.chdir(here)
        if made:
            shutil.rmtree(made.pop())
        top = Path(os.path.realpath(tmp_path)) / str(seed)
        top.mkdir()
        made.append(top)
        tree = Tree(top, random.Random(seed))
        tree.make()
        return tree

    yield make
    os.chdir(here)
    for one in made:
        shutil.rmtree(one)


def judge_in(tree: Tree, mode: Mode) -> Judge:
    return Judge([], mode, str(tree.root), str(tree.top / "home"), DiskLookup())


def run(commands: list[tuple[str, Path]], tree: Tree) -> list[bytes]:
    """Run each command in its directory in a real shell, and return the standard outputs."""
    script = "".join(
        f"(\ncd {shlex.quote(str(cwd))} || exit\n{command}\n) < /dev/null 2> /dev/null\nprintf '\\0'\n"
        for command, cwd in commands
    )
    program = "/bin/bash" if tree.choose.random() < 0.8 else "/bin/sh"
    done = subprocess.run(
        [program, "-c", script],
        cwd=tree.top,
        env=unattended_environment(os.environ, str(tree.root)),
        capture_output=True,
        timeout=60,
    )
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.counted
@pytest.mark.deadline(3600)
def test_reads_without_a_question_are_inside_the_root_and_no_secret(
    trees: Callable[[int], Tree],
    counted: Callable[[int, int], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = counted(25, 10_000)
    tried = allowed = opened = 0
    unsafe: list[str] = []
    for seed in range(many):
        tree = trees(seed)
        os.chdir(
            tree.choose.choice([tree.inside(), tree.top / "outside"])
        )  # the directory of telex
        commands = [(tree.reading(cwd), cwd) for cwd in (tree.inside() for _ in range(12))]
        judge = judge_in(tree, Mode.MINIMAL)
        free = [
            (command, cwd)
            for command, cwd in commands
            if judge.judge(shell(command, str(cwd))).decision is Permission.ALLOW
        ]
        outputs = run(free, tree)
        assert len(outputs) == len(free)
        tried, allowed = tried + len(commands), allowed + len(free)
        for (command, cwd), output in zip(free, outputs, strict=True):
            opened += output != b""
            if not all(line.startswith(b"in:") for line in output.splitlines()):
                unsafe.append(f"tree {seed}: {command!r} in {cwd} printed {output!r}")
    with capsys.disabled():
        print(
            f"\n{many} trees, {tried} commands: {tried - allowed} ask, {allowed} do not, "
            f"{opened} of these print a file, {len(unsafe)} of them one they should not"
        )
    assert not unsafe, "\n" + "\n".join(unsafe)
    assert opened > tried // 20, "most commands found no file, so the test proves nothing"


def contents(tree: Tree) -> dict[str, str]:
    """Return the files that must not change: all outside the root, and the targets of guarded names
    as the system resolves them."""
    found: dict[str, str] = {}
    for place, _, names in os.walk(tree.top / "outside"):
        for name in names:
            found[os.path.join(place, name)] = Path(place, name).read_text()
    guarded = ("AGENTS.md", "CLAUDE.md", ".git/f", ".claude/f", ".claude/a/f")
    for directory in dict.fromkeys(tree.directories):
        for name in guarded:
            path = tree.root / directory / name
            try:
                found[str(path)] = path.read_text()
            except OSError:  # it does not exist; a write may create it
                found[str(path)] = ""
    return found


@pytest.mark.counted
@pytest.mark.deadline(3600)
def test_writes_without_a_question_are_inside_the_root_and_not_guarded(
    trees: Callable[[int], Tree],
    counted: Callable[[int, int], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = counted(15, 2_000)
    tried = allowed = 0
    unsafe: list[str] = []
    for seed in range(many):
        tree = trees(seed)
        # Inside the root, so that `/proc/self/cwd` of this process does not lead outside.
        os.chdir(tree.inside())
        judge = judge_in(tree, Mode.TRUSTED)
        before = contents(tree)
        for _ in range(6):
            cwd = tree.inside()
            command = tree.writing(cwd)
            tried += 1
            if judge.judge(shell(command, str(cwd))).decision is not Permission.ALLOW:
                continue
            allowed += 1
            run([(command, cwd)], tree)
            after = contents(tree)
            if after != before:
                changed = [
                    path for path in {*after, *before} if after.get(path) != before.get(path)
                ]
                unsafe.append(f"tree {seed}: {command!r} in {cwd} changed {changed}")
            before = after
    with capsys.disabled():
        print(f"\n{many} trees, {tried} writes: {allowed} allowed, {len(unsafe)} unsafe")
    assert not unsafe, "\n" + "\n".join(unsafe)
    assert allowed > tried // 20
