"""Trees of processes to end, and a line to every process of one."""

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
"""Trees by what is unusual about them: a shell script, and how many of them say that they are up."""


def shape(name: str) -> tuple[list[str], int]:
    """The command that grows such a tree, and how many to wait for."""
    script, count = SHAPES[name]
    return ["sh", "-c", script, str(Path(__file__).with_name("leaf.sh"))], count


class Lifeline:
    """A pipe whose far end every process of a tree inherits, as its stderr.

    Each says a line when it is up. The pipe ends exactly when the last of them has gone: nothing to
    poll, nothing to sleep for, nobody to overlook.
    """

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    async def ready(self, count: int) -> None:
        """So many processes are up."""
        said = b""
        while said.count(b"\n") < count:
            piece = await self._piece()
            assert piece, f"all went before {count} were up; they said {said!r}"
            said += piece

    async def gone(self) -> int:
        """Nobody holds the far end any more, not even we. How many more have said they were up."""
        self.let_go()
        lines = 0
        while piece := await self._piece():
            lines += piece.count(b"\n")
        return lines

    def let_go(self) -> None:
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
        self.let_go()
        os.close(self.reading)
