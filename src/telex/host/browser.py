"""The person's own browser: which one it is, and how it is started.

`$BROWSER` comes first, as everywhere: commands separated by colons, with `%s` where the address
goes. Then what the system opens addresses with. Neither is asked where nobody would see it: on a
machine without a display, or at the other end of ssh; what then remains is to show the address.

It is no program of ours: it has no terminal, so that it cannot draw over what is on the person's,
and it is not ended with us.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Final

from telex.processes import proc
from telex.processes.child_environment import COOKIE
from telex.processes.launch import launch, null

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE_SECONDS: Final = 5.0
"""For one that cannot open an address to say so by its exit code."""


def command(url: str, environ: Mapping[str, str]) -> list[str] | None:
    """What opens this address; None if there is nothing, or nobody to see it."""
    for given in environ.get("BROWSER", "").split(":"):
        words = shlex.split(given)
        if words and (path := shutil.which(words[0], path=environ.get("PATH"))):
            rest = [word.replace("%s", url) for word in words[1:]]
            return [path, *rest] if "%s" in given else [path, *rest, url]
    if "SSH_CONNECTION" in environ or "SSH_TTY" in environ:
        return None
    if sys.platform == "darwin":
        usual = "open"
    elif "DISPLAY" in environ or "WAYLAND_DISPLAY" in environ:
        usual = "xdg-open"
    else:
        return None
    path = shutil.which(usual, path=environ.get("PATH"))
    return None if path is None else [path, url]


async def open_in_browser(url: str) -> bool:
    """Whether a browser took it, as far as can be known."""
    argv = command(url, os.environ)
    if argv is None:
        return False
    # Without the mark by which what a run has started is found and ended with it.
    environment = {name: value for name, value in os.environ.items() if name != COOKIE}
    try:
        pid = launch(argv[0], argv, environment, [null(fd) for fd in (0, 1, 2)])
    except OSError:
        return False
    return await _taken(pid)


async def _taken(pid: int) -> bool:
    """A browser that stays is one; what ends says by its code whether it found one."""
    fd = proc.pidfd(pid)
    if fd is None:
        return True
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, told.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await told.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    return _runs_or_succeeded(pid)


def _runs_or_succeeded(pid: int) -> bool:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return not ended or os.waitstatus_to_exitcode(status) == 0
