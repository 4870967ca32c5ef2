"""Calls a language model over HTTP: sends the request, reads the stream, retries.

The dialect does the reading and writing; here are the connection, its deadlines, the retries and
the key. Every failure that leaves this file has had the key removed from its message.
"""

from __future__ import annotations

import asyncio
import contextlib
import random as random_numbers
import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import httpx
import msgspec

from telex.agent.limits import (
    MODEL_CONNECT_SECONDS,
    MODEL_END_SECONDS,
    MODEL_ERROR_BYTES,
    MODEL_FIRST_SECONDS,
    MODEL_SILENCE_SECONDS,
)
from telex.agent.messages import ImagePart, TextDelta, TextPart, replace_images
from telex.agent.models import Finished, Retrying, ToolCallReady
from telex.agent.models.errors import (
    AnswerTooLarge,
    ModelFailure,
    ModelTimedOut,
    ModelUnreachable,
    RequestRefused,
    StreamEndedEarly,
)
from telex.agent.models.http_failures import failure_of_status
from telex.agent.models.model_dialect import Spelling, to_base64
from telex.agent.models.retry import RetryPolicy, retry_after
from telex.agent.models.sse_reader import SseReader, StreamTooLarge
from telex.agent.models.token_estimate import estimate_request
from telex.redaction import MARKER, Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from telex.agent.models import ModelEvent, ModelRequest
    from telex.agent.models.model_dialect import AnswerDecoder, ModelDialect
    from telex.agent.protocol.sessions import ModelDetails

_KEY_PART_CHARS: Final = 8
"""Part of a key that is not shown. Fewer characters may be a word: `sk-ant-`."""
GONE: Final = TextPart("[image no longer stored]")
LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class ModelDeadlines:
    """How long to wait for a server, in seconds."""

    first: float = MODEL_FIRST_SECONDS
    """Until the first bytes of an answer."""
    silence: float = MODEL_SILENCE_SECONDS
    """Between two pieces of it."""


