"""Fixtures: screens as text, the state that a plugin should return for each, and the comparison.

The fixtures of a plugin are TOML files in its directory `fixtures`, each with any number of cases:

    [paging]
    state = "paging"
    context.alternate_screen = true
    screen = '''
    line 1
    :
    '''

`read_fixtures` is for `telex adapter test`, `save_fixture` for `telex adapter record`. Existing
cases are never replaced. Fixtures are meant to be shared: the caller of `save_fixture` has masked
secrets.
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
"""The directory of fixtures, beside the manifest."""
RECORDED: Final = "recorded.toml"
"""The file to which `save_fixture` adds a case."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ABSENT: Final = "nothing"
"""The text for a missing value in a `FixtureDifference`."""

_SUFFIX: Final = ".toml"
_SCREEN: Final = "screen"
_HEADER: Final = re.compile(rf'^\[("?)({NAME.pattern})\1\]$', re.MULTILINE)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class BadFixture(Exception):
    """A case cannot be tested, or a file is not TOML."""


class FixtureTaken(Exception):
    """A case cannot be added: its name is in use, or a file in the directory is not TOML."""


class Expected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The expected result of `classify`. Members that are left out are not compared."""

    state: str
    rule: str | UnsetType = UNSET
    evidence: str | UnsetType = UNSET
    min_confidence: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    """Each member must be equal in the result, which may have more members."""
    last_intent: str | UnsetType | None = UNSET
    """The `last_intent` in the context."""
    context: dict[str, Any] | UnsetType = UNSET
    """Other members of the context, which replace the defaults of a fixture."""
    near_miss: bool = False
    """Whether the screen only looks like another state. For the reader, like `note`."""
    note: str | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Fixture:
    """A screen with its expected state."""

    name: str
    text: str
    expected: Expected

    def context(self) -> dict[str, Any]:
        """Return the context that is passed to the plugin."""
        given: dict[str, Any] = msgspec.to_builtins(self.expected)
        return fixture_context(self.text, given)


@dataclass(frozen=True, slots=True)
class FixtureDifference:
    """One field whose value differs from the expected value, both as text."""

    field: str
    wanted: str
    got: str


def parse_fixtures(text: str) -> tuple[list[Fixture], list[str]]:
    """Return the cases of a file in order, and a message for each unusable case. Raises BadFixture
    if the text is not TOML."""
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
    except tomllib.TOMLDecodeError as error:
        raise BadFixture(f"this is not TOML: {error}") from None


def _fixture(name: str, case: object) -> Fixture:
    """Convert a case. An unknown member is an error: a misspelled one would test nothing."""
    if not isinstance(case, dict):
        raise BadFixture(f"a case is a table, as in [{name}]")
    if not isinstance(screen := case.get(_SCREEN), str):
        raise BadFixture("it has no `screen`, which is the screen's text")
    rest = {key: value for key, value in case.items() if key != _SCREEN}
    try:
        return Fixture(name, screen, msgspec.convert(rest, Expected))
    except msgspec.ValidationError as error:
        raise BadFixture(str(error)) from None


def encode_fixture(fixture: Fixture) -> str:
    """Return the fixture as a TOML table."""
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
    """Return a TOML string of several lines: a literal string if possible, else escaped."""
    if not text:
        return '""'
    if not (_CONTROL.search(text) or "'''" in text or text.endswith("'")):
        return f"'''\n{text}'''"
    escaped = "\n".join(_value(line)[1:-1] for line in text.split("\n"))
    return f'"""\n{escaped}"""'


def differences(expected: Expected, got: AdapterState) -> list[FixtureDifference]:
    """Return the fields of a state that differ from the expected ones."""
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
    """Yield the innermost places that differ: of a long list of options only the one option."""
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
    """Return the fixtures of a directory by name, and a message for each unusable one."""
    found: dict[str, tuple[str, Fixture]] = {}
    problems: list[str] = []
    for path, text in _files(directory):
        try:
            fixtures, unusable = parse_fixtures(text)
        except BadFixture as bad:
            problems.append(f"{path.name}: {bad}")
            continue
        problems += (f"{path.name}: {problem}" for problem in unusable)
        for one in fixtures:
            first, _ = found.setdefault(one.name, (path.name, one))
            if first != path.name:
                problems.append(f"{path.name}: {one.name} is in {first} already")
    return [found[name][1] for name in sorted(found)], problems


def free_name(directory: Path) -> str:
    """Return the next unused number, as a name."""
    names = [header[1] for _, text in _files(directory) for header in _HEADER.findall(text)]
    return f"{max([int(name) for name in names if name.isdecimal()], default=0) + 1:03}"


def save_fixture(directory: Path, name: str, text: str, expected: Expected) -> Path:
    """Add a case to `recorded.toml` and return its path. Raises FixtureTaken."""
    directory.mkdir(parents=True, exist_ok=True)
    there = ""
    for path, content in _files(directory):
        try:
            taken = name in _cases(content)
        except BadFixture as bad:
            raise FixtureTaken(f"{path.name}: {bad}; correct it first") from None
        if taken:
            raise FixtureTaken(f"{path.name} already has a {name}; choose another name")
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
