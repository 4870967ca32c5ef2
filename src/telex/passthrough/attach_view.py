"""`telex attach`: a session of a running server in the person's terminal.

Its screen is drawn first, then the bytes as `session.attach` sends them, at the pace that this
terminal takes them; input goes back in order. The person's terminal is restored on every way out,
without the modes that the program had set.
"""

from __future__ import annotations

import asyncio
import base64
import re
import signal
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Final

from telex.automation import protocol as spec
from telex.automation.dialer import dial
from telex.passthrough.person_terminal import PersonTerminal, terminal_size
from telex.passthrough.terminal_io import InputReader, OutputWriter
from telex.rpc.errors import CallError, Condition, RpcError
from telex.rpc.methods import Methods
from telex.terminal import actions
from telex.terminal.waits import matchers

if TYPE_CHECKING:
    from telex.rpc.peer import Peer

_MOUSE: Final = (9, 1000, 1002, 1003, 1005, 1006, 1015, 1016)
_OFF: Final = (1, 5, 6, 69, *_MOUSE, 1004, 2004, 2026, 2031, 2048)
"""Private modes that a program may have set and no shell expects: keys, reverse video, origin and
margins, mouse, focus, paste, held updates, reports."""
PLAIN: Final = (
    b"\x1b[<99u\x1b[?1049l\x1b[<99u\x1b[!p\x1b[4l\x1b[20l\x1b[r\x1b>\x1b[>4m\x1b(B\x0f\x1b[m"
    + b"".join(b"\x1b[?%dl" % mode for mode in _OFF)
    + b"\x1b[?7h\x1b[?25h\x1b[0 q"
)
"""A terminal as it was, whatever a program made of it, and wherever its bytes were cut. Not RIS,
which in many terminals clears the scrollback, the person's own. The cursor stands anywhere after
this, so that whoever writes it moves it."""
BLANK: Final = PLAIN + b"\x1b[H\x1b[2J"
LAST_ROW: Final = b"\x1b[999;1H\r\n"

FOR_A_DAY: Final = 86_400_000
CREDIT: Final = 256 * 1024
HURRY_SECONDS: Final = 1.0
"""How long a person who leaves, or a signal, waits for a terminal or a server that does not."""
LARGEST: Final = 1000
"""Rows and columns that a session can have."""


class NoSuchKey(ValueError):
    """A detach key that is no control character."""


class CannotAttach(Exception):
    """The server said no."""


def control_key(name: str) -> re.Pattern[bytes]:
    """`ctrl_]` as the bytes it types: the control character, or what a keyboard says that the
    program told to be precise (kitty's protocol, xterm's modifyOtherKeys)."""
    letter = name.lower().replace("-", "_").removeprefix("ctrl_")
    code = ord(letter.upper()) - 64 if len(letter) == 1 else 0
    if not 0 < code < 32:
        raise NoSuchKey(f"{name!r} is no control character; use ctrl_ and one of a–z [ \\ ] ^ _")
    key = ord(letter)
    # Ctrl is 5; caps lock and num lock add 64 and 128. Pressed or repeated, not released.
    precise = rb"\x1b\[%d(?::\d*)*;(?:5|69|133|197)(?::[12])?(?:;[\d:]*)?u" % key
    return re.compile(rb"%s|%s|\x1b\[27;5;%d~" % (re.escape(bytes([code])), precise, key))


def attach(
    address: str, session: str, leave: re.Pattern[bytes], *, read_only: bool = False
) -> int | None:
    """Until the program ends, the detach key, or a signal. The program's exit code, else 0; None
    if the person left it running."""
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_attached(own, address, session, leave, read_only))


async def _attached(
    own: PersonTerminal, address: str, session: str, leave: re.Pattern[bytes], read_only: bool
) -> int | None:
    view = AttachView(own, session, leave, read_only)
    async with await dial(address, methods=view.methods()) as peer:
        return await view.show(peer)


