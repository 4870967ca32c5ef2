"""The redactor: it replaces secrets in a whole text, or in a text that comes in pieces.

A `Redactor` is an immutable value: the default rules, the caller's extra rules and the marker. It
can be shared. Its `stream()` returns a `StreamRedactor`, which has state and belongs to one text.
Whole texts run through the same code, so the output of a stream is equal to the redacted whole
text, wherever the text was cut.

A stream releases text at once unless the text may be part of a secret. It holds back only the
undecided value, at most `HELD_SECRET_CHARS` characters with escape sequences included. A longer
value counts as a secret, and its further characters are dropped as they come. There is no clock:
only more text or `finish` releases held text. Escape sequences inside a secret are kept; they
follow the marker.

The redactor hides secrets that programs show by accident. It is no defence against a program that
encodes a secret on purpose.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import re2

from telex.redaction import command_lines, visible
from telex.redaction.limits import HELD_SECRET_CHARS
from telex.redaction.prefilter import LITERAL_LEAD, Rulebook
from telex.redaction.rules import LEAD_CHARS
from telex.redaction.scanner import Scanner, Visibility

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MARKER: Final = "[REDACTED]"
PLAIN_CHARS: Final = 4 * HELD_SECRET_CHARS
"""The number of characters that one search covers in text without escape sequences."""
CLOSE_LOOK_CHARS: Final = 512
"""The number of characters that the scanner reads where a secret may begin, before the prefilter is
tried again."""
DENSE_CHARS: Final = 128
"""The scanner's portion doubles while it finds at least one secret in this many characters."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SIGNS: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")
"""The characters that mean something in a pattern."""


class RuleRefused(ValueError):
    """A caller's rule cannot be used. The message is for the caller and quotes no literal."""


class LiteralRefused(RuleRefused):
    """A literal has nothing but blanks, so nothing could be hidden, or is too long to hold back."""


class RegexRefused(RuleRefused):
    """RE2 does not accept the pattern."""


class RegexesNeedWholeText(TypeError):
    """A stream was requested from a redactor with regexes.

    A regex does not tell how its match may begin, so a stream would have to hold back everything or
    let part of a match escape. Whole texts do not have this problem.
    """


class StreamEnded(RuntimeError):
    """A finished stream was fed. Its held text is already decided, so it cannot continue."""


