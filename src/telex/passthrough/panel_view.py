"""A program in the person's terminal with a panel below it: the live view of `telex adapter`.

The program has a terminal of its own, as high as the panel leaves room for, and is drawn from its
screen, not from its bytes: only so can something stand beside it. Input goes to it as it is, but
for one key, which is the panel's, and for as long as the panel asks something. The view is drawn on
the terminal's alternate screen, so that the person's own is back afterwards.

Not `program_run`, where nothing of telex is seen, and not `attach_view`, whose program is a
server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from telex.passthrough.person_terminal import PersonTerminal, is_shown, terminal_size
from telex.passthrough.terminal_io import InputReader, OutputWriter
from telex.terminal.cells import Cursor, Size
from telex.terminal.pictures.layout import inert
from telex.terminal.pictures.text import ansi_row
from telex.terminal.pty import InputQueueFull, Program
from telex.terminal.screen import Screen
from telex.terminal.session import PtySession

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from telex.processes.child import Exit
    from telex.terminal.cells import Row, Size


FRAME_SECONDS: Final = 1 / 60
"""Between two pictures. The first change after a pause is drawn at once."""
HURRY_SECONDS: Final = 1.0
"""How long a terminal that does not take the last bytes is waited for."""


class NotInTerminal(Exception):
    """There is nobody to show it to."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class PanelLine:
    """A row of the panel. Whatever is in the texts, they are shown and not obeyed."""

    text: str
    hint: str = ""
    """At the right end; the text makes room for it."""
    style: str = ""
    """SGR numbers, for the whole row."""


class Panel(Protocol):
    """What stands below the program."""

    @property
    def height(self) -> int:
        """In rows. A small terminal may show fewer, the first ones."""

    @property
    def answer(self) -> str | None:
        """Its first row up to the cursor, while it asks; None while the keys are the program's."""

    def lines(self) -> Sequence[PanelLine]: ...

    def pressed(self) -> None:
        """The panel's key."""

    def typed(self, data: bytes) -> bytes:
        """Keys, while it asks; those that come after its answer."""

    async def live(self, view: PanelView) -> None:
        """Whatever it does while the program runs. Cancelled when that has ended."""


def run_with_panel(
    argv: Sequence[str], panel: Panel, key: re.Pattern[bytes], env: Mapping[str, str | None]
) -> int:
    """Run it to its end; its exit code. Raises what starting a program raises."""
    if not is_shown():
        raise NotInTerminal(
            "this shows a program and a panel: run it in a terminal, without a pipe"
        )
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_shown(own, argv, panel, key, env))


async def _shown(
    own: PersonTerminal,
    argv: Sequence[str],
    panel: Panel,
    key: re.Pattern[bytes],
    env: Mapping[str, str | None],
) -> int:
    return await PanelView(own, panel, key).show(Program(tuple(argv), env=env))


