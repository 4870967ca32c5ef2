"""The dialect `chat`: `/chat/completions`, which OpenAI began and every local server speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from telex.agent.messages import (
    AssistantMessage,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolResultMessage,
    UserMessage,
)
from telex.agent.models.answer import Answer
from telex.agent.models.errors import MissingStopReason
from telex.agent.models.model_dialect import bearer, detail, with_results
from telex.agent.protocol.runs import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.models import ModelEvent, ModelRequest, StopReason
    from telex.agent.models.model_dialect import Spelling

_STOP_REASONS: Final[dict[str, StopReason]] = {
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refused",
}
"""Every other word, such as `stop` or `eos`, means that the model ended its answer."""


class _Function(Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallPiece(Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(Struct, frozen=True):
    delta: _Delta | None = None
    finish_reason: str | None = None


_Count = Annotated[int, Meta(ge=0)]


class _PromptDetails(Struct, frozen=True):
    cached_tokens: _Count | None = None


class _ChatUsage(Struct, frozen=True):
    prompt_tokens: _Count
    completion_tokens: _Count
    prompt_tokens_details: _PromptDetails | None = None
    prompt_cache_hit_tokens: _Count | None = None
    """The word of DeepSeek for cached tokens."""


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_NOTHING: Final = _Delta()
_UNNAMED: Final = _Function()
_NO_DETAILS: Final = _PromptDetails()
_CHUNK: Final = msgspec.json.Decoder(_Chunk)


class ChatDecoder:
    """Reads the chunks of one answer."""

    def __init__(self, spelling: Spelling) -> None:
        self.answer = Answer(spelling.model, spelling.provider)
        self._stop: str | None = None
        self._done = False
        self._finished = False
        self._calls: dict[int, int] = {}
        """By the index of the server, the number of the call that goes on there."""
        self._ids: list[str] = []
        self._reasoning_member = ""
        self._details: list[Any] = []

    def feed(self, data: str) -> Iterator[ModelEvent]:
        if self._done or not data.strip():
            return
        if data.strip() == "[DONE]":
            self._done = True
            yield from self.eof()
            return
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self.answer.malformed(data, str(error)) from None
        if chunk.error is not None:
            self.answer.fail_mid_stream(chunk.error)
        if chunk.usage is not None:
            self.answer.usage = _usage(chunk.usage) or self.answer.usage
        for choice in (chunk.choices or ())[:1]:
            yield from self._read(choice)

    def _read(self, choice: _Choice) -> Iterator[ModelEvent]:
        delta = choice.delta or _NOTHING
        for member in ("reasoning_content", "reasoning"):
            if piece := getattr(delta, member):
                self._reasoning_member = self._reasoning_member or member
                if member == self._reasoning_member:  # some servers send both, with one text
                    yield from self.answer.reasoning("reasoning", piece)
        self._details += delta.reasoning_details or ()
        yield from self.answer.text("text", delta.content or "")
        yield from self.answer.text("text", delta.refusal or "")
        for piece in delta.tool_calls or ():
            self._read_call(piece)
        if choice.finish_reason:
            self._stop = choice.finish_reason
            if self._stop == "error":
                self.answer.fail_mid_stream(None)

    def _read_call(self, piece: _CallPiece) -> None:
        index = piece.index or 0
        number = self._calls.get(index)
        # Some servers send whole calls, each with the index 0 and an id of its own.
        if number is None or (piece.id and self._ids[number] and piece.id != self._ids[number]):
            number = self._calls[index] = len(self._ids)
            self._ids.append("")
        self._ids[number] = self._ids[number] or piece.id or ""
        key = ("call", number)
        function = piece.function or _UNNAMED
        self.answer.begin_call(key, piece.id or "", function.name or "")
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        self.answer.arguments(key, arguments or "")

    def eof(self) -> Iterator[ModelEvent]:
        """The reason to stop comes with the last piece; `[DONE]` alone does not end an answer."""
        if self._finished:
            return
        if self._stop is None:
            if not self._done:
                self.answer.end_early()
            raise MissingStopReason(
                "the answer ended without a reason, it may be cut off",
                partial=self.answer.partial(),
            )
        self._finished = True
        if self._details:
            self.answer.keep("reasoning", {"reasoning_details": self._details})
        elif self._reasoning_member:
            self.answer.keep("reasoning", {"member": self._reasoning_member})
        yield from self.answer.finish(_STOP_REASONS.get(self._stop, "stop"), self._stop)


def _usage(counted: object) -> Usage | None:
    """Return the tokens of a call; None for counts that make no sense, as several local servers
    send them. They do not make the answer less whole."""
    try:
        found = msgspec.convert(counted, _ChatUsage)
    except msgspec.ValidationError:
        return None
    details = found.prompt_tokens_details or _NO_DETAILS
    cached = details.cached_tokens
    return Usage(
        found.prompt_tokens,
        found.completion_tokens,
        found.prompt_tokens + found.completion_tokens,
        found.prompt_cache_hit_tokens if cached is None else cached,
    )


class ChatDialect:
    """The dialect `chat`."""

    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return bearer(key)

    def decoder(self, spelling: Spelling) -> ChatDecoder:
        return ChatDecoder(spelling)

    def write(self, request: ModelRequest, spelling: Spelling) -> dict[str, Any]:
        settings = request.settings
        effort = settings.effort or spelling.effort
        limit = settings.max_output_tokens or spelling.max_output_tokens
        body: dict[str, Any] = {
            "model": spelling.model,
            "messages": _messages(request, spelling),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.schema,
                    },
                }
                for tool in request.tools
            ]
        if limit is not None:
            body[spelling.max_tokens_member] = limit
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if effort is not None and spelling.reasons:
            body["reasoning_effort"] = effort
        if request.thread and spelling.cache_key:
            body["prompt_cache_key"] = request.thread
        return body


def _messages(request: ModelRequest, spelling: Spelling) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    if request.system:
        written.append({"role": "system", "content": request.system})
    history = with_results(request.messages)
    last_input = max(
        (n for n, one in enumerate(history) if isinstance(one, UserMessage)), default=0
    )
    shown: list[dict[str, Any]] = []
    for number, message in enumerate(history):
        if shown and not isinstance(message, ToolResultMessage):
            written.append({"role": "user", "content": shown})
            shown = []
        match message:
            case UserMessage(parts):
                written.append({"role": "user", "content": _content(parts, spelling)})
            case AssistantMessage():
                written.append(_answer(message, spelling, in_turn=number > last_input))
            case ToolResultMessage(call_id, parts):
                text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
                images = [part for part in parts if isinstance(part, ImagePart)]
                if images:  # a result can only be a text here
                    shown += _blocks((TextPart(f"The images of {call_id}:"), *images), spelling)
                    text = text or "The result is an image; it follows."
                written.append({"role": "tool", "tool_call_id": call_id, "content": text})
    if shown:
        written.append({"role": "user", "content": shown})
    return written


def _content(parts: tuple[TextPart | ImagePart, ...], spelling: Spelling) -> Any:
    """Return a plain text where that is possible: small servers know nothing else."""
    if any(isinstance(part, ImagePart) for part in parts):
        return _blocks(parts, spelling)
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _blocks(parts: tuple[TextPart | ImagePart, ...], spelling: Spelling) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "image_url", "image_url": {"url": spelling.image_url(part), **detail(part)}}
        for part in parts
    ]


def _answer(message: AssistantMessage, spelling: Spelling, *, in_turn: bool) -> dict[str, Any]:
    """Return an answer. The reasoning goes back only within the turn that it belongs to."""
    written: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": bytes(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    for part in message.parts:
        if isinstance(part, ReasoningPart) and part.provider == spelling.provider and in_turn:
            match msgspec.json.decode(part.opaque):
                case {"reasoning_details": details}:
                    written["reasoning_details"] = details
                case {"member": str(member)}:
                    written[member] = part.text
    return written
