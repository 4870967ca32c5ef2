"""Writes a pytest test from what a person did in a program.

`write_test` turns a `CodegenLog` into Python: typed texts and keys, the mouse, sizes, and after
each a wait for what changed on the screen before the person went on: new text that will be there
again, and the text at the cursor where it ends the screen, such as a prompt; where only a cursor
moved on a whole screen, its place; where only the highlight moved, the item; else a screen that
rests. A secret is read from the environment. Pure: `codegen_panel` watches the person, and the
command writes the files.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from telex.terminal.actions import MouseEvent
from telex.terminal.shown_screen import row_text
from telex.testing.codegen_log import (
    HIDDEN,
    SHORTEST_FOUND,
    CodegenLog,
    GoldenMoment,
    PastedText,
    PressedKey,
    RawInput,
    SeenScreen,
    SizeChange,
    Spans,
    TypedInput,
    TypedText,
    merged,
)
from telex.testing.golden_file import (
    GoldenFile,
    GoldenScreen,
    RegionMask,
    mask_screen,
    write_golden,
)
from telex.testing.golden_place import golden_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# Moments: inputs that belong together.


@dataclass(frozen=True, slots=True)
class InputMoment:
    """Inputs without an answer between them, and the screen before."""

    before: SeenScreen
    inputs: tuple[TypedInput, ...]

    @property
    def text(self) -> str:
        texts = [one.text for one in self.inputs if isinstance(one, TypedText | PastedText)]
        return "".join(texts)

    @property
    def ends_in_secret(self) -> bool:
        """Whether the screen after it depends on the length of a secret."""
        last = self.inputs[-1]
        return isinstance(last, TypedText | PastedText) and bool(last.secret)

    @property
    def is_hover(self) -> bool:
        return all(isinstance(one, MouseEvent) and one.event == "move" for one in self.inputs)


Moment = InputMoment | GoldenMoment


def _moments(log: CodegenLog) -> list[Moment]:
    """Return the moments of a log. A person types one key at a time: text and the Enter after it
    are one moment, unless the program answered with more than an echo."""
    moments: list[Moment] = []
    for entry in log.entries():
        if isinstance(entry, GoldenMoment):
            moments.append(entry)
            continue
        last, joined = moments[-1] if moments else None, None
        if isinstance(last, InputMoment):
            text, echoed = new_text(last.before, entry.before, last.text)
            if echoed or not text or last.ends_in_secret:
                joined = _joined(last.inputs, entry.one)
        if joined is None or last is None:
            moments.append(InputMoment(entry.before, (entry.one,)))
        else:
            moments[-1] = InputMoment(last.before, joined)
    return moments


def _joined(before: tuple[TypedInput, ...], one: TypedInput) -> tuple[TypedInput, ...] | None:
    """Return the inputs of one moment; None if the next input begins another."""
    match before[-1], one:
        case TypedText(text, ()), TypedText(more, ()):
            return (*before[:-1], TypedText(text + more))
        case TypedText() | PastedText(), PressedKey("enter" | "backspace"):
            return (*before, one)
        case PressedKey("backspace"), TypedText() | PressedKey("backspace" | "enter"):
            return (*before, one)
        case MouseEvent(event="scroll_up" | "scroll_down") as wheel, MouseEvent() as next_notch:
            if wheel.count < 100 and replace(wheel, count=1) == next_notch:
                return (*before[:-1], replace(wheel, count=wheel.count + 1))
    return None


# The test.


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """The source of a test, and its golden files by name."""

    source: str
    goldens: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    """The variables that the test reads from the environment."""


def write_test(log: CodegenLog, command: Sequence[str], test: str) -> WrittenTest:
    """Return the test of a log.

    Args:
        log: The inputs to write.
        command: The command and its arguments.
        test: The name of the test function.
    """
    writer = _TestWriter(log, test)
    source = writer.source(list(command))
    return WrittenTest(source, writer.goldens, tuple(writer.variables.values()))


class _TestWriter:
    """Writes one test line by line."""

    def __init__(self, log: CodegenLog, test: str) -> None:
        self._log = log
        self._moments = _moments(log)
        self._test = test
        self._unnamed = 0
        self._main: Moment | None = None
        """The last moment at which no program drew the whole screen."""
        self.goldens: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        """The name of each secret."""
        self._reasons: dict[str, str] = {}

    def source(self, command: list[str]) -> str:
        spawned = self._command(command)
        self._find_secrets()
        body = list(self._body())
        fixtures = "telex, golden" if self.goldens else "telex"
        first = self._screen_before(0).golden
        size = f"rows={len(first.rows)}, cols={first.cols}"
        lines = [
            *self._head(),
            f"def {self._test}({fixtures}):",
            f"    term = telex.spawn({spawned}, {size})",
            *[f"    {line}" for line in body],
        ]
        return "\n".join(lines) + "\n"

    # Secrets.

    def _head(self) -> Iterator[str]:
        """Yield the lines that read the secrets, and skip the test where one is missing."""
        if not self._reasons:
            return
        yield from ("import os", "", "import pytest", "")
        for name, reason in self._reasons.items():
            yield f"{name} = os.environ.get({name!r})  # {reason}"
        yield from ("", "")
        for name, reason in self._reasons.items():
            said = f"set {name} in the environment: {reason}"
            yield f"@pytest.mark.skipif({name} is None, reason={said!r})"

    def _find_secrets(self) -> None:
        """Name all secrets before anything is written: a later one may be in an earlier text."""
        found: list[tuple[str, SeenScreen, str]] = []
        for moment in self._moments:
            if isinstance(moment, InputMoment):
                for one in moment.inputs:
                    if isinstance(one, TypedText | PastedText):
                        for start, end in one.secret:
                            self.variables.setdefault(
                                one.text[start:end], f"SECRET_{len(self.variables) + 1}"
                            )
                            found.append((one.text[start:end], moment.before, one.text[:start]))
        for secret, before, lead in found:
            label = _label(before, self._log.changing)
            told = f"at {self._masked(label)!r}" if label else ""
            if lead := self._masked(lead).strip()[-30:]:
                told = f"after {lead!r}"
            self._variable(secret, f"what was typed {told}".rstrip())

    def _masked(self, text: str) -> str:
        """Return a text for people, which has no secret: a short one counts as a word."""
        for secret in sorted(self.variables, key=len, reverse=True):
            edge = "" if len(secret) >= SHORTEST_FOUND else r"\b"
            text = re.sub(f"{edge}{re.escape(secret)}{edge}", "…", text)
        return self._log.redactor.redact(text)

    def _variable(self, secret: str, reason: str) -> str:
        name = self.variables.setdefault(secret, f"SECRET_{len(self.variables) + 1}")
        self._reasons.setdefault(name, reason)
        return name

    def _command(self, command: list[str]) -> str:
        """Return the argument list, with variables for the secrets in it."""
        written, at = [], 0
        line = shlex.join(command)
        found = merged([*self._log.redactor.spans(line), *self._log.redactor.command_spans(line)])
        for argument in command:
            quoted = shlex.quote(argument)
            inside = [span for span in found if span[0] < at + len(quoted) and span[1] > at]
            spans: Spans = self._log.secret_spans(argument)
            if inside and quoted == argument:
                inner = [(max(a - at, 0), min(b - at, len(argument))) for a, b in inside]
                spans = merged([*spans, *inner])
            elif inside and not spans:
                spans = ((0, len(argument)),)
            for start, end in spans:
                self._variable(argument[start:end], "what was given on the command line")
            written.append(self._expression(argument, spans))
            at += len(quoted) + 1
        return f"[{', '.join(written)}]"

    def _expression(self, text: str, spans: Spans = ()) -> str:
        """Return a text as Python, with variables for the secrets in it."""
        every = [*spans]
        for secret in self.variables:
            if secret == text or len(secret) >= SHORTEST_FOUND:
                every += [found.span() for found in re.finditer(re.escape(secret), text)]
        parts, at = [], 0
        for start, end in merged(every):
            parts += [repr(text[at:start])] if start > at else []
            parts.append(self._variable(text[start:end], "what was typed"))
            at = end
        parts += [repr(text[at:])] if at < len(text) or not parts else []
        return " + ".join(parts)

    def _tells(self, text: str) -> bool:
        """Return whether a text contains a secret, or a part of one."""
        return any(
            secret in text or (len(text) >= SHORTEST_FOUND and text in secret)
            for secret in self.variables
            if len(secret) >= SHORTEST_FOUND or secret == text
        )

    # The body.

    def _screen_before(self, number: int) -> SeenScreen:
        """Return the screen before a moment: that of the person when going on."""
        if number < len(self._moments):
            return self._moments[number].before
        return self._log.end

    def _body(self) -> Iterator[str]:
        first = self._screen_before(0)
        if first.text.strip():
            yield from self._wait(SeenScreen(GoldenScreen((), first.golden.cols)), first, None)
        for number, moment in enumerate(self._moments):
            if not moment.before.whole:
                self._main = moment
            if isinstance(moment, GoldenMoment):
                yield self._golden(moment.before.golden, moment.name)
                continue
            last = number + 1 == len(self._moments) and self._log.exit_code is not None
            after = moment.before if last else self._screen_before(number + 1)
            if not moment.is_hover or moment.before.golden != after.golden:
                yield from self._input(moment, after)
        if self._log.exit_code is not None:
            yield f"assert term.wait_exit() == {self._log.exit_code}"

    def _input(self, moment: InputMoment, after: SeenScreen) -> Iterator[str]:
        lines = list(self._input_lines(moment.inputs))
        waits = list(self._wait(moment.before, after, moment))
        if any("since=mark" in wait for wait in waits):
            lines[0] = f"mark = {lines[0]}"
        yield from lines
        yield from waits

    def _golden(self, screen: GoldenScreen, name: str) -> str:
        masks = tuple(self._masks(screen))
        name = self._golden_name(name)
        given = [repr(name)] if name else []
        if masks:
            places = [(one.top, one.left, 1, one.right - one.left + 1) for one in masks]
            given.append(f"mask={places!r}")
        if not name:
            self._unnamed += 1
            name = str(self._unnamed) if self._unnamed > 1 else ""
        golden = GoldenFile(mask_screen(screen, masks), masks)
        self.goldens[golden_name(self._test, name)] = write_golden(golden)
        return f"golden({', '.join(['term', *given])})"

    def _golden_name(self, name: str) -> str:
        """Return a name without secrets, which is the name of a file, too."""
        if (masked := self._masked(name)) == name:
            return name
        names = (f"{re.sub(r'[^ -~]', '_', masked)}-{number}" for number in count(1))
        return next(one for one in names if golden_name(self._test, one) not in self.goldens)

    def _masks(self, screen: GoldenScreen) -> Iterator[RegionMask]:
        """Yield the places of dates, times and typed secrets, which the redactor does not know."""
        for number, row in enumerate(screen.rows):
            starts = [col for col, cell in enumerate(row) for _ in cell.text]
            text = "".join([cell.text for cell in row])
            known = [re.escape(one) for one in self.variables if len(one) >= SHORTEST_FOUND]
            for pattern in [_DATED, *map(re.compile, known)]:
                for found in pattern.finditer(text):
                    first, last = starts[found.start()], starts[found.end() - 1]
                    yield RegionMask(number, number, first, last)

    def _input_lines(self, inputs: tuple[TypedInput, ...]) -> Iterator[str]:
        for pressed, members in groupby(inputs, key=lambda one: isinstance(one, PressedKey)):
            if pressed:
                keys = [one.name for one in members if isinstance(one, PressedKey)]
                yield f"term.press({', '.join(map(repr, keys))})"
                continue
            for one in members:
                match one:
                    case TypedText(text, spans):
                        yield f"term.type({self._expression(text, spans)})"
                    case PastedText(text, spans):
                        yield f"term.paste({self._expression(text, spans)}, bracketed=True)"
                    case RawInput(data):
                        yield f"term.paste({data!r})"
                    case SizeChange(rows, cols):
                        yield f"term.resize(rows={rows}, cols={cols})"
                    case MouseEvent():
                        yield f"term.click({_click(one)})"

    # Waits.

    def _wait(
        self, before: SeenScreen, after: SeenScreen, moment: InputMoment | None
    ) -> Iterator[str]:
        """Yield a wait for what has changed, if anything has."""
        if before.golden.rows == after.golden.rows and before.cursor == after.cursor:
            return
        typed = moment.text if moment else ""
        marked = moment is not None and not isinstance(moment.inputs[0], SizeChange)
        since = ", since=mark" if marked else ""
        text, echoed = new_text(before, after, typed, self._log.changing, self._known(before))
        end = self._end(before, after, typed.strip()) if marked or moment is None else ""
        place = after.golden.cursor
        if moment is not None and moment.ends_in_secret:
            yield "term.wait(telex.match.stable(100))"
        elif (text and (marked or not echoed)) or end:
            if text and (marked or not echoed) and text not in end:
                yield f"term.wait({text!r}{since if echoed else ''})"
            if end:
                pattern = _ESCAPED.sub(r"\1", re.escape(end)) + "$"
                written = repr(pattern) if "'" in pattern else f"r'{pattern}'"
                yield f"term.wait(telex.match.regex({written}){since})"
        elif after.whole and place is not None and place != before.golden.cursor:
            yield f"term.wait(telex.match.cursor({place[0]}, {place[1]}))"
        elif (highlighted := _highlighted(before, after)) and not self._tells(highlighted):
            yield f"term.find({highlighted!r}, inverse=True).wait()"
        else:
            yield "term.wait(telex.match.stable(100))"

    def _known(self, before: SeenScreen) -> Callable[[str], bool]:
        """Return what refuses a text to wait for: a secret, or a text that comes back with the
        main screen when a program leaves the whole one."""
        main = self._main if before.whole else None
        shown = main.before.text if main is not None else ""
        command = main.text.strip() if isinstance(main, InputMoment) else ""
        return lambda text: (
            self._tells(text) or text in shown or bool(command and text.endswith(command))
        )

    def _end(self, before: SeenScreen, after: SeenScreen, typed: str) -> str:
        """Return the text before the cursor, such as a prompt, if it ends the screen, has come with
        the input and not as its echo, and will be the same again."""
        row, col = after.cursor
        if after.whole or any(after.texts[row + 1 :]) or len(after.cursor_text) > col:
            return ""
        shown = after.cursor_text.ljust(col)
        said = _phrases(shown, self._log.changing)
        if not said or not after.cursor_text.endswith(said[-1]) or self._tells(said[-1]):
            return ""
        same = row == before.cursor[0] and before.texts[:row] == after.texts[:row]
        if same and before.cursor_text.startswith(after.cursor_text):
            return ""
        if typed and said[-1].endswith(typed):
            return ""
        return said[-1] + shown[len(after.cursor_text) :]


def _label(screen: SeenScreen, changing: Iterable[str]) -> str:
    """Return what names the place of the cursor: the last words before it in its row, else in the
    row above, as over a field in a box."""
    row, col = screen.cursor
    rows = [screen.texts[row][:col] if row < len(screen.texts) else "", *screen.texts[:row][:-3:-1]]
    said = [[one for one in _phrases(text, changing) if _WORD.search(one)] for text in rows]
    last = next((found[-1] for found in said if found), "")
    return _FIELD.sub("", last)


def _click(action: MouseEvent) -> str:
    plain = MouseEvent(action.row, action.col)
    given = [
        f"{name}={value!r}"
        for name in ("event", "button", "count", "shift", "alt", "ctrl")
        if (value := getattr(action, name)) != getattr(plain, name)
    ]
    return ", ".join([str(action.row), str(action.col), *given])


def _highlighted(before: SeenScreen, after: SeenScreen) -> str:
    """Return a text that has become inverse and is on the screen once; empty if there is none."""
    for old, new in zip(before.golden.rows, after.golden.rows, strict=False):
        for inverse, members in groupby(new, key=lambda cell: "inverse" in cell.style.split()):
            text = row_text(members).strip()
            if inverse and len(text) > 1 and after.text.count(text) == 1 and old != new:
                return text
    return ""


# Texts that will be there again.

CANDIDATE_CHARS: Final = 60
_DIGIT: Final = re.compile(r"\d")
_SAID: Final = re.compile(r"\w\w|^[.$#%>:?❯➜›»→λ)\]}]{1,3}$")
"""Words, or a short prompt."""
_WORD: Final = re.compile(r"\w\w")
_FIELD: Final = re.compile(r"[\s\[(<|{_.*•]+\Z")
"""The left end of a field, and what it is filled with."""
_ESCAPED: Final = re.compile(r"\\([ #&~-])")
"""Characters that `re.escape` escapes without need."""
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY: Final = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_CLOCK: Final = rf"""
    \b{_DAY}\b[,.]?(?=\s+(?:\d|{_MONTH}))               # dates
    | \b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?
    | \b\d{{1,2}}\.?[ -]{_MONTH}(?:[ -]\d{{2,4}})?\b
    | \b\d{{4}}[-/]\d\d[-/]\d\d(?:T\S+)?
    | \b\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}\b
    | \b\d{{1,2}}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:\s[A-Z]{{3,4}}\b)?  # times
    | \b[AaPp][Mm]\b(?=\s+[A-Z]{{3,4}}\b) | \b(?:UTC|GMT|CES?T|[ECMP][SD]T)\b
    | \b\d+m\d[\d.,]*s\b                                # durations
    | \b\d+(?:[.,]\d+)?\s?(?:[nµu]s|m?s|secs?|seconds?|mins?|minutes?|h|hours?|days?)\b
