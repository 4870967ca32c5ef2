"""Which plugins are found, and which are refused: with real files, modes and links."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.config.places import Places
from telex.plugins import discovery
from telex.plugins import plugin_manifest as manifests
from telex.plugins.discovery import VARIABLE, FoundPlugin, FoundPlugins, find


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(*(tmp_path / name for name in ("config", "data", "state", "run")))
    found.plugins.mkdir(parents=True, mode=0o755)
    return found


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def with_manifest(directory: Path, **members: Any) -> Path:
    """Write a plugin with a manifest. Its text is its path, so that no two files are the same."""
    executable(directory / "main", f"#!/bin/sh\n# {directory}\n")
    said = {"name": directory.name, "executable": "main", **members}
    (directory / "manifest.json").write_text(json.dumps(said))
    return directory


def only(findings: FoundPlugins) -> FoundPlugin:
    [found] = findings.found
    return found


def names(findings: FoundPlugins) -> list[str]:
    return [one.name for one in findings.found]


# Search.


def test_an_executable_is_a_plugin_named_without_its_suffix(
    places: Places,
) -> None:
    for name in ("hello.py", "tool-1.2", "plain"):
        executable(places.plugins / name)
    findings = find(places, {})
    assert names(findings) == ["hello", "plain", "tool-1.2"]
    assert all(one.refusal is None and one.manifest is None for one in findings.found)
    assert findings.found[0].executable == places.plugins / "hello.py"
    assert not findings.problems


def test_other_files_are_no_plugins(places: Places) -> None:
    (places.plugins / "README.md").write_text("read me")
    executable(places.plugins / ".hidden")
    executable(places.plugins / "bad name")
    with_manifest(places.plugins / "\x1b]0;title\a")
    executable(places.plugins / "some-directory" / "tool")
    os.mkfifo(places.plugins / "pipe", 0o755)
    assert find(places, {}) == FoundPlugins((), (), ())


def test_a_script_without_the_executable_bit_is_reported_with_a_remedy(places: Places) -> None:
    (places.plugins / "script").write_text("#!/bin/sh\n")
    refusal = only(find(places, {})).refusal
    assert refusal
    assert refusal.endswith(f"chmod u+x {places.plugins}/script")


def test_a_directory_with_a_manifest_is_a_plugin_by_the_name_in_it(places: Places) -> None:
    directory = with_manifest(places.plugins / "dir", name="named", needs={"memory": 64})
    found = only(find(places, {}))
    assert (found.name, found.executable, found.where) == ("named", directory / "main", directory)
    assert found.manifest
    assert found.manifest.needs
    assert found.manifest.needs.memory == 64


def test_directories_of_the_variable_come_after_the_default_directory(
    places: Places, tmp_path: Path
) -> None:
    executable(places.plugins / "one")
    executable(tmp_path / "a" / "two")
    executable(tmp_path / "b" / "three")
    findings = find(places, {VARIABLE: f"{tmp_path}/b::{tmp_path}/a:{tmp_path}/b"})
    assert names(findings) == ["one", "three", "two"]
    assert not findings.problems


def test_a_plugin_directory_with_a_manifest_is_itself_one_plugin(
    places: Places, tmp_path: Path
) -> None:
    with_manifest(tmp_path / "mine")
    assert names(find(places, {VARIABLE: str(tmp_path / "mine")})) == ["mine"]


def test_a_missing_directory_is_reported_and_the_others_are_searched(
    places: Places, tmp_path: Path
) -> None:
    executable(tmp_path / "there" / "tool")
    places.plugins.rmdir()
    findings = find(places, {VARIABLE: f"{tmp_path}/gone:relative:{tmp_path}/there"})
    assert names(findings) == ["tool"]
    assert findings.problems == (
        f"there is no directory {tmp_path}/gone; plugins that are put there are found",
        f"{VARIABLE}: relative is left out: it is not absolute",
    )
    assert findings.hints == (
        f"there is no directory {places.plugins}; plugins that are put there are found",
    )


def test_an_unreadable_directory_is_reported(places: Places, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    problems = find(places, {VARIABLE: f"{tmp_path}/file:{tmp_path}/circle"}).problems
    assert problems == (
        f"{tmp_path}/file cannot be read: Not a directory",
        f"{tmp_path}/circle cannot be read: Too many levels of symbolic links",
    )


def test_the_first_of_two_plugins_with_one_name_wins_even_if_broken(
    places: Places, tmp_path: Path
) -> None:
    (places.plugins / "tool").write_text("#!/bin/sh\n")
    executable(tmp_path / "more" / "tool")
    findings = find(places, {VARIABLE: str(tmp_path / "more")})
    assert only(findings).where == places.plugins / "tool"
    assert findings.problems == (
        f"{tmp_path}/more/tool is left out: {places.plugins}/tool already has the name tool",
    )


def test_a_file_with_two_names_is_one_plugin(places: Places) -> None:
    one = executable(places.plugins / "one")
    os.link(one, places.plugins / "two")
    (places.plugins / "three").symlink_to(one)
    findings = find(places, {})
    assert names(findings) == ["one"]
    assert [
        problem.partition(" is left out: it is the same file as")[0]
        for problem in findings.problems
    ] == [
        str(places.plugins / "three"),
        str(places.plugins / "two"),
    ]


# Files that other users could have written.


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("part", ["it/bin/main", "it/bin", "it", "it/manifest.json", ""])
def test_a_plugin_that_other_users_can_write_is_not_run(
    places: Places, part: str, mode: int
) -> None:
    directory = with_manifest(places.plugins / "it", executable="bin/main")
    executable(directory / "bin" / "main")
    assert only(find(places, {})).refusal is None
    (places.plugins / part).chmod(mode)
    refusal = only(find(places, {})).refusal
    assert refusal
    assert refusal.endswith(f"({mode:04o}); run: chmod go-w {places.plugins / part}")


def test_a_plugin_of_another_user_is_not_run(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = executable(places.plugins / "tool")
    assert only(find(places, {})).refusal is None
    for part in (path, places.plugins, places.data):
        if os.geteuid() == 0:
            os.chown(part, 12345, -1)
        else:  # every file then belongs to another user
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
        refusal = only(find(places, {})).refusal
        assert refusal
        assert " belongs to user " in refusal
        os.chown(part, os.getuid(), -1)


@pytest.mark.parametrize("gone", [False, True])
def test_a_manifest_at_a_path_is_read_or_its_problem_raised(tmp_path: Path, gone: bool) -> None:
    path = with_manifest(tmp_path / "it") / "manifest.json"
    assert manifests.read_manifest(path).executable == "main"
    path.unlink() if gone else path.write_text('{"name": 1}')
    with pytest.raises(
        manifests.BadPluginManifest, match="does not exist" if gone else "`name` must be"
    ):
        manifests.read_manifest(path)


def test_a_plugin_directory_that_other_users_can_replace_is_not_used(
    places: Places, tmp_path: Path
) -> None:
    executable(tmp_path / "open" / "plugins" / "tool")
    environ = {VARIABLE: str(tmp_path / "open" / "plugins")}
    (tmp_path / "open").chmod(0o777)
    assert only(find(places, environ)).refusal
    (tmp_path / "open").chmod(0o1777)
    assert only(find(places, environ)).refusal is None
    (tmp_path / "open" / "plugins").chmod(
        0o1777
    )  # other users cannot replace a plugin, but add one
    assert only(find(places, environ)).refusal


def test_a_link_is_checked_by_its_target_and_the_path_to_it(places: Places, tmp_path: Path) -> None:
    target = executable(tmp_path / "elsewhere" / "tool")
    (tmp_path / "between").mkdir()
    (tmp_path / "between" / "link").symlink_to("../elsewhere/tool")
    (places.plugins / "tool").symlink_to(tmp_path / "between" / "link")
    found = only(find(places, {}))
    assert (found.refusal, found.executable) == (None, target)
    for part in (target, target.parent, tmp_path / "between", places.plugins):
        part.chmod(0o777)
        refusal = only(find(places, {})).refusal
        assert refusal, part
        assert f"{part} is writable for them (0777)" in refusal
        part.chmod(0o755)
    assert only(find(places, {})).refusal is None


def test_broken_links_are_no_plugins(places: Places) -> None:
    (places.plugins / "gone").symlink_to("nothing")
    (places.plugins / "circle").symlink_to("circle")
    assert find(places, {}) == FoundPlugins((), (), ())


# Manifests.


@pytest.mark.parametrize("named", ["../tool", "/bin/sh", "a/../../tool", "", "dir/", "a\nb"])
def test_a_manifest_names_a_file_in_its_directory(places: Places, named: str) -> None:
    executable(places.plugins / "tool")
    with_manifest(places.plugins / "it", executable=named)
    found = next(one for one in find(places, {}).found if one.name == "it")
    assert found.problem
    assert "`executable`" in found.problem


def test_a_manifest_cannot_name_a_link_that_leaves_its_directory(
    places: Places, tmp_path: Path
) -> None:
    executable(tmp_path / "tool")
    directory = with_manifest(places.plugins / "it", executable="sub/tool")
    (directory / "sub").symlink_to(tmp_path)
    problem = only(find(places, {})).problem
    assert problem
    assert f"leads out of its directory, to {tmp_path}/tool" in problem
    (directory / "sub").unlink()
    (directory / "sub").symlink_to(".")
    (directory / "main").rename(directory / "tool")
    assert only(find(places, {})).problem is None


def test_a_link_to_a_plugin_is_a_plugin(places: Places, tmp_path: Path) -> None:
    with_manifest(tmp_path / "dev")
    (places.plugins / "dev").symlink_to(tmp_path / "dev")
    assert only(find(places, {})).refusal is None


@pytest.mark.parametrize("kind", ["missing", "directory", "not executable"])
def test_a_file_that_is_no_executable_is_reported(places: Places, kind: str) -> None:
    directory = with_manifest(places.plugins / "it")
    (directory / "main").chmod(0o644)
    if kind != "not executable":
        (directory / "main").unlink()
    if kind == "directory":
        (directory / "main").mkdir()
    problem = only(find(places, {})).problem
    assert problem
    assert str(directory / "main") in problem


def test_all_problems_of_a_manifest_are_reported_by_field() -> None:
    document = {
        "name": "no spaces",
        "version": 3,
        "config": [
            {"key": "a", "type": "number"},
            {"key": "b", "type": "int", "value": "x"},
            {"value": 1},
        ],
        "commands": [{"name": "c", "commands": [{"name": 7}]}, "d"],
        "needs": {"memory": 0, "read": "~", "network": "no"},
        "runtime": {"version": "3"},
        "tasks": [{"description": "of no type"}],
    }
    problems = manifests.read(json.dumps(document).encode()).problems
    assert {problem.field: problem.problem.partition(";")[0] for problem in problems} == {
        "name": "must be 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
        "executable": "is missing",
        "version": "must be text",
        "config[0].type": "must be one of bool, int, string, path, boolList, intList, stringList, pathList",
        "config[2].key": "is missing",
        "commands[0].commands[0].name": "must be 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
        "commands[1]": "must be an object",
        "needs.memory": "must be a whole number of at least 1",
        "needs.read": "must be a list",
        "needs.network": "must be true or false",
        "runtime.name": "is missing",
        "tasks[0].taskType": "is missing",
    }


def test_rules_beyond_types_are_reported_by_field() -> None:
    document = {
        "name": "it",
        "executable": "/main",
        "config": [
            {"key": "a", "type": "int", "value": "x"},
            {"key": "a", "envOverride": "A=B", "flag": {"name": "--a", "shorthand": "ab"}},
        ],
        "commands": [{"name": "c", "aliases": ["d"]}, {"name": "d"}],
        "tasks": [{"description": "nothing"}, {"taskType": "t"}, {"type": "t"}],
        "needs": {"write": ["ok", ""]},
    }
    problems = manifests.read(json.dumps(document).encode()).problems
    assert [problem.field for problem in problems] == [
        "executable",
        "config",
        "config[0].value",
        "config[1].envOverride",
        "config[1].flag.name",
        "config[1].flag.shorthand",
        "commands",
        "tasks[0].taskType",
        "tasks",
        "needs.write[1]",
    ]


TABLE = {"key": "t", "keyType": "path", "values": []}


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"alternatives": []}, "`tasks[0].config[0].alternatives` must have at least one entry"),
        ({"alternatives": 5}, "`tasks[0].config[0].alternatives` must be a list; it is 5"),
        (
            {"alternatives": [{"key": "x", "type": "y"}]},
            "`tasks[0].config[0].alternatives[0].type` must be one of bool",
        ),
        ({**TABLE, "keyType": "int"}, "`tasks[0].config[0].keyType` must be one of string, path"),
        ({"key": "x", "keyType": "path"}, "`tasks[0].config[0].values` is missing"),
        ({"key": "x", "type": "int", "value": "y"}, "`tasks[0].config[0].value` must be a whole"),
        (
            {**TABLE, "values": [{"key": "x"}, {"key": "x"}]},
            '`tasks[0].config.t.values` has 2 of the name "x"',
        ),
        (5, "`tasks[0].config[0]` must be an object; it is 5"),
    ],
)
def test_problems_of_a_tasks_entries_are_reported_by_place(form: object, problem: str) -> None:
    document = {"name": "it", "executable": "it", "tasks": [{"taskType": "t", "config": [form]}]}
    (found,) = manifests.read(json.dumps(document).encode()).problems
    assert str(found).startswith(problem)


def test_a_manifest_of_generation_b_is_read_without_a_hint() -> None:
    entry = {"key": "e", "type": "string", "value": "", "flag": {}}
    command = {
        "name": "c",
        "usage": "c",
        "description": "",
        "doc": "",
        "config": [entry],
        "args": {"spec": [{"name": "n", "description": "d"}], "min": 1, "max": 2},
    }
    document = {
        "name": "it",
        "domain": "it",
        "doc": "",
        "executable": "it",
        "runtime": {"name": "python3", "version": "3", "run": ["$0", "$1"]},
        "commands": [command],
        "tasks": [{"taskType": "t", "config": [{"alternatives": [entry, TABLE]}, TABLE, entry]}],
    }
    found = manifests.read(json.dumps(document).encode())
    assert (found.problems, found.hints) == ((), ())


def test_unknown_members_are_hints_and_null_means_absent(
    places: Places,
) -> None:
    with_manifest(
        places.plugins / "it", descripton="x", needs={"gpu": True, "env": None}, help=None
    )
    findings = find(places, {})
    assert only(findings).refusal is None
    where = places.plugins / "it"
    assert set(findings.hints) == {
        f"{where}: `descripton` is not known; did you mean description?",
        f"{where}: `needs.gpu` is not known, and is ignored",
    }


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"{}" + b" " * 300_000, b'"\\ud800"']
)
def test_an_invalid_manifest_is_reported(places: Places, content: bytes) -> None:
    directory = with_manifest(places.plugins / "it")
    (directory / "manifest.json").write_bytes(content)
    problem = only(find(places, {})).problem
    assert problem
    assert problem.startswith(str(directory / "manifest.json"))


def test_a_manifest_that_is_a_pipe_does_not_block(places: Places) -> None:
    directory = with_manifest(places.plugins / "it")
    (directory / "manifest.json").unlink()
    os.mkfifo(directory / "manifest.json")
    problem = only(find(places, {})).problem
    assert problem
    assert "it is not a regular file" in problem


WORDS = st.sampled_from(
    [*"ab", "name", "executable", "config", "commands", "tasks", "needs", "key"]
)
JSON = st.recursive(
    st.sampled_from([None, True, 0, -1, 2**70, 1.5, "", "it", "\0", "\ud800", "int"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(WORDS, JSON))
def test_no_json_breaks_the_reading_of_a_manifest(document: dict[str, Any]) -> None:
    result = manifests.read(json.dumps(document).encode())
    assert (result.value is None) == bool(result.problems)


# Files that a plugin loads from its directory, and its interpreter.


@pytest.mark.parametrize("name", ["lib.py", "below", "below/lib.py", "below/.hidden"])
def test_a_plugin_with_a_manifest_is_not_run_if_other_users_could_have_written_in_its_directory(
    places: Places, name: str
) -> None:
    directory = with_manifest(places.plugins / "it")
    (directory / ".git").mkdir()
    for path in ("lib.py", "below/lib.py", "below/.hidden", ".git/config"):
        executable(directory / path)
    (directory / ".git" / "config").chmod(0o666)
    (directory / "link").symlink_to("nowhere")
    assert only(find(places, {})).refusal is None
    (directory / name).chmod(0o775)
    refusal = only(find(places, {})).refusal
    assert refusal
    assert refusal.endswith(f"run: chmod go-w {directory / name}")


def test_a_script_is_not_run_if_other_users_could_have_written_files_beside_it(
    places: Places,
) -> None:
    executable(places.plugins / "tool")
    executable(places.plugins / "binary", "\x7fELF")
    executable(places.plugins / "other", "#!/bin/sh\n# another\n").chmod(0o777)
    assert [one.name for one in find(places, {}).found if one.refusal] == ["other"]
    (places.plugins / "json.py").write_text("")
    (places.plugins / "json.py").chmod(0o666)
    binary, _, tool = find(places, {}).found
    assert binary.refusal is None
    assert tool.refusal
    assert "could have changed what it uses" in tool.refusal
    assert tool.refusal.endswith(f"chmod go-w {places.plugins}/json.py")


@pytest.mark.parametrize(
    "line", ["#!{}/python", "#!/usr/bin/env python", "#!/usr/bin/env -S python -u"]
)
def test_a_script_is_not_run_if_other_users_could_have_written_its_interpreter(
    places: Places, tmp_path: Path, line: str
) -> None:
    inner = executable(tmp_path / "inner" / "python", "\x7fELF")
    executable(tmp_path / "bin" / "python", f"#!{inner}\n")
    executable(places.plugins / "tool", line.format(tmp_path / "bin") + "\n")
    environ = {"PATH": f"/nowhere:{tmp_path}/bin"}
    assert only(find(places, environ)).refusal is None
    for part in (tmp_path / "bin" / "python", tmp_path / "bin", inner):
        part.chmod(0o777)
        refusal = only(find(places, environ)).refusal
        assert refusal
        assert refusal.endswith(f"chmod go-w {part}")
        part.chmod(0o755)


# Plugins of a project.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "below").mkdir()
    executable(tmp_path / "project" / discovery.PROJECT_PLUGINS / "tool")
    return tmp_path / "project"


def agree(project: Path, places: Places) -> None:
    discovery.trust_project(
        discovery.read_project(project / discovery.PROJECT_PLUGINS, places), places
    )


def test_a_projects_plugins_are_not_run_until_they_are_trusted(
    places: Places, project: Path
) -> None:
    findings = find(places, {}, project / "below")
    found = only(findings)
    assert (found.trusted, found.problem) == (False, None)
    assert found.refusal
    assert found.refusal.endswith("then run: telex plugin trust")
    [problem] = findings.problems
    assert problem.startswith(
        f"the plugins in {project / discovery.PROJECT_PLUGINS} are the project's"
    )
    agree(project, places)
    trusted = find(places, {}, project / "below")
    assert (only(trusted).refusal, trusted.problems) == (None, ())
    assert discovery.untrust_project(project / discovery.PROJECT_PLUGINS, places)
    assert only(find(places, {}, project)).refusal


def _edit(plugins: Path) -> None:
    (plugins / "tool").write_text("#!/bin/sh\nrm -rf ~\n")


def _import(plugins: Path) -> None:
    (plugins / "json.py").write_text("evil()")


def _run(plugins: Path) -> None:
    (plugins / "data").chmod(0o755)


def _relink(plugins: Path) -> None:
    (plugins / "link").unlink()
    (plugins / "link").symlink_to("tool")


@pytest.mark.parametrize("change", [_edit, _import, _run, _relink])
def test_a_change_of_anything_in_a_projects_plugins_ends_the_trust(
    places: Places, project: Path, change: Any
) -> None:
    (project / discovery.PROJECT_PLUGINS / "data").write_text("data")
    (project / discovery.PROJECT_PLUGINS / "link").symlink_to("data")
    agree(project, places)
    assert all(one.trusted for one in find(places, {}, project).found)
    change(project / discovery.PROJECT_PLUGINS)
    findings = find(places, {}, project)
    assert not any(one.trusted for one in findings.found)
    assert "changed since you trusted them" in findings.problems[0]
    assert all("changed since you trusted them" in str(one.refusal) for one in findings.found)


def test_a_link_out_of_a_projects_plugins_cannot_be_trusted(places: Places, project: Path) -> None:
    (project / "tool.py").write_text("")
    (project / discovery.PROJECT_PLUGINS / "link").symlink_to("../../tool.py")
    with pytest.raises(discovery.NotTrustable, match="leads out of"):
        agree(project, places)
    findings = find(places, {}, project)
    assert not only(findings).trusted
    assert "cannot be trusted" in findings.problems[0]


def test_a_pipe_in_a_projects_plugins_does_not_block(places: Places, project: Path) -> None:
    os.mkfifo(project / discovery.PROJECT_PLUGINS / "pipe")
    with pytest.raises(discovery.NotTrustable, match="neither a file nor a directory"):
        agree(project, places)


def test_a_projects_plugin_cannot_replace_an_installed_one(places: Places, project: Path) -> None:
    agree(project, places)
    executable(places.plugins / "tool", "#!/bin/sh\n# mine\n")
    assert only(find(places, {}, project)).where == places.plugins / "tool"


def test_outside_of_a_repository_the_plugins_of_a_parent_are_not_used(
    places: Places, project: Path
) -> None:
    (project / ".git").rmdir()
    assert find(places, {}, project / "below").found == ()
    assert names(find(places, {}, project)) == ["tool"]
