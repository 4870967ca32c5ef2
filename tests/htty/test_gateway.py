"""The gateway as browsers and programs see it: authentication, headers, bodies, and ends."""

from __future__ import annotations

import asyncio
import hashlib
import re
import resource
import socket
from contextlib import aclosing, suppress
from urllib.parse import urlsplit

import httpx
import pytest

from gateways import Stage, answer, gated, read_all, served, visiting
from telex.htty import limits
from telex.htty.gateway.gateway import Gateway, NoSuchPage
from telex.htty.gateway.gateway_request import SILENT, GatewayRequest, PageOrigin
from telex.htty.gateway.header_policy import MalformedResponse, ResponseHead, response_head
from telex.htty.gateway.pages import NoPageName, Page, label
from telex.htty.h2 import http2_frames
from telex.htty.h2.http_stream import HttpStream
from telex.transports import web_server
from telex.transports.auth import Authenticator
from telex.transports.web_server import CannotListen
from web import output, running

MIB = 1024 * 1024


async def echo(http_stream: HttpStream) -> None:
    """Echo the request body, with its length."""
    body = await read_all(http_stream)
    await answer(http_stream, body, (b"content-length", b"%d" % len(body)))


# Authentication


async def test_a_link_admits_a_browser_and_the_page_arrives_unchanged() -> None:
    async def page(http_stream: HttpStream) -> None:
        policy = (b"content-security-policy", b"default-src 'none'")
        await answer(http_stream, b"hello", (b"cache-control", b"max-age=60"), policy)

    async with gated(page) as stage:
        got = await stage.browser.get("/a%20b?c=d")
    assert (got.status_code, got.text) == (200, "hello")
    assert got.headers["content-security-policy"] == "default-src 'none'"
    assert got.headers["cache-control"] == "max-age=60"
    assert "referrer-policy" not in got.headers
    seen = stage.program.headers()
    assert seen[b":method"] == b"GET"
    assert seen[b":path"] == b"/a%20b?c=d"
    assert seen[b":authority"] == stage.host.encode()
    assert b"host" not in seen


async def test_a_link_works_once() -> None:
    async with gated(echo) as stage:
        link = urlsplit(stage.gateway.url(stage.page))
        del stage.browser.headers["cookie"]
        first = await stage.browser.get(f"/?{link.query}")
        stage.browser.cookies.clear()
        second = await stage.browser.get(f"/?{link.query}")
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert second.status_code == 401
    assert second.json()["reason"] == "code"
    assert not stage.program.seen


async def test_a_link_opened_twice_works_with_the_cookie_and_is_an_error_page_without_it() -> None:
    person = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with gated(echo) as stage:
        link = urlsplit(stage.gateway.url(stage.page))
        first = await stage.browser.get(f"/?{link.query}", headers=person)
        again = await stage.browser.get(f"/?{link.query}", headers=person)
        del stage.browser.headers["cookie"]
        stage.browser.cookies.clear()
        stranger = await stage.browser.get(f"/?{link.query}", headers=person)
        plain = await stage.browser.get("/", headers=person)
        elsewhere = {**person, "host": f"gone-1.localhost:{stage.gateway.port}"}
        unknown = await stage.browser.get("/", headers=elsewhere)
    assert [one.status_code for one in (first, again)] == [303, 303]
    assert [one.status_code for one in (stranger, plain, unknown)] == [401, 401, 403]
    for page in (stranger, plain, unknown):
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "start" in page.text.lower()
        assert "again" in page.text
    assert "<code>demo --all</code>" in stranger.text
    assert "telex run --" in unknown.text
    assert link.query.partition("=")[2] not in stranger.text


