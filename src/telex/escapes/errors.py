"""Exceptions of the program's side. The terminal's side answers with the codes of `protocol`."""

from __future__ import annotations


class NotSupported(Exception):
    """There is nobody here who would understand; the sentence says why, and what to do."""

    exit_code = 3

    def __init__(self, why: str, advice: str = "") -> None:
        super().__init__(f"{why}; {advice}" if advice else why)
        self.why = why
        self.advice = advice


class NoTerminal(NotSupported):
    """This program has no terminal."""


class FrameTooLarge(ValueError):
    """A frame of ours that the terminal would not take."""


class NotTaken(BlockingIOError):
    """More was told than the terminal takes."""


class FileCutShort(OSError):
    """A file did not come whole."""


class NotOutput(LookupError):
    """There is no such command, or none that ANSI bytes could do: a question, a stream."""
