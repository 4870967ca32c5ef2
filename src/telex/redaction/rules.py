"""The rules: how a secret begins, and which shape it has from there.

A rule is a lead that gives the secret away (`password=`, `ghp_`) and the shape that reads on from
it. Rules act one by one and what is hidden is the union: a key inside a password inside a URL is
hidden by whichever rule sees it. Labels are here; credentials known by their beginning are rows of
`families`, and become rules here.

Finding leads must cost next to nothing, because there are hardly ever any. `Rulebook.quiet` looks
for all of them in one linear-time search, each with the first characters of what must follow it;
only where that finds something are the rules consulted. Of a text with escape sequences, which may
stand between any two characters, it searches what is left without them. Nothing is compiled before
it is needed. Used by `lane` and `stream`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import re2

from telex.redaction import visible
from telex.redaction.families import FAMILIES, Family
from telex.redaction.program_options import COMMANDS
from telex.redaction.shapes import (
    FEW,
    Argument,
    Armour,
    CommandShape,
    Cookies,
    Credentials,
    DirectoryOrValue,
    Dotted,
    Element,
    FieldShape,
    QuotedOnly,
    RandomValue,
    Scheme,
    Shape,
    Token,
    UrlPassword,
    ValueShape,
    run_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LEAD_CHARS: Final = 96
"""No lead is longer; this much text is remembered, so that one cut across feeds is recognised."""
LITERAL_LEAD: Final = 4
"""So much of a caller's literal is looked for first, or all of it where it is shorter."""
_QUICK_CHARS: Final = 48
"""No `quick` pattern goes on further after its lead."""


@dataclass(frozen=True, slots=True)
class RedactionRule:
    """One way a secret is recognised. A rule has either a lead or prefixes."""

    name: str
    shape: Shape
    lead: str = ""
    """A pattern for what stays readable: a label, a scheme."""
    prefixes: tuple[str, ...] = ()
    """Beginnings. They count where a word may begin, not inside one: `sk-` is a key and `task-` is
    a word."""
    hides_prefix: bool = False
    """The beginning is hidden with the rest."""
    whole_word: bool = False
    """So does the lead."""
    quick: str = ""
    """What to look for first, if not the lead and what its shape says comes next."""

    @property
    def is_weak(self) -> bool:
        """Its prefixes are common, so that much must follow."""
        return isinstance(self.shape, Token) and self.shape.mixed

    def waits_after(self, text: str) -> bool:
        """Whether after this text it is not told yet if the lead before it leads to a secret."""
        if self.quick:
            return len(text) < _QUICK_CHARS
        return isinstance(self.shape, Token | Scheme | Dotted) and self.shape.may_go_on(text)

    @property
    def pattern(self) -> str:
        return self.lead or "|".join(map(re.escape, self.prefixes))


_OWNERS: Final = (
    *("private", "account", "access", "auth", "signing", "encryption", "master", "license"),
    *("service", "shared", "preshared", "subscription", "consumer", "storage", "webhook"),
    *("session", "app", "application"),
)
"""Whose key is a secret."""
_NAMES: Final = (
    "api[ _-]?key",
    "token",
    "passw(?:or)?d",
    "pass(?:phrase|code)",
    "secret(?:[ _-]?(?:access[ _-]?)?key)?",
    "unseal key(?: [0-9]{1,2})?",
    f"(?:{'|'.join(_OWNERS)})[ _-]?key",
)
_NAME: Final = f"(?i:{'|'.join(_NAMES)})"
_SOMETIMES: Final = "(?i:key|pat|pass|api|auth|login|licen[cs]e|jwt|creds?|credentials?|webhook)"
"""What is a secret if it looks like one."""
_ASSIGNED: Final = r"""\\{0,3}["']?[ \t]{0,24}[:=]"""
_OPENED: Final = r"""[=>~]?[ \t]{0,24}\\{0,3}["']{0,3}"""
_PAIRED: Final = (
    r"""\\{0,3}["'],?[ \t]{0,4}\r?\n?[ \t]{0,16}\\{0,3}["']?[Vv]alue\\{0,3}["']?[ \t]?[:=]"""
)
"""A name and a value side by side: `{"name": "DB_PASSWORD", "value": "…"}`, `key="…" value="…"`."""
_YAML_PAIRED: Final = r"(?:\\[rn]|[ \t\r\n]){1,32}value[ \t]?:"
# Most text has URLs and few have a user, so the lead goes on to the colon. `?` is not excluded,
# though it ends a host: it also stands for the characters that `_one_byte_each` cannot keep.
_URL_USER: Final = r"""://[^\s/#"'<>`\\:]{0,90}:"""
_OPTION_NAME: Final = (
    "(?:[a-z0-9]{1,16}-){0,3}(?:api-?key|token|passw(?:or)?d|passphrase|secret|pass|pwd|pat"
    "|(?:access|secret|private|account|auth|license)-key|credentials?)"
)
_STATEMENT: Final = (
    r"(?i:identified[ ](?:with[ ][a-z0-9_]{1,32}[ ])?by|password(?:[ ]is)?)[ \t]{1,2}"
)
_SETTERS: Final = "(?:setenv|ENV|set[ ]-[A-Za-z]{1,4}|config(?:ure)?[ ]set)"

