"""What went through a terminal, as files have it: which bytes, in which direction. Pure.

A raw transcript is just the bytes. util-linux's `script` puts a line before them and one after,
and with `--log-io` both directions into one file, which a second file tells apart. An asciicast has
text in events. For `dumping`, which knows what the bytes are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.terminal.recording import InputEvent, OutputEvent, read_recording
from telex.wire.escape import ESC

if TYPE_CHECKING:
    from collections.abc import Iterator

_STARTED: Final = re.compile(rb"Script started on [^\n]*\n")
_DONE: Final = re.compile(rb"\r?\n?Script done on [^\n]*\n?\Z")
_CAST: Final = re.compile(rb'\s*\{[^\n]*"version"\s*:\s*[23]\b')
_WRAPPED: Final = re.compile(rb"\x1bPtmux;((?:[^\x1b]|\x1b\x1b)*)\x1b\\")


class NotTiming(ValueError):
    """The second file of `script` is not what `--log-timing` writes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive bytes of one direction."""

    typed: bool
    """Whether they went to the program; in a file that does not say, whether they went the other
    way than the rest of it."""
    data: bytes
    offset: int
    """Where in the file they stand; in an asciicast, where in the text of their direction."""


def parts(data: bytes, timing: bytes | None = None) -> list[Part]:
    """Raises `NotARecording` and `NotTiming`."""
    if _CAST.match(data):
        return list(_of_recording(data))
    started = _STARTED.match(data)
    begin = started.end() if started else 0
    if timing is not None:
        return list(_timed(data, begin, timing))
    done = _DONE.search(data, max(begin, len(data) - 1024)) if started else None
    return [Part(False, unwrapped(data[begin : done.start() if done else None]), begin)]


def _of_recording(data: bytes) -> Iterator[Part]:
    at = {False: 0, True: 0}
    for event in read_recording(data.splitlines(keepends=True)).events:
        if isinstance(event, OutputEvent | InputEvent):
            typed, told = isinstance(event, InputEvent), event.text.encode("utf-8", "surrogatepass")
            yield Part(typed, told, at[typed])
            at[typed] += len(told)


def _timed(data: bytes, at: int, timing: bytes) -> Iterator[Part]:
    """By the lines of `script --log-timing`: `O 0.012 340`, `I 0.5 1`, and others without data."""
    for number, line in enumerate(timing.splitlines(), 1):
        match line.split():
            case [b"O" | b"I" as kind, _, count] if count.isdigit():
                yield Part(kind == b"I", data[at : at + int(count)], at)
                at += int(count)
            case [b"H" | b"S", *_]:
                pass
            case _:
                raise NotTiming(f"line {number} of the timing file is not of `script --log-timing`")


def unwrapped(data: bytes) -> bytes:
    """Without what tmux needs to pass something on. Offsets behind it are a little too small."""
    return _WRAPPED.sub(lambda found: found[1].replace(ESC + ESC, ESC), data)
