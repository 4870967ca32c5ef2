"""The interface of a dialect: how a request is written, and how its answer is read.

A dialect does no I/O. `write` returns the body of a request as a value; a decoder gets the `data`
of each server-sent event, and yields model events. `model_client` sends and receives.

    chat       /chat/completions, which every local server has
    responses  /responses, the newer API of OpenAI
    messages   /messages, the API of Anthropic
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from telex.agent.messages import AssistantMessage, TextPart, ToolCallPart, ToolResultMessage
from telex.agent.models.errors import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telex.agent.messages import ImagePart, Message
    from telex.agent.models import Effort, ModelEvent, ModelRequest
    from telex.agent.models.answer import Answer

E = TypeVar("E", bound=Struct)


@dataclass(frozen=True, slots=True)
class Spelling:
    """The parts of a request that depend on the provider or on the model."""

    model: str
    provider: str
    """The owner of opaque reasoning data; only this provider gets it back."""
    max_output_tokens: int | None = None
    """The maximum for an answer if the request has none."""
    reasons: bool = False
    """Whether the model reasons before it answers, so that it may be asked how much."""
    effort: Effort | None = None
    """How much it reasons if the request does not say."""
    thinking_budget: bool = False
    """Whether the dialect `messages` asks for a number of tokens to think, as older models want."""
    cache_key: bool = False
    """Whether the provider takes the id of the thread, to find its cache of the prompt."""
    max_tokens_member: str = "max_tokens"
    """The member of the chat dialect for the maximum; newer models of OpenAI want another."""
    images: Mapping[str, str] = field(default_factory=dict)
    """The loaded images: base64 by reference."""

    def image_url(self, part: ImagePart) -> str:
        """Return the image as a URL, which is a `data:` URL if it was loaded."""
        if part.reference.startswith(("data:", "https:", "http:")):
            return part.reference
        return f"data:{part.media_type};base64,{self.image_data(part)}"

    def image_data(self, part: ImagePart) -> str:
        """Return the image in base64. Raises `RequestRefused` if it was not loaded."""
        if part.reference.startswith("data:"):
            return part.reference.partition(",")[2]
        found = self.images.get(part.reference)
        if found is None:
            raise RequestRefused(f"the image {part.reference} cannot be loaded")
        return found


class AnswerDecoder(Protocol):
    """Reads the answer to one request. Its methods raise `ModelFailure`."""

    @property
    def answer(self) -> Answer: ...

    def feed(self, data: str) -> Iterator[ModelEvent]:
        """Read the data of one server-sent event."""
        ...

    def eof(self) -> Iterator[ModelEvent]:
        """Read the end of the stream, and yield the last events if the answer is whole."""
        ...


class ModelDialect(Protocol):
    """One way to spell requests and answers."""

    @property
    def path(self) -> str:
        """The path below the base URL."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""
        ...

    def write(self, request: ModelRequest, spelling: Spelling) -> dict[str, Any]:
        """Return the body of the request."""
        ...

    def decoder(self, spelling: Spelling) -> AnswerDecoder: ...


class _AnyEvent(Struct, frozen=True):
    type: str = ""


_ANY_EVENT: Final = msgspec.json.Decoder(_AnyEvent)


def read_event(decoder: msgspec.json.Decoder[E], data: str, known: frozenset[str]) -> E | None:
    """Return an event; None if its type is not known, whatever else it has.

    Providers add types of events at any time. Raises `msgspec.DecodeError`, `UnicodeError` and
    `RecursionError`.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        if _ANY_EVENT.decode(data).type in known:
            raise
        return None


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def with_results(messages: Sequence[Message]) -> list[Message]:
    """Return the messages, with a result for every call directly after its answer.

    Providers refuse a history in which a call has no result. A run that was interrupted leaves
    such a call; its result says that it was not executed.
    """
    results: dict[str, list[ToolResultMessage]] = {}
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.setdefault(message.call_id, []).append(message)
    found: list[Message] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            continue  # it stands behind its call
        found.append(message)
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                given = results.get(call.id)  # some servers use the same id again and again
                found.append(given.pop(0) if given else _not_executed(call))
    return found


def _not_executed(call: ToolCallPart) -> ToolResultMessage:
    return ToolResultMessage(call.id, (TextPart("The call was not executed."),), is_error=True)


def detail(part: ImagePart) -> dict[str, str]:
    """Return the member that says how closely the model looks at an image."""
    return {} if part.detail is None else {"detail": part.detail}


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
