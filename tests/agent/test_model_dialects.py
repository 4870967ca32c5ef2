"""The dialects without a network: streams cut anywhere, and the requests that are written."""

from __future__ import annotations

import json
import random
import re
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agent.model_conversation import (
    ALL_STREAMS,
    ARGUMENTS,
    REASONING,
    SIGNATURE,
    STREAMS,
    TEXT,
    sse,
)
from agent.model_servers import DIALECTS, QUESTION, WEATHER
from telex.agent import limits
from telex.agent.messages import (
    AssistantMessage,
    ImagePart,
    ReasoningPart,
    TextDelta,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)
from telex.agent.models import (
    Finished,
    ModelEvent,
    ModelRequest,
    ModelSettings,
    ToolCallReady,
    errors,
)
from telex.agent.models.model_dialect import Spelling
from telex.agent.models.sse_reader import SseReader, StreamTooLarge
from telex.agent.models.token_estimate import estimate_request, estimate_text
from telex.agent.protocol.runs import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SPELLING = Spelling("m", "test")


def read(dialect: str, pieces: Iterable[bytes]) -> list[ModelEvent]:
    """The events of a stream that comes in these pieces. Raises `ModelFailure`."""
    decoder, reader = DIALECTS[dialect].decoder(SPELLING), SseReader()
    found: list[ModelEvent] = []
    for piece in pieces:
        for data in reader.feed(piece):
            found += decoder.feed(data)
    return [*found, *decoder.eof()]


