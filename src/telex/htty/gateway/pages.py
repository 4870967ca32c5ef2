"""Pages: what programs serve through their terminals, and the gateway that shows them.

A `Page` keeps its name, and so its origin in a browser, while programs that serve it come and go.
The terminal's side sets `http` to the connection of whoever serves it; the gateway reads that and
waits for `changed`. A page may also be only offered: then a program serves it as soon as a browser
asks for it.

`Pages` holds the pages of one process and opens the gateway with the first address that is asked
for. A page belongs to a command on a terminal: running the same command there again takes its
place, under the same name, so a browser that waits for it finds it. Another command is another
origin, even one with the same title: no name is used twice. Used by `telex run` for its one
terminal, and by a server for all its sessions.
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
"""Of the command in a name: a label has 63, and the number needs some."""
_RUN: Final = secrets.token_hex(3)
"""A browser keeps cookies, storage and service workers by host name, cookies for every port of it.
No later telex has this name, so what one program left there is not found by, or sent to, another.
"""

NEW_LINK: Final = (
    "A link lets one browser in, once and soon. For another, end the program in its terminal and "
    "start it again: its page then opens with a new link."
)


class NoPageName(ValueError):
    """A name that no host can have."""


class Page:
    """One origin, and the connection to whoever serves it now."""

    def __init__(self, name: str, title: str) -> None:
        if not _LABEL.fullmatch(name):
            raise NoPageName(f"{name!r} is no name for a page; use page.label to make one")
        self.name: Final = name
        """A DNS label, unique in the process."""
        self.title = title
        """The command that serves it, for people."""
        self.new_link = NEW_LINK
        """How a person gets another link to it: a sentence."""
        self._http: Http2Connection | None = None
        self._offered: asyncio.Event | None = None
        self.changed = asyncio.Event()
        """Set when `http` is, and another takes its place: take it before you look at `http`."""

    @property
    def http(self) -> Http2Connection | None:
        """The connection to the program; None while nobody serves the page."""
        return self._http

    @http.setter
    def http(self, http: Http2Connection | None) -> None:
        self._http = http
        self._offered = None
        self._change()

    def offer(self) -> asyncio.Event:
        """A program would serve it: whoever comes waits for that. The event is set when somebody
        does. It ends with `http`, or when it is withdrawn."""
        self._offered = asyncio.Event()
        self._change()
        return self._offered

    def withdraw(self, offered: asyncio.Event) -> None:
        """Unless it has ended, or another took its place."""
        if self._offered is offered:
            self._offered = None
            self._change()

    def request_program(self) -> bool:
        """Somebody wants to see it. Whether a program will serve it for that."""
        if self._offered is None:
            return False
        self._offered.set()
        return True

    def _change(self) -> None:
        past, self.changed = self.changed, asyncio.Event()
        past.set()


def label(command: str, number: int) -> str:
    """A name for the page of a command: `./My App.py`, the second: `my-app-py-2-9f3a2c`."""
    word = re.sub(r"[^a-z0-9]+", "-", command.rpartition("/")[2].lower())
    return f"{word[:_COMMAND_CHARACTERS].strip('-') or 'page'}-{number}-{_RUN}"


@dataclass(frozen=True, slots=True)
class PageProgram:
    """Who offers a page."""

    command: str
    """What it calls itself, for people."""
    identity: Hashable
    """Equal for those who run the same: program, arguments and directory. What it calls itself is
    one word of its own choice, and every script in Python has the same."""


class Pages:
    """Close it."""

    def __init__(self, *, port: int = 0) -> None:
        self._port = port
        self._pages: dict[tuple[str, Hashable], Page] = {}
        """By terminal and identity, the latest used last."""
        self._numbers = count(1)
        self._gateway: Gateway | None = None
        self._open: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Gateway] | None = None
        self._done = asyncio.Event()

    def __contains__(self, page: Page) -> bool:
        return page in self._pages.values()

    def page_for(self, terminal: str, program: PageProgram) -> Page:
        """Its page on a terminal. Where there are too many, one that nobody serves is forgotten."""
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
            self.drop(next(page for page in own if page.http is None))  # one serves at a time

    async def url(self, page: Page) -> str:
        """An address that opens it, once. Raises what opening the port raises."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._open = asyncio.create_task(self._serve(self._ready))
        gateway = await asyncio.shield(self._ready)
        return gateway.url(page)

    def forget_terminal(self, terminal: str) -> None:
        """A terminal is no more."""
        for page in [page for key, page in self._pages.items() if key[0] == terminal]:
            self.drop(page)

    def drop(self, page: Page) -> None:
        """Nobody finds it any more. Nothing happens to one that was dropped before."""
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
        """In a task of its own, which opens the gateway and closes it."""
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
            self._ready = None  # the next who asks tries again
            ready.set_exception(error)
        finally:
            self._gateway = None


class RemotePrograms:
    """Programs on other machines, of which only the `ssh` is seen that leads to them.

    The next one there may be anybody's. So each that comes is another program, with a page and an
    origin of its own, unless the one before left so lately that a browser still waits for it
    (`HTTY_RETURN_SECONDS`): that is a server that was started anew.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[int, float]] = {}
        """By what leads there: how many came, and when the last of them left."""

    def arrived(self, program: PageProgram, now: float) -> PageProgram:
        """Who it is to be."""
        number, left = self._seen.get(program.identity, (0, -inf))
        if now > left + limits.HTTY_RETURN_SECONDS:
            number += 1
        self._seen[program.identity] = number, inf
        return replace(program, identity=(program.identity, number))

    def left(self, program: PageProgram, now: float) -> None:
        """One that came."""
        for identity, (number, _) in self._seen.items():
            if program.identity == (identity, number):
                self._seen[identity] = number, now
                return


def program_of(group: int, otherwise: str) -> PageProgram:
    """Who leads a process group; `otherwise` is its name where that is not known."""
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
    """None for a program of another user."""
    try:
        return proc.link(group, what)
    except OSError:
        return None
