"""Find the files that a command will run or read without naming them, and the directories in which
it may run. Pure, except for `FileLookup`.

Files: a Python module, a name to which an interpreter adds a suffix, the configuration that a build
tool searches for, the files that configure git. Names may have `*`, and the files need not exist: a
file that appears later would be run. The list of tools is not complete, and no project is checked
as a whole; docs/reference/permissions.md states what is covered.

Directories (`run_directories`): a shell changes its directory with `cd` and `pushd`, a program with
an option; and some programs run others for the files they find. The search covers the words of a
command, words inside an argument, and text that could not be parsed. It finds too many rather than
too few, because an answer is bound to the result. Used by `bound_files`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.git_inspector import GitInspector
from telex.agent.permissions.read_only_programs import program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy

TOOL_FILES: Final = {
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
"""For each program, the files that it searches for in its directory and in the parents."""
_BY_PROGRAM: Final = {
    program: found.split() for programs, found in TOOL_FILES.items() for program in programs.split()
}
_PYTHONS: Final = word_set("""
    python pypy coverage uv ipython pytest py.test uvicorn gunicorn hypercorn daphne celery flask
""")
_IMPORTED: Final = re.compile(r"\b(?:import|from)\s+([A-Za-z_][\w.]*)(?:\s+import\s+([\w, ]+))?")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MOST_DIRECTORIES: Final = 16
"""Directories among the words in which modules and scripts are searched."""
_INTERPRETERS: Final = word_set(
    "python pypy node nodejs deno bun tsx ts-node java ruby perl lua php"
)
_NODE: Final = word_set("npm npx yarn pnpm bunx")
_MODULE: Final = re.compile(r"(?:^|\s)-[A-Za-z]*?m[\s'\"]*([A-Za-z_][\w.]*)")
_OPERANDS: Final = 8
"""Words after an interpreter that may be its script, since its options may have values."""
_BETWEEN: Final = re.compile(r"[\s'\"`;|&()<>=]+")


@dataclass(frozen=True, slots=True)
class ImpliedFiles:
    """Finds the implied files of commands."""

    paths: PathPolicy

    def of(self, argv: Sequence[str], place: str) -> Iterator[str]:
        """Yield the absolute paths of the files that a command in the directory `place` may use.
        An argument may be a text with several words."""
        text = " ".join(argv)
        words = [word for word in _BETWEEN.split(text) if word]
        programs = {program_name(word) for word in words}
        inner = list(dict.fromkeys((place, *self._directories(words, place))))
        if not programs.isdisjoint(_PYTHONS):
            for module in dict.fromkeys(_modules(text, words)):
                for directory in inner[:_MOST_DIRECTORIES]:
                    yield from (posixpath.join(directory, name) for name in _module_files(module))
        for directory in dict.fromkeys(up for each in inner for up in self._up_to_root(each)):
            for name in (name for program in programs for name in _BY_PROGRAM.get(program, ())):
                yield posixpath.join(directory, name)
            if not programs.isdisjoint(_NODE):
                for word in words[: 2 * _OPERANDS]:
                    bare = posixpath.basename(word)
                    yield posixpath.join(directory, "node_modules", ".bin", bare)
        if "git" in programs:
            yield from GitInspector(self.paths).files()
            yield from (
                posixpath.join(each, "*") for each in inner if "-c" in words and each != place
            )
        for at, word in enumerate(words):
            if program_name(word) in _INTERPRETERS:
                for operand in words[at + 1 : at + 1 + _OPERANDS]:
                    for part in _parts(operand):
                        yield from _script_files(posixpath.join(place, part))
                        bare = part.replace("::", "/")
                        for directory in inner[1:_MOST_DIRECTORIES] if "/" not in part else ():
                            yield f"{posixpath.join(directory, bare)}.*"

    def _directories(self, words: Sequence[str], place: str) -> Iterator[str]:
        """Yield the directories among the words, and the directories of files among the words."""
        for part in (part for word in words for part in _parts(word)):
            while part:
                if found := self._directory(part, place):
                    yield found
                    break
                part = posixpath.dirname(part).rstrip("/")

    def _directory(self, word: str, place: str) -> str:
        path = posixpath.join(place, word)
        is_one = "\0" not in word and self.paths.files.is_directory(path)
        return path if is_one and not word.startswith("-") else ""

    def _up_to_root(self, place: str) -> Iterator[str]:
        """Yield a directory inside the root and its parents up to the root."""
        root, real = (self.paths.files.real(path) for path in (self.paths.root, place))
        while real == root or real.startswith(root.rstrip("/") + "/"):
            yield real
            if real == root:
                return
            real = posixpath.dirname(real)


def _parts(word: str) -> Iterator[str]:
    """Yield the parts of a word that may be a file or a directory: the word, the value after the
    letter of an option, and the parts between colons: `-Csrc`, `tests/x.py::test`, `app:app`,
    `src:lib`."""
    tail = word[2:] if len(word) > 2 and word[0] == "-" != word[1] else ""
    for text in filter(None, (word, tail)):
        yield text
        yield from filter(None, text.split(":") if ":" in text else ())


def _modules(text: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the Python modules that a command may load: those after `-m`, operands of a Python
    program, and imports in code on the command line."""
    yield from _MODULE.findall(text)
    for package, rest in _IMPORTED.findall(text):
        yield package
        yield from (f"{package}.{name}" for name in re.findall(r"\w+", rest))
    for at, word in enumerate(words):
        if program_name(word) in _PYTHONS:
            for operand in words[at + 1 : at + 1 + _OPERANDS]:
                if _DOTTED.fullmatch(name := operand.partition(":")[0]):
                    yield name


