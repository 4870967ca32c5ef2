"""Pages that programs serve through their terminals, and the gateway that shows them.

A `Page` keeps its name, and so its origin in a browser, while the programs that serve it change.
The terminal's side sets `http` to the connection of the serving program; the gateway reads it and
waits for `changed`. A page may also be only offered: then a program serves it as soon as a browser
requests it.

`Pages` holds the pages of one process and opens the gateway when the first address is needed. A
page belongs to a command on a terminal: running the same command there again replaces the program,
under the same name, so a waiting browser finds the page. Another command is another origin, even
with the same title: no name is used twice. Used by `telex run` for its one terminal, and by a
server for all its sessions.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Final

from telex.htty import limits
from telex.processes import proc

if TYPE_CHECKING:
    from collections.abc import Hashable

    from telex.htty.gateway.gateway import Gateway
    from telex.htty.h2.http2_connection import Http2Connection


_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_COMMAND_CHARACTERS: Final = 40
"""Characters of the command in a name: a label has 63, and the numbers need some."""
_RUN: Final = secrets.token_hex(3)
"""A browser keeps cookies, storage and service workers by host name, and cookies for all its ports.
No later telex process has this suffix, so the data of one program is not found by, or sent to,
another.
"""

NEW_LINK: Final = (
    "A link admits one browser, once and for a short time. For another, end the program in its "
    "terminal and start it again: its page then opens with a new link."
)


class NoPageName(ValueError):
    """The name cannot be part of a host name."""


class Page:
    """One origin, and the connection to the program that serves it now."""

    def __init__(self, name: str, title: str) -> None:
        if not _LABEL.fullmatch(name):
            raise NoPageName(f"{name!r} is not a valid page name; use pages.label to make one")
        self.name: Final = name
        """A DNS label, unique in the process."""
        self.title = title
        """The command that serves it, for people."""
        self.new_link = NEW_LINK
        """How a person gets another link, as a sentence."""
        self._http: Http2Connection | None = None
        self._offered: asyncio.Event | None = None
        self.changed = asyncio.Event()
        """Set and replaced when `http` changes: get it before you read `http`."""

    @property
    def http(self) -> Http2Connection | None:
        """The connection to the program; None while no program serves the page."""
        return self._http

    @http.setter
    def http(self, http: Http2Connection | None) -> None:
        self._http = http
        self._offered = None
        self._change()

    def offer(self) -> asyncio.Event:
        """Announce that a program would serve the page; requests then wait for it.

        The returned event is set when a browser requests the page. The offer ends when `http` is
        set, or by `withdraw`.
        """
        self._offered = asyncio.Event()
        self._change()
        return self._offered

    def withdraw(self, offered: asyncio.Event) -> None:
        """Withdraw an offer, unless it has ended or was replaced."""
        if self._offered is offered:
            self._offered = None
            self._change()

    def request_program(self) -> bool:
        """Request the page. Returns whether a program was offered and will serve it."""
        if self._offered is None:
            return False
        self._offered.set()
        return True

    def _change(self) -> None:
        past, self.changed = self.changed, asyncio.Event()
        past.set()


def label(command: str, number: int) -> str:
    """Return a name for the page of a command: `./My App.py`, the second: `my-app-py-2-9f3a2c`."""
    word = re.sub(r"[^a-z0-9]+", "-", command.rpartition("/")[2].lower())
    return f"{word[:_COMMAND_CHARACTERS].strip('-') or 'page'}-{number}-{_RUN}"


@dataclass(frozen=True, slots=True)
class PageProgram:
    """The program that offers a page."""

    command: str
    """The name of its process, for people."""
    identity: Hashable
    """Equal for the same program, arguments and directory. The process name is not enough: it is
    the program's choice, and all Python scripts have the same."""


