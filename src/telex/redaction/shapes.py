"""What secrets look like after their lead: one small reader each.

A shape is written as if it could wait for the next character, because in a stream it must: `yield`
is "no more text yet". It reads forward only and each character once, so where the feeds fall cannot
matter, and no text is slow. At every moment it shows, holds or hides what it reads; what is still
held when it returns was no secret.

Used by `rules`, which says what leads to which shape. Nothing here knows of feeds or of escape
sequences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.candidate import Candidate

    Reading = Generator[None, None, None]


class Shape(Protocol):
    """How a secret goes on after its lead."""

    @property
    def rest(self) -> str:
        """The characters of the rest of the value, once it is too long to be held."""

    def read(self, candidate: Candidate) -> Reading: ...


@cache
def run_of(characters: str) -> re.Pattern[str]:
    """As many as come, of these characters."""
    return re.compile(f"[{characters}]*+")


WORD: Final = r"A-Za-z0-9_\-"
_BLANKS: Final = r" \t"
_BLANK: Final = frozenset(" \t")
_QUOTES: Final = frozenset("\"'")
_UNQUOTED: Final = r"""^\s,'"\]}"""
_NEVER_FIRST: Final = frozenset(" \t\r\n\f\v,;'\")]}") | {""}
"""What follows a label in source code and prose when there is no value: `input("Password: ")`."""
LINE_ENDS: Final = frozenset({"", "\r", "\n"})
_OPENING: Final = re.compile(r"(?:[(:=>]|(?<![A-Za-z0-9])[bBfFrRuU]{1,2})(\\{0,3})\Z")
"""After `b`, `Some(` or another label's `=` a quote opens the value instead of ending it."""
_SCHEME: Final = "A-Za-z"
_SCHEMES: Final = frozenset({"apikey", "basic", "bearer", "digest", "negotiate", "token"})
_KEY: Final = "A-Za-z0-9+/="


@dataclass(frozen=True, slots=True)
class Token:
    """So many characters of one kind: a vendor's key, or what follows `Bearer`."""

    rest: str
    least: int

    def read(self, candidate: Candidate) -> Reading:
        if not candidate.holds:
            yield from candidate.run(_BLANKS)
            candidate.hold()
        if (yield from candidate.run(self.rest, self.least)) == self.least:
            candidate.hide()
            yield from candidate.run_out(self.rest)


@dataclass(frozen=True, slots=True)
class Dotted:
    """A JWT or a JWE: three or more base64url parts, joined by dots."""

    rest: str = WORD + "."

    def read(self, candidate: Candidate) -> Reading:
        for least in (8, 2):
            if (yield from candidate.run(WORD)) < least or not (yield from candidate.reads(".")):
                return
        candidate.hide()
        yield from candidate.run(WORD)
        while True:  # a dot that ends the sentence is not part of it
            candidate.hold()
            if not (yield from candidate.reads(".")) or not (yield from candidate.run(WORD, 1)):
                return
            candidate.hide()
            yield from candidate.run(WORD)


