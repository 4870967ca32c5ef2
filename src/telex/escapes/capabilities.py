"""The answer to `detect`: making ours, and reading a terminal's. Pure.

The answer goes through a terminal and must fit the smallest frame there is, twice: the spec's own
spelling of `capabilities` lacks an i, and both spellings are sent. So a system that is there as a
whole is one glob, and what it lacks is in `exclude`. In an answer from elsewhere any member may
have any type, so each is checked before use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

from telex.escapes.commands import COMMANDS, EVENTS
from telex.escapes.protocol import EscapeCommand, EscapeEvent

CORE: Final = "core"
"""Where commands are listed that belong to no system: `detect`, `ping`."""
SPELLINGS: Final = ("capabilities", "capabilties")

_Capability = dict[str, int | list[str]]


def detect_answer(
    commands: Iterable[EscapeCommand],
    *,
    maxframe: int,
    htty: bool,
    events: Iterable[EscapeEvent] = tuple(EVENTS.values()),
    unverified: Iterable[str] = (),
) -> dict[str, object]:
    """The answer of a terminal that does these commands and tells these events; of those that are
    `unverified` it does not know whether they have an effect.

    `cancel` is always there: it is a member of packets, and whoever reads them reads it.
    """
    there = {command.name: command for command in commands}
    found: dict[str, _Capability] = {"cancel": {"level": 1}}
    for system, known in groupby(sorted(COMMANDS.values(), key=_system), key=_system):
        if capability := _capability(system, list(known), there):
            found[system] = capability
    if names := [event.name for event in events]:
        found["event"] = {"include": names if len(names) < len(EVENTS) else ["event:*"]}
    for system, globs in groupby(sorted(unverified), key=lambda glob: glob.partition(":")[0]):
        if system in found:
            found[system]["unverified"] = list(globs)
    if htty:
        found["htty"] = {"level": 1}
    return {**dict.fromkeys(SPELLINGS, found), "maxframe": maxframe}


def _system(command: EscapeCommand) -> str:
    return command.system if ":" in command.name else CORE


def _capability(
    system: str, known: list[EscapeCommand], there: Mapping[str, EscapeCommand]
) -> _Capability | None:
    include = [command.name for command in known if command.name in there]
    exclude = [command.name for command in known if command.name not in there]
    if not include:
        return None
    found: _Capability = {}
    if level := _level(known, there):
        found["level"] = level
    if system == CORE or len(exclude) > len(include):
        return {**found, "include": include}
    return {**found, "include": [f"{system}:*"], **({"exclude": exclude} if exclude else {})}


def _level(known: list[EscapeCommand], there: Mapping[str, EscapeCommand]) -> int:
    """The highest level of which, and below which, nothing is missing; 0 if there is none."""
    levels = {command.level for command in known if command.level is not None}
    missing = [c.level for c in known if c.level is not None and c.name not in there]
    return max((level for level in levels if level < min(missing, default=99)), default=0)


def supports(answer: object, name: str) -> bool:
    """Whether a terminal that answered this does that command, or tells that event.

    What is excluded anywhere is not there. What says a level and lists nothing has all of it. A
    glob means the names that we know: `term:*` is no promise of what somebody makes up. A name that
    we do not know is there if it is listed as it is. What is there and `unverified` is supported:
    it is passed on, and may do nothing.
    """
    listed = _capabilities(answer)
    if any(_listed(entry, "exclude", name) for _, entry in listed):
        return False
    if name not in COMMANDS and name not in EVENTS:
        return any(_named(entry, name) for _, entry in listed)
    return any(
        _listed(entry, "include", name) or _leveled(system, entry, name) for system, entry in listed
    )


def _capabilities(answer: object) -> list[tuple[str, Mapping[str, object]]]:
    if not isinstance(answer, Mapping):
        return []
    given = [answer[key] for key in SPELLINGS if isinstance(answer.get(key), Mapping)]
    entries = given[0].items() if given else ()
    return [(system, entry) for system, entry in entries if isinstance(entry, Mapping)]


def _listed(entry: Mapping[str, object], member: str, name: str) -> bool:
    globs = entry.get(member)
    return isinstance(globs, (list, tuple)) and any(
        isinstance(glob, str) and glob_matches(glob, name) for glob in globs
    )


def _named(entry: Mapping[str, object], name: str) -> bool:
    include = entry.get("include")
    return isinstance(include, (list, tuple)) and name in include


def _leveled(system: str, entry: Mapping[str, object], name: str) -> bool:
    command, level = COMMANDS.get(name), entry.get("level")
    if command is None or command.level is None or "include" in entry:
        return False
    return _system(command) == system and type(level) is int and command.level <= level


def glob_matches(glob: str, name: str) -> bool:
    """Whether a glob means this name. `*` is any run of characters, colons too; nothing else is
    special. No regex: a glob comes from the other side, and this takes no longer for a bad one."""
    first, *rest = glob.split("*")
    if not rest:
        return glob == name
    last = rest.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in rest:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return name.endswith(last)
