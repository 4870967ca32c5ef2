"""The last inputs of a session: when, by whom, of which kind, and the text without its secrets.

Recording costs little, because nothing is redacted until somebody reads. A reader gets the texts
masked as one text: a token that was typed key by key is found, also where half of it has fallen out
of the log, and the line before the cursor counts as context (`Password: `). The end of the text is
held back while it may still become a secret.

A text that the terminal does not show is not kept. Without echo in canonical mode that is known at
once, as for the password of sudo. Otherwise a line is shown only if it stands in the output that
followed: the kernel echoes it, or the program draws it itself, as shells with line editing and
editors do. To trust the echo flag is not enough, as a program may switch it off before it reads.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import groupby
from operator import itemgetter, or_
from typing import TYPE_CHECKING, Final

from telex.redaction.limits import HELD_SECRET_CHARS
from telex.terminal import actions, limits
from telex.terminal.keys import parse_key
from telex.terminal.transcript import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.redaction import Redactor
    from telex.rpc.identity import Identity
    from telex.terminal.actions import Action, InputKind
    from telex.terminal.transcript import Delta, Transcript

_GONE: Final = "\0"
"""Stands for a line that is not kept."""
_LINE: Final = re.compile(r"[^\r\n]+")
_DRAWN_TOGETHER: Final = re.compile(
    r"\x1b[\[O][0-?]*[ -/]*[@-~]|[\x00-\x07\t-\x1f]|([^\x00-\x07\t-\x1f]+)"
)
"""A key that types nothing, or text between two of them."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_UNCOMPARED: Final = re.compile(r"[\s\x00-\x1f\x7f]+")
"""Characters that do not count when typed text is compared with output, which may wrap it."""
_USUAL_ECHO: Final = 256
"""Characters after its beginning in which most text is drawn. They are searched first."""
_RUB_OUT: Final = "\x7f\b"
_TYPED_KEYS: Final = {"enter": "\n", "backspace": "\x7f"}
_ABANDONING: Final = ("interrupt", "eof")
"""Keys after which a line is abandoned."""


class AuthoredInput:
    """One input. `name` is always shown; `typed` are the characters, which may be secret."""

    __slots__ = ("at", "cursor", "kind", "name", "number", "prompt", "sequence", "typed", "who")

    def __init__(self, who: Identity, kind: InputKind, name: str, typed: str = "") -> None:
        self.who = who
        self.kind = kind
        self.name = name
        self.typed = typed
        self.prompt = ""
        """The line before the cursor, if this input begins a line."""
        self.number = self.sequence = self.cursor = 0
        self.at = 0.0

    @property
    def size(self) -> int:
        return len(self.name) + len(self.typed) + len(self.prompt)

    @property
    def context(self) -> str:
        """The typed text after its prompt, on a line of its own."""
        return f"\n{self.prompt}{self.typed}" if self.prompt else self.typed


def described(action: Action, who: Identity) -> AuthoredInput | None:
    """Return the entry of an action; None for one that sends nothing. Raises UnknownKey."""
    match action:
        case actions.Text(value):
            return AuthoredInput(who, "bytes" if _CONTROL.search(value) else "text", "", value)
        case actions.StreamText(value):
            return AuthoredInput(who, "text", "", value.text)
        case actions.Paste(value) | actions.BracketedPaste(value):
            return AuthoredInput(who, "paste", "", value)
        case actions.Key(value):
            press = parse_key(value)
            if press.ctrl or press.alt:
                return AuthoredInput(who, "key", value)
            if press.key == "space":
                return AuthoredInput(who, "key", "", " ")
            if len(press.key) == 1:
                return AuthoredInput(
                    who, "key", "", press.key.upper() if press.shift else press.key
                )
            return AuthoredInput(who, "key", press.key, _TYPED_KEYS.get(press.key, ""))
        case actions.Mouse(value):
            how = value.event if "scroll" in value.event else f"{value.event} {value.button}"
            return AuthoredInput(who, "mouse", f"{how} at row {value.row}, column {value.col}")
        case actions.Resize(value):
            return AuthoredInput(who, "resize", f"{value.cols}x{value.rows}")
        case actions.Signal(value):
            return AuthoredInput(who, "signal", value)
        case actions.Kill():
            return AuthoredInput(who, "signal", "kill")
        case actions.Interrupt():
            return AuthoredInput(who, "key", "interrupt")
        case actions.Eof():
            return AuthoredInput(who, "key", "eof")
        case actions.MarkTranscript():
            return None


