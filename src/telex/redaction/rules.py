"""The rules: each pairs a lead with the shape of the secret after it.

A lead is the text that announces a secret: a label (`password=`), a scheme (`Bearer `) or a token's
prefix (`ghp_`). Rules act independently and the hidden text is the union, so a token inside a
password inside a URL is hidden by every rule that sees it.

The rules for labels are listed here. Rules for providers' tokens are made from the table in
`families`, and the rule for command lines from `program_options`. `prefilter` finds the leads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.redaction.command_shape import CommandShape
from telex.redaction.families import FAMILIES, TOKEN_SUFFIXES, Family
from telex.redaction.program_options import COMMANDS
from telex.redaction.shapes import (
    JsonWebToken,
    PrivateKeyBlock,
    PuttyKeyLines,
    SchemeCredentials,
    Shape,
    SuffixShape,
    Token,
    UrlPassword,
    UrlUser,
    at_least,
    run_of,
)
from telex.redaction.value_shapes import (
    Argument,
    Cookies,
    Credentials,
    DirectoryOrValue,
    Element,
    FieldShape,
    KeyShape,
    PhraseShape,
    QuotedOnly,
    RandomValue,
    ValueShape,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


LEAD_CHARS: Final = 96
"""The maximum length of a lead. This much text is remembered, so that a lead cut across feeds is
recognised."""


@dataclass(frozen=True, slots=True)
class RedactionRule:
    """One way to recognise a secret: a lead or prefixes, and a shape. A rule has either a lead or
    prefixes."""

    name: str
    shape: Shape
    lead: str = ""
    """A pattern for the text that announces the secret and stays readable: a label, a scheme."""
    prefixes: tuple[str, ...] = ()
    """Beginnings of tokens. They count where a word begins, not inside one: `sk-` begins a key,
    `task-` is a word."""
    hides_prefix: bool = False
    """Whether the prefix is hidden with the rest."""
    whole_word: bool = False
    """Whether the lead also counts only where a word begins."""
    prefilter: str = ""
    """The pattern that the prefilter searches; by default the lead and the shape's lookahead. It
    must also match where the text ends too early to decide."""

    @property
    def is_weak(self) -> bool:
        """Whether the prefixes are common, so that many random characters must follow."""
        return isinstance(self.shape, Token) and self.shape.mixed

    @property
    def pattern(self) -> str:
        return self.lead or "|".join(map(re.escape, self.prefixes))


_OWNERS: Final = (
    *("private", "account", "access", "auth", "signing", "encryption", "master", "license"),
    *("service", "shared", "preshared", "subscription", "consumer", "storage", "webhook"),
    *("session", "app", "application"),
)
"""Words before `key` that make it a secret: `private_key`."""
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
_OTHER_SCRIPT_NAMES: Final = (
    *("Hasło", "hasło", "Parolă", "parolă", "Şifre", "şifre", "Mật khẩu", "mật khẩu"),
    *("Пароль", "пароль", "Κωδικός", "κωδικός", "パスワード", "密码", "密碼", "비밀번호", "암호"),
)
_ESCAPED_NAMES: Final = "|".join(re.escape(ascii(name)[1:-1]) for name in _OTHER_SCRIPT_NAMES)
"""The same names as source code, JSON and errors escape them."""
_FOREIGN_NAME: Final = (
    r"(?i:passwor[dt]|kennwort|mot de passe|contrase(?:ñ|n|\\xf1|\\u00f1)a|senha|palavra-passe"
    r"|wachtwoord|l(?:ö|\\xf6|\\u00f6)senord|passord|adgangskode|salasana|heslo|parola|kata sandi"
    rf"|jelsz(?:ó|\\xf3|\\u00f3)|{_ESCAPED_NAMES})"
)
"""The word for password in other languages. English is included for sentences such as `Passwort ist
…`."""
_FOREIGN_ASSIGNED: Final = r"""["']?[ \t]{0,4}(?:[:=]|\\uff1a)"""
_IS: Final = "(?:is|was|ist|lautet|est|es|é|e)"
_UPPER_NAME: Final = "(?:API_?KEY|TOKEN|PASSW(?:OR)?D|PASSPHRASE|SECRET(?:_KEY)?)"
_VARIANTS: Final = (
    "(?:OLD|NEW|PROD(?:UCTION)?|DEV(?:ELOPMENT)?|STAGING|STAGE|LIVE|TEST|PREV(?:IOUS)?|CURRENT"
    "|PRIMARY|SECONDARY|BACKUP|ROOT|ADMIN|BASE|VALUE|PLAIN|RAW|V?[0-9]{1,2})"
)
"""Endings that number or qualify a variable: `DB_PASSWORD_OLD`, `API_KEY_2`."""
_AMBIGUOUS_NAME: Final = (
    "(?i:keys?|pat|pass|api|auth|login|licen[cs]e|jwt|creds?|credentials?|webhook|[_-]sk"
    "|tokens|secrets|passwords)"
)
"""Names of many things; the value is a secret only if it looks random."""
_ASSIGNED: Final = r"""\\{0,3}["']?[ \t]{0,24}[:=]"""
_OPENED: Final = r"""[=>~]?[ \t]{0,24}\\{0,3}["']{0,3}"""
_PAIRED: Final = (
    r"""\\{0,3}["'],?[ \t]{0,4}\r?\n?[ \t]{0,16}\\{0,3}["']?[Vv]alue\\{0,3}["']?[ \t]?[:=]"""
)
"""The text between a name and its value in a pair: `{"name": "DB_PASSWORD", "value": "…"}`,
`key="…" value="…"`."""
_YAML_PAIRED: Final = r"(?:\\[rn]|[ \t\r\n]){1,32}value[ \t]?:"
# URLs are common and users in them are rare, so the lead goes up to the colon. `?` may stand in it,
# although it ends a host, because it replaces lone surrogates in encoded text.
_URL_USER: Final = r"""://[^\s/#"'<>`\\:]{0,90}:"""
_OPTION_NAME: Final = (
    "(?:[a-z0-9]{1,16}-){0,3}(?:api-?key|token|passw(?:or)?d|passphrase|secret|pass|pwd|pat"
    "|(?:access|secret|private|account|auth|license)-key|credentials?)"
)
_STATEMENT: Final = r"(?i:identified[ ](?:with[ ][a-z0-9_]{1,32}[ ])?by|password)[ \t]{1,2}"
_PHRASE: Final = (
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
SHOWN_HEX_CHARS: Final = 12
SHOWN_CHARS: Final = 16
_SHOWN_USER: Final = 12
"""The number of characters of a word that are shown before the word is held, if only its end can
tell whether it is a token."""
SUFFIX_PATTERN: Final = "|".join(f"(?:{ending.pattern})" for ending in TOKEN_SUFFIXES)
FIXED_PARTS: Final = "|".join(ending.fixed_part for ending in TOKEN_SUFFIXES)

_LABELS: Final = (
    RedactionRule("labelled value", ValueShape(), lead=_NAME + _ASSIGNED),
    RedactionRule("authorization header", Credentials(), lead=f"(?i:authorization){_ASSIGNED}"),
    RedactionRule(
        "bearer token", SchemeCredentials(r"A-Za-z0-9._~+/=\-", 8), lead=r"(?i:bearer)[ \t]"
    ),
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
        lead=f"{_AMBIGUOUS_NAME}{_ASSIGNED}",
        prefilter=f"{_AMBIGUOUS_NAME}{_ASSIGNED}{_OPENED}"
        + at_least(KeyShape.first_chars, KeyShape.alphabet),
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
        "password after a phrase and a colon",
        ValueShape(),
        lead=rf"{_PHRASE}(?:[ ]now)?[ ]?[:=]",
        whole_word=True,
    ),
    RedactionRule("password after a phrase", PhraseShape(), lead=rf"{_PHRASE}[ ]", whole_word=True),
    RedactionRule(
        "statement",
        QuotedOnly(),
        lead=_STATEMENT,
        prefilter=rf"""{_STATEMENT}(?:["']|\z)""",
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
        "basic credentials",
        SchemeCredentials("A-Za-z0-9+/=", 8),
        lead=r"Basic[ \t]",
        whole_word=True,
    ),
    RedactionRule(
        "query parameter",
        Token(r"A-Za-z0-9_%.~\-", 20, mixed=True),
        lead="[?&](?i:key|code|auth|jwt|sid|session|signature|x-amz-signature|x-goog-signature|ticket)=",
    ),
    RedactionRule(
        "private key block",
        PrivateKeyBlock(),
        lead="BEGIN (?:[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4}",
    ),
    RedactionRule("PuTTY private key", PuttyKeyLines(), lead="Private-Lines:[ ]"),
    RedactionRule("numbered variable", ValueShape(), lead=f"{_UPPER_NAME}_{_VARIANTS}="),
    RedactionRule("preshared key", ValueShape(), lead=f"(?i:psk){_ASSIGNED}", whole_word=True),
    RedactionRule(
        "password in another language",
        ValueShape(),
        lead=_FOREIGN_NAME + _FOREIGN_ASSIGNED,
        whole_word=True,
    ),
    RedactionRule(
        "URL user",
        UrlUser(_SHOWN_USER),
        lead=f"//[A-Za-z0-9_-]{{{_SHOWN_USER}}}",
        prefilter=rf"//[A-Za-z0-9_-]{{{_SHOWN_USER}}}(?:[A-Za-z0-9_-]{{8}}[A-Za-z0-9_-]*[@:]|[A-Za-z0-9_-]*\z)",
    ),
    RedactionRule("JSON web token", JsonWebToken(), prefixes=("eyJ",), hides_prefix=True),
)


_OTHER_SCRIPT_RULE: Final = RedactionRule(
    "password in another script",
    ValueShape(),
    lead=rf"(?:{'|'.join(_OTHER_SCRIPT_NAMES)})[ \t]{{0,4}}(?:[:=]|：)",
)


def alternatives(words: Sequence[str]) -> str:
    """Return a pattern for any of these words in which common beginnings are shared."""
    if len(words) == 1:
        return re.escape(words[0])
    heads: dict[str, list[str]] = {}
    for word in words:
        heads.setdefault(word[:1], []).append(word[1:])
    branches = [
        re.escape(head) + (alternatives(tails) if any(tails) else "")
        for head, tails in sorted(heads.items(), reverse=True)  # an empty head comes last
    ]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


_WORD_LEAD: Final = re.compile(r"[A-Za-z0-9]|\[[A-Z]")
"""A lead that begins with a letter, a digit or a class of capitals counts where a word begins."""


def _families() -> Iterator[RedactionRule]:
    """Yield one rule for all families after whose prefixes the same characters must come."""
    alike: dict[tuple[Token, bool], list[Family]] = {}
    for family in FAMILIES:
        shape = Token(family.rest, family.least, mixed=family.full_length)
        if family.lead:
            whole = _WORD_LEAD.match(family.lead) is not None
            yield RedactionRule(family.id, shape, lead=family.lead, whole_word=whole)
        elif not _is_covered(family):
            alike.setdefault((shape, family.hides_prefix), []).append(family)
    for (shape, hidden), families in alike.items():
        prefixes = dict.fromkeys(family.prefix for family in families)
        name = f"like {families[0].id}"
        yield RedactionRule(name, shape, prefixes=tuple(prefixes), hides_prefix=hidden)


def _is_covered(family: Family) -> bool:
    """Whether a hidden prefix leads to the same result: `sk-proj-` begins with `sk-`."""
    return any(
        other.rest == family.rest
        and (other.prefix, other.least) != (family.prefix, family.least)
        and family.prefix.startswith(other.prefix)
        and other.least - len(family.prefix) + len(other.prefix) <= family.least
        and run_of(other.rest).fullmatch(family.prefix[len(other.prefix) :])
        for other in _HIDDEN_PREFIX_FAMILIES
    )


_HIDDEN_PREFIX_FAMILIES: Final = [family for family in FAMILIES if family.hides_prefix]

_PROGRAMS: Final = RedactionRule(
    "command", CommandShape(), lead=f"{alternatives(sorted(COMMANDS))}[ \\t]", whole_word=True
)

SUFFIX_RULES: Final = tuple(
    RedactionRule(
        name, SuffixShape(SUFFIX_PATTERN, shown), lead=lead, whole_word=True, prefilter=FIXED_PARTS
    )
    for name, shown, lead in (
        ("hexadecimal known by its end", SHOWN_HEX_CHARS, f"[0-9a-f]{{{SHOWN_HEX_CHARS}}}"),
        ("word known by its end", SHOWN_CHARS, rf"[A-Za-z0-9+/_\-]{{{SHOWN_CHARS}}}"),
    )
)

RULES: Final = (*_LABELS, _PROGRAMS, *_families(), _OTHER_SCRIPT_RULE, *SUFFIX_RULES)

_HIDDEN: Final = [prefix for rule in RULES if rule.hides_prefix for prefix in rule.prefixes]
UNFINISHED_LEADS: Final = frozenset(
    prefix[:length] for prefix in _HIDDEN for length in range(1, len(prefix))
)
PREFIX_CHARACTERS: Final = frozenset("".join(_HIDDEN))
UNFINISHED_CHARS: Final = max(map(len, UNFINISHED_LEADS))
