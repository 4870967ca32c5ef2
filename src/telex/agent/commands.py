"""One command run to its end: what it wrote, how it ended, and why it was ended if it was.

It leads a process group of its own and reads nothing. It is over when the command itself has
exited; what it left in the background is ended then, as it is when the time is up, when it wrote
too much, or when nobody wants it any more. Nothing of it runs when `run` is left, whichever way: on
Linux also no daemon that left the process group, lost its parent and cleared its environment. (One
that did all that and killed its `reaper` before is found by nobody.)

Output is kept as bytes and decoded once, so that no character is cut between two reads. Used by
`shell_exec`, the shell tool and the search tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM, Signals
from typing import TYPE_CHECKING, Final

from telex.agent.uninterrupted import to_the_end
from telex.processes import spawn
from telex.processes.termination import Rung
from telex.wire.limits import AGENT_SHELL_GRACE_SECONDS, AGENT_SHELL_OUTPUT_BYTES, KIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from telex.processes.child import Child, Exit
    from telex.processes.sandbox import Confinement
    from telex.processes.termination import Ladder

_LADDER: Final[Ladder] = (Rung(SIGTERM, AGENT_SHELL_GRACE_SECONDS), Rung(SIGKILL, 5.0))
_READ_BYTES: Final = 256 * KIB


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that is over."""

    stdout: str
    stderr: str
    exit_code: int | None
    """None where it was ended, by us or by a signal."""
    signal: str | None
    timed_out: bool
    overflowed: bool
    """It wrote more than `AGENT_SHELL_OUTPUT_BYTES` and was ended."""
    duration_ms: int


async def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    seconds: float,
    confinement: Confinement | None = None,
    most_bytes: int = AGENT_SHELL_OUTPUT_BYTES,
) -> Ran:
    """Raises `spawn.StartFailed`, and `TreeSurvived` where something of it cannot be ended."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    child = spawn.start(
        argv,
        stdio=spawn.Pipes(stdin=spawn.PipeEnd.NULL),
        env=env,
        cwd=str(cwd),
        reaping=True,
        confinement=confinement,
    )
    streams = _Streams(child, most_bytes)
    exited = asyncio.ensure_future(child.wait())
    ends: set[asyncio.Future[Exit] | asyncio.Future[None]] = {exited, streams.full}
    try:
        done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        exited.cancel()
        await to_the_end(_end(child, streams))
    stdout, stderr = streams.text()
    code, signal = _told(child.exit)
    return Ran(
        stdout,
        stderr,
        code if exited in done else None,
        signal,
        timed_out=not done,
        overflowed=streams.overflowed,
        duration_ms=round((loop.time() - began) * 1000),
    )


async def _end(child: Child, streams: _Streams) -> None:
    try:
        await child.end(_LADDER)
        streams.drain()
    finally:
        streams.close()


def _told(ended: Exit | None) -> tuple[int | None, str | None]:
    if ended is None or ended.signal is None:
        return (None, None) if ended is None else (ended.code, None)
    names = {known.value: known.name for known in Signals}
    return None, names.get(ended.signal, f"signal {ended.signal}")


class _Streams:
    """The two outputs of a child, collected as they come and bounded together."""

    def __init__(self, child: Child, most_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._files = [file for file in (child.stdout, child.stderr) if file is not None]
        self._chunks: list[list[bytes]] = [[] for _ in self._files]
        self._left = most_bytes
        self.full: asyncio.Future[None] = self._loop.create_future()
        self.overflowed = False
        for at, file in enumerate(self._files):
            self._loop.add_reader(file.fileno(), self._read, at)

    def _read(self, at: int) -> bool:
        """Take what is there; False at the end."""
        fd = self._files[at].fileno()
        data = os.read(fd, _READ_BYTES)
        if not data or self.overflowed:
            self._loop.remove_reader(fd)
            return False
        self._chunks[at].append(data[: self._left])
        if len(data) > self._left:
            self.overflowed = True
            if not self.full.done():
                self.full.set_result(None)
        self._left = max(0, self._left - len(data))
        return True

    def drain(self) -> None:
        """What was written and not read yet. Nobody writes any more."""
        for at in range(len(self._files)):
            with contextlib.suppress(BlockingIOError):  # one that got away holds the other end
                while self._read(at):
                    pass

    def text(self) -> list[str]:
        return [b"".join(chunks).decode("utf-8", "replace") for chunks in self._chunks]

    def close(self) -> None:
        self.full.cancel()
        for file in self._files:
            self._loop.remove_reader(file.fileno())
            file.close()
