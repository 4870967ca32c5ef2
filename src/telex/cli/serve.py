"""`telex serve`: the automation server."""

from __future__ import annotations

import asyncio
import os
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
from telex.rpc.identity import AGENT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.agent.server import AgentServer
    from telex.automation.caller import Caller
    from telex.cli.agent.composition import Wanted
    from telex.cli.listeners import Listeners
    from telex.config.load import Config
    from telex.config.places import Places
    from telex.server.telex_server import ServerOptions


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
one that is printed at the start; TELEX_TOKENS="NAME=TOKEN …" adds others with names.
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
    help="Serve requests with unknown parameters, and say so in `warnings` of the answer.",
)
@click.option(
    "--gateway-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port for the pages of sessions on 127.0.0.1; by default any free port.",
)
@click.option("--on-demand", is_flag=True, hidden=True)
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
    on_demand: bool,
) -> None:
    from telex.cli.agent.composition import Wanted
    from telex.cli.configuration import flags_of, redactor_of
    from telex.cli.event_loop import run
    from telex.cli.listeners import Listeners, log_to_stderr
    from telex.config import places
    from telex.server.mcp_policy import McpPolicy
    from telex.server.telex_server import ServerOptions

    config = load_config(context)
    log_to_stderr(config.settings.logging.level, redactor_of(config.settings))
    found = places.find()
    path = None if socket is None else Path(socket) if socket else found.socket
    listeners = Listeners(
        stdio=stdio or (path is None and http is None),
        socket=path,
        http=http,
        allow_remote=allow_remote,
        framing=framing,
    )
    if on_demand:
        os.chdir("/")  # the caller's directory may be removed or unmounted
    options = ServerOptions(
        plugins=served_plugins(found, adapters),
        may_load=allow_plugin_load,
        lenient=lenient,
        gateway_port=gateway_port,
        serial=serial,
        mcp_policy=McpPolicy.of(config.settings.mcp_server),
        on_demand=on_demand,
    )
    run(serve_telex(options, listeners, Wanted(flags_of(context), shared=True), config))


async def serve_everything(wanted: Wanted, listeners: Listeners) -> None:
    """Serve every protocol, with the agent of `telex agent` and the defaults of `telex serve`."""
    from telex.cli.configuration import redactor_of
    from telex.cli.listeners import log_to_stderr
    from telex.config import places
    from telex.server.mcp_policy import McpPolicy
    from telex.server.telex_server import ServerOptions

    config = wanted.load()
    log_to_stderr(config.settings.logging.level, redactor_of(config.settings))
    options = ServerOptions(
        plugins=served_plugins(places.find(), ()),
        mcp_policy=McpPolicy.of(config.settings.mcp_server),
    )
    await serve_telex(options, listeners, wanted, config)


async def serve_telex(
    options: ServerOptions, listeners: Listeners, wanted: Wanted, config: Config
) -> None:
    """Serve every protocol until the server is stopped, and end every program afterwards."""
    from telex.agent.terminal_server import TerminalServer
    from telex.automation.caller import SharedCaller
    from telex.automation.session_registry import warm_up
    from telex.cli.agent.composition import served_agent
    from telex.cli.configuration import redactor_of
    from telex.cli.listeners import Conversations, serve_until_stopped
    from telex.config import places
    from telex.config.places import make_private
    from telex.processes import guardian
    from telex.processes.leftovers import end_leftovers
    from telex.server.start import release_start_lock
    from telex.server.telex_server import TelexServer

    if listeners.socket is not None:
        runtime = str(make_private(places.find().runtime))
        end_leftovers(runtime)
        guardian.keep_ledger_in(runtime)
    stop = asyncio.Event()
    redactor = redactor_of(config.settings)

    async def own_sessions() -> Caller:
        return SharedCaller(server.automation.automation, identity=AGENT)

    def open_agent() -> AbstractAsyncContextManager[AgentServer]:
        return served_agent(wanted, config, TerminalServer(own_sessions))

    server = TelexServer(options, redactor, open_agent, stop.set)
    conversations = Conversations(
        server.converse_automation, server.converse_on_socket, server.on_http()
    )

    def opened() -> None:
        if options.on_demand:
            release_start_lock()
        warm_up()

    try:
        await serve_until_stopped(
            conversations, listeners, stop, opened=opened, stopping=server.leave
        )
    finally:
        await server.close()
        guardian.remove_ledger()
