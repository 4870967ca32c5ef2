"""What the kernel does between a terminal and its program: echo, line editing, special characters.

Read from and set on an open terminal by its descriptor; on Linux and macOS the master shows and
changes what the slave has. `pty` is the only user of the functions.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from telex.terminal.cells import Size

_IUTF8: Final = 0x4000
"""The same on Linux and macOS, and missing in `termios`: erasing erases a character, not a byte."""


@dataclass(frozen=True, slots=True)
class LineSettings:
    """What the terminal does with what is typed, as its program has set it.

    A character that the program has switched off is empty.
    """

    interrupt: bytes = b"\x03"
    quit: bytes = b"\x1c"
    eof: bytes = b"\x04"
    erase: bytes = b"\x7f"
    kill: bytes = b"\x15"
    suspend: bytes = b"\x1a"
    echo: bool = True
    """Whether what is typed is shown."""
    canonical: bool = True
    """Whether the program gets whole lines, edited by the kernel."""
    signals: bool = True
    """Whether interrupt, quit and suspend are signals, and not input."""
    flushes: bool = True
    """Whether such a signal discards what was typed before it."""


def prepare(slave: int, size: Size) -> None:
    """What a new program finds: the kernel's own settings, which are sane, with UTF-8, and the
    size."""
    settings = termios.tcgetattr(slave)
    settings[0] |= _IUTF8
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    set_size(slave, size)


def set_size(fd: int, size: Size) -> None:
    packed = struct.pack("HHHH", size.rows, size.cols, size.pixel_width, size.pixel_height)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, packed)


def line_settings(master: int) -> LineSettings:
    """As they are now. Raises `termios.error` when there is no terminal any more."""
    _, _, _, local, _, _, special = termios.tcgetattr(master)
    off = bytes([os.fpathconf(master, "PC_VDISABLE") & 0xFF])

    def character(index: int) -> bytes:
        value = special[index]
        return b"" if value == off else value

    return LineSettings(
        interrupt=character(termios.VINTR),
        quit=character(termios.VQUIT),
        eof=character(termios.VEOF),
        erase=character(termios.VERASE),
        kill=character(termios.VKILL),
        suspend=character(termios.VSUSP),
        echo=bool(local & termios.ECHO),
        canonical=bool(local & termios.ICANON),
        signals=bool(local & termios.ISIG),
        flushes=not local & termios.NOFLSH,
    )


def unread(path: str) -> int:
    """How many bytes were typed that the program has not read; in a line that is not ended, 0."""
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        # What was typed just now may be on its way still; to be asked about it the kernel hurries.
        poll = select.poll()
        poll.register(slave, select.POLLIN)
        poll.poll(0)
        return int(struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))[0])
    finally:
        os.close(slave)


def discard_input(master: int, path: str) -> None:
    """What was typed and not read is gone: what is on its way, then what has arrived."""
    termios.tcflush(master, termios.TCOFLUSH)
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        termios.tcflush(slave, termios.TCIFLUSH)
    finally:
        os.close(slave)