"""
_CHANGING: Final = re.compile(
    rf"""{_CLOCK}
    | \b(?:19|20)\d\d\b
    | \b\d+(?:[.,]\d+)?\s?(?:%|(?:[KMGT]i?B?|[kmgt]B|[Bb]ytes)\b)(?:/s)?    # sizes, shares
    | \b(?:pid|process|PID)\b\W{{0,2}}\d+ | \[\d+\]\s+\d+ | \b\d{{4,}}\b     # processes, ports
    | \b0x[0-9a-fA-F]+\b | \b[0-9a-fA-F]{{8}}-[0-9a-fA-F-]{{20,}}\b         # addresses, hashes
    | \b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,}}\b
    | (?<!\w)(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm|run/user)(?:/\S*)?  # temporary paths
    | \S*pytest-of-\S* | \btmp[.\w]{{6,}}
    | [\w.-]+@[\w.-]+(?::[~/][^\s$#%>\]]*)?             # a user at a machine, in a directory
    | \b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b
    | \b(?=\w*\d)(?=\w*[A-Za-z])\w{{12,}}\b
    """,
    re.VERBOSE,
)
"""Texts that differ at another time or on another machine."""
_DATED: Final = re.compile(_CLOCK, re.VERBOSE)
_GAP: Final = re.compile(rf"\s{{2,}}|[─-▟{HIDDEN}]+")


def new_text(
    before: SeenScreen,
    after: SeenScreen,
    typed: str,
    changing: Iterable[str] = (),
    refused: Callable[[str], bool] = lambda text: False,
) -> tuple[str, bool]:
    """Return the best text that is new on a screen, and whether the echo of the input has it too.

    Preferred is a text that is not in the echo, has no digits (a number may change), is long, and
    is low on the screen. The text is empty if nothing is new, or only what is masked, refused, or
    not the same another time.
    """
    typed = typed.strip()
    found: list[tuple[tuple[bool, bool, int, int], str]] = []
    for number, whole in enumerate(after.texts):
        if typed and (whole.endswith(typed) or _is_masked_echo(whole, typed)):
            continue  # the echo itself
        if typed and number == before.cursor[0] and _is_begun_echo(before, whole, typed):
            continue
        for text in _phrases(whole, changing):
            if number == before.cursor[0] and _is_insertion(before, text, typed):
                continue
            if text not in before.text and not refused(text):
                rank = text not in typed, not _DIGIT.search(text), min(len(text), 20), number
                found.append((rank, text))
    if not found:
        return "", False
    (outside, *_), text = max(found)
    return text, not outside


def _is_begun_echo(before: SeenScreen, row: str, typed: str) -> bool:
    """Return whether the row of the cursor has got the beginning of a typed text, whose rest is
    still to come."""
    old = before.cursor_text
    return row.startswith(old) and typed.startswith(row[len(old) :].strip())


def _is_insertion(before: SeenScreen, text: str, typed: str) -> bool:
    """Return whether a text was there, but for what was typed into it."""
    sizes = range(len(typed), 0, -1)
    return any(
        typed[:size] in text and text.replace(typed[:size], "", 1).strip() in before.cursor_text
        for size in sizes
    )


def _is_masked_echo(row: str, typed: str) -> bool:
    """Return whether a row ends in a typed text of which the end is masked."""
    shown, masked, _ = row.partition(HIDDEN)
    return bool(masked) and any(shown.endswith(typed[:size]) for size in range(3, len(typed)))


def _phrases(row: str, changing: Iterable[str] = ()) -> list[str]:
    """Return the parts of a row between gaps, the lines of boxes, masked and changing texts."""
    row = _CHANGING.sub(HIDDEN, row)
    for word in changing:
        row = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", HIDDEN, row)
    parts = _GAP.split(row)
    texts = [part.strip() for part in parts]
    return [text[:CANDIDATE_CHARS].strip() for text in texts if _SAID.search(text)]
