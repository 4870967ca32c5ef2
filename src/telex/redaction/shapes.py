"""Shapes: readers for the text after a lead. This module has the interface and the shapes of
tokens, URLs and key blocks; `value_shapes` and `command_shape` have the others.

`Shape.read` is a generator that reads through a `Candidate`. It yields wherever the text has not
come yet, reads forward only and each character once, so the result does not depend on how a stream
is cut and the time is linear. At each moment the candidate shows, holds or hides the characters.
Text that is still held when the generator returns is no secret.

`Shape.decide` is a fast path for text that is completely in sight. Its result must be the same as
that of `read`.

The shapes know nothing of feeds and escape sequences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from telex.redaction.secret_values import (
    JUDGED_CHARS,
    is_example,
    is_mixed,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.candidate import Candidate

    Reading = Generator[None, None, None]
    Verdict = tuple[int, int, int]


class Shape(Protocol):
    """The form of a secret after its lead. Shapes have no state and are shared by all texts."""

    @property
    def rest(self) -> str:
        """The characters of the rest of a value that became too long to be held."""

    @property
    def lookahead(self) -> str:
        """A pattern for the characters that must come next, as far as the text goes; empty if any
        may come."""

    def decide(self, text: str, position: int) -> Verdict | None:
        """Decide without a candidate, if the whole secret is in sight from this position on.

        Returns:
            The start and end of the hidden characters, and the position up to which the shape has
            read: leads of the same rule that end there or earlier are ignored. None if a candidate
            must read.
        """

    def read(self, candidate: Candidate) -> Reading: ...


class CandidateOnly:
    """A shape without a fast path; a candidate reads everything."""

    __slots__ = ()

    def decide(self, text: str, position: int) -> Verdict | None:
        return None


@cache
def run_of(characters: str) -> re.Pattern[str]:
    """Return the compiled pattern for a run of these characters."""
    return re.compile(f"[{characters}]*+")


def at_least(count: int, characters: str) -> str:
    """Return a pattern for this many of these characters, or for fewer at the end of the text."""
    pattern = ""
    for _ in range(count):
        pattern = rf"(?:[{characters}]{pattern}|\z)"
    return pattern


WORD: Final = r"A-Za-z0-9_\-"
BLANKS: Final = r" \t"
BLANK: Final = frozenset(" \t")
QUOTES: Final = frozenset("\"'")
LINE_ENDS: Final = frozenset({"", "\r", "\n"})
ENDS: Final = LINE_ENDS | BLANK
_FEW_BLANKS: Final = re.compile(r"[ \t]{0,8}+")
_KEY: Final = "A-Za-z0-9+/="
STRONG_LOOKAHEAD: Final = 8
WEAK_LOOKAHEAD: Final = 20
"""The number of characters after a lead that the prefilter checks: few after a lead that is rarely
anything else, more after a common one."""


_SIGHT_CHARS: Final = 1024
"""A longer value is left to a candidate, because it may be too long to be held."""


def _end_of_run(text: str, position: int, characters: str) -> int | None:
    """Return where a run of these characters ends, or None if the end is not in sight."""
    run = run_of(characters).match(text, position)
    end = run.end() if run else position
    return end if end < len(text) and end - position < _SIGHT_CHARS else None


def _may_wrap(text: str, end: int) -> bool:
    """Whether a value that ends here may continue in the next row: see `Candidate.run_out`."""
    return text[end] == " " and text[end + 1 : end + 2] in _WRAPS


_WRAPS: Final = frozenset({"", "\r"})


@dataclass(frozen=True, slots=True)
class Token:
    """A minimum number of characters from one alphabet: a provider's token after its prefix."""

    rest: str
    least: int
    mixed: bool = False
    """Whether the characters must look random, because the prefix is also a common word."""

    @property
    def lookahead(self) -> str:
        return at_least(
            min(self.least, WEAK_LOOKAHEAD if self.mixed else STRONG_LOOKAHEAD), self.rest
        )

    def decide(self, text: str, position: int) -> Verdict | None:
        end = _end_of_run(text, position, self.rest)
        if end is None:
            return None
        if end - position < self.least:
            return position, position, end
        if self.mixed and not is_mixed(text[position : position + self.least]):
            return position, position, position + self.least - 1
        return None if _may_wrap(text, end) else (position, end, end)

    def read(self, candidate: Candidate) -> Reading:
        if not candidate.holds:
            candidate.hold()
        if (yield from candidate.run(self.rest, self.least)) < self.least:
            return
        if not self.mixed or is_mixed(candidate.behind(self.least)):
            candidate.hide()
            yield from candidate.run_out(self.rest)


