"""A program between a terminal and a command that breaks the data: `relay.py HOW COMMAND…`.

`stripping` removes the ESC of control strings in the output. `cutting` cuts long lines of the
input, as a terminal that is not raw would. `echoing` echoes the input.
"""

from __future__ import annotations

import contextlib
import os
import pty
import sys
import tty


def main(how: str, argv: list[str]) -> None:
    child, inner = pty.fork()
    if child == 0:
        os.execvp(argv[0], argv)
    tty.setraw(0)
    tty.setraw(inner)

    def shown(fd: int) -> bytes:
        data = os.read(fd, 65536)
        return data.replace(b"\x1bP", b"P") if how == "stripping" else data

    def typed(fd: int) -> bytes:
        data = os.read(fd, 65536)
        if how == "echoing":
            os.write(1, data)
        return data[:2000] if how == "cutting" else data

    with contextlib.suppress(OSError):  # raised by Linux when the program has exited
        pty._copy(inner, shown, typed)  # type: ignore[attr-defined]


main(sys.argv[1], sys.argv[2:])
