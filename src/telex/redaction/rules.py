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
import string
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import re2

from telex.redaction import visible
from telex.redaction.families import ENDINGS, FAMILIES, Family
from telex.redaction.program_options import COMMANDS
from telex.redaction.secret_values import is_hexadecimal, is_jumbled
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
    Lines,
    PhraseShape,
    QuotedOnly,
    RandomValue,
    Scheme,
    Shape,
    SuffixShape,
    Token,
    UrlPassword,
    UrlUser,
    ValueShape,
    run_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
        if isinstance(self.shape, Token | Scheme | Dotted | SuffixShape | UrlUser):
            return self.shape.may_go_on(text)
        return bool(self.quick) and len(text) < _QUICK_CHARS

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
    "secret(?:[ _-]?(?:access[ _-]?)?key(?:[ _-]?base)?)?",
    "unseal key(?: [0-9]{1,2})?",
    f"(?:{'|'.join(_OWNERS)})[ _-]?key",
)
_NAME: Final = f"(?i:{'|'.join(_NAMES)})"
_STRANGE_NAMES: Final = (
    *("Hasło", "hasło", "Parolă", "parolă", "Şifre", "şifre", "Mật khẩu", "mật khẩu"),
    *("Пароль", "пароль", "Κωδικός", "κωδικός", "パスワード", "密码", "密碼", "비밀번호", "암호"),
)
"""Those that Latin-1 cannot spell. The searches over bytes do not see them."""
_STRANGE: Final = "łăŞşậьωワ码碼밀암"
"""Each of them has one of these."""
_ESCAPED_NAMES: Final = "|".join(re.escape(ascii(name)[1:-1]) for name in _STRANGE_NAMES)
"""As source code, JSON and errors write them."""
_FOREIGN_NAME: Final = (
    r"(?i:passwor[dt]|kennwort|mot de passe|contrase(?:[ñn]|\\xf1|\\u00f1)a|senha|palavra-passe"
    r"|wachtwoord|l(?:ö|\\xf6|\\u00f6)senord|passord|adgangskode|salasana|heslo|parola|kata sandi"
    rf"|jelsz(?:ó|\\xf3|\\u00f3)|{_ESCAPED_NAMES})"
)
"""A password in another language; in English too, for what is said of one: `Passwort ist …`."""
_FOREIGN_ASSIGNED: Final = r"""["']?[ \t]{0,4}(?:[:=]|\\uff1a)"""
_IS: Final = "(?:is|was|ist|lautet|est|es|[ée])"
_UPPER_NAME: Final = "(?:API_?KEY|TOKEN|PASSW(?:OR)?D|PASSPHRASE|SECRET(?:_KEY)?)"
_VARIANTS: Final = (
    "(?:OLD|NEW|PROD(?:UCTION)?|DEV(?:ELOPMENT)?|STAGING|STAGE|LIVE|TEST|PREV(?:IOUS)?|CURRENT"
    "|PRIMARY|SECONDARY|BACKUP|ROOT|ADMIN|BASE|VALUE|PLAIN|RAW|V?[0-9]{1,2})"
)
"""Which of several: `DB_PASSWORD_OLD`, `API_KEY_2`."""
_SOMETIMES: Final = (
    "(?i:keys?|pat|pass|api|auth|login|licen[cs]e|jwt|creds?|credentials?|webhook|[_-]sk"
    "|tokens|secrets|passwords)"
)
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
_STATEMENT: Final = r"(?i:identified[ ](?:with[ ][a-z0-9_]{1,32}[ ])?by|password)[ \t]{1,2}"
_SAID: Final = (
    f"(?:(?i:passphrase|passcode|api key|secret key|access token)|{_FOREIGN_NAME})[ ](?i:{_IS})"
)
_SETTERS: Final = (
    "(?:setenv|ENV|set[ ]-[A-Za-z]{1,4}|config(?:ure)?(?:[ ]--[a-z]{1,8})?(?:[ ]set)?"
    "|user-secrets[ ]set)"
)
_DIRECTIVES: Final = (
    "(?i:requirepass|masterauth|primaryauth|wpa-psk|bindpw|rootpw|auth_pass|olcrootpw"
    "|enable (?:secret|password)(?: [0-9])?)"
)
_TAG: Final = "[A-Za-z0-9_.:-]"
_ELEMENT: Final = rf"<{_TAG}{{0,24}}{_NAME}(?:[ \t][^<>]{{0,40}})?>"
_NAMED_ELEMENT: Final = (
    rf"(?:<{_TAG}{{1,16}}[ \t](?:[^<>]{{0,16}}[ \t])?(?i:key|name)="
    rf"""["']{_TAG}{{0,24}}{_NAME}["']>"""
    rf"|>{_TAG}{{0,20}}{_NAME}</(?i:key|name)>[ \t\r\n]{{0,12}}"
    r"<(?i:string|value)(?:[ ][^<>]{0,24})?>)"
)
_USER_FIRST: Final = r"(?:user(?:name|[ _]?id)?|uid|login)[ ]?=[ ]?[^\s;=]{1,40}[ \t;,]{1,3}"
_BEGUN_HEX: Final = 12
_BEGUN: Final = 16
_BEGUN_USER: Final = 12
"""So much is shown of a word before it is held, if it may be one that is known by its end."""
_ENDING: Final = "|".join(f"(?:{ending.form})" for ending in ENDINGS)
_SIGNS: Final = "|".join(ending.sign for ending in ENDINGS)

