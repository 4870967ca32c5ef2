"""The file of the tokens of MCP servers, which only its user can read.

A record belongs to the address for which it was stored: a project's table of the same name with
another `url` does not get it. The SDK's own types are kept as JSON, so that this file can be read
without the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from telex.config.errors import Unreadable
from telex.config.places import read_file, write_private

if TYPE_CHECKING:
    from pathlib import Path


class StoredTokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of one server, and what is needed to renew them."""

    url: str
    tokens: dict[str, Any] | None = None
    client: dict[str, Any] | None = None
    """The registration of telex at the authorization server."""
    metadata: dict[str, Any] | None = None
    """The authorization server's description of itself."""
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"<StoredTokens for {self.url}>"


class McpTokenFile:
    """The stored tokens, by the name of the server."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str, url: str) -> StoredTokens | None:
        """Return the record of a server; None if there is none for this address. Blocks."""
        found = self._read().get(name)
        return found if found is not None and found.url == url else None

    def store(self, name: str, record: StoredTokens) -> None:
        """Blocks. Raises `ConfigError` and `OSError`."""
        self._write({**self._read(), name: record})

    def remove(self, name: str) -> bool:
        """Forget a record; whether there was one. Blocks."""
        stored = self._read()
        if name not in stored:
            return False
        self._write({one: record for one, record in stored.items() if one != name})
        return True

    def _read(self) -> dict[str, StoredTokens]:
        content = read_file(self._path, ours=True)
        if content is None:
            return {}
        try:
            return msgspec.json.decode(content, type=dict[str, StoredTokens])
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Not chained: a message of the decoder could quote the file.
            raise Unreadable(
                f"{self._path} is damaged; remove it, and log in again: telex agent mcp login NAME"
            ) from None

    def _write(self, records: dict[str, StoredTokens]) -> None:
        if records:
            write_private(self._path, msgspec.json.encode(records))
        else:
            self._path.unlink(missing_ok=True)