@dataclass(frozen=True, slots=True)
class SchemeCredentials:
    """Credentials after `Bearer` or `Basic`. A plain word is no credential: `bearer
    authentication`."""

    rest: str
    least: int

    @property
    def lookahead(self) -> str:
        return rf"[ \t]{{0,8}}{at_least(STRONG_LOOKAHEAD, self.rest)}"

    def decide(self, text: str, position: int) -> Verdict | None:
        blanks = _FEW_BLANKS.match(text, position)
        start = blanks.end() if blanks else position
        end = _end_of_run(text, start, self.rest)
        if end is None:
            return None
        first = text[start : start + self.least]
        if end - start < self.least:
            return start, start, end
        if first.isalpha() and first[1:].islower():
            word = text[start:end]
            is_word = len(word) <= JUDGED_CHARS and word.isalpha() and word[1:].islower()
            return (start, start, end) if is_word else None
        return None if _may_wrap(text, end) else (start, end, end)

    def read(self, candidate: Candidate) -> Reading:
        yield from candidate.run(BLANKS, 8)
        candidate.hold()
        count = yield from candidate.run(self.rest, self.least)
        if count < self.least:
            return
        if candidate.behind(count).isalpha() and candidate.behind(count)[1:].islower():
            count += yield from candidate.run("a-z", JUDGED_CHARS)
            if count <= JUDGED_CHARS and not (yield from candidate.word(self.rest, 1))[0]:
                return
        candidate.hide()
        yield from candidate.run_out(self.rest)


@dataclass(frozen=True, slots=True)
class SuffixShape(CandidateOnly):
    """The rest of a word that is known by its suffix, after its first `shown` characters."""

    pattern: str
    shown: int
    rest: str = r"A-Za-z0-9+/=_\-"
    lookahead: str = ""
    most: ClassVar[int] = 128

    def read(self, candidate: Candidate) -> Reading:
        candidate.hold()
        count = yield from candidate.run(self.rest, self.most)
        if _compiled(self.pattern).fullmatch(candidate.behind(self.shown + count)):
            candidate.hide_until(candidate.position)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@dataclass(frozen=True, slots=True)
class JsonWebToken(CandidateOnly):
    """A JWT or JWE: three or more base64url parts, joined by dots."""

    rest: str = WORD + "."
    lookahead: str = at_least(STRONG_LOOKAHEAD, WORD)

    def read(self, candidate: Candidate) -> Reading:
        for least in (8, 2):
            if (yield from candidate.run(WORD)) < least or not (yield from candidate.reads(".")):
                return
        candidate.hide()
        yield from candidate.run(WORD)
        while True:  # a dot at the end of a sentence is no part of the token
            candidate.hold()
            if not (yield from candidate.reads(".")) or not (yield from candidate.run(WORD, 1)):
                return
            candidate.hide()
            yield from candidate.run(WORD)