class Pages:
    """All pages of one process, and their gateway. Close it at the end."""

    def __init__(self, *, port: int = 0) -> None:
        self._port = port
        self._pages: dict[tuple[str, Hashable], Page] = {}
        """The pages by terminal and identity, the most recently used last."""
        self._numbers = count(1)
        self._gateway: Gateway | None = None
        self._open: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Gateway] | None = None
        self._done = asyncio.Event()

    def __contains__(self, page: Page) -> bool:
        return page in self._pages.values()

    def page_for(self, terminal: str, program: PageProgram) -> Page:
        """Return the program's page on a terminal.

        If there are too many, an unserved is dropped.
        """
        key = terminal, program.identity
        if (known := self._pages.pop(key, None)) is None:
            self._make_room(terminal)
            known = Page(label(program.command, next(self._numbers)), program.command)
            if self._gateway is not None:
                self._gateway.add(known)
        self._pages[key] = known
        return known

    def _make_room(self, terminal: str) -> None:
        own = [page for key, page in self._pages.items() if key[0] == terminal]
        if len(own) >= limits.HTTY_PAGES:
            self.drop(next(page for page in own if page.http is None))  # only one is served

    async def url(self, page: Page) -> str:
        """Return an address that opens the page, once. Raises CannotListen."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._open = asyncio.create_task(self._serve(self._ready))
        gateway = await asyncio.shield(self._ready)
        return gateway.url(page)

    def forget_terminal(self, terminal: str) -> None:
        """Drop all pages of a terminal that has ended."""
        for page in [page for key, page in self._pages.items() if key[0] == terminal]:
            self.drop(page)

    def drop(self, page: Page) -> None:
        """Drop a page, so that it cannot be opened any more. Idempotent."""
        if page not in self:
            return
        self._pages = {key: one for key, one in self._pages.items() if one is not page}
        page.http = None
        if self._gateway is not None:
            self._gateway.remove(page)

    async def close(self) -> None:
        self._done.set()
        if self._open is not None:
            await asyncio.wait({self._open})

    async def _serve(self, ready: asyncio.Future[Gateway]) -> None:
        """Open the gateway, and close it at the end: in one task."""
        try:
            module = await asyncio.to_thread(import_module, "telex.htty.gateway.gateway")
            async with module.Gateway(port=self._port) as gateway:
                self._gateway = gateway
                for page in self._pages.values():
                    gateway.add(page)
                ready.set_result(gateway)
                await self._done.wait()
        except BaseException as error:
            if ready.done():
                raise
            self._ready = None  # the next call tries again
            ready.set_exception(error)
        finally:
            self._gateway = None


class RemotePrograms:
    """Distinguishes programs on other machines, of which only the `ssh` to them is visible.

    The next program there may be a different one. So each new one gets a page and an origin of its
    own, unless the previous one ended so recently that a browser still waits for it
    (`HTTY_RETURN_SECONDS`): then it is a server that was restarted.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[int, float]] = {}
        """By the visible program: how many were seen, and when the last of them ended."""

    def arrived(self, program: PageProgram, now: float) -> PageProgram:
        """Return the program with an identity of its own."""
        number, left = self._seen.get(program.identity, (0, -inf))
        if now > left + limits.HTTY_RETURN_SECONDS:
            number += 1
        self._seen[program.identity] = number, inf
        return replace(program, identity=(program.identity, number))

    def left(self, program: PageProgram, now: float) -> None:
        """Record that a program has ended."""
        for identity, (number, _) in self._seen.items():
            if program.identity == (identity, number):
                self._seen[identity] = number, now
                return


def program_of(group: int, otherwise: str) -> PageProgram:
    """Return the leader of a process group; `otherwise` is its name if it is unknown."""
    name = _read(group, "comm").decode("utf-8", "replace").strip() or otherwise
    if argv := _read(group, "cmdline"):
        return PageProgram(name, (argv, _link(group, "exe"), _link(group, "cwd")))
    started = proc.started(group)
    return PageProgram(name, object() if started is None else (group, started))


def _read(group: int, what: str) -> bytes:
    try:
        return proc.read(group, what)
    except OSError:
        return b""


def _link(group: int, what: str) -> str | None:
    """Return the target; None for a program of another user."""
    try:
        return proc.link(group, what)
    except OSError:
        return None
