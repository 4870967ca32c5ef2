"""Process trees for the tests, and a pipe that every process of a tree holds."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

SHAPES = {
    "alone": ('exec sh "$0"', 1),
    "willing to go": ('setsid sh "$0" willing & exec sh "$0" willing', 2),
    "in the background": ('sh "$0" & exec sh "$0"', 2),
    "with nohup": ('nohup sh "$0" >/dev/null & exec sh "$0"', 2),
    "in a session of its own": ('setsid sh "$0" & exec sh "$0"', 2),
    "forked twice": ('(sh "$0" &); exec sh "$0"', 2),
    "forked twice, in a session of its own": ('(setsid sh "$0" &); exec sh "$0"', 2),
    "left behind": ('sh "$0" & setsid sh "$0" &', 2),
    "a daemon left behind": ("""(setsid sh -c '(setsid sh "$0" &)' "$0" &); :""", 1),
    "stopped": ('sh "$0" stopped & setsid sh "$0" stopped & exec sh "$0" stopped', 3),
    "a nest": ("""setsid sh -c 'setsid sh "$0" & (sh "$0" &); exec sh "$0"' "$0" &""", 3),
    "with an empty environment, its parent there": ('env -i setsid sh "$0" & exec sh "$0"', 2),
    "with an empty environment, left behind": ('(env -i sh "$0" &); :', 1),
}
"""Trees by their special property: a shell script, and how many processes report that they run."""


def shape(name: str) -> tuple[list[str], int]:
    """Return the command that starts such a tree, and how many processes to wait for."""
    script, count = SHAPES[name]
    return ["sh", "-c", script, str(Path(__file__).with_name("leaf.sh"))], count


class Lifeline:
    """A pipe whose writing end every process of a tree inherits, as its stderr.

    Each process writes a line when it runs. The pipe reaches EOF exactly when the last process has
    exited: there is no polling, no sleeping, and no process can be missed.
    """

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    async def ready(self, count: int) -> None:
        """Wait until so many processes run."""
        written = b""
        while written.count(b"\n") < count:
            piece = await self._piece()
            assert piece, f"all exited before {count} had started; they wrote {written!r}"
            written += piece

    async def gone(self) -> int:
        """Wait until no process holds the writing end, nor we. Return how many more have started."""
        self.release()
        lines = 0
        while piece := await self._piece():
            lines += piece.count(b"\n")
        return lines

    def release(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    async def _piece(self) -> bytes:
        loop = asyncio.get_running_loop()
        readable = loop.create_future()
        loop.add_reader(self.reading, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            loop.remove_reader(self.reading)
        return os.read(self.reading, 65536)

    def close(self) -> None:
        self.release()
        os.close(self.reading)
