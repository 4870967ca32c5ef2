"""Paths within a word, and names anywhere in a text. Pure.

For what restricts, never for what allows: this finds more than there is.

In a word: programs have paths after an option's letter or `=`, between `:`, `@`, `,`, `;` and `)`,
and git on both sides of `..`: `-F f=@.env;type=x`, `:(top).env`, `HEAD:.env..HEAD`; addresses have
letters that are written as numbers: `file:///x/.e%6Ev`. Nobody knows which program reads which of
them as a path, so all of them count.

In a text: a shell takes quotes and backslashes off, puts in variables and braces, and expands
patterns; programming languages join strings and write characters as numbers. Each of these is
undone as far as the text alone says how. What is not known, as the output of a command, stands for
anything: `UNKNOWN`. A name that is computed otherwise (base64, a file that is read) is not found;
nobody could. Used by `judge`, `shell_commands`, `read_only_programs` and `bound_files`.
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
"""The dots of `a..b`, not those of `a/../b`."""
_FILE: Final = re.compile(r"file://[^/]*(/.*)", re.IGNORECASE | re.DOTALL)
_ONE_OF_ONE: Final = re.compile(r"\{([^{},\s]*)\}|\[(.)(?:-\2)?\]")
_LETTERS: Final = 3
"""Of short options that are written as one word, before a value: `-sSox`."""


def embedded_paths(word: str) -> tuple[str, ...]:
    """The word first. As many as it has marks, and no more: a word may be all marks."""
    return tuple(dict.fromkeys(part for part in _embedded_paths(word) if part))


def _embedded_paths(word: str) -> Iterator[str]:
    yield word
    if re.match(r"-[^-]", word):
        yield from (word[at:] for at in range(2, 2 + _LETTERS))
    for mark in _MARKS:
        # A path may itself have marks in it, so also all that follows one.
        yield from (word.partition(mark)[2], word.rpartition(mark)[2])
    yield from _BETWEEN.split(word)
    for decoded in _of_address(word):
        yield decoded
        yield decoded.partition(":")[2]
        if found := _FILE.search(decoded):
            yield found[1]


def _of_address(word: str) -> Iterator[str]:
    """As a program reads an address: `%41` is a letter, and to curl so are `{A}` and `[A-A]`."""
    plain = _ONE_OF_ONE.sub(lambda found: found[1] or found[2], word)
    for one in dict.fromkeys((word, plain)):
        if "%" in one:
            yield unquote(one, errors="surrogateescape")
        if one != word or "://" in one:
            yield one


UNKNOWN: Final = "\0"
"""Stands for any characters of a name."""
_NAME: Final = re.compile(r"[^\s'\"`(){}\[\];|&<>=,:@!#$^\\]+")
_GOES_TO: Final = re.compile(r"(?:\bcd|\bpushd|\bchdir|-C|--directory)[\s=(]+([^\s'\"`;|&<>()\0]+)")
_GOES_HOME: Final = re.compile(r"\bcd[ \t]*(?:$|[;&|)\n])")
_QUOTING: Final = re.compile(r"\\\n|['\"\\]")
_JOINED: Final = re.compile(r"['\"]\s*(?:[+.]\s*)?['\"]")
_ADJACENT: Final = re.compile(r"['\"]\s*(?:\+\s*)?(?:\b[rbfuRBFU]{1,2})?['\"]")
"""Where a dot is none that joins: `"." "env"`."""
_BRACKETS: Final = re.compile(r"\[[!^]?\]?(?:\[[:.=][^\[\]\s]*[:.=]\]|[^\[\]\s/])+\]")
_ONE_CHOICE: Final = re.compile(r"\{([^{},\s]*)\}")
"""Of which an address, or a string with values in it, is made; to a shell it is itself."""
_PLAIN_VARIABLE: Final = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?!-])")
_CALLED: Final = re.compile(
    r"\b(?:chr|char|uni?chr|fromCharCode|fromCodePoint)\s*\(\s*(0[xX][0-9A-Fa-f]+|[0-9]+)\s*\)"
    r"|\\N\{([A-Za-z0-9 -]+)\}"
)
_HAS_NAME: Final = re.compile(r"[\w*?]|(?:\A|/)\.\0")
_STRING_IN_STRING: Final = re.compile(r"\$\{\s*(['\"])([^'\"{}]*)\1\s*\}")
_FORMATTED: Final = re.compile(r"%[sr]|\{[0-9]*\}")
_EXTENDED: Final = re.compile(r"(?<=[\w./-])[@+?*!]\([^()\s]*\)")
"""What bash takes for a pattern if it is told to."""
_PART_OF: Final = re.compile(r"\$\{!?[A-Za-z_]\w*(?:\[[^{}]*|[#%/^,@]|:[0-9 ])[^{}]*\}")
"""A part of a variable, or another form of it."""
HIDDEN_TOO: Final = re.compile(
    r"dotglob|nocaseglob|glob_?dots|GLOBIGNORE|include_hidden|\bdot\s*[:=]|-i?(?:name|path|wholename|regex)\b"
    r"|\bfd(?:find)?\b",
    re.IGNORECASE,
)
"""In a text with one of these, a pattern may stand for hidden names as well."""
_SUBSTITUTION: Final = re.compile(r"\$\([^()]*\)|`[^`]*`")
_VARIABLE: Final = re.compile(
    r"\$(?:\{([A-Za-z_]\w*|[0-9@*#?!-])[^{}]*\}|([A-Za-z_]\w*|[0-9@*#?!-]))"
)
_ASSIGNED: Final = re.compile(r"(?<![\w$.-])([A-Za-z_]\w*)(\+?)=([^\s;&|()]*)")
_LOOP: Final = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n]*)")
_BRACES: Final = re.compile(r"\{([^{}\s]+)\}")
_CHARACTER: Final = re.compile(
    r"\\x([0-9A-Fa-f]{1,2})|\\[uU]\{?([0-9A-Fa-f]{2,8})\}?|\\0?([0-7]{2,3})"
)
_MOST_VALUES: Final = 8
"""Of one variable, each tried in a text of its own."""
_VALUE_CHARS: Final = 256
"""Of one such value: as long as a name."""
_MOST_CHARS: Final = 4 * AGENT_COMMAND_CHARS
_ROUNDS: Final = 4
"""Of putting in variables: a value may have another in it."""


def names_in_text(text: str, home: str) -> tuple[str, ...] | None:
    """Each once. They may have `*`, `?` and `UNKNOWN` in them; None where there are too many."""
    found = _NameSearch(text, home)
    return None if found.names is None else tuple(found.names)


def names_and_directories_in_text(
    text: str, home: str
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The same, and the directories that the text may go to before it names something."""
    found = _NameSearch(text, home)
    return None if found.names is None else tuple(found.names), tuple(found.places)


