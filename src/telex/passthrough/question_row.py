"""A question on the last row of the person's terminal, over what a program shows there.

While the question stands, the program's output is held back, so that nothing is drawn over it, and
input goes to the question alone. Then the rows and the cursor are drawn again from telex's own
model of the screen: a terminal cannot be asked what it shows, and its one place to save a cursor is
the program's.

The question must withstand a program that wants a yes. So it is shown whole or not at all; whatever
could make it unseen or unreadable is undone first; and a yes is one key, pressed alone, after the
question was shown and the keyboard was quiet for a moment: not what was typed or pasted to the
program. Everything else is a no.

All of the program's output passes `program_output`, and all input `person_input`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from telex.escapes import limits
from telex.escapes.commands.event_types import KeyEvent, MouseInput, PasteEvent
from telex.escapes.gate import GateQuestion, PersonAnswer, width
from telex.escapes.input_events import InputParser, ParsedInput
from telex.passthrough.output_backlog import SequenceBoundary
from telex.terminal.cells import Cursor, Size, Snapshot
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from telex.passthrough.output_backlog import OutputBacklog
    from telex.terminal.cells import Size


QUIET_SECONDS: Final = 0.3
"""Without a key, before one is an answer: nobody has read a question in less."""
BOUNDARY_SECONDS: Final = 1.0
"""How long a program may leave an escape sequence half written, before the answer is no."""

_PLAINLY: Final = (
    b"\x1b<"  # out of VT52, where no other sequence is understood
    b"\x1b[?2026l"  # an update that is held would hold the question too
    b"\x1b[0$}"  # out of the status line
    b"\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7l"  # no origin, margins, region, insertion, wrapping
    b'\x1b%G\x0f\x1b(B\x1b[0"q\x1b]8;;\x1b\\'  # letters are letters, not protected, and no link
)
_INK: Final = b"\x1b[0;1;7m\x1b[38:2::255:255:255m\x1b[48:2::0:0:0m"
"""Inverse; and in colours that no palette changes, for a program that made all colours one. The
colons are for terminals that do not know these: they skip them."""
_CLEAR: Final = b"\x1b[m\x1b[H\x1b[2J"
"""With this, what draws a screen begins (`terminal.restoring`), after modes that are in force."""

_ANSWERS: Final = {"y": PersonAnswer.ONCE, "a": PersonAnswer.WHILE_IT_RUNS, "n": PersonAnswer.NEVER}


def wrap_question(text: str, size: Size) -> list[str] | None:
    """The text in rows; None where they are more than there are."""
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
    """Asks the person of one terminal: a `gate.Person`. One question at a time."""

    def __init__(
        self,
        screen: Screen,
        *,
        show: Callable[[bytes], None],
        flushed: Callable[[], Awaitable[None]],
        pause: Callable[[], None],
        resume: Callable[[], None],
        pictures: bool = True,
        patience: float = limits.QUESTION_SECONDS,
    ) -> None:
        self._screen = screen
        """What the person's terminal shows. Nobody else feeds it."""
        self._show, self._flushed = show, flushed
        self._pause, self._resume = pause, resume
        self._pictures = pictures
        """Whether the terminal may have kitty's pictures, which can lie over text."""
        self._patience = patience
        self._boundary = SequenceBoundary()
        self._between: asyncio.Event | None = None
        """Set at a boundary, while one is waited for."""
        self._held: list[bytes] | None = None
        """What the program printed since the question was asked."""
        self._answer: asyncio.Future[PersonAnswer] | None = None
        self._quiet_from: float | None = None
        """Since when no key came; None before the question is there to be read."""
        self._keys = InputParser()
        self._drawn = 0
        """How many rows the question has."""
        self._escape: asyncio.TimerHandle | None = None

    @property
    def standing(self) -> bool:
        return self._answer is not None

    # --- the program's side

    def program_output(self, data: bytes) -> None:
        """What the program printed: shown at once, or after the question."""
        if self._between is not None and (end := self._boundary.next(data)) is not None:
            self._pass(data[:end])
            data = data[end:]
            self._between.set()
            self._between, self._held = None, []
            self._pause()
        if self._held is None:
            self._pass(data)
        elif data:
            self._held.append(data)
            self._pause()  # should somebody have resumed it: this must not grow

    def _pass(self, data: bytes) -> None:
        self._boundary.feed(data)
        self._screen.feed(data)  # what it answers, the person's own terminal answers too
        self._show(data)

    def resized(self, size: Size) -> None:
        """The terminal has another size. What of a question stands where then, nobody knows."""
        self._screen.resize(size)
        self._drawn = self._drawn and size.rows
        self._decide(PersonAnswer.NOT_NOW)

    def withdraw(self) -> None:
        """Nobody wants the answer any more: it is no."""
        self._decide(PersonAnswer.NOT_NOW)

    # --- the question

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        rows = wrap_question(question.text, self._screen.size)
        if rows is None:
            return PersonAnswer.NOT_NOW
        self._answer = asyncio.get_running_loop().create_future()
        self._keys, self._quiet_from = InputParser(), None
        try:
            async with asyncio.timeout(self._patience):
                await self._hold()
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

    async def _hold(self) -> None:
        """Until the terminal is between two of the program's sequences, and it prints no more."""
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
            self._answer = asyncio.get_running_loop().create_future()  # not one of the choices

    def _draw(self, rows: list[str]) -> None:
        size = self._screen.size
        top = size.rows - len(rows) + 1
        parts = [_PLAINLY, b"\x1b[?25h"]
        for y, row in enumerate(rows, top):
            if self._pictures:
                parts.append(b"\x1b_Ga=d,d=y,y=%d,q=2\x1b\\" % y)
            blank = b" " * size.cols
            parts.append(b"\x1b[%d;1H\x1b#5%b%b\r%b" % (y, _INK, blank, row.encode("utf-8")))
        self._drawn = len(rows)
        self._show(b"".join([*parts, b"\x1b[m"]))

    def _remove(self) -> None:
        """The rows and the cursor as they were, then what was held back."""
        self._answer = self._between = None
        if self._escape is not None:
            self._escape.cancel()
        if self._drawn:
            self._show(self._restoring())
            self._drawn = 0
        held, self._held = self._held, None
        for data in held or ():
            self._pass(data)
        if held is not None:
            self._resume()

    def _restoring(self) -> bytes:
        """Only from the first of the rows on: what is above was not touched."""
        rows = self._screen.size.rows
        top = rows - self._drawn + 1
        blank = b"".join([b"\x1b[%d;1H\x1b[2K" % y for y in range(top, rows + 1)])
        drawing = self._screen.restore().partition(_CLEAR)[2]
        return _PLAINLY + b"\x1b[?7h\x1b[m" + blank + drawing[drawing.index(b"\x1b[%dH" % top) :]

    # --- the person's side

    def person_input(self, data: bytes) -> bytes:
        """What of it is the program's: all, without a question; with one, only what is no key."""
        now = self._now()
        if not self.standing:
            if self._keys.deadline is None or now >= self._keys.deadline:
                self._keys.deadline = None
                return data
            # A key that the question saw the beginning of: it goes where the rest of it goes.
            return b"".join([_raw(event) for event in self._keys.feed(data, now)])
        # What was typed before the question was there was typed at the program.
        return data if self._quiet_from is None else self._take_keys(data, now, self._quiet_from)

    def _take_keys(self, data: bytes, now: float, quiet_from: float) -> bytes:
        events = self._keys.feed(data, now)
        self._look_again(now)
        keys = [event for event in events if _is_typed(event)]
        if keys:
            self._quiet_from = now
            if now - quiet_from >= QUIET_SECONDS and (answer := _meant(keys)):
                self._decide(answer)
        return b"".join([_raw(event) for event in events if not _is_typed(event)])

    def _look_again(self, now: float) -> None:
        """An Escape is one when nothing follows it."""
        if self._escape is not None:
            self._escape.cancel()
        if self._keys.deadline is not None:
            loop = asyncio.get_running_loop()
            self._escape = loop.call_later(self._keys.deadline - now, self._waited)

    def _waited(self) -> None:
        if self.standing and self._quiet_from is not None:
            # Whatever else is given up now is no report: those come in one piece.
            self._take_keys(b"", max(self._now(), self._keys.deadline or 0.0), self._quiet_from)

    def _decide(self, answer: PersonAnswer) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _raw(event: ParsedInput | bytes) -> bytes:
    return event if isinstance(event, bytes) else event.raw


