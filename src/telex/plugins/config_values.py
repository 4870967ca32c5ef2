"""The values of a plugin's config entries: resolves their sources and checks their types.

The sources, weakest first: the default of the entry, `[plugins.NAME]` in a config file (the user's,
then a trusted project's), the variable `TELEX_<NAME>_<KEY>`, a flag. The entries of a command are
one level deeper: `[plugins.NAME.COMMAND]`, `TELEX_<NAME>_<COMMAND>_<KEY>`. An entry may name
another variable (`envOverride`), but only `TELEX_<NAME>_…` or a variable in `needs.env` of the
manifest: otherwise an entry could read any secret of the host's environment. All wrong values are
reported at once, each with its key, its source, and the expected type.

Pure except for `sections_of`, which reads the user's config file again: telex does not know the
entries of plugins when it reads its own settings. Used by `telex plugin`, and by `plugin_manifest`
for defaults.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from telex.config.errors import ConfigError
from telex.config.layers import Origin, Source, nearest
from telex.config.load import Trust
from telex.config.places import read_file
from telex.plugins.errors import PluginHandshakeFailed
from telex.plugins.protocol import ConfigEntry, Introduced, KeyValue, Value, ValueType
from telex.plugins.validation import describe_value
from telex.processes.child_environment import NEVER_INHERITED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from telex.config.load import Config
    from telex.plugins.discovery import FoundPlugin

_WORDS: Final[dict[str, str]] = {
    "bool": "true or false",
    "int": "a whole number of 64 bits",
    "string": "text",
    "path": "a path",
}
_YES: Final = frozenset(("true", "yes", "on", "1"))
_NO: Final = frozenset(("false", "no", "off", "0"))
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_RANGE: Final = range(-(2**63), 2**63)
"""64-bit integers, which every language of a plugin can represent."""
_BETWEEN_WORDS: Final = str.maketrans("-.", "__")


class BadValues(ConfigError):
    """Values have the wrong type. `problems` has all of them."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """The table `[plugins]` of one file."""

    plugins: Mapping[str, Any]
    origin: Origin

    def table(self, words: Iterable[str]) -> Mapping[str, Any]:
        """Return the table `[plugins.A.B]`, or an empty one."""
        found: Any = self.plugins
        for word in words:
            found = found.get(word) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of values, besides the defaults of the entries."""

    sections: Sequence[ConfigSection] = ()
    """Weakest first."""
    environ: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values by key, one for each occurrence of the flag."""
    cwd: Path = Path("/")
    """The base of relative paths. `~` is HOME of `environ`."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The value of one entry, and its source."""

    entry: ConfigEntry
    value: Value | None
    """None if no source has one."""
    origin: Origin


@dataclass(frozen=True, slots=True)
class Values:
    """All entries in order with their values, and the problems and hints."""

    resolved: tuple[Resolved, ...]
    problems: tuple[str, ...]
    hints: tuple[str, ...]

    def key_values(self) -> list[KeyValue]:
        """Return the values for the protocol, without entries that have none. Raises BadValues."""
        if self.problems:
            raise BadValues(self.problems)
        given = (one for one in self.resolved if one.value is not None)
        return [KeyValue(one.entry.key, one.value, one.entry.type) for one in given]


def resolve(
    plugin: str,
    entries: Sequence[ConfigEntry],
    sources: Sources,
    command: Sequence[str] = (),
    granted: Collection[str] = (),
) -> Values:
    """Resolve the values of a plugin's entries, or of the entries of one of its commands.

    `granted` are the variables in `needs.env` of the manifest.
    """
    words = (plugin, *command)
    problems: list[str] = []
    hints = list(_forbidden_overrides(words, entries, sources, granted))
    entries = [_with_allowed_override(plugin, entry, granted) for entry in entries]
    resolved = tuple(_resolved(words, entry, sources, problems) for entry in entries)
    return Values(resolved, tuple(problems), (*hints, *_hints(words, entries, sources)))


