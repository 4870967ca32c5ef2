"""JSON escapes in terminal automation: `session.create {escapes: true}`, `session.escape_reply`.

`EscapeSessions(automation)` adds both to a service, which does not know them. The part of a session
is `session_responder`, imported for the first session with escapes, so that a server starts faster.
"""

from __future__ import annotations

import asyncio
import binascii
from typing import TYPE_CHECKING

from msgspec import UNSET

from telex.automation import protocol as spec
from telex.automation.error_map import maps_errors
from telex.automation.notices import Connection
from telex.rpc.errors import Condition, RpcError
from telex.terminal.input_log import AuthoredInput

if TYPE_CHECKING:
    from telex.automation.server import AutomationService
    from telex.escapes.session_responder import SessionResponder
    from telex.rpc.channel import Channel


class NoEscapes(Exception):
    """The session was created without escapes."""


class EscapeSessions:
    """The sessions of one server that have escapes. Close it after the server."""

    def __init__(self, automation: AutomationService) -> None:
        self._automation = automation
        self.redactor = automation.redactor
        self._answering: dict[str, SessionResponder] = {}
        self._closing: set[asyncio.Task[None]] = set()
        automation.extension_factories += (self._opener,)
        automation.closers.add(self._session_closed)
        automation.notifications = (*automation.notifications, "session.escape")
        automation.add_handlers({"session.escape_reply": self.escape_reply})

    @maps_errors
    def escape_reply(self, asked: spec.EscapeReply, who: Connection) -> spec.EscapeReplied:
        """Reply to a command that the program sent to its terminal."""
        session = self._automation.writable(asked.session, who, "session.escape_reply")
        try:
            self.check(asked.session)
        except NoEscapes as error:
            raise RpcError(Condition.PARAMS, str(error)) from None
        _check(asked)
        accepted = self._answering[asked.session].reply(asked)
        if accepted:
            session.log_input(AuthoredInput(who.identity, "escape_reply", asked.resid))
        return spec.EscapeReplied(accepted)

    def check(self, session: str) -> None:
        """Raise UnknownSession, or NoEscapes if the session was created without escapes."""
        self._automation.find(session)
        if session not in self._answering:
            raise NoEscapes(f"{session} has no escapes; create it with `escapes: true`")

    async def serve(self, session: str, channel: Channel) -> None:
        """Serve JSON escapes of a program that is connected otherwise than through the terminal of
        the session, on which its commands take effect."""
        await self._answering[session].serve(channel)

    async def close(self) -> None:
        for id in [*self._answering]:
            self._session_closed(id)
        if self._closing:
            await asyncio.wait(self._closing)

    def _opener(self, asked: spec.Create) -> SessionResponder | None:
        if not asked.escapes:
            return None
        from telex.escapes.session_responder import SessionResponder  # imports all commands

        return SessionResponder(self._automation, self._answering, htty=asked.pages)

    def _session_closed(self, id: str) -> None:
        if (answering := self._answering.pop(id, None)) is not None:
            task = asyncio.create_task(answering.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _check(asked: spec.EscapeReply) -> None:
    """Refuse a reply that could not be encoded. The error goes to the client, not the program."""
    given = [name for name in ("data", "data64", "error") if getattr(asked, name) is not UNSET]
    if len(given) > 1 or (asked.cont and "error" in given):
        raise RpcError(
            Condition.PARAMS, "give one of data, data64 and error; nothing follows an error"
        )
    try:
        reply_bytes(asked)
    except binascii.Error as error:
        raise RpcError(Condition.PARAMS, f"data64 is not base64: {error}") from None


def reply_bytes(asked: spec.EscapeReply) -> bytes | None:
    """Decode the reply's data64, if it has one."""
    if isinstance(asked.data64, str):
        return binascii.a2b_base64(asked.data64.encode(), strict_mode=True)
    return None
