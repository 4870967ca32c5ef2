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
from functools import cache, cached_property
from itertools import accumulate
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
    KeyShape,
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
    at_least,
    run_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from telex.redaction.shapes import Verdict

LEAD_CHARS: Final = 96
"""No lead is longer; this much text is remembered, so that one cut across feeds is recognised."""
_NEAR_CHARS: Final = 64
"""So far ahead of a lead a marker makes a difference."""
LITERAL_LEAD: Final = 4
"""So much of a caller's literal is looked for first, or all of it where it is shorter."""


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
    """What to look for first, if not the lead and what its shape says comes next. It matches too
    where the text ends before that can be told."""

    @property
    def is_weak(self) -> bool:
        """Its prefixes are common, so that much must follow."""
        return isinstance(self.shape, Token) and self.shape.mixed

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
_ESCAPED_NAMES: Final = "|".join(re.escape(ascii(name)[1:-1]) for name in _STRANGE_NAMES)
"""As source code, JSON and errors write them."""
_FOREIGN_NAME: Final = (
    r"(?i:passwor[dt]|kennwort|mot de passe|contrase(?:ñ|n|\\xf1|\\u00f1)a|senha|palavra-passe"
    r"|wachtwoord|l(?:ö|\\xf6|\\u00f6)senord|passord|adgangskode|salasana|heslo|parola|kata sandi"
    rf"|jelsz(?:ó|\\xf3|\\u00f3)|{_ESCAPED_NAMES})"
)
"""A password in another language; in English too, for what is said of one: `Passwort ist …`."""
_FOREIGN_ASSIGNED: Final = r"""["']?[ \t]{0,4}(?:[:=]|\\uff1a)"""
_IS: Final = "(?:is|was|ist|lautet|est|es|é|e)"
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
        KeyShape(),
        lead=f"{_SOMETIMES}{_ASSIGNED}",
        quick=f"{_SOMETIMES}{_ASSIGNED}{_OPENED}{at_least(KeyShape.begun, KeyShape.alphabet)}",
    ),
    RedactionRule(
        "key variable",
        RandomValue(),
        lead="[A-Z0-9]_(?:KEYS?|SK|TOKENS|SECRETS|PASSWORDS)=",
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
        quick=rf"""{_STATEMENT}(?:["']|\z)""",
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
        quick=rf"//[A-Za-z0-9_-]{{{_BEGUN_USER}}}(?:[A-Za-z0-9_-]{{8}}[A-Za-z0-9_-]*[@:]|[A-Za-z0-9_-]*\z)",
    ),
    RedactionRule("JSON web token", Dotted(), prefixes=("eyJ",), hides_prefix=True),
)


