"""The values of `env`, `headers` and `token` of `[mcp.NAME]`, read when a server starts.

A secret is never part of a message, a log or a command line. The redactor of the server hides its
secrets, whatever they look like, in everything that the server says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.agent.models.errors import KeyMissing
from telex.agent.models.model_keys import printed_key
from telex.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from telex.config.mcp_settings import McpSection, SecretOrText

_SHORTEST_LITERAL: Final = 4
"""A shorter secret would hide ordinary text everywhere."""


class SecretMissing(Exception):
    """A secret of an MCP server cannot be read; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class McpSecrets:
    """The resolved values of one server."""

    env: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """With `Authorization`, if the configuration has a token."""
    redactor: Redactor

    @property
    def has_authorization(self) -> bool:
        return any(name.lower() == "authorization" for name in self.headers)


async def read_secrets(
    name: str, section: McpSection, environ: Mapping[str, str], redactor: Redactor
) -> McpSecrets:
    """Return the values of a server. Raises `SecretMissing`."""
    found: list[str] = []

    async def value(member: str, source: SecretOrText) -> str:
        if isinstance(source, str):
            return source
        where = f"mcp.{name}.{member}"
        if source.env:
            secret = environ.get(source.env, "")
            if not secret or not secret.isprintable():
                problem = "contains control characters" if secret else "is not set"
                raise SecretMissing(f"{where}: the variable {source.env} {problem}; set it")
        else:
            try:
                secret = await printed_key(where, source.command, environ)
            except KeyMissing as problem:
                raise SecretMissing(str(problem)) from None
        found.append(secret)
        return secret

    env = {key: await value(f"env.{key}", source) for key, source in section.env.items()}
    headers = {key: await value(f"headers.{key}", one) for key, one in section.headers.items()}
    if section.token is not None:
        headers["Authorization"] = f"Bearer {await value('token', section.token)}"
    if problem := [header for header, text in headers.items() if not text.isascii()]:
        raise SecretMissing(f"mcp.{name}.headers.{problem[0]}: a header has ASCII characters only")
    return McpSecrets(env, headers, hiding(redactor, found))


def hiding(redactor: Redactor, secrets: Iterable[str]) -> Redactor:
    """Return a redactor that also hides these texts."""
    literals = tuple(one for one in secrets if len(one) >= _SHORTEST_LITERAL)
    return Redactor(
        (*redactor.extra_literals, *literals), redactor.extra_regexes, redactor.replacement
    )
