"""The log of `telex codegen`: what a person typed and saw, and which of it is secret.

`PersonInput` reads the bytes of the person's terminal as inputs of the API: texts, keys, pastes,
the mouse. Replies of the terminal are no input. `CodegenLog` keeps each input with the screen
before it, and the marked goldens.

A typed text is secret, as a whole, if the kernel did not echo the line; or if the program echoes
itself and the text did not come to the screen: dots came, or nothing did. A part of a text is
secret if the redactor hides it, in the text or on a screen. Secrets stay in memory. Pure: the
screens, the echo and the time come in as arguments.

An echo may be late: the program answers after further keys, after Enter, or in one piece with the
output of the command. So the screens between the keys do not tell alone what was shown. The output
since a key is read, too: its first line, drawn behind the cursor of that moment, is the text, or a
line of it is the text behind a prompt at which another text was echoed before (typed ahead).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from msgspec import structs

from telex.escapes.commands.core import KeyEvent, MouseInput, PasteEvent
from telex.escapes.input_events import InputParser, ParsedInput, decode_csi
from telex.redaction import Redactor
from telex.terminal.actions import MouseEvent
from telex.terminal.keys import UnknownKey, parse_key
from telex.terminal.shown_screen import row_text
from telex.terminal.transcript import strip_escapes
from telex.testing.golden_file import GoldenScreen
from telex.testing.golden_place import file_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Inputs.

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TypedText:
    """Characters that were typed."""

    text: str
    secret: Spans = ()
    """The places of secrets in it."""


@dataclass(frozen=True, slots=True)
class PastedText:
    """A text that the person's terminal pasted."""

    text: str
    secret: Spans = ()


@dataclass(frozen=True, slots=True)
class PressedKey:
    """A key with a name for `Terminal.press`."""

    name: str


@dataclass(frozen=True, slots=True)
class RawInput:
    """A key or an action of the mouse for which the API has no name, as it was sent."""

    data: str


@dataclass(frozen=True, slots=True)
class SizeChange:
    """A new size of the terminal."""

    rows: int
    cols: int


TypedInput = TypedText | PastedText | PressedKey | RawInput | MouseEvent | SizeChange

_HELD: Final = ("shift", "alt", "ctrl")
_LOCKS: Final = frozenset({"caps", "num"})
_MODIFIER_KEYS: Final = re.compile(r"(?:left|right|iso)_\w+|\w+_lock")
_UNKNOWN: Final = re.compile(
    rb"\x1b\[M(?P<x10>[ -\xff]{3})"
    rb"|\x1b\[(?P<csi>[<-?]?[0-9;:]*[ -/]*[@-~])"
    rb"|(?P<ss3>\x1bO[!-~])"
    rb"|\x1b[\]P_^X][^\x1b\x07]*+(?:\x07|\x1b\\)?"
    rb"|.",
    re.DOTALL,
)
_F3: Final = re.compile(r"(?:1;(\d+))?R")
_URXVT_MOUSE: Final = re.compile(r"(\d+);(\d+);(\d+)M")
_REPLY: Final = re.compile(r"[?>=]?[0-9;:]*[ -/]*[cnRtxy]|[?>=][0-9;:]*u")
"""Replies of a terminal: its kind, state, modes, cursor, size and keyboard protocol."""
_WHEEL: Final = {"wheelup": "scroll_up", "wheeldown": "scroll_down"}
_CLICKED: Final = ("left", "middle", "right", "none")


class PersonInput:
    """Reads the input of one terminal, wherever its reads were cut. Call `feed` with each read, and
    without bytes at `deadline`."""

    def __init__(self) -> None:
        self._parser = InputParser()

    @property
    def deadline(self) -> float | None:
        """When to feed no bytes: a lone Escape is a key by then."""
        return self._parser.deadline

    def feed(
        self, data: bytes, now: float, cell: tuple[int, int] | None = None
    ) -> list[TypedInput]:
        """Return the inputs. `cell` has the size of a cell if the mouse reports pixels."""
        self._parser.cell = cell
        found: list[TypedInput | None] = []
        for one in self._parser.feed(data, now):
            found += [_known(one)] if isinstance(one, ParsedInput) else _unknown(one)
        return [one for one in found if one is not None]


