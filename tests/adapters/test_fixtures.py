"""Fixtures: pairs of files, what is expected, and where an answer differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from telex.adapters.fixtures import (
    BadFixture,
    Expected,
    FixtureDifference,
    FixtureTaken,
    collect,
    differences,
    free_name,
    parse_expected,
    read_fixtures,
    save_fixture,
)
from telex.adapters.protocol import AdapterState

if TYPE_CHECKING:
    from pathlib import Path


def said(state: str = "ready", **more: Any) -> AdapterState:
    return AdapterState(
        **{"state": state, "confidence": 0.9, "evidence": "seen", "sequence": 1, **more}
    )


def test_a_fixture_is_a_screen_and_what_is_expected_of_it() -> None:
    found, problems = collect({"a.txt": "$ \n", "a.expected.json": '{"state": "ready"}', "b": ""})
    assert not problems
    assert [(one.name, one.text, one.expected.state) for one in found] == [("a", "$ \n", "ready")]


def test_a_file_without_its_pair_is_named() -> None:
    found, problems = collect({"a.txt": "", "b.expected.json": '{"state": "x"}'})
    assert not found
    assert problems == [
        "a.txt has no a.expected.json beside it",
        "b.expected.json has no b.txt beside it",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "truncated"),
        ("{}", "state"),
        ('{"state": 5}', r"\$.state"),
        ('{"state": "a", "metdata": {}}', "metdata"),
        ('{"state": "a", "min_confidence": 2}', "min_confidence"),
    ],
)
def test_an_expectation_that_would_test_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadFixture, match=why):
        parse_expected(text)
    _, problems = collect({"a.txt": "", "a.expected.json": text})
    assert problems[0].startswith("a.expected.json cannot be used: ")


def test_a_plugin_is_shown_what_the_fixture_says_and_the_rest_by_default() -> None:
    text = '{"state": "a", "last_intent": "run", "context": {"title": "t", "stable_ms": 5}}'
    (one,), _ = collect({"a.txt": "1\n2\n3\n4\n5\n6\n7\n", "a.expected.json": text})
    seen = one.shown()
    assert (seen["screen"], seen["body_text"], seen["status_text"]) == (
        "1\n2\n3\n4\n5\n6\n7",
        "1\n2\n3\n4",
        "5\n6\n7",
    )
    assert (seen["last_intent"], seen["title"], seen["stable_ms"]) == ("run", "t", 5)
    assert seen["completed_turn_stable_ms"] == 300


def test_what_was_left_out_is_not_looked_at() -> None:
    assert not differences(Expected(state="ready"), said(rule="r", metadata={"a": 1}))


@pytest.mark.parametrize(
    ("expected", "field", "wanted", "got"),
    [
        (Expected(state="busy"), "state", '"busy"', '"ready"'),
        (Expected(state="ready", rule="other"), "rule", '"other"', '"prompt"'),
        (Expected(state="ready", evidence="why"), "evidence", '"why"', '"seen"'),
        (Expected(state="ready", min_confidence=0.95), "confidence", "at least 0.95", "0.9"),
        (Expected(state="ready", metadata={"n": 2}), "metadata.n", "2", "1"),
        (Expected(state="ready", metadata={"n": True}), "metadata.n", "true", "1"),
        (Expected(state="ready", metadata={"no": None}), "metadata.no", "null", "nothing"),
        (Expected(state="ready", metadata={"l": [1, {"a": 3}]}), "metadata.l[1].a", "3", "2"),
        (Expected(state="ready", metadata={"l": [1]}), "metadata.l", "[1]", '[1, {"a": 2}]'),
        (Expected(state="ready", metadata={"d": {}}), "metadata.d.x", "nothing", '"é"'),
    ],
)
def test_a_difference_names_its_field_and_both_values(
    expected: Expected, field: str, wanted: str, got: str
) -> None:
    metadata = {"n": 1, "l": [1, {"a": 2}], "d": {"x": "é"}}
    found = differences(expected, said(rule="prompt", metadata=metadata))
    assert found == [FixtureDifference(field, wanted, got)]


def test_a_number_is_the_same_however_lua_wrote_it() -> None:
    assert not differences(Expected(state="ready", metadata={"n": 1}), said(metadata={"n": 1.0}))


def test_what_was_saved_is_read_again_and_never_replaced(tmp_path: Path) -> None:
    where = tmp_path / "mine" / "fixtures"
    assert read_fixtures(where) == ([], [])
    assert free_name(where) == "001"
    expected = Expected(state="ready", rule="prompt", context={"title": "é"})
    path = save_fixture(where, "001", "$ é\n\n", expected)
    assert path.read_text() == "$ é\n"
    assert free_name(where) == "002"
    (one,), problems = read_fixtures(where)
    assert (one.name, one.expected, problems) == ("001", expected, [])
    with pytest.raises(FixtureTaken, match=r"001\.expected\.json is there already"):
        save_fixture(where, "001", "other", expected)
    (where / "b.txt").write_text("mine\n")
    with pytest.raises(FixtureTaken, match=r"b\.txt is there already"):
        save_fixture(where, "b", "other", expected)
    assert (where / "b.txt").read_text() == "mine\n"
    assert not (where / "b.expected.json").exists()
