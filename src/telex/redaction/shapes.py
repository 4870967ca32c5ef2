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
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from telex.redaction.program_options import (
    APART,
    COMMA,
    COMMANDS,
    COUNTED,
    PERCENT,
    SAME,
    USER,
    WITHOUT_SECRETS,
)
from telex.redaction.secret_values import (
    JUDGED_CHARS,
    LABEL_CHARS,
    SecretLabel,
    is_argument_mention,
    is_example,
    is_key_of_keyboard,
    is_mention,
    is_mixed,
    is_path,
    is_plain,
    is_quoted_mention,
    is_reference,
    is_sentence,
    is_template,
    looks_random,
    wraps,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.candidate import Candidate

    Reading = Generator[None, None, None]
    Verdict = tuple[int, int, int]


class Shape(Protocol):
    """How a secret goes on after its lead."""

    @property
    def rest(self) -> str:
        """The characters of the rest of the value, once it is too long to be held."""

    @property
    def ahead(self) -> str:
        """A pattern for what must come next, as far as the text goes; empty if anything may."""

    def glance(self, text: str, position: int) -> Verdict | None:
        """Decide without a candidate, if the whole secret is in sight from this position on.

        Returns:
            Where the hidden characters start and end, and up to where the shape has read: leads of
            the same rule that end there or earlier mean nothing new. None if a candidate must read.
        """

    def read(self, candidate: Candidate) -> Reading: ...


class _ReadOnly:
    """A shape that leaves everything to a candidate."""

    __slots__ = ()

    def glance(self, text: str, position: int) -> Verdict | None:
        return None


@cache
def run_of(characters: str) -> re.Pattern[str]:
    """As many as come, of these characters."""
    return re.compile(f"[{characters}]*+")


def at_least(count: int, characters: str) -> str:
    """Return a pattern for so many of these characters, or for fewer at the end of the text."""
    pattern = ""
    for _ in range(count):
        pattern = rf"(?:[{characters}]{pattern}|\z)"
    return pattern


WORD: Final = r"A-Za-z0-9_\-"
_BLANKS: Final = r" \t"
_BLANK: Final = frozenset(" \t")
_FEW_BLANKS: Final = re.compile(r"[ \t]{0,8}+")
_QUOTES: Final = frozenset("\"'")
_UNQUOTED: Final = r"""^\s,'"\]}"""
_SEPARATORS: Final = ";&|)`"
"""They end a shell's command, unless the value goes on after them."""
_PLAIN: Final = rf"{_UNQUOTED}{_SEPARATORS}"
_JUDGED: Final = r"""^\s,;'\""""
_NEVER_FIRST: Final = frozenset(" \t\r\n\f\v,;'\")]}") | {""}
"""What follows a label in source code and prose when there is no value: `input("Password: ")`."""
LINE_ENDS: Final = frozenset({"", "\r", "\n"})
_ENDS: Final = LINE_ENDS | _BLANK
_OPENING: Final = re.compile(r"(?:[(:=>]|(?<![A-Za-z0-9])[bBfFrRuU]{1,2})(\\{0,3})\Z")
"""After `b`, `Some(` or another label's `=` a quote opens the value instead of ending it."""
_VALUE_ENDS: Final = rf"(?=[\n\r\t,]|[ ][^\r{_SEPARATORS}])"
"""The end of a bare value, if nothing else may come of it: see `Candidate.run_out`."""
_PLAIN_VALUE: Final = re.compile(
    r"""[=>]?[ \t]{0,24}(?P<quote>["'])?(?P<value>[A-Za-z0-9]++)"""
    rf"(?(quote)(?P=quote)|{_VALUE_ENDS})"
)
"""A value that needs no closer look: most have letters and digits and nothing else."""
_MENTION: Final = re.compile(
    r"""
    (?P<operator>[=>~]?+)(?P<blanks>[ \t]{0,24}+)
    (?: ["']?+[\r\n\f\v,;)\]}] | ["'][ \t] | (?P<empty>["'])(?P=empty)(?!(?P=empty)|\Z)
      | (?P<quote>["'])(?P<quoted>[^\\\r\n"']{1,47})(?P=quote)
      | (?P<word>[^\s,;'"\\)\]}:][^\s,;'"\\]{0,46})(?P<after>[\s,;"'])
    )
    """,
    re.VERBOSE,
)
"""A short value of which all is in sight, or none."""
_ANY_SCHEME: Final = "(?i:apikey|basic|bearer|digest|negotiate|token)"
_PLAIN_CREDENTIALS: Final = re.compile(
    rf"[ \t]{{0,24}}{_ANY_SCHEME}[ \t]{{1,8}}(?P<value>[A-Za-z0-9]++){_VALUE_ENDS}", re.ASCII
)
_SCHEME_ALONE: Final = re.compile(rf"[=>~]?+[ \t]{{0,24}}+{_ANY_SCHEME}[`.,;)]", re.ASCII)
"""`Authorization: Bearer.`, in prose."""
_STRING_PREFIX: Final = re.compile(r"[bBfFrRuU]{1,2}")
_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z _]{1,30}=")
_SCHEME: Final = "A-Za-z"
_SCHEMES: Final = frozenset({"apikey", "basic", "bearer", "digest", "negotiate", "token"})
_KEY: Final = "A-Za-z0-9+/="
FEW: Final = 8
MANY: Final = 16
"""So many characters of a secret are looked for before any closer look: few after a lead that is
hardly ever anything else, many after a common one."""


