"""`telex serve` as a process: its streams, its doors, its signals and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import http_client
import telex
import web
from automating import SECRET, Client, alive, request
from telex.rpc.errors import RpcError
from telex.transports import stdio, unix, websocket
from telex.transports.channels import FRAMINGS, FramedChannel

SERVE = [sys.executable, "-m", "telex", "serve"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A plain environment: nothing of the person who runs the tests."""
    return {"PATH": os.environ["PATH"], "TELEX_HOME": str(tmp_path / "home"), "TERM": "xterm"}


def piped(
    script: bytes, environ: dict[str, str], *options: str
) -> subprocess.CompletedProcess[bytes]:
    """The server with all its input given at once, until its end."""
    return subprocess.run(
        [*SERVE, *options], input=script, capture_output=True, env=environ, timeout=60, check=False
    )


def lines(*requests: bytes) -> bytes:
    return b"".join(line + b"\n" for line in requests)


def answers(output: bytes) -> list[Any]:
    """Every line that came, each of which must be a message."""
    found = [json.loads(line) for line in output.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in found)
    return found


class Running:
    """A server that runs, and ways to talk to it."""

    def __init__(self, process: Process, source: int, sink: int) -> None:
        self.process = process
        self._source = source
        self._sink = sink
        self._clients: list[Client] = []

    async def said(self, begins: str) -> str:
        """The rest of the line on stderr that begins so."""
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            while line := (await self.process.stderr.readline()).decode():
                if line.startswith(begins):
                    return line.removeprefix(begins).strip()
        pytest.fail(f"it never said {begins!r}")

    async def on_stdio(self, framing: str = "ndjson") -> Client:
        channel = FramedChannel(FRAMINGS[framing])
        await stdio.attach(channel, os.dup(self._source), os.dup(self._sink))
        self.hang_up()
        return self._client(Client(channel))

    async def at(self, path: Path) -> Client:
        return self._client(Client(await unix.connect(path)))

    async def on_the_web(self, url: str) -> Client:
        return self._client(Client(await websocket.connect(url, web.TOKEN)))

    def hang_up(self) -> None:
        """Our ends of its standard input and output are closed."""
        for fd in {self._source, self._sink} - {-1}:
            os.close(fd)
        self._source = self._sink = -1

    async def end(self) -> int:
        async with asyncio.timeout(60):
            return await self.process.wait()

    async def close(self) -> None:
        self.hang_up()
        for client in self._clients:
            await client.peer.close()
        if self.process.returncode is None:
            self.process.terminate()
        await asyncio.wait_for(self.process.communicate(), 20)
        assert self.process.returncode == 0

    def _client(self, client: Client) -> Client:
        self._clients.append(client)
        return client


@asynccontextmanager
async def serving(environ: dict[str, str], *options: str) -> AsyncIterator[Running]:
    (theirs_in, sink), (source, theirs_out) = os.pipe(), os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *SERVE, *options, stdin=theirs_in, stdout=theirs_out, stderr=PIPE, env=environ
        )
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    running = Running(process, source, sink)
    try:
        yield running
    finally:
        await running.close()


async def started(client: Client) -> tuple[str, int]:
    """A session whose program stays, and its process."""
    session = await client.start("echo $$ .; exec cat")
    await client.shows(session, ".")
    return session, int((await client.screen(session)).split()[0])


