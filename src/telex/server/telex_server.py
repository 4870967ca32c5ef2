"""The one server: it composes sessions, adapters, escapes, pages, the agent and the verbs.

All listeners share the sessions. On HTTP the path chooses the protocol of a connection. On the unix
socket the first message does: `initialize` begins a conversation with the agent, `mcp.connect` one
with an MCP client, and anything else is automation, which has no such methods.

The agent is built when the first connection asks for it: a server that only drives terminals opens
no database. A server that was started on demand ends by itself when it has held nothing for a while
(`IdleExit`).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from telex.adapters.server import AutomationServer
from telex.automation.error_map import UnknownSession
from telex.automation.notices import Connection
from telex.automation.protocol import NoParams
from telex.automation.verb_protocol import (
    FACTS,
    LEASE_END,
    OfTerminal,
    RunVerb,
    TypingFacts,
    VerbFailure,
    VerbOutput,
)
from telex.automation.verb_protocol import METHOD as RUN_VERB
from telex.escapes.escape_sessions import EscapeSessions, NoEscapes
from telex.htty.session_pages import PagesExtension
from telex.processes import proc
from telex.processes.shielded import run_shielded
from telex.rpc.errors import Condition, PeerGone, RpcError
from telex.rpc.identity import Identity
from telex.server.mcp_policy import McpPolicy
from telex.server.verb_calls import VerbCall, run_call, run_for_parts
from telex.server.verb_client import ANSWER_SECONDS
from telex.server.verb_sessions import NoSuchName
from telex.server.verbs import Verbs
from telex.transports.channels import printable
from telex.transports.http import HttpProtocol, NoSuchSession, SessionProtocol
from telex.version import __version__
from telex.wire.events import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from starlette.types import Receive, Scope, Send

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.agent.server import AgentServer
    from telex.automation.server import AutomationService
    from telex.redaction import Redactor
    from telex.rpc.channel import Channel
    from telex.server.mcp_http import McpEndpoint
    from telex.server.mcp_server import Connect, Connected, McpService
    from telex.transports.channels import FramedChannel
    from telex.transports.http import Serve

    OpenAgent = Callable[[], AbstractAsyncContextManager[AgentServer]]

IDLE_SECONDS: Final = 600.0
"""How long a server that was started on demand lives without sessions, runs and connections."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server, besides its listeners and the agent's."""

    plugins: tuple[LuaPlugin, ...] = ()
    may_load: bool = False
    """Whether clients may load adapters."""
    lenient: bool = False
    """Whether requests with unknown parameters are served."""
    gateway_port: int = 0
    serial: bool = False
    """Whether the requests of a connection to automation are served one at a time."""
    mcp_policy: McpPolicy = field(default_factory=McpPolicy)
    on_demand: bool = False
    """Whether a verb started it: it ends by itself when it is idle."""


class ServerStatus(Struct, frozen=True):
    """The process of the server, and the number of things that it holds."""

    version: str
    pid: int
    uptime_s: int
    connections: int
    sessions: int
    runs: int
    """Active runs of the agent."""


class Stopping(Struct, frozen=True):
    """The server ends after this answer."""

    stopping: bool
    sessions: int


