"""The `shell` adapter: the state of each fixture, and the actions of each intent."""

from __future__ import annotations

from typing import Any

import pytest

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
from telex.terminal.waits.matchers import (
    AllOf,
    AnyOf,
    Lua,
    ProcessExited,
    ScreenStable,
    TranscriptRegex,
)

FIXTURES = fixtures("shell")
SUBMITTED = MarkTranscript(TranscriptLabel("submitted"))
A, B, C = "\x1b]133;A\x07", "\x1b]133;B\x07", "\x1b]133;C\x07"
READS, LEFT = "\x1b[?2004h", "\x1b[?2004l"


def shown(name: str, **context: Any) -> dict[str, Any]:
    return {**FIXTURES[name].context(), **context}


def moment(before: str, since: str, screen: str, col: int) -> dict[str, Any]:
    """Return the input of a predicate at a moment after a command was submitted."""
    row = screen.count("\n")
    return {
        "screen": screen.rstrip(),
        "transcript": before + since,
        "cursor": 1000 + len(since),
        "markers": {"submitted": 1000},
        "screen_cursor": {"row": row, "col": col, "visible": True},
        "params": {"stable_ms": 300},
    }


@pytest.mark.parametrize("name", FIXTURES)
async def test_each_fixture_has_its_state(name: str) -> None:
    async with running_builtin("shell") as shell:
        assert await shell.wrong(FIXTURES[name]) == []


def test_every_state_has_a_screen_to_show_it() -> None:
    states = {fixture.expected.state for fixture in FIXTURES.values()}
    assert states == {
        "starting",
        "prompt",
        "running",
        "continuation",
        "password_prompt",
        "exited",
        "unknown",
    }


async def test_describe_lists_exactly_the_exported_functions() -> None:
    async with running_builtin("shell") as shell:
        catalogue, exports = await shell.catalogue(), await shell.exports()
    offered = [*catalogue.intents, *catalogue.wait_matchers]
    assert {one["name"] for one in offered} <= exports
    assert all(one["description"] for one in [*offered, *catalogue.states])
    states = {one["name"] for one in catalogue.states}
    assert {fixture.expected.state for fixture in FIXTURES.values()} <= states


async def test_a_command_is_marked_typed_and_entered() -> None:
    async with running_builtin("shell") as shell:
        plan = await shell.plan("run", shown=shown("osc_prompt"), command="ls -l")
    assert plan.actions == (SUBMITTED, Text("ls -l"), Key("enter"))
    assert plan.last_intent == "command_submitted"


@pytest.mark.parametrize("command", ["cat <<E\n\ta\nE", "printf '\t'"])
async def test_text_that_a_line_editor_would_interpret_is_pasted(command: str) -> None:
    async with running_builtin("shell") as shell:
        plan = await shell.plan("run", shown=shown("osc_prompt"), command=command)
        typed = await shell.plan(
            "run", shown=shown("dash_prompt", transcript="$ "), command=command
        )
    assert plan.actions[1] == BracketedPaste(command)
    assert typed.actions[1] == Text(command)  # dash has no line editor with bracketed paste


@pytest.mark.parametrize(
    "name", ["osc_running", "osc_continuation", "osc_sudo", "near_dollar_above_cursor"]
)
async def test_a_command_is_refused_without_a_prompt(name: str) -> None:
    async with running_builtin("shell") as shell:
        with pytest.raises(PluginProblem) as caught:
            await shell.plan("run", shown=shown(name), command="ls")
        forced = await shell.plan("run", shown=shown(name), command="ls", force=True)
    assert caught.value.code == "not_at_prompt"
    assert forced.actions[1:] == (Text("ls"), Key("enter"))


@pytest.mark.parametrize("name", ["osc_password_typed", "plain_typed"])
async def test_a_command_is_refused_behind_a_line_half_typed(name: str) -> None:
    async with running_builtin("shell") as shell:
        with pytest.raises(PluginProblem) as caught:
            await shell.plan("run", shown=shown(name), command="ls")
    assert caught.value.code == "line_not_empty"


@pytest.mark.parametrize("params", [{}, {"command": 7}, {"command": "a\x1bb"}])
async def test_an_invalid_command_is_refused(params: dict[str, Any]) -> None:
    async with running_builtin("shell") as shell:
        with pytest.raises(PluginProblem) as caught:
            await shell.plan("run", shown=shown("osc_prompt"), **params)
    assert caught.value.code == "bad_params"
    assert "`command`" in caught.value.problem


async def test_a_password_is_typed_only_at_a_password_prompt_and_is_in_no_message() -> None:
    async with running_builtin("shell") as shell:
        plan = await shell.plan("answer_password", shown=shown("osc_sudo"), password="hunter2")
        with pytest.raises(PluginProblem) as caught:
            await shell.plan("answer_password", shown=shown("osc_prompt"), password="hunter2")
    assert plan.actions == (SUBMITTED, Text("hunter2"), Key("enter"))
    assert plan.last_intent == "password_answered"
    assert caught.value.code == "no_password_prompt"
    assert "hunter2" not in str(caught.value)


