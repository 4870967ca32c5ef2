"""Find paths inside a word, and names anywhere in a text. Pure.

The result is used only to restrict, never to allow, because it contains more than the real paths.

In a word: programs expect paths after the letter of an option or `=`, between `:`, `@`, `,`, `;`
and `)`, and git on both sides of `..`: `-F f=@.env;type=x`, `:(top).env`, `HEAD:.env..HEAD`. URLs
may encode letters as numbers: `file:///x/.e%6Ev`. It is not known which program reads which part as
a path, so all parts count.

In a text: a shell removes quotes and backslashes, expands variables, braces and patterns;
programming languages join strings and write characters as numbers. Each of these is undone as far
as the text alone allows. A part that is not known, such as the output of a command, is `UNKNOWN`
and matches anything. A name that is computed in another way (base64, a file that is read) cannot be
found. Used by `judge`, `shell_commands`, `read_only_programs` and `bound_files`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from telex.agent.limits import AGENT_COMMAND_CHARS, AGENT_TEXT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_MARKS: Final = "=:@,;)"
_BETWEEN: Final = re.compile(r"[=:@,;)]|(?<=[^/])\.\.\.?(?=[^/])")
"""The separators, and the dots of `a..b`, but not those of `a/../b`."""
_FILE: Final = re.compile(r"file://[^/]*(/.*)", re.IGNORECASE | re.DOTALL)
_ONE_OF_ONE: Final = re.compile(r"\{([^{},\s]*)\}|\[(.)(?:-\2)?\]")
_LETTERS: Final = 3
"""Letters of short options that may be joined before a value: `-sSox`."""


def embedded_paths(word: str) -> tuple[str, ...]:
    """Return the word and the paths inside it. Their number grows only linearly with the number of
    separators, because a hostile word may consist of separators."""
    return tuple(dict.fromkeys(part for part in _embedded_paths(word) if part))


def _embedded_paths(word: str) -> Iterator[str]:
    yield word
    if re.match(r"-[^-]", word):
        yield from (word[at:] for at in range(2, 2 + _LETTERS))
    for mark in _MARKS:
        # A path may contain separators, so the whole text after one counts too.
        yield from (word.partition(mark)[2], word.rpartition(mark)[2])
    yield from _BETWEEN.split(word)
    for decoded in _decode_url(word):
        yield decoded
        yield decoded.partition(":")[2]
        if found := _FILE.search(decoded):
            yield found[1]


def _decode_url(word: str) -> Iterator[str]:
    """Yield a URL as programs decode it: `%41` is a letter, and for curl so are `{A}` and
    `[A-A]`."""
    plain = _ONE_OF_ONE.sub(lambda found: found[1] or found[2], word)
    for url in dict.fromkeys((word, plain)):
        if "%" in url:
            yield unquote(url, errors="surrogateescape")
        if url != word or "://" in url:
            yield url


UNKNOWN: Final = "\0"
"""Matches any characters of a name."""
_NAME: Final = re.compile(r"[^\s'\"`(){}\[\];|&<>=,:@!#$^\\]+")
_GOES_TO: Final = re.compile(r"(?:\bcd|\bpushd|\bchdir|-C|--directory)[\s=(]+([^\s'\"`;|&<>()\0]+)")
_GOES_HOME: Final = re.compile(r"\bcd[ \t]*(?:$|[;&|)\n])")
_QUOTING: Final = re.compile(r"\\\n|['\"\\]")
_JOINED: Final = re.compile(r"['\"]\s*(?:[+.]\s*)?['\"]")
_ADJACENT: Final = re.compile(r"['\"]\s*(?:\+\s*)?(?:\b[rbfuRBFU]{1,2})?['\"]")
"""Adjacent strings, where a dot between them would not join: `"." "env"`."""
_BRACKETS: Final = re.compile(r"\[[!^]?\]?(?:\[[:.=][^\[\]\s]*[:.=]\]|[^\[\]\s/])+\]")
_ONE_CHOICE: Final = re.compile(r"\{([^{},\s]*)\}")
"""Braces with one choice, as in a URL or a format string; a shell keeps them literally."""
_PLAIN_VARIABLE: Final = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?!-])")
_NUMBER: Final = r"(?:0[xX]0*[0-9A-Fa-f]{1,6}|0*[0-9]{1,7})"
_CALLED: Final = re.compile(
    rf"\b(?:chr|char|uni?chr|fromCharCode|fromCodePoint)\s*\(\s*({_NUMBER})\s*\)"
    r"|\\N\{([A-Za-z0-9 -]+)\}"
)
_LISTED: Final = re.compile(r"['\"]\s*,\s*['\"]")
"""The strings of a list, which may be joined: `"".join([".", "env"])`."""
_NUMBERED: Final = re.compile(rf"[\[({{]\s*({_NUMBER}(?:\s*,\s*{_NUMBER})+)")
"""Characters as a list of numbers: `bytes([46, 101])`, `fromCharCode(46, 101)`."""
_HAS_NAME: Final = re.compile(r"[\w*?]|(?:\A|/)\.\0")
_STRING_IN_STRING: Final = re.compile(r"\$\{\s*(['\"])([^'\"{}]*)\1\s*\}")
_FORMATTED: Final = re.compile(r"%[sr]|\{[0-9]*\}")
_EXTENDED: Final = re.compile(r"(?<=[\w./-])[@+?*!]\([^()\s]*\)")
"""Extended patterns, which bash supports if they are switched on."""
_PART_OF: Final = re.compile(r"\$\{!?[A-Za-z_]\w*(?:\[[^{}]*|[#%/^,@]|:[0-9 ])[^{}]*\}")
"""A part of a variable, or another form of it."""
HIDDEN_TOO: Final = re.compile(
    r"dotglob|nocaseglob|glob_?dots|GLOBIGNORE|include_hidden|\bdot\s*[:=]|-i?(?:name|path|wholename|regex)\b"
    r"|\bfd(?:find)?\b",
    re.IGNORECASE,
)
"""With one of these in a text, a pattern may match hidden names too."""
_SUBSTITUTION: Final = re.compile(r"\$\([^()]*\)|`[^`]*`")
_VARIABLE: Final = re.compile(
    r"\$(?:\{([A-Za-z_]\w*|[0-9@*#?!-])[^{}]*\}|([A-Za-z_]\w*|[0-9@*#?!-]))"
)
_ASSIGNED: Final = re.compile(r"(?<![\w$.-])([A-Za-z_]\w*)(\+?)=([^\s;&|()]*)")
_COMPUTED: Final = re.compile(r"(?:\$|`.*)\Z")
"""The beginning of a substitution at the end of a value."""
_LOOP: Final = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n]*)")
_BRACES: Final = re.compile(r"\{([^{}\s]+)\}")
_CHARACTER: Final = re.compile(
    r"\\x([0-9A-Fa-f]{1,2})|\\[uU]\{?([0-9A-Fa-f]{2,8})\}?|\\0?([0-7]{2,3})"
)
_MOST_VALUES: Final = 8
"""Values of one variable that are tried, each in a variant of the text."""
_VALUE_CHARS: Final = 256
"""Characters of one value: as many as a name may have."""
_MOST_CHARS: Final = 4 * AGENT_COMMAND_CHARS
_ROUNDS: Final = 4
"""Rounds of variable expansion, since a value may contain another variable."""


def names_in_text(text: str, home: str) -> tuple[str, ...] | None:
    """Return each name in a text once. Names may contain `*`, `?` and `UNKNOWN`. None if there are
    too many."""
    found = _NameSearch(text, home)
    return None if found.names is None else tuple(found.names)


def names_and_directories_in_text(
    text: str, home: str
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the names as `names_in_text` does, and the directories to which the text may change
    before it uses a name."""
    found = _NameSearch(text, home)
    return None if found.names is None else tuple(found.names), tuple(found.directories)


