"""Decide whether typed input may go to a program on a terminal without a question. Pure.

A terminal has no kernel sandbox. A line editor makes a command of any key, a program changes how
keys are encoded and what they mean, and the emulator itself types answers. So an input asks, with
its exact text and the line on the screen, and without a question there are only

    keys that only move through a pager
    ctrl+c in a call of its own, and signals that end a program

The person may allow a terminal as a whole.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from telex.terminal import actions
from telex.terminal.input_state import State
from telex.terminal.keys import parse_key

if TYPE_CHECKING:
    from telex.automation.verb_protocol import TypingFacts

_PAGERS: Final = ("less", "more")
_PAGER_KEYS: Final = frozenset(
    ("space", "up", "down", "left", "right", "page_up", "page_down", "home", "end")
)
_PAGER_LETTERS: Final = frozenset(" bdfgGjkqu")
_ENDING_SIGNALS: Final = frozenset(("int", "term", "hup", "quit", "kill"))
ANY_STATE: Final = get_args(State)


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Inputs that are judged: what each does, and the texts that they submit."""

    actions: tuple[actions.Action, ...]

    def texts(self, before: str) -> tuple[str, ...]:
        """Return every line that these inputs may submit or leave, `before` at its beginning."""
        return tuple(dict.fromkeys(one for one in self._lines(before) if one.strip()))

    def rest(self, before: str) -> str:
        """Return the text after the last of these inputs that is a key or a line end."""
        return self._lines(before)[-1]

    def _lines(self, before: str) -> list[str]:
        lines, line = list[str](), before
        for action in self.actions:
            text = _text(action)
            if text is None:
                lines.append(line)
                line = ""
                continue
            *whole, last = re.split(r"[\r\n]", line + text)
            lines += whole
            line = last
        return [*lines, line]


@dataclass(frozen=True, slots=True)
class FreeInput:
    """Inputs that may be sent without a question."""

    states: tuple[str, ...]
    """The input states of which one must hold when the first input is written."""


@dataclass(frozen=True, slots=True)
class AskedInput:
    """Inputs that need a question, and why."""

    why: str


def judge_input(typed: TypedInput, facts: TypingFacts) -> FreeInput | AskedInput:
    """Decide about inputs for the program that reads the terminal now."""
    if _only_interrupts(typed):
        return FreeInput(ANY_STATE)
    if facts.input.state == "pager" and posixpath.basename(facts.executable) in _PAGERS:
        if all(_moves_pager(action) for action in typed.actions):
            return FreeInput(("pager",))
        return AskedInput("not all of these keys only move through a pager")
    return AskedInput("what a program on a terminal reads runs outside the kernel's sandbox")


def _text(action: actions.Action) -> str | None:
    """Return the text that an input types; None for a key that is no text."""
    match action:
        case actions.Text(value) | actions.Paste(value) | actions.BracketedPaste(value):
            return value
        case actions.Key(value):
            pressed = parse_key(value)
            if pressed.ctrl or pressed.alt or pressed.shift:
                return None
            if pressed.key == "space":
                return " "
            return pressed.key if len(pressed.key) == 1 else None
    return None


def _only_interrupts(typed: TypedInput) -> bool:
    """Return whether all inputs only end a program: one ctrl+c, or signals that do."""
    keys = [one for one in typed.actions if not isinstance(one, actions.Signal)]
    signals = [one for one in typed.actions if isinstance(one, actions.Signal)]
    if any(one.value not in _ENDING_SIGNALS for one in signals):
        return False
    return not keys or (
        not signals
        and len(keys) == 1
        and isinstance(keys[0], actions.Key)
        and parse_key(keys[0].value) == parse_key("ctrl+c")
    )


def _moves_pager(action: actions.Action) -> bool:
    match action:
        case actions.Text(value):
            return set(value) <= _PAGER_LETTERS
        case actions.Key(value):
            pressed = parse_key(value)
            if pressed.ctrl or pressed.alt or pressed.shift:
                return False
            return pressed.key in _PAGER_KEYS or pressed.key in _PAGER_LETTERS
    return False
