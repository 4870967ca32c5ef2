"""The notifications of one connection: `session.changed`, `session.output`, `session.exited`, and
`session.recording_failed`, which is also sent to a connection that subscribes after the failure.

Notifications are pushed when something happens, also on an idle connection; changes in quick
succession are combined. A slow reader gets fewer notifications, and `dropped` for output that is no
longer kept. The response to a request is sent before the notifications that the request causes:
they are held back while the request is served. `Connection` is the server's state for each
connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from telex.automation import limits
from telex.automation import protocol as spec
from telex.rpc.identity import IN_PROCESS, Identity
from telex.terminal.redact import mask, masked_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from telex.automation.attach import SessionAttachment
    from telex.redaction import Redactor, StreamRedactor
    from telex.rpc.peer import Peer
    from telex.terminal.actions import Action
    from telex.terminal.input_state import InputState
    from telex.terminal.session import PtySession


DeliverBytes = Callable[[str, bytes, bool, bool], Awaitable[None]]
"""Takes an attachment's id and a piece of its bytes, `reset` and `more`."""
CheckInput = Callable[["PtySession", "Action"], None]
"""Looks at a session directly before an input is written, and raises if it must not be."""

PACE_SECONDS: Final = 0.008
"""Between two rounds of notifications. The first after a pause is sent at once."""


class _Followed:
    """How much of one session was sent to this connection."""

    def __init__(
        self, id: str, session: PtySession, redactor: Redactor, stir: Callable[[_Followed], None]
    ) -> None:
        self.id = id
        self._session = session
        self._redactor = redactor
        self._sequence = session.sequence
        self._cursor = session.transcript.cursor
        self._stream = self._stream_from(self._cursor)
        self._over = session.exit is not None
        self._failures = 0
        """How many failed files were reported."""
        self._news: deque[tuple[str, object]] = deque()
        self._wake = stir
        self._left = False
        self._input_state: InputState | None = None
        session.watchers.add(self._stir)
        session.input_watch.listen(self._stir)

    def leave(self) -> None:
        self._left = True
        self._session.watchers.discard(self._stir)
        self._session.input_watch.unlisten(self._stir)

    def _stir(self) -> None:
        """Note a change, once until the next round: a client that never reads then costs nothing
        for each of a thousand changes."""
        self._session.watchers.discard(self._stir)
        self._wake(self)

    def add(self, method: str, params: object) -> bool:
        """Queue a notification of another package. False if the queue is full."""
        if len(self._news) >= limits.NEWS_WAITING:
            return False
        self._news.append((method, params))
        self._stir()
        return True

    def notices(self) -> Iterator[tuple[str, object]]:
        """Yield the notifications since the last round: changed, output, queued ones, exited."""
        session = self._session
        if not self._left:
            session.watchers.add(self._stir)
        sequence = session.sequence
        if sequence != self._sequence:
            self._sequence = sequence
            session.mark_sequence()
            yield "session.changed", spec.SessionChanged(self.id, sequence)
        for output in self._output():
            yield "session.output", output
        while self._news:
            yield self._news.popleft()
        for failed in self._failed_files():
            yield "session.recording_failed", failed
        state = session.input_watch.last
        if state is not None and state != self._input_state and session.exit is None:
            self._input_state = state
            told = self._masked(state)
            yield "session.input_state", spec.SessionInputState(self.id, sequence, told)
        if session.exit is not None and not self._over:
            self._over = True
            ended = session.exit
            yield (
                "session.exited",
                spec.SessionExited(self.id, sequence, ended.code, ended.signal),
            )

    def _masked(self, state: InputState) -> InputState:
        if self._session.closed or not (state.prompt or state.choices):
            return state
        seen = mask(self._session.snapshot(), self._redactor, self._session.rows_above())
        return masked_state(state, seen, self._redactor)

    def _failed_files(self) -> Iterator[spec.RecordingFailed]:
        session = self._session
        if new := session.failed_files - self._failures:
            self._failures = session.failed_files
            for one in [*session.failures][-new:]:
                yield spec.RecordingFailed(
                    self.id, session.sequence, one.kind, one.path, one.reason, one.errno
                )

    def _output(self) -> Iterator[spec.SessionOutput]:
        """Yield the new output through one redactor stream, so that a secret cut in two is found.
        The output is read piece by piece: for a slow reader one piece is in memory, not all."""
        until = self._session.transcript.cursor
        while True:
            text, dropped = self._next_text()
            whole = self._cursor >= until
            if whole and self._session.exit is not None and not self._over:
                text += self._stream.finish()
                self._stream = self._redactor.stream()
            size = limits.OUTPUT_CHARS_TOLD
            for at in range(0, max(len(text), dropped), size):
                piece = text[at : at + size]
                yield spec.SessionOutput(self.id, self._session.sequence, piece, dropped and not at)
            if whole:
                return

    def _next_text(self) -> tuple[str, bool]:
        """Return the next text, and whether output before it was dropped."""
        delta = self._session.transcript.since(self._cursor, limits.OUTPUT_CHARS_TOLD)
        self._cursor = delta.cursor
        if not delta.dropped:
            return self._stream.feed(delta.text), False
        before = self._stream.finish()
        self._stream = self._stream_from(delta.cursor - len(delta.text))
        return before + self._stream.feed(delta.text), True

    def _stream_from(self, cursor: int) -> StreamRedactor:
        """Return a redactor stream that knows the text before: a secret may begin there."""
        stream = self._redactor.stream()
        stream.follow(self._session.transcript.before(cursor))
        return stream


