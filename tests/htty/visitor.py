"""A minimal browser: it opens the one-time address and keeps the cookie."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Visitor:
    """A browser that was admitted to one page. Created by `visiting`."""

    def __init__(self, client: httpx.AsyncClient, host: str) -> None:
        self._client = client
        self._headers = {"host": host}

    async def get(self, path: str = "/", headers: dict[str, str] | None = None) -> httpx.Response:
        return await self._client.get(path, headers={**self._headers, **(headers or {})})

    @contextlib.asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._client.stream("GET", path, headers=self._headers) as answer:
            yield answer.aiter_bytes()

    async def come(self, query: str) -> httpx.Response:
        answer = await self.get(f"/?{query}")
        if "set-cookie" in answer.headers:
            self._headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        return answer


@contextlib.asynccontextmanager
async def visiting(url: str, **how: Any) -> AsyncIterator[Visitor]:
    """Open the address. The name is only sent as Host, because not every system resolves it."""
    there = urlsplit(url)
    base = f"http://127.0.0.1:{there.port}"
    async with httpx.AsyncClient(base_url=base, timeout=60, **how) as client:
        visitor = Visitor(client, there.netloc)
        answer = await visitor.come(there.query)
        assert answer.status_code in (302, 303, 307), answer.text
        yield visitor
