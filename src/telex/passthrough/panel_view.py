"""Shows a program in the person's terminal with a panel below it: the live view of `telex adapter`.

The program has a terminal of its own, with the rows that the panel leaves free. It is drawn from
its screen model, not from its bytes, because only then a panel can stand beside it. Input is
written to the program unchanged, except one key for the panel, and except while the panel asks
something. The view is drawn on the alternate screen, so that the person's screen is restored
afterwards.

It differs from `program_run`, which shows nothing of telex, and from `attach_view`, which shows a
program of a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from telex.passthrough.person_terminal import PersonTerminal, is_shown, terminal_size
from telex.passthrough.terminal_io import InputReader, OutputWriter
from telex.terminal.cells import Cursor, Size
from telex.terminal.emulator import cell_pixels
from telex.terminal.pictures.layout import inert
from telex.terminal.pictures.text import ansi_row
from telex.terminal.pty import InputQueueFull, Program
from telex.terminal.screen import Screen
from telex.terminal.session import PtySession

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from telex.processes.child import Exit
    from telex.terminal.cells import Row


FRAME_SECONDS: Final = 1 / 60
"""Between two frames. The first change after a pause is drawn at once."""
HURRY_SECONDS: Final = 1.0
"""How long to wait for a terminal that does not take the last bytes."""


class NotInTerminal(Exception):
    """Stdin or stdout is not a terminal."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class PanelLine:
    """A row of the panel. Control characters in its texts are shown, not executed."""

    text: str
    hint: str = ""
    """Shown at the right end; the text is shortened for it."""
    style: str = ""
    """SGR numbers, for the whole row."""


class Panel(Protocol):
    """The rows below the program, and their reaction to keys."""

    @property
    def height(self) -> int:
        """The number of rows. A small terminal may show only the first ones."""

    @property
    def answer(self) -> str | None:
        """The first row up to the cursor while the panel asks; None while the program gets keys."""

    def lines(self) -> Sequence[PanelLine]: ...

    def pressed(self) -> None:
        """Handle the panel's key."""

    def typed(self, data: bytes) -> bytes:
        """Take keys while the panel asks. Return the keys after its answer."""

    async def live(self, view: PanelView) -> None:
        """Do background work. Cancelled when the program has exited."""


def run_with_panel(
    argv: Sequence[str], panel: Panel, key: re.Pattern[bytes], env: Mapping[str, str | None]
) -> int:
    """Run a program with a panel until it exits. Return its exit code.

    Raises:
        NotInTerminal: There is no terminal to draw on.
        StartFailed: The program cannot be started.
    """
    if not is_shown():
        raise NotInTerminal(
            "the program and its panel need a terminal: run this in a terminal, without a pipe"
        )
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_show(own, argv, panel, key, env))


async def _show(
    own: PersonTerminal,
    argv: Sequence[str],
    panel: Panel,
    key: re.Pattern[bytes],
    env: Mapping[str, str | None],
) -> int:
    return await PanelView(own, panel, key).show(Program(tuple(argv), env=env))


