"""What was printed, bounded, decoded across reads, with a cursor that only rises."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.examples import EXAMPLES, some
from telex.redaction import MARKER, Redactor
from telex.redaction.limits import HELD_SECRET_CHARS
from telex.terminal.limits import TRANSCRIPT_CHARS, TRANSCRIPT_MARKERS
from telex.terminal.transcript import Delta, Transcript, strip_escapes

REDACTOR = Redactor()
SECRET = f"sk-{some(40)}"

reads = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.text(max_size=20).map(str.encode),
        st.sampled_from([b"\xe2", b"\x94\x82", b"\xf0\x9f", b"\xff", b"\xed\xa0\x80", b"\x1b[1m"]),
        st.integers(0, 3000).map(lambda size: b"x" * size),
    )
)


def fed(data: list[bytes], max_chars: int = TRANSCRIPT_CHARS) -> Transcript:
    transcript = Transcript(max_chars)
    for each in data:
        transcript.feed(each)
    transcript.finish()
    return transcript


@given(reads, st.integers(0, 5000))
def test_however_the_reads_are_cut_text_and_cursor_are_those_of_the_whole(
    data: list[bytes], max_chars: int
) -> None:
    whole = b"".join(data).decode("utf-8", "replace")
    transcript = fed(data, max_chars)
    assert transcript.cursor == len(whole)
    assert transcript.start == max(0, len(whole) - max_chars)
    assert transcript.text() == whole[transcript.start :]


@given(reads, st.integers(0, 4000))
def test_feed_returns_the_text_that_since_returns_later(data: list[bytes], max_chars: int) -> None:
    transcript = Transcript(max_chars)
    said, cursor, dropped = "", 0, False
    whole = ""
    for each in data:
        whole += transcript.feed(each)
        delta = transcript.since(cursor)
        said, cursor, dropped = said + delta.text, delta.cursor, dropped or delta.dropped
        assert cursor == transcript.cursor == len(whole)
        assert transcript.tail(7) == whole[transcript.start :][-7:]
    assert dropped or said == whole
    assert whole.endswith(delta.text) if data else True


@given(reads, st.integers(0, 100))
def test_reading_changes_nothing(data: list[bytes], at: int) -> None:
    transcript = Transcript(1500)
    for number, each in enumerate(data):
        transcript.feed(each)
        if number % 3 == 0:
            transcript.text()
            transcript.since(at)
    assert transcript.text() == transcript.since(0).text == transcript.tail(10_000)


def test_a_character_cut_by_a_read_is_that_character() -> None:
    transcript = Transcript()
    said = [transcript.feed(bytes([byte])) for byte in "a─😀".encode()]
    assert said == ["a", "", "", "─", "", "", "", "😀"]


def test_only_bytes_that_are_no_utf8_become_replacements() -> None:
    transcript = Transcript()
    assert transcript.feed(b"a\xffb\xe2\x94") == "a\ufffdb"
    assert transcript.finish() == "\ufffd"
    assert (transcript.cursor, transcript.text()) == (4, "a\ufffdb\ufffd")


def test_a_truncated_delta_is_marked_and_has_the_rest() -> None:
    transcript = fed([b"abcdefgh"], max_chars=4)
    assert transcript.since(0) == Delta("efgh", 8, True)
    assert transcript.since(4) == Delta("efgh", 8, False)
    assert transcript.since(8) == Delta("", 8, False)
    assert transcript.since(99) == Delta("", 8, False)


@pytest.mark.parametrize("size", [1, 7, 64 * 1024])
def test_memory_is_bounded_however_small_the_reads(size: int) -> None:
    transcript = Transcript(16 * 1024)
    tracemalloc.start()
    for _ in range(40_000 // size + 20):
        transcript.feed(b"x" * size)
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert current < 4 * 16 * 1024


def test_a_marker_names_a_place_and_moves_when_marked_again() -> None:
    transcript = Transcript()
    transcript.feed(b"one")
    assert transcript.mark("a") == 3
    transcript.feed(b"two")
    transcript.mark("b")
    transcript.feed(b"three")
    assert transcript.between("a", "b") == "two"
    assert transcript.between("b", "a") == ""
    transcript.mark("a")
    assert dict(transcript.markers) == {"b": 6, "a": 11}
    assert transcript.between("b", "a") == "three"


def test_evicted_text_and_unknown_labels_have_nothing_between_them() -> None:
    transcript = Transcript(4)
    transcript.mark("a")
    transcript.feed(b"1234")
    transcript.mark("b")
    assert transcript.between("a", "b") == "1234"
    transcript.feed(b"5")
    assert transcript.between("a", "b") is None
    assert transcript.between("b", "never") is None
    assert transcript.between("never", "b") is None


def test_a_label_over_the_limit_replaces_the_oldest() -> None:
    transcript = Transcript()
    for number in range(TRANSCRIPT_MARKERS):
        transcript.mark(f"turn {number}")
    transcript.mark("turn 0")  # marked again, it is not the oldest
    transcript.mark("another")
    assert len(transcript.markers) == TRANSCRIPT_MARKERS
    assert "turn 1" not in transcript.markers
    assert {"turn 0", "turn 2", "another"} <= set(transcript.markers)


# Redacted.


def test_redacted_equals_the_redactors_result_for_the_whole_text() -> None:
    for example in EXAMPLES:
        text = f"\x1b[1m{example.text[:9]}\x1b[31m{example.text[9:]}\x1b[0m"
        assert fed([text.encode()]).redacted(REDACTOR).text == REDACTOR.redact(text)


@given(st.lists(st.sampled_from(["token=ab", "\x1b[1m", SECRET, " ", "\x1b]0;", "\x07", "cd"])))
def test_redacted_hides_the_same_secrets_as_redact_with_control_strings(pieces: list[str]) -> None:
    text = "".join(pieces)
    said = fed([text.encode()]).redacted(REDACTOR).text
    assert said.replace(MARKER, "") == REDACTOR.redact(text).replace(MARKER, "")


def test_a_secret_whose_beginning_was_already_read_or_is_gone_stays_hidden() -> None:
    for example in EXAMPLES:
        text = example.text
        hidden = [part.partition("»")[0] for part in example.marked.split("«")[1:]]
        for cursor in range(0, len(text), 1 + len(text) // 60):
            said = fed([text.encode()]).redacted(REDACTOR, cursor).text
            gone = fed([text.encode()], max_chars=len(text) - cursor).redacted(REDACTOR).text
            assert said == gone
            assert example.redacted.endswith(said.removeprefix(MARKER))
            assert not any(len(secret) > 12 and secret[-12:] in said for secret in hidden)


def test_the_context_for_redaction_is_never_given_out() -> None:
    transcript = fed([b"a" * 9000, b"b" * 100], max_chars=100)
    assert transcript.redacted(REDACTOR) == Delta("b" * 100, 9100, True)
    assert transcript.redacted(REDACTOR, 9090) == Delta("b" * 10, 9100, False)
    assert transcript.redacted(REDACTOR, 9999) == Delta("", 9100, False)


def test_a_secret_that_began_long_before_is_known_as_far_as_the_redactor_holds_one() -> None:
    value = "v" * (HELD_SECRET_CHARS - 20)
    transcript = fed([f"password={value}".encode(), b"tail"], max_chars=4)
    assert transcript.text() == "tail"
    assert transcript.redacted(REDACTOR).text == MARKER


# Without escapes.

STRIPPED = {
    "plain": "plain",
    "\x1b[1;31mred\x1b[0m": "red",
    "\x1b]0;title\x07text": "text",
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1bP$qm\x1b\\x\x1b_apc\x1b\\y": "xy",
    "\x1b(B\x1b7\x1b=text\x0f": "text",
    "bell\x07 nul\x00 back\x08space del\x7f c1\x9b": "bell nul backspace del c1",
    "tab\tstays": "tab\tstays",
    "one\r\ntwo\r\r\nthree\n": "one\ntwo\nthree\n",
    "10%\r20%\r\x1b[Kdone\r\n": "10%\n20%\ndone\n",
    "one\n\rtwo\r\n\r\nfour": "one\ntwo\n\nfour",
    "page\fbreak\vhere": "page\nbreak\nhere",
    "cut at the end \x1b[38;5": "cut at the end ",
    "cut at the end \x1b": "cut at the end ",
    "cut in a title \x1b]0;tit": "cut in a title ",
    "cut between \r": "cut between ",
    "\r\nthe other half": "\nthe other half",
    "ünï─😀": "ünï─😀",
}


@pytest.mark.parametrize("text", STRIPPED)
def test_escapes_are_stripped(text: str) -> None:
    assert strip_escapes(text) == STRIPPED[text]


@given(st.text(alphabet="\x1b[]0;m\r\n\t\x07\\Pab\x18\x9b\x7f\x08"))
def test_stripped_text_has_nothing_a_terminal_would_act_on(text: str) -> None:
    stripped = strip_escapes(text)
    assert not [char for char in stripped if char < " " and char not in "\n\t"]
    assert strip_escapes(stripped) == stripped


@pytest.mark.parametrize("hostile", ["\x1b[", "\r", "\x1b]", "\x1b[1;", "\n\r", "\x1b("])
def test_stripping_takes_time_in_proportion_to_the_text(hostile: str) -> None:
    text = hostile * 100_000
    began = time.process_time()
    strip_escapes(text)
    assert time.process_time() - began < 20  # minutes if it were quadratic