def granted_variables(found: FoundPlugin) -> Collection[str]:
    """Return the variables in `needs.env` of a plugin's manifest."""
    needs = found.manifest.needs if found.manifest else None
    return (needs.env if needs else None) or ()


def values_for_initialize(sources: Sources) -> Callable[[FoundPlugin, Introduced], list[KeyValue]]:
    """Return a function for `PluginSettings.config`: it resolves the values for `initialize`, and
    raises PluginHandshakeFailed."""

    def values(found: FoundPlugin, introduced: Introduced) -> list[KeyValue]:
        try:
            entries = introduced.configs or []
            return resolve(
                found.name, entries, sources, granted=granted_variables(found)
            ).key_values()
        except BadValues as bad:
            raise PluginHandshakeFailed(found.name, f"has invalid config values: {bad}") from bad

    return values


def variable_name(words: Iterable[str], entry: ConfigEntry) -> str:
    """Return the variable of a resolved entry. `words` are the names of plugin and command."""
    return entry.env_override or _spelt((*words, entry.key))


def _spelt(words: Iterable[str]) -> str:
    return "TELEX_" + "_".join(words).upper().translate(_BETWEEN_WORDS)


def _may_read(plugin: str, name: str, granted: Collection[str]) -> bool:
    own = name.startswith(_spelt((plugin, ""))) or name in granted
    return own and name not in NEVER_INHERITED


def _with_allowed_override(
    plugin: str, entry: ConfigEntry, granted: Collection[str]
) -> ConfigEntry:
    name = entry.env_override
    if name is None or _may_read(plugin, name, granted):
        return entry
    return replace(entry, env_override=None)


def _forbidden_overrides(
    words: Sequence[str],
    entries: Sequence[ConfigEntry],
    sources: Sources,
    granted: Collection[str],
) -> Iterator[str]:
    for entry in entries:
        name = entry.env_override
        if name and name in sources.environ and not _may_read(words[0], name, granted):
            yield (
                f"{name} is not passed to {words[0]}, whose manifest does not have it in "
                f"`needs.env`; set {_spelt((*words, entry.key))}"
            )


def flag_name(entry: ConfigEntry) -> str:
    return "--" + ((entry.flag and entry.flag.name) or entry.key)


def type_problem(value: object, kind: ValueType) -> str | None:
    """Return why a value from JSON or TOML is not of this type, or None."""
    one = kind.removesuffix("List")
    if kind == one:
        return None if _is(value, one) else f"must be {_WORDS[one]}; it is {describe_value(value)}"
    if not isinstance(value, list):
        return f"must be a list, each {_WORDS[one]}; it is {describe_value(value)}"
    wrong = next((item for item in value if not _is(item, one)), None)
    return (
        None
        if wrong is None
        else f"must be a list, each {_WORDS[one]}; one is {describe_value(wrong)}"
    )


def sections_of(config: Config) -> list[ConfigSection]:
    """Return `[plugins]` of the files of a configuration, weakest first."""
    user = read_file(config.user_file)
    found = [] if user is None else [_section(user, Origin(Source.USER, str(config.user_file)))]
    project = config.project_file
    if project is not None and project.trust is Trust.TRUSTED:
        found.append(_section(project.content, Origin(Source.PROJECT, str(project.path))))
    return found


def _section(content: bytes, origin: Origin) -> ConfigSection:
    try:
        plugins = tomllib.loads(content.decode()).get("plugins", {})
    except (ValueError, RecursionError) as error:
        raise BadValues([f"{origin.where} cannot be read: {error}"]) from error
    if not isinstance(plugins, dict):
        raise BadValues(
            [f"{origin.where}: plugins must be a table; it is {describe_value(plugins)}"]
        )
    return ConfigSection(plugins, origin)


