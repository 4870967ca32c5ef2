"""Judgement of a value after a label: it is a secret, or it is code, a placeholder or prose that
only mentions one.

A word after `password=` is a secret. `password: str`, `token = self.next()`, `secret=secret` and
`TOKEN=${TOKEN}` are not, and hiding them would spoil source code, diffs and manuals. The judgement
uses the label, the form of the assignment, the value, and the one character after it; a stream
therefore holds a short value until it ends. A value in doubt is a secret.

The functions are pure; the shapes use them.
"""

from __future__ import annotations

import re
import string
from functools import cached_property
from itertools import pairwise
from typing import Final

JUDGED_CHARS: Final = 48
"""A longer value is a secret without judgement."""
LABEL_CHARS: Final = 64
"""The length of the text before a value that is examined."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS: Final = _words(
    """
    any annotated async await bool boolean bytearray bytes callable char dict false final
    float function int lambda list literal long nil no none not null number object optional
    required self str string true tuple type undefined union unset void yes yield
    """
)
"""Values in source code that are types or constants."""
_PROSE: Final = _words(
    """
    a all an and any are argument arguments as at be been but by can cannot command could directive
    do does each either every field flag for form from had has have here how if in into is it its
    itself may method more must my never no not nothing of on only option options or other our over
    page parameter prompt screen see set setting settings shall should since so
    some such than that the their them then there these they this those to under until use
    used value values was we were what when where which while who whoever whose why will with
    without would you your
    """
)
_STATES: Final = _words(
    """
    absent accepted denied disabled empty enabled error expired fail failed failure falsch
    forbidden found hidden incorrect incorrecta incorrecte incorrecto invalid invalide
    malformed masked matched mismatch mismatched missing ok pass passed pending present
    provided redacted rejected removed revoked rotated saved skip skipped stored succeeded
    success unauthorized unavailable unchanged unknown unspecified unverified updated valid
    verified xfail xpass
    """
)
"""Words that describe a secret, and results of a test with its name."""
_KEYBOARD: Final = re.compile(
    r"(?i)(?:[lr]?(?:alt|ctrl|control|shift|super|win|meta|hyper|cmd)(?:_[lr])?|f[0-9]{1,2}|menu|caps"
    r"(?:_?lock)?|esc(?:ape)?|return|enter|tab|space|delete|insert|home|end|prior|next|up|down|left"
    r"|right|backspace|print|pause|scroll_?lock|num_?lock|alt_?gr|[cmas]-.|\^.)"
)
_WRAPPERS: Final = _words(
    """
    b64decode bytes decode just new ok password quote secret secretbytes secretstr some str
    string token
    """
)
_EXAMPLES: Final = _words("pass passwd password pwd")
_IDENTIFIER: Final = string.ascii_letters + string.digits + "_.-"
_OWNERS: Final = ("self.", "cls.", "this.")
_ESCAPES: Final = re.compile(r"\\[rn].*", re.DOTALL)
"""An escaped line break in source code, and the text after it."""
_ONLY_ESCAPES: Final = re.compile(r"(?:\\(?:[abfnrtv0]|x[0-9a-f]{2}|u[0-9a-f]{4})\W?)+")
_LOWER_PATH: Final = re.compile(r"(?:~|\.{1,2})?(?:/[a-z0-9._-]+){2,}/?")
"""A path in small letters, which base64 rarely looks like."""
_TEMPLATE: Final = re.compile(r"\{[A-Za-z_][\w.()]*[!:}]", re.ASCII)
_PUBLIC_PREFIX: Final = re.compile(r"[A-Za-z0-9]{1,8}[_-]")
"""The public prefix of a token: `"ghp_" + …`."""
_TAG: Final = re.compile(r"![a-z]+")
"""A YAML tag before an encrypted value."""
_FORMAT: Final = re.compile(r"[<>^=+\- #0-9.,]*[a-zA-Z%]?\}")
_COMPOUND: Final = re.compile(r"[A-Za-z_-]+")
_LAST_WORDS: Final = re.compile(r"(?:token|passw(?:or)?d|secret|key|passphrase)\Z")
_NO_LETTERS: Final = re.compile(r"[^a-z]")
_SENTENCE: Final = re.compile(r"[a-z']+[.,!?]*")
_ARTICLE: Final = re.compile(
    r"(?i)(?:\A|[^\w])(?:the|a|an|its|his|her|their|our|my|real|only|whole)[ ]\Z"
)
_ALGORITHM: Final = re.compile(
    r"(?i)(?:utf|base|sha|md|rfc|oauth|ipv|latin|pbkdf|argon|hs|rs|es|aes|ascii|h|v)[-_]?[0-9].*"
)
_NUMBER: Final = re.compile(r"[0-9]{1,3}|0x[0-9a-f]{1,4}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_]*")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_PART: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_CALL: Final = re.compile(r"(?:[A-Za-z_]+|[A-Za-z_]\w*[._][\w.]*)[(\[]", re.ASCII)
_SPACED_CALL: Final = re.compile(r"[A-Za-z_][\w.]*[(\[]", re.ASCII)
_AFTER_CALL: Final = frozenset("\"'\r\n")
"""Characters after the opening bracket of a call that are no argument."""
_REFERENCE: Final = re.compile(
    r"""
      \$\{?\{?[ ]?[A-Z_][A-Z0-9_]*[ ]?\}{0,2}      # $NAME, ${NAME}
    | \$\{[^{}]*\}? | \$\{\{.*                      # ${name:-default}, ${{ secrets.NAME }}
    | \$\(.* | `[^`]*` | `[^`A-Za-z0-9]*                                  # $(command)
    | \$\w*(?:pass|pw|token|secret|key|cred)\w*     # $password
    | [fFrRbB]?\{[^{}]*\}? | \{\{.*                 # {name}, {{name}}
    | %(?:\([^()]*\)?)?[sdrSDR]? | %[A-Z_]+%        # %s, %(name)s, %NAME%
    | <[^<>]*>? | «[^«»]*»?                         # <password>
    | \[[A-Z_ ]*\]? | \^[A-Z].*                     # [PASSWORD], ^C
    | [A-Za-z0-9-]{0,12}(?:\.{3}|…|\*{3,})[A-Za-z0-9]{0,6}  # sk-...k3Ja
    | \*+ | x{3,12} | X{3,12} | \.{2,} | …+ | •+ | -+ | _+ | \++ | \#+ | \?+ | @ | &
    """,
    re.VERBOSE | re.ASCII,
)
"""A complete value that refers to a secret or stands in its place."""
_CLOSING: Final = re.compile(r"[)\]}][)\]}.].*\Z|[)\]};:.`>&|]*\Z", re.DOTALL)
"""Characters that end an expression or a sentence."""
_PATH: Final = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][A-Za-z._-]|~\Z|\.{1,2}\Z|/\Z|https?:|file:"
)
_PLACEHOLDER: Final = re.compile(
    r"[A-Z][A-Z_-]*|\[.*|<.*|\{.*|\$.*|%.*|`.*|\.{2,}.*|….*|-.*|=.*|\|.*"
)


class SecretLabel:
    """The label before a value. It is parsed when one of its properties is first read, because most
    values can be judged without."""

    def __init__(self, text: str, spaced: bool) -> None:
        self.separator = text[-1:]
        self._text = text[:-1]
        self._spaced = spaced

    @cached_property
    def _parts(self) -> tuple[str, bool, str]:
        name = self._text.rstrip(" \t")
        spaced = self._spaced or len(name) < len(self._text)
        name = name.rstrip("\"'").rstrip("\\")
        start = len(name.rstrip(_IDENTIFIER))
        return name[start:], spaced, name[:start].rstrip(" \t")[-1:]

    @property
    def name(self) -> str:
        """The identifier, as far as it is within `LABEL_CHARS`."""
        return self._parts[0]

    @property
    def spaced(self) -> bool:
        """Whether blanks stand around the separator."""
        return self._parts[1]

    @property
    def before(self) -> str:
        """The character before the name, without blanks."""
        return self._parts[2]

    @property
    def is_variable(self) -> bool:
        """Whether the label is a variable of a shell or of an `.env` file: `DB_PASSWORD=`."""
        return not self.spaced and self.separator == "=" and self.name[-1:].isupper()

    @property
    def is_prose(self) -> bool:
        """Whether the label is part of a sentence: `The secret: …`."""
        return (
            self.spaced
            and self.separator == ":"
            and self.name.lower() == "secret"
            and _ARTICLE.search(self._text.rstrip(" \t")[: -len(self.name)]) is not None
        )

    @property
    def is_code(self) -> bool:
        """Whether the label is one of several targets, or an attribute: `user, password = …`,
        `self.token = …`."""
        return self.spaced and (self.before == "," or self.name.startswith(_OWNERS))


def is_plain(value: str) -> bool:
    """Whether a value needs no judgement: letters and digits, and neither a word nor a number."""
    return len(value) > 3 and value.isalnum() and not value.isalpha() and not value.isdigit()


def is_mention(label: SecretLabel, value: str, after: str) -> bool:
    """Whether a bare value is code, a placeholder or prose. `after` is the character after it."""
    if is_plain(value):
        return False
    if value.isalpha() and value.lower() in _KEYWORDS:
        return True
    value = _ESCAPES.sub("", value)
    bare = _CLOSING.sub("", value)
    if not bare or _LOWER_PATH.fullmatch(bare):
        return True
    if (
        _REFERENCE.fullmatch(value)
        or _REFERENCE.fullmatch(bare)
        or _repeats_label(label.name, bare)
    ):
        return True
    lower = bare.lower()
    if lower in _KEYWORDS or lower in _STATES or _TEMPLATE.match(value):
        return True
    return not label.is_variable and _is_code_or_prose(label, value, bare, after)


def _is_code_or_prose(label: SecretLabel, value: str, bare: str, after: str) -> bool:
    closed = value[len(bare) :][:1] in {")", "]"} or after == ")"
    named = _NAME.fullmatch(bare) is not None
    opened = (_SPACED_CALL if label.spaced else _CALL).match(value)
    return (
        value.startswith("(")
        or (label.spaced and value.startswith("["))
        or (label.spaced and len(value) < 4 and not any(map(str.isalnum, value)))
        or (label.separator == ":" and label.spaced and bare.lower() in _PROSE)
        or (label.is_prose and _SENTENCE.fullmatch(value) is not None)
        or (label.spaced and after == " " and _TAG.fullmatch(value) is not None)
        or (label.before == "{" and _FORMAT.match(value) is not None)
        or (label.spaced and _NUMBER.fullmatch(bare) is not None)
        or (opened is not None and (opened.end() < len(value) or after in _AFTER_CALL))
        or (after in {"(", "["} and _PART.fullmatch(value) is not None)
        or (named and (closed or label.is_code or (after in {",", "}"} and bare.isupper())))
        or (_DOTTED.fullmatch(bare) is not None and not _digits(bare) and (label.spaced or closed))
        or _contains_label(label.name, bare)
    )


def is_quoted_mention(label: SecretLabel, value: str) -> bool:
    """Whether a quoted value only names a secret, or stands in its place."""
    if is_plain(value):
        return False
    if "\\" in value:
        return _ONLY_ESCAPES.fullmatch(value) is not None
    return (
        len(value) < 3
        or _LOWER_PATH.fullmatch(value) is not None
        or _REFERENCE.fullmatch(value) is not None
        or _TEMPLATE.match(value) is not None
        or _PUBLIC_PREFIX.fullmatch(value) is not None
        or _repeats_label(label.name, value)
        or _contains_label(label.name, value)
    )


def is_template(prefix: str, value: str) -> bool:
    """Whether a string with this prefix has its value filled in: `f"sk-{key}"`."""
    return "{" in value and "f" in prefix.lower()


def is_argument_mention(value: str) -> bool:
    """Whether the word after an option is prose or a placeholder: `--token TOKEN`, `--token is`."""
    value = _ESCAPES.sub("", value)
    bare = _CLOSING.sub("", value)
    lower = bare.rstrip(",").lower()
    return (
        not any(map(str.isalnum, value))
        or lower in _PROSE
        or lower in _KEYWORDS
        or lower in _STATES
        or bool(_PLACEHOLDER.fullmatch(bare or value))
        or bool(_REFERENCE.fullmatch(value))
    )


def is_sentence(value: str) -> bool:
    """Whether the word after `the password is` continues the sentence: `the password is wrong`."""
    bare = value.rstrip(".,;:!?)")
    if is_argument_mention(value) or bare.lower() in _STATES or _ALGORITHM.fullmatch(bare):
        return True
    letters = any(map(str.isalpha, bare))
    marks = any(not c.isalnum() and c not in "-'’`*_/." for c in bare)
    return len(bare) < 6 or not letters or not (_digits(bare) or marks or _kind_changes(bare) > 3)


def is_key_of_keyboard(value: str) -> bool:
    """Whether the value is a key of the keyboard: `COMPOSE_KEY=ralt`."""
    return _KEYBOARD.fullmatch(value) is not None


def is_reference(value: str) -> bool:
    """Whether the whole value refers to a secret or stands in its place: `${NAME}`, `<password>`,
    `…`."""
    return _REFERENCE.fullmatch(value) is not None


def is_example(password: str) -> bool:
    """Whether the password of a URL is an example from a manual: `https://user:pass@host`."""
    return password.lower() in _EXAMPLES or _REFERENCE.fullmatch(password) is not None


def is_wrapper_call(value: str) -> bool:
    """Whether the call at the beginning of a value only wraps it: `Some("…")`, `SecretStr("…")`."""
    return value.rstrip("(").rpartition(".")[2].lower() in _WRAPPERS


def is_path(value: str) -> bool:
    return _PATH.match(value) is not None


def looks_random(value: str) -> bool:
    """Whether a value is long and mixes letters and digits as no name does."""
    letters, digits = sum(map(str.isalpha, value)), _digits(value)
    if len(value) < 12 or letters < 2 or digits < 2 or is_path(value):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(value))
    return changes >= (4 if len(value) >= 16 else 6) or _kind_changes(value) * 3 >= len(value)


