"""Exceptions of the program's side. The terminal's side responds with the codes of `protocol`."""

from __future__ import annotations


class NotSupported(Exception):
    """No terminal or socket responds to JSON escapes. The message has the reason and advice."""

    __module__ = "telex.escapes"

    exit_code = 3

    def __init__(self, why: str, advice: str = "") -> None:
        super().__init__(f"{why}; {advice}" if advice else why)
        self.why = why
        self.advice = advice


class NoTerminal(NotSupported):
    """The program has no terminal, or it cannot be opened."""

    __module__ = "telex.escapes"


class FrameTooLarge(ValueError):
    """A frame is larger than the terminal's limit."""

    __module__ = "telex.escapes"


class NotTaken(BlockingIOError):
    """The terminal has not read earlier commands: wait with `flushed()`."""

    __module__ = "telex.escapes"


class FileCutShort(OSError):
    """A file was received with fewer or more bytes than announced."""

    __module__ = "telex.escapes"


class NotOutput(LookupError):
    """A command is unknown, or has no ANSI equivalent, such as a query or a stream."""
