"""The `python-repl` adapter: the state of each fixture, and the actions of each intent."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin import fixtures, running_builtin
from telex.adapters.errors import PluginProblem
from telex.terminal.actions import (
    BracketedPaste,
    Eof,
    Interrupt,
    Key,
    MarkTranscript,
    Text,
    TranscriptLabel,
)
from telex.terminal.waits.matchers import AnyOf, ProcessExited

FIXTURES = fixtures("python-repl")
SUBMITTED, EVALUATED = (
    MarkTranscript(TranscriptLabel("submitted")),
    MarkTranscript(TranscriptLabel("evaluated")),
)


def shown(name: str, **context: Any) -> dict[str, Any]:
    return {**FIXTURES[name].context(), **context}


def at_prompt(since: str, **context: Any) -> dict[str, Any]:
    """Return the context after this output of the last code."""
    rows = since.replace("\r\n", "\n")
    return {
        "screen": f">>> {rows}".rstrip(),
        "transcript": f">>> {since}",
        "cursor": 4 + len(since),
        "markers": {"evaluated": 4, "submitted": 4},
        "screen_cursor": {"row": rows.count("\n"), "col": 4, "visible": True},
        **context,
    }


@pytest.mark.parametrize("name", FIXTURES)
async def test_each_fixture_has_its_state(name: str) -> None:
    async with running_builtin("python-repl") as repl:
        assert await repl.wrong(FIXTURES[name]) == []


async def test_describe_lists_exactly_the_exported_functions() -> None:
    async with running_builtin("python-repl") as repl:
        catalogue, exports = await repl.catalogue(), await repl.exports()
    offered = [*catalogue.intents, *catalogue.wait_matchers]
    assert {one["name"] for one in offered} <= exports
    assert all(one["description"] for one in [*offered, *catalogue.states])
    states = {one["name"] for one in catalogue.states}
    assert {fixture.expected.state for fixture in FIXTURES.values()} == states


async def test_an_expression_is_typed_as_it_is() -> None:
    async with running_builtin("python-repl") as repl:
        plan = await repl.plan("evaluate", shown=shown("plain_prompt"), code="1 + 1  ")
    assert plan.actions == (SUBMITTED, EVALUATED, Text("1 + 1"), Key("enter"))
    assert plan.last_intent == "code_submitted"


async def test_a_long_line_is_pasted_where_the_editor_would_draw_it_for_each_key() -> None:
    code = "x = [" + "1, " * 50 + "]"
    async with running_builtin("python-repl") as repl:
        plain = await repl.plan("evaluate", shown=shown("plain_prompt"), code=code)
        new = await repl.plan("evaluate", shown=shown("new_prompt"), code=code)
    assert plain.actions[2] == Text(code)
    assert new.actions[2] == BracketedPaste(code)


def typed_at_a_prompt(line: str) -> tuple[str, dict[str, Any]]:
    """Return the output of one line at Python's prompt, and the names defined then."""
    names: dict[str, Any] = {"__builtins__": __builtins__}
    out = io.StringIO()
    with contextlib.redirect_stdout(out), _plain_display():
        exec(compile(line, "<stdin>", "single"), names)
    return out.getvalue(), names


@contextlib.contextmanager
def _plain_display() -> Any:
    before, sys.displayhook = sys.displayhook, sys.__displayhook__
    try:
        yield
    finally:
        sys.displayhook = before


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1\n\nx + 1\n'a'", "2\n'a'\n"),
        ("def f():\n    a = 1\n\n    return a\n\nf()", "1\n"),
        ("for n in range(2): print(n)", "0\n1\n"),
        ("@property\ndef f(self): pass\n3", "3\n"),
        ("'tab\there'\n'\\\\ \"quotes\"'", "'tab\\there'\n'\\\\ \"quotes\"'\n"),
        ("if True:\r\n    print('ö')\r\n", "ö\n"),
    ],
)
async def test_code_of_several_lines_is_one_line_that_does_the_same(code: str, says: str) -> None:
    async with running_builtin("python-repl") as repl:
        plan = await repl.plan("evaluate", shown=shown("plain_prompt"), code=code)
    assert isinstance(plan.actions[2], Text)
    line = plan.actions[2].value
    assert line.isprintable()
    shows, names = typed_at_a_prompt(line)
    assert shows == says
    assert not {"ast", "s", "g"} & set(names)


@settings(max_examples=15)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), min_size=2, max_size=4))
def test_every_text_arrives_as_it_was(texts: list[str]) -> None:
    code = "\n".join(f"t{at} = {text!r}" for at, text in enumerate(texts))

    async def line() -> str:
        async with running_builtin("python-repl") as repl:
            plan = await repl.plan("evaluate", shown=shown("plain_prompt"), code=code)
        assert isinstance(plan.actions[2], Text)
        return plan.actions[2].value

    _, names = typed_at_a_prompt(asyncio.run(line()))
    assert [names[f"t{at}"] for at in range(len(texts))] == texts


