"""A session of a running server in the person's terminal: its screen, then whatever comes.

The bytes come as a `session.attach` sends them, at the pace this terminal takes them; what is typed
goes back as input, in order. The person's terminal is theirs again on every way out, and shows no
trace of modes that the program had set.
"""

from __future__ import annotations

import asyncio
import base64
import signal
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Final

from telex.host.inlet import Inlet
from telex.host.outlet import Outlet
from telex.host.own_terminal import OwnTerminal, terminal_size
from telex.protocols import pty_automation as spec
from telex.rpc.errors import CallError, RpcError
from telex.rpc.methods import Methods
from telex.terminal.dialling import dial

if TYPE_CHECKING:
    from telex.rpc.peer import Peer

CLEAR: Final = b"\x1bc"
PLAIN: Final = (
    b"\x1b[?1049l\x1b[!p\x1b[?25h\x1b[?1l\x1b>\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l"
    b"\x1b[?1006l\x1b[?1004l\x1b[<u\x1b[m\r\n"
)
"""Modes a program may have set, taken back: the alternate screen, keys, paste, mouse, focus."""
FOR_A_DAY: Final = 86_400_000
CREDIT: Final = 256 * 1024


class NoSuchKey(ValueError):
    """A detach key that is no control character."""


class CannotAttach(Exception):
    """The server said no."""


def control_byte(name: str) -> bytes:
    """`ctrl_]` as the byte it types."""
    letter = name.lower().replace("-", "_").removeprefix("ctrl_")
    code = ord(letter.upper()) - 64 if len(letter) == 1 else 0
    if not 0 < code < 32:
        raise NoSuchKey(f"{name!r} is no control character; use ctrl_ and one of a–z [ \\ ] ^ _")
    return bytes([code])


def attach(address: str, session: str, leave: bytes, *, read_only: bool = False) -> int | None:
    """Until the program ends, the detach key, or a signal. The program's exit code, else 0; None
    if the person left it running."""
    with OwnTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_attached(own, address, session, leave, read_only))


async def _attached(
    own: OwnTerminal, address: str, session: str, leave: bytes, read_only: bool
) -> int | None:
    view = View(own, session, leave, read_only)
    async with await dial(address, methods=view.methods()) as peer:
        return await view.show(peer)


class View:
    """One session in one person's terminal."""

    def __init__(self, own: OwnTerminal, session: str, leave: bytes, read_only: bool) -> None:
        self._own = own
        self._session = session
        self._leave = leave
        self._read_only = read_only
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._typed: asyncio.Queue[spec.Action] = asyncio.Queue()
        self._over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._drawn = asyncio.Event()
        self._owed = 0

    def methods(self) -> Methods:
        methods = Methods()
        methods.add("session.bytes", self._bytes)
        return methods

    async def show(self, peer: Peer) -> int | None:
        """Join the two until it is over."""
        self._outlet = Outlet(
            self._own.writing,
            full=self._flowing.clear,
            empty=self._flowing.set,
            broken=lambda _: self._end(0),
        )
        inlet = Inlet(self._own.reading, self._keys, lambda: self._end(0))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, self._end, 128 + number)
        try:
            await self._begin(peer)
            self._own.take()
            inlet.resume()
            work = (self._send(peer), self._grant(peer), self._watch(peer))
            tasks = [asyncio.create_task(one) for one in work]
            loop.add_signal_handler(signal.SIGWINCH, self._resized)
            self._resized()
            return await self._settled(tasks)
        finally:
            inlet.close()
            self._outlet.write(PLAIN)
            await self._outlet.flushed()
            self._outlet.close()
            self._own.give_back()

    async def _begin(self, peer: Peer) -> None:
        asked = spec.Attach(session=self._session, credit=CREDIT, redact=False)
        try:
            self._attachment: spec.Attached = await peer.call(
                "session.attach", asked, returns=spec.Attached
            )
        except RpcError as refused:
            raise CannotAttach(refused.problem.message) from refused

    async def _settled(self, tasks: list[asyncio.Task[None]]) -> int | None:
        try:
            return await self._over
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _bytes(self, got: spec.SessionBytes) -> None:
        """Draw. What was drawn is owed as credit, once the terminal has taken it."""
        data = base64.b64decode(got.data64)
        self._outlet.write(CLEAR + data if got.reset else data)
        self._owed += len(data)
        self._drawn.set()

    async def _grant(self, peer: Peer) -> None:
        """As much more may come as this terminal has taken."""
        while True:
            await self._drawn.wait()
            self._drawn.clear()
            await self._flowing.wait()
            owed, self._owed = self._owed, 0
            if owed:
                asked = spec.Credit(self._attachment.attachment, owed)
                await peer.call("session.credit", asked, timeout=None)

    async def _send(self, peer: Peer) -> None:
        """What is typed, in order. A program that ended meanwhile reads nothing."""
        while True:
            action = await self._typed.get()
            try:
                await peer.call("session.input", spec.Input(self._session, action), timeout=None)
            except RpcError as refused:
                if refused.problem.code != spec.SESSION_CLOSED:
                    self._end_with(CannotAttach(refused.problem.message))

    async def _watch(self, peer: Peer) -> None:
        """Until the program ends; then its last screen is drawn, and its exit code is ours."""
        asked = spec.Wait(
            session=self._session,
            matcher=spec.ProcessExited(),
            timeout_ms=FOR_A_DAY,
            cells="none",
        )
        try:
            ended: spec.Matched = await peer.call(
                "session.wait", asked, returns=spec.Matched, timeout=None
            )
            await self._last_look(peer)
        except RpcError as refused:
            self._end_with(CannotAttach(refused.problem.message))
            return
        except CallError as gone:
            self._end_with(CannotAttach(f"the server is gone: {gone}"))
            return
        code, by = ended.evidence["exit_code"], ended.evidence["signal"]
        self._end(128 + by if code is None else code)

    async def _last_look(self, peer: Peer) -> None:
        """A new attachment begins with the whole screen, whatever of the old one is on its way."""
        await peer.call("session.detach", spec.Detach(self._attachment.attachment))
        self._drawn.clear()
        await self._begin(peer)
        await self._drawn.wait()

    def _keys(self, data: bytes) -> None:
        before, left, _ = data.partition(self._leave)
        if before and not self._read_only:
            self._typed.put_nowait(spec.Text(self._decoder.decode(before)))
        if left:
            self._end(None)

    def _resized(self) -> None:
        if not self._read_only:
            size = terminal_size()
            asked = spec.TerminalSize(size.rows, size.cols, size.pixel_width, size.pixel_height)
            self._typed.put_nowait(spec.Resize(asked))

    def _end_with(self, problem: CannotAttach) -> None:
        if not self._over.done():
            self._over.set_exception(problem)

    def _end(self, code: int | None) -> None:
        if not self._over.done():
            self._over.set_result(code)
