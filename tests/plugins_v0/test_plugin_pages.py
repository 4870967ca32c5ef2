"""The commands on the page about using plugins, typed as they stand there, print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/how-to/use-plugins.md").read_text()
HOME = "/home/ann"
BETWEEN = "@@@"


def typed() -> list[tuple[str, str]]:
    """Each command of the page, and what it is said to print; `…` is more."""
    blocks = "".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
    commands = re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]
    return [(line, printed) for line, _, printed in (one.partition("\n") for one in commands)]


def test_the_commands_on_the_page_print_what_it_says(tmp_path: Path) -> None:
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    (programs / "telex").write_text(f'#!/bin/sh\nexec {sys.executable} -m telex "$@"\n')
    (programs / "telex").chmod(0o755)
    (home / "tasks.toml").write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])
    script = "".join(f"{line}\necho {BETWEEN}\n" for line, _ in typed())
    environ = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TELEX_HOME": str(home / ".telex"),
        "COLUMNS": "80",
    }
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\numask 022\n{script}"],
        env=environ,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    outputs = done.stdout.replace(str(home), HOME).split(f"{BETWEEN}\n")
    for (line, printed), output in zip(typed(), outputs, strict=False):
        start, more, _ = printed.partition("…")
        assert (output[: len(start)] if more else output) == start, line