@pytest.mark.parametrize("name", ["plain_running", "plain_input", "plain_continuation", "shell"])
async def test_code_is_refused_without_a_prompt(name: str) -> None:
    async with running_builtin("python-repl") as repl:
        with pytest.raises(PluginProblem) as caught:
            await repl.plan("evaluate", shown=shown(name), code="1")
        forced = await repl.plan("evaluate", shown=shown(name), code="1", force=True)
    assert caught.value.code == "not_at_prompt"
    assert forced.actions[2] == Text("1")


async def test_code_is_refused_behind_a_line_half_typed() -> None:
    async with running_builtin("python-repl") as repl:
        with pytest.raises(PluginProblem) as caught:
            await repl.plan("evaluate", shown=shown("plain_typed"), code="1")
    assert caught.value.code == "line_not_empty"


async def test_the_small_intents() -> None:
    async with running_builtin("python-repl") as repl:
        plan = await repl.plan("interrupt", shown=shown("plain_running"))
        assert plan.actions == (SUBMITTED, Interrupt())
        plan = await repl.plan("interrupt", shown=shown("plain_typed"))
        assert plan.actions == (SUBMITTED, EVALUATED, Interrupt())
        plan = await repl.plan("exit", shown=shown("plain_value"))
        assert plan.actions == (SUBMITTED, Eof())
        plan = await repl.plan("answer", shown=shown("plain_input"), text="bob")
        assert plan.actions == (SUBMITTED, Text("bob"), Key("enter"))
        assert (await repl.plan("type", text="a")).actions == (Text("a"),)
        assert (await repl.plan("key", key="up")).actions == (Key("up"),)


async def test_a_turn_ends_when_the_prompt_is_stable() -> None:
    async with running_builtin("python-repl") as repl:
        matcher = await repl.matcher("wait_turn_matcher")
    assert isinstance(matcher, AnyOf)
    assert isinstance(matcher.value[0], ProcessExited)
    prompt, person = (repr(branch) for branch in matcher.value[1:])
    assert "min_ms=50" in prompt
    assert "prompt_is_back" in prompt
    assert "min_ms=300" in person
    assert "person_is_needed" in person


@pytest.mark.parametrize(
    ("since", "back"),
    [
        pytest.param("", False, id="the old prompt"),
        pytest.param("1+1", False, id="the echo"),
        pytest.param("1+1\r\n", False, id="it runs"),
        pytest.param("1+1\r\n2\r\n>>> ", True, id="the new prompt"),
    ],
)
async def test_only_a_prompt_that_came_after_the_code_ends_its_turn(since: str, back: bool) -> None:
    async with running_builtin("python-repl") as repl:
        now = at_prompt(since, params={"stable_ms": 50})
        assert bool(await repl.predicate("prompt_is_back", **now)) is back


ERRORS = {
    'Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>\nKeyError: 1': {
        "type": "KeyError",
        "message": "1",
    },
    'Traceback (most recent call last):\n  File "<stdin>", line 1\n    f()\nlib.Own\n': {
        "type": "lib.Own",
        "message": "",
    },
    '  + Exception Group Traceback (most recent call last):\n  |   File "<stdin>", line 1, in <module>\n'
    "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---": {
        "type": "ExceptionGroup",
        "message": "two (2 sub-exceptions)",
    },
    'Traceback (most recent call last):\n  File "/srv/app.py", line 7, in main\nOSError: logged': None,
    "a text that says\nTraceback (most recent call last):\nand goes on": None,
    "ValueError: said by a print": None,
}


@pytest.mark.parametrize("printed", ERRORS)
async def test_only_an_exception_that_reached_the_prompt_counts(printed: str) -> None:
    since = "f()\r\n" + printed.strip("\n").replace("\n", "\r\n") + "\r\n>>> "
    async with running_builtin("python-repl") as repl:
        state = await repl.state(**at_prompt(since))
    assert isinstance(state.metadata, dict)
    assert state.metadata["result"] == printed.strip("\n")
    assert state.metadata.get("error") == ERRORS[printed]


async def test_a_truncated_result_is_marked_as_such() -> None:
    tail = "x" * 16000 + "\r\n>>> "
    async with running_builtin("python-repl") as repl:
        state = await repl.state(
            ">>>",
            transcript=tail,
            cursor=90_000,
            markers={"evaluated": 100},
            screen_cursor={"row": 0, "col": 4, "visible": True},
        )
    assert isinstance(state.metadata, dict)
    assert state.metadata["result_truncated"] is True
    assert state.metadata["result"] == "x" * 4096
