"""The models that tests call: one for each dialect, on a server of the test."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from telex.agent.messages import TextPart, ToolSpec, UserMessage
from telex.agent.models import Finished, ModelEvent, ModelRequest
from telex.agent.models.chat_dialect import ChatDialect
from telex.agent.models.messages_dialect import MessagesDialect
from telex.agent.models.model_client import HttpModel, ModelDeadlines, World
from telex.agent.models.model_dialect import ModelDialect, Spelling
from telex.agent.models.responses_dialect import ResponsesDialect
from telex.agent.models.retry import RetryPolicy
from telex.agent.protocol.sessions import ModelDetails

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CANARY = "sk-canary-9f8e7d6c5b4a39281706"
DIALECTS: dict[str, ModelDialect] = {
    "chat": ChatDialect(),
    "responses": ResponsesDialect(),
    "messages": MessagesDialect(),
}
WEATHER = ToolSpec(
    "get_weather",
    "Return the weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    parallel_safe=True,
)
QUESTION = UserMessage((TextPart("What is the weather in Paris?"),))
ASKED = ModelRequest("Be brief.", (QUESTION,))
ASKED_WITH_TOOL = ModelRequest("Be brief.", (QUESTION,), (WEATHER,))
SOON = RetryPolicy(attempts=4, first_seconds=0.05)


async def canary() -> str:
    return CANARY


@asynccontextmanager
async def calling(dialect: str, base_url: str, **options: Any) -> AsyncIterator[HttpModel]:
    """A model in this dialect, with the canary as its key and short waits."""
    spelling = options.pop("spelling", Spelling("gpt-5", "test"))
    options = {
        "policy": SOON,
        "deadlines": ModelDeadlines(first=60.0, silence=60.0),
        "world": World(random=lambda: 0.5),
        **options,
    }
    model = HttpModel(
        "tested", DIALECTS[dialect], base_url, spelling, ModelDetails(), canary, **options
    )
    try:
        yield model
    finally:
        await model.aclose()


async def events_of(model: HttpModel, request: ModelRequest = ASKED) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


def whole(events: list[ModelEvent]) -> Finished:
    """The last event, which says that the answer is whole."""
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    return events[-1]


class Scripted:
    """An HTTP server whose answers are written by the test, byte by byte."""

    def __init__(self, *answers: bytes | tuple[bytes, ...]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.closed = asyncio.Event()
        """The client closed a connection."""
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.requests.append(head + await reader.readexactly(length))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            for piece in (answer,) if isinstance(answer, bytes) else answer:
                if piece == HANG:
                    await reader.read()  # until the client leaves
                    self.closed.set()
                elif piece == RESET:
                    writer.transport.abort()
                else:
                    writer.write(piece)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed.set()
        finally:
            writer.close()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Scripted]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()


HANG = b"<hang>"
RESET = b"<reset>"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def response(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
