"""`telex agent mcp`: the MCP servers whose tools the agent has."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from typing import TYPE_CHECKING, Any

import click
import msgspec

from telex.cli.console import explain, say, warn

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent.mcp_client.mcp_supervisor import ConfiguredServer, McpSite
    from telex.agent.protocol.sessions import McpServer
    from telex.cli.agent.composition import Wanted
    from telex.config.load import Config

HELP = """List, add and remove the MCP servers whose tools the agent has.

They are the tables [mcp.NAME] of your config.toml, and of a project's once you trust it. A server
starts when the agent needs it, and ends with the agent. docs/how-to/use-mcp-servers.md shows more.
"""

LIST_HELP = """List the configured MCP servers, without starting any.

\b
With --check, each is started, and its state and number of tools are printed.
With --json, one object:
  servers   each with id, transport, source (project or global), enabled, and with --check
            state, tools, last_error
"""

ADD_HELP = """Add an MCP server to your config.toml: a program, or an address with --url.

A secret does not belong in that file: name the variable that has it.

\b
  telex agent mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  telex agent mcp add tickets --env-from TOKEN=MY_TOKEN -- tickets-mcp --stdio
  telex agent mcp add work --url https://mcp.example.com/mcp
  telex agent mcp add other --url https://mcp.example.com/mcp --token-env MY_TOKEN
  telex agent mcp add third --url https://mcp.example.com/mcp --header-from X-Api-Key=MY_KEY
"""

LOGIN_HELP = """Log in at an MCP server with a state of auth_required.