def _known(event: ParsedInput) -> TypedInput | None:
    match event.payload:
        case PasteEvent(text):
            return PastedText(text)
        case KeyEvent() as key:
            return _key(key, event.raw)
        case MouseInput() as mouse:
            return _mouse(mouse) or _raw(event.raw)
        case _:
            return None  # focus, size and colours are told by the terminal


def _raw(data: bytes) -> RawInput:
    return RawInput(data.decode("utf-8", "replace"))


def _key(key: KeyEvent, raw: bytes) -> TypedInput | None:
    """Return a key; None for its release, and for a modifier alone, which `press` implies."""
    if key.kind == "release" or _MODIFIER_KEYS.fullmatch(key.key):
        return None
    held = {*key.mods} - _LOCKS
    if key.text and held <= {"shift"} and not key.key.startswith("kp_"):
        return TypedText(key.text)
    name = key.key
    if held and len(name) == 1 and name != name.lower():
        held.add("shift")
        name = name.lower()
    named = "_".join([*[mod for mod in _HELD if mod in held], name])
    try:
        parse_key(named)
    except UnknownKey:
        return _raw(raw)
    return PressedKey(named) if held <= {*_HELD} else _raw(raw)


def _mouse(mouse: MouseInput) -> MouseEvent | None:
    event = _WHEEL.get(mouse.button) if mouse.kind == "scroll" else mouse.kind
    if event is None or (mouse.kind != "scroll" and mouse.button not in _CLICKED):
        return None
    button = mouse.button if mouse.button in ("left", "middle", "right") else "left"
    held = {name: name in mouse.mods for name in _HELD}
    return MouseEvent(mouse.row - 1, mouse.col - 1, event, button, **held)  # type: ignore[arg-type]  # both were checked


def _unknown(data: bytes) -> Iterator[TypedInput]:
    """Yield the keys and the mouse in bytes that the parser does not know. The rest is left out:
    replies, their parts, and bytes that are no character."""
    for found in _UNKNOWN.finditer(data):
        csi = (found["csi"] or b"").decode("ascii")
        if found["x10"] is not None:
            yield from _old_mouse(*[byte - 32 for byte in found["x10"]])
        elif urxvt := _URXVT_MOUSE.fullmatch(csi):
            bits, col, row = map(int, urxvt.groups())
            yield from _old_mouse(bits - 32, col, row)
        elif f3 := _F3.fullmatch(csi):
            key = decode_csi(f"1;{f3[1] or 1}P")
            assert isinstance(key, KeyEvent)
            yield from filter(None, [_key(structs.replace(key, key="f3"), found[0])])
        elif found["ss3"] or (csi and not _REPLY.fullmatch(csi)):
            yield _raw(found[0])


def _old_mouse(bits: int, col: int, row: int) -> Iterator[TypedInput]:
    """Yield an action in a format that does not tell which button was released."""
    released = bits & 0b1100011 == 3 and not bits & 32
    report = decode_csi(f"<{bits & ~3 if released else bits};{col};{row}{'m' if released else 'M'}")
    if isinstance(report, MouseInput) and (action := _mouse(report)):
        yield action


# Screens.

HIDDEN: Final = "\0"
"""Stands for a masked character in a text to wait for."""


@dataclass(frozen=True)
class SeenScreen:
    """A screen at some moment."""

    golden: GoldenScreen
    """Masked, as a golden is."""
    hidden: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The masked columns by row."""
    secrets: tuple[str, ...] = ()
    """The masked texts."""
    cursor: tuple[int, int] = (0, 0)
    """Row and column, also where the cursor is not shown."""
    whole: bool = True
    """Whether the program draws the whole screen (the alternate one)."""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of each row, with `HIDDEN` for each masked character."""
        return tuple([self._text(number) for number in range(len(self.golden.rows))])

    def _text(self, number: int) -> str:
        cells, hidden = self.golden.rows[number], self.hidden.get(number)
        if not hidden:
            return row_text(cells)
        shown = [HIDDEN if col in hidden else cell.text for col, cell in enumerate(cells)]
        return "".join(shown).rstrip(" ")

    @cached_property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def cursor_text(self) -> str:
        """The text of the row that has the cursor."""
        row = self.cursor[0]
        return self.texts[row] if row < len(self.texts) else ""

    @property
    def prompt(self) -> str:
        """The text before the cursor."""
        return self.cursor_text.ljust(self.cursor[1])[: self.cursor[1]]


