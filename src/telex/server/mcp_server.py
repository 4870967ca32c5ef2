"""The MCP server: five tools and the screens of sessions, for clients of both protocol eras.

The handlers serve every connection from one table. An `McpClient` is the context of a client's
calls: where its programs start, who it is, and its subscriptions. On a stream (`telex mcp`, by the
relay) that lasts as long as the connection. Over HTTP it lasts for one request of 2026-07-28, or
for one session of the older versions (`mcp_http`).

Sessions belong to the server, and a call names the session that it uses. So nothing is lost when
the next call arrives over another connection.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from telex.automation.limits import QUOTED_CHARS
from telex.automation.screen_text import cut, one_line, printable
from telex.automation.verb_requests import SeeRequest
from telex.rpc.errors import ENDING, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.identity import UNKNOWN
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.server import limits
from telex.server.mcp_feeds import ChangeFeed, TooManySubscriptions
from telex.server.mcp_protocol import (
    DIALECT,
    HANDSHAKE,
    INSTRUCTIONS,
    INVALID_PARAMS,
    MODERN,
    NO_METHOD,
    NO_RESOURCE,
    OFFERED,
    SCREEN_TEMPLATE,
    SERVER,
    SUBSCRIPTION,
    VERSION,
    CallTool,
    Listen,
    ListPage,
    McpInitialize,
    McpParams,
    OfResource,
    complete,
    is_modern,
    listed,
    screen_uri,
    session_of,
)
from telex.server.mcp_tools import TOOLS, call_tool
from telex.server.verb_answers import VerbFailed, to_text
from telex.server.verb_sessions import NoSuchName

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from telex.automation.server import AutomationService
    from telex.rpc.channel import Channel
    from telex.rpc.identity import Identity
    from telex.server.mcp_policy import McpPolicy
    from telex.server.verb_sessions import VerbSession
    from telex.server.verbs import VerbContext, Verbs
    from telex.terminal.pty import Program

    Confirm = Callable[[str, str], Awaitable[bool | None]]

CONNECT = "mcp.connect"
"""The first message of the relay, on the unix socket."""


class Connect(Struct, frozen=True):
    """The process that runs `telex mcp`: its directory, environment and version."""

    cwd: str
    env: dict[str, str]
    version: str
    initialized: bool = False
    """Whether its client had a handshake, with a server before this one."""


class Connected(Struct, frozen=True, omit_defaults=True):
    """The answer to the relay."""

    problem: str = ""
    """Why this server does not serve the relay."""
    again: bool = False
    """Whether this server ends now, and the relay should start another."""


@dataclass(eq=False)
class McpClient:
    """The context that the calls of one client share. Without more, programs start in the home of
    the server's user and with the server's environment."""

    identity: Identity
    cwd: str = field(default_factory=lambda: os.path.expanduser("~"))
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    feed: ChangeFeed | None = None
    """The subscriptions of a client with a handshake."""
    notify: Callable[[str, Any], Awaitable[None]] | None = None
    """Sends a notification to a client with a handshake; None until it has a way."""

    def close(self) -> None:
        if self.feed is not None:
            self.feed.close()
            self.feed = None


class McpService:
    """Serves MCP on the sessions of one server."""

    def __init__(
        self,
        service: AutomationService,
        verbs: Verbs,
        policy: McpPolicy,
        confirm: Confirm,
        connected: Callable[[Connect], Connected],
    ) -> None:
        """
        Args:
            confirm: Asks the person, with a title and a message; returns None if nobody can be
                asked.
            connected: Decides whether a relay is served.
        """
        self._service = service
        self._verbs = verbs
        self._policy = policy
        self._confirm = confirm
        self._connected = connected
        self._clients: dict[Peer, McpClient] = {}
        self._arriving = McpClient(UNKNOWN)
        """The client whose peer is made at this moment."""
        self._ending = asyncio.Event()
        self._methods = self._table({})
        self._relay_methods = self._table({CONNECT: self._connect})

    def _table(self, more: dict[str, Callable[..., Any]]) -> Methods:
        methods = Methods()
        handlers: dict[str, Callable[..., Any]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
        }
        for name, handler in (handlers | more).items():
            methods.add(name, handler)
        return methods

    async def converse_with_relay(self, channel: Channel, identity: Identity) -> None:
        """Serve a connection of `telex mcp`, which begins with `mcp.connect`.

        Args:
            identity: The process that runs `telex mcp`.
        """
        client = McpClient(identity)
        try:
            await self._converse(channel, client, self._relay_methods)
        finally:
            client.close()

    async def converse(self, channel: Channel, client: McpClient) -> None:
        """Serve the messages of a channel for a client that `mcp_http` knows."""
        await self._converse(channel, client, self._methods)

    async def _converse(self, channel: Channel, client: McpClient, methods: Methods) -> None:
        self._arriving = client
        peer = Peer(
            channel, DIALECT, methods, redact=self._service.redactor.redact, answer_cancelled=False
        )
        self._clients[peer] = client
        try:
            if self._ending.is_set():
                await peer.close(problem=ENDING)
            await peer.closed()
        finally:
            del self._clients[peer]
            await peer.close()

    def _client(self, peer: Peer) -> McpClient:
        """Return the client of a peer, which may serve a first request while it is made."""
        return self._clients.get(peer, self._arriving)

    async def leave(self) -> None:
        """End the subscriptions in an orderly way, and answer pending requests with an error."""
        self._ending.set()
        await asyncio.sleep(0)  # the handlers of `subscriptions/listen` respond
        await asyncio.gather(*[peer.close("the server ended", ENDING) for peer in self._clients])

    # Handshakes.

    def _connect(self, asked: Connect, call: CallContext) -> Connected:
        client = self._client(call.peer)
        if client.notify is not None:
            raise RpcError(NO_METHOD, f"{CONNECT} is for the relay alone.")
        client.cwd, client.env = asked.cwd, asked.env
        client.notify = call.peer.notify
        if asked.initialized:
            self._followed_by(client)
        return self._connected(asked)

    def _initialize(self, asked: McpInitialize, call: CallContext) -> dict[str, Any]:
        self._followed_by(self._client(call.peer))
        return {
            "protocolVersion": asked.version if asked.version in HANDSHAKE else HANDSHAKE[0],
            "capabilities": OFFERED,
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }

    def _ping(self, asked: McpParams, call: CallContext) -> dict[str, Any]:
        _only_with_handshake(asked, call)
        return {}

    def _discover(self, asked: McpParams) -> dict[str, Any]:
        _only_modern(asked)
        facts = {"capabilities": OFFERED, "instructions": INSTRUCTIONS}
        return listed({"supportedVersions": [MODERN], **facts}, seconds=3600)

    # Tools.

    def _list_tools(self, asked: ListPage) -> dict[str, Any]:
        result = {"tools": [tool.listed() for tool in TOOLS.values()]}
        return listed(result, seconds=3600) if is_modern(asked.meta) else result

    async def _call_tool(self, asked: CallTool, call: CallContext) -> dict[str, Any]:
        modern = is_modern(asked.meta)
        tool = TOOLS.get(asked.name)
        if tool is None:
            known = ", ".join(TOOLS)
            named = cut(asked.name, QUOTED_CHARS)
            raise RpcError(INVALID_PARAMS, f"There is no tool {named!r}; there are {known}.")
        with self._called_by(call) as context:
            result = await call_tool(tool, asked.arguments or {}, self._verbs, context)
        return complete(result) if modern else result

    def _called_by(self, call: CallContext) -> AbstractContextManager[VerbContext]:
        client = self._client(call.peer)
        return self._verbs.called_by(
            client.identity,
            client.cwd,
            client.env,
            check_open=self._check_open,
            check_use=self._check_use,
        )

    # Policy.

    async def _check_open(self, program: Program, changes: Iterable[tuple[str, str]]) -> None:
        where = program.argv, program.env, program.cwd or "/"
        if refusal := self._policy.refusal(*where) or self._policy.environment_refusal(changes):
            raise VerbFailed(4, f"{refusal}; ask the person to change that, or use another program")
        if not self._policy.must_confirm(*where):
            return
        line = one_line(self._service.redactor.redact(" ".join(program.argv)))
        try:
            async with asyncio.timeout(limits.CONFIRM_SECONDS):
                agreed = await self._confirm("An MCP client opens a program", f"Open: {line}")
        except TimeoutError:
            agreed = None
        if agreed:
            return
        if agreed is None:
            raise VerbFailed(
                4,
                f"{program.argv[0]} needs the agreement of the person, and nobody answered. Ask "
                f"the person to run `telex open -- {line}`; its session can then be used",
            )
        raise VerbFailed(4, f"the person refused to open {program.argv[0]}; do not try it again")

    def _check_use(self, one: VerbSession) -> None:
        program = one.session.program
        if refusal := self._policy.refusal(program.argv, program.env, program.cwd or "/"):
            raise VerbFailed(4, f"the session {one.name!r} may not be used: {refusal}")

    # Resources.

    def _list_resources(self, asked: ListPage) -> dict[str, Any]:
        result = {
            "resources": [
                {
                    "uri": screen_uri(one.name),
                    "name": one.name,
                    "description": f"The screen of {one.program}, {one.state}",
                    "mimeType": "text/plain",
                }
                for one in self._usable()
            ]
        }
        return listed(result) if is_modern(asked.meta) else result

    def _usable(self) -> Iterator[VerbSession]:
        for one in self._verbs.sessions():
            program = one.session.program
            if not self._policy.refusal(program.argv, program.env, program.cwd or "/"):
                yield one

    def _list_templates(self, asked: ListPage) -> dict[str, Any]:
        screen = {
            "uriTemplate": SCREEN_TEMPLATE,
            "name": "screen",
            "description": "The screen of a session, as text",
            "mimeType": "text/plain",
        }
        result = {"resourceTemplates": [screen]}
        return listed(result, seconds=3600) if is_modern(asked.meta) else result

    async def _read_resource(self, asked: OfResource, call: CallContext) -> dict[str, Any]:
        modern = is_modern(asked.meta)
        one = self._session(asked.uri, modern)
        with self._called_by(call) as context:
            try:
                seen = await self._verbs.perform(SeeRequest(one.name), context)
            except VerbFailed as failed:
                raise RpcError(INVALID_PARAMS, cut(str(failed), limits.FACT_CHARS)) from None
        screen = cut(printable(seen.screen), limits.RESULT_CHARS)
        text = to_text(seen.line, screen, fence=True, title=cut(seen.title, QUOTED_CHARS))
        text = text.rstrip("\n")
        result = {"contents": [{"uri": asked.uri, "mimeType": "text/plain", "text": text}]}
        return listed(result) if modern else result

    def _session(self, uri: str, modern: bool) -> VerbSession:
        """Return the session of an address. Raises RpcError."""
        name, shown = session_of(uri), cut(uri, QUOTED_CHARS)
        try:
            if name is not None:
                one = self._verbs.find(name)
                self._check_use(one)
                return one
            problem = f"{shown!r} is no resource; there are addresses like {SCREEN_TEMPLATE}"
        except (NoSuchName, VerbFailed) as error:
            problem = cut(str(error), limits.FACT_CHARS)
        raise RpcError(INVALID_PARAMS if modern else NO_RESOURCE, problem, {"uri": shown})

    # Subscriptions.

    def _subscribe(self, asked: OfResource, call: CallContext) -> dict[str, Any]:
        feed = self._feed(asked, call)
        try:
            feed.follow(asked.uri, self._session(asked.uri, modern=False))
        except TooManySubscriptions as many:
            raise RpcError(INVALID_PARAMS, str(many)) from None
        return {}

    def _unsubscribe(self, asked: OfResource, call: CallContext) -> dict[str, Any]:
        self._feed(asked, call).unfollow(asked.uri)
        return {}

    def _feed(self, asked: OfResource, call: CallContext) -> ChangeFeed:
        _only_with_handshake(asked, call)
        feed = self._followed_by(self._client(call.peer))
        if feed is None:
            raise RpcError(INVALID_PARAMS, "A subscription needs an `initialize` before it.")
        return feed

    def _followed_by(self, client: McpClient) -> ChangeFeed | None:
        """Return the subscriptions of a client; None if there is no way to notify it. The relay may
        have connected again after its client's handshake, so this does not depend on that."""
        if client.feed is None and client.notify is not None:
            client.feed = ChangeFeed(self._service, client.notify, lists=True)
        return client.feed

    async def _listen(self, asked: Listen, call: CallContext) -> dict[str, Any]:
        """Notify until the client cancels the request, or the server ends."""
        _only_modern(asked)
        meta = {SUBSCRIPTION: call.id}

        async def notify(method: str, params: dict[str, Any]) -> None:
            await call.peer.notify(method, {**params, "_meta": meta})

        wanted = asked.notifications
        feed = ChangeFeed(self._service, notify, lists=bool(wanted.lists))
        try:
            for uri in wanted.uris or ():
                try:
                    feed.follow(uri, self._session(uri, modern=True))
                except (RpcError, TooManySubscriptions):
                    continue  # the acknowledgement has only what is followed
            honoured: dict[str, Any] = {"resourcesListChanged": True} if wanted.lists else {}
            if feed.uris:
                honoured["resourceSubscriptions"] = feed.uris
            await notify("notifications/subscriptions/acknowledged", {"notifications": honoured})
            await self._ending.wait()
        finally:
            feed.close()
        return complete({"_meta": meta})


def _only_modern(asked: McpParams) -> None:
    """Raise for a request without the members of 2026-07-28."""
    if not is_modern(asked.meta):
        raise RpcError(INVALID_PARAMS, f"`params._meta` has no member `{VERSION}`.")


def _only_with_handshake(asked: McpParams, call: CallContext) -> None:
    """Raise for a request of 2026-07-28, which has no such method."""
    if is_modern(asked.meta):
        raise RpcError(NO_METHOD, f"The protocol {MODERN} has no method {call.method!r}.")
