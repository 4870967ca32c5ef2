"""The client of language models on real sockets: retries, keys, cancel. The clock is the test's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_conversation import STREAMS, TEXT, sse
from agent.model_servers import (
    ASKED,
    CANARY,
    CHUNKED,
    DIALECTS,
    HANG,
    QUESTION,
    RESET,
    STREAM,
    Scripted,
    calling,
    events_of,
    response,
    whole,
)
from telex.agent.messages import ImagePart, TextDelta, UserMessage
from telex.agent.models import ModelRequest, Retrying, errors
from telex.agent.models.model_client import ModelDeadlines, World
from telex.agent.models.retry import RetryPolicy, retry_after
from telex.agent.protocol.runs import Usage

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """A clock that advances by being slept on."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def world(self, chance: float = 1.0) -> World:
        return World(sleep=self.sleep, random=lambda: chance, now=lambda: 1_000_000.0)


def chat(*chunks: Any) -> bytes:
    return b"".join(map(sse, chunks))


HELLO = chat({"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}, "[DONE]")
HALF = chat({"choices": [{"delta": {"content": "Hel"}}]})


async def test_the_waits_double_have_jitter_and_end() -> None:
    for chance, waits in ((1.0, [1.0, 2.0, 4.0, 8.0]), (0.0, [0.5, 1.0, 2.0, 4.0])):
        clock = Clock()
        async with (
            Scripted(response(500)).serving() as server,
            calling("chat", server.url, policy=RetryPolicy(), world=clock.world(chance)) as model,
        ):
            events = []
            with pytest.raises(errors.ProviderFailed, match="status 500"):
                async for event in model.stream(ASKED):
                    events.append(event)
        assert clock.slept == waits
        assert [(one.attempt, one.seconds) for one in events if isinstance(one, Retrying)] == [
            *enumerate(waits, 1)
        ]
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.25"}, 0.25),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Mon, 12 Jan 1970 13:46:50 GMT"}, 10.0),
        ({"retry_after": "Mon, 12 Jan 1970 13:46:30 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "1e99"}, None),
        ({"retry_after": "Mon, 12 Jan 99999999999999999999 13:46:50 GMT"}, None),
        ({}, None),
    ],
)
async def test_a_provider_is_given_the_time_that_it_asks_for(
    headers: dict[str, str], seconds: float | None
) -> None:
    clock = Clock()
    answers = (response(429, **headers), STREAM + HELLO)
    async with (
        Scripted(*answers).serving() as server,
        calling("chat", server.url, policy=RetryPolicy(), world=clock.world(0.0)) as model,
    ):
        assert whole(await events_of(model)).message.text == "Hello"
    assert clock.slept == [0.5 if seconds is None else seconds]


async def test_a_wait_that_is_too_long_ends_the_call() -> None:
    async with (
        Scripted(response(429, retry_after="86400")).serving() as server,
        calling("chat", server.url) as model,
    ):
        with pytest.raises(errors.RateLimited) as limited:
            await events_of(model)
    assert limited.value.retry_after == 86400
    assert "asks to wait 86400 s" in str(limited.value)
    assert len(server.requests) == 1


def test_the_time_of_a_header_is_never_shortened_by_chance() -> None:
    failure = errors.RateLimited("x", retry_after=3.0)
    chance = random.Random(1).random
    waits = [RetryPolicy().wait_after(1, failure, chance) for _ in range(200)]
    assert all(wait is not None and 3.0 <= wait <= 3.2 for wait in waits)
    assert retry_after({}, 0.0) is None


async def test_a_part_that_was_shown_is_withdrawn_before_another_attempt() -> None:
    answers = (STREAM + HALF, STREAM, STREAM + HELLO)
    async with Scripted(*answers).serving() as server, calling("chat", server.url) as model:
        events = await events_of(model)
    shown = [
        event.content if isinstance(event, TextDelta) else event.discarded
        for event in events
        if isinstance(event, TextDelta | Retrying)
    ]
    assert shown == ["Hel", True, False, "Hello"]
    reasons = [event.reason for event in events if isinstance(event, Retrying)]
    assert [type(reason) for reason in reasons] == [errors.StreamEndedEarly] * 2
    assert reasons[0].partial is not None
    assert reasons[0].partial.text == "Hel"
    assert server.requests[0] == server.requests[1] == server.requests[2]