class PanelView:
    """Draws one program and one panel in the person's terminal. Call `show` once."""

    session: PtySession

    def __init__(self, own: PersonTerminal, panel: Panel, key: re.Pattern[bytes]) -> None:
        self._own = own
        self._panel = panel
        self._key = key
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int | None] = self._loop.create_future()
        """The exit code; None stands for the program's own."""
        self._painter = Painter()
        self._modes = InputModes()
        self._compute_size()
        self._below = Screen(Size(panel.height, self._size.cols), scrollback=0)
        self._lines: Sequence[PanelLine] = ()
        self._due: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._flowing = True
        """Whether the terminal takes output."""
        self._left = self._given_back = False
        self._writer = OutputWriter(
            own.writing, full=self._full, empty=self._empty, broken=lambda _: self._end(0)
        )
        self._reader = InputReader(own.reading, self._keys, lambda: self._end(128 + signal.SIGHUP))

    # For the panel.

    @property
    def cols(self) -> int:
        return self._size.cols

    def changed(self) -> None:
        """Schedule a frame, at most `FRAME_SECONDS` later, with all changes until then."""
        if self._due is None and self._flowing and not self._given_back:
            pause = max(0.0, self._drawn + FRAME_SECONDS - self._loop.time())
            self._due = self._loop.call_later(pause, self._draw)

    def leave(self) -> None:
        """End the program: the person quits."""
        self._left = True
        self._end(None)

    # From beginning to end.

    async def show(self, program: Program) -> int:
        """Show the view until the program exits, the person quits, or a signal comes."""
        with contextlib.closing(self._below):
            size = self._size
            async with PtySession(Program(program.argv, env=program.env, size=size)) as session:
                self.session = session
                with self._signals_handled():
                    try:
                        self._own.take()
                        self._own.undone_by(LEAVE_VIEW)
                        self._writer.write(ENTER_VIEW)
                        code = await self._run()
                        ended = await self._end_program(code)
                    finally:
                        await self._give_back()
        return _exit_code(ended) if code is None else code

    async def _run(self) -> int | None:
        self.session.watchers.add(self.changed)
        self._reader.resume()
        self.changed()
        tasks = [self._start(self._panel.live(self)), self._start(self._watch())]
        try:
            return await self._over
        finally:
            self._reader.close()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _watch(self) -> None:
        await self.session.ended()
        self._end(None)

    async def _end_program(self, code: int | None) -> Exit:
        if code is None:
            await self.session.pty.end()  # with SIGHUP first, as closing a window does
        else:
            await self.session.kill()
        return await self.session.ended()

    async def _give_back(self) -> None:
        """Restore the terminal, and print what the program has left on its screen."""
        self._given_back = True
        if self._due is not None:
            self._due.cancel()
        self._writer.write(LEAVE_VIEW)
        if not self._left:
            self._writer.write(_last_screen(self.session.screen))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HURRY_SECONDS):
                await self._writer.flushed()
        self._writer.close()
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

    # Input and signals.

    def _keys(self, data: bytes) -> None:
        while data and not self._over.done():
            if self._panel.answer is not None:
                data = self._panel.typed(data)
                self.changed()
                continue
            pressed = self._key.search(data)
            self._write_to_program(data[: pressed.start()] if pressed else data)
            data = data[pressed.end() :] if pressed else b""
            if pressed:
                self._panel.pressed()
                self.changed()

    def _write_to_program(self, data: bytes) -> None:
        if data := mouse_for_program(data, self._modes, self._size):
            try:
                self.session.send_input(data)
            except InputQueueFull:
                self._writer.write(b"\a")  # the bell: the program does not read
            else:
                self.session.notify_input(data)

    @contextlib.contextmanager
    def _signals_handled(self) -> Iterator[None]:
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
        """Handle an exception in a callback: to continue would show a wrong screen."""
        self._fail(context.get("exception") or RuntimeError(context["message"]))

    def _continued(self) -> None:
        """Draw everything again after a stop: other programs have drawn on the terminal."""
        self._own.take()
        self._writer.write(ENTER_VIEW)
        self._resized()

    def _resized(self) -> None:
        self._compute_size()
        self.session.resize(self._size)
        self._below.resize(Size(self._panel.height, self._size.cols))
        self._lines = ()
        self._painter.forget()
        self.changed()

    def _compute_size(self) -> None:
        """Compute the program's size: at least one row, however small the terminal is."""
        whole = terminal_size()
        rows = max(1, whole.rows - self._panel.height)
        self._height = whole.rows
        high = whole.pixel_height * rows // whole.rows
        self._size = Size(rows, whole.cols, whole.pixel_width, high)

    # Drawing.

    def _draw(self) -> None:
        self._due = None
        self._drawn = self._loop.time()
        screen, answer = self.session.screen, self._panel.answer
        cursor = screen.cursor
        if answer is None:
            self._modes = input_modes(screen.restore())
        else:  # the panel gets the keys, and understands plain ones only
            self._modes = InputModes()
            cursor = Cursor(self._size.rows, min(len(answer), self._size.cols - 1))
        rows = (*screen.rows(), *self._panel_rows())[: self._height]
        if data := self._painter.paint(rows, cursor, self._modes.in_cells):
            self._writer.write(data)

    def _panel_rows(self) -> tuple[Row, ...]:
        """Draw the panel by an emulator, which knows the width of each character."""
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


def _last_screen(screen: Screen) -> bytes:
    """Return the program's last screen as lines; nothing if it drew on the alternate screen."""
    rows = () if screen.alternate_screen else screen.rows()
    lines = "\r\n".join([ansi_row(row) for row in rows]).rstrip()
    return f"{lines}\r\n".encode("utf-8", "replace") if lines else b""


def _exit_code(ended: Exit) -> int:
    return 128 + (ended.signal or 0) if ended.code is None else ended.code


KEYPAD: Final = 66
MOUSE: Final = frozenset({9, 1000, 1002, 1003})
SGR: Final = 1006
URXVT: Final = 1015
PIXELS: Final = 1016
MIRRORED: Final = frozenset({1, KEYPAD, *MOUSE, 1004, SGR, URXVT, PIXELS, 2004})
"""Private modes that change how a terminal reports keys, the mouse, focus and pastes. Not 1005,
whose mouse reports cannot be distinguished from text."""

ENTER_VIEW: Final = b"\x1b[?1049h\x1b[?7l\x1b[>0u\x1b[2J"
LEAVE_VIEW: Final = (
    "\x1b[?2026l"
    + "".join([f"\x1b[?{mode}l" for mode in sorted(MIRRORED - {KEYPAD})])
    + "\x1b>\x1b[>4m\x1b[<u\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
).encode()
"""Not `attach_view.PLAIN`, which undoes any mode and moves the cursor: leaving the alternate screen
restores the cursor of the person's shell."""

