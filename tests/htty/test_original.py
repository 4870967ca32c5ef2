"""The original in Ruby, by its chunks as they were recorded: each page it served is read."""

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
SAID = [(who, base64.b64decode(said)) for who, said in json.loads(CORPUS.read_text())["messages"]]
PAGES = {1: (b"/hello", b"you asked for /hello\n"), 3: (b"/", b"you asked for /\n")}


def test_the_answers_of_the_original_are_read_by_our_client() -> None:
    client, decoder = Http2State(Http2Side.CLIENT), HttyChunkDecoder()
    client.begin()
    for stream, (path, _) in PAGES.items():
        fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"htty.local")]
        assert client.request([*fields, (b":path", path)], end=True) == stream
    answered: list[int] = []
    bodies: defaultdict[int, bytes] = defaultdict(bytes)
    for who, said in SAID:
        for frame in decoder.feed(said) if who == "program" else []:
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


def test_both_sides_of_it_are_told_by_dump() -> None:
    found = dump([[TranscriptPart(who == "terminal", said, 0) for who, said in SAID]])
    assert (found.problems, found.text, found.chunks) == ([], 0, len(SAID))
    (session,) = found.sessions
    told = {
        id: (one.request[b":path"].encode(), one.response[b":status"], one.response.size)
        for id, one in session.streams.items()
    }
    assert told == {id: (path, "200", len(body)) for id, (path, body) in PAGES.items()}
