"""The golden vectors of `tests/corpus/json_escapes`, which other languages can use too."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from telex.escapes.commands import COMMANDS, lower
from telex.escapes.commands.lifter import Lifter
from telex.rpc.dialects.json_escapes import CODES, JsonEscapes
from telex.rpc.errors import Condition
from telex.rpc.messages import Batch, Malformed
from telex.wire import json_escape
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible

CORPUS = Path(__file__).parent.parent / "corpus" / "json_escapes"
CLAIMS = {"to_terminal": json_escape.TO_TERMINAL, "to_program": json_escape.TO_PROGRAM}
FAULTS = {"length mismatch", "malformed", "aborted", "truncated", "ECPARSE", "ECPROTO", "direction"}


def vectors(*names: str) -> list[Any]:
    found = [(name, one) for name in names for one in json.loads((CORPUS / name).read_text())]
    return [pytest.param(one, id=f"{Path(name).stem}: {one['name']}") for name, one in found]


FRAMES = vectors("sent.json", "spec.json", "wave.json", "bad.json")


def read(vector: dict[str, Any], step: int | None = None) -> tuple[Any, str | None, bytes]:
    """Return the packet or the fault, and the visible bytes."""
    stream = b64decode(vector["bytes"])
    demux = Demux(CLAIMS.values())
    reads = [
        stream[at : at + (step or len(stream))] for at in range(0, len(stream), step or len(stream))
    ]
    events = [event for read in reads for event in demux.feed(read)] + demux.eof()
    shown = b"".join(event.data for event in events if isinstance(event, Visible))
    (event,) = (event for event in events if not isinstance(event, Visible))
    return *understood(event, vector["direction"]), shown


def understood(event: object, direction: str) -> tuple[Any, str | None]:
    if isinstance(event, Claimed):
        if event.claim != CLAIMS[direction]:
            return None, "direction"
        event = json_escape.parse(event)
    if isinstance(event, Fault):
        return None, event.reason.value
    message = JsonEscapes().decode(event.body)
    if isinstance(message, Malformed):
        assert isinstance(message.problem.code, Condition)
        return None, CODES[message.problem.code]
    assert not isinstance(message, Batch)
    return json.loads(JsonEscapes().encode(message)), None


@pytest.mark.parametrize("vector", FRAMES)
@pytest.mark.parametrize("step", [None, 1, 7])
def test_a_vector_is_parsed_to_its_packet(vector: dict[str, Any], step: int | None) -> None:
    packet, fault, shown = read(vector, step)
    assert (packet, fault) == (vector["packet"], vector["fault"])
    assert shown == (b"\x1b[H" if b64decode(vector["bytes"]).endswith(b"\x1b[H") else b"")


@pytest.mark.parametrize("vector", vectors("sent.json"))
def test_a_packet_is_encoded_to_exactly_these_bytes(vector: dict[str, Any]) -> None:
    message = JsonEscapes().decode(json.dumps(vector["packet"]).encode())
    assert not isinstance(message, Malformed | Batch)
    body = msgspec.json.encode(msgspec.json.decode(JsonEscapes().encode(message)))
    claim = CLAIMS[vector["direction"]]
    assert json_escape.encode(body, claim) == b64decode(vector["bytes"])


@pytest.mark.parametrize("vector", vectors("lowering.json"))
def test_a_command_is_lowered_to_exactly_these_bytes_and_lifted_from_them(
    vector: dict[str, Any],
) -> None:
    bytes_ = b64decode(vector["bytes"])
    assert lower(vector["command"], vector["data"]) == bytes_
    if COMMANDS[vector["command"]].level is not None:
        assert not [one for one in Lifter().feed(bytes_) if isinstance(one, bytes)]


def test_the_vectors_have_the_documented_form() -> None:
    members = {"name", "dialect", "direction", "bytes", "packet", "fault"}
    for vector in (param.values[0] for param in FRAMES):
        assert vector.keys() == members
        assert (vector["packet"] is None) == (vector["fault"] in FAULTS)
        assert vector["dialect"] in ("spec", "wave")
    lowered = {param.values[0]["command"] for param in vectors("lowering.json")}
    assert lowered == {name for name, one in COMMANDS.items() if one.lower is not None}