_SIGHT_CHARS: Final = 1024
"""A longer value is left to a candidate, because it may be too long to be held."""


def _end_of_run(text: str, position: int, characters: str) -> int | None:
    """Return where a run of these characters ends, or None if the end is not in sight."""
    run = run_of(characters).match(text, position)
    end = run.end() if run else position
    return end if end < len(text) and end - position < _SIGHT_CHARS else None


def _may_wrap(text: str, end: int) -> bool:
    """Return whether a value that ends here may continue in the next row: see `run_out`."""
    return text[end] == " " and text[end + 1 : end + 2] in _WRAPS


_WRAPS: Final = frozenset({"", "\r"})


@dataclass(frozen=True, slots=True)
class Token:
    """So many characters of one kind: a vendor's key, or what follows `Bearer`."""

    rest: str
    least: int
    mixed: bool = False
    """They must look random: else it is a word."""

    @property
    def ahead(self) -> str:
        return at_least(min(self.least, MANY if self.mixed else FEW), self.rest)

    def glance(self, text: str, position: int) -> Verdict | None:
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
class Scheme:
    """What follows `Bearer` or `Basic`, unless it is a word: `bearer authentication`."""

    rest: str
    least: int

    @property
    def ahead(self) -> str:
        return rf"[ \t]{{0,8}}{at_least(FEW, self.rest)}"

    def glance(self, text: str, position: int) -> Verdict | None:
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
        yield from candidate.run(_BLANKS, 8)
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
class SuffixShape(_ReadOnly):
    """The rest of a word that a pattern knows by its end, after so many of its characters."""

    pattern: str
    begun: int
    rest: str = r"A-Za-z0-9+/=_\-"
    ahead: str = ""
    most: ClassVar[int] = 128

    def read(self, candidate: Candidate) -> Reading:
        candidate.hold()
        count = yield from candidate.run(self.rest, self.most)
        if _compiled(self.pattern).fullmatch(candidate.behind(self.begun + count)):
            candidate.hide_until(candidate.position)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@dataclass(frozen=True, slots=True)
class Dotted(_ReadOnly):
    """A JWT or a JWE: three or more base64url parts, joined by dots."""

    rest: str = WORD + "."
    ahead: str = at_least(FEW, WORD)

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


def _glance_plain(pattern: re.Pattern[str], text: str, position: int) -> Verdict | None:
    """Decide about a value of letters and digits."""
    found = pattern.match(text, position)
    if found is None or not is_plain(found["value"]) or text[position - 1 : position + 1] == "==":
        return None
    start, end = found.span("value")
    return start, end, end


