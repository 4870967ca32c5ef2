"""`telex agent skills`, and `telex agent exec "/name …"`, before and after the project is trusted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


def test_skills_and_commands_are_listed_and_used_once_the_project_is_trusted(
    inside: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    commands, skill = work / ".telex" / "commands", work / ".claude" / "skills" / "release"
    for made in (commands, skill):
        made.mkdir(parents=True)
    (commands / "note.md").write_text("---\nargument-hint: [what]\n---\ntodo $ARGUMENTS")
    (commands / "none.md").write_text("")
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How.\n---\n")
    listed = inside("agent", "skills")
    assert listed.returncode == 0
    assert listed.stdout.count("not used: the project is not trusted") == 2
    assert listed.stderr.count("1 skill and 1 command are not used") == 1
    refused = inside("agent", "exec", "/note buy milk")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "/note is a command that is not used: the project is not trusted" in refused.stderr
    (work / ".telex" / "config.toml").touch()
    assert inside("config", "trust").returncode == 0
    listed = inside("agent", "skills")
    assert listed.stdout.splitlines() == [
        f"/note [what] (command, {commands}/note.md)",
        "      todo $ARGUMENTS",
        f"/release (skill, {skill}/SKILL.md)",
        "      How.",
    ]
    assert f"{commands}/none.md: the prompt is empty" in listed.stderr
    found = json.loads(inside("agent", "skills", "--json").stdout)
    assert [one["name"] for one in found["commands"]] == ["note", "release"]
    done = inside("agent", "exec", "/note buy milk")
    assert (done.returncode, done.stdout) == (0, "1. [ ] buy milk\n")
