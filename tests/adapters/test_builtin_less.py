"""The `less` adapter: the state of each fixture, and the actions of each intent."""

from __future__ import annotations

from typing import Any

import pytest

from builtin import fixtures, running_builtin
from telex.adapters.errors import PluginProblem
from telex.terminal.actions import Interrupt, Key, MarkTranscript, Text, TranscriptLabel
from telex.terminal.waits.matchers import AnyOf, ContainsText, ScreenRegex

FIXTURES = fixtures("less")
ASKED = MarkTranscript(TranscriptLabel("asked"))


def shown(name: str, **context: Any) -> dict[str, Any]:
    return {**FIXTURES[name].context(), **context}


@pytest.mark.parametrize("name", FIXTURES)
async def test_each_fixture_has_its_state(name: str) -> None:
    async with running_builtin("less") as less:
        assert await less.wrong(FIXTURES[name]) == []


async def test_describe_lists_exactly_the_exported_functions() -> None:
    async with running_builtin("less") as less:
        catalogue, exports = await less.catalogue(), await less.exports()
    offered = [*catalogue.intents, *catalogue.wait_matchers]
    assert {one["name"] for one in offered} <= exports
    assert all(one["description"] for one in [*offered, *catalogue.states])
    states = {one["name"] for one in catalogue.states}
    assert {fixture.expected.state for fixture in FIXTURES.values()} == states


@pytest.mark.parametrize("name", ["first_page", "end_with_next", "not_found", "plain_colon"])
async def test_a_prompt_must_be_at_the_cursor_on_the_bottom_row(name: str) -> None:
    elsewhere = {"row": 0, "col": 0, "visible": True}
    async with running_builtin("less") as less:
        for broken in (
            shown(name, screen_cursor=elsewhere),
            shown(name, size={"rows": 30, "cols": 60}),
            shown(name, alternate_screen=False, transcript=""),
        ):
            del broken["body_text"], broken["status_text"]
            assert (await less.state(**broken)).state == "unknown"


@pytest.mark.parametrize(
    ("intent", "params", "keys"),
    [
        ("next_match", {}, "n"),
        ("previous_match", {}, "N"),
        ("page_down", {}, "f"),
        ("page_up", {}, "b"),
        ("top", {}, "g"),
        ("bottom", {}, "G"),
        ("go_to", {"line": 42}, "42g"),
        ("go_to", {"percent": 50}, "50p"),
        ("quit", {}, "q"),
    ],
)
async def test_an_intent_is_a_key(intent: str, params: dict[str, Any], keys: str) -> None:
    async with running_builtin("less") as less:
        plan = await less.plan(intent, shown=shown("first_page"), **params)
    assert plan.actions == (ASKED, Text(keys))


@pytest.mark.parametrize(
    ("params", "keys"),
    [
        ({"pattern": "a.b"}, "/a.b"),
        ({"pattern": "a.b", "backward": True}, "?a.b"),
        ({"pattern": "a.b", "literal": True}, "/\x12a.b"),
    ],
)
async def test_a_search_is_typed_and_entered(params: dict[str, Any], keys: str) -> None:
    async with running_builtin("less") as less:
        plan = await less.plan("search", shown=shown("not_found"), **params)
    assert plan.actions == (ASKED, Text(keys), Key("enter"))
    assert plan.last_intent == "searched"


async def test_quit_leaves_the_help_before_less() -> None:
    async with running_builtin("less") as less:
        assert (await less.plan("quit", shown=shown("help"))).actions[1] == Text("qq")
        assert (await less.plan("cancel")).actions == (ASKED, Interrupt())


@pytest.mark.parametrize("name", ["searching", "command", "number", "waiting", "cat_of_end"])
async def test_a_key_is_refused_where_it_would_mean_something_else(name: str) -> None:
    async with running_builtin("less") as less:
        with pytest.raises(PluginProblem) as caught:
            await less.plan("quit", shown=shown(name))
        assert (await less.plan("quit", shown=shown(name), force=True)).actions[1] == Text("q")
    assert caught.value.code == "not_viewing"


@pytest.mark.parametrize(
    ("intent", "params"),
    [
        ("search", {}),
        ("search", {"pattern": ""}),
        ("search", {"pattern": "a\nq"}),
        ("go_to", {}),
        ("go_to", {"line": 1, "percent": 1}),
        ("go_to", {"line": "1q"}),
        ("go_to", {"line": 1.5}),
        ("go_to", {"line": -1}),
        ("go_to", {"percent": 101}),
    ],
)
async def test_impossible_intents_are_refused(intent: str, params: dict[str, Any]) -> None:
    async with running_builtin("less") as less:
        with pytest.raises(PluginProblem) as caught:
            await less.plan(intent, shown=shown("first_page"), **params)
    assert caught.value.code == "bad_params"


async def test_only_output_after_the_command_ends_its_turn() -> None:
    place = shown("first_page")
    end = shown("end_with_next")
    async with running_builtin("less") as less:
        for since, over in ((0, False), (20, True)):
            markers = {"asked": 1000 - since}
            now = {**place, "markers": markers, "cursor": 1000, "params": {"stable_ms": 60}}
            assert bool(await less.predicate("is_ready", **now)) is over
        assert not await less.predicate("is_at_end", **place)
        assert await less.predicate("is_at_end", **end)
        assert isinstance(await less.matcher("wait_turn_matcher"), AnyOf)
        assert await less.matcher("wait_text_matcher", text="a") == ContainsText("a")
        assert await less.matcher("wait_text_matcher", regex="a+") == ScreenRegex("a+")
