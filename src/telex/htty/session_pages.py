"""Pages of sessions: `session.create {pages: true}`, `session.page` and `session.page_open`.

`PagesExtension(automation)` adds them to an automation server, which does not depend on them. Each
session that requests pages gets a `SessionPages`; HTTP/2 is loaded with the first one, so a server
starts without it.

There is no person to ask. So a page is announced (`session.page`), and until a client opens it
(`session.page_open`) no byte is sent to the program. Opening the page of a command also opens it
for the next run of the same command on the same session: a browser that waits for the page then
shows it. A page that no client opened is forgotten when another is announced, so programs cannot
fill a session with pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from telex.automation.error_map import maps_errors
from telex.automation.notices import Connection
from telex.escapes.policy import origin_of
from telex.htty import protocol as spec
from telex.htty.errors import ConnectionOver
from telex.htty.gateway.pages import Pages, RemotePrograms, program_of
from telex.htty.protocol import SessionPage
from telex.rpc.errors import Condition, RpcError
from telex.transports.web_server import CannotListen
from telex.wire import htty_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.protocol import Create
    from telex.automation.server import AutomationService
    from telex.htty.client import Offer
    from telex.htty.gateway.pages import Page, PageProgram
    from telex.terminal.session import PtySession
    from telex.wire.escape import Claim
    from telex.wire.events import Claimed, Fault


@dataclass(slots=True)
class _KnownPage:
    """A page of the session, with its id and its current offer."""

    id: str
    page: Page
    wanted: bool = False
    """Whether a client opened it."""
    offer: Offer | None = None


class SessionPages:
    """The pages of one session: a `SessionExtension`."""

    attributes: Final = ()
    environment: Final[Mapping[str, str]] = {"HTTY": htty_chunk.VERSION.decode()}

    def __init__(
        self, automation: AutomationService, pages: Pages, sessions: dict[str, SessionPages]
    ) -> None:
        self._redact = automation.redactor.redact
        self._listeners = automation.listeners
        self._pages = pages
        self._sessions = sessions
        self._known: dict[str, _KnownPage] = {}
        """The pages by id."""
        self._numbers = count(1)
        self._loop = asyncio.get_running_loop()
        self._remote_programs = RemotePrograms()
        self._remote: dict[Offer, PageProgram] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.claimants: Mapping[Claim, Callable[[Claimed], None]] = {
            htty_chunk.CHUNK: self._claimed,
            htty_chunk.RAW: self._raw_form,
        }
        self._named_raw: tuple[int | None] | None = None
        """The process group that last announced the raw form, if any did."""

    def opened(self, id: str, session: PtySession) -> None:
        from telex.htty.client import HttyClient  # loads HTTP/2

        self._id, self._session = id, session
        self._sessions[id] = self
        self._side = HttyClient(session.pty, self._offered, self._ended)
        session.watchers.add(self._poke)

    def fault(self, fault: Fault) -> None:
        if fault.claim == htty_chunk.CHUNK:
            self._side.receive_chunk(fault)

    def _raw_form(self, announced: Claimed) -> None:
        """Report it once for each process group, because a program may print it repeatedly."""
        group = self._session.pty.foreground()
        if self._named_raw == (group,):
            return
        self._named_raw = (group,)
        name = self._session.program.argv[0]
        command = name if group is None else program_of(group, name).command
        why = f"the program speaks {htty_chunk.RAW_FORM}"
        title = self._redact(command)
        self._notify(SessionPage(self._id, "", "", title, "unsupported", why))

    def _claimed(self, chunk: Claimed) -> None:
        self._side.receive_chunk(chunk)

    def _poke(self) -> None:
        if self._session.exit is None:
            self._side.poke()
        else:
            self._side.hang_up()

    async def open(self, id: str) -> str:
        """Open a page and return its URL. Raises LookupError if there is no such page."""
        known = self._known[id]
        url = await self._pages.url(known.page)
        known.wanted = True
        self._accept(known)
        return url

    async def close(self) -> None:
        await self._side.close()
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._pages.forget_terminal(self._id)

    def _offered(self, offer: Offer) -> None:
        program = program_of(offer.group, self._session.program.argv[0])
        if _is_remote(program.command):
            program = self._remote[offer] = self._remote_programs.arrived(
                program, self._loop.time()
            )
        page = self._pages.page_for(self._id, program)
        known = next((one for one in self._known.values() if one.page is page), None)
        if known is None:
            self._forget_unopened()
            known = _KnownPage(f"p{next(self._numbers)}", page)
            page.new_link = _new_link(self._id, known.id)
            self._known[known.id] = known
        known.offer = offer
        self._notify_state(known, "opened")
        if known.wanted:
            self._accept(known)

    def _forget_unopened(self) -> None:
        for known in [*self._known.values()]:
            if not known.wanted:
                self._pages.drop(known.page)
            if known.page not in self._pages:  # dropped now, or to make room
                del self._known[known.id]

    def _accept(self, known: _KnownPage) -> None:
        if (offer := known.offer) is not None and known.page.http is None:
            self._side.accept(offer, remote=_is_remote(known.page.title))
            task = asyncio.create_task(self._show(known, offer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _show(self, known: _KnownPage, offer: Offer) -> None:
        with contextlib.suppress(ConnectionOver):  # it has ended, which `_ended` reports
            await offer.http.ready()
            if known.offer is offer:
                known.page.http = offer.http

    def _ended(self, offer: Offer) -> None:
        if (program := self._remote.pop(offer, None)) is not None:
            self._remote_programs.left(program, self._loop.time())
        for known in self._known.values():
            if known.offer is offer:
                known.offer = known.page.http = None
                self._notify_state(known, "closed")

    def _notify_state(self, known: _KnownPage, state: Literal["opened", "closed"]) -> None:
        title = self._redact(known.page.title)
        self._notify(SessionPage(self._id, known.id, known.page.name, title, state))

    def _notify(self, page: SessionPage) -> None:
        for notices in self._listeners(self._id):
            notices.add(self._id, "session.page", page)


def _new_link(session: str, page: str) -> str:
    params = json.dumps({"session": session, "page": page})
    command = f"telex call session.page_open '{params}'"
    return f"A link admits one browser, once and for a short time. For another: `{command}`"


def _is_remote(command: str) -> bool:
    return origin_of(command).kind == "remote"


class PagesExtension:
    """The sessions of one server that may show pages. Close it after the server."""

    def __init__(self, automation: AutomationService, *, port: int = 0) -> None:
        self._automation = automation
        self._port = port
        self.redactor = automation.redactor
        self._serving: dict[str, SessionPages] = {}
        self._pages: Pages | None = None
        self._closing: set[asyncio.Task[None]] = set()
        automation.extension_factories += (self._opener,)
        automation.closers.add(self._session_closed)
        automation.notifications += spec.NOTIFICATIONS
        automation.add_handlers({"session.page_open": self.page_open})

    @maps_errors
    async def page_open(self, asked: spec.OpenPage, who: Connection) -> spec.PageOpened:
        """Open a page: return an address that opens it in a browser, once."""
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
                Condition.PARAMS, f"unknown page: {asked.page}; `session.page` announces them"
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

    def _opener(self, asked: Create) -> SessionPages | None:
        if not asked.pages:
            return None
        if self._pages is None:
            self._pages = Pages(port=self._port)
        return SessionPages(self._automation, self._pages, self._serving)

    def _session_closed(self, id: str) -> None:
        if (serving := self._serving.pop(id, None)) is not None:
            task = asyncio.create_task(serving.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
