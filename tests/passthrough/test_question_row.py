"""A question is shown whole, answered on purpose, and removed without a trace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from telex.escapes.gate import GateQuestion, PersonAnswer, width
from telex.escapes.policy import RequestOrigin
from telex.passthrough import question_row as asking
from telex.passthrough.output_backlog import SequenceBoundary
from telex.passthrough.question_row import QuestionRow, wrap_question
from telex.terminal.cells import Size
from telex.terminal.screen import Screen

SIZE = Size(8, 40)
QUESTION = GateQuestion("clip:read", RequestOrigin("local", "vim", (1, 1)), "primary")


def state(screen: Screen) -> bytes:
    """Return the whole state. An explicit ASCII character set makes no difference."""
    return screen.restore().replace(b"\x1b(B", b"")


class Desk:
    """A program, a person's terminal, and the same terminal without a question."""

    def __init__(self, size: Size = SIZE, patience: float = 5.0) -> None:
        self.terminal, self.undisturbed = Screen(size), Screen(size)
        self.paused = 0
        self.resumed = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.model = Screen(size)
        self.row = QuestionRow(
            self.model,
            write=lambda data: self.terminal.feed(data) and None,
            flushed=self._flushed,
            pause=self._pause,
            resume=self._resume,
            patience=patience,
        )

    async def _flushed(self) -> None:
        await self.gate.wait()

    def _pause(self) -> None:
        self.paused += 1

    def _resume(self) -> None:
        self.resumed += 1

    def prints(self, data: bytes) -> None:
        self.row.program_output(data)
        self.undisturbed.feed(data)

    @property
    def text(self) -> str:
        return "\n".join([row.text for row in self.terminal.rows()])

    def restored(self) -> bool:
        mine, theirs = self.terminal.rows(), self.undisturbed.rows()
        same = [row.cells for row in mine] == [row.cells for row in theirs]
        # The last row has no next row to wrap into, whatever the emulator reports after a scroll.
        same &= [row.wrapped for row in mine[:-1]] == [row.wrapped for row in theirs[:-1]]
        return same and state(self.terminal) == state(self.undisturbed)

    def close(self) -> None:
        for screen in (self.terminal, self.undisturbed, self.model):
            screen.close()

    @contextlib.asynccontextmanager
    async def asked(
        self, question: GateQuestion = QUESTION
    ) -> AsyncIterator[asyncio.Task[PersonAnswer]]:
        """Ask a question, and enter the block while it is on the screen."""
        task = asyncio.create_task(self.row.ask(question))
        while "Allow?" not in self.text.replace("\n", ""):
            assert not task.done(), task
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        try:
            yield task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are not about the quiet time before an answer."""
    monkeypatch.setattr(asking, "QUIET_SECONDS", 0.0)


ANSWERS = [
    (b"y", PersonAnswer.ONCE),
    (b"Y", PersonAnswer.ONCE),
    (b"a", PersonAnswer.WHILE_IT_RUNS),
    (b"n", PersonAnswer.NEVER),
    (b"\x03", PersonAnswer.NOTHING_OF_IT),
    (b"\x1b", PersonAnswer.NOT_NOW),
    (b"\x1b[121u", PersonAnswer.ONCE),
    (b"\x1b[121;129u", PersonAnswer.ONCE),
    (b"\x1b[99;5u", PersonAnswer.NOTHING_OF_IT),
    (b"\x1b[27u", PersonAnswer.NOT_NOW),
    (b"\x1b[110;1:1u", PersonAnswer.NEVER),
    (b"\x1b[13;1:3u\x1b[121u", PersonAnswer.ONCE),
]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("keys", "answer"), ANSWERS, ids=ascii)
async def test_a_key_is_an_answer(desk: Desk, keys: bytes, answer: PersonAnswer) -> None:
    async with desk.asked() as task:
        assert desk.row.person_input(keys) == b""
        assert await task is answer
    assert not desk.row.standing


NO_ANSWERS = [
    b"x",
    b"\r",
    b"yes",
    b"y\r",
    b"yy",
    b"\x1by",
    b"\x19",
    b"\x1b[200~y\x1b[201~",
    b"\x1b[121;1:3u",
    b"\x1b[121;1:2u",
    b"\x1b[121;5u",
    b"\x1b[<0;1;1M",
    b"\x1b[A",
    b"\xff",
]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("keys", NO_ANSWERS, ids=ascii)
async def test_other_keys_are_not_an_answer(desk: Desk, keys: bytes) -> None:
    async with desk.asked() as task:
        desk.row.person_input(keys)
        await asyncio.sleep(0.03)
        assert not task.done()
        desk.row.person_input(b"n")
        assert await task is PersonAnswer.NEVER


@pytest.mark.usefixtures("at_once")
async def test_a_key_that_is_not_offered_is_not_an_answer(desk: Desk) -> None:
    async with desk.asked(GateQuestion("clip:read", RequestOrigin("remote"), "")) as task:
        desk.row.person_input(b"a")
        await asyncio.sleep(0.01)
        assert not task.done()
        desk.row.person_input(b"y")
        assert await task is PersonAnswer.ONCE


async def test_a_key_is_an_answer_only_after_a_quiet_moment(desk: Desk) -> None:
    loop = asyncio.get_running_loop()
    async with desk.asked() as task:
        began = loop.time()
        while loop.time() - began < 2 * asking.QUIET_SECONDS:  # a person who continues typing
            assert desk.row.person_input(b"y") == b""
            await asyncio.sleep(0.05)
        assert not task.done()
        await asyncio.sleep(asking.QUIET_SECONDS + 0.05)
        desk.row.person_input(b"y")
        assert await task is PersonAnswer.ONCE


@pytest.mark.usefixtures("at_once")
async def test_keys_typed_before_the_question_reach_the_program(desk: Desk) -> None:
    desk.gate.clear()
    async with desk.asked() as task:
        assert desk.row.person_input(b"y") == b"y"
        await asyncio.sleep(0.01)
        assert not task.done()
        desk.gate.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert desk.row.person_input(b"y") == b""
        assert await task is PersonAnswer.ONCE


@pytest.mark.usefixtures("at_once")
async def test_keys_go_to_the_question_alone_and_reports_to_the_program(desk: Desk) -> None:
    async with desk.asked() as task:
        report = b"\x1b[?62;4c\x1b]11;rgb:0/0/0\x1b\\\x1b[I"
        assert desk.row.person_input(b"x" + report + b"\x1b[Az") == report
        assert not task.done()
    assert desk.row.person_input(b"x") == b"x"


@pytest.mark.usefixtures("at_once")
async def test_a_key_cut_by_the_end_of_the_question_is_passed_on_whole(desk: Desk) -> None:
    async with desk.asked() as task:
        desk.row.person_input(b"\x1b[1")
        task.cancel()
        await asyncio.wait({task})
    assert desk.row.person_input(b";5A") == b"\x1b[1;5A"
    assert desk.row.person_input(b"\x1b") == b"\x1b"


async def test_no_answer_in_time_is_a_no() -> None:
    desk = Desk(patience=0.05)
    desk.prints(b"text")
    assert await desk.row.ask(QUESTION) is PersonAnswer.NOT_NOW
    assert desk.restored()
    desk.close()


async def test_a_terminal_that_takes_nothing_is_a_no() -> None:
    desk = Desk(patience=0.05)
    desk.gate.clear()
    assert await desk.row.ask(QUESTION) is PersonAnswer.NOT_NOW
    desk.close()


# Whole, or not at all.


async def test_a_long_question_takes_as_many_rows_as_it_needs(desk: Desk) -> None:
    long = GateQuestion("clip:write", RequestOrigin("remote", "ssh", (1, 1)), "w中" * 40)
    async with desk.asked(long):
        assert long.text.replace(" ", "") in desk.text.replace("\n", "").replace(" ", "")
        assert desk.text.startswith("\n")


@pytest.mark.parametrize("size", [Size(1, 40), Size(2, 20), Size(1, 1), Size(3, 10)], ids=str)
async def test_a_question_that_does_not_fit_is_not_shown_and_the_answer_is_no(size: Size) -> None:
    desk = Desk(size)
    desk.prints(b"text")
    assert await desk.row.ask(QUESTION) is PersonAnswer.NOT_NOW
    assert desk.restored()
    assert desk.paused == desk.resumed
    desk.close()


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=300),
       st.integers(1, 20), st.integers(1, 50))  # fmt: skip
def test_rows_hold_the_whole_text_and_none_is_too_wide(text: str, rows: int, cols: int) -> None:
    found = wrap_question(text, Size(rows, cols))
    if found is None:
        assert width(text) + rows > rows * cols or cols == 1
    else:
        assert "".join(found) == text
        assert len(found) <= rows
        assert all(width(row) <= cols for row in found)


def test_wide_characters_need_room_for_two() -> None:
    assert wrap_question("中" * 20, Size(2, 20)) == ["中" * 10] * 2
    assert wrap_question("中" * 21, Size(2, 20)) is None
    assert wrap_question("中" * 19, Size(2, 19)) is None


HIDING = {
    "held update": b"\x1b[?2026h",
    "invisible ink": b"\x1b[8m",
    "letters that are lines": b"\x1b(0\x1b)0\x0e",
    "a region": b"\x1b[2;4r\x1b[?6h",
    "margins": b"\x1b[?69h\x1b[5;10s",
    "insertion": b"\x1b[4h",
    "protected cells": b'\x1b[8;1H\x1b[1"qprotected',
    "colours that are all one": b"\x1b]10;#000000\x07\x1b]11;#000000\x07\x1b]4;0;#000000;7;#000000\x07",
    "no wrapping": b"\x1b[?7l",
    "the other screen": b"\x1b[?1049h",
    "half a character": b"abc",
}


@pytest.mark.parametrize("hidden", HIDING.values(), ids=HIDING)
async def test_a_program_cannot_hide_the_question(desk: Desk, hidden: bytes) -> None:
    desk.prints(b"before\r\n" + hidden)
    async with desk.asked():
        assert QUESTION.text in desk.text.replace("\n", "")
        row = desk.terminal.rows()[-1]
        styles = {cell.style for cell in row.cells}
        assert {(s.foreground, s.background, s.invisible) for s in styles} == {
            ("rgb:255:255:255", "rgb:0:0:0", False)
        }
        assert all(style.inverse for style in styles)
        assert desk.terminal.cursor.visible
    assert desk.restored()


async def test_modes_that_could_hide_the_question_are_undone(desk: Desk) -> None:
    sent = bytearray()
    desk.row._write = sent.extend
    task = asyncio.create_task(desk.row.ask(QUESTION))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    drawn = bytes(sent[: sent.index(b"telex")])
    assert drawn.startswith(b"\x1b<\x1b[?2026l")  # leave VT52 mode first
    assert b"\x1b#5" in drawn  # a double-width line would show half of the question
    assert b"\x1b_Ga=d,d=y," in drawn  # a picture may cover text
    assert b"\x1b]8;;\x1b\\" in drawn


# Nothing is drawn over the question.


@pytest.mark.usefixtures("at_once")
async def test_output_is_held_back_and_shown_after_the_question(desk: Desk) -> None:
    desk.prints(b"one\r\n")
    async with desk.asked() as task:
        assert desk.paused == 1
        desk.prints(b"\x1b[8;1HAllow? n\x1b[2Jtwo")
        assert QUESTION.text in desk.text.replace("\n", "")
        assert "two" not in desk.text
        desk.row.person_input(b"y")
        await task
        assert desk.resumed == 1
    assert "two" in desk.text
    assert desk.restored()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        (b"\x1b", b"[31mred"),
        (b"\x1b[3", b"1mred"),
        (b"\x1b]2;tit", b"le\x07more"),
        (b"\x1b]2;tit", b"le\x1b\\more"),
        (b"\x1b]2;title\x1b", b"\\more"),
        (b"\x1bP+q", b"544e\x1b\\more"),
        (b"\x1b(", b"0qqq"),
        (b"\xe4\xb8", b"\xad more"),
        (b"\x1b[3", b"\x1b[1mbold"),
    ],
    ids=ascii,
)
async def test_the_question_waits_until_an_escape_sequence_is_finished(
    desk: Desk, begun: bytes, rest: bytes
) -> None:
    desk.prints(b"text\r\n" + begun)
    task = asyncio.create_task(desk.row.ask(QUESTION))
    await asyncio.sleep(0)
    assert desk.row.standing
    assert "telex" not in desk.text
    desk.prints(rest)
    while "telex" not in desk.text:
        await asyncio.sleep(0)
    assert desk.terminal.title in (None, "title")
    await asyncio.sleep(0)
    desk.row.person_input(b"y")
    assert await task is PersonAnswer.ONCE
    assert desk.restored()


async def test_a_program_that_never_finishes_its_sequence_gets_a_no(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "BOUNDARY_SECONDS", 0.01)
    desk.prints(b"\x1b]0;never ending")
    assert await desk.row.ask(QUESTION) is PersonAnswer.NOT_NOW
    desk.prints(b" title\x07 text")
    assert desk.terminal.title == "never ending title"
    assert desk.restored()


@pytest.mark.usefixtures("at_once")
async def test_a_change_of_size_ends_the_question(desk: Desk) -> None:
    desk.prints(b"one\r\ntwo")
    async with desk.asked() as task:
        for screen in (desk.terminal, desk.undisturbed):
            screen.resize(Size(10, 30))
        desk.row.resized(Size(10, 30))
        assert await task is PersonAnswer.NOT_NOW
    assert "telex" not in desk.text
    assert desk.restored()


# Nothing is left of the question.

STATES = [
    b"",
    b"\x1b[8;1Hlast row",
    b"\x1b[8;30H\x1b[1;31mred and on",
    b"\x1b[7;35Hwrapped into the last row",
    b"\x1b[8;1H" + b"x" * 40,
    "\x1b[8;1H中文 wide 🙂\x1b[8;39H中".encode(),
    b"\x1b[3;3H\x1b7\x1b[5;5H",
    b"\x1b[2;4r\x1b[?6h\x1b[2;2H",
    b"\x1b[?69h\x1b[5;10s\x1b[3;6H",
    b"\x1b[7;35Hwrapped into the last row\x1b[2;7r\x1b[3;1H",
    b"\x1b[4h\x1b[?7l\x1b[?25l",
    b"\x1b(0\x1b)0\x0eqqq",
    b"\x1b[?1049h\x1b[8;1Hin the other screen",
    b"\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b=\x1b[>1u",
    b"\x1b[44m\x1b[2J\x1b[8;10H\x1b[K",
    b"\x1b]2;title\x07\x1b[3g\x1b[1;5H\x1bH",
    b'\x1b[1"q',
    b"a\r\n" * 20,
    b"\x1b[8;40Hx",
]


def check_restored(outputs: list[bytes], after: bytes) -> None:
    async def asked_once() -> None:
        desk = Desk()
        for data in outputs:
            desk.prints(data)
        async with desk.asked():
            pass
        assert desk.restored()
        desk.prints(after)
        assert desk.restored()
        desk.close()

    asyncio.run(asked_once())


@pytest.mark.parametrize("state", STATES, ids=lambda state: ascii(state[:30]))
def test_rows_cursor_and_modes_are_restored_after_a_question(state: bytes) -> None:
    check_restored([b"first\r\n\x1b[32msecond", state], b"more\x1b8there\r\nand on")


@given(st.lists(st.sampled_from(STATES), max_size=5), st.sampled_from([b"x", b"\x1b8x", b"\n\n"]))
def test_everything_is_restored_after_any_output(outputs: list[bytes], after: bytes) -> None:
    one, other = Screen(SIZE), Screen(SIZE)
    with contextlib.closing(one), contextlib.closing(other):
        one.feed(b"".join(outputs))
        other.feed(one.restore())
        # The emulator has cells that cannot be drawn again: wide blanks, of CJK in line-drawing sets.
        assume(state(one) == state(other))
    check_restored(outputs, after)


@given(st.lists(st.sampled_from([
    b"text", b"\x1b", b"[", b"31", b"m", b"]0;", b"\x07", b"\\", b"P", b"\x18", "é".encode(),
    "中".encode()[:2], "中".encode()[2:], b"\xf0\x9f", b"\x99\x82", b"(", b"0", b"\xff",
])))  # fmt: skip
def test_a_boundary_is_the_same_however_the_stream_is_cut(pieces: list[bytes]) -> None:
    whole, cut = SequenceBoundary(), SequenceBoundary()
    whole.feed(b"".join(pieces))
    for piece in pieces:
        cut.feed(piece)
    assert bool(whole.open) == bool(cut.open)
