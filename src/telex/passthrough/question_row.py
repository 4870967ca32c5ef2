"""A question on the last row of the person's terminal, over the program's output.

While the question is shown, the program's output is held back, so that nothing is drawn over the
question, and keys go to the question alone. Afterwards the rows and the cursor are drawn again from
telex's own model of the screen: a terminal cannot report its screen content, and its single slot
for a saved cursor belongs to the program.

The question must withstand a program that wants a yes. So the question is shown whole or not at
all. Modes that could hide it or make it unreadable are undone first. A yes is one key, pressed
alone, after the question was shown and no key came for a moment: a key typed or pasted to the
program is no answer. Everything else is a no.

All of the program's output passes `program_output`, and all input `person_input`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from telex.escapes import limits
from telex.escapes.commands.core import KeyEvent, MouseInput, PasteEvent
from telex.escapes.gate import GateQuestion, PersonAnswer, width
from telex.escapes.input_events import InputParser, ParsedInput
from telex.passthrough.output_backlog import SequenceBoundary
from telex.terminal.cells import Cursor, Size, Snapshot
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from telex.passthrough.output_backlog import OutputBacklog


QUIET_SECONDS: Final = 0.3
"""So long without a key before a key counts as an answer: no person reads a question faster."""
BOUNDARY_SECONDS: Final = 1.0
"""How long a program may leave an escape sequence half written, before the answer is no."""

_PLAIN_MODES: Final = (
    b"\x1b<"  # leave VT52 mode, in which no other sequence is understood
    b"\x1b[?2026l"  # a synchronized update would hold back the question too
    b"\x1b[0$}"  # leave the status line
    b"\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7l"  # no origin, margins, region, insertion, wrapping
    b'\x1b%G\x0f\x1b(B\x1b[0"q\x1b]8;;\x1b\\'  # UTF-8 and ASCII letters, not protected, no link
)
_INK: Final = b"\x1b[0;1;7m\x1b[38:2::255:255:255m\x1b[48:2::0:0:0m"
"""Inverse, and in RGB colours, which a program cannot change by the palette. They are written with
colons, so that terminals that do not know RGB colours skip them."""
_CLEAR: Final = b"\x1b[m\x1b[H\x1b[2J"
"""In the bytes that draw a screen (`Screen.restore`), this stands between the modes and the
rows."""

_ANSWERS: Final = {"y": PersonAnswer.ONCE, "a": PersonAnswer.WHILE_IT_RUNS, "n": PersonAnswer.NEVER}


def wrap_question(text: str, size: Size) -> list[str] | None:
    """Wrap a question at the terminal's width; None if it needs more rows than there are."""
    if len(text) > size.rows * size.cols:
        return None
    rows, room = [""], size.cols
    for char in text:
        if (wide := width(char)) > room:
            rows.append("")
            room = size.cols
        rows[-1] += char
        room -= wide
        if room < 0 or len(rows) > size.rows:
            return None
    return rows


