"""The status that a program reports by escape sequences: one table of dialects.

    OSC 133 ; A B C D       a shell marks its prompt, its input line and its commands (FinalTerm)
    OSC 633 ; A B C D       the same of the terminal in VS Code
    OSC 16162 ; A C D       the same of Wave
    OSC 9 ; 4 ; state       progress (ConEmu): 1 and 3 work, 0 ended, 4 paused, 2 failed
    OSC 26 ; Status=word    a coding agent's status (Terminal Agent Protocol)
    OSC 0, 2 ; title        agents begin their title with a sign: a spinner, or one for ready

`StatusReader.feed` reads output as the screen does, however the reads are cut. Pure. Used by
`input_watch`.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from telex.terminal.limits import STATUS_ESCAPE_BYTES

ProgramStatus = Literal["prompt", "command", "working", "idle", "asking"]
"""The status: a shell reads a command, or runs one; a program works, is ready for input, or asks
for a decision."""

_SHELL_MARKS: Final[dict[str, ProgramStatus | None]] = {
    "A": None,  # the prompt is being drawn
    "B": "prompt",
    "C": "command",
    "D": None,  # a command has ended, and the prompt is not drawn yet
}
_PROGRESS: Final[dict[str, ProgramStatus | None]] = {
    "0": None,
    "1": "working",
    "2": None,
    "3": "working",
    "4": None,
}
_AGENT: Final[dict[str, ProgramStatus | None]] = {
    "running": "working",
    "idle": "idle",
    "finished": "idle",
    "error": "idle",
    "awaiting-input": "idle",
    "awaiting-approval": "asking",
}
_TITLES: Final[dict[str, ProgramStatus]] = {
    "✳": "idle",
    "◇": "idle",
    "✋": "asking",
    "✦": "working",
    "⏲": "working",
}
"""The first sign of a title; each braille pattern is a frame of a spinner."""

_STRING: Final = re.compile(rb"\x1b\](\d{1,5});([^\x07\x1b]*)(?:\x07|\x1b\\)")
_OPENED: Final = re.compile(rb"\x1b(?:\](?:\d{0,5}(?:;[^\x07\x1b]*\x1b?)?)?)?\Z")
_STATUS: Final = re.compile(r"(?:^|;)Status=([\w-]+)")

Channel = Literal["shell", "progress", "agent", "title"]
"""A program may use several; each has its own last word."""


def read_status(number: int, text: str) -> tuple[Channel, ProgramStatus | None] | None:
    """Return what one OSC says; None if it is no status."""
    match number:
        case 133 | 633 | 16162:
            mark = text[:1]
            return ("shell", _SHELL_MARKS[mark]) if mark in _SHELL_MARKS else None
        case 9 if text.startswith("4;"):
            state = text[2:3]
            return ("progress", _PROGRESS[state]) if state in _PROGRESS else None
        case 26:
            found = _STATUS.search(text)
            return ("agent", _AGENT[found[1]]) if found and found[1] in _AGENT else None
        case 0 | 2:
            sign = text.lstrip()[:1]
            if "\u2800" <= sign <= "\u28ff":
                return "title", "working"
            return "title", _TITLES.get(sign)
    return None


class StatusReader:
    """The last word of a program on each channel."""

    def __init__(self) -> None:
        self._rest = b""
        self.statuses: dict[Channel, ProgramStatus] = {}

    def feed(self, data: bytes) -> bool:
        """Read output. Returns whether it had a status."""
        if self._rest:
            data = self._rest + data
            self._rest = b""
        elif b"\x1b" not in data:
            return False
        told = False
        for found in _STRING.finditer(data):
            said = read_status(int(found[1]), found[2].decode("utf-8", "replace"))
            if said is not None:
                told = True
                channel, status = said
                self.statuses.pop(channel, None)
                if status is not None:
                    self.statuses[channel] = status
        opened = _OPENED.search(data, max(0, len(data) - STATUS_ESCAPE_BYTES))
        if opened is not None:
            self._rest = data[opened.start() :]
        return told

    def line_finished(self) -> None:
        """Forget a shell's prompt: the typed line was ended, and a command may run."""
        if self.statuses.get("shell") == "prompt":
            del self.statuses["shell"]

    @property
    def status(self) -> ProgramStatus | None:
        """The word that counts: working, if one channel says so; otherwise the last one."""
        if "working" in self.statuses.values():
            return "working"
        return next(reversed(self.statuses.values()), None)