@dataclass(frozen=True, slots=True)
class World:
    """The clock, the chance and the images that a client uses, so that tests can give others."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random_numbers.random
    now: Callable[[], float] = time.time
    load_image: Callable[[str], Awaitable[bytes]] | None = None
    """Returns the bytes of an image by its reference. Raises `OSError`; a model gets a text in
    place of an image with `FileNotFoundError`."""


DEFAULT_POLICY: Final = RetryPolicy()
DEFAULT_DEADLINES: Final = ModelDeadlines()
REAL_WORLD: Final = World()


class HttpModel:
    """A language model behind an HTTP server. Close it with `aclose`."""

    def __init__(
        self,
        name: str,
        dialect: ModelDialect,
        base_url: str,
        spelling: Spelling,
        details: ModelDetails,
        key: Callable[[], Awaitable[str]],
        *,
        policy: RetryPolicy = DEFAULT_POLICY,
        deadlines: ModelDeadlines = DEFAULT_DEADLINES,
        world: World = REAL_WORLD,
    ) -> None:
        """Nothing is sent before the first call.

        Args:
            key: Returns the key for the provider, or an empty text; asked before each call.
        """
        self.name = name
        self.details = details
        self._dialect = dialect
        self._url = base_url.rstrip("/") + dialect.path
        self._spelling = spelling
        self._key = key
        self._policy = policy
        self._deadlines = deadlines
        self._world = world
        self._opened: httpx.AsyncClient | None = None

    def estimate_tokens(self, request: ModelRequest) -> int:
        return estimate_request(request)

    async def aclose(self) -> None:
        """Close the connections. A call that still streams fails."""
        client, self._opened = self._opened, None
        if client is not None:
            await client.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call the model once, with retries. See `telex.agent.models`."""
        key = await self._key()
        request, spelling = await self._with_images(request)
        content = msgspec.json.encode(self._dialect.write(request, spelling))
        attempt = 0
        while True:
            attempt += 1
            yielded = False
            try:
                async with aclosing(self._attempt(content, spelling, key)) as events:
                    async for event in events:
                        yielded = yielded or isinstance(event, TextDelta | ToolCallReady)
                        yield event
            except ModelFailure as failure:
                _remove_key(failure, key)
                seconds = self._policy.wait_after(attempt, failure, self._world.random)
                if seconds is None:
                    raise
                again = Retrying(attempt, seconds, failure, discarded=yielded)
            else:
                return  # the last event was `Finished`, or the decoder would have raised
            yield again
            await self._world.sleep(again.seconds)

    async def _attempt(
        self, content: bytes, spelling: Spelling, key: str
    ) -> AsyncGenerator[ModelEvent, None]:
        decoder = self._dialect.decoder(spelling)
        response = await self._send(content, key)
        chunks = response.aiter_raw()
        try:
            async with aclosing(self._read(chunks, decoder)) as events:
                async for event in events:
                    yield event
        finally:
            await _close(response, chunks)

    async def _read(
        self, chunks: AsyncIterator[bytes], decoder: AnswerDecoder
    ) -> AsyncGenerator[ModelEvent, None]:
        reader = SseReader()
        seconds = self._deadlines.first  # a server may send its headers before it thinks
        while (chunk := await self._next(chunks, decoder, seconds)) is not None:
            seconds = self._deadlines.silence
            try:
                for data in reader.feed(chunk):
                    for event in decoder.feed(data):
                        yield event
                        if isinstance(event, Finished):
                            await _read_end(chunks)
                            return
            except StreamTooLarge:
                raise AnswerTooLarge(
                    "the stream of the answer is too large", partial=decoder.answer.partial()
                ) from None
            except UnicodeDecodeError:
                raise decoder.answer.malformed("", "it is not UTF-8") from None
        for event in decoder.eof():
            yield event

    async def _next(
        self, chunks: AsyncIterator[bytes], decoder: AnswerDecoder, seconds: float
    ) -> bytes | None:
        try:
            async with asyncio.timeout(seconds):
                return await anext(chunks, None)
        except TimeoutError:
            raise ModelTimedOut(
                f"the server sent nothing for {seconds:g} s, and its answer is not whole",
                partial=decoder.answer.partial(),
            ) from None
        except httpx.TransportError as error:
            raise StreamEndedEarly(
                f"the connection broke before the answer ended ({_named(error)})",
                partial=decoder.answer.partial(),
            ) from None

    async def _send(self, content: bytes, key: str) -> httpx.Response:
        """Return the response, whose body was not read yet. Raises `ModelFailure` for an error."""
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            **self._dialect.headers(key),
        }
        try:
            async with asyncio.timeout(self._deadlines.first):
                client = self._client()
                request = client.build_request("POST", self._url, content=content, headers=headers)
                response = await client.send(request, stream=True)
                try:
                    await self._check(response)
                except BaseException:
                    await response.aclose()
                    raise
                return response
        except TimeoutError:
            raise ModelTimedOut(
                f"{self._url} sent no answer in {self._deadlines.first:g} s"
            ) from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ModelUnreachable(f"{self._url} cannot be reached ({_named(error)})") from None

    async def _check(self, response: httpx.Response) -> None:
        if response.is_redirect:
            raise RequestRefused(
                f"{self._url} redirects to {response.headers.get('location', 'nowhere')}; "
                "set base_url to that server if you trust it"
            )
        if not response.is_success:
            body = await _beginning(response)
            wait = retry_after(response.headers, self._world.now())
            raise failure_of_status(response.status_code, body, wait)
        kind = response.headers.get("content-type", "no content type")
        kind += " " + response.headers.get("content-encoding", "")
        if "event-stream" not in kind or not kind.endswith((" ", " identity")):
            raise RequestRefused(
                f"{self._url} did not answer with a stream but with {kind.strip()}; "
                "check base_url and dialect"
            )

    def _client(self) -> httpx.AsyncClient:
        if self._opened is None:
            url = httpx.URL(self._url)
            self._opened = httpx.AsyncClient(
                timeout=httpx.Timeout(None, connect=MODEL_CONNECT_SECONDS),
                # A proxy for the web cannot reach a server on this machine.
                trust_env=url.host not in LOOPBACK,
                # The certificates are 40 ms to load, and plain HTTP has no use for them.
                verify=url.scheme == "https",
                limits=httpx.Limits(max_connections=None, keepalive_expiry=30.0),
            )
        return self._opened

    async def _with_images(self, request: ModelRequest) -> tuple[ModelRequest, Spelling]:
        """Load the images of a request. An image that is gone becomes a text: a conversation
        outlives its images."""
        wanted = {
            part.reference
            for message in request.messages
            for part in message.parts
            if isinstance(part, ImagePart)
            and not part.reference.startswith(("data:", "https:", "http:"))
        }
        load = self._world.load_image
        if not wanted or load is None:
            return request, self._spelling
        images: dict[str, str] = {}
        for reference in sorted(wanted):
            try:
                images[reference] = to_base64(await load(reference))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RequestRefused(
                    f"the image {reference} cannot be loaded: {error.strerror}"
                ) from error
        gone = wanted - images.keys()
        if gone:
            messages = replace_images(request.messages, lambda part: part.reference in gone, GONE)
            request = replace(request, messages=messages)
        return request, replace(self._spelling, images=images)


async def _read_end(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows a whole answer, for a moment only, and ignore it.

    A connection that was read to its end can be used again. A server that keeps it open, or breaks
    it, cannot make the answer less whole.
    """
    with contextlib.suppress(TimeoutError, httpx.TransportError):
        async with asyncio.timeout(MODEL_END_SECONDS):
            async for _ in chunks:
                pass


async def _beginning(response: httpx.Response) -> bytes:
    """Return the beginning of a body, which may be endless, and close the response."""
    body = bytearray()
    chunks = response.aiter_raw()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) >= MODEL_ERROR_BYTES:
                break
    finally:
        await _close(response, chunks)
    return bytes(body[:MODEL_ERROR_BYTES])


async def _close(response: httpx.Response, chunks: AsyncIterator[bytes]) -> None:
    """Close the socket at once, unless the response was read to its end.

    httpx reads through a chain of generators. Each of them has to see the end: the garbage
    collector would close it later, in a task of its own.
    """
    await response.aclose()
    with contextlib.suppress(httpx.HTTPError, httpx.StreamError):
        async for _ in chunks:
            pass


def _named(error: Exception) -> str:
    """Return what went wrong, in words. The request, with its headers, is no part of it."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _remove_key(failure: ModelFailure, key: str) -> None:
    """Remove the key, and everything that looks like one, from the message of a failure.

    A message may end in the middle of the key, because long texts of servers are cut.
    """
    text = str(failure)
    for length in range(len(key), min(len(key), _KEY_PART_CHARS) - 1, -1):
        text = text.replace(key[:length], MARKER) if length else text
    failure.args = (Redactor().redact(text), *failure.args[1:])
