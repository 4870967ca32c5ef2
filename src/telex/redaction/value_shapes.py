"""Shapes of values after a label: `password=…`, `--token …`, `Cookie: …`, `<secret>…</secret>`.

A value is bare, up to a separator, or quoted. `secret_values` judges whether a short value is a
secret or only code and prose that mentions one; a longer value is always a secret. Each subclass of
`ValueShape` changes that judgement for the labels it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from telex.redaction.secret_values import (
    JUDGED_CHARS,
    LABEL_CHARS,
    SecretLabel,
    is_argument_mention,
    is_key_of_keyboard,
    is_mention,
    is_path,
    is_plain,
    is_quoted_mention,
    is_reference,
    is_sentence,
    is_template,
    is_wrapper_call,
    looks_random,
)
from telex.redaction.shapes import BLANK, BLANKS, ENDS, LINE_ENDS, QUOTES, CandidateOnly

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.candidate import Candidate
    from telex.redaction.shapes import Reading, Verdict

_UNQUOTED: Final = r"""^\s,'"\]}"""
_SEPARATORS: Final = ";&|)`"
"""Characters that end a shell's command, unless the value continues after them."""
_PLAIN: Final = rf"{_UNQUOTED}{_SEPARATORS}"
_JUDGED: Final = r"""^\s,;'\""""
_NEVER_FIRST: Final = frozenset(" \t\r\n\f\v,;'\")]}") | {""}
"""Characters that follow a label without a value in source code and prose: `input("Password: ")`.
"""
_OPENING: Final = re.compile(r"(?:[(:=>]|(?<![A-Za-z0-9])[bBfFrRuU]{1,2})(\\{0,3})\Z")
"""The text before a quote that opens a value instead of ending one: `b`, `Some(` or another label's
`=`."""
_VALUE_ENDS: Final = rf"(?=[\n\r\t,]|[ ][^\r{_SEPARATORS}])"
"""The end of a bare value that cannot continue in the next row: see `Candidate.run_out`."""
_PLAIN_VALUE: Final = re.compile(
    r"""[=>]?[ \t]{0,24}(?P<quote>["'])?(?P<value>[A-Za-z0-9]++)"""
    rf"(?(quote)(?P=quote)|{_VALUE_ENDS})"
)
"""A value of letters and digits only, as most are; it is decided without a closer look."""
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
"""A short value that is completely in sight, or a label without a value."""
_SHORT_STRING: Final = re.compile(r"""(["'])([^\\\r\n"']{0,47})\1""")
_ANY_SCHEME: Final = "(?i:apikey|basic|bearer|digest|negotiate|token)"
_PLAIN_CREDENTIALS: Final = re.compile(
    rf"[ \t]{{0,24}}{_ANY_SCHEME}[ \t]{{1,8}}(?P<value>[A-Za-z0-9]++){_VALUE_ENDS}", re.ASCII
)
_SCHEME_ALONE: Final = re.compile(rf"[=>~]?+[ \t]{{0,24}}+{_ANY_SCHEME}[`.,;)]", re.ASCII)
"""A scheme without credentials, in prose: `Authorization: Bearer.`"""
_STRING_PREFIX: Final = re.compile(r"[bBfFrRuU]{1,2}")
_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z _]{1,30}=")
_SCHEME: Final = "A-Za-z"
_SCHEMES: Final = frozenset({"apikey", "basic", "bearer", "digest", "negotiate", "token"})


def _decide_plain(pattern: re.Pattern[str], text: str, position: int) -> Verdict | None:
    """Decide about a value of letters and digits."""
    found = pattern.match(text, position)
    if found is None or not is_plain(found["value"]) or text[position - 1 : position + 1] == "==":
        return None
    start, end = found.span("value")
    return start, end, end


