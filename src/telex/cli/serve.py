"""`telex serve`: the automation server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.adapters.lua_plugin import read_plugin
from telex.adapters.plugin_registry import (
    NameTaken,
    Plugins,
    builtin_plugins,
    installed_plugins,
    manifest_at,
)
from telex.cli.address import address
from telex.cli.configuration import load_config
from telex.cli.console import explain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.server import AutomationServer
    from telex.cli.listeners import Listeners
    from telex.config.places import Places


# The adapters of `telex serve`: built-in ones, installed ones, and those named by --adapter.
#
# A named adapter that is invalid stops the start; one in the data directory gets a line on stderr.


def served_plugins(places: Places, named: Iterable[Path]) -> tuple[LuaPlugin, ...]:
    """Return the adapters to serve. Raises if one that was named is not valid."""
    plugins = Plugins(builtin_plugins())
    for path in named:
        plugins.add(read_plugin(manifest_at(path)))
    installed, problems = installed_plugins(places.adapters)
    for plugin in installed:
        try:
            plugins.add(plugin)
        except NameTaken as taken:
            problems.append(f"{plugin.directory}: {taken}")
    for problem in problems:
        explain(f"telex: not loaded: {problem}")
    return plugins.all()


HELP = """Serve terminal sessions to programs, by JSON-RPC.

Without --socket or --http, the server uses standard input and output: stdout is for the protocol
alone, and the log goes to stderr. Several listeners share their sessions. At the end of standard
input the server answers the requests it has read; then, if no other listener is open, it ends every
program and exits. SIGINT and SIGTERM end it too.

\b
  printf '{"jsonrpc":"2.0","id":1,"method":"server.capabilities"}\\n' | telex serve
  telex serve --socket
  telex serve --socket /tmp/mine.sock --http 127.0.0.1:8023
  telex serve --adapter ./my-adapter/manifest.toml

Built-in adapters, and those in the data directory (`telex doctor` shows where), are always loaded.

A client of --http sends the token as `Authorization: Bearer`. The token is TELEX_TOKEN, or a random
one that is printed at the start.
"""


@click.command(help=HELP)
@click.option("--stdio", is_flag=True, help="Use standard input and output; the default.")
@click.option(
    "--socket",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Listen on a unix socket, for this user only; without PATH, the default of clients.",
)
@click.option(
    "--http", metavar="HOST:PORT", callback=address, help="Listen for HTTP and WebSocket."
)
@click.option("--allow-remote", is_flag=True, help="Let --http listen beyond this machine.")
@click.option(
    "--framing",
    type=click.Choice(["ndjson", "lsp"]),
    default="ndjson",
    show_default=True,
    help="Framing on stdio and the socket: a line for each message, or Content-Length headers.",
)
@click.option(
    "--serial",
    is_flag=True,
    help="Serve one request at a time on each connection, in order: for scripts piped in.",
)
@click.option(
    "--adapter",
    "--plugin",
    "adapters",
    multiple=True,
    metavar="MANIFEST",
    type=click.Path(path_type=Path),
    help="Load an adapter from its manifest.toml, or from the directory that has one; repeatable.",
)
@click.option(
    "--allow-plugin-load",
    is_flag=True,
    help="Let clients load and unload adapters while the server runs.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Serve requests with unknown parameters, and say so in `warnings` of the result.",
)
@click.option(
    "--gateway-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port for the pages of sessions on 127.0.0.1; by default any free port.",
)
@click.pass_context
def command(
    context: click.Context,
    stdio: bool,
    socket: str | None,
    http: tuple[str, int] | None,
    allow_remote: bool,
    framing: str,
    serial: bool,
    adapters: tuple[Path, ...],
    allow_plugin_load: bool,
    lenient: bool,
    gateway_port: int,
) -> None:
    from telex.adapters.server import AutomationServer
    from telex.cli.configuration import redactor_of
    from telex.cli.event_loop import run
    from telex.cli.listeners import Listeners, log_to_stderr
    from telex.config import places
    from telex.escapes.escape_sessions import EscapeSessions
    from telex.htty.session_pages import PagesExtension

    config = load_config(context)
    redactor = redactor_of(config.settings)
    log_to_stderr(config.settings.logging.level, redactor)
    found = places.find()
    path = None if socket is None else Path(socket) if socket else found.socket
    listeners = Listeners(
        stdio=stdio or (path is None and http is None),
        socket=path,
        http=http,
        allow_remote=allow_remote,
        framing=framing,
    )
    plugins = served_plugins(found, adapters)
    server = AutomationServer(
        plugins,
        redactor=redactor,
        may_load=allow_plugin_load,
        lenient=lenient,
        extend=(EscapeSessions, partial(PagesExtension, port=gateway_port)),
    )
    run(_served(server, listeners, serial))


async def _served(server: AutomationServer, listeners: Listeners, serial: bool) -> None:
    """Serve, and end every program afterwards."""
    from telex.automation.session_registry import warm_up
    from telex.cli.listeners import serve_until_stopped

    converse = partial(server.converse, one_at_a_time=serial)
    try:
        await serve_until_stopped(
            "automation", converse, listeners, opened=warm_up, stopping=server.leave
        )
    finally:
        await server.close()