Fragment = tuple[str, Visibility]
Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Redactor:
    """The default rules together with a caller's own, for any number of texts and streams.

    Example: `Redactor(extra_literals=("hunter2",)).redact(text)`.
    """

    extra_literals: tuple[str, ...] = field(default=(), repr=False)
    """Texts that are hidden wherever they stand, from one character on; a short literal hides much
    else, as its owner asked. A literal of several lines is hidden line by line, because a terminal
    ends lines in its own way; its lines of fewer than four characters are ignored, unless it has no
    others."""
    extra_regexes: tuple[str, ...] = ()
    """RE2 patterns for whole texts only; every match is hidden."""
    replacement: str = MARKER
    _rulebook: Rulebook = field(init=False, repr=False, compare=False)
    _patterns: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        literals = {line for each in enumerate(self.extra_literals, 1) for line in _lines(*each)}
        rulebook = Rulebook(self.replacement, tuple(sorted(literals)))
        object.__setattr__(self, "_rulebook", rulebook)
        object.__setattr__(self, "_patterns", tuple(map(_compiled, self.extra_regexes)))

    def redact(self, text: str) -> str:
        """Return the text with a marker in the place of each secret."""
        return _rendered(self._fragments(text), self.replacement)

    def redact_command(self, line: str) -> str:
        """Return a shell's command line with a marker for each secret. Operators stay readable."""
        shown: list[str] = []
        at = 0
        for start, end in self.command_spans(line):
            if start > at or not shown:
                shown += line[at:start], self.replacement
            at = max(at, end)
        return "".join((*shown, line[at:]))

    def command_spans(self, line: str) -> Ranges:
        """Return the places of the secrets in a shell's command line, in order. Some overlap."""
        spans = command_lines.cut_at_operators(self.spans(line), line)
        for start, end in command_lines.commands(line):
            spans += ((start + a, start + b) for a, b in self.spans(line[start:end]))
        return sorted(spans)

    def suspects(self, text: str) -> bool:
        """Return whether a text has a secret, also read without the signs of a pattern: in
        `token: x(?=y)` they part the secret from its label."""
        return any(self.spans(reading) for reading in (text, *_readings(text)))

    def quote(self, text: str, chars: int = 80) -> str:
        """Return a text as a sentence quotes it: masked, then cut, in quotation marks. Masked
        later, it could leak: quotation marks, escapes and the cut part a secret from its label."""
        shown = self.redact(text)
        for reading, rest in zip(_readings(text), _readings(shown), strict=True):
            if any(reading[start:end] in rest for start, end in self.spans(reading)):
                shown = self.replacement
                break
        return repr(shown if len(shown) <= chars else f"{shown[:chars]}…")

    def spans(self, text: str) -> Ranges:
        """Return the places of the hidden characters as (start, end), in order.

        Escape sequences inside a secret belong to no span, so a secret that contains some has
        several spans.
        """
        found: Ranges = []
        at = 0
        for fragment, verdict in self._fragments(text):
            end = at + len(fragment)
            if verdict is not Visibility.SHOWN:
                start = found.pop()[0] if found and found[-1][1] == at else at
                found.append((start, end))
            at = end
        return found

    def stream(self) -> StreamRedactor:
        """Return a redactor for one text that comes in pieces."""
        if self.extra_regexes:
            raise RegexesNeedWholeText("a redactor with extra_regexes works on whole texts only")
        return StreamRedactor(self._rulebook)

    def _fragments(self, text: str) -> list[Fragment]:
        clear = 0 if self._patterns else self._clear_until(text)
        if clear == len(text):
            return [(text, Visibility.SHOWN)]
        return StreamRedactor(self._rulebook, self._matches(text)).whole(text, clear)

    def _clear_until(self, text: str) -> int:
        """Return the length of the beginning in which the prefilter finds no secret."""
        plain = self._rulebook.plain_until(text)
        if plain is not None:
            return plain
        if "\x1b" not in text:
            return self._rulebook.clear_until(text)
        if len(text) > HELD_SECRET_CHARS:
            return 0  # `whole` counts sequences as held text, so it must read them in pieces
        return _clear_until(self._rulebook, text)

    def _matches(self, text: str) -> list[Ranges]:
        """Return the spans that the regexes match, for the screen and for each control string."""
        if not self._patterns:
            return []
        texts = visible.texts(_SURROGATE.sub("\ufffd", text))
        return [
            [hit.span() for each in self._patterns for hit in each.finditer(t) if hit[0]]
            for t in texts
        ]


