"""`CodegenLog`: a text is a secret if it was hidden, and not if its echo was late."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from telex.terminal.shown_screen import from_text
from telex.testing.codegen_log import (
    CodegenLog,
    LoggedInput,
    PressedKey,
    SeenScreen,
    TypedText,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

OUTPUT = "\r\n\x1b[?2004l\rhello\r\nWed Nov 18 15:21:24 UTC 2026\r\n\x1b[?2004h$ "
ANSWER = "\nhello\nWed Nov 18 15:21:24 UTC 2026\n$ "


@cache
def seen(text: str, cols: int = 40) -> SeenScreen:
    lines = text.split("\n")
    return SeenScreen(
        from_text(text, 6, cols), cursor=(len(lines) - 1, len(lines[-1])), whole=False
    )


def use(
    keys: Sequence[str],
    shown: Sequence[int],
    prompt: str,
    echoes: Sequence[str],
    output: tuple[str, str],
) -> CodegenLog:
    """The log of keys and Enter. Before the n-th key, `shown[n]` of the echoes have come; the rest
    comes with the output, which is given as bytes and as a screen."""
    log = CodegenLog()
    came, screen = 0, prompt
    for key, until in zip([*keys, "\r"], shown, strict=True):
        if until > came:
            log.printed("".join(echoes[came:until]))
            came, screen = until, prompt + edited(echoes[:until])
            log.saw(seen(screen))
        name = {"\r": "enter", "\x7f": "backspace"}.get(key)
        log.typed(seen(screen), [PressedKey(name) if name else TypedText(key)], "program")
    log.printed("".join(echoes[came:]) + output[0])
    log.end = seen(prompt + edited(echoes) + output[1])
    return log


def edited(echoes: Sequence[str]) -> str:
    """What is on the screen after readline's echoes."""
    shown = ""
    for echo in echoes:
        shown = shown[:-1] if echo == "\b\x1b[K" else shown + echo
    return shown


def secrets(log: CodegenLog) -> list[str]:
    return [
        one.one.text[start:end]
        for one in log.entries()
        if isinstance(one, LoggedInput) and isinstance(one.one, TypedText)
        for start, end in one.one.secret
    ]


def delays(keys: int) -> set[tuple[int, ...]]:
    """How many echoes have come before each of some keys and the Enter after them: a constant lag,
    or a program that stops at one key, and at another has answered a part of those between."""
    every = range(keys + 1)
    lags = {tuple([max(at - lag, 0) for at in every]) for lag in every}
    stops = {
        tuple([at if at <= stop else stop if at < again else part for at in every])
        for stop, part, again in combinations(range(0, keys + 1, 2), 3)
    }
    ends = {
        (*[min(at, stop) for at in range(keys)], part)
        for stop in every
        for part in range(stop, keys + 1)
    }
    return lags | stops | ends


def test_an_echo_that_has_come_in_part_when_enter_is_typed_is_no_secret() -> None:
    line = "echo hello; date"
    shown = [*range(10), 9, 9, 9, 9, 9, 9, 14]
    assert secrets(use(line, shown, "$ ", line, (OUTPUT, ANSWER))) == []


LINES = {
    "a command": ([*"echo hello; date"], [*"echo hello; date"]),
    "the name of a secret": ([*"cat token.txt"], [*"cat token.txt"]),
    "blanks": ([*"  ls -la "], [*"  ls -la "]),
    "a correction": ([*"echo hx", "\x7f", *"ello"], [*"echo hx", "\b\x1b[K", *"ello"]),
}


@pytest.mark.parametrize("case", LINES)
def test_a_text_is_no_secret_however_late_its_echo_is(case: str) -> None:
    keys, echoes = LINES[case]
    for shown in delays(len(keys)):
        assert secrets(use(keys, shown, "$ ", echoes, (OUTPUT, ANSWER))) == [], shown


@pytest.mark.parametrize("answer", ["long", "hunter2, long", "got hunter2"])
@pytest.mark.parametrize("sign", ["", "*", "\u2022", " "])
def test_a_hidden_text_is_a_secret_as_a_whole_however_late_its_dots_are(
    sign: str, answer: str
) -> None:
    output = f"\r\n{answer}\r\n", f"\n{answer}\n"
    for shown in delays(7):
        assert secrets(use("hunter2", shown, "Word: ", [sign] * 7, output)) == ["hunter2"], shown


@pytest.mark.parametrize("shown", [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)])
def test_a_short_pin_is_a_secret_however_late_its_dots_are(shown: tuple[int, ...]) -> None:
    assert secrets(use("12", shown, "Pin: ", "**", ("\r\nok\r\n", "\nok\n"))) == ["12"]


def test_a_text_that_is_shown_in_the_place_of_its_dots_stays_a_secret() -> None:
    shown = "\b" * 7 + "hunter2\r\n"
    for came in delays(7):
        log = use("hunter2", came, "Word: ", "*" * 7, (shown, "\nok\n"))
        assert secrets(log) == ["hunter2"], came


DRAWN = {
    "readline at the end of a row": "echo hello, a long \rline",
    "zsh": "e\becho hello, a longline",
    "fish": "echo \r\x1b[7Chello, \r\x1b[14Ca longline\r\x1b[24C\x1b[22D\x1b[34mecho\x1b(B\x1b[m",
    "a title": "\x1b]0;codegen\x07echo hello, a longline",
}


@pytest.mark.parametrize("case", DRAWN)
@pytest.mark.parametrize("cut", range(0, 24, 3))
def test_a_late_echo_is_known_however_a_shell_draws_it(case: str, cut: int) -> None:
    typed, echo = "echo hello, a longline", DRAWN[case]
    cols = 18 + len("$ ") if case.startswith("readline") else 40
    log = CodegenLog()
    for key in typed:
        log.typed(seen("$ ", cols), [TypedText(key)], "program")
    if cut:
        log.printed(echo[:cut])
    log.typed(seen("$ e" if cut else "$ ", cols), [PressedKey("enter")], "program")
    log.printed(echo[cut:] + "\r\n" + "x" * 9000)
    log.end = seen("x" * 18, cols)
    assert secrets(log) == []


def ahead(*lines: str) -> CodegenLog:
    """The log of lines that were typed before anything was answered."""
    log = CodegenLog()
    for line in lines:
        for key in line:
            log.typed(seen("$ "), [TypedText(key)], "program")
        log.typed(seen("$ "), [PressedKey("enter")], "program")
    return log


def test_lines_that_are_typed_ahead_are_shown_at_the_next_prompt() -> None:
    log = ahead("echo hello", "date -u")
    log.printed(f"echo hello{OUTPUT}date -u{OUTPUT}")
    assert secrets(log) == []


def test_a_secret_that_is_typed_ahead_stays_one() -> None:
    log = ahead("read -s word", "hunter2", "echo $word")
    log.printed("read -s word\r\n\r\n$ echo $word\r\nhunter2\r\n$ ")
    assert secrets(log) == ["hunter2"]


def test_the_prompt_of_a_secret_is_none_for_texts_that_are_typed_ahead() -> None:
    log = CodegenLog()
    for text in ("hunter2", "geheim1"):
        for key in text:
            log.typed(seen("Password: "), [TypedText(key)], "program")
        log.typed(seen("Password: "), [PressedKey("enter")], "program")
    log.printed("\r\nPassword: \r\nhunter2 is not geheim1\r\n")
    assert secrets(log) == ["hunter2", "geheim1"]