def _module_files(module: str) -> Iterator[str]:
    """Yield the files that `python -m` loads: each parent package, then the module, or the main
    module of a package. Byte code counts too: Python loads it instead of the source if its header
    matches the source."""
    directory = ""
    for name in filter(None, module.split(".")):
        path = posixpath.join(directory, name)
        yield posixpath.join(directory, "__pycache__", f"{name}.*")
        yield from (f"{path}.*", posixpath.join(path, "__init__.*"))
        yield posixpath.join(path, "__pycache__", "__*__.*")
        directory = path
    yield posixpath.join(directory, "__main__.*")


def _script_files(path: str) -> Iterator[str]:
    """Yield the files that an interpreter may run for a name: the name with a suffix, or a file in
    the directory of that name."""
    yield from (f"{path}.*", posixpath.join(path, "__main__.*"))
    yield from (posixpath.join(path, name) for name in ("index.*", "package.json"))


_CHANGE_DIRECTORY: Final = word_set("cd pushd chdir")
_DIRECTORY_OPTIONS: Final = re.compile(
    r"-C|-D|-chdir|--(?:chdir|directory|cwd|dir|prefix|working-dir|workdir|work-tree|project"
    r"|project-dir|rootdir|root|source)"
)
_JOINED_OPTION: Final = re.compile(r"-[CD](.+)", re.DOTALL)
_FINDERS: Final = word_set("xargs parallel run-parts entr fd fdfind watchexec")
_IN_EACH: Final = word_set("-execdir -okdir")
_UNKNOWN_DIRECTORY: Final = "the command changes to a directory that is not known in advance"
_RUNS_FOUND: Final = "the command runs a program for each file it finds"
_WORDS: Final = 4
"""Words after `cd` that may be its directory: options may come first."""


@dataclass(frozen=True, slots=True)
class RunDirectories:
    """The directories to which a command changes."""

    certain: list[str] = field(default_factory=list)
    possible: list[str] = field(default_factory=list)
    """Words that count only if they are directories."""
    unknown: str = ""
    """Why the directories or the programs are not all known; empty if they are."""


def run_directories(argv: Sequence[str]) -> RunDirectories:
    """Return the directories to which a command may change. An argument may be a text with several
    words."""
    words = [word for word in _BETWEEN.split(" ".join(argv)) if word]
    certain: list[str] = []
    possible: list[str] = []
    unknown = ""
    for at, word in enumerate(words):
        after = words[at + 1 : at + 1 + _WORDS]
        if word in _CHANGE_DIRECTORY:
            target = next((each for each in after if not each.startswith("-")), "")
            is_known = target != "" and "-" not in after[:1] and not re.search(r"[$*?\[]", target)
            certain += [target] if is_known else []
            unknown = unknown if is_known else _UNKNOWN_DIRECTORY
        elif _DIRECTORY_OPTIONS.fullmatch(word):
            possible += after[:1]
        elif joined := _JOINED_OPTION.fullmatch(word):
            possible.append(joined[1])
        elif word in _IN_EACH:
            possible += [each for each in words if not each.startswith("-")]
            unknown = unknown or _RUNS_FOUND
        elif program_name(word) in _FINDERS or word in ("-exec", "-ok"):
            unknown = unknown or _RUNS_FOUND
    return RunDirectories(certain, possible, unknown)