class IdleExit:
    """Calls `stop` when nothing has been held for a while. Time comes from the event loop."""

    def __init__(self, seconds: float, holds: Callable[[], bool], stop: Callable[[], None]) -> None:
        self._seconds = seconds
        self._holds = holds
        self._stop = stop
        self._timer: asyncio.TimerHandle | None = None
        self.check()

    def check(self) -> None:
        """Begin to count if nothing is held, and stop counting if something is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._holds():
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._stop)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class TelexServer:
    """All protocols of one process. Call `close()` at the end."""

    def __init__(
        self,
        options: ServerOptions,
        redactor: Redactor,
        open_agent: OpenAgent,
        stop: Callable[[], None],
    ) -> None:
        """Create it in a running event loop.

        Args:
            open_agent: Opens the agent, for the first connection that asks for it.
            stop: Ends the process in an orderly way; returns at once.
        """
        self.automation = AutomationServer(
            options.plugins,
            redactor=redactor,
            may_load=options.may_load,
            lenient=options.lenient,
            extend=(self._add_escapes, partial(PagesExtension, port=options.gateway_port)),
        )
        self.verbs = Verbs(self.automation)
        self._serial = options.serial
        self._open_agent = open_agent
        self._agent: AgentServer | None = None
        self._opening_agent = asyncio.Lock()
        self._policy = options.mcp_policy
        self._mcp_server: McpService | None = None
        self._mcp_endpoint: McpEndpoint | None = None
        self._closing = AsyncExitStack()
        self._stop = stop
        self._started = time.monotonic()
        self._connections = 0
        service = self.automation.automation
        service.add_handlers(
            {
                RUN_VERB: self._run_verb,
                FACTS: self._verb_facts,
                LEASE_END: self._lease_end,
                "server.status": self._status,
                "server.stop": self._stop_by_request,
            }
        )
        service.closers.add(lambda _: self._idle_check())
        self._idle = (
            IdleExit(IDLE_SECONDS, self._holds_anything, stop) if options.on_demand else None
        )

    def _add_escapes(self, service: AutomationService) -> EscapeSessions:
        self._escapes = EscapeSessions(service)
        return self._escapes

    # Connections.

    async def converse_on_socket(self, channel: FramedChannel) -> None:
        """Serve a connection of the unix socket, whose first message chooses the protocol."""
        with self._counted():
            first = await channel.first_event()
            match _method(first.body) if isinstance(first, Frame) else "":
                case "initialize":
                    await (await self._agent_server()).converse(channel)
                case "mcp.connect":
                    await self._mcp().converse_with_relay(channel, _caller(channel.identity))
                case _:
                    await self.automation.converse(channel, one_at_a_time=self._serial)

    async def converse_automation(self, channel: Channel) -> None:
        """Serve a connection that speaks automation."""
        with self._counted():
            await self.automation.converse(channel, one_at_a_time=self._serial)

    async def converse_agent(self, channel: Channel) -> None:
        """Serve a connection that speaks to the agent."""
        with self._counted():
            await (await self._agent_server()).converse(channel)

    async def converse_escapes(self, session: str, channel: Channel) -> None:
        """Serve a connection that speaks JSON escapes with the terminal of a session."""
        with self._counted():
            await self._escapes.serve(session, channel)

    async def serve_mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of an MCP client over HTTP."""
        if self._mcp_endpoint is None:
            from telex.server.mcp_http import McpEndpoint

            self._mcp_endpoint = McpEndpoint(self._mcp())
        with self._counted():
            await self._mcp_endpoint(scope, receive, send)

    def _mcp(self) -> McpService:
        """Return the MCP server, which is loaded when the first client connects."""
        if self._mcp_server is None:
            from telex.server.mcp_server import McpService

            service = self.automation.automation
            self._mcp_server = McpService(
                service, self.verbs, self._policy, self._ask_person, self._accept_relay
            )
        return self._mcp_server

    def _accept_relay(self, asked: Connect) -> Connected:
        from telex.server.mcp_server import Connected

        problem, again = self._outdated(asked.version)
        return Connected(problem, again)

    async def _ask_person(self, title: str, message: str) -> bool | None:
        """Ask at every UI of the agent; None if none can be asked."""
        return None if self._agent is None else await self._agent.confirm(title, message)

    def on_http(self) -> dict[str, Serve | SessionProtocol | HttpProtocol]:
        """Return the protocols by the name in their path."""
        return {
            "automation": self.converse_automation,
            "agent": self.converse_agent,
            "escapes": SessionProtocol(self._check_escapes, self.converse_escapes),
            "mcp": HttpProtocol("/mcp", ("POST", "GET", "DELETE"), self.serve_mcp),
        }

    def _check_escapes(self, session: str) -> None:
        try:
            self._escapes.check(session)
        except (UnknownSession, NoEscapes) as error:
            raise NoSuchSession(str(error)) from None

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a connection while it is served."""
        self._connections += 1
        self._idle_check()
        try:
            yield
        finally:
            self._connections -= 1
            self._idle_check()

    async def leave(self) -> None:
        """Answer pending requests with an error that the server ends; end the agent's runs."""
        if self._mcp_endpoint is not None:
            self._mcp_endpoint.close()
        if self._mcp_server is not None:
            await self._mcp_server.leave()
        if self._agent is not None:
            await self._agent.close()
        await self.automation.leave()

    async def close(self) -> None:
        """End everything."""
        if self._idle is not None:
            self._idle.close()
        try:
            await self.verbs.close()
            await self._closing.aclose()
        finally:
            await self.automation.close()

    async def _agent_server(self) -> AgentServer:
        async with self._opening_agent:
            if self._agent is None:
                self._agent = await run_shielded(
                    self._closing.enter_async_context(self._open_agent())
                )
            return self._agent

    # What is held.

    def _sessions(self) -> int:
        return len(self.automation.automation.session_ids())

    def _runs(self) -> int:
        return 0 if self._agent is None else len(self._agent.runtime.runs)

    def _holds_anything(self) -> bool:
        return bool(self._connections or self._sessions() or self._runs())

    def _idle_check(self) -> None:
        if self._idle is not None:
            self._idle.check()

    # Methods beside those of automation.

    def _status(self, asked: NoParams, who: Connection) -> ServerStatus:
        """Return the version, the process and what is held."""
        return ServerStatus(
            __version__,
            os.getpid(),
            round(time.monotonic() - self._started),
            self._connections,
            self._sessions(),
            self._runs(),
        )

    def _stop_by_request(self, asked: NoParams, who: Connection) -> Stopping:
        """End the server and every program in it, after this answer."""
        asyncio.get_running_loop().call_soon(self._stop)
        return Stopping(True, self._sessions())

    async def _run_verb(self, asked: RunVerb, who: Connection) -> VerbOutput:
        """Run a verb. `verb.deadline` says how long it may take.

        The first one is sent before the verb begins: a caller whose connection ends before it
        arrives may repeat the call, and one that has received it may not.
        """
        if asked.argv[:1] not in (("list",), ("close",)):
            problem, again = self._outdated(asked.version)
            if problem:
                failure = VerbFailure(1, problem) if asked.parts and not again else None
                return VerbOutput(0 if again else 1, "", f"{problem}\n", again, failure=failure)
        sending: set[asyncio.Task[None]] = set()

        async def tell(seconds: float) -> None:
            if who.peer is not None:
                await who.peer.notify("verb.deadline", {"seconds": seconds})

        async def tell_if_there(seconds: float) -> None:
            with suppress(PeerGone):  # the caller was interrupted, and its verb ends
                await tell(seconds)

        def announce(seconds: float) -> None:
            task = asyncio.create_task(tell_if_there(seconds))
            sending.add(task)
            task.add_done_callback(sending.discard)

        await tell(ANSWER_SECONDS)
        # A process that asks for parts stays connected; the one of a command line lives for a call.
        caller = who.identity if asked.parts else _caller(who.identity)
        call = VerbCall(asked.argv, asked.cwd, asked.env, asked.stdin, caller, asked.expected)
        return await (run_for_parts if asked.parts else run_call)(self.verbs, call, announce)

    async def _verb_facts(self, asked: OfTerminal, who: Connection) -> TypingFacts:
        """Return who reads the next input of a session."""
        try:
            return await self.verbs.facts(asked.session, who.identity)
        except NoSuchName as error:
            raise RpcError(Condition.PARAMS, str(error)) from None

    async def _lease_end(self, asked: OfTerminal, who: Connection) -> NoParams:
        """Wait until no other connection holds the lease of a session. The caller ends the wait."""
        await self.automation.automation.lease_ended(self.verbs.find(asked.session).id, who)
        return NoParams()

    def _outdated(self, version: str) -> tuple[str, bool]:
        """Return a sentence for a caller that is newer than this server, empty for any other, and
        whether this server ends now, so that the caller can start a new one."""
        if not _is_newer(version, __version__):
            return "", False
        both = f"telex: the running server is telex {__version__}, and this is telex {version}"
        if not (self._sessions() or self._runs()):
            self._stop()
            return f"{both}; it held nothing and is replaced", True
        return (
            f"{both}; it holds {self._sessions()} sessions and {self._runs()} runs. Close them "
            "(`telex list`, `telex close --all`), or end everything with `telex server stop`; then "
            "call again"
        ), False


def _caller(identity: Identity) -> Identity:
    """Return who ran `telex`: the parent of a client process, which itself lives for one call."""
    if identity.pid is None:
        return identity
    try:
        parent = proc.stat(identity.pid).parent
        return Identity("process", printable(proc.stat(parent).name), parent, identity.uid)
    except OSError:  # the client has ended, or there is no /proc
        return identity


class _Method(Struct):
    method: str = ""


def _method(frame: bytes) -> str:
    """Return the method of a message; nothing for one that automation will refuse."""
    try:
        return msgspec.json.decode(frame, type=_Method).method
    except msgspec.DecodeError:
        return ""


def _is_newer(version: str, than: str) -> bool:
    return _numbers(version) > _numbers(than)


_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?:\.dev(\d{1,9}))?")


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; a development version sorts before its release, and what is
    no version before all."""
    if (found := _VERSION.fullmatch(version)) is None:
        return ()
    major, minor, patch, dev = found.groups()
    return int(major), int(minor), int(patch or 0), 1 << 30 if dev is None else int(dev)
