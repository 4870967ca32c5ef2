"""The fake of Claude Code's terminal UI, on which the adapter's tests rely."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from telex.terminal.actions import BracketedPaste, Interrupt, Key, Text
from telex.terminal.cells import Size
from telex.terminal.session import Program, PtySession
from telex.terminal.waits.matchers import (
    AllOf,
    ContainsText,
    ScreenRegex,
    TextAbsent,
    TranscriptContains,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FAKE = str(Path(__file__).with_name("fake_claude.py"))
BOX = ScreenRegex(r"(?m)^─{100}\n❯[^\n]*\n─{100}\n  \[")
EMPTY_BOX = ScreenRegex(r"(?m)^─{100}\n❯\x{a0}?\n─{100}\n  \[")
SPINNER = ScreenRegex(r"(?m)^. Thinking… \(\d+s .* esc to interrupt\)$")
MARKER = ScreenRegex(r"(?m)^✻ Worked for 1s$")


class Driven:
    """The fake on a PTY, with the keys of a person."""

    def __init__(self, session: PtySession, log: Path) -> None:
        self.session, self._log = session, log

    async def sees(self, *matchers: Any) -> str:
        wanted = [ContainsText(m) if isinstance(m, str) else m for m in matchers]
        return (
            await self.session.wait(AllOf(tuple(wanted)), timeout=10)
        ).moment.snapshot.plain_text

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.session.act(Key(key))

    async def submits(self, prompt: str) -> None:
        await self.session.act(BracketedPaste(prompt))
        await self.press("enter")

    def received(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()]

    async def ends_with(self, code: int) -> None:
        assert (await self.session.ended()).code == code


@asynccontextmanager
async def started(where: Path, *args: str) -> AsyncIterator[Driven]:
    log = where / "typed.jsonl"
    log.touch()
    env = {"FAKE_LOG": str(log), "FAKE_STEP_MS": "5"}
    argv = (sys.executable, "-S", FAKE, *args)
    async with PtySession(Program(argv, cwd=str(where), env=env, size=Size(30, 100))) as session:
        yield Driven(session, log)


@asynccontextmanager
async def trusted(where: Path) -> AsyncIterator[Driven]:
    async with started(where) as fake:
        await fake.sees("Yes, I trust this folder")
        await fake.press("1", "enter")
        await fake.sees("Tips for getting started", EMPTY_BOX)
        yield fake


# Trust and login.


async def test_a_bare_enter_does_not_accept_the_folder_but_1_and_enter_do(tmp_path: Path) -> None:
    async with started(tmp_path) as fake:
        screen = await fake.sees("Accessing workspace:", "❯ 1. Yes, I trust this folder")
        assert f" {tmp_path}" in screen.split("\n")
        await fake.press("enter", "down")
        await fake.sees("❯ 2. No, exit")
        await fake.press("1", "enter")
        await fake.sees("Tips for getting started", EMPTY_BOX, TextAbsent("Accessing"))
        keys = [event["key"] for event in fake.received()]
        assert keys == ["enter", "down", "1", "enter"]


async def test_2_and_enter_exit_with_1(tmp_path: Path) -> None:
    async with started(tmp_path) as fake:
        await fake.sees("No, exit")
        await fake.press("2", "enter")
        await fake.ends_with(1)


async def test_a_login_asks_for_a_code_and_then_for_trust(tmp_path: Path) -> None:
    async with started(tmp_path, "--login") as fake:
        await fake.sees("Welcome to Claude Code", "https://claude.ai/oauth", "prompted >")
        await fake.submits("code-1")
        await fake.sees("Accessing workspace:", TextAbsent("claude.ai"))
        assert fake.received() == [{"paste": "code-1"}, {"key": "enter"}]


# Prompts.


async def test_a_pasted_prompt_is_thought_about_and_answered(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.session.act(BracketedPaste("hello\nthere"))
        await fake.sees("❯\u00a0hello\n  there\n───")
        await fake.press("enter")
        screen = await fake.sees(MARKER, EMPTY_BOX, TextAbsent("esc to interrupt"))
        await fake.sees(TranscriptContains("esc to interrupt"), "❯ hello\n  there\n")
        assert "⏺ You said 11 characters: hello" in screen
        assert fake.received()[2:] == [{"paste": "hello\nthere"}, {"key": "enter"}]


async def test_the_spinner_turns_by_itself(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("slow")
        for _ in range(3):
            glyph = (await fake.sees(SPINNER)).split(" Thinking")[0][-1]
            await fake.sees(ScreenRegex(rf"(?m)^[^{glyph}] Thinking…"))


async def test_a_prompt_may_be_typed_too_and_ctrl_j_is_a_new_line_in_it(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.session.act(Text("héé"))
        await fake.press("backspace", "ctrl_j", "x", "enter")
        await fake.sees("❯ hé\n  x\n", MARKER)


async def test_a_long_paste_is_folded_in_the_box_and_submitted_whole(tmp_path: Path) -> None:
    text = "\n".join(f"row {n} " + "." * 90 for n in range(12))
    async with trusted(tmp_path) as fake:
        await fake.session.act(BracketedPaste(text))
        await fake.sees("❯\u00a0[Pasted text #1 +11 lines]")
        await fake.press("enter")
        await fake.sees(f"You said {len(text)} characters", MARKER)
        assert {"paste": text} in fake.received()


async def test_an_error_is_a_row_and_then_the_prompt_again(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("an error")
        screen = await fake.sees("⎿\u00a0 API Error: 529", "try again in 30 seconds", EMPTY_BOX)
        assert "✻ Worked" not in screen


async def test_a_command_submitted_during_another_has_its_own_turn(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("slow")
        await fake.sees(SPINNER)
        await fake.submits("and then this")
        await fake.press("escape")
        screen = await fake.sees(MARKER)
        assert screen.index("Interrupted by user") < screen.index("❯ and then this")


# Cancelling.


async def test_esc_ends_a_slow_turn_and_shows_the_prompt(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("slow")
        await fake.sees(SPINNER)
        await fake.press("escape")
        await fake.sees("⎿\u00a0 Interrupted by user", EMPTY_BOX, TextAbsent("esc to interrupt"))
        assert fake.received()[-1] == {"key": "escape"}


async def test_two_escapes_are_two_keys(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("slow")
        await fake.sees(SPINNER)
        await fake.session.act(Text("\x1b\x1b"))
        await fake.sees("Interrupted by user")
        await fake.submits("again")
        await fake.sees(MARKER)
        assert fake.received()[-4:-2] == [{"key": "escape"}] * 2


# Dialogs.


@pytest.mark.parametrize("keys", [("enter",), ("2", "enter"), ("down", "enter")])
async def test_a_permission_that_is_given_leads_to_a_result(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("needs permission")
        screen = await fake.sees("Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and")
        assert "❯\u00a0" not in screen
        await fake.press(*keys)
        await fake.sees("⏺ Bash(ls beds)\n  ⎿\u00a0 alpha", "⏺ Three files.", MARKER, EMPTY_BOX)


@pytest.mark.parametrize("keys", [("escape",), ("3", "enter")])
async def test_a_permission_that_is_denied_leads_back_to_the_prompt(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("needs permission")
        await fake.sees("Do you want to proceed?")
        await fake.press(*keys)
        screen = await fake.sees("What should Claude do instead?", EMPTY_BOX)
        assert "alpha" not in screen


async def test_ctrl_o_shows_what_is_folded_and_folds_it_again(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("needs permission")
        await fake.sees("Do you want to proceed?")
        await fake.press("enter")
        await fake.sees("alpha\n     … +2 lines (ctrl+o to expand)", MARKER)
        await fake.press("ctrl_o")
        await fake.sees("alpha\n     beta\n     gamma")
        await fake.press("ctrl_o")
        await fake.sees("+2 lines (ctrl+o to expand)", TextAbsent("gamma"))


@pytest.mark.parametrize(("key", "then"), [("enter", "Done as planned."), ("escape", "rejected")])
async def test_a_plan_is_approved_or_not(tmp_path: Path, key: str, then: str) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("a plan please")
        await fake.sees("Ready to code?", " 1. Dig\n 2. Sow", "❯ 1. Yes, and use auto mode")
        await fake.press(key)
        await fake.sees(then, EMPTY_BOX)


@pytest.mark.parametrize(
    ("command", "shown"), [("/usage", "14% used"), ("/doctor", "Claude Code health")]
)
async def test_a_panel_replaces_the_box_until_esc(tmp_path: Path, command: str, shown: str) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits(command)
        assert "❯\u00a0" not in await fake.sees(shown, "Esc to cancel")
        await fake.press("escape")
        await fake.sees(f"❯ {command}", "Dialog dismissed", EMPTY_BOX, TextAbsent(shown))


async def test_a_model_is_chosen_and_then_named_in_the_status_bar(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.sees("[Opus 4.6]")
        await fake.submits("/model")
        await fake.sees("Select model", "Medium effort")
        await fake.press("right")
        await fake.sees("High effort")
        await fake.press("2", "enter")
        await fake.sees("Set model to Sonnet 4.5", "[Sonnet 4.5]")


async def test_cost_is_printed_above_the_box(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("/cost")
        await fake.sees("❯ /cost\n  ⎿\u00a0 Total cost:            $0.42", EMPTY_BOX)


# The screen, and the exit.


async def test_the_screen_is_redrawn_after_a_resize(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("hello")
        await fake.sees(MARKER)
        fake.session.resize(Size(20, 120))
        await fake.sees(ScreenRegex(r"(?m)^─{120}\n❯\x{a0}?\n─{120}\n  \[Opus 4.6\]"))


async def test_exit_ends_it_with_0(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.submits("/exit")
        await fake.ends_with(0)


async def test_only_the_second_ctrl_c_in_a_row_ends_it(tmp_path: Path) -> None:
    async with trusted(tmp_path) as fake:
        await fake.session.act(Interrupt())
        await fake.sees("Press Ctrl-C again to exit")
        await fake.press("x")
        await fake.sees(BOX, TextAbsent("again to exit"))
        await fake.session.act(Interrupt())
        await fake.sees("Press Ctrl-C again to exit")
        await fake.session.act(Interrupt())
        await fake.ends_with(0)
