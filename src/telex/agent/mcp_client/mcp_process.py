"""The process of an MCP server, and its standard streams as the SDK's transport.

`telex.processes` starts and ends the process, with everything that it started: behind a reaper, so
that a server that forks, leaves its group or ignores signals leaves no process either. The SDK gets
two streams of messages. A line that is no message goes to the log, as many servers print a greeting
on standard output. A line that answers a request and cannot be read becomes an error of that
request, so that it fails at once and not at its deadline. A server that sends without an end is
stopped.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import deque
from contextlib import asynccontextmanager, suppress
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any, Final, Self, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from telex.agent.limits import (
    MCP_BUFFERED_BYTES,
    MCP_EXIT_SECONDS,
    MCP_UNASKED_BYTES,
    MCP_UNASKED_MESSAGES,
)
from telex.plugins.dialect import escape_controls
from telex.plugins.plugin_process import StderrReader
from telex.processes import spawn
from telex.processes.shielded import run_shielded
from telex.processes.termination import Rung, TreeSurvived
from telex.transports import stdio
from telex.transports.channels import NDJSON, FramedChannel
from telex.wire.events import Fault, Frame
from telex.wire.limits import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from io import FileIO
    from types import TracebackType

    from mcp_types import JSONRPCMessage

    from telex.agent.mcp_client.mcp_log import McpLog
    from telex.processes.child import Child
    from telex.processes.termination import Ladder
    from telex.redaction import Redactor
    from telex.wire.events import Event

_LADDER: Final[Ladder] = (Rung(SIGTERM, MCP_EXIT_SECONDS), Rung(SIGKILL, 5.0))
_QUOTED: Final = 200
UNREADABLE: Final = "its answer cannot be read"
"""The message of the error that takes the place of such an answer."""
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape in a text of JSON: a pair of surrogates, a lone one, or another."""
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID: Final = rb'"id"\s*:\s*(?P<id>\d{1,18}|"[^"\\]{1,100}")'
_ANSWER: Final = rb'"(?:result|error)"\s*:'
_ID_FIRST: Final = re.compile(
    rb"\s*\{\s*(?:%(v)s\s*,\s*)?%(id)s\s*,\s*(?:%(v)s\s*,\s*)?%(answer)s"
    % {b"v": _VERSION, b"id": _ID, b"answer": _ANSWER}
)
_ANSWER_FIRST: Final = re.compile(rb"\s*\{\s*(?:%s\s*,\s*)?%s" % (_VERSION, _ANSWER))
_ID_LAST: Final = re.compile(rb",\s*%s\s*(?:,\s*%s\s*)?\}\s*\Z" % (_ID, _VERSION))
_END_BYTES: Final = 300
_MENDED_BYTES: Final = 1 * MIB
"""A longer line is not mended, because that blocks the event loop."""
_LONG_BYTES: Final = 64 * KIB
_NOTED_BYTES: Final = 4096


class McpProcess:
    """The process of one server, with the two streams of the SDK."""

    def __init__(self, child: Child, log: McpLog, redactor: Redactor) -> None:
        self._child = child
        self._log = log
        self._redactor = redactor
        self._channel = FramedChannel(NDJSON)
        self._stderr = StderrReader("stderr", log.write, redactor)
        self._errors: asyncio.ReadTransport | None = None
        self._attached = False
        self.incoming = _Incoming(self._channel, self._garbage)
        self.outgoing = _Outgoing(self._channel, self.incoming)

    async def attach(self) -> None:
        """Connect the pipes to the event loop."""
        loop = asyncio.get_running_loop()
        pipes = [cast("FileIO", one) for one in (self._child.stdout, self._child.stdin)]
        errors = cast("FileIO", self._child.stderr)
        file = os.fdopen(os.dup(errors.fileno()), "rb", buffering=0)
        self._errors, _ = await loop.connect_read_pipe(lambda: self._stderr, file)
        errors.close()
        source, sink = (os.dup(pipe.fileno()) for pipe in pipes)
        for pipe in pipes:
            pipe.close()
        await stdio.attach(self._channel, source, sink)
        self._attached = True
        self._channel.open(self.incoming)

    @property
    def end_reason(self) -> str:
        """How the server ended the conversation; empty if telex did."""
        if not self.incoming.was_ended or self.incoming.fault:
            return self.incoming.fault
        return f"its process {self._child.exit}" if self._child.exit else "its output ended"

    def stop_if_deaf(self) -> None:
        """End the conversation if the server has not read what was sent: nothing that is sent later
        would reach it either."""
        if self._channel.unsent:
            self.incoming.stop("it does not read its input, and was stopped")

    @property
    def last_words(self) -> str:
        """The last line of standard error, for a message about the end."""
        line = next((line for line in reversed(self._stderr.last) if line.strip()), "")
        return f"its last words: {line.strip()[:_QUOTED]}" if line else ""

    async def exited(self) -> None:
        """Wait until the process has exited, or its output has ended. Return when both are so, or
        soon after the first."""
        await self.incoming.ended.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(MCP_EXIT_SECONDS):
                await self._child.wait()
                await self._stderr.ended.wait()

    async def end(self) -> None:
        """Close standard input, wait for the exit, then end the whole tree. Nothing of the server
        runs when this returns, also if it is cancelled."""
        await run_shielded(self._end())

    async def _end(self) -> None:
        self.incoming.close()
        try:
            if self._attached:
                await self._channel.close()
                with suppress(TimeoutError):
                    async with asyncio.timeout(MCP_EXIT_SECONDS):
                        await self._child.wait()
            await self._child.end(_LADDER)
        except TreeSurvived as survived:
            self._log.note(f"a process is left: {survived}")
        finally:
            if self._errors is not None:
                with suppress(TimeoutError):  # a process of another user may have it open
                    async with asyncio.timeout(MCP_EXIT_SECONDS):
                        await self._stderr.ended.wait()
                self._errors.close()
                await self._stderr.ended.wait()
            for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
                if pipe is not None:
                    pipe.close()

    def _garbage(self, line: bytes) -> None:
        beginning = line[:_NOTED_BYTES].decode("utf-8", "replace")
        text = escape_controls(self._redactor.redact(beginning))
        self._log.write(f"[stdout] {text[:_QUOTED]}")


