"""What a stream says at which moment, and how little it keeps."""

from __future__ import annotations

import tracemalloc

import pytest

from redaction.examples import KEY, KEY_LINES, some
from telex.redaction import MARKER, Redactor, StreamEnded
from telex.redaction.limits import HELD_SECRET_CHARS

REDACTOR = Redactor()


def moments(*feeds: str) -> list[str]:
    """What is visible after each feed, and then at the end."""
    stream = REDACTOR.stream()
    return [*map(stream.feed, feeds), stream.finish()]


@pytest.mark.parametrize(
    "text",
    [
        "$ ",
        "Password: ",
        "token=",
        "login: ",
        "Key: ",
        "Enter password ",
        *(f"press {key}" for key in "abcfijklmoqtuvz0123456789BCDEFHIJKLMNOPQRTUVWXYZ"),
        "Enter the key",
        "run test_",
        "Basic ",
        "Login successful\r\n$ ",
        "token: \r\n>>> ",
        "[y/N] ",
        "a long disk",
    ],
)
def test_text_that_cannot_begin_a_secret_is_visible_at_once(text: str) -> None:
    assert moments(text) == [text, ""]


def test_a_label_is_visible_at_once_and_its_value_never() -> None:
    """A short value is judged when it ends: `password=getpass()` is none."""
    assert moments("password=", "hun", "ter2", " ok") == ["password=", "", "", f"{MARKER} ok", ""]
    assert moments("password=", "h" * 30, "i" * 30, " ok") == ["password=", "", MARKER, " ok", ""]
    assert moments("password=", "get", "pass", "(", ")") == ["password=", *[""] * 4, "getpass()"]


def test_a_key_is_held_from_its_first_letter_until_it_is_long_enough() -> None:
    assert moments("key s", "k", "-", "0123456789abcde", "f", "gh", " ok") == [
        *("key ", "", "", ""),
        MARKER,
        *("", " ok", ""),
    ]


def test_what_turns_out_to_be_no_key_is_released_with_what_disproved_it() -> None:
    assert moments("key sk", "-learn", " is") == ["key ", "", "sk-learn is", ""]
    assert moments("see http://localhost:", "80", "80", "/\n") == [
        *("see http://localhost:", "", "", "8080/\n"),
        "",
    ]


def test_what_is_undecided_at_the_end_is_decided_then() -> None:
    assert moments("key sk-", "learn") == ["key ", "", "sk-learn"]
    assert moments("https://u:", "pw@host") == ["https://u:", "", f"{MARKER}@host"]


def test_the_scheme_of_a_header_stays_and_its_credentials_do_not() -> None:
    assert moments("Authorization: Bea", "rer", " ", "x", "\n") == [
        *("Authorization: ", "", "Bearer "),
        *("", f"{MARKER}\n", ""),
    ]


def test_of_a_key_block_only_the_first_and_last_lines_are_ever_visible() -> None:
    feeds = ["-----BEGIN PRIVATE KEY-----\n", *KEY_LINES, "\n--", "---", "END PRIVATE KEY-----\n"]
    said = moments(*feeds)
    assert said[0] == feeds[0]
    assert said[1] == MARKER
    assert set(said[2:-2]) == {""}
    assert said[-2:] == ["-----END PRIVATE KEY-----\n", ""]


def test_two_secrets_in_a_row_have_two_markers_and_one_secret_has_one() -> None:
    assert REDACTOR.redact("token=abc, token=def") == f"token={MARKER}, token={MARKER}"
    assert REDACTOR.redact(f"sk-{some(20)}\x1b[1m{some(9)}") == f"{MARKER}\x1b[1m"


def test_half_an_escape_sequence_waits_for_its_other_half() -> None:
    assert moments("red \x1b[3", "1m!") == ["red ", "\x1b[31m!", ""]
    assert moments("red \x1b[3") == ["red ", "\x1b[3"]


