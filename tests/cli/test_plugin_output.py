"""What plugins say, on a terminal and elsewhere: lines, log, and a bar that is taken away."""

from __future__ import annotations

import logging

import pytest

from telex.cli.plugin import plugin_target
from telex.cli.plugin.plugin_target import Saying
from telex.plugins.protocol import ProgressNotice
from telex.redaction import MARKER, Redactor

HALF = ProgressNotice(1, "halfway", 5, 10)
SECRET = "ghp_" + "aB3" * 12


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Shown:
    """Something that says things, and what came of it."""

    def __init__(self, *, terminal: bool) -> None:
        self.texts: list[str] = []
        self.clock = Clock()
        self.saying = Saying(
            Redactor(), write=self.texts.append, terminal=terminal, clock=self.clock
        )


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (HALF, "it: 50% (5 of 10) halfway"),
        (ProgressNotice(1, None, 3), "it: 3"),
        (ProgressNotice(1, "two\nlines\x1b"), "it: two lines\x1b"),
        (ProgressNotice(1, None, 30, 10), "it: 100% (30 of 10)"),
        (ProgressNotice(1), "it:"),
    ],
)
def test_a_line_says_as_much_as_is_known(progress: ProgressNotice, line: str) -> None:
    assert plugin_target.line("it", progress, drawn=False) == line


def test_on_a_terminal_the_progress_bar_stays_below_the_output_and_is_removed_at_the_end() -> None:
    shown = Shown(terminal=True)
    shown.saying.progress("it", HALF)
    shown.saying.line("[it] hello")
    shown.saying.end()
    drawn = f"\r\x1b[?7lit: {'█' * 12}{'─' * 12} 50% (5 of 10) halfway\x1b[K\x1b[?7h"
    assert shown.texts == [drawn, f"\r\x1b[K[it] hello\n{drawn}", "\r\x1b[K"]


def test_the_bar_is_not_drawn_more_often_than_can_be_seen() -> None:
    shown = Shown(terminal=True)
    for _ in range(1000):
        shown.saying.progress("it", HALF)
        shown.clock.now += 0.001
    assert 8 <= len(shown.texts) <= 11


def test_elsewhere_progress_is_a_line_now_and_then() -> None:
    shown = Shown(terminal=False)
    for _ in range(100):
        shown.saying.progress("it", HALF)
        shown.clock.now += 0.1
    shown.saying.end()
    assert shown.texts == ["it: 50% (5 of 10) halfway\n"] * 2


def test_progress_is_redacted_and_never_obeyed() -> None:
    shown = Shown(terminal=False)
    shown.saying.progress("it", ProgressNotice(1, f"\x1b[2J{SECRET}"))
    assert shown.texts == [f"it: \\x1b[2J{MARKER}\n"]


def test_a_log_is_shown_by_level_with_its_fields_and_the_plugins_name() -> None:
    shown = Shown(terminal=False)
    with shown.saying:
        log = logging.getLogger("telex.plugins.a.b")
        log.debug("not this")
        log.info("one\ntwo\x07", extra={"fields": {"n": 1, "s": "x"}})
        log.error("bad")
        logging.getLogger("telex.other").info("nor this")
        logging.getLogger("telex.other").warning("ours")
    log.error("after the end")
    assert shown.texts == [
        "[a.b] one\n",
        "[a.b] two\\x07 n=1 s=x\n",
        "[a.b] error: bad\n",
        "[telex] warning: ours\n",
    ]