@dataclass(frozen=True, slots=True)
class ValueShape:
    """The value of a label: a bare one up to a separator, a quoted one up to the closing quote."""

    rest: str = _UNQUOTED
    lookahead: str = ""
    is_plain: ClassVar[bool] = True
    """Whether a value of letters and digits is a secret without further judgement."""

    def decide(self, text: str, position: int) -> Verdict | None:
        if self.is_plain and (verdict := _decide_plain(_PLAIN_VALUE, text, position)):
            return verdict
        seen = _MENTION.match(text, position)
        if seen is None:
            return None
        operator = text[position - 1] + seen["operator"]
        word, quoted = seen["word"], seen["quoted"]
        if word and operator != "==":
            is_quoted = seen["after"] in QUOTES
            if is_quoted and _STRING_PREFIX.fullmatch(word):
                return None
            label = SecretLabel(
                text[max(0, position - LABEL_CHARS) : position], bool(seen["blanks"])
            )
            if self.is_secret(label, word, seen["after"]):
                return None
            if is_quoted and word[-1] == "(":
                argument = _SHORT_STRING.match(text, seen.end("word"))
                inner = self if is_wrapper_call(word) else _RANDOM
                if not argument or (argument[2] and inner.is_quoted_secret(label, argument[2])):
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
        candidate.exclusive = False  # a value that is no secret may contain another label
        before = candidate.behind(LABEL_CHARS)
        if (yield from candidate.peek()) == ":" == before[-1:]:  # `Token::new`
            return
        operator = before[-1:] + candidate.behind((yield from candidate.run("=>~", 1)))
        blanks = yield from candidate.run(BLANKS, 24)
        label = SecretLabel(before, bool(blanks))
        candidate.hold()
        slashes = yield from candidate.run(r"\\", 3)
        quote = yield from candidate.peek()
        if quote not in QUOTES:
            candidate.position -= slashes
            if operator != "==":
                yield from self.bare(candidate, label)
            return
        quotes = yield from candidate.run(quote, 3)
        candidate.show()
        if quotes != 2:  # two are an empty string, three are a Python string
            shape = self.compared if operator == "==" else self
            yield from shape.quoted(candidate, label, quote, slashes)

    @property
    def compared(self) -> ValueShape:
        """The shape of a value that is only compared with the label: `token == "…"`."""
        return _RANDOM

    def bare(self, candidate: Candidate, label: SecretLabel) -> Reading:
        if (yield from candidate.peek()) in _NEVER_FIRST:
            return
        already = yield from candidate.reads(candidate.marker)
        if already and (yield from candidate.peek()) in _NEVER_FIRST | {"\\"}:
            return
        value, after = yield from candidate.word(_JUDGED, JUDGED_CHARS)
        if after in QUOTES and _STRING_PREFIX.fullmatch(value):
            candidate.show()
            yield from candidate.run(_JUDGED, len(value))
            yield from candidate.run(after, 1)
            candidate.hold()
            text, _ = yield from candidate.word(rf"^\r\n{after}", JUDGED_CHARS)
            if not is_template(value, text):
                yield from self.quoted(candidate, label, after, 0)
        elif len(value) >= JUDGED_CHARS or self.is_secret(label, value, after):
            yield from self.secret(candidate, label)
        elif after in QUOTES and value.endswith("("):
            candidate.show()
            yield from candidate.run(_JUDGED, len(value))
            yield from candidate.run(after, 1)
            inner = self if is_wrapper_call(value) else _RANDOM
            yield from inner.quoted(candidate, label, after, 0)

    def secret(self, candidate: Candidate, label: SecretLabel) -> Reading:
        """Hide a bare value up to a blank, a quote or the end of a command."""
        candidate.hide()
        candidate.exclusive = True
        while True:
            yield from candidate.run_out(_PLAIN)
            if (yield from candidate.peek()) not in _SEPARATORS_AND_END:
                break
            candidate.hold()
            yield from candidate.run(_SEPARATORS)
            if (yield from candidate.peek()) in ENDS:
                return
            if candidate.behind(1) == ";":
                field, after = yield from candidate.word("A-Za-z _", 32)
                if _FIELD.match(field + after):
                    return
            candidate.hide()
        quote = yield from candidate.peek()
        if quote in QUOTES and (opening := _OPENING.search(candidate.behind(6))):
            candidate.show()
            yield from candidate.run(quote, 1)
            yield from self.quoted(candidate, label, quote, len(opening[1]))

    def quoted(self, candidate: Candidate, label: SecretLabel, quote: str, slashes: int) -> Reading:
        """Read a quoted value up to the closing quote or the end of the line.

        `slashes` backslashes stood before the opening quote, as in JSON inside JSON; the closing
        quote has the same number.
        """
        candidate.exclusive = False  # the value of a label inside the quotes may end later
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
            if (
                stop == "\r" and candidate.behind(1) == " "
            ):  # maybe the right margin, as in `run_out`
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
    """The value of a label that also names many other things: `SORT_KEY`, `"key"`.

    Any value of an environment variable with such a name is a secret; elsewhere the value must look
    random.
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
    """The value of `key`, `auth` or `login`. It must begin with `first_chars` characters of
    `alphabet`, which the prefilter can check."""

    first_chars: ClassVar[int] = 12
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


_KEY_BEGINS: Final = re.compile(f"[{KeyShape.alphabet}]{{{KeyShape.first_chars}}}")
_RANDOM: Final = RandomValue()
_OPEN_NAMES: Final = re.compile(
    r"(?i)(?:public|pub|primary|foreign|sort|partition|cache|gpg|host|registry|hot|idempotency"
    r"|compose|leader|prefix|modifier|mod|meta|escape|group|object|trusted|authorized|known"
    r"|(?:max|min|num|total|input|output|used|prompt|completion|stop|special|new)(?=_tokens))"
    r"[_-]?(?:keys?|tokens)\Z"
)
"""Names that end in `key` or `tokens` and are no secrets."""


@dataclass(frozen=True, slots=True)
class DirectoryOrValue(ValueShape):
    """The value of `pwd`: a password in a connection string, a directory in a shell."""

    is_plain: ClassVar[bool] = False

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_path(value) and not is_mention(label, value, after)

    def is_quoted_secret(self, label: SecretLabel, value: str) -> bool:
        return not is_path(value) and not is_quoted_mention(label, value)


_DIRECTORY: Final = DirectoryOrValue()


@dataclass(frozen=True, slots=True)
class FieldShape(ValueShape):
    """The `pwd` field of a connection string. It is a password if another field follows
    (`pwd=…;Server=…`), if it is quoted, or if it is written `Pwd`, as no shell variable is; else it
    is a directory."""

    def decide(self, text: str, position: int) -> Verdict | None:
        is_capital = text.endswith(_CAPITAL_FIELD, 0, position)
        if is_capital or not _NO_FIELD.match(text, position):
            return None
        return position, position, position

    def read(self, candidate: Candidate) -> Reading:
        label = SecretLabel(candidate.behind(LABEL_CHARS), spaced=False)
        yield from candidate.run(" ", 1)
        quote = yield from candidate.peek()
        if quote in QUOTES:
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
"""A value that no other field follows: `pwd = None`."""


@dataclass(frozen=True, slots=True)
class Argument(ValueShape):
    """The value of an option in the next word: `--token …`."""

    def decide(self, text: str, position: int) -> Verdict | None:
        return None

    def read(self, candidate: Candidate) -> Reading:
        yield from candidate.run(BLANKS, 8)
        label = SecretLabel("", False)
        candidate.hold()
        quote = yield from candidate.peek()
        if quote in QUOTES:
            yield from candidate.run(quote, 1)
            candidate.show()
            yield from self.quoted(candidate, label, quote, 0)
        else:
            yield from self.bare(candidate, label)

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_argument_mention(value)


@dataclass(frozen=True, slots=True)
class PhraseShape(Argument):
    """The value in a sentence: `the password is …`. It must not look like a word."""

    def is_secret(self, label: SecretLabel, value: str, after: str) -> bool:
        return not is_sentence(value)


@dataclass(frozen=True, slots=True)
class QuotedOnly(ValueShape):
    """A value that must be quoted: `IDENTIFIED BY '…'` of SQL."""

    def decide(self, text: str, position: int) -> Verdict | None:
        return None

    def read(self, candidate: Candidate) -> Reading:
        if (yield from candidate.peek()) in QUOTES:
            yield from ValueShape.read(self, candidate)


@dataclass(frozen=True, slots=True)
class Element(CandidateOnly):
    """The text of an XML element up to its closing tag: `<password>…</password>`.

    The text may be CDATA. It may also be one word on a line of its own, or between blanks as in a
    window title, if the closing tag has the same name.
    """

    rest: str = r"^<\r\n"
    lookahead: str = ""
    is_word: bool = False
    """Whether the text must be one word that does not repeat its label; other text is the caption
    of a form."""

    def read(self, candidate: Candidate) -> Reading:
        opened = _OPENED.search(candidate.behind(LABEL_CHARS + 32))
        if candidate.behind(2) == "/>":  # an empty element
            return
        lines = yield from candidate.run(r"\r\n", 2)
        apart = lines + (yield from candidate.run(r"\s" if lines else BLANKS, 64))
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
        if (yield from candidate.run(r"\r\n" if lines else BLANKS, 2 if apart else 0)):
            yield from candidate.run(r"\s" if lines else BLANKS, 64)
        if (yield from candidate.reads(f"</{opened[1]}" if opened and apart else "</")):
            candidate.hide_until(end)

    def _to_end_of_data(self, candidate: Candidate) -> Generator[None, None, int]:
        """Read to the end of CDATA and return where its text ended."""
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
    """The values of a `Cookie` header. The attributes of `Set-Cookie` are no secrets."""

    rest: str = r"""^\s;,'\""""
    lookahead: str = ""

    def decide(self, text: str, position: int) -> Verdict | None:
        return (position, position, position) if _NO_COOKIE.match(text, position) else None

    def read(self, candidate: Candidate) -> Reading:
        for _ in range(64):
            yield from candidate.run(BLANKS, 8)
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
"""A word that is no name of a cookie: `cookie: bytes`."""
_COOKIE_ATTRIBUTES: Final = frozenset(
    {"domain", "expires", "max-age", "path", "priority", "samesite", "version"}
)