class InputLog:
    """The inputs of one session, bounded in number and size."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._inputs: deque[AuthoredInput] = deque()
        self._size = 0
        self._count = 0
        self._before = ""
        """The end of the text of inputs that fell out: a secret may have begun there."""
        self._settled = 0
        """The number of the last input of which is decided whether it was drawn."""
        self._settle_at = 2 * limits.INPUT_ECHO_CHARS
        self.at_line_start = True
        """Whether the next typed text begins a line, so that its prompt is wanted."""

    @property
    def count(self) -> int:
        """The number of the last input, of all since the session began."""
        return self._count

    def add(self, entry: AuthoredInput, *, hidden: bool = False) -> None:
        """Record an input, just before it is written. `hidden` says that nothing shows it."""
        self._count += 1
        entry.number = self._count
        typed = entry.typed
        ends_line = typed.endswith(("\r", "\n")) or entry.name in _ABANDONING
        if _GONE in typed:
            typed = typed.replace(_GONE, "\ufffd")
        if len(typed) > limits.INPUT_TEXT_CHARS:
            typed = _shortened(typed)
        if hidden:
            typed = _LINE.sub(_GONE, typed)
        entry.typed = typed
        if typed or ends_line:
            self.at_line_start = ends_line
        entry.cursor = self._transcript.cursor
        self._inputs.append(entry)
        self._size += entry.size
        while len(self._inputs) > limits.INPUTS_LOGGED or self._size > limits.INPUT_LOG_CHARS:
            self._drop()
        if entry.cursor > self._settle_at:
            self._settle()
            self._settle_at = entry.cursor + 2 * limits.INPUT_ECHO_CHARS

    def withdraw(self, entry: AuthoredInput) -> None:
        """Remove an input that was not sent after all."""
        if entry in self._inputs:
            self._inputs.remove(entry)
            self._size -= entry.size
        entry.typed = entry.prompt = ""

    def read(
        self, redactor: Redactor, since: int | None, limit: int
    ) -> tuple[list[tuple[AuthoredInput, str]], bool]:
        """Return inputs with their texts: the first `limit` after the number `since`, or the last
        without it. Also return whether inputs before them are no longer kept."""
        first = self._inputs[0].number if self._inputs else self._count + 1
        wanted = [
            at for at, each in enumerate(self._inputs) if since is None or each.number > since
        ]
        wanted = wanted[-limit:] if since is None else wanted[:limit]
        self._settle()
        texts = self._masked_texts(redactor) if wanted else []
        found = [(self._inputs[at], texts[at]) for at in wanted]
        return found, first > (since or 0) + 1

    def _settle(self) -> None:
        """Forget the lines that were not drawn, where their time for that has passed."""
        until = self._transcript.cursor - limits.INPUT_ECHO_CHARS
        for line, flags in self._unsettled():
            if line[0].cursor > until:
                return
            for each in line:
                kept = _replaced(each.typed, flags[: len(each.typed)], _GONE)
                flags = flags[len(each.typed) :]
                self._size -= len(each.typed) - len(kept)
                each.typed = kept
            self._settled = line[-1].number

    def _unsettled(self) -> Iterator[tuple[list[AuthoredInput], bytes]]:
        """Yield the lines that may still be drawn, as inputs, with a flag for each character: 1 if
        it does not stand in the output so far."""
        output: Delta | None = None
        for line in self._unsettled_lines():
            output = output or self._transcript.since(line[0].cursor)
            at = len(output.text) - (output.cursor - line[0].cursor)
            text = "".join([each.typed for each in line])
            printed = output.text[at : at + limits.INPUT_ECHO_CHARS] if at >= 0 else ""
            flags = _undrawn(text, printed[: len(text) + _USUAL_ECHO])
            yield line, _undrawn(text, printed) if any(flags) else flags

    def _unsettled_lines(self) -> Iterator[list[AuthoredInput]]:
        line: list[AuthoredInput] = []
        for each in self._inputs:
            if each.number <= self._settled:
                continue
            if not each.name:
                line.append(each)
            if line and (each.name or each.typed.endswith(("\r", "\n"))):
                yield line
                line = []
        if line:
            yield line

    def _drop(self) -> None:
        oldest = self._inputs.popleft()
        self._size -= oldest.size
        self._before = (self._before + oldest.context)[-HELD_SECRET_CHARS:]

    def _masked_texts(self, redactor: Redactor) -> list[str]:
        """Return the text of every input, with secrets replaced."""
        joined = "".join([self._before, *[each.context for each in self._inputs]])
        hidden = bytearray(len(joined))
        for gone in re.finditer(_GONE, joined):
            hidden[gone.start()] = 1
        for view in self._views(joined):
            _hide_secrets(joined, view, redactor, hidden)
        undrawn: dict[AuthoredInput, bytes] = {}
        for line, flags in self._unsettled():
            for each in line:
                undrawn[each], flags = flags[: len(each.typed)], flags[len(each.typed) :]
        texts, at = [], len(self._before)
        for each in self._inputs:
            at += len(each.context)
            flags = bytes(hidden[at - len(each.typed) : at])
            if each in undrawn:
                flags = bytes(map(or_, flags, undrawn[each]))
            texts.append(each.name or _replaced(each.typed, flags, redactor.replacement))
        return texts

    def _views(self, joined: str) -> Iterator[Sequence[int]]:
        """Yield the places of the characters to search together: those with the prompts and, where
        there are prompts, those without. Half an echo of the line before can stand as a prompt, and
        a token that begins inside a word is not recognised."""
        yield from _readings(joined, range(len(joined)))
        if any(each.prompt for each in self._inputs):
            typed: list[int] = []
            at = len(self._before)
            for each in self._inputs:
                at += len(each.context)
                typed += range(at - len(each.typed), at)
            yield from _readings(joined, typed)


def _undrawn(text: str, output: str) -> bytes:
    """Flag the characters of a typed text that do not stand in an output."""
    drawn, flags = _UNCOMPARED.sub("", strip_escapes(output)), bytearray(len(text))
    for part in _DRAWN_TOGETHER.finditer(text):
        if part[1] and _UNCOMPARED.sub("", part[1]) not in drawn:
            flags[part.start() : part.end()] = b"\1" * len(part[1])
    return bytes(flags)


def _shortened(text: str) -> str:
    """Return the beginning of a long text, up to a blank: half a secret is not recognised."""
    words = text[: limits.INPUT_TEXT_CHARS].rpartition(" ")[0]
    lines = text[: limits.INPUT_TEXT_CHARS].rpartition("\n")[0]
    return f"{max(words, lines, key=len)}{_GONE}"


def _readings(joined: str, places: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the places as typed and, where characters were rubbed out, as the text was left."""
    if not any(rub_out in joined for rub_out in _RUB_OUT):
        yield places
        return
    yield [at for at in places if joined[at] not in _RUB_OUT]
    left: list[int] = []
    for at in places:
        if joined[at] not in _RUB_OUT:
            left.append(at)
        elif left:
            left.pop()
    yield left


def _hide_secrets(joined: str, view: Sequence[int], redactor: Redactor, hidden: bytearray) -> None:
    """Flag the secrets of a text, and its end while it may still become one."""
    text = joined if isinstance(view, range) else "".join([joined[at] for at in view])
    spans = redactor.spans(text)
    if not redactor.extra_regexes:  # a regex does not tell how its match may begin
        end = redactor.stream()
        end.feed(text[-HELD_SECRET_CHARS:])
        spans.append((len(text) - end.held, len(text)))
    for begin, end_of in spans:
        for at in view[begin:end_of]:
            hidden[at] = 1


def _replaced(text: str, flags: bytes, replacement: str) -> str:
    """Return the text with a replacement for each run of flagged characters."""
    if not any(flags):
        return text
    runs = groupby(zip(text, flags, strict=True), key=itemgetter(1))
    return "".join(
        [replacement if flag else "".join([char for char, _ in run]) for flag, run in runs]
    )