# The log.

Echo = Literal["kernel", "program", "none"]
"""Who shows what is typed. None: the kernel reads a line without echo, as at a password prompt."""


@dataclass(frozen=True, slots=True)
class LoggedInput:
    """An input, and the screen before."""

    before: SeenScreen
    one: TypedInput


@dataclass(frozen=True, slots=True)
class GoldenMoment:
    """A screen that the person marked."""

    before: SeenScreen
    name: str


SHORTEST_FOUND: Final = 4
"""A shorter secret is not searched in other texts: its characters are in half of them."""
_UNSEEN_CHARS: Final = 4
"""So many characters that leave no trace on the screen are a secret; fewer are commands (`gg`)."""
_DOTTED_CHARS: Final = 3
_DOTS: Final = frozenset("*•●∙·○■▪█✱×")
"""Signs that hide a single character; a longer text may be hidden by others."""
_STARTS: Final = 64
_ECHOED_CHARS: Final = 12
_OUTPUT_CHARS: Final = 4096
_DRAWN: Final = re.compile(
    r"\x1b\[(?P<count>\d*)(?P<does>[CDGJKP@])"
    r"|(?P<leaves>\x1b(?:\[[0-9;?]*[ABEFHLMSTdefrsu]|[78DEMc]))"
    r"|\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\|\Z)|[PX^_][^\x1b]*(?:\x1b\\|\Z))"
    r"|\x1b(?:\[[0-?]*[ -/]*|[ -/]*)(?:[0-~]|\Z)"
    r"|(?P<moves>[\b\r])|[\0-\x1f\x7f]|(?P<sign>.)",
    re.DOTALL,
)
"""The parts of an output line: edits of the row, what leaves it, other sequences, and signs."""
_LAST: Final = re.compile(r".\Z", re.DOTALL)
_RUBBED: Final = {
    "backspace": _LAST,
    "ctrl_h": _LAST,
    "ctrl_w": re.compile(r"\S*\s*\Z"),
    "ctrl_u": re.compile(r".+\Z", re.DOTALL),
}
"""What the keys that correct a line remove from it."""
_WORDS: Final = re.compile(r"[^\W_]+")
_SAMPLE: Final = "hunter2xyz"
"""Stands for the secret where only its name is judged."""
_CLOCKS: Final = re.compile(r"[\d|/\\\u2800-\u28ff-]")
"""Characters of clocks and spinners, which change without an input."""


@dataclass(frozen=True, slots=True)
class _Start:
    """A place in a run where a secret may begin: its first key, and each key before which the
    program answered with more than an echo."""

    number: int
    """The number of the input in the log."""
    before: SeenScreen
    at: int = 0
    """The place in the text."""
    printed: int = 0
    effects: int = 0
    prompted: bool = False
    """Whether a prompt came."""


