"""The file of raw bytes: never another's, never in another's place, and no harm when it fails."""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from telex.terminal.raw_transcript import RawTranscript, RawTranscriptRefused, Refusal, open_raw


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def refused(path: Path | str, append: bool = False) -> Refusal:
    with pytest.raises(RawTranscriptRefused) as caught:
        open_raw(str(path), append)
    assert caught.value.path == str(path)
    return caught.value.kind


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("append", [False, True])
def test_a_new_file_is_for_us_alone_and_holds_every_byte_at_once(
    tmp_path: Path, append: bool
) -> None:
    path = tmp_path / "raw"
    raw = open_raw(str(path), append)
    assert mode(path) == 0o600
    for data in (b"\x1b[1m\xff", b"", b"\x00" * 100_000):
        raw.write(data)
    assert path.read_bytes() == b"\x1b[1m\xff" + b"\x00" * 100_000
    raw.close()
    raw.close()
    assert raw.failure is None


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(b"precious")
    assert refused(path) is Refusal.EXISTS
    assert path.read_bytes() == b"precious"


def test_appending_keeps_the_content_and_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(b"first\n")
    path.chmod(0o644)
    raw = open_raw(str(path), append=True)
    raw.write(b"second\n")
    raw.close()
    assert path.read_bytes() == b"first\nsecond\n"
    assert mode(path) == 0o644


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "nothing")
    assert refused(link, append=True) is Refusal.LINK
    assert refused(dangling, append=True) is Refusal.LINK
    assert refused(link) is Refusal.EXISTS
    assert refused(dangling) is Refusal.EXISTS
    assert target.read_bytes() == b"precious"
    assert not (tmp_path / "nothing").exists()


def test_only_a_regular_file_is_appended_to(tmp_path: Path) -> None:
    pipe, read_pipe = tmp_path / "pipe", tmp_path / "read"
    os.mkfifo(pipe)
    os.mkfifo(read_pipe)
    reader = os.open(read_pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert refused(pipe, append=True) is Refusal.NOT_A_FILE  # and does not wait for a reader
    assert refused(read_pipe, append=True) is Refusal.NOT_A_FILE
    os.close(reader)
    assert refused("/dev/null", append=True) is Refusal.NOT_A_FILE
    assert refused(tmp_path, append=True) is Refusal.NOT_A_FILE
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert refused(tmp_path / "s", append=True) is Refusal.NOT_A_FILE


def test_another_users_file_is_not_appended_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "raw"
    path.write_bytes(b"theirs")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert refused(path, append=True) is Refusal.NOT_OURS
    assert path.read_bytes() == b"theirs"


def test_an_invalid_path_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refused(tmp_path / "missing" / "raw") is Refusal.NO_DIRECTORY
    assert refused(tmp_path / "file" / "raw") is Refusal.NO_DIRECTORY
    assert refused("") is Refusal.NO_DIRECTORY
    assert refused("nul\0nul") is Refusal.OTHER
    assert refused("x" * 300) is Refusal.OTHER
    with pytest.raises(RawTranscriptRefused, match="create it first"):
        open_raw(str(tmp_path / "missing" / "raw"))


def test_a_full_disk_ends_only_the_file_and_has_a_reason() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    # Past the check that would refuse a device: it is the only disk that is always full.
    raw = RawTranscript("/dev/full", os.open("/dev/full", os.O_WRONLY))
    raw.write(b"lost")
    assert raw.failure is not None
    assert raw.failure.errno == errno.ENOSPC
    raw.write(b"not tried")
    raw.close()


def test_output_that_fits_before_the_limit_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    raw = open_raw(str(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        raw.write(b"0123456")
        raw.write(b"789abc")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    raw.write(b"never, because some is missing")
    raw.close()
    assert path.read_bytes() == b"0123456789"
    assert raw.failure is not None
    assert raw.failure.errno == errno.EFBIG


def test_a_closed_file_is_not_written_to_even_if_its_number_is_taken(tmp_path: Path) -> None:
    raw = open_raw(str(tmp_path / "raw"))
    raw.close()
    with (tmp_path / "other").open("wb"):
        raw.write(b"stray")
    assert (tmp_path / "other").read_bytes() == b""
    assert raw.failure is not None
