"""The rules, as data: how a secret begins, and which shape it has from there.

A rule is a lead that gives the secret away (`password=`, `ghp_`) and the shape that reads on from
it. Rules act one by one and what is hidden is the union: a key inside a password inside a URL is
hidden by whichever rule sees it. To add a vendor's key, add a line to `_TOKENS`.

Finding leads must cost next to nothing, because there are hardly ever any: `Rulebook` looks for all
of them in one linear-time search, in which escape sequences may stand between any two characters.
Only where that finds something are the rules consulted. Used by `lane` and `stream`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import re2

from telex.redaction import visible
from telex.redaction.shapes import (
    WORD,
    Armour,
    Credentials,
    Dotted,
    Shape,
    Token,
    UrlPassword,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAD_CHARS: Final = 96
"""No lead is longer; this much text is remembered, so that one cut across feeds is recognised."""
LITERAL_LEAD: Final = 4
"""So much of a caller's literal is looked for first, so none may be shorter."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way a secret is recognised. A rule has either a shown lead or hidden prefixes."""

    name: str
    shape: Shape
    lead: str = ""
    """A pattern for what stays readable: a label, a scheme."""
    prefixes: tuple[str, ...] = ()
    """Beginnings that are hidden with the rest. They count where a word may begin, not inside one:
    `sk-` is a key and `task-` is a word."""

    @property
    def pattern(self) -> str:
        return self.lead or "|".join(map(re.escape, self.prefixes))


_NAMES: Final = (
    "api[ _-]?key",
    "token",
    "passw(?:or)?d",
    "passphrase",
    "secret(?:[ _-]?(?:access[ _-]?)?key)?",
    "(?:private|account)[ _-]?key",
)
_ASSIGNED: Final = r"""\\{0,3}["']?[ \t]{0,4}[:=]"""
# Most text has URLs and few have a user, so the lead goes on to the colon. `?` is not excluded,
# though it ends a host: it also stands for the characters that `_one_byte_each` cannot keep.
_URL_USER: Final = r"""://[^\s/#"'<>`\\:]{0,90}:"""

_LABELS: Final = (
    Rule("labelled value", Value(), lead=f"(?i:{'|'.join(_NAMES)}){_ASSIGNED}"),
    Rule("authorization header", Credentials(), lead=f"(?i:authorization){_ASSIGNED}"),
    Rule("bearer token", Token(r"A-Za-z0-9._~+/=\-", 8), lead=r"(?i:bearer)[ \t]"),
    Rule("URL password", UrlPassword(), lead=_URL_USER),
    Rule(
        "private key block",
        Armour(),
        lead="BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)? ?-{4}",
    ),
    Rule("JSON web token", Dotted(), prefixes=("eyJ",)),
)

_TOKENS: Final[tuple[tuple[str, tuple[str, ...], str, int], ...]] = (
    ("OpenAI or Anthropic key", ("sk-",), WORD, 16),
    ("AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), "A-Z0-9", 16),
    ("Google API key", ("AIza",), WORD, 20),
    ("Google OAuth token", ("ya29.", "GOCSPX-"), WORD, 20),
    ("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), "a-f0-9", 20),
    ("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), "A-Za-z0-9_", 20),
    ("GitLab token", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"), WORD, 16),
    ("Slack token", ("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), WORD, 10),
    ("Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), "A-Za-z0-9", 16),
    ("npm token", ("npm_",), "A-Za-z0-9", 20),
    ("PyPI token", ("pypi-AgE",), WORD, 16),
    ("Docker Hub token", ("dckr_pat_", "dckr_oat_"), WORD, 16),
    ("Hugging Face token", ("hf_",), "A-Za-z0-9", 20),
    ("SendGrid key", ("SG.",), WORD + ".", 32),
    ("Vault token", ("hvs.", "hvb."), WORD, 20),
    ("age secret key", ("AGE-SECRET-KEY-1",), "A-Z0-9", 20),
)
"""Name, prefixes, alphabet, and how many characters make it one. The numbers are below the real
lengths on purpose: a key cut short by a column's width is still mostly a key."""

RULES: Final = _LABELS + tuple(
    Rule(name, Token(alphabet, least), prefixes=prefixes)
    for name, prefixes, alphabet, least in _TOKENS
)


def _search(patterns: list[str]) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile("|".join(patterns).encode("latin-1"), options)


def _one_byte_each(text: str) -> bytes:
    """The text with every character one byte, so that offsets agree. What Latin-1 lacks becomes
    `?`, which no lead may exclude; lone surrogates are nothing special."""
    return text.encode("latin-1", "replace")


@cache
def _default_search() -> Any:
    leads = [visible.permeable(f"(?:{rule.pattern})") for rule in RULES]
    return _search([*leads, visible.STRING_OPENS])


def _literal_search(literals: tuple[str, ...]) -> Any:
    leads = {re.escape(_one_byte_each(text[:LITERAL_LEAD]).decode("latin-1")) for text in literals}
    return _search([visible.permeable(lead) for lead in sorted(leads)])


_LEAD: Final = re.compile("|".join(f"({rule.pattern})" for rule in RULES), re.ASCII)
UNFINISHED_LEADS: Final = frozenset(
    prefix[:length]
    for rule in RULES
    for prefix in rule.prefixes
    for length in range(1, len(prefix))
)
UNFINISHED_CHARS: Final = max(map(len, UNFINISHED_LEADS))


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules with a caller's literals: what lanes are made from."""

    marker: str
    literals: tuple[str, ...] = ()
    _searches: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        extra = (_literal_search(self.literals),) if self.literals else ()
        object.__setattr__(self, "_searches", (_default_search(), *extra))

    def quiet(self, text: str) -> bool:
        """Whether no secret begins in this text, escape sequences or not, and no string either."""
        data = _one_byte_each(text)
        return all(search.search(data) is None for search in self._searches)

    def leads(self, text: str, begin: int, after: int) -> list[tuple[int, int, Rule]]:
        """(end, start, rule) of each lead that starts at `begin` or later and ends past `after`."""
        found = []
        for start in self.starts(text, begin):
            lead = _LEAD.match(text, start)
            if lead and lead.lastindex and lead.end() > after:
                found.append((lead.end(), start, RULES[lead.lastindex - 1]))
        return sorted(found, key=lambda lead: lead[:2])

    def starts(self, text: str, begin: int) -> Iterator[int]:
        """Where a lead may start: every place where one does, and few others."""
        data = _one_byte_each(text)
        while hit := self._searches[0].search(data, begin):
            start = hit.start()
            yield start
            begin = start + 1