def is_mixed(value: str) -> bool:
    """Whether digits, capitals and small letters alternate as in no word."""
    return _digits(value) > 0 and _kind_changes(value) >= (4 if len(value) >= 20 else 3)


def is_jumbled(value: str) -> bool:
    """Whether the beginning of a word is more mixed than that of a name or a path."""
    changes = _kind_changes(value)
    return changes >= 7 or (changes >= 5 and _digits(value) > 0)


def is_hexadecimal(value: str) -> bool:
    """Whether hexadecimal digits are neither a number nor a word."""
    return 0 < _digits(value) < len(value)


class _Kinds(dict[int, str | None]):
    """The table for `str.translate` that replaces each character by its kind: `0` for a digit, `a`
    for a small letter, `A` for any other letter. Other characters are removed."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        kind = "0" if character.isdigit() else "a" if character.islower() else "A"
        self[code] = kind if character.isalnum() else None
        return self[code]


_KINDS: Final = _Kinds()
_CHANGES: Final = ("0a", "a0", "0A", "A0", "aA", "Aa")


def _kind_changes(value: str) -> int:
    """Count the changes between small letters, capitals and digits."""
    return sum(map(value.translate(_KINDS).count, _CHANGES))


def _digits(text: str) -> int:
    return text.translate(_KINDS).count("0")


def _repeats_label(name: str, value: str) -> bool:
    """Whether a value only repeats its label: `secret=secret`, `self.token = token`."""
    if not _PART.fullmatch(value):
        return False
    last = value.rpartition(".")[2].strip("_").lower()
    return len(last) > 2 and name.rpartition(".")[2].lower().replace("-", "_").endswith(last)


def _contains_label(name: str, value: str) -> bool:
    """Whether a value is a compound name that contains the label: `AccessTokenType`,
    `my-client-secret`."""
    if not _COMPOUND.fullmatch(value) or (value.islower() and value.isalpha()):
        return False
    last = _LAST_WORDS.search(name.lower())
    return last is not None and last[0] in _NO_LETTERS.sub("", value.lower())
