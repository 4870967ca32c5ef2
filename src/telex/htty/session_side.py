"""Pages in a session: those who follow it are told of them, and one may open them.

There is no person to ask. So a page is announced, and until somebody opens it (`session.page_open`)
not a byte is said to the program. Whoever opened the page of a command has opened it for the next
run of the same on the same session too: a browser that waits for it goes on. A page that nobody
opened is forgotten when another is announced: programs cannot fill a session with them.

`terminal` does not know of it: `session_service` adds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from telex.escapes.policy import origin_of
from telex.htty.errors import ConnectionOver
from telex.htty.pages import FarEnds, program_of
from telex.htty.terminal_side import TerminalSide
from telex.protocols.htty import SessionPage
from telex.wire import htty_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.server import AutomationService
    from telex.htty.page import Page
    from telex.htty.pages import Pages, Program
    from telex.htty.terminal_side import Offer
    from telex.terminal.session import PtySession
    from telex.wire.escape import Claim
    from telex.wire.events import Claimed, Fault


@dataclass(slots=True)
class _Known:
    """A page of the session."""

    id: str
    page: Page
    wanted: bool = False
    """Whether somebody opened it."""
    offer: Offer | None = None


class Serving:
    """One session's pages: an `Addition` to it."""

    attributes: Final = ()
    environment: Final[Mapping[str, str]] = {"HTTY": htty_chunk.VERSION.decode()}

    def __init__(
        self, automation: AutomationService, pages: Pages, sessions: dict[str, Serving]
    ) -> None:
        self._redact = automation.redactor.redact
        self._listeners = automation.listeners
        self._pages = pages
        self._sessions = sessions
        self._known: dict[str, _Known] = {}
        """By id."""
        self._numbers = count(1)
        self._loop = asyncio.get_running_loop()
        self._far_ends = FarEnds()
        self._remote: dict[Offer, Program] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.claimants: Mapping[Claim, Callable[[Claimed], None]] = {
            htty_chunk.CHUNK: self._claimed,
            htty_chunk.RAW: self._raw_form,
        }
        self._named_raw: tuple[int | None] | None = None
        """The process group that announced the raw form last, if any did."""

    def opened(self, id: str, session: PtySession) -> None:
        self._id, self._session = id, session
        self._sessions[id] = self
        self._side = TerminalSide(session.pty, self._offered, self._ended)
        session.watchers.add(self._stir)

    def fault(self, fault: Fault) -> None:
        if fault.claim == htty_chunk.CHUNK:
            self._side.chunk(fault)

    def _raw_form(self, announced: Claimed) -> None:
        """Said once of each process group, as anybody may print it any number of times."""
        group = self._session.pty.foreground()
        if self._named_raw == (group,):
            return
        self._named_raw = (group,)
        name = self._session.program.argv[0]
        command = name if group is None else program_of(group, name).command
        why = f"the program speaks {htty_chunk.RAW_FORM}"
        title = self._redact(command)
        self._say(SessionPage(self._id, "", "", title, "unsupported", why))

    def _claimed(self, chunk: Claimed) -> None:
        self._side.chunk(chunk)

    def _stir(self) -> None:
        if self._session.exit is None:
            self._side.stir()
        else:
            self._side.hang_up()

    async def open(self, id: str) -> str:
        """Where it is. Raises LookupError if there is no such page."""
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
        self._pages.forget(self._id)

    def _offered(self, offer: Offer) -> None:
        program = program_of(offer.group, self._session.program.argv[0])
        if _is_remote(program.command):
            program = self._remote[offer] = self._far_ends.came(program, self._loop.time())
        page = self._pages.of(self._id, program)
        known = next((one for one in self._known.values() if one.page is page), None)
        if known is None:
            self._forget_unopened()
            known = _Known(f"p{next(self._numbers)}", page)
            page.new_link = _new_link(self._id, known.id)
            self._known[known.id] = known
        known.offer = offer
        self._tell(known, "opened")
        if known.wanted:
            self._accept(known)

    def _forget_unopened(self) -> None:
        for known in [*self._known.values()]:
            if not known.wanted:
                self._pages.drop(known.page)
            if known.page not in self._pages:  # or it made room
                del self._known[known.id]

    def _accept(self, known: _Known) -> None:
        if (offer := known.offer) is not None and known.page.http is None:
            self._side.accept(offer, remote=_is_remote(known.page.title))
            task = asyncio.create_task(self._show(known, offer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _show(self, known: _Known, offer: Offer) -> None:
        with contextlib.suppress(ConnectionOver):  # then it has ended, which is told
            await offer.http.ready()
            if known.offer is offer:
                known.page.http = offer.http

    def _ended(self, offer: Offer) -> None:
        if (program := self._remote.pop(offer, None)) is not None:
            self._far_ends.left(program, self._loop.time())
        for known in self._known.values():
            if known.offer is offer:
                known.offer = known.page.http = None
                self._tell(known, "closed")

    def _tell(self, known: _Known, state: Literal["opened", "closed"]) -> None:
        title = self._redact(known.page.title)
        self._say(SessionPage(self._id, known.id, known.page.name, title, state))

    def _say(self, told: SessionPage) -> None:
        for notices in self._listeners(self._id):
            notices.add(self._id, "session.page", told)


def _new_link(session: str, page: str) -> str:
    asked = json.dumps({"session": session, "page": page})
    command = f"telex call session.page_open '{asked}'"
    return f"A link lets one browser in, once and soon. For another: `{command}`"


def _is_remote(command: str) -> bool:
    return origin_of(command).kind == "remote"