@dataclass(frozen=True, slots=True)
class UrlPassword:
    """The password of a URL: from the colon after the user to the last `@`, because many passwords
    are not encoded."""

    rest: str = r"""^\s/?#"'<>`\\"""
    lookahead: str = ""

    def decide(self, text: str, position: int) -> Verdict | None:
        end = _end_of_run(text, position, self.rest)
        if end is None:
            return None
        first, last = text.find("@", position, end), text.rfind("@", position, end)
        is_short = 0 <= first < position + JUDGED_CHARS
        is_secret = last >= 0 and not (is_short and is_example(text[position:first]))
        return position, last if is_secret else position, end

    def read(self, candidate: Candidate) -> Reading:
        candidate.hold()
        password, after = yield from candidate.word(self.rest + "@", JUDGED_CHARS)
        yield from candidate.run(self.rest)
        if after != "@" or not is_example(password):
            candidate.hide_before("@")


@dataclass(frozen=True, slots=True)
class UrlUser(CandidateOnly):
    """A token in the place of a URL's user, after its first `shown` characters:
    `https://TOKEN@host`."""

    shown: int
    rest: str = WORD
    lookahead: str = ""
    least: ClassVar[int] = 20
    most: ClassVar[int] = 256

    def read(self, candidate: Candidate) -> Reading:
        candidate.hold()
        count = self.shown + (yield from candidate.run(WORD, self.most))
        end = candidate.position
        if count < self.least or not is_mixed(candidate.behind(count)):
            return
        is_user = yield from candidate.reads("@")
        if not is_user and (yield from candidate.reads(":")):  # followed by an empty password
            for password in _NO_PASSWORDS:
                is_user = is_user or (yield from candidate.reads(f"{password}@"))
        if is_user:
            candidate.hide_until(end)


_NO_PASSWORDS: Final = ("", "x", "X", "x-oauth-basic")


@dataclass(frozen=True, slots=True)
class PuttyKeyLines(CandidateOnly):
    """As many lines of base64 as the lead announces: PuTTY's `Private-Lines: 14`.

    A window title has blanks in the place of line breaks; source code and errors escape them.
    """

    rest: str = _KEY
    lookahead: str = ""
    least: ClassVar[int] = 16

    def read(self, candidate: Candidate) -> Reading:
        count = candidate.behind((yield from candidate.run("0-9", 3)))
        for number in range(int(count or 0)):
            for escaped in (r"\r", r"\n"):
                yield from candidate.reads(escaped)
            yield from candidate.run(r"\s>|\-", 24)
            candidate.hold()
            key = yield from candidate.run(_KEY, 1024)
            after = yield from candidate.peek()
            if after not in _KEY_LINE_ENDS or key < (4 if number else self.least):
                return
            candidate.hide_until(candidate.position)


_KEY_LINE_ENDS: Final = ENDS | {"\\"}


@dataclass(frozen=True, slots=True)
class PrivateKeyBlock(CandidateOnly):
    """The body of a private key block, between its BEGIN and END lines.

    Any text may stand between the lines of a key (the prefix of a log, the `+` of a diff), so
    everything is hidden until END comes, or until no line of a key came for `silence` characters.
    """

    rest: str = rf"{_KEY}\s\-"
    lookahead: str = ""
    silence: int = 256
    """The number of characters without a line of a key after which the block is over, or was only
    mentioned."""
    line: int = 40
    sign: int = 16
    """The number of key characters that prove a key; a block without them is only mentioned."""

    def read(self, candidate: Candidate) -> Reading:
        yield from candidate.run(r"\-")
        yield from candidate.run(r"\s")
        candidate.hold()
        silent, is_key = 0, False
        while silent < self.silence and (yield from candidate.peek()):
            key = yield from candidate.run(_KEY, self.sign)
            if key == self.sign:
                candidate.hide()
                is_key = True
                key += yield from candidate.run(_KEY)
            silent = 0 if key >= self.line else silent + key
            silent += yield from candidate.run(rf"^{_KEY}\-", max(0, self.silence - silent))
            if is_key:
                candidate.hold()
            dashes = yield from candidate.run(r"\-")
            silent += dashes
            if dashes >= 4 and (yield from self._ends(candidate)):
                return
            if is_key:
                candidate.hide()

    def _ends(self, candidate: Candidate) -> Generator[None, None, bool]:
        yield from candidate.run(" ", 1)
        return (yield from candidate.reads("END"))
