"""Decides which text is new since a mark: on the screen, and in the transcript.

A mark is taken when input is typed. A wait with `since` must not be satisfied by text that was on
the screen before, nor by the terminal's echo of the input itself.

On the screen a character is old if it was there at the mark, wherever it has scrolled since, and
new otherwise. If the program only printed lines, the scrolling is known exactly: counting line
breaks back from the cursor finds the line of the mark, and nothing above it has changed. Comparing
texts alone could not distinguish a prompt from the same prompt printed again. If the program moves
its cursor up and down, its rows are compared with those of the mark: the distance that most rows
moved is assumed for the others too. After a clear nothing is old. In a row that differs, a
character is old if it is the same as at the mark: when `10%` becomes `20%`, its first character is
new.

Echo is found in the visible text, whether the kernel, readline or both wrote it. A line typed at a
prompt is echoed at the cursor. Of several lines typed at once, the kernel may echo all in a block,
or a shell may echo each at a later prompt when it reads it; input typed before a shell has started
is echoed twice. So each typed line is searched at the cursor, in the lines right below, and at the
end of a line that begins like a prompt. Output that merely equals the input (`cat`, `echo READY`)
is on a line of its own and is not echo. This is a heuristic that prefers new: text that is not
recognised as echo is not hidden.

Pure; used by `conditions` and `near_misses`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, OrderedDict
from dataclasses import dataclass
from operator import ne
from typing import TYPE_CHECKING, Final

from telex.terminal import limits
from telex.terminal.cells import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from telex.terminal.cells import Row
    from telex.terminal.waits.evidence import Moment, PrintedLines
    from telex.terminal.waits.matchers import Since


_TO_ALTERNATE: Final = r"\x1b\[\?(?:\d+;)*(?:47|1047|1049)(?:;\d+)*"
_ALTERNATE_AND_BACK: Final = re.compile(rf"(?s){_TO_ALTERNATE}h.*?{_TO_ALTERNATE}l")
_CLEARS: Final = re.compile(
    rf"\x1bc|\x1b\[2J|\x1b\[(?:1?(?:;1?)?)[Hf](?:\x1b\[[\d;]*m)?\x1b\[0?J|{_TO_ALTERNATE}[hl]"
)
_MOVES_ROWS: Final = re.compile(r"\x1b(?:[78DEM]|\[[\d;?]*[ABEFHLMSTdefrsu]|\[1J)")
_LINE_BREAKS: Final = "\n\v\f"
_DIFFERENT: Final = re.compile(rb"\x01+")


@dataclass(frozen=True, slots=True)
class Mark:
    """The state of a session when input was typed."""

    sequence: int
    rows: tuple[str, ...]
    """The texts of the visible rows."""
    cursor: Cursor
    transcript: int
    """The transcript's cursor."""
    typed: str = ""
    """The input typed after the mark. It may begin with earlier input in the same line that was not
    echoed yet. Empty where no echo is expected.
    """


