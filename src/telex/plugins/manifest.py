"""A plugin's `manifest.json`: read from bytes, with every problem by its field.

The form is `plugin_v0.Manifest`; what its types cannot say is said here: where an executable may
lie, that a default fits its type, that no two things have one name. Where the file is, and who may
write to it, is for `finding`. Pure but for `read_manifest`, for whoever was given a path.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from telex.config.errors import ConfigError
from telex.config.places import read_file
from telex.plugins.fields import WHOLE, Checked, Problem, checked, shown
from telex.plugins.task_entries import declared, plain_entries
from telex.plugins.values import fit
from telex.protocols.plugin_v0 import Command, ConfigEntry, Flag, Manifest, Needs, Task
from telex.wire.limits import PLUGIN_MANIFEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

NAME: Final = "manifest.json"

_TOLD: Final = 50
"""Problems of one manifest, in the sentence about it."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FLAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHORTHAND: Final = re.compile(r"[A-Za-z0-9]")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class BadManifest(ValueError):
    """A manifest that cannot be used, with everything that is wrong with it."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        more = len(problems) - _TOLD
        told = [*map(str, problems[:_TOLD]), *([f"and {more} more"] if more > 0 else [])]
        super().__init__(f"{path}: {'; '.join(told)}")


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file. Raises BadManifest."""
    try:
        content = read_file(path)
    except ConfigError as error:
        raise BadManifest(path, [Problem(WHOLE, str(error))]) from error
    read_now = _bad("is not there") if content is None else read(content)
    if read_now.value is None:
        raise BadManifest(path, read_now.problems)
    return read_now.value


def read(content: bytes) -> Checked[Manifest]:
    """What the file says, or what is wrong with it."""
    if len(content) > PLUGIN_MANIFEST_BYTES:
        return _bad(f"is larger than {PLUGIN_MANIFEST_BYTES} bytes")
    try:
        document = msgspec.json.decode(content.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _bad(f"is not JSON: {error}")
    result = checked(Manifest, document)
    sound = result.value or _sound_part(document, result.problems)
    problems = (*result.problems, *_problems(sound))
    return Checked(None if problems else sound, problems, result.hints)


def _sound_part(document: object, problems: Iterable[Problem]) -> Manifest:
    """Of a manifest with problems, the members without: they may have others, all to be told."""
    members = document if isinstance(document, dict) else {}
    bad = {re.split(r"[.\[]", problem.field)[0] for problem in problems}
    rest = {name: its for name, its in members.items() if name not in bad}
    sound = checked(Manifest, {"name": "it", "executable": "it", **rest}).value
    assert sound is not None
    return sound


def _bad(problem: str) -> Checked[Manifest]:
    return Checked(None, (Problem(WHOLE, problem),))


def _problems(manifest: Manifest) -> Iterator[Problem]:
    if problem := executable_problem(manifest.executable):
        yield Problem("executable", problem)
    yield from entry_problems(manifest.config, "config")
    yield from command_problems(manifest.commands, "commands")
    types = [task.type or task.task_type or "" for task in manifest.tasks or ()]
    for at, name in enumerate(types):
        if not name:
            yield Problem(f"tasks[{at}].taskType", "is missing")
    yield from _twice((name for name in types if name), "tasks")
    for at, task in enumerate(manifest.tasks or ()):
        yield from task_problems(task, f"tasks[{at}]")
    needs = manifest.needs or Needs()
    for key, paths in (("read", needs.read), ("write", needs.write)):
        for at, path in enumerate(paths or ()):
            if not path or not path.isprintable():
                yield Problem(f"needs.{key}[{at}]", f"must be a path; it is {shown(path)}")


def executable_problem(path: str) -> str | None:
    """Why this cannot name a file in the manifest's directory. Links are for `finding`."""
    if not path or path.endswith("/"):
        return f"must name the file to run; it is {shown(path)}"
    if not path.isprintable():
        return "holds a control character; rename the file"
    if path.startswith("/"):
        return f"must be relative to the manifest, not absolute; it is {shown(path)}"
    if ".." in path.split("/"):
        return f"must stay in the manifest's directory, without ..; it is {shown(path)}"
    return None


def command_problems(commands: list[Command] | None, place: str) -> Iterator[Problem]:
    """What is wrong with commands and all below them, of a manifest or of a handshake."""
    names = [name for one in commands or () for name in (one.name, *(one.aliases or ()))]
    yield from _twice(names, place)
    for at, command in enumerate(commands or ()):
        yield from entry_problems(command.configs, f"{place}[{at}].configs")
        yield from entry_problems(command.config, f"{place}[{at}].config")
        yield from command_problems(command.commands, f"{place}[{at}].commands")


def task_problems(task: Task, place: str) -> Iterator[Problem]:
    """What is wrong with everything that a task takes, in tables and unions too."""
    of_task = declared(task, f"{place}.config")
    yield from of_task.problems
    for where, entries in plain_entries(of_task.entries, f"{place}.config"):
        in_union = where.endswith(".alternatives")
        for at, entry in enumerate(entries):
            for name, problem in _of_entry(entry):
                yield Problem(f"{where}[{at}].{name}", problem)
        if not in_union:  # there, one key may have several types
            yield from _twice((entry.key for entry in entries), where)


def entry_problems(entries: list[ConfigEntry] | None, place: str) -> Iterator[Problem]:
    """What is wrong with config entries, of a manifest or of a handshake."""
    yield from _twice((entry.key for entry in entries or ()), place)
    for at, entry in enumerate(entries or ()):
        for name, problem in _of_entry(entry):
            yield Problem(f"{place}[{at}].{name}", problem)


def _of_entry(entry: ConfigEntry) -> Iterator[tuple[str, str]]:
    if entry.value is not None and (problem := fit(entry.value, entry.type)):
        yield "value", f"{problem}, and its `type` is {entry.type}"
    if entry.env_override and not _VARIABLE.fullmatch(entry.env_override):
        yield "envOverride", f"must be a variable's name; it is {shown(entry.env_override)}"
    flag = entry.flag or Flag()
    if flag.name and not _FLAG.fullmatch(flag.name):
        yield "flag.name", f"must be letters, digits and hyphens; it is {shown(flag.name)}"
    if flag.shorthand and not _SHORTHAND.fullmatch(flag.shorthand):
        yield "flag.shorthand", f"must be one letter or digit; it is {shown(flag.shorthand)}"


def _twice(names: Iterable[str], place: str) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(place, f"has {count} of the name {shown(name)}; rename all but one")