def _resolved(
    words: Sequence[str], entry: ConfigEntry, sources: Sources, problems: list[str]
) -> Resolved:
    value, origin, problem = entry.value, Origin(Source.DEFAULT), None
    for value, origin in _given(words, entry, sources):  # noqa: B007  the last one is the strongest
        pass
    if isinstance(value, _Text):
        value = value.read(entry.type)
    if value is not None and (problem := type_problem(value, entry.type)):
        where = origin.where or f"the default of {words[0]}"
        problems.append(f"{where}: {'.'.join((*words, entry.key))} {problem}")
    return Resolved(entry, None if problem else _placed(value, entry.type, sources), origin)


@dataclass(frozen=True, slots=True)
class _Text:
    """A value from a variable or a flag. Text that cannot be converted stays text, and then has the
    wrong type."""

    parts: tuple[str, ...]

    def read(self, kind: ValueType) -> object:
        if not kind.endswith("List"):
            return _from_text(self.parts[-1], kind)  # the last flag wins, as in most programs
        items = [item for part in self.parts for item in _items(part)]
        return [_from_text(item, kind.removesuffix("List")) for item in items]


def _given(
    words: Sequence[str], entry: ConfigEntry, sources: Sources
) -> Iterator[tuple[Any, Origin]]:
    """Yield the value of each source, weakest first. An empty variable counts as unset, as
    everywhere in telex."""
    if not entry.flag_only:
        for section in sources.sections:
            if (value := section.table(words).get(entry.key)) is not None:
                yield value, section.origin
        name = variable_name(words, entry)
        if text := sources.environ.get(name):
            yield _Text((text,)), Origin(Source.ENVIRONMENT, name)
    if parts := sources.flags.get(entry.key):
        yield _Text(tuple(parts)), Origin(Source.FLAG, flag_name(entry))


def _items(text: str) -> list[Any]:
    """Split a list: a TOML list if the text starts with `[`, otherwise at commas. TOML is for items
    that contain commas."""
    if text.startswith("["):
        try:
            items = tomllib.loads(f"list = {text}")["list"]
        except (ValueError, RecursionError):
            return [text]
        return items if isinstance(items, list) else [text]
    return [item.strip() for item in text.split(",") if item.strip()]


def _from_text(text: object, kind: str) -> object:
    if not isinstance(text, str):  # an item of a list in TOML
        return text
    match kind:
        case "bool" if text.lower() in _YES | _NO:
            return text.lower() in _YES
        case "int" if _NUMBER.fullmatch(text):
            return int(text)
        case _:
            return text


def _is(value: object, kind: str) -> bool:
    match kind:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool) and value in _RANGE
        case "path":
            return isinstance(value, str) and value != "" and "\0" not in value
        case _:
            return isinstance(value, str)


def _placed(value: Any, kind: ValueType, sources: Sources) -> Any:
    """Return the value, with paths made absolute."""
    if value is None or not kind.startswith("path"):
        return value
    if isinstance(value, list):
        return [absolute_path(item, sources) for item in value]
    return absolute_path(value, sources)


def absolute_path(path: str, sources: Sources) -> str:
    """Return a path relative to `sources.cwd` as an absolute one, with `~` for home."""
    # `..` is kept: its target depends on the links before it.
    if path == "~" or path.startswith("~/"):
        path = sources.environ.get("HOME", "/") + path[1:]
    return str(sources.cwd / path)


def _hints(words: Sequence[str], entries: Sequence[ConfigEntry], sources: Sources) -> Iterator[str]:
    known = {entry.key: entry for entry in entries}
    for section in sources.sections:
        for key, value in section.table(words).items():
            where = f"{section.origin.where}: {'.'.join((*words, key))}"
            if key in known:
                if known[key].flag_only:
                    yield _no_effect(where, known[key])
            elif not isinstance(value, dict):  # a table belongs to a command
                near = nearest(key, known)
                yield f"{where} is not known" + (f"; did you mean {near}?" if near else "")
    for entry in entries:
        if entry.flag_only and sources.environ.get(name := variable_name(words, entry)):
            yield _no_effect(name, entry)


def _no_effect(where: str, entry: ConfigEntry) -> str:
    return f"{where} has no effect: only the flag {flag_name(entry)} sets it"