class _NameSearch:
    def __init__(self, text: str, home: str) -> None:
        self.names: dict[str, None] | None = {}
        self.places: dict[str, None] = {}
        seen: set[str] = set()
        for variant in variants(text, home):
            if len(variant) > _MOST_CHARS:
                self.names = None
                return
            self._look_for_places(variant, home)
            for token in {match[0]: None for match in _NAME.finditer(variant)}:
                if token not in seen:
                    seen.add(token)
                    self.names |= dict.fromkeys(_readings(token, home))
            if len(self.names) > AGENT_TEXT_NAMES:
                self.names = None
                return

    def _look_for_places(self, variant: str, home: str) -> None:
        if _GOES_HOME.search(variant):
            self.places[home] = None
        for found in _GOES_TO.finditer(variant):
            self.places[home + found[1][1:] if found[1].startswith("~") else found[1]] = None


def variants(text: str, home: str) -> Iterator[str]:
    """The text as it is, and as a shell or another language may read it."""
    decoded = _CALLED.sub(_called, _CHARACTER.sub(_character, text))
    decoded = _STRING_IN_STRING.sub(r"\2", decoded)
    seen: set[str] = set()
    forms = [text, _JOINED.sub("", decoded), _ADJACENT.sub("", decoded)]
    forms.append(_FORMATTED.sub(UNKNOWN, forms[-1]))
    forms += [unquote(text, errors="surrogateescape")] if "%" in text else []
    for one in dict.fromkeys(forms):
        bare = _QUOTING.sub("", one)
        # Without its quotes, `"$x"v` would be another variable.
        apart = _QUOTING.sub("", _PLAIN_VARIABLE.sub(r"${\1}", one))
        parted = _PART_OF.sub(UNKNOWN, _EXTENDED.sub("*", apart))
        again = _expanded(parted, home) if parted != apart else ()
        for variant in (one, bare, *_expanded(apart, home), parted, *again):
            if variant not in seen:
                seen.add(variant)
                yield variant


def _readings(name: str, home: str) -> Iterator[str]:
    """A name may follow an option's letters, or the dashes of a default value."""
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
        if len(filled) > _MOST_CHARS:  # variables that hold each other; `names_in_text` gives up
            return
        yield _BRACKETS.sub("?", _ONE_CHOICE.sub(r"\1", _without_braces(filled)))


def _filled(text: str, known: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], UNKNOWN), text)


def _values(text: str) -> dict[str, list[str]]:
    """What the text itself says that variables are."""
    found: dict[str, list[str]] = {}
    for name, plus, value in _ASSIGNED.findall(text):
        before = found.setdefault(name, [])
        whole = before.pop() + value if plus and before else value
        before.append(whole[:_VALUE_CHARS])
    for name, words in _LOOP.findall(text):
        found.setdefault(name, []).extend(word[:_VALUE_CHARS] for word in words.split())
    return {name: list(dict.fromkeys(values)) for name, values in found.items() if values}


def _without_braces(text: str) -> str:
    """Each word with braces as all that it stands for; a sequence is one unknown character."""
    if "{" not in text:
        return text
    text = _BRACES.sub(lambda found: "?" if _is_sequence(found[1]) else found[0], text)
    return " ".join(_choices(word) if "{" in word else word for word in text.split())


def _is_sequence(inside: str) -> bool:
    return ".." in inside and "," not in inside


def _choices(word: str) -> str:
    waiting, done = [word], list[str]()
    while waiting and (len(waiting) + len(done)) * len(word) <= _MOST_CHARS:
        one = waiting.pop()
        found = next((each for each in _BRACES.finditer(one) if "," in each[1]), None)
        if found is None:
            done.append(one)
            continue
        before, after = one[: found.start()], one[found.end() :]
        waiting += [before + choice + after for choice in found[1].split(",")]
    return " ".join((*done, *waiting))  # some are left where there would be too many


def _character(found: re.Match[str]) -> str:
    number = int(found[3], 8) if found[3] else int(found[1] or found[2], 16)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]


def _called(found: re.Match[str]) -> str:
    """A character as a string of its own, which may be joined to others."""
    if found[2]:
        try:
            return unicodedata.lookup(found[2])
        except KeyError:
            return found[0]
    number = int(found[1], 16 if found[1][:2] in ("0x", "0X") else 10)
    return f'"{chr(number)}"' if 0 < number < 0xD800 else found[0]
