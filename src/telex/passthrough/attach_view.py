"""`telex attach`: shows a session of a running server in the person's terminal.

The view draws the chunks of `AsyncTerminal.attach`: the screen first, then the output, as fast as
the person's terminal takes it. Input is sent in order. The person's terminal is restored on every
way out, without the modes that the program had set.
"""

from __future__ import annotations

import asyncio
import re
import signal
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Final

from telex.automation.client import connect
from telex.automation.errors import Refused, ServerGone, SessionClosed, SessionProblem
from telex.passthrough.person_terminal import PersonTerminal, terminal_size
from telex.passthrough.terminal_io import InputReader, OutputWriter
from telex.terminal import actions

if TYPE_CHECKING:
    from telex.automation.attachments import AsyncAttachment
    from telex.automation.client import AsyncTerminal

_MOUSE: Final = (9, 1000, 1002, 1003, 1005, 1006, 1015, 1016)
_OFF: Final = (1, 5, 6, 69, *_MOUSE, 1004, 2004, 2026, 2031, 2048)
"""Private modes that a program may have set and no shell expects: keys, reverse video, origin and
margins, mouse, focus, paste, synchronized updates, reports."""
PLAIN: Final = (
    b"\x1b[<99u\x1b[?1049l\x1b[<99u\x1b[!p\x1b[4l\x1b[20l\x1b[r\x1b>\x1b[>4m\x1b(B\x0f\x1b[m"
    + b"".join(b"\x1b[?%dl" % mode for mode in _OFF)
    + b"\x1b[?7h\x1b[?25h\x1b[0 q"
)
"""Resets a terminal, whatever modes a program has set, and wherever its bytes were cut. Not RIS,
which in many terminals clears the person's scrollback. The cursor may be anywhere afterwards, so
the caller must move it."""
BLANK: Final = PLAIN + b"\x1b[H\x1b[2J"
LAST_ROW: Final = b"\x1b[999;1H\r\n"

HURRY_SECONDS: Final = 1.0
"""How long a detach or a signal waits for a terminal or a server that does not respond."""
LARGEST: Final = 1000
"""The most rows and columns of a session."""


class NoSuchKey(ValueError):
    """The detach key is not a control character."""


class CannotAttach(Exception):
    """The server refused the attachment, or the connection was lost."""


def control_key(name: str) -> re.Pattern[bytes]:
    """Return a pattern for the bytes of a key such as `ctrl_]`: the control character, or its
    report by kitty's keyboard protocol or xterm's modifyOtherKeys, if the program enabled one.
    """
    letter = name.lower().replace("-", "_").removeprefix("ctrl_")
    code = ord(letter.upper()) - 64 if len(letter) == 1 else 0
    if not 0 < code < 32:
        raise NoSuchKey(f"{name!r} is not a control character; use ctrl_ and one of a–z [ \\ ] ^ _")
    key = ord(letter)
    # Ctrl is 5; caps lock and num lock add 64 and 128. Pressed or repeated, not released.
    precise = rb"\x1b\[%d(?::\d*)*;(?:5|69|133|197)(?::[12])?(?:;[\d:]*)?u" % key
    return re.compile(rb"%s|%s|\x1b\[27;5;%d~" % (re.escape(bytes([code])), precise, key))


def attach(
    address: str, session: str, leave: re.Pattern[bytes], *, read_only: bool = False
) -> int | None:
    """Show a session until the program exits, the detach key, or a signal.

    Returns the program's exit code, or 0; None if the person left the program running.
    """
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_attached(own, address, session, leave, read_only))


async def _attached(
    own: PersonTerminal, address: str, session: str, leave: re.Pattern[bytes], read_only: bool
) -> int | None:
    async with connect(address) as server:
        view = AttachView(own, server.terminal(session), leave, read_only)
        return await view.show()


