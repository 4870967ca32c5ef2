"""The files that a command will run or obey though it does not name them: a module of Python, what
an interpreter adds to a name, the file that a build tool looks for, what git obeys. Pure, but for
lookups.

Names may have `*`, and may be of files that are not there: one that appears is one that is run. The
list of tools is not whole, and no tool's whole project is looked at; what holds is written down in
docs/reference/permissions.md. Used by `bound_files`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.judging.git_repository import GitSettings
from telex.agent.judging.options import names
from telex.agent.judging.programs import base

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.judging.paths import Paths

LOOKED_FOR: Final = {
    "make gmake bmake": "GNUmakefile makefile Makefile BSDmakefile",
    "npm npx yarn pnpm bun bunx node nodejs": "package.json .npmrc .yarnrc* .pnpmfile.cjs "
    "bunfig.toml",
    "cargo rustc": "Cargo.toml build.rs .cargo/config* rust-toolchain*",
    "pytest py.test tox nox coverage": "conftest.py pytest.ini pyproject.toml setup.cfg tox.ini "
    "noxfile.py .coveragerc",
    "pip uv poetry pdm hatch": "pyproject.toml setup.py setup.cfg uv.toml",
    "just": "justfile Justfile .justfile",
    "task": "Taskfile*",
    "rake": "Rakefile* rakefile*",
    "bundle": "Gemfile .bundle/config",
    "invoke inv": "tasks.py invoke.y*ml",
    "fab": "fabfile.py",
    "docker podman docker-compose": "Dockerfile Containerfile compose*.y*ml docker-compose*.y*ml",
    "cmake ctest": "CMakeLists.txt CMakePresets.json",
    "ninja": "build.ninja",
    "meson": "meson.build",
    "gradle gradlew": "build.gradle* settings.gradle* gradle.properties gradle/wrapper/*",
    "mvn mvnw": "pom.xml .mvn/*",
    "go": "go.mod go.work",
    "terraform tofu": "*.tf",
    "ansible ansible-playbook": "ansible.cfg",
    "pre-commit": ".pre-commit-config.yaml",
    "tsc tsx ts-node": "tsconfig*.json",
    "eslint prettier jest vitest vite webpack rollup": "package.json *.config.* .eslintrc* "
    ".prettierrc*",
    "composer php artisan": "composer.json",
    "mix": "mix.exs",
    "lein": "project.clj",
    "sbt": "build.sbt project/*",
    "direnv": ".envrc",
    "vagrant": "Vagrantfile",
}
"""By program, the files that it looks for in its directory and in those above it."""
_BY_PROGRAM: Final = {
    program: found.split() for programs, found in LOOKED_FOR.items() for program in programs.split()
}
_PYTHONS: Final = names("python pypy coverage uv")
_INTERPRETERS: Final = names("python pypy node nodejs deno bun tsx ts-node java ruby perl lua php")
_NODE: Final = names("npm npx yarn pnpm bunx")
_MODULE: Final = re.compile(r"(?:^|\s)-[A-Za-z]*?m[\s'\"]*([A-Za-z_][\w.]*)")
_OPERANDS: Final = 8
"""Words after an interpreter among which its script is: options may have values."""


@dataclass(frozen=True, slots=True)
class ImpliedFiles:
    paths: Paths

    def of(self, words: Sequence[str], place: str) -> Iterator[str]:
        """Absolute. `words` may be texts with words in them."""
        text = " ".join(words)
        apart = [word for word in re.split(r"[\s'\"`;|&()<>=]+", text) if word]
        programs = {base(word) for word in apart}
        if not programs.isdisjoint(_PYTHONS):
            for module in _MODULE.findall(text):
                yield from (os.path.join(place, name) for name in _of_module(module))
        inner = [place, *(found for word in apart if (found := self._directory(word, place)))]
        for directory in dict.fromkeys(up for one in inner for up in self._up(one)):
            for name in (name for program in programs for name in _BY_PROGRAM.get(program, ())):
                yield os.path.join(directory, name)
            if not programs.isdisjoint(_NODE):
                for word in apart[: 2 * _OPERANDS]:
                    yield os.path.join(directory, "node_modules", ".bin", os.path.basename(word))
        if "git" in programs:
            yield from GitSettings(self.paths).files()
        for at, word in enumerate(apart):
            if base(word) in _INTERPRETERS:
                for operand in apart[at + 1 : at + 1 + _OPERANDS]:
                    yield from _of_operand(os.path.join(place, operand))

    def _directory(self, word: str, place: str) -> str:
        path = os.path.join(place, word)
        is_one = "\0" not in word and self.paths.files.is_directory(path)
        return path if is_one and not word.startswith("-") else ""

    def _up(self, place: str) -> Iterator[str]:
        """A directory inside the root, and those above it up to the root."""
        root, real = (self.paths.files.real(path) for path in (self.paths.root, place))
        while real == root or real.startswith(root.rstrip("/") + "/"):
            yield real
            if real == root:
                return
            real = os.path.dirname(real)


def _of_module(module: str) -> Iterator[str]:
    """What `python -m` loads: each package on the way, then the module, or a package's main one.
    Byte code counts as well: Python takes it for the source if it says that it belongs to it."""
    directory = ""
    for name in filter(None, module.split(".")):
        path = os.path.join(directory, name)
        yield os.path.join(directory, "__pycache__", f"{name}.*")
        yield from (f"{path}.*", os.path.join(path, "__init__.*"))
        yield os.path.join(path, "__pycache__", "__*__.*")
        directory = path
    yield os.path.join(directory, "__main__.*")


def _of_operand(path: str) -> Iterator[str]:
    """What an interpreter runs for a name: with an ending, or in the directory of that name."""
    yield from (f"{path}.*", os.path.join(path, "__main__.*"))
    yield from (os.path.join(path, name) for name in ("index.*", "package.json"))
