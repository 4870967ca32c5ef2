"""A conservative estimate of tokens, for models that do not tell, and before a call. Pure.

No tokenizer is loaded: each model has another. As a rule of thumb English text has four bytes for a
token; code and other scripts have fewer. The estimate counts a token for three bytes of ASCII, for
two bytes of other characters in UTF-8, and some for the frame of each message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.messages import ImagePart, ReasoningPart, TextPart

if TYPE_CHECKING:
    from telex.agent.messages import Message, ToolCallPart
    from telex.agent.models import ModelRequest

_OF_MESSAGE: Final = 8
_OF_TOOL: Final = 16
_OF_IMAGE: Final = 2000
"""Providers scale an image to at most about 1,600 tokens."""


def estimate_text(text: str) -> int:
    """Return how many tokens a text has at most, in all likelihood."""
    if text.isascii():
        return -(-len(text) // 3)
    ascii_chars = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_chars
    return -(-ascii_chars // 3) + others // 2


def estimate_message(message: Message) -> int:
    """Return the estimate for one message of a history."""
    return _OF_MESSAGE + sum(map(_of_part, message.parts))


def estimate_request(request: ModelRequest) -> int:
    """Return the estimate for a whole request, with instructions and tools."""
    tools = sum(
        _OF_TOOL
        + estimate_text(tool.name + tool.description)
        + estimate_text(msgspec.json.encode(tool.schema).decode())
        for tool in request.tools
    )
    return estimate_text(request.system) + tools + sum(map(estimate_message, request.messages))


def _of_part(part: TextPart | ImagePart | ReasoningPart | ToolCallPart) -> int:
    match part:
        case TextPart(text):
            return estimate_text(text)
        case ImagePart():
            return _OF_IMAGE
        case ReasoningPart(text, _, opaque):
            return estimate_text(text) + len(bytes(opaque)) // 3
    return _OF_TOOL + estimate_text(part.name + bytes(part.arguments).decode())
