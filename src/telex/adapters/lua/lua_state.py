"""One Lua state in a worker: load a plugin, call its functions, return JSON values.

No Python object is passed into Lua: strings are passed as bytes, tables are made of plain values.
Results are read without metamethods, so that no code of the plugin runs outside of its limits. This
module and `prelude.lua` enforce the limits within Lua; `zygote_process` those of the process.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lupa.lua54 import (
    LUA_MAXINTEGER,
    LUA_MININTEGER,
    LuaError,
    LuaMemoryError,
    LuaRuntime,
    lua_type,
)

from telex.adapters import limits
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Reply = dict[str, Any]
"""`{"exports": ..., "pid": ...}` of `load`, `{"value": ...}` of `call`, or of either
`{"kind": ..., "problem": ..., "code": ...}`."""

_HERE: Final = os.path.dirname(__file__)
_MODULES: Final = {"telex/view.lua": "view.lua"}
"""Modules that a plugin can require beside its own files, by path. The plugin's files go first."""
_UNLIMITED: Final = 0
_SENTENCES: Final = {
    "budget": f"it took more than {limits.LUA_INSTRUCTIONS:,} instructions",
    "memory": f"it needed more than {limits.LUA_MEMORY_BYTES // wire_limits.MIB} MiB of memory",
    "no_function": "the plugin has no such function",
}


class _NotData(Exception):
    """The result contains a value that is not JSON, or too many values."""


class LuaState:
    """A Lua state with the prelude loaded. Created once, in the zygote: each fork has a copy."""

    def __init__(self) -> None:
        # Memory is only limited while the plugin runs. Between calls the calls of this module would
        # fail, and outside of a protected call Lua aborts the process.
        self._lua = LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_refuse,
            unpack_returned_tuples=False,
            max_memory=limits.LUA_MEMORY_BYTES,
        )
        self._lua.set_max_memory(_UNLIMITED)
        load = self._lua.eval(b"function(text) return assert(load(text, '=telex', 't')) end")
        prelude = load(_source("prelude.lua"))
        modules = {path.encode(): _source(file) for path, file in _MODULES.items()}
        self._begin, self._invoke = prelude(limits.LUA_INSTRUCTIONS, self._lua.table_from(modules))

    def load(
        self,
        plugin: str,
        version: str,
        permissions: Sequence[str],
        files: Mapping[str, str],
        entrypoint: str,
    ) -> Reply:
        """Run the entrypoint and return its exports."""
        reply = self._call(
            self._begin,
            plugin.encode(),
            version.encode(),
            self._table(dict.fromkeys(permissions, True)),
            self._table(files),
            entrypoint.encode(),
            int.from_bytes(os.urandom(7)),
        )
        if "value" in reply:
            return {"exports": list(reply["value"]), "pid": os.getpid()}
        if reply["kind"] in ("threw", "refused", "shape"):
            return _problem("load", reply["problem"])
        return reply

    def call(self, function: str, arguments: Sequence[Any]) -> Reply:
        try:
            given = self._table([function, *arguments])  # one table, before memory is limited
        except RecursionError:
            return _problem("shape", "its arguments are nested too deep")
        return self._call(self._invoke, given, 1 + len(arguments))

    def _call(self, function: Any, *arguments: Any) -> Reply:
        self._lua.set_max_memory(limits.LUA_MEMORY_BYTES)
        try:
            ok, *rest = function(*arguments)
        except LuaMemoryError:
            return _problem("memory")
        except LuaError as error:
            return _problem("threw", str(error))
        finally:
            self._lua.set_max_memory(_UNLIMITED)
        if not ok:
            return _problem(*(part.decode(errors="replace") for part in rest if part is not None))
        try:
            return {"value": _ResultReader().read(rest[0], 0)}
        except _NotData as error:
            return _problem("shape", str(error))

    def _table(self, value: Mapping[str, Any] | Sequence[Any]) -> Any:
        return self._lua.table_from(_plain(value), recursive=True)


def _source(file: str) -> bytes:
    with open(os.path.join(_HERE, file), "rb") as source:
        return source.read()


def _refuse(*_: Any) -> NoReturn:
    raise AttributeError("no Python in here")


def _problem(kind: str, problem: str = "", code: str | None = None) -> Reply:
    """Return a reply for a failure. Text of the plugin is cut to LUA_PROBLEM_CHARS."""
    problem = _SENTENCES.get(kind, problem)[: limits.LUA_PROBLEM_CHARS]
    return {"kind": kind, "problem": problem, "code": code and code[: limits.LUA_PROBLEM_CHARS]}


def _plain(value: Any) -> Any:
    """Convert JSON values for Lua: strings to bytes, integers of more than 64 bits to floats.

    Compares exact types, which are all that the decoder creates; `match` takes three times as long.
    """
    kind = type(value)
    if kind is str:
        return value.encode()
    if kind is dict:
        return {key.encode(): _plain(item) for key, item in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is int and not LUA_MININTEGER <= value <= LUA_MAXINTEGER:
        return _float(value)
    return value


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class _ResultReader:
    """Reads one result into JSON values, and counts values and bytes against the limits."""

    def __init__(self) -> None:
        self._values = limits.LUA_ANSWER_VALUES
        self._bytes = limits.LUA_ANSWER_BYTES
        self._path: list[str] = []

    def read(self, value: Any, depth: int) -> Any:
        self._values -= 1
        if self._values < 0:
            raise _NotData(f"its answer holds more than {limits.LUA_ANSWER_VALUES:,} values")
        exact = type(value)
        if exact is bytes:
            return self._text(value)
        if value is None or exact is int or exact is bool:
            return value
        if exact is float:
            if not math.isfinite(value):
                raise self._not_data(f"is {value}, which JSON cannot express")
            return value
        kind = lua_type(value)
        if kind != "table":
            raise self._not_data(f"is a {kind}, which is no data")
        if depth >= limits.LUA_ANSWER_DEPTH:
            raise _NotData(
                f"its answer has more than {limits.LUA_ANSWER_DEPTH} levels; does it hold itself?"
            )
        return self._table(value, depth + 1)

    def _text(self, value: bytes) -> str:
        self._bytes -= len(value)
        if self._bytes < 0:
            raise _NotData(f"its answer holds more than {limits.LUA_ANSWER_BYTES:,} bytes of text")
        return value.decode(errors="replace")

    def _table(self, table: Any, depth: int) -> Any:
        found: dict[Any, Any] = {}
        numbered = 0
        for key, value in table.items():  # by `lua_next`, which calls no metamethod
            if type(key) is bytes:
                key = self._text(key)
                self._path.append(f".{key}")
            elif type(key) is int:
                numbered += 1
                self._path.append(f"[{key}]")
            else:
                raise self._not_data("has a key that is neither a string nor a whole number")
            found[key] = self.read(value, depth)
            self._path.pop()
        return self._list(found) if numbered else found

    def _list(self, found: dict[Any, Any]) -> list[Any]:
        try:
            return [found.pop(at) for at in range(1, len(found) + 1)]
        except KeyError:
            raise self._not_data(
                "is neither a list from 1 on without gaps nor a table of names"
            ) from None

    def _not_data(self, problem: str) -> _NotData:
        place = "".join(self._path).removeprefix(".")
        return _NotData(f"{place or 'its answer'} {problem}")