The address of its login is printed. Open it and agree there; the browser then comes back to a port
of this machine. The tokens are kept in a file that only you can read, and only this server gets
them.
"""


@click.group(help=HELP)
def mcp_command() -> None:
    pass


@mcp_command.command("list", help=LIST_HELP)
@click.option("--check", is_flag=True, help="Start each server, and print its state.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a list.")
@click.pass_obj
def list_command(wanted: Wanted, check: bool, as_json: bool) -> None:
    from telex.cli.agent.composition import mcp_servers
    from telex.cli.configuration import redactor_of
    from telex.cli.event_loop import run

    config = wanted.load()
    servers = mcp_servers(config)
    states = run(_states(servers, _site(wanted, config))) if check else {}
    if as_json:
        found = [_object(one, states.get(one.name)) for one in servers]
        say(json.dumps({"servers": found}, indent=2))
        return
    redactor = redactor_of(config.settings)
    for one in servers:
        where = "this project" if one.source == "project" else "your config.toml"
        off = "" if one.section.enabled else ", disabled"
        target = " ".join((one.section.command, *one.section.args)) or one.section.url
        say(f"{one.name}  {redactor.redact_command(target)}  ({where}{off})")
        if (state := states.get(one.name)) is not None:
            said = f"{state.tools} tools" if state.state == "ready" else state.last_error or ""
            say(f"      {state.state}: {said}")
    if not servers:
        say("No MCP server is configured. To add one: telex agent mcp add")


def _object(server: ConfiguredServer, state: McpServer | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": server.name,
        "transport": server.section.transport,
        "source": server.source,
        "enabled": server.section.enabled,
    }
    return found if state is None else {**found, **msgspec.to_builtins(state)}


async def _states(servers: list[ConfiguredServer], site: McpSite) -> dict[str, McpServer]:
    from telex.agent.mcp_client.mcp_supervisor import McpPace, McpSupervisor

    supervisors = [McpSupervisor(server, site, McpPace(failures=1)) for server in servers]
    try:
        for supervisor in supervisors:
            supervisor.wake()
        await asyncio.gather(*(supervisor.until_started() for supervisor in supervisors))
        return {one.name: one.describe() for one in supervisors}
    finally:
        await asyncio.gather(*(supervisor.close() for supervisor in supervisors))


def _site(wanted: Wanted, config: Config) -> McpSite:
    from telex.agent.mcp_client.mcp_supervisor import McpSite
    from telex.agent.sandbox_files import find_sandbox
    from telex.cli.configuration import redactor_of
    from telex.config import places

    found = places.find()
    root = find_sandbox(wanted.cwd, wanted.root and wanted.cwd).root
    return McpSite(
        str(root), os.environ, redactor_of(config.settings), found.mcp_logs, found.mcp_tokens
    )


def _pair(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if bare := [name for name, equals, _ in pairs if not equals]:
        raise click.BadParameter(f"{bare[0]!r} has no '='; write NAME=VALUE")
    return {name: value for name, _, value in pairs}


@mcp_command.command("add", help=ADD_HELP)
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", metavar="URL", help="The address of a server that speaks HTTP.")
@click.option(
    *("--env", "plain"),
    multiple=True,
    metavar="NAME=TEXT",
    callback=_pair,
    help="A variable for the program, which is no secret.",
)
@click.option(
    *("--env-from", "secret"),
    multiple=True,
    metavar="NAME=VARIABLE",
    callback=_pair,
    help="A variable for the program, with the value of one of your own variables.",
)
@click.option(
    "--header", multiple=True, metavar="NAME=TEXT", callback=_pair, help="A header for the address."
)
@click.option(
    *("--header-from", "secret_header"),
    multiple=True,
    metavar="NAME=VARIABLE",
    callback=_pair,
    help="A header for the address, with the value of one of your own variables.",
)
@click.option(
    "--token-env", metavar="VARIABLE", help="The variable with the token for the address."
)
@click.option("--cwd", metavar="DIR", help="The directory that the program starts in.")
def add_command(
    name: str,
    command: tuple[str, ...],
    url: str | None,
    plain: dict[str, str],
    secret: dict[str, str],
    header: dict[str, str],
    secret_header: dict[str, str],
    token_env: str | None,
    cwd: str | None,
) -> None:
    from telex.config.errors import ConfigError
    from telex.config.mcp_settings import read_mcp_servers
    from telex.config.mcp_tables import with_server

    _refuse_secret_words(command)
    _refuse_secrets(plain, "--env-from")
    _refuse_secrets(header, "--header-from")
    env = _with_sources(plain, secret)
    headers = _with_sources(header, secret_header)
    table: dict[str, Any] = {
        **({"command": command[0]} if command else {}),
        **({"args": [*command[1:]]} if command[1:] else {}),
        **({"cwd": cwd} if cwd else {}),
        **({"env": env} if env else {}),
        **({"url": url} if url else {}),
        **({"headers": headers} if headers else {}),
        **({"token": {"env": token_env}} if token_env else {}),
    }
    try:
        read_mcp_servers({name: table}, "mcp")
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    path = _edited(lambda text: with_server(text, name, table))
    say(f"added [mcp.{name}] to {path}")
    say("To start it once and see its tools: telex agent mcp list --check")


def _refuse_secret_words(command: tuple[str, ...]) -> None:
    from telex.redaction import Redactor

    line = shlex.join(command)
    if Redactor().redact_command(line) != line:
        raise click.UsageError(
            "an argument of the program looks like a secret, which does not belong in a file; give "
            "the program a variable instead: --env-from NAME=VARIABLE"
        )


def _with_sources(plain: dict[str, str], secret: dict[str, str]) -> dict[str, Any]:
    return {**plain, **{name: {"env": variable} for name, variable in secret.items()}}


def _refuse_secrets(given: dict[str, str], option: str) -> None:
    from telex.agent.command_runner import is_secret_variable
    from telex.redaction import Redactor

    for name, value in given.items():
        if is_secret_variable(name.replace("-", "_"), value, Redactor()):
            token = ", or --token-env VARIABLE" if option == "--header-from" else ""
            raise click.UsageError(
                f"{name} looks like a secret, which does not belong in a file; name the variable "
                f"that has it: {option} {name}=VARIABLE{token}"
            )


def _edited(edit: Any) -> Path:
    """Change the text of the user's config.toml; return its path."""
    from telex.config import places
    from telex.config.errors import ConfigError
    from telex.config.layers import Origin, Source, from_file
    from telex.config.places import read_file, write_private

    path = places.find().config_file
    content = read_file(path) or b""
    from_file(content, Origin(Source.USER, str(path)))  # a file that is not valid is not edited
    try:
        edited = edit(content.decode())
    except ConfigError as error:
        raise click.ClickException(f"{path}: {error}") from None
    # A link to a file elsewhere, as people keep their dotfiles, stays a link.
    write_private(path.resolve(), edited.encode())
    return path


