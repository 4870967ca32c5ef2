"""The gateway: the web server at which a person's browser opens pages. One port for all of them.

    async with Gateway() as gateway:
        gateway.add(page)
        show(gateway.url(page))

Each page has a host name of its own, `NAME.localhost`, and with it an origin, cookies and storage
of its own; browsers resolve such names to this machine themselves. Each has an authenticator of its
own, chosen by the Host, so a link to one page opens no other. Authenticated requests are forwarded
by `gateway_request` and `websocket_tunnel`.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import TYPE_CHECKING, Final

from telex.htty.gateway.gateway_request import ForwardedRequest, PageOrigin
from telex.htty.gateway.websocket_tunnel import WebSocketTunnel
from telex.transports.auth import Authenticator, AuthMiddleware
from telex.transports.web_server import Address, CannotListen, listen_without_auth

if TYPE_CHECKING:
    from types import TracebackType

    from starlette.types import ASGIApp, Receive, Scope, Send

    from telex.htty.gateway.pages import Page


_NO_PAGE: Final = (
    "telex has no page of that name here, or no longer. Start its program again, as in "
    "`telex run -- python3 hello.py`, and open the link that is shown then."
)


class NoSuchPage(LookupError):
    """The page was not added, or was removed."""


class Gateway:
    """Serves pages by name, on 127.0.0.1."""

    def __init__(self, port: int = 0) -> None:
        """Port 0 means any free port. Entering raises CannotListen if a given port is in use."""
        self._port = port
        self._origins: dict[str, tuple[PageOrigin, AuthMiddleware]] = {}
        self._unknown: Final = AuthMiddleware(
            _nothing, _authenticator(), advice=lambda reason: _NO_PAGE
        )
        self._listening = contextlib.AsyncExitStack()
        self._address: Address | None = None

    async def __aenter__(self) -> Gateway:
        listening = listen_without_auth(self._route, port=self._port, localhost=True)
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
        for name in list(self._origins):
            self._close(name)
        await self._listening.aclose()

    @property
    def port(self) -> int:
        assert self._address is not None, "the gateway is not open"
        return self._address.port

    def add(self, page: Page) -> None:
        """Add a page, which can then be opened by a browser with a link to it."""
        assert page.name not in self._origins, f"there is a page {page.name} already"
        auth = _authenticator(f"{page.name}.localhost")
        auth.set_address("127.0.0.1", self.port)
        origin = PageOrigin(page, auth)
        middleware = AuthMiddleware(
            _page_app(origin), auth, advice=lambda reason: page.new_link, title=page.title
        )
        self._origins[page.name] = origin, middleware

    def remove(self, page: Page) -> None:
        """Remove a page: refuse new requests, and end the open ones."""
        self._found(page)
        self._close(page.name)

    def url(self, page: Page) -> str:
        """Return a link that admits one browser, once and for a short time. Each call makes one."""
        link = self._found(page).auth.new_link(time.monotonic())
        return f"http://{page.name}.localhost:{self.port}{link}"

    def _found(self, page: Page) -> PageOrigin:
        origin, _ = self._origins.get(page.name, (None, None))
        if origin is None or origin.page is not page:
            raise NoSuchPage(f"there is no page {page.name} at the gateway; add it first")
        return origin

    def _close(self, name: str) -> None:
        origin, _ = self._origins.pop(name)
        for request in list(origin.requests):
            request.end()

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        name = hosts[0].lower().partition(b".")[0] if hosts else b""
        _, middleware = self._origins.get(name.decode("latin-1"), (None, self._unknown))
        await middleware(scope, receive, send)


def _authenticator(*names: str) -> Authenticator:
    """Create an authenticator with a token that is never shown: browsers use a link."""
    return Authenticator(secrets.token_urlsafe(32), names=names, shared=True)


def _page_app(origin: PageOrigin) -> ASGIApp:
    async def page_app(scope: Scope, receive: Receive, send: Send) -> None:
        kind = WebSocketTunnel if scope["type"] == "websocket" else ForwardedRequest
        await kind(origin, scope, receive, send).run()

    return page_app


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("an authenticator without a name admitted a request")
