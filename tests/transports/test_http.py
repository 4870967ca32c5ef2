"""POST, event streams, and their web server: real sockets, real curl."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import http_client
from handlers import table
from streams import cuts, split
from telex.rpc import limits as rpc_limits
from telex.rpc.channel import Channel
from telex.rpc.errors import PeerGone
from telex.rpc.handler_tasks import CallContext
from telex.rpc.peer import Peer
from telex.transports import channels as transports_channels
from telex.transports import http, responses, web_server
from telex.transports.auth import Authenticator
from telex.transports.channels import ChannelEnded
from telex.transports.errors import AccessDenied, CannotConnect, NoServer
from telex.transports.responses import FrameKind, frame_kind
from telex.transports.web_server import CannotListen, RemoteNotAllowed, listen
from telex.wire import limits
from web import DIALECT, TOKEN, Ear, Site, closing, output, running, serving, site

Program = Callable[[str], str]


class Text(Struct):
    text: str = ""


def echo(params: Text) -> Text:
    return params


def message(method: str, id: int | None = 1, **params: Any) -> str:
    numbered = {} if id is None else {"id": id}
    return json.dumps({"jsonrpc": "2.0", **numbered, "method": method, "params": params})


HELLO = message("echo", text="hello")
ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"text":"hello"}}'


@pytest.fixture(autouse=True)
def _logs_no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [r for r in caplog.get_records("call") if r.levelno >= logging.ERROR]


class Curl:
    """Runs `curl`, by default with the token and JSON. It prints the status after the body."""

    def __init__(self, program: Program, here: Site) -> None:
        self._path = program("curl")
        self._here = here

    def command(self, *arguments: str, path: str = "/rpc", token: str | None = TOKEN) -> list[str]:
        bearer = ["-H", f"Authorization: Bearer {token}"] if token else []
        url = f"{self._here.address.url}{path}"
        return [self._path, "-sS", "--max-time", "20", "--path-as-is", *bearer, *arguments, url]

    async def __call__(
        self,
        *arguments: str,
        data: str | None = None,
        path: str = "/rpc",
        token: str | None = TOKEN,
        body: bytes | None = None,
    ) -> str:
        posted = [] if data is None else ["-H", "Content-Type: application/json", "-d", data]
        written = ["-w", " %{http_code}"]
        return await output(
            *self.command(*posted, *written, *arguments, path=path, token=token), body=body
        )


async def test_a_post_is_answered(program: Program) -> None:
    async with site(table(echo=echo)) as here:
        curl = Curl(program, here)
        assert await curl(data=HELLO) == f"{ANSWER} 200"
        assert await curl(data=HELLO, path="/rpc/automation") == f"{ANSWER} 200"
        assert (await curl("-i", data=HELLO)).count("content-type: application/json") == 1


async def test_a_batch_has_one_answer_and_broken_json_has_one_too(program: Program) -> None:
    async with site(table(echo=echo)) as here:
        curl = Curl(program, here)
        two = await curl(data=f"[{HELLO},{message('echo', id=None)}]")
        assert two == f"[{ANSWER}] 200"
        broken = await curl(data='{"jsonrpc":')
        assert "-32700" in broken
        assert broken.endswith(" 200")


async def test_a_notification_is_accepted_and_served_before_that(program: Program) -> None:
    noted: list[str] = []

    async def note(params: Text) -> None:
        await asyncio.sleep(0)
        noted.append(params.text)

    async with site(table(note=note)) as here:
        assert await Curl(program, here)(data=message("note", id=None, text="x")) == " 202"
        assert noted == ["x"]


async def test_a_notification_before_the_response_does_not_replace_it(
    program: Program,
) -> None:
    async def go(params: Text, call: CallContext) -> str:
        await call.peer.notify("working", Text("1"))
        await call.peer.notify("working", Text("2"))
        return "done"

    async with site(table(go=go)) as here:
        answer = await Curl(program, here)(data=message("go"))
        assert answer == '{"jsonrpc":"2.0","id":1,"result":"done"} 200'


async def test_a_request_of_the_server_cannot_be_answered_over_a_plain_post(
    program: Program,
) -> None:
    async def go(params: Text, call: CallContext) -> str:
        try:
            await call.peer.call("echo", params)
        except PeerGone:
            return "nobody to ask"
        return "asked"

    async with site(table(go=go)) as here:
        assert "nobody to ask" in await Curl(program, here)(data=message("go"))


@pytest.mark.parametrize(
    ("arguments", "token", "status", "reason"),
    [
        ([], None, 401, "token"),
        ([], "wrong", 401, "token"),
        (["-H", "Host: evil.example"], TOKEN, 403, "host"),
        (["-H", "Host: 127.0.0.1"], TOKEN, 403, "host"),
        (["-H", "Origin: http://evil.example"], TOKEN, 403, "origin"),
        (["-H", "Origin: null"], TOKEN, 403, "origin"),
        (["-H", "Content-Type: text/plain"], TOKEN, 415, "content-type"),
        (["-H", "Content-Type:"], TOKEN, 415, "content-type"),
        (["-H", "Telex-Conversation: unknown"], TOKEN, 404, "conversation"),
    ],
)
async def test_a_refusal_has_a_status_a_reason_and_a_sentence(
    program: Program, arguments: list[str], token: str | None, status: int, reason: str
) -> None:
    async with site(table(echo=echo)) as here:
        curl = Curl(program, here)
        typed = any("Content-Type" in argument for argument in arguments)
        json_type = [] if typed else ["-H", "Content-Type: application/json"]
        output = await curl(*json_type, *arguments, "-d", HELLO, token=token)
        body, _, code = output.rpartition(" ")
        assert int(code) == status
        assert json.loads(body)["reason"] == reason
        assert here.peers == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_other_methods_are_not_allowed_and_no_other_origin_ever_is(
    program: Program, method: str
) -> None:
    async with site() as here:
        how = ["-I"] if method == "HEAD" else ["-X", method, "-i"]
        head = await Curl(program, here)(*how, "-H", f"Origin: {here.address.url}")
        assert head.endswith(" 405")
        assert "access-control" not in head.lower()
        assert "frame-ancestors 'none'" in head


async def test_two_hosts_or_an_address_for_a_proxy_are_refused(program: Program) -> None:
    async with site() as here:
        own = here.address.url.removeprefix("http://")
        for head in (
            f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n",
            f"GET http://evil.example/ HTTP/1.1\r\nHost: {own}\r\n",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.0\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port)
            bearer = f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n"
            writer.write(f"{head}{bearer}\r\n".encode())
            assert (await reader.read()).split()[1] == b"400"
            writer.close()
            await writer.wait_closed()


async def test_a_link_with_a_code_becomes_a_cookie_once(program: Program, tmp_path: Any) -> None:
    async with site(table(echo=echo)) as here:
        curl = Curl(program, here)
        jar = ["-b", str(tmp_path / "jar"), "-c", str(tmp_path / "jar")]
        link = f"/?code={here.auth.new_code(asyncio.get_running_loop().time())}"
        assert await curl(*jar, "-L", path=link, token=None) == "the page 200"
        assert f"telex-{here.address.port}" in (tmp_path / "jar").read_text()
        assert (await curl(path=link, token=None)).endswith(" 401")
        assert await curl(*jar, path="/", token=None) == "the page 200"
        assert (await curl(*jar, data=HELLO, token=None)).endswith(" 403")
        ours = ["-H", f"Origin: {here.address.url}"]
        assert await curl(*jar, *ours, data=HELLO, token=None) == f"{ANSWER} 200"


@pytest.mark.parametrize(
    "how", [[], ["-H", "Transfer-Encoding: chunked"]], ids=["length", "chunked"]
)
async def test_a_body_that_is_too_large_is_refused(program: Program, how: list[str]) -> None:
    async with site(table(echo=echo)) as here:
        body = b" " * (limits.LINE_BYTES + 1)
        arguments = ["-H", "Content-Type: application/json", "--data-binary", "@-", *how]
        output = await Curl(program, here)(*arguments, body=body)
        assert output.endswith(" 413")
        assert here.peers == []


async def test_an_endless_body_is_not_read_forever() -> None:
    received = 0
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": b" " * 65_536, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    async def never(channel: Channel) -> None:
        raise AssertionError("there is nothing to serve")

    route = http.routes({"agent": never})[0]
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/rpc/agent", "headers": headers}
    await route(scope, receive, send)
    assert sent[0]["status"] == 413
    assert received == limits.LINE_BYTES // 65_536 + 1
    received = 0
    declared = [(b"content-length", b"%d" % (limits.LINE_BYTES + 1))]
    await route({**scope, "headers": headers + declared}, receive, send)
    assert received == 0


CHUNKED = "5\r\nhello\r\n0\r\n\r\n"
SMUGGLED = f"GET /?smuggled HTTP/1.1\r\nHost: {{host}}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
TWO_LENGTHS = {
    "both": "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "both, the other way round": "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "both, in another case": "content-LENGTH: 0\r\nTRANSFER-encoding: CHUNKED",
    "both, one on a line that goes on": "Content-Length: 5\r\nTransfer-Encoding:\r\n chunked",
    "both, one of them empty": "Content-Length: 5\r\nTransfer-Encoding:",
    "both, after a tab": "Content-Length:\t5\r\nTransfer-Encoding:\tchunked",
    "both, one with a blank before its colon": "Content-Length: 5\r\nTransfer-Encoding : chunked",
    "two lengths": "Content-Length: 5\r\nContent-Length: 6",
    "two lengths in one": "Content-Length: 5, 6",
    "a length with a sign": "Content-Length: +5",
    "a length in hex": "Content-Length: 0x5",
    "a length of nothing": "Content-Length:",
    "a coding nobody knows": "Transfer-Encoding: chunked, identity",
    "a coding that is almost one": "Transfer-Encoding: xchunked",
    "identity": "Transfer-Encoding: identity",
    "two codings": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
}


@pytest.mark.parametrize("headers", TWO_LENGTHS.values(), ids=TWO_LENGTHS.keys())
async def test_a_request_without_one_clear_end_is_refused_with_all_that_follows(
    headers: str,
) -> None:
    async with site() as here:
        status, rest = await _status_and_rest(here, f"POST / HTTP/1.1\r\n{headers}")
        assert status == 400
        assert "the page" not in rest
        assert "HTTP/1.1" not in rest, "nothing after it is served"


async def test_a_coding_in_http_1_0_and_an_upgrade_with_two_lengths_are_refused() -> None:
    async with site() as here:
        status, _ = await _status_and_rest(here, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked")
        assert status == 400
        upgrade = (
            "GET /rpc/automation HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
        status, _ = await _status_and_rest(here, upgrade + TWO_LENGTHS["both"])
        assert status == 400


@pytest.mark.parametrize("headers", ["Content-Length: 15", "Transfer-Encoding: chunked"])
async def test_either_length_alone_is_accepted_and_the_next_request_is_served(headers: str) -> None:
    async with site() as here:
        status, rest = await _status_and_rest(here, f"POST / HTTP/1.1\r\n{headers}")
        assert status == 405
        assert "the page" in rest


async def _status_and_rest(here: Any, head: str) -> tuple[int, str]:
    """Return the status of the first response, and all data after it, if a request follows."""
    host = here.address.url.removeprefix("http://")
    reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port)
    proof = f"Host: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    last = SMUGGLED.format(host=host).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
    writer.write(f"{head}\r\n{proof}{CHUNKED}{last}".encode())
    try:
        async with asyncio.timeout(60):
            answer = (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
    first, _, rest = answer.partition("\r\n")
    return int(first.split()[1]), rest


@pytest.mark.parametrize("events", [False, True])
async def test_a_response_with_two_lengths_is_refused(events: bool) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        kind = b"text/event-stream" if events else b"application/json"
        both = b"Content-Length: 2\r\nTransfer-Encoding: chunked"
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n\r\n2\r\n{}\r\n0\r\n\r\n" % (kind, both)
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/rpc/automation"
        if events:
            with pytest.raises(NoServer, match="no clear end"):
                await http_client.connect(url, TOKEN, events=True)
            return
        async with closing(await http_client.connect(url, TOKEN)) as ear:
            ear.channel.send(HELLO.encode())
            assert "both Content-Length and Transfer-Encoding" in await ear.end()


async def test_the_largest_message_passes() -> None:
    def size(params: Text) -> int:
        return len(params.text)

    async with site(table(size=size)) as here:
        channel = await http_client.connect(here.url, TOKEN)
        async with Peer(channel, DIALECT) as peer:
            most = limits.LINE_BYTES - 200
            assert await peer.call("size", Text("x" * most)) == most


async def test_when_the_client_hangs_up_the_work_for_it_stops(program: Program) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def never(params: Text) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with site(table(never=never)) as here:
        data = ["-H", "Content-Type: application/json", "-d", message("never")]
        async with running(*Curl(program, here).command(*data)) as curl:
            await started.wait()
            curl.kill()
            await stopped.wait()


async def test_curl_keeps_an_event_stream_open_and_receives_later_events(program: Program) -> None:
    async with site(table(echo=echo)) as here:
        events = ["-N", "-H", "Accept: text/event-stream", "-H", "Content-Type: application/json"]
        async with running(*Curl(program, here).command(*events, "-d", HELLO)) as curl:
            assert curl.stdout is not None
            assert await curl.stdout.readline() == f"data: {ANSWER}\n".encode()
            assert await curl.stdout.readline() == b"\n"
            (peer,) = here.peers
            for number in range(3):
                await peer.notify("later", {"n": number})
                output = json.loads((await curl.stdout.readline()).removeprefix(b"data: "))
                assert output["params"] == {"n": number}
                assert await curl.stdout.readline() == b"\n"
            curl.kill()
            assert await here.over.get() is peer


async def test_a_silent_event_stream_sends_keep_alive_comments(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "KEEP_ALIVE_SECONDS", 0.01)
    async with site() as here:
        events = ["-N", "-H", "Accept: text/event-stream", "-H", "Content-Type: application/json"]
        async with running(*Curl(program, here).command(*events, "-d", "")) as curl:
            assert curl.stdout is not None
            assert [await curl.stdout.readline() for _ in range(4)] == [b":\n", b"\n"] * 2


async def test_an_event_stream_carries_a_whole_conversation_in_order() -> None:
    noted: list[int] = []

    def note(params: dict[str, int]) -> None:
        noted.append(params["n"])

    async def ask_back(params: Text, call: CallContext) -> str:
        answer: Text = await call.peer.call("echo", params, returns=Text)
        return answer.text

    async with site(table(note=note, ask_back=ask_back)) as here:
        channel = await http_client.connect(here.url, TOKEN, events=True)
        async with Peer(channel, DIALECT, table(echo=echo)) as peer:
            for number in range(20):
                await peer.notify("note", {"n": number})
            assert await peer.call("ask_back", Text("there and back")) == "there and back"
            assert noted == list(range(20))
            assert len(here.peers) == 1
        await here.over.get()


async def test_a_server_that_pauses_blocks_the_posts() -> None:
    channels: list[Channel] = []
    over = asyncio.Event()

    async def hold(channel: Channel) -> None:
        channels.append(channel)
        channel.pause()
        async with closing(channel) as ear:
            assert [await ear.hear() for _ in range(5)] == [b"[%d]" % n for n in range(5)]
            over.set()

    async with serving(hold) as here:
        channel = await http_client.connect(here.url, TOKEN, events=True)
        async with closing(channel):
            for number in range(5):
                channel.send(b"[%d]" % number)
            async with httpx.AsyncClient() as other:  # a round trip past the waiting ones
                assert (await other.get(f"{here.address.url}/")).status_code == 401
            assert channel.unsent >= 4 * len(b"[0]")
            channels[0].resume()
            await over.wait()


@pytest.mark.parametrize(("ends", "status"), [(False, 202), (True, 404)])
async def test_posts_for_a_paused_stream_are_read_one_at_a_time_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch, ends: bool, status: int
) -> None:
    opened: asyncio.Queue[Ear] = asyncio.Queue()
    bodies: asyncio.Queue[bytes | None] = asyncio.Queue()
    read_body = http.read_body

    async def body(*request: Any) -> bytes | None:
        bodies.put_nowait(await read_body(*request))
        return bodies._queue[-1]  # type: ignore[attr-defined]

    async def hold(channel: Channel) -> None:
        channel.pause()
        async with closing(channel) as ear:
            opened.put_nowait(ear)
            await ear.end()

    monkeypatch.setattr(http, "read_body", body)
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    async with serving(hold) as here, httpx.AsyncClient(headers=headers) as client:
        accept = {"accept": "text/event-stream"}
        async with client.stream("POST", here.url, headers=accept) as stream:
            ear = await opened.get()
            assert await bodies.get() == b""
            belongs = {"telex-conversation": stream.headers["telex-conversation"]}
            posts = [
                asyncio.create_task(client.post(here.url, content=b"[]", headers=belongs))
                for _ in range(3)
            ]
            await bodies.get()
            await client.get(here.address.url)  # a round trip past the waiting ones
            assert bodies.empty()
            if ends:
                await ear.channel.close()
            else:
                ear.channel.resume()
            assert [(await post).status_code for post in posts] == [status] * 3
            assert len(ear.heard) == (0 if ends else 3)


async def test_an_ended_stream_accepts_no_more_messages() -> None:
    async with site(table(echo=echo)) as here:
        channel = await http_client.connect(here.url, TOKEN, events=True)
        async with closing(channel) as ear:
            channel.send(HELLO.encode())
            assert await ear.hear() == ANSWER.encode()
            await here.peers[0].close()
            assert await ear.end() == "the server ended the conversation"
            channel.send(HELLO.encode())


async def test_a_message_over_the_limit_of_the_other_side_ends_the_stream_with_a_reason() -> None:
    async with site() as here:
        channel = await http_client.connect(here.url, TOKEN, events=True)
        async with closing(channel) as ear:
            channel.send(b" " * (limits.LINE_BYTES + 1))
            assert "refused us: 413" in await ear.end()


async def test_an_unread_event_stream_is_dropped_when_the_conversation_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transports_channels, "CLOSE_SECONDS", 0.1)
    over = asyncio.Event()

    async def flood(channel: Channel) -> None:
        async with closing(channel):
            while channel.unsent < rpc_limits.OUTBOUND_BYTES:
                channel.send(b"x" * 65_536)
                await asyncio.sleep(0)
        over.set()

    async with serving(flood) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port, limit=1024)
        writer.write(_stream_request(here))
        await over.wait()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1 << 30)
        writer.close()


def _stream_request(here: Site) -> bytes:
    return (
        f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{here.address.port}\r\nContent-Length: 0\r\n"
        f"Authorization: Bearer {TOKEN}\r\nAccept: text/event-stream\r\n"
        "Content-Type: application/json\r\n\r\n"
    ).encode()


async def test_messages_after_a_notification_are_served_after_it() -> None:
    served: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()

    async def note(params: Text) -> None:
        begun.set()
        await gate.wait()  # the first takes longest, so later ones could overtake it here
        served.append(params.text)

    def now(params: Text) -> list[str]:
        return served

    async with site(table(note=note, now=now)) as here:
        channel = await http_client.connect(here.url, TOKEN)
        async with Peer(channel, DIALECT) as peer:
            for number in range(5):
                await peer.notify("note", Text(str(number)))
            asking = asyncio.create_task(peer.call("now", Text()))
            await begun.wait()
            async with httpx.AsyncClient() as other:  # a round trip, time enough to overtake
                assert (await other.get(f"{here.address.url}/")).status_code == 401
            gate.set()
            assert await asking == ["0", "1", "2", "3", "4"]


async def test_responses_are_not_read_before_the_receiver_takes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = 0
    read_body = http_client._body

    async def body(*response: Any) -> bytes:
        nonlocal read
        read += 1
        return await read_body(*response)

    monkeypatch.setattr(http_client, "_body", body)
    async with site(table(echo=echo)) as here:
        channel = await http_client.connect(here.url, TOKEN)
        async with closing(channel) as ear:
            ear.channel.pause()
            for _ in range(20):
                ear.channel.send(HELLO.encode())
            for _ in range(20):
                await here.over.get()
            async with httpx.AsyncClient() as other:
                await other.get(here.address.url)
            assert 1 <= read <= 3
            ear.channel.resume()
            assert [await ear.hear() for _ in range(20)] == [ANSWER.encode()] * 20


async def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with site(table(echo=echo)) as here:
        channel = await http_client.connect(here.url, TOKEN)
        async with Peer(channel, DIALECT) as peer:
            assert await peer.call("echo", Text("x"), returns=Text) == Text("x")


@pytest.mark.parametrize("events", [False, True])
async def test_a_refused_client_gets_the_reason_and_does_not_hang(events: bool) -> None:
    async with site(table(echo=echo)) as here:
        if events:
            with pytest.raises(AccessDenied, match=r"401 \(That is not the token\.\)"):
                await http_client.connect(here.url, "wrong", events=True)
            return
        async with Peer(await http_client.connect(here.url, "wrong"), DIALECT) as peer:
            with pytest.raises(PeerGone, match=r"refused us: 401 \(That is not the token\.\)"):
                await peer.call("echo", Text("x"))


async def test_a_missing_server_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/rpc"
    with pytest.raises(NoServer, match="no server answers at"):
        await http_client.connect(url, TOKEN, events=True)
    async with closing(await http_client.connect(url, TOKEN)) as ear:
        ear.channel.send(HELLO.encode())
        assert "failed" in await ear.end()


@pytest.mark.parametrize("url", ["ftp://x/", "127.0.0.1:80", "http://", "http://[::1", ""])
async def test_an_invalid_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(CannotConnect, match="is not an address"):
        await http_client.connect(url, TOKEN)


@asynccontextmanager
async def _another_server(media_type: str, body: str) -> AsyncIterator[str]:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}"
        writer.write(f"{head}\r\n\r\n{body}".encode())
        await reader.read()
        writer.close()

    async with await asyncio.start_server(page, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/rpc"


async def test_a_response_of_several_lines_is_one_response() -> None:
    answer = json.dumps(json.loads(ANSWER), indent=2) + "\n"
    async with _another_server("application/json; charset=utf-8", answer) as url:
        channel = await http_client.connect(url, TOKEN)
        async with Peer(channel, DIALECT) as peer:
            assert await peer.call("echo", Text("hello"), returns=Text) == Text("hello")


@pytest.mark.parametrize("events", [False, True])
async def test_a_page_of_another_server_is_not_a_response(events: bool) -> None:
    async with _another_server("text/html", "hi") as url:
        if events:
            with pytest.raises(AccessDenied, match="answered with text/html; is it telex"):
                await http_client.connect(url, TOKEN, events=True)
            return
        async with closing(await http_client.connect(url, TOKEN)) as ear:
            ear.channel.send(HELLO.encode())
            assert "is it telex?" in await ear.end()


async def test_a_waiting_call_does_not_block_others() -> None:
    free = asyncio.Event()

    async def wait(params: Text) -> str:
        await free.wait()
        return "free"

    def release(params: Text) -> None:
        free.set()

    async with site(table(wait=wait, release=release)) as here:
        channel = await http_client.connect(here.url, TOKEN)
        async with Peer(channel, DIALECT) as peer:
            waiting = [asyncio.create_task(peer.call("wait", Text())) for _ in range(40)]
            await peer.call("release", Text())
            assert await asyncio.gather(*waiting) == ["free"] * 40


async def test_a_server_that_closes_in_the_middle_leaves_no_caller_waiting() -> None:
    async def hang_up(channel: Channel) -> None:
        async with closing(channel) as ear:
            await ear.hear()

    async with serving(hang_up) as here:
        channel = await http_client.connect(here.url, TOKEN)
        async with Peer(channel, DIALECT) as peer:
            with pytest.raises(PeerGone, match=r"503 \(The conversation ended before the response"):
                await peer.call("anything")


# The web server.


async def test_an_open_event_stream_ends_when_the_server_stops() -> None:
    async with site() as here:
        channel = await http_client.connect(here.url, TOKEN, events=True)
        ear = closing(channel)
        heard = await ear.__aenter__()
    assert await heard.end() == "the server ended the conversation"
    await ear.__aexit__(None, None, None)


async def test_the_server_stops_soon_although_a_client_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "GRACE_SECONDS", 0.05)
    flooded = asyncio.Event()

    async def flood(channel: Channel) -> None:
        async with closing(channel) as ear:
            while channel.unsent < rpc_limits.OUTBOUND_BYTES:
                channel.send(b"x" * 65_536)
                await asyncio.sleep(0)
            flooded.set()
            await ear.end()

    async with serving(flood) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port, limit=1024)
        writer.write(_stream_request(here))
        await flooded.wait()
    writer.transport.abort()
    del reader


async def test_a_response_in_progress_arrives_although_the_server_stops() -> None:
    body = message("echo", text="x" * 3_000_000).encode()
    async with site(table(echo=echo)) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port, limit=1024)
        writer.write(
            f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{here.address.port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await here.over.get()
        reading = asyncio.create_task(reader.read())
    assert len(await reading) > 3_000_000
    writer.close()


async def test_a_connection_without_a_request_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "REQUEST_SECONDS", 0.01)
    async with site() as here:
        for request in (b"", b"POST /rpc HT"):
            reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port)
            writer.write(request)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()


async def test_listening_beyond_this_machine_must_be_allowed() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""):
        with pytest.raises(RemoteNotAllowed, match="--allow-remote"):
            async with listen(_nothing, auth=Authenticator(TOKEN), host=host):
                pass
    async with listen(
        _nothing, auth=Authenticator(TOKEN), host="0.0.0.0", allow_remote=True
    ) as address:
        assert (address.host, address.url) == ("0.0.0.0", f"http://127.0.0.1:{address.port}")
        async with httpx.AsyncClient() as client:
            assert (await client.get(address.url)).json()["reason"] == "token"
            assert (await client.get(f"http://0.0.0.0:{address.port}")).json()["reason"] == "host"


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nobody is admitted here")


async def test_a_port_in_use_is_named() -> None:
    async with listen(_nothing, auth=Authenticator(TOKEN)) as address:
        with pytest.raises(CannotListen, match=f"port {address.port}: Address already in use$"):
            async with listen(_nothing, auth=Authenticator(TOKEN), port=address.port):
                pass


async def test_it_listens_on_ipv6_and_by_name_too() -> None:
    names = [("localhost", "127.0.0.1")]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        names.append(("::1", "[::1]"))
    for host, shown in names:
        async with listen(_nothing, auth=Authenticator(TOKEN), host=host) as address:
            assert address.url == f"http://{shown}:{address.port}"
            async with httpx.AsyncClient() as client:
                assert (await client.get(address.url)).status_code == 401


async def test_it_is_ready_at_once_and_installs_no_signal_handler() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with listen(_nothing, auth=Authenticator(TOKEN)) as address:
        with socket.create_connection(("127.0.0.1", address.port), timeout=60):
            assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", address.port), timeout=60)


@pytest.mark.counted
async def test_starting_and_stopping_leaves_no_resources(
    counted: Callable[[int, int], int],
) -> None:
    for _ in range(counted(5, 200)):
        async with site(table(echo=echo)) as here:
            channel = await http_client.connect(here.url, TOKEN, events=True)
            async with Peer(channel, DIALECT) as peer:
                await peer.call("echo", Text("x"))


async def test_no_log_at_any_level_has_the_token_or_a_code(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    import uvicorn.middleware.message_logger  # noqa: F401  so that its logger is there, too

    loggers = [logging.getLogger(name) for name in [*logging.root.manager.loggerDict, None]]
    levels = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.setLevel(1)
        logger.propagate = True
    try:
        async with site(table(echo=echo)) as here:
            curl = Curl(program, here)
            code = here.auth.new_code(asyncio.get_running_loop().time())
            for _ in range(2):
                await curl(path=f"/?code={code}", token=None)
            await curl(path=f"/nowhere?code={code}&token={TOKEN}")
            await curl(data=HELLO, path=f"/rpc?token={TOKEN}")
            await curl("-H", f"Host: {TOKEN}", data=HELLO)
            await curl("-H", f"Cookie: telex-{here.address.port}={TOKEN}", data=HELLO)
            for events in (False, True):
                channel = await http_client.connect(here.url, TOKEN, events=events)
                async with Peer(channel, DIALECT) as peer:
                    await peer.call("echo", Text("x"))
    finally:
        for logger, level, propagate in levels:
            logger.level, logger.propagate = level, propagate
            logger.manager._clear_cache()
    assert "refused" in caplog.text
    assert code not in caplog.text
    assert TOKEN not in caplog.text


# Sans-IO.


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (HELLO, FrameKind.REQUEST),
        (message("x", id=None), FrameKind.NOTIFICATION),
        ('{"method":"x","id":null}', FrameKind.NOTIFICATION),
        ('{"method":"x","id":"a"}', FrameKind.REQUEST),
        (ANSWER, FrameKind.RESPONSE),
        ('{"id":null,"error":{}}', FrameKind.RESPONSE),
        (f"[{ANSWER}]", FrameKind.RESPONSE),
        (f"[{HELLO},{message('x', id=None)}]", FrameKind.REQUEST),
        (f"[{message('x', id=None)}]", FrameKind.NOTIFICATION),
        ('{"command":"x","rpcid":"1"}', FrameKind.REQUEST),
        ('{"command":"x","reqid":"1"}', FrameKind.REQUEST),
        ('{"command":"x"}', FrameKind.NOTIFICATION),
        ('{"rpcid":"1","cont":true}', FrameKind.NOTIFICATION),
        ('{"resid":"1","data":1}', FrameKind.RESPONSE),
        ("nonsense", FrameKind.REQUEST),
        ("[]", FrameKind.REQUEST),
        ("[" * 100_000, FrameKind.REQUEST),
        ("7", FrameKind.REQUEST),
    ],
)
def test_a_frame_is_a_request_a_notification_or_a_response(frame: str, expected: FrameKind) -> None:
    assert frame_kind(frame.encode()) is expected


@given(st.lists(st.binary(min_size=1, max_size=40)), cuts)
def test_encoded_events_decode_to_themselves_wherever_the_reads_fall(
    frames: list[bytes], cuts: list[int]
) -> None:
    plain = [frame.replace(b"\r", b" ") for frame in frames]
    stream = b"".join(responses.encode_event(frame) + responses.KEEP_ALIVE_EVENT for frame in plain)
    decoder = http_client.EventStreamDecoder()
    assert [frame for read in split(stream, cuts) for frame in decoder.feed(read)] == plain


def test_other_fields_and_line_ends_of_an_event_stream_are_accepted() -> None:
    stream = b"id: 7\r\nevent: x\r\ndata:{\r\ndata:  }\r\n\r\n\r\n: hi\n\nretry: 1\n\ndata: 1\n\n"
    assert http_client.EventStreamDecoder().feed(stream) == [b"{\n }", b"1"]


def test_an_endless_event_is_refused() -> None:
    decoder = http_client.EventStreamDecoder()
    with pytest.raises(ChannelEnded, match="more than"):
        for _ in range(limits.LINE_BYTES // 65_536 + 2):
            decoder.feed(b"data: " + b"x" * 65_536 + b"\n")
