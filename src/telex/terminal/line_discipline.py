"""The kernel's line discipline of a terminal: echo, line editing and special characters.

The functions read and change the settings of an open terminal by its descriptor; on Linux and macOS
the master shows and changes the settings of the slave. Only `pty` and `input_watch` use them.
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
"""IUTF8, missing in `termios`, with the same value on Linux and macOS: erase removes a whole
character, not a byte.
"""


@dataclass(frozen=True, slots=True)
class LineSettings:
    """How the terminal processes typed input, as set by its program.

    A special character that the program has disabled is empty.
    """

    interrupt: bytes = b"\x03"
    quit: bytes = b"\x1c"
    eof: bytes = b"\x04"
    erase: bytes = b"\x7f"
    kill: bytes = b"\x15"
    suspend: bytes = b"\x1a"
    echo: bool = True
    """Whether typed input is shown."""
    canonical: bool = True
    """Whether the kernel edits lines and the program reads whole lines (canonical mode)."""
    signals: bool = True
    """Whether interrupt, quit and suspend send signals instead of being input."""
    flushes: bool = True
    """Whether such a signal discards the input typed before it."""
    maps_return: bool = True
    """Whether Enter is read as a newline (ICRNL). Most line editors read it as it is."""
    formats_output: bool = True
    """Whether a printed newline also returns to the first column (OPOST)."""


def prepare(slave: int, size: Size) -> None:
    """Set up the terminal of a new program: the kernel's defaults, UTF-8, and the size."""
    settings = termios.tcgetattr(slave)
    settings[0] |= _IUTF8
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    set_size(slave, size)


def set_size(fd: int, size: Size) -> None:
    packed = struct.pack("HHHH", size.rows, size.cols, size.pixel_width, size.pixel_height)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, packed)


def hides_typing(master: int) -> bool:
    """Return whether the kernel edits lines without echo. Raises as `line_settings`, costs less."""
    return bool((local := termios.tcgetattr(master)[3]) & termios.ICANON) and not (
        local & termios.ECHO
    )


def line_settings(master: int) -> LineSettings:
    """Return the present settings. Raises `termios.error` when the terminal no longer exists."""
    given, output, _, local, _, _, special = termios.tcgetattr(master)
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
        maps_return=bool(given & termios.ICRNL),
        formats_output=bool(output & termios.OPOST),
    )


def device(path: str) -> tuple[int, int]:
    """Return the major and minor number of a terminal. Raises OSError if there is none."""
    number = os.stat(path).st_rdev
    return os.major(number), os.minor(number)


def settings_of(path: str) -> LineSettings:
    """Return the present settings of another terminal. Raises OSError if it cannot be opened."""
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        return line_settings(slave)
    except termios.error as error:
        raise OSError(*error.args) from error
    finally:
        os.close(slave)


def unread(path: str) -> int:
    """Return the number of typed bytes that the program has not read; 0 in an unfinished line."""
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        # Input typed just now may still be in the kernel's queue; polling makes the kernel
        # process it.
        poll = select.poll()
        poll.register(slave, select.POLLIN)
        poll.poll(0)
        return int(struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))[0])
    finally:
        os.close(slave)


def has_unread(path: str) -> bool:
    """Return whether a program that reads the terminal now would not wait: for a key, or in
    canonical mode for a whole line or its end."""
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        poll = select.poll()
        poll.register(slave, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(slave)


def discard_input(master: int, path: str) -> None:
    """Discard unread input: first the bytes still in the queue, then those that have arrived."""
    termios.tcflush(master, termios.TCOFLUSH)
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        termios.tcflush(slave, termios.TCIFLUSH)
    finally:
        os.close(slave)
