"""Following a session's bytes: the screen as it is, and then whatever comes, at the reader's pace.

An attachment sends as many bytes as it has credit for. What comes meanwhile is kept up to a limit;
beyond it the backlog is dropped, and when there is credit again the screen is drawn anew
(`reset`): a reader who was away sees the present and not the past, and nobody else is slowed down.

A binary frame is, after its first byte (`peer.BINARY`): the attachment's number in four bytes, most
significant first, a byte of flags (1: reset, 2: more follows at once), and the data.
"""

from __future__ import annotations

import asyncio
import base64
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from telex.protocols import pty_automation as spec
from telex.terminal.telling import drawn
from telex.terminal.turns import turns
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from telex.redaction import Redactor
    from telex.rpc.peer import Peer
    from telex.terminal.session import PtySession
    from telex.terminal.transcript import Transcript


class Attachment:
    """One reader of one session."""

    def __init__(
        self,
        number: int,
        session: PtySession,
        asked: spec.Attach,
        redactor: Redactor | None,
        others: Sized = (),
    ) -> None:
        """`others` are all attachments of its connection, which share what may be kept."""
        self.id = f"a{number}"
        self.session_id = asked.session
        self._number = number
        self._session = session
        self._redactor = redactor
        self._others = others
        self._credit = asked.credit
        self._backlog = bytearray()
        self._reset = True
        """Whether the screen is to be drawn before anything else."""
        self._awake = asyncio.Event()
        self._clean: Callable[[bytes], bytes] = _raw
        self._sending: asyncio.Task[None] | None = None

    def begin(self, peer: Peer, binary: bool) -> None:
        """Draw the screen, then follow."""
        self._session.taps.add(self._tap)
        self._session.watchers.add(self._look)
        self._awake.set()
        self._sending = asyncio.create_task(self._send(peer, binary))

    def grant(self, credit: int) -> int:
        """More may be sent. Answers how much in all."""
        self._credit = min(self._credit + credit, limits.LINE_BYTES)
        self._awake.set()
        return self._credit

    def end(self) -> None:
        self._session.taps.discard(self._tap)
        self._session.watchers.discard(self._look)
        if self._sending is not None:
            self._sending.cancel()

    def _look(self) -> None:
        """Something changed. At the end, what was held back is decided."""
        if self._session.exit is not None and isinstance(self._clean, _Cleaner):
            self._backlog += self._clean.finish()
            self._clean = _raw
        self._awake.set()

    def _tap(self, data: bytes) -> None:
        if self._reset:
            return  # the screen that will be drawn has it
        self._backlog += self._clean(data)
        if len(self._backlog) > limits.ATTACHED_BYTES // max(1, len(self._others)):
            self._backlog = bytearray()  # and its memory, which `clear` would keep
            self._reset = True

    async def _send(self, peer: Peer, binary: bool) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while self._credit > 0 and (
                self._backlog or (self._reset and not self._session.closed)
            ):
                reset = self._reset
                if reset:
                    await self._draw_in_turn()
                piece = self._next()
                self._credit -= len(piece)
                await self._deliver(peer, binary, reset, piece)

    async def _draw_in_turn(self) -> None:
        """Not at once: a thousand that attach would hold up everybody."""
        done = asyncio.get_running_loop().create_future()

        def draw() -> None:
            if not self._session.closed:
                self._draw()
            if not done.done():
                done.set_result(None)

        line = turns()
        line.queue(draw)
        try:
            await done
        finally:
            line.withdraw(draw)

    def _draw(self) -> None:
        """The reader is to forget what he has, and gets the screen as it is."""
        self._reset = False
        self._backlog[:] = drawn(self._session, self._redactor)
        transcript = self._session.transcript
        if self._redactor is not None:
            self._clean = _Cleaner(self._redactor, transcript)
        self._backlog += self._clean(transcript.unfinished[1])

    def _next(self) -> bytes:
        """The next piece."""
        size = min(self._credit, limits.ATTACHED_PIECE_BYTES)
        piece = bytes(self._backlog[:size])
        del self._backlog[:size]
        return piece

    async def _deliver(self, peer: Peer, binary: bool, reset: bool, piece: bytes) -> None:
        more = self._reset or bool(self._backlog)
        if binary:
            head = self._number.to_bytes(4, "big") + bytes([reset | more << 1])
            await peer.send_binary(head + piece)
        else:
            text = base64.b64encode(piece).decode()
            told = spec.SessionBytes(self.id, self._session.sequence, text, reset, more)
            await peer.notify("session.bytes", told)


def _raw(data: bytes) -> bytes:
    return data


class _Cleaner:
    """Bytes from now on without secrets, however they are cut, and wherever they began."""

    def __init__(self, redactor: Redactor, transcript: Transcript) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._stream = redactor.stream()
        self._stream.follow(transcript.before(transcript.cursor))

    def finish(self) -> bytes:
        return self._stream.finish().encode()

    def __call__(self, data: bytes) -> bytes:
        return self._stream.feed(self._decoder.decode(data)).encode()