class StreamRedactor:
    """The redactor of one text that comes in pieces. Call `feed` with each piece and `finish` at
    the end; both return text that is safe to show.

    The visible text of the screen has one scanner, and each control string has its own while it
    lasts. A queue keeps all pieces in their order until the scanners have decided them. While no
    scanner holds anything, the prefilter passes over text without queue and scanner.
    """

    __slots__ = (
        "_ended",
        "_hidden",
        "_owner",
        "_queue",
        "_queued",
        "_rulebook",
        "_scanner",
        "_screen",
        "_tail",
        "_unfinished",
        "_unreported",
    )

    def __init__(self, rulebook: Rulebook, hidden: Sequence[Ranges] = ()) -> None:
        self._rulebook = rulebook
        self._hidden = hidden  # spans of regex matches, by owner of the text
        self._owner = visible.TextOwner()
        self._scanner = self._screen = self._new_scanner()
        self._queue: deque[tuple[Scanner | None, str]] = deque()
        self._queued = 0
        self._tail = ""  # the undecided end, if no scanner holds text
        self._unfinished = ""  # the escape sequence cut off at the end
        self._unreported = 0  # the number of held characters that `follow` read
        self._ended = False

    @property
    def held(self) -> int:
        """The number of characters that are held back."""
        return self._queued + len(self._tail) + len(self._unfinished)

    def feed(self, text: str) -> str:
        """Read the next piece and return all text that is decided now, held text included."""
        if self._ended:
            raise StreamEnded("this stream was finished; ask the redactor for another one")
        read = self._read(text)
        return _rendered(self._reported(read) if self._unreported else read, self._rulebook.marker)

    def follow(self, text: str) -> None:
        """Read text that is not part of the output, for example because it was shown before. The
        rest of a secret that began in it is hidden. Only an escape sequence cut off at its end
        becomes output, because it has no meaning without its rest."""
        self._read(text)
        self._unreported = self._queued + len(self._tail)

    def finish(self) -> str:
        """End the text and return everything that was held back, decided."""
        return _rendered(self._reported(self._end()), self._rulebook.marker)

    def whole(self, text: str, clear: int = 0) -> list[Fragment]:
        """Return the fragments of a whole text. The prefilter found no secret in its first `clear`
        characters."""
        output: list[Fragment] = []
        rest = self._pass_over(text, clear, output) if clear else text
        return output + self._read(rest) + self._end()

    def _read(self, text: str) -> list[Fragment]:
        output: list[Fragment] = []
        size = HELD_SECRET_CHARS if "\x1b" in text else PLAIN_CHARS
        for at in range(0, len(text), size):
            self._step(text[at : at + size], output)
        return output

    def _reported(self, fragments: list[Fragment]) -> Iterator[Fragment]:
        """Drop the text that `follow` read. A secret that began there keeps its marker."""
        for text, verdict in fragments:
            passed = min(self._unreported, len(text))
            self._unreported -= passed
            yield (text[passed:], verdict) if verdict is Visibility.SHOWN else (text, verdict)

    def _step(self, text: str, output: list[Fragment]) -> None:
        most = CLOSE_LOOK_CHARS
        is_dense = False
        while text:
            text = self._waiting() + text
            if not is_dense and self._idle:
                clear = _clear_until(self._rulebook, text, self._screen, self._hidden)
                text = self._pass_over(text, clear, output)
                if not text:
                    return
                text = self._waiting() + text
            cut = most = min(most, HELD_SECRET_CHARS - self.held)
            if most < len(text):
                cut = text.rfind("\n", 0, most) + 1 or most
            read = self._look(text[:cut])
            output += read
            text = text[cut:]
            secrets = sum(verdict is Visibility.HIDDEN for _, verdict in read)
            is_dense = secrets * DENSE_CHARS > cut
            most = 2 * most if is_dense else CLOSE_LOOK_CHARS

    def _look(self, text: str) -> list[Fragment]:
        """Let the scanners read this text, which is no longer than may be held."""
        output = self._route(text)
        output += self._release()
        while self.held >= HELD_SECRET_CHARS:
            scanner, _ = self._queue[0]
            if scanner is not None:
                scanner.force()
            output += self._release()
        self._take_back()
        return output

    def _waiting(self) -> str:
        """Take the text that waits for more outside of the scanners."""
        text = self._tail + self._unfinished
        if text:
            self._tail = self._unfinished = ""
        return text

    def _take_back(self) -> None:
        """Move an undecided end out of the scanner, if the scanner holds nothing else, so that the
        prefilter can read it again with the next piece. Such an end rarely becomes a secret."""
        if len(self._queue) == 1 and self._scanner is self._screen is self._queue[0][0]:
            _, text = self._queue[0]
            if self._screen.unread():
                self._queue.clear()
                self._queued = 0
                self._tail = text

    @property
    def _idle(self) -> bool:
        return not self._queue and self._scanner is self._screen and self._screen.idle

    def _pass_over(self, text: str, clear: int, output: list[Fragment]) -> str:
        """Pass over the first `clear` characters, or over the whole lines in them, and return the
        rest of the text."""
        for stop in (clear, text.rfind("\n", 0, clear) + 1):
            passed = self._pass(text[:stop]) if stop else None
            if passed is not None:
                output.append((text[:passed], Visibility.SHOWN))
                return text[stop:]
        return text

    def _pass(self, text: str) -> int | None:
        """Pass over a text without a secret and return how many of its characters can be shown.

        The end of the text may begin a secret; it waits for the next piece. None if that end is
        long, or inside a control string.
        """
        apart = visible.split_control_strings(text)
        if apart is None:
            return None
        screen, bodies = apart
        parts, unfinished = visible.last_parts(screen, LEAD_CHARS)
        last = parts[-1:] if bodies else parts  # text before a control string is decided
        undecided = self._screen.skip(parts[::2], partial(visible.ends_within, last, LEAD_CHARS))
        if undecided is None:
            return None
        length = visible.length_of_end(parts, undecided) if undecided else 0
        stop = len(text) - len(unfinished) - length
        self._tail, self._unfinished = text[stop : stop + length], unfinished
        return stop

    def _route(self, text: str) -> list[Fragment]:
        """Give each run of visible characters to its scanner and queue all parts in order. Text
        that can be shown at once is returned instead."""
        parts, self._unfinished = visible.split(text)
        if parts == [""]:
            return []
        scanner, sequences = self._scanner, parts[1::2]
        if scanner is self._screen and not visible.opens_string(sequences):
            scanner.add(parts[::2])
            end = len(text) - len(self._unfinished)
            if not self._queue and scanner.show_all():
                return [(text[:end], Visibility.SHOWN)]
            self._queue += [
                (None if n % 2 else scanner, part) for n, part in enumerate(parts) if part
            ]
            self._queued += end
            return []
        runs: list[str] = []
        for run, sequence in zip(parts[::2], [*sequences, ""], strict=True):
            runs.append(run)
            self._enqueue(self._scanner, run)
            self._enqueue(None, sequence)
            if self._owner.pass_over(sequence):
                self._scanner.add(runs)
                self._switch_scanner()
                runs = [""]  # this sequence separates words, as any other does
        self._scanner.add(runs)
        return []

    def _enqueue(self, scanner: Scanner | None, text: str) -> None:
        if text:
            self._queue.append((scanner, text))
            self._queued += len(text)

    def _switch_scanner(self) -> None:
        if self._scanner is not self._screen:
            self._scanner.finish()
        self._scanner = self._new_scanner() if self._owner.number else self._screen

    def _new_scanner(self) -> Scanner:
        number = self._owner.number
        return Scanner(self._rulebook, self._hidden[number] if number < len(self._hidden) else ())

    def _release(self) -> list[Fragment]:
        """Return all queued text before the first undecided character."""
        output: list[Fragment] = []
        while self._queue:
            scanner, text = self._queue.popleft()
            if scanner is None:
                self._queued -= len(text)
                output.append((text, Visibility.SHOWN))
                continue
            settled = min(len(text), scanner.settled - scanner.emitted)
            self._queued -= settled
            if settled:
                scanner.emit(text[:settled], output)
            if settled < len(text):
                self._queue.appendleft((scanner, text[settled:]))
                break
        return output

    def _end(self) -> list[Fragment]:
        self._ended = True
        output = self._route(self._waiting()) if self._tail else []
        self._scanner.finish()
        self._screen.finish()
        self._enqueue(None, self._unfinished)
        self._unfinished = ""
        return output + self._release()