async def test_the_small_intents() -> None:
    async with running_builtin("shell") as shell:
        assert (await shell.plan("interrupt")).actions == (SUBMITTED, Interrupt())
        assert (await shell.plan("eof")).actions == (SUBMITTED, Eof())
        assert (await shell.plan("type", text="a b")).actions == (Text("a b"),)
        assert (await shell.plan("key", key="tab")).actions == (Key("tab"),)
        assert (await shell.plan("key", key="enter")).actions == (SUBMITTED, Key("enter"))
        assert (await shell.plan("type", text="ls\n")).actions == (SUBMITTED, Text("ls\n"))
        assert (await shell.plan("clear")).actions == (Key("ctrl_l"),)


async def test_a_turn_ends_at_once_by_a_mark_and_after_a_stable_time_by_structure() -> None:
    async with running_builtin("shell") as shell:
        matcher = await shell.matcher("wait_turn_matcher", completed_turn_stable_ms=70)
        output = await shell.matcher("wait_output_matcher", regex="do.e")
    assert isinstance(matcher, AnyOf)
    over, marked, looked = matcher.value
    assert isinstance(over, ProcessExited)
    assert isinstance(marked, Lua)
    assert isinstance(looked, AllOf)
    still, seen = looked.value
    assert isinstance(still, ScreenStable)
    assert (still.value.min_ms, still.value.since) == (70, "change")
    assert isinstance(seen, Lua)
    assert (marked.value.plugin, seen.value.predicate) == ("shell", "person_is_needed")
    assert output == TranscriptRegex("do.e")


BEFORE = f"{A}{READS}$ {B}"


@pytest.mark.parametrize(
    ("since", "screen", "col", "back"),
    [
        pytest.param("", "$ ", 2, False, id="the old prompt"),
        pytest.param("make", "$ make", 6, False, id="the echo"),
        pytest.param(f"\r$ {B}make", "$ make", 6, False, id="the prompt drawn again"),
        pytest.param(f"make\r\n{LEFT}\r{C}", "$ make\n", 0, False, id="it runs"),
        pytest.param(
            f"make\r\n{LEFT}\r{C}\x1b]133;D;0\x07", "$ make\n", 0, False, id="not drawn yet"
        ),
        pytest.param(
            f"make\r\n{LEFT}\r{C}\x1b]133;D;0\x07{A}{READS}$ {B}",
            "$ make\n$ ",
            2,
            True,
            id="the new prompt",
        ),
    ],
)
async def test_only_a_prompt_that_came_after_the_command_ends_its_turn(
    since: str, screen: str, col: int, back: bool
) -> None:
    async with running_builtin("shell") as shell:
        now = moment(BEFORE, since, screen, col)
        marked = await shell.predicate("prompt_is_marked", **now)
        seen = await shell.predicate("person_is_needed", **now)
    assert (bool(marked), bool(seen)) == (back, back)


@pytest.mark.parametrize(
    ("since", "asked"), [("", False), ("\r\n", False), ("\r\nSorry.\r\nPassword: ", True)]
)
async def test_a_password_asked_before_is_not_asked_again(since: str, asked: bool) -> None:
    async with running_builtin("shell") as shell:
        now = moment(f"{B}sudo\r\n{C}Password: ", since, "$ sudo\nPassword: ", 10)
        assert bool(await shell.predicate("person_is_needed", **now)) is asked


async def test_output_is_searched_behind_the_echo() -> None:
    async with running_builtin("shell") as shell:
        for since, there in (("echo hi", False), ("echo hi\r\nhi\r\n", True)):
            now = moment(BEFORE, since, "$ echo hi", 9) | {"params": {"text": "hi"}}
            assert bool(await shell.predicate("output_contains", **now)) is there


@pytest.mark.parametrize(
    ("url", "cwd"),
    [
        ("file://box/home/a%20b", "/home/a b"),
        ("file:///tmp", "/tmp"),
        ("file://box/%ff", None),
        ("kitty-shell-cwd://x", None),
    ],
)
async def test_the_directory_is_reported_if_it_is_text(url: str, cwd: str | None) -> None:
    async with running_builtin("shell") as shell:
        state = await shell.state("$", transcript=f"\x1b]7;{url}\x1b\\{A}$ {B}")
    assert isinstance(state.metadata, dict)
    assert state.metadata.get("cwd") == cwd


@pytest.mark.parametrize(
    "transcript",
    ["\x1b]133;" * 3000, "a\b" * 8000, "\x1b]" * 8000, f"{B}" + " " * 16000 + "x", "\x1b[" * 8000],
    ids=["halves of marks", "backspaces", "halves of strings", "blanks", "halves of sequences"],
)
async def test_no_output_exceeds_the_instruction_budget(transcript: str) -> None:
    async with running_builtin("shell") as shell:
        state = await shell.state("text\n", transcript=transcript + C)
        assert state.state == "running"
        state = await shell.state("text\n", transcript=transcript)
        assert state.state in {"running", "prompt", "unknown"}