@dataclass
class _Run:
    """A text typed in one go, with its corrections."""

    starts: list[_Start]
    echo: Echo
    last: int
    """The number of its last input in the log."""
    text: str
    output: str = ""
    printed: int = 0
    dotted: _Start | None = None
    effects: int = 0
    """How many keys changed the screen, but not by an echo."""
    open: bool = True
    late: bool = False
    """Whether the screen did not change after the last key."""
    closed_at: int = 0
    """How much had been printed when the run was closed. The echo may still come."""
    rubbed: list[str] = field(default_factory=list)
    """The texts before the corrections."""
    unanswered: int | None = None
    """How much had been printed before a key that came in another read, and closed the run."""
    is_command: bool = False
    """Whether a key that edits no line followed in the same read."""
    end: SeenScreen | None = None
    """The last screen of the run."""

    @property
    def secret_start(self) -> _Start | None:
        """Where a secret begins that goes to the end of the text; None if there is none."""
        first = self.starts[0]
        if not self.text or self.echo == "kernel":
            return None
        if self.echo == "none":
            return first
        dotted = next(filter(self._is_dotted_late, self.starts), self.dotted)
        if dotted is not None and not self._is_shown(dotted):
            before = dotted.before  # late dots: the keys before them are in the secret, too
            return next((one for one in self.starts if _adds_dots(one.before, before)), dotted)
        unseen = [one for one in self.starts if self._is_unseen(one)]
        return next((one for one in reversed(unseen) if one.prompted), next(iter(unseen), None))

    def add(self, number: int, text: str, before: SeenScreen, screen: SeenScreen) -> None:
        """Add a text. `before` is the screen before the last key, `screen` the one after it."""
        if before is not screen and not _is_echo(before, screen):
            prompted = _is_prompt(before, screen)
            start = _Start(
                number, screen, len(self.text), self.printed, self.effects, prompted=prompted
            )
            self.starts = [self.starts[0], *self.starts[1:][-_STARTS:], start]
        self.text += text

    def rub(self, what: re.Pattern[str]) -> None:
        """Remove what a key corrects."""
        if not self.rubbed or not self.rubbed[-1].startswith(self.text):
            self.rubbed = [*self.rubbed[-_STARTS:], self.text]
        self.text = what.sub("", self.text)
        self.starts[1:] = [one for one in self.starts[1:] if one.at <= len(self.text)]

    def look(self, screen: SeenScreen) -> None:
        """Compare the screen with what was typed."""
        if self.open:
            self.end = screen
            for missing in (0, 1):  # the last key may not have been answered yet
                for start in self.starts:
                    if _is_dotted(self.text[start.at :], start.before, screen, missing):
                        self.dotted = start
                        return

    def close(self, screen: SeenScreen, last: SeenScreen, name: str) -> None:
        """End the run with the next input; `last` is the screen before its last character."""
        self.look(screen)
        self.open = False
        self.closed_at = self.printed
        self.unanswered = self.printed if screen is not last else None
        self.late = screen is last or screen.golden == last.golden
        self.is_command = screen is last and name not in ("enter", "tab", "ctrl_j", "")

    @property
    def is_full(self) -> bool:
        """Whether so much was printed after the run that no echo is to come."""
        return not self.open and self.printed - self.closed_at >= _OUTPUT_CHARS

    def print(self, text: str) -> None:
        """Take output. Of an open run the last is kept, and after it the first: a late echo comes
        before the output of the command, which may be long."""
        if self.open:
            self.output = (self.output + text)[-_OUTPUT_CHARS:]
        else:
            text = text[: _OUTPUT_CHARS - (self.printed - self.closed_at)]
            self.output += text
        self.printed += len(text)

    def _output_since(self, start: _Start) -> str:
        since = self.printed - start.printed
        return self.output[-since:] if since else ""

    @cached_property
    def echoed_from(self) -> int | None:
        """The place in the text from which on all was echoed; None if no echo was found. Read it
        when the log is over."""
        return next((one.at for one in self.starts if self._is_echoed(one)), None)

    def _is_echoed(self, start: _Start) -> bool:
        """Return whether the output since a key begins with the text: drawn at the cursor, behind
        the echo of earlier keys that had not been answered. The output before the end of the run
        must be the beginning of an echo, because a program that showed something else first and
        prints the text later does not echo it."""
        output = self._output_since(start)
        screen, typed = start.before, self.text.rstrip()
        begun, at = _drawn(screen, output[: len(output) - (self.printed - self.closed_at)])
        row, _ = _drawn(screen, output)
        if start.at >= len(typed) or (_DOTS & {*output.partition("\n")[0]}) - {*typed}:
            return False
        col = screen.cursor[1]
        right = screen.cursor_text[col:]
        for first in range(start.at, max(start.at - _STARTS, 0) - 1, -1):
            text = typed[first:]
            rest = row[col + len(text) :]
            if row.startswith(text, col) and (rest == right or not re.match(r"\w", rest)):
                known = [one[first:] for one in (self.text, *self.rubbed)]
                if any(one.startswith(begun[col:at]) for one in known):
                    return True
        return False

    def is_read_ahead(self, prompts: Iterable[str]) -> bool:
        """Return whether the text was typed ahead, and then shown at one of these prompts."""
        first, text = self.starts[0], self.text.rstrip()
        if self.dotted is not None or not text or _asks_for_secret(first.before):
            return False
        empty = SeenScreen(GoldenScreen((), first.before.golden.cols))
        wanted = [prompt + text for prompt in prompts]
        return any(_drawn(empty, line)[0] in wanted for line in self.output.split("\n"))

    def _is_dotted_late(self, start: _Start) -> bool:
        """Return whether the output begins with a sign for each character."""
        typed = len(self.text) - start.at
        row = strip_escapes(self._output_since(start))
        dots = row[:typed]
        if not len(dots) == typed > 1 or len({*dots}) > 1 or dots[0].isalnum() or dots.isspace():
            return False
        return self.late or (dots[0] in _DOTS and row.partition("\n")[0].rstrip() == dots)

    def _is_unseen(self, start: _Start) -> bool:
        """Return whether a text left no trace. A letter held down is a command, also where there
        was nothing to do."""
        text = self.text[start.at :]
        told = len(text) >= _UNSEEN_CHARS and (len({*text}) > 1 or text[0].isdigit())
        quiet = self.effects - start.effects < 2 and not self.is_command
        return told and quiet and not self._is_shown(start)

    def _is_shown(self, start: _Start) -> bool:
        """Return whether a text came to the screen: all of it, as an echo does, or its end, since
        an editor takes the first key, and a field may be too short. Its beginning is not enough,
        which may be the first word of an answer."""
        text, screen, old = self.text[start.at :].strip(), self.end, start.before
        if self.unanswered == start.printed and _asks_for_secret(self._asking(start)):
            return False  # what comes later is no late echo, but the program prints the secret
        if self.echoed_from is not None and self.echoed_from <= start.at:
            return True
        if screen is None or not text:
            return False
        for secret in sorted(screen.secrets, key=len, reverse=True):
            if text in secret:
                return True
            text = text.replace(secret, HIDDEN * len(secret))
        size = min(len(text), max(4, len(text) // 2), _ECHOED_CHARS)
        ends = range(len(text), max(size - 1, len(text) - (2 if self.late else 1)), -1)
        for piece in filter(str.strip, [text[end - size : end] for end in ends]):
            if piece in screen.cursor_text and piece not in old.cursor_text:
                return True
            if screen.text.count(piece) > old.text.count(piece):
                return True
            if "".join(screen.texts).count(piece) > "".join(old.texts).count(piece):
                return True
        return False

    def _asking(self, start: _Start) -> SeenScreen:
        """Return the screen that has the prompt of a text: the first one, if no more than the
        beginning of the text stands at the cursor since."""
        prompt, shown = self.starts[0].before.prompt, start.before.prompt
        typed = shown.startswith(prompt) and self.text.startswith(shown[len(prompt) :])
        return self.starts[0].before if typed else start.before


def _drawn(screen: SeenScreen, output: str) -> tuple[str, int]:
    """Return the row of the cursor, and the place of the cursor in it, after the first line of an
    output. A wrapped row is one row here, and what stood behind the cursor is left out."""
    cols, at = screen.golden.cols, screen.cursor[1]
    row = [*screen.prompt]
    for part in _DRAWN.finditer(output.partition("\n")[0]):
        count = int(part["count"] or 1)
        if part["leaves"]:
            break
        if sign := part["sign"]:
            row += " " * (at - len(row))
            row[at : at + 1] = sign
            at += 1
        match part["does"] or part["moves"]:
            case "\b" | "D":
                at = max(at - count, 0)
            case "C":
                at += count
            case "\r":
                at -= at % cols
            case "G":
                at += count - 1 - at % cols
            case "J" | "K" if not int(part["count"] or 0):
                del row[at:]
            case "P":
                del row[at : at + count]
            case "@":
                row[at:at] = " " * count
    return "".join(row).rstrip(), at


def _asks_for_secret(screen: SeenScreen) -> bool:
    """Return whether the cursor stands behind the name of a secret, or below one, as in a box."""
    row, col = screen.cursor
    words = _WORDS.findall(screen.cursor_text[:col])
    words = words or _WORDS.findall(" ".join(screen.texts[max(row - 2, 0) : row]))
    named = [f"{word}: {_SAMPLE}" for word in words]
    return any(word.lower() == "pin" for word in words) or any(map(Redactor().spans, named))


def _is_dotted(text: str, before: SeenScreen, screen: SeenScreen, missing: int) -> bool:
    """Return whether a row has got one sign more for each character that was typed, but for the
    missing ones."""
    typed = len(text) - missing
    short = len(text) < _DOTTED_CHARS
    if typed < 1 or (short and missing):
        return False
    for old, new in zip(before.texts, screen.texts, strict=False):
        if old != new:
            start, end = _changed_part(old, new)
            changed = new[start:end].strip(" ")
            dots = {*changed} - {*text[-1]}
            if len(dots) == 1 and changed.count(*dots) == typed and dots != {HIDDEN}:
                row, col = before.cursor
                moved = screen.cursor == (row, col + 1)
                if not short or (len(changed) == typed and dots <= _DOTS and (typed > 1 or moved)):
                    return True
    return False


def _adds_dots(before: SeenScreen, after: SeenScreen) -> bool:
    """Return whether a screen has nothing new but dots."""
    rows = [pair for pair in zip(before.texts, after.texts, strict=False) if pair[0] != pair[1]]
    added = [new[slice(*_changed_part(old, new))].strip(" ") for old, new in rows]
    return _DOTS.issuperset("".join(added))


def _is_echo(before: SeenScreen, after: SeenScreen) -> bool:
    """Return whether a change is no more than what a key or its dot shows."""
    rows = [pair for pair in zip(before.texts, after.texts, strict=False) if pair[0] != pair[1]]
    if len(rows) > 1 or _is_prompt(before, after):
        return False
    return all(end - start <= 2 for start, end in [_changed_part(*pair) for pair in rows])


def _is_prompt(before: SeenScreen, after: SeenScreen) -> bool:
    """Return whether the cursor has come to another place, behind a text that is new."""
    if before.cursor == after.cursor:
        return False
    said = after.cursor_text[: after.cursor[1]].strip()
    return len(said) > 2 and said not in before.text


def _changed_part(old: str, new: str) -> tuple[int, int]:
    """Return where a row has changed: the place of the new text in it."""
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    same = next((n for n in range(most - start) if old[-1 - n] != new[-1 - n]), most - start)
    return start, len(new) - same


class CodegenLog:
    """The inputs and goldens of one use of a program, in order."""

    def __init__(self, redactor: Redactor | None = None, changing: Iterable[str] = ()) -> None:
        """`changing` are words that are others elsewhere, such as the name of the machine."""
        self.redactor = redactor or Redactor()
        self.changing = tuple(filter(None, changing))
        self.end = SeenScreen(GoldenScreen((), 80))
        """The screen when the program ended or the person left."""
        self.exit_code: int | None = None
        """None if the person left, or a signal ended the program."""
        self._entries: list[LoggedInput | GoldenMoment] = []
        self._runs: list[_Run] = []
        self._masked: set[str] = set()

    # What happens.

    def typed(self, screen: SeenScreen, inputs: Iterable[TypedInput], echo: Echo) -> None:
        """Add inputs, with the screen and the echo at that time."""
        self.saw(screen)
        for one in inputs:
            if not self._joins_mouse(screen, one):
                self._entries.append(LoggedInput(screen, one))
                self._follow(screen, one, echo)

    def mark(self, screen: SeenScreen, name: str) -> None:
        """Add a golden. A name that was used before gets a number, and so does a number, which may
        be that of a golden without a name."""
        used, unique, number = set(map(file_key, self.names)), name, 2
        while name and (file_key(unique) in used or unique.isdigit()):
            unique, number = f"{name}-{number}", number + 1
        self._close_run(screen, "")
        self._entries.append(GoldenMoment(screen, unique))

    def saw(self, screen: SeenScreen) -> None:
        """Take a screen between two inputs."""
        self._masked.update(screen.secrets)
        if self._runs:
            self._runs[-1].look(screen)

    def printed(self, text: str) -> None:
        """Take output of the program. It may have the echo of several texts, if the person types
        ahead."""
        for run in reversed(self._runs):
            if run.is_full:
                break
            run.print(text)

    @property
    def names(self) -> list[str]:
        """The names of the goldens; empty ones will be numbered."""
        return [one.name for one in self._entries if isinstance(one, GoldenMoment)]

    @property
    def inputs(self) -> int:
        return len(self._entries) - len(self.names)

    def _joins_mouse(self, screen: SeenScreen, one: TypedInput) -> bool:
        """Make a press and its release a click, and keep the last of several moves and sizes."""
        last = self._entries[-1] if self._entries else None
        if not isinstance(last, LoggedInput):
            return False
        joined: TypedInput | None = None
        match last.one, one:
            case MouseEvent(event="press") as press, MouseEvent(event="release") as release:
                if (press.row, press.col) == (release.row, release.col):
                    joined = structs.replace(press, event="click")
            case MouseEvent(event="move"), MouseEvent(event="move"):
                joined = one
            case SizeChange(), SizeChange():
                joined = one
        if joined is None:
            return False
        self._entries[-1] = replace(last, one=joined)
        return True

    def _follow(self, screen: SeenScreen, one: TypedInput, echo: Echo) -> None:
        """Continue a run of text, begin one, or end it."""
        number = len(self._entries) - 1
        run = self._runs[-1] if self._runs else None
        text = one.text if isinstance(one, TypedText | PastedText) else ""
        name = one.name if isinstance(one, PressedKey) else ""
        joins = run is not None and run.echo == echo and run.starts[0].before.whole == screen.whole
        if run is not None and run.open and joins and (text or name in _RUBBED):
            before = self._before(run.last)
            run.effects += before is not screen and _acted(before, screen)
            if text:
                run.add(number, text, before, screen)
            else:
                run.rub(_RUBBED[name])
            run.last = number
            return
        self._close_run(screen, name)
        if text:
            self._runs.append(_Run([_Start(number, screen)], echo, number, text))

    def _close_run(self, screen: SeenScreen, name: str) -> None:
        if self._runs and self._runs[-1].open:
            run = self._runs[-1]
            last = self._before(run.last)
            run.effects += last is not screen and _acted(last, screen)
            run.close(screen, last, name)

    def _before(self, number: int) -> SeenScreen:
        return self._entries[number].before

    # When it is over.

    def entries(self) -> Iterator[LoggedInput | GoldenMoment]:
        """Yield what happened; a text that has a secret is one input, corrected."""
        self._close_run(self.end, "")
        at = 0
        prompts: set[str] = set()
        for run in self._runs:
            secret, first = run.secret_start, run.starts[0]
            if secret is not None and run.echo == "program" and run.is_read_ahead(prompts):
                secret = None
            elif secret is None and run.echo == "program" and run.echoed_from == 0:
                prompts.update(filter(str.strip, [first.before.prompt]))
            size = len(run.text) if secret is None else secret.at
            if spans := self.secret_spans(run.text[:size]):
                yield from self._entries[at : first.number]
                yield LoggedInput(first.before, self._text(run, first, run.text[:size], spans))
                at = run.last + 1 if secret is None else secret.number
            if secret is not None:
                yield from self._entries[at : secret.number]
                text = run.text[size:]
                whole = ((0, len(text)),)
                yield LoggedInput(secret.before, self._text(run, secret, text, whole))
                at = run.last + 1
        yield from self._entries[at:]

    def _text(self, run: _Run, start: _Start, text: str, spans: Spans) -> TypedText | PastedText:
        one = self._entries[start.number]
        pasted = isinstance(one, LoggedInput) and isinstance(one.one, PastedText)
        kind = PastedText if pasted and start.number == run.last else TypedText
        return kind(text, spans)

    def secret_spans(self, text: str, *, command: bool = True) -> Spans:
        """Return the places of secrets in a text."""
        spans = self.redactor.spans(text)
        spans += self.redactor.command_spans(text) if command else []
        for secret in self._masked_texts():
            if secret == text or (len(text) >= SHORTEST_FOUND and text.strip() in secret):
                return ((0, len(text)),) if text else ()
            if len(secret) >= SHORTEST_FOUND:
                spans += [found.span() for found in re.finditer(re.escape(secret), text)]
        return merged(spans)

    def _masked_texts(self) -> list[str]:
        """Return the masked texts, without those that became longer as they were typed."""
        return [one for one in self._masked if not any(one in o for o in self._masked - {one})]


def merged(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return spans in order, with those joined that overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif end > start:
            found.append((start, end))
    return tuple(found)


def _acted(before: SeenScreen, after: SeenScreen) -> bool:
    """Return whether a key has done something else than an echo: it moved to another row, or
    changed the screen. Clocks do not count."""
    if before.cursor[0] != after.cursor[0]:
        return True
    return _still(before) != _still(after)


def _still(screen: SeenScreen) -> list[list[tuple[str, str]]]:
    return [
        [
            (style, _CLOCKS.sub(" ", "".join([cell.text for cell in cells])))
            for style, cells in groupby(row, key=lambda cell: cell.style)
        ]
        for row in screen.golden.rows
    ]