_LABELS: Final = (
    RedactionRule("labelled value", ValueShape(), lead=_NAME + _ASSIGNED),
    RedactionRule("authorization header", Credentials(), lead=f"(?i:authorization){_ASSIGNED}"),
    RedactionRule("bearer token", Scheme(r"A-Za-z0-9._~+/=\-", 8), lead=r"(?i:bearer)[ \t]"),
    RedactionRule("URL password", UrlPassword(), lead=_URL_USER),
    RedactionRule("named value", ValueShape(), lead=f"{_NAME}(?:{_PAIRED}|{_YAML_PAIRED})"),
    RedactionRule(
        "password variable",
        DirectoryOrValue(),
        lead=f"(?:[A-Z0-9]_(?:PASS|PAT|PWD|CREDS?|CREDENTIALS?|AUTH)=|(?i:[a-z0-9]_(?:pass|pwd)){_ASSIGNED})",
    ),
    RedactionRule(
        "password field",
        DirectoryOrValue(),
        lead=r"""(?i:[;?&][ ]?(?:pwd|pass)[ ]?=|["'](?:pwd|pass)["'][ \t]{0,4}[:=]|[ \t]pass=)""",
    ),
    RedactionRule("connection string", FieldShape(), lead="(?i:pwd)[ ]?=", whole_word=True),
    RedactionRule(
        "key",
        RandomValue(),
        lead=f"{_SOMETIMES}{_ASSIGNED}",
        quick=rf"[A-Z0-9]_KEY=[^\s]|{_SOMETIMES}{_ASSIGNED}{_OPENED}[A-Za-z0-9+/_.~=-]{{12}}",
    ),
    RedactionRule(
        "registry credentials",
        Token("A-Za-z0-9+/=", 8),
        lead=r"""(?:_auth[ \t]{0,4}=|"auth"[ \t]{0,4}:[ \t]{0,4}")""",
    ),
    RedactionRule("option", Argument(), lead=f"--?(?i:{_OPTION_NAME})[ \\t]", whole_word=True),
    RedactionRule(
        "assigned variable",
        Argument(),
        lead=rf"{_SETTERS}[ \t]{{1,2}}[A-Za-z0-9_.:-]{{0,40}}{_NAME}[ \t]",
        whole_word=True,
    ),
    RedactionRule(
        "login file",
        Argument(),
        lead=r"(?:login|account|user)[ \t]{1,4}[^\s]{1,64}[ \t\r\n]{1,16}password[ \t]",
        whole_word=True,
    ),
    RedactionRule("element", Element(), lead=f"<[A-Za-z0-9_.:-]{{0,40}}{_NAME}>"),
    RedactionRule(
        "statement",
        QuotedOnly(),
        lead=_STATEMENT,
        quick=f"""{_STATEMENT}["']""",
        whole_word=True,
    ),
    RedactionRule(
        "pass phrase argument",
        Argument(),
        lead="-pass(?:in|out)?[ ]{1,2}[\"']?pass:",
        whole_word=True,
    ),
    RedactionRule("cookie header", Cookies(), lead="(?i:cookie):[ \\t]", whole_word=True),
    RedactionRule(
        "basic credentials", Scheme("A-Za-z0-9+/=", 8), lead=r"Basic[ \t]", whole_word=True
    ),
    RedactionRule(
        "query parameter",
        Token(r"A-Za-z0-9_%.~\-", 20, mixed=True),
        lead="[?&](?i:key|code|auth|jwt|sid|session|signature|x-amz-signature|x-goog-signature|ticket)=",
    ),
    RedactionRule(
        "private key block",
        Armour(),
        lead="BEGIN (?:[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4}",
    ),
    RedactionRule("JSON web token", Dotted(), prefixes=("eyJ",), hides_prefix=True),
)


