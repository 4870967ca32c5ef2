"""A minimal terminal for the program's side: the other end of a real PTY.

It replies to DA1 as configured (with 23198 or not, late, in pieces, never), and serves JSON escapes
with the given handlers. It can simulate a multiplexer around the program, which passes wrapped
strings on or drops them, and replies to DA1 itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import sys
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from telex.escapes.inband import InBandChannel
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.wire import json_escape
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SPEAKS = b"\x1b[?62;22;23198c"
SILENT = b"\x1b[?62;22c"
TERM = {"term": {"level": 2}}


@dataclass
class Manners:
    """The behaviour of a fake terminal."""

    answers: list[bytes] = field(default_factory=lambda: [SPEAKS])
    """The reply to DA1, in these pieces; an empty list is no reply."""
    late: float = 0.0
    """Seconds before each piece."""
    multiplexer: str = ""
    """`tmux` passes wrapped strings on; `deaf` drops them, and `one-way` drops their responses."""
    echoes: bool = False
    """Whether the program's frames are echoed."""
    detect: dict[str, Any] | None = field(
        default_factory=lambda: {"capabilities": TERM, "maxframe": 65536}
    )


class FakeTerminal:
    """A terminal on a real PTY. Made by `terminal`; `fd` is the program's end."""

    def __init__(self, manners: Manners, handlers: dict[str, Callable[..., Any]]) -> None:
        self.manners = manners
        self.fd, self.ours = -1, -1
        self.ours, self.fd = os.openpty()
        os.set_blocking(self.ours, False)
        self.found = termios.tcgetattr(self.fd)
        self.shown = bytearray()
        """Output that is neither a frame nor DA1: what a person would see."""
        self.frames: list[bytes] = []
        self.asked = 0
        self._demux = Demux([json_escape.TO_TERMINAL])
        self._loop = asyncio.get_running_loop()
        self._more = asyncio.Event()
        self._queue = bytearray()
        self._loop.add_reader(self.ours, self._read)
        self._inband = InBandChannel(self._answer, self._foreground, echoes=self._echoing)
        methods = Methods()
        if manners.detect is not None:
            methods.add("detect", self._detect)
        for name, handler in handlers.items():
            methods.add(name, handler)
        self.peer = Peer(self._inband, self._inband.dialect, methods)

    def _detect(self) -> dict[str, Any]:
        assert self.manners.detect is not None
        return self.manners.detect

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.fd)

    def restored(self) -> bool:
        return self.modes() == self.found

    def left(self) -> bytes:
        """Return the input that the next program would read."""
        raw = self.modes()
        raw[3] &= ~termios.ICANON
        raw[6][termios.VMIN] = raw[6][termios.VTIME] = 0
        termios.tcsetattr(self.fd, termios.TCSANOW, raw)
        return os.read(self.fd, 4096)

    def type(self, data: bytes) -> None:
        """Type as a person would, or send a reply."""
        if self.ours >= 0:
            self._queue += data
            self._loop.add_writer(self.ours, self._write)

    async def sees(self, wanted: bytes) -> None:
        async with asyncio.timeout(60):
            while wanted not in self.shown:
                self._more.clear()
                await self._more.wait()

    async def is_asked(self) -> None:
        """Wait until DA1 was received."""
        async with asyncio.timeout(60):
            while not self.asked:
                self._more.clear()
                await self._more.wait()

    async def gets(self, wanted: bytes) -> bytes:
        """Wait for a frame that contains this."""
        async with asyncio.timeout(60):
            while True:
                for frame in self.frames:
                    if wanted in frame:
                        return frame
                self._more.clear()
                await self._more.wait()

    def _read(self) -> None:
        try:
            data = os.read(self.ours, 65536)
        except BlockingIOError:
            return
        except OSError:
            self._loop.remove_reader(self.ours)
            return
        if self.manners.echoes:
            self.type(b"".join(re.findall(rb"\x1b\]23198;.*?\x07", data)))
        if self.manners.multiplexer:
            data = self._unwrapped(data)
        for event in self._demux.feed(data):
            match event:
                case Visible(visible):
                    self._show(visible)
                case Claimed():
                    self._claim(event)
        self._more.set()

    def _unwrapped(self, data: bytes) -> bytes:
        """Pass output through the multiplexer, which drops unknown sequences."""
        data = re.sub(rb"\x1b\]23198;.*?\x07", b"", data) if b"tmux;" not in data else data
        inner = re.compile(rb"\x1bPtmux;((?:\x1b\x1b|[^\x1b])*)\x1b\\")
        deaf = self.manners.multiplexer == "deaf"
        return inner.sub(
            lambda found: b"" if deaf else found[1].replace(b"\x1b\x1b", b"\x1b"), data
        )

    def _claim(self, claimed: Claimed) -> None:
        frame = json_escape.parse(claimed)
        self.frames.append(getattr(frame, "body", b""))
        self._inband.claimed(claimed)

    def _show(self, data: bytes) -> None:
        asked = data.count(b"\x1b[c")
        self.shown += data.replace(b"\x1b[c", b"")
        self.asked += asked
        for _ in range(asked):
            for place, piece in enumerate(self.manners.answers, 1):
                if self.manners.late:
                    self._loop.call_later(self.manners.late * place, self.type, piece)
                else:
                    self.type(piece)

    def _write(self) -> None:
        try:
            while self._queue:
                del self._queue[: os.write(self.ours, self._queue[:4096])]
        except BlockingIOError:
            return
        self._loop.remove_writer(self.ours)

    def _answer(self, frame: bytes) -> None:
        if self.manners.multiplexer != "one-way":
            self.type(frame)

    def _foreground(self) -> int | None:
        """Return the foreground group; ours, if this is not a controlling terminal."""
        return None if self.ours < 0 else os.tcgetpgrp(self.ours) or os.getpgrp()

    def _echoing(self) -> bool:
        return bool(self.modes()[3] & termios.ECHO)

    def pause(self) -> None:
        """Stop reading the program's output."""
        self._loop.remove_reader(self.ours)

    def resume(self) -> None:
        self._loop.add_reader(self.ours, self._read)

    def hang_up(self) -> None:
        if self.ours >= 0:
            self._loop.remove_reader(self.ours)
            self._loop.remove_writer(self.ours)
            os.close(self.ours)
            self.ours = -1


