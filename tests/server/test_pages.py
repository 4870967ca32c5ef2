"""The verbs in the README and the tutorial, run as they stand there by the real client."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Telex

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(?:text|sh)\n(.*?)```", re.DOTALL)


@pytest.fixture
def shell(telex: Telex, tmp_path: Path) -> Shell:
    return Shell(telex, tmp_path / "bin")


class Shell:
    """Runs command lines with a `telex` in PATH; every line begins where a person would be."""

    def __init__(self, telex: Telex, programs: Path) -> None:
        programs.mkdir()
        (programs / "telex").write_text(f'#!/bin/sh\nexec {sys.executable} -m telex "$@"\n')
        (programs / "telex").chmod(0o755)
        self._environ = telex.environ | {"PATH": f"{programs}:{telex.environ['PATH']}"}
        self._work = telex.work

    def __call__(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            env=self._environ,
            cwd=self._work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout


def pattern(expected: list[str]) -> str:
    """A pattern of the printed lines: `…` is anything in a line, alone any lines; a time is any."""
    lines = []
    for line in expected:
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
            continue
        escaped = re.escape(line).replace("…", ".*?")
        escaped = re.sub(r"until\\ \d\d:\d\d", r"until \\d\\d:\\d\\d", escaped)
        lines.append(rf"{escaped}[ ]*\n")
    return "".join(lines)


def steps(text: str) -> list[tuple[str, list[str]]]:
    """The command lines, which begin with `$ `, each with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(text):
        if not block.startswith("$ "):
            continue
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif "<<" in found[-1][0] and not found[-1][0].endswith("\nEND"):
                found[-1] = (f"{found[-1][0]}\n{line}", found[-1][1])
            else:
                found[-1][1].append(line)
    return found


def test_the_tutorial_prints_what_it_says(shell: Shell) -> None:
    tutorial = steps((ROOT / "docs/tutorial/from-a-shell.md").read_text())
    assert len(tutorial) > 15
    for command, expected in tutorial:
        printed = shell(command)
        assert re.fullmatch(pattern(expected), printed), f"$ {command}\n{printed}\n{expected}"


def test_the_verbs_of_the_readme_work_in_order(shell: Shell) -> None:
    (block,) = [one for one in BLOCK.findall((ROOT / "README.md").read_text()) if "telex do" in one]
    printed = [shell(line.partition("#")[0]) for line in block.splitlines()]
    assert "held until" in printed[0]
    assert "\n42\n" in printed[1]
    assert printed[2] == ""
