"""The dialect `messages`: `/messages`, the API of Anthropic.

The prompt is cached by marks (`cache_control`) in the request: after the instructions and tools,
and after the last two inputs, so that each call reads from the cache what the call before wrote.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from telex.agent.limits import MODEL_OUTPUT_TOKENS
from telex.agent.messages import (
    AssistantMessage,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)
from telex.agent.models.answer import Answer
from telex.agent.models.errors import MissingStopReason
from telex.agent.models.model_dialect import read_event, with_results
from telex.agent.protocol.runs import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.messages import Message
    from telex.agent.models import Effort, ModelEvent, ModelRequest, StopReason
    from telex.agent.models.model_dialect import Spelling

VERSION: Final = "2023-06-01"
_STOP_REASONS: Final[dict[str, StopReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refused",
}
"""Every other word, such as `end_turn`, means that the model ended its answer."""
_THINKING_TOKENS: Final[dict[Effort, int]] = {"low": 2048, "medium": 8192, "high": 24_576}
_ID: Final = re.compile(r"[^a-zA-Z0-9_-]")
_CACHED: Final = {"type": "ephemeral"}


class _MessagesUsage(Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(Struct, frozen=True):
    usage: _MessagesUsage = _MessagesUsage()


class _Block(Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class _BlockDelta(Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _MessagesEvent(Struct, frozen=True):
    type: str = ""
    index: int = 0
    message: _Message = _Message()
    content_block: _Block = _Block()
    delta: _BlockDelta = _BlockDelta()
    usage: _MessagesUsage = _MessagesUsage()
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_MessagesEvent)
_KNOWN: Final = frozenset(
    (
        *(f"message_{one}" for one in ("start", "delta", "stop")),
        *(f"content_block_{one}" for one in ("start", "delta", "stop")),
        "error",
    )
)
"""The types of events that are read."""


class MessagesDecoder:
    """Reads the events of one message. The key of a part is the index of its block."""

    def __init__(self, spelling: Spelling) -> None:
        self.answer = Answer(spelling.model, spelling.provider)
        self._finished = False
        self._stop: str | None = None
        self._blocks: dict[int, str] = {}
        """The types of the open blocks."""
        self._signatures: dict[int, list[str]] = {}
        self._counts = _MessagesUsage()

    def feed(self, data: str) -> Iterator[ModelEvent]:
        if self._finished or not data.strip():
            return
        try:
            event = read_event(_EVENT, data, _KNOWN)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self.answer.malformed(data, str(error)) from None
        if event is None:
            return
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                yield from self._begin(event.index, event.content_block)
            case "content_block_delta":
                if event.index not in self._blocks:
                    raise self.answer.malformed(data, "its block is not open")
                yield from self._read(event.index, event.delta)
            case "content_block_stop":
                yield from self._end(event.index)
            case "message_delta":
                self._count(event.usage)
                self._stop = event.delta.stop_reason or self._stop
            case "message_stop":
                yield from self._finish(data)
            case "error":
                self.answer.fail_mid_stream(event.error)

    def eof(self) -> Iterator[ModelEvent]:
        if not self._finished:
            self.answer.end_early()
        return iter(())

    def _begin(self, index: int, block: _Block) -> Iterator[ModelEvent]:
        self._blocks[index] = block.type
        match block.type:
            case "text":
                yield from self.answer.text(index, block.text)
            case "thinking":
                yield from self.answer.reasoning(index, block.thinking)
                self._signatures[index] = [block.signature]
            case "redacted_thinking":
                self.answer.keep(index, {"type": "redacted_thinking", "data": block.data})
            case "tool_use":
                self.answer.begin_call(index, block.id, block.name)
                if block.input:
                    self.answer.arguments(index, msgspec.json.encode(block.input).decode())

    def _read(self, index: int, delta: _BlockDelta) -> Iterator[ModelEvent]:
        match delta.type:
            case "text_delta":
                yield from self.answer.text(index, delta.text)
            case "thinking_delta":
                yield from self.answer.reasoning(index, delta.thinking)
            case "signature_delta":
                self._signatures.setdefault(index, []).append(delta.signature)
            case "input_json_delta":
                self.answer.arguments(index, delta.partial_json)

    def _end(self, index: int) -> Iterator[ModelEvent]:
        match self._blocks.pop(index, ""):
            case "tool_use":
                yield from self.answer.end_call(index)
            case "thinking":
                thinking = self.answer.text_of(index)
                signature = "".join(self._signatures.pop(index, ()))
                if thinking or signature:
                    kept = {"type": "thinking", "thinking": thinking, "signature": signature}
                    self.answer.keep(index, kept)

    def _count(self, usage: _MessagesUsage) -> None:
        """Take the newer of each count: the events repeat some of them, as totals."""
        new = {
            name: value
            for name, value in msgspec.structs.asdict(usage).items()
            if value is not None
        }
        self._counts = msgspec.structs.replace(self._counts, **new)

    def _finish(self, data: str) -> Iterator[ModelEvent]:
        if self._blocks:
            raise self.answer.malformed(data, "a block of the answer is still open")
        if self._stop is None:
            raise MissingStopReason(
                "the answer ended without a reason, it may be cut off",
                partial=self.answer.partial(),
            )
        self._finished = True
        counts = self._counts
        if counts.output_tokens is not None:
            read, created = counts.cache_read_input_tokens, counts.cache_creation_input_tokens
            # The dialect counts cached tokens apart; elsewhere they are part of the input.
            given = (counts.input_tokens or 0) + (read or 0) + (created or 0)
            total = given + counts.output_tokens
            self.answer.usage = Usage(given, counts.output_tokens, total, read, created)
        yield from self.answer.finish(_STOP_REASONS.get(self._stop, "stop"), self._stop)


class MessagesDialect:
    """The dialect `messages`."""

    path = "/messages"

    def headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": VERSION}
        return {**version, "x-api-key": key} if key else version

    def decoder(self, spelling: Spelling) -> MessagesDecoder:
        return MessagesDecoder(spelling)

    def write(self, request: ModelRequest, spelling: Spelling) -> dict[str, Any]:
        settings = request.settings
        effort = settings.effort or spelling.effort
        limit = settings.max_output_tokens or spelling.max_output_tokens or MODEL_OUTPUT_TOKENS
        messages = _messages(request, spelling)
        for message in [one for one in messages if one["role"] == "user"][-2:]:
            message["content"][-1]["cache_control"] = _CACHED
        body: dict[str, Any] = {
            "model": spelling.model,
            "max_tokens": limit,
            "messages": messages,
            "stream": True,
        }
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ]
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        elif request.tools:
            body["tools"][-1]["cache_control"] = _CACHED
        if effort is not None and effort != "none" and spelling.reasons:
            body |= _thinking(effort, limit, spelling)
        elif settings.temperature is not None:
            body["temperature"] = settings.temperature
        return body


def _thinking(effort: Effort, limit: int, spelling: Spelling) -> dict[str, Any]:
    if spelling.thinking_budget:
        # The answer needs tokens of its own beside the thinking.
        budget = min(_THINKING_TOKENS[effort], limit // 2)
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    shown = {"type": "adaptive", "display": "summarized"}
    return {"thinking": shown, "output_config": {"effort": effort}}


def _messages(request: ModelRequest, spelling: Spelling) -> list[dict[str, Any]]:
    """Return the messages. Neighbours of one role are joined, as results of one step have to be."""
    written: list[dict[str, Any]] = []
    for message in with_results(request.messages):
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _of_message(message, spelling)
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        elif blocks:
            written.append({"role": role, "content": blocks})
    return written


def _of_message(message: Message, spelling: Spelling) -> list[dict[str, Any]]:
    match message:
        case UserMessage(parts):
            return _blocks(parts, spelling)
        case AssistantMessage(parts):
            return [block for part in parts for block in _said(part, spelling)]
        case ToolResultMessage(call_id, parts, is_error):
            result = {
                "type": "tool_result",
                "tool_use_id": _ID.sub("_", call_id),
                "content": _blocks(parts, spelling),
            }
            return [{**result, "is_error": True} if is_error else result]


def _blocks(parts: tuple[TextPart | ImagePart, ...], spelling: Spelling) -> list[dict[str, Any]]:
    """Return the parts as blocks. The API refuses a text block that is empty."""
    return [
        _image(part, spelling)
        if isinstance(part, ImagePart)
        else {"type": "text", "text": part.text}
        for part in parts
        if isinstance(part, ImagePart) or part.text
    ]


def _image(part: ImagePart, spelling: Spelling) -> dict[str, Any]:
    if part.reference.startswith(("https:", "http:")):
        return {"type": "image", "source": {"type": "url", "url": part.reference}}
    source = {
        "type": "base64",
        "media_type": part.media_type,
        "data": spelling.image_data(part),
    }
    return {"type": "image", "source": source}


def _said(
    part: TextPart | ReasoningPart | ToolCallPart, spelling: Spelling
) -> Iterator[dict[str, Any]]:
    match part:
        case TextPart(text) if text.strip():
            yield {"type": "text", "text": text}
        case ToolCallPart(call_id, name, arguments):
            yield {
                "type": "tool_use",
                "id": _ID.sub("_", call_id),
                "name": name,
                "input": arguments,
            }
        case ReasoningPart(_, provider, opaque) if provider == spelling.provider:
            if isinstance(block := msgspec.json.decode(opaque), dict):
                yield block