class NewSpans:
    """The new parts of a text, as spans in ascending order."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = [end for _, end in ordered]

    def touches(self, start: int, end: int) -> bool:
        """Return whether a match contains new text or, if it is empty, is next to new text."""
        if start == end:
            start, end = start - 1, end + 1
        nth = bisect_right(self._ends, start)
        return nth < len(self._starts) and self._starts[nth] < end

    def finds(self, wanted: str, text: str) -> bool:
        """Return whether the wanted text occurs with new text in it."""
        at = text.find(wanted)
        while at >= 0:
            if self.touches(at, at + len(wanted)):
                return True
            nth = bisect_right(self._ends, at)  # continue at the next new span
            beyond = self._starts[nth] if nth < len(self._starts) else len(text) + 1
            at = text.find(wanted, max(at + 1, beyond - len(wanted)))
        return False


def new_on_screen(mark: Mark, moment: Moment, lines: PrintedLines | None = None) -> NewSpans:
    """Return the new parts of `moment.text`, or of another reading of its rows."""
    printed = moment.transcript.since(mark.transcript)
    if not printed:  # rows may have moved by a resize, but all of them are old
        return NewSpans(())
    complete = moment.transcript.cursor - mark.transcript == len(printed)
    rows = moment.rows
    place = _map_rows(mark, rows, moment.cursor, printed if complete else None)
    echoed = _echoed(mark, rows, place, moment.cursor)
    spans: list[tuple[int, int]] = []
    start = 0
    for number, row in enumerate(rows):
        fresh = place.new_in(number, row.text)
        if fresh:
            parts = _without(fresh, echoed.get(number, ()))
            if lines is None:
                spans += [(start + a, start + b) for a, b in parts]
            else:
                spans += [lines.place(number, a, b, row.text) for a, b in parts]
        start += len(row.text) + 1
    return NewSpans(spans)


def new_in_transcript(mark: Mark, printed: str) -> NewSpans:
    """Return the new parts of the text printed since a mark: all except the echo."""
    spans = echo_in_printed(mark.typed, _prompt(mark), printed) if mark.typed else []
    return NewSpans(_without([(0, len(printed))], spans))


# The present rows of the mark.


@dataclass(frozen=True, slots=True)
class _RowMapping:
    """The mapping from the rows of a screen to those of a mark."""

    old: tuple[str, ...]
    shift: int | None
    """Row n was row n + shift; None if no row of the mark is left."""
    untouched: int = 0
    """The number of rows at the top that are old without comparison."""
    in_place: frozenset[int] = frozenset()
    """Rows that did not move with the others: their unchanged text is old as well."""

    def new_in(self, number: int, text: str) -> list[tuple[int, int]]:
        """Return the new spans of a row."""
        if number < self.untouched or not text:
            return []
        if number in self.in_place and self.old[number] == text:
            return []
        was = number + self.shift if self.shift is not None else -1
        before = self.old[was] if 0 <= was < len(self.old) else ""
        return _differing(text, before)


def _differing(text: str, before: str) -> list[tuple[int, int]]:
    if text == before:
        return []
    shared = min(len(text), len(before))
    spans = [found.span() for found in _DIFFERENT.finditer(bytes(map(ne, text, before)))]
    if shared < len(text):
        spans.append((shared, len(text)))
    return spans


def _map_rows(
    mark: Mark, rows: tuple[Row, ...], cursor: Cursor, printed: str | None
) -> _RowMapping:
    if printed is not None:
        if "\x1b" in printed:
            printed = _ALTERNATE_AND_BACK.sub("", printed)
            if _CLEARS.search(printed):
                return _RowMapping(mark.rows, None)
        if "\x1b" not in printed or not _MOVES_ROWS.search(printed):
            return _counted(mark, rows, cursor, sum(map(printed.count, _LINE_BREAKS)))
    return _compared(mark, rows)


def _counted(mark: Mark, rows: tuple[Row, ...], cursor: Cursor, breaks: int) -> _RowMapping:
    """Find the line of the mark by going up as many line breaks as were printed."""
    last = min(cursor.row, len(rows) - 1)
    while breaks:
        last -= 1
        if last < 0:
            return _RowMapping(mark.rows, None)
        breaks -= not rows[last].wrapped
    first = last
    while first > 0 and rows[first - 1].wrapped:
        first -= 1
    # The line may be wrapped; its text at the mark decides which of its rows it was.
    prompt = _prompt(mark).rstrip(" ")
    candidates = range(first, last + 1)
    row = next((n for n in candidates if rows[n].text.startswith(prompt)), first)
    return _RowMapping(mark.rows, mark.cursor.row - row, untouched=row)


def _compared(mark: Mark, rows: tuple[Row, ...]) -> _RowMapping:
    """Find the shift by rows that occur exactly once in both screens.

    The row of the cursor is ignored: a prompt looks like the next prompt.
    """
    texts = [row.text for row in rows]
    now, then = _once(texts), _once(mark.rows)
    then.pop(mark.rows[mark.cursor.row] if mark.cursor.row < len(mark.rows) else "", None)
    votes = Counter(then[text] - now[text] for text in now.keys() & then.keys())
    shift, most = max(votes.items(), key=lambda vote: (vote[1], vote[0] == 0), default=(0, 0))
    if shift < 0 and most < 2:  # scrolling down is rare; a single row may be chance
        shift = 0
    staying = () if not shift else set(range(min(len(texts), len(mark.rows)))) - {mark.cursor.row}
    return _RowMapping(mark.rows, shift, in_place=frozenset(staying))


def _once(texts: Sequence[str]) -> dict[str, int]:
    """Return the row of each text that is not blank and occurs in one row only."""
    times = Counter(texts)
    return {text: n for n, text in enumerate(texts) if text and times[text] == 1}


# Echo in the rows of the screen.


def _prompt(mark: Mark) -> str:
    """Return the text left of the cursor."""
    if mark.cursor.row >= len(mark.rows):
        return ""
    return mark.rows[mark.cursor.row].ljust(mark.cursor.col)[: mark.cursor.col]


def _echoed(
    mark: Mark, rows: tuple[Row, ...], place: _RowMapping, cursor: Cursor
) -> dict[int, list[tuple[int, int]]]:
    """Return the spans of each row that are the echo of typed input."""
    if not mark.typed:
        return {}
    row, offset = _cursor_then(mark, rows, place)
    lines = list(_lines(rows, row))
    unfinished = next((n for n, line in enumerate(lines) if line.holds(cursor.row)), None)
    texts = [line.text for line in lines]
    spans: dict[int, list[tuple[int, int]]] = {}
    for nth, start, end in echo_in_lines(mark.typed, _prompt(mark), texts, offset, unfinished):
        for number, a, b in lines[nth].places(start, end):
            spans.setdefault(number, []).append((a, b))
    return spans


def _cursor_then(mark: Mark, rows: tuple[Row, ...], place: _RowMapping) -> tuple[int, int | None]:
    """Return the present row of the mark's cursor and the offset in its text; if that row is gone,
    the first row and None.
    """
    row = -1 if place.shift is None else mark.cursor.row - place.shift
    if not 0 <= row < len(rows):
        return 0, None
    left = rows[row].cells[: mark.cursor.col]
    return row, sum([len(cell.text) or 1 for cell in left if cell.width])


@dataclass(frozen=True, slots=True)
class _WrappedLine:
    """A line of text, and the rows that show it."""

    first: int
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def holds(self, row: int) -> bool:
        return self.first <= row < self.first + len(self.pieces)

    def places(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Return row, begin and end of each part of a span of the line."""
        for row, piece in enumerate(self.pieces, self.first):
            if start < len(piece) and end > 0:
                yield row, max(start, 0), min(end, len(piece))
            start, end = start - len(piece), end - len(piece)