class _NameSearch:
    """Collects names and directories from all variants of a text."""

    def __init__(self, text: str, home: str) -> None:
        self.names: dict[str, None] | None = {}
        self.directories: dict[str, None] = {}
        seen: set[str] = set()
        for variant in variants(text, home):
            if len(variant) > _MOST_CHARS:
                self.names = None
                return
            self._find_directories(variant, home)
            for token in {match[0]: None for match in _NAME.finditer(variant)}:
                if token not in seen:
                    seen.add(token)
                    self.names |= dict.fromkeys(_readings(token, home))
            if len(self.names) > AGENT_TEXT_NAMES:
                self.names = None
                return

    def _find_directories(self, variant: str, home: str) -> None:
        if _GOES_HOME.search(variant):
            self.directories[home] = None
        for found in _GOES_TO.finditer(variant):
            self.directories[home + found[1][1:] if found[1].startswith("~") else found[1]] = None


def variants(text: str, home: str) -> Iterator[str]:
    """Yield the text, and the text as a shell or a programming language may read it."""
    decoded = _CALLED.sub(_called, _CHARACTER.sub(_character, text))
    decoded = _NUMBERED.sub(_numbered, _STRING_IN_STRING.sub(r"\2", decoded))
    seen: set[str] = set()
    forms = [text, _JOINED.sub("", decoded), _LISTED.sub("", decoded), _ADJACENT.sub("", decoded)]
    forms.append(_FORMATTED.sub(UNKNOWN, forms[-1]))
    forms += [unquote(text, errors="surrogateescape")] if "%" in text else []
    for form in dict.fromkeys(forms):
        bare = _QUOTING.sub("", form)
        # Braces first: `"$x"v` without its quotes would name another variable.
        braced = _QUOTING.sub("", _PLAIN_VARIABLE.sub(r"${\1}", form))
        parted = _PART_OF.sub(UNKNOWN, _EXTENDED.sub("*", braced))
        again = _expanded(parted, home) if parted != braced else ()
        for variant in (form, bare, *_expanded(braced, home), parted, *again):
            if variant not in seen:
                seen.add(variant)
                yield variant