class PanelView:
    """One program and one panel in one person's terminal."""

    session: PtySession

    def __init__(self, own: PersonTerminal, panel: Panel, key: re.Pattern[bytes]) -> None:
        self._own = own
        self._panel = panel
        self._key = key
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int | None] = self._loop.create_future()
        """The exit code, where it is not the program's."""
        self._painter = Painter()
        self._said = InputModes()
        self._place()
        self._below = Screen(Size(panel.height, self._size.cols), scrollback=0)
        self._lines: Sequence[PanelLine] = ()
        self._due: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._flowing = True
        """Whether the terminal takes what is drawn."""
        self._left = self._given_back = False
        self._outlet = OutputWriter(
            own.writing, full=self._full, empty=self._empty, broken=lambda _: self._end(0)
        )
        self._inlet = InputReader(own.reading, self._keys, lambda: self._end(128 + signal.SIGHUP))

    # For the panel.

    @property
    def cols(self) -> int:
        return self._size.cols

    def changed(self) -> None:
        """Something is to be drawn: soon, and together with whatever else changes meanwhile."""
        if self._due is None and self._flowing and not self._given_back:
            pause = max(0.0, self._drawn + FRAME_SECONDS - self._loop.time())
            self._due = self._loop.call_later(pause, self._draw)

    def leave(self) -> None:
        """The person has seen enough: the program is ended."""
        self._left = True
        self._end(None)

    # From beginning to end.

    async def show(self, program: Program) -> int:
        """Until the program ends, the person leaves, or a signal comes."""
        with contextlib.closing(self._below):
            async with PtySession(Program(program.argv, env=program.env, size=self._size)) as one:
                self.session = one
                with self._attentive():
                    try:
                        self._own.take()
                        self._own.undone_by(LEAVE_VIEW)
                        self._outlet.write(ENTER_VIEW)
                        code = await self._lived()
                        ended = await self._ended(code)
                    finally:
                        await self._give_back()
        return _exit_code(ended) if code is None else code

    async def _lived(self) -> int | None:
        self.session.watchers.add(self.changed)
        self._inlet.resume()
        self.changed()
        tasks = [self._start(self._panel.live(self)), self._start(self._watch())]
        try:
            return await self._over
        finally:
            self._inlet.close()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _watch(self) -> None:
        await self.session.ended()
        self._end(None)

    async def _ended(self, code: int | None) -> Exit:
        if code is None:
            await self.session.pty.end()  # politely, as closing a window does
        else:
            await self.session.kill()
        return await self.session.ended()

    async def _give_back(self) -> None:
        """The terminal is the person's, with what the program has left on its screen."""
        self._given_back = True
        if self._due is not None:
            self._due.cancel()
        self._outlet.write(LEAVE_VIEW)
        if not self._left:
            self._outlet.write(_last_words(self.session.screen))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HURRY_SECONDS):
                await self._outlet.flushed()
        self._outlet.close()
        self._own.give_back()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self._fail(error)

    def _end(self, code: int | None) -> None:
        if not self._over.done():
            self._over.set_result(code)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    # What the person does.

    def _keys(self, data: bytes) -> None:
        while data and not self._over.done():
            if self._panel.answer is not None:
                data = self._panel.typed(data)
                self.changed()
                continue
            pressed = self._key.search(data)
            self._type(data[: pressed.start()] if pressed else data)
            data = data[pressed.end() :] if pressed else b""
            if pressed:
                self._panel.pressed()
                self.changed()

    def _type(self, data: bytes) -> None:
        if data := without_mouse_below(data, self._said, self._size):
            try:
                self.session.pty.write(data)
            except InputQueueFull:
                self._outlet.write(b"\a")  # what a terminal rings for: nobody reads
            else:
                self.session.notify_input(data)

    @contextlib.contextmanager
    def _attentive(self) -> Iterator[None]:
        ending = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
        handlers: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGWINCH: self._resized,
            signal.SIGCONT: self._continued,
            **{number: partial(self._end, 128 + number) for number in ending},
        }
        self._loop.set_exception_handler(self._fault)
        for number, handler in handlers.items():
            self._loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                self._loop.remove_signal_handler(number)

    def _fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of ours broke in a callback. Going on would show what is not so."""
        self._fail(context.get("exception") or RuntimeError(context["message"]))

    def _continued(self) -> None:
        """Somebody stopped us and we go on: whoever had the terminal meanwhile drew on it."""
        self._own.take()
        self._outlet.write(ENTER_VIEW)
        self._resized()

    def _resized(self) -> None:
        self._place()
        self.session.resize(self._size)
        self._below.resize(Size(self._panel.height, self._size.cols))
        self._lines = ()
        self._painter.forget()
        self.changed()

    def _place(self) -> None:
        """The program's size: at least a row, however small the terminal is."""
        whole = terminal_size()
        rows = max(1, whole.rows - self._panel.height)
        self._height = whole.rows
        high = whole.pixel_height * rows // whole.rows
        self._size = Size(rows, whole.cols, whole.pixel_width, high)

    # What the person sees.

    def _draw(self) -> None:
        self._due = None
        self._drawn = self._loop.time()
        screen, answer = self.session.screen, self._panel.answer
        cursor = screen.cursor
        if answer is None:
            self._said = input_modes(screen.restore())
        else:  # the keys are the panel's, and it understands plain ones
            self._said = InputModes()
            cursor = Cursor(self._size.rows, min(len(answer), self._size.cols - 1))
        rows = (*screen.rows(), *self._panel_rows())[: self._height]
        if data := self._painter.paint(rows, cursor, self._said):
            self._outlet.write(data)

    def _panel_rows(self) -> tuple[Row, ...]:
        """Drawn by an emulator too: it knows how wide each character is."""
        lines = self._panel.lines()
        if lines != self._lines:
            self._lines = lines
            cols = self._size.cols
            drawn = "\r\n".join([_drawn(line, cols) for line in lines[: self._panel.height]])
            self._below.feed(f"\x1b[?7l\x1b[H\x1b[2J{drawn}".encode("utf-8", "replace"))
        return self._below.rows()

    def _full(self) -> None:
        self._flowing = False

    def _empty(self) -> None:
        self._flowing = True
        self.changed()