class AttachView:
    """One session in one person's terminal."""

    def __init__(
        self, own: PersonTerminal, session: str, leave: re.Pattern[bytes], read_only: bool
    ) -> None:
        self._own = own
        self._session = session
        self._leave = leave
        self._read_only = read_only
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._typed: asyncio.Queue[actions.Action | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int | None] = self._loop.create_future()
        self._hurry = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._drawn = asyncio.Event()
        self._whole = asyncio.Event()
        self._past = ""
        """An attachment whose bytes are of no interest any more."""
        self._dirty = False
        """Whether anything was drawn on the person's terminal."""
        self._owed = 0
        self._outlet = OutputWriter(
            own.writing,
            full=self._flowing.clear,
            empty=self._flowing.set,
            broken=lambda _: self._end(0),
        )
        self._inlet = InputReader(own.reading, self._keys, lambda: self._end(0))

    def methods(self) -> Methods:
        methods = Methods()
        methods.add("session.bytes", self._bytes)
        return methods

    async def show(self, peer: Peer) -> int | None:
        """Join the two until it is over."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._loop.add_signal_handler(number, self._told_to_end, 128 + number)
        self._own.take()  # before anything is drawn: a terminal that is not raw adds to newlines
        living = self._loop.create_task(self._live(peer))
        try:
            return await self._over
        finally:
            self._inlet.close()
            living.cancel()
            await asyncio.wait({living})
            await self._leave_it_plain()

    async def _live(self, peer: Peer) -> None:
        begun = False
        try:
            await self._begin(peer)
            begun = True
            self._inlet.resume()
            self._follow_size()
            await asyncio.gather(self._send(peer), self._grant(peer), self._watch(peer))
        except RpcError as refused:
            # A session that was there and is unknown now was closed between two questions.
            gone = begun and refused.problem.code == spec.CODES[Condition.PARAMS]
            said = "the session was closed" if gone else refused.problem.message
            self._end_with(CannotAttach(said))
        except CallError as gone:
            self._end_with(CannotAttach(f"the server is gone: {gone}"))

    async def _begin(self, peer: Peer) -> None:
        asked = spec.Attach(session=self._session, credit=CREDIT, redact=False)
        self._attachment: spec.Attached = await peer.call(
            "session.attach", asked, returns=spec.Attached
        )

    async def _leave_it_plain(self) -> None:
        """All was drawn, unless there is hurry; and then the terminal is the person's."""
        if self._dirty:
            self._outlet.write(PLAIN + LAST_ROW)
        flushed = self._loop.create_task(self._outlet.flushed())
        hurried = self._loop.create_task(self._hurry.wait())
        await asyncio.wait({flushed, hurried}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({flushed}, timeout=HURRY_SECONDS)
        flushed.cancel()
        hurried.cancel()
        self._outlet.close()
        self._own.give_back()

    # From the program.

    def _bytes(self, got: spec.SessionBytes) -> None:
        """Draw. What was drawn is owed as credit, once the terminal has taken it."""
        if got.attachment == self._past:
            return
        data = base64.b64decode(got.data64)
        self._own.undone_by(PLAIN + LAST_ROW)
        if got.reset:
            self._outlet.write(BLANK if self._dirty else self._first())
        self._outlet.write(data)
        self._dirty = True
        self._owed += len(data)
        self._drawn.set()
        if not got.more:
            self._whole.set()

    def _first(self) -> bytes:
        """What the person had before scrolls away and is not lost."""
        return b"\r\n" * terminal_size().rows + BLANK if self._own.shown else b""

    async def _grant(self, peer: Peer) -> None:
        """As much more may come as this terminal has taken."""
        while True:
            await self._drawn.wait()
            self._drawn.clear()
            await self._flowing.wait()
            owed, self._owed = self._owed, 0
            if owed:
                asked = spec.Credit(self._attachment.attachment, owed)
                # Told, not asked: the session may be over by now, and says so itself.
                await peer.notify("session.credit", asked)

    async def _watch(self, peer: Peer) -> None:
        """Until the program ends; then its last screen is drawn, and its exit code is ours."""
        ended = await self._ended(peer)
        await self._last_look(peer)
        code, by = ended.evidence["exit_code"], ended.evidence["signal"]
        self._end(128 + (by or 0) if code is None else code)

    async def _ended(self, peer: Peer) -> spec.Matched:
        """A wait lasts a day at most, an attachment does not."""
        asked = spec.Wait(
            session=self._session,
            matcher=matchers.ProcessExited(),
            timeout_ms=FOR_A_DAY,
            cells="none",
        )
        while True:
            try:
                ended: spec.Matched = await peer.call(
                    "session.wait", asked, returns=spec.Matched, timeout=None
                )
            except RpcError as refused:
                if refused.problem.code != spec.TIMED_OUT:
                    raise
            else:
                return ended

    async def _last_look(self, peer: Peer) -> None:
        """A new attachment begins with the whole screen, however far the old one has come.

        The old one stays, so that credit on its way to it is no mistake.
        """
        self._past = self._attachment.attachment
        self._whole.clear()
        await self._begin(peer)
        await self._whole.wait()

    # From the person.

    async def _send(self, peer: Peer) -> None:
        """What is typed, in order; then, if the person leaves, the end."""
        while (action := await self._typed.get()) is not None:
            try:
                await peer.call("session.input", spec.Input(self._session, action), timeout=None)
            except RpcError as refused:
                # A program that has ended reads nothing. Else it is what a terminal rings for:
                # nobody reads, or somebody else has the keyboard.
                if refused.problem.code != spec.SESSION_CLOSED and isinstance(action, actions.Text):
                    self._outlet.write(b"\a")
        self._end(None)

    def _keys(self, data: bytes) -> None:
        left = self._leave.search(data)
        before = data[: left.start()] if left else data
        if before and not self._read_only:
            self._typed.put_nowait(actions.Text(self._decoder.decode(before)))
        if left:
            self._inlet.close()
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

    def _told_to_end(self, code: int) -> None:
        self._hurry.set()
        self._end(code)

    def _end_with(self, problem: CannotAttach) -> None:
        if not self._over.done():
            self._over.set_exception(problem)

    def _end(self, code: int | None) -> None:
        if not self._over.done():
            self._over.set_result(code)
