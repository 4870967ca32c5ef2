"""The nearest known names, for misspelt names that people and programs really write."""

from __future__ import annotations

import pytest

from telex.rpc.methods import Methods
from telex.rpc.nearest import did_you_mean, nearest_names

NAMES = (
    *("session.create", "session.credit", "session.list", "session.snapshot", "session.wait"),
    *("adapter.list", "adapter.snapshot", "adapter.cancel_wait", "server.capabilities"),
    *("progress:set", "term:title", "clip:read", "ping"),
)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("session.crate", ("session.create",)),
        ("sesion.list", ("session.list",)),
        ("SESSION.CREATE", ("session.create",)),
        ("session/list", ("session.list",)),
        ("session_create", ("session.create",)),
        ("sessionCreate", ("session.create",)),
        ("list_sessions", ("session.list",)),
        ("snapshot", ("adapter.snapshot", "session.snapshot")),
        ("adapter.cancelwait", ("adapter.cancel_wait",)),
        ("capabilities", ("server.capabilities",)),
        ("progess:set", ("progress:set",)),
        ("title", ("term:title",)),
        ("pnig", ("ping",)),
        ("", ()),
        (".", ()),
        ("\N{CJK UNIFIED IDEOGRAPH-4E2D}", ()),
        ("completely.different", ()),
    ],
)
def test_the_nearest_name_is_the_intended_one(written: str, near: tuple[str, ...]) -> None:
    assert nearest_names(written, NAMES) == near


def test_at_most_three_names_are_returned_the_nearest_first() -> None:
    known = [f"thing.number{n}" for n in range(9)]
    assert nearest_names("thing.number7x", known)[0] == "thing.number7"
    assert len(nearest_names("thing.number", known)) == 3


def test_a_name_that_is_too_long_is_not_looked_up() -> None:
    assert nearest_names("session.create" * 5, NAMES) == ()


def test_the_names_are_joined_into_one_question() -> None:
    assert did_you_mean(()) == ""
    assert did_you_mean(("a",)) == "Did you mean a?"
    assert did_you_mean(("a", "b", "c")) == "Did you mean a, b or c?"


def test_a_table_without_methods_has_no_nearest() -> None:
    problem = Methods().unknown("session.create")
    assert problem.message == "There is no such method."
