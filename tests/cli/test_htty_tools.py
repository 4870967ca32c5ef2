"""`telex htty bridge`, `check` and `dump` as commands; and what curl, nghttp and h2load make of
`telex htty bridge -- telex htty serve`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hpack import Encoder

from htty.programs.paged import PIECE
from telex.cli import main
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http2_websocket import Side as SocketSide
from telex.htty.h2.http2_websocket import WebSocketStream
from telex.htty.tools.tcp_bridge import TcpStream
from telex.wire.htty_chunk import encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]
    Count = Callable[[int, int], int]
    Find = Callable[[str], str]

PROGRAMS = Path(__file__).parent.parent / "htty" / "programs"
TELEX = (sys.executable, "-m", "telex")
SERVE = (*TELEX, "htty", "serve", "--asgi", "paged:app")
MB = 1_000_000
SECONDS = 250


@contextlib.contextmanager
def bridge(
    environ: dict[str, str], *options: str, command: tuple[str, ...] = SERVE
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen(
        [*TELEX, "htty", "bridge", *options, "--", *command],
        env=environ,
        cwd=PROGRAMS,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout
        try:
            yield child.stdout.readline().strip(), child
        finally:
            child.terminate()
            child.wait(60)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A bridge to the app, on a port that was free."""
    home = str(tmp_path_factory.mktemp("home"))
    environ = {"PATH": os.environ["PATH"], "TELEX_HOME": home, "TERM": "xterm"}
    with bridge(environ, "--quiet") as (address, child):
        assert re.fullmatch(r"http://127\.0\.0\.1:[1-9][0-9]*/", address)
        yield address
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
        assert child.stderr
        assert child.stderr.read() == ""


