"""The conversation of a thread, as its cores and the store share it. Pure.

A call without a result has no place in a conversation: providers refuse it. A call is left without
one when a run ends between the two. `with_all_results` adds results that say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_RESULT: Final = (
    "There is no result: the run ended before the call returned. It may have had its effect; check "
    "that before you repeat it."
)

IMAGE: Final = "[image]"
"""An image in a text for people."""


def user_message(text: str) -> UserMessage:
    return UserMessage((TextPart(text),))


def result_message(
    call_id: str, text: str, is_error: bool = False, image: ImagePart | None = None
) -> ToolResultMessage:
    parts = (TextPart(text),) if image is None else (TextPart(text), image)
    return ToolResultMessage(call_id, parts, is_error)


def message_text(message: Message, image: str = "") -> str:
    """Return the texts of a message, without reasoning and calls; `image` stands for an image."""
    if not image or isinstance(message, AssistantMessage):
        return "".join(part.text for part in message.parts if isinstance(part, TextPart))
    return "\n".join(part.text if isinstance(part, TextPart) else image for part in message.parts)


def to_stored(message: Message) -> bytes:
    """Return a message as the store keeps it: on one line, also if a model broke its arguments."""
    encoded = encode(message)
    return msgspec.json.format(encoded, indent=-1) if b"\n" in encoded else encoded


def unanswered_calls(messages: Sequence[Message]) -> tuple[ToolCallPart, ...]:
    """Return the calls of the last answer that have no result yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        match message:
            case ToolResultMessage(call_id=call_id):
                answered.add(call_id)
            case AssistantMessage(tool_calls=calls) if calls:
                return tuple(call for call in calls if call.id not in answered)
    return ()


def with_all_results(messages: Sequence[Message]) -> list[tuple[int | None, Message]]:
    """Return the conversation with a result directly after each call, and no other results.

    Each message has its index in `messages`; a result that is added here has None. A result that
    was stored after the next message is moved, and one without a call is dropped.
    """
    whole: list[tuple[int | None, Message]] = []
    open_calls: dict[str, int] = {}
    """Where the results of calls belong, by the ids of the calls."""
    for index, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if (place := open_calls.pop(message.call_id, None)) is not None:
                whole[place] = index, message
            continue
        whole.append((index, message))
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                open_calls[call.id] = len(whole)
                whole.append((None, result_message(call.id, NO_RESULT, is_error=True)))
    return whole
