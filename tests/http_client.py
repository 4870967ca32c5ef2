"""A client of `telex.transports.http` for tests: a channel whose frames are sent as POSTs.

telex itself has no such client: an address `http://…` is that of a WebSocket.

Without events, each frame is a POST of its own and the response comes back as a frame. Requests are
sent concurrently, as many as a peer may have open, because a request that waits must not block the
one that would end its wait. The client waits for the response to a notification, so later messages
are served after it. The server cannot send anything on its own, and a call that we give up is
dropped there only when we close.

With `events=True` there is one response that stays open. All frames come back through it, and our
frames are sent to the same conversation, one after the other. It is equivalent to a WebSocket,
where none is possible.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from typing import TYPE_CHECKING, Final

import httpx

from telex.htty.reverse_proxy import OneLengthTransport
from telex.rpc import limits
from telex.transports import responses
from telex.transports.channels import ChannelEnded, QueuedChannel, printable
from telex.transports.errors import AccessDenied, CannotConnect, NoServer
from telex.transports.responses import (
    CONVERSATION,
    JSON,
    LINES,
    FrameKind,
    frame_kind,
    refusal_sentence,
)
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from telex.rpc.channel import Channel


CONNECT_SECONDS: Final = 60.0
SILENCE_SECONDS: Final = 45.0
"""An event stream that is silent this long is dead: the server sends something every 15 s."""
_REFUSAL_BYTES: Final = 4 * 1024


async def connect(url: str, token: str, *, events: bool = False) -> Channel:
    """Open a channel to `http://…/rpc/NAME`. Raises CannotConnect.

    Without `events` nothing is sent before the first frame, and a refusal is the reason with which
    the channel is lost.
    """
    _check(url)
    client = httpx.AsyncClient(
        headers={
            "authorization": f"Bearer {token}",
            "content-type": JSON,
            "accept-encoding": "identity",
        },
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        trust_env=False,  # a proxy for web pages must not see the token
        transport=_transport(),
    )
    if not events:
        return QueuedChannel(_Posts(client, url))
    try:
        return QueuedChannel(_Stream(client, url, await _opened(client, url)))
    except BaseException:
        await client.aclose()
        raise


def _check(url: str) -> None:
    try:
        good = httpx.URL(url).scheme in ("http", "https") and bool(httpx.URL(url).host)
    except httpx.InvalidURL:
        good = False
    if not good:
        url = printable(url)
        raise CannotConnect(f"{url} is not an address of the form http://host:port/rpc/name")


def _transport() -> httpx.AsyncHTTPTransport:
    """Return connections with TCP keep-alive, because no message is sent while we wait."""
    if sys.platform == "darwin":
        idle = socket.TCP_KEEPALIVE
    else:
        idle = socket.TCP_KEEPIDLE
    return OneLengthTransport(
        limits=httpx.Limits(
            max_connections=limits.CALLS_IN_FLIGHT + 1,
            max_keepalive_connections=16,
            keepalive_expiry=3.0,  # less than any server's, so that no POST meets a closed one
        ),
        socket_options=[
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, idle, 20),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        ],
    )


async def _opened(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """Return the response that stays open."""
    timeout = httpx.Timeout(None, connect=CONNECT_SECONDS, read=SILENCE_SECONDS)
    headers = {"accept": responses.EVENT_STREAM}
    request = client.build_request("POST", url, headers=headers, timeout=timeout)
    try:
        response = await client.send(request, stream=True)
    except httpx.HTTPError as error:
        raise NoServer(f"no server answers at {url} ({_named(error)})") from None
    try:
        await _expect(response, responses.EVENT_STREAM)
    except ChannelEnded as refused:
        raise AccessDenied(str(refused)) from None
    return response


class _Posts:
    """A `Pipe` that sends a POST for each frame."""

    binary = False

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url
        self._slots = asyncio.Semaphore(limits.CALLS_IN_FLIGHT)
        self._exchanges: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._answers: asyncio.Queue[bytes | ChannelEnded] = asyncio.Queue(maxsize=1)

    async def read(self) -> bytes:
        answer = await self._answers.get()
        if isinstance(answer, ChannelEnded):
            raise answer
        return answer

    async def write(self, frame: bytes) -> None:
        if frame_kind(frame) is not FrameKind.REQUEST:
            await self._exchange(frame)
            return
        await self._slots.acquire()
        exchange = asyncio.create_task(self._exchange(frame))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._done)

    async def end(self) -> None:
        for exchange in self._exchanges:
            exchange.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges)
        await self._client.aclose()

    def abort(self) -> None:
        """Do nothing: closing a client does not wait for the other side."""

    def _done(self, exchange: asyncio.Task[None]) -> None:
        self._exchanges.discard(exchange)
        self._slots.release()
        if not exchange.cancelled():
            exchange.result()

    async def _exchange(self, frame: bytes) -> None:
        try:
            async with self._client.stream("POST", self._url, content=frame) as response:
                if response.status_code == httpx.codes.ACCEPTED:
                    return
                media_type = await _expect(response, JSON, LINES)
                async with self._turn:  # one response in memory, however many have arrived
                    body = await _body(response)
                    for answer in body.split(b"\n") if media_type == LINES else [body]:
                        await self._answers.put(answer)
        except ChannelEnded as ended:
            await self._answers.put(ended)
        except httpx.HTTPError as error:
            await self._answers.put(
                ChannelEnded(f"the POST to {self._url} failed: {_named(error)}")
            )


class _Stream:
    """A `Pipe` with one open response, and a POST for each frame."""

    binary = False

    def __init__(self, client: httpx.AsyncClient, url: str, response: httpx.Response) -> None:
        self._client = client
        self._url = url
        self._response = response
        self._conversation = {CONVERSATION: response.headers.get(CONVERSATION, "")}
        self._chunks = response.aiter_raw()
        self._decoder = EventStreamDecoder()
        self._frames: deque[bytes] = deque()

    async def read(self) -> bytes:
        while not self._frames:
            try:
                chunk = await anext(self._chunks)
            except StopAsyncIteration:
                raise ChannelEnded("the server ended the conversation") from None
            except httpx.HTTPError as error:
                raise ChannelEnded(f"the event stream was interrupted: {_named(error)}") from None
            self._frames += self._decoder.feed(chunk)
        return self._frames.popleft()

    async def write(self, frame: bytes) -> None:
        try:
            async with self._client.stream(
                "POST", self._url, content=frame, headers=self._conversation
            ) as response:
                if response.status_code != httpx.codes.ACCEPTED:
                    raise ChannelEnded(await _refusal(response))
        except httpx.HTTPError as error:
            raise ChannelEnded(f"the POST to {self._url} failed: {_named(error)}") from None

    async def end(self) -> None:
        await self._response.aclose()
        await self._client.aclose()

    def abort(self) -> None:
        """Do nothing: closing a client does not wait for the other side."""


async def _expect(response: httpx.Response, *media_types: str) -> str:
    """Return the media type. Raises ChannelEnded for others: the port may have another server."""
    if response.status_code != httpx.codes.OK:
        raise ChannelEnded(await _refusal(response))
    found: str = response.headers.get("content-type", "").partition(";")[0]
    if found not in media_types:
        raise ChannelEnded(
            f"{response.url} answered with {printable(found) or 'no type'}; is it telex?"
        )
    return found


async def _refusal(response: httpx.Response) -> str:
    try:
        sentence = refusal_sentence(await _body(response, _REFUSAL_BYTES))
    except ChannelEnded:  # a page of another server
        sentence = ""
    return f"{response.url} refused us: {response.status_code}{sentence}"


async def _body(response: httpx.Response, most: int = wire_limits.LINE_BYTES) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most:
            raise ChannelEnded(f"{response.url} answered with more than {most} bytes")
    return bytes(body)


def _named(error: Exception) -> str:
    """Return the message of an error, or its type name if it has none."""
    return printable(str(error)) or type(error).__name__


class EventStreamDecoder:
    """Decodes frames from the bytes of an event stream, which may be cut anywhere."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that these bytes complete. Raises ChannelEnded for one too long."""
        self._buffer += data
        frames = []
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end]).removesuffix(b"\r")
            del self._buffer[: end + 1]
            self._searched = 0
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                frames.append(b"\n".join(self._data))
                self._data.clear()
        self._searched = len(self._buffer)
        if self._searched + sum(map(len, self._data)) > wire_limits.LINE_BYTES:
            raise ChannelEnded(
                f"the server sent an event of more than {wire_limits.LINE_BYTES} bytes"
            )
        return frames
