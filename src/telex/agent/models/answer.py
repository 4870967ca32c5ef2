"""Builds one answer from the pieces of its stream. Shared by the decoders of all dialects.

A piece is appended to a list and joined once, so an answer in pieces of one byte takes linear time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

import msgspec
from msgspec import Raw

from telex.agent.limits import MODEL_ANSWER_CHARS, MODEL_ANSWER_PARTS
from telex.agent.messages import (
    AssistantMessage,
    ReasoningPart,
    TextDelta,
    TextPart,
    ToolCallPart,
)
from telex.agent.models import Finished, ModelEvent, StopReason, ToolCallReady
from telex.agent.models.errors import (
    AnswerTooLarge,
    EmptyAnswer,
    MalformedChunk,
    StreamEndedEarly,
)
from telex.agent.models.http_failures import failure_mid_stream

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from telex.agent.protocol.runs import Usage

_EXCERPT: Final = 120


@dataclass(slots=True)
class _OpenPart:
    kind: Literal["text", "reasoning", "call"]
    pieces: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    opaque: Any = None
    ready: ToolCallPart | None = None

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class Answer:
    """One answer while it streams. A part is found by the key that its dialect gives it."""

    def __init__(self, model: str, provider: str) -> None:
        self.model = model
        self.usage: Usage | None = None
        self._provider = provider
        self._parts: dict[Hashable, _OpenPart] = {}
        self._chars = 0

    def text(self, key: Hashable, piece: str) -> Iterator[ModelEvent]:
        """Append a piece of a text that the person sees."""
        yield from self._append(key, "text", piece)

    def reasoning(self, key: Hashable, piece: str) -> Iterator[ModelEvent]:
        """Append a piece of a reasoning."""
        yield from self._append(key, "reasoning", piece)

    def keep(self, key: Hashable, opaque: Any) -> None:
        """Keep the data that the provider wants back with a reasoning."""
        self._part(key, "reasoning").opaque = opaque

    def begin_call(self, key: Hashable, id: str, name: str) -> None:
        """Begin a tool call, or complete its id and name."""
        part = self._part(key, "call")
        part.id = part.id or id
        part.name = part.name or name

    def arguments(self, key: Hashable, piece: str) -> None:
        """Append a piece of the arguments of a call."""
        if piece:
            self._count(piece)
            self._part(key, "call").pieces.append(piece)

    def arguments_of(self, key: Hashable) -> str:
        return self._part(key, "call").text

    def text_of(self, key: Hashable) -> str:
        part = self._parts.get(key)
        return "" if part is None else part.text

    def end_call(self, key: Hashable) -> Iterator[ModelEvent]:
        """Yield the call, whose arguments are complete."""
        part = self._part(key, "call")
        if part.ready is None:
            if not part.name:
                raise MalformedChunk(
                    "the model called a tool and did not name it", partial=self.partial()
                )
            # An id of our own is unique in its answer, and results follow their answer.
            call_id = part.id or f"call_{list(self._parts).index(key)}"
            part.ready = _complete(call_id, part.name, part.text)
            yield ToolCallReady(part.ready)

    def finish(self, stop_reason: StopReason, reported: str) -> Iterator[ModelEvent]:
        """Yield the last events. Raises `EmptyAnswer`."""
        for key, part in self._parts.items():
            if part.kind == "call":
                yield from self.end_call(key)
                if part.ready and stop_reason == "length" and not part.text.strip():
                    # Cut off before its arguments: `{}` would be another call.
                    part.ready = msgspec.structs.replace(part.ready, malformed=part.text)
        message = AssistantMessage(tuple(self._whole_parts()), self.model)
        if stop_reason == "refused":  # its calls are not executed
            message = self.partial() or AssistantMessage((), self.model)
        if message.tool_calls and stop_reason == "stop":
            stop_reason = "tool_calls"  # several local servers say `stop` after a call
        elif stop_reason == "tool_calls" and not message.tool_calls:
            stop_reason = "stop"
        if stop_reason == "stop" and not message.text.strip():
            raise EmptyAnswer(
                "the model ended its answer without a text and without a tool call",
                partial=self.partial(),
            )
        if self.usage is not None:
            yield self.usage
        yield Finished(stop_reason, message, reported)

    def partial(self) -> AssistantMessage | None:
        """Return the texts so far, without tool calls; None if there are none."""
        parts = [part for part in self._whole_parts() if not isinstance(part, ToolCallPart)]
        return AssistantMessage(tuple(parts), self.model) if parts else None

    def fail_mid_stream(self, error: Any) -> NoReturn:
        """Raise the failure for an error that came in place of the rest of the answer."""
        raise failure_mid_stream(error, self.partial())

    def end_early(self) -> NoReturn:
        """Raise the failure for a stream that ended before the answer did."""
        raise StreamEndedEarly("the connection ended before the answer did", partial=self.partial())

    def malformed(self, data: str, why: str) -> MalformedChunk:
        """Return the failure for a chunk that cannot be read."""
        return MalformedChunk(
            f"a piece of the answer cannot be read ({why}): {data[:_EXCERPT]!r}",
            partial=self.partial(),
        )

    def _append(
        self, key: Hashable, kind: Literal["text", "reasoning"], piece: str
    ) -> Iterator[ModelEvent]:
        if piece:
            self._count(piece)
            self._part(key, kind).pieces.append(piece)
            yield TextDelta(kind, piece)

    def _part(self, key: Hashable, kind: Literal["text", "reasoning", "call"]) -> _OpenPart:
        part = self._parts.get(key)
        if part is None:
            if len(self._parts) >= MODEL_ANSWER_PARTS:
                raise AnswerTooLarge(
                    f"the answer has more than {MODEL_ANSWER_PARTS} parts", partial=self.partial()
                )
            part = self._parts[key] = _OpenPart(kind)
        elif part.kind != kind:
            raise MalformedChunk(
                f"a {part.kind} part of the answer goes on as {kind}", partial=self.partial()
            )
        return part

    def _count(self, piece: str) -> None:
        self._chars += len(piece)
        if self._chars > MODEL_ANSWER_CHARS:
            raise AnswerTooLarge(
                f"the answer has more than {MODEL_ANSWER_CHARS} characters",
                partial=self.partial(),
            )

    def _whole_parts(self) -> Iterator[TextPart | ReasoningPart | ToolCallPart]:
        for part in self._parts.values():
            if part.kind == "text" and part.text:
                yield TextPart(part.text)
            elif part.kind == "reasoning" and (part.text or part.opaque is not None):
                opaque = Raw(msgspec.json.encode(part.opaque))
                yield ReasoningPart(part.text, self._provider, opaque)
            elif part.ready is not None:
                yield part.ready


def _complete(id: str, name: str, text: str) -> ToolCallPart:
    """Return the call. Arguments that are not a JSON object are marked, and never executed."""
    arguments = text.strip().encode("utf-8", "surrogatepass") or b"{}"
    try:
        is_object = isinstance(msgspec.json.decode(arguments), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        is_object = False
    if is_object:
        return ToolCallPart(id, name, Raw(arguments))
    return ToolCallPart(id, name, Raw(b"{}"), malformed=text)
