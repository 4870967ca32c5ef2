"""The files that a command will run or obey though it does not name them: a module of Python, what
an interpreter adds to a name, the file that a build tool looks for, what git obeys. Pure, but for
lookups.

Names may have `*`, and may be of files that are not there: one that appears is one that is run. The
list of tools is not whole, and no tool's whole project is looked at; what holds is written down in
docs/reference/permissions.md. Used by `bound_files`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.git_repository import GitInspector
from telex.agent.permissions.read_only_programs import program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy

LOOKED_FOR: Final = {
    "make gmake bmake": "GNUmakefile makefile Makefile BSDmakefile",
    "npm npx yarn pnpm bun bunx node nodejs": "package.json .npmrc .yarnrc* .pnpmfile.cjs "
    "bunfig.toml",
    "cargo rustc": "Cargo.toml build.rs .cargo/config* rust-toolchain*",
    "pytest py.test tox nox coverage": "conftest.py pytest.ini pyproject.toml setup.cfg tox.ini "
    "noxfile.py .coveragerc",
    "pip uv poetry pdm hatch build": "pyproject.toml setup.py setup.cfg uv.toml hatch_build.py",
    "just": "justfile Justfile .justfile",
    "task": "Taskfile*",
    "rake": "Rakefile* rakefile* rakelib/*",
    "bundle": "Gemfile .bundle/config",
    "invoke inv": "tasks.py invoke.y*ml",
    "fab": "fabfile.py",
    "docker podman docker-compose": "Dockerfile Containerfile compose*.y*ml "
    "docker-compose*.y*ml .env",
    "cmake ctest": "CMakeLists.txt CMakePresets.json Makefile build.ninja",
    "ninja": "build.ninja",
    "meson": "meson.build build.ninja",
    "gradle gradlew": "build.gradle* settings.gradle* gradle.properties gradle/wrapper/*",
    "mvn mvnw": "pom.xml .mvn/* .mvn/wrapper/*",
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
    "git": ".husky/* .githooks/* .pre-commit-config.yaml lefthook.y*ml .lefthook.y*ml",
    "bazel bazelisk": "BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel MODULE.bazel .bazelrc",
    "buck buck2": ".buckconfig BUCK",
    "scons": "SConstruct Sconstruct sconstruct SConscript",
    "waf": "wscript",
    "ant": "build.xml",
    "deno": "deno.json deno.jsonc package.json",
    "playwright next mocha cypress gulp grunt tailwindcss astro": "package.json *.config.* "
    ".mocharc.* gulpfile.* Gruntfile.*",
    "prisma": "prisma/schema.prisma prisma.config.*",
    "alembic": "alembic.ini alembic/env.py",
    "flask django-admin": "app.py wsgi.py manage.py .flaskenv",
    "gunicorn": "gunicorn.conf.py",
    "sphinx-build": "conf.py",
    "mkdocs": "mkdocs.yml",
    "lefthook": "lefthook.* .lefthook.*",
    "mypy pylint ruff flake8": "mypy.ini .mypy.ini .pylintrc pylintrc ruff.toml .ruff.toml .flake8 "
    "pyproject.toml setup.cfg",
    "rspec": ".rspec spec/spec_helper.rb spec/rails_helper.rb",
    "cabal": "*.cabal cabal.project*",
    "stack": "stack.yaml package.yaml",
    "dune": "dune dune-project",
    "swift": "Package.swift",
    "zig": "build.zig build.zig.zon",
    "dotnet msbuild": "*.*proj *.sln Directory.Build.* global.json",
    "nix nix-build nix-shell": "flake.nix default.nix shell.nix",
    "packer": "*.pkr.hcl",
    "pulumi": "Pulumi*.yaml",
    "sls serverless": "serverless.*",
    "cdk": "cdk.json",
    "skaffold": "skaffold.yaml",
    "tilt": "Tiltfile",
    "helm": "Chart.yaml",
    "earthly": "Earthfile",
    "dagger": "dagger.json",
    "act": ".github/workflows/*",
    "foreman overmind honcho": "Procfile",
    "mise": "mise.toml .mise.toml mise.*.toml .tool-versions",
    "asdf": ".tool-versions",
    "gdb": ".gdbinit",
    "R Rscript": ".Rprofile .Renviron .RData",
    "vagrant": "Vagrantfile",
}
"""By program, the files that it looks for in its directory and in those above it."""
_BY_PROGRAM: Final = {
    program: found.split() for programs, found in LOOKED_FOR.items() for program in programs.split()
}
_PYTHONS: Final = word_set("""
    python pypy coverage uv ipython pytest py.test uvicorn gunicorn hypercorn daphne celery flask
