"""OAuth for MCP servers, on the SDK's flow: the stored tokens, and the login in a browser.

A runtime uses and renews stored tokens, and never begins a login: a server that refuses them has
the state `auth_required`. Only `telex agent mcp login NAME` asks the person, who opens the address
that it prints and agrees there.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from telex.agent.mcp_client.mcp_token_file import StoredTokens
from telex.processes.shielded import run_in_thread
from telex.transports.web_server import listen_without_auth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pydantic import BaseModel
    from starlette.requests import Request

    from telex.agent.mcp_client.mcp_token_file import McpTokenFile

_PATH: Final = "/callback"
_EARLY_SECONDS: Final = 30.0
"""A token is renewed so long before it expires, so that it does not expire on its way."""
_DONE: Final = "telex has what it needs. You can close this page.\n"
_AGAIN: Final = "This login has ended. Run `telex agent mcp login` again.\n"

M = TypeVar("M", bound="BaseModel")


class LoginNeeded(OAuthFlowError):
    """The server refuses the stored tokens, and nobody can be asked here."""


class OAuthStorage:
    """The storage of the SDK's flow, in the file of the tokens."""

    def __init__(self, file: McpTokenFile, name: str, url: str) -> None:
        self._file, self._name = file, name
        self._record = StoredTokens(url)
        self._url = url
        self.provider: OAuthClientProvider | None = None

    async def load(self) -> bool:
        """Read the record; whether there is one. Raises `ConfigError`."""
        found = await run_in_thread(lambda _: self._file.get(self._name, self._url))
        self._record = found or StoredTokens(self._url)
        return found is not None

    @property
    def metadata(self) -> OAuthMetadata | None:
        return _read(OAuthMetadata, self._record.metadata)

    async def get_tokens(self) -> OAuthToken | None:
        if self.provider is not None and self._record.expires_at is not None:
            self.provider.context.token_expiry_time = self._record.expires_at
        return _read(OAuthToken, self._record.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        metadata = None if self.provider is None else self.provider.context.oauth_metadata
        expires = None
        if tokens.expires_in is not None:
            expires = time.time() + tokens.expires_in - _EARLY_SECONDS
        self._record = msgspec.structs.replace(
            self._record,
            tokens=_members(tokens),
            expires_at=expires,
            metadata=self._record.metadata if metadata is None else _members(metadata),
        )
        record = self._record
        await run_in_thread(lambda _: self._file.store(self._name, record))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return _read(OAuthClientInformationFull, self._record.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registration. It is stored together with the tokens."""
        self._record = msgspec.structs.replace(self._record, client=_members(client_info))


def _members(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


def _read(kind: type[M], members: dict[str, Any] | None) -> M | None:
    try:
        return None if members is None else kind.model_validate(members)
    except ValidationError:  # another version of the SDK stored it
        return None


async def stored_login(file: McpTokenFile, name: str, url: str) -> OAuthClientProvider | None:
    """Return the authentication with the stored tokens; None if there are none. Raises
    `ConfigError`."""
    storage = OAuthStorage(file, name, url)
    if not await storage.load():
        return None

    async def nobody(_: str) -> None:
        raise LoginNeeded("the server refuses the stored tokens")

    async def no_answer() -> AuthorizationCodeResult:
        raise LoginNeeded("the server refuses the stored tokens")

    return _provider(storage, url, "http://127.0.0.1/callback", nobody, no_answer)


def _provider(
    storage: OAuthStorage,
    url: str,
    redirect: str,
    show: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    about = OAuthClientMetadata(
        client_name="telex",
        redirect_uris=[AnyUrl(redirect)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    provider = OAuthClientProvider(url, about, storage, show, answer)
    provider.context.oauth_metadata = storage.metadata
    storage.provider = provider
    return provider


@asynccontextmanager
async def browser_login(
    file: McpTokenFile, name: str, url: str, show: Callable[[str], None]
) -> AsyncIterator[OAuthClientProvider]:
    """Authentication that asks the person: `show` gets the address to open. The browser comes back
    to a port of this machine, which is open until the end of the block."""
    answers: asyncio.Queue[AuthorizationCodeResult] = asyncio.Queue(1)
    shown = asyncio.Event()

    async def callback(request: Request) -> PlainTextResponse:
        given = request.query_params
        if not shown.is_set() or answers.full() or not (given.get("code") or given.get("error")):
            return PlainTextResponse(_AGAIN, 400)
        answers.put_nowait(
            AuthorizationCodeResult(
                code=given.get("code", ""), state=given.get("state"), iss=given.get("iss")
            )
        )
        return PlainTextResponse(_DONE)

    async def show_address(address: str) -> None:
        show(address)
        shown.set()

    app = Starlette(routes=[Route(_PATH, callback)])
    storage = OAuthStorage(file, name, url)
    async with listen_without_auth(app, host="127.0.0.1", port=0) as listening:
        redirect = f"{listening.url}{_PATH}"
        yield _provider(storage, url, redirect, show_address, answers.get)
