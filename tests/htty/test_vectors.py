"""The golden vectors of `tests/corpus/htty`, which implementations in other languages use too."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from telex.htty.chunk_stream import ChunkReceiver, StreamAborted
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible
from telex.wire.htty_chunk import CHUNK, encode, parse

CORPUS = Path(__file__).parent.parent / "corpus" / "htty"


def vectors(*names: str) -> list[Any]:
    found = [(name, one) for name in names for one in json.loads((CORPUS / name).read_text())]
    return [pytest.param(one, id=f"{Path(name).stem}: {one['name']}") for name, one in found]


@pytest.mark.parametrize("vector", vectors("encode.json"))
def test_the_encoder_writes_these_very_bytes(vector: dict[str, Any]) -> None:
    chunks = encode(b64decode(vector["payload"]), vector["chunk_bytes"])
    assert chunks == b64decode(vector["stream"])


@pytest.mark.parametrize("step", [None, 1, 7])
@pytest.mark.parametrize("vector", vectors("decode.json", "between.json", "malformed.json"))
def test_a_receiver_decodes_the_stream_of_a_vector(
    vector: dict[str, Any], step: int | None
) -> None:
    stream = b64decode(vector["stream"])
    demux, receiver = Demux([CHUNK]), ChunkReceiver()
    step = step or len(stream)
    reads = [stream[at : at + step] for at in range(0, len(stream), step)]
    events = [event for read in reads for event in demux.feed(read)] + demux.eof()
    payload, visible, faults = b"", b"", []
    for event in events:
        match event:
            case Visible(data):
                visible += data
            case Claimed() | Fault():
                taken = receiver.take(event)
                payload += taken if isinstance(taken, bytes) else b""
                assert (receiver.aborted is None) or not isinstance(taken, bytes)
                fault = parse(event) if isinstance(event, Claimed) else event
                faults += [fault.reason.value] if isinstance(fault, Fault) else []
                assert isinstance(taken, StreamAborted) <= isinstance(fault, Fault)
    assert payload == b64decode(vector["payload"])
    assert visible == b64decode(vector["visible"])
    assert faults == vector["faults"]
    assert (receiver.aborted is not None) == vector["aborted"]


def test_every_kind_of_fault_has_a_vector() -> None:
    reasons = {
        fault
        for one in json.loads((CORPUS / "malformed.json").read_text())
        for fault in one["faults"]
    }
    assert reasons == {"malformed", "unsupported version", "bad encoding", "aborted", "truncated"}