@pytest.mark.parametrize(
    "answer",
    [
        (STREAM + HELLO, HANG),
        (CHUNKED + b"%x\r\n" % len(HELLO) + HELLO + b"\r\n", RESET),
        CHUNKED + b"%x\r\n" % len(HELLO) + HELLO + b"\r\n",
    ],
    ids=["stays open", "reset", "no last chunk"],
)
async def test_what_a_connection_does_after_a_whole_answer_changes_nothing(
    answer: bytes | tuple[bytes, ...],
) -> None:
    async with Scripted(answer).serving() as server, calling("chat", server.url) as model:
        events = await events_of(model)
    assert whole(events).message.text == "Hello"
    assert not any(isinstance(event, Retrying) for event in events)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("given", "reason", "calls"),
    [
        ("", "length", [("look", "")]),
        ("", "tool_calls", [("look", None)]),
        ('{"a": 1}', "length", [("look", None)]),
        ("{}", "content_filter", []),
    ],
)
async def test_a_call_that_was_cut_off_or_refused_is_not_executed(
    given: str, reason: str, calls: list[tuple[str, str | None]]
) -> None:
    function = {"name": "look", "arguments": given}
    delta = {"tool_calls": [{"index": 0, "id": "a", "function": function}]}
    answer = chat(
        {"choices": [{"delta": delta}]}, {"choices": [{"delta": {}, "finish_reason": reason}]}
    )
    async with Scripted(STREAM + answer).serving() as server, calling("chat", server.url) as model:
        message = whole(await events_of(model)).message
    assert [(call.name, call.malformed) for call in message.tool_calls] == calls


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": None}, {"prompt_tokens": -5, "completion_tokens": 2}, {}, [], "7"]
)
async def test_counts_that_make_no_sense_leave_an_answer_whole(usage: object) -> None:
    answer = STREAM + chat({"choices": [], "usage": usage}) + HELLO
    async with Scripted(answer).serving() as server, calling("chat", server.url) as model:
        events = await events_of(model)
    assert whole(events).message.text == "Hello"
    assert not any(isinstance(event, Usage | Retrying) for event in events)


