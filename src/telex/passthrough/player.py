"""`telex replay`: plays a recording in the person's terminal, at its own pace or at once.

The recorded output is written again, with its escape sequences, which the terminal executes as it
does for any program. Space pauses and continues, q and Ctrl-C quit.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.passthrough.person_terminal import STDIN, PersonTerminal, stop_process_group
from telex.passthrough.terminal_io import InputReader, OutputWriter
from telex.terminal.recording import OutputEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.terminal.recording import Recording

PAUSE, SUSPEND = b" ", b"\x1a"
QUIT: Final = {b"q": 0, b"\x03": 130}
"""The keys that quit, with their exit codes."""


@dataclass(frozen=True, slots=True)
class PlaybackPace:
    """The speed of a replay."""

    speed: float = 1.0
    max_pause: float | None = None
    """The longest pause, in seconds of the recording."""
    at_once: bool = False


def steps(recording: Recording, pace: PlaybackPace) -> Iterator[tuple[float, str]]:
    """Yield the seconds to wait before each output, and that output."""
    longest = recording.header.idle_time_limit if pace.max_pause is None else pace.max_pause
    last = 0.0
    for event in recording.events:
        pause = max(0.0, event.time - last)
        if isinstance(event, OutputEvent):
            last = max(last, event.time)
            pause = pause if longest is None else min(pause, longest)
            yield 0.0 if pace.at_once else pause / pace.speed, event.text


def replay(recording: Recording, pace: PlaybackPace) -> int:
    """Play a recording to its end, or until the person quits. Return the exit code."""
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_played(own, recording, pace))


async def _played(own: PersonTerminal, recording: Recording, pace: PlaybackPace) -> int:
    return await Player(own, recording, pace).play()


class Player:
    """Plays one recording in the person's terminal. Call `play` once."""

    def __init__(self, own: PersonTerminal, recording: Recording, pace: PlaybackPace) -> None:
        self._own = own
        self._recording = recording
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._paused = False
        self._woken = asyncio.Event()
        """Set by a key or a signal."""
        self._ended: int | None = None
        self._broken: OSError | None = None

    async def play(self) -> int:
        """Play, and return the exit code."""
        self._writer = OutputWriter(
            self._own.writing, full=lambda: None, empty=lambda: None, broken=self._output_failed
        )
        with self._input_handled():
            for pause, text in steps(self._recording, self._pace):
                await self._wait(pause)
                if self._ended is not None or self._broken is not None:
                    break
                await self._show(text)
            if self._own.shown:  # the replay may have stopped in the middle
                self._writer.write(self._own.undo + b"\x1b[0m")
            await self._flushed()
        self._writer.close()
        if self._broken is not None:
            raise self._broken
        return self._ended or 0

    async def _show(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._own.showing(data)
        self._writer.write(data)
        await self._flushed()

    async def _flushed(self) -> None:
        """Wait until the output was written, or until the person quits."""
        flushed = self._loop.create_task(self._writer.flushed())
        while not flushed.done() and self._ended is None:
            self._woken.clear()
            woken = self._loop.create_task(self._woken.wait())
            await asyncio.wait({flushed, woken}, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
        flushed.cancel()

    async def _wait(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while self._ended is None and (self._paused or self._loop.time() < until):
            since = self._loop.time()
            paused = self._paused
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if paused else until):
                    await self._woken.wait()
            if paused:
                until += self._loop.time() - since

    # --- keys and signals

    @contextlib.contextmanager
    def _input_handled(self) -> Iterator[None]:
        reader = InputReader(
            self._own.reading, self._pressed, lambda: self._end(128 + signal.SIGHUP)
        )
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for number in numbers:
            self._loop.add_signal_handler(number, self._end, 128 + number)
        try:
            if self._own.shown:
                self._own.take()
                reader.resume()
            yield
        finally:
            reader.close()
            self._own.give_back()
            if self._own.shown:
                # The terminal replies to recorded queries, and the shell must not read that.
                with contextlib.suppress(termios.error):
                    termios.tcflush(STDIN, termios.TCIFLUSH)
            for number in numbers:
                self._loop.remove_signal_handler(number)

    def _pressed(self, keys: bytes) -> None:
        """Handle keys. Input that begins with ESC is an unused key, or a reply of the terminal."""
        if not keys.startswith(b"\x1b"):
            for key in keys:
                self._press(bytes([key]))
        self._woken.set()

    def _press(self, key: bytes) -> None:
        if key in QUIT:
            self._end(QUIT[key])
        elif key == PAUSE:
            self._paused = not self._paused
        elif key == SUSPEND:
            self._own.give_back()
            stop_process_group()
            self._own.take()

    def _output_failed(self, error: OSError) -> None:
        self._broken = error
        self._woken.set()

    def _end(self, code: int) -> None:
        self._ended = code
        self._woken.set()
