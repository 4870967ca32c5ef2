"""The redactor: secrets out of a whole text, or out of one that comes in pieces.

A `Redactor` is a value: the default rules, a caller's extra ones and the marker; share it freely.
Its `stream()` has a memory and belongs to one text. Both are the same machine, so what a stream
says is the redacted whole text, wherever the cuts fell.

A stream releases text at once unless it may be part of a secret; what is held back is the
undecided value, at most `HELD_SECRET_CHARS` of it, escape sequences included. A longer one is
taken for a secret, and what follows of it is dropped as it comes. There is no clock: only more text
or `finish` releases what is held. Escape sequences inside a secret are kept, after the marker.

It hides secrets that programs show by accident. It is no defence against a program that wants to
get one past it: any encoding the rules do not know would do.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import re2

from telex.redaction import command_lines, visible
from telex.redaction.lane import Lane, LaneVerdict
from telex.redaction.limits import HELD_SECRET_CHARS
from telex.redaction.rules import LEAD_CHARS, LITERAL_LEAD, Rulebook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MARKER: Final = "[REDACTED]"
PLAIN_CHARS: Final = 4 * HELD_SECRET_CHARS
"""So much text is searched at once, if there are no sequences in it."""
CLOSE_LOOK_CHARS: Final = 512
"""So much is looked at, if a secret may begin in it, before passing over text is tried again."""
DENSE_CHARS: Final = 128
"""If there was a secret in so many characters, twice as much is looked at before that."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class RuleRefused(ValueError):
    """A caller's rule that cannot be used. The text is for the caller; it quotes no literal."""


class LiteralRefused(RuleRefused):
    """A literal of blanks alone, of which nothing could be hidden, or one too long to hold back."""


class RegexRefused(RuleRefused):
    """A pattern that RE2 does not accept."""


class RegexesNeedWholeText(TypeError):
    """A stream was asked of a redactor with regexes.

    A regex does not tell how its match may begin, so a stream would have to hold everything back or
    let some of it escape. Whole texts have no such trouble.
    """


class StreamEnded(RuntimeError):
    """A finished stream was fed. It has decided all it held, so it cannot go on."""


Fragment = tuple[str, LaneVerdict]
Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Redactor:
    """The default rules with a caller's own, ready for any number of texts and streams."""

    extra_literals: tuple[str, ...] = field(default=(), repr=False)
    """Hidden wherever they stand, from one character on: what is short hides much else, as its
    owner asked. One of several lines is hidden line by line, because a terminal ends lines in its
    own way; its lines of fewer than four characters are left alone, unless it has no others."""
    extra_regexes: tuple[str, ...] = ()
    """RE2 patterns, for whole texts only; whatever they match is hidden."""
    replacement: str = MARKER
    _book: Rulebook = field(init=False, repr=False, compare=False)
    _patterns: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        literals = {line for each in enumerate(self.extra_literals, 1) for line in _lines(*each)}
        book = Rulebook(self.replacement, tuple(sorted(literals)))
        object.__setattr__(self, "_book", book)
        object.__setattr__(self, "_patterns", tuple(map(_compiled, self.extra_regexes)))

    def redact(self, text: str) -> str:
        """The text with a marker in the place of each secret."""
        return _rendered(self._fragments(text), self.replacement)

    def redact_command(self, line: str) -> str:
        """A shell's command line with a marker in the place of each secret. Operators stay."""
        spans = command_lines.cut(self.spans(line), line)
        for start, end in command_lines.commands(line):
            spans += ((start + a, start + b) for a, b in self.spans(line[start:end]))
        shown: list[str] = []
        at = 0
        for start, end in sorted(spans):
            if start > at or not shown:
                shown += line[at:start], self.replacement
            at = max(at, end)
        return "".join((*shown, line[at:]))

    def spans(self, text: str) -> Ranges:
        """Where the hidden characters are: (start, end), in order.

        Escape sequences inside a secret are in no span, so a secret with some has several.
        """
        found: Ranges = []
        at = 0
        for fragment, verdict in self._fragments(text):
            end = at + len(fragment)
            if verdict is not LaneVerdict.SHOWN:
                start = found.pop()[0] if found and found[-1][1] == at else at
                found.append((start, end))
            at = end
        return found

    def stream(self) -> StreamRedactor:
        """For one text that comes in pieces."""
        if self.extra_regexes:
            raise RegexesNeedWholeText("a redactor with extra_regexes works on whole texts only")
        return StreamRedactor(self._book)

    def _fragments(self, text: str) -> list[Fragment]:
        quiet = 0 if self._patterns else self._quiet_until(text)
        if quiet == len(text):
            return [(text, LaneVerdict.SHOWN)]
        return StreamRedactor(self._book, self._matches(text)).whole(text, quiet)

    def _quiet_until(self, text: str) -> int:
        """How much of the text has no secret in it, as far as can be told at once."""
        if "\x1b" not in text:
            return self._book.quiet_until(text)
        if len(text) > HELD_SECRET_CHARS:
            return 0  # a flood of sequences would have to be told from a few
        return _quiet_until(self._book, text)

    def _matches(self, text: str) -> list[Ranges]:
        """What the regexes match, on the screen and in each control string."""
        if not self._patterns:
            return []
        texts = visible.texts(_SURROGATE.sub("\ufffd", text))
        return [
            [hit.span() for each in self._patterns for hit in each.finditer(t) if hit[0]]
            for t in texts
        ]


