"""Every fault that llmock injects, in each dialect: its verdict on our client is clean.

llmock sees every attempt and its time. It reports a client that ignores Retry-After, retries what
cannot succeed, does not back off, gives up at once, waits for a stalled stream, or uses an answer
that was cut off.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import leftovers
from agent.model_servers import (
    ASKED,
    ASKED_WITH_TOOL,
    CANARY,
    DIALECTS,
    calling,
    events_of,
    whole,
)
from conftest import SOAK
from telex.agent.models import Retrying, errors
from telex.agent.models.model_client import ModelDeadlines, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from llmock.pytest_plugin import LLMock

ANSWER = "The answer to that is forty-two, as far as anybody here can tell."
BASES = {"chat": "/v1", "responses": "/v1", "messages": "/anthropic/v1"}


@pytest.fixture
def mock(llmock: LLMock) -> Iterator[LLMock]:
    """llmock, which closes its ends of the connections in a thread of its own."""
    before = leftovers.descriptors()
    yield llmock
    deadline = time.monotonic() + 60.0
    while leftovers.descriptors().items() - before.items() and time.monotonic() < deadline:
        time.sleep(0.002)


@dataclass(frozen=True)
class Fault:
    inject: Callable[[LLMock], object]
    failure: type[errors.ModelFailure] | None = None
    """The call fails with this; else it succeeds."""
    reasons: tuple[type[errors.ModelFailure], ...] = ()
    """The reasons of the retries."""


def status(
    code: int, reason: type[errors.ModelFailure], *, retried: bool = True
) -> tuple[str, Fault]:
    fault = Fault(lambda mock: mock.fail(code), None if retried else reason, (reason,) * retried)
    return f"status {code}", fault


FAULTS = dict(
    [
        status(400, errors.RequestRefused, retried=False),
        status(401, errors.KeyRefused, retried=False),
        status(403, errors.KeyRefused, retried=False),
        status(404, errors.ModelNotFound, retried=False),
        status(408, errors.ProviderFailed),
        status(409, errors.ProviderFailed),
        status(422, errors.RequestRefused, retried=False),
        status(429, errors.RateLimited),
        status(500, errors.ProviderFailed),
        status(502, errors.ProviderFailed),
        status(503, errors.ProviderFailed),
        status(504, errors.ProviderFailed),
        status(529, errors.ProviderFailed),
    ]
) | {
    "rate limit": Fault(
        lambda mock: mock.rate_limit(times=2, retry_after=0.2), None, (errors.RateLimited,) * 2
    ),
    "outage": Fault(
        lambda mock: mock.fail(503, times=None, retry_after=0.1),
        errors.ProviderFailed,
        (errors.ProviderFailed,) * 3,
    ),
    "context overflow": Fault(lambda mock: mock.context_overflow(), errors.ContextTooLong),
    "delay": Fault(lambda mock: mock.delay(0.2)),
    "slow first token": Fault(lambda mock: mock.slow_first_token(0.2)),
    "disconnect": Fault(
        lambda mock: mock.disconnect(after_chunks=3), None, (errors.StreamEndedEarly,)
    ),
    "disconnect at once": Fault(
        lambda mock: mock.disconnect(after_chunks=0), None, (errors.StreamEndedEarly,)
    ),
    "truncate": Fault(lambda mock: mock.truncate(after_chunks=3), None, (errors.StreamEndedEarly,)),
    "truncate at once": Fault(
        lambda mock: mock.truncate(after_chunks=0), None, (errors.StreamEndedEarly,)
    ),
    "corrupt": Fault(lambda mock: mock.corrupt(after_chunks=3), None, (errors.MalformedChunk,)),
    "stall": Fault(lambda mock: mock.stall(after_chunks=3), None, (errors.ModelTimedOut,)),
}


CASES = [
    (name, dialect)
    for row, name in enumerate(FAULTS)
    for column, dialect in enumerate(DIALECTS)
    # The status of a response is read in one place: `make soak` tries each in every dialect.
    if SOAK or not name.startswith("status") or row % len(DIALECTS) == column
]


@pytest.mark.counted
@pytest.mark.parametrize(("name", "dialect"), CASES)
async def test_the_verdict_is_clean_for_every_fault(mock: LLMock, name: str, dialect: str) -> None:
    fault = FAULTS[name]
    fault.inject(mock)
    mock.reply(ANSWER, times=None)
    silence = 0.3 if name == "stall" else 60.0
    mock.pace(20)  # so that a stream has not been sent whole before we leave it

    async def sleep(seconds: float) -> None:
        await asyncio.to_thread(lambda: mock.requests)  # returns when the server saw us leave
        mock.pace(0)
        await asyncio.sleep(seconds)

    world = World(sleep=sleep, random=lambda: 0.5)
    deadlines = ModelDeadlines(60.0, silence)
    url = mock.url + BASES[dialect]
    async with calling(dialect, url, deadlines=deadlines, world=world) as model:
        events = []
        if fault.failure is None:
            events = await events_of(model)
            assert whole(events).message.text == ANSWER
        else:
            with pytest.raises(fault.failure) as failed:
                async for event in model.stream(ASKED):
                    events.append(event)
            assert CANARY not in repr(failed.value)
    retries = [event for event in events if isinstance(event, Retrying)]
    assert tuple(type(event.reason) for event in retries) == fault.reasons
    assert all(CANARY not in repr(event) for event in events)
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_broken_tool_call_is_marked_and_never_retried(mock: LLMock, dialect: str) -> None:
    async with calling(dialect, mock.url + BASES[dialect]) as model:
        mock.break_tool_call("malformed_arguments")
        (call,) = whole(await events_of(model, ASKED_WITH_TOOL)).message.tool_calls
        mock.break_tool_call("unknown_tool")
        (unknown,) = whole(await events_of(model, ASKED_WITH_TOOL)).message.tool_calls
        (good,) = whole(await events_of(model, ASKED_WITH_TOOL)).message.tool_calls
    assert call.malformed, "the caller must know that these are not the arguments of the model"
    assert bytes(call.arguments) == b"{}"
    assert unknown.name != "get_weather"
    assert (good.name, good.malformed) == ("get_weather", None)
    assert b'"city"' in bytes(good.arguments)
    assert len(mock.requests) == 3
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_quota_is_waited_for_as_long_as_the_provider_says(
    mock: LLMock, dialect: str
) -> None:
    mock.limits(rpm=600)  # a call each 0.1 s, when the first are spent
    async with calling(dialect, mock.url + BASES[dialect]) as model:
        for _ in range(3):
            whole(await events_of(model))
    mock.assert_resilient(strict=True)


def test_a_key_is_nowhere_after_runs_of_the_command(mock: LLMock, tmp_path: Path) -> None:
    """One run whose stream breaks, one whose key is refused and sent back, and an export."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "TELEX_HOME": str(home),
        "ANTHROPIC_API_KEY": CANARY,
        "ANTHROPIC_BASE_URL": mock.base_url("anthropic"),
    }

    def telex(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "telex", "agent", *words],
            env=environ,
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=80,
            check=False,
        )

    mock.truncate(after_chunks=3)
    answered = telex("exec", "List the files.")
    assert answered.returncode == 0, answered.stderr
    assert "> list " in answered.stderr
    mock.fail(401, message=f"your key {CANARY} is wrong")
    refused = telex("exec", "List the files.")
    assert refused.returncode == 1
    assert "the provider refused the key: your key [REDACTED] is wrong" in refused.stderr
    exported = telex("export")
    assert "List the files." in exported.stdout
    mock.assert_resilient(strict=True)
    told = [one.stdout + one.stderr for one in (answered, refused, exported)]
    kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert CANARY not in "".join(told)
    assert CANARY.encode() not in b"".join(kept)
