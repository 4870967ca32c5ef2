"""A plugin's manifest, from TOML or from data, and every problem of a manifest.

The author of a manifest gets all problems at once, with the names of the fields as written. msgspec
stops at the first problem, so each field is checked separately. Unknown fields are ignored: a
manifest may also be for a newer host.

Pure. `lua_plugin` reads the file; `plugin.validate_manifest` calls `check`.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from telex.adapters.protocol import (
    PERMISSIONS,
    CoreIntents,
    DefaultTarget,
    Kind,
    Manifest,
    Permission,
)
from telex.config.errors import kind_in_words
from telex.config.limits import MANIFEST_ITEMS
from telex.terminal.actions import Cols, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

WHOLE: Final = "(manifest)"
"""Used as the field's name if the problem is in no field."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,80}(\[\d+\])?")
"""A key, with the index for an item of a list."""
_PATH_CHARS: Final = 255
"""The maximum of a file name on Linux, which is enough for a path in a plugin."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """A problem of one field, with the remedy."""

    field: str
    """The field as written: `default_target.rows`, `permissions[2]`."""
    problem: str

    def __str__(self) -> str:
        return f"`{self.field}`: {self.problem}"


class BadManifest(ValueError):
    """A manifest cannot be used. `problems` has all its problems."""

    def __init__(self, problems: Iterable[ManifestProblem], where: str = "the manifest") -> None:
        self.problems = tuple(problems)
        super().__init__(f"{where} cannot be used: " + ". ".join(map(str, self.problems)))


def parse(text: str) -> Manifest:
    """Parse a `manifest.toml`. Raises BadManifest."""
    try:
        # Without a final newline, tomllib reports an error in the last line without its position.
        document = tomllib.loads(text + "\n")
    except (ValueError, RecursionError) as error:
        raise BadManifest([ManifestProblem(WHOLE, f"this is not TOML: {error}")]) from error
    return check(document)


def check(document: Mapping[str, object]) -> Manifest:
    """Check a manifest given as data. Null means absent. Raises BadManifest."""
    problems: list[ManifestProblem] = []
    table = _ManifestTable(document, problems)
    name = table.text("name", _name_problem)
    kind = table.text("kind", _kind_problem)
    version = table.text("version", _version_problem)
    runtime, entrypoint = _runtime_and_entrypoint(table)
    permissions = _permissions(table)
    default_target = _default_target(table)
    core = _core(table)
    if problems:
        raise BadManifest(problems)
    return Manifest(
        name=name,
        kind=_KINDS[kind],
        version=version,
        runtime=runtime,
        entrypoint=entrypoint,
        permissions=permissions,
        default_target=default_target,
        core=core,
    )


# Fields.


def _name_problem(name: str) -> str | None:
    if _NAME.fullmatch(name):
        return None
    return (
        "must be 1 to 64 letters, digits, dots, hyphens and underscores, "
        f"with a letter or digit first; it is {_shown(name)}"
    )


_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}


def _kind_problem(kind: str) -> str | None:
    if kind in _KINDS:
        return None
    return f"must be one of {', '.join(_KINDS)}; it is {_shown(kind)}"


def _version_problem(version: str) -> str | None:
    if version.strip() and version.isprintable() and len(version) <= 64:
        return None
    return f'must be 1 to 64 printable characters, such as "1.0"; it is {_shown(version)}'


def _runtime_and_entrypoint(table: _ManifestTable) -> tuple[Literal["lua"] | None, str | None]:
    """Read both or neither. A manifest without both only describes; one alone is a problem."""
    runtime = table.get("runtime")
    if runtime == "wasm":
        table.add("runtime", 'wasm is reserved and not supported yet; write "lua"')
    elif runtime not in (None, "lua"):
        table.add("runtime", f'must be "lua"; it is {_shown(runtime)}')
    entrypoint = table.text("entrypoint", entrypoint_problem, required=False)
    given = table.get("entrypoint") is not None
    if runtime is not None and not given:
        table.add("entrypoint", 'is missing; name the Lua file to run, such as "main.lua"')
    if runtime is None and given:
        table.add("runtime", 'is missing; to run the entrypoint, write runtime = "lua"')
    # `./main.lua` becomes `main.lua`, because files are looked up by this spelling.
    return ("lua" if given else None), (str(PurePosixPath(entrypoint)) if given else None)


def entrypoint_problem(path: str) -> str | None:
    """Return why this path cannot name a file below the manifest, or None. Links are checked when
    the file is opened."""
    names = path.split("/")
    if not path:
        return 'must name the Lua file to run, such as "main.lua"; it is empty'
    if len(path) > _PATH_CHARS:
        return f"must have at most {_PATH_CHARS} characters; it has {len(path)}"
    if _CONTROL.search(path):
        return f"contains a control character; rename the file: {_shown(path)}"
    if "\\" in path:
        return f"contains a backslash; write / between directories: {_shown(path)}"
    if path.startswith("/"):
        return f"must be relative to the manifest, not absolute; it is {_shown(path)}"
    if ".." in names:
        return f"must stay in the manifest's directory, without ..; it is {_shown(path)}"
    if names[-1] in ("", "."):
        return f"names a directory; name the Lua file in it: {_shown(path)}"
    return None


def _permissions(table: _ManifestTable) -> tuple[Permission, ...]:
    seen: dict[Permission, str] = {}
    for place, value in table.items("permissions"):
        permission = next((known for known in PERMISSIONS if known == value), None)
        if permission is None:
            there = ", ".join(PERMISSIONS)
            table.add(place, f"{_shown(value)} is not a permission; there are {there}")
        elif permission in seen:
            table.add(place, f"{permission} is already at {seen[permission]}; remove one")
        else:
            seen[permission] = place
    return tuple(seen)


def _default_target(table: _ManifestTable) -> DefaultTarget | None:
    target = table.table("default_target")
    if target is None:
        return None
    return DefaultTarget(
        program=target.text("program", _program_problem),
        args=tuple(value for place, value in target.items("args") if target.word(place, value)),
        rows=target.number("rows", Rows),
        cols=target.number("cols", Cols),
        env=_variables(target, "env"),
        required_env=_variables(target, "required_env"),
    )


def _program_problem(program: str) -> str | None:
    if program and "\0" not in program:
        return None
    return 'must be a program\'s name or path without a NUL, such as "bash"'


def _variables(target: _ManifestTable, key: str) -> dict[str, str]:
    table = target.table(key)
    if table is None:
        return {}
    for name in table.values:
        if not name or "=" in name or "\0" in name:
            table.add(name, "is not a valid variable name; it is empty or contains = or a NUL")
    return {name: value for name, value in table.values.items() if table.word(name, value)}


def _core(table: _ManifestTable) -> CoreIntents | UnsetType:
    core = table.table("core")
    if core is None:
        return UNSET
    core.get("ready", required=True)
    answer = core.text("answer", _word_problem, required=False)
    command = core.text("command", _word_problem, required=False)
    return CoreIntents(
        prompt=core.text("prompt", _word_problem),
        prompt_param=core.text("prompt_param", _word_problem),
        interrupt=core.text("interrupt", _word_problem),
        ready=tuple(word for place, word in core.items("ready") if core.word(place, word)),
        said=core.text("said", _word_problem),
        command=command or None,
        command_param=core.text("command_param", _word_problem, required=bool(command)) or None,
        choose=core.text("choose", _word_problem, required=False) or None,
        dismiss=core.text("dismiss", _word_problem, required=False) or None,
        answer=answer or None,
        answer_param=core.text("answer_param", _word_problem, required=bool(answer)) or None,
    )


def _word_problem(word: str) -> str | None:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", word):
        return None
    return f"must be the name of a function, a parameter or a member; it is {_shown(word)}"


# How a table is read.


@dataclass(frozen=True, slots=True)
class _ManifestTable:
    """One table, and the list to which its problems are added. A method returns an empty value for
    a bad one: after a problem the values are not used."""

    values: Mapping[str, Any]
    problems: list[ManifestProblem]
    prefix: str = ""

    def add(self, key: str, problem: str) -> None:
        """Add a problem."""
        self.problems.append(ManifestProblem(self.prefix + _spelt(key), problem))

    def get(self, key: str, *, required: bool = False) -> object:
        value = self.values.get(key)
        if value is None and required:
            self.add(key, "is missing")
        return value

    def text(
        self, key: str, problem_with: Callable[[str], str | None], *, required: bool = True
    ) -> str:
        match self.get(key, required=required):
            case None:
                return ""
            case str(text):
                if problem := problem_with(text):
                    self.add(key, problem)
                return text
            case other:
                self.add(key, f"must be text; it is {kind_in_words(other)}")
                return ""

    def word(self, key: str, value: object) -> bool:
        """Check an argument or a variable's value. It is never shown, as it may be a secret."""
        if not isinstance(value, str):
            self.add(key, f"must be text; it is {kind_in_words(value)}")
            return False
        if "\0" in value:
            self.add(key, "contains a NUL, which cannot be passed to a program")
        return True

    def number(self, key: str, annotated: Any) -> int | None:
        value = self.get(key)
        try:
            fitting: int | None = msgspec.convert(value, annotated | None)
        except msgspec.ValidationError:
            _, range_ = get_args(annotated)
            wanted = f"must be a whole number from {range_.ge} to {range_.le}"
            self.add(key, f"{wanted}; it is {_shown(value)}")
            return None
        return fitting

    def items(self, key: str) -> Iterator[tuple[str, Any]]:
        """Yield each item of a list, with its key and index."""
        values = self.get(key)
        if isinstance(values, (list, tuple)):
            if self._few(key, len(values)):
                yield from ((f"{key}[{at}]", value) for at, value in enumerate(values))
        elif values is not None:
            self.add(key, f"must be a list; it is {kind_in_words(values)}")

    def table(self, key: str) -> _ManifestTable | None:
        values = self.get(key)
        if isinstance(values, dict):
            if self._few(key, len(values)):
                return _ManifestTable(values, self.problems, f"{self.prefix}{key}.")
        elif values is not None:
            self.add(key, f"must be a table; it is {kind_in_words(values)}")
        return None

    def _few(self, key: str, count: int) -> bool:
        if count > MANIFEST_ITEMS:
            self.add(key, f"has {count} items; {MANIFEST_ITEMS} are allowed")
        return count <= MANIFEST_ITEMS


def _spelt(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _shown(key)


def _shown(value: object) -> str:
    if not isinstance(value, (str, int, float)):
        return kind_in_words(value)
    if isinstance(value, int) and value.bit_length() > 64:  # Python may refuse to format it
        return "a large number"
    shown = json.dumps(value)
    return shown if len(shown) <= 80 else f"{kind_in_words(value)} of {len(shown)} characters"
