"""A function's parameters, as configuration entries and as JSON Schema. Pure.

    def link(call: TaskCall, source: Path, dry_run: Annotated[bool, "change nothing"] = False)

has the entries `source`, a required path, and `dry-run`, a bool. A tool has the same parameters as
arguments, under their Python names. msgspec checks the values strictly: the host has already
converted them to the types of the entries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta

from telex.plugins import protocol as spec
from telex.plugins.sdk.calls import Call

_TYPES: Final[dict[Any, spec.ValueType]] = {
    bool: "bool",
    int: "int",
    str: "string",
    Path: "path",
    list[bool]: "boolList",
    list[int]: "intList",
    list[str]: "stringList",
    list[Path]: "pathList",
}


class NotConfigurable(TypeError):
    """A parameter has a type that no configuration entry can have."""


class Signature:
    """The parameters of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.doc = inspect.getdoc(function) or ""
        hints = get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
        for one in parameters:
            if one.name not in hints or one.kind not in _NAMED:
                raise NotConfigurable(
                    f"{function.__name__} takes {one.name!r}, which needs a type and a name"
                )
        self.wants_call = bool(parameters) and _is_call(hints[parameters[0].name])
        self._parameters = parameters[1:] if self.wants_call else parameters
        self._shapes: dict[Callable[[str], str], type[msgspec.Struct]] = {}
        self._kinds = {one.name: _worded(hints[one.name]) for one in self._parameters}

    @property
    def summary(self) -> str | None:
        """The first line of the docstring."""
        return self.doc.partition("\n")[0] or None

    def configs(self) -> list[spec.ConfigEntry]:
        """Return the parameters as configuration entries. Raises NotConfigurable."""
        return [self._entry(one) for one in self._parameters]

    def schema(self) -> dict[str, Any]:
        """Return the parameters as the schema of one object, with referenced schemas in `$defs`."""
        (schema,), parts = msgspec.json.schema_components(
            [self._shape(str)], schema_hook=_path_schema, ref_template="#/$defs/{name}"
        )
        own = parts.pop(schema["$ref"].rpartition("/")[2])
        own.pop("title", None)
        return {**own, "$defs": parts} if parts else own

    def configured(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Return keyword arguments from values of entries. Raises msgspec.ValidationError."""
        return self._converted(values, key)

    def called(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Return keyword arguments from arguments of a tool. Raises msgspec.ValidationError."""
        return self._converted(values, str)

    def _converted(
        self, values: Mapping[str, object], rename: Callable[[str], str]
    ) -> dict[str, Any]:
        shaped = msgspec.convert(values, self._shape(rename), dec_hook=_path)
        return {one.name: getattr(shaped, one.name) for one in self._parameters}

    def _shape(self, rename: Callable[[str], str]) -> type[msgspec.Struct]:
        """Return the struct of the parameters. It is created once, because that takes longer than a
        whole call."""
        if rename not in self._shapes:
            self._shapes[rename] = self._define(rename)
        return self._shapes[rename]

    def _define(self, rename: Callable[[str], str]) -> type[msgspec.Struct]:
        fields = [
            (one.name, self._kinds[one.name], _default(one.default)) for one in self._parameters
        ]
        required_first = sorted(fields, key=lambda field: field[2] is not NODEFAULT)
        name = self.function.__name__
        return msgspec.defstruct(name, required_first, rename=rename, kw_only=True)

    def _entry(self, one: inspect.Parameter) -> spec.ConfigEntry:
        kind, words, flag = _annotations(self._kinds[one.name])
        default = None if one.default is inspect.Parameter.empty else one.default
        value = msgspec.to_builtins(default, enc_hook=str)
        return spec.ConfigEntry(key(one.name), value, _value_type(one.name, kind), words, flag)


_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def key(name: str) -> str:
    """Return a parameter's name as the key of an entry, with hyphens for command lines."""
    return name.strip("_").replace("_", "-")


def values_of(config: list[spec.KeyValue] | msgspec.UnsetType | None) -> dict[str, object]:
    """Return the values of a configuration by key. Null values are left out."""
    pairs = config if isinstance(config, list) else []
    return {pair.key: _value(pair) for pair in pairs if pair.value is not None}


def _value(pair: spec.KeyValue) -> object:
    """Return the value, with tables as dicts."""
    if pair.type != spec.CONFIGS or not isinstance(pair.value, list):
        return pair.value
    inner = (one for one in pair.value if isinstance(one, dict) and isinstance(one.get("key"), str))
    pairs = [spec.KeyValue(one["key"], one.get("value"), one.get("type")) for one in inner]
    return values_of(pairs)


def struct_configs(shape: type[msgspec.Struct]) -> list[spec.ConfigEntry]:
    """Return a struct's fields as entries, for the plugin's own configuration."""
    return [_field_entry(field, shape) for field in msgspec.structs.fields(shape)]


def configured_struct(shape: type[msgspec.Struct], values: Mapping[str, object]) -> msgspec.Struct:
    """Return the plugin's own configuration from values. Raises msgspec.ValidationError."""
    names = {key(field.name): field.encode_name for field in msgspec.structs.fields(shape)}
    known = {names.get(name, name): value for name, value in values.items()}
    return msgspec.convert(known, shape, dec_hook=_path)


def _field_entry(field: msgspec.structs.FieldInfo, shape: type) -> spec.ConfigEntry:
    hint = get_type_hints(shape, include_extras=True)[field.name]
    kind, words, flag = _annotations(_worded(hint))
    default = field.default
    if field.default_factory is not NODEFAULT:
        default = field.default_factory()
    value = None if default is NODEFAULT else msgspec.to_builtins(default, enc_hook=str)
    return spec.ConfigEntry(key(field.name), value, _value_type(field.name, kind), words, flag)


def _is_call(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Call)


def _worded(hint: Any) -> Any:
    """Convert `Annotated[T, "words"]` to msgspec's form, with a `Meta`."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    for note in notes:
        kind = Annotated[kind, Meta(description=note) if isinstance(note, str) else note]
    return kind


def _annotations(hint: Any) -> tuple[Any, str | None, spec.Flag | None]:
    """Return the type, its description and its flag."""
    if get_origin(hint) is not Annotated:
        return hint, None, None
    kind, *notes = get_args(hint)
    words = [note.description for note in notes if isinstance(note, Meta) and note.description]
    flags = [note for note in notes if isinstance(note, spec.Flag)]
    return kind, next(iter(words), None), next(iter(flags), None)


def _value_type(name: str, kind: Any) -> spec.ValueType:
    if get_origin(kind) in (Union, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        kind = kinds[0] if len(kinds) == 1 else kind
    if get_origin(kind) is Literal and all(isinstance(one, str) for one in get_args(kind)):
        return "string"
    if kind not in _TYPES:
        raise NotConfigurable(
            f"{name!r} has the type {kind}; a configuration entry must be a bool, an int, a str, a "
            "Path, or a list of one of these"
        )
    return _TYPES[kind]


def _default(default: object) -> object:
    if default is inspect.Parameter.empty:
        return NODEFAULT
    if isinstance(default, list):
        return msgspec.field(default_factory=partial(list, default))
    return default


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{kind} is not a type that a plugin can receive")


def _path_schema(kind: type) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string", "format": "path"}
    raise NotImplementedError(f"{kind} has no JSON Schema")