def parts_of(message: AssistantMessage) -> list[tuple[Any, ...]]:
    """The parts without the data that only one provider has."""
    return [
        (part.id, part.name, bytes(part.arguments), part.malformed)
        if isinstance(part, ToolCallPart)
        else (type(part).__name__, part.text)
        for part in message.parts
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_answer_gives_the_same_messages_in_every_dialect(dialect: str) -> None:
    events = read(dialect, [STREAMS[dialect]])
    shown = [event for event in events if isinstance(event, TextDelta)]
    calls = [event.call for event in events if isinstance(event, ToolCallReady)]
    assert "".join(one.content for one in shown if one.kind == "reasoning") == "".join(REASONING)
    assert "".join(one.content for one in shown if one.kind == "text") == "".join(TEXT)
    assert events[-2] == Usage(100, 40, 140, 64)
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.stop_reason == "tool_calls"
    assert parts_of(finished.message) == [
        ("ReasoningPart", "".join(REASONING)),
        ("TextPart", "".join(TEXT)),
        ("call_0", "get_weather", "".join(ARGUMENTS[0]).encode(), None),
        ("call_1", "get_weather", "".join(ARGUMENTS[1]).encode(), None),
    ]
    assert calls == list(finished.message.tool_calls)
    for call in calls:
        assert set(msgspec.json.decode(call.arguments)) == {"city"}


@pytest.mark.counted
@pytest.mark.parametrize("name", ALL_STREAMS)
def test_the_places_of_the_cuts_never_matter(name: str, counted: Callable[[int, int], int]) -> None:
    dialect, stream = name.partition(".")[0], ALL_STREAMS[name]
    whole = [*map(plain, read(dialect, [stream]))]
    chance = random.Random(name)
    for _ in range(counted(20, 1000)):
        cuts = sorted(chance.sample(range(1, len(stream)), chance.randint(1, 30)))
        pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        assert [*map(plain, read(dialect, pieces))] == whole
    single = (stream[at : at + 1] for at in range(len(stream)))
    assert [*map(plain, read(dialect, single))] == whole


def plain(event: ModelEvent) -> Any:
    match event:
        case Finished(stop_reason, message, reported):
            return stop_reason, parts_of(message), reported
        case ToolCallReady(call):
            return call.id, call.name, bytes(call.arguments)
    return event


@pytest.mark.counted
@pytest.mark.parametrize("name", ALL_STREAMS)
def test_a_stream_that_ends_anywhere_is_never_a_whole_answer(
    name: str, counted: Callable[[int, int], int]
) -> None:
    """1,000 cuts: the connection ends there. Only behind the reason to stop is the answer whole."""
    dialect, stream = name.partition(".")[0], ALL_STREAMS[name]
    enough = len(stream)
    if dialect == "chat" and (reason := re.search(rb'"finish_reason": ?"', stream)):
        enough = stream.index(b"\n\n", reason.end()) + 2
    finished = read(dialect, [stream])[-1]
    assert isinstance(finished, Finished)
    chance = random.Random(name)
    failures = 0
    for _ in range(counted(60, 1000)):
        cut = chance.randrange(len(stream) - 1)
        if cut >= enough:
            assert isinstance(read(dialect, [stream[:cut]])[-1], Finished)
            continue
        with pytest.raises(errors.StreamEndedEarly) as early:
            read(dialect, [stream[:cut]])
        failures += 1
        if (partial := early.value.partial) is not None:
            assert finished.message.text.startswith(partial.text)
            assert not partial.tool_calls
    assert failures


@pytest.mark.counted
@pytest.mark.parametrize("name", ALL_STREAMS)
def test_a_damaged_stream_fails_by_name_or_is_whole(
    name: str, counted: Callable[[int, int], int]
) -> None:
    """Bytes are removed, repeated or changed: it never raises anything else."""
    dialect, stream = name.partition(".")[0], ALL_STREAMS[name]
    chance = random.Random(name)
    for _ in range(counted(50, 1000)):
        at, length = chance.randrange(len(stream)), chance.randint(1, 40)
        middle = chance.choice([b"", stream[at : at + length] * 2, chance.randbytes(length)])
        try:
            events = read(dialect, [stream[:at] + middle + stream[at + length :]])
        except (errors.ModelFailure, UnicodeDecodeError):
            continue
        assert isinstance(events[-1], Finished)


@given(st.binary(max_size=300))
def test_no_bytes_make_a_decoder_raise_anything_else(data: bytes) -> None:
    for dialect in DIALECTS:
        with pytest.raises((errors.ModelFailure, UnicodeDecodeError)):
            read(dialect, [b"data: " + data.replace(b"\n", b"") + b"\n\n"])


BROKEN: dict[str, tuple[str, list[Any], type[errors.ModelFailure], str]] = {
    "chat: an error in the middle": (
        "chat",
        [
            {"choices": [{"delta": {"content": "Hel"}}]},
            {"error": {"message": "GPU lost", "code": 500}},
        ],
        errors.FailedMidStream,
        "GPU lost",
    ),
    "chat: the end is an error": (
        "chat",
        [{"choices": [{"delta": {}, "finish_reason": "error"}]}],
        errors.FailedMidStream,
        "no reason",
    ),
    "chat: done without a reason": (
        "chat",
        [{"choices": [{"delta": {"content": "Hi"}}]}, "[DONE]"],
        errors.MissingStopReason,
        "may be cut off",
    ),
    "chat: nothing": (
        "chat",
        [{"choices": [{"delta": {"content": " "}, "finish_reason": "stop"}]}, "[DONE]"],
        errors.EmptyAnswer,
        "without a text",
    ),
    "chat: no object": ("chat", [[1]], errors.MalformedChunk, "cannot be read"),
    "chat: a wrong type": (
        "chat",
        [{"choices": [{"delta": {"content": 5}}]}],
        errors.MalformedChunk,
        "$.choices[0].delta.content",
    ),
    "chat: a call without a name": (
        "chat",
        [
            {
                "choices": [
                    {"delta": {"tool_calls": [{"index": 0, "id": "x"}]}, "finish_reason": "stop"}
                ]
            },
            "[DONE]",
        ],
        errors.MalformedChunk,
        "did not name it",
    ),
    "responses: failed": (
        "responses",
        [
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "server_error", "message": "sorry"},
                },
            }
        ],
        errors.FailedMidStream,
        "sorry",
    ),
    "responses: too long": (
        "responses",
        [{"type": "error", "code": "context_length_exceeded", "message": "too much"}],
        errors.ContextTooLong,
        "too much",
    ),
    "responses: no status": (
        "responses",
        [
            {"type": "response.output_text.delta", "delta": "Hi"},
            {"type": "response.completed", "response": {}},
        ],
        errors.MissingStopReason,
        "may be cut off",
    ),
    "responses: a lost piece": (
        "responses",
        [
            {"type": "response.output_text.delta", "delta": "Hi"},
            {"type": "response.output_text.done", "text": "Hi there"},
        ],
        errors.MalformedChunk,
        "pieces of the text are missing",
    ),
    "responses: nothing": (
        "responses",
        [{"type": "response.completed", "response": {"status": "completed", "output": []}}],
        errors.EmptyAnswer,
        "without a text",
    ),
    "messages: overloaded": (
        "messages",
        [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
        errors.FailedMidStream,
        "Overloaded",
    ),
    "messages: too often": (
        "messages",
        [{"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}],
        errors.RateLimited,
        "slow down",
    ),
    "messages: no reason": (
        "messages",
        [{"type": "message_start"}, {"type": "message_stop"}],
        errors.MissingStopReason,
        "may be cut off",
    ),
    "messages: an open block": (
        "messages",
        [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
        errors.MalformedChunk,
        "still open",
    ),
    "messages: no block": (
        "messages",
        [{"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}],
        errors.MalformedChunk,
        "is not open",
    ),
    "messages: nothing": (
        "messages",
        [
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
        errors.EmptyAnswer,
        "without a text",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_is_called_what_it_is(name: str) -> None:
    dialect, chunks, failure, words = BROKEN[name]
    with pytest.raises(failure) as broken:
        read(dialect, map(sse, chunks))
    assert words in str(broken.value)
    assert type(broken.value) is failure


ENDS: dict[str, tuple[str, list[Any], str]] = {
    "chat length": (
        "chat",
        [{"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}],
        "length",
    ),
    "chat filter": (
        "chat",
        [{"choices": [{"delta": {"refusal": "no"}, "finish_reason": "content_filter"}]}],
        "refused",
    ),
    "chat another word": (
        "chat",
        [{"choices": [{"delta": {"content": "a"}, "finish_reason": "eos"}]}],
        "stop",
    ),
    "responses length": (
        "responses",
        [
            {"type": "response.output_text.delta", "delta": "a"},
            {
                "type": "response.incomplete",
                "response": {
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
            },
        ],
        "length",
    ),
    "responses filter": (
        "responses",
        [
            {
                "type": "response.incomplete",
                "response": {
                    "status": "incomplete",
                    "incomplete_details": {"reason": "content_filter"},
                },
            },
        ],
        "refused",
    ),
    "messages length": (
        "messages",
        [
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
            {"type": "message_stop"},
        ],
        "length",
    ),
    "messages refusal": (
        "messages",
        [
            {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
            {"type": "message_stop"},
        ],
        "refused",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_reason_to_stop_is_kept(name: str) -> None:
    dialect, chunks, reason = ENDS[name]
    finished = read(dialect, map(sse, chunks))[-1]
    assert isinstance(finished, Finished)
    assert finished.stop_reason == reason


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_events_of_new_types_are_passed_over(dialect: str) -> None:
    """Providers add types; their members may have any shape."""
    strange = sse(
        {"type": "response.new", "delta": {"x": 1}, "item": [], "index": "one", "error": 5}
    )
    head, _, rest = STREAMS[dialect].partition(b"\n\n")
    whole = read(dialect, [STREAMS[dialect]])
    assert list(map(plain, read(dialect, [head + b"\n\n" + strange + rest]))) == [
        *map(plain, whole)
    ]


def test_calls_of_servers_that_number_nothing_are_told_apart() -> None:
    """Some local servers send whole calls, with objects as arguments and without an index."""
    calls = [
        {"id": "a", "function": {"name": "one", "arguments": {"x": 1}}},
        {"id": "b", "function": {"name": "two", "arguments": "{}"}},
    ]
    chunk = {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "stop"}]}
    finished = read("chat", [sse(chunk)])[-1]
    assert isinstance(finished, Finished)
    assert finished.stop_reason == "tool_calls"
    assert [(one.id, one.name, bytes(one.arguments)) for one in finished.message.tool_calls] == [
        ("a", "one", b'{"x":1}'),
        ("b", "two", b"{}"),
    ]


@pytest.mark.parametrize("arguments", ['{"a": 1', "[1]", "null", "NaN", '{"a": 1}}', "[" * 2000])
def test_arguments_that_are_no_object_are_marked(arguments: str) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    finished = read("chat", [sse(chunk)])[-1]
    assert isinstance(finished, Finished)
    (found,) = finished.message.tool_calls
    assert (bytes(found.arguments), found.malformed) == (b"{}", arguments)


def many_pieces(dialect: str, count: int) -> tuple[list[bytes], bytes]:
    """A stream with a tool call whose arguments come one character at a time."""
    if dialect == "chat":
        piece = sse(
            {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "a"}}]}}]}
        )
        call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x":"'}}
        head = sse({"choices": [{"delta": {"tool_calls": [call]}}]})
        last = {"index": 0, "function": {"arguments": '"}'}}
        tail = sse({"choices": [{"delta": {"tool_calls": [last]}, "finish_reason": "tool_calls"}]})
    elif dialect == "responses":
        delta = {"type": "response.function_call_arguments.delta", "output_index": 0}
        piece = sse({**delta, "delta": "a"})
        item = {"type": "function_call", "call_id": "c", "name": "f"}
        head = sse({"type": "response.output_item.added", "item": item})
        head += sse({**delta, "delta": '{"x":"'})
        tail = sse({**delta, "delta": '"}'})
        tail += sse({"type": "response.completed", "response": {"status": "completed"}})
    else:
        piece = sse(
            {
                "type": "content_block_delta",
                "delta": {"type": "input_json_delta", "partial_json": "a"},
            }
        )
        block = {"type": "tool_use", "id": "c", "name": "f"}
        head = sse({"type": "content_block_start", "content_block": block})
        head += piece.replace(b'"a"', b'"{\\"x\\":\\""')
        tail = piece.replace(b'"a"', b'"\\"}"') + sse({"type": "content_block_stop"})
        tail += sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
        tail += sse({"type": "message_stop"})
    return [head, *[piece] * count, tail], b'{"x":"' + b"a" * count + b'"}'


@pytest.mark.counted
@pytest.mark.deadline(600)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_arguments_in_pieces_of_one_byte_take_linear_time(
    dialect: str, counted: Callable[[int, int], int]
) -> None:
    """A megabyte in a soak. Sixteen times the pieces take nowhere near 256 times the time."""
    count = counted(16_000, 1_000_000)
    took = {}
    for some in (count // 16, count):
        pieces, arguments = many_pieces(dialect, some)
        began = time.process_time()
        finished = read(dialect, pieces)[-1]
        took[some] = time.process_time() - began
        assert isinstance(finished, Finished)
        assert bytes(finished.message.tool_calls[0].arguments) == arguments
    print(f"{dialect}: {count} pieces of one byte in {took[count]:.2f} s of CPU")
    assert took[count] < 100 * took[count // 16]


def test_an_answer_over_the_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telex.agent.models.answer.MODEL_ANSWER_CHARS", 10)
    for dialect in DIALECTS:
        with pytest.raises(errors.AnswerTooLarge):
            read(dialect, [STREAMS[dialect]])
    monkeypatch.setattr("telex.agent.models.sse_reader.MODEL_EVENT_BYTES", 100)
    reader = SseReader()
    with pytest.raises(StreamTooLarge):
        for _ in range(100):
            list(reader.feed(b"data: without an end "))
    assert limits.MODEL_STREAM_BYTES > limits.MODEL_EVENT_BYTES


PNG = ImagePart("artifact:1", "image/png")
HISTORY = (
    UserMessage((TextPart("What is this?"), PNG)),
    AssistantMessage(
        (
            ReasoningPart(
                "Hm.", "test", Raw(b'{"type":"thinking","thinking":"Hm.","signature":"s"}')
            ),
            ReasoningPart("Of another.", "other", Raw(b'{"secret":1}')),
            TextPart("I look."),
            ToolCallPart("call|1", "get_weather", Raw(b'{"city":"Paris"}')),
            ToolCallPart("call|2", "get_weather", Raw(b"{}"), malformed="{"),
        ),
        "m",
    ),
    ToolResultMessage("call|1", (TextPart("21 °C"), PNG)),
    UserMessage((TextPart("And now?"),)),
)
WRITTEN = ModelRequest(
    "Be brief.",
    HISTORY,
    (WEATHER,),
    ModelSettings(max_output_tokens=1000, temperature=0.5),
    thread="t1",
)


def written(dialect: str, request: ModelRequest = WRITTEN, **options: Any) -> Any:
    spelling = Spelling("m", "test", images={"artifact:1": "aW1n"}, **options)
    return json.loads(msgspec.json.encode(DIALECTS[dialect].write(request, spelling)))


def test_the_request_of_the_dialect_chat() -> None:
    body = written("chat", cache_key=True, max_tokens_member="max_completion_tokens")
    url = {"url": "data:image/png;base64,aW1n"}
    call = {"type": "function", "function": {"name": "get_weather"}}
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 1000,
        "temperature": 0.5,
        "prompt_cache_key": "t1",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "Return the weather of a city.",
                    "parameters": WEATHER.schema,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": url},
                ],
            },
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        **call,
                        "id": "call|1",
                        "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                    },
                    {
                        **call,
                        "id": "call|2",
                        "function": {"name": "get_weather", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call|1", "content": "21 °C"},
            {"role": "tool", "tool_call_id": "call|2", "content": "The call was not executed."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "The images of call|1:"},
                    {"type": "image_url", "image_url": url},
                ],
            },
            {"role": "user", "content": "And now?"},
        ],
    }


def test_the_request_of_the_dialect_responses() -> None:
    body = written("responses", reasons=True, effort="low", cache_key=True)
    url = "data:image/png;base64,aW1n"
    opaque = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    call = {"type": "function_call", "name": "get_weather"}
    assert body["input"] == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": url},
            ],
        },
        opaque,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look."}],
        },
        {**call, "call_id": "call|1", "arguments": '{"city":"Paris"}'},
        {**call, "call_id": "call|2", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "call|1",
            "output": [
                {"type": "input_text", "text": "21 °C"},
                {"type": "input_image", "image_url": url},
            ],
        },
        {
            "type": "function_call_output",
            "call_id": "call|2",
            "output": "The call was not executed.",
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "And now?"}],
        },
    ]
    del body["input"], body["tools"]
    assert body == {
        "model": "m",
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "max_output_tokens": 1000,
        "temperature": 0.5,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "t1",
    }


