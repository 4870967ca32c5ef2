"""Commands on a page of the documentation, typed as they stand there, and what they print.

    for line, printed, output in typed(page, tmp_path): ...

A block that begins with `$ ` is typed; `…` in what the page prints is more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HOME = "/home/ann"
BETWEEN = "@@@"


def check_typed(page: str, home: Path, within: str = ".") -> None:
    """Every command, typed in a directory of `home`, prints what the page says."""
    commands = _commands(page)
    assert commands, "nothing to type"
    outputs = _outputs([line for line, _ in commands], home, within)
    assert len(outputs) == len(commands) + 1, outputs[-1]
    for (line, printed), output in zip(commands, outputs, strict=False):
        start, more, _ = printed.partition("…")
        assert (output[: len(start)] if more else output) == start, line


def _commands(page: str) -> list[tuple[str, str]]:
    blocks = "".join(re.findall(r"```text\n(\$ .*?)```", page, re.DOTALL))
    commands = re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]
    return [(line, printed) for line, _, printed in (one.partition("\n") for one in commands)]


def _outputs(lines: list[str], home: Path, within: str) -> list[str]:
    programs = home.parent / "bin"
    programs.mkdir()
    (programs / "telex").write_text(f'#!/bin/sh\nexec {sys.executable} -m telex "$@"\n')
    (programs / "telex").chmod(0o755)
    environ = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TELEX_HOME": str(home.parent / "telex"),
        "COLUMNS": "80",
    }
    script = "".join(f"{line}\necho {BETWEEN}\n" for line in lines)
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\numask 022\n{script}"],
        env=environ,
        cwd=home / within,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.replace(str(home), HOME).split(f"{BETWEEN}\n")