@dataclass(frozen=True, slots=True)
class ValueShape:
    """What a label names: bare up to a separator, or everything between quotes."""

    rest: str = _UNQUOTED
    ahead: str = ""
    is_plain: ClassVar[bool] = True
    """Whether a value of letters and digits is a secret without being judged."""

    def glance(self, text: str, position: int) -> Verdict | None:
        if self.is_plain and (verdict := _glance_plain(_PLAIN_VALUE, text, position)):
            return verdict
        seen = _MENTION.match(text, position)
        if seen is None:
            return None
        operator = text[position - 1] + seen["operator"]
        word, quoted = seen["word"], seen["quoted"]
        if word and operator != "==":
            if seen["after"] in _QUOTES and (word[-1] == "(" or _STRING_PREFIX.fullmatch(word)):
                return None
            label = SecretLabel(
                text[max(0, position - LABEL_CHARS) : position], bool(seen["blanks"])
            )
            if self.is_secret(label, word, seen["after"]):
                return None
        if quoted and quoted[0] not in _NEVER_FIRST:
            label = SecretLabel(
                text[max(0, position - LABEL_CHARS) : position], bool(seen["blanks"])
            )
            shape = self.compared if operator == "==" else self
            if shape.is_quoted_secret(label, quoted):
                return None
        return position, position, position - 1

    def read(self, candidate: Candidate) -> Reading:
        candidate.exclusive = False  # of what only mentions a secret, a part may be one
        before = candidate.behind(LABEL_CHARS)
        if (yield from candidate.peek()) == ":" == before[-1:]:  # `Token::new`
            return
        operator = before[-1:] + candidate.behind((yield from candidate.run("=>~", 1)))
        blanks = yield from candidate.run(_BLANKS, 24)
        label = SecretLabel(before, bool(blanks))
        candidate.hold()
        slashes = yield from candidate.run(r"\\", 3)
        quote = yield from candidate.peek()
        if quote not in _QUOTES:
            candidate.position -= slashes
            if operator != "==":
                yield from self.bare(candidate, label)
            return
        quotes = yield from candidate.run(quote, 3)
        candidate.show()
        if quotes != 2:  # two are the empty string, three are Python's
            shape = self.compared if operator == "==" else self
            yield from shape.quoted(candidate, label, quote, slashes)

    @property
    def compared(self) -> ValueShape:
        """The shape of a value that is only compared: `token == "…"`."""
        return _RANDOM

    def bare(self, candidate: Candidate, label: SecretLabel) -> Reading:
        if (yield from candidate.peek()) in _NEVER_FIRST:
            return
        already = yield from candidate.reads(candidate.marker)
        if already and (yield from candidate.peek()) in _NEVER_FIRST | {"\\"}:
            return
        value, after = yield from candidate.word(_JUDGED, JUDGED_CHARS)
        if after in _QUOTES and _STRING_PREFIX.fullmatch(value):
            candidate.show()
            yield from candidate.run(_JUDGED, len(value))
            yield from candidate.run(after, 1)
            candidate.hold()
            text, _ = yield from candidate.word(rf"^\r\n{after}", JUDGED_CHARS)
            if not is_template(value, text):
                yield from self.quoted(candidate, label, after, 0)
        elif len(value) >= JUDGED_CHARS or self.is_secret(label, value, after):
            yield from self.secret(candidate, label)
        elif after in _QUOTES and value.endswith("("):
            candidate.show()
            yield from candidate.run(_JUDGED, len(value))
            yield from candidate.run(after, 1)
            inner = self if wraps(value) else _RANDOM
            yield from inner.quoted(candidate, label, after, 0)

    def secret(self, candidate: Candidate, label: SecretLabel) -> Reading:
        """Hide a bare value: up to a blank or a quote, or to what ends a command."""
        candidate.hide()
        candidate.exclusive = True
        while True:
            yield from candidate.run_out(_PLAIN)
            if (yield from candidate.peek()) not in _SEPARATORS_AND_END:
                break
            candidate.hold()
            yield from candidate.run(_SEPARATORS)
            if (yield from candidate.peek()) in _ENDS:
                return
            if candidate.behind(1) == ";":
                field, after = yield from candidate.word("A-Za-z _", 32)
                if _FIELD.match(field + after):
                    return
            candidate.hide()
        quote = yield from candidate.peek()
        if quote in _QUOTES and (opening := _OPENING.search(candidate.behind(6))):
            candidate.show()
            yield from candidate.run(quote, 1)
            yield from self.quoted(candidate, label, quote, len(opening[1]))

    def quoted(self, candidate: Candidate, label: SecretLabel, quote: str, slashes: int) -> Reading:
        """Up to the closing quote, or the end of the line.

        `slashes` stood before the opening quote, in JSON inside JSON; so they do before its peer.
        """
        candidate.exclusive = False  # a label inside the quotes may well outlast them
        if (yield from candidate.peek()) in _NEVER_FIRST:
            return
        candidate.hold()
        value, after = yield from candidate.word(rf"^\r\n{quote}", JUDGED_CHARS)
        inner = value[: len(value) - slashes]
        if after == quote and not self.is_quoted_secret(label, inner):
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

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_mention(label, value, after)

    def is_quoted_secret(self, label: SecretLabel, value: str) -> bool:
        return not is_quoted_mention(label, value)