class QuestionRow:
    """Asks the person at one terminal. One question at a time; `EscapeResponder` uses it to be the
    gate's `Person`.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        write: Callable[[bytes], None],
        flushed: Callable[[], Awaitable[None]],
        pause: Callable[[], None],
        resume: Callable[[], None],
        pictures: bool = True,
        patience: float = limits.QUESTION_SECONDS,
        unfinished: bytes = b"",
    ) -> None:
        """
        Args:
            screen: The model of the person's screen. Only this object feeds it.
            write: Writes to the person's terminal.
            flushed: Waits until the terminal has taken all output.
            pause: Stops reading the program's output.
            resume: Undoes `pause`.
            pictures: Whether the terminal may show kitty's pictures, which can cover text.
            patience: Seconds until a question without an answer is a no.
            unfinished: The beginning of a sequence that the program has already printed.
        """
        self._screen = screen
        self._write, self._flushed = write, flushed
        self._pause, self._resume = pause, resume
        self._pictures = pictures
        self._patience = patience
        self._boundary = SequenceBoundary(unfinished)
        self._between: asyncio.Event | None = None
        """Set at the next boundary, while a question waits for one."""
        self._held: list[bytes] | None = None
        """The program's output since the question was asked."""
        self._answer: asyncio.Future[PersonAnswer] | None = None
        self._quiet_from: float | None = None
        """The time of the last key; None before the question is on the screen."""
        self._keys = InputParser()
        self._drawn = 0
        """How many rows the question has."""
        self._escape: asyncio.TimerHandle | None = None

    @property
    def standing(self) -> bool:
        """Whether a question has been asked and not been answered."""
        return self._answer is not None

    # --- the program's side

    def program_output(self, data: bytes) -> None:
        """Show the program's output at once, or hold it back until after the question."""
        if self._between is not None and (end := self._boundary.next(data)) is not None:
            self._show_output(data[:end])
            data = data[end:]
            self._between.set()
            self._between, self._held = None, []
            self._pause()
        if self._held is None:
            self._show_output(data)
        elif data:
            self._held.append(data)
            self._pause()  # again, if output was resumed elsewhere: the held output must not grow

    def _show_output(self, data: bytes) -> None:
        self._boundary.feed(data)
        self._screen.feed(data)  # its replies are dropped: the person's terminal sends its own
        self._write(data)

    def resized(self, size: Size) -> None:
        """Follow a new size, and withdraw the question: its rows may now be anywhere."""
        self._screen.resize(size)
        self._drawn = self._drawn and size.rows
        self._decide(PersonAnswer.NOT_NOW)

    def withdraw(self) -> None:
        """End the question with a no: the answer is not needed any more."""
        self._decide(PersonAnswer.NOT_NOW)

    # --- the question

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        """Show the question and wait for an answer. Without one, return `NOT_NOW`."""
        rows = wrap_question(question.text, self._screen.size)
        if rows is None:
            return PersonAnswer.NOT_NOW
        self._answer = asyncio.get_running_loop().create_future()
        self._keys, self._quiet_from = InputParser(), None
        try:
            async with asyncio.timeout(self._patience):
                await self._hold_output()
                if (
                    wrap_question(question.text, self._screen.size) == rows
                    and not self._answer.done()
                ):
                    self._draw(rows)
                    await self._flushed()
                    self._quiet_from = self._now()
                return await self._answered(question)
        except TimeoutError:
            return PersonAnswer.NOT_NOW
        finally:
            self._remove()

    async def _hold_output(self) -> None:
        """Hold output back, from the next boundary between two escape sequences on."""
        if self._boundary.open:
            self._between = asyncio.Event()
            async with asyncio.timeout(BOUNDARY_SECONDS):
                await self._between.wait()
        else:
            self._held = []
            self._pause()

    async def _answered(self, question: GateQuestion) -> PersonAnswer:
        assert self._answer is not None
        while True:
            answer = await self._answer
            if answer is not PersonAnswer.WHILE_IT_RUNS or question.lasting:
                return answer
            self._answer = asyncio.get_running_loop().create_future()  # `a` was not offered

    def _draw(self, rows: list[str]) -> None:
        size = self._screen.size
        top = size.rows - len(rows) + 1
        parts = [_PLAIN_MODES, b"\x1b[?25h"]
        for y, row in enumerate(rows, top):
            if self._pictures:
                parts.append(b"\x1b_Ga=d,d=y,y=%d,q=2\x1b\\" % y)
            blank = b" " * size.cols
            parts.append(b"\x1b[%d;1H\x1b#5%b%b\r%b" % (y, _INK, blank, row.encode("utf-8")))
        self._drawn = len(rows)
        self._write(b"".join([*parts, b"\x1b[m"]))

    def _remove(self) -> None:
        """Restore the rows and the cursor, then show the output that was held back."""
        self._answer = self._between = None
        if self._escape is not None:
            self._escape.cancel()
        if self._drawn:
            self._write(self._restored_rows())
            self._drawn = 0
        held, self._held = self._held, None
        for data in held or ():
            self._show_output(data)
        if held is not None:
            self._resume()

    def _restored_rows(self) -> bytes:
        """Return the bytes that draw the question's rows again. Rows above were not changed."""
        rows = self._screen.size.rows
        top = rows - self._drawn + 1
        blank = b"".join([b"\x1b[%d;1H\x1b[2K" % y for y in range(top, rows + 1)])
        drawing = self._screen.restore().partition(_CLEAR)[2]
        rows_drawn = drawing[drawing.index(b"\x1b[%dH" % top) :]
        return _PLAIN_MODES + b"\x1b[?7h\x1b[m" + blank + rows_drawn

    # --- the person's side

    def person_input(self, data: bytes) -> bytes:
        """Take keys for the question. Return the input that is for the program: all of it without a
        question; with one, the reports that the terminal sends.
        """
        now = self._now()
        if not self.standing:
            if self._keys.deadline is None or now >= self._keys.deadline:
                self._keys.deadline = None
                return data
            # The parser holds the beginning of a key: it goes to the program with its rest.
            return b"".join([_raw(event) for event in self._keys.feed(data, now)])
        # Keys typed before the question was on the screen are for the program.
        return data if self._quiet_from is None else self._take_keys(data, now, self._quiet_from)

    def _take_keys(self, data: bytes, now: float, quiet_from: float) -> bytes:
        events = self._keys.feed(data, now)
        self._restart_timer(now)
        keys = [event for event in events if _is_typed(event)]
        if keys:
            self._quiet_from = now
            if now - quiet_from >= QUIET_SECONDS and (answer := _answer_of(keys)):
                self._decide(answer)
        return b"".join([_raw(event) for event in events if not _is_typed(event)])

    def _restart_timer(self, now: float) -> None:
        """Parse again at the parser's deadline: an ESC that nothing follows is the Escape key."""
        if self._escape is not None:
            self._escape.cancel()
        if self._keys.deadline is not None:
            loop = asyncio.get_running_loop()
            self._escape = loop.call_later(self._keys.deadline - now, self._parse_held)

    def _parse_held(self) -> None:
        if self.standing and self._quiet_from is not None:
            # No report is lost by this: a terminal sends a report in one piece.
            self._take_keys(b"", max(self._now(), self._keys.deadline or 0.0), self._quiet_from)

    def _decide(self, answer: PersonAnswer) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _raw(event: ParsedInput | bytes) -> bytes:
    return event if isinstance(event, bytes) else event.raw


