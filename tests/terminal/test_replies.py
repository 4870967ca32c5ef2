"""Answers: what a program asks is answered in the turn that fed it, and only in fixed forms."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.terminal import limits
from telex.terminal import screen as terminal_screen
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.version import __version__

ANSWERS = {
    "DA1": ("\x1b[c", "\x1b[?62;22c"),
    "DECID": ("\x1bZ", "\x1b[?62;22c"),
    "DA2": ("\x1b[>c", "\x1b[>1;0;0c"),
    "DA3": ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
    "status": ("\x1b[5n", "\x1b[0n"),
    "cursor": ("\x1b[3;5H\x1b[6n", "\x1b[3;5R"),
    "DECRQM set": ("\x1b[?25$p", "\x1b[?25;1$y"),
    "DECRQM reset": ("\x1b[?2004$p", "\x1b[?2004;2$y"),
    "DECRQM ANSI": ("\x1b[4$p", "\x1b[4;2$y"),
    "DECRQM unknown": ("\x1b[?12345$p", "\x1b[?12345;0$y"),
    "XTVERSION": ("\x1b[>q", f"\x1bP>|telex {__version__}\x1b\\"),
    "size in pixels": ("\x1b[14t", "\x1b[4;384;640t"),
    "size of a cell": ("\x1b[16t", "\x1b[6;16;8t"),
    "size in cells": ("\x1b[18t", "\x1b[8;24;80t"),
    "palette": ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cccc/6666/6666\x07"),
    "foreground": ("\x1b]10;?\x07", "\x1b]10;rgb:e5e5/e5e5/e5e5\x07"),
    "background": ("\x1b]11;?\x1b\\", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"),
    "cursor colour": ("\x1b]12;?\x07", "\x1b]12;rgb:e5e5/e5e5/e5e5\x07"),
    "colour scheme": ("\x1b[?996n", "\x1b[?997;1n"),
    "kitty keyboard": ("\x1b[?u", "\x1b[?0u"),
    "DECRQSS of the style": ("\x1b[1;31m\x1bP$qm\x1b\\", "\x1bP1$r0;1;31m\x1b\\"),
    "DECRQSS of the cursor": ("\x1bP$q q\x1b\\", "\x1bP1$r2 q\x1b\\"),
}
SILENT = {
    "title": "\x1b]2;rm -rf\x07\x1b[21t",
    "icon": "\x1b]1;rm -rf\x07\x1b[20t",
    "clipboard": "\x1b]52;c;cm0gLXJm\x07\x1b]52;c;?\x07",
    "kitty clipboard": "\x1b]5522;type=read;dGV4dC9wbGFpbg==\x1b\\",
    "answerback": "\x05",
    "font": "\x1b]50;?\x07",
    "kitty picture": "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
    "glyphs": "\x1b_25a1;s\x1b\\",
    "checksum of an area": "\x1b[1;1;1;1;9;9*y",
    "kitty colours": "\x1b]21;foreground=?\x07",
}


def asked(text: str | bytes, **options: tuple[int, ...]) -> tuple[bytes, Screen]:
    screen = Screen(Size(), **options)
    return screen.feed(text.encode() if isinstance(text, str) else text), screen


@pytest.mark.parametrize("name", ANSWERS)
def test_a_question_is_answered_in_the_turn_that_fed_it(name: str) -> None:
    question, answer = ANSWERS[name]
    data, screen = asked(question)
    assert data == answer.encode()
    assert screen.refused == 0


@pytest.mark.parametrize("name", SILENT)
def test_requests_that_could_echo_a_programs_text_get_no_reply(name: str) -> None:
    assert asked(SILENT[name])[0] == b""


def test_replies_keep_the_order_of_the_requests_and_see_earlier_output() -> None:
    data, _ = asked("ab\x1b[6nc\x1b[6n\x1b[5n")
    assert data == b"\x1b[1;3R\x1b[1;4R\x1b[0n"


def test_a_session_can_report_more_attributes() -> None:
    assert asked("\x1b[c", attributes=(23198,))[0] == b"\x1b[?62;22;23198c"


def test_pixels_are_those_of_the_terminal() -> None:
    screen = Screen(Size(10, 20, 200, 200))
    assert screen.feed(b"\x1b[14t\x1b[16t") == b"\x1b[4;200;200t\x1b[6;20;10t"
    screen.resize(Size(5, 20, 200, 200))
    assert screen.feed(b"\x1b[16t\x1b[18t") == b"\x1b[6;40;10t\x1b[8;5;20t"


def test_a_program_that_asked_gets_a_new_size_reported() -> None:
    screen = Screen(Size())
    screen.feed(b"\x1b[?2048h")
    assert screen.resize(Size(10, 20)) == b"\x1b[48;10;20;160;160t"
    assert Screen(Size()).resize(Size(10, 20)) == b""


def test_a_flood_of_questions_is_cut_and_counted() -> None:
    data, screen = asked("\x1b[c" * 5000)
    assert len(data) <= limits.REPLY_BYTES
    assert screen.refused == 5000 - data.count(b"c")
    assert screen.feed(b"\x1b[5n") == b"\x1b[0n"


def test_a_form_that_is_not_on_the_list_is_refused_and_counted() -> None:
    data, screen = asked("\x1b]21;foreground=?\x07\x1b[5n")
    assert data == b"\x1b[0n"
    assert screen.refused == 1


FORM = re.compile(
    rb"(?:\x1b\[[?>]?[0-9;]*(?:\$y|[cnRtu])|\x1bP(?:!\||1\$r|0\$r|0\+r|>\|)[0-9A-Za-z.;: +\"]*\x1b\\"
    rb"|\x1b\](?:4;[0-9]+|1[0-2]);rgb:[0-9a-f/]+(?:\x07|\x1b\\))*"
)
QUESTIONS = [question.encode() for question, _ in ANSWERS.values()]
QUESTIONS += [question.encode() for question in SILENT.values()]
QUESTIONS += [
    b"\x1bP$q",
    b"\x1bP+q",
    b"\x1b]",
    b"\x1b[",
    b"\x1b_G",
    b"?",
    b"$p",
    b"\x1b\\",
    b"\x07",
]
QUESTIONS += [b"4;1;", b"52;c;", b"21t", b"\r\n", b"\x1b]4;1;rgb:12/34/56\x07", b"\x1b[1;2;3m"]


@given(st.lists(st.sampled_from(QUESTIONS) | st.binary(max_size=6), max_size=30))
def test_no_stream_of_questions_gets_an_answer_of_another_form(pieces: list[bytes]) -> None:
    data, _ = asked(b"".join(pieces))
    assert FORM.fullmatch(data)
    assert len(data) <= limits.REPLY_BYTES


ATTACKS = (
    "\x1b]2;{}\x07\x1b[21t",
    "\x1b]0;{}\x1b\\\x1b[20t\x1b[21t",
    "\x1bP$q{}\x1b\\",
    "\x1bP+q{}\x1b\\",
    "\x1b]52;c;{}\x07\x1b]52;c;?\x07",
    "\x1b]4;1;{}\x07\x1b]4;1;?\x07",
    "\x1b]10;{}\x07\x1b]10;?\x07",
    "\x1b]50;{}\x07\x1b]50;?\x07",
    "\x1b]8;;{}\x07x\x1b]8;;\x07",
    "\x1b_Gi=1,a=q;{}\x1b\\",
    "\x1b]99;i={}:p=?;\x1b\\",
    "\x1b]5522;type=read:id={};\x1b\\",
    "\x1b]21;{}=?\x07",
    "\x1b]7;file://{}\x07",
    "{}\x05",
)


@given(st.lists(st.tuples(st.sampled_from(ATTACKS), st.text("ls;|&\n\r\x03 '", max_size=9))))
def test_the_text_of_an_attack_never_comes_back(attacks: list[tuple[str, str]]) -> None:
    mark = "xyzzy"
    data, _ = asked("".join(form.format(mark + text) for form, text in attacks))
    assert mark.encode() not in data
    assert mark.encode().hex().encode() not in data.lower()
    assert not set(data) & set(b"\r\n\x03|&'")
    assert FORM.fullmatch(data)


@given(st.binary(max_size=40))
def test_the_list_allows_no_line_end_and_no_second_sequence(raw: bytes) -> None:
    assert terminal_screen.allowed_replies([raw]) in ([], [raw])
    for good in (b"\x1b[0n", b"\x1b[1;1R"):
        assert terminal_screen.allowed_replies([good + raw]) == ([good] if not raw else [])
