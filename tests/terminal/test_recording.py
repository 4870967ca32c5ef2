"""Asciicast, written and read back."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.examples import EXAMPLES, some
from telex.redaction import MARKER, Redactor, RegexesNeedWholeText, StreamEnded
from telex.terminal.cells import Size
from telex.terminal.recording import (
    AsciicastWriter,
    ExitEvent,
    Header,
    InputEvent,
    MarkerEvent,
    NotARecording,
    OutputEvent,
    RecordedEvent,
    SizeEvent,
    read_recording,
)

SECRET = f"sk-{some(40)}"
VERSIONS = (2, 3)


def recorder(version=2, redactor: Redactor | None = None, **header) -> AsciicastWriter:
    return AsciicastWriter(Header(version, Size(24, 80), **header), 100.0, redactor)


def written(
    recording: AsciicastWriter, events: list[RecordedEvent], started: float = 100.0
) -> bytes:
    file = recording.header()
    for event in events:
        now = started + event.time
        match event:
            case OutputEvent():
                file += recording.output(event.text, now)
            case InputEvent():
                file += recording.input(event.text, now)
            case SizeEvent():
                file += recording.resize(event.size, now)
            case MarkerEvent():
                file += recording.marker(event.label, now)
            case ExitEvent():
                file += recording.exit(event.code, now)
    return file


def lines(file: bytes) -> list[bytes]:
    return file.splitlines(keepends=True)


# Both ways.

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
happenings = st.one_of(
    st.builds(OutputEvent, st.just(0.0), texts),
    st.builds(InputEvent, st.just(0.0), texts),
    st.builds(SizeEvent, st.just(0.0), st.builds(Size, st.integers(1, 999), st.integers(1, 999))),
    st.builds(MarkerEvent, st.just(0.0), st.one_of(st.just(""), texts)),
    st.builds(ExitEvent, st.just(0.0), st.integers(-1, 255)),
)
pauses = st.integers(0, 10**10)


@st.composite
def histories(draw) -> list[RecordedEvent]:
    at, events = 0, []
    for event in draw(st.lists(happenings, max_size=12)):
        at += draw(pauses)
        fields = [getattr(event, name) for name in event.__slots__ if name != "time"]
        events.append(type(event)(at / 1e6, *fields))
    return events


@given(st.sampled_from(VERSIONS), histories())
def test_a_written_recording_reads_back_the_same(version, events: list[RecordedEvent]) -> None:
    recording = AsciicastWriter(Header(version, Size(24, 80)), 0.0, None)
    assert read_recording(lines(written(recording, events, started=0.0))).events == tuple(events)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_header_is_read_back(version) -> None:
    header = Header(
        version,
        Size(50, 120),
        1_700_000_000,
        "xterm-256color",
        "bash -l",
        "demo",
        {"SHELL": "sh"},
        2.5,
    )
    assert read_recording([AsciicastWriter(header, 0.0, None).header()]).header == header
    bare = Header(version, Size(1, 1))
    assert read_recording([AsciicastWriter(bare, 0.0, None).header()]).header == bare


def test_the_two_versions_as_they_stand_in_the_file() -> None:
    events = [OutputEvent(0.25, "a\x1b[1m"), SizeEvent(1.5, Size(30, 90)), ExitEvent(2.0, 3)]
    told = {"timestamp": 7, "term": "xterm", "env": {"SHELL": "sh"}}
    assert [json.loads(line) for line in lines(written(recorder(2, **told), events))] == [
        {
            "version": 2,
            "width": 80,
            "height": 24,
            "timestamp": 7,
            "env": {"SHELL": "sh", "TERM": "xterm"},
        },
        [0.25, "o", "a\x1b[1m"],
        [1.5, "r", "90x30"],
        [2.0, "x", "3"],
    ]
    assert [json.loads(line) for line in lines(written(recorder(3, **told), events))] == [
        {
            "version": 3,
            "term": {"cols": 80, "rows": 24, "type": "xterm"},
            "timestamp": 7,
            "env": {"SHELL": "sh"},
        },
        [0.25, "o", "a\x1b[1m"],
        [1.25, "r", "90x30"],
        [0.5, "x", "3"],
    ]


def test_intervals_do_not_drift() -> None:
    recording = recorder(3)
    file = recording.header()
    for number in range(30_001):
        file += recording.output("x", 100.0 + number / 3)
    assert read_recording(lines(file)).duration == 10_000.0


def test_time_never_runs_backwards_nor_in_exponents() -> None:
    recording = recorder(2)
    file = recording.header() + recording.output("a", 100.000001) + recording.output("b", 99.0)
    assert b"[0.000001," in file
    assert b"e-" not in file
    assert [event.time for event in read_recording(lines(file)).events] == [1e-6, 1e-6]


# Secrets.


@pytest.mark.parametrize("version", VERSIONS)
def test_a_secret_cut_anywhere_is_never_in_the_file(version: int) -> None:
    text = f"see {SECRET} and go on"
    for cut in range(len(text)):
        recording = recorder(version, Redactor())
        file = written(
            recording,
            [OutputEvent(0.0, text[:cut]), OutputEvent(1.0, text[cut:]), ExitEvent(2.0, 0)],
        )
        said = "".join(
            e.text for e in read_recording(lines(file)).events if isinstance(e, OutputEvent)
        )
        assert said == f"see {MARKER} and go on"


def test_every_kind_of_secret_character_by_character() -> None:
    for example in EXAMPLES:
        recording = recorder(3, Redactor())
        events = [OutputEvent(number / 10, char) for number, char in enumerate(example.text)]
        file = written(recording, events) + recording.finish(1e6)
        assert "".join(e.text for e in read_recording(lines(file)).events) == example.redacted


def test_held_text_is_written_when_it_is_decided() -> None:
    recording = recorder(2, Redactor())
    assert recording.output("s", 101.0) == b""
    assert json.loads(recording.output("ure", 102.0)) == [2.0, "o", "sure"]
    recording.output(" ", 103.0)
    assert recording.output("sk-", 103.5) == b""
    assert [json.loads(line) for line in lines(recording.exit(0, 104.0))] == [
        [4.0, "o", "sk-"],
        [4.0, "x", "0"],
    ]


def test_no_unredacted_text_is_written_after_the_end() -> None:
    recording = recorder(2, Redactor())
    recording.exit(0, 101.0)
    assert recording.finish(102.0) == b""
    with pytest.raises(StreamEnded):
        recording.output(SECRET, 103.0)


def test_the_operators_of_a_recorded_command_stay() -> None:
    for command, shown in (
        ("echo `TOKEN=abc`;true", f"echo `TOKEN={MARKER}`;true"),
        ("X_PAT=abc>out; echo w", f"X_PAT={MARKER}>out; echo w"),
        ("sh -c 'X_PAT=abc>out;true'", f"sh -c 'X_PAT={MARKER}>out;true'"),
    ):
        assert json.loads(recorder(2, Redactor(), command=command).header())["command"] == shown
        assert json.loads(recorder(2, None, command=command).header())["command"] == command


def test_input_markers_and_header_are_redacted_too() -> None:
    told = {
        "title": f"t {SECRET}",
        "command": f"export MY_TOKEN={SECRET}; ls",
        "env": {"MY_TOKEN": "abc", "SHELL": "sh"},
    }
    recording = recorder(2, Redactor(), **told)
    header = json.loads(recording.header())
    assert header["env"] == {"MY_TOKEN": MARKER, "SHELL": "sh"}
    assert (header["title"], header["command"]) == (f"t {MARKER}", f"export MY_TOKEN={MARKER}; ls")
    typed = recording.input(SECRET[:9], 101.0) + recording.input(f"{SECRET[9:]}\r", 102.0)
    assert json.loads(typed)[2] == MARKER + "\r"
    assert json.loads(recording.marker(f"m {SECRET}", 103.0))[2] == f"m {MARKER}"


def test_input_and_output_do_not_disturb_each_other() -> None:
    recording = recorder(2, Redactor())
    file = recording.header()
    for at in range(len(SECRET)):
        file += recording.input(SECRET[at], 100.0 + at) + recording.output(SECRET[at], 100.0 + at)
    file += recording.finish(200.0)
    assert SECRET[:8].encode() not in file
    assert file.count(MARKER.encode()) == 2


def test_without_a_redactor_everything_is_written_unchanged() -> None:
    assert json.loads(recorder(2).output(SECRET, 100.0))[2] == SECRET


def test_a_redactor_that_needs_whole_texts_is_refused_at_once() -> None:
    with pytest.raises(RegexesNeedWholeText):
        recorder(2, Redactor(extra_regexes=("x+",)))


# Reading what others wrote.


def test_comments_blank_lines_unknown_codes_and_fields_are_passed_over() -> None:
    file = b"""{"version": 3, "term": {"cols": 80, "rows": 24, "theme": {}}, "tags": ["a"], "new": 1}