class StreamRedactor:
    """One text, redacted as it comes."""

    __slots__ = (
        "_book",
        "_ended",
        "_ground",
        "_hidden",
        "_lane",
        "_owner",
        "_queue",
        "_queued",
        "_tail",
        "_unfinished",
        "_untold",
    )

    def __init__(self, book: Rulebook, hidden: Sequence[Ranges] = ()) -> None:
        self._book = book
        self._hidden = hidden  # by owner, when the whole text was known beforehand
        self._owner = visible.TextOwner()
        self._lane = self._ground = self._lane_of_owner()
        self._queue: deque[tuple[Lane | None, str]] = deque()
        self._queued = 0
        self._tail = ""  # the end of the text, where it may begin a secret and nothing else is held
        self._unfinished = ""  # half an escape sequence says nothing until its other half comes
        self._untold = 0  # of what is held, the part that was read by `follow`
        self._ended = False

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return self._queued + len(self._tail) + len(self._unfinished)

    def feed(self, text: str) -> str:
        """What can be said now, of this text and of what was held back before."""
        if self._ended:
            raise StreamEnded("this stream was finished; ask the redactor for another one")
        read = self._read(text)
        return _rendered(self._told(read) if self._untold else read, self._book.marker)

    def follow(self, text: str) -> None:
        """Go on from a text that was told elsewhere, or is not to be told: of a secret that began
        in it the rest is hidden. Of the text itself nothing is said, but for a sequence cut off at
        its end, which means nothing without what follows."""
        self._read(text)
        self._untold = self._queued + len(self._tail)

    def finish(self) -> str:
        """The text has ended: everything held back, decided."""
        return _rendered(self._told(self._end()), self._book.marker)

    def whole(self, text: str, quiet: int = 0) -> list[Fragment]:
        """All of it at once, piece by piece with its verdict; the beginning is known to be
        `quiet`."""
        told: list[Fragment] = []
        rest = self._pass_over(text, quiet, told) if quiet else text
        return told + self._read(rest) + self._end()

    def _read(self, text: str) -> list[Fragment]:
        told: list[Fragment] = []
        size = HELD_SECRET_CHARS if "\x1b" in text else PLAIN_CHARS
        for at in range(0, len(text), size):
            self._step(text[at : at + size], told)
        return told

    def _told(self, fragments: list[Fragment]) -> Iterator[Fragment]:
        """All but what `follow` read; a secret that began there has its marker here."""
        for text, verdict in fragments:
            passed = min(self._untold, len(text))
            self._untold -= passed
            yield (text[passed:], verdict) if verdict is LaneVerdict.SHOWN else (text, verdict)

    def _step(self, text: str, told: list[Fragment]) -> None:
        most = CLOSE_LOOK_CHARS
        is_dense = False
        while text:
            text = self._waiting() + text
            if not is_dense and self._idle:
                quiet = _quiet_until(self._book, text, self._ground, self._hidden)
                text = self._pass_over(text, quiet, told)
                if not text:
                    return
                text = self._waiting() + text
            cut = most = min(most, HELD_SECRET_CHARS - self.held)
            if most < len(text):
                cut = text.rfind("\n", 0, most) + 1 or most
            read = self._look(text[:cut])
            told += read
            text = text[cut:]
            secrets = sum(verdict is LaneVerdict.HIDDEN for _, verdict in read)
            is_dense = secrets * DENSE_CHARS > cut
            most = 2 * most if is_dense else CLOSE_LOOK_CHARS

    def _look(self, text: str) -> list[Fragment]:
        """Read closely, rule by rule, no more than may be held."""
        told = self._route(text)
        told += self._release()
        while self.held >= HELD_SECRET_CHARS:
            lane, _ = self._queue[0]
            if lane is not None:
                lane.force()
            told += self._release()
        self._take_back()
        return told

    def _waiting(self) -> str:
        """What waits for more text, outside of any lane."""
        text = self._tail + self._unfinished
        if text:
            self._tail = self._unfinished = ""
        return text

    def _take_back(self) -> None:
        """If only the end of the text waits for what comes next, let it wait outside of the lane:
        most often nothing comes of it, and no closer look is needed."""
        if len(self._queue) == 1 and self._lane is self._ground is self._queue[0][0]:
            _, text = self._queue[0]
            if self._ground.unread():
                self._queue.clear()
                self._queued = 0
                self._tail = text

    @property
    def _idle(self) -> bool:
        return not self._queue and self._lane is self._ground and self._ground.idle

    def _pass_over(self, text: str, quiet: int, told: list[Fragment]) -> str:
        """Pass over so much of the text, or over its whole lines; the rest of the text."""
        for stop in (quiet, text.rfind("\n", 0, quiet) + 1):
            passed = self._pass(text[:stop]) if stop else None
            if passed is not None:
                told.append((text[:passed], LaneVerdict.SHOWN))
                return text[stop:]
        return text

    def _pass(self, text: str) -> int | None:
        """Pass over a text without a secret; how much of it can be shown: nearly always all.

        The end of it, which may begin a secret, waits for what comes next. None if that end is
        long, or in a control string.
        """
        apart = visible.apart(text)
        if apart is None:
            return None
        screen, bodies = apart
        parts, unfinished = visible.last_parts(screen, LEAD_CHARS)
        last = parts[-1:] if bodies else parts  # what stands before a control string is decided
        undecided = self._ground.skip(parts[::2], partial(visible.ends_within, last, LEAD_CHARS))
        if undecided is None:
            return None
        length = visible.length_of_end(parts, undecided) if undecided else 0
        stop = len(text) - len(unfinished) - length
        self._tail, self._unfinished = text[stop : stop + length], unfinished
        return stop

    def _route(self, text: str) -> list[Fragment]:
        """Give each run to the lane it belongs to, and queue everything in its order; unless all of
        it can be shown at once."""
        parts, self._unfinished = visible.split(text)
        if parts == [""]:
            return []
        lane, sequences = self._lane, parts[1::2]
        if lane is self._ground and not visible.opens_string(sequences):
            lane.add(parts[::2])
            end = len(text) - len(self._unfinished)
            if not self._queue and lane.show_all():
                return [(text[:end], LaneVerdict.SHOWN)]
            self._queue += [(None if n % 2 else lane, part) for n, part in enumerate(parts) if part]
            self._queued += end
            return []
        runs: list[str] = []
        for run, sequence in zip(parts[::2], [*sequences, ""], strict=True):
            runs.append(run)
            self._enqueue(self._lane, run)
            self._enqueue(None, sequence)
            if self._owner.pass_over(sequence):
                self._lane.add(runs)
                self._change_lane()
                runs = [""]  # the sequence that changed it parts words like any other
        self._lane.add(runs)
        return []

    def _enqueue(self, lane: Lane | None, text: str) -> None:
        if text:
            self._queue.append((lane, text))
            self._queued += len(text)

    def _change_lane(self) -> None:
        if self._lane is not self._ground:
            self._lane.finish()
        self._lane = self._lane_of_owner() if self._owner.number else self._ground

    def _lane_of_owner(self) -> Lane:
        number = self._owner.number
        return Lane(self._book, self._hidden[number] if number < len(self._hidden) else ())

    def _release(self) -> list[Fragment]:
        """Everything up to the first character that is undecided."""
        told: list[Fragment] = []
        while self._queue:
            lane, text = self._queue.popleft()
            if lane is None:
                self._queued -= len(text)
                told.append((text, LaneVerdict.SHOWN))
                continue
            settled = min(len(text), lane.settled - lane.emitted)
            self._queued -= settled
            if settled:
                lane.tell(text[:settled], told)
            if settled < len(text):
                self._queue.appendleft((lane, text[settled:]))
                break
        return told

    def _end(self) -> list[Fragment]:
        self._ended = True
        told = self._route(self._waiting()) if self._tail else []
        self._lane.finish()
        self._ground.finish()
        self._enqueue(None, self._unfinished)
        self._unfinished = ""
        return told + self._release()


