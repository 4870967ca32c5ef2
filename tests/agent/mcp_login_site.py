"""An MCP server behind an authorization server, both in this process."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route


class LoginSite:
    """Gives codes to whoever asks, tokens for codes, and the tools for tokens."""

    def __init__(self, inner: Any, lifetime: int = 3600) -> None:
        self.lifetime = lifetime
        self.valid = ""
        """The token that counts now."""
        self.grants: list[str] = []
        """The kinds of grants that were asked for, in order."""
        self._numbers = itertools.count(1)
        self._inner = inner
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server", self._about),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/issue/tokens", self._token, methods=["POST"]),
                Mount("/", self._guarded),
            ],
            lifespan=inner.router.lifespan_context,
        )

    async def _resource(self, request: Any) -> Response:
        base = str(request.base_url).rstrip("/")
        return JSONResponse({"resource": f"{base}/mcp", "authorization_servers": [base]})

    async def _about(self, request: Any) -> Response:
        base = str(request.base_url).rstrip("/")
        return JSONResponse(
            {
                "issuer": base,
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/issue/tokens",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _register(self, request: Any) -> Response:
        return JSONResponse({**await request.json(), "client_id": "telex-1"}, 201)

    async def _authorize(self, request: Any) -> Response:
        given = request.query_params
        back = urlencode({"code": "the-code", "state": given["state"]})
        return RedirectResponse(f"{given['redirect_uri']}?{back}", 302)

    async def _token(self, request: Any) -> Response:
        form = await request.form()
        self.grants.append(form["grant_type"])
        self.valid = f"secret-token-{next(self._numbers)}"
        return JSONResponse(
            {
                "access_token": self.valid,
                "token_type": "Bearer",
                "expires_in": self.lifetime,
                "refresh_token": "secret-refresh",
            }
        )

    async def _guarded(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").decode()
        if self.valid and given == f"Bearer {self.valid}":
            await self._inner(scope, receive, send)
            return
        await Response("no", 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