""")
_IMPORTED: Final = re.compile(r"\b(?:import|from)\s+([A-Za-z_][\w.]*)(?:\s+import\s+([\w, ]+))?")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_INNER: Final = 16
"""Directories among the words in which names are looked for."""
_INTERPRETERS: Final = word_set(
    "python pypy node nodejs deno bun tsx ts-node java ruby perl lua php"
)
_NODE: Final = word_set("npm npx yarn pnpm bunx")
_MODULE: Final = re.compile(r"(?:^|\s)-[A-Za-z]*?m[\s'\"]*([A-Za-z_][\w.]*)")
_OPERANDS: Final = 8
"""Words after an interpreter among which its script is: options may have values."""


@dataclass(frozen=True, slots=True)
class ImpliedFiles:
    paths: PathPolicy

    def of(self, words: Sequence[str], place: str) -> Iterator[str]:
        """Absolute. `words` may be texts with words in them."""
        text = " ".join(words)
        apart = [word for word in re.split(r"[\s'\"`;|&()<>=]+", text) if word]
        programs = {program_name(word) for word in apart}
        inner = list(dict.fromkeys((place, *self._directories(apart, place))))
        if not programs.isdisjoint(_PYTHONS):
            for module in dict.fromkeys(_modules(text, apart)):
                for directory in inner[:_INNER]:
                    yield from (posixpath.join(directory, name) for name in _of_module(module))
        for directory in dict.fromkeys(up for one in inner for up in self._up(one)):
            for name in (name for program in programs for name in _BY_PROGRAM.get(program, ())):
                yield posixpath.join(directory, name)
            if not programs.isdisjoint(_NODE):
                for word in apart[: 2 * _OPERANDS]:
                    bare = posixpath.basename(word)
                    yield posixpath.join(directory, "node_modules", ".bin", bare)
        if "git" in programs:
            yield from GitInspector(self.paths).files()
            yield from (posixpath.join(one, "*") for one in inner if "-c" in apart and one != place)
        for at, word in enumerate(apart):
            if program_name(word) in _INTERPRETERS:
                for operand in apart[at + 1 : at + 1 + _OPERANDS]:
                    for part in _parts(operand):
                        yield from _of_operand(posixpath.join(place, part))
                        bare = part.replace("::", "/")
                        for directory in inner[1:_INNER] if "/" not in part else ():
                            yield f"{posixpath.join(directory, bare)}.*"

    def _directories(self, apart: Sequence[str], place: str) -> Iterator[str]:
        """Those among the words, and those of files among them."""
        for part in (part for word in apart for part in _parts(word)):
            while part:
                if found := self._directory(part, place):
                    yield found
                    break
                part = posixpath.dirname(part).rstrip("/")

    def _directory(self, word: str, place: str) -> str:
        path = posixpath.join(place, word)
        is_one = "\0" not in word and self.paths.files.is_directory(path)
        return path if is_one and not word.startswith("-") else ""

    def _up(self, place: str) -> Iterator[str]:
        """A directory inside the root, and those above it up to the root."""
        root, real = (self.paths.files.real(path) for path in (self.paths.root, place))
        while real == root or real.startswith(root.rstrip("/") + "/"):
            yield real
            if real == root:
                return
            real = posixpath.dirname(real)


def _parts(word: str) -> Iterator[str]:
    """A word that is a file or a directory, also after the letter of an option, and before or
    between colons: `-Csrc`, `tests/x.py::test`, `app:app`, `src:lib`."""
    tail = word[2:] if len(word) > 2 and word[0] == "-" != word[1] else ""
    for one in filter(None, (word, tail)):
        yield one
        yield from filter(None, one.split(":") if ":" in one else ())


def _modules(text: str, apart: Sequence[str]) -> Iterator[str]:
    """Of Python: after `-m`, as its operands, and what a text of code imports."""
    yield from _MODULE.findall(text)
    for package, rest in _IMPORTED.findall(text):
        yield package
        yield from (f"{package}.{name}" for name in re.findall(r"\w+", rest))
    for at, word in enumerate(apart):
        if program_name(word) in _PYTHONS:
            for operand in apart[at + 1 : at + 1 + _OPERANDS]:
                if _DOTTED.fullmatch(name := operand.partition(":")[0]):
                    yield name


def _of_module(module: str) -> Iterator[str]:
    """What `python -m` loads: each package on the way, then the module, or a package's main one.
    Byte code counts as well: Python takes it for the source if it says that it belongs to it."""
    directory = ""
    for name in filter(None, module.split(".")):
        path = posixpath.join(directory, name)
        yield posixpath.join(directory, "__pycache__", f"{name}.*")
        yield from (f"{path}.*", posixpath.join(path, "__init__.*"))
        yield posixpath.join(path, "__pycache__", "__*__.*")
        directory = path
    yield posixpath.join(directory, "__main__.*")


def _of_operand(path: str) -> Iterator[str]:
    """What an interpreter runs for a name: with an ending, or in the directory of that name."""
    yield from (f"{path}.*", posixpath.join(path, "__main__.*"))
    yield from (posixpath.join(path, name) for name in ("index.*", "package.json"))
