"""What was seen of a command that should serve pages, and what that means. Pure.

For `checking`. A sentence says what was found, and a second one what to do, to somebody who does
not know how terminals work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from telex.htty.frame_reading import PREFACE
from telex.wire import htty_chunk
from telex.wire.events import Fault, Reason

if TYPE_CHECKING:
    from telex.processes.child import Exit

MULTIPLEXERS: Final = frozenset({"tmux", "screen", "mosh", "zellij", "byobu"})
NO_PAGES_CODE: Final = 3
_KEPT: Final = 64
_FIRST: Final = 4096
_WORDS: Final = 200
"""Of what the command printed last, in characters."""
_CHUNK_SHOWN: Final = re.compile(rb"HTTY;[0-9]+;")
_ECHO_SHOWN: Final = re.compile(rb"\^\[PHTTY;")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    sentence: str
    breaks: bool = False
    advice: str = ""


@dataclass(slots=True)
class Seen:
    """Of one command, so far."""

    argv: tuple[str, ...]
    canonical: bool = False
    echo: bool = False
    asked: bool = False
    full_screen: bool = False
    faults: tuple[Fault, ...] = ()
    exit: Exit | None = None
    last_words: str = ""
    chunk_shown: bool = False
    """A chunk came as text: something took the ESC away."""
    echo_shown: bool = False
    """What we typed came back: as text, or as a chunk of its own."""
    _tail: bytes = b""
    _first: bytes = field(default=b"")

    def text(self, data: bytes) -> None:
        """What is visible of its output."""
        looked = self._tail + data
        self.echo_shown |= bool(_ECHO_SHOWN.search(looked))
        self.chunk_shown |= bool(_CHUNK_SHOWN.search(looked))
        self._tail = looked[-_KEPT:]

    def carried(self, data: bytes) -> None:
        """What came in chunks. Only the client sends the preface, and that is us."""
        if len(self._first) < _FIRST:
            self._first += data[:_FIRST]
            self.echo_shown |= PREFACE in self._first

    @property
    def is_raw(self) -> bool:
        """Whether the program announced the raw form."""
        return any(fault.claim == htty_chunk.RAW for fault in self.faults)

    @property
    def multiplexer(self) -> str:
        names = [PurePath(word).name for words in self.argv for word in words.split()]
        return next((name for name in names if name in MULTIPLEXERS), "")


def at_first_chunk(seen: Seen) -> list[Finding]:
    """The command has begun. What can be known before anything is sent to it."""
    return [_environment(seen), Finding("chunks", "they arrive, in version 1"), *_line(seen)]


def _environment(seen: Seen) -> Finding:
    if seen.asked:
        return Finding(
            "environment",
            "HTTY did not reach the program, as behind ssh; it asked the terminal, and was told",
        )
    return Finding("environment", "HTTY=1 reached the program, or it does not look")


def _line(seen: Seen) -> list[Finding]:
    raw = Finding("raw mode", "the terminal hands on every byte as it comes")
    if seen.canonical:
        raw = _not_raw("the program began while its terminal still collects lines")
    echo = Finding("echo", "what is typed is not shown")
    if seen.echo:
        echo = _echo("the program began while its terminal still shows what is typed")
    return [raw, echo]


def _not_raw(what: str) -> Finding:
    return Finding(
        "raw mode",
        f"{what}: nothing reaches it before a newline, and lines are cut at 4096 bytes",
        True,
        "Have the program switch ICANON off before its first chunk (TCSADRAIN keeps what was "
        "typed); with ssh, give -tt so that there is a terminal at the far end to switch.",
    )


def _echo(what: str) -> Finding:
    return Finding(
        "echo",
        f"{what}: what the terminal sends would come back, and stand on the screen",
        True,
        "Have the program switch ECHO off before its first chunk.",
    )


def without_chunks(seen: Seen, seconds: float) -> list[Finding]:
    """It has not begun, and no more is to be expected. The first that explains it is told."""
    if seen.is_raw:
        return [_raw_form()]
    versions = [fault for fault in seen.faults if fault.reason is Reason.VERSION]
    if versions:
        return [_version()]
    if seen.faults:
        return [_malformed(seen.faults[0])]
    if seen.chunk_shown:
        return [_stripped()]
    if seen.exit is not None and seen.exit.code == NO_PAGES_CODE:
        return [_no_pages(seen)]
    if seen.multiplexer or seen.full_screen:
        return [_multiplexer(seen)]
    if seen.exit is not None:
        return [_left(seen)]
    return [_silent(seen, seconds)]


def _raw_form() -> Finding:
    return Finding(
        "form",
        f"the program speaks {htty_chunk.RAW_FORM}",
        True,
        "Serve the page with `telex htty serve`, or with a library that sends chunks, as "
        "protocol-htty 0.1.0 does. The raw form leaves no room for text, keys and Ctrl-C.",
    )


def _version() -> Finding:
    return Finding(
        "version",
        "the program sends chunks of a version that is not spoken here",
        True,
        "Bring telex, or the program, up to date. Only version 1 is known here.",
    )


def _malformed(fault: Fault) -> Finding:
    return Finding(
        "chunks",
        f"at byte {fault.offset} of the output a chunk was broken: {fault.detail}",
        True,
        "Something on the way cuts or changes control strings, or two programs write at once; "
        "try the command without multiplexers and wrappers.",
    )


def _stripped() -> Finding:
    return Finding(
        "DCS",
        "chunks arrive as text: something on the way takes the ESC off control strings",
        True,
        "Leave out what filters the terminal's output, or have it pass DCS strings on.",
    )


def _multiplexer(seen: Seen) -> Finding:
    name = seen.multiplexer or "a full-screen program"
    advice = (
        "Run `tmux set -g allow-passthrough on` in it (tmux 3.3 or later)."
        if name == "tmux"
        else "Run the command without it; only tmux passes chunks on, with allow-passthrough on."
    )
    return Finding(
        "passthrough", f"{name} is on the way and passed no chunk on{_quoted(seen)}", True, advice
    )


def _no_pages(seen: Seen) -> Finding:
    return Finding(
        "environment",
        f"the program says that nobody here shows pages{_quoted(seen)}",
        True,
        "See whether HTTY=0 is set where it runs; with ssh, give -tt: it needs a terminal to ask.",
    )


def _left(seen: Seen) -> Finding:
    return Finding(
        "command",
        f"it {seen.exit} before it sent a chunk{_quoted(seen)}",
        True,
        "Run it by itself and see what it wants.",
    )


def _silent(seen: Seen, seconds: float) -> Finding:
    return Finding(
        "chunks",
        f"no chunk came within {seconds:.0f} seconds{_quoted(seen)}",
        True,
        "See whether it serves pages at all; give --eager if it waits for the terminal to begin.",
    )


def of_step(name: str, what: str, seen: Seen) -> Finding:
    """Something was sent, and did not go well."""
    if seen.is_raw:
        return _raw_form()
    if seen.echo_shown:
        return _echo("what was sent came back")
    if seen.canonical:
        return _not_raw("its terminal collects lines")
    if seen.faults:
        return _malformed(seen.faults[-1])
    if name == "long lines":
        return Finding(
            name,
            f"short messages arrive and one of 8192 bytes does not: {what}",
            True,
            "Something on the way is not raw and cuts lines at 4096 bytes: a terminal at a hop in "
            "between, often from `script` or a second ssh without -tt.",
        )
    return Finding(name, what, True, "Look at what the program itself says of it.")


def _quoted(seen: Seen) -> str:
    last = " ".join(seen.last_words.split())[-_WORDS:]
    return f'; its screen says "{last}"' if last else ""
