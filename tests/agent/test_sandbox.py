"""Paths of the agent are inside the root, or are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from telex.agent.sandbox_files import (
    FileRefused,
    OutsideSandbox,
    Sandbox,
    directories_down_to,
    find_sandbox,
    read_whole,
    replace_file,
)
from telex.agent.skills import agents_files
from telex.processes import openat


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = Path(os.path.realpath(tmp_path)) / "root"
    found.mkdir()
    (found.parent / "outside").mkdir()
    (found.parent / "outside" / "secret").write_text("secret")
    return found


@pytest.mark.parametrize("marker", [".git", ".jj", ".telex"])
def test_the_root_is_the_nearest_marked_directory(root: Path, marker: str) -> None:
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    (root / "a" / marker).mkdir()
    assert find_sandbox(inner).root == root / "a"
    assert find_sandbox(inner, root).root == root, "a given root is used as it is"


def test_a_root_that_is_not_a_directory_is_refused(root: Path) -> None:
    with pytest.raises(OutsideSandbox, match="--root"):
        find_sandbox(root, root / "missing")


@pytest.mark.parametrize(
    "path",
    ["..", "../outside", "a/../../outside/secret", "/etc/passwd", "../root2", "a\0b", "\ud800"],
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(OutsideSandbox):
        Sandbox(root).place(path, root)


@pytest.mark.parametrize("path", ["..foo", "..foo/bar", "...", "a/../b", "./a//b"])
def test_a_name_that_only_looks_like_a_way_out_is_allowed(root: Path, path: str) -> None:
    place = Sandbox(root).place(path, root)
    assert place == os.path.normpath(path)


def test_a_link_that_leads_out_is_refused_in_every_position(root: Path) -> None:
    (root / "file").symlink_to(root.parent / "outside" / "secret")
    (root / "directory").symlink_to(root.parent / "outside")
    (root / "relative").symlink_to("../outside")
    for path in ("file", "directory", "directory/secret", "relative/secret", "relative/new"):
        with pytest.raises(OutsideSandbox):
            Sandbox(root).place(path, root)


def test_a_link_that_stays_inside_is_followed_however_it_is_written(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "file").write_text("here")
    (root / "absolute").symlink_to(root / "real")
    (root / "relative").symlink_to("real")
    box = Sandbox(root)
    for path in ("absolute/file", "relative/file", str(root / "relative" / "file")):
        assert read_whole(box, box.place(path, root)) == b"here"


def test_a_link_to_a_name_with_invalid_utf_8_is_refused(root: Path) -> None:
    (root / os.fsdecode(b"\xff")).touch()
    (root / "link").symlink_to(os.fsdecode(b"\xff"))
    with pytest.raises(OutsideSandbox, match="not a valid path"):
        Sandbox(root).place("link", root)


def test_a_directory_that_becomes_a_link_after_the_check_is_not_followed(root: Path) -> None:
    box = Sandbox(root)
    (root / "d").mkdir()
    (root / "d" / "secret").write_text("mine")
    place = box.place("d/secret", root)
    (root / "d").rename(root / "gone")
    (root / "d").symlink_to(root.parent / "outside")
    with pytest.raises(OutsideSandbox):
        read_whole(box, place)
    with pytest.raises(OSError, match="directory"):
        replace_file(box, place, b"overwritten")
    assert (root.parent / "outside" / "secret").read_text() == "secret"


@pytest.mark.parametrize("by_the_kernel", [True, False])
def test_a_file_that_becomes_a_link_after_the_check_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, by_the_kernel: bool
) -> None:
    """Not even if the link leads to another file inside the root: that file was not judged."""
    if not by_the_kernel:
        monkeypatch.setattr(openat, "_system_call", lambda: None)
    box = Sandbox(root)
    (root / "d").mkdir()
    for name in (".env", "f", "d/f"):
        (root / name).write_text(name)
    file, below, directory = (box.place(path, root) for path in ("f", "d/f", "d"))
    assert (read_whole(box, file), read_whole(box, below)) == (b"f", b"d/f")
    (root / "f").unlink()
    (root / "f").symlink_to(".env")
    (root / "d").rename(root / "gone")
    (root / "d").symlink_to("gone")
    for place in (file, below, directory):
        with pytest.raises(OutsideSandbox, match="became a link"):
            read_whole(box, place)
    assert read_whole(box, box.place("d/f", root)) == b"d/f"


def test_a_file_that_becomes_a_link_is_not_written_through(root: Path) -> None:
    (root / "f").symlink_to(root.parent / "outside" / "secret")
    with pytest.raises(FileRefused):
        replace_file(Sandbox(root), "f", b"overwritten")
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it(root: Path) -> None:
    script = root / "run"
    script.write_text("old")
    script.chmod(0o751)
    replace_file(Sandbox(root), "run", b"new")
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o7777 == 0o751
    assert os.listdir(root) == ["run"]


def test_a_file_is_written_whole_or_not_at_all(root: Path) -> None:
    (root / "d").mkdir()
    with pytest.raises(FileRefused, match="not a regular file"):
        replace_file(Sandbox(root), "d", b"x")
    assert os.listdir(root) == ["d"]


def test_a_named_pipe_is_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(FileRefused, match="neither"):
        read_whole(Sandbox(root), "pipe")


def test_a_working_directory_is_a_directory_inside(root: Path) -> None:
    (root / "..foo").mkdir()
    (root / "file").touch()
    (root / "out").symlink_to("..")
    box = Sandbox(root)
    assert box.directory("..foo", root) == root / "..foo"
    with pytest.raises(NotADirectoryError):
        box.directory("file", root)
    with pytest.raises(OutsideSandbox):
        box.directory("out", root)


def test_the_directories_from_the_root_to_the_cwd(root: Path) -> None:
    assert directories_down_to(root, root / "a" / "b") == (root, root / "a", root / "a" / "b")
    assert directories_down_to(root, root.parent) == (root,)


def test_agents_files_from_the_root_down(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "AGENTS.md").write_text("outer")
    (root / "a" / "AGENTS.md").symlink_to("../AGENTS.md")
    (root / "a" / "b" / "AGENTS.md").symlink_to(root.parent / "outside" / "secret")
    found = agents_files(Sandbox(root), root / "a" / "b")
    assert [(file.path, file.size_bytes) for file in found] == [
        (str(root / "AGENTS.md"), 5),
        (str(root / "a" / "AGENTS.md"), 5),
    ], "a link that leads out is not a file of the project"
    assert found[0].mtime_ms == (root / "AGENTS.md").stat().st_mtime_ns // 1_000_000
