"""Every family of the table, on credentials made for it and on what only looks like one.

The credentials are put together from parts, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from redaction.samples import characters_of, made_of, sample
from telex.redaction import MARKER, Redactor
from telex.redaction.families import FAMILIES, HIDDEN_PREFIXES, TOKEN_SUFFIXES, Family, TokenSuffix
from telex.redaction.secret_values import is_hexadecimal, is_jumbled, is_mixed

REDACTOR = Redactor()
PREFIXES = {family.prefix for family in FAMILIES if family.prefix}


def credential(family: Family, rng: random.Random, length: int | None = None) -> tuple[str, str]:
    """Its shown part and its hidden part."""
    while True:
        rest = made_of(family.rest, length or family.length, rng)
        if not family.full_length or is_mixed(rest[: family.length]):
            break
    if family.lead:
        return sample(family.lead, rng), rest
    hides = any(family.prefix.startswith(each) for each in HIDDEN_PREFIXES)
    return ("", family.prefix + rest) if hides else (family.prefix, rest)


def in_feeds(text: str, cut: int) -> str:
    stream = REDACTOR.stream()
    return stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish()


def assert_hidden(family: Family, shown: str, said: str) -> None:
    """All but the beginning; and of that, only what another family leaves of it."""
    assert said.startswith("see "), family
    assert said.endswith(f"{MARKER} here"), family
    assert shown.startswith(said[4 : -len(MARKER) - 5]), family


def test_the_table_is_large_and_every_row_has_its_own_name_and_a_source() -> None:
    assert len(FAMILIES) >= 150
    assert len({family.id for family in FAMILIES}) == len(FAMILIES)
    assert len({family.provider for family in FAMILIES}) >= 100
    for family in FAMILIES:
        source = urlsplit(family.source)
        assert source.scheme == "https", family
        assert "." in source.netloc, family
        assert bool(family.prefix) != bool(family.lead), family
        assert family.length >= 8, family


def test_a_credential_is_hidden_and_nothing_around_it_is() -> None:
    for family in FAMILIES:
        rng = random.Random(family.id)
        for length in (family.length, family.length + 9):
            shown, hidden = credential(family, rng, length)
            assert_hidden(family, shown, REDACTOR.redact(f"see {shown}{hidden} here"))


@pytest.mark.counted
def test_a_credential_cut_anywhere_across_two_feeds_does_not_escape(
    counted: Callable[[int, int], int],
) -> None:
    """Every place where its beginning may be cut; of the rest, a few."""
    for family in FAMILIES:
        shown, hidden = credential(family, random.Random(family.id))
        text = f"see {shown}{hidden} here"
        said = REDACTOR.redact(text)
        beginning = 6 + len(shown + family.prefix)
        for cut in [*range(3, beginning), *range(beginning, len(text), counted(40, 1))]:
            assert in_feeds(text, cut) == said, (family.id, cut)


def test_it_is_hidden_with_a_label_in_quotes_and_between_colours() -> None:
    for family in FAMILIES:
        shown, hidden = credential(family, random.Random(family.id))
        coloured = "\x1b[31m".join((hidden[:3], hidden[3:9], hidden[9:]))
        assert hidden not in REDACTOR.redact(f'"apiKey": "{shown}{hidden}"')
        said = REDACTOR.redact(f"see {shown}{coloured} here")
        assert said.count("\x1b[31m") == 2
        assert_hidden(family, shown, said.replace("\x1b[31m", ""))


def test_what_is_too_short_or_inside_a_word_is_none() -> None:
    for family in FAMILIES:
        rng = random.Random(family.id)
        if family.prefix[:1].isalnum():
            inside = "".join(credential(family, rng))
            assert_nothing_of(family, f"see x{inside[: len(family.prefix) + 12]} here")
        if any(family.prefix.startswith(other) for other in PREFIXES - {family.prefix}):
            continue  # `sk-proj-` is `sk-` and more
        shown, hidden = credential(family, rng)
        short = f"see {(shown + hidden)[: len(shown or family.prefix) + 7]} here"
        assert REDACTOR.redact(short) == short


def assert_nothing_of(family: Family, text: str) -> None:
    """Another family may begin in the middle of the word, after a dash or an underscore."""
    spans = REDACTOR.spans(text)
    assert all(start > text.index(family.prefix) for start, _ in spans), (text, spans)


def test_a_word_after_a_common_beginning_is_none() -> None:
    for family in FAMILIES:
        if family.full_length:
            letters = [c for c in "configuration" * 8 if c in characters_of(family.rest)]
            beginning = family.prefix or sample(family.lead, random.Random(1))
            text = f"see {beginning}{''.join(letters)[:60]} here"
            assert REDACTOR.redact(text) == text


@pytest.mark.counted
def test_many_of_each(counted: Callable[[int, int], int]) -> None:
    rng = random.Random(7)
    count, missed = counted(1, 50), []
    for family in FAMILIES:
        for _ in range(count):
            shown, hidden = credential(family, rng)
            told = REDACTOR.redact(f"{shown}{hidden}")
            if not (told.endswith(MARKER) and shown.startswith(told.removesuffix(MARKER))):
                missed.append((family.id, shown, hidden))
    print(f"\n{len(FAMILIES)} families, {count} credentials of each: {len(missed)} missed")
    assert not missed


def ended(ending: TokenSuffix, rng: random.Random) -> str:
    while True:
        made = sample(ending.pattern, rng)
        if is_jumbled(made[:16]) or is_hexadecimal(made[:12]):
            return made


def test_a_word_known_by_its_end_is_hidden_but_for_its_first_characters() -> None:
    for ending in TOKEN_SUFFIXES:
        made = ended(ending, random.Random(ending.id))
        said = REDACTOR.redact(f"see {made} here")
        assert said in {f"see {made[:shown]}{MARKER} here" for shown in (12, 16)}, ending
        for cut in range(3, len(made) + 8):
            assert in_feeds(f"see {made} here", cut) == said, (ending.id, cut)


def test_a_word_that_only_begins_or_ends_like_it_is_none() -> None:
    for ending in TOKEN_SUFFIXES:
        made = ended(ending, random.Random(ending.id))
        for other in (made[:-9], made[9:], f"{made}x{made}"):
            assert REDACTOR.redact(f"see {other} here") == f"see {other} here", ending
