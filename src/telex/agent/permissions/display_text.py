"""What will run, as a person is shown it: whole, and with nothing in it that acts on who reads it.

What others wrote never passes for a sentence of ours. A text of many lines is `marked_off`: each of
its lines begins with a mark that none of ours has. Any other is `in_line`, or `in_quotes` where it
stands beside words of ours.

Every byte of the command is in the text, and two commands never look the same: what is not plainly
seen is written `\\u{202e}`, a byte that is no UTF-8 `\\x{ff}`, and a backslash that would begin
such an escape is itself escaped. `digest` binds an answer to what was asked: the runtime keeps it
with the question and compares it before it runs anything. Pure. Used by `confirmation`, `judge`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

_RUN: Final = re.compile(
    r"(?P<plain>[!-\[\]-~]+)|(?P<slash>\\)|(?P<lines>\n+)|(?P<spaces> +)"
    r"|(?P<word>\w+)|(?P<other>.)",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"[!-\[\]-~]*")
"""Is shown as it is; most paths are such."""
_MANY_SPACES: Final = 8
_DEEP_INDENT: Final = 32
"""More spaces than these could push what follows out of a window."""
_LOOKS_EMPTY: Final = frozenset(
    "\u115f\u1160\u2800\u3164\uffa0\u00b7\u2424\U00013441\U00013442\U0001d159"
)
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
"""A screen that knows of them may show the words beside them in another order."""
_LIKE_LATIN: Final = frozenset(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТХУІЈЅԌ"  # Cyrillic
    "ορνικυαγτρχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # Greek
    "օսոցհզ"  # Armenian
)


def escaped(command: str | bytes) -> str:
    """The whole command, for a window of any width. New lines are marked, and begin a line."""
    if isinstance(command, bytes):
        command = command.decode("utf-8", "surrogateescape")
        return _BYTES.sub(lambda found: f"\\x{{{int(found[1], 16) - 0xDC00:x}}}", _text(command))
    return _text(command)


def in_line(text: str) -> str:
    """The same in one line."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_text(part) for part in re.split("(\n)", text))


def in_quotes(text: str) -> str:
    """The same between quotes, of which it has none itself."""
    return '"' + in_line(text).replace('"', _escaped('"')) + '"'


def in_sentence(text: str) -> str:
    """A sentence of ours in one line, in which texts of others are `in_quotes` already."""
    parts = _ESCAPE.split(text)
    return "".join(part if at % 2 else in_line(part) for at, part in enumerate(parts))


def marked_off(text: str) -> str:
    """A text of many lines, each behind a mark that no line of ours begins with."""
    return "\n".join(f"| {line}" for line in escaped(text).split("\n"))


def digest(*parts: str | bytes) -> str:
    """Of tool, directory, command: each with its length, so that no two lists give the same."""
    sha = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        sha.update(b"%d:" % len(raw) + raw)
    return sha.hexdigest()


_ESCAPE: Final = re.compile(r"(\\[ux]\{[0-9a-f]+\})")
_BYTES: Final = re.compile(r"\\u\{(dc[89a-f][0-9a-f])\}")


def _text(command: str) -> str:
    # Mixed words first need their whole run, so that the text is gone through in runs.
    return "".join(_run(found, command) for found in _RUN.finditer(command))


def _run(found: re.Match[str], command: str) -> str:
    run = found[0]
    match found.lastgroup:
        case "plain":
            return run
        case "slash":
            return _escaped(run) if command[found.end() : found.end() + 2] in ("u{", "x{") else run
        case "lines":
            return _escaped(run) + ("\n" if found.end() < len(command) else "")
        case "spaces":
            before = command[found.start() - 1 : found.start()]
            after = command[found.end() : found.end() + 1]
            hidden = len(run) > (_DEEP_INDENT if before == "\n" else _MANY_SPACES)
            return _escaped(run) if hidden or after in ("", "\n") else run
        case "word":
            return _word(run, command, found)
    return "".join(map(_char, run))


def _word(run: str, command: str, found: re.Match[str]) -> str:
    """Letters that pass for others: all that are not ASCII in a word that has ASCII letters too."""
    start, end = found.start(), found.end()
    beside = command[max(start - 1, 0) : start] + command[end : end + 1]
    latin = any(char.isalpha() and _is_latin(char) for char in run + beside)
    if all(char in _LIKE_LATIN or char.isascii() for char in run):
        return "".join(char if char.isascii() else _escaped(char) for char in run)
    return "".join(_escaped(char) if latin and not _is_latin(char) else _char(char) for char in run)


def _is_latin(char: str) -> bool:
    return char.isascii() or (
        unicodedata.name(char, "").startswith("LATIN ")
        and unicodedata.normalize("NFKC", char) == char
    )


def _char(char: str) -> str:
    """Itself, if it is a mark on the screen of its own and of nobody else's looks."""
    if char.isascii():
        return char if char.isprintable() else _escaped(char)
    category = unicodedata.category(char)
    folded = unicodedata.normalize("NFKC", char)
    turns = unicodedata.bidirectional(char) in _RIGHT_TO_LEFT
    looks_other = char in _LOOKS_EMPTY or folded != char or category in _SIGNS
    if category[0] in "CMZ" or turns or looks_other:
        return _escaped(char)
    return char


_SIGNS: Final = frozenset({"Po", "Pd", "Ps", "Pe", "Pi", "Pf", "Pc", "Sm", "Sk", "Lm"})
"""Slashes, quotes, dashes and colons of other alphabets; on few screens they look different."""


def _escaped(chars: str) -> str:
    return "".join(f"\\u{{{ord(char):x}}}" for char in chars)
