"""The messages of a conversation with a language model, in a form that no provider owns.

    history = (
        UserMessage((TextPart("Which files are here?"),)),
        AssistantMessage((ToolCallPart("c1", "list", Raw(b"{}")),), model="qwen3"),
        ToolResultMessage("c1", (TextPart("README.md"),)),
    )
    stored = encode(history)

A thread is stored as these messages, so it can go on with another model, of another provider.
Data that only one provider understands, such as the signature of a reasoning, is kept as it came in
`ReasoningPart.opaque` and is sent back to that provider only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class TextPart(Struct, frozen=True, tag_field="type", tag="text"):
    """A text of the person, of the model, or of a tool's result."""

    text: str


class ImagePart(Struct, frozen=True, tag_field="type", tag="image", omit_defaults=True):
    """An image by reference; the bytes are kept outside of the conversation.

    The reference is a `data:` or `https:` URL, or an id that the caller of the model can load.
    """

    reference: str
    media_type: str
    detail: Literal["auto", "low", "high"] | None = None
    """How closely the model looks at it, where a provider lets one choose."""


class ReasoningPart(Struct, frozen=True, tag_field="type", tag="reasoning"):
    """A reasoning of the model before its answer."""

    text: str
    """The part that may be shown; empty if the provider sent it only encrypted."""
    provider: str = ""
    """The provider and dialect that `opaque` belongs to; another one gets nothing of this part."""
    opaque: Raw = Raw(b"null")
    """JSON that the provider wants back unchanged: a signature, an encrypted content."""


class ToolCallPart(Struct, frozen=True, tag_field="type", tag="tool_call", omit_defaults=True):
    """A call of a tool, which the caller executes and answers by a `ToolResultMessage`."""

    id: str
    name: str
    arguments: Raw
    """A JSON object; `{}` if the model sent something else."""
    malformed: str | None = None
    """The text that the model sent in place of a JSON object. Such a call must not be executed;
    its result is an error that says so, which lets the model correct itself."""


class UserMessage(Struct, frozen=True, tag_field="role", tag="user"):
    """An input of the person."""

    parts: tuple[TextPart | ImagePart, ...]


class AssistantMessage(Struct, frozen=True, tag_field="role", tag="assistant"):
    """An answer of a model, its parts in the order in which they came."""

    parts: tuple[TextPart | ReasoningPart | ToolCallPart, ...]
    model: str

    @property
    def text(self) -> str:
        """All texts of the answer, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))


class ToolResultMessage(Struct, frozen=True, tag_field="role", tag="tool"):
    """The result of one tool call."""

    call_id: str
    parts: tuple[TextPart | ImagePart, ...]
    is_error: bool = False


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


class ToolSpec(Struct, frozen=True):
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any]
    """The JSON Schema of the arguments, an object at the top level."""
    parallel_safe: bool = False
    """Whether calls may run side by side, because the tool only reads. Not sent to the model."""


class TextDelta(Struct, frozen=True):
    """A piece of a text or of a reasoning, which follows whole. Sent, never stored."""

    kind: Literal["text", "reasoning"]
    content: str


def replace_images(
    messages: Iterable[Message], when: Callable[[ImagePart], bool], text: TextPart
) -> tuple[Message, ...]:
    """Return the messages with a text in place of some images."""
    return tuple(
        msgspec.structs.replace(
            message,
            parts=tuple(
                text if isinstance(part, ImagePart) and when(part) else part
                for part in message.parts
            ),
        )
        for message in messages
    )


_DECODER: Final[msgspec.json.Decoder[Message]] = msgspec.json.Decoder(Message)
_HISTORY_DECODER: Final = msgspec.json.Decoder(tuple[Message, ...])


def encode(message: Message | tuple[Message, ...]) -> bytes:
    """Return one message, or a whole history, as JSON."""
    return msgspec.json.encode(message)


def decode_message(data: bytes) -> Message:
    """Return the message that `encode` wrote. Raises `msgspec.DecodeError`."""
    return _DECODER.decode(data)


def decode_history(data: bytes) -> tuple[Message, ...]:
    """Return the history that `encode` wrote. Raises `msgspec.DecodeError`."""
    return _HISTORY_DECODER.decode(data)
