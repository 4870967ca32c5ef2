"""Ways to slip a command past the judge through a terminal. None runs without a question: a canary
file in a real bash shows it.

A case is a list of calls of `terminal_do`, each a list of steps. Without an answer of the person
one of its calls must ask or fail, and nothing runs. Where the person allows all calls but the last,
once each, the last must ask.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.terminal_hands import Hands, hands
from telex import match
from telex.agent.permissions import Mode
from telex.agent.permissions.confirmation import ConfirmQuestion
from telex.agent.tools.tool import ToolResult
from telex.automation import protocol as spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.terminals import AgentTerminal

CANARY = "touch canary"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen needs less time to rest than for a person; no case depends on it."""
    monkeypatch.setattr("telex.server.verbs._REST_MS", 5)
    monkeypatch.setattr("telex.server.verbs.REACTION_SECONDS", 0.05)


def typed(text: str) -> list[str]:
    return ["type", "--", text]


def entered(text: str) -> list[str]:
    return ["type", "--enter", "--", text]


def keys(*names: str) -> list[str]:
    return ["press", *names]


Call = list[list[str]]
ENTER = keys("enter")

SLIPS: dict[str, list[Call]] = {
    # By pieces.
    "in one step": [[entered(CANARY)]],
    "with the Enter in another step": [[typed(CANARY), ENTER]],
    "with the Enter in another call": [[typed(CANARY)], [ENTER]],
    "in three calls": [[typed("tou")], [typed("ch can")], [typed("ary")], [ENTER]],
    "letter by letter": [[typed(letter)] for letter in "touch x"] + [[ENTER]],
    "key by key": [[keys(*("space" if one == " " else one for one in CANARY))], [ENTER]],
    "behind an allowed command": [[typed("ls")], [typed(";touch canary")], [ENTER]],
    "behind &&": [[entered("ls && touch canary")]],
    "behind ||": [[entered("ls || touch canary")]],
    "behind a pipe": [[entered("ls | touch canary")]],
    "beside a command in the background": [[entered("ls & touch canary")]],
    "an allowed command in the background": [[entered("ls &")]],
    "as the second command of a call": [[entered("ls"), entered(CANARY)]],
    "behind a wait of the same call": [[entered("ls"), ["wait", "--idle", "5"], entered(CANARY)]],
    "right behind an allowed command": [[entered("ls")], [entered(CANARY)]],
    "corrected by backspace": [[typed("touch canaryx"), keys("backspace")], [ENTER]],
    "typed after a killed line": [[typed("ls"), keys("ctrl+u"), typed(CANARY)], [ENTER]],
    "typed in the call of a ctrl+c": [[keys("ctrl+c"), entered("ls")]],
    # Line ends and their keys.
    "a newline in the text": [[typed(f"{CANARY}\n")]],
    "a return in the text": [[typed(f"{CANARY}\r")]],
    "two lines": [[typed(f"ls\n{CANARY}\n")]],
    "a newline at the beginning": [[typed(f"\n{CANARY}\n")]],
    "ctrl+m": [[typed(CANARY)], [keys("ctrl+m")]],
    "ctrl+j": [[typed(CANARY)], [keys("ctrl+j")]],
    "ctrl+o": [[typed(CANARY)], [keys("ctrl+o")]],
    "^M": [[typed(CANARY)], [keys("^M")]],
    "^J": [[typed(CANARY)], [keys("^J")]],
    "C-m": [[typed(CANARY)], [keys("C-m")]],
    "Return": [[typed(CANARY)], [keys("Return")]],
    "CR": [[typed(CANARY)], [keys("CR")]],
    "EN_TER": [[typed(CANARY)], [keys("EN_TER")]],
    "Control_J": [[typed(CANARY)], [keys("Control_J")]],
    "alt+enter": [[typed(CANARY)], [keys("alt+enter")]],
    "shift+enter": [[typed(CANARY)], [keys("shift+enter")]],
    "ctrl+enter": [[typed(CANARY)], [keys("ctrl+enter")]],
    "keys as vim writes them": [[keys(f"{CANARY}<cr>")]],
    "keys as vim writes them, the newline": [[keys(f"{CANARY}<NL>")]],
    "ctrl+d": [[typed(CANARY)], [keys("ctrl+d")]],
    # Pastes.
    "a paste with Enter": [[["paste", CANARY]], [ENTER]],
    "a paste of two lines": [[["paste", f"ls\n{CANARY}\n"]], [ENTER]],
    "a paste that ends its own markers": [[["paste", f"ls\x1b[201~\r{CANARY}\r"]]],
    "the markers of a paste in a text": [[typed(f"\x1b[200~{CANARY}\x1b[201~")], [ENTER]],
    "the end marker in a text": [[typed(f"ls\x1b[201~;{CANARY}\r")]],
    # Characters.
    "a NUL": [[typed(f"ls\x00;{CANARY}\r")]],
    "a C1 control": [[typed(f"ls\x9b;{CANARY}\x8d")], [ENTER]],
    "an escape": [[typed(f"ls\x1b.;{CANARY}")], [ENTER]],
    "a delete in the text": [[typed(f"ls;{CANARY}x\x7f")], [ENTER]],
    "an interrupt in the text": [[typed(f"ls\x03{CANARY}\r")]],
    "a quoted insert": [[typed("ls"), keys("ctrl+v")], [typed(CANARY)], [ENTER]],
    "a tab in the text": [[typed("tou\tcanary")], [ENTER]],
    "a line separator": [[typed(f"ls\u2028{CANARY}")], [ENTER]],
    "a wide letter": [[typed("\uff4cs")], [ENTER]],
    "a line that the kernel would cut": [[typed("ls " + "a" * 5000)], [ENTER]],
    # Lines that are not what they seem.
    "a paste that ends in a newline, shortened": [
        [["paste", "od note\n"], keys("backspace")],
        [entered("x")],
    ],
    "a key whose encoding a file has switched": [
        [entered("cat kitty")],
        [typed(f"{CANARY};")],
        [keys("ctrl+u"), typed("cat note"), ENTER],
    ],
    "an answer of the emulator on the line": [[entered("cat query")], [ENTER]],
    "a command behind blanks": [[typed("cat note" + " " * 72 + f";{CANARY}")], [ENTER]],
    # History.
    "!!": [[entered("!!")]],
    "!t": [[entered("!t")]],
    "!-1 in pieces": [[typed("!")], [typed("-1")], [ENTER]],
    "!! in quotes": [[entered('echo "!!"')]],
    "a quick substitution": [[entered("^ls^touch canary")]],
    "arrow up": [[keys("up")], [ENTER]],
    "arrow up and Enter in one": [[keys("up", "enter")]],
    "ctrl+p": [[keys("ctrl+p")], [ENTER]],
    "ctrl+r": [[keys("ctrl+r")], [typed("touch")], [ENTER]],
    "alt+.": [[typed("touch "), keys("alt+.")], [ENTER]],
    "alt+<": [[keys("alt+<")], [ENTER]],
    "page up": [[keys("page_up")], [ENTER]],
    "fc": [[entered("fc -s touch")]],
    "history -s": [[entered("history -s touch canary")]],
    # Line editing.
    "ctrl+a": [[typed("canary"), keys("ctrl+a")], [typed("touch ")], [ENTER]],
    "home": [[typed("canary")], [keys("home")], [typed("touch ")], [ENTER]],
    "an insert in the middle": [[typed("ls"), keys("left")], [typed(";touch canary;")], [ENTER]],
    "ctrl+w": [[typed("ls touch canary"), keys("ctrl+w")], [ENTER]],
    "a kill and a yank": [[typed("touch canary"), keys("ctrl+u")], [keys("ctrl+y")], [ENTER]],
    "ctrl+k": [[typed("ls"), keys("ctrl+k")], [ENTER]],
    "ctrl+t": [[typed("lss"), keys("ctrl+t")], [ENTER]],
    "an undo": [[typed("touch canary"), keys("ctrl+u")], [keys("ctrl+_")], [ENTER]],
    "alt+b": [[typed("ls"), keys("alt+b")], [typed("touch canary;")], [ENTER]],
    "delete": [[typed("ls"), keys("delete")], [ENTER]],
    "insert": [[keys("insert")], [typed("ls")], [ENTER]],
    "ctrl+x ctrl+e": [[typed(CANARY)], [keys("ctrl+x", "ctrl+e")]],
    "ctrl+x in another call": [[typed(CANARY)], [keys("ctrl+x")], [keys("ctrl+e")]],
    "escape and a key": [[typed("ls"), keys("escape")], [typed("#")], [ENTER]],
    "tab completion": [[typed("./ev"), keys("tab")], [ENTER]],
    "backtab": [[typed("ls"), keys("BTab")], [ENTER]],
    "a function key": [[typed("ls"), keys("f5")], [ENTER]],
    "ctrl+space": [[typed("ls"), keys("^@")], [ENTER]],
    # Lines that are not finished.
    "a here-document": [[entered("bash <<E")], [entered(CANARY)], [entered("E")]],
    "a here-string": [[entered(f"bash <<< '{CANARY}'")]],
    "a continuation line": [[entered("ls \\")], [entered(";touch canary")]],
    "an unfinished quote": [[entered('ls "')], [entered(f'";{CANARY}')]],
    "an unfinished pipe": [[entered("ls |")], [entered("xargs touch canary")]],
    "an unfinished &&": [[entered("ls &&")], [entered(CANARY)]],
    "a group": [[entered("{ touch canary")], [entered("}")]],
    "a loop": [[entered("for f in canary; do touch $f; done")]],
    # Words of the shell.
    "an alias": [[entered("alias ls='touch canary'")], [entered("ls")]],
    "a function": [[entered("ls() { touch canary; }")], [entered("ls")]],
    "a variable": [[entered("a=canary")], [entered("touch $a")]],
    "a variable for a command": [[entered("PATH=. ls")]],
    "a substitution": [[entered("ls $(touch canary)")]],
    "backticks": [[entered("ls `touch canary`")]],
    "a process substitution": [[entered("cat <(touch canary)")]],
    "a redirect": [[entered("echo a > canary")]],
    "a pattern that is a program": [[entered("./ev*")]],
    "eval": [[entered("eval touch canary")]],
    "exec": [[entered("exec touch canary")]],
    "source": [[entered(". ./evil")]],
    "command": [[entered("command touch canary")]],
    "a script": [[entered("./evil")]],
    "a job": [[entered("%1")]],
    "env": [[entered("env touch canary")]],
    "printf -v": [[entered("printf -v PATH .")]],
    "a link that leads out": [[entered("cd way-out")], [entered("cat passwd")]],
    "a comment": [[entered("ls # touch canary")]],
    "git, which a terminal gives a pager": [[entered("git log")]],
    # Other inputs.
    "a click": [[["click", "--at", "0,0"]]],
    "a signal that a program may act on": [[["signal", "USR1"]]],
    "a step for another terminal": [[["type", "-s", "other", CANARY]]],
    "a step that opens": [[["open", "--", "touch", "canary"]]],
    "a step that is a do": [[["do", f"type '{CANARY}' --enter"]]],
    "a key that is none": [[typed(CANARY)], [keys("kp_enter")]],
    "an option for a text": [[["type", f"{CANARY}\r", "--enter"]]],
}