def _quiet_until(
    book: Rulebook, text: str, lane: Lane | None = None, hidden: Sequence[Ranges] = ()
) -> int:
    """How much of the text has no secret in it, as far as can be told without a closer look. The
    lane is idle, and knows what came before."""
    apart = visible.apart(text)
    if apart is None:
        return 0
    screen, bodies = apart
    if bodies and (hidden or book.quiet_until(bodies) < len(bodies)):
        return 0
    if lane is None:
        quiet = book.quiet_until(screen)
    else:
        before = lane.context()
        quiet = book.quiet_until(before + screen, lane.breaks, len(before)) - len(before)
    if quiet == len(screen):
        return len(text)
    return max(0, quiet) if screen is text else 0


def _rendered(fragments: Iterable[Fragment], marker: str) -> str:
    said = []
    for text, verdict in fragments:
        if verdict is LaneVerdict.SHOWN:
            said.append(text)
        elif verdict is LaneVerdict.HIDDEN:
            said.append(marker)
    return "".join(said)


def _lines(number: int, literal: str) -> list[str]:
    """What of a literal a terminal would show: its lines, without the blanks around them."""
    shown = visible.texts(literal)[0]
    every = [line for line in map(str.strip, shown.splitlines()) if line]
    if not every:
        raise LiteralRefused(f"literal {number} is empty: it has nothing but blanks")
    lines = [line for line in every if len(line) >= LITERAL_LEAD] or every
    if any(len(line) >= HELD_SECRET_CHARS for line in lines):
        raise LiteralRefused(
            f"literal {number} is too long: a line may have {HELD_SECRET_CHARS - 1} characters"
        )
    return lines


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0].decode("utf-8", "replace")
        raise RegexRefused(f"the regex {pattern!r} was refused: {problem}") from None
    except UnicodeEncodeError:
        raise RegexRefused(f"the regex {pattern!r} holds a lone surrogate") from None