def test_a_finished_stream_takes_no_more() -> None:
    stream = REDACTOR.stream()
    stream.feed("abc")
    assert stream.finish() == ""
    assert stream.finish() == ""
    with pytest.raises(StreamEnded, match="ask the redactor for another"):
        stream.feed("def")


ENDLESS = {
    "a labelled value": ("token=", "a", f"token={MARKER}"),
    "a quoted value": ('token="', "a b ", f'token="{MARKER}'),
    "a quoted value of backslashes": ('token="', "\\", f'token="{MARKER}'),
    "a key": ("sk-", "a", MARKER),
    "a web token": ("eyJ", "a", MARKER),
    "a URL password": ("://u:", "a", f"://u:{MARKER}"),
    "a key block": ("BEGIN PRIVATE KEY----\n", KEY + "\n", f"BEGIN PRIVATE KEY----\n{MARKER}"),
    "a key block of dashes": ("BEGIN PRIVATE KEY---- x", "-", f"BEGIN PRIVATE KEY---- {MARKER}"),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_an_endless_secret_is_dropped_as_it_comes_and_never_kept(case: str) -> None:
    before, again, said = ENDLESS[case]
    for size in (1000, HELD_SECRET_CHARS, 10_000):
        stream = REDACTOR.stream()
        feeds = [(again * size)[:size]] * (2 + 20_000 // size)
        visible = stream.feed(before)
        for feed in feeds:
            visible += stream.feed(feed)
            assert stream.held < HELD_SECRET_CHARS
        assert visible + stream.finish() == said
        assert REDACTOR.redact(before + "".join(feeds)) == said


def test_a_secret_too_long_to_be_held_is_a_secret_however_it_goes_on() -> None:
    """As long as it can be held, a URL without `@` is an ordinary one; then it no longer can."""
    fits, over = "a" * (HELD_SECRET_CHARS - 1), "a" * HELD_SECRET_CHARS
    assert REDACTOR.redact(f"://u:{fits}/x") == f"://u:{fits}/x"
    assert REDACTOR.redact(f"://u:{over}/x") == f"://u:{MARKER}/x"


@pytest.mark.parametrize("case", ENDLESS)
def test_where_the_cuts_fall_does_not_matter_around_the_limit_either(case: str) -> None:
    before, again, _ = ENDLESS[case]
    text = "x " + before + (again * 5000)[:5000] + ". and /more@ text"
    whole = REDACTOR.redact(text)
    for size in (1, 4093, HELD_SECRET_CHARS - 1, HELD_SECRET_CHARS, HELD_SECRET_CHARS + 1):
        stream = REDACTOR.stream()
        feeds = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(map(stream.feed, feeds)) + stream.finish() == whole, size


@pytest.mark.parametrize("flood", ["\x1b[1m" * 3000, "\x1b]0;" + "t" * 9000 + "\x07"])
def test_a_flood_of_escape_sequences_inside_a_secret_neither_fills_memory_nor_frees_it(
    flood: str,
) -> None:
    """In the middle of a prefix everyone knows, that prefix is all that is ever seen."""
    secret = f"sk-{some(20)}"
    for cut in range(1, len(secret)):
        text = f" {secret[:cut]}{flood}{secret[cut:]} "
        stream, said = REDACTOR.stream(), ""
        for at in range(0, len(text), 999):
            said += stream.feed(text[at : at + 999])
            assert stream.held < HELD_SECRET_CHARS
        said += stream.finish()
        assert said == REDACTOR.redact(text)
        assert said.replace(flood, "").replace(MARKER, "") == (" sk- " if cut < 3 else "  ")


def test_memory_stays_bounded_however_much_was_fed() -> None:
    stream = REDACTOR.stream()
    feeds = [
        "plain text, " * 300,
        f"token={'a' * 4000}",
        "\x1b[1mbold " * 400,
        " sk-",
        "://u:" + "x" * 999,
    ]
    for feed in feeds:
        stream.feed(feed)
    tracemalloc.start()
    for _ in range(30):
        for feed in feeds:
            stream.feed(feed)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 200_000
