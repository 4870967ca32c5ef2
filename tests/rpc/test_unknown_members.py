"""Members that a type does not know are found with their place and the nearest name."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from msgspec import Struct

from telex.automation import protocol as spec
from telex.rpc import handler_tasks
from telex.rpc.methods import Methods
from telex.rpc.testing import linked_peers
from telex.rpc.unknown_members import unknown_members

NESTED = {"type": "any", "value": [{"type": "contains_text", "value": "x", "sinc": 1}]}

FOUND: list[tuple[Any, Any, list[tuple[str, str, tuple[str, ...]]]]] = [
    (spec.Wait, {"session": "s1", "timeout": 5}, [("$", "timeout", ("timeout_ms",))]),
    (spec.Wait, {"sesion": "s1"}, [("$", "sesion", ("session",))]),
    (spec.Wait, {"Since": "m1"}, [("$", "Since", ("since",))]),
    (spec.Wait, {"matcher": NESTED}, [("$.matcher.value[0]", "sinc", ("since",))]),
    (
        spec.ReadScreen,
        {"redaction": {"replace": "x"}},
        [("$.redaction", "replace", ("replacement",))],
    ),
    (
        spec.Input,
        {"action": {"type": "mouse", "value": {"row": 1, "column": 2}}},
        [("$.action.value", "column", ("col",))],
    ),
    (spec.Create, {"env": {"anything": "goes"}, "arg": 1}, [("$", "arg", ("args",))]),
    (spec.ListSessions, {"zzz": 1}, [("$", "zzz", ())]),
    (spec.NoParams, {"zzz": 1}, [("$", "zzz", ())]),
]


@pytest.mark.parametrize(("kind", "value", "found"), FOUND)
def test_an_unknown_member_is_found_with_its_place_and_the_nearest_name(
    kind: Any, value: Any, found: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    assert [member[:3] for member in unknown_members(value, kind)] == found


@pytest.mark.parametrize(
    "value",
    [
        {"session": "s1", "matcher": {"type": "lua", "value": {"params": {"any": {"thing": 1}}}}},
        {"session": "s1", "matcher": {"type": "nothing", "value": {"x": 1}}},
        {"session": "s1", "matcher": 7, "redaction": None, "since": 3},
        [1, 2],
        "text",
        None,
    ],
)
def test_what_cannot_be_judged_is_left_to_the_decoder(value: Any) -> None:
    assert unknown_members(value, spec.Wait) == ()


def test_a_message_full_of_unknown_members_gets_a_short_answer() -> None:
    found = unknown_members({f"{'x' * 1000}{n}": n for n in range(1000)}, spec.Wait)
    assert len(found) == 8
    assert all(len(str(member)) < 400 for member in found)


class Pair(Struct):
    left: int = 0
    right: int = 0


async def test_where_a_spec_asks_for_tolerance_an_unknown_member_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_tasks, "_logged", set())
    methods = Methods("log")
    methods.add("sum", _sum)
    caplog.set_level(logging.WARNING, "telex.rpc")
    async with linked_peers(theirs=methods) as (asks, _):
        for _ in range(3):
            assert await asks.call("sum", {"left": 1, "rigth": 2}) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "sum: 'unknown member `rigth` - at `$`; did you mean `right`?'"
    ]


def _sum(pair: Pair) -> int:
    return pair.left + pair.right