def _clear_until(
    rulebook: Rulebook, text: str, scanner: Scanner | None = None, hidden: Sequence[Ranges] = ()
) -> int:
    """Return the length of the beginning in which the prefilter finds no secret. The scanner is
    idle and remembers the text before this one; `hidden` is not empty if regexes matched."""
    apart = visible.split_control_strings(text)
    if apart is None:
        return 0
    screen, bodies = apart
    if bodies and (hidden or rulebook.clear_until(bodies) < len(bodies)):
        return 0
    if scanner is None:
        clear = rulebook.clear_until(screen)
    else:
        before = scanner.context()
        clear = rulebook.clear_until(before + screen, scanner.breaks, len(before)) - len(before)
    if clear == len(screen):
        return len(text)
    return max(0, clear) if screen is text else 0


def _rendered(fragments: Iterable[Fragment], marker: str) -> str:
    shown = []
    for text, verdict in fragments:
        if verdict is Visibility.SHOWN:
            shown.append(text)
        elif verdict is Visibility.HIDDEN:
            shown.append(marker)
    return "".join(shown)


def _readings(pattern: str) -> tuple[str, ...]:
    """Return a pattern without its escapes, and with nothing or blanks for its signs."""
    return pattern.replace("\\", ""), _SIGNS.sub("", pattern), _SIGNS.sub(" ", pattern)


def _lines(number: int, literal: str) -> list[str]:
    """Return the lines of a literal as a terminal would show them, without blanks around them."""
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
