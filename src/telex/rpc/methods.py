"""Typed handlers, by method name.

A handler is a plain function or method. The type of its first parameter is the type of `params`;
its return type is the type of the result. `async def` handlers run concurrently; plain handlers
respond at once, without a task; async generators respond in parts, where the dialect has parts. A
second parameter, if any, gets the `CallContext`: the calling peer and the further parts of the
request.

    methods = Methods()
    methods.add("session.list", service.list_sessions)

The same types yield JSON Schema for the reference pages. The services decide which methods exist.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from telex.rpc.errors import Problem
from telex.rpc.messages import ABSENT
from telex.rpc.nearest import unknown_method
from telex.rpc.unknown_members import MemberPolicy, UnknownMember, unknown_members

Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Method:
    """One handler, with the facts from its signature."""

    name: str
    handler: Handler
    params: Any
    """The type of the parameters; None if the handler takes none."""
    result: Any
    """The type of the result, or of each part of it."""
    streams: bool
    wants_call: bool
    quick: bool
    """Whether the handler responds at once, without a task."""
    doc: str
    decoder: msgspec.json.Decoder[Any]
    named: bool
    """Whether the parameters are an object: an empty array then means an empty object."""
    members: MemberPolicy = "ignore"
    """What happens to members of the parameters that their type does not know."""

    def unknown_members(self, data: object) -> tuple[UnknownMember, ...]:
        """Return the unknown members of the parameters, unless they are ignored."""
        if self.members == "ignore" or self.params is None or not isinstance(data, msgspec.Raw):
            return ()
        return unknown_members(msgspec.json.decode(data), self.params)

    def arguments(self, data: object) -> tuple[object, ...]:
        """Return the decoded parameters as a tuple to call with. Raises msgspec.ValidationError."""
        if self.params is None:
            return ()
        if isinstance(data, bytes):
            return (data,)
        if data is ABSENT or (self.named and _is_empty_array(data)):
            data = b"{}"
        return (
            self.decoder.decode(data),  # type: ignore[arg-type]  # Raw, from the dialect
        )


class Methods:
    """The table of handlers that a peer serves from."""

    positional = True
    """Whether clients may pass parameters in an array, so that an empty array means none."""

    def __init__(self, members: MemberPolicy = "ignore") -> None:
        """`members` is what happens to members of parameters that their type does not know."""
        self._methods: dict[str, Method] = {}
        self._members: MemberPolicy = members

    def add(self, name: str, handler: Handler) -> None:
        """Serve `name` with this handler. Each name has one handler."""
        if name in self._methods:
            raise ValueError(f"the method {name!r} already has a handler")
        self._methods[name] = _inspected(name, handler, self.positional, self._members)

    def get(self, name: str) -> Method | None:
        return self._methods.get(name)

    def unknown(self, name: str, detail: str = "") -> Problem:
        """Return the error for a name that is not in the table, with the nearest known names."""
        return unknown_method(name, self._methods, detail)

    def __iter__(self) -> Iterator[Method]:
        return iter(self._methods.values())

    def schema(self) -> dict[str, Any]:
        """Return JSON Schema of every method's params and result; shared types are in `$defs`."""
        types = [t for m in self for t in (m.params, m.result)]
        given = [type(None) if t is None else t for t in types]
        schemas, defs = msgspec.json.schema_components(given, ref_template="#/$defs/{name}")
        pairs = zip(schemas[::2], schemas[1::2], strict=True)
        methods = {
            m.name: {"description": m.doc, "params": params, "result": result, "streams": m.streams}
            for m, (params, result) in zip(self, pairs, strict=True)
        }
        return {"methods": methods, "$defs": defs}


def _inspected(name: str, handler: Handler, positional: bool, members: MemberPolicy) -> Method:
    hints = get_type_hints(handler)
    result = hints.pop("return", Any)
    parameters = list(inspect.signature(handler).parameters.values())
    for parameter in parameters:
        if parameter.name not in hints:
            raise TypeError(f"the handler of {name!r} has no type for its {parameter.name!r}")
    kinds = [hints[parameter.name] for parameter in parameters]
    streams = inspect.isasyncgenfunction(handler)
    if streams and get_origin(result) is AsyncIterator:
        (result,) = get_args(result)
    params = kinds[0] if kinds else None
    decoder = msgspec.json.Decoder(Any if params is None else params)
    doc = inspect.getdoc(handler) or ""
    quick = not streams and not inspect.iscoroutinefunction(inspect.unwrap(handler))
    wants_call, named = len(kinds) > 1, positional and _is_object(params)
    return Method(
        name, handler, params, result, streams, wants_call, quick, doc, decoder, named, members
    )


def _is_object(params: Any) -> bool:
    return (
        isinstance(params, type)
        and issubclass(params, msgspec.Struct)
        and not params.__struct_config__.array_like
    )


def _is_empty_array(data: object) -> bool:
    text = bytes(data) if isinstance(data, msgspec.Raw) else b""
    return text[:1] == b"[" and not text[1:-1].strip()
