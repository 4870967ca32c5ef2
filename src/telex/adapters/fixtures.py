"""Fixtures: screens kept as text, what a plugin is to say of each, and how its answer differs.

The fixtures of a plugin are TOML files in its directory `fixtures`, each with any number of cases:

    [paging]
    state = "paging"
    context.alternate_screen = true
    screen = '''
    line 1
    :
    '''

`read_fixtures` is for `telex adapter test`, `save_fixture` for `telex adapter record`. Nothing that
is there is replaced. What is written is meant to be shared: its writer has masked the secrets.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from telex.adapters.context import fixture_context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.adapters.protocol import AdapterState

DIRECTORY: Final = "fixtures"
"""Beside the manifest."""
RECORDED: Final = "recorded.toml"
"""Where `save_fixture` adds a case."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ABSENT: Final = "nothing"
"""How a value that is not there is shown."""

_SUFFIX: Final = ".toml"
_SCREEN: Final = "screen"
_HEADER: Final = re.compile(rf'^\[("?)({NAME.pattern})\1\]$', re.MULTILINE)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class BadFixture(Exception):
    """A case that says nothing that can be tested, or a file that has no cases."""


class FixtureTaken(Exception):
    """A case cannot be added: there is one of its name, or a file there cannot be read."""


class Expected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a plugin is to say of a screen. What is left out is not looked at."""

    state: str
    rule: str | UnsetType = UNSET
    evidence: str | UnsetType = UNSET
    min_confidence: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    """Each of these is to be the same in the answer, which may have more."""
    last_intent: str | UnsetType | None = UNSET
    """What the adapter was last told to do, as the plugin is shown it."""
    context: dict[str, Any] | UnsetType = UNSET
    """What else the plugin is shown, in place of what a fixture has by default."""
    near_miss: bool = False
    """Whether it only looks like another state. For whoever reads it, as is the note."""
    note: str | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Fixture:
    """A screen, and what is expected of it."""

    name: str
    text: str
    expected: Expected

    def shown(self) -> dict[str, Any]:
        """What the plugin is shown of it."""
        given: dict[str, Any] = msgspec.to_builtins(self.expected)
        return fixture_context(self.text, given)


@dataclass(frozen=True, slots=True)
class FixtureDifference:
    """One place where an answer is not what was expected, both as they are shown."""

    field: str
    wanted: str
    got: str


def parse_fixtures(text: str) -> tuple[list[Fixture], list[str]]:
    """The cases of a file, in its order, and a sentence for each that cannot be used. Raises
    BadFixture where the text is not TOML."""
    found: list[Fixture] = []
    problems: list[str] = []
    for name, case in _cases(text).items():
        try:
            found.append(_fixture(name, case))
        except BadFixture as bad:
            problems.append(f"{name} cannot be used: {bad}")
    return found, problems


def _cases(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise BadFixture(f"this is not TOML: {wrong}") from None


def _fixture(name: str, case: object) -> Fixture:
    """A name nobody knows is a mistake too, and would otherwise be a test that tests nothing."""
    if not isinstance(case, dict):
        raise BadFixture(f"a case is a table, as in [{name}]")
    if not isinstance(screen := case.get(_SCREEN), str):
        raise BadFixture("it has no `screen`, which is the screen's text")
    rest = {key: value for key, value in case.items() if key != _SCREEN}
    try:
        return Fixture(name, screen, msgspec.convert(rest, Expected))
    except msgspec.ValidationError as wrong:
        raise BadFixture(str(wrong)) from None


def encode_fixture(fixture: Fixture) -> str:
    """The same as text: a table of TOML."""
    lines = [f"[{_key(fixture.name)}]"]
    for key, value in msgspec.to_builtins(fixture.expected).items():
        if isinstance(value, dict) and value:
            lines += (f"{key}.{_key(name)} = {_value(its)}" for name, its in value.items())
        elif value is not None:
            lines.append(f"{key} = {_value(value)}")
    lines.append(f"{_SCREEN} = {_block(fixture.text)}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    match value:
        case dict():
            members = (f"{_key(key)} = {_value(its)}" for key, its in value.items())
            return f"{{ {', '.join(members)} }}" if value else "{}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _block(text: str) -> str:
    """Text of several lines: as it is, where TOML takes it so."""
    if not text:
        return '""'
    if not (_CONTROL.search(text) or "'''" in text or text.endswith("'")):
        return f"'''\n{text}'''"
    escaped = "\n".join(_value(line)[1:-1] for line in text.split("\n"))
    return f'"""\n{escaped}"""'


def differences(expected: Expected, got: AdapterState) -> list[FixtureDifference]:
    """Where an answer is not what was expected; none where it is."""
    found = [
        FixtureDifference(field, _shown(wanted), _shown(getattr(got, field)))
        for field in ("state", "rule", "evidence")
        for wanted in (getattr(expected, field),)
        if wanted is not UNSET and wanted != getattr(got, field)
    ]
    least = expected.min_confidence
    if least is not UNSET and got.confidence < least:
        found.append(FixtureDifference("confidence", f"at least {least:g}", f"{got.confidence:g}"))
    if expected.metadata is not UNSET:
        for key, value in expected.metadata.items():
            found += _unequal(f"metadata.{key}", value, got.metadata.get(key, UNSET))
    return found


def _unequal(place: str, wanted: Any, got: Any) -> Iterator[FixtureDifference]:
    """The innermost places that differ: in a long list of options, the one that does."""
    match wanted, got:
        case dict(), dict():
            for key in {**wanted, **got}:
                both = wanted.get(key, UNSET), got.get(key, UNSET)
                yield from _unequal(f"{place}.{key}", *both)
        case list(), list() if len(wanted) == len(got):
            for at, both in enumerate(zip(wanted, got, strict=True)):
                yield from _unequal(f"{place}[{at}]", *both)
        case _ if wanted != got or isinstance(wanted, bool) is not isinstance(got, bool):
            yield FixtureDifference(place, _shown(wanted), _shown(got))


def _shown(value: Any) -> str:
    return ABSENT if value is UNSET else json.dumps(value, ensure_ascii=False)


def read_fixtures(directory: Path) -> tuple[list[Fixture], list[str]]:
    """Those in a directory, by name, and a sentence for each that cannot be used."""
    found: dict[str, tuple[str, Fixture]] = {}
    problems: list[str] = []
    for path, text in _files(directory):
        try:
            fixtures, wrong = parse_fixtures(text)
        except BadFixture as bad:
            problems.append(f"{path.name}: {bad}")
            continue
        problems += (f"{path.name}: {problem}" for problem in wrong)
        for one in fixtures:
            first, _ = found.setdefault(one.name, (path.name, one))
            if first != path.name:
                problems.append(f"{path.name}: {one.name} is in {first} already")
    return [found[name][1] for name in sorted(found)], problems


def free_name(directory: Path) -> str:
    """The next number that nobody has."""
    names = [header[1] for _, text in _files(directory) for header in _HEADER.findall(text)]
    return f"{max([int(name) for name in names if name.isdecimal()], default=0) + 1:03}"


def save_fixture(directory: Path, name: str, text: str, expected: Expected) -> Path:
    """Add a case to `recorded.toml`; the path of that. Raises FixtureTaken."""
    directory.mkdir(parents=True, exist_ok=True)
    there = ""
    for path, content in _files(directory):
        try:
            taken = name in _cases(content)
        except BadFixture as bad:
            raise FixtureTaken(f"{path.name}: {bad}; mend it first") from None
        if taken:
            raise FixtureTaken(f"{path.name} has a {name} already; choose another name")
        there = content if path.name == RECORDED else there
    entry = encode_fixture(Fixture(name, text.rstrip("\n") + "\n", expected))
    path = directory / RECORDED
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if not there else "\n" if there.endswith("\n") else "\n\n") + entry)
    return path


def _files(directory: Path) -> Iterator[tuple[Path, str]]:
    if directory.is_dir():
        for path in sorted(directory.glob(f"*{_SUFFIX}")):
            yield path, path.read_text(encoding="utf-8", errors="replace")