class AttachView:
    """Shows one session in the person's terminal. Call `show` once."""

    def __init__(
        self,
        own: PersonTerminal,
        terminal: AsyncTerminal,
        leave: re.Pattern[bytes],
        read_only: bool,
    ) -> None:
        self._own = own
        self._terminal = terminal
        self._leave = leave
        self._read_only = read_only
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._typed: asyncio.Queue[actions.Action | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int | None] = self._loop.create_future()
        self._hurry = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._dirty = False
        """Whether anything was drawn on the person's terminal."""
        self._writer = OutputWriter(
            own.writing,
            full=self._flowing.clear,
            empty=self._flowing.set,
            broken=lambda _: self._end(0),
        )
        self._reader = InputReader(own.reading, self._keys, lambda: self._end(0))

    async def show(self) -> int | None:
        """Connect the session and the person's terminal until one of them ends."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._loop.add_signal_handler(number, self._signalled, 128 + number)
        self._own.take()  # first: a terminal that is not raw adds carriage returns to newlines
        living = self._loop.create_task(self._live())
        try:
            return await self._over
        finally:
            self._reader.close()
            living.cancel()
            await asyncio.wait({living})
            await self._restore_terminal()

    async def _live(self) -> None:
        begun = False
        try:
            async with self._terminal.attach(redact=False) as output:
                begun = True
                self._reader.resume()
                self._follow_size()
                await asyncio.gather(self._send(), self._draw(output))
        except Refused as refused:
            # A session that existed and is unknown now was closed between two requests.
            self._end_with(CannotAttach("the session was closed" if begun else str(refused)))
        except SessionProblem as problem:
            self._end_with(CannotAttach(problem.args[0]))

    async def _restore_terminal(self) -> None:
        """Reset the terminal after all output, or after a second if a signal or a detach came."""
        if self._dirty:
            self._writer.write(PLAIN + LAST_ROW)
        flushed = self._loop.create_task(self._writer.flushed())
        hurried = self._loop.create_task(self._hurry.wait())
        await asyncio.wait({flushed, hurried}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({flushed}, timeout=HURRY_SECONDS)
        flushed.cancel()
        hurried.cancel()
        self._writer.close()
        self._own.give_back()

    # Output of the program.

    async def _draw(self, output: AsyncAttachment) -> None:
        """Draw chunks as fast as the person's terminal takes them, until the program has ended."""
        async for chunk in output:
            self._own.undone_by(PLAIN + LAST_ROW)
            if chunk.reset:
                self._writer.write(BLANK if self._dirty else self._first_clear())
            self._writer.write(chunk.data)
            self._dirty = True
            await self._flowing.wait()
        code = output.exit_code
        self._end(128 + (output.exit_signal or 0) if code is None else code)

    def _first_clear(self) -> bytes:
        """Return bytes that scroll the person's screen into the scrollback, and clear it."""
        return b"\r\n" * terminal_size().rows + BLANK if self._own.shown else b""

    # Input of the person.

    async def _send(self) -> None:
        """Send input in order. End when the person detaches."""
        while (action := await self._typed.get()) is not None:
            try:
                await self._terminal.act(action)
            except SessionClosed:
                pass  # the program has exited, and reads nothing
            except ServerGone:
                raise
            except SessionProblem:
                # Ring the bell: the program does not read, or another client holds the lease.
                if isinstance(action, actions.Text):
                    self._writer.write(b"\a")
        self._end(None)

    def _keys(self, data: bytes) -> None:
        left = self._leave.search(data)
        before = data[: left.start()] if left else data
        if before and not self._read_only:
            self._typed.put_nowait(actions.Text(self._decoder.decode(before)))
        if left:
            self._reader.close()
            self._hurry.set()
            self._typed.put_nowait(None)
            self._loop.call_later(HURRY_SECONDS, self._end, None)

    def _follow_size(self) -> None:
        if self._own.shown and not self._read_only:
            self._loop.add_signal_handler(signal.SIGWINCH, self._resized)
            self._resized()

    def _resized(self) -> None:
        size = terminal_size()
        rows, cols = min(size.rows, LARGEST), min(size.cols, LARGEST)
        asked = actions.TerminalSize(rows, cols, size.pixel_width, size.pixel_height)
        self._typed.put_nowait(actions.Resize(asked))

    # The end.

    def _signalled(self, code: int) -> None:
        self._hurry.set()
        self._end(code)

    def _end_with(self, problem: CannotAttach) -> None:
        if not self._over.done():
            self._over.set_exception(problem)

    def _end(self, code: int | None) -> None:
        if not self._over.done():
            self._over.set_result(code)