def _drawn(line: PanelLine, cols: int) -> str:
    hint = inert(line.hint)
    hint = f" {hint}" if hint and len(hint) < cols // 2 else ""
    text, room = inert(line.text), cols - len(hint)
    text = text if len(text) <= room else f"{text[: room - 1]}…"
    filled = f"{' ' * cols}\r" if line.style else ""
    return f"\x1b[{line.style}m{filled}{text}\x1b[{room + 1}G{hint}\x1b[m"


def _last_words(screen: Screen) -> bytes:
    """What stands on the program's screen when it has ended, as a program leaves it. One that drew
    on the other screen leaves nothing there."""
    rows = () if screen.alternate_screen else screen.rows()
    lines = "\r\n".join([ansi_row(row) for row in rows]).rstrip()
    return f"{lines}\r\n".encode("utf-8", "replace") if lines else b""


def _exit_code(ended: Exit) -> int:
    return 128 + (ended.signal or 0) if ended.code is None else ended.code


KEYPAD: Final = 66
MOUSE: Final = frozenset({9, 1000, 1002, 1003})
PIXELS: Final = 1016
MIRRORED: Final = frozenset({1, KEYPAD, *MOUSE, 1004, 1006, 1015, PIXELS, 2004})
"""Private modes by which a terminal says keys, the mouse, focus and pastes differently. Not 1005, a
way to tell of the mouse that cannot be told from text."""

ENTER_VIEW: Final = b"\x1b[?1049h\x1b[?7l\x1b[>0u\x1b[2J"
LEAVE_VIEW: Final = (
    "\x1b[?2026l"
    + "".join([f"\x1b[?{mode}l" for mode in sorted(MIRRORED - {KEYPAD})])
    + "\x1b>\x1b[>4m\x1b[<u\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
).encode()
"""Not `attach.PLAIN`, which is for whatever a program may have done and moves the cursor: leaving
the other screen puts it where the person's shell had it."""

_MODE: Final = re.compile(rb"\x1b\[\?(\d+)h")
_KITTY: Final = re.compile(rb"\x1b\[=(\d+);1u")
_OTHER_KEYS: Final = re.compile(rb"\x1b\[>4;(\d)m")
_REPORT: Final = re.compile(rb"\x1b\[(?:<\d+;\d+;(\d+)[Mm]|\d+;\d+;(\d+)M|M..(.))", re.DOTALL)
"""The mouse, in each of its three ways of telling a row: SGR, urxvt's, and the first one."""