_LABELS: Final = (
    RedactionRule("labelled value", ValueShape(), lead=_NAME + _ASSIGNED),
    RedactionRule("authorization header", Credentials(), lead=f"(?i:authorization){_ASSIGNED}"),
    RedactionRule("bearer token", Scheme(r"A-Za-z0-9._~+/=\-", 8), lead=r"(?i:bearer)[ \t]"),
    RedactionRule("URL password", UrlPassword(), lead=_URL_USER),
    RedactionRule("named value", ValueShape(), lead=f"{_NAME}(?:{_PAIRED}|{_YAML_PAIRED})"),
    RedactionRule(
        "password variable",
        DirectoryOrValue(),
        lead=f"(?:[A-Z0-9]_(?:PASS|PAT|PWD|PW|PSK|SK|CREDS?|CREDENTIALS?|AUTH)=|(?i:[a-z0-9]_(?:pass|pwd)){_ASSIGNED}"
        f"|[a-z]Pwd{_ASSIGNED})",
    ),
    RedactionRule(
        "password field",
        DirectoryOrValue(),
        lead=r"""(?i:[;?&][ ]?(?:pwd|pass)[ ]?=|["'](?:pwd|pass)["'][ \t]{0,4}[:=]|[ \t]pass="""
        f"|{_USER_FIRST}(?:pwd|pass|pw)[ ]?=)",
    ),
    RedactionRule("connection string", FieldShape(), lead="(?i:pwd)[ ]?=", whole_word=True),
    RedactionRule(
        "key",
        RandomValue(),
        lead=f"{_SOMETIMES}{_ASSIGNED}",
        quick=rf"[A-Z0-9]_(?:KEYS?|SK|TOKENS|SECRETS|PASSWORDS)=[^\s]|{_SOMETIMES}{_ASSIGNED}{_OPENED}[A-Za-z0-9+/_.~=-]{{12}}",
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
        lead=rf"""{_SETTERS}[ \t]{{1,2}}["']?[A-Za-z0-9_.:/-]{{0,40}}{_NAME}["']?[ \t]""",
        whole_word=True,
    ),
    RedactionRule("directive", Argument(), lead=rf"{_DIRECTIVES}[ \t]", whole_word=True),
    RedactionRule(
        "login file",
        Argument(),
        lead=r"(?:login|account|user)[ \t]{1,4}[^\s]{1,64}[ \t\r\n]{1,16}password[ \t]",
        whole_word=True,
    ),
    RedactionRule("element", Element(), lead=_ELEMENT),
    RedactionRule("named element", Element(is_word=True), lead=_NAMED_ELEMENT),
    RedactionRule(
        "told password", ValueShape(), lead=rf"{_SAID}(?:[ ]now)?[ ]?[:=]", whole_word=True
    ),
    RedactionRule("said password", PhraseShape(), lead=rf"{_SAID}[ ]", whole_word=True),
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
    RedactionRule("PuTTY private key", Lines(), lead="Private-Lines:[ ]"),
    RedactionRule("one of several", ValueShape(), lead=f"{_UPPER_NAME}_{_VARIANTS}="),
    RedactionRule("preshared key", ValueShape(), lead=f"(?i:psk){_ASSIGNED}", whole_word=True),
    RedactionRule(
        "password in another language",
        ValueShape(),
        lead=_FOREIGN_NAME + _FOREIGN_ASSIGNED,
        whole_word=True,
    ),
    RedactionRule(
        "URL user",
        UrlUser(_BEGUN_USER),
        lead=f"//[A-Za-z0-9_-]{{{_BEGUN_USER}}}",
        quick="//[A-Za-z0-9_-]{20}[A-Za-z0-9_-]*[@:]",
    ),
    RedactionRule("JSON web token", Dotted(), prefixes=("eyJ",), hides_prefix=True),
)


