"""One connection to the service: its subscription, its attachments, its leases. All end with it.

Sessions do not: they belong to the server.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import TYPE_CHECKING

from telex.terminal.notices import Notices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager

    from telex.redaction import Redactor
    from telex.rpc.peer import Peer
    from telex.terminal.attachments import Attachment

_numbers = itertools.count(1)


class Connection:
    """What a service knows of one of its callers. A caller in this process has no peer."""

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

    def acting(self, session: str) -> AbstractContextManager[None]:
        """While a request that acts on a session is served: what it causes is told after its
        answer."""
        return nullcontext() if self.notices is None else self.notices.after_the_answer(session)

    def session_gone(self, id: str) -> None:
        """A session was closed: nothing of it is followed any more."""
        if self.notices is not None:
            self.notices.gone(id)
        for attachment in [one for one in self.attachments.values() if one.session_id == id]:
            attachment.end()
            del self.attachments[attachment.id]

    def close(self) -> None:
        if self.notices is not None:
            self.notices.close()
        for attachment in self.attachments.values():
            attachment.end()
        self.attachments.clear()
