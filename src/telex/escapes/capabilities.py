"""Makes the response to `detect`, and reads the one of a terminal. Pure.

The capabilities must fit twice into the smallest frame: the spec's own spelling of `capabilities`
lacks an i, and both spellings are sent. So a complete system is one glob, and missing commands of a
system are in `exclude`. A response from another terminal may have members of any type, so each is
checked before use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

from telex.escapes.commands import COMMANDS, EVENTS
from telex.escapes.protocol import EscapeCommand, EscapeEvent

CORE: Final = "core"
"""The entry for commands that belong to no system: `detect`, `ping`."""
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
    """Make the response of a terminal with these commands and events.

    `cancel` is always included: it is a member of packets, which every implementation reads.

    Args:
        commands: The commands that the terminal executes.
        maxframe: The most bytes of JSON that the terminal reads in one frame.
        htty: Whether the terminal shows pages.
        events: The events that the terminal sends.
        unverified: Globs of commands and events of which the effect is unknown.
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
    """Return the highest level that is complete, with all levels below it; 0 if there is none."""
    levels = {command.level for command in known if command.level is not None}
    missing = [c.level for c in known if c.level is not None and c.name not in there]
    return max((level for level in levels if level < min(missing, default=99)), default=0)


def supports(answer: object, name: str) -> bool:
    """Whether a terminal with this response supports a command or an event.

    An `exclude` in any entry wins. An entry with a level and without a list includes the whole
    level. A glob stands for names that we know: `term:*` does not promise names of other
    implementations. A name that we do not know is supported if it is listed literally. An
    `unverified` name is supported: it is sent, and may have no effect.
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
    """Whether a glob matches a name. `*` is any run of characters, colons too; nothing else is
    special. Not a regular expression: a glob comes from the peer, and a hostile one must not take
    longer.
    """
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