def _alternatives(words: Sequence[str]) -> str:
    """A pattern for any of these words, with their common beginnings taken together."""
    if len(words) == 1:
        return re.escape(words[0])
    heads: dict[str, list[str]] = {}
    for word in words:
        heads.setdefault(word[:1], []).append(word[1:])
    branches = [
        re.escape(head) + (_alternatives(tails) if any(tails) else "")
        for head, tails in sorted(heads.items(), reverse=True)  # an empty one comes last
    ]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _families() -> Iterator[RedactionRule]:
    """One rule for all beginnings after which the same must come."""
    alike: dict[tuple[Token, bool], list[Family]] = {}
    for family in FAMILIES:
        shape = Token(family.rest, family.least, mixed=family.whole)
        if family.lead:
            whole = family.lead[0].isalnum()
            yield RedactionRule(family.id, shape, lead=family.lead, whole_word=whole)
        elif not _is_covered(family):
            alike.setdefault((shape, family.is_hidden_whole), []).append(family)
    for (shape, hidden), families in alike.items():
        prefixes = dict.fromkeys(family.prefix for family in families)
        name = f"like {families[0].id}"
        yield RedactionRule(name, shape, prefixes=tuple(prefixes), hides_prefix=hidden)


def _is_covered(family: Family) -> bool:
    """Whether a beginning that is hidden leads to the same: `sk-proj-` is `sk-` and more."""
    return any(
        other.rest == family.rest
        and (other.prefix, other.least) != (family.prefix, family.least)
        and family.prefix.startswith(other.prefix)
        and other.least - len(family.prefix) + len(other.prefix) <= family.least
        and run_of(other.rest).fullmatch(family.prefix[len(other.prefix) :])
        for other in _HIDDEN_WHOLE
    )


_HIDDEN_WHOLE: Final = [family for family in FAMILIES if family.is_hidden_whole]

_PROGRAMS: Final = RedactionRule(
    "command", CommandShape(), lead=f"{_alternatives(sorted(COMMANDS))}[ \\t]", whole_word=True
)

RULES: Final = (*_LABELS, _PROGRAMS, *_families())

_BY_PREFIX: Final[dict[str, list[RedactionRule]]] = {}
for _rule in RULES:
    for _prefix in _rule.prefixes:
        _BY_PREFIX.setdefault(_prefix, []).append(_rule)
_HEAD: Final = 2
_BY_HEAD: Final[dict[str, list[str]]] = {}
for _prefix in _BY_PREFIX:
    _BY_HEAD.setdefault(_prefix[:_HEAD], []).append(_prefix)
_LED: Final = tuple(rule for rule in RULES if rule.lead)
_HIDDEN: Final = [prefix for rule in RULES if rule.hides_prefix for prefix in rule.prefixes]
UNFINISHED_LEADS: Final = frozenset(
    prefix[:length] for prefix in _HIDDEN for length in range(1, len(prefix))
)
PREFIX_CHARACTERS: Final = frozenset("".join(_HIDDEN))
UNFINISHED_CHARS: Final = max(map(len, UNFINISHED_LEADS))

_ANY_REST: Final = r"[A-Za-z0-9_.~%+/=|:@*$,\-]"
"""Whatever may follow a prefix."""
_WIDE: Final = re.compile(r"\{([01]),[0-9]{2}\}")
_WORD_BEGINS: Final = "(?:^|[^A-Za-z0-9])"
_SEARCH_BYTES: Final = 32 << 20
"""So much the states of one search may take before RE2 throws them away and begins anew."""


def _search(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _SEARCH_BYTES
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode("latin-1"), options)


def _one_byte_each(text: str) -> bytes:
    """The text with every character one byte, so that offsets agree. What Latin-1 lacks becomes
    `?`, which no lead may exclude; lone surrogates are nothing special."""
    return text.encode("latin-1", "replace")