def _is_typed(event: ParsedInput | bytes) -> bool:
    """Whether the person did this; what else comes, the program has asked the terminal for."""
    return isinstance(event, ParsedInput) and isinstance(
        event.payload, KeyEvent | MouseInput | PasteEvent
    )


def _meant(events: list[ParsedInput | bytes]) -> PersonAnswer | None:
    """The answer, if these are one. Several at once were not pressed to answer."""
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
    """The person's terminal as the program sees it: a screen that is fed when it is looked at."""

    def __init__(self, size: Size, backlog: OutputBacklog) -> None:
        super().__init__(size, scrollback=0)
        self._backlog = backlog
        self.muted = False

    def feed(self, data: bytes) -> bytes:
        """Shown later. What it would answer, the person's own terminal answers."""
        if not self.muted:
            self._backlog.add(data)
        return b""

    def resize(self, size: Size) -> bytes:
        self.size = size
        self._backlog.resized(size)
        return b""

    def catch_up(self, most: int | None = None) -> None:
        """See all of it, or some."""
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
        """Those of these private modes that the program has set."""
        self.catch_up()
        return frozenset([number for number in numbers if self._terminal.mode(number)])

    def lower(self, rows: int) -> None:
        """The program began so many rows further down than at the top, as it turned out."""
        self.catch_up()
        if rows > 0 and not self.alternate_screen:
            super().feed(b"\x1b[%dT\x1b[%dB" % (rows, rows))
