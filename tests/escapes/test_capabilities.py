"""The response to `detect` fits a frame, lists the capabilities, and is read with care."""

from __future__ import annotations

import json
import re
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.escapes import limits as escapes_limits
from telex.escapes.capabilities import detect_answer, glob_matches, supports
from telex.escapes.commands import COMMANDS, EVENTS
from telex.escapes.commands import core as spec
from telex.wire import json_escape, limits

some_commands = st.sets(st.sampled_from(sorted(COMMANDS)))
ALL = detect_answer(COMMANDS.values(), maxframe=limits.CONTROL_STRING_BYTES, htty=True)


@given(some_commands, st.sets(st.sampled_from(sorted(EVENTS))))
def test_the_response_lists_exactly_the_supported_commands(
    names: set[str], events: set[str]
) -> None:
    told = detect_answer(
        [COMMANDS[name] for name in names],
        maxframe=1,
        htty=False,
        events=[EVENTS[name] for name in events],
    )
    read = json.loads(json.dumps(told))
    assert {name for name in (*COMMANDS, *EVENTS) if supports(read, name)} == names | events


def test_both_spellings_have_the_same_content() -> None:
    assert ALL["capabilities"] == ALL["capabilties"]
    assert msgspec.convert(ALL, spec.Detected).maxframe == limits.CONTROL_STRING_BYTES
    for one in ("capabilities", "capabilties"):
        assert supports({one: ALL[one]}, "term:write")


def test_the_response_fits_the_smallest_frame() -> None:
    """Even without all commands for files, clipboard and pictures."""
    lacking = [c for c in COMMANDS.values() if c.system not in ("file", "clip", "image")]
    without = [c for c in COMMANDS.values() if c.guard.value == "free" and c.lower is not None]
    for commands in (COMMANDS.values(), lacking, without):
        told = detect_answer(commands, maxframe=limits.CONTROL_STRING_BYTES, htty=True)
        body = msgspec.json.encode({"resid": "x" * 64, "data": told})
        assert len(json_escape.encode(body)) <= escapes_limits.SENT_CONTROL_STRING_BYTES


def test_a_level_is_reported_if_it_is_complete() -> None:
    def level(*missing: str) -> object:
        commands = [c for c in COMMANDS.values() if c.name not in missing]
        told = detect_answer(commands, maxframe=1, htty=False)["capabilities"]
        assert isinstance(told, dict)
        return told["term"].get("level")

    assert level() == 2
    assert level("term:title") == 1
    assert level("term:write") is None
    assert level("term:batch") == 2


def test_pages_are_reported_if_they_are_shown() -> None:
    assert msgspec.convert(ALL, spec.Detected).capabilities["htty"].level == 1
    told = detect_answer(COMMANDS.values(), maxframe=1, htty=False)["capabilities"]
    assert isinstance(told, dict)
    assert "htty" not in told


@pytest.mark.parametrize(
    ("capabilities", "supported"),
    [
        ({"term": {"include": ["term:*"], "exclude": ["term:write"]}}, False),
        ({"term": {"include": ["term:*"]}, "all": {"exclude": ["*"]}}, False),
        ({"x": {"include": ["*"]}}, True),
        ({"x": {"include": ["t*e"]}}, True),
        ({"x": {"include": ["term:wri"]}}, False),
        ({"term": {"level": 1}}, True),
        ({"term": {"level": 0}}, False),
        ({"term": {"level": 1, "include": []}}, False),
        ({"clip": {"level": 9}}, False),
        ({"term": {"level": True, "include": 7, "exclude": {"term:write": 1}}}, False),
        ({"term": ["term:*"]}, False),
        ([], False),
        (None, False),
    ],
)
def test_responses_of_other_terminals_are_read_by_the_rules(
    capabilities: object, supported: bool
) -> None:
    assert supports({"capabilties": capabilities}, "term:write") is supported


@pytest.mark.parametrize(
    ("entry", "supported"),
    [
        ({"level": 2, "include": ["term:*"]}, False),
        ({"level": 2}, False),
        ({"include": ["*"]}, False),
        ({"include": ["term:made-up"]}, True),
        ({"include": ["term:made-up"], "exclude": ["term:m*"]}, False),
        ({"include": "term:made-up"}, False),
    ],
)
def test_an_unknown_name_is_supported_only_if_it_is_listed(entry: object, supported: bool) -> None:
    assert supports({"capabilities": {"term": entry}}, "term:made-up") is supported


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner)
       | st.dictionaries(st.sampled_from(["capabilities", "term", "include", "level", "exclude"]),
                         inner), max_leaves=8))  # fmt: skip
def test_reading_a_response_never_raises(told: object) -> None:
    assert supports(told, "term:write") in (True, False)


@given(st.text("a:*", max_size=6), st.text("a:", max_size=8))
def test_a_star_matches_any_run_of_characters(glob: str, name: str) -> None:
    pattern = ".*".join(re.escape(part) for part in glob.split("*"))
    assert glob_matches(glob, name) == (re.fullmatch(pattern, name) is not None)


def test_a_hostile_glob_takes_no_longer() -> None:
    began = time.process_time()
    assert not glob_matches("*a" * 2000 + "*b", "a" * 4000)
    assert time.process_time() - began < 20  # years if it were exponential