@contextlib.asynccontextmanager
async def terminal(
    manners: Manners | None = None, **handlers: Callable[..., Any]
) -> AsyncIterator[FakeTerminal]:
    """Open a fake terminal. Handlers are named by command, with `_` for `:`."""
    named = {name.replace("_", ":", 1): handler for name, handler in handlers.items()}
    fake = FakeTerminal(manners or Manners(), named)
    try:
        yield fake
    finally:
        await fake.peer.close()
        fake.hang_up()
        os.close(fake.fd)


@contextlib.asynccontextmanager
async def running(
    fake: FakeTerminal, *argv: str, program: str = sys.executable, piped: bool = True, **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program, Python by default, with the fake as its controlling terminal.

    With `piped`, its stdin is empty, and its stdout and stderr are pipes.
    """
    pipe = asyncio.subprocess.PIPE if piped else fake.fd
    child = await asyncio.create_subprocess_exec(
        program,
        *argv,
        stdin=asyncio.subprocess.DEVNULL if piped else fake.fd,
        stdout=pipe,
        stderr=pipe,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **env},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(fake.fd, termios.TIOCSCTTY, 0),
        pass_fds=[fake.fd],
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def ran(fake: FakeTerminal, *argv: str, **env: str) -> tuple[int, str, str]:
    """Run a program. Return its exit code, stdout and stderr."""
    async with running(fake, *argv, **env) as child:
        out, err = await child.communicate()
    return child.returncode or 0, out.decode(), err.decode()