def _is_typed(event: ParsedInput | bytes) -> bool:
    """Whether the person caused this input; other reports are replies to the program's queries."""
    return isinstance(event, ParsedInput) and isinstance(
        event.payload, KeyEvent | MouseInput | PasteEvent
    )


def _answer_of(events: list[ParsedInput | bytes]) -> PersonAnswer | None:
    """Return the answer that one key gives. Several keys at once are not an answer."""
    payloads = [event.payload for event in events if isinstance(event, ParsedInput)]
    pressed = [one for one in payloads if not (isinstance(one, KeyEvent) and one.kind == "release")]
    match pressed:
        case [KeyEvent(key="escape")]:
            return PersonAnswer.NOT_NOW
        case [KeyEvent(key="c", mods=mods)] if "ctrl" in mods:
            return PersonAnswer.NOTHING_OF_IT
        case [KeyEvent(kind="press", text=text)]:
            return _ANSWERS.get(text.lower())
    return None


class ScreenModel(Screen):
    """A model of the person's screen that parses output only when its state is read."""

    def __init__(self, size: Size, backlog: OutputBacklog) -> None:
        super().__init__(size, scrollback=0)
        self._backlog = backlog

    def feed(self, data: bytes) -> bytes:
        """Keep output for later. There are no replies: the person's terminal sends them."""
        self._backlog.add(data)
        return b""

    def resize(self, size: Size) -> bytes:
        self.size = size
        self._backlog.resized(size)
        return b""

    def catch_up(self, most: int | None = None) -> None:
        """Parse the backlog, or about the first `most` bytes of it."""
        for part in self._backlog.take(most):
            if isinstance(part, Size):
                super().resize(part)
            else:
                super().feed(part)

    @property
    def cursor(self) -> Cursor:
        self.catch_up()
        return super().cursor

    def restore(self, seen: Snapshot | None = None) -> bytes:
        self.catch_up()
        return super().restore(seen)

    def modes(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return those of these private modes that the program has set."""
        self.catch_up()
        return frozenset([number for number in numbers if self._terminal.mode(number)])

    def lower(self, rows: int) -> None:
        """Move the content down: the program began so many rows below the top of the screen."""
        self.catch_up()
        if rows > 0 and not self.alternate_screen:
            super().feed(b"\x1b[%dT\x1b[%dB" % (rows, rows))