def _quick_pattern(before_prefix: str) -> str:
    """A pattern for every secret, and for little else: its lead and what must follow. It is wider
    than the rules are, so that it stays small."""
    strong = {prefix for rule in RULES for prefix in rule.prefixes if not rule.is_weak}
    prefixed = [f"{_alternatives(sorted(strong))}{_ANY_REST}{{{FEW}}}"]
    prefixed += [
        f"{_alternatives(sorted(rule.prefixes))}{rule.shape.ahead}"
        for rule in RULES
        if rule.prefixes and rule.is_weak
    ]
    led = [rule.quick or f"(?:{rule.lead}){rule.shape.ahead}" for rule in _LED]
    loose = _loosened("|".join(led))
    return f"{before_prefix}(?:{'|'.join(prefixed)})|{loose}"


def _loosened(pattern: str) -> str:
    """Without the higher counts, each of which is a state of a search."""
    return _WIDE.sub(lambda count: "+" if count[1] == "1" else "*", pattern)


@cache
def _plain_search() -> Any:
    """Secrets in text without control characters, and the first control character."""
    return _search(f"{_quick_pattern(_WORD_BEGINS)}|{visible.ANY_CONTROL}")


@cache
def _bare_search() -> Any:
    """Secrets in text from which escape sequences were taken, so that a word may begin anywhere."""
    return _search(_quick_pattern(""))


@cache
def _lead_search() -> Any:
    """Leads alone, in visible text."""
    led = _loosened("|".join(rule.lead for rule in _LED))
    return _search(f"{led}|{_WORD_BEGINS}{_alternatives(sorted(_BY_PREFIX))}")


@cache
def _lead_pattern() -> re.Pattern[str]:
    """Which lead it is: its groups are `_LED`."""
    return re.compile("|".join(f"({rule.lead})" for rule in _LED), re.ASCII)


def _literal_search(literals: tuple[str, ...]) -> Any:
    leads = {re.escape(_one_byte_each(text[:LITERAL_LEAD]).decode("latin-1")) for text in literals}
    return _search("|".join(visible.permeable(lead) for lead in sorted(leads)))


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules with a caller's literals: what lanes are made from."""

    marker: str
    literals: tuple[str, ...] = ()
    _literal_search: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        search = _literal_search(self.literals) if self.literals else None
        object.__setattr__(self, "_literal_search", search)

    def quiet(self, text: str) -> bool:
        """Whether no secret begins in this text, which has no control strings in it.

        What begins near its end, and is not long enough yet to be told, does not count.
        """
        data = _one_byte_each(visible.without_zero_width(text))
        if self._literal_search and self._literal_search.search(data) is not None:
            return False
        if "\x1b" not in text and text.isascii() and _plain_search().search(data) is None:
            return True
        return _bare_search().search(visible.without_sequences(data)) is None

    def leads(
        self, text: str, begin: int, after: int, breaks: Iterable[int] = ()
    ) -> list[tuple[int, int, RedactionRule]]:
        """(end, start, rule) of each lead that starts at `begin` or later and ends past `after`.

        Words begin at `breaks` too.
        """
        found: list[tuple[int, int, RedactionRule]] = []
        words = {each for each in breaks if each >= begin}
        match = _lead_pattern().match
        for start in self.starts(text, begin):
            lead = match(text, start)
            if lead and lead.lastindex and lead.end() > after and start >= begin:
                found.append((lead.end(), start, _LED[lead.lastindex - 1]))
            words.update((start, start + 1))  # with the end of the word before, or without
        for start in words:
            for prefix in _BY_HEAD.get(text[start : start + _HEAD], ()):
                end = start + len(prefix)
                if end > after and start >= begin and text.startswith(prefix, start):
                    found += [(end, start, rule) for rule in _BY_PREFIX[prefix]]
        return sorted(found, key=_place)

    def starts(self, text: str, begin: int) -> Iterator[int]:
        """Where a lead may start, or the end of the word before it: every place where one does, and
        few others."""
        data, search, at = _one_byte_each(text), _lead_search().search, max(0, begin - 1)
        while hit := search(data, at):
            at = hit.start() + 1
            yield at - 1


def _place(lead: tuple[int, int, RedactionRule]) -> tuple[int, int]:
    return lead[:2]
