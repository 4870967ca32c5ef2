"""The agent where a person sits: `telex agent exec` and the example UI, on a real terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

import telex
from telex import match

if TYPE_CHECKING:
    from telex.automation.portal import DualContext

    OnATerminal = DualContext[telex.AsyncTerminal, telex.Terminal]

EXAMPLE = Path(__file__).parents[2] / "examples/agent_ui.py"
ASKED = "why not:"


def on_a_terminal(environ: dict[str, str], work: Path, *command: str) -> OnATerminal:
    return telex.spawn(list(command), env=environ, cwd=work, cols=100)


def said(environ: dict[str, str], work: Path, text: str) -> OnATerminal:
    return on_a_terminal(environ, work, sys.executable, "-m", "telex", "agent", "exec", text)


def test_the_person_is_shown_the_command_and_says_yes(environ: dict[str, str], work: Path) -> None:
    with said(environ, work, "run touch one") as term:
        term.wait("touch one\n")
        term.wait(ASKED)
        assert not (work / "one").exists()
        term.type("y\n")
        term.wait(match.exited(0))
    assert (work / "one").exists()


@pytest.mark.parametrize("typed", ["n", "", "yess", "ja"])
def test_anything_but_a_yes_is_a_no(environ: dict[str, str], work: Path, typed: str) -> None:
    with said(environ, work, "run touch one") as term:
        term.wait(ASKED)
        term.type(f"{typed}\n")
        term.wait(match.exited())
    assert not (work / "one").exists()


def test_input_typed_before_the_question_does_not_answer_it(
    environ: dict[str, str], work: Path
) -> None:
    os.mkfifo(work / "began")
    with said(environ, work, "run echo it runs > began; read x < began\nrun touch one") as term:
        term.wait(ASKED)
        term.type("y\n")
        with telex.spawn(["cat", str(work / "began")]) as began:
            began.wait("it runs")
        mark = term.type("y\n")
        (work / "began").write_text("go on\n")
        term.wait("touch one\n", since=mark)
        term.wait(ASKED, since=mark)
        term.type("n\n")
        term.wait(match.exited())
    assert not (work / "one").exists()


def test_a_refusal_with_a_reason_lets_the_turn_continue(
    environ: dict[str, str], work: Path
) -> None:
    (work / "kept").touch()
    with said(environ, work, "run touch one\nlist") as term:
        term.wait(ASKED)
        term.type("not on a friday\n")
        term.wait("denied: not on a friday")
        term.wait("\nkept")
        term.wait(match.exited(0))
    assert not (work / "one").exists()


def test_always_is_not_asked_again(environ: dict[str, str], work: Path) -> None:
    with said(environ, work, "run touch one") as term:
        term.wait("[a]lways")
        term.type("a\n")
        term.wait(match.exited(0))
    (work / "one").unlink()
    with said(environ, work, "run touch one") as term:
        term.wait(match.exited(0))
        assert ASKED not in term.text()
    assert (work / "one").exists()


def test_remembered_decisions_can_be_listed_and_forgotten(
    environ: dict[str, str], work: Path
) -> None:
    def remembered(*more: str) -> str:
        with on_a_terminal(
            environ, work, sys.executable, "-m", "telex", "agent", "remembered", *more
        ) as term:
            term.wait(match.exited())
            return term.text()

    assert "nothing is remembered" in remembered()
    with said(environ, work, "run touch one") as term:
        term.wait(ASKED)
        term.type("a\n")
        term.wait(match.exited(0))
    assert '1  allow shell: text="touch one"' in remembered()
    assert "1 is forgotten" in remembered("--forget", "1")
    assert "there is no 1" in remembered("--forget", "1")
    with said(environ, work, "run touch one") as term:
        term.wait(ASKED)


@pytest.mark.parametrize("text", ["run touch one", "ask Who?"])
@pytest.mark.parametrize("signal", ["int", "term"])
def test_a_question_does_not_hold_up_an_end(
    environ: dict[str, str], work: Path, text: str, signal: Literal["int", "term"]
) -> None:
    with said(environ, work, text) as term:
        term.wait(match.any_of(ASKED, "Who?\n> "))
        term.interrupt() if signal == "int" else term.signal(signal)
        assert term.wait_exit() == 130
    assert not (work / "one").exists()


def test_always_is_not_offered_for_commands_that_run_workspace_files(
    environ: dict[str, str], work: Path
) -> None:
    with said(environ, work, "run python3 x.py") as term:
        term.wait(ASKED)
        assert "[a]lways" not in term.text()
        term.type("a\n")
        term.wait("denied: a")


def test_a_prompt_and_a_pick_are_answered_on_the_terminal(
    environ: dict[str, str], work: Path
) -> None:
    with said(environ, work, "ask Who?\npick red, blue") as term:
        term.wait("Who?")
        term.type("Ada\n")
        term.wait("2  blue")
        term.type("2\n")
        term.wait("You said: Ada\nYou chose: blue")
        term.wait(match.exited(0))


def test_the_example_ui_lists_asks_cancels_and_ends(environ: dict[str, str], work: Path) -> None:
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    (work / "a.py").touch()
    with on_a_terminal(environ, work, sys.executable, str(EXAMPLE)) as term:
        term.wait("> ")
        term.type("list *.py\n")
        term.wait("* list\na.py\n> ")
        os.mkfifo(work / "began")
        mark = term.type("run echo it runs > began; sleep 600\n")
        term.wait(ASKED, since=mark)
        mark = term.type("y\n")
        with telex.spawn(["cat", str(work / "began")]) as began:
            began.wait("it runs")
        term.interrupt()
        term.wait("[cancelled]", since=mark)
        mark = term.type("ask Who?\n")
        term.wait("Who?", since=mark)
        term.type("Ada\n")
        term.wait("You said: Ada")
        term.eof()
        assert term.wait_exit() == 0