@dataclass(frozen=True, slots=True)
class Credentials(ValueShape):
    """The value of an `Authorization` header: a scheme, which stays readable, and the credentials.

    An unknown first word may be a scheme or the credentials, so the second word is hidden with it.
    """

    def decide(self, text: str, position: int) -> Verdict | None:
        if _SCHEME_ALONE.match(text, position):
            return position, position, position - 1
        return _decide_plain(_PLAIN_CREDENTIALS, text, position)

    def bare(self, candidate: Candidate, label: SecretLabel) -> Reading:
        known = yield from self._scheme(candidate)
        if known is None:
            return
        yield from ValueShape.bare(self, candidate, label)
        candidate.show()
        yield from candidate.run(BLANKS, 8)
        if not known and candidate.behind(1) in BLANK:
            candidate.hold()
            yield from ValueShape.bare(self, candidate, label)

    def quoted(self, candidate: Candidate, label: SecretLabel, quote: str, slashes: int) -> Reading:
        yield from self._scheme(candidate)
        yield from ValueShape.quoted(self, candidate, label, quote, slashes)

    def _scheme(self, candidate: Candidate) -> Generator[None, None, bool | None]:
        """Read a known scheme and return whether one came; None where it is only mentioned."""
        candidate.hold()
        word, after = yield from candidate.word(_SCHEME, 16)
        if word.lower() not in _SCHEMES:
            return False
        if after not in BLANK:
            return None if after and after in "`.,;)" else False
        yield from candidate.run(_SCHEME)
        candidate.show()
        yield from candidate.run(BLANKS, 8)
        candidate.hold()
        return True
