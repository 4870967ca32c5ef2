"""Runs the commands on the pages about adapters, and compares their output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from telex.config import places

ROOT = Path(__file__).parents[2]
DRIVE = (ROOT / "docs/how-to/drive-a-program-by-its-state.md").read_text()
WRITE = (ROOT / "docs/how-to/write-an-adapter.md").read_text()
README = (ROOT / "README.md").read_text()

SERVE = "$ telex serve"
BY_HAND = ("$ telex adapter try", "$ telex adapter record", SERVE)
"""Commands that need a person, or do not end."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def typed(page: str) -> Iterator[tuple[str, str]]:
    """Return each command of a page with its printed output."""
    for block in blocks(page, "text"):
        if block.startswith("$ ") and not block.startswith(BY_HAND):
            for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, printed = command.partition("\n")
                yield line, printed


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The environment of a person with telex installed and without settings."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    (programs / "telex").write_text(f'#!/bin/sh\nexec {sys.executable} -m telex "$@"\n')
    (programs / "telex").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "TELEX_HOME": str(home), "TERM": "xterm-256color"}


Shell = Callable[[str], str]


@pytest.fixture
def shell(environ: dict[str, str], tmp_path: Path) -> Shell:
    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            env=environ,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout

    return run


@contextmanager
def served(page: str, environ: dict[str, str], cwd: Path) -> Iterator[None]:
    """Run the server that a page starts."""
    (command,) = [
        block.splitlines()[0].removeprefix("$ ")
        for block in blocks(page, "text")
        if block.startswith(SERVE)
    ]
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        env=environ,
        cwd=cwd,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stderr is not None
        assert "listening at unix:" in server.stderr.readline()
        try:
            yield
        finally:
            server.terminate()


def test_a_program_is_driven_by_its_state(
    environ: dict[str, str], shell: Shell, tmp_path: Path
) -> None:
    commands = [one for one in typed(DRIVE) if "claude-code" not in one[0] and one[1]]
    assert len(commands) >= 6
    with served(DRIVE, environ, tmp_path):
        for line, printed in commands:
            assert shell(line) == printed, line


def test_an_adapter_is_written(environ: dict[str, str], shell: Shell, tmp_path: Path) -> None:
    new, first, failing, passing, *calls = typed(WRITE)
    assert shell(new[0]) == new[1]
    assert shell(first[0]) == first[1]
    mine = tmp_path / "mine"
    (mine / "fixtures/recorded.toml").write_text(blocks(WRITE, "toml")[0])
    assert shell(failing[0]) == failing[1]
    put_before(mine / "main.lua", "-- The function that every plugin must have", WRITE, 0)
    put_before(mine / "main.lua", "  if is_ready(ctx) then\n    return {\n", WRITE, 1)
    assert shell(passing[0]) == passing[1]
    assert len(calls) == 3
    with served(WRITE, environ, tmp_path):
        for line, printed in calls:
            assert shell(line) == printed, line


def put_before(file: Path, place: str, page: str, number: int) -> None:
    text = file.read_text()
    assert text.count(place) == 1
    file.write_text(text.replace(place, blocks(page, "lua")[number] + place))


def test_the_readme_example_of_adapters_works(environ: dict[str, str], tmp_path: Path) -> None:
    (code,) = [block for block in blocks(README, "python") if "telex.adapt" in block]
    (printed,) = re.findall(r"  # (.*)", code)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=code,
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{printed}\n", "")


def test_an_adapter_in_the_data_directory_is_found_by_its_name(
    environ: dict[str, str], shell: Shell
) -> None:
    directory = places.find(environ).adapters
    assert directory.name == "adapters"
    shell(f"telex adapter new mine --dir {directory}")
    assert "1 passed, 0 failed" in shell("telex adapter test mine")
