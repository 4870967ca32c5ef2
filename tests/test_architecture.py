"""Watches the arrows: who may import whom, and who may not touch the world.

Not a wall. When it fails, it says what it saw, which sentence of the design that breaks, and what
people usually do instead. If the design itself should change, change `LAYERS` here and the drawing
in docs/explain/architecture.md in the same commit.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "telex"

LAYERS = [
    {"wire"},
    {"redaction"},
    {"rpc"},
    {"config", "processes"},
    {"transports"},
    {"terminal"},
    {"automation"},
    {"adapters", "escapes", "plugins"},
    {"htty"},
    {"agent", "passthrough"},
    {"testing"},
    {"server"},
    {"cli"},
]
"""From the ground up. A package imports itself and whatever lies below it."""

WORLD = {"asyncio", "os", "random", "select", "signal", "socket", "subprocess", "threading", "time"}
PURE = [
    *("wire", "redaction", "automation/protocol.py", "adapters/protocol.py", "plugins/protocol.py"),
    *("terminal/playback.py", "terminal/recording_search.py", "terminal/screen_difference.py"),
    *("terminal/shown_screen.py", "terminal/input_state.py", "terminal/status_escapes.py"),
    "terminal/screen_prompts.py",
    *(
        "terminal/recording_comparison.py",
        "terminal/actions.py",
        "terminal/waits/matchers.py",
        "terminal/waits/conditions.py",
    ),
    *("terminal/waits/compiler.py", "terminal/waits/since.py", "terminal/waits/near_misses.py"),
    *("rpc/state.py", "rpc/messages.py", "rpc/errors.py", "rpc/dialects"),
    "automation/screen_text.py",
    *("testing/golden_file.py", "testing/golden_place.py"),
    *("agent/permissions", "agent/run_states.py", "agent/excerpts.py", "agent/protocol"),
    *("agent/messages.py", "agent/models"),
]
"""Bytes and time come in as arguments here."""
IMPURE = [
    *(
        f"agent/permissions/{name}.py"
        for name in ("disk", "bound_files", "confinement", "confirmation")
    ),
    *(f"agent/models/{name}.py" for name in ("model_client", "model_registry", "model_keys")),
]
"""The files of a pure package that look: `disk` for who judges, the others to enforce it; of the
models, the client, and the parts that find servers and keys."""

STDLIB_ONLY = ["wire"]

PROC = ("/proc", "/dev/fd")
PROC_READER = "processes/proc.py"
ALSO_NAME_PROC = {
    "processes/launch.py": "`/dev/fd` lists our descriptors on macOS too, and `proc` imports `launch`",
    "processes/restrict.py": "runs without telex, as `python -I -S`",
    "processes/reaper.py": "runs without telex, as `python -I -S`",
    "plugins/restrictions.py": "reads nothing: a Landlock rule",
    "agent/permissions/confinement.py": "reads nothing: Landlock rules",
    "agent/permissions/path_walk.py": "reads nothing: targets that the judge refuses to follow",
    "agent/permissions/path_policy.py": "reads nothing: targets that the judge refuses to follow",
}
"""Files that name a path of /proc, each with the reason why `proc` does not do it for them."""

SAME_IN_EVERY_PACKAGE = {
    *("__init__.py", "protocol.py", "server.py", "client.py", "sync.py", "errors.py", "limits.py")
}
"""File names that mean the same job wherever they stand; `cli` names its files by the commands."""
SAME_NOUN = [
    ["agent/messages.py", "rpc/messages.py"],  # of a thread; of a conversation between peers
    ["agent/protocol/events.py", "wire/events.py"],
]
"""Files of two packages whose noun is the field's word in both."""
NOUNS = {"terminal/recording.py", "terminal/pictures/box_drawing.py", "rpc/testing.py"}
"""Files whose names end like gerunds, and are nouns of the field."""


@dataclass(frozen=True)
class Import:
    file: str
    line: int
    module: str

    @property
    def package(self) -> str:
        return Path(self.file).parts[0].removesuffix(".py")

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]

    @property
    def target(self) -> str:
        """Which of our packages is imported; empty for anything else, and for telex itself."""
        parts = self.module.split(".")
        return parts[1] if parts[0] == "telex" and len(parts) > 1 else ""