def _read(line: bytes) -> SessionMessage | None:
    """Return the message of a line. For an answer that cannot be read it is an error."""
    for form in (bytes, _mended) if len(line) <= _MENDED_BYTES else (bytes,):
        with suppress(ValueError):
            return SessionMessage(_message(form(line)))
    if (id := _answered(line)) is None:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=UNREADABLE)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error))


def _message(line: bytes) -> JSONRPCMessage:
    """Return the message of a line. Raises `ValueError`."""
    if len(line) > _LONG_BYTES and (_ID_FIRST.match(line) or _ANSWER_FIRST.match(line)):
        # The SDK reads a line as each kind of message in turn, which takes seconds for a long one.
        with suppress(ValueError):
            return JSONRPCResponse.model_validate_json(line, by_name=False)
    return jsonrpc_message_adapter.validate_json(line, by_name=False)


def _mended(line: bytes) -> bytes:
    """Return the line with U+FFFD in place of lone surrogates and of bytes that are not UTF-8."""
    whole = line.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["lone"] else found[0], whole)


def _answered(line: bytes) -> int | str | None:
    """Return the id of the request that a line answers, from its beginning or its end."""
    found = _ID_FIRST.match(line)
    if found is None and _ANSWER_FIRST.match(line):
        found = _ID_LAST.search(line[-_END_BYTES:])
    id: int | str | None = None if found is None else json.loads(found["id"])
    return id


@asynccontextmanager
async def started_process(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, log: McpLog, redactor: Redactor
) -> AsyncIterator[McpProcess]:
    """Start the process of a server; the end of the block ends it. Raises `spawn.StartFailed`."""
    process = McpProcess(spawn.start(argv, env=env, cwd=cwd, reaping=True), log, redactor)
    try:
        await run_shielded(process.attach())
        yield process
    finally:
        await process.end()


@asynccontextmanager
async def message_streams(process: McpProcess) -> AsyncIterator[tuple[Any, Any]]:
    """Give the SDK its two streams, as its transports do."""
    yield process.incoming, process.outgoing


class _Stream:
    """The context manager that the SDK expects of both streams."""

    async def aclose(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Incoming(_Stream):
    """Messages of the server: a receiver of a channel, and a read stream of the SDK.

    The channel is paused while too many bytes wait. Each message yields to the event loop once, so
    that a flood does not stop everything else.
    """

    def __init__(self, channel: FramedChannel, garbage: Callable[[bytes], None]) -> None:
        self._channel = channel
        self._garbage = garbage
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._messages = 0
        self._bytes = 0
        self.ended = asyncio.Event()
        self.was_ended = False
        """Whether the server ended its output, before telex closed it."""
        self.fault = ""
        """Why telex ended the conversation."""

    def asked(self) -> None:
        """Note that a tool was called, after which the server may send much again. Other messages
        do not count: the server can make telex send those without an end."""
        self._messages = self._bytes = 0

    def close(self) -> None:
        """Deliver nothing more."""
        self._waiting.clear()
        self.ended.set()
        self._arrived.set()

    def stop(self, why: str) -> None:
        """End the conversation."""
        self.fault = self.fault or why
        self.close()

    # The channel's side.

    def received(self, events: list[Event]) -> None:
        for event in events:
            self._messages += 1
            if isinstance(event, Frame):
                self._bytes += len(event.body)
                if not self.ended.is_set():
                    self._waiting.append(event.body)
                    self._size += len(event.body)
            elif isinstance(event, Fault):
                self._garbage(event.detail.encode())
        if self._messages > MCP_UNASKED_MESSAGES or self._bytes > MCP_UNASKED_BYTES:
            self.stop("it sends without an end, and was stopped")
        if self.ended.is_set() or self._size > MCP_BUFFERED_BYTES:
            self._channel.pause()
        self._arrived.set()

    def finished(self) -> None:
        self.was_ended = self.was_ended or not self.ended.is_set()
        self.ended.set()
        self._arrived.set()

    def lost(self, why: str) -> None:
        self.finished()

    # The side of the SDK.

    async def receive(self) -> SessionMessage:
        while True:
            await asyncio.sleep(0)
            while not self._waiting:
                if self.ended.is_set():
                    raise anyio.EndOfStream
                self._arrived.clear()
                await self._arrived.wait()
            line = self._waiting.popleft()
            self._size -= len(line)
            if self._size <= MCP_BUFFERED_BYTES and not self.ended.is_set():
                self._channel.resume()
            if (message := _read(line)) is not None:
                return message
            self._garbage(line)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Outgoing(_Stream):
    """Messages to the server: a write stream of the SDK."""

    def __init__(self, channel: FramedChannel, incoming: _Incoming) -> None:
        self._channel = channel
        self._incoming = incoming

    async def send(self, item: SessionMessage, /) -> None:
        if self._incoming.ended.is_set():
            raise anyio.BrokenResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        if isinstance(item.message, JSONRPCRequest) and item.message.method == "tools/call":
            self._incoming.asked()
        self._channel.send(text.encode("utf-8", "replace"))
        # A notification is short and rare. That of a cancel must not keep a cancelled call waiting
        # for a server that does not read.
        if not isinstance(item.message, JSONRPCNotification):
            await self._channel.drained()
