"""Files, variables and flags as layers of values, and the precedence between them.

All functions here are pure: texts and environment are arguments, and each value keeps its origin.
An unknown key is a warning, so that one file may serve a newer and an older telex; a value that
does not fit is an exception that names the place.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.config.errors import BrokenToml, UnknownSetting, Unreadable, WrongValue, kind_in_words
from telex.config.settings import TABLE, Setting, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Source(StrEnum):
    """The sources of values, weakest first."""

    DEFAULT = "default"
    USER = "user file"
    PROJECT = "project file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a value, and where in it the value stands."""

    source: Source
    where: str = ""
    """The path, the variable or the flag; empty for a default."""

    def __str__(self) -> str:
        return f"{self.source} {self.where}".rstrip()


@dataclass(frozen=True, slots=True)
class Given:
    """One value from one source, already converted to the right type."""

    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class Layer:
    """All values from one source, by dotted key."""

    given: Mapping[str, Given]
    warnings: tuple[str, ...] = ()


EMPTY: Final = Layer({})


@dataclass(frozen=True, slots=True)
class Value:
    """The effective value of one setting, and every origin that contributed to it."""

    setting: Setting
    value: Any
    origins: tuple[Origin, ...]


def from_file(content: bytes, origin: Origin) -> Layer:
    """Read a `config.toml`. Unknown keys are warnings; other mistakes raise, with their place."""
    given: dict[str, Given] = {}
    warnings: list[str] = []
    for key, value in _leaves(_parse(content, origin.where)):
        if setting := TABLE.get(key):
            given[key] = Given(_typed(setting, value, f"{origin.where}: {key}"), origin)
        elif key in _SECTIONS:
            raise WrongValue(f"{origin.where}: {key} must be a table; it is {_kind(value)}")
        elif key.partition(".")[0] not in _OF_OTHERS:
            warnings.append(f"{origin.where}: unknown key {key}{_hint(key)}")
    return Layer(given, tuple(warnings))


def from_environment(environ: Mapping[str, str]) -> Layer:
    """Read `TELEX_<SECTION>_<KEY>`. An empty variable counts as unset, as with XDG variables."""
    given: dict[str, Given] = {}
    known = {one.variable: one for one in TABLE.values() if one.read is None}
    for variable, setting in known.items():
        if text := environ.get(variable):
            origin = Origin(Source.ENVIRONMENT, variable)
            given[setting.key] = Given(_from_text(setting, text, variable), origin)
    return Layer(given, tuple(_misspelt(environ, known)))


def from_flags(pairs: Iterable[tuple[str, str]], flag: str = "--set") -> Layer:
    """Read `KEY=VALUE` pairs. An unknown key is an error here: the person just typed it."""
    given: dict[str, Given] = {}
    for key, text in pairs:
        if key not in TABLE:
            raise UnknownSetting(f"unknown setting {key}{_hint(key)}")
        if TABLE[key].read is not None:
            raise UnknownSetting(f"{key} can only be set in a file; see `telex config path`")
        given[key] = Given(_from_text(TABLE[key], text, key), Origin(Source.FLAG, flag))
    return Layer(given)


def merge(layers: Iterable[Layer]) -> tuple[Value, ...]:
    """Return every setting once, from layers given weakest first."""
    stack = tuple(layers)
    return tuple(_effective(setting, stack) for setting in TABLE.values())


