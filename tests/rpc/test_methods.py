"""Methods: the signature of a handler defines the protocol and its schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import jsonschema
import pytest
from msgspec import Meta, Struct

from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Methods


class Size(Struct):
    rows: Annotated[int, Meta(ge=1)]
    cols: int = 80


class Service:
    def resize(self, params: Size) -> bool:
        """Change the size."""
        return params.rows > 0

    async def watch(self, params: Size, call: CallContext) -> AsyncIterator[Size]:
        yield params

    def ping(self) -> None:
        return None


def table() -> Methods:
    service, methods = Service(), Methods()
    methods.add("resize", service.resize)
    methods.add("watch", service.watch)
    methods.add("ping", service.ping)
    return methods


def test_a_handlers_signature_is_read_once_and_whole() -> None:
    resize, watch, ping = table()
    assert (resize.params, resize.result, resize.doc) == (Size, bool, "Change the size.")
    assert (watch.streams, watch.wants_call, watch.result) == (True, True, Size)
    assert (ping.params, ping.streams, ping.wants_call) == (None, False, False)


def test_a_name_has_one_handler() -> None:
    methods = table()
    with pytest.raises(ValueError, match="already has a handler"):
        methods.add("ping", Service().ping)


def test_a_handler_without_types_is_refused_where_it_is_added() -> None:
    def untyped(params):  # type: ignore[no-untyped-def]  # that is the point
        return params

    with pytest.raises(TypeError, match="has no type for its 'params'"):
        Methods().add("untyped", untyped)


def test_the_schema_of_a_method_accepts_what_the_method_accepts() -> None:
    schema = table().schema()
    assert set(schema["methods"]) == {"resize", "watch", "ping"}
    assert schema["methods"]["resize"]["description"] == "Change the size."
    assert schema["methods"]["watch"]["streams"] is True
    params = {**schema["methods"]["resize"]["params"], "$defs": schema["$defs"]}
    jsonschema.Draft202012Validator.check_schema(params)
    jsonschema.validate({"rows": 3}, params)
    for wrong in ({}, {"rows": 0}, {"rows": "3"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, params)
