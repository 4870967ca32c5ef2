"""What callers do to a program, one after the other: actions as bytes, in the order they came.

Each session has one. Keys and mouse are encoded by the screen, which knows the program's modes.
An interrupt waits for nobody: it overtakes a paste that is still queued, because that is what
people press it for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

from telex.protocols import pty_automation as spec
from telex.terminal.cells import Size
from telex.terminal.keys import bracketed_paste_bytes, parse_key, paste_bytes
from telex.terminal.outbox import InputQueueFull
from telex.wire import limits

if TYPE_CHECKING:
    from telex.processes.child import Exit
    from telex.protocols.pty_automation import Action, Streamed
    from telex.terminal.session import PtySession

SIGNALS: Final = {
    "term": signal.SIGTERM,
    "hup": signal.SIGHUP,
    "quit": signal.SIGQUIT,
    "int": signal.SIGINT,
    "kill": signal.SIGKILL,
    "user1": signal.SIGUSR1,
    "user2": signal.SIGUSR2,
}


class ProgramEnded(Exception):
    """There is no program any more that an action could reach."""

    def __init__(self, ended: Exit, so: str = "nothing reads what is typed") -> None:
        super().__init__(f"the program {ended}; {so}")
        self.exit = ended


_NOW_IN_VAIN: Final[dict[type, str]] = {
    spec.Resize: "its terminal keeps the size it had",
    spec.Signal: "there is nothing left to signal",
    spec.Kill: "there is nothing left to kill",
    spec.MarkTranscript: "nothing more is printed after a mark",
}
"""What follows for an action that types nothing."""


class NoMouse(Exception):
    """The program did not ask for the mouse, so that no byte would tell it of one."""


class InputNotRead(Exception):
    """The program reads nothing, and the rest of a long input was given up."""

    def __init__(self, left: int) -> None:
        super().__init__(
            f"the program read nothing for {limits.INPUT_SECONDS} s: {left} bytes wait for it, and "
            "the rest was not sent; interrupt it, or send less at a time"
        )


class Acting:
    """The inputs of one session, in order."""

    def __init__(self, session: PtySession) -> None:
        self._session = session
        self._turn = asyncio.Lock()
        self._line = ""
        """What was typed since the last line was sent off: its echo may still be on its way."""
        self._interrupted = asyncio.Event()
        self.refused = 0
        """Answers to the program's queries that found its input full."""

    async def perform(self, action: Action) -> str:
        """Do it when it is its turn. Answers the mark of the moment before."""
        self._check_alive(action)
        match action:
            case spec.Interrupt():
                return self._interrupt()
            case spec.Kill():
                mark = self._session.mark()
                await self._session.kill()
                return self._session.marks.name(mark)
            case _:
                async with self._turn:
                    self._check_alive(action)
                    return await self._perform(action)

    def answer(self, replies: bytes) -> None:
        """What the terminal answers to a query: part of the turn that fed it, ahead of nothing."""
        try:
            self._session.pty.write(replies)
        except InputQueueFull:
            self.refused += 1

    async def _perform(self, action: Action) -> str:
        match action:
            case spec.Text(value) | spec.Paste(value):
                return await self._write(paste_bytes(value), value)
            case spec.BracketedPaste(value):
                return await self._write(bracketed_paste_bytes(value), value)
            case spec.Key(value):
                return await self._press(value)
            case spec.StreamText(value):
                return await self._stream(value)
            case spec.Mouse(value):
                return await self._point(value)
            case spec.Eof():
                return await self._write(self._session.pty.characters().eof, "")
            case spec.Resize(value):
                return self._resize(value)
            case spec.Signal(value):
                return self._signal(SIGNALS[value])
            case spec.MarkTranscript(value):
                mark = self._session.marks.name(self._session.mark())
                self._session.label(value.label)
                return mark
            case spec.Interrupt() | spec.Kill():
                raise AssertionError("these do not wait for their turn")

    async def _press(self, name: str) -> str:
        press = parse_key(name)
        data = self._session.screen.encode_key(press)
        typed = "\n" if data in (b"\r", b"\n") else data.decode() if data.isalnum() else ""
        return await self._write(data, typed)

    async def _point(self, event: spec.MouseEvent) -> str:
        if not self._session.screen.mouse_tracking:
            raise NoMouse("the program did not ask for the mouse; use keys, or wait until it does")
        return await self._write(self._session.screen.encode_mouse(event), "")

    async def _write(self, data: bytes, typed: str) -> str:
        mark = self._marked(typed)
        for at in range(0, len(data), limits.INPUT_BYTES_QUEUED // 2):
            if at and not await self._may_go_on():
                break
            self._session.type(data[at : at + limits.INPUT_BYTES_QUEUED // 2])
        self._session.typed(data)
        return mark

    async def _stream(self, value: Streamed) -> str:
        mark = self._marked(value.text)
        for at in range(0, len(value.text), value.chunk_chars):
            if at and not await self._may_go_on(value.delay_ms / 1000):
                break
            piece = paste_bytes(value.text[at : at + value.chunk_chars])
            self._session.type(piece)
            self._session.typed(piece)
        return mark

    async def _may_go_on(self, pause: float = 0) -> bool:
        """Once there is room for the next piece: whether nobody pressed interrupt meanwhile.

        Without asking, the rest of an interrupted paste would be taken for commands.
        """
        self._interrupted.clear()
        if pause:
            await asyncio.sleep(pause)  # as the caller asked: this is its typing speed
        await self._room()
        self._check_alive()
        return not self._interrupted.is_set()

    async def _room(self) -> None:
        """Until all that was written is the program's, or somebody pressed interrupt."""
        waits = {
            asyncio.create_task(self._session.pty.drained()),
            asyncio.create_task(self._interrupted.wait()),
        }
        first = asyncio.FIRST_COMPLETED
        try:
            done, _ = await asyncio.wait(waits, timeout=limits.INPUT_SECONDS, return_when=first)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
        if not done:
            raise InputNotRead(self._session.pty.unsent)

    def _interrupt(self) -> str:
        mark = self._marked("")
        data = self._session.pty.characters().interrupt
        self._interrupted.set()
        self._session.pty.interrupt()
        self._session.typed(data)
        self._line = ""
        return mark

    def _resize(self, size: spec.TerminalSize) -> str:
        mark = self._session.marks.name(self._session.mark())
        self._session.resize(Size(size.rows, size.cols, size.pixel_width, size.pixel_height))
        return mark

    def _signal(self, number: signal.Signals) -> str:
        mark = self._session.marks.name(self._session.mark())
        group = self._session.pty.foreground() or self._session.pty.child.pid
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile, which will be told
            os.killpg(group, number)
        return mark

    def _marked(self, typed: str) -> str:
        """The mark of the moment before this typing, which knows the line it may complete."""
        self._line += typed
        name = self._session.marks.name(self._session.mark(self._line[: limits.TYPED_CHARS]))
        self._line = self._line.rpartition("\n")[2].rpartition("\r")[2][: limits.TYPED_CHARS]
        return name

    def _check_alive(self, action: Action | None = None) -> None:
        if (ended := self._session.exit) is None:
            return
        if (so := _NOW_IN_VAIN.get(type(action))) is not None:
            raise ProgramEnded(ended, so)
        raise ProgramEnded(ended)