@dataclass(frozen=True, slots=True)
class InputModes:
    """How keyboard and mouse are to speak."""

    modes: frozenset[int] = frozenset()
    kitty: int = 0
    """Flags of kitty's keyboard protocol."""
    other_keys: int = 0
    """xterm's modifyOtherKeys."""


def input_modes(restoring: bytes) -> InputModes:
    """What a program asked for, from the bytes that restore its screen. No text in them can be
    taken for a mode: it has no escapes."""
    kitty, other = _KITTY.findall(restoring), _OTHER_KEYS.findall(restoring)
    return InputModes(
        MIRRORED & {int(number) for number in _MODE.findall(restoring)},
        int(kitty[-1]) if kitty else 0,
        int(other[-1]) if other else 0,
    )


def without_mouse_below(data: bytes, said: InputModes, size: Size) -> bytes:
    """What was typed, without what the mouse did below the first rows of the terminal."""
    if not said.modes & MOUSE or b"\x1b[" not in data:
        return data
    last = size.pixel_height if PIXELS in said.modes and size.pixel_height else size.rows

    def kept(report: re.Match[bytes]) -> bytes:
        sgr, urxvt, byte = report.groups()
        row = byte[0] - 32 if byte else int(sgr or urxvt)
        return report[0] if row <= last else b""

    return _REPORT.sub(kept, data)


class Painter:
    """Knows what stands on a terminal, and the bytes that make it the next picture: the rows that
    changed, and the modes. Pure.

    A picture is rows that are the same objects as long as they look the same, a cursor, and the
    modes of keyboard and mouse. Nothing a program printed is passed on, so that what has to be
    undone afterwards is known: what is set here.
    """

    def __init__(self) -> None:
        self._rows: tuple[Row, ...] = ()
        self._cursor = Cursor(-1, -1)
        self._said = InputModes()

    def forget(self) -> None:
        """The terminal has another size, or somebody else drew on it: all is to be drawn again."""
        self._rows, self._cursor, self._said = (), Cursor(-1, -1), InputModes()

    def paint(self, rows: Sequence[Row], cursor: Cursor, said: InputModes) -> bytes:
        """The bytes; none where nothing changed."""
        changed = "".join(self._changed(rows))
        spoken = "".join(_spoken(self._said, said))
        if not changed and not spoken and cursor == self._cursor:
            return b""
        fresh = "" if self._rows else "\x1b[m\x1b[2J"
        self._rows, self._cursor, self._said = tuple(rows), cursor, said
        shown = f"\x1b[{cursor.row + 1};{cursor.col + 1}H" + ("\x1b[?25h" if cursor.visible else "")
        # Held, where the terminal can, until it is whole; and else the cursor does not run about.
        held = f"\x1b[?2026h\x1b[?25l{fresh}{changed}{spoken}{shown}\x1b[?2026l"
        return held.encode("utf-8", "replace")

    def _changed(self, rows: Sequence[Row]) -> Iterator[str]:
        before = self._rows
        for y, row in enumerate(rows):
            if y >= len(before) or before[y] is not row:
                runs = row.runs
                wide = runs[-1].col + runs[-1].width if runs else 0
                # In the last column the cursor stands on what it wrote: to erase would erase that.
                rest = "\x1b[K" if wide < row.cols else ""
                yield f"\x1b[{y + 1};1H{ansi_row(row)}{rest}"


def _spoken(old: InputModes, new: InputModes) -> Iterator[str]:
    for mode in sorted(old.modes - new.modes):
        yield "\x1b>" if mode == KEYPAD else f"\x1b[?{mode}l"
    for mode in sorted(new.modes - old.modes):
        yield "\x1b=" if mode == KEYPAD else f"\x1b[?{mode}h"
    if old.kitty != new.kitty:
        yield f"\x1b[={new.kitty};1u"
    if old.other_keys != new.other_keys:
        yield f"\x1b[>4;{new.other_keys}m"
