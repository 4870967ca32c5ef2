"""`session.record`, `session.attach` and what goes with them: a session followed byte by byte, into
a file or over a connection.

Part of the `service`, which owns it. A recording goes on whoever leaves, until the session is
closed; an attachment ends with its connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telex.protocols import pty_automation as spec
from telex.rpc.errors import Condition, RpcError
from telex.terminal import telling
from telex.terminal.attachments import Attachment
from telex.terminal.connection import Connection
from telex.terminal.problems import answered
from telex.terminal.recorder import SessionRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.redaction import Redactor
    from telex.terminal.registry import SessionHost


class Following:
    """The recordings of one server, and the making of attachments."""

    def __init__(self, sessions: SessionHost, redactor: Redactor) -> None:
        self.redactor = redactor
        self._sessions = sessions
        self._recorders: dict[str, SessionRecorder] = {}
        self._attachments = 0

    def forget(self, session: str) -> None:
        """A session was closed."""
        if (recorder := self._recorders.pop(session, None)) is not None:
            recorder.stop()

    def close(self) -> None:
        """Stop every recording."""
        for recorder in self._recorders.values():
            recorder.stop()

    @answered
    def record(self, asked: spec.Record, who: Connection) -> spec.Recorded:
        """Record what happens from now on; without a path, stop."""
        session = self._sessions.find(asked.session)
        new = None
        if asked.path is not None:  # which may be refused; then the old one goes on
            redactor = self.redactor if asked.redact else None
            new = SessionRecorder(session, asked.path, asked, redactor)
        if (before := self._recorders.pop(asked.session, None)) is not None:
            before.stop()
        if new is None:
            if before is not None and before.failure is not None:
                raise before.failure  # it is stopped; who stops it expects a whole file
            return spec.Recorded(False, before.path if before else None)
        self._recorders[asked.session] = new
        return spec.Recorded(True, new.path)

    @answered
    def attach(self, asked: spec.Attach, who: Connection) -> spec.Attached:
        """Follow a session's bytes: its screen first, then all that comes."""
        session = self._sessions.find(asked.session)
        if who.peer is None:
            raise RpcError(Condition.PARAMS, "a caller in this process reads the session itself")
        self._attachments += 1
        redactor = self.redactor if asked.redact else None
        attachment = Attachment(self._attachments, session, asked, redactor, who.attachments)
        who.attachments[attachment.id] = attachment
        binary = asked.binary and who.peer.carries_binary
        attachment.begin(who.peer, binary)
        size = telling.terminal_size(session.size)
        return spec.Attached(attachment.id, size, session.sequence, binary)

    @answered
    def credit(self, asked: spec.Credit, who: Connection) -> spec.Granted:
        """Let an attachment send so many bytes more."""
        return spec.Granted(_attachment(who, asked.attachment).grant(asked.bytes))

    @answered
    def detach(self, asked: spec.Detach, who: Connection) -> spec.Detached:
        """End an attachment."""
        _attachment(who, asked.attachment).end()
        del who.attachments[asked.attachment]
        return spec.Detached(True)

    def handlers(self) -> dict[str, Callable[..., Any]]:
        """By method name."""
        return {
            "session.record": self.record,
            "session.attach": self.attach,
            "session.credit": self.credit,
            "session.detach": self.detach,
        }


def _attachment(who: Connection, id: str) -> Attachment:
    if (attachment := who.attachments.get(id)) is None:
        raise RpcError(Condition.PARAMS, f"unknown attachment: {id}; session.attach answers one")
    return attachment