BROKEN: dict[str, tuple[bytes | tuple[bytes, ...], type[errors.ModelFailure]]] = {
    "reset": ((STREAM + HALF, RESET), errors.StreamEndedEarly),
    "cut in a chunk": (CHUNKED + b"ff\r\n" + HALF, errors.StreamEndedEarly),
    "not UTF-8": (STREAM + b"data: \xff\xfe\n\n", errors.MalformedChunk),
    "compressed": (
        STREAM.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n"),
        errors.RequestRefused,
    ),
    "silence": ((STREAM + HALF, HANG), errors.ModelTimedOut),
    "no answer": ((HANG,), errors.ModelTimedOut),
    "no answer after the headers": ((STREAM, HANG), errors.ModelTimedOut),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", errors.ModelUnreachable),
    "a page": (response(200, b"<html>", content_type="text/html"), errors.RequestRefused),
    "a redirect": (response(302, location="http://other/"), errors.RequestRefused),
    "paid up": (response(402), errors.QuotaSpent),
    "quota": (
        response(429, b'{"error":{"code":"insufficient_quota","message":"no"}}'),
        errors.QuotaSpent,
    ),
    "too long": (
        response(400, b'{"error":{"message":"prompt is too long: 9 tokens"}}'),
        errors.ContextTooLong,
    ),
    "too large": (response(413), errors.ContextTooLong),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_each_way_to_fail_has_its_name(name: str) -> None:
    answer, failure = BROKEN[name]
    deadlines = ModelDeadlines(
        first=0.2 if name.startswith("no answer") else 60.0,
        silence=0.2 if name == "silence" else 60.0,
    )
    async with (
        Scripted(answer).serving() as server,
        calling("chat", server.url, policy=RetryPolicy(attempts=1), deadlines=deadlines) as model,
    ):
        with pytest.raises(failure) as failed:
            await events_of(model)
    assert type(failed.value) is failure
    if name in ("reset", "silence"):
        assert failed.value.partial is not None
        assert failed.value.partial.text == "Hel"


async def test_a_server_that_is_not_there_is_named() -> None:
    async with calling("chat", "http://127.0.0.1:9/v1", policy=RetryPolicy(attempts=1)) as model:
        with pytest.raises(errors.ModelUnreachable, match=r"127\.0\.0\.1:9/v1/chat/completions"):
            await events_of(model)


ECHOES: list[bytes] = [
    *(
        response(status, json.dumps({"error": {"message": f"bad key {CANARY}!"}}).encode())
        for status in (400, 401, 402, 403, 404, 408, 413, 418, 429, 500, 529)
    ),
    response(500, f"plain text, key {CANARY}".encode()),
    response(401, json.dumps({"detail": [CANARY, {"authorization": CANARY}]}).encode()),
    response(302, location=f"http://127.0.0.1:9/?key={CANARY}"),
    response(200, b"", content_type=f"text/{CANARY}"),
    STREAM + f"data: not JSON {CANARY}\n\n".encode(),
    STREAM + sse({"error": {"message": f"your key {CANARY} expired"}}),
    STREAM + sse({"type": "error", "error": {"message": CANARY}, "message": CANARY}),
    STREAM + sse({"type": "response.failed", "response": {"error": {"message": CANARY}}}),
    STREAM + sse({"type": CANARY, "choices": CANARY, "index": CANARY}),
    *(STREAM + f"data: {'x' * blanks}{CANARY}\n\n".encode() for blanks in range(90, 120, 3)),
    response(400, json.dumps({"error": "x" * 485 + CANARY}).encode()),
    STREAM,
    f"HTTP/1.1 {CANARY}\r\n\r\n".encode(),
]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_key_is_in_no_failure_event_or_log(
    dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A canary as the key, and servers that send it back in every way that fails."""
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    for answer in ECHOES:
        async with (
            Scripted(answer).serving() as server,
            calling(dialect, server.url, policy=RetryPolicy(2), world=Clock().world()) as model,
        ):
            with pytest.raises(errors.ModelFailure) as failed:
                async for event in model.stream(ASKED):
                    told.append(repr(event))
                    if isinstance(event, Retrying):
                        told.append(str(event.reason))
            assert CANARY.encode() in server.requests[0], "the key goes to the server"
            assert CANARY.encode() not in server.requests[0].split(b"\r\n\r\n", 1)[1]
            told += [repr(failed.value), str(failed.value), repr(model)]
            told += traceback.format_exception(failed.value)
            assert failed.value.__cause__ is None or CANARY not in repr(failed.value.__cause__)
    assert CANARY[:12] not in "".join(told), "nor a part of it"
    # The log of telex has its own records only; httpcore's would have what a server echoes.
    logged = [
        one.getMessage() for one in caplog.records if one.name.partition(".")[0] != "httpcore"
    ]
    assert CANARY not in "".join(logged)


async def test_a_key_goes_into_the_header_of_its_dialect() -> None:
    for dialect, header in (
        ("chat", f"authorization: bearer {CANARY}"),
        ("responses", f"authorization: bearer {CANARY}"),
        ("messages", f"x-api-key: {CANARY}"),
    ):
        async with (
            Scripted(STREAM + STREAMS[dialect]).serving() as server,
            calling(dialect, server.url) as model,
        ):
            finished = whole(await events_of(model))
        head = server.requests[0].split(b"\r\n\r\n")[0].decode().lower()
        assert header.lower() in head
        assert head.startswith(f"post /v1{DIALECTS[dialect].path} ")
        assert finished.message.text == "".join(TEXT)


@pytest.mark.each_loop
@pytest.mark.parametrize("when", ["before the answer", "in the answer", "between attempts"])
async def test_a_cancel_closes_the_socket(when: str, loop: str) -> None:
    begun = asyncio.Event()

    async def sleep(seconds: float) -> None:
        begun.set()
        await asyncio.Event().wait()

    answers: dict[str, bytes | tuple[bytes, ...]] = {
        "before the answer": (HANG,),
        "in the answer": (STREAM + HALF, HANG),
        "between attempts": response(500),
    }
    async with (
        Scripted(answers[when]).serving() as server,
        calling("chat", server.url, world=World(sleep=sleep)) as model,
    ):
        seen: list[object] = []

        async def call() -> None:
            async for event in model.stream(ASKED):
                seen.append(event)
                if isinstance(event, TextDelta):
                    begun.set()

        task = asyncio.ensure_future(call())
        if when == "before the answer":
            while not server.requests:
                await asyncio.sleep(0)
        else:
            await begun.wait()
        count = len(seen)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        if when != "between attempts":
            await server.closed.wait()  # without the end of the model's client
        assert len(seen) == count


async def test_a_caller_that_leaves_the_loop_closes_the_socket() -> None:
    async with (
        Scripted((STREAM + HALF, HANG)).serving() as server,
        calling("chat", server.url) as model,
    ):
        events = model.stream(ASKED)
        async with contextlib.aclosing(events):
            async for _ in events:
                break
        await server.closed.wait()


async def test_many_calls_share_a_model() -> None:
    async with (
        Scripted(STREAM + HELLO).serving() as server,
        calling("chat", server.url) as model,
    ):
        answers = await asyncio.gather(*(events_of(model) for _ in range(20)))
    assert {whole(events).message.text for events in answers} == {"Hello"}
    assert len(server.requests) == 20


async def test_images_are_loaded_when_they_are_sent() -> None:
    asked = ModelRequest(
        "", (UserMessage((*QUESTION.parts, ImagePart("artifact:7", "image/png"))),)
    )

    async def load(reference: str) -> bytes:
        if reference == "artifact:7":
            return b"img"
        raise FileNotFoundError if reference == "artifact:8" else PermissionError(13, "No access")

    gone, closed = (
        ModelRequest("", (UserMessage((ImagePart(f"artifact:{n}", "image/png"),)),)) for n in (8, 9)
    )
    async with (
        Scripted(STREAM + HELLO).serving() as server,
        calling("chat", server.url, world=World(load_image=load)) as model,
    ):
        whole(await events_of(model, asked))
        whole(await events_of(model, gone))
        with pytest.raises(errors.RequestRefused, match="artifact:9 cannot be loaded: No access"):
            await events_of(model, closed)
    assert b"data:image/png;base64,aW1n" in server.requests[0]
    assert b"[image no longer stored]" in server.requests[1]


@pytest.mark.counted
async def test_a_connection_cut_anywhere_is_never_a_whole_answer(
    counted: Callable[[int, int], int],
) -> None:
    """The same cuts as in the tests of the dialects, on sockets: by an end, and by a reset."""
    chance = random.Random(7)
    for _ in range(counted(12, 300)):
        dialect = chance.choice(sorted(DIALECTS))
        stream = STREAMS[dialect]
        last = stream.index(b'"finish_reason": "tool_calls"') if dialect == "chat" else len(stream)
        head = STREAM + stream[: chance.randrange(last)]
        answer = (head, RESET) if chance.random() < 0.5 else (head,)
        async with (
            Scripted(answer, STREAM + stream).serving() as server,
            calling(dialect, server.url, world=Clock().world()) as model,
        ):
            events = await events_of(model)
        (retry,) = [event for event in events if isinstance(event, Retrying)]
        assert isinstance(retry.reason, errors.StreamEndedEarly | errors.ModelUnreachable)
        assert whole(events).message.text == "".join(TEXT)
        after = events[events.index(retry) + 1 :]
        shown = [one.content for one in after if isinstance(one, TextDelta) and one.kind == "text"]
        assert "".join(shown) == "".join(TEXT), "the second attempt is shown whole, and once"


def test_nothing_of_http_is_loaded_before_a_call() -> None:
    code = (
        "import sys, telex.agent.messages, telex.agent.models, telex.agent.models.model_registry;"
        "telex.agent.models.model_registry.presets();"
        "print([m for m in ('httpx', 'httpx_sse', 'anyio') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
