"""The dialect `responses`: `/responses`, the API of OpenAI's newer models.

Nothing is stored at the provider (`store: false`). The reasoning comes back encrypted, and is sent
again with the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

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
from telex.agent.models.model_dialect import bearer, detail, read_event, with_results
from telex.agent.protocol.runs import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.models import ModelEvent, ModelRequest
    from telex.agent.models.model_dialect import Spelling


class _ContentPart(Struct, frozen=True):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(Struct, frozen=True):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: list[_ContentPart] | None = None
    summary: list[_ContentPart] | None = None
    encrypted_content: str | None = None


class _TokenDetails(Struct, frozen=True):
    cached_tokens: int | None = None


class _ResponsesUsage(Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _TokenDetails | None = None


class _Incomplete(Struct, frozen=True):
    reason: str | None = None


class _Response(Struct, frozen=True):
    status: str | None = None
    usage: _ResponsesUsage | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None


class _Event(Struct, frozen=True):
    type: str = ""
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: str = ""
    text: str | None = None
    arguments: str | None = None
    item: _Item = _Item()
    response: _Response = _Response()
    error: Any = None
    code: str | None = None
    message: str | None = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_KNOWN: Final = frozenset(
    (
        *(f"response.{one}.delta" for one in ("output_text", "refusal", "reasoning_text")),
        *("response.reasoning_summary_text.delta", "response.function_call_arguments.delta"),
        *(f"response.output_{one}" for one in ("text.done", "item.added", "item.done")),
        *(f"response.{one}" for one in ("completed", "incomplete", "done", "failed")),
        "error",
    )
)
"""The types of events that are read."""


class ResponsesDecoder:
    """Reads the events of one response. The key of a part is its index in the output."""

    def __init__(self, spelling: Spelling) -> None:
        self.answer = Answer(spelling.model, spelling.provider)
        self._finished = False
        self._summary: dict[int, int] = {}

    def feed(self, data: str) -> Iterator[ModelEvent]:
        if self._finished or not data.strip() or data.strip() == "[DONE]":
            return
        try:
            event = read_event(_EVENT, data, _KNOWN)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self.answer.malformed(data, str(error)) from None
        if event is None:
            return
        at = event.output_index
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield from self.answer.text((at, event.content_index), event.delta)
            case "response.output_text.done" if event.text is not None:
                yield from self._complete((at, event.content_index), event.text, data)
            case "response.reasoning_text.delta":
                yield from self.answer.reasoning(at, event.delta)
            case "response.reasoning_summary_text.delta":
                yield from self._read_summary(event)
            case "response.output_item.added" if event.item.type == "function_call":
                self.answer.begin_call(at, event.item.call_id or "", event.item.name or "")
            case "response.function_call_arguments.delta":
                self.answer.arguments(at, event.delta)
            case "response.output_item.done":
                yield from self._read_item(at, event.item, data)
            case "response.completed" | "response.incomplete" | "response.done":
                yield from self._finish(event.response)
            case "response.failed":
                self.answer.fail_mid_stream(event.response.error)
            case "error":
                self.answer.fail_mid_stream(
                    event.error or {"code": event.code, "message": event.message}
                )

    def eof(self) -> Iterator[ModelEvent]:
        if not self._finished:
            self.answer.end_early()
        return iter(())

    def _read_summary(self, event: _Event) -> Iterator[ModelEvent]:
        at = event.output_index
        if self._summary.setdefault(at, event.summary_index) != event.summary_index:
            self._summary[at] = event.summary_index
            yield from self.answer.reasoning(at, "\n\n")
        yield from self.answer.reasoning(at, event.delta)

    def _read_item(self, at: int, item: _Item, data: str) -> Iterator[ModelEvent]:
        match item.type:
            case "function_call":
                self.answer.begin_call(at, item.call_id or "", item.name or "")
                if item.arguments is not None:
                    if (so_far := self.answer.arguments_of(at)) and so_far != item.arguments:
                        raise self.answer.malformed(data, "pieces of the arguments are missing")
                    if not so_far:
                        self.answer.arguments(at, item.arguments)
                yield from self.answer.end_call(at)
            case "message":
                for number, part in enumerate(item.content or ()):
                    whole = part.text or part.refusal or ""
                    yield from self._complete((at, number), whole, data)
            case "reasoning":
                if not self.answer.text_of(at):
                    texts = [part.text or "" for part in item.summary or item.content or ()]
                    yield from self.answer.reasoning(at, "\n\n".join(filter(None, texts)))
                if item.encrypted_content:
                    kept = msgspec.json.decode(data)["item"]
                    kept.pop("status", None)  # the API refuses it in an input
                    self.answer.keep(at, kept)

    def _complete(self, key: tuple[int, int], whole: str, data: str) -> Iterator[ModelEvent]:
        """Compare a text with its pieces: one that was lost on the way must not go unseen."""
        so_far = self.answer.text_of(key)
        if not so_far:
            yield from self.answer.text(key, whole)
        elif so_far != whole:
            raise self.answer.malformed(data, "pieces of the text are missing")

    def _finish(self, response: _Response) -> Iterator[ModelEvent]:
        if response.usage is not None:
            details = response.usage.input_tokens_details
            self.answer.usage = Usage(
                response.usage.input_tokens,
                response.usage.output_tokens,
                response.usage.input_tokens + response.usage.output_tokens,
                None if details is None else details.cached_tokens,
            )
        self._finished = True
        incomplete = response.incomplete_details
        match response.status, incomplete.reason if incomplete else None:
            case "failed", _:
                self.answer.fail_mid_stream(response.error)
            case "incomplete", "content_filter":
                yield from self.answer.finish("refused", "content_filter")
            case "incomplete", "max_output_tokens":
                yield from self.answer.finish("length", "max_output_tokens")
            case "completed", _:
                yield from self.answer.finish("stop", "completed")
            case status, reason:
                raise MissingStopReason(
                    f"the answer ended without a reason (status {status}, {reason}), it may be cut"
                    " off",
                    partial=self.answer.partial(),
                )


class ResponsesDialect:
    """The dialect `responses`."""

    path = "/responses"

    def headers(self, key: str) -> dict[str, str]:
        return bearer(key)

    def decoder(self, spelling: Spelling) -> ResponsesDecoder:
        return ResponsesDecoder(spelling)

    def write(self, request: ModelRequest, spelling: Spelling) -> dict[str, Any]:
        settings = request.settings
        effort = settings.effort or spelling.effort
        limit = settings.max_output_tokens or spelling.max_output_tokens
        body: dict[str, Any] = {
            "model": spelling.model,
            "input": _items(request, spelling),
            "stream": True,
            "store": False,
        }
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in request.tools
            ]
        if limit is not None:
            body["max_output_tokens"] = limit
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if spelling.reasons:
            wanted = {} if effort is None else {"effort": effort}
            body["reasoning"] = {**wanted, "summary": "auto"}
            body["include"] = ["reasoning.encrypted_content"]
        if request.thread and spelling.cache_key:
            body["prompt_cache_key"] = request.thread
        return body


def _items(request: ModelRequest, spelling: Spelling) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in with_results(request.messages):
        match message:
            case UserMessage(parts):
                content = _blocks(parts, spelling)
                items.append({"type": "message", "role": "user", "content": content})
            case AssistantMessage(parts):
                items += (item for part in parts for item in _said(part, spelling))
            case ToolResultMessage(call_id, parts):
                shown = any(isinstance(part, ImagePart) for part in parts)
                output: Any = (
                    _blocks(parts, spelling)
                    if shown
                    else "\n".join(part.text for part in parts if isinstance(part, TextPart))
                )
                item = {"type": "function_call_output", "call_id": call_id, "output": output}
                items.append(item)
    return items


def _blocks(parts: tuple[TextPart | ImagePart, ...], spelling: Spelling) -> list[dict[str, Any]]:
    return [
        {"type": "input_text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "input_image", "image_url": spelling.image_url(part), **detail(part)}
        for part in parts
    ]


def _said(
    part: TextPart | ReasoningPart | ToolCallPart, spelling: Spelling
) -> Iterator[dict[str, Any]]:
    match part:
        case TextPart(text):
            content = [{"type": "output_text", "text": text}]
            yield {"type": "message", "role": "assistant", "content": content}
        case ToolCallPart(call_id, name, arguments):
            yield {
                "type": "function_call",
                "call_id": call_id,
                "name": name,
                "arguments": bytes(arguments).decode(),
            }
        case ReasoningPart(_, provider, opaque) if provider == spelling.provider:
            if isinstance(item := msgspec.json.decode(opaque), dict):
                yield item