@dataclass(frozen=True, slots=True)
class Value:
    """What a label names: bare up to a separator, or everything between quotes."""

    rest: str = _UNQUOTED

    def read(self, candidate: Candidate) -> Reading:
        if (yield from candidate.peek()) == ":" == candidate.behind(1):  # `Token::new`
            return
        yield from candidate.run("=>", 1)
        yield from candidate.run(_BLANKS, 8)
        candidate.hold()
        slashes = yield from candidate.run(r"\\", 3)
        quote = yield from candidate.peek()
        if quote not in _QUOTES:
            yield from self.bare(candidate)
            return
        quotes = yield from candidate.run(quote, 3)
        candidate.show()
        if quotes != 2:  # two are the empty string, three are Python's
            yield from self.quoted(candidate, quote, slashes)

    def bare(self, candidate: Candidate) -> Reading:
        if (yield from candidate.peek()) in _NEVER_FIRST:
            return
        already = yield from candidate.reads(candidate.marker)
        if already and (yield from candidate.peek()) in _NEVER_FIRST:
            return
        candidate.hide()
        yield from candidate.run_out(_UNQUOTED)
        quote = yield from candidate.peek()
        if quote in _QUOTES and (opening := _OPENING.search(candidate.behind(6))):
            candidate.show()
            yield from candidate.run(quote, 1)
            yield from self.quoted(candidate, quote, len(opening[1]))

    def quoted(self, candidate: Candidate, quote: str, slashes: int) -> Reading:
        """Up to the closing quote, or the end of the line.

        `slashes` stood before the opening quote, in JSON inside JSON; so they do before its peer.
        """
        candidate.exclusive = False  # a label inside the quotes may well outlast them
        if (yield from candidate.peek()) in _NEVER_FIRST:
            return
        candidate.hide()
        while True:
            yield from candidate.run(rf"^\\\r\n{quote}")
            candidate.hold()
            escapes = yield from candidate.run(r"\\")
            stop = yield from candidate.peek()
            if stop == quote and slashes and escapes <= slashes:
                return
            candidate.hide()
            if stop == "\r" and candidate.behind(1) == " ":  # perhaps the margin, as in `run_out`
                candidate.show()
                yield from candidate.run("\r", 1)
                stop = yield from candidate.peek()
                candidate.hide()
            if stop in LINE_ENDS or (stop == quote and not slashes and escapes % 2 == 0):
                return
            yield from candidate.run(quote, 1)


@dataclass(frozen=True, slots=True)
class Credentials(Value):
    """The value of an `Authorization` header: a scheme, which may stay, and the credentials.

    A first word that is no scheme we know may be either, so the second is hidden with it.
    """

    def bare(self, candidate: Candidate) -> Reading:
        known = yield from self._scheme(candidate)
        yield from Value.bare(self, candidate)
        candidate.show()
        yield from candidate.run(_BLANKS, 8)
        if not known and candidate.behind(1) in _BLANK:
            candidate.hold()
            yield from Value.bare(self, candidate)

    def quoted(self, candidate: Candidate, quote: str, slashes: int) -> Reading:
        yield from self._scheme(candidate)
        yield from Value.quoted(self, candidate, quote, slashes)

    def _scheme(self, candidate: Candidate) -> Generator[None, None, bool]:
        candidate.hold()
        word = yield from candidate.ahead(_SCHEME, 16)
        if word[:-1].lower() not in _SCHEMES or word[-1:] not in _BLANK:
            return False
        yield from candidate.run(_SCHEME)
        candidate.show()
        yield from candidate.run(_BLANKS, 8)
        candidate.hold()
        return True


@dataclass(frozen=True, slots=True)
class UrlPassword:
    """From the colon after the user to the last `@` of the host: few people encode theirs."""

    rest: str = r"""^\s/?#"'<>`\\"""

    def read(self, candidate: Candidate) -> Reading:
        candidate.hold()
        yield from candidate.run(self.rest)
        candidate.hide_before("@")


@dataclass(frozen=True, slots=True)
class Armour:
    """The body of a private key block, between its BEGIN and END lines, on however many lines.

    Anything may stand between the lines of a key (the prefix of a log, a diff's `+`), so anything
    is hidden, until END comes or there was no sign of a key for a while.
    """

    rest: str = rf"{_KEY}\s\-"
    silence: int = 256
    """With no line of key in so many characters the block is over, or was only mentioned."""
    line: int = 40

    def read(self, candidate: Candidate) -> Reading:
        yield from candidate.run(r"\-")
        yield from candidate.run(r"\s")
        candidate.hide()
        silent = 0
        while silent < self.silence and (yield from candidate.peek()):
            key = yield from candidate.run(_KEY)
            silent = 0 if key >= self.line else silent + key
            silent += yield from candidate.run(rf"^{_KEY}\-", max(0, self.silence - silent))
            candidate.hold()
            dashes = yield from candidate.run(r"\-")
            silent += dashes
            if dashes >= 4 and (yield from self._ends(candidate)):
                return
            candidate.hide()

    def _ends(self, candidate: Candidate) -> Generator[None, None, bool]:
        yield from candidate.run(" ", 1)
        return (yield from candidate.reads("END"))
