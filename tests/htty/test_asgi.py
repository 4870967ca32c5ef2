"""ASGI apps on an HTTP/2 connection: scopes, responses, mistakes of apps, and shutdown."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, InformationalResponseReceived, StreamEnded
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from htty.memory_stream import memory_streams
from htty.served import served, whole
from telex.htty import limits
from telex.htty.asgi import AsgiServer
from telex.htty.asgi_messages import request_scope
from telex.htty.errors import ConnectionOver, StartupFailed, StreamReset
from telex.wire import limits as wire_limits

Message = dict[str, Any]


async def respond(
    send: Any, body: bytes = b"", status: int = 200, headers: Any = (), more: bool = False
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": more})


# Scopes


async def test_a_starlette_app_answers() -> None:
    async def hello(request: Request) -> Response:
        text = f"{request.method} {request.url} {request.query_params['q']} {request.cookies}"
        return PlainTextResponse(text, headers={"X-Answer": "yes"})

    async with served(Starlette(routes=[Route("/hello", hello)])) as client:
        answer = await client.get(
            "/hello?q=a%20b", headers=[(b"cookie", b"a=1"), (b"cookie", b"b=2")]
        )
    assert answer.status == 200
    assert answer["x-answer"] == "yes"
    url = "http://make-1.localhost:8080/hello?q=a%20b"
    assert answer.body.decode() == f"GET {url} a b {{'a': '1', 'b': '2'}}"


async def test_the_scope_is_what_asgi_describes() -> None:
    seen: list[Message] = []

    async def app(scope: Message, receive: Any, send: Any) -> None:
        seen.append(scope)
        await respond(send)

    async with served(app, lifespan=False) as client:
        await client.get("/caf%C3%A9/%2F?x=%20", headers=[(b"x-one", b"1"), (b"x-one", b"2")])
    scope = seen[0]
    assert scope["type"] == "http"
    assert scope["asgi"]["version"] == "3.0"
    assert (scope["http_version"], scope["method"], scope["scheme"]) == ("2", "GET", "http")
    assert (scope["path"], scope["raw_path"]) == ("/café//", b"/caf%C3%A9/%2F")
    assert scope["query_string"] == b"x=%20"
    assert scope["headers"] == [
        (b"host", b"make-1.localhost:8080"),
        (b"x-one", b"1"),
        (b"x-one", b"2"),
    ]
    assert scope["client"] is None
    assert scope["server"] == ("make-1.localhost", 8080)


def test_several_cookie_fields_are_one_header_and_no_authority_is_no_server() -> None:
    fields = [(b":method", b"GET"), (b":path", b"/%ff"), (b"host", b"[::1]:x")]
    scope = request_scope([*fields, (b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2")], {})
    assert scope["headers"] == [(b"host", b"[::1]:x"), (b"x", b"y"), (b"cookie", b"a=1; b=2")]
    assert (scope["server"], scope["scheme"], scope["path"]) == (None, "http", "/\ufffd")


async def test_two_requests_run_at_once_and_do_not_wait_for_each_other() -> None:
    go = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await go.wait()
        await respond(send, scope["path"].encode())

    async with served(app, lifespan=False) as client:
        slow = await client.ask("/slow")
        assert (await client.get("/fast")).body == b"/fast"
        go.set()
        assert (await whole(slow)).body == b"/slow"


# Bodies


async def test_large_bodies_go_both_ways_with_a_slow_reader_without_buffering_them_whole(
    counted: Callable[[int, int], int],
) -> None:
    size = counted(10, 300) * wire_limits.MIB
    piece = bytes(range(256)) * 256
    ahead: list[int] = []
    sent = received = 0

    async def app(scope: Message, receive: Any, send: Any) -> None:
        nonlocal received
        digest = hashlib.sha256()
        while (message := await receive())["body"] or message["more_body"]:
            received += len(message["body"])
            ahead.append(sent - received)
            digest.update(message["body"])
            await asyncio.sleep(0)
        headers = [(b"X-Digest", digest.hexdigest().encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(size // len(piece)):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/", "POST", end=False)
        wanted = hashlib.sha256()
        for _ in range(size // len(piece)):
            await http_stream.write(piece)
            sent += len(piece)
            wanted.update(piece)
        await http_stream.write(b"", end=True)
        headers = await http_stream.answer()
        assert (b"x-digest", wanted.hexdigest().encode()) in headers
        back = hashlib.sha256()
        while data := await http_stream.read():
            back.update(data)
            await asyncio.sleep(0)
    assert back.digest() == wanted.digest()
    assert max(ahead) <= limits.HTTY_STREAM_WINDOW + 2 * limits.HTTY_UNSENT_BYTES


async def test_an_app_that_does_not_read_blocks_its_client() -> None:
    go = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await go.wait()
        while (await receive())["more_body"]:
            pass
        await respond(send, b"read")

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/", "POST", end=False)
        sent = 0

        async def upload() -> None:
            nonlocal sent
            for _ in range(64):
                await http_stream.write(bytes(64 * 1024))
                sent += 64 * 1024
            await http_stream.write(b"", end=True)

        uploading = asyncio.create_task(upload())
        await asyncio.wait({uploading}, timeout=0.2)
        assert not uploading.done()
        assert sent <= limits.HTTY_STREAM_WINDOW + 2 * limits.HTTY_UNSENT_BYTES
        go.set()
        await uploading
        assert (await whole(http_stream)).body == b"read"


async def test_a_response_before_the_whole_request_arrives_and_frees_the_window() -> None:
    """Each leaves most of a window unread; if that were not restored, the connection would block."""

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await respond(send, b"too much", status=413)

    async with served(app, lifespan=False) as client:
        for _ in range(20):
            http_stream = await client.ask("/", "POST", end=False)
            with pytest.raises(StreamReset) as declined:
                while True:
                    await http_stream.write(bytes(256 * 1024))
            assert declined.value.code == 0
            answer = await whole(http_stream)
            assert (answer.status, answer.body) == (413, b"too much")


async def test_a_client_that_expects_100_continue_gets_it() -> None:
    async def echo(request: Request) -> Response:
        return PlainTextResponse(await request.body())

    app = Starlette(routes=[Route("/", echo, methods=["POST"])])
    here, there = memory_streams()
    server = AsgiServer(app)
    serving = asyncio.create_task(server.serve(there))
    h2 = H2Connection()
    h2.initiate_connection()
    fields = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
    h2.send_headers(1, [*fields, ("expect", "100-continue")])
    seen: list[object] = []
    while not any(isinstance(event, StreamEnded) for event in seen):
        here.write(h2.data_to_send())
        came = h2.receive_data(await here.read())
        if any(isinstance(event, InformationalResponseReceived) for event in came):
            h2.send_data(1, b"x", end_stream=True)
        seen += came
    assert [event.data for event in seen if isinstance(event, DataReceived)] == [b"x"]
    here.close()
    await serving


# Responses


async def test_headers_of_the_connection_are_dropped_and_names_lowered() -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        headers = [
            *((b"Connection", b"X-Hop, close"), (b"X-Hop", b"1"), (b"Keep-Alive", b"5")),
            *((b"Transfer-Encoding", b"chunked"), (b"Upgrade", b"h2c"), (b"X-Kept", b" 2 ")),
        ]
        await respond(send, b"x", headers=headers)

    async with served(app, lifespan=False) as client:
        answer = await client.get("/")
    assert answer.headers == [(b":status", b"200"), (b"x-kept", b"2")]


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
async def test_some_answers_have_no_body(method: str, status: int) -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await respond(send, b"12345", status, [(b"content-length", b"5")], more=True)
        await send({"type": "http.response.body", "body": b""})

    async with served(app, lifespan=False) as client:
        answer = await client.get("/", method)
        assert (answer.status, answer.body) == (status, b"")
        assert answer["content-length"] == ("5" if method == "HEAD" else "")
        assert (await client.get("/", method)).status == status


async def test_an_endless_answer_to_head_ends() -> None:
    over = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x"

    async def recorded() -> None:
        over.set()

    async def stream(request: Request) -> Response:
        return StreamingResponse(endless(), background=BackgroundTask(recorded))

    async with served(Starlette(routes=[Route("/", stream)])) as client:
        assert (await client.get("/", "HEAD")).status == 200
        await over.wait()


# An app's mistakes


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"type": "http.response.start", "status": 100}, id="status"),
        pytest.param({"type": "http.response.body", "body": b"x"}, id="order"),
        pytest.param({"type": "nonsense"}, id="type"),
        pytest.param(
            {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b\r\nc: d")]},
            id="header",
        ),
        pytest.param(
            {"type": "http.response.start", "status": 200, "headers": [(b":status", b"200")]},
            id="pseudo",
        ),
        pytest.param(None, id="nothing"),
    ],
)
async def test_an_app_that_fails_before_its_answer_is_a_500_and_logged(
    wrong: Message | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        if wrong is not None:
            await send(wrong)

    async with served(app, lifespan=False) as client:
        answer = await client.get("/x")
        assert answer.status == 500
        assert answer.body == b"Internal Server Error\n"
    assert "GET '/x'" in caplog.text


@pytest.mark.parametrize("sent", [b"123", b"1234567"], ids=["short", "long"])
async def test_a_body_of_another_length_than_announced_ends_one_stream_only(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await respond(send, sent, headers=[(b"content-length", b"5")])

    async with served(app, lifespan=False) as client:
        for _ in range(2):
            with pytest.raises(StreamReset):
                await client.get("/")
    assert "content-length" in caplog.text


async def test_an_app_that_fails_in_the_middle_of_its_response_resets_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await respond(send, b"begun", more=True)
        raise LookupError("in the middle")

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/")
        assert await http_stream.read() == b"begun"
        with pytest.raises(StreamReset) as reset:
            await http_stream.read()
        assert reset.value.code == 2
    assert "in the middle" in caplog.text


# Disconnects and shutdown


async def test_a_client_that_disconnects_is_reported_to_the_app_and_later_sends_fail() -> None:
    begun, seen = asyncio.Event(), asyncio.Queue[object]()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        seen.put_nowait((await receive())["type"])
        await send({"type": "http.response.start", "status": 200})
        begun.set()
        seen.put_nowait((await receive())["type"])
        try:
            await send({"type": "http.response.body", "body": b"x"})
        except OSError as error:
            seen.put_nowait(error)
            raise

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/")
        await begun.wait()
        http_stream.reset()
        assert await seen.get() == "http.request"
        assert await seen.get() == "http.disconnect"
        assert isinstance(await seen.get(), OSError)


async def test_a_closed_tab_ends_a_silent_event_stream() -> None:
    over = asyncio.Event()

    async def events() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await asyncio.Event().wait()
        finally:
            over.set()

    async def stream(request: Request) -> Response:
        return StreamingResponse(events(), media_type="text/event-stream")

    async with served(Starlette(routes=[Route("/", stream)])) as client:
        http_stream = await client.ask("/")
        assert await http_stream.read() == b"data: 1\n\n"
        http_stream.reset()
        async with asyncio.timeout(60):
            await over.wait()


async def test_a_client_that_disconnects_is_not_logged_as_a_failure_of_the_app(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(Request(scope, receive).body())
        finally:
            left.set()

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/", "POST", end=False)
        await client.http.ping()
        http_stream.reset()
        await left.wait()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_an_interrupted_upload_is_a_disconnect() -> None:
    seen = asyncio.Queue[str]()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        for _ in range(2):
            seen.put_nowait((await receive())["type"])

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/", "POST", end=False)
        await http_stream.write(b"some")
        assert await seen.get() == "http.request"
        http_stream.reset()
        assert await seen.get() == "http.disconnect"


async def test_after_its_response_an_app_receives_a_disconnect() -> None:
    seen = asyncio.Queue[str]()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        waiting = asyncio.create_task(receive())
        await respond(send, b"done")
        seen.put_nowait((await waiting)["type"])

    async with served(app, lifespan=False) as client:
        assert (await client.get("/")).body == b"done"
        assert await seen.get() == "http.disconnect"


async def test_when_the_byte_stream_ends_requests_are_disconnected_and_then_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_GRACE_SECONDS", 0.1)
    seen = asyncio.Queue[str]()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        try:
            if scope["path"] == "/listens":
                await receive()
                seen.put_nowait((await receive())["type"])
            else:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.put_nowait("cancelled")
            raise

    async with served(app, lifespan=False) as client:
        for path in ("/listens", "/stubborn"):
            await (await client.ask(path)).answer()
        client.wire.close()
        ended = await client.serving
        assert not ended.graceful
        assert [seen.get_nowait(), seen.get_nowait()] == ["http.disconnect", "cancelled"]


async def test_a_server_that_closes_completes_open_requests() -> None:
    go = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await respond(send, b"a", more=True)
        await go.wait()
        await send({"type": "http.response.body", "body": b"b"})

    async with served(app, lifespan=False) as client:
        http_stream = await client.ask("/")
        assert await http_stream.read() == b"a"
        client.server.close("enough")
        go.set()
        assert await http_stream.read() == b"b"
        assert (await client.serving).graceful
        with pytest.raises(ConnectionOver):
            await client.get("/")


async def test_a_server_that_is_cancelled_leaves_no_task() -> None:
    recorded = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        while (await receive())["type"] != "http.disconnect":
            pass
        recorded.set()

    async with served(app, lifespan=False) as client:
        await (await client.ask("/")).answer()
        client.serving.cancel()
        await asyncio.wait({client.serving})
        assert recorded.is_set()


async def test_work_for_streams_that_were_reset_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_REQUESTS_RUNNING", 4)
    running = most = begun = 0
    go = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        nonlocal running, most, begun
        running += 1
        begun += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        await respond(send)

    async with served(app, lifespan=False) as client:
        for _ in range(20):
            http_stream = await client.ask("/")
            await client.http.ping()
            http_stream.reset()
        last = await client.ask("/")
        go.set()
        assert (await whole(last)).status == 200
    assert most == 4
    assert begun == 5  # no work began for streams that were reset while they waited


# Lifespan


async def test_an_app_starts_before_its_first_request_and_shuts_down_after_its_last() -> None:
    recorded: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, int]]:
        recorded.append("begin")
        yield {"answer": 42}
        recorded.append("end")

    async def answer(request: Request) -> Response:
        recorded.append("request")
        return JSONResponse(request.state.answer)

    app = Starlette(routes=[Route("/", answer)], lifespan=lifespan)
    async with served(app) as client:
        assert (await client.get("/")).body == b"42"
        assert recorded == ["begin", "request"]
    assert recorded == ["begin", "request", "end"]


async def test_an_app_that_cannot_start_is_reported_and_nothing_is_served() -> None:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        raise LookupError("no database")
        yield

    here, there = memory_streams()
    with pytest.raises(StartupFailed, match="no database"):
        await AsgiServer(Starlette(lifespan=lifespan)).serve(there)
    there.close()
    assert await here.read() == b""


async def test_a_server_that_is_closed_while_its_app_starts_never_serves() -> None:
    began, go = asyncio.Event(), asyncio.Event()
    recorded: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        began.set()
        await go.wait()
        yield
        recorded.append("end")

    here, there = memory_streams()
    server = AsgiServer(Starlette(lifespan=lifespan))
    serving = asyncio.create_task(server.serve(there))
    await began.wait()
    server.close()
    go.set()
    assert (await serving).graceful
    assert recorded == ["end"]
    there.close()
    assert await here.read() == b""


async def test_an_app_without_lifespan_is_served() -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await respond(send, b"served")

    async with served(app) as client:
        assert (await client.get("/")).body == b"served"


async def test_an_app_that_does_not_shut_down_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_GRACE_SECONDS", 0.1)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING):
        async with served(Starlette(lifespan=lifespan)) as client:
            assert (await client.get("/")).status == 404
    assert "did not shut down" in caplog.text


async def test_a_connect_to_another_host_is_not_implemented() -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        raise AssertionError("never asked")

    async with served(app, lifespan=False) as client:
        http_stream = await client.http.request(
            [(b":method", b"CONNECT"), (b":authority", b"example.com:443")]
        )
        assert (await whole(http_stream)).status == 501


async def test_a_client_that_sends_nothing_costs_no_task() -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await respond(send)

    here, there = memory_streams()
    serving = asyncio.create_task(AsgiServer(app, lifespan=False).serve(there))
    assert await here.read()
    here.close()
    assert not (await serving).graceful