_SEPARATORS_AND_END: Final = frozenset(_SEPARATORS)


@dataclass(frozen=True, slots=True)
class RandomValue(ValueShape):
    """The value of a label that names many other things too: `SORT_KEY`, `"key"`.

    An environment variable of that name is a secret whatever it is; else it must look like one.
    """

    is_plain: ClassVar[bool] = False

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        is_variable = label.is_variable and len(label.name) > 3
        if not is_variable and not looks_random(value):
            return False
        if _OPEN_NAMES.search(label.name) or is_key_of_keyboard(value):
            return False
        if is_variable:
            named_many = label.name.endswith("S") and value.isdigit()  # `MAX_TOKENS=4096`
            return not named_many and not is_mention(label, value, after) and not is_path(value)
        return not is_mention(label, value, after)

    def is_quoted_secret(self, label: SecretLabel, value: str) -> bool:
        is_variable = label.is_variable and len(label.name) > 3
        if not is_variable and not looks_random(value):
            return False
        if _OPEN_NAMES.search(label.name) or is_key_of_keyboard(value):
            return False
        return not is_variable or not (is_quoted_mention(label, value) or is_path(value))


@dataclass(frozen=True, slots=True)
class KeyShape(RandomValue):
    """The value of `key`, `auth` or `login`: it must begin like a random one, which can be told
    before any closer look."""

    begun: ClassVar[int] = 12
    alphabet: ClassVar[str] = "A-Za-z0-9+/_.~=-"

    @property
    def compared(self) -> ValueShape:
        return self

    def bare(self, candidate: Candidate, label: SecretLabel) -> Reading:
        value, _ = yield from candidate.word(_JUDGED, JUDGED_CHARS)
        if _KEY_BEGINS.match(value):
            yield from ValueShape.bare(self, candidate, label)

    def quoted(self, candidate: Candidate, label: SecretLabel, quote: str, slashes: int) -> Reading:
        candidate.hold()
        value, _ = yield from candidate.word(rf"^\r\n{quote}", JUDGED_CHARS)
        if _KEY_BEGINS.match(value):
            yield from ValueShape.quoted(self, candidate, label, quote, slashes)

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return bool(_KEY_BEGINS.match(value)) and RandomValue.is_secret(self, label, value, after)

    def is_quoted_secret(self, label: SecretLabel, value: str) -> bool:
        return bool(_KEY_BEGINS.match(value)) and RandomValue.is_quoted_secret(self, label, value)


_KEY_BEGINS: Final = re.compile(f"[{KeyShape.alphabet}]{{{KeyShape.begun}}}")
_RANDOM: Final = RandomValue()
_OPEN_NAMES: Final = re.compile(
    r"(?i)(?:public|pub|primary|foreign|sort|partition|cache|gpg|host|registry|hot|idempotency"
    r"|compose|leader|prefix|modifier|mod|meta|escape|group|object|trusted|authorized|known"
    r"|(?:max|min|num|total|input|output|used|prompt|completion|stop|special|new)(?=_tokens))"
    r"[_-]?(?:keys?|tokens)\Z"
)
"""Keys that are no secrets."""


@dataclass(frozen=True, slots=True)
class DirectoryOrValue(ValueShape):
    """The value of `pwd`: a password in a connection, and a directory in a shell."""

    is_plain: ClassVar[bool] = False

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_path(value) and not is_mention(label, value, after)

    def is_quoted_secret(self, label: SecretLabel, value: str) -> bool:
        return not is_path(value) and not is_quoted_mention(label, value)


_DIRECTORY: Final = DirectoryOrValue()


