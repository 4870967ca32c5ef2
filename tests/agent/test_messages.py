"""Neutral messages: what is stored is what comes back."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from telex.agent.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
    decode_history,
    decode_message,
    encode,
)

HISTORY: tuple[Message, ...] = (
    UserMessage((TextPart("What is this?"), ImagePart("artifact:1", "image/png"))),
    AssistantMessage(
        (
            ReasoningPart("A picture.", "anthropic", Raw(b'{"signature":"abc=="}')),
            TextPart("Let me look. "),
            ToolCallPart("c1", "read", Raw(b'{"file_path":"a.txt"}')),
            ToolCallPart("c2", "read", Raw(b"{}"), malformed='{"file_path":'),
            TextPart("One moment."),
        ),
        "claude",
    ),
    ToolResultMessage("c1", (TextPart("no such file"),), is_error=True),
)


def test_messages_come_back_from_json_as_they_were() -> None:
    stored = encode(HISTORY)
    assert encode(decode_history(stored)) == stored
    assert [encode(decode_message(encode(message))) for message in HISTORY] == [
        encode(message) for message in HISTORY
    ]
    assert b'"opaque":{"signature":"abc=="}' in stored


def test_an_answer_has_its_text_and_its_calls_at_hand() -> None:
    answer = decode_history(encode(HISTORY))[1]
    assert isinstance(answer, AssistantMessage)
    assert answer.text == "Let me look. One moment."
    assert [call.id for call in answer.tool_calls] == ["c1", "c2"]


@pytest.mark.parametrize(
    "stored", [b"{}", b'{"role":"system","parts":[]}', b'{"role":"user","parts":[{"type":"x"}]}']
)
def test_other_json_is_no_message(stored: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_message(stored)
