"""TELEX_TRACE: the conversation on stderr, redacted, in a format that a test can play."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from telex.config.settings import TABLE
from telex.redaction import Redactor
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.rpc.testing import memory_channels, play
from telex.rpc.trace import LAYERS, Trace

SECRET = "sk-" + "a1B2" * 8


def echo(params: dict[str, Any]) -> dict[str, Any]:
    return params


async def traced(*layers: str) -> list[str]:
    methods, output = Methods(), io.StringIO()
    methods.add("echo", echo)
    ours, theirs = memory_channels()
    trace = Trace(frozenset(layers), Redactor().redact, output)
    async with Peer(ours, JsonRpc()) as left, Peer(theirs, JsonRpc(), methods, trace=trace):
        assert await left.call("echo", {"key": SECRET}) == {"key": SECRET}
    return output.getvalue().splitlines()


async def test_the_wire_is_printed_both_ways_and_redacted() -> None:
    assert await traced("wire") == [
        'wire << {"jsonrpc":"2.0","method":"echo","id":1,"params":{"key":"[REDACTED]"}}',
        'wire >> {"jsonrpc":"2.0","id":1,"result":{"key":"[REDACTED]"}}',
    ]


async def test_the_messages_are_printed_both_ways_and_redacted() -> None:
    incoming, outgoing = await traced("rpc")
    assert incoming.startswith("rpc << Request id=1 method='echo' data=")
    assert outgoing.startswith("rpc >> Reply id=1 data=")
    assert SECRET not in incoming + outgoing


async def test_the_printed_trace_can_be_played_again() -> None:
    methods = Methods()
    methods.add("echo", echo)
    await play("\n".join(await traced("wire")), methods)


@pytest.mark.parametrize("layers", ["wire", "rpc", "wire,rpc", "", "wire, nonsense"])
def test_the_environment_turns_it_on_for_every_peer(layers: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "tutorial" / "first-conversation.md"
    code = page.read_text().split("```python\n")[1].split("```")[0]
    environment = {**os.environ, "TELEX_TRACE": layers}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for layer in LAYERS:
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"{layer} ")]
        assert len(lines) == (12 if layer in layers.split(",") else 0)
    expected = "TELEX_TRACE: unknown layer nonsense; the layers are wire, rpc"
    assert (expected in done.stderr) is ("nonsense" in layers)


def test_the_setting_and_the_trace_know_the_same_layers() -> None:
    (of_the_setting, _) = get_args(TABLE["trace"].type)
    assert get_args(of_the_setting) == LAYERS