def _lines(rows: tuple[Row, ...], begin: int) -> Iterator[_WrappedLine]:
    first, pieces = begin, []
    for number in range(begin, len(rows)):
        row = rows[number]
        if row.wrapped:  # blanks at its end are part of the line
            pieces.append(row.printed_text)
            continue
        yield _WrappedLine(first, (*pieces, row.text))
        first, pieces = number + 1, []
    if pieces:
        yield _WrappedLine(first, tuple(pieces))


def _without(
    spans: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Return the spans without the holes."""
    for start, end in spans:
        at = start
        for a, b in sorted(holes):
            if a < end and b > at:
                if at < a:
                    yield at, a
                at = b
        if at < end:
            yield at, end


# The marks of a session.


THE_BEGINNING: Final = Mark(sequence=0, rows=(), cursor=Cursor(), transcript=0, typed="")


class Marks:
    """The moments of one session that a `since` can refer to, newest last.

    A caller that gets a sequence number, or the mark of an input, may use it later as `since`. So
    the visible rows are kept at each such moment; unchanged rows are the same strings, so a mark is
    cheap. The oldest marks are dropped, and for a sequence number before them everything is new.
    """

    def __init__(self) -> None:
        self._named: OrderedDict[str, Mark] = OrderedDict()
        self._numbered: OrderedDict[int, Mark] = OrderedDict()
        self._count = 0

    def add_named(self, mark: Mark) -> str:
        """Keep the mark of an input. Return its name."""
        self._count += 1
        name = f"m{self._count}"
        self._named[name] = mark
        _forget(self._named)
        return name

    def add(self, mark: Mark) -> None:
        """Keep a moment whose sequence number is sent to callers."""
        self._numbered[mark.sequence] = mark
        self._numbered.move_to_end(mark.sequence)
        _forget(self._numbered)

    def find(self, since: Since) -> Mark | None:
        """Return the mark of that moment; None for a name that was never issued."""
        if isinstance(since, str):
            return self._find_name(since)
        before = (mark for number, mark in reversed(self._numbered.items()) if number <= since)
        return next(before, THE_BEGINNING)

    def _find_name(self, name: str) -> Mark | None:
        if name in self._named:
            return self._named[name]
        number = name.removeprefix("m")
        was_ours = number.isdecimal() and len(number) < 20 and 0 < int(number) <= self._count
        return THE_BEGINNING if was_ours and name == f"m{int(number)}" else None


def _forget(marks: OrderedDict[str, Mark] | OrderedDict[int, Mark]) -> None:
    if len(marks) > limits.MARKS_KEPT:
        marks.popitem(last=False)


# Echo in lines of text.


EchoSpan = tuple[int, int, int]
"""The number of a line, and a span in it."""

_TYPED_CHARS: Final = 4096
_LINES: Final = 64
_PRINTED_CHARS: Final = 16 * 1024
"""The size of the printed text that is searched: an echo comes at once, or hardly matters."""

# A control string is skipped with its body; `redaction.visible` keeps the bodies, and no backspace.
_SEQUENCE: Final = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|\[[ -?]*[@-~]|[ -/]*[0-~])"
    r"|[\x00-\x07\x0d-\x1f\x7f]"
)
_ERASED: Final = re.compile(r"[^\x08]\x08|^\x08+")
_LINE_END: Final = re.compile(r"\r\n?|\n")
_RUBBED_OUT: Final = re.compile(r"[^\x7f\x08][\x7f\x08]|^[\x7f\x08]+")
"""A character with its erasure; several erasures in a row take several passes."""
_PROMPT_ENDS: Final = (">", "$", "#", "%", "❯", "»", "λ", "...")


def typed_lines(typed: str) -> list[str]:
    """Return the typed lines, as far as the form of their echo can be known."""
    lines = _LINE_END.split(typed[:_TYPED_CHARS])[:_LINES]
    return [_as_echoed(line) for line in lines]


def _as_echoed(line: str) -> str:
    line = line.rpartition("\x15")[2]  # kill: the text before it was erased
    while "\x7f" in line or "\b" in line:
        line = _RUBBED_OUT.sub("", line)
    # A tab is echoed as its completion, or as blanks.
    return _SEQUENCE.sub("", line).partition("\t")[0]


def echo_in_lines(
    typed: str,
    prompt: str,
    lines: Sequence[str],
    offset: int | None,
    unfinished: int | None = None,
) -> list[EchoSpan]:
    """Return the spans of the lines of a screen or of a transcript that are echo.

    `prompt` is the text left of the cursor when the typing began. If that place is known, it is at
    `offset` in the first of the lines. `unfinished` is the line that is still being written.
    """
    wanted = typed_lines(typed)
    found, below, complete = [], 0, False
    if offset is not None and lines:
        length, complete = _at_cursor(wanted[0], prompt, lines[0][offset:])
        found.append((0, offset, offset + length))
        below = 1
    block = _block(wanted, lines) if below else {}
    at = below if complete else 0  # the prompt itself may be printed after the mark, in that line
    for nth, line in enumerate(wanted):
        if not line.strip() or (nth == 0 and complete and prompt.strip()):
            continue
        later = _at_prompt(line.rstrip(" "), prompt, lines, at, unfinished)
        if later is not None:
            found.append(later)
            at = later[0] + 1
            # The kernel echoes what is typed ahead; the prompt then follows in the same line.
            ahead = _shared(line, lines[later[0]][: later[1]])
            found.append((later[0], 0, ahead if ahead == len(line) else 0))
        if nth in block and (later is None or not prompt.strip()):
            found.append(block[nth])
            at = max(at, nth + 1)
    return [place for place in found if place[1] < place[2]]


def _at_cursor(line: str, prompt: str, shown: str) -> tuple[int, bool]:
    """Return how much of the text at the cursor is echo, and whether that is the whole line.

    Some of the line may have been typed, and echoed, before the mark.
    """
    before = next((n for n in range(len(line), 0, -1) if prompt.endswith(line[:n])), 0)
    lengths = [(_shared(line[n:], shown), n) for n in {0, before}]
    length, skipped = max(lengths)
    return length, length + skipped >= len(line.rstrip(" "))


def _shared(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _block(wanted: list[str], lines: Sequence[str]) -> dict[int, EchoSpan]:
    """Return the lines below the cursor that equal the typed lines, in the same order."""
    block = {}
    for nth in range(1, min(len(wanted), len(lines))):
        if lines[nth] != wanted[nth]:
            break
        block[nth] = (nth, 0, len(wanted[nth]))
    return block


def _at_prompt(
    line: str, prompt: str, lines: Sequence[str], begin: int, unfinished: int | None
) -> EchoSpan | None:
    for nth in range(begin, len(lines)):
        shown = lines[nth].rstrip(" ")
        before = len(shown) - len(line)
        if shown.endswith(line) and _is_prompt(shown[:before], prompt):
            return nth, before, len(shown)
        if nth == unfinished and (part := _arriving(line, prompt, shown)):
            return nth, len(shown) - part, len(shown)
    return None


def _arriving(line: str, prompt: str, shown: str) -> int:
    """Return how much of a line has been echoed at a prompt so far."""
    for length in range(min(len(line), len(shown)), 0, -1):
        if shown.endswith(line[:length]):
            return length if _is_prompt(shown[:-length], prompt) else 0
    return 0


def _is_prompt(text: str, prompt: str) -> bool:
    text, prompt = text.rstrip(), prompt.rstrip()
    return text.endswith(_PROMPT_ENDS) or (bool(text and prompt) and text[-1] == prompt[-1])


# Echo in a transcript, which contains escape sequences.


def echo_in_printed(typed: str, prompt: str, printed: str) -> list[tuple[int, int]]:
    """Return the spans of a text printed after a mark that are echo."""
    raw = printed[:_PRINTED_CHARS].split("\n")
    lines = [_visible(line) for line in raw]
    starts = [0]
    for line in raw:
        starts.append(starts[-1] + len(line) + 1)
    found = echo_in_lines(typed, prompt, lines, 0, len(raw) - 1)
    return sorted(
        (starts[nth] + a, starts[nth] + b)
        for nth, start, end in found
        for a, b in [_in_raw(raw[nth], lines[nth], start, end)]
    )


def _visible(line: str) -> str:
    """Return the visible text of a line. Readline wraps by writing a blank and overwriting it."""
    line = _SEQUENCE.sub("", line.replace(" \r", "")) if "\x1b" in line or "\r" in line else line
    while "\b" in line:
        line = _ERASED.sub("", line)
    return line


def _in_raw(raw: str, seen: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of a span in a line, with its sequences; up to the ends of the line if no
    other text is there.
    """
    if "\b" in raw or " \r" in raw:  # overwritten text: take the whole line
        return 0, len(raw) + 1
    places = list(_places(raw))
    begin = places[start] if start else 0
    return begin, len(raw) + 1 if end == len(seen) else places[end - 1] + 1


def _places(raw: str) -> Iterator[int]:
    """Return the position of each visible character."""
    at = 0
    for sequence in _SEQUENCE.finditer(raw):
        yield from range(at, sequence.start())
        at = sequence.end()
    yield from range(at, len(raw))
