"""The gateway: where a person's own browser opens the pages of programs. One port for all of them.

    async with Gateway() as gateway:
        gateway.add(page)
        show(gateway.url(page))

Each page has a host name of its own, `NAME.localhost`, and with it an origin, cookies and storage
of its own; browsers resolve such names to this machine themselves. Each has a door of its own, and
the Host decides which: what opens one page opens no other. What happens behind the door is in
`forwarding` and `tunnelling`.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import TYPE_CHECKING, Final

from telex.htty.forwarding import Forwarding
from telex.htty.tunnelling import Tunnelling
from telex.htty.visiting import Site
from telex.transports.door import Door
from telex.transports.doorway import Doorway
from telex.transports.listening import Address, CannotListen, listen_behind_doors

if TYPE_CHECKING:
    from types import TracebackType

    from starlette.types import ASGIApp, Receive, Scope, Send

    from telex.htty.page import Page


_NO_PAGE: Final = (
    "telex shows no page of that name here, or not any more. Start its program again, as in "
    "`telex run -- python3 hello.py`, and open the link that is shown then."
)


class NoSuchPage(LookupError):
    """A page that was not added, or was removed."""


class Gateway:
    """Pages by name, on 127.0.0.1."""

    def __init__(self, port: int = 0) -> None:
        """Port 0 takes a free one. Entering raises CannotListen where a given one is taken."""
        self._port = port
        self._sites: dict[str, tuple[Site, Doorway]] = {}
        self._nobody: Final = Doorway(_nothing, _door(), advice=lambda reason: _NO_PAGE)
        self._listening = contextlib.AsyncExitStack()
        self._address: Address | None = None

    async def __aenter__(self) -> Gateway:
        listening = listen_behind_doors(self._receive_visitor, port=self._port, localhost=True)
        try:
            self._address = await self._listening.enter_async_context(listening)
        except CannotListen as problem:
            raise CannotListen(
                f"pages cannot be shown: {problem}; choose another port with --gateway-port, or 0 "
                "for any that is free"
            ) from problem
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for name in list(self._sites):
            self._close(name)
        await self._listening.aclose()

    @property
    def port(self) -> int:
        assert self._address is not None, "the gateway is not open"
        return self._address.port

    def add(self, page: Page) -> None:
        """From now on the page can be opened, by whoever has a link to it."""
        assert page.name not in self._sites, f"there is a page {page.name} already"
        door = _door(f"{page.name}.localhost")
        door.opens_at("127.0.0.1", self.port)
        site = Site(page, door)
        doorway = Doorway(
            _visited(site), door, advice=lambda reason: page.new_link, title=page.title
        )
        self._sites[page.name] = site, doorway

    def remove(self, page: Page) -> None:
        """Nobody gets in any more, and whoever is in is sent out."""
        self._found(page)
        self._close(page.name)

    def url(self, page: Page) -> str:
        """A link that lets one browser in, once and soon. Every call makes another."""
        link = self._found(page).door.new_link(time.monotonic())
        return f"http://{page.name}.localhost:{self.port}{link}"

    def _found(self, page: Page) -> Site:
        site, _ = self._sites.get(page.name, (None, None))
        if site is None or site.page is not page:
            raise NoSuchPage(f"there is no page {page.name} at the gateway; add it first")
        return site

    def _close(self, name: str) -> None:
        site, _ = self._sites.pop(name)
        for visit in list(site.visits):
            visit.end()

    async def _receive_visitor(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        name = hosts[0].lower().partition(b".")[0] if hosts else b""
        _, doorway = self._sites.get(name.decode("latin-1"), (None, self._nobody))
        await doorway(scope, receive, send)


def _door(*names: str) -> Door:
    """A token is needed for a door to be one; nobody is told this one."""
    return Door(secrets.token_urlsafe(32), names=names, shared=True)


def _visited(site: Site) -> ASGIApp:
    async def visited(scope: Scope, receive: Receive, send: Send) -> None:
        kind = Tunnelling if scope["type"] == "websocket" else Forwarding
        await kind(site, scope, receive, send).run()

    return visited


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("a door that goes by no name let somebody in")