_STRANGE_RULE: Final = RedactionRule(
    "password in another script",
    ValueShape(),
    lead=rf"(?:{'|'.join(_STRANGE_NAMES)})[ \t]{{0,4}}[:=：]",
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


_MANY_FIRST: Final = re.compile(r"\A(\[[^]]*\])\{[0-9]{2}\}")
"""So many of a kind, with nothing before them: each count is a state of a search."""


def _families() -> Iterator[RedactionRule]:
    """One rule for all beginnings after which the same must come."""
    alike: dict[tuple[Token, bool], list[Family]] = {}
    for family in FAMILIES:
        shape = Token(family.rest, family.least, mixed=family.whole)
        if family.lead:
            whole = family.lead[0].isalnum()
            quick = _MANY_FIRST.sub(r"\1{4}", family.lead) + shape.ahead
            yield RedactionRule(family.id, shape, lead=family.lead, whole_word=whole, quick=quick)
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

_ENDINGS: Final = tuple(
    RedactionRule(name, SuffixShape(_ENDING, begun), lead=lead, whole_word=True, quick=_SIGNS)
    for name, begun, lead in (
        ("hexadecimal known by its end", _BEGUN_HEX, f"[0-9a-f]{{{_BEGUN_HEX}}}"),
        ("word known by its end", _BEGUN, rf"[A-Za-z0-9+/_\-]{{{_BEGUN}}}"),
    )
)

RULES: Final = (*_LABELS, _PROGRAMS, *_families(), *_ENDINGS, _STRANGE_RULE)

_BY_PREFIX: Final[dict[str, list[RedactionRule]]] = {}
for _rule in RULES:
    for _prefix in _rule.prefixes:
        _BY_PREFIX.setdefault(_prefix, []).append(_rule)
_HEAD: Final = 2
_BY_HEAD: Final[dict[str, list[str]]] = {}
for _prefix in _BY_PREFIX:
    _BY_HEAD.setdefault(_prefix[:_HEAD], []).append(_prefix)
_LED: Final = tuple(rule for rule in RULES[: -len(_ENDINGS) - 1] if rule.lead)
_HIDDEN: Final = [prefix for rule in RULES if rule.hides_prefix for prefix in rule.prefixes]
UNFINISHED_LEADS: Final = frozenset(
    prefix[:length] for prefix in _HIDDEN for length in range(1, len(prefix))
)
PREFIX_CHARACTERS: Final = frozenset("".join(_HIDDEN))
UNFINISHED_CHARS: Final = max(map(len, UNFINISHED_LEADS))

_ANY_REST: Final = r"[A-Za-z0-9_.~%+/=|:@*$,\-]"
"""Whatever may follow a prefix."""
_NO_LEAD: Final = "\u0100"
"""No lead begins with this, or with what comes after it."""
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
    led.append(_SIGNS)
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
    led = _loosened("|".join([*(rule.lead for rule in _LED), _SIGNS]))
    return _search(f"{led}|{_WORD_BEGINS}{_alternatives(sorted(_BY_PREFIX))}")


@cache
def _sign_search() -> Any:
    """The fixed parts of words known by their end."""
    return _search(_SIGNS)


@cache
def _ranges() -> tuple[tuple[str, str], ...]:
    """Between which characters each lead of `_LED` begins."""
    ranges = (_search(rule.lead).possiblematchrange(1) for rule in _LED)
    return tuple((first.decode("latin-1"), last.decode("latin-1")) for first, last in ranges)


@cache
def _compiled(lead: str) -> re.Pattern[str]:
    return re.compile(lead, re.ASCII)


@cache
def _leads_with(
    first: str,
) -> tuple[tuple[Callable[[str, int], re.Match[str] | None], RedactionRule], ...]:
    """The leads that may begin with this character, the first of which that matches counts."""
    return tuple(
        (_compiled(rule.lead).match, rule)
        for rule, (least, most) in zip(_LED, _ranges(), strict=True)
        if least <= first <= most
    )


@cache
def _strange_lead() -> re.Pattern[str]:
    return re.compile(_STRANGE_RULE.lead)


def _is_strange(text: str) -> bool:
    """Whether a secret may begin with a name that Latin-1 cannot spell."""
    if not any(each in text for each in _STRANGE):
        return False
    shown = "".join(visible.split(visible.without_zero_width(text))[0][::2])
    return any(name in shown for name in _STRANGE_NAMES)


def _words_begun(text: str, begin: int, breaks: Iterable[int], may_end: bool) -> list[int]:
    """Where a word known by its end may begin: anywhere, if such an end is in the text, else in the
    word that is not over yet."""
    if not may_end or _sign_search().search(_one_byte_each(text), begin) is None:
        begin = max(
            begin, len(text.rstrip(_WORD_CHARACTERS)), len(text) - _BEGUN - SuffixShape.most
        )
        if len(text) - begin < _BEGUN_HEX:
            return []
    starts = [each.start() for each in _WORD_START.finditer(text, begin)]
    return starts + [each for each in breaks if each >= begin and text[each - 1 : each].isalnum()]


def _word_begun(text: str, start: int) -> tuple[int, RedactionRule] | None:
    """A word that may be one of those known by their end: up to where it is shown, and its rule.

    None if it is over, and is no such word.
    """
    word = _WORD.match(text, start)
    if word is None or (word.end() < len(text) and not _whole_ending().fullmatch(word[0])):
        return None
    for rule, is_likely in zip(_ENDINGS, (is_hexadecimal, is_jumbled), strict=True):
        begun = re.match(rule.lead, word[0])
        if begun and is_likely(begun[0]):
            return start + begun.end(), rule
    return None


_WORD: Final = re.compile(rf"[A-Za-z0-9+/=_\-]{{{_BEGUN_HEX},{SuffixShape.most}}}+")


_WORD_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_WORD_CHARACTERS: Final = string.ascii_letters + string.digits + "+/=_-"


@cache
def _whole_ending() -> re.Pattern[str]:
    return re.compile(_ENDING)


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
        shown = visible.without_zero_width(text)
        data = _one_byte_each(shown)
        if self._literal_search and self._literal_search.search(data) is not None:
            return False
        has_breaks = "\x1b" in text or len(shown) < len(text)
        if (has_breaks or _plain_search().search(data) is not None) and (
            _bare_search().search(visible.without_sequences(data)) is not None
        ):
            return False
        return text.isascii() or not _is_strange(text)

    def leads(
        self, text: str, begin: int, after: int, breaks: Iterable[int] = ()
    ) -> list[tuple[int, int, RedactionRule]]:
        """(end, start, rule) of each lead that starts at `begin` or later and ends past `after`.

        Words begin at `breaks` too.
        """
        found: list[tuple[int, int, RedactionRule]] = []
        words = {each for each in breaks if each >= begin}
        begun = len(words)
        for start in self.starts(text, begin):
            for match, rule in _leads_with(min(text[start], _NO_LEAD)):
                if lead := match(text, start):
                    if lead.end() > after and start >= begin:
                        found.append((lead.end(), start, rule))
                    break
            words.update((start, start + 1))  # with the end of the word before, or without
        for start in words:
            for prefix in _BY_HEAD.get(text[start : start + _HEAD], ()):
                end = start + len(prefix)
                if end > after and start >= begin and text.startswith(prefix, start):
                    found += [(end, start, rule) for rule in _BY_PREFIX[prefix]]
        is_hit = len(words) > begun
        if is_hit or text[-1:] in _WORD_CHARACTERS:
            for start in _words_begun(text, begin, breaks, is_hit):
                if (word := _word_begun(text, start)) and word[0] > after:
                    found.append((word[0], start, word[1]))
        if not text.isascii() and any(each in text for each in _STRANGE):
            for lead in _strange_lead().finditer(text, begin):
                if lead.end() > after:
                    found.append((lead.end(), lead.start(), _STRANGE_RULE))
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
