"""The fixtures of the `claude-code` adapter are valid and cover all its states.

This file does not run the adapter: the fixtures were written before it, from notes.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import telex

FIXTURES = Path(telex.__file__).parent / "adapters/builtin/claude-code/fixtures"
FILES = {path.name: tomllib.loads(path.read_text("utf-8")) for path in FIXTURES.iterdir()}
CASES: dict[str, dict[str, Any]] = {
    name: case for file in FILES.values() for name, case in file.items()
}
NAMES = sorted(CASES)

STATES = {
    *("starting", "ready", "thinking", "cancelling", "completed_turn", "error"),
    *("waiting_for_login", "waiting_for_trust", "waiting_for_model_select"),
    *("waiting_for_enter_plan_mode", "waiting_for_plan_approval", "waiting_for_permission"),
    *("waiting_for_external_editor", "waiting_for_user_input", "usage_screen", "local_ui_screen"),
}
"""The sixteen states of the spec."""

FIELDS = {"state", "last_intent", "min_confidence", "metadata", "context", "near_miss"}
CONTEXT = {
    *("stable_ms", "title", "screen_cursor", "transcript", "process_exited", "exit_code"),
    *("alternate_screen", "size"),
}
INTENTS = {"prompt_submitted", "prompt_pending", "cancelling"}
ERRORS = {"rate_limit", "quota", "connection", "auth", "api", "unknown"}
COLUMNS = 200


def expected(name: str) -> dict[str, Any]:
    return {key: value for key, value in CASES[name].items() if key != "screen"}


def screen(name: str) -> list[str]:
    text: str = CASES[name]["screen"]
    assert text.endswith("\n")
    return text[:-1].split("\n")


def test_every_name_occurs_once() -> None:
    assert len(NAMES) == sum(map(len, FILES.values()))


def test_every_state_is_shown_and_so_is_a_screen_that_is_none_of_them() -> None:
    assert {expected(name)["state"] for name in NAMES} == STATES | {"unsent_draft", "unknown"}


def test_there_are_enough_fixtures() -> None:
    assert len(NAMES) >= 45
    assert sum(expected(name).get("near_miss", False) for name in NAMES) >= 20


def test_no_two_fixtures_are_the_same() -> None:
    asked = Counter(
        (tuple(screen(name)), expected(name).get("last_intent"), str(expected(name).get("context")))
        for name in NAMES
        if any(screen(name))
    )
    assert [text for text, times in asked.items() if times > 1] == []


def test_every_kind_of_error_and_every_mode_is_shown() -> None:
    metadata = [expected(name).get("metadata", {}) for name in NAMES]
    assert {told["error"]["kind"] for told in metadata if "error" in told} == ERRORS
    modes = {told["permission_mode"] for told in metadata if "permission_mode" in told}
    assert modes == {"bypass", "auto", "plan"}


def test_every_screen_is_one_that_a_terminal_could_show() -> None:
    for name in NAMES:
        for row in screen(name):
            assert len(row) <= COLUMNS, name
            assert not row.endswith(" "), name  # no-break spaces are printable and kept
            assert row.replace("\u00a0", " ").isprintable(), name


def test_every_answer_has_the_agreed_shape() -> None:
    for name in NAMES:
        told = expected(name)
        assert set(told) <= FIELDS, name
        assert told.get("last_intent") in {None, *INTENTS}, name
        assert 0 <= told.get("min_confidence", 0.6) <= 1, name
        assert set(told.get("context", {})) <= CONTEXT, name
        assert told.get("near_miss", True) is True, name


def test_all_metadata_has_the_agreed_shape() -> None:
    for name in NAMES:
        for key, told in expected(name).get("metadata", {}).items():
            assert _agreed(key, told), f"{name}: {key} is {told}"


def _agreed(key: str, told: Any) -> bool:
    match key, told:
        case "permission", {"tool": str(), "summary": str(), **rest}:
            return not rest or (set(rest) == {"options"} and _words(rest["options"]))
        case "error", {"kind": str(kind), **rest}:
            after = rest.pop("retry_after_s", 1)
            return kind in ERRORS and not rest and isinstance(after, int) and after > 0
        case "usage", {**numbers}:
            return set() < set(numbers) <= {"cost", "session_percent", "week_percent"}
        case "options", options:
            return _words(options)
        case ("login", {"url": str(), **rest}) | ("trust", {"path": str(), **rest}):
            return not rest
        case (("plan" | "model" | "permission_mode" | "draft"), str()):
            return True
        case "said", list(said):
            return all(_is_said(one) for one in said)
        case _:
            return False


def _is_said(one: dict[str, Any]) -> bool:
    match one:
        case {"text": str(), **rest}:
            return rest in ({}, {"cut": True})
        case {"tool": str(), "summary": str(), **rest}:
            return set(rest) <= {"result"}
    return False


def _words(told: Any) -> bool:
    return isinstance(told, list) and bool(told) and all(isinstance(word, str) for word in told)
