from __future__ import annotations

import os
import shlex
import stat
from typing import TYPE_CHECKING

import pytest

from telex.config import limits
from telex.config.errors import NotPrivate, Unreadable
from telex.config.places import make_private, privacy_problem, read_file, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_a_created_directory_and_its_new_parents_are_private_whatever_the_umask(
    tmp_path: Path,
) -> None:
    assert make_private(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o700, 0o700)
    make_private(tmp_path / "a" / "b")


def test_a_directory_open_to_others_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o750)
    with pytest.raises(NotPrivate, match=r"open to others \(0750\); close it: chmod 700 /.*/open$"):
        make_private(tmp_path / "open")
    assert mode(tmp_path / "open") == 0o750


@pytest.mark.parametrize("target", ["real", "missing"])
def test_a_symbolic_link_is_refused_even_to_a_good_directory(tmp_path: Path, target: str) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / target)
    with pytest.raises(NotPrivate, match="symbolic link"):
        make_private(tmp_path / "link")
    assert not (tmp_path / "missing").exists()


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotPrivate, match="not a directory"):
        make_private(tmp_path / "file")


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = make_private(tmp_path / "theirs")
    owner = theirs.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert f"belongs to user {owner}, not to user {owner + 1}" in str(privacy_problem(theirs))


@pytest.mark.usefixtures("open_umask")
def test_written_files_are_readable_only_by_their_user(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_private(path, b"one")
    write_private(path, b"two")
    assert (mode(path), path.read_bytes()) == (0o600, b"two")
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    home = make_private(tmp_path / "home")
    (home / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_private(home / "taken", b"x")
    assert [path.name for path in home.iterdir()] == ["taken"]


def test_a_missing_file_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_file(tmp_path / "none") is None
    assert read_file(tmp_path / "file" / "none") is None


@pytest.mark.usefixtures("_no_blocking")
def test_a_named_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unreadable, match="not a regular file"):
        read_file(tmp_path / "pipe")


def test_a_directory_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"cannot be read: Is a directory"):
        read_file(tmp_path)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"#" * limits.CONFIG_FILE_BYTES)
    assert len(read_file(path) or b"") == limits.CONFIG_FILE_BYTES
    path.write_bytes(b"#" * (limits.CONFIG_FILE_BYTES + 1))
    with pytest.raises(Unreadable, match="larger than"):
        read_file(path)


def test_a_file_that_others_could_have_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "word"
    write_private(make_private(tmp_path / "home") / "word", b"ours")
    assert read_file(tmp_path / "home" / "word", ours=True) == b"ours"
    path.touch()
    path.chmod(0o620)
    with pytest.raises(NotPrivate, match="could have been written by others"):
        read_file(path, ours=True)


def test_a_command_to_copy_is_safe_whatever_the_directory_is_called(tmp_path: Path) -> None:
    hostile = tmp_path / "a'; reboot; '"
    hostile.mkdir()
    hostile.chmod(0o755)
    assert shlex.split(str(privacy_problem(hostile)).partition("it: ")[2])[-1] == str(hostile)