def settings_of(values: Iterable[Value]) -> Settings:
    """Return the structs that the rest of telex reads."""
    tree: dict[str, Any] = {}
    for value in values:
        *sections, name = value.setting.key.split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = value.value
    return msgspec.convert(tree, Settings)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known key nearest to `word`: by the whole spelling, else by the last part."""
    whole = {key: key for key in known}
    last = {key.rpartition(".")[2]: key for key in whole}
    for spelling, keys in ((word, whole), (word.rpartition(".")[2], last)):
        alike = 0.75 if len(spelling) > 3 else 0.6  # one wrong letter of three
        for close in difflib.get_close_matches(spelling, keys, 1, cutoff=alike):
            return keys[close]
    return None


def _effective(setting: Setting, stack: tuple[Layer, ...]) -> Value:
    given = [layer.given[setting.key] for layer in stack if setting.key in layer.given]
    if not given:
        return Value(setting, setting.default, (Origin(Source.DEFAULT),))
    if not setting.adds_up:
        return Value(setting, given[-1].value, (given[-1].origin,))
    if setting.read is not None:
        tables = {name: table for one in given for name, table in one.value.items()}
        return Value(setting, tables, tuple(one.origin for one in given))
    joined = dict.fromkeys(item for one in given for item in one.value)
    return Value(setting, tuple(joined), tuple(one.origin for one in given))


_OF_OTHERS: Final = frozenset(("plugins", "permission"))
"""Sections read elsewhere: `telex.plugins.config_values`, `telex.agent.permissions.tool_rules`."""
_SECTIONS: Final = frozenset(key.rpartition(".")[0] for key in TABLE) - {""}


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and values. A known key ends the descent, even if its value is a table."""
    for name, value in table.items():
        key = prefix + name
        if key in TABLE or not isinstance(value, dict):
            yield key, value
        elif value:
            yield from _leaves(value, key + ".")
        elif key not in _SECTIONS:
            yield key, value


def _parse(content: bytes, where: str) -> dict[str, Any]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{where}:{line}: this is not UTF-8 text") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenToml(_located(str(error), text, where)) from error


def _located(message: str, text: str, where: str) -> str:
    """Move the position out of tomllib's message: editors parse `file:line:column: message`."""
    what, _, position = message.rpartition(" (at ")
    if numbers := re.fullmatch(r"line (\d+), column (\d+)\)", position):
        return f"{where}:{numbers[1]}:{numbers[2]}: {what}"
    if position == "end of document)":
        lines = text.split("\n")
        return f"{where}:{len(lines)}:{len(lines[-1]) + 1}: {what}"
    return f"{where}: {message}"


def _from_text(setting: Setting, text: str, where: str) -> Any:
    """Read a value from a variable or flag: a list has commas, or is TOML if it begins with `[`."""
    if not setting.is_list:
        return _typed(setting, text, where)
    if not text.startswith("["):
        return _typed(setting, [item.strip() for item in text.split(",") if item.strip()], where)
    try:
        return _typed(setting, tomllib.loads(f"list = {text}")["list"], where)
    except (ValueError, RecursionError):
        # Not chained: this may be a secret, and a traceback would show it.
        raise WrongValue(f"{where} must be {setting.expected}; it is not a TOML list") from None


def _typed(setting: Setting, value: object, where: str) -> Any:
    if setting.read is not None:
        return setting.read(value, where)
    try:
        return msgspec.convert(value, setting.type)
    except msgspec.ValidationError:
        found = _kind(value) if setting.secret else _found(value)
        # Not chained: msgspec's own message may quote the value, which may be a secret.
        raise WrongValue(f"{where} must be {setting.expected}; it is {found}") from None


def _found(value: object) -> str:
    match value:
        case str() | bool() | int() | float() | list() if len(shown := _shown(value)) <= 60:
            return shown
        case _:
            return _kind(value)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list holding " + ", ".join(sorted({_kind(item) for item in value}))
    return kind_in_words(value)


def _hint(key: str) -> str:
    near = nearest(key, TABLE)
    return f"; did you mean {near}?" if near else "; `telex config show` lists all settings"


def _misspelt(environ: Mapping[str, str], known: Iterable[str]) -> Iterator[str]:
    # Only names similar to a setting: other TELEX_ variables are read elsewhere. The comparison
    # leaves out the prefix, which would make any two of them similar.
    names = [variable.removeprefix("TELEX_") for variable in known]
    for variable in environ:
        name = variable.removeprefix("TELEX_")
        if variable != name and name not in names:
            for near in difflib.get_close_matches(name, names, 1, cutoff=0.8):
                yield f"unknown variable {variable}; did you mean TELEX_{near}?"
