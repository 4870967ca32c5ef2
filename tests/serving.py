"""telex as a process of its own: with pipes to talk through, or `telex serve` for clients."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Serve:
    """A server, and how to reach it."""

    process: subprocess.Popen[str]
    unix: str
    web: str
    token: str

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)


@contextlib.contextmanager
def telex_child(environ: dict[str, str], work: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`telex ARGS` until the end of the block, with a pipe to each of its streams."""
    with subprocess.Popen(
        [sys.executable, "-m", "telex", *args],
        env=environ,
        cwd=work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.terminate()
            child.wait(60)


@contextlib.contextmanager
def serving(directory: Path, socket: str = "", **env: str) -> Iterator[Serve]:
    """Until the end of the block, at a unix socket and by HTTP."""
    socket = socket or str(directory / "telex.sock")
    process = subprocess.Popen(
        [sys.executable, "-m", "telex", "serve", "--socket", socket, "--http", "127.0.0.1:0"],
        env={**os.environ, "TELEX_HOME": str(directory / "home"), "TELEX_TOKEN": "", **env},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            told = _told(process.stderr)
            yield Serve(process, f"unix:{socket}", told["http"], told["token"])
        finally:
            process.terminate()
            process.wait(60)


def _told(stderr: IO[str]) -> dict[str, str]:
    """What it says when its doors are open."""
    told = {}
    while "token" not in told:
        line = stderr.readline()
        assert line, f"the server did not start; it said {told}"
        if found := re.search(r"at (http\S*?)/rpc|token (\S+)", line):
            told |= {"http": found[1]} if found[1] else {"token": found[2]}
    return told
