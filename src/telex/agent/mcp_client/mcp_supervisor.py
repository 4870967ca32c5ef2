"""The supervisor of one MCP server: its state, its start and its restarts.

A server is started when it is needed: by a run of a model, by a call, or by `mcp.list`. If it ends
without being told to, it is started again after a wait, which doubles with each recent failure;
after too many it is left alone until they are old. A call is never repeated. A
server that needs a login is started again once `telex agent mcp login` has stored its tokens.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from telex.agent.command_runner import agent_environment
from telex.agent.limits import (
    MCP_BACKOFF_SECONDS,
    MCP_CLOSE_SECONDS,
    MCP_FAILURE_SECONDS,
    MCP_FAILURES,
    MCP_LISTED_SECONDS,
)
from telex.agent.mcp_client.mcp_log import McpLog, log_file
from telex.agent.mcp_client.mcp_secrets import SecretMissing, read_secrets
from telex.agent.mcp_client.mcp_session import McpStart, SessionEnd
from telex.agent.mcp_client.mcp_token_file import McpTokenFile, StoredTokens
from telex.agent.mcp_client.mcp_tool_list import McpListing
from telex.agent.permissions import in_line
from telex.agent.protocol.sessions import McpServer
from telex.agent.tools.tool import ToolFailed, ToolResult
from telex.config.errors import ConfigError
from telex.plugins.dialect import SlidingWindow
from telex.processes.shielded import run_in_thread, run_shielded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.mcp_client.mcp_connection import McpConnection
    from telex.config.mcp_settings import McpSection
    from telex.redaction import Redactor

State = Literal["disabled", "connecting", "auth_required", "ready", "error"]
ServerSource = Literal["project", "global"]
NO_SDK: Final = (
    "the SDK for MCP servers is not installed; install it: pip install 'telex-terminal[mcp]'"
)


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """One table `[mcp.NAME]`, and the file that has it."""

    name: str
    section: McpSection
    source: ServerSource


@dataclass(frozen=True, slots=True)
class McpSite:
    """The environment of the servers of one workspace."""

    root: str
    environ: Mapping[str, str]
    """The environment of the runtime, with its secrets."""
    redactor: Redactor
    logs: Path
    tokens: Path


@dataclass(frozen=True, slots=True)
class McpPace:
    """When a server is started again. Times are in seconds."""

    failures: int = MCP_FAILURES
    window: float = MCP_FAILURE_SECONDS
    backoff: float = MCP_BACKOFF_SECONDS

    def wait(self, failures: int) -> float:
        return float(self.backoff * 2 ** (failures - 1))


class McpSupervisor:
    """Runs one server, and restarts it. For one event loop; call `close` at the end."""

    def __init__(
        self, server: ConfiguredServer, site: McpSite, pace: McpPace | None = None
    ) -> None:
        self.name, self.section = server.name, server.section
        self._server, self._site, self._pace = server, site, pace or McpPace()
        self._failures = SlidingWindow(self._pace.failures, self._pace.window)
        self._log = McpLog(log_file(site.logs, server.name))
        self._state: State = "connecting" if server.section.enabled else "disabled"
        self._error = ""
        self._connected_at: datetime | None = None
        self._changed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._connection: McpConnection | None = None
        self._refused: StoredTokens | None = None
        """The tokens that the server refused."""
        self._closed = False
        self._began = 0.0
        """When the server was last woken."""
        self.listing = McpListing()

    @property
    def state(self) -> State:
        return self._state

    def describe(self) -> McpServer:
        at = "" if self._connected_at is None else self._connected_at.isoformat("T", "milliseconds")
        return McpServer(
            self.name,
            "http" if self.section.url else "stdio",
            self.section.enabled,
            self._state,
            self._server.source,
            len(self.listing.tools) if self._state == "ready" else None,
            self._error or None,
            at.replace("+00:00", "Z") or None,
        )

    def wake(self) -> None:
        """Start the server, unless it runs, is being started, or must be left alone."""
        if self._closed or not self.section.enabled:
            return
        if self._keeper is not None and not self._keeper.done():
            return
        if self._failures.full_until(asyncio.get_running_loop().time()) is not None:
            return
        self._began = asyncio.get_running_loop().time()
        self._keeper = asyncio.create_task(self._keep(), name=f"mcp {self.name}")

    async def until_started(self) -> None:
        """Wait until the first attempt to start the server has ended, in whatever state."""
        while self._state == "connecting" and self._is_kept:
            await self._next_change()

    async def until_listed(self) -> None:
        """Wait for the tools of a server that is being started, up to MCP_LISTED_SECONDS from the
        beginning of its start: a slow server delays one step of a run, not each."""
        try:
            async with asyncio.timeout_at(self._began + MCP_LISTED_SECONDS):
                await self.until_started()
        except TimeoutError:
            self._log.note("its tools are not offered yet, because it is slow to start")

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool by its name for models. Raises `ToolFailed`."""
        if not self.section.enabled:
            raise ToolFailed(f"the MCP server {self.name} is disabled in the configuration")
        connection = await self._connected()
        if (tool := self.listing.tools.get(name)) is None:
            known = ", ".join(self.listing.tools) or "none"
            raise ToolFailed(f"the MCP server {self.name} has no tool {name}; it has: {known}")
        return await connection.call(tool, arguments)

    async def close(self) -> None:
        """End the server and everything that it started. Idempotent."""
        self._closed = True
        if self._keeper is not None:
            await run_shielded(self._stopped(self._keeper))
        self._log.close()

    async def _stopped(self, keeper: asyncio.Task[None]) -> None:
        while not keeper.done():
            keeper.cancel()
            await asyncio.wait({keeper}, timeout=MCP_CLOSE_SECONDS)
        if not keeper.cancelled():
            keeper.result()

    @property
    def _is_kept(self) -> bool:
        return self._keeper is not None and not self._keeper.done()

    async def _connected(self) -> McpConnection:
        """Return the session, after starting the server if it does not run."""
        self.wake()
        try:
            async with asyncio.timeout(self.section.start_seconds):
                while self._open_connection is None and self._is_kept:
                    await self._next_change()
        except TimeoutError:
            pass
        if (connection := self._open_connection) is None:
            raise ToolFailed(f"the MCP server {self.name} does not run: {self._why_not()}")
        return connection

    @property
    def _open_connection(self) -> McpConnection | None:
        return self._connection if self._connection and self._connection.is_open else None

    def _why_not(self) -> str:
        until = self._failures.full_until(asyncio.get_running_loop().time())
        why = self._error or "it is being started"
        if until is None:
            return why
        left = until - asyncio.get_running_loop().time()
        return f"{why} (it failed {self._pace.failures} times, and is not tried for {left:.0f} s)"

    async def _next_change(self) -> None:
        """Wait for another state, or for the end of the keeper."""
        assert self._keeper is not None
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({changed, self._keeper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            await asyncio.wait({changed})

    def _set(self, state: State, error: str = "") -> None:
        self._state, self._error = state, error
        self._changed.set()
        self._changed = asyncio.Event()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._state == "auth_required" and not await self._has_new_tokens():
                return
            self._set("connecting", self._error)
            end = await self._run()
            if self._closed:  # an error at the end may have taken the place of the cancel
                return
            self._log.note(end.why)
            if end.needs_login:
                self._set("auth_required", end.why)
                return
            self._failures.add(loop.time())
            self._set("error", end.why)
            if self._failures.full_until(loop.time()) is not None:
                return
            await asyncio.sleep(self._pace.wait(self._failures.count(loop.time())))

    async def _run(self) -> SessionEnd:
        """Run one session to its end."""
        try:
            sdk = await run_in_thread(
                lambda _: importlib.import_module("telex.agent.mcp_client.mcp_connection")
            )
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "httpx2"):
                raise
            return SessionEnd(NO_SDK)
        try:
            start = await self._start()
        except (SecretMissing, ConfigError) as problem:
            return SessionEnd(in_line(str(problem)))
        connection: McpConnection = sdk.McpConnection(start)
        self._log.note("started")
        return await connection.run(lambda found: self._listed(connection, found), self._lost)

    def _listed(self, connection: McpConnection, listing: McpListing) -> None:
        self.listing = listing
        for problem in listing.problems:
            self._log.note(problem)
        if self._connection is None:
            self._connection, self._connected_at = connection, datetime.now(UTC)
            self._log.note(f"ready: MCP {connection.protocol}, {len(listing.tools)} tools")
        self._set("ready")

    def _lost(self) -> None:
        self._connection, self.listing = None, McpListing()
        self._set("error", "the session has ended")

    async def _start(self) -> McpStart:
        site, section = self._site, self.section
        secrets = await read_secrets(self.name, section, site.environ, site.redactor)
        auth = None
        can_login = bool(section.url) and not secrets.has_authorization
        if can_login:
            from telex.agent.mcp_client.mcp_oauth import stored_login

            self._refused = await run_in_thread(lambda _: self._stored_tokens())
            auth = await stored_login(McpTokenFile(site.tokens), self.name, section.url)
        cwd = os.path.join(site.root, section.cwd)
        environment = agent_environment(site.environ, site.redactor)
        return McpStart(self.name, section, secrets, environment, cwd, self._log, auth, can_login)

    def _stored_tokens(self) -> StoredTokens | None:
        return McpTokenFile(self._site.tokens).get(self.name, self.section.url)

    async def _has_new_tokens(self) -> bool:
        try:
            return await run_in_thread(lambda _: self._stored_tokens()) != self._refused
        except ConfigError:  # the next start says what is wrong with the file
            return True
