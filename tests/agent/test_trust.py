"""Whose rules count, and whether git may be run, is for the root to say: not for where one stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from permission_world import shell
from telex.agent.judging import Decision
from telex.cli.agent.making import Wanted, served_agent
from telex.config import places, project
from telex.config.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent.permissions import Permissions

RULE = '[[permission.rule]]\ntool = "shell"\ncommand = "make"\ndecision = "allow"\n'


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TELEX_HOME", str(tmp_path / "home" / "telex"))
    (tmp_path / "home").mkdir()


def a_project(path: Path, *, trusted: bool, content: str = RULE) -> Path:
    (path / ".telex").mkdir(parents=True)
    (path / ".telex" / "config.toml").write_text(content)
    records = places.find().trusted
    file = project.read(path / ".telex" / "config.toml", records)
    assert file is not None
    if trusted:
        project.trust(file, records)
    return path


async def permissions_in(cwd: Path, root: Path | None, mode: str = "minimal") -> Permissions:
    config = load(places.find(), directory=cwd)
    async with served_agent(Wanted(config, root, mode)) as server:
        return server.runtime.confirming.permissions


async def test_a_root_is_not_trusted_because_the_directory_one_stands_in_is(
    tmp_path: Path,
) -> None:
    mine, other = a_project(tmp_path / "mine", trusted=True), tmp_path / "other"
    other.mkdir()
    permissions = await permissions_in(mine, other)
    assert not permissions.trusted
    assert permissions.judge.judge(shell("make", str(other))).decision is Decision.ASK


async def test_a_root_that_is_trusted_is_so_from_anywhere(tmp_path: Path) -> None:
    mine = a_project(tmp_path / "mine", trusted=True)
    other = a_project(tmp_path / "other", trusted=False)
    permissions = await permissions_in(other, mine)
    assert permissions.trusted
    assert permissions.judge.judge(shell("make", str(mine))).decision is Decision.ALLOW
