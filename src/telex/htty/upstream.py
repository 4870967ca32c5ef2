"""A server that `reverse` stands before: where it is, and how headers change on the way. Sans-IO.

The server sees requests to itself, and a browser sees answers of the page: each side's own name is
put in place of the other's, where a header holds one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from telex.htty.asgi_response import clean
from telex.htty.asgi_scope import values

if TYPE_CHECKING:
    from starlette.types import Scope

    Fields = list[tuple[bytes, bytes]]

_NOT_PASSED_ON: Final = frozenset((b"host", b"expect", b"http2-settings", b"proxy-authorization"))
_DOMAIN: Final = re.compile(rb";\s*domain\s*=\s*\.?([^;]*)", re.IGNORECASE)
_PORTS: Final = {"http": 80}


class NoUpstream(ValueError):
    """What was given names no server that can be served."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """`http://HOST:PORT`, or `unix:PATH`, with the name that it is asked by."""

    host: str
    port: int | None = None
    unix: str | None = None

    @classmethod
    def parse(cls, to: str) -> Upstream:
        """Raises NoUpstream."""
        if to.startswith("unix:"):
            if path := to.removeprefix("unix:"):
                return cls("localhost", None, path)
            raise NoUpstream("unix: needs the path of a socket, as in unix:/run/app.sock")
        try:
            parts = urlsplit(to)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise NoUpstream(f"{to!r} is no address: {error}") from None
        if parts.scheme != "http" or not host or parts.path not in ("", "/") or parts.query:
            raise NoUpstream(f"{to!r} is no server; write http://HOST:PORT or unix:PATH")
        return cls(host, port)

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, 80) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.authority}"

    def __str__(self) -> str:
        return self.origin if self.unix is None else f"unix:{self.unix}"

    def request_headers(self, scope: Scope) -> Fields:
        """As it should see the request."""
        fields = clean(scope["headers"])
        host = next(iter(values(fields, b"host")), b"")
        passed = [
            (name, self._for_it(name, value, host))
            for name, value in fields
            if name not in _NOT_PASSED_ON
        ]
        forwarded = [(b"x-forwarded-host", host)] if host else []
        return [(b"host", self.authority.encode()), *passed, *forwarded]

    def _for_it(self, name: bytes, value: bytes, host: bytes) -> bytes:
        """Servers compare the Origin with the Host to tell their own pages from others'."""
        if name not in (b"origin", b"referer") or not host:
            return value
        for scheme in (b"http://", b"https://"):
            ours = scheme + host
            if value == ours or value.startswith(ours + b"/"):
                return self.origin.encode() + value[len(ours) :]
        return value

    def response_headers(self, headers: Fields) -> Fields:
        """As the browser should see the answer."""
        return [(name, self._for_browser(name, value)) for name, value in clean(headers)]

    def _for_browser(self, name: bytes, value: bytes) -> bytes:
        match name:
            case b"location" | b"content-location":
                return self._local(value)
            case b"set-cookie":
                return _DOMAIN.sub(self._without, value)
            case _:
                return value

    def _local(self, location: bytes) -> bytes:
        """A path, if it leads to the server itself."""
        try:
            parts = urlsplit(location.decode("latin-1"))
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return location
        if parts.scheme != "http" or parts.hostname != self.host or port != (self.port or 80):
            return location
        rest = location.split(b"://", 1)[1]
        path = rest[len(parts.netloc) :]
        # `http://host//elsewhere` must not become `//elsewhere`, which is another host.
        return b"/" + path.lstrip(b"/") if path.startswith(b"/") else b"/" + path

    def _without(self, domain: re.Match[bytes]) -> bytes:
        """A cookie for the server's own name is one for the page's name, which is another."""
        own = domain[1].strip().lower().decode("latin-1")
        return b"" if self.host == own or self.host.endswith(f".{own}") else domain[0]
