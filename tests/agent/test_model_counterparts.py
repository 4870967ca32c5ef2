"""A server of others: aimock, from npm. Installed once beside the environment of the tests, and run
by `make soak` only."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_servers import (
    ASKED_WITH_TOOL,
    DIALECTS,
    QUESTION,
    WEATHER,
    calling,
    events_of,
    whole,
)
from agent.test_model_dialects import parts_of
from originals.installing import from_npm
from telex.agent.messages import TextPart, ToolResultMessage
from telex.agent.models import ModelRequest, errors
from telex.agent.models.retry import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Program = Callable[[str], str]

pytestmark = [pytest.mark.soak, pytest.mark.counted, pytest.mark.deadline(300)]

ANSWERS = {
    "fixtures": [
        {
            "match": {"userMessage": "weather", "hasToolResult": False},
            "response": {
                "reasoning": "They ask for the weather.",
                "content": "Let me look.",
                "toolCalls": [{"name": "get_weather", "arguments": {"city": "Paris"}}],
            },
        },
        {
            "match": {"hasToolResult": True},
            "response": {"content": "It is 21 °C in Paris \u2028🙂."},
        },
    ]
}


@contextmanager
def running(argv: list[str], listening: str) -> Iterator[str]:
    """A server, until the end of the block; the match of `listening` in its output."""
    server = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout is not None
    try:
        said = ""
        for line in server.stdout:
            said += line
            if found := re.search(listening, line):
                yield found[1]
                return
        pytest.fail(f"{argv[0]} ended: {said[-2000:]}")
    finally:
        server.kill()
        server.communicate()


def aimock(program: Program, tmp_path: Path, *options: str) -> Any:
    found = from_npm(program, "@copilotkit/aimock", "1.43.0", "dist/cli.js")
    fixtures = tmp_path / "fixtures.json"
    fixtures.write_text(json.dumps(ANSWERS))
    argv = [program("node"), str(found), "-p", "0", "-f", str(fixtures), "-c", "3", *options]
    return running(argv, r"listening on (http://127\.0\.0\.1:\d+)")


async def test_a_conversation_with_aimock_is_the_same_in_every_dialect(
    program: Program, tmp_path: Path
) -> None:
    with aimock(program, tmp_path, "--strict") as url:
        for dialect in DIALECTS:
            async with calling(dialect, f"{url}/v1") as model:
                first = whole(await events_of(model, ASKED_WITH_TOOL))
                (call,) = first.message.tool_calls
                result = ToolResultMessage(call.id, (TextPart("21 °C"),))
                history = (QUESTION, first.message, result)
                second = whole(await events_of(model, ModelRequest("", history, (WEATHER,))))
            assert first.stop_reason == "tool_calls"
            assert parts_of(first.message) == [
                ("ReasoningPart", "They ask for the weather."),
                ("TextPart", "Let me look."),
                (call.id, "get_weather", b'{"city":"Paris"}', None),
            ]
            assert second.stop_reason == "stop"
            assert second.message.text == "It is 21 °C in Paris \u2028🙂."


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("--chaos-drop", errors.ProviderFailed),
        ("--chaos-malformed", errors.RequestRefused),
        ("--chaos-disconnect", errors.ModelUnreachable),
        ("--chaos-ratelimit", errors.RateLimited),
    ],
)
async def test_the_chaos_of_aimock_is_called_what_it_is(
    program: Program, tmp_path: Path, fault: str, failure: type[errors.ModelFailure]
) -> None:
    with aimock(program, tmp_path, fault, "1") as url:
        for dialect in DIALECTS:
            policy = RetryPolicy(attempts=1)
            async with calling(dialect, f"{url}/v1", policy=policy) as model:
                with pytest.raises(failure):
                    await events_of(model, ASKED_WITH_TOOL)
