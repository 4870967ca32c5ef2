"""The text that `telex see` prints for a screen: few characters, and no row twice.

    vim: vim notes.txt  80x24  cursor 0,0  seq 12  wants editor  "notes.txt - VIM"
    Buy milk
    ~
    (the same 21 more times)
    "notes.txt" 1L, 9B

Blank rows at the end are left out, and repeated rows are folded. `changed_lines` shows only the
rows that differ from an earlier screen, each with its number; a screen that scrolled is compared
with its rows where they were. Rows and columns are counted from 0, as everywhere in telex. Used by
`server.verbs`, and by the tools for models.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from telex.automation.limits import QUOTED_CHARS
from telex.automation.screen_search import COLOURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from telex.automation.protocol import CellStyle, ScreenSnapshot
    from telex.terminal.input_state import InputState

_FOLDED: Final = 3
"""Equal rows in a row that are folded; fewer are shorter than the words about them."""
_SCROLLED_ROWS: Final = 200
"""How far a screen may have scrolled to be recognised."""
_CONTROLS: Final = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff"
    r"\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
"""Besides control characters: lone surrogates, which Python has for bytes of paths and arguments
that are not UTF-8; the separators of lines and the marks of direction, which would move our own
words; and tags, selectors of variants and other signs without a picture, which nobody sees and a
language model reads."""


@dataclass(frozen=True, slots=True)
class ScreenRows:
    """The rows of a screen at one sequence, without and with the marks of their styles."""

    sequence: int
    plain: tuple[str, ...]
    styled: tuple[str, ...]


def rows_of(snapshot: ScreenSnapshot) -> ScreenRows:
    """Return the rows of a snapshot that was read with `cells="runs"`."""
    count = snapshot.size.rows
    plain = snapshot.plain_text.split("\n")
    pieces: list[list[tuple[str, str]]] = [[] for _ in range(count)]
    for run in () if snapshot.runs is UNSET else snapshot.runs:
        if 0 <= run.row < count:
            pieces[run.row].append((style_words(run.style), run.text))
    return ScreenRows(
        snapshot.sequence,
        tuple(plain + [""] * (count - len(plain))),
        tuple([_marked(row) for row in pieces]),
    )


def style_words(style: CellStyle) -> str:
    """Return what stands out in a style, as in `sel b red on-blue`; empty for plain text."""
    words = [
        *(["sel"] if style.inverse else []),
        *(["b"] if style.bold else []),
        *(["u"] if style.underline else []),
        *([_colour(style.foreground)] if style.foreground != "default" else []),
        *([f"on-{_colour(style.background)}"] if style.background != "default" else []),
    ]
    return " ".join(words)


def _colour(code: str) -> str:
    kind, _, value = code.partition(":")
    if kind == "rgb":
        return "#" + "".join(f"{int(level):02x}" for level in value.split(":"))
    number = int(value)
    if number >= 2 * len(COLOURS):
        return f"c{number}"
    return ("bright-" if number >= len(COLOURS) else "") + COLOURS[number % len(COLOURS)]


def _marked(pieces: Iterable[tuple[str, str]]) -> str:
    """Join the runs of a row; a run with a style stands between single guillemets."""
    shown = []
    for words, group in groupby(pieces, key=lambda piece: piece[0]):
        text = "".join(text for _, text in group)
        body = text.strip(" ")
        if not words or not body:  # a coloured blank says nothing
            shown.append(text)
            continue
        before, after = text[: len(text) - len(text.lstrip(" "))], text[len(text.rstrip(" ")) :]
        shown.append(f"{before}‹{words}|{body}›{after}")
    return "".join(shown).rstrip(" ")


def folded(rows: Sequence[str]) -> list[str]:
    """Return the rows without blank ones at the end, and with repeated ones folded."""
    lines: list[str] = []
    end = len(rows)
    while end and not rows[end - 1].strip():
        end -= 1
    for text, group in groupby(row.rstrip() for row in rows[:end]):
        count = len(list(group))
        if count < _FOLDED:
            lines += [text] * count
        elif text:
            lines += [text, f"(the same {count - 1} more times)"]
        else:
            lines.append(f"({count} empty rows)")
    return lines


def changed_lines(before: ScreenRows, now: ScreenRows, *, style: bool) -> list[str]:
    """Return the rows that changed, each with its number, and how far the screen scrolled."""
    if before.styled == now.styled and before.plain == now.plain:
        return [f"(nothing changed since {before.sequence})"]
    shift = _shift(before, now)
    lines = [f"(scrolled up {shift} rows)"] if shift else []
    blank: list[int] = []
    for number in _changed(before, now, shift):
        text, marked = now.plain[number], now.styled[number]
        if not text and not marked:
            blank.append(number)
            continue
        old = number + shift
        same_text = old < len(before.plain) and before.plain[old] == text
        lines.append(f"{number}|{marked if style or same_text else text}")
    if blank:
        lines.append(f"(now empty: {_ranges(blank)})")
    return lines


def changed_rows(before: ScreenRows, now: ScreenRows) -> list[tuple[int, str]]:
    """Return the number and the text of each row that changed at its place, for programs."""
    return [(number, now.plain[number]) for number in _changed(before, now, 0)]


def _changed(before: ScreenRows, now: ScreenRows, shift: int) -> list[int]:
    return [
        number
        for number in range(len(now.plain))
        if (now.plain[number], now.styled[number]) != _row(before, number + shift)
    ]


def _row(rows: ScreenRows, number: int) -> tuple[str, str]:
    return (rows.plain[number], rows.styled[number]) if number < len(rows.plain) else ("", "")


def _shift(before: ScreenRows, now: ScreenRows) -> int:
    """Return by how many rows the old screen moved up, so that the fewest rows changed."""
    many = range(min(len(before.plain), _SCROLLED_ROWS))
    return min(many, key=lambda shift: len(_changed(before, now, shift)), default=0)


def _ranges(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)


def wanted_input(state: InputState) -> str:
    """Return what a program waits for in words: `wants line`, or `busy`."""
    if state.state == "unknown":
        return "input unknown"
    return f"wants {state.state}" if state.waiting else state.state


def question_lines(state: InputState) -> list[str]:
    """Return the prompt and the choices of a program that waits, the selected one marked."""
    lines = [one_line(state.prompt)] if state.prompt else []
    for number, choice in enumerate(state.choices):
        lines.append(f"{'>' if number == state.selected else ' '} {one_line(choice)}")
    return lines


def header(name: str, program: str, snapshot: ScreenSnapshot, *, state: str) -> str:
    """Return the line above a screen, but for the title. `state` is what the program waits for,
    or how it ended."""
    cursor = snapshot.cursor
    facts = [
        f"{name}: {program}",
        f"{snapshot.size.cols}x{snapshot.size.rows}",
        f"cursor {cursor.row},{cursor.col}" if cursor.visible else "cursor hidden",
        f"seq {snapshot.sequence}",
        *([state] if state else []),
    ]
    return "  ".join(facts)


def one_line(text: str) -> str:
    """Return a text of a program as one printable line."""
    return printable(text.replace("\n", " "))


def quoted(text: str) -> str:
    """Return a text of a program between quotes, which it cannot end: `"say \\"hi\\""`."""
    escaped = cut(text, QUOTED_CHARS).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{one_line(escaped)}"'


def cut(text: str, most: int) -> str:
    """Return a text with its middle left out if it is too long."""
    if len(text) <= most:
        return text
    kept = most // 2
    return f"{text[:kept]} ({len(text) - 2 * kept} characters left out) {text[-kept:]}"


def printable(text: str) -> str:
    """Return a text with control, invisible and broken characters as escapes, except newlines."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def fenced(text: str) -> str:
    """Return text of a program between two markers with a word that it cannot know."""
    word = secrets.token_hex(8)
    while word in text:
        word = secrets.token_hex(8)
    return f"<untrusted {word}>\n{text}\n</untrusted {word}>"
