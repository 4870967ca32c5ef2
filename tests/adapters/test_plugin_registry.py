"""The plugins of a server: found by name, never replaced; installed plugins and their problems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from telex.adapters import plugin_registry
from telex.adapters.lua_plugin import LuaPlugin
from telex.adapters.manifest import check
from telex.adapters.plugin_registry import (
    BuiltinStays,
    NameTaken,
    Plugins,
    UnknownPlugin,
    builtin_plugins,
    installed_plugins,
)


def plugin(name: str, *, builtin: bool = False) -> LuaPlugin:
    return LuaPlugin(check({"name": name, "kind": "adapter", "version": "1"}), {}, builtin)


def write_plugin(directory: Path, name: str, source: str = "return {}") -> Path:
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    (directory / "manifest.toml").write_text(
        f'name = "{name}"\nkind = "adapter"\nversion = "1"\nruntime = "lua"\nentrypoint = "main.lua"'
    )
    (directory / "main.lua").write_text(source)
    for file in directory.iterdir():
        file.chmod(0o644)
    return directory


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters").chmod(0o755)
    return tmp_path / "adapters"


# By name.


def test_plugins_are_listed_by_name() -> None:
    plugins = Plugins([plugin("shell", builtin=True), plugin("less"), plugin("bc", builtin=True)])
    assert plugins.names() == ("bc", "less", "shell")
    assert [found.name for found in plugins.all()] == ["bc", "less", "shell"]
    assert [found.name for found in plugins.builtins()] == ["bc", "shell"]
    assert plugins.find("less").name == "less"


def test_an_unknown_name_is_answered_with_those_that_exist_and_the_nearest() -> None:
    plugins = Plugins([plugin("claude-code"), plugin("shell")])
    with pytest.raises(UnknownPlugin) as raised:
        plugins.find("claud-code")
    assert str(raised.value) == (
        "no plugin is called 'claud-code'; did you mean claude-code? there are claude-code, shell"
    )
    with pytest.raises(UnknownPlugin, match=r"'zzz'; there are claude-code, shell$"):
        plugins.find("zzz")
    with pytest.raises(UnknownPlugin, match=r"there are none$"):
        Plugins().find("shell")


@pytest.mark.parametrize("name", ["", "x" * 100_000, "\x1b[2J", "\ud800"])
def test_an_unusual_name_is_escaped_in_messages(name: str) -> None:
    with pytest.raises(UnknownPlugin) as raised:
        Plugins([plugin("shell")]).find(name)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 200


def test_a_name_can_be_used_once() -> None:
    plugins = Plugins([plugin("shell", builtin=True), plugin("mine")])
    with pytest.raises(NameTaken, match="a builtin plugin is called shell; change the name"):
        plugins.add(plugin("shell"))
    with pytest.raises(NameTaken, match="another plugin is called mine"):
        plugins.add(plugin("mine"))
    with pytest.raises(NameTaken):
        Plugins([plugin("a"), plugin("a")])
    assert plugins.find("shell").builtin


def test_a_loaded_plugin_can_be_removed_and_its_name_reused() -> None:
    plugins = Plugins([plugin("shell", builtin=True)])
    plugins.add(plugin("mine"))
    plugins.remove("mine")
    assert plugins.names() == ("shell",)
    plugins.add(plugin("mine"))
    with pytest.raises(UnknownPlugin):
        plugins.remove("other")


def test_a_builtin_plugin_cannot_be_removed() -> None:
    plugins = Plugins([plugin("shell", builtin=True)])
    with pytest.raises(BuiltinStays, match="shell is builtin; only loaded plugins"):
        plugins.remove("shell")
    assert plugins.names() == ("shell",)


# Directories.


def test_all_builtin_plugins_can_be_read() -> None:
    found = builtin_plugins()
    assert all(each.builtin and each.manifest.entrypoint in each.files for each in found)
    assert len({each.name for each in found}) == len(found)
    assert {each.directory.name for each in found if each.directory} == {
        path.parent.name for path in plugin_registry._BUILTIN.glob("*/manifest.toml")
    }


def test_a_broken_builtin_plugin_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (write_plugin(tmp_path / "a", "a") / "main.lua").unlink()
    monkeypatch.setattr(plugin_registry, "_BUILTIN", tmp_path)
    with pytest.raises(ValueError, match="no such file"):
        builtin_plugins()


def test_a_person_without_plugins_needs_no_directory(tmp_path: Path) -> None:
    assert installed_plugins(tmp_path / "missing") == ([], [])


def test_a_persons_plugins_are_read_in_order_and_are_not_builtin(adapters: Path) -> None:
    write_plugin(adapters / "two", "b")
    write_plugin(adapters / "one", "a")
    plugins, sentences = installed_plugins(adapters)
    assert [(each.name, each.builtin) for each in plugins] == [("a", False), ("b", False)]
    assert sentences == []


def test_files_and_hidden_directories_are_not_plugins(adapters: Path) -> None:
    (adapters / "README").touch()
    (adapters / ".git").mkdir()
    assert installed_plugins(adapters) == ([], [])


def test_a_broken_plugin_is_reported_and_the_others_are_read(adapters: Path) -> None:
    write_plugin(adapters / "a", "bad name")
    (write_plugin(adapters / "b", "b") / "main.lua").unlink()
    write_plugin(adapters / "c", "c", "\x1bLua")
    (adapters / "d").mkdir(mode=0o755)
    write_plugin(adapters / "e", "e")
    plugins, sentences = installed_plugins(adapters)
    assert [each.name for each in plugins] == ["e"]
    told = ["`name`: must be", "no such file", "bytecode", "no such file"]
    files = ["a/manifest.toml", "b/main.lua", "c/main.lua", "d/manifest.toml"]
    for sentence, file, problem in zip(sentences, files, told, strict=True):
        assert sentence.startswith(str(adapters / file))
        assert problem in sentence


def test_the_first_of_two_plugins_with_one_name_is_used_and_the_other_reported(
    adapters: Path,
) -> None:
    first = write_plugin(adapters / "1", "same")
    second = write_plugin(adapters / "2", "same")
    [found], [sentence] = installed_plugins(adapters)
    assert found.directory == first
    assert sentence == f"{second / 'manifest.toml'}: not used; {first} is already called same"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_files_that_other_users_can_write_are_not_read(adapters: Path, mode: int) -> None:
    write_plugin(adapters / "a", "a").chmod(mode)
    plugins, [sentence] = installed_plugins(adapters)
    assert not plugins
    assert sentence.startswith(f"{adapters / 'a'}: another user could have written this")
    (adapters / "a").chmod(0o755)
    adapters.chmod(mode)
    plugins, [sentence] = installed_plugins(adapters)
    assert not plugins
    assert sentence == f"{adapters}: other users can write here; chown it, and chmod go-w"


def test_an_installed_plugin_may_be_a_link(adapters: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "work", "mine")
    (adapters / "mine").symlink_to(tmp_path / "work")
    [found], [] = installed_plugins(adapters)
    assert found.name == "mine"
    (tmp_path / "work").chmod(0o777)
    assert installed_plugins(adapters)[0] == []


def test_a_path_that_is_no_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o600)
    assert installed_plugins(tmp_path / "file") == ([], [f"{tmp_path / 'file'}: Not a directory"])
    os.symlink("loop", tmp_path / "loop")
    assert installed_plugins(tmp_path / "loop") == ([], [])