# a comment
[1, "o", "one"]

[1, "z", {"any": "thing"}]
[0.5, "o", "two", "more"]
"""
    assert read_recording(lines(file)).events == (OutputEvent(1.0, "one"), OutputEvent(2.5, "two"))


def test_a_last_line_that_was_cut_off_is_passed_over() -> None:
    file = b'{"version":2,"width":80,"height":24}\n[1.0,"o","one"]\n[2.0,"o","tw'
    assert read_recording(lines(file)).events == (OutputEvent(1.0, "one"),)


HEADER = b'{"version":2,"width":80,"height":24}\n'
BAD_EVENTS = [
    b"{}\n",
    b"junk\n",
    b"[1.0]\n",
    b'["1.0","o","x"]\n',
    b'[1.0,"o",7]\n',
    b'[1.0,"r","80"]\n',
    b'[1.0,"r","80x"]\n',
    b'[1.0,"x","gone"]\n',
]


@pytest.mark.parametrize("line", BAD_EVENTS)
def test_a_line_that_is_not_an_event_is_named(line: bytes) -> None:
    with pytest.raises(NotARecording, match="line 3 is not an event"):
        read_recording([HEADER, b"\n", line, b'[1.0,"o","x"]\n'])


BAD_HEADERS = [
    b"",
    b"\n",
    b"# a comment\n",
    b"[]\n",
    b'{"version":1,"width":80,"height":24,"stdout":[]}\n',
    b'{"version":2,"width":80}\n',
    b'{"version":2,"width":80,"height":0}\n',
    b'{"version":3,"width":80,"height":24}\n',
    b'{"width":80,"height":24}\n',
    b"\x7fELF",
]


@pytest.mark.parametrize("line", BAD_HEADERS)
def test_a_file_without_a_header_is_refused(line: bytes) -> None:
    with pytest.raises(NotARecording, match="line 1 is not a header"):
        read_recording([line])


@given(st.lists(st.binary(max_size=40)), st.booleans())
def test_any_bytes_are_a_recording_or_refused(rest: list[bytes], ended: bool) -> None:
    try:
        recording = read_recording([HEADER, *[line + b"\n" * ended for line in rest]])
    except NotARecording:
        return
    assert all(math.isfinite(event.time) for event in recording.events)


def test_half_a_character_is_read_as_a_replacement() -> None:
    lines = [
        b'{"version": 2, "width": 80, "height": 24, "title": "a\\ud83d"}\n',
        b'[1, "o", "a\\ud83d\\ude00b\\ud83dc\\uDE00\\\\ud83d"]\n',
        b'[2, "i", "\\ud83d\\ud83d\\ude00"]\n',
        b'[3, "o", "\xe6\x97"]\n',
    ]
    recording = read_recording(lines)
    assert recording.header.title == "a\ufffd"
    assert recording.events == (
        OutputEvent(1.0, "a\U0001f600b\ufffdc\ufffd\\ud83d"),
        InputEvent(2.0, "\ufffd\U0001f600"),
        OutputEvent(3.0, "\ufffd"),
    )
    with pytest.raises(NotARecording, match="line 2"):
        read_recording([lines[0], b'[1, "o", "\\ud83d]\n'])
