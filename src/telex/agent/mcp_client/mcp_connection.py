"""One session with one MCP server, on the official SDK: from the start of the server to its end.

One task owns the session, as the SDK requires; other tasks call tools. The session ends when the
server ends it, when telex closes it, or when the server breaks the protocol in a way that the SDK
does not survive. The end is a value, `SessionEnd`, never an exception.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from telex.agent.limits import MCP_LIST_PAGES, MCP_TOOLS
from telex.agent.mcp_client.mcp_http_client import McpHttp
from telex.agent.mcp_client.mcp_process import (
    UNREADABLE,
    McpProcess,
    message_streams,
    started_process,
)
from telex.agent.mcp_client.mcp_result import tool_result
from telex.agent.mcp_client.mcp_session import SessionEnd
from telex.agent.mcp_client.mcp_streams import with_readable_answers
from telex.agent.mcp_client.mcp_tool_list import McpListing, read_listing
from telex.agent.permissions import in_line
from telex.agent.tools.tool import ToolFailed, ToolResult
from telex.config.errors import ConfigError
from telex.processes.shielded import run_in_thread
from telex.processes.spawn import StartFailed
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.mcp_client.mcp_session import McpStart
    from telex.agent.mcp_client.mcp_tool_list import McpTool

_QUOTED: Final = 300
_RELIST_SECONDS: Final = 1.0
"""The shortest time between two requests for the list of tools, however often it changes."""
_RELISTEN_SECONDS: Final = 1.0
"""Wait before a lost stream of changes is opened again."""

for _name in ("mcp", "httpx2"):  # their records quote messages, addresses and tokens
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class _ListLate(Exception):
    """The server said that its tools have changed, and did not list them in time."""


class McpConnection:
    """One session. `run` owns it, in one task; everything else may be called from other tasks."""

    def __init__(self, start: McpStart) -> None:
        self._start = start
        self._client: Client | None = None
        self._stale = asyncio.Event()
        """Set when the server said that its list of tools has changed."""
        self._lost = asyncio.Event()
        """Set when the server no longer knows the session."""
        self._process: McpProcess | None = None
        self._http = McpHttp(start.section.url, self._lost.set)

    async def run(
        self, on_listed: Callable[[McpListing], None], on_lost: Callable[[], None]
    ) -> SessionEnd:
        """Start the server and keep the session. A cancel ends both, and returns when nothing of
        the server runs. `on_listed` gets the tools when the session begins, and when they change;
        `on_lost` is called at the end of a session that had begun, before the rest is ended."""
        section = self._start.section
        try:
            async with asyncio.timeout(None) as starting, AsyncExitStack() as stack:
                starting.reschedule(asyncio.get_running_loop().time() + section.start_seconds)
                await self._open(stack)
                on_listed(await self._list())
                starting.reschedule(None)
                await self._until_ended(on_listed, on_lost)
                if self._process is not None:
                    await self._process.exited()
            return SessionEnd(self._reason("the server ended the session"))
        except TimeoutError:
            return SessionEnd(self._reason(f"it did not start within {section.start_seconds:g} s"))
        except (ConfigError, StartFailed) as error:
            return SessionEnd(self._redacted(str(error)))
        except Exception as error:  # noqa: BLE001  the SDK raises what a hostile server provokes
            return self._failed(error)
        finally:
            self._client = None

    async def _open(self, stack: AsyncExitStack) -> None:
        start, section = self._start, self._start.section
        if section.url:
            # An answer may take as long as a call; the deadline of a call is that of its request.
            longest = max(section.call_seconds, section.start_seconds) + 5.0
            streams = self._http.streams(start.secrets.headers, start.auth, longest)
        else:
            self._process = await stack.enter_async_context(
                started_process(
                    [section.command, *section.args],
                    {**start.environment, **start.secrets.env},
                    start.cwd,
                    start.log,
                    start.secrets.redactor,
                )
            )
            streams = message_streams(self._process)
        self._client = await stack.enter_async_context(
            Client(
                with_readable_answers(streams),
                mode=section.protocol,
                read_timeout_seconds=section.start_seconds,
                client_info=types.Implementation(name="telex", version=__version__),
                message_handler=self._notified,
                cache=None,
            )
        )

    async def _until_ended(
        self, on_listed: Callable[[McpListing], None], on_lost: Callable[[], None]
    ) -> None:
        """Follow changes of the list of tools until the server ends."""
        tasks = [asyncio.create_task(self._follow(on_listed)), asyncio.create_task(self._listen())]
        tasks.append(asyncio.create_task(self._until_lost()))
        try:
            # `_listen` may end without an end of the session; the others do not.
            await asyncio.wait([tasks[0], *tasks[2:]], return_when=asyncio.FIRST_COMPLETED)
        finally:
            on_lost()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _until_lost(self) -> None:
        await (self._lost if self._process is None else self._process.incoming.ended).wait()

    async def _follow(self, on_listed: Callable[[McpListing], None]) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            seconds = self._start.section.start_seconds
            try:
                async with asyncio.timeout(seconds):
                    listing = await self._list()
            except TimeoutError:
                raise _ListLate(f"it did not list its tools within {seconds:g} s") from None
            on_listed(listing)
            await asyncio.sleep(_RELIST_SECONDS)

    async def _listen(self) -> None:
        """Hear of changes as servers of 2026-07-28 tell them: on a stream that the client opens."""
        client = self._client
        if client is None or client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        tools = client.server_capabilities.tools  # a session with a fixed revision knows none
        if tools is not None and not tools.list_changed:
            return
        while True:
            with suppress(SubscriptionLost):
                try:
                    async with client.listen(tools_list_changed=True) as changes:
                        async for _ in changes:
                            self._stale.set()
                except (ListenNotSupportedError, MCPError, TimeoutError) as refused:
                    self._start.log.note(self._redacted(f"it does not tell changes: {refused}"))
                    return
            await asyncio.sleep(_RELISTEN_SECONDS)
            self._stale.set()  # a change may have been missed

    async def _notified(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._stale.set()

    async def _list(self) -> McpListing:
        assert self._client is not None
        listing, left, cursor = McpListing(), MCP_TOOLS, None
        for _ in range(MCP_LIST_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            listing = await self._with_page(listing, page.tools)
            cursor, left = page.next_cursor, left - len(page.tools)
            if cursor is None or left < 0 or listing.is_full:
                break
        return listing

    async def _with_page(self, before: McpListing, page: list[types.Tool]) -> McpListing:
        """Return the tools with those of one more page, of which only what is kept stays in the
        memory."""
        redact = self._start.secrets.redactor.redact
        return await run_in_thread(
            lambda unwanted: read_listing(
                self._start.name,
                ((tool.name, redact(tool.description or ""), tool.input_schema) for tool in page),
                unwanted,
                before,
            )
        )

    async def call(self, tool: McpTool, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool. Raises `ToolFailed`. A cancel is passed on to the server."""
        client, seconds = self._client, self._start.section.call_seconds
        if client is None:
            raise ToolFailed(f"the MCP server {self._start.name} is not connected")
        asked = types.CallToolRequest(
            params=types.CallToolRequestParams(name=tool.title, arguments=arguments)
        )
        try:
            # Not `call_tool`: it drops a result that does not match the schema of the output that
            # the server declared, although the call has had its effect.
            async with asyncio.timeout(seconds):
                result = await client.session.send_request(
                    asked, types.CallToolResult, request_read_timeout_seconds=2 * seconds
                )
        except TimeoutError:
            if self._process is not None:
                self._process.stop_if_deaf()
            raise ToolFailed(
                f"{tool.name} did not answer within {seconds:g} s; the call was cancelled at the "
                f"server {self._start.name}, and may have had its effect"
            ) from None
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED or self._lost.is_set():
                self._lost.set()
                raise ToolFailed(await self._ended_in_call(error.message)) from None
            if error.message == UNREADABLE:
                raise ToolFailed(self._unreadable("no message of the protocol")) from None
            raise ToolFailed(
                f"the MCP server {self._start.name} refused the call: "
                f"{self._redacted(error.message)}"
            ) from None
        except (ValidationError, ValueError, RuntimeError) as error:
            raise ToolFailed(self._unreadable(type(error).__name__)) from None
        redactor = self._start.secrets.redactor
        return await run_in_thread(
            lambda _: tool_result(
                result.content, result.structured_content, bool(result.is_error), redactor
            )
        )

    def _unreadable(self, why: str) -> str:
        return (
            f"the MCP server {self._start.name} sent a result that cannot be read ({why}); "
            "the call may have had its effect"
        )

    async def _ended_in_call(self, why: str) -> str:
        if self._process is not None:
            await self._process.exited()
        return (
            f"the MCP server {self._start.name} ended during the call, which may have had its "
            f"effect: {self._reason(why)}"
        )

    @property
    def is_open(self) -> bool:
        """Whether a call can be made: the session has begun, and the server did not end it."""
        ended = self._process is not None and self._process.incoming.ended.is_set()
        return self._client is not None and not ended and not self._lost.is_set()

    @property
    def protocol(self) -> str:
        """The negotiated revision; empty before the session begins."""
        return "" if self._client is None else self._client.protocol_version

    def _failed(self, error: BaseException) -> SessionEnd:
        causes = list(_causes(error))
        refused = self._http.is_unauthorized or any(
            isinstance(cause, OAuthFlowError) for cause in causes
        )
        if refused and self._start.can_login:
            name = self._start.name
            return SessionEnd(f"a login is needed: telex agent mcp login {name}", needs_login=True)
        if refused:
            return SessionEnd("the server refuses the configured token (401); check it")
        return SessionEnd(self._reason("; ".join(dict.fromkeys(map(_said, causes)))))

    def _reason(self, why: str) -> str:
        """Return how the server ended, if it did, else `why`; and the last words of its process."""
        process = self._process
        parts = (process.end_reason or why, process.last_words) if process else (why,)
        return self._redacted("; ".join(part for part in parts if part))

    def _redacted(self, text: str) -> str:
        return in_line(self._start.secrets.redactor.redact(text)[:_QUOTED])


def _causes(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [cause for inner in error.exceptions for cause in _causes(inner)]
    return [error]


def _said(error: BaseException) -> str:
    """Return the reason in words; of an error of pydantic no value of the server."""
    if isinstance(error, ValidationError):
        return "it sent a message that does not match the protocol"
    if isinstance(error, OSError) and error.strerror:
        return os.strerror(error.errno) if error.errno else error.strerror
    return str(error) or type(error).__name__