async def test_every_error_behind_the_gateway_is_a_page_for_a_person() -> None:
    async def give_up(http_stream: HttpStream) -> None:
        http_stream.reset()

    person = {"accept": "text/html,*/*"}
    async with gated(give_up) as stage:
        for method in ("GET", "POST"):
            got = await stage.browser.request(method, "/", headers=person)
            assert got.status_code == 502
            assert "The program gave up this request." in got.text
            assert '<a href="">Try again</a>' in got.text
        stage.page.http = None
        got = await stage.browser.get("/", headers=person)
        sent = await stage.browser.post("/", headers=person)
    assert "location.reload" in got.text
    assert "Start the program again in its terminal." in got.text
    assert "location.reload" not in sent.text, "nothing is sent twice unasked"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 403),
        ("localhost:{port}", 403),
        ("demo-1.localhost", 403),
        ("demo-1.localhost:1", 403),
        ("demo-1.evil.example:{port}", 403),
        ("other-1.localhost:{port}", 401),
        ("no-page.localhost:{port}", 403),
        ("", 403),
    ],
)
async def test_a_cookie_of_one_page_opens_nothing_else(host: str, status: int) -> None:
    async with gated(echo) as stage:
        other = Page("other-1", "other")
        stage.gateway.add(other)
        async with served(other, echo) as neighbour:
            given = host.format(port=stage.gateway.port)
            headers = {"host": given, "origin": f"http://{given}"}
            got = await stage.browser.get("/", headers=headers)
            assert not neighbour.seen
    assert got.status_code == status
    assert not stage.program.seen


@pytest.mark.parametrize(
    ("method", "change", "status"),
    [
        ("GET", {"cookie": ""}, 401),
        ("GET", {"cookie": "telex-1=x"}, 401),
        ("GET", {"origin": "http://evil.example"}, 403),
        ("GET", {"origin": "null"}, 403),
        ("POST", {"origin": None}, 403),
        ("OPTIONS", {"origin": "http://evil.example"}, 403),
        ("GET", {"cookie": "", "authorization": "Bearer guessed-guessed-guessed"}, 401),
        ("POST", {}, 200),
    ],
)
async def test_a_refused_request_never_reaches_the_program(
    method: str, change: dict[str, str | None], status: int
) -> None:
    async with gated(echo) as stage:
        for name, value in change.items():
            if value is None:
                del stage.browser.headers[name]
            else:
                stage.browser.headers[name] = value
        got = await stage.browser.request(method, "/")
    assert got.status_code == status
    assert bool(stage.program.seen) == (status == 200)


async def test_the_gateways_credentials_do_not_reach_the_program_and_other_fields_do() -> None:
    async with gated(echo) as stage:
        cookie = f"a=1; {stage.cookie}; b=2"
        mine = {"cookie": cookie, "authorization": "Basic dTpw"}
        await stage.browser.get("/?code=of-the-page", headers=mine)
        await stage.browser.get("/")
    first, second = stage.program.headers(0), stage.program.headers(1)
    assert first[b"cookie"] == b"a=1; b=2"
    assert first[b"authorization"] == b"Basic dTpw"
    assert first[b":path"] == b"/?code=of-the-page"
    assert b"cookie" not in second


async def test_the_token_is_not_passed_on() -> None:
    auth = Authenticator("t" * 32, names=["demo-1.localhost"], shared=True)
    assert auth.is_bearer(b"bearer " + b"t" * 32)
    async with gated(echo) as stage:
        origin, _ = stage.gateway._origins[stage.page.name]
        token = origin.auth._tokens["default"].decode()
        headers = {"authorization": f"Bearer {token}", "cookie": ""}
        got = await stage.browser.get("/", headers=headers)
    assert got.status_code == 200
    assert b"authorization" not in stage.program.headers()


# Headers


