"""Transcripts come out as the requests and responses that went through the terminal."""

from __future__ import annotations

import hashlib
import random
import subprocess
from typing import TYPE_CHECKING

import h2.config
import h2.connection
import h2.events
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telex.escapes.probe import TMUX
from telex.htty.tools.transcript_dump import Dump, NotTiming, TranscriptPart, dump, transcript_parts
from telex.terminal.cells import Size
from telex.terminal.recording import AsciicastWriter, Header, NotARecording
from telex.wire.htty_chunk import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BODY = random.Random(1).randbytes(40_000)
UPLOAD = b"name=value" * 1000


def streams(goaway: bool = True) -> tuple[bytes, bytes]:
    """Return both directions of a connection with an upload and a reset, made by h2."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    sent, answered = bytearray(), bytearray()

    def cross() -> None:
        while True:
            there, back = client.data_to_send(), server.data_to_send()
            if not there and not back:
                return
            sent.extend(there)
            answered.extend(back)
            if there:
                for event in server.receive_data(there):
                    if isinstance(event, h2.events.DataReceived):
                        server.acknowledge_received_data(
                            event.flow_controlled_length, event.stream_id
                        )
            if back:
                client.receive_data(back)

    server.initiate_connection()
    client.initiate_connection()
    cross()
    head = [(":authority", "htty.local"), (":scheme", "http")]
    client.send_headers(1, [(":method", "GET"), (":path", "/page"), *head], end_stream=True)
    client.send_headers(3, [(":method", "POST"), (":path", "/up\x7f"), *head])
    client.send_data(3, UPLOAD, end_stream=True)
    client.send_headers(5, [(":method", "GET"), (":path", "/gone"), *head], end_stream=True)
    cross()
    server.send_headers(1, [(":status", "200"), ("content-type", "text/html")])
    for at in range(0, len(BODY), 10_000):
        server.send_data(1, BODY[at : at + 10_000])
    server.send_headers(1, [("x-checksum", "yes")], end_stream=True)
    server.send_headers(3, [(":status", "204")], end_stream=True)
    server.reset_stream(5, 7)
    cross()
    if goaway:
        server.close_connection()
    cross()
    return bytes(sent), bytes(answered)


def holds_the_exchanges(found: Dump, session: int = 0, requests: bool = True) -> None:
    streams = found.sessions[session].streams
    assert streams.keys() == {1, 3, 5}
    page = streams[1].response
    assert (page[b":status"], page[b"content-type"], page.size) == ("200", "text/html", len(BODY))
    assert page.sha256 == hashlib.sha256(BODY).hexdigest()
    assert page.trailers == ((b"x-checksum", b"yes"),)
    assert streams[3].response[b":status"] == "204"
    assert streams[5].response.reset == 7
    if requests:
        asked = [(one.request[b":method"], one.request[b":path"]) for one in streams.values()]
        assert asked == [("GET", "/page"), ("POST", "/up\x7f"), ("GET", "/gone")]
        upload = streams[3].request
        assert (upload.size, upload.ended) == (len(UPLOAD), True)
        assert upload.sha256 == hashlib.sha256(UPLOAD).hexdigest()


SENT, ANSWERED = streams()


def test_the_programs_output_gives_the_responses() -> None:
    found = dump([transcript_parts(b"$ serve\r\n" + encode(ANSWERED) + b"done\r\n")])
    holds_the_exchanges(found, requests=False)
    assert found.problems == []
    assert found.text == len(b"$ serve\r\ndone\r\n")
    assert found.sessions[0].goaway == ["program: code 0, last stream 5"]


def test_two_files_give_both_sides_whichever_comes_first() -> None:
    for files in ([encode(SENT), encode(ANSWERED)], [encode(ANSWERED), encode(SENT)]):
        found = dump([transcript_parts(file) for file in files])
        holds_the_exchanges(found)
        assert found.problems == []


@settings(max_examples=25)
@given(st.integers(20, 5000), st.integers())
def test_the_size_of_chunks_and_text_between_them_change_nothing(size: int, seed: int) -> None:
    rng = random.Random(seed)
    chunks = encode(ANSWERED, size)
    cut = [b"\x1bPHTTY;" + one for one in chunks.split(b"\x1bPHTTY;")[1:]]
    mixed = b"".join(one + rng.choice([b"", b"text\r\n", b"\x1b[1m"]) for one in cut)
    holds_the_exchanges(dump([transcript_parts(mixed)]), requests=False)


@pytest.mark.parametrize("version", [2, 3])
def test_a_recording_with_input_gives_both_sides(version: int) -> None:
    recorder = AsciicastWriter(Header(2 if version == 2 else 3, Size(24, 80)), 0.0, None)
    lines = recorder.header()
    typed, shown = encode(SENT).decode(), encode(ANSWERED).decode()
    for at in range(0, max(len(typed), len(shown)), 4096):
        lines += recorder.output(shown[at : at + 4096], at / 1e5)
        lines += recorder.input(typed[at : at + 4096], at / 1e5)
    holds_the_exchanges(dump([transcript_parts(lines)]))


def test_a_typescript_is_read_without_the_lines_of_script(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "chunks").write_bytes(encode(ANSWERED))
    subprocess.run(
        [program("script"), "-q", "-c", f"cat {tmp_path}/chunks", f"{tmp_path}/typescript"],
        check=True,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    data = (tmp_path / "typescript").read_bytes()
    assert data.startswith(b"Script started")
    found = dump([transcript_parts(data)])
    holds_the_exchanges(found, requests=False)
    assert found.text == 0


def test_one_file_of_script_for_both_directions_needs_its_timing() -> None:
    lines, log = [b"H 0.000000 TERM xterm"], b'Script started on 2026-11-16 [TERM="xterm"]\n'
    typed, shown = encode(SENT, 100), encode(ANSWERED, 100)
    for at in range(0, max(len(typed), len(shown)), 999):
        for letter, data in (("I", typed[at : at + 999]), ("O", shown[at : at + 999])):
            log += data
            lines.append(f"{letter} 0.001 {len(data)}".encode())
    holds_the_exchanges(dump([transcript_parts(log, b"\n".join(lines))]))
    with pytest.raises(NotTiming, match="line 1"):
        transcript_parts(log, b"0.1 20\n")


def test_the_wrapping_of_tmux_is_removed() -> None:
    chunks = encode(ANSWERED)
    wrapped = b"".join(TMUX.around(b"\x1bPHTTY;" + one) for one in chunks.split(b"\x1bPHTTY;")[1:])
    holds_the_exchanges(dump([transcript_parts(wrapped)]), requests=False)


def test_consecutive_sessions_are_separated_also_after_a_kill() -> None:
    sent, answered = streams(goaway=False)
    killed = encode(answered) + encode(answered[: len(answered) // 2]) + b"Killed\r\n"
    found = dump([transcript_parts(killed + encode(ANSWERED)), transcript_parts(encode(sent) * 3)])
    assert len(found.sessions) == 3
    for session in (0, 2):
        holds_the_exchanges(found, session)
    assert not found.sessions[1].streams[1].response.ended


def test_broken_chunks_are_named_with_their_offset_in_the_file() -> None:
    header = b"Script started on today\n"
    good = encode(b"\0\0\0\x04\0\0\0\0\0")
    data = (
        header
        + b"ab"
        + b"\x1bPHTTY;2;QQ==\x1b\\"
        + good
        + b"\x1bPHTTY;1;QQ\x1b\\"
        + b"\x1bPHTTY;1;"
    )
    found = dump([transcript_parts(data)])
    assert [one.offset for one in found.problems] == [
        len(header) + 2,
        data.index(b"\x1bPHTTY;1;QQ\x1b"),
        data.rindex(b"\x1bP"),
    ]
    assert [one.sentence.partition(":")[0] for one in found.problems] == [
        "unsupported version",
        "bad encoding",
        "truncated",
    ]


def test_the_raw_form_is_named_with_its_offset() -> None:
    found = dump([[TranscriptPart(False, b"text\x1bP+Hraw\x1b\\\0\0\0\4\0\0\0\0\0", 0)]])
    (problem,) = found.problems
    assert problem.offset == 4
    assert "the raw form of later HTTY releases" in problem.sentence
    assert found.chunks == 0


def test_frames_are_listed_one_by_one() -> None:
    found = dump([transcript_parts(encode(SENT)), transcript_parts(encode(ANSWERED))], frames=True)
    first = [(one.sender, one.frame.kind, one.frame.flags) for one in found.frames[:1]]
    assert first == [("terminal", "Settings", ())]
    kinds = {one.frame.kind for one in found.frames}
    assert kinds >= {"Settings", "Headers", "Data", "RstStream", "GoAway"}
    (reset,) = (one.frame for one in found.frames if one.frame.kind == "RstStream")
    assert reset.about == "code 7"


@given(st.binary(max_size=500), st.integers(1, 100))
def test_bytes_that_are_not_http2_are_a_problem_and_never_an_exception(
    data: bytes, size: int
) -> None:
    dump([transcript_parts(encode(data, size))], frames=True)
    dump([[TranscriptPart(True, encode(SENT[:60] + data, size), 0)]], frames=True)


@given(st.binary(max_size=300))
def test_any_file_can_be_dumped(data: bytes) -> None:
    found = dump([transcript_parts(data)])
    assert found.text <= len(data) + 1


def test_a_broken_recording_raises_not_a_recording() -> None:
    with pytest.raises(NotARecording):
        transcript_parts(b'{"version": 2, "width": 0}\n')
