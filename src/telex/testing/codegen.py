"""Writes a pytest test from what a person did in a program.

`CodegenLog` collects what happened: keys, the screens around them, marked goldens. `write_test`
turns it into Python: typed texts and keys, and after each a wait for what changed on the screen
before the person went on. Waits prefer new text; where only a cursor moved, its place; where only
the highlight moved, the item; else a screen that rests. Pure: `codegen_panel` watches the person,
and the command writes the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.testing.golden_file import (
    GoldenFile,
    GoldenScreen,
    row_text,
    text_rows,
    write_golden,
)
from telex.testing.golden_place import golden_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Keys: the bytes that terminals send, and the names of `Terminal.press`.

_ARROWS: Final = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_F: Final = " ".join([f"f{number}" for number in range(1, 13)])
_FUNCTION: Final = {"P": "f1", "Q": "f2", "R": "f3", "S": "f4"}
_TILDE: Final = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, *range(11, 16), *range(17, 22), 23, 24),
        ("home insert delete end page_up page_down home end " + _F).split(),
        strict=True,
    )
)
"""The number in `ESC [ N ~`, with the gaps that the VT220 left."""
_NAMED: Final = {"\r": "enter", "\t": "tab", "\x7f": "backspace", "\x1b": "escape"}
_MODIFIERS: Final = ("shift", "alt", "ctrl")
_KEY: Final = re.compile(
    r"""
    \x1b\[200~(?P<pasted>.*?)\x1b\[201~
    | \x1b(?:O|\[)(?:1;(?P<held>\d+))?(?P<letter>[ABCDHFPQRS])
    | \x1b\[(?P<number>\d+)(?:;(?P<tilde_held>\d+))?~
    | \x1b\[(?P<backtab>Z)
    | \x1b\[<\d+;\d+;\d+[Mm]
    | \x1b\[[IO]
    | \x1b(?P<alt>[^\x1b\[O])
    | (?P<control>[\x00-\x1f\x7f])
    | (?P<text>[^\x00-\x1f\x7f]+)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TypedText:
    """Characters that were typed."""

    text: str


@dataclass(frozen=True, slots=True)
class PressedKey:
    """A key with a name."""

    name: str


@dataclass(frozen=True, slots=True)
class PastedText:
    """A text that the person's terminal pasted."""

    text: str


@dataclass(frozen=True, slots=True)
class HiddenText:
    """A text typed without echo, such as a password. It is not kept."""

    enter: bool


TypedInput = TypedText | PressedKey | PastedText | HiddenText


def typed_inputs(data: str) -> Iterator[TypedInput]:
    """Yield what these characters of a terminal mean. Mouse and focus reports are left out."""
    for found in _KEY.finditer(data):
        part = found.groupdict()
        if part["pasted"] is not None:
            yield PastedText(part["pasted"])
        elif part["letter"]:
            name = {**_ARROWS, **_FUNCTION}[part["letter"]]
            yield PressedKey(_held(part["held"]) + name)
        elif part["number"]:
            known = _TILDE.get(int(part["number"]))
            yield PressedKey(_held(part["tilde_held"]) + known) if known else TypedText(found[0])
        elif part["backtab"]:
            yield PressedKey("shift_tab")
        elif part["alt"]:
            yield PressedKey(f"alt_{_control_name(part['alt'])}")
        elif part["control"]:
            yield PressedKey(_control_name(part["control"]))
        elif part["text"]:
            yield TypedText(part["text"])


def _held(number: str | None) -> str:
    bits = int(number) - 1 if number else 0
    return "".join([f"{name}_" for bit, name in enumerate(_MODIFIERS) if bits >> bit & 1])


def _control_name(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if char == "\x00":
        return "ctrl_space"
    return f"ctrl_{chr(ord(char) + 64).lower()}" if char < " " else char.replace(" ", "space")


# The log.


@dataclass(frozen=True, slots=True)
class InputMoment:
    """Inputs without a pause between them, and the screen before."""

    before: GoldenScreen
    inputs: tuple[TypedInput, ...]


@dataclass(frozen=True, slots=True)
class GoldenMoment:
    """A screen that the person marked."""

    before: GoldenScreen
    name: str


Moment = InputMoment | GoldenMoment


class CodegenLog:
    """The moments of one use of a program, in order."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.end = GoldenScreen((), 80)
        """The screen when the program ended or the person left."""
        self.exit_code: int | None = None
        """None if the person left, or a signal ended the program."""

    def typed(self, screen: GoldenScreen, inputs: Iterable[TypedInput]) -> None:
        """Add inputs, and the screen before them. A person types one key at a time: text and the
        Enter after it are one moment, unless the program answered with more than an echo."""
        for one in inputs:
            last = self.moments[-1] if self.moments else None
            joined = None
            if isinstance(last, InputMoment) and not _answered(last, screen):
                joined = _joined(last.inputs, one)
            if joined is None or last is None:
                self.moments.append(InputMoment(screen, (one,)))
            else:
                self.moments[-1] = InputMoment(last.before, joined)

    def mark(self, screen: GoldenScreen, name: str) -> None:
        """Add a golden. A name that was used before gets a number."""
        used, unique, number = set(self.names), name, 2
        while name and unique in used:
            unique, number = f"{name}-{number}", number + 1
        self.moments.append(GoldenMoment(screen, unique))

    @property
    def names(self) -> list[str]:
        """The names of the goldens; empty ones will be numbered."""
        return [moment.name for moment in self.moments if isinstance(moment, GoldenMoment)]


def _answered(moment: InputMoment, screen: GoldenScreen) -> bool:
    text, echoed = new_text(moment.before, screen, _text(moment.inputs))
    return bool(text) and not echoed


def _text(inputs: Iterable[TypedInput]) -> str:
    return "".join([one.text for one in inputs if isinstance(one, TypedText | PastedText)])


def _joined(before: tuple[TypedInput, ...], one: TypedInput) -> tuple[TypedInput, ...] | None:
    """Return the inputs of one moment; None if the next input begins another."""
    match before[-1], one:
        case TypedText(text), TypedText(more):
            return (*before[:-1], TypedText(text + more))
        case TypedText(), PressedKey("enter" | "backspace"):
            return (*before, one)
        case PressedKey("backspace"), TypedText() | PressedKey("backspace" | "enter"):
            return (*before, one)
        case HiddenText(False), HiddenText():
            return (*before[:-1], one)
        case _:
            return None


# The test.


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """The source of a test, and its golden files by name."""

    source: str
    goldens: Mapping[str, str]


def write_test(log: CodegenLog, command: Sequence[str], test: str) -> WrittenTest:
    """Return the test of a log.

    Args:
        log: The moments to write.
        command: The command and its arguments.
        test: The name of the test function.
    """
    writer = _TestWriter(log, test)
    source = writer.source(list(command))
    return WrittenTest(source, writer.goldens)


class _TestWriter:
    """Writes one test line by line."""

    def __init__(self, log: CodegenLog, test: str) -> None:
        self._log = log
        self._test = test
        self._secrets = 0
        self._unnamed = 0
        self.goldens: dict[str, str] = {}

    def source(self, command: list[str]) -> str:
        body = list(self._body())
        fixtures = "telex, golden" if self.goldens else "telex"
        first = self._screen_before(0)
        size = f"rows={len(first.rows)}, cols={first.cols}"
        lines = [
            *(["import os", "", ""] if self._secrets else []),
            f"def {self._test}({fixtures}):",
            f"    term = telex.spawn({command!r}, {size})",
            *[f"    {line}" for line in body],
        ]
        return "\n".join(lines) + "\n"

    def _screen_before(self, number: int) -> GoldenScreen:
        """Return the screen before a moment: that of the person when going on."""
        if number < len(self._log.moments):
            return self._log.moments[number].before
        return self._log.end

    def _body(self) -> Iterator[str]:
        first = self._screen_before(0)
        yield from _wait(GoldenScreen((), first.cols), first, "")
        for number, moment in enumerate(self._log.moments):
            match moment:
                case GoldenMoment(screen, name):
                    yield self._golden(screen, name)
                case InputMoment(before, inputs):
                    last = number + 1 == len(self._log.moments) and self._log.exit_code is not None
                    after = before if last else self._screen_before(number + 1)
                    yield from self._input(before, inputs, after)
        if self._log.exit_code is not None:
            yield f"assert term.wait_exit() == {self._log.exit_code}"

    def _input(
        self, before: GoldenScreen, inputs: tuple[TypedInput, ...], after: GoldenScreen
    ) -> Iterator[str]:
        lines = list(self._input_lines(inputs))
        waits = list(_wait(before, after, _text(inputs)))
        if any("since=mark" in wait for wait in waits):
            lines[0] = f"mark = {lines[0]}"
        yield from lines
        yield from waits

    def _golden(self, screen: GoldenScreen, name: str) -> str:
        call = f"golden(term, {name!r})" if name else "golden(term)"
        if not name:
            self._unnamed += 1
            name = str(self._unnamed) if self._unnamed > 1 else ""
        self.goldens[golden_name(self._test, name)] = write_golden(GoldenFile(screen))
        return call

    def _input_lines(self, inputs: tuple[TypedInput, ...]) -> Iterator[str]:
        keys: list[str] = []
        for one in (*inputs, None):
            if isinstance(one, PressedKey):
                keys.append(one.name)
                continue
            if keys:
                yield f"term.press({', '.join(map(repr, keys))})"
                keys = []
            match one:
                case TypedText(text):
                    yield f"term.type({text!r})"
                case PastedText(text):
                    yield f"term.paste({text!r}, bracketed=True)"
                case HiddenText(enter):
                    self._secrets += 1
                    end = ' + "\\n"' if enter else ""
                    yield f'term.type(os.environ["SECRET_{self._secrets}"]{end})'


def _wait(before: GoldenScreen, after: GoldenScreen, typed: str) -> Iterator[str]:
    """Yield a wait for what has changed, if anything has."""
    if before.rows == after.rows and before.cursor == after.cursor:
        return
    text, echoed = new_text(before, after, typed)
    if text:
        yield f"term.wait({text!r}{', since=mark' if echoed else ''})"
    elif after.cursor is not None and after.cursor != before.cursor:
        yield f"term.wait(telex.match.cursor({after.cursor[0]}, {after.cursor[1]}))"
    elif highlighted := _highlighted(before, after):
        yield f"term.find({highlighted!r}, inverse=True).wait()"
    else:
        yield "term.wait(telex.match.stable(100))"


def _highlighted(before: GoldenScreen, after: GoldenScreen) -> str:
    """Return a text that has become inverse and is on the screen once; empty if there is none."""
    whole = "\n".join(text_rows(after))
    for old, new in zip(before.rows, after.rows, strict=False):
        for inverse, members in groupby(new, key=lambda cell: "inverse" in cell.style.split()):
            text = row_text(members).strip()
            if inverse and len(text) > 1 and whole.count(text) == 1 and old != new:
                return text
    return ""


CANDIDATE_CHARS: Final = 60
_DIGIT: Final = re.compile(r"\d")
_SAID: Final = re.compile(r"\w\w|^\W{1,3}$")
"""Words, or a short prompt."""


def new_text(before: GoldenScreen, after: GoldenScreen, typed: str) -> tuple[str, bool]:
    """Return the best text that is new on a screen, and whether the echo of the input has it too.

    Preferred is a text that is not in the echo, has no digits (a time or a number may change), is
    long, and is low on the screen. The text is empty if nothing is new.
    """
    old = "\n".join([row_text(row) for row in before.rows])
    typed = typed.strip()
    found: list[tuple[tuple[bool, bool, int, int], str]] = []
    for number, row in enumerate(after.rows):
        whole = row_text(row)
        if typed and whole.endswith(typed):
            continue  # the echo itself
        for text in _phrases(whole):
            if text not in old:
                rank = text not in typed, not _DIGIT.search(text), min(len(text), 20), number
                found.append((rank, text))
    if not found:
        return "", False
    (outside, *_), text = max(found)
    return text, not outside


def _phrases(row: str) -> Iterator[str]:
    """Yield the parts of a row between wide gaps and the lines of boxes."""
    for part in re.split(r"\s{2,}|[─-▟]+", row):
        text = part.strip()
        if _SAID.search(text):
            yield text[:CANDIDATE_CHARS].strip()
