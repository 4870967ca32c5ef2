"""Which process group in the foreground of a terminal may be answered: any but an idle shell.

When `cat` has shown a file full of requests and ended, the shell is back in the foreground before
the requests are read, and the answers would land on its command line. A shell with job control is
recognised by what it ignores: SIGTSTP and SIGTTOU, both (bash and zsh SIGTTIN too, fish and dash
not). It is answered only while something else runs in its own process group, as in
`$(telex detect)`. tmux ignores the same signals, and passes answers on: it is recognised by its
name, which it sets itself.

Reads /proc. Without one (macOS), a shell is answered like any other program.
"""

from __future__ import annotations

import os
import re
import signal
from typing import Final

_IGNORED: Final = re.compile(rb"^SigIgn:\s*([0-9a-f]+)", re.MULTILINE)
_JOB_CONTROL: Final = sum([1 << (number - 1) for number in (signal.SIGTSTP, signal.SIGTTOU)])
_TMUX: Final = b"Name:\ttmux: client\n"


def answerable_group(group: int | None) -> int | None:
    """The process group in the foreground, if somebody there would read an answer."""
    return None if group is None or _is_idle_shell(group) else group


def _is_idle_shell(group: int) -> bool:
    try:
        status = _read(f"/proc/{group}/status")
        found = _IGNORED.search(status)
        if found is None or int(found[1], 16) & _JOB_CONTROL != _JOB_CONTROL:
            return False
        if status.startswith(_TMUX):
            return False
        children = _read(f"/proc/{group}/task/{group}/children").split()
    except OSError:  # its leader is gone and others of it are left, or there is no /proc
        return False
    return not any(_group_of(int(pid)) == group for pid in children)


def _group_of(pid: int) -> int | None:
    try:
        # The second field is the program's name, and may hold anything.
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[2])
    except OSError:  # it ended
        return None


def _read(path: str) -> bytes:
    # Not `open()`, whose file object doubles the cost of this, which each question pays.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)