@pytest.mark.parametrize("options", [[], ["--stdio"]], ids=["by default", "--stdio"])
def test_a_request_in_a_line_is_answered_in_a_line(
    environ: dict[str, str], options: list[str]
) -> None:
    done = piped(b'{"jsonrpc":"2.0","id":1,"method":"server.capabilities"}\n', environ, *options)
    (answer,) = answers(done.stdout)
    assert answer["result"]["name"] == "telex"
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_specs_own_example_of_lsp_framing_is_answered(environ: dict[str, str]) -> None:
    script = b'Content-Length: 48\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"session.list"}'
    done = piped(script, environ, "--stdio", "--framing", "lsp")
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(body)
    assert json.loads(body) == {"jsonrpc": "2.0", "id": 1, "result": {"sessions": []}}
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("framing", ["ndjson", "lsp"])
async def test_a_conversation_on_standard_streams(environ: dict[str, str], framing: str) -> None:
    """The same as in `test_sessions`, with the process in between."""
    async with serving(environ, "--framing", framing) as server:
        client = await server.on_stdio(framing)
        await client.call("server.set_notifications", enabled=True)
        session, pid = await started(client)
        never = {"type": "contains_text", "value": "never"}
        waiting = asyncio.create_task(
            client.refused("session.wait", session=session, matcher=never)
        )
        await asyncio.gather(*(client.act(session, "text", f"{n} ") for n in range(100)))
        await client.act(session, "text", "done\n")
        await client.shows(session, "98 99 done")
        in_order = " ".join(map(str, range(100)))
        assert f"{in_order} done\r\n" in await client.transcript(session)
        await client.until(lambda: "98 99 done" in client.output(session))
        snapshot = await client.call("session.snapshot", session=session)
        assert len(snapshot["cells"]) == 24 * 80
        missing = await client.refused("session.create", program="no-such-program-here")
        assert (missing.code, missing.data["kind"]) == (-32603, "no_such_program")
        await client.call("session.kill", session=session)
        assert (await waiting).code == -32002
        (ended,) = await client.until(lambda: client.exits(session))
        assert ended["signal"] is not None
        assert not alive(pid)
        await client.call("session.close", session=session)
        assert (await client.refused("session.transcript", session=session)).code == -32602
        await client.peer.close()
        assert await server.end() == 0


