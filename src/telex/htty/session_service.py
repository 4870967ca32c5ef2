"""`session.create {pages: true}`, `session.page` and `session.page_open`: pages of sessions.

`PageSessions(automation)` adds them to a service, which knows nothing of them. What happens in a
session is `session_side`, loaded when the first one asks for it: a server is ready without.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from telex.automation.errors import maps_errors
from telex.automation.notices import Connection
from telex.protocols import htty as spec
from telex.rpc.errors import Condition, RpcError
from telex.transports.listening import CannotListen

if TYPE_CHECKING:
    from telex.automation.protocol import Create
    from telex.automation.server import AutomationService
    from telex.htty.pages import Pages
    from telex.htty.session_side import Serving


class PageSessions:
    """The sessions of one server that may show pages. Close it after the server."""

    def __init__(self, automation: AutomationService, *, port: int = 0) -> None:
        self._automation = automation
        self._port = port
        self.redactor = automation.redactor
        self._serving: dict[str, Serving] = {}
        self._pages: Pages | None = None
        self._closing: set[asyncio.Task[None]] = set()
        automation.extension_factories += (self._opener,)
        automation.closers.add(self._session_closed)
        automation.notifications += spec.NOTIFICATIONS
        automation.add_handlers({"session.page_open": self.page_open})

    @maps_errors
    async def page_open(self, asked: spec.OpenPage, who: Connection) -> spec.PageOpened:
        """Let a page be looked at: an address that opens it in a browser, once."""
        self._automation.writable(asked.session, who, "session.page_open")
        serving = self._serving.get(asked.session)
        if serving is None:
            raise RpcError(
                Condition.PARAMS, "this session has no pages; create it with `pages: true`"
            )
        try:
            return spec.PageOpened(await serving.open(asked.page))
        except LookupError:
            raise RpcError(
                Condition.PARAMS, f"unknown page: {asked.page}; `session.page` tells them"
            ) from None
        except CannotListen as problem:
            raise RpcError(Condition.INTERNAL, str(problem)) from problem

    async def close(self) -> None:
        for id in [*self._serving]:
            self._session_closed(id)
        if self._closing:
            await asyncio.wait(self._closing)
        if self._pages is not None:
            await self._pages.close()

    def _opener(self, asked: Create) -> Serving | None:
        if not asked.pages:
            return None
        from telex.htty.pages import Pages
        from telex.htty.session_side import Serving  # loads HTTP/2, for who needs it

        if self._pages is None:
            self._pages = Pages(port=self._port)
        return Serving(self._automation, self._pages, self._serving)

    def _session_closed(self, id: str) -> None:
        if (serving := self._serving.pop(id, None)) is not None:
            task = asyncio.create_task(serving.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
