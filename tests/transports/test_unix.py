"""Unix sockets: private from the moment they exist, and removed afterwards."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from telex.config.errors import NotPrivate
from telex.rpc.channel import Channel
from telex.rpc.testing import Script
from telex.transports import unix
from telex.transports.errors import NoServer

COUNT_NOTHING: Callable[[Channel], object] = lambda channel: None  # noqa: E731


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def test_the_socket_is_0600_and_a_new_directory_0700_whatever_the_umask(
    tmp_path: Path,
) -> None:
    before = os.umask(0)
    try:
        async with unix.listen(tmp_path / "new" / "t.sock", COUNT_NOTHING) as listener:
            assert mode(listener.path) == 0o600
            assert mode(listener.path.parent) == 0o700
        assert os.umask(0) == 0
    finally:
        os.umask(before)


async def test_the_socket_is_0600_already_when_bind_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bind` creates the file. A mode that is set later would leave it open for an instant."""
    modes = []

    class ObservedSocket(socket.socket):
        def bind(self, address: str) -> None:
            super().bind(address)
            modes.append(mode(Path(address)))

    monkeypatch.setattr(unix.socket, "socket", ObservedSocket)
    before = os.umask(0)
    try:
        async with unix.listen(tmp_path / "t.sock", COUNT_NOTHING):
            pass
    finally:
        os.umask(before)
    assert modes == [0o600]


async def test_no_file_is_left_at_the_path_afterwards(tmp_path: Path) -> None:
    async with unix.listen(tmp_path / "t.sock", COUNT_NOTHING):
        assert (tmp_path / "t.sock").exists()
    assert list(tmp_path.iterdir()) == []


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    async with unix.listen(path, COUNT_NOTHING):
        channel = await unix.connect(path)
        await channel.close()


async def test_a_socket_with_a_listener_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.sock"
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(path))
        foreign.listen()
        with pytest.raises(unix.AlreadyServed, match="another server"):
            await unix.listen(path, COUNT_NOTHING).__aenter__()
        assert path.exists()


async def test_a_second_server_is_refused_and_does_not_disturb_the_first(tmp_path: Path) -> None:
    path = tmp_path / "t.sock"
    async with unix.listen(path, COUNT_NOTHING):
        with pytest.raises(unix.AlreadyServed, match=str(path)):
            await unix.listen(path, COUNT_NOTHING).__aenter__()
        channel = await unix.connect(path)
        await channel.close()


@pytest.mark.parametrize("what", ["file", "directory", "symlink"])
async def test_anything_but_a_socket_is_refused_and_untouched(tmp_path: Path, what: str) -> None:
    path = tmp_path / "t.sock"
    if what == "file":
        path.write_text("precious")
    elif what == "directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    before = path.lstat()
    with pytest.raises(unix.NotASocket, match="not a socket"):
        await unix.listen(path, COUNT_NOTHING).__aenter__()
    assert path.lstat() == before


async def test_a_path_that_is_too_long_for_the_kernel_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with pytest.raises(unix.PathTooLong, match="choose a shorter one"):
        await unix.listen(path, COUNT_NOTHING).__aenter__()
    with pytest.raises(unix.PathTooLong):
        await unix.connect(path)


async def test_connecting_without_a_server_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match="no server listens at"):
        await unix.connect(tmp_path / "t.sock")


async def test_a_socket_replaced_under_us_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "t.sock"
    async with unix.listen(path, COUNT_NOTHING):
        path.unlink()
        path.write_text("somebody else's")
    assert path.read_text() == "somebody else's"


async def test_a_directory_that_cannot_be_private_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises((NotPrivate, FileExistsError, OSError)):
        await unix.listen(tmp_path / "dangling" / "t.sock", COUNT_NOTHING).__aenter__()


CONNECT_AS_NOBODY = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.settimeout(10)
    sys.exit(0 if s.recv(1) == b"" else 1)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_another_user_is_refused_even_where_the_mode_lets_them_in(tmp_path: Path) -> None:
    served: list[Channel] = []
    directory = Path(f"/tmp/telex-test-{os.getpid()}")
    directory.mkdir(mode=0o755)
    try:
        async with unix.listen(directory / "t.sock", served.append) as listener:
            listener.path.chmod(0o666)
            stranger = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", CONNECT_AS_NOBODY, str(listener.path)],
                check=False,
            )
        assert stranger.returncode == 0
        assert served == []
    finally:
        directory.rmdir()


async def test_a_client_that_shuts_its_writing_half_still_gets_its_answer(tmp_path: Path) -> None:
    """As `printf … | nc -N -U` does."""
    scripts: list[Script] = []
    async with unix.listen(tmp_path / "t.sock", lambda channel: scripts.append(Script(channel))):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "t.sock"))
        writer.write(b"question\n")
        writer.write_eof()
        while not scripts:
            await asyncio.sleep(0)
        assert await scripts[0].hear() == b"question"
        scripts[0].say(b"answer")
        assert await reader.readline() == b"answer\n"
        writer.close()
        await writer.wait_closed()


async def test_a_windows_pipe_is_refused_as_unsupported() -> None:
    path = Path(r"\\.\pipe\telex")
    with pytest.raises(unix.NoNamedPipes, match="not supported on this system yet"):
        await unix.listen(path, COUNT_NOTHING).__aenter__()
    with pytest.raises(unix.NoNamedPipes):
        await unix.connect(path)