async def test_headers_about_the_connection_are_not_forwarded() -> None:
    async with gated(echo) as stage:
        reader, writer = await stage.connect()
        lines = ["Connection: close, X-Hop", "X-Hop: 1", "X-End: 2", "TE: trailers", "DNT: 1"]
        writer.write(stage.get("/", *lines, "Keep-Alive: 5", "Proxy-Authorization: x"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    seen = stage.program.headers()
    assert seen[b"x-end"] == b"2"
    assert seen[b"dnt"] == b"1"
    for name in (b"connection", b"x-hop", b"te", b"keep-alive", b"proxy-authorization"):
        assert name not in seen


async def test_a_chunked_upload_loses_an_added_content_length() -> None:
    async with gated(echo) as stage:
        reader, writer = await stage.connect()
        request = stage.get("/", f"Origin: http://{stage.host}", "Transfer-Encoding: chunked")
        request = request.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nConnection: close")
        writer.write(request + b"\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        got = await reader.read()
        writer.close()
        await writer.wait_closed()
    refused = got.startswith(b"HTTP/1.1 400")
    assert refused or (got.endswith(b"hello") and b"content-length" not in stage.program.headers())


@pytest.mark.parametrize(
    "line",
    [
        *("X: \xff\xfe", "X:", "X: a\tb", "X:  a  ", "X!#$%&'*+-.^_`|~: 1", "Authorization: "),
        *("Cookie: ;;;", "Cookie: =", "Cookie: a; ", "Connection: host, cookie, :path"),
        *("Content-Length: 0", "Connection: content-length", "Upgrade: h2c", "TE: gzip"),
    ],
)
async def test_every_header_that_a_browser_can_send_is_forwarded(line: str) -> None:
    async def page(http_stream: HttpStream) -> None:
        await answer(http_stream, b"ok")

    async with gated(page) as stage:
        reader, writer = await stage.connect()
        request = stage.get("/", "Connection: close").removesuffix(b"\r\n")
        writer.write(request + line.encode("latin-1") + b"\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()


async def test_headers_too_large_for_the_program_are_a_400(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_HEADER_BYTES", 2000)
    async with gated(echo) as stage:
        got = await stage.browser.get("/", headers={"x": "a" * 4000})
        after = await stage.browser.get("/")
    assert (got.status_code, after.status_code) == (400, 200)


async def test_headers_that_open_the_page_to_others_are_dropped() -> None:
    async def page(http_stream: HttpStream) -> None:
        ours = b"telex-%d=mine; Path=/" % stage.gateway.port
        await answer(
            http_stream,
            b"x",
            (b"access-control-allow-origin", b"*"),
            (b"access-control-allow-credentials", b"true"),
            (b"cross-origin-resource-policy", b"cross-origin"),
            (b"alt-svc", b'h2=":9999"'),
            (b"set-cookie", b"wide=1; Path=/; Domain=localhost"),
            (b"set-cookie", b"wide=2; domain = .localhost"),
            (b"set-cookie", ours),
            (b"set-cookie", b"kept=1; HttpOnly"),
        )

    async with gated(page) as stage:
        got = await stage.browser.get("/")
    assert got.headers.get_list("set-cookie") == ["kept=1; HttpOnly"]
    assert got.headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in got.headers if name.startswith("access-control")]
    assert "alt-svc" not in got.headers


OK = (b":status", b"200")
SMUGGLED = [
    [],
    [(b"content-type", b"text/html")],
    [(b":status", b"20")],
    [(b":status", b"101")],
    [(b":status", b"600")],
    [(b":status", b"200\r\nx: y")],
    [OK, (b":status", b"404")],
    [OK, (b":path", b"/")],
    [OK, (b"x", b"a\r\nset-cookie: b=c")],
    [OK, (b"x", b"a\nb")],
    [OK, (b"x", b"a\rb")],
    [OK, (b"x", b"a\0b")],
    [OK, (b"x", b"a\x01b")],
    [OK, (b"x", b" a")],
    [OK, (b"x", b"a ")],
    [OK, (b"x\r\ny", b"a")],
    [OK, (b"x y", b"a")],
    [OK, (b"x:", b"a")],
    [OK, (b"", b"a")],
    [OK, (b"X", b"a")],
    [OK, (b"connection", b"close")],
    [OK, (b"transfer-encoding", b"chunked")],
    [OK, (b"upgrade", b"h2c")],
    [OK, (b"keep-alive", b"1")],
    [OK, (b"proxy-connection", b"close")],
    [OK, (b"content-length", b"1"), (b"content-length", b"1")],
    [OK, (b"content-length", b"1, 1")],
    [OK, (b"content-length", b"-1")],
    [OK, (b"content-length", b"+1")],
    [OK, (b"content-length", b"")],
    [OK, (b"content-length", b"9" * 30)],
]


@pytest.mark.parametrize("headers", SMUGGLED)
def test_a_response_that_could_be_parsed_differently_is_refused(
    headers: list[tuple[bytes, bytes]],
) -> None:
    assert isinstance(
        response_head(headers, "GET", Authenticator("t" * 32, shared=True)), MalformedResponse
    )


def test_a_response_with_unusual_values_is_forwarded() -> None:
    headers = [OK, (b"x", b""), (b"y", b"a \t b"), (b"z", "ö".encode()), (b"x", b"again")]
    head = response_head(headers, "GET", Authenticator("t" * 32, shared=True))
    assert isinstance(head, ResponseHead)
    assert head.headers[:-1] == headers[1:]


async def test_a_smuggling_program_gets_a_502_in_its_place() -> None:
    """The HTTP/2 library would refuse most of it earlier, so it is replaced here."""

    async def page(http_stream: HttpStream) -> None:
        await answer(http_stream, b"x")

    async with gated(page) as stage:
        http = stage.page.http
        assert http is not None
        request = http.request

        async def tampered(headers: list[tuple[bytes, bytes]], *, end: bool = False) -> HttpStream:
            http_stream = await request(headers, end=end)
            await http_stream.answer()
            http_stream._answer = [OK, (b"x", b"a\r\nset-cookie: b=c")]
            return http_stream

        http.request = tampered  # type: ignore[method-assign]  # a hostile library
        got = await stage.browser.get("/")
    assert (got.status_code, got.json()["reason"]) == (502, "malformed")


# Bodies


async def test_answers_without_bodies() -> None:
    async def page(http_stream: HttpStream) -> None:
        seen = dict(http_stream.headers)
        status = int(seen[b":path"][1:])
        body = b"" if seen[b":method"] == b"HEAD" or status != 200 else b"12345"
        length = [(b"content-length", b"5")] if status != 204 else []
        await answer(http_stream, body, *length, status=status)

    async with gated(page) as stage:
        head = await stage.browser.head("/200")
        nothing = await stage.browser.get("/204")
        unchanged = await stage.browser.get("/304")
        plain = await stage.browser.get("/200")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "5", b"")
    assert (nothing.status_code, nothing.content) == (204, b"")
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert (plain.headers["content-length"], plain.content) == ("5", b"12345")


async def test_a_body_where_none_is_allowed_does_not_become_the_next_response() -> None:
    async def page(http_stream: HttpStream) -> None:
        if dict(http_stream.headers)[b":path"] == b"/204":
            await answer(http_stream, b"HTTP/1.1 200 OK\r\n\r\n", status=204)
        else:
            await answer(http_stream, b"the next")

    async with gated(page) as stage:
        got = await stage.browser.get("/204")
        following = await stage.browser.get("/")
    assert (got.status_code, got.content) == (204, b"")
    assert following.text == "the next"


async def test_a_205_has_an_empty_body_with_a_length() -> None:
    async def page(http_stream: HttpStream) -> None:
        if dict(http_stream.headers)[b":path"] == b"/205":
            await answer(http_stream, b"HTTP/1.1 200 OK\r\n\r\n", status=205)
        else:
            await answer(http_stream, b"the next")

    async with gated(page) as stage:
        got = await stage.browser.get("/205")
        following = await stage.browser.get("/")
    assert (got.status_code, got.content, got.headers["content-length"]) == (205, b"", "0")
    assert following.text == "the next"


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.counted
async def test_large_bodies_are_forwarded_both_ways_without_buffering(counted) -> None:  # type: ignore[no-untyped-def]
    size = counted(10, 100)
    piece = bytes(range(256)) * 4096
    digest = hashlib.sha256(piece * size).hexdigest()

    async def page(http_stream: HttpStream) -> None:
        if dict(http_stream.headers)[b":method"] == b"GET":
            await http_stream.send_headers([OK])
            for _ in range(size):
                await http_stream.write(piece)
            await http_stream.write(b"", end=True)
            return
        got = hashlib.sha256()
        while data := await http_stream.read():
            got.update(data)
        await answer(http_stream, got.hexdigest().encode())

    async def upload():  # type: ignore[no-untyped-def]
        for _ in range(size):
            yield piece

    async with gated(page) as stage:
        before = memory()
        sent = await stage.browser.post("/", content=upload())
        got = hashlib.sha256()
        async with stage.browser.stream("GET", "/") as coming:
            async for data in coming.aiter_raw():
                got.update(data)
        grown = memory() - before
    assert sent.text == digest
    assert got.hexdigest() == digest
    assert grown < 32 * MIB, f"{grown / MIB:.0f} MiB"  # of both ends and the client


async def test_curl_uploads_with_expect_and_keeps_its_connection(program, tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "file"
    file.write_bytes(bytes(2 * MIB))
    async with gated(echo) as stage:
        url = f"http://{stage.host}/"
        command = [program("curl"), "-sS", "-v", "--noproxy", "*", "-H", f"Cookie: {stage.cookie}"]
        command += ["-H", f"Origin: http://{stage.host}", "-H", "Expect: 100-continue"]
        command += ["-T", str(file), "-X", "POST", url, "-o", str(tmp_path / "back")]
        async with running(*command) as curl:
            _, log = await curl.communicate()
    assert b"100 Continue" in log
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    seen = stage.program.headers()
    assert seen[b"content-length"] == b"%d" % (2 * MIB)
    assert b"expect" not in seen


async def test_curl_follows_a_link_as_a_browser_does(program, tmp_path) -> None:  # type: ignore[no-untyped-def]
    async def page(http_stream: HttpStream) -> None:
        await answer(http_stream, b"welcome")

    async with gated(page) as stage:
        command = [program("curl"), "-sS", "-L", "--noproxy", "*", "-c", str(tmp_path / "jar")]
        got = await output(*command, stage.gateway.url(stage.page))
    assert got == "welcome"


async def test_a_thousand_requests_at_once_are_answered_a_hundred_at_a_time() -> None:
    most, now = 0, 0

    async def page(http_stream: HttpStream) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        await answer(http_stream, dict(http_stream.headers)[b":path"])

    async def visit(stage: Stage, number: int) -> None:
        reader, writer = await stage.connect()
        writer.write(stage.get(f"/{number}", "Connection: close"))
        got = await reader.read()
        assert got.startswith(b"HTTP/1.1 200"), got
        assert b"/%d\r\n0\r\n\r\n" % number in got
        writer.close()
        await writer.wait_closed()

    async with gated(page) as stage, asyncio.TaskGroup() as visits:
        for number in range(1000):
            visits.create_task(visit(stage, number))
    assert len(stage.program.seen) == 1000
    assert most <= limits.HTTY_STREAMS


async def test_events_arrive_one_by_one_in_an_endless_response() -> None:
    updates: asyncio.Queue[bytes] = asyncio.Queue()

    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK, (b"content-type", b"text/event-stream")])
        while True:
            await http_stream.write(await updates.get())

    async with (
        gated(page) as stage,
        stage.browser.stream("GET", "/events") as events,
        aclosing(events.aiter_raw()) as pieces,
    ):
        for number in range(5):
            updates.put_nowait(b"data: %d\n\n" % number)
            assert await anext(pieces) == b"data: %d\n\n" % number


async def test_browsers_that_do_not_read_do_not_block_others(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_SLOW_READER_SECONDS", 0.3)
    few = limits.HTTY_SLOW_READERS
    written = 0

    async def page(http_stream: HttpStream) -> None:
        nonlocal written
        if dict(http_stream.headers)[b":path"] != b"/endless":
            await answer(http_stream, b"x")
            return
        await http_stream.send_headers([OK])
        while True:
            await http_stream.write(bytes(64 * 1024))
            written += 64 * 1024

    async with gated(page) as stage:
        held = []
        for _ in range(40):  # together more than the connection's window
            _, writer = await stage.connect()
            writer.write(stage.get("/endless"))
            held.append(writer)
        async with asyncio.timeout(60):
            while len(stage.program.seen) < 40:
                await asyncio.sleep(0.01)
            while sum(not seen.gone.is_set() for seen in stage.program.seen) > few:
                await asyncio.sleep(0.01)
        assert (await stage.browser.get("/")).text == "x"
        assert written < 200 * MIB  # the kernel's buffers for each, and the windows
        for writer in held:
            writer.transport.abort()


# Disconnects


async def test_a_closed_tab_frees_its_stream() -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK])
        while True:
            await http_stream.write(bytes(64 * 1024))

    async with gated(page) as stage:
        reader, writer = await stage.connect()
        writer.write(stage.get("/"))
        await reader.readexactly(MIB)
        writer.transport.abort()
        async with asyncio.timeout(60):
            await stage.program.seen[0].gone.wait()


async def test_a_tab_closed_before_the_answer_frees_its_stream_too() -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.gone.wait()

    async with gated(page) as stage:
        _, writer = await stage.connect()
        writer.write(stage.get("/"))
        async with asyncio.timeout(60):
            while not stage.program.seen:
                await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        async with asyncio.timeout(60):
            await stage.program.seen[0].gone.wait()


async def deaf(http_stream: HttpStream) -> None:
    """Respond, and read nothing."""
    await http_stream.send_headers([OK])
    await http_stream.gone.wait()


def uploading(stage: Stage, size: int) -> socket.socket:
    """Connect a browser that uploads and does not read."""
    tab = socket.create_connection(("127.0.0.1", stage.gateway.port))
    tab.setblocking(False)
    more = (f"Content-Length: {size}", f"Origin: http://{stage.host}")
    tab.sendall(stage.get("/", *more).replace(b"GET", b"POST", 1))
    return tab


async def full(stage: Stage) -> HttpStream:
    """Wait until the program's window is full; return its stream."""
    assert stage.page.http is not None
    async with asyncio.timeout(60):
        while not stage.program.seen or stage.page.http._connection.window(1) > 0:
            await asyncio.sleep(0.01)
    return stage.program.seen[0]


@pytest.mark.parametrize("size", [MIB + 128 * 1024, 32 * MIB], ids=["all sent", "stuck"])
async def test_a_tab_closed_during_an_unread_upload_frees_its_stream(size: int) -> None:
    async with gated(deaf) as stage:
        with uploading(stage, size) as tab:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await asyncio.get_running_loop().sock_sendall(tab, bytes(size))
            http_stream = await full(stage)
        async with asyncio.timeout(60):
            await http_stream.gone.wait()


async def test_an_unread_upload_is_given_up(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_STALL_SECONDS", 0.2)
    async with gated(deaf) as stage:
        with uploading(stage, 9 * MIB) as tab:
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(60):
                    await asyncio.get_running_loop().sock_sendall(tab, bytes(9 * MIB))
            async with asyncio.timeout(60):
                await stage.program.seen[0].gone.wait()


async def test_100_continue_is_sent_only_when_there_is_a_stream(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_WAITING_SECONDS", 0.2)
    async with gated(held) as stage:
        more = ("Content-Length: 5", "Expect: 100-continue", f"Origin: http://{stage.host}")
        request = stage.get("/", *more).replace(b"GET", b"POST", 1)
        streams = await hold_all_streams(stage)
        for status in (b" 503 ", b" 100 "):
            reader, writer = await stage.connect()
            writer.write(request)
            assert status in await reader.readline()
            streams.pop(0).close()
            streams.append(writer)
        for stream in streams:
            stream.close()
            await stream.wait_closed()


async def test_a_request_that_was_ended_does_not_begin_to_wait() -> None:
    """As when the browser disconnects in the moment in which it gets a stream."""

    class Late(GatewayRequest):
        async def _forward(self) -> None:
            self.end()
            self._expect(100, SILENT)
            await asyncio.Event().wait()

    async def nothing(*_: object) -> None: ...

    site = PageOrigin(Page("demo-1", "demo"), Authenticator("t" * 32, shared=True))
    scope = {"type": "http", "method": "GET", "headers": []}
    async with asyncio.timeout(60):
        await Late(site, scope, nothing, nothing).run()


async def test_many_closed_tabs_are_not_a_flood_to_the_program(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setitem(http2_frames.FLOOD_BUDGETS, http2_frames.FloodKind.RESET, 30)
    monkeypatch.setattr("telex.htty.limits.HTTY_BUDGET_SECONDS", 1)

    async def page(http_stream: HttpStream) -> None:
        if dict(http_stream.headers)[b":path"] == b"/":
            await http_stream.gone.wait()
        await answer(http_stream, b"still here")

    async def visit(stage: Stage) -> None:
        before = len(stage.program.seen)
        _, writer = await stage.connect()
        writer.write(stage.get("/"))
        while len(stage.program.seen) == before:
            await asyncio.sleep(0)
        writer.transport.abort()

    async with gated(page) as stage:
        for _ in range(50):
            await visit(stage)
        async with asyncio.timeout(60):
            for http_stream in stage.program.seen:
                await http_stream.gone.wait()
        assert (await stage.browser.get("/after")).text == "still here"


async def test_a_page_without_a_program_is_an_error_for_a_person_and_for_a_script() -> None:
    page = Page("demo-1", "demo <b>")
    async with Gateway() as gateway:
        gateway.add(page)
        async with visiting(gateway, page) as browser:
            person = await browser.get("/", headers={"accept": "text/html,*/*"})
            script = await browser.get("/")
    assert person.status_code == script.status_code == 503
    assert person.headers["retry-after"] == script.headers["retry-after"] == "1"
    assert "demo &lt;b&gt;" in person.text
    assert "'unsafe-inline'" not in person.headers["content-security-policy"]
    assert person.headers["cache-control"] == "no-store"
    assert script.json()["reason"] == "unserved"


async def test_a_waiting_request_is_answered_when_the_next_program_starts(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_RETURN_SECONDS", 5)
    wait = {"telex-wait": "1"}
    async with gated(echo) as stage:
        stage.page.http = None
        waiting = asyncio.create_task(stage.browser.get("/", headers=wait))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        async with served(stage.page, echo) as follower:
            assert (await waiting).status_code == 200
            assert not follower.seen
            assert (await stage.browser.get("/", headers={"x": "y"})).status_code == 200
            assert follower.headers()[b"x"] == b"y"


async def test_a_request_that_waits_too_long_gets_retry_after(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_RETURN_SECONDS", 0.05)
    async with gated(echo) as stage:
        stage.page.http = None
        got = await stage.browser.get("/", headers={"telex-wait": "1"})
    assert got.status_code == 503


async def test_a_program_that_dies_before_its_answer_is_a_503() -> None:
    async def page(http_stream: HttpStream) -> None:
        stage.program.hang_up()

    async with gated(page) as stage:
        got = await stage.browser.get("/")
        again = await stage.browser.get("/")
    assert (got.status_code, got.json()["reason"]) == (503, "unserved")
    assert again.status_code == 503


@pytest.mark.parametrize("headers", [[OK], [OK, (b"content-length", b"1000")]])
@pytest.mark.parametrize("how", ["killed", "reset", "removed"])
async def test_an_interrupted_response_is_cut_and_not_completed(
    headers: list[tuple[bytes, bytes]], how: str
) -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers(headers)
        await http_stream.write(b"half")
        await halfway.wait()
        match how:
            case "killed":
                stage.program.hang_up()
            case "reset":
                http_stream.reset()
            case _:
                stage.gateway.remove(stage.page)

    halfway = asyncio.Event()
    async with gated(page) as stage:
        with pytest.raises(httpx.RemoteProtocolError):
            async with stage.browser.stream("GET", "/") as coming:
                async for data in coming.aiter_raw():
                    assert data == b"half"
                    halfway.set()


async def test_a_program_that_gives_up_a_request_is_a_502() -> None:
    async def page(http_stream: HttpStream) -> None:
        http_stream.reset()

    async with gated(page) as stage:
        got = await stage.browser.get("/")
    assert (got.status_code, got.json()["reason"]) == (502, "reset")


async def test_a_program_that_never_answers_is_a_504_and_its_stream_is_free(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_ANSWER_SECONDS", 0.1)

    async def page(http_stream: HttpStream) -> None:
        await http_stream.gone.wait()

    async with gated(page) as stage:
        got = await stage.browser.get("/")
        async with asyncio.timeout(60):
            await stage.program.seen[0].gone.wait()
    assert (got.status_code, got.json()["reason"]) == (504, "silent")


async def test_a_response_without_reading_the_upload_is_forwarded() -> None:
    async def page(http_stream: HttpStream) -> None:
        await answer(http_stream, b"too much", status=413)
        http_stream.reset()

    async def upload():  # type: ignore[no-untyped-def]
        for _ in range(64):
            yield bytes(64 * 1024)

    async with gated(page) as stage:
        got = await stage.browser.post("/", content=upload())
        assert (got.status_code, got.text) == (413, "too much")
        assert (await stage.browser.get("/")).status_code == 413


async def hold_all_streams(stage: Stage) -> list[asyncio.StreamWriter]:
    """Send as many requests for `/held` as the program accepts."""
    held = []
    for _ in range(limits.HTTY_STREAMS):
        _, writer = await stage.connect()
        writer.write(stage.get("/held"))
        held.append(writer)
    async with asyncio.timeout(60):
        while len(stage.program.seen) < limits.HTTY_STREAMS:
            await asyncio.sleep(0.01)
    return held


async def held(http_stream: HttpStream) -> None:
    if dict(http_stream.headers)[b":path"] == b"/held":
        await http_stream.gone.wait()
    else:
        await answer(http_stream, b"at last")


async def test_requests_wait_for_a_stream_but_not_too_many_of_them(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_WAITING_REQUESTS", 1)
    async with gated(held) as stage, asyncio.TaskGroup() as visits:
        tabs = await hold_all_streams(stage)
        waits = visits.create_task(stage.browser.get("/waits"))
        origin, _ = stage.gateway._origins[stage.page.name]
        while not origin._waiting:
            await asyncio.sleep(0.01)
        async with visiting(stage.gateway, stage.page) as other:
            refused = await other.get("/one-too-many")
        assert not waits.done()
        for writer in tabs:
            writer.transport.abort()
        assert (await waits).text == "at last"
    assert (refused.status_code, refused.json()["reason"]) == (503, "busy")
    assert refused.headers["retry-after"] == "1"


async def test_a_request_that_waits_too_long_for_a_stream_gets_retry_after(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async with gated(held) as stage:
        tabs = await hold_all_streams(stage)
        monkeypatch.setattr("telex.htty.limits.HTTY_WAITING_SECONDS", 0.1)
        refused = await stage.browser.get("/")
        for writer in tabs:
            writer.transport.abort()
    assert (refused.status_code, refused.json()["reason"]) == (503, "busy")
    assert len(stage.program.seen) == limits.HTTY_STREAMS


# The gateway itself


async def test_a_port_in_use_is_reported() -> None:
    async with Gateway() as gateway:
        with pytest.raises(CannotListen, match=rf"port {gateway.port}: .*--gateway-port"):
            async with Gateway(gateway.port):
                pass


def needs_ipv6() -> None:
    if not web_server._has_ipv6():
        pytest.skip("there is no IPv6 here, for anybody")


async def test_no_other_program_can_listen_where_browsers_connect_first(program) -> None:  # type: ignore[no-untyped-def]
    """A browser resolves `NAME.localhost` to ::1 before 127.0.0.1."""
    needs_ipv6()
    async with gated(echo) as stage:
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("::1", stage.gateway.port), family=socket.AF_INET6).close()
        command = [program("curl"), "-sS", "-6", "--noproxy", "*", "-o", "/dev/null"]
        command += ["-w", "%{http_code}", stage.gateway.url(stage.page)]
        assert await output(*command) == "303"


async def test_no_page_is_shown_if_another_program_listens_there() -> None:
    needs_ipv6()
    with (
        socket.create_server(("::1", 0), family=socket.AF_INET6) as other,
        pytest.raises(CannotListen, match="::1"),
    ):
        async with Gateway(other.getsockname()[1]):
            pass


async def test_a_removed_page_is_unknown_and_its_name_can_be_used_again() -> None:
    async with gated(echo) as stage:
        stage.gateway.remove(stage.page)
        assert (await stage.browser.get("/")).status_code == 403
        with pytest.raises(NoSuchPage):
            stage.gateway.url(stage.page)
        stage.gateway.add(Page(stage.page.name, "another"))
        assert (await stage.browser.get("/")).status_code == 401


def test_a_page_is_named_after_its_command_and_no_other_telex_has_the_name() -> None:
    found = re.fullmatch("make-1-([0-9a-f]{6})", label("make", 1))
    assert found
    run = found[1]
    assert label("./My App.py", 2) == f"my-app-py-2-{run}"
    assert label("日本", 3) == f"page-3-{run}"
    assert Page(label("x" * 300, 10**9), "x").title == "x"
    with pytest.raises(NoPageName):
        Page("a.b", "x")
