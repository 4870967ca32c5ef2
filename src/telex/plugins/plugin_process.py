"""A plugin's process and its three pipes: start, watch, and end the whole process tree.

This module has no task and no protocol: the owner task in `client` calls it. `telex.processes`
starts and ends the process; its guardian ends the process tree if the host is killed.

Standard error is always read to EOF and shown line by line. The lines are never queued for a slow
reader, so a plugin cannot block on standard error; a line that is too long is cut. Secrets are
redacted before the text is split into lines, so that a secret of several lines is hidden too.
Control characters are escaped: a plugin's output must not control a person's terminal.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections import deque
from contextlib import suppress
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any, Final, cast

from telex.plugins import errors, limits
from telex.plugins.dialect import PluginPipes, escape_controls
from telex.processes import spawn
from telex.processes.termination import Rung, TreeSurvived
from telex.redaction import Redactor
from telex.rpc.messages import ABSENT
from telex.transports import stdio

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from io import FileIO

    from telex.plugins.handshake import SendRequest
    from telex.plugins.plugin_settings import Deadlines

_KILL_SECONDS = 5.0
_QUOTED = 200
"""How many characters of the last line of standard error an error message quotes."""


class PluginProcess:
    """A plugin's process. The constructor starts it and raises `spawn.StartFailed`; the caller must
    call `end`."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: str | None, stderr: StderrReader
    ) -> None:
        self._child = spawn.start(command, env=env, cwd=cwd)
        self._stderr = stderr
        self._reading: asyncio.ReadTransport | None = None
        self._attached = False
        self._closed_pipe = ""
        self._pipe_closed = asyncio.Event()
        self.pipes = PluginPipes(self._on_pipe_closed)

    @property
    def pid(self) -> int:
        return self._child.pid

    async def attach(self) -> None:
        """Connect the pipes to the event loop."""
        source, sink, errors = map(_detach, self._files())
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
        """Wait until the process has exited or has closed a pipe. Return how, and its last line.

        An exit and a closed pipe mostly follow each other, and the last line may still be unread in
        a pipe. So this waits `seconds` for the rest, and no longer: processes that the plugin left
        behind may keep its pipes open.
        """
        exited, pipe_closed = self._child.wait(), self._pipe_closed.wait()
        tasks = [asyncio.create_task(_until(it)) for it in (exited, pipe_closed)]
        drained = asyncio.create_task(_until(self._stderr.ended.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([*tasks, drained], timeout=seconds)
        finally:
            for task in (*tasks, drained):
                task.cancel()
            await asyncio.wait([*tasks, drained])
        return self._how_it_ended(), self._last_line()

    async def exited(self) -> None:
        await self._child.wait()

    async def exits_within(self, seconds: float) -> bool:
        """Return whether the process exits by itself within this time."""
        try:
            async with asyncio.timeout(seconds):
                await self.exited()
        except TimeoutError:
            return False
        return True

    async def end(self, term_seconds: float, drain_seconds: float) -> None:
        """End the process tree, read the rest of standard error, close the pipes. Raises
        `TreeSurvived`."""
        try:
            await self._child.end((Rung(SIGTERM, term_seconds), Rung(SIGKILL, _KILL_SECONDS)))
            if self._reading is not None:
                async with asyncio.timeout(drain_seconds):
                    await self._stderr.ended.wait()
        except TimeoutError:
            pass  # a process of another user has standard error open
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

    def _on_pipe_closed(self, how: str) -> None:
        self._closed_pipe = self._closed_pipe or how
        self._pipe_closed.set()

    def _how_it_ended(self) -> str:
        return str(self._child.exit) if self._child.exit else f"{self._closed_pipe} and ran on"

    def _last_line(self) -> str:
        line = next((line for line in reversed(self._stderr.last) if line.strip()), "")
        return f"its last words: {line.strip()[:_QUOTED]}" if line else ""

    def _files(self) -> list[FileIO]:
        child = self._child
        return [cast("FileIO", file) for file in (child.stdout, child.stdin, child.stderr)]


def _detach(file: FileIO) -> int:
    """Return a descriptor that does not belong to the file any more: a transport closes it."""
    fd = os.dup(file.fileno())
    file.close()
    return fd


async def _until(event: Coroutine[object, object, object]) -> None:
    await event


_CUT: Final = " … (the rest of this line was dropped)"
_LAST_LINES: Final = 20


class StderrLines:
    """Splits bytes into redacted lines of limited length. Sans-IO."""

    def __init__(self, redactor: Redactor) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._line: Callable[[str], str] = str
        if redactor.extra_regexes:
            # These patterns are for whole texts, so they are applied to each line. Everything else
            # is also redacted across lines.
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


class StderrReader(asyncio.Protocol):
    """Reads standard error to EOF and passes each line to `show`."""

    def __init__(self, name: str, show: Callable[[str], None], redactor: Redactor) -> None:
        self._name, self._show = name, show
        self._lines = StderrLines(redactor)
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        """The last lines, for the message about the plugin's end."""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._show_lines(self._lines.feed(data))

    def connection_lost(self, error: Exception | None) -> None:
        self._show_lines(self._lines.eof())
        self.ended.set()

    def _show_lines(self, lines: list[str]) -> None:
        for line in lines:
            self.last.append(line)
            self._show(f"[{self._name}] {line}")


# The end of a plugin's process: who asks it to exit, and who kills it.
#
# `PluginShutdown` takes these steps, in this order. `Deadlines` has the time of each step.
#
# 1. `request_exit`: send `shutdown`, wait for the response; send `exit`, wait for the exit.
# 2. `end_process`: close standard input, wait; SIGTERM to the process tree, wait; SIGKILL; reap.
#
# The owner task in `client` is the only caller. It skips step 1 for a plugin that failed, because
# such a plugin would not read the request. `PluginProcess.end` and below it
# `processes.child.Child.end` send the signals and reap.


class PluginShutdown:
    """Ends one plugin's process."""

    def __init__(
        self, name: str, process: PluginProcess, deadlines: Deadlines, log: logging.Logger
    ) -> None:
        self._name, self._process, self._deadlines, self._log = name, process, deadlines, log

    async def request_exit(
        self, request: SendRequest, notify: Callable[[str], Awaitable[None]]
    ) -> None:
        """Send `shutdown`, then `exit`, each with its deadline. The plugin can delay its end by
        that, and cannot refuse it."""
        try:
            if await request("shutdown", ABSENT, self._deadlines.shutdown, Any) is False:
                self._log.info("%s answered shutdown with false", self._name)
        except errors.PluginError as failure:
            self._log.info("%s", failure)
        try:
            async with asyncio.timeout(self._deadlines.exit):
                await notify("exit")
                await self._process.exited()
        except errors.PluginEnded:
            return
        except TimeoutError:
            self._log.info("%s did not exit after the notification exit", self._name)

    async def end_process(
        self, close_conversation: Callable[[], Awaitable[None]], *, patiently: bool
    ) -> None:
        """End the process tree and wait. The tree has ended when this returns, also if this is
        cancelled: a cancel only shortens the waits. `patiently` waits after standard input closed.
        """
        try:
            await self._end_tree(close_conversation, self._deadlines.term, patiently=patiently)
        except asyncio.CancelledError:
            await self._kill_tree(close_conversation)
            raise

    async def _kill_tree(self, close_conversation: Callable[[], Awaitable[None]]) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await self._end_tree(close_conversation, 0, patiently=False)
                return

    async def _end_tree(
        self,
        close_conversation: Callable[[], Awaitable[None]],
        term_seconds: float,
        *,
        patiently: bool,
    ) -> None:
        self._process.pipes.abort_writes()
        await close_conversation()
        if patiently:
            await self._process.exits_within(self._deadlines.stdin)
        try:
            await self._process.end(term_seconds, self._deadlines.stdin)
        except TreeSurvived as survived:
            self._log.error("%s did not end: %s", self._name, survived)
