"""The tables `[mcp.NAME]` of `config.toml`: the MCP servers whose tools the agent has.

    [mcp.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

    [mcp.work]
    url = "https://mcp.example.com/mcp"
    token = { command = "pass show mcp/work" }

An unknown member is refused, unlike elsewhere in the file: a misspelt `enabled` would start a
program. No message quotes a value of `env`, `headers` or `token`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from telex.config.errors import WrongValue
from telex.config.limits import MCP_SERVERS
from telex.config.model_settings import KeySource, check_members, check_url

Wait = Annotated[float, Meta(gt=0, le=3600)]
SecretOrText = str | KeySource
"""A text that may stand in the file, or the place of a secret."""


class McpSection(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One table `[mcp.NAME]`: either a program (`command`) or an address (`url`)."""

    command: Annotated[
        str, Meta(description="The program to start; telex talks to it on its standard streams.")
    ] = ""
    args: Annotated[tuple[str, ...], Meta(description="The arguments of the program.")] = ()
    cwd: Annotated[
        str,
        Meta(
            description="The directory that the program starts in. A relative one starts from the "
            "root of the workspace, which is also the default."
        ),
    ] = ""
    env: Annotated[
        dict[str, SecretOrText],
        Meta(
            description="Variables for the program, beside the environment of the agent, which has "
            'no secrets. A secret is { env = "NAME" } or { command = "..." }.'
        ),
    ] = {}
    url: Annotated[
        str, Meta(description="The address of a server that speaks streamable HTTP.")
    ] = ""
    headers: Annotated[
        dict[str, SecretOrText],
        Meta(description="Headers for each request to the address; secrets as in env."),
    ] = {}
    token: Annotated[
        KeySource | None,
        Meta(
            description='{ env = "NAME" } or { command = "..." }: sent as `Authorization: Bearer`. '
            "Without it, the tokens that `telex agent mcp login NAME` stored are sent."
        ),
    ] = None
    protocol: Annotated[
        Literal["auto", "legacy", "2026-07-28"],
        Meta(
            description="The revision of MCP: negotiated, or only that of servers with a handshake "
            "(up to 2025-11-25), or only 2026-07-28."
        ),
    ] = "auto"
    enabled: Annotated[bool, Meta(description="Whether the server is used.")] = True
    start_seconds: Annotated[
        Wait, Meta(description="How long the server may take until its tools are listed.")
    ] = 30.0
    call_seconds: Annotated[Wait, Meta(description="How long one call of a tool may take.")] = 120.0

    @property
    def transport(self) -> str:
        return "http" if self.url else "stdio"


_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LINE: Final = re.compile(r"[^\x00-\x1f\x7f]*")
_OF_PROGRAMS: Final = ("args", "cwd", "env")
_OF_ADDRESSES: Final = ("headers", "token")


def read_mcp_servers(value: object, where: str) -> dict[str, McpSection]:
    """Return the tables by name. Raises `WrongValue` and `UnknownSetting`."""
    if not isinstance(value, dict):
        raise WrongValue(f"{where} must be tables, as in [mcp.files]")
    if len(value) > MCP_SERVERS:
        raise WrongValue(f"{where} has {len(value)} servers; a file may have {MCP_SERVERS}")
    return {name: _read(table, f"{where}.{name}", name) for name, table in value.items()}


def _read(table: object, where: str, name: str) -> McpSection:
    check_server_name(name, where)
    if not isinstance(table, dict):
        raise WrongValue(f"{where} must be a table")
    check_members(table, McpSection, where)
    for member in ("env", "headers"):
        for key, source in _texts(table, member, where):
            if not isinstance(source, str):
                _check_source(source, f"{where}.{member}.{key}")
    if "token" in table:
        _check_source(table["token"], f"{where}.token")
    try:
        section = msgspec.convert(table, McpSection)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise WrongValue(f"{where}{place.rstrip('`')}: {message}") from None
    _check(section, where)
    return section


def check_server_name(name: str, where: str) -> None:
    """Raise `WrongValue` for a name that cannot begin the names of tools: no `_`, so that a rule
    for `mcp_NAME_*` matches the tools of one server only."""
    if not _NAME.fullmatch(name):
        raise WrongValue(
            f"{where}: the name of an MCP server has at most 32 letters, digits and - (no _)"
        )


def _texts(table: dict[str, Any], member: str, where: str) -> list[tuple[str, Any]]:
    given = table.get(member, {})
    if not isinstance(given, dict):
        raise WrongValue(f"{where}.{member} must be a table")
    return list(given.items())


def _check_source(source: object, where: str) -> None:
    if isinstance(source, dict):
        check_members(source, KeySource, where)
    given = [one for one in ("env", "command") if isinstance(source, dict) and source.get(one)]
    if not isinstance(source, dict) or len(given) != 1 or not isinstance(source[given[0]], str):
        raise WrongValue(f'{where} must be {{ env = "NAME" }} or {{ command = "..." }}')


def _check(section: McpSection, where: str) -> None:
    if bool(section.command) == bool(section.url):
        raise WrongValue(f"{where} must have either `command` or `url`")
    others = _OF_PROGRAMS if section.url else _OF_ADDRESSES
    if misplaced := [member for member in others if getattr(section, member)]:
        kind = "url" if section.url else "command"
        raise WrongValue(f"{where}.{misplaced[0]} has no use with `{kind}`; remove it")
    if section.url:
        check_url(section.url, f"{where}.url")
    for word in (section.command, section.cwd, *section.args):
        if "\0" in word:
            raise WrongValue(f"{where}: a text of the command contains a NUL")
    for variable, value in section.env.items():
        if not _VARIABLE.fullmatch(variable) or (isinstance(value, str) and "\0" in value):
            raise WrongValue(f"{where}.env: this is not a variable with a text: {variable!r}")
    for header, value in section.headers.items():
        if not _HEADER.fullmatch(header) or (isinstance(value, str) and not _LINE.fullmatch(value)):
            raise WrongValue(f"{where}.headers: this is not a header with a text: {header!r}")
        if header.lower() == "authorization" and isinstance(value, str):
            raise WrongValue(
                f"{where}.headers.{header}: a secret does not belong in this file; use "
                '`token = { env = "NAME" }`'
            )
