"""A page: what a program serves through its terminal, as the gateway and the person see it.

A page keeps its name, and so its origin in a browser, while programs come and go beneath it. The
terminal's side says who serves it by setting `http`; the gateway asks that and waits for `changed`.
A page may also be only offered: then a program serves it as soon as somebody comes to see it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from telex.htty.http2 import Http2

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
        self._http: Http2 | None = None
        self._offered: asyncio.Event | None = None
        self.changed = asyncio.Event()
        """Set when `http` is, and another takes its place: take it before you look at `http`."""

    @property
    def http(self) -> Http2 | None:
        """The connection to the program; None while nobody serves the page."""
        return self._http

    @http.setter
    def http(self, http: Http2 | None) -> None:
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

    def come(self) -> bool:
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
