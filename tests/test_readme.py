"""The first examples of the README work when pasted."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def block(language: str, containing: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    (code,) = [code for code in found if containing in code]
    return code


def telex(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "telex", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_test_passes_and_its_picture_matches_the_readme(tmp_path: Path) -> None:
    (tmp_path / "test_vim.py").write_text(block("python", "def test_help_opens"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_vim.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    (shot,) = re.findall(r"\(`telex (shot .*)`\)", README)
    arguments = ["vim.txt" if word == "vim.png" else word for word in shlex.split(shot)]
    telex(*arguments, cwd=tmp_path)
    assert "Move around" in (tmp_path / "vim.txt").read_text()
