"""What may stand between a terminal and a program, and break what passes: `relay.py HOW COMMAND…`.

`stripping` takes the ESC off control strings on the way out. `cutting` cuts what is long on the
way in, as a terminal that is not raw would. `echoing` sends back what is typed.
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

    with contextlib.suppress(OSError):  # how Linux says that the program is gone
        pty._copy(inner, shown, typed)  # type: ignore[attr-defined]


main(sys.argv[1], sys.argv[2:])
