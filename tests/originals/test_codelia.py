"""Codelia's TUI with `telex agent` as its runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import telex
from originals.installing import from_npm
from telex import match

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 60


@pytest.mark.counted
@pytest.mark.deadline(600)
async def test_codelias_tui_chats_asks_resumes_and_signs_out(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    tui = from_npm(program, "@codelia/tui-linux-x64", "0.1.81", "bin/codelia-tui")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").touch()
    (work / "README.md").write_text("the readme\n")
    env = {
        "HOME": str(tmp_path),
        "TELEX_HOME": str(tmp_path / "home"),
        "CODELIA_RUNTIME_CMD": sys.executable,
        "CODELIA_RUNTIME_ARGS": "-m telex agent",
    }
    size = {"rows": 40, "cols": 110}

    async def says(t: telex.AsyncTerminal, text: str, *shows: str) -> None:
        await t.type(text)
        await t.press("enter")
        for words in shows:
            await t.wait(match.text(words), timeout=SECONDS)

    async with telex.spawn([str(tui), "--diagnostics"], env=env, cwd=work, **size) as t:
        await t.wait(match.text("model: builtin/builtin"), timeout=SECONDS)
        await says(t, "list *.py", "a.py", "diag run total", "completed")
        await says(t, "!echo hello", "bang exec done: exit=0")
        await says(t, "read README.md", "the readme")
        await says(t, "/compact", "compacted=false")
        await says(t, "/model", "Select provider", "anthropic")
        await t.press("enter")
        await t.wait(match.text("model.list returned no models"), timeout=SECONDS)
        await says(t, "run touch made", "Run command?", "1. Allow")
        await t.press("enter")
        await t.wait(match.text("[no output]"), timeout=SECONDS)
        await says(t, "/logout", "Sign out?", "1. Yes")
        await t.press("enter")
        await t.wait(match.text("Session reset."), timeout=SECONDS)
        await says(t, "help", "I am the builtin core")
    assert (work / "made").exists()
    resuming = [str(tui), "--approval-mode", "full-access", "-r"]
    async with telex.spawn(resuming, env=env, cwd=work, **size) as t:
        await t.wait(match.text("Current workspace"), timeout=SECONDS)
        await t.wait(match.text("| help"), timeout=SECONDS)
        listed = await t.text()
        await t.press("enter")
        await t.wait(match.text("History restored"), timeout=SECONDS)
        await says(t, "run touch unasked", "unasked", "completed")
    assert (work / "unasked").exists(), "full-access asks nobody"
    command = [sys.executable, "-m", "telex", "agent", "sessions"]
    ran = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=True, timeout=60
    )
    stored = ran.stdout.splitlines()
    assert [row.split(maxsplit=3)[3] for row in stored] == ["run touch unasked", "run touch made"]
    assert all(row[:8] in listed for row in stored)
    print("\nCodelia's TUI 0.1.81: chat, shell, compaction, models, permission, sign-out, resume")