_MODE: Final = re.compile(rb"\x1b\[\?(\d+)h")
_KITTY: Final = re.compile(rb"\x1b\[=(\d+);1u")
_OTHER_KEYS: Final = re.compile(rb"\x1b\[>4;(\d)m")
_REPORT: Final = re.compile(
    rb"(?:(?P<button>\x1b\[<\d+;)|\x1b\[\d+;)(?P<col>\d+);(?P<row>\d+)[Mm]|\x1b\[M..(?P<byte>.)",
    re.DOTALL,
)
"""A mouse report, in each of its three formats: SGR, urxvt's, and X10's."""


@dataclass(frozen=True, slots=True)
class InputModes:
    """The modes by which a terminal reports keyboard and mouse."""

    modes: frozenset[int] = frozenset()
    kitty: int = 0
    """Flags of kitty's keyboard protocol."""
    other_keys: int = 0
    """The level of xterm's modifyOtherKeys."""

    @property
    def in_cells(self) -> InputModes:
        """These modes for the person's terminal, whose mouse is to report cells: a pixel there may
        have another size, or none that is known. `mouse_for_program` computes the pixels."""
        if PIXELS not in self.modes:
            return self
        return replace(self, modes=self.modes - {PIXELS} | {SGR})


def input_modes(restoring: bytes) -> InputModes:
    """Find a program's input modes in the bytes that restore its screen. Text in these bytes cannot
    be taken for a mode, because it has no ESC.
    """
    kitty, other = _KITTY.findall(restoring), _OTHER_KEYS.findall(restoring)
    modes = MIRRORED & {int(number) for number in _MODE.findall(restoring)}
    return InputModes(
        modes - {URXVT} if modes & {SGR, PIXELS} else modes,
        int(kitty[-1]) if kitty else 0,
        int(other[-1]) if other else 0,
    )


def mouse_for_program(data: bytes, modes: InputModes, size: Size) -> bytes:
    """Remove mouse reports from below the program's rows. A program that asked for pixels gets the
    middle of the cell."""
    if not modes.modes & MOUSE or b"\x1b[" not in data:
        return data
    wide, high = cell_pixels(size)

    def kept(report: re.Match[bytes]) -> bytes:
        row = report["byte"][0] - 32 if report["byte"] else int(report["row"])
        if row > size.rows:
            return b""
        if PIXELS in modes.modes and report["button"]:
            x, y = int(report["col"]) * wide - wide // 2, row * high - high // 2
            return b"%b%d;%d%b" % (report["button"], x, y, report[0][-1:])
        return report[0]

    return _REPORT.sub(kept, data)


class Painter:
    """Makes the bytes from one frame to the next: the rows that changed, and the modes. Pure.

    A frame is rows (the same objects as long as their content is the same), a cursor, and the modes
    of keyboard and mouse. Bytes of the program are never passed on, so only modes that are set here
    have to be undone.
    """

    def __init__(self) -> None:
        self._rows: tuple[Row, ...] = ()
        self._cursor = Cursor(-1, -1)
        self._modes = InputModes()

    def forget(self) -> None:
        """Draw the whole next frame: the size changed, or another program drew on the terminal."""
        self._rows, self._cursor, self._modes = (), Cursor(-1, -1), InputModes()

    def paint(self, rows: Sequence[Row], cursor: Cursor, modes: InputModes) -> bytes:
        """Return the bytes that draw the frame; empty if nothing changed."""
        changed = "".join(self._changed(rows))
        switched = "".join(_mode_changes(self._modes, modes))
        if not changed and not switched and cursor == self._cursor:
            return b""
        fresh = "" if self._rows else "\x1b[m\x1b[2J"
        self._rows, self._cursor, self._modes = tuple(rows), cursor, modes
        shown = f"\x1b[{cursor.row + 1};{cursor.col + 1}H" + ("\x1b[?25h" if cursor.visible else "")
        # A synchronized update; on terminals without it, the hidden cursor at least does not jump.
        # The modes come first: who has seen the rows may type.
        frame = f"\x1b[?2026h\x1b[?25l{switched}{fresh}{changed}{shown}\x1b[?2026l"
        return frame.encode("utf-8", "replace")

    def _changed(self, rows: Sequence[Row]) -> Iterator[str]:
        before = self._rows
        for y, row in enumerate(rows):
            if y >= len(before) or before[y] is not row:
                runs = row.runs
                wide = runs[-1].col + runs[-1].width if runs else 0
                # In the last column the cursor stays on the last cell: to erase would erase that.
                rest = "\x1b[K" if wide < row.cols else ""
                yield f"\x1b[{y + 1};1H{ansi_row(row)}{rest}"


def _mode_changes(old: InputModes, new: InputModes) -> Iterator[str]:
    for mode in sorted(old.modes - new.modes):
        yield "\x1b>" if mode == KEYPAD else f"\x1b[?{mode}l"
    for mode in sorted(new.modes - old.modes):
        yield "\x1b=" if mode == KEYPAD else f"\x1b[?{mode}h"
    if old.kitty != new.kitty:
        yield f"\x1b[={new.kitty};1u"
    if old.other_keys != new.other_keys:
        yield f"\x1b[>4;{new.other_keys}m"
