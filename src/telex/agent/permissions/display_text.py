"""Escape text of agents, plugins and files for questions: complete, and without effect on the
terminal. Pure.

Foreign text must never look like a sentence of telex. A text of several lines is `marked_off`: each
of its lines begins with a mark that no line of telex begins with. Other foreign text is `in_line`,
or `in_quotes` where it is next to words of telex.

Every byte of a command is shown, and two different commands never look the same. A character that
is not clearly visible is written as `\\u{202e}`, a byte that is not UTF-8 as `\\x{ff}`, and a
backslash that would begin such an escape is escaped itself. `digest` binds an answer to its
question: the runtime stores it with the question and compares it before it runs anything. Used by
`confirmation` and `judge`.
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
"""Text that is shown unchanged; most paths are."""
_MANY_SPACES: Final = 8
_DEEP_INDENT: Final = 32
"""More spaces could push the following text out of a window."""
_LOOKS_EMPTY: Final = frozenset(
    "\u115f\u1160\u2800\u3164\uffa0\u00b7\u2424\U00013441\U00013442\U0001d159"
)
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
"""Bidirectional classes: a terminal that supports them may reorder the words next to them."""
_LIKE_LATIN: Final = frozenset(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТХУІЈЅԌ"  # Cyrillic
    "ορνικυαγτρχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # Greek
    "օսոցհզ"  # Armenian
)


def escaped(command: str | bytes) -> str:
    """Escape a whole command. A new line is shown as an escape, followed by a real line break."""
    if isinstance(command, bytes):
        command = command.decode("utf-8", "surrogateescape")
        return _BYTES.sub(lambda found: f"\\x{{{int(found[1], 16) - 0xDC00:x}}}", _text(command))
    return _text(command)


def in_line(text: str) -> str:
    """Escape a text into one line."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_text(part) for part in re.split("(\n)", text))


def in_quotes(text: str) -> str:
    """Escape a text into one line between quotes; quotes inside the text are escaped."""
    return '"' + in_line(text).replace('"', _escaped('"')) + '"'


def in_sentence(text: str) -> str:
    """Escape a sentence of telex into one line. Foreign text in it must be `in_quotes` already;
    its escapes are kept."""
    parts = _ESCAPE.split(text)
    return "".join(part if at % 2 else in_line(part) for at, part in enumerate(parts))


def marked_off(text: str) -> str:
    """Escape a text of several lines, each behind a mark that no line of telex begins with."""
    return "\n".join(f"| {line}" for line in escaped(text).split("\n"))


def digest(*parts: str | bytes) -> str:
    """Hash the parts, each with its length, so that two different lists have different digests."""
    sha = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        sha.update(b"%d:" % len(raw) + raw)
    return sha.hexdigest()


_ESCAPE: Final = re.compile(r"(\\[ux]\{[0-9a-f]+\})")
_BYTES: Final = re.compile(r"\\u\{(dc[89a-f][0-9a-f])\}")


def _text(command: str) -> str:
    # A word with mixed alphabets must be seen as a whole, so the text is processed in runs.
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
    """Escape letters that look like others: all non-ASCII letters in a word with ASCII letters."""
    start, end = found.start(), found.end()
    neighbours = command[max(start - 1, 0) : start] + command[end : end + 1]
    latin = any(char.isalpha() and _is_latin(char) for char in run + neighbours)
    if all(char in _LIKE_LATIN or char.isascii() for char in run):
        return "".join(char if char.isascii() else _escaped(char) for char in run)
    return "".join(_escaped(char) if latin and not _is_latin(char) else _char(char) for char in run)


def _is_latin(char: str) -> bool:
    return char.isascii() or (
        unicodedata.name(char, "").startswith("LATIN ")
        and unicodedata.normalize("NFKC", char) == char
    )


def _char(char: str) -> str:
    """Return a character unchanged if it is visible and does not look like another one."""
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
"""Slashes, quotes, dashes and colons of other alphabets, which look the same in most fonts."""


def _escaped(chars: str) -> str:
    return "".join(f"\\u{{{ord(char):x}}}" for char in chars)