@mcp_command.command("remove")
@click.argument("name")
@click.pass_obj
def remove_command(wanted: Wanted, name: str) -> None:
    """Remove the table [mcp.NAME] of your config.toml, and the tokens of the server."""
    from telex.agent.mcp_client.mcp_token_file import McpTokenFile
    from telex.config import places
    from telex.config.mcp_tables import without_server

    path = _edited(lambda text: without_server(text, name))
    forgotten = McpTokenFile(places.find().mcp_tokens).remove(name)
    say(f"removed [mcp.{name}] from {path}{', and its tokens' if forgotten else ''}")


@mcp_command.command("login", help=LOGIN_HELP)
@click.argument("name")
@click.option("--forget", is_flag=True, help="Forget the stored tokens of NAME instead.")
@click.pass_obj
def login_command(wanted: Wanted, name: str, forget: bool) -> None:
    from telex.agent.mcp_client.mcp_token_file import McpTokenFile
    from telex.cli.event_loop import run
    from telex.config import places

    if forget:
        if not McpTokenFile(places.find().mcp_tokens).remove(name):
            raise click.ClickException(f"no tokens of {name} are stored")
        say(f"forgot the tokens of {name}")
        return
    config = wanted.load()
    server = _server(config, name)
    if not server.section.url or server.section.token is not None:
        raise click.UsageError(f"mcp.{name} has no login: it has a command, or a token of its own")
    tools = run(_logged_in(server, _site(wanted, config)))
    say(f"logged in at {name}, which has {tools} tools; only {server.section.url} gets the tokens")


def _server(config: Config, name: str) -> ConfiguredServer:
    from telex.cli.agent.composition import mcp_servers
    from telex.rpc.nearest import did_you_mean, nearest_names

    servers = {one.name: one for one in mcp_servers(config)}
    if name not in servers:
        hint = did_you_mean(nearest_names(name, servers)) or "See: telex agent mcp list"
        raise click.UsageError(f"there is no MCP server {name}. {hint}")
    return servers[name]


async def _logged_in(server: ConfiguredServer, site: McpSite) -> int:
    from telex.agent.mcp_client.mcp_secrets import SecretMissing
    from telex.agent.mcp_client.mcp_supervisor import NO_SDK

    try:
        from telex.agent.mcp_client.mcp_login import LoginFailed, log_in
    except ModuleNotFoundError:
        raise click.ClickException(NO_SDK) from None

    def show(address: str) -> None:
        # Not redacted: the address has a one-time challenge, and is useless without it.
        explain(f"Open this address, and agree there:\n\n  {address}\n", redact=False)

    try:
        listing = await log_in(server, site, show)
    except (LoginFailed, SecretMissing) as problem:
        raise click.ClickException(f"the login failed: {problem}") from None
    return len(listing.tools)


@mcp_command.command("logs")
@click.argument("name")
def logs_command(name: str) -> None:
    """Print the log of an MCP server: its starts and ends, and its standard error, redacted."""
    from telex.agent.mcp_client.mcp_log import log_file, older
    from telex.config import places
    from telex.config.mcp_settings import check_server_name

    check_server_name(name, "NAME")
    path = log_file(places.find().mcp_logs, name)
    parts = [part for part in (older(path), path) if part.exists()]
    if not parts:
        warn(f"{path} does not exist: the server has not been started yet")
        raise SystemExit(1)
    for part in parts:
        say(part.read_text(encoding="utf-8", errors="replace").removesuffix("\n"))
