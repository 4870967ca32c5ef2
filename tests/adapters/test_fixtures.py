"""Fixtures: files of cases, expected states, and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from telex.adapters.fixtures import (
    BadFixture,
    Expected,
    Fixture,
    FixtureDifference,
    FixtureTaken,
    differences,
    encode_fixture,
    free_name,
    parse_fixtures,
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


def test_a_case_has_a_screen_and_an_expected_state() -> None:
    found, problems = parse_fixtures('[a]\nstate = "ready"\nscreen = "$ "\n')
    assert not problems
    assert found == [Fixture("a", "$ ", Expected(state="ready"))]


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("[a]", "it has no `screen`"),
        ("a = 5", r"a case is a table, as in [a]"),
        ("[a]\nscreen = 5", "it has no `screen`"),
        ("[a]\nscreen = ''", "missing required field `state`"),
        ("[a]\nscreen = ''\nstate = 5", "$.state"),
        ("[a]\nscreen = ''\nstate = 'a'\nmetdata = {}", "metdata"),
        ("[a]\nscreen = ''\nstate = 'a'\nmin_confidence = 2", "min_confidence"),
    ],
)
def test_a_case_that_would_test_nothing_is_refused(case: str, why: str) -> None:
    found, (problem,) = parse_fixtures(case)
    assert not found
    assert problem.startswith("a cannot be used: ")
    assert why in problem


def test_a_file_that_is_no_toml_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    with pytest.raises(BadFixture, match="this is not TOML"):
        parse_fixtures("[a")
    (tmp_path / "a.toml").write_text("[a")
    (tmp_path / "b.toml").write_text("[b]\nstate = 'x'\nscreen = ''\n")
    (tmp_path / "c.toml").write_text("[b]\nstate = 'x'\nscreen = ''\n[c]\n")
    found, problems = read_fixtures(tmp_path)
    assert [one.name for one in found] == ["b"]
    assert problems[0].startswith("a.toml: this is not TOML: ")
    assert problems[1].startswith("c.toml: c cannot be used: ")
    assert problems[2] == "c.toml: b is in b.toml already"


QUOTES = "'" * 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "$ \n",
        "no end",
        QUOTES + " quoted\n",
        "ends with '",
        '\\ "x"\n',
        "\x1b[m\x7f\r\té\n",
    ],
)
def test_an_encoded_fixture_parses_to_itself(text: str) -> None:
    expected = Expected(
        state="a b",
        min_confidence=0.5,
        metadata={"a key": [1, {"x": "\x7f"}], "none": {}},
        context={"screen_cursor": {"row": 1, "visible": True}, "transcript": "\x1b]0;é\x07\r\n"},
        near_miss=True,
    )
    for name in ("a", "1.2"):
        one = Fixture(name, text, expected)
        assert parse_fixtures(encode_fixture(one)) == ([one], [])


def test_a_fixture_overrides_the_default_context() -> None:
    case = """[a]
state = "a"
last_intent = "run"
context = { title = "t", stable_ms = 5 }
screen = "1\\n2\\n3\\n4\\n5\\n6\\n7\\n"
"""
    (one,), _ = parse_fixtures(case)
    seen = one.context()
    assert (seen["screen"], seen["body_text"], seen["status_text"]) == (
        "1\n2\n3\n4\n5\n6\n7",
        "1\n2\n3\n4",
        "5\n6\n7",
    )
    assert (seen["last_intent"], seen["title"], seen["stable_ms"]) == ("run", "t", 5)
    assert seen["completed_turn_stable_ms"] == 300


def test_a_screen_of_at_most_six_rows_is_all_body() -> None:
    for count in range(1, 9):
        rows = [f"row {n}" for n in range(count)]
        seen = Fixture("a", "\n".join(rows), Expected(state="a")).context()
        body, status = (rows, []) if count <= 6 else (rows[:-3], rows[-3:])
        assert (seen["body_text"], seen["status_text"]) == ("\n".join(body), "\n".join(status))


def test_absent_expectations_are_not_compared() -> None:
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


def test_a_saved_case_is_read_again_and_never_replaced(tmp_path: Path) -> None:
    where = tmp_path / "mine" / "fixtures"
    assert read_fixtures(where) == ([], [])
    assert free_name(where) == "001"
    expected = Expected(state="ready", rule="prompt", context={"title": "é"})
    path = save_fixture(where, "001", "$ é\n\n", expected)
    assert path == where / "recorded.toml"
    assert free_name(where) == "002"
    save_fixture(where, "1.b", "$", expected)
    found, problems = read_fixtures(where)
    texts = [(one.name, one.text, one.expected) for one in found]
    assert (texts, problems) == ([("001", "$ é\n", expected), ("1.b", "$\n", expected)], [])
    (where / "own.toml").write_text("[b]\n")
    before = path.read_text()
    for name, there in (("001", "recorded.toml"), ("b", "own.toml")):
        with pytest.raises(FixtureTaken, match=f"{there} already has a {name}"):
            save_fixture(where, name, "other", expected)
    (where / "own.toml").write_text("[b")
    with pytest.raises(FixtureTaken, match=r"own\.toml: this is not TOML: .*; correct it first"):
        save_fixture(where, "c", "other", expected)
    assert path.read_text() == before


def test_a_case_is_appended_to_a_file_without_a_final_newline(tmp_path: Path) -> None:
    (tmp_path / "recorded.toml").write_text("# mine\n[a]\nstate = 'x'\nscreen = ''")
    save_fixture(tmp_path, "b", "$", Expected(state="y"))
    assert [one.name for one in read_fixtures(tmp_path)[0]] == ["a", "b"]