@dataclass(frozen=True, slots=True)
class FieldShape(ValueShape):
    """`Pwd=…;Server=…`: a password only where another field follows, else a directory; but a
    shell's variable has no such capital, and a password in quotes is no directory."""

    def glance(self, text: str, position: int) -> Verdict | None:
        is_capital = text.endswith(_CAPITAL_FIELD, 0, position)
        if is_capital or not _NO_FIELD.match(text, position):
            return None
        return position, position, position

    def read(self, candidate: Candidate) -> Reading:
        label = SecretLabel(candidate.behind(LABEL_CHARS), spaced=False)
        yield from candidate.run(" ", 1)
        quote = yield from candidate.peek()
        if quote in _QUOTES:
            yield from candidate.run(quote, 1)
            yield from _DIRECTORY.quoted(candidate, label, quote, 0)
            return
        if label.name == "Pwd":
            candidate.hold()
            yield from _DIRECTORY.bare(candidate, label)
            return
        candidate.hold()
        fields, after = yield from candidate.word(r"""^\s'"=""", JUDGED_CHARS)
        value, _, name = fields.partition(";")
        named = after == "=" and name.isalpha()
        if named and value and not is_path(value) and not is_reference(value):
            candidate.hide()
            yield from candidate.run("^;")


_CAPITAL_FIELD: Final = ("Pwd=", "Pwd =")
_NO_FIELD: Final = re.compile(r"""[ ]?+(?!["'])[^\s'"=;]{0,47}+(?=[\s'"=])""")
"""A value after which no other field can follow: `pwd = None`."""


@dataclass(frozen=True, slots=True)
class Argument(ValueShape):
    """What follows an option, after a blank: `--token …`."""

    def glance(self, text: str, position: int) -> Verdict | None:
        return None

    def read(self, candidate: Candidate) -> Reading:
        yield from candidate.run(_BLANKS, 8)
        label = SecretLabel("", False)
        candidate.hold()
        quote = yield from candidate.peek()
        if quote in _QUOTES:
            yield from candidate.run(quote, 1)
            candidate.show()
            yield from self.quoted(candidate, label, quote, 0)
        else:
            yield from self.bare(candidate, label)

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_argument_mention(value)


@dataclass(frozen=True, slots=True)
class PhraseShape(Argument):
    """What a sentence says: `the password is …`. Without a colon it must not look like a word."""

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_sentence(value)


@dataclass(frozen=True, slots=True)
class QuotedOnly(ValueShape):
    """A value in quotes after a word: SQL's `IDENTIFIED BY '…'`."""

    def glance(self, text: str, position: int) -> Verdict | None:
        return None

    def read(self, candidate: Candidate) -> Reading:
        if (yield from candidate.peek()) in _QUOTES:
            yield from ValueShape.read(self, candidate)


@dataclass(frozen=True, slots=True)
class Element(_ReadOnly):
    """The text of an element, up to its closing tag: `<password>…</password>`.

    It may be CDATA, or one word on a line of its own, or between blanks as in a title, if the
    closing tag is its peer.
    """

    rest: str = r"^<\r\n"
    ahead: str = ""
    is_word: bool = False
    """It has no blanks, and says more than its label: else it is what a form shows."""

    def read(self, candidate: Candidate) -> Reading:
        opened = _OPENED.search(candidate.behind(LABEL_CHARS + 32))
        if candidate.behind(2) == "/>":  # an element without a text
            return
        lines = yield from candidate.run(r"\r\n", 2)
        apart = lines + (yield from candidate.run(r"\s" if lines else _BLANKS, 64))
        candidate.hold()
        if (yield from candidate.peek()) in _NEVER_FIRST | {"$", "{"}:
            return
        if (yield from candidate.reads("<![CDATA[")):
            candidate.hold()
            end = yield from self._to_end_of_data(candidate)
        else:
            rest = r"^\s<" if apart else self.rest
            value, _ = yield from candidate.word(rest, JUDGED_CHARS)
            count = yield from candidate.run(rest, 1024)
            end = candidate.position
            if not count or self._is_mention(opened, value):
                return
        if (yield from candidate.run(r"\r\n" if lines else _BLANKS, 2 if apart else 0)):
            yield from candidate.run(r"\s" if lines else _BLANKS, 64)
        if (yield from candidate.reads(f"</{opened[1]}" if opened and apart else "</")):
            candidate.hide_until(end)

    def _to_end_of_data(self, candidate: Candidate) -> Generator[None, None, int]:
        """Read to the end of CDATA; where the text ended."""
        end = candidate.position
        for _ in range(64):
            yield from candidate.run(r"^\]\r\n", 1024)
            end = candidate.position
            if (yield from candidate.reads("]]>")) or not (yield from candidate.run(r"\]", 1)):
                break
        return end

    def _is_mention(self, opened: re.Match[str] | None, value: str) -> bool:
        if is_reference(value):
            return True
        label = SecretLabel(f"{opened[2] or opened[1]}=" if opened else "", spaced=False)
        return self.is_word and (" " in value.strip() or is_quoted_mention(label, value))