def ran(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def content(size: int) -> bytes:
    return (PIECE * (size // len(PIECE) + 1))[:size]


@pytest.mark.counted
def test_curl_downloads_and_uploads(
    url: str, program: Find, tmp_path: Path, counted: Count
) -> None:
    curl = (program("curl"), "-sS", "--fail", "--http2-prior-knowledge")
    got, size = tmp_path / "got", counted(5, 100) * MB
    ran(*curl, "-o", str(got), f"{url}bytes/{size}")
    assert got.read_bytes() == content(size)
    answer = ran(*curl, "--data-binary", f"@{got}", "-H", "Expect:", f"{url}upload")
    assert answer == f"{size} {hashlib.sha256(content(size)).hexdigest()}"


def test_curl_receives_events_as_they_are_sent(url: str, program: Find) -> None:
    curl = (program("curl"), "-sSN", "--http2-prior-knowledge", "-D", "-")
    head, _, events = ran(*curl, f"{url}events").partition("\n\n")
    assert head.startswith("HTTP/2 200")
    assert "content-type: text/event-stream" in head
    assert events == "".join(f"data: {number}\n\n" for number in range(5))


@pytest.mark.counted
def test_curl_may_read_slowly_while_the_command_waits(
    url: str, program: Find, counted: Count
) -> None:
    size = counted(1, 20) * MB
    argv = [program("curl"), "-sS", "--http2-prior-knowledge", f"{url}bytes/{size}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as slow:
        assert slow.stdout
        first = slow.stdout.read(10_000)
        # Meanwhile others are served as if nobody were slow.
        assert ran(*argv[:-1], f"{url}hello") == "a few words"
        assert first + slow.stdout.read() == content(size)
        assert slow.wait(60) == 0


def test_nghttp_speaks_with_it(url: str, program: Find) -> None:
    said = ran(program("nghttp"), "-nv", f"{url}hello", f"{url}bytes/100000")
    assert said.count(":status: 200") == 2
    assert "SETTINGS_ENABLE_CONNECT_PROTOCOL(0x08):1" in said
    assert "GOAWAY" in said


@pytest.mark.counted
def test_h2load_has_a_thousand_requests_under_way(url: str, program: Find, counted: Count) -> None:
    count = counted(1_000, 20_000)
    # Of the thousand, as many are open at once as the server allows; the others queue in h2load.
    said = ran(program("h2load"), "-n", str(count), "-c", "1", "-m", "1000", f"{url}hello")
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in said
    assert f"status codes: {count} 2xx" in said


def test_h2load_opens_several_connections_and_each_has_its_command(url: str, program: Find) -> None:
    said = ran(program("h2load"), "-n", "100", "-c", "4", "-m", "10", f"{url}hello")
    assert "100 succeeded, 0 failed" in said


@contextlib.asynccontextmanager
async def visitor(url: str) -> AsyncIterator[Http2Connection]:
    """Our own client, over the same TCP."""
    port = int(url.rstrip("/").rpartition(":")[2])
    loop = asyncio.get_running_loop()
    _, tcp = await loop.create_connection(lambda: TcpStream(lambda _: None), "127.0.0.1", port)
    http = Http2Connection(tcp, Http2Side.CLIENT)
    running = asyncio.create_task(http.run())
    try:
        yield http
    finally:
        running.cancel()
        await asyncio.wait({running})
        await tcp.closed(1)


async def test_a_websocket_echoes_by_extended_connect(url: str) -> None:
    async with visitor(url) as http:
        await http.ready()
        assert http.extended_connect
        exchange = await http.request(
            [
                *((b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"http")),
                *((b":authority", b"htty.local"), (b":path", b"/ws")),
                (b"sec-websocket-version", b"13"),
            ]
        )
        assert dict(await exchange.answer())[b":status"] == b"200"
        socket = WebSocketStream(exchange, SocketSide.CLIENT)
        for message in ("hello", "Grüße", b"\0\x1b\\\xff", b"x" * 200_000):
            await socket.send(message)
            assert await socket.receive() == message
        await socket.close()


# The commands themselves.


def test_the_output_of_a_command_is_printed_on_stderr_with_its_number(
    environ: dict[str, str], program: Find
) -> None:
    command = ("sh", "-c", r"printf 'one\033[31m\ntwo'; exit 5")
    with bridge(environ, command=command) as (address, child):
        subprocess.run([program("curl"), "-s", address], check=False, timeout=60)
        assert child.stderr
        assert child.stderr.readline() == "[1] one\\x1b[31m\n"
        assert child.stderr.readline() == "[1] two\n"
        assert child.stderr.readline() == "[1] the command exited with code 5\n"


def test_a_bridge_that_others_could_reach_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["htty", "bridge", "--listen", "0.0.0.0:0", "--", "true"]) == 1
    assert "can be reached from elsewhere" in capsys.readouterr().err


def test_help_warns_that_every_local_user_can_connect(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["htty", "bridge", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "There is no token: every user of this machine can connect" in said


def test_check_prints_a_table_with_advice(telex: Run) -> None:
    done = telex("htty", "check", "--", "sh", "-c", "echo hm; exit 4")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        'command  BREAKS  it exited with code 4 before it sent a chunk; its screen shows "hm"',
        "                 Run it by itself and check its output.",
    ]


def test_a_program_under_script_is_dumped(telex: Run, program: Find, work: Path) -> None:
    """What really goes through a terminal, written down by a stranger."""
    script = f"{program('script')} -qfc '{' '.join(SERVE)}' -I in.log -O out.log"
    checked = telex("htty", "check", "--json", "--", "sh", "-c", script, PYTHONPATH=str(PROGRAMS))
    told = json.loads(checked.stdout)
    assert (checked.returncode, told["ok"], told["status"]) == (0, True, 200)
    assert min(told["round_trip_ms"], told["up_mb_s"], told["down_mb_s"]) > 0
    assert not any(finding["breaks"] for finding in told["findings"])
    done = telex("htty", "dump", "out.log", "in.log")
    assert done.returncode == 0, done.stdout
    digest = hashlib.sha256(b"a few words").hexdigest()[:16]
    assert (
        f"  stream 1: GET / -> 200 text/plain, 11 bytes sha256:{digest}" in done.stdout.splitlines()
    )
    told = json.loads(telex("htty", "dump", "--json", "--frames", "out.log").stdout)
    assert told["sessions"][0]["streams"][0]["response"]["headers"][0] == [":status", "200"]
    assert {frame["type"] for frame in told["frames"]} >= {"Settings", "Headers", "Data", "Ping"}


def test_dump_shows_no_control_character_and_names_the_broken_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = Encoder().encode([(":status", "200"), ("content-type", "a\x1b[2J\x07b")])
    settings = b"\0\0\0\x04\0\0\0\0\0"
    frame = len(block).to_bytes(3, "big") + b"\x01\x05\0\0\0\x01" + block
    log = tmp_path / "log"
    log.write_bytes(encode(settings + frame) + b"\x1bPHTTY;1;=\x1b\\")
    for options in ((), ("--frames",), ("--json", "--frames")):
        assert main(["htty", "dump", *options, str(log)]) == 1
        said = capsys.readouterr().out
        assert said.replace("\n", "").isprintable()
        assert "bad encoding" in said
    log.write_bytes(b"only text")
    assert main(["htty", "dump", str(log)]) == 1
    assert capsys.readouterr().out == "0 chunks, 9 bytes of text, 0 problems\n"
    assert main(["htty", "dump", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.endswith("nothing: No such file or directory\n")
