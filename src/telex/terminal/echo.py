"""The echo of what was typed, found in what is shown: by the kernel, by readline, or both.

A line typed at a prompt is echoed right where the cursor stood. Of several lines typed at once the
kernel may echo all in a block, or a shell each one at a later prompt as it comes to it; what is
typed before a shell has started is echoed twice. So each typed line is looked for at the cursor, in
the lines right below, and at the end of a line that begins like a prompt. A program's output that
merely equals what was typed (`cat`, `echo READY`) stands on a line of its own and is none.

This is a judgement about text, made to err towards new: what is not recognised is not hidden. Pure;
used by `since`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Found = tuple[int, int, int]
"""Which line, and from where to where in it."""

_TYPED_CHARS: Final = 4096
_LINES: Final = 64
_PRINTED_CHARS: Final = 16 * 1024
"""So much is looked at; an echo comes at once or hardly matters."""

# A control string is skipped with its body; `redaction.visible` keeps the bodies, and no backspace.
_SEQUENCE: Final = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|\[[ -?]*[@-~]|[ -/]*[0-~])"
    r"|[\x00-\x07\x0d-\x1f\x7f]"
)
_ERASED: Final = re.compile(r"[^\x08]?\x08")
_LINE_END: Final = re.compile(r"\r\n?|\n")
_RUBBED_OUT: Final = re.compile(r"[^\x7f\x08]?[\x7f\x08]")
_PROMPT_ENDS: Final = (">", "$", "#", "%", "❯", "»", "λ", "...")


def typed_lines(typed: str) -> list[str]:
    """What was typed, by lines, as far as it can be known what its echo looks like."""
    lines = _LINE_END.split(typed[:_TYPED_CHARS])[:_LINES]
    return [_as_echoed(line) for line in lines]


def _as_echoed(line: str) -> str:
    line = line.rpartition("\x15")[2]  # kill: what came before is gone
    while "\x7f" in line or "\b" in line:
        line = _RUBBED_OUT.sub("", line)
    # After a tab comes whatever was completed, or blanks.
    return _SEQUENCE.sub("", line).partition("\t")[0]


def in_lines(
    typed: str,
    prompt: str,
    lines: Sequence[str],
    offset: int | None,
    unfinished: int | None = None,
) -> list[Found]:
    """Where the lines of a screen or of a transcript are echo.

    `prompt` is what stood left of the cursor when the typing began. If that place is known, it is
    `offset` in the first of the lines. `unfinished` is the line that is still being written.
    """
    wanted = typed_lines(typed)
    found, below, complete = [], 0, False
    if offset is not None and lines:
        length, complete = _at_cursor(wanted[0], prompt, lines[0][offset:])
        found.append((0, offset, offset + length))
        below = 1
    block = _block(wanted, lines) if below else {}
    at = below if complete else 0  # the prompt itself may have come after the mark, in that line
    for nth, line in enumerate(wanted):
        if not line.strip() or (nth == 0 and complete and prompt.strip()):
            continue
        later = _at_prompt(line.rstrip(" "), prompt, lines, at, unfinished)
        if later is not None:
            found.append(later)
            at = later[0] + 1
        if nth in block and (later is None or not prompt.strip()):
            found.append(block[nth])
            at = max(at, nth + 1)
    return [place for place in found if place[1] < place[2]]


def _at_cursor(line: str, prompt: str, shown: str) -> tuple[int, bool]:
    """How much of what is shown at the cursor is echo, and whether that is the whole line.

    Some of the line may have been typed, and shown, before the mark.
    """
    before = next((n for n in range(len(line), 0, -1) if prompt.endswith(line[:n])), 0)
    lengths = [(_shared(line[n:], shown), n) for n in {0, before}]
    length, skipped = max(lengths)
    return length, length + skipped >= len(line.rstrip(" "))


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _block(wanted: list[str], lines: Sequence[str]) -> dict[int, Found]:
    """The lines below the cursor that are just what was typed, in its order."""
    block = {}
    for nth in range(1, min(len(wanted), len(lines))):
        if lines[nth] != wanted[nth]:
            break
        block[nth] = (nth, 0, len(wanted[nth]))
    return block


def _at_prompt(
    line: str, prompt: str, lines: Sequence[str], begin: int, unfinished: int | None
) -> Found | None:
    for nth in range(begin, len(lines)):
        shown = lines[nth].rstrip(" ")
        before = len(shown) - len(line)
        if shown.endswith(line) and _is_prompt(shown[:before], prompt):
            return nth, before, len(shown)
        if nth == unfinished and (part := _arriving(line, prompt, shown)):
            return nth, len(shown) - part, len(shown)
    return None


def _arriving(line: str, prompt: str, shown: str) -> int:
    """How much of a line stands at a prompt so far."""
    for length in range(min(len(line), len(shown)), 0, -1):
        if shown.endswith(line[:length]):
            return length if _is_prompt(shown[:-length], prompt) else 0
    return 0


def _is_prompt(text: str, prompt: str) -> bool:
    text, prompt = text.rstrip(), prompt.rstrip()
    return text.endswith(_PROMPT_ENDS) or (bool(text and prompt) and text[-1] == prompt[-1])


# In a transcript, where escape sequences stand between.


def in_printed(typed: str, prompt: str, printed: str) -> list[tuple[int, int]]:
    """The spans of a text printed after a mark that are echo."""
    raw = printed[:_PRINTED_CHARS].split("\n")
    lines = [_visible(line) for line in raw]
    starts = [0]
    for line in raw:
        starts.append(starts[-1] + len(line) + 1)
    found = in_lines(typed, prompt, lines, 0, len(raw) - 1)
    return sorted(
        (starts[nth] + a, starts[nth] + b)
        for nth, start, end in found
        for a, b in [_in_raw(raw[nth], lines[nth], start, end)]
    )


def _visible(line: str) -> str:
    """What is seen of a line. Readline wraps by writing a blank and going back over it."""
    line = _SEQUENCE.sub("", line.replace(" \r", "")) if "\x1b" in line or "\r" in line else line
    while "\b" in line:
        line = _ERASED.sub("", line)
    return line


def _in_raw(raw: str, seen: str, start: int, end: int) -> tuple[int, int]:
    """Where in a line that is, sequences included; to the line's ends if nothing else
    stands there."""
    if "\b" in raw or " \r" in raw:  # written over: not worth telling apart
        return 0, len(raw) + 1
    places = list(_places(raw))
    begin = places[start] if start else 0
    return begin, len(raw) + 1 if end == len(seen) else places[end - 1] + 1


def _places(raw: str) -> Iterator[int]:
    """Where each visible character stands."""
    at = 0
    for sequence in _SEQUENCE.finditer(raw):
        yield from range(at, sequence.start())
        at = sequence.end()
    yield from range(at, len(raw))
