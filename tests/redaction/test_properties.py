"""What holds for every text, and not only for the ones we thought of."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redaction.examples import EXAMPLES, INNOCENT, KEY, some
from telex.redaction import MARKER, Redactor, StreamRedactor, visible
from telex.redaction.prefilter import Rulebook
from telex.redaction.rules import RULES, RedactionRule
from telex.redaction.scanner import Scanner
from telex.redaction.secret_values import is_mixed
from telex.redaction.shapes import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

LITERALS = ("hunter22", "aaaab", "п漢роль")
REDACTORS = (Redactor(), Redactor(extra_literals=LITERALS))

TOKENS = [rule for rule in RULES if isinstance(rule.shape, Token) and rule.prefixes]
PIECES = [
    *(prefix for rule in TOKENS for prefix in rule.prefixes),
    *("token=", 'password": "', "Authorization: ", "Basic ", "bearer ", "Bearer  "),
    *("://", "u:p@h", "://я:", "eyJ", f"eyJ{some(9)}."),
    *("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", KEY[:65], "-----"),
    *("\x1b", "\x1b[31m", "\x1b[", "\x1b]0;", "\x1bP", "\x07", "\x1b\\", "\x1b(B", "\x9b", "\x00"),
    *("'", '"', "\\", '\\"', ",", "}", " ", " \r", "\r\n", "\n", "\t", ";", ")", "(", "&", "`"),
    *("key=", "X_KEY=", "_PASS=", ";pwd=", "--token ", "curl -u ", "mysql -p", "sshpass -p "),
    *(
        "<password>",
        "</",
        "Cookie: a=",
        "; ",
        "login me password ",
        "Basic ",
        "?sig=",
        "str",
        "None",
    ),
    *("\u200b", "\u00ad", "$X", "{x}", "self."),
    *("/", "@", ":", "=", ".", "-", "s", "k", "a", "b'", "Some(", "aaaa"),
    *(*LITERALS, "hunt", "п漢", some(5), some(20), some(40), "Ab" * 30),
    *("é", "漢", "\ud800", "ſ", "\u212a", MARKER, "[RED"),
]
pieces = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=25).map("".join)
whole_texts = st.sampled_from([each.text for each in EXAMPLES] + INNOCENT)
floods = st.sampled_from(["x" * 4200, "\x1b[1m" * 1100, "-" * 4100, "a.b/" * 1030])
texts = pieces | st.lists(pieces | whole_texts, max_size=4).map("".join)
long_texts = st.tuples(texts, floods, texts).map("".join)


def fed(stream: StreamRedactor, text: str, cuts: list[int]) -> str:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    feeds = [text[start:end] for start, end in pairwise(edges)]
    return "".join(map(stream.feed, feeds)) + stream.finish()


@given(texts | long_texts, st.lists(st.integers(0, 10_000), max_size=12))
def test_where_the_cuts_fall_never_matters(text: str, cuts: list[int]) -> None:
    for redactor in REDACTORS:
        assert fed(redactor.stream(), text, cuts) == redactor.redact(text)


@given(texts)
def test_one_character_at_a_time_is_no_exception(text: str) -> None:
    for redactor in REDACTORS:
        assert fed(redactor.stream(), text, list(range(len(text)))) == redactor.redact(text)


class Thorough(Rulebook):
    """Looks for a lead at every character of every text."""

    __slots__ = ()

    def clear_until(self, text: str, breaks: Collection[int] = (), seen: int = 0) -> int:
        return 0

    def starts(self, text: str, begin: int, after: int) -> Iterator[int]:
        return iter(range(begin, len(text)))


@given(texts | long_texts, st.lists(st.integers(0, 10_000), max_size=3))
@example(
    "to\u212aen=abc pa\u017f\u017fword=abc", []
)  # letters that fold to k and s, but not for us
def test_the_prefilter_finds_all_that_a_thorough_search_does(text: str, cuts: list[int]) -> None:
    for redactor in REDACTORS:
        rulebook = Thorough(MARKER, redactor._rulebook.literals)
        assert redactor.redact(text) == fed(StreamRedactor(rulebook), text, cuts)


@pytest.mark.parametrize(
    ("line", "is_clear"),
    [
        ("key = import_module('_testcapi')\n", True),
        ('api_key = config.Parser("")\n', True),
        ("def test_loadTestsFromNameOfAModule(self):\n", True),
        ("key = bytes.fromhex('06a9214036b8a15b512e03d534120006')\n", False),
        ('api_key = SecretStr("hunter2hunter2")\n', False),
        ("key = import_module('_testcapi", False),
    ],
)
def test_a_call_with_a_short_string_is_decided_without_a_scanner(line: str, is_clear: bool) -> None:
    assert (Rulebook(MARKER).clear_until(line) == len(line)) is is_clear
    for redactor in REDACTORS:
        assert fed(redactor.stream(), line, list(range(len(line)))) == redactor.redact(line)


@given(texts, st.integers(1, 64))
@example("abcd\x1b[38;5;196;48;5;21m", 4)
def test_the_last_characters_of_a_text_are_found_without_reading_all_of_it(
    text: str, least: int
) -> None:
    (parts, unfinished), (last, rest) = visible.split(text), visible.last_parts(text, least)
    assert "".join(last[::2])[-least:] == "".join(parts[::2])[-least:]
    assert rest == unfinished


@given(st.text(st.characters()))
def test_no_text_raises(text: str) -> None:
    for redactor in (*REDACTORS, Redactor(extra_regexes=("a.c", ""))):
        assert isinstance(redactor.redact(text), str)


@given(texts | long_texts)
def test_what_is_not_in_a_span_is_what_remains(text: str) -> None:
    redactor = Redactor(extra_literals=LITERALS, replacement="")
    spans = redactor.spans(text)
    assert all(start < end for start, end in spans)
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    shown = "".join(
        text[end:start]
        for end, start in zip(
            [0, *(e for _, e in spans)], [*(s for s, _ in spans), len(text)], strict=True
        )
    )
    assert redactor.redact(text) == shown


PLAIN = [
    *(prefix for rule in TOKENS for prefix in rule.prefixes),
    *("bearer ", "Bearer \t", "://", "u:p@h", "/", "@", ":", ".", "-", "_", " ", "\n", ","),
    *("eyJ", f"eyJ{some(9)}.", "a", "7", some(5), some(18), some(40), "ABCDEF0123456789", "é"),
]
WORD = r"[A-Za-z0-9_\-]"
AUTHORITY = r"""[^\s/?#"'<>`\\]"""


def is_mixed_enough(rule: RedactionRule) -> Callable[[re.Match[str]], bool]:
    def check(match: re.Match[str]) -> bool:
        assert isinstance(rule.shape, Token)
        return not rule.shape.mixed or is_mixed(match["rest"][: rule.shape.least])

    return check


BY_REGEX = [
    *(
        (
            re.compile(
                f"(?<![A-Za-z0-9])(?P<secret>{re.escape(prefix)}"
                f"(?P<rest>[{rule.shape.rest}]{{{rule.shape.least},}}))"
                if rule.hides_prefix
                else f"(?<![A-Za-z0-9]){re.escape(prefix)}"
                f"(?P<secret>(?P<rest>[{rule.shape.rest}]{{{rule.shape.least},}}))"
            ),
            is_mixed_enough(rule),
        )
        for rule in TOKENS
        if isinstance(rule.shape, Token)
        for prefix in rule.prefixes
    ),
    *(
        (re.compile(pattern), bool)
        for pattern in (
            rf"(?<![A-Za-z0-9])(?P<secret>eyJ{WORD}{{8,}}+\.{WORD}{{2,}}+\.{WORD}*+(?:\.{WORD}+)*+)",
            r"(?i:bearer)[ \t]+(?P<secret>[A-Za-z0-9._~+/=\-]{8,})",
            rf"://[^\s/#\"'<>`\\:]{{0,90}}+:(?P<secret>{AUTHORITY}*)@{AUTHORITY}*+",
        )
    ),
]


@given(st.lists(st.sampled_from(PLAIN), max_size=25).map("".join))
def test_in_one_plain_text_rules_agree_with_regexes_tried_at_every_place(text: str) -> None:
    """The reader never goes back to a place it passed, and loses nothing by that but a last dot."""
    hidden = set()
    for pattern, is_secret in BY_REGEX:
        for start in range(len(text)):
            if (match := pattern.match(text, start)) and is_secret(match):
                hidden.update(range(*match.span("secret")))
    hidden ^= {at for span in REDACTORS[0].spans(text) for at in range(*span)}
    assert {text[at] for at in hidden} <= {"."}


ADVERSARIAL = {
    "labels": "token=",
    "quoted labels": "token='token=\"",
    "keys": "-sk-",
    "web tokens": "-eyJ",
    "parts": "eyJaaaaaaaa.",
    "URLs": "://a:",
    "key blocks": "BEGIN PRIVATE KEY-----\n",
    "dashes": "-",
    "backslashes": 'token="\\',
    "bearers": "bearer ",
    "control strings": "\x1b]0;token=",
    "sequences": "s\x1b[m",
    "literals": "aaaa",
    "options": "--token ",
    "quoted options": "--token '",
    "commands": "curl -u a:",
    "programs": "mysql ",
    "passwords of programs": "mysql -p",
    "cookies": "Cookie: a=bcdefghij; ",
    "elements": "<token>",
    "keys with a label": "key=",
    "fields": ";pwd=a;pwd=",
    "logins": "login a password ",
    "schemes": "Basic ",
    "parameters": "?key=",
    "shown prefixes": "-xai-",
    "mentions": "token=a(",
    "names": 'password"value=',
    "characters without a width": "s\u200b",
}


@pytest.mark.parametrize("again", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_work_grows_no_faster_than_the_text(again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted, in characters read and places looked at; the clock is too noisy to ask."""
    work = 0
    end_of = Scanner.end_of

    class Counting(Rulebook):
        """Reads everything closely: how much is passed over depends on where the reads fall."""

        __slots__ = ()

        def clear_until(self, text: str, breaks: Collection[int] = (), seen: int = 0) -> int:
            return 0

        def starts(self, text: str, begin: int, after: int) -> Iterator[int]:
            nonlocal work
            for start in super().starts(text, begin, after):
                work += 1
                yield start

    def counting_end_of(scanner: Scanner, run: re.Pattern[str], position: int, stop: int) -> int:
        nonlocal work
        end = end_of(scanner, run, position, stop)
        work += 1 + end - position
        return end

    def work_for(size: int) -> int:
        nonlocal work
        work = 0
        fed(StreamRedactor(Counting(MARKER, LITERALS)), (again * size)[:size], [])
        return work

    monkeypatch.setattr(Scanner, "end_of", counting_end_of)
    few, many = work_for(20_000), work_for(80_000)
    assert many <= 4.4 * few + 1000
    assert many <= 80_000 * 12