class Notices:
    """The subscription of one connection, and the task that sends its notifications."""

    def __init__(
        self, peer: Peer, redactor: Redactor, adapters: Callable[[str], Collection[str]]
    ) -> None:
        self._peer = peer
        self._redactor = redactor
        self._adapters = adapters
        """Returns the adapters of a session."""
        self.chosen = spec.Notifications(enabled=False)
        self._followed: dict[str, _Followed] = {}
        self._stirred: dict[str, _Followed] = {}
        self._awake = asyncio.Event()
        self._acted_on: Counter[str] = Counter()
        self._sending: asyncio.Task[None] | None = None

    def subscribe(self, chosen: spec.Notifications, sessions: dict[str, PtySession]) -> None:
        """Change the subscription. Followed sessions keep their position; new ones start now."""
        self.chosen = chosen
        if not chosen.enabled:
            self.close()
            return
        self.apply_filter()
        for id, session in sessions.items():
            self.session_appeared(id, session)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    def apply_filter(self) -> None:
        """Stop following sessions that the filter excludes."""
        for id in [id for id in self._followed if not self._wanted(id)]:
            self._followed.pop(id).leave()
            self._stirred.pop(id, None)

    def session_appeared(self, id: str, session: PtySession) -> None:
        """Follow a new session if the filter includes it."""
        if self.chosen.enabled and id not in self._followed and self._wanted(id):
            followed = self._followed[id] = _Followed(id, session, self._redactor, self._stir)
            if session.failures:
                self._stir(followed)

    def follows(self, id: str) -> bool:
        """Whether this connection gets notifications of that session."""
        return id in self._followed

    def add(self, id: str, method: str, params: object) -> bool:
        """Queue a notification about a followed session. False if the queue is full."""
        return self._followed[id].add(method, params)

    def session_closed(self, id: str) -> None:
        """Send the last notifications of a closed session, then forget it."""
        if (followed := self._followed.pop(id, None)) is not None:
            followed.leave()
            self._stirred[id] = followed
            self._awake.set()

    @contextlib.contextmanager
    def deferred(self, session: str) -> Iterator[None]:
        """Hold back notifications of a session while a request acts on it. The response is sent in
        the same turn of the loop that ends this block."""
        self._acted_on[session] += 1
        try:
            yield
        finally:
            self._acted_on[session] -= 1
            self._awake.set()

    def close(self) -> None:
        """End the subscription."""
        for followed in self._followed.values():
            followed.leave()
        self._followed.clear()
        self._stirred.clear()
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _wanted(self, id: str) -> bool:
        chosen = self.chosen
        if not chosen.sessions and not chosen.adapters:
            return True
        return id in chosen.sessions or not set(self._adapters(id)).isdisjoint(chosen.adapters)

    def _stir(self, followed: _Followed) -> None:
        self._stirred[followed.id] = followed
        self._awake.set()

    async def _send(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            for id in sorted(self._stirred, key=_number):
                if not self._acted_on[id] and id in self._stirred:
                    for method, params in self._stirred.pop(id).notices():
                        await self._peer.notify(method, params)
            await asyncio.sleep(PACE_SECONDS)  # combines changes in quick succession


def _number(id: str) -> int:
    return int(id[1:])


_numbers = itertools.count(1)


async def _nowhere(attachment: str, data: bytes, reset: bool, more: bool) -> None:
    """Drop the bytes: the caller did not ask for an attachment."""


class Connection:
    """The state of one connection: its subscription and its attachments, which end with it.
    Sessions belong to the server and do not. A caller in this process has no peer."""

    def __init__(
        self,
        peer: Peer | None,
        redactor: Redactor,
        adapters: Callable[[str], Collection[str]] = lambda session: (),
        deliver: DeliverBytes = _nowhere,
        identity: Identity = IN_PROCESS,
        check_input: CheckInput | None = None,
    ) -> None:
        """`deliver` receives the bytes of attachments where there is no peer. `check_input` is
        called directly before an input of `session.input` is written, and raises RpcError."""
        self.peer = peer
        self.identity = identity
        self.check_input = check_input
        self.deliver = deliver
        self.name = f"connection {next(_numbers)}"
        self.notices = None if peer is None else Notices(peer, redactor, adapters)
        self.attachments: dict[str, SessionAttachment] = {}

    def deferring_notices(self, session: str) -> AbstractContextManager[None]:
        """Hold back notifications of a session until the response to a request is sent."""
        return nullcontext() if self.notices is None else self.notices.deferred(session)

    def session_closed(self, id: str) -> None:
        """End the notifications and attachments of a closed session."""
        if self.notices is not None:
            self.notices.session_closed(id)
        for attachment in [one for one in self.attachments.values() if one.session_id == id]:
            attachment.end()
            del self.attachments[attachment.id]

    def close(self) -> None:
        if self.notices is not None:
            self.notices.close()
        for attachment in self.attachments.values():
            attachment.end()
        self.attachments.clear()
