"""What a connection is sent unasked: `session.changed`, `session.output`, `session.exited`, and
`session.recording_failed`, which a connection also gets that subscribes after it happened.

Notices are pushed when something happens, also on an idle connection; what happens in quick
succession is sent together. A slow reader gets fewer notices, and `dropped` for output that is no
longer kept. For a request the answer comes first, and then what it caused: while a request that
acts is being served, notices wait for its answer. `Connection` is what the service keeps of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter, deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from telex.automation import limits
from telex.automation import protocol as spec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from telex.automation.attach import Attachment
    from telex.redaction import Redactor, StreamRedactor
    from telex.rpc.peer import Peer
    from telex.terminal.session import PtySession


PACE_SECONDS: Final = 0.008
"""Between two rounds of notices. The first after a silence goes out at once."""


class _Followed:
    """One session, as far as this connection was told of it."""

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
        """How many files that failed were told of."""
        self._news: deque[tuple[str, object]] = deque()
        self._wake = stir
        self._left = False
        session.watchers.add(self._stir)

    def leave(self) -> None:
        self._left = True
        self._session.watchers.discard(self._stir)

    def _stir(self) -> None:
        """Something happened. Once is enough until it was told: a reader who never reads costs
        nothing for each of a thousand changes."""
        self._session.watchers.discard(self._stir)
        self._wake(self)

    def add(self, method: str, params: object) -> bool:
        """Something that others have to tell of it. False if too much waits already."""
        if len(self._news) >= limits.NEWS_WAITING:
            return False
        self._news.append((method, params))
        self._stir()
        return True

    def notices(self) -> Iterator[tuple[str, object]]:
        """What there is to tell since the last time: changed, output, others' news, exited."""
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
        if session.exit is not None and not self._over:
            self._over = True
            ended = session.exit
            yield (
                "session.exited",
                spec.SessionExited(self.id, sequence, ended.code, ended.signal),
            )

    def _failed_files(self) -> Iterator[spec.RecordingFailed]:
        session = self._session
        if new := session.failed_files - self._failures:
            self._failures = session.failed_files
            for one in [*session.failures][-new:]:
                yield spec.RecordingFailed(
                    self.id, session.sequence, one.kind, one.path, one.reason, one.errno
                )

    def _output(self) -> Iterator[spec.SessionOutput]:
        """The delta, through a redactor that remembers: a secret cut in two is still one. Piece by
        piece: of what a reader does not take, one piece is held for him, and not all."""
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
        """And whether some before it is missing."""
        delta = self._session.transcript.since(self._cursor, limits.OUTPUT_CHARS_TOLD)
        self._cursor = delta.cursor
        if not delta.dropped:
            return self._stream.feed(delta.text), False
        before = self._stream.finish()
        self._stream = self._stream_from(delta.cursor - len(delta.text))
        return before + self._stream.feed(delta.text), True

    def _stream_from(self, cursor: int) -> StreamRedactor:
        """A secret may have begun before."""
        stream = self._redactor.stream()
        stream.follow(self._session.transcript.before(cursor))
        return stream


class Notices:
    """One connection's subscription."""

    def __init__(
        self, peer: Peer, redactor: Redactor, adapters: Callable[[str], Collection[str]]
    ) -> None:
        self._peer = peer
        self._redactor = redactor
        self._adapters = adapters
        """The adapters of a session, by its id."""
        self.chosen = spec.Notifications(enabled=False)
        self._followed: dict[str, _Followed] = {}
        self._stirred: dict[str, _Followed] = {}
        self._awake = asyncio.Event()
        self._acted_on: Counter[str] = Counter()
        self._sending: asyncio.Task[None] | None = None

    def subscribe(self, chosen: spec.Notifications, sessions: dict[str, PtySession]) -> None:
        """Turn them on or off. What was on stays where it was; what is new begins now."""
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
        """Follow no longer what is not subscribed to any more."""
        for id in [id for id in self._followed if not self._wanted(id)]:
            self._followed.pop(id).leave()
            self._stirred.pop(id, None)

    def session_appeared(self, id: str, session: PtySession) -> None:
        """A session is there: it may be one that was subscribed to."""
        if self.chosen.enabled and id not in self._followed and self._wanted(id):
            followed = self._followed[id] = _Followed(id, session, self._redactor, self._stir)
            if session.failures:
                self._stir(followed)

    def follows(self, id: str) -> bool:
        """Whether this connection is told of that session."""
        return id in self._followed

    def add(self, id: str, method: str, params: object) -> bool:
        """Tell this too, of a session that is followed. False if too much waits to be told."""
        return self._followed[id].add(method, params)

    def session_closed(self, id: str) -> None:
        """A session was closed. What it still had to say is said, then it is forgotten."""
        if (followed := self._followed.pop(id, None)) is not None:
            followed.leave()
            self._stirred[id] = followed
            self._awake.set()

    @contextlib.contextmanager
    def deferred(self, session: str) -> Iterator[None]:
        """While a request that acts on a session is served, nothing is told of that session. The
        answer goes out in the turn that ends this."""
        self._acted_on[session] += 1
        try:
            yield
        finally:
            self._acted_on[session] -= 1
            self._awake.set()

    def close(self) -> None:
        """Tell nothing any more."""
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
            await asyncio.sleep(PACE_SECONDS)  # the pace is the point: see above


def _number(id: str) -> int:
    return int(id[1:])


_numbers = itertools.count(1)


class Connection:
    """One connection to the service: its subscription and its attachments, which end with it.
    Sessions do not: they belong to the server. A caller in this process has no peer."""

    def __init__(
        self,
        peer: Peer | None,
        redactor: Redactor,
        adapters: Callable[[str], Collection[str]] = lambda session: (),
    ) -> None:
        self.peer = peer
        self.name = f"connection {next(_numbers)}"
        self.notices = None if peer is None else Notices(peer, redactor, adapters)
        self.attachments: dict[str, Attachment] = {}

    def deferring_notices(self, session: str) -> AbstractContextManager[None]:
        """While a request that acts on a session is served: what it causes is told after its
        answer."""
        return nullcontext() if self.notices is None else self.notices.deferred(session)

    def session_closed(self, id: str) -> None:
        """A session was closed: nothing of it is followed any more."""
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