_STRANGE_RULE: Final = RedactionRule(
    "password in another script",
    ValueShape(),
    lead=rf"(?:{'|'.join(_STRANGE_NAMES)})[ \t]{{0,4}}(?:[:=]|：)",
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

_ENDINGS: Final = tuple(
    RedactionRule(name, SuffixShape(_ENDING, begun), lead=lead, whole_word=True, quick=_SIGNS)
    for name, begun, lead in (
        ("hexadecimal known by its end", _BEGUN_HEX, f"[0-9a-f]{{{_BEGUN_HEX}}}"),
        ("word known by its end", _BEGUN, rf"[A-Za-z0-9+/_\-]{{{_BEGUN}}}"),
    )
)

RULES: Final = (*_LABELS, _PROGRAMS, *_families(), _STRANGE_RULE, *_ENDINGS)

_BY_PREFIX: Final[dict[str, list[int]]] = {}
for _number, _rule in enumerate(RULES):
    for _prefix in _rule.prefixes:
        _BY_PREFIX.setdefault(_prefix, []).append(_number)
_HEAD: Final = 2
_BY_HEAD: Final[dict[str, list[str]]] = {}
for _prefix in _BY_PREFIX:
    _BY_HEAD.setdefault(_prefix[:_HEAD], []).append(_prefix)
_ENDINGS_FROM: Final = len(RULES) - len(_ENDINGS)
_LED: Final = [(number, rule) for number, rule in enumerate(RULES[:_ENDINGS_FROM]) if rule.lead]
_HIDDEN: Final = [prefix for rule in RULES if rule.hides_prefix for prefix in rule.prefixes]
UNFINISHED_LEADS: Final = frozenset(
    prefix[:length] for prefix in _HIDDEN for length in range(1, len(prefix))
)
PREFIX_CHARACTERS: Final = frozenset("".join(_HIDDEN))
UNFINISHED_CHARS: Final = max(map(len, UNFINISHED_LEADS))

_ANY_REST: Final = r"A-Za-z0-9_.~%+/=|:@*$,\-"
"""Whatever may follow a prefix."""
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_WIDE: Final = re.compile(r"\{([01]),[0-9]{2}\}")
_ESCAPED_BREAKS: Final = (b"\\n", b"\\r", b"\\t")
_MARK: Final = r"(?:\\[nrt]|[^A-Za-z0-9])"
"""What stands before a word. Source code and errors write a line break as `\\n`."""
_SEARCH_BYTES: Final = 64 << 20
"""So much the states of one search may take before RE2 throws them away and begins anew. A search
that does that again and again is many times slower: source code of one megabyte needs a tenth."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.longest_match = True
    options.max_mem = _SEARCH_BYTES
    options.encoding = re2.Options.Encoding.LATIN1
    return options


def _search(pattern: bytes) -> Any:
    """Compile a pattern that is searched in the bytes of an encoded text."""
    return re2.compile(pattern, _options())


@cache
def _quick_patterns() -> tuple[str, str]:
    """Patterns for every secret, and for little else: its lead and what must follow, as far as the
    text goes. The first is for leads that count where a word begins, the second for all others.
    They are wider than the rules are, so that they stay small."""
    words: list[str] = []
    anywhere = [_SIGNS]
    strong = {prefix for rule in RULES for prefix in rule.prefixes if not rule.is_weak}
    for prefixes, patterns in zip(_by_place(strong), (words, anywhere), strict=True):
        patterns.append(f"{_alternatives(prefixes)}{at_least(FEW, _ANY_REST)}")
    words += [
        f"{_alternatives(sorted(rule.prefixes))}{rule.shape.ahead}"
        for rule in RULES
        if rule.prefixes and rule.is_weak
    ]
    for _, rule in _LED:
        quick = rule.quick or f"(?:{rule.lead}){rule.shape.ahead}"
        (words if rule.whole_word else anywhere).append(_loosened(quick))
    return "|".join(words), "|".join(anywhere)


def _by_place(prefixes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those that count where a word begins, and those that begin with a mark and count anywhere."""
    ordered = sorted(prefixes)
    return (
        [prefix for prefix in ordered if prefix[0].isalnum()],
        [prefix for prefix in ordered if not prefix[0].isalnum()],
    )


def _loosened(pattern: str) -> str:
    """Without the higher counts, each of which is a state of a search, and of each character beyond
    ASCII only its first byte: a state has a field for each byte that the patterns tell apart."""
    pattern = _WIDE.sub(lambda count: "+" if count[1] == "1" else "*", pattern)
    return _BEYOND_ASCII.sub(lambda character: _first_byte(character[0].encode()), pattern)


def _first_byte(data: bytes) -> str:
    return rf"\x{data[0]:02x}" + r"[\x80-\xbf]" * (len(data) - 1)


@cache
def _plain_search() -> Any:
    """Secrets in UTF-8 text without invisible characters, and the first invisible character."""
    words, anywhere = _quick_patterns()
    pattern = f"(?:^|{_MARK})(?:{words})|{anywhere}"
    return _search(pattern.encode() + b"|" + visible.INVISIBLE)


@cache
def _bare_search() -> Any:
    """Secrets in UTF-8 text from which escape sequences were taken, so that a word may begin
    anywhere."""
    return _search("|".join(_quick_patterns()).encode())


@cache
def _anywhere_search() -> Any:
    """Secrets that may begin in the middle of a word."""
    return _search(_quick_patterns()[1].encode())


@cache
def _invisible_search() -> Any:
    return _search(visible.INVISIBLE_BEYOND_ASCII)


@cache
def _invisible() -> re.Pattern[bytes]:
    return re.compile(visible.INVISIBLE)


@cache
def _lead_set() -> Any:
    """The leads of `_LED`, then all prefixes and at last the fixed parts of words known by their
    end, to be told which of them stand at a place, or after the mark at that place."""
    leads = re2.Set.MatchSet(_options())
    mark = rf"(?:{_MARK}[\x80-\xbf]*)?"  # all bytes of it
    for _, rule in _LED:
        leads.Add(rf"{mark}(?:{_loosened(rule.lead)})".encode())
    leads.Add(f"{mark}{_alternatives(sorted(_BY_PREFIX))}".encode())
    leads.Add(f"{mark}(?:{_SIGNS})".encode())
    leads.Compile()
    return leads


def _find_leads(text: str, start: int, found: set[tuple[int, int, int]]) -> bool:
    """Add (end, start, number of its rule) of each lead that starts here or after the mark here: of
    the leads of `_LED` at one place only the first one counts.

    Returns:
        Whether the fixed part of a word known by its end starts here.
    """
    numbers = _lead_set().Match(text[start : start + 2 * LEAD_CHARS].encode("utf-8", "replace"))
    if numbers is None:
        return False
    first = text[start]
    stop = start + (1 if first in _ALPHANUMERIC else 3 if first == "\\" else 2)
    numbers.sort()
    for place in range(start, stop):
        for each in numbers:
            if each >= len(_LED):
                break
            number, rule = _LED[each]
            if lead := _compiled(rule.lead).match(text, place):
                found.add((lead.end(), place, number))
                break
        for prefix in _BY_HEAD.get(text[place : place + _HEAD], ()):
            if text.startswith(prefix, place):
                end = place + len(prefix)
                found.update([(end, place, number) for number in _BY_PREFIX[prefix]])
    return bool(numbers[-1] > len(_LED))


_ALPHANUMERIC: Final = frozenset(string.ascii_letters + string.digits)
_INSIDE_WORD: Final = re.compile("(?<=[A-Za-z0-9])[A-Za-z0-9-]")


@cache
def _compiled(lead: str) -> re.Pattern[str]:
    return re.compile(lead, re.ASCII)


def _words_begun(text: str, begin: int, breaks: Iterable[int], may_end: bool) -> list[int]:
    """Where a word known by its end may begin: anywhere, if such an end is in the text, else in the
    word that is not over yet."""
    if not may_end:
        if not ends_in_word(text):
            return []
        begin = max(
            begin, len(text.rstrip(_WORD_CHARACTERS)), len(text) - _BEGUN - SuffixShape.most
        )
    starts = [each.start() for each in WORD_START.finditer(text, begin)]
    return starts + [each for each in breaks if each >= begin and text[each - 1 : each].isalnum()]


def ends_in_word(text: str) -> bool:
    """Whether the word at the end of the text is long enough to be known by its end."""
    return _WORD.match(text, len(text) - _BEGUN_HEX) is not None


def _word_begun(text: str, start: int) -> tuple[int, int, int] | None:
    """A word that may be one of those known by their end: up to where it is shown, its start and
    the number of its rule.

    None if it is over, and is no such word.
    """
    word = _WORD.match(text, start)
    if word is None or (word.end() < len(text) and not _whole_ending().fullmatch(word[0])):
        return None
    for number, is_likely in enumerate((is_hexadecimal, is_jumbled), _ENDINGS_FROM):
        begun = _compiled(RULES[number].lead).match(word[0])
        if begun and is_likely(begun[0]):
            return start + begun.end(), start, number
    return None


_WORD: Final = re.compile(rf"[A-Za-z0-9+/=_\-]{{{_BEGUN_HEX},{SuffixShape.most}}}+")


WORD_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_WORD_CHARACTERS: Final = string.ascii_letters + string.digits + "+/=_-"


@cache
def _whole_ending() -> re.Pattern[str]:
    return re.compile(_ENDING)


def _literal_search(literals: tuple[str, ...]) -> Any:
    """The beginnings of these literals, in UTF-8 text with sequences anywhere."""
    leads = {text[:LITERAL_LEAD].encode("utf-8", "replace") for text in literals}
    return _search(b"|".join(map(visible.permeable, sorted(leads))))


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules with a caller's literals: what lanes are made from."""

    marker: str
    literals: tuple[str, ...] = ()
    _literal_search: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        search = _literal_search(self.literals) if self.literals else None
        object.__setattr__(self, "_literal_search", search)

    def quiet_until(self, text: str, breaks: Collection[int] = (), seen: int = 0) -> int:
        """Return how many characters can be passed over, because no secret begins in them.

        A secret that begins near the end, and is not long enough yet to be told, does not count.
        The text has no control strings in it. Words begin at `breaks` too, where sequences stood
        that were taken from the text. Leads that end in the text that was `seen` do not count.
        """
        end = visible.end_of_finished(text) if "\x1b" in text else None
        data = text[:end].encode("utf-8", "replace")
        literal = self._literal_search.search(data) if self._literal_search else None
        quiet = len(text) if literal is None else _line_before(data, literal.start())
        past = seen if len(data) == len(text) else len(text[:seen].encode("utf-8", "replace"))
        if end is None and not breaks:
            at = self._first_secret(_matches(_plain_search(), data, past), text, data)
            if at is None:
                return quiet
            if not _invisible().match(data, at):
                return min(quiet, _line_before(data, at))
        marked = _marked(data)
        bare = marked.replace(b"\0", b"")
        counts = _Places(bare, marked, text, breaks)
        matches = _matches(_bare_search(), bare, past, counts=counts)
        at = self._first_secret(matches, bare.decode(), bare)
        if at is None:
            return quiet
        return min(quiet, visible.place(visible.split(text[:end])[0], _line_before(bare, at)))

    def glance(self, rule: RedactionRule, text: str, position: int) -> Verdict | None:
        """As `Shape.glance`, for text that may have been redacted before."""
        verdict = rule.shape.glance(text, position)
        if verdict is None or verdict[0] < verdict[1] or not self.marker:
            return verdict
        is_near = text.find(self.marker, position, position + _NEAR_CHARS) >= 0
        return None if is_near else verdict

    def _first_secret(self, matches: Iterable[int], text: str, data: bytes) -> int | None:
        """Where the first match is that cannot be dismissed, or the first invisible character.

        What was dismissed in the same line counts with it: a lane has to read that, too.
        """
        line, counted, place = -1, 0, 0
        for start in matches:
            if line < 0 or data.find(b"\n", line, start) >= 0:
                line = start
            if _invisible().match(data, start):
                return start
            here = _character_at(data, start)
            place += _count(data[counted:here])
            counted = here
            if not self._is_nothing(text, place):
                return line
        return None

    def _is_nothing(self, text: str, place: int) -> bool:
        """Whether a match of the search can be dismissed at a glance: no lead there leads to a
        secret."""
        leads: set[tuple[int, int, int]] = set()
        if _find_leads(text, place, leads):
            return False
        for end, _, number in leads:
            verdict = self.glance(RULES[number], text, end)
            if verdict is None or verdict[0] < verdict[1]:
                return False
        return bool(leads)

    def leads(
        self, text: str, begin: int, after: int, breaks: Iterable[int] = ()
    ) -> list[tuple[int, int, RedactionRule]]:
        """(end, start, rule) of each lead that starts at `begin` or later and ends past `after`.

        Words begin at `breaks` too.
        """
        found: set[tuple[int, int, int]] = set()
        may_end = False
        for start in self.starts(text, begin, after):
            may_end |= _find_leads(text, start, found)
        for start in breaks:
            if start >= begin and _INSIDE_WORD.match(text, start):
                _find_leads(text, start, found)
        for start in _words_begun(text, begin, breaks, may_end):
            if word := _word_begun(text, start):
                found.add(word)
        return [
            (end, start, RULES[number])
            for end, start, number in sorted(found)
            if end > after and start >= begin
        ]

    def is_word_begun(self, text: str, breaks: Iterable[int]) -> bool:
        """Whether the text ends in a word that may turn out to be one known by its end."""
        starts = _words_begun(text, 0, breaks, may_end=False)
        return any(_word_begun(text, start) for start in starts)

    def starts(self, text: str, begin: int, after: int) -> Iterator[int]:
        """Where a lead may start that ends past `after` and leads to a secret, in visible text, or
        the mark before it: every place where one does, and few others."""
        data = text.encode("utf-8", "replace")
        if len(data) == len(text):
            return _matches(_plain_search(), data, after, max(0, begin - 2))
        at, past = (len(text[:each].encode("utf-8", "replace")) for each in (begin, after))
        matches = _matches(_plain_search(), data, past, max(0, at - 2))
        return (_count(data[: _character_at(data, start)]) for start in matches)


_AFTER_MARK: Final = re.compile(rb"(?<=[^A-Za-z0-9\\])[A-Za-z0-9]")
"""The first character of a word: no search needs to begin here if it began before."""


class _Places:
    """Tells whether a match counts in a text from which sequences were taken.

    Words may begin where a sequence stood, so the search finds leads in the middle of words too.
    """

    def __init__(self, bare: bytes, marked: bytes, text: str, breaks: Iterable[int]) -> None:
        self._bare = bare
        self._marked = marked
        self._text = text
        self._breaks = breaks

    @cached_property
    def _begins(self) -> set[int]:
        before = (len(self._text[:each].encode("utf-8", "replace")) for each in self._breaks)
        return {*before, *accumulate(map(len, self._marked.split(b"\0")))}

    def __call__(self, start: int) -> bool:
        return (
            _opens_word(self._bare, start)
            or start in self._begins
            or _anywhere_search().match(self._bare, start) is not None
        )


def _matches(
    search: Any,
    data: bytes,
    past: int,
    at: int = 0,
    counts: Callable[[int], bool] | None = None,
) -> Iterator[int]:
    """Where each match starts that ends past a place, and counts. What comes right after a mark
    that is told is not told again."""
    while (found := search.search(data, at)) is not None:
        start, end = found.span()
        at = start + 1
        if end > past and (counts is None or counts(start)):
            yield start
            if _AFTER_MARK.match(data, at):
                at += 1


def _opens_word(data: bytes, start: int) -> bool:
    """Whether a word may begin here: see `Lane`."""
    inside = data[start - 1 : start].isalnum() if start else False
    here = data[start : start + 1]
    return not (inside and (here.isalnum() or here == b"-")) or (
        data[max(0, start - 2) : start] in _ESCAPED_BREAKS
    )


def _character_at(data: bytes, at: int) -> int:
    """Return where the character in UTF-8 begins to which the byte at a place belongs."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _count(data: bytes) -> int:
    """Return the number of characters in UTF-8."""
    return len(data) if data.isascii() else len(data.decode())


def _marked(data: bytes) -> bytes:
    """Return UTF-8 text with a NUL in the place of each sequence and invisible character."""
    data = visible.marked(data)
    if data.isascii() or _invisible_search().search(data) is None:
        return data
    return visible.marked_beyond_ascii(data)


def _line_before(data: bytes, position: int) -> int:
    """Return the characters of UTF-8 before the line of a position, or before the last part of a
    long line."""
    start = max(data.rfind(b"\n", 0, position) + 1, position - LEAD_CHARS)
    return _count(data[: _character_at(data, start)])
