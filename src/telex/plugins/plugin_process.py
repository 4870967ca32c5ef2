"""A plugin's process and its three pipes: opened together, watched, and ended with its whole tree.

No tasks of its own and no protocol: `client` has one task that calls these in order. Starting and
ending is `telex.processes`' work, which also sees to it that nothing is left when we are killed.

Standard error is always read, to its end, and shown line by line. Nothing here waits for a reader,
so a plugin can never block on it, and a line that is too long is cut. Secrets are redacted before
lines are made, so that one that spans lines is hidden too. Control characters are escaped: a
plugin's output must not act on a person's terminal.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
from collections import deque
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Final, cast

from telex.plugins import limits
from telex.plugins.dialect import PluginPipes
from telex.processes import spawn
from telex.processes.termination import Rung
from telex.redaction import Redactor
from telex.transports import stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from io import FileIO


_KILL_SECONDS = 5.0
_QUOTED = 200
"""Characters of its last line in a sentence of ours."""


class PluginProcess:
    """Started by making one, which raises `spawn.StartFailed`. Whoever made it ends it."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: str | None, stderr: StderrReader
    ) -> None:
        self._child = spawn.start(command, env=env, cwd=cwd)
        self._stderr = stderr
        self._reading: asyncio.ReadTransport | None = None
        self._attached = False
        self._silence = ""
        self._silent = asyncio.Event()
        self.pipes = PluginPipes(self._fell_silent)

    @property
    def pid(self) -> int:
        return self._child.pid

    async def attach(self) -> None:
        """Have the event loop read and write the pipes."""
        source, sink, errors = map(_taken, self._files())
        loop = asyncio.get_running_loop()
        file = os.fdopen(errors, "rb", buffering=0)
        try:
            self._reading, _ = await loop.connect_read_pipe(lambda: self._stderr, file)
        except BaseException:
            for fd in (source, sink):
                os.close(fd)
            file.close()
            raise
        await stdio.attach(self.pipes, source, sink)
        self._attached = True

    async def wait_over(self, seconds: float) -> tuple[str, str]:
        """Wait until it has ended, or has closed a pipe: how, and its last words.

        The one mostly follows the other, and its last words may still be in a pipe, so there is
        a moment for the rest: no longer, because what it left behind may hold its pipes open.
        """
        exited, silent = self._child.wait(), self._silent.wait()
        tasks = [asyncio.create_task(_until(it)) for it in (exited, silent)]
        drained = asyncio.create_task(_until(self._stderr.ended.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([*tasks, drained], timeout=seconds)
        finally:
            for task in (*tasks, drained):
                task.cancel()
            await asyncio.wait([*tasks, drained])
        return self._told(), self._last_words()

    async def exited(self) -> None:
        await self._child.wait()

    async def exits_within(self, seconds: float) -> bool:
        """Whether it ends by itself, soon."""
        try:
            async with asyncio.timeout(seconds):
                await self.exited()
        except TimeoutError:
            return False
        return True

    async def end(self, term_seconds: float, drain_seconds: float) -> None:
        """End the tree, read what it still said, close our ends. Raises `TreeSurvived`."""
        try:
            await self._child.end((Rung(SIGTERM, term_seconds), Rung(SIGKILL, _KILL_SECONDS)))
            if self._reading is not None:
                async with asyncio.timeout(drain_seconds):
                    await self._stderr.ended.wait()
        except TimeoutError:
            pass  # somebody whom we may not end holds it open
        finally:
            await self._release()

    async def _release(self) -> None:
        if self._attached:
            await self.pipes.close()
        if self._reading is not None:
            self._reading.close()
            await self._stderr.ended.wait()
        for file in self._files():
            file.close()

    def _fell_silent(self, how: str) -> None:
        self._silence = self._silence or how
        self._silent.set()

    def _told(self) -> str:
        return str(self._child.exit) if self._child.exit else f"{self._silence} and ran on"

    def _last_words(self) -> str:
        said = next((line for line in reversed(self._stderr.last) if line.strip()), "")
        return f"its last words: {said.strip()[:_QUOTED]}" if said else ""

    def _files(self) -> list[FileIO]:
        child = self._child
        return [cast("FileIO", file) for file in (child.stdout, child.stdin, child.stderr)]


def _taken(file: FileIO) -> int:
    """The descriptor, no longer the file's: a transport closes it."""
    fd = os.dup(file.fileno())
    file.close()
    return fd


async def _until(event: Coroutine[object, object, object]) -> None:
    await event


_CUT: Final = " … (the rest of this line was dropped)"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LAST_LINES: Final = 20


class StderrLines:
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
        return [escape_controls(self._line(line.removesuffix("\r"))) + (_CUT if cut else "")]

    def _begin(self, piece: str) -> None:
        room = limits.PLUGIN_STDERR_LINE_CHARS - len(self._begun)
        self._begun += piece[:room]
        self._dropping = self._dropping or len(piece) > room


def escape_controls(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class StderrReader(asyncio.Protocol):
    """Reads to the end, whoever listens."""

    def __init__(self, name: str, show: Callable[[str], None], redactor: Redactor) -> None:
        self._name, self._show = name, show
        self._lines = StderrLines(redactor)
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
