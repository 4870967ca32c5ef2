"""Trust belongs to the root, not to the working directory, and an agent cannot grant it. It decides
whether the project's rules count and whether git may run without a question."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from permission_world import shell
from telex.agent.permissions import Permission, PermissionRequest
from telex.agent.protocol.runs import WorkspaceChoice
from telex.cli.agent.composition import Wanted, served_agent
from telex.config import load, places

if TYPE_CHECKING:
    from telex.agent.permissions.workspace_permissions import WorkspacePermissions

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
    file = load.read(path / ".telex" / "config.toml", records)
    assert file is not None
    if trusted:
        load.trust(file, records)
    return path


async def permissions_in(
    cwd: Path, root: Path | None, mode: str = "minimal"
) -> WorkspacePermissions:
    wanted = Wanted(root=root, mode=mode)
    with contextlib.chdir(cwd):
        config = wanted.load()
        async with served_agent(wanted, config) as server:
            return (await server.runtime.open_workspace()).confirmer.permissions


async def test_trust_in_the_working_directory_does_not_cover_the_root(
    tmp_path: Path,
) -> None:
    mine, other = a_project(tmp_path / "mine", trusted=True), tmp_path / "other"
    other.mkdir()
    permissions = await permissions_in(mine, other)
    assert not permissions.trusted
    assert permissions.judge.judge(shell("make", str(other))).decision is Permission.ASK


async def test_a_trusted_root_is_trusted_from_any_directory(tmp_path: Path) -> None:
    mine = a_project(tmp_path / "mine", trusted=True)
    other = a_project(tmp_path / "other", trusted=False)
    permissions = await permissions_in(other, mine)
    assert permissions.trusted
    assert permissions.judge.judge(shell("make", str(mine))).decision is Permission.ALLOW


async def test_one_server_trusts_one_root_and_not_another(tmp_path: Path) -> None:
    mine = a_project(tmp_path / "mine", trusted=True)
    other = a_project(tmp_path / "other", trusted=False)
    async with served_agent(Wanted(shared=True)) as server:
        assert not places.find().database.exists()
        for root, decision in ((mine, Permission.ALLOW), (other, Permission.ASK)):
            workspace = await server.runtime.open_workspace(WorkspaceChoice(str(root)))
            judge = workspace.confirmer.permissions.judge
            assert judge.judge(shell("make", str(root))).decision is decision
        assert places.find().database.exists()


async def test_trust_counts_from_the_next_connection_on(tmp_path: Path) -> None:
    root = a_project(tmp_path / "mine", trusted=False)
    async with served_agent(Wanted(root=root)) as server:
        before, same = [await server.runtime.open_workspace() for _ in range(2)]
        assert before is same
        file = load.find_project(places.find(), root)
        assert file is not None
        load.trust(file, places.find().trusted)
        after = await server.runtime.open_workspace()
        assert (before.confirmer.permissions.trusted, after.confirmer.permissions.trusted) == (
            False,
            True,
        )
        load.untrust(file.path, places.find().trusted)
        assert not (await server.runtime.open_workspace()).confirmer.permissions.trusted


@pytest.mark.parametrize("linked", [".telex", ".telex/config.toml"])
@pytest.mark.parametrize("magic", [False, True])
async def test_a_link_to_a_trusted_file_does_not_make_a_root_trusted(
    tmp_path: Path, linked: str, magic: bool
) -> None:
    mine, other = a_project(tmp_path / "mine", trusted=True), tmp_path / "other"
    (other / linked).parent.mkdir(parents=True)
    (other / linked).symlink_to(f"/proc/self/cwd/{linked}" if magic else mine / linked)
    permissions = await permissions_in(mine, other)
    assert not permissions.trusted
    assert permissions.judge.judge(shell("make", str(other))).decision is Permission.ASK


async def test_other_settings_come_from_the_root_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = a_project(tmp_path / "mine", trusted=True, content='agent.plugins = ["mine"]')
    here = a_project(tmp_path / "here", trusted=True, content='agent.plugins = ["here"]')
    monkeypatch.chdir(here)
    assert Wanted(root=mine).load().settings.agent.plugins == ("mine",)
    monkeypatch.chdir(tmp_path)
    assert Wanted(root=Path("mine")).load().settings.agent.plugins == ("mine",)


async def test_ignored_project_rules_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_project(tmp_path / "other", trusted=False)
    await permissions_in(tmp_path, other)
    assert "other/.telex/config.toml: not read, it is not trusted" in capsys.readouterr().err


def decides(permissions: WorkspacePermissions, path: str) -> Permission:
    request = PermissionRequest("write", {"path": path, "content": ""}, permissions.root)
    written = permissions.judge.judge(request).decision
    shelled = permissions.judge.judge(shell(f"echo x > {path}", permissions.root)).decision
    assert written is shelled
    return written


@pytest.mark.parametrize("above", [False, True], ids=["home", "above it"])
async def test_guarded_files_of_the_home_ask_with_the_home_as_root(
    tmp_path: Path, above: bool
) -> None:
    home = tmp_path / "home"
    (home / "dots" / "zsh").mkdir(parents=True)
    (home / ".zshrc").symlink_to(home / "dots" / "zsh" / "rc")
    permissions = await permissions_in(home, tmp_path if above else home, "trusted")
    for name in (
        "telex/config.toml",
        "telex/state/trusted/x.json",
        "dots/zsh/rc",
        ".zshenv",
        ".bash_login",
        ".config/autostart/x.desktop",
        ".local/bin/ls",
        ".pam_environment",
        "bin/ls",
    ):
        assert decides(permissions, str(home / name)) is Permission.ASK, name
    for name in ("project/x", "dots/zsh/other", "project/.config/x"):
        assert decides(permissions, str(home / name)) is Permission.ALLOW, name


async def test_a_directory_that_contains_the_home_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / "home" / "x").mkdir()
    judge = (await permissions_in(tmp_path, tmp_path)).judge
    for path, kinds in (("home/new", ["path"]), ("home/x/new", ["path", "directory"])):
        judged = judge.judge(PermissionRequest("write", {"path": path}, str(tmp_path)))
        assert [scope.kind for scope in judged.remember] == kinds


async def test_a_root_in_a_hidden_directory_of_the_home_is_written_as_usual(tmp_path: Path) -> None:
    root = tmp_path / "home" / ".config" / "editor"
    root.mkdir(parents=True)
    permissions = await permissions_in(root, root, "trusted")
    assert decides(permissions, str(root / "init")) is Permission.ALLOW