def imports_in(file: str, source: str) -> Iterator[Import]:
    """Every import, also those inside functions and for type checkers: an arrow is an arrow."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "telex":
                names = (f"telex.{alias.name}" for alias in node.names)
                yield from (Import(file, node.lineno, name) for name in names)
            else:
                yield Import(file, node.lineno, node.module)


@cache
def all_imports() -> list[Import]:
    assert sources(), f"no source below {SOURCE}"
    return [i for f in sources() for i in imports_in(str(f.relative_to(SOURCE)), f.read_text())]


def layer_of(package: str) -> int | None:
    return next((n for n, layer in enumerate(LAYERS) if package in layer), None)


def upward(imports: list[Import]) -> list[str]:
    """Arrows that do not point down."""
    problems = []
    for found in imports:
        here, there = layer_of(found.package), layer_of(found.target)
        if there is None or found.package == found.target:
            continue
        if here is not None and there >= here:
            problems.append(
                f"src/telex/{found.file}:{found.line} imports {found.module}, but arrows point down: "
                f"`{found.package}` must not know `{found.target}`. Pass in what it needs as an "
                f"argument (a callable, a typing.Protocol), or move the shared part down."
            )
    return problems


def impure(imports: list[Import]) -> list[str]:
    """Files that promise to be functions of their arguments, and are not."""
    return [
        f"src/telex/{found.file}:{found.line} imports {found.module}, but this file is pure: bytes and "
        f"time come in as arguments. Put the effect into a file named for it, and hand the result in."
        for found in imports
        if any(found.file.startswith(place) for place in PURE) and found.root in WORLD
        if found.file not in IMPURE
    ]


def beyond_the_stdlib(imports: list[Import]) -> list[str]:
    return [
        f"src/telex/{found.file}:{found.line} imports {found.module}, but `{found.package}` uses the "
        f"standard library only, so that anybody can take it along."
        for found in imports
        if found.package in STDLIB_ONLY and found.root not in {*sys.stdlib_module_names, "telex"}
    ]


def test_arrows_point_down() -> None:
    assert not (problems := upward(all_imports())), "\n" + "\n".join(problems)


def test_pure_files_do_not_touch_the_world() -> None:
    assert not (problems := impure(all_imports())), "\n" + "\n".join(problems)


def test_the_wire_needs_nothing_but_python() -> None:
    assert not (problems := beyond_the_stdlib(all_imports())), "\n" + "\n".join(problems)


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_a_class_name_exists_once() -> None:
    """`Call` is the word of the plugin SDK's public API; another is qualified: `CallContext`."""
    found = defaultdict(set)
    for file in sources():
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(str(file.relative_to(SOURCE)))
    twice = {name: files for name, files in found.items() if len(files) > 1}
    assert not twice, f"qualify these class names (`PolicyRule`, `ToolRule`): {twice}"


def test_a_file_name_exists_once_or_means_the_same_job() -> None:
    found = defaultdict(list)
    for file in sources():
        place = file.relative_to(SOURCE)
        if place.parts[0] != "cli" and place.name not in SAME_IN_EVERY_PACKAGE:
            found[place.name].append(str(place))
    twice = [files for files in found.values() if len(files) > 1]
    assert twice == SAME_NOUN, f"find other nouns: {twice}"


def test_files_are_named_by_nouns() -> None:
    places = {str(file.relative_to(SOURCE)) for file in sources() if file.stem.endswith("ing")}
    assert places == NOUNS, "name the thing that the file has, not what it does: a noun"


def test_every_package_has_its_place_in_the_drawing() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    unplaced = sorted(package for package in packages if layer_of(package) is None)
    assert not unplaced, f"say in LAYERS where these belong: {', '.join(unplaced)}"


def names_proc(source: str) -> bool:
    """Whether a string of the code, other than a docstring or a sentence, is a path in /proc."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return any(isinstance(text, str) and text.startswith(PROC) for text in strings)


def test_one_file_reads_proc() -> None:
    named = {str(f.relative_to(SOURCE)) for f in sources() if names_proc(f.read_text())}
    beside = named - {PROC_READER} - ALSO_NAME_PROC.keys()
    assert not beside, (
        f"add a function to {PROC_READER}, named for the field, and call it: {beside}"
    )
    assert named == {PROC_READER, *ALSO_NAME_PROC}, "this list is longer than it has to be"


def test_the_check_of_proc_sees_a_path_and_no_prose() -> None:
    assert names_proc('os.readlink(f"/proc/self/fd/{fd}")')
    assert names_proc('os.listdir("/dev/fd")')
    assert not names_proc('"""Reads /proc."""\nsay("It can read /proc.")')


def test_the_import_check_detects_each_forbidden_import() -> None:
    bad = [
        *imports_in("wire/demux.py", "import time\nimport msgspec\nfrom telex.rpc import peer"),
        *imports_in("htty/page.py", "def f():\n    from telex.agent.agent_run import AgentRun"),
        *imports_in("rpc/state.py", "from asyncio import Queue"),
        *imports_in("rpc/peer.py", "import asyncio\nfrom telex import transports"),
    ]
    assert len(upward(bad)) == 3
    assert [problem.partition(" ")[0] for problem in impure(bad)] == [
        "src/telex/wire/demux.py:1",
        "src/telex/rpc/state.py:1",
    ]
    assert len(beyond_the_stdlib(bad)) == 1
