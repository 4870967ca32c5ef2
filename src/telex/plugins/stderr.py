"""A plugin's standard error: read always, to its end, and shown line by line. Nothing here waits
for a reader, so a plugin can never block on it, and no line is kept whole that is too long.

Secrets are redacted before lines are made, so that one of several lines is hidden too. Control
characters are shown as what they are: a plugin's words must not act on a person's terminal.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections import deque
from typing import TYPE_CHECKING, Final

from telex.redaction import Redactor
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable

_CUT: Final = " … (the rest of this line was dropped)"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LAST_LINES: Final = 20


class Lines:
    """Bytes to lines, bounded. Sans-IO."""

    def __init__(self, redactor: Redactor) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._line: Callable[[str], str] = str
        if redactor.extra_regexes:
            # They are for whole texts, so each line is one; all else is hidden across lines too.
            self._line = redactor.redact
            redactor = Redactor(redactor.extra_literals, replacement=redactor.replacement)
        self._redacting = redactor.stream()
        self._begun = ""
        self._dropping = False

    def feed(self, data: bytes) -> list[str]:
        return self._split(self._redacting.feed(self._decoder.decode(data)))

    def eof(self) -> list[str]:
        rest = self._redacting.feed(self._decoder.decode(b"", True)) + self._redacting.finish()
        return self._split(rest + "\n") if rest or self._begun else []

    def _split(self, text: str) -> list[str]:
        *whole, begun = text.split("\n")
        lines = [line for piece in whole for line in self._ended(piece)]
        self._begin(begun)
        return lines

    def _ended(self, piece: str) -> list[str]:
        self._begin(piece)
        line, self._begun = self._begun, ""
        cut, self._dropping = self._dropping, False
        return [shown(self._line(line.removesuffix("\r"))) + (_CUT if cut else "")]

    def _begin(self, piece: str) -> None:
        room = limits.PLUGIN_STDERR_LINE_CHARS - len(self._begun)
        self._begun += piece[:room]
        self._dropping = self._dropping or len(piece) > room


def shown(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class Stderr(asyncio.Protocol):
    """Reads to the end, whoever listens."""

    def __init__(self, name: str, show: Callable[[str], None], redactor: Redactor) -> None:
        self._name, self._show = name, show
        self._lines = Lines(redactor)
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        """The last lines, for who has to say why the plugin ended."""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._tell(self._lines.feed(data))

    def connection_lost(self, error: Exception | None) -> None:
        self._tell(self._lines.eof())
        self.ended.set()

    def _tell(self, lines: list[str]) -> None:
        for line in lines:
            self.last.append(line)
            self._show(f"[{self._name}] {line}")
