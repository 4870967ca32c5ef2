"""`telex htty serve`: one of three things as a page, or a sentence and 3 where nobody shows one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hyperframe.frame import GoAwayFrame

from escapes.terminals import SILENT, Manners, running, terminal
from htty.far_ends import Shown
from htty.frames_by_hand import only, parsed
from htty.test_key_filter import NOT_TYPED
from htty.test_server import asked, connected, got
from telex.cli import main
from telex.htty.tools.command_stream import CommandStream
from telex.wire.events import Frame
from telex.wire.htty_chunk import HttyChunkDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    from telex.htty.h2.http2_connection import Http2Connection

    Run = Callable[..., CompletedProcess[str]]

SERVE = ("-m", "telex", "htty", "serve")
APP = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})

class nested:
    app = app
"""

LIVE = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"news", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass
"""

FAILING = """
async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})
"""


@contextlib.asynccontextmanager
async def served(*args: str) -> AsyncIterator[tuple[Http2Connection, CommandStream, Shown]]:
    shown = Shown()
    async with CommandStream([sys.executable, *SERVE, *args], text=shown.add) as stream:
        assert await stream.announced(), shown.text
        async with connected(stream) as http:
            yield http, stream, shown


@pytest.fixture
def site(tmp_path: Path) -> Path:
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "index.html").write_text("<p>here</p>")
    return directory


async def test_the_files_of_a_directory_are_a_page_and_a_line_says_so(site: Path) -> None:
    async with served("--dir", str(site)) as (http, _, shown):
        assert await got(http, "/index.html") == (b"200", b"<p>here</p>")
        await shown.sees("q or Ctrl-C ends it.\r\n")
        assert f"Serving {site} through this terminal." in shown.text


@pytest.mark.parametrize("key", [b"q", b"\x03", None], ids=["q", "ctrl-c", "sigterm"])
async def test_q_and_ctrl_c_end_it_well(site: Path, key: bytes | None) -> None:
    async with served("--dir", str(site)) as (http, stream, shown):
        assert (await got(http, "/index.html"))[0] == b"200"
        if key is None:
            os.kill(stream.pty.child.pid, signal.SIGTERM)
        else:
            stream.pty.write(key)
        ended = await asyncio.wait_for(http.over, 60)
        assert (ended.graceful, ended.code) == (True, 0)
        assert (await asyncio.wait_for(stream.pty.child.wait(), 10)).code == 0
        assert "HTTY" not in shown.text
        assert "Traceback" not in shown.text


async def test_the_quit_key_is_not_recognized_in_terminal_replies_or_in_a_paste(site: Path) -> None:
    async with served("--dir", str(site)) as (http, stream, _):
        for said in NOT_TYPED:
            for byte in said:  # each a write of its own, that is cut anywhere
                stream.pty.write(bytes([byte]))
            assert (await got(http, "/index.html"))[0] == b"200", said
        stream.pty.write(b"q")
        assert (await asyncio.wait_for(http.over, 60)).graceful


async def test_quitting_before_a_client_connects_sends_one_goaway(site: Path) -> None:
    shown = Shown()
    argv = [sys.executable, *SERVE, "--dir", str(site)]
    async with CommandStream(argv, text=shown.add) as stream:
        assert await stream.announced()
        stream.pty.write(b"q")
        said = b""
        while data := await asyncio.wait_for(stream.read(), 10):
            said += data
    assert len(only(GoAwayFrame, parsed(said))) == 1


async def test_live_updates_do_not_keep_it_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "live.py").write_text(LIVE)
    monkeypatch.chdir(tmp_path)
    async with served("--asgi", "live:app") as (http, stream, shown):
        exchange = await http.request(asked("/"), end=True)
        assert await exchange.read() == b"news"
        stream.pty.write(b"q")
        ended = await asyncio.wait_for(http.over, 60)
        assert (ended.graceful, ended.code) == (True, 0), ended
        assert (await asyncio.wait_for(stream.pty.child.wait(), 10)).code == 0
        assert "Traceback" not in shown.text


async def test_an_app_that_cannot_start_says_why_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    shown = Shown()
    argv = [sys.executable, *SERVE, "--asgi", "failing:app"]
    async with CommandStream(argv, text=shown.add) as stream:
        assert (await asyncio.wait_for(stream.pty.child.wait(), 10)).code == 1
        await shown.sees("telex: the app could not start: no database\r\n")
        assert "Traceback" not in shown.text


async def test_an_app_is_imported_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    async with served("--asgi", "mine:nested.app") as (http, _, _):
        assert await got(http, "/x") == (b"200", b"/x")


async def test_a_server_nearby_is_a_page(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nnear")
        writer.close()

    server = await asyncio.start_unix_server(answer, tmp_path / "app.sock")
    async with server, served("--to", f"unix:{tmp_path}/app.sock") as (http, _, _):
        assert await got(http) == (b"200", b"near")


async def test_over_pipes_it_speaks_at_once_and_ends_with_its_input(site: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *SERVE,
        "--dir",
        str(site),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HTTY": "1"},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    events = HttyChunkDecoder().feed(await child.stdout.read(4096))
    first = next(event.body for event in events if isinstance(event, Frame))
    assert first[3:5] == b"\x04\x00", "SETTINGS, and not an ACK"
    child.stdin.close()
    _, err = await asyncio.wait_for(child.communicate(), 10)
    assert child.returncode == 1
    assert err.decode() == "telex: standard input has ended\n"


def test_a_no_in_the_environment_is_a_sentence_and_3(on_terminal: Run, site: Path) -> None:
    for htty, force in (("0", []), ("off", ["--force"])):
        ran = on_terminal("htty", "serve", "--dir", str(site), *force, HTTY=htty)
        assert ran.returncode == 3
        assert f"telex: HTTY={htty} in the environment: pages are not" in ran.stdout
        assert "telex run -- " in ran.stdout
        assert "\x1b" not in ran.stdout


def test_without_a_terminal_serve_prints_advice_and_exits_with_3(telex: Run, site: Path) -> None:
    ran = telex("htty", "serve", "--dir", str(site))
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "`telex run -- COMMAND`" in ran.stderr


async def test_a_terminal_that_shows_no_pages_gets_not_one_chunk(site: Path) -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        async with running(fake, *SERVE, "--dir", str(site), piped=False) as child:
            assert await child.wait() == 3
            await fake.sees(b"telex run -- ")
        assert b"HTTY;" not in fake.shown
        assert fake.restored()


async def test_force_sends_it_all_the_same(site: Path) -> None:
    args = (*SERVE, "--dir", str(site), "--force")
    async with (
        terminal(Manners(answers=[SILENT])) as fake,
        running(fake, *args, piped=False),
    ):
        await fake.sees(b"\x1bPHTTY;1;")


async def test_a_terminal_that_names_pages_is_asked_and_gets_one(site: Path) -> None:
    shows = {"capabilities": {"htty": {"level": 1}}, "maxframe": 65536}
    async with terminal(Manners(detect=shows)) as fake:
        async with running(fake, *SERVE, "--dir", str(site), piped=False):
            await fake.sees(b"\x1bPHTTY;1;")
        assert fake.asked > 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "give one of --asgi, --dir and --to"),
        (["--dir", ".", "--asgi", "a:b"], "give one of"),
        (["--dir", "/nowhere"], "/nowhere"),
        (["--asgi", "mine"], "is not MODULE:APP"),
        (["--asgi", "nowhere.at:all"], "there is no module 'nowhere'"),
        (["--asgi", "os:nothing"], "os has no 'nothing'"),
        (["--to", "https://example.org"], "is not a server"),
    ],
)
def test_invalid_arguments_exit_with_2(
    args: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert main(["htty", "serve", *args]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