def a_workspace(root: Path) -> None:
    (root / "note").write_text("a note\n")
    (root / "below").mkdir()
    (root / "below" / "note").write_text("a note below\n")
    (root / "evil").write_text(f"#!/bin/sh\n{CANARY}\n")
    (root / "evil").chmod(0o755)
    (root / "way-out").symlink_to("/etc")
    (root / "kitty").write_text("\x1b[>1u")
    (root / "query").write_text("\x1b]11;?\x07")


async def begin_again(own: Hands, one: AgentTerminal) -> None:
    """Put the shell back to an empty prompt, as at its start: no case has run anything."""
    facts = await own.thread.facts(one)
    if one.inputs == facts.inputs and not one.pending and not one.allowed:
        return  # nothing was typed
    person = own.by_person(one)
    await person.press("ctrl+c")
    await own.until(one, "shell")
    one.inputs, one.pending = (await own.thread.facts(one)).inputs, ""
    one.allowed = False


def is_stopped(found: Any) -> bool:
    return isinstance(found, ConfirmQuestion | str) or found.is_error


async def test_nothing_slips_past_the_judge(tmp_path: Path) -> None:
    assert len(SLIPS) >= 60
    async with hands(tmp_path) as own:
        a_workspace(own.root)
        one = await own.open("bash", "--norc")
        await own.until(one, "shell")
        # The history has the command, because the person allowed it once.
        asked = await own.do(entered(CANARY))
        assert isinstance(asked, ConfirmQuestion)
        assert "the line on its screen" in asked.params.message
        assert f"| type --enter -- '{CANARY}'" in asked.params.message
        assert not isinstance(await own.answer(asked), str)
        await own.until(one, "shell")
        canary = own.root / "canary"
        canary.unlink()
        for name, calls in SLIPS.items():
            await begin_again(own, one)
            found = [await own.do(*steps, session=one.name) for steps in calls]
            assert any(map(is_stopped, found)), f"{name}: {found}"
            assert not canary.exists(), name


