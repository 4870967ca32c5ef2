"""The original in Ruby, by its recorded chunks: each page that it served can be read."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from pathlib import Path

from h2.events import DataReceived, ResponseReceived

from telex.htty.h2.http2_state import Http2Side, Http2State, ProtocolViolation
from telex.htty.tools.transcript_dump import TranscriptPart, dump
from telex.wire.events import Frame
from telex.wire.htty_chunk import HttyChunkDecoder

CORPUS = Path(__file__).parents[1] / "corpus" / "htty" / "conversation.json"
MESSAGES = [
    (sender, base64.b64decode(data)) for sender, data in json.loads(CORPUS.read_text())["messages"]
]
PAGES = {1: (b"/hello", b"you asked for /hello\n"), 3: (b"/", b"you asked for /\n")}


def test_our_client_reads_the_responses_of_the_original() -> None:
    client, decoder = Http2State(Http2Side.CLIENT), HttyChunkDecoder()
    client.begin()
    for stream, (path, _) in PAGES.items():
        fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"htty.local")]
        assert client.request([*fields, (b":path", path)], end=True) == stream
    answered: list[int] = []
    bodies: defaultdict[int, bytes] = defaultdict(bytes)
    for sender, data in MESSAGES:
        for frame in decoder.feed(data) if sender == "program" else []:
            assert isinstance(frame, Frame)
            for event in client.receive(frame.body, 0.0):
                assert not isinstance(event, ProtocolViolation), event
                match event:
                    case ResponseReceived():
                        answered.append(event.stream_id)
                    case DataReceived():
                        bodies[event.stream_id] += event.data
    assert answered == [*PAGES]
    assert bodies == {stream: body for stream, (_, body) in PAGES.items()}


def test_dump_shows_both_sides_of_it() -> None:
    found = dump([[TranscriptPart(sender == "terminal", data, 0) for sender, data in MESSAGES]])
    assert (found.problems, found.text, found.chunks) == ([], 0, len(MESSAGES))
    (session,) = found.sessions
    dumped = {
        id: (one.request[b":path"].encode(), one.response[b":status"], one.response.size)
        for id, one in session.streams.items()
    }
    assert dumped == {id: (path, "200", len(body)) for id, (path, body) in PAGES.items()}
