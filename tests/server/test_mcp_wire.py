"""MCP on the wire: what the SDKs never send, and clients that vanish."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server.conftest import Telex
    from server.mcp_clients import McpSite

NEW = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
META: dict[str, Any] = {
    VERSION: NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = "application/json, text/event-stream"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}


def request(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def new(method: str, **params: Any) -> dict[str, Any]:
    return request(method, **params, _meta=META)


class Poster:
    """Posts messages to `/mcp`."""

    def __init__(self, site: McpSite) -> None:
        self.url = site.url
        self.token = {"authorization": f"Bearer {site.token}"}
        self.http = httpx.Client(timeout=60)

    def __call__(self, body: Any, **headers: str | None) -> httpx.Response:
        """Post with the headers of the older versions; `None` leaves one out."""
        given = {"accept": BOTH, "content-type": "application/json", **self.token}
        for name, value in headers.items():
            given.pop(name.replace("_", "-"), None)
            if value is not None:
                given[name.replace("_", "-")] = value
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.post(self.url, content=content, headers=given)

    def new(self, message: dict[str, Any], **headers: str | None) -> httpx.Response:
        """Post with the headers of 2026-07-28."""
        params, method = message.get("params"), message.get("method")
        found = params if isinstance(params, dict) else {}
        given: dict[str, str | None] = {
            "mcp_protocol_version": NEW,
            "mcp_method": method if isinstance(method, str) else None,
            "mcp_name": found.get("name", found.get("uri")),
        }
        return self(message, **given | headers)


@pytest.fixture
def post(site: McpSite) -> Iterator[Poster]:
    one = Poster(site)
    yield one
    one.http.close()


def test_a_request_of_the_new_protocol_needs_nothing_before_it(post: Poster) -> None:
    answer = post.new(new("server/discover"))
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
    found = answer.json()["result"]
    assert found["supportedVersions"] == [NEW]
    assert found["resultType"] == "complete"
    assert {"ttlMs", "cacheScope", "capabilities"} <= set(found)


REFUSED: dict[str, tuple[Any, dict[str, str | None], int, int | None]] = {
    "no JSON": (b"{", {}, 400, -32700),
    "not UTF-8": (b'"\xff"', {}, 400, -32700),
    "a lone surrogate": (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', {}, 400, -32700),
    "too deep": (b"[" * 100_000, {}, 400, -32600),
    "deep members": (b'{"a":' * 100_000, {}, 400, -32700),
    "a batch": ([new("tools/list")], {}, 400, -32600),
    "no object": (7, {}, 400, -32600),
    "no version of JSON-RPC": ({"id": 1, "method": "tools/list"}, {}, 400, -32600),
    "a wrong id": (new("tools/list") | {"id": {}}, {}, 400, -32600),
    "a method that is no text": (new("x") | {"method": 1}, {}, 400, -32600),
    "params that are no object": (new("x") | {"params": 3}, {}, 400, -32600),
    "an unknown method": (new("tools/lists"), {}, 404, -32601),
    "a method of the old protocol": (new("ping"), {}, 404, -32601),
    "an unknown tool": (new("tools/call", name="rm", arguments={}), {}, 400, -32602),
    "arguments that are a list": (
        new("tools/call", name="telex_see", arguments=[]),
        {},
        400,
        -32602,
    ),
    "an unknown resource": (new("resources/read", uri="file:///etc/passwd"), {}, 400, -32602),
    "no capabilities": (request("tools/list", _meta={VERSION: NEW}), {}, 400, -32602),
    "a version that is no text": (
        request("tools/list", _meta={**META, VERSION: 5}),
        {},
        400,
        -32020,
    ),
    "a version of the future": (
        request("tools/list", _meta={**META, VERSION: "2027-01-01"}),
        {"mcp_protocol_version": "2027-01-01"},
        400,
        -32022,
    ),
    "another version in the header": (
        new("tools/list"),
        {"mcp_protocol_version": "2025-11-25"},
        400,
        -32020,
    ),
    "no version in the header": (new("tools/list"), {"mcp_protocol_version": None}, 400, -32020),
    "no version in the body": (request("tools/list"), {}, 400, -32602),
    "another method in the header": (new("tools/list"), {"mcp_method": "ping"}, 400, -32020),
    "no method in the header": (new("tools/list"), {"mcp_method": None}, 400, -32020),
    "another tool in the header": (
        new("tools/call", name="telex_see"),
        {"mcp_name": "telex_close"},
        400,
        -32020,
    ),
    "a broken name in the header": (
        new("tools/call", name="telex_see"),
        {"mcp_name": "=?base64?%%?="},
        400,
        -32020,
    ),
    "a subscription without stream": (
        new("subscriptions/listen", notifications={}),
        {"accept": "application/json"},
        406,
        None,
    ),
    "text": (new("tools/list"), {"content_type": "text/plain"}, 415, None),
    "an Accept without JSON": (new("tools/list"), {"accept": "text/html"}, 406, None),
    "JSON that is not accepted": (
        new("tools/list"),
        {"accept": "application/json;q=0, */*"},
        406,
        None,
    ),
    "no token": (new("tools/list"), {"authorization": None}, 401, None),
    "a wrong token": (new("tools/list"), {"authorization": "Bearer nonsense"}, 401, None),
    "another site": (new("tools/list"), {"origin": "https://evil.example"}, 403, None),
    "another host": (new("tools/list"), {"host": "evil.example"}, 403, None),
    "a response": ({"jsonrpc": "2.0", "id": 1, "result": {}}, {"mcp_method": None}, 400, -32600),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_bad_request_of_the_new_protocol_is_refused(post: Poster, mistake: str) -> None:
    body, headers, status, code = REFUSED[mistake]
    named = (
        post.new(body, **headers)
        if isinstance(body, dict)
        else post(body, mcp_protocol_version=NEW, **headers)
    )
    assert named.status_code == status, named.text
    if code is not None:
        assert named.json()["error"]["code"] == code, named.text
        assert named.json()["error"]["message"]
    assert post.new(new("tools/list")).status_code == 200


def test_a_header_in_base64_names_the_resource(post: Poster) -> None:
    encoded = "=?base64?dGVsZXhfc2Vl?="
    answer = post.new(new("tools/call", name="telex_see", arguments={}), mcp_name=encoded)
    assert answer.status_code == 200
    assert answer.json()["result"]["isError"]


def test_a_repeated_header_is_refused(post: Poster) -> None:
    twice = [("mcp-method", "tools/list")] * 2
    headers = [*twice, ("mcp-protocol-version", NEW), *post.token.items(), ("accept", BOTH)]
    headers.append(("content-type", "application/json"))
    answer = post.http.post(post.url, json=new("tools/list"), headers=headers)
    assert answer.json()["error"]["code"] == -32020


def test_a_notification_is_accepted_without_an_answer(post: Poster) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = post(body, mcp_protocol_version=NEW)
    assert (answer.status_code, answer.content) == (202, b"")


def test_a_message_that_is_too_long_is_refused(post: Poster) -> None:
    answer = post.new(new("tools/list", padding="x" * (17 << 20)))
    assert answer.status_code == 413


def test_a_session_of_the_old_protocol_begins_and_ends(post: Poster) -> None:
    begun = post(request("initialize", **HELLO))
    assert begun.json()["result"]["protocolVersion"] == "2025-11-25"
    session = {"mcp_session_id": begun.headers["mcp-session-id"]}
    ready = post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
    assert (ready.status_code, ready.content) == (202, b"")
    assert post(request("ping"), **session).json()["result"] == {}
    unknown = post(request("server/discover"), **session)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (200, -32602)
    assert post(request("tools/list")).status_code == 400
    assert post(request("tools/list"), mcp_session_id="nonsense").status_code == 404
    assert (
        post(request("tools/list"), mcp_protocol_version="1999-01-01", **session).status_code == 400
    )
    headers = {**post.token, "mcp-session-id": session["mcp_session_id"]}
    assert post.http.get(post.url, headers={**headers, "accept": "text/html"}).status_code == 406
    with post.http.stream("GET", post.url, headers={**headers, "accept": BOTH}) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        second = post.http.get(post.url, headers={**headers, "accept": BOTH})
        assert second.status_code == 409
        assert post.http.delete(post.url, headers=headers).status_code == 204
        assert not [line for line in stream.iter_lines() if line.startswith("data")]
    assert post.http.delete(post.url, headers=headers).status_code == 404
    assert post(request("ping"), **session).status_code == 404


def test_the_new_protocol_has_no_get(post: Poster) -> None:
    headers = {**post.token, "accept": BOTH, "mcp-protocol-version": NEW}
    answer = post.http.get(post.url, headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_method_that_is_not_served_names_those_that_are(post: Poster, method: str) -> None:
    answer = post.http.request(method, post.url, headers=post.token)
    assert answer.status_code == 405
    assert {"POST", "GET", "DELETE"} <= set(answer.headers["allow"].split(", "))


@pytest.mark.parametrize(
    ("asked", "given"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("1.0", "2025-11-25")],
)
def test_a_handshake_agrees_on_a_version(post: Poster, asked: str, given: str) -> None:
    begun = post(request("initialize", **HELLO | {"protocolVersion": asked}))
    assert begun.json()["result"]["protocolVersion"] == given


async def test_a_client_that_vanishes_ends_its_wait_and_its_subscription(site: McpSite) -> None:
    headers = {
        "authorization": f"Bearer {site.token}",
        "accept": BOTH,
        "mcp-protocol-version": NEW,
    }
    async with httpx.AsyncClient(timeout=60, headers=headers) as http:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            body = new("tools/call", name=tool, arguments=arguments)
            more = {"mcp-method": "tools/call", "mcp-name": tool}
            answer = (await http.post(site.url, json=body, headers=more)).json()
            return dict(answer["result"])

        await call("telex_open", command=["cat"], name="left")
        waiting = asyncio.create_task(call("telex_wait", text="never", session="left", seconds=600))
        uri = "telex://session/left/screen"
        listen = new("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
        more = {"mcp-method": "subscriptions/listen"}
        async with http.stream("POST", site.url, json=listen, headers=more) as stream:
            line = await anext(aiter(stream.aiter_lines()))
            assert "acknowledged" in line
        waiting.cancel()
        await asyncio.wait({waiting})
        seen = await call("telex_see", session="left")
        assert not seen["isError"]
        await call("telex_close", session="left")


# Standard input and output.


@contextmanager
def relay(telex: Telex) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "telex", "mcp"],
        env=telex.environ,
        cwd=telex.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def say(child: subprocess.Popen[str], message: Any) -> None:
    assert child.stdin is not None
    child.stdin.write(message if isinstance(message, str) else json.dumps(message))
    child.stdin.write("\n")
    child.stdin.flush()


def hear(child: subprocess.Popen[str]) -> Any:
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, child.stderr and child.stderr.read()
    return json.loads(line)


def test_the_relay_survives_bad_lines_and_the_end_of_its_server(telex: Telex) -> None:
    with relay(telex) as child:
        say(child, "{")
        assert hear(child)["error"]["code"] == -32700
        say(child, "")
        say(child, [new("tools/list")])
        assert hear(child)["error"]["code"] == -32600
        say(child, new("mcp.connect", cwd="/", env={}, version="9"))
        assert hear(child)["error"]["code"] == -32601
        opening = new("tools/call", name="telex_open", arguments={"command": ["cat"]})
        say(child, opening | {"id": "a"})
        answer = hear(child)
        assert (answer["id"], answer["result"]["isError"]) == ("a", False)
        wait = {"text": "never", "seconds": 600}
        say(child, new("tools/call", name="telex_wait", arguments=wait) | {"id": 1})
        say(
            child,
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        )
        say(child, new("tools/call", name="telex_wait", arguments=wait) | {"id": 2})
        say(child, new("tools/list") | {"id": 3})
        assert hear(child)["id"] == 3, "a cancelled call gets no answer"
        assert telex("server", "stop").returncode == 0
        lost = hear(child)
        assert lost["id"] == 2
        assert lost["error"]["message"]
        again = lost
        while "error" in again:  # until the old server has ended
            say(child, new("tools/call", name="telex_see", arguments={}) | {"id": 4})
            again = hear(child)
        assert "there is no session" in again["result"]["content"][0]["text"]
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(60) == 0


def test_the_end_of_the_server_is_told_to_subscribers_and_not_to_who_cancelled(
    telex: Telex,
) -> None:
    """A cancelled request gets no answer; subscriptions of the older versions end with a notice."""
    uri = "telex://session/cat/screen"
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    with relay(telex) as child:
        say(child, cancel | {"params": {"requestId": 7}})  # starts no server
        say(child, request("initialize", **HELLO))
        hear(child)
        opening = {"name": "telex_open", "arguments": {"command": ["cat"]}}
        say(child, request("tools/call", 2, **opening))
        while hear(child).get("id") != 2:
            pass
        say(child, request("resources/subscribe", 3, uri=uri))
        while hear(child).get("id") != 3:
            pass
        (pid,) = telex.servers()
        os.kill(pid, signal.SIGSTOP)  # so that it cannot answer
        wait = {"name": "telex_wait", "arguments": {"text": "never", "seconds": 600}}
        say(child, request("tools/call", 4, **wait))
        say(child, cancel | {"params": {"requestId": 4}})
        say(child, request("tools/call", 5, **wait))
        os.kill(pid, signal.SIGKILL)
        while (lost := hear(child)).get("id") is None:
            pass
        assert lost["id"] == 5
        assert hear(child)["params"] == {"uri": uri}
        assert hear(child)["method"] == "notifications/resources/list_changed"
        say(child, request("tools/call", 6, **opening))
        heard = [hear(child), hear(child)]
        assert "notifications/resources/list_changed" in [one.get("method") for one in heard]
        assert 6 in [one.get("id") for one in heard]


def test_the_relay_answers_what_was_piped_in_and_ends(telex: Telex) -> None:
    listen = new("subscriptions/listen", notifications={"resourcesListChanged": True})
    messages = [new("tools/list"), listen | {"id": 2}, request("initialize", 3, **HELLO)]
    done = subprocess.run(
        [sys.executable, "-m", "telex", "mcp"],
        input="\n".join(map(json.dumps, messages)),
        env=telex.environ,
        cwd=telex.work,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {answer.get("id") for answer in answers if "result" in answer} == {1, 3}
    assert done.stderr == ""


def test_programs_start_in_the_directory_and_environment_of_the_client(telex: Telex) -> None:
    telex.environ["MARK"] = "from the client"
    with relay(telex) as child:
        command = ["bash", "-c", 'echo "${PWD##*/} $MARK"; exec cat']
        say(child, new("tools/call", name="telex_open", arguments={"command": command}))
        text = hear(child)["result"]["content"][1]["text"]
        assert text == "work from the client"


def test_the_question_of_a_program_is_asked_in_the_ui_of_the_agent(telex: Telex) -> None:
    """A client may open `cat` once a person agrees, who answers in a UI on the unix socket."""
    telex.environ["TELEX_MCP_SERVER_CONFIRM"] = "cat"
    assert telex("list").returncode == 0  # starts the server
    hello = {
        "protocol_version": "0",
        "client": {"name": "ui", "version": "1"},
        "ui_capabilities": {"supports_confirm": True},
    }
    opening = new("tools/call", name="telex_open", arguments={"command": ["cat"]})
    with relay(telex) as child, socket.socket(socket.AF_UNIX) as ui:
        say(child, opening)
        assert "nobody answered" in hear(child)["result"]["content"][0]["text"]
        ui.settimeout(60)
        ui.connect(str(telex.socket))
        lines = ui.makefile("rw", encoding="utf-8")
        for answer in (False, True):
            if not answer:
                lines.write(json.dumps(request("initialize", **hello)) + "\n")
                lines.flush()
                assert "result" in json.loads(lines.readline())
            say(child, opening)
            asked = json.loads(lines.readline())
            assert asked["method"] == "ui.confirm.request"
            assert asked["params"]["message"] == "Open: cat"
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": answer}}
            lines.write(json.dumps(reply) + "\n")
            lines.flush()
            assert hear(child)["result"]["isError"] is not answer
        lines.close()