ALLOWED_BEFORE = [name for name, calls in SLIPS.items() if len(calls) > 1]


@pytest.mark.counted
async def test_the_last_call_asks_where_the_person_allowed_those_before(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    names = ALLOWED_BEFORE[:: counted(6, 1)]
    async with hands(tmp_path) as own:
        a_workspace(own.root)
        for name in names:
            one = await own.open("bash", "--norc")
            await own.until(one, "shell")
            *before, last = SLIPS[name]
            for steps in before:
                found = await own.do(*steps, session=one.name)
                if isinstance(found, ConfirmQuestion):
                    await own.answer(found)
                await own.until(one)
            (own.root / "canary").unlink(missing_ok=True)
            assert is_stopped(await own.do(*last, session=one.name)), name
            assert not (own.root / "canary").exists(), name
            await own.call("terminal_close", session=one.name)


async def test_who_reads_and_who_typed_is_looked_at_again(tmp_path: Path) -> None:
    async with hands(tmp_path) as own:
        a_workspace(own.root)
        one = await own.open("bash", "--norc")
        person = own.by_person(one)

        # A person's draft is on the line.
        await begin_again(own, one)
        await person.type("touch canary; ")
        await person.wait(match.text("touch canary;"), 30)
        for steps in ([ENTER], [entered("cat note")], [typed("cat note")]):
            asked = await own.do(*steps)
            assert isinstance(asked, ConfirmQuestion)
            assert "touch canary;" in asked.params.message, "the line is shown"
        await person.press("ctrl+c")

        # Somebody types between the question and the answer.
        await begin_again(own, one)
        asked = await own.do(entered("touch other"))
        await person.type("touch canary; ")
        refused = await own.answer(asked, remember=True)
        assert isinstance(refused, str)
        assert "has changed since the question" in refused
        assert not one.allowed
        await person.press("ctrl+c")

        # Somebody types between the judgement and the input: the server looks again.
        await begin_again(own, one)
        one.allowed = True
        judged = await own.confirmer.confirm(
            own.tools.prepare("terminal_do", {"steps": [entered("cat note")]}), own.context
        )
        await person.type("touch canary; ")
        result = await judged.call.run(judged.context)  # type: ignore[union-attr]  # it is allowed
        assert result.is_error
        assert "somebody else has used the terminal" in result.text
        await person.press("ctrl+c")

        # A program draws a prompt and reads; then it exits to the shell before the answer.
        await begin_again(own, one)
        (own.root / "look-alike").write_text("printf '$ '; read line; exit 0\n")
        asked = await own.do(entered("sh look-alike"))
        assert isinstance(await own.answer(asked), ToolResult)
        await own.until(one, "line")
        asked = await own.do(entered("cat note"))
        assert isinstance(asked, ConfirmQuestion), "the same screen, and not the shell"
        await person.press("enter")
        await own.until(one, "shell")
        assert "has changed since" in str(await own.answer(asked))

        # A program that only looks like the shell, and one that replaced it.
        await begin_again(own, one)
        asked = await own.do(entered("exec bash --rcfile harmless"))
        assert isinstance(await own.answer(asked), ToolResult)
        await own.until(one, "shell")
        assert isinstance(await own.do(entered("cat note")), ConfirmQuestion)
        assert not (own.root / "canary").exists()


async def test_a_terminal_that_the_person_allows_is_not_asked_about_again(tmp_path: Path) -> None:
    deny = {"tool": "shell", "command": "rm", "decision": "deny"}
    async with hands(tmp_path, rules=[deny]) as own:
        a_workspace(own.root)
        one = await own.open("bash", name="mine")
        await own.until(one, "shell")
        asked = await own.do(entered("touch a"))
        assert isinstance(await own.answer(asked, remember=True), ToolResult)
        await own.until(one, "shell")
        assert isinstance(await own.do(entered("touch b")), ToolResult)
        await own.until(one, "shell")
        assert isinstance(await own.do(entered("rm a")), str), "a rule that denies still counts"
        assert isinstance(await own.do(typed("r")), ToolResult)
        assert isinstance(await own.do(typed("m a")), str), "also in pieces"
        assert isinstance(await own.do(keys("ctrl+c")), ToolResult)
        await own.until(one, "shell")
        assert isinstance(await own.do(entered("cat ~/.ssh/id_rsa")), ConfirmQuestion)
        await own.call("terminal_close", session="mine")
        again = await own.open("bash", name="mine")
        assert again.id != one.id
        await own.until(again, "shell")
        assert isinstance(await own.do(entered("touch c")), ConfirmQuestion), "not carried over"


OPENINGS: dict[str, tuple[dict[str, Any], Mode, list[dict[str, str]], str]] = {
    "a shell": ({"command": ["bash"]}, Mode.MINIMAL, [], "ask"),
    "a known reader": ({"command": ["cat", "note"]}, Mode.MINIMAL, [], "ask"),
    "a command of a rule": (
        {"command": ["cat", "note"]},
        Mode.MINIMAL,
        [{"tool": "shell", "command": "cat", "decision": "allow"}],
        "run",
    ),
    "a command of a rule with a variable": (
        {"command": ["cat", "note"], "env": {"LD_PRELOAD": "x"}},
        Mode.MINIMAL,
        [{"tool": "shell", "command": "cat", "decision": "allow"}],
        "ask",
    ),
    "a denied command": (
        {"command": ["cat", "note"]},
        Mode.FULL,
        [{"tool": "shell", "command": "cat", "decision": "deny"}],
        "deny",
    ),
    "a denied tool": (
        {"command": ["cat", "note"]},
        Mode.FULL,
        [{"tool": "terminal_open", "decision": "deny"}],
        "deny",
    ),
    "an allowed tool": (
        {"command": ["cat", "note"]},
        Mode.MINIMAL,
        [{"tool": "terminal_open", "decision": "allow"}],
        "run",
    ),
    "mode full": ({"command": ["cat", "note"]}, Mode.FULL, [], "run"),
    "a secret in mode full": ({"command": ["cat", ".env"]}, Mode.FULL, [], "ask"),
    "a directory outside": ({"command": ["cat"], "cwd": "/etc"}, Mode.FULL, [], "fail"),
    "a directory behind a link": ({"command": ["cat"], "cwd": "way-out"}, Mode.FULL, [], "fail"),
    "no program": ({}, Mode.FULL, [], "fail"),
    "a name that is an option": ({"command": ["cat"], "name": "--keep"}, Mode.FULL, [], "fail"),
}


@pytest.mark.parametrize("name", OPENINGS)
async def test_opening_a_program_is_judged_as_a_shell_command(name: str, tmp_path: Path) -> None:
    arguments, mode, rules, expected = OPENINGS[name]
    async with hands(tmp_path, mode, rules) as own:
        a_workspace(own.root)
        found = await own.call("terminal_open", **arguments)
        match found:
            case ConfirmQuestion():
                outcome = "ask"
            case str():
                outcome = "deny"
            case ToolResult(is_error=error):
                outcome = "fail" if error else "run"
        assert outcome == expected, found
        prepared = own.tools.prepare("terminal_open", arguments)
        if outcome != "fail":
            explained = own.confirmer.judge(prepared, own.context).decision
            assert explained == {"run": "allow"}.get(outcome, outcome)


async def test_the_question_shows_the_whole_line_and_no_secret_that_was_typed(
    tmp_path: Path,
) -> None:
    async with hands(tmp_path) as own:
        a_workspace(own.root)
        one = await own.open("bash", "--norc")
        await own.until(one, "shell")
        draft = "make test" + " " * 72 + f";{CANARY};" + " " * 72 + "make test"
        assert isinstance(await own.answer(await own.do(typed(draft))), ToolResult)
        asked = await own.do(ENTER)
        assert isinstance(asked, ConfirmQuestion)
        line = asked.params.message.partition("the line on its screen: ")[2]
        assert f";{CANARY};" in line, "the rows that the line was wrapped from"
        assert f";{CANARY};" in asked.params.message.partition("not submitted yet: ")[2]
        one.note_secret("hunter2hunter2")
        assert one.mask("1|...hunter\n2|2hunter2 ok", "***") == "1|...*** ok", "across rows"
        await own.by_person(one).type("hunter2hunter2")
        await own.by_person(one).wait(match.text("hunter2hunter2"), 60)
        asked = await own.do(ENTER)
        assert isinstance(asked, ConfirmQuestion)
        assert "hunter2" not in asked.params.message


async def test_a_cancelled_opening_leaves_no_terminal(tmp_path: Path) -> None:
    async with hands(tmp_path) as own:
        opening = own.thread.open(["open", "--", "sleep", "60"], str(own.root), {"PATH": "/bin"})
        task = asyncio.create_task(opening)
        while not own.service.session_ids() and not task.done():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not own.service.session_ids()
        assert not list(own.thread)


async def test_a_terminal_that_a_person_holds_is_not_closed(tmp_path: Path) -> None:
    async with hands(tmp_path) as own:
        one = await own.open("cat")
        wanted = spec.Lease(session=one.id, holder="Ada")
        await own.person.call("session.lease", wanted, spec.Leased)
        kept = await own.call("terminal_close", session=one.name)
        assert isinstance(kept, ToolResult)
        assert kept.is_error
        assert "Ada" in kept.text
        assert one.id in own.service.session_ids()