def test_at_end_of_input_pending_requests_are_answered_and_programs_end(
    environ: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    script = f"echo $$ >{file}; sleep 0.2; echo ready; sleep 1000"
    done = piped(
        lines(
            request(1, "session.create", program="sh", args=["-c", script]),
            request(
                2,
                "session.wait",
                session="s1",
                matcher={"type": "contains_text", "value": "ready"},
                cells="none",
            ),
            request(
                3,
                "session.wait",
                session="s1",
                matcher={"type": "contains_text", "value": "never"},
                timeout_ms=400,
            ),
        ),
        environ,
    )
    found = {message["id"]: message for message in answers(done.stdout)}
    assert found[1]["result"] == {"session": "s1"}
    assert found[2]["result"]["snapshot"]["plain_text"] == "ready"
    assert found[3]["error"]["code"] == -32001
    assert not alive(int(file.read_text()))
    assert done.returncode == 0


def test_a_script_piped_in_whole_runs_one_request_at_a_time_if_asked(
    environ: dict[str, str],
) -> None:
    script = lines(
        request(
            1, "session.create", program="sh", args=["-c", "sleep 0.2; read x; echo got $x; cat"]
        ),
        request(2, "session.input", session="s1", action={"type": "text", "value": "it\n"}),
        request(
            3,
            "session.wait",
            session="s1",
            matcher={"type": "contains_text", "value": "got it"},
            cells="none",
        ),
        request(4, "session.snapshot", session="s1", cells="none"),
        request(5, "session.close", session="s1"),
        request(6, "session.list"),
    )
    done = piped(script, environ, "--serial")
    found = answers(done.stdout)
    assert [message["id"] for message in found] == [1, 2, 3, 4, 5, 6]
    assert found[3]["result"]["plain_text"].endswith("got it")
    assert found[5]["result"] == {"sessions": []}
    assert done.returncode == 0
    at_once = answers(piped(script, environ).stdout)
    assert [message["id"] for message in at_once] != [1, 2, 3, 4, 5, 6], "without it they overtake"


def test_a_mistake_on_standard_input_ends_nothing(environ: dict[str, str]) -> None:
    done = piped(b"no message\n\n\xff\xfe\n" + lines(request(1, "session.list")), environ)
    codes = [message.get("error", {}).get("code") for message in answers(done.stdout)]
    assert codes == [-32700, -32700, None]
    assert done.returncode == 0


async def test_a_client_that_vanishes_ends_the_server_and_its_programs(
    environ: dict[str, str],
) -> None:
    async with serving(environ) as server:
        client = await server.on_stdio()
        _, pid = await started(client)
        await client.peer.close()
        assert await server.end() == 0
        assert not alive(pid)


async def test_end_of_input_ends_nothing_while_another_listener_is_open(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "t.sock"
    async with serving(environ, "--stdio", "--socket", str(path)) as server:
        await server.said("telex: listening at unix:")
        first = await server.on_stdio()
        session, pid = await started(first)
        await first.peer.close()
        second = await server.at(path)
        assert (await second.call("session.list"))["sessions"] == [session]
        await second.act(session, "text", "still here\n")
        await second.shows(session, "still here\nstill here")
        assert alive(pid)
        assert server.process.returncode is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_programs_unlinks_the_socket_and_is_no_failure(
    environ: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "t.sock"
    async with serving(environ, "--socket", str(path)) as server:
        await server.said("telex: listening at unix:")
        client = await server.at(path)
        _, pid = await started(client)
        stubborn = await client.start("trap '' HUP TERM INT; sleep 1000 & echo $! .; wait")
        await client.shows(stubborn, ".")
        child = int((await client.screen(stubborn)).split()[0])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        server.process.send_signal(number)
        assert await server.end() == 0
        assert not any(map(alive, (pid, child)))
        assert list(tmp_path.glob("t.sock*")) == []


async def test_a_signal_ends_a_server_on_standard_streams_too(environ: dict[str, str]) -> None:
    async with serving(environ) as server:
        client = await server.on_stdio()
        _, pid = await started(client)
        server.process.send_signal(signal.SIGTERM)
        assert await server.end() == 0
        assert not alive(pid)


NEVER = {"type": "contains_text", "value": "never"}


async def refused(client: Client, method: str, params: dict[str, Any]) -> tuple[int, str, Any]:
    with pytest.raises(RpcError) as caught:
        await client.peer.call(method, params, timeout=60)
    problem = caught.value.problem
    return problem.code, problem.message, problem.data


async def test_pending_waits_get_an_error_when_the_server_ends(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """By every way, and whatever they wait for; one who never reads holds nobody up for long."""
    path = tmp_path / "t.sock"
    doors = ["--stdio", "--socket", str(path), "--http", "127.0.0.1:0"]
    async with serving({**environ, "TELEX_TOKEN": web.TOKEN}, *doors) as server:
        await server.said("telex: listening at unix:")
        url = await server.said("telex: listening at ")
        clients = [
            await server.on_stdio(),
            await server.at(path),
            await server.on_the_web(url.replace("http://", "ws://")),
            server._client(Client(await http_client.connect(url, web.TOKEN))),
            server._client(Client(await http_client.connect(url, web.TOKEN, events=True))),
        ]
        session = await clients[0].start("cat")
        shell = (await clients[0].call("adapter.start", plugin="shell"))["adapter"]
        deaf = await server.at(path)
        await deaf.call("server.set_notifications", enabled=True)
        deaf.peer._channel.pause()
        flood = await clients[0].start("yes")
        slow = {"text": "x" * 1000, "chunk_chars": 1, "delay_ms": 100}
        pending = {
            "session.wait": {"session": session, "matcher": NEVER, "timeout_ms": 60_000},
            "session.input": {
                "session": session,
                "action": {"type": "stream_text", "value": slow},
            },
            "adapter.turn": {
                "adapter": shell,
                "send": {"intent": "run", "params": {"command": "sleep 100", "force": True}},
                "wait": {"intent": "wait_turn_matcher", "timeout_ms": 60_000},
            },
        }
        waiting = [
            asyncio.create_task(refused(client, *asked))
            for client in clients
            for asked in pending.items()
        ]
        for client in clients:  # whose requests are read in their order
            await client.shows(flood, "y")
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            refusals = await asyncio.gather(*waiting)
        told = (-32002, "The server is shutting down.", {"kind": "server_ending"})
        assert [one for one in refusals if one != told] == []
        assert await server.end() == 0


async def test_batched_and_queued_requests_get_an_error_when_the_server_ends(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "t.sock"
    async with serving(environ, "--socket", str(path), "--serial") as server:
        await server.said("telex: listening at unix:")
        client = await server.at(path)
        session = await client.start("printf ready; cat")
        await client.shows(session, "ready")
        reader, writer = await asyncio.open_unix_connection(path)
        asked = [request(id, "session.wait", session=session, matcher=NEVER) for id in range(4)]
        writer.write(b"[%b,%b]\n%b\n%b\n" % tuple(asked))
        await writer.drain()
        await client.call("session.list")
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            batch, *others = [json.loads(line) for line in (await reader.read()).splitlines()]
        writer.close()
        await writer.wait_closed()
        assert await server.end() == 0
        assert [one["id"] for one in batch + others] == [0, 1, 2, 3]
        kinds = {one["error"]["data"]["kind"] for one in batch + others}
        assert kinds == {"server_ending"}


async def test_the_python_client_gets_an_error_when_the_server_ends(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "t.sock"
    async with serving(environ, "--socket", str(path)) as server:
        await server.said("telex: listening at unix:")
        async with telex.connect(f"unix:{path}") as there:
            term = await there.spawn(["sh", "-c", "printf ready; cat"])
            await term.wait("ready")
            waiting = asyncio.create_task(term.wait("never", 60))
            await term.text()
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(telex.ServerGone, match="is shutting down"):
                await waiting
            with pytest.raises(telex.ServerGone):
                await term.text()
        assert await server.end() == 0


async def test_several_listeners_serve_the_same_sessions(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "t.sock"
    doors = ["--stdio", "--socket", str(path), "--http", "127.0.0.1:0"]
    async with serving({**environ, "TELEX_TOKEN": web.TOKEN}, *doors) as server:
        await server.said("telex: listening at unix:")
        url = await server.said("telex: listening at ")
        assert url.endswith("/rpc/automation")
        socket_url = url.replace("http://", "ws://")
        clients = [
            await server.on_stdio(),
            await server.at(path),
            await server.on_the_web(socket_url),
            await server.on_the_web(socket_url.removesuffix("/automation")),
        ]
        sessions = [await client.start("cat") for client in clients]
        assert sessions == ["s1", "s2", "s3", "s4"]
        for client in clients:
            assert (await client.call("session.list"))["sessions"] == sessions
        await clients[0].call("server.set_notifications", enabled=True)
        await clients[2].act("s2", "text", "hello\n")
        await clients[1].shows("s2", "hello\nhello")
        await clients[0].until(lambda: "hello" in clients[0].output("s2"))
        assert clients[1].told == clients[2].told == []
        async with httpx.AsyncClient(trust_env=False) as http:
            for address in (url, url.removesuffix("/automation")):
                bearer = {"Authorization": f"Bearer {web.TOKEN}"}
                answer = await http.post(
                    address, json=json.loads(request(7, "session.list")), headers=bearer
                )
                assert answer.json()["result"] == {"sessions": sessions}
            stranger = await http.post(url, json=json.loads(request(7, "session.list")))
            assert stranger.status_code in (401, 403)


def test_a_socket_path_that_cannot_be_had_is_one_sentence(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("precious")
    done = piped(b"", environ, "--socket", str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"telex: {tmp_path}/file is not a socket")
    assert done.stderr.count(b"\n") == 1
    assert (tmp_path / "file").read_text() == "precious"


async def test_a_second_server_at_the_same_socket_is_refused(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "t.sock"
    async with serving(environ, "--socket", str(path)) as server:
        await server.said("telex: listening at unix:")
        done = await asyncio.to_thread(piped, b"", environ, "--socket", str(path))
        assert done.returncode == 1
        assert b"another server listens at" in done.stderr
        client = await server.at(path)
        assert (await client.call("session.list"))["sessions"] == []


def test_a_listening_address_beyond_this_machine_must_be_allowed(environ: dict[str, str]) -> None:
    done = piped(b"", environ, "--http", "0.0.0.0:0")
    assert done.returncode == 1
    assert b"--allow-remote" in done.stderr or b"allow" in done.stderr
    assert piped(b"", environ, "--http", "nonsense").returncode == 2


def test_diagnostics_go_to_stderr_and_have_no_secrets(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script = lines(request(1, "session.snapshot", session=SECRET))
    traced = piped(script, {**environ, "TELEX_TRACE": "wire,rpc"})
    assert len(answers(traced.stdout)) == 1
    assert b"session.snapshot" in traced.stderr
    assert b"hunter2" not in traced.stderr + traced.stdout
    (tmp_path / SECRET).write_text("")
    refused = piped(b"", environ, "--socket", str(tmp_path / SECRET))
    assert b"is not a socket" in refused.stderr or b"[REDACTED]" in refused.stderr
    assert b"hunter2" not in refused.stderr


async def test_the_token_is_printed_once_on_stderr_and_authenticates_a_client(
    environ: dict[str, str],
) -> None:
    async with serving(environ, "--http", "127.0.0.1:0") as server:
        url = await server.said("telex: listening at ")
        token = await server.said("telex: token ")
        async with httpx.AsyncClient(trust_env=False) as http:
            bearer = {"Authorization": f"Bearer {token}"}
            answer = await http.post(
                url, json=json.loads(request(1, "session.list")), headers=bearer
            )
            assert answer.json()["result"] == {"sessions": []}