def test_the_request_of_the_dialect_messages() -> None:
    body = written("messages", reasons=True, effort="high")
    cached = {"cache_control": {"type": "ephemeral"}}
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aW1n"},
    }
    call = {"type": "tool_use", "name": "get_weather"}
    assert body == {
        "model": "m",
        "max_tokens": 1000,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", **cached}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
        "tools": [
            {
                "name": "get_weather",
                "description": "Return the weather of a city.",
                "input_schema": WEATHER.schema,
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "What is this?"}, {**image, **cached}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {**call, "id": "call_1", "input": {"city": "Paris"}},
                    {**call, "id": "call_2", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [{"type": "text", "text": "21 °C"}, image],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "The call was not executed."}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "And now?", **cached},
                ],
            },
        ],
    }


def test_older_models_think_by_a_number_of_tokens() -> None:
    body = written("messages", reasons=True, effort="high", thinking_budget=True)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 500}
    assert not {"output_config", "temperature"} & set(body)
    for options in ({"reasons": True, "effort": "none"}, {"effort": "high"}, {"reasons": True}):
        body = written("messages", **options)
        assert body["temperature"] == 0.5
        assert not {"output_config", "thinking"} & set(body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reasoning_goes_back_to_its_provider_only(dialect: str) -> None:
    """The answer of a stream, sent again: as it came to the same provider, and not to another."""
    finished = read(dialect, [STREAMS[dialect]])[-1]
    assert isinstance(finished, Finished)
    request = ModelRequest("", (QUESTION, finished.message))
    own = json.dumps(written(dialect, request))
    if dialect == "chat":
        assert "reasoning_content" in own
    else:
        assert SIGNATURE in own
    for other in DIALECTS:
        spelling = Spelling("m", "another")
        sent = msgspec.json.encode(DIALECTS[other].write(request, spelling)).decode()
        assert SIGNATURE not in sent
        assert REASONING[0] not in sent
        assert TEXT[0] in sent


def test_an_image_that_cannot_be_loaded_refuses_the_request() -> None:
    for dialect in DIALECTS.values():
        with pytest.raises(errors.RequestRefused, match="artifact:1 cannot be loaded"):
            dialect.write(WRITTEN, SPELLING)


def test_the_estimate_of_tokens_is_rather_too_high() -> None:
    """Higher than the rule of thumb, a token for four bytes, and more so beyond English."""
    for text, least in (
        ("word " * 60, 75),
        ("天気はどうですか", 8),
        ("Ничего", 6),
        ("🙂🙃", 4),
        ("", 0),
    ):
        assert len(text.encode()) / 4 <= estimate_text(text)
        assert least <= estimate_text(text) <= len(text.encode())
    assert estimate_request(WRITTEN) > 4000, "two images"
    assert estimate_request(ModelRequest("", ())) == 0