def _readings(name: str, home: str) -> Iterator[str]:
    """Yield the names that a token may contain, also after the letters of an option or the dashes
    of a default value."""
    for part in (*embedded_paths(name), name.lstrip("-+")):
        if part.startswith("~/"):
            yield home + part[1:]
        elif _HAS_NAME.search(part):  # `.*` and `*` are names as well
            yield part


def _expanded(text: str, home: str) -> Iterator[str]:
    if set("$`{[").isdisjoint(text):
        return
    values = _values(text)
    count = min(max(map(len, values.values()), default=1), _MOST_VALUES)
    for at in range(count):
        chosen = {name: found[at % len(found)] for name, found in values.items()}
        known = {"HOME": home, "PWD": ".", **chosen}
        filled = text
        for _ in range(_ROUNDS):
            filled = _SUBSTITUTION.sub(UNKNOWN, filled)
            filled = _filled(filled, known)
            if len(filled) > _MOST_CHARS:
                break
        yield filled
        if len(filled) > _MOST_CHARS:  # variables that contain each other; the search gives up
            return
        yield _BRACKETS.sub("?", _ONE_CHOICE.sub(r"\1", _without_braces(filled)))


def _filled(text: str, known: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], UNKNOWN), text)


def _values(text: str) -> dict[str, list[str]]:
    """Return the values that the text itself assigns to variables."""
    found: dict[str, list[str]] = {}
    for name, plus, value in _ASSIGNED.findall(text):
        before = found.setdefault(name, [])
        value = _COMPUTED.sub(UNKNOWN, value)
        whole = before.pop() + value if plus and before else value
        before.append(whole[:_VALUE_CHARS])
    for name, words in _LOOP.findall(text):
        found.setdefault(name, []).extend(word[:_VALUE_CHARS] for word in words.split())
    return {name: list(dict.fromkeys(values)) for name, values in found.items() if values}


def _without_braces(text: str) -> str:
    """Replace each word with braces by all its expansions; a sequence becomes one unknown
    character."""
    if "{" not in text:
        return text
    text = _BRACES.sub(lambda found: "?" if _is_sequence(found[1]) else found[0], text)
    return " ".join(_choices(word) if "{" in word else word for word in text.split())


def _is_sequence(inside: str) -> bool:
    return ".." in inside and "," not in inside


def _choices(word: str) -> str:
    waiting, done = [word], list[str]()
    while waiting and (len(waiting) + len(done)) * len(word) <= _MOST_CHARS:
        text = waiting.pop()
        found = next((each for each in _BRACES.finditer(text) if "," in each[1]), None)
        if found is None:
            done.append(text)
            continue
        before, after = text[: found.start()], text[found.end() :]
        waiting += [before + choice + after for choice in found[1].split(",")]
    return " ".join((*done, *waiting))  # some stay unexpanded if there are too many


def _character(found: re.Match[str]) -> str:
    number = int(found[3], 8) if found[3] else int(found[1] or found[2], 16)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]


def _called(found: re.Match[str]) -> str:
    """Replace a call such as `chr(110)` by a string, which may then be joined to others."""
    if found[2]:
        try:
            return unicodedata.lookup(found[2])
        except KeyError:
            return found[0]
    return _numbered(found)


def _numbered(found: re.Match[str]) -> str:
    """Replace numbers by the string of their characters."""
    numbers = [_number(each.strip()) for each in found[1].split(",")]
    return f'"{"".join(map(chr, numbers))}"' if all(0 < n < 0xD800 for n in numbers) else found[0]


def _number(text: str) -> int:
    is_hexadecimal = text[:2] in ("0x", "0X")
    digits = text[2:] if is_hexadecimal else text
    return int(digits.lstrip("0") or "0", 16 if is_hexadecimal else 10)