_OPENED: Final = re.compile(
    r"""<([A-Za-z0-9_.:-]+)(?:[ \t][^<>]*?(?:key|name)=["']([^"']*)["'])?[^<>]*>\Z""", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Cookies:
    """The values of a `Cookie` header; of `Set-Cookie`, all but the attributes."""

    rest: str = r"""^\s;,'\""""
    ahead: str = ""

    def glance(self, text: str, position: int) -> Verdict | None:
        return (position, position, position) if _NO_COOKIE.match(text, position) else None

    def read(self, candidate: Candidate) -> Reading:
        for _ in range(64):
            yield from candidate.run(_BLANKS, 8)
            candidate.show()
            name, after = yield from candidate.word(r"A-Za-z0-9_.\-", JUDGED_CHARS)
            yield from candidate.run(r"A-Za-z0-9_.\-", JUDGED_CHARS)
            if after == "=":
                yield from candidate.run("=", 1)
                candidate.hold()
                value, _ = yield from candidate.word(self.rest, JUDGED_CHARS)
                is_value = len(value) >= 8 and not is_reference(value)
                if is_value and name.lower() not in _COOKIE_ATTRIBUTES:
                    candidate.hide()
                    yield from candidate.run_out(self.rest, ends=False)
                candidate.show()
                yield from candidate.run(r"""^;\r\n'\"""", 64)
            if not (yield from candidate.reads(";")):
                return


_NO_COOKIE: Final = re.compile(r"[ \t]{0,8}+[A-Za-z0-9_.\-]{0,47}+(?![A-Za-z0-9_.\-=;]|\Z)")
"""A word that is no cookie's name: `cookie: bytes`."""
_COOKIE_ATTRIBUTES: Final = frozenset(
    {"domain", "expires", "max-age", "path", "priority", "samesite", "version"}
)


@dataclass(frozen=True, slots=True)
class Credentials(ValueShape):
    """The value of an `Authorization` header: a scheme, which may stay, and the credentials.

    A first word that is no scheme we know may be either, so the second is hidden with it.
    """

    def glance(self, text: str, position: int) -> Verdict | None:
        if _SCHEME_ALONE.match(text, position):
            return position, position, position - 1
        return _glance_plain(_PLAIN_CREDENTIALS, text, position)

    def bare(self, candidate: Candidate, label: SecretLabel) -> Reading:
        known = yield from self._scheme(candidate)
        if known is None:
            return
        yield from ValueShape.bare(self, candidate, label)
        candidate.show()
        yield from candidate.run(_BLANKS, 8)
        if not known and candidate.behind(1) in _BLANK:
            candidate.hold()
            yield from ValueShape.bare(self, candidate, label)

    def quoted(self, candidate: Candidate, label: SecretLabel, quote: str, slashes: int) -> Reading:
        yield from self._scheme(candidate)
        yield from ValueShape.quoted(self, candidate, label, quote, slashes)

    def _scheme(self, candidate: Candidate) -> Generator[None, None, bool | None]:
        """Whether one came; None where it is only mentioned."""
        candidate.hold()
        word, after = yield from candidate.word(_SCHEME, 16)
        if word.lower() not in _SCHEMES:
            return False
        if after not in _BLANK:
            return None if after and after in "`.,;)" else False
        yield from candidate.run(_SCHEME)
        candidate.show()
        yield from candidate.run(_BLANKS, 8)
        candidate.hold()
        return True


@dataclass(frozen=True, slots=True)
class UrlPassword:
    """From the colon after the user to the last `@` of the host: few people encode theirs."""

    rest: str = r"""^\s/?#"'<>`\\"""
    ahead: str = ""

    def glance(self, text: str, position: int) -> Verdict | None:
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
class UrlUser(_ReadOnly):
    """A token in the place of a user, after its first characters: `https://TOKEN@host`."""

    begun: int
    rest: str = WORD
    ahead: str = ""
    least: ClassVar[int] = 20
    most: ClassVar[int] = 256

    def read(self, candidate: Candidate) -> Reading:
        candidate.hold()
        count = self.begun + (yield from candidate.run(WORD, self.most))
        end = candidate.position
        if count < self.least or not is_mixed(candidate.behind(count)):
            return
        is_user = yield from candidate.reads("@")
        if not is_user and (yield from candidate.reads(":")):  # and a password that says nothing
            for password in _NO_PASSWORDS:
                is_user = is_user or (yield from candidate.reads(f"{password}@"))
        if is_user:
            candidate.hide_until(end)


_NO_PASSWORDS: Final = ("", "x", "X", "x-oauth-basic")


@dataclass(frozen=True, slots=True)
class Lines(_ReadOnly):
    """So many lines of base64 as the lead says: PuTTY's `Private-Lines: 14`.

    A title has blanks for line breaks; source code and errors write them as escapes.
    """

    rest: str = _KEY
    ahead: str = ""
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


_KEY_LINE_ENDS: Final = _ENDS | {"\\"}


@dataclass(frozen=True, slots=True)
class Armour(_ReadOnly):
    """The body of a private key block, between its BEGIN and END lines, on however many lines.

    Anything may stand between the lines of a key (the prefix of a log, a diff's `+`), so anything
    is hidden, until END comes or there was no sign of a key for a while.
    """

    rest: str = rf"{_KEY}\s\-"
    ahead: str = ""
    silence: int = 256
    """With no line of key in so many characters the block is over, or was only mentioned."""
    line: int = 40
    sign: int = 16
    """So many characters of key are the first sign of one; a block without is only mentioned."""

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


_SHELL_WORD: Final = r"""^\s'"\\;|&`"""
_OPTION: Final = r"""^\s'"\\;|&`="""
_COMMAND_ENDS: Final = frozenset(";|&`)\n") | {""}


@dataclass(frozen=True, slots=True)
class CommandShape(_ReadOnly):
    """The arguments of a program that takes a secret as one: `sshpass -p …`, `curl -u user:…`.

    It reads word by word to the end of the command, and shows all but the secret.
    """

    rest: str = r"""^\s'";|&"""
    ahead: str = ""

    def glance(self, text: str, position: int) -> Verdict | None:
        line = _REST_OF_LINE.match(text, position)
        if line is None:
            return None
        options = _options_of(text[max(0, position - LABEL_CHARS) : position])
        others = _OPTIONS_BY_HEAD.keys() & _ALNUM.findall(line[0])
        for each in (frozenset(options), *map(_OPTIONS_BY_HEAD.__getitem__, others)):
            if _taken(each).search(text, position, line.end()):
                return None
        return position, position, position

    def read(self, candidate: Candidate) -> Reading:
        options = _options_of(candidate.behind(LABEL_CHARS))
        place, switched = 0, False
        while (yield from self._next_word(candidate)):
            candidate.hold()
            word, after = yield from candidate.word(_OPTION, JUDGED_CHARS)
            candidate.show()
            kind = options.get(word)
            flags = _FLAGS.fullmatch(word)
            together = flags and options.get(f"-{flags[1]}")
            is_word = not _SWITCH.fullmatch(word) and not (switched and word.isdigit())
            switched = not is_word
            place += is_word + sum(
                options.get(f"-{each}") == COUNTED for each in (flags and word) or ""
            )
            if is_word and options.get(f"#{place}"):
                yield from self._value(candidate, options.pop(f"#{place}"))
            elif (colon := word.find(":") + 1) and options.get(word[:colon]):
                yield from candidate.run(_OPTION, colon)
                yield from self._value(candidate, options[word[:colon]])
            elif kind == COUNTED:
                yield from self._skip_word(candidate)
            elif kind is not None and kind != SAME:
                yield from candidate.run(_OPTION, len(word))
                yield from candidate.run("=", 1)
                if (yield from self._next_word(candidate)):
                    yield from self._value(candidate, kind)
            elif (
                options.get(word[:2], APART) not in _UNGLUED
                and word[1:2] != "-"
                and (kind is None or after in _QUOTES)
            ):
                yield from candidate.run(_OPTION, 2)
                yield from self._value(candidate, options[word[:2]])
            elif together and together not in _TOGETHER:
                yield from candidate.run(_OPTION, len(word))
                if (yield from self._next_word(candidate)):
                    yield from self._value(candidate, together)
            else:
                program = word.rpartition("/")[2]
                if program in COMMANDS or program in WITHOUT_SECRETS:
                    options, place = dict(COMMANDS.get(program, {})), 0
                yield from self._skip_word(candidate)

    def _next_word(self, candidate: Candidate) -> Generator[None, None, bool]:
        """Go to the next word, also on the next line of the screen or after a backslash."""
        while True:
            yield from candidate.run(_BLANKS)
            character = yield from candidate.peek()
            if character == "\\":
                yield from candidate.run(r"\\", 1)
                yield from candidate.run("\r", 1)
                if not (yield from candidate.run("\n", 1)):
                    return True
            elif character == "\r":
                yield from candidate.run("\r", 1)
                if (yield from candidate.peek()) in LINE_ENDS:
                    return False
            else:
                return character not in _COMMAND_ENDS

    def _skip_word(self, candidate: Candidate) -> Reading:
        while True:
            yield from candidate.run(_SHELL_WORD)
            character = yield from candidate.peek()
            if character in _QUOTES:
                yield from candidate.run(character, 1)
                yield from candidate.run(rf"^{character}\r\n")
                yield from candidate.run(character, 1)
            elif character == "\\":
                yield from candidate.run(r"\\", 1)
                yield from candidate.run(r"^\r\n", 1)
            else:
                return

    def _value(self, candidate: Candidate, kind: str) -> Reading:
        quote = yield from candidate.peek()
        is_quoted = quote in _QUOTES
        if is_quoted:
            yield from candidate.run(quote, 1)
        mark = _MARKS.get(kind)
        if mark:
            yield from candidate.run(rf"{self.rest}{mark}")
            if not (yield from candidate.reads(mark)):
                return
        candidate.hold()
        characters = rf"^{quote}\r\n" if is_quoted else self.rest
        value, _ = yield from candidate.word(characters, JUDGED_CHARS)
        if value and not is_argument_mention(value):
            candidate.hide()
            yield from candidate.run_out(characters, ends=False)
        candidate.show()
        if is_quoted:
            yield from candidate.run(quote, 1)
        if candidate.behind(1) not in _BLANK:  # `run_out` looks for a margin beyond a blank
            yield from self._skip_word(candidate)


_REST_OF_LINE: Final = re.compile(r"[^\\\r\n]*+(?=\r?\n)")
"""A line after which no command goes on."""
_ALNUM: Final = re.compile("[A-Za-z0-9]+")
_OPTIONS_BY_HEAD: Final[dict[str, frozenset[str]]] = {}
"""What the programs take of which the first word begins so."""
for _program, _options in COMMANDS.items():
    _head = _ALNUM.findall(_program)[0]
    _OPTIONS_BY_HEAD[_head] = _OPTIONS_BY_HEAD.get(_head, frozenset()).union(_options)


def _options_of(before: str) -> dict[str, str]:
    """The options of the programs that this text ends with."""
    before = before.rstrip()
    options: dict[str, str] = {}
    for program in _PROGRAMS_BY_END.get(before[-2:], ()):
        if before.endswith(program):
            options |= COMMANDS[program]
    return options


@cache
def _taken(options: frozenset[str]) -> re.Pattern[str]:
    """A pattern for any of these options, alone or with other flags before it."""
    if any(option.startswith("#") for option in options):
        return re.compile("")
    flags = "".join(option[1] for option in options if _FLAG.fullmatch(option))
    forms = [re.escape(option) for option in sorted(options)]
    if flags:
        forms.append(rf"-[A-Za-z]{{1,6}}[{flags}](?:[\s'\"\\;|&`=]|\Z)")
    return re.compile(rf"(?<!\S)(?:{'|'.join(forms)})")


_FLAG: Final = re.compile("-[A-Za-z]")
_PROGRAMS_BY_END: Final[dict[str, list[str]]] = {}
for _program in COMMANDS:
    _PROGRAMS_BY_END.setdefault(_program[-2:], []).append(_program)
_MARKS: Final = {USER: ":", PERCENT: "%", COMMA: ","}
_UNGLUED: Final = frozenset({APART, COUNTED})
_TOGETHER: Final = frozenset({SAME, APART, COUNTED})
_SWITCH: Final = re.compile(r"-.*|/[A-Za-z]+(?::.*)?", re.DOTALL)
_FLAGS: Final = re.compile(r"-[A-Za-z]{0,6}([A-Za-z])")
