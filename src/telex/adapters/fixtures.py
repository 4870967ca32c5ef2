"""Fixtures: a screen kept as text, what a plugin is to say of it, and how that differs.

A fixture is two files: `NAME.txt`, the screen, and `NAME.expected.json`. Pure: `fixture_files`
reads and writes them; `telex adapter test` shows what comes out of here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from telex.adapters.context import fixture_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from telex.adapters.protocol import AdapterState


SCREEN: Final = ".txt"
EXPECTED: Final = ".expected.json"
ABSENT: Final = "nothing"
"""How a value that is not there is shown."""


class BadFixture(Exception):
    """A pair that says nothing that can be tested."""


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


def collect(files: Mapping[str, str]) -> tuple[list[Fixture], list[str]]:
    """The fixtures among some files, by name, and a sentence for each that is none."""
    names = {name.removesuffix(SCREEN) for name in files if name.endswith(SCREEN)}
    told = {name.removesuffix(EXPECTED) for name in files if name.endswith(EXPECTED)}
    problems = [f"{name}{SCREEN} has no {name}{EXPECTED} beside it" for name in names - told]
    problems += [f"{name}{EXPECTED} has no {name}{SCREEN} beside it" for name in told - names]
    found: list[Fixture] = []
    for name in sorted(names & told):
        try:
            found.append(
                Fixture(name, files[name + SCREEN], parse_expected(files[name + EXPECTED]))
            )
        except BadFixture as bad:
            problems.append(f"{name}{EXPECTED} cannot be used: {bad}")
    return found, sorted(problems)


def parse_expected(text: str) -> Expected:
    """What an expectation says. Raises BadFixture; a name nobody knows is a mistake too, and would
    otherwise be a test that tests nothing."""
    try:
        return msgspec.json.decode(text, type=Expected)
    except msgspec.MsgspecError as wrong:
        raise BadFixture(str(wrong)) from None


def encode_expected(expected: Expected) -> str:
    """The same as a file."""
    return json.dumps(msgspec.to_builtins(expected), indent=2, ensure_ascii=False) + "\n"


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


# Fixtures on the disk: read for `telex adapter test`, written by `telex adapter record`.
#
# Nothing here replaces a file. What is written is meant to be shared, so its writer has taken the
# secrets out.


DIRECTORY: Final = "fixtures"
"""Beside the manifest."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class FixtureTaken(Exception):
    """A fixture of that name is there already."""


def read_fixtures(directory: Path) -> tuple[list[Fixture], list[str]]:
    """Those in a directory, by name, and a sentence for each file that is not one of a pair."""
    if not directory.is_dir():
        return [], []
    return collect(
        {
            path.name: path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(directory.iterdir())
            if path.name.endswith((SCREEN, EXPECTED))
        }
    )


def free_name(directory: Path) -> str:
    """The next number that nobody has."""
    taken = [path.name.partition(".")[0] for path in directory.glob("*.*")]
    return f"{max([int(name) for name in taken if name.isdecimal()], default=0) + 1:03}"


def save_fixture(directory: Path, name: str, text: str, expected: Expected) -> Path:
    """Write a pair; the path of its screen. Raises FixtureTaken."""
    directory.mkdir(parents=True, exist_ok=True)
    screen, told = directory / f"{name}{SCREEN}", directory / f"{name}{EXPECTED}"
    if told.exists():
        raise FixtureTaken(f"{told.name} is there already; choose another name")
    try:
        with screen.open("x", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")
    except FileExistsError:
        raise FixtureTaken(f"{screen.name} is there already; choose another name") from None
    with told.open("x", encoding="utf-8") as file:
        file.write(encode_expected(expected))
    return screen
