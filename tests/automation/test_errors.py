"""Bad input: each mistake gets its code and a sentence, and the conversation goes on."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import telex
from automating import SECRET, Serving, request

MISTAKES: list[tuple[bytes, int, Any]] = [
    (b"this is no JSON", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"session.list"} trailing', -32700, None),
    (b'"\xff\xfe"', -32700, None),
    (b"[" * 2000, -32700, None),
    (b"7", -32600, None),
    (b"[]", -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"1.0","id":1,"method":"session.list"}', -32600, 1),
    (b'{"id":1,"method":"session.list"}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":{},"method":"session.list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"session.list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"session.list","params":7}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":"x","method":"no.such"}', -32601, "x"),
    (b'{"jsonrpc":"2.0","id":1,"method":"session.create"}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"session.create","params":[]}', -32602, 1),
]


@pytest.mark.parametrize(("frame", "code", "id"), MISTAKES, ids=lambda given: str(given)[:50])
async def test_an_invalid_message_gets_an_error_and_the_connection_continues(
    automation: Serving, frame: bytes, code: int, id: object
) -> None:
    async with automation.server() as served:
        ear = await served.listen()
        ear.channel.send(frame)
        answer = json.loads(await ear.hear())
        assert (answer["error"]["code"], answer["id"]) == (code, id)
        assert answer["error"]["message"].count(" ") >= 2, "a sentence"
        ear.channel.send(request(2, "session.list"))
        assert json.loads(await ear.hear()) == {
            "jsonrpc": "2.0",
            "id": 2,
            "result": {"sessions": []},
        }


@pytest.mark.parametrize(
    ("method", "nearest"),
    [
        ("session.crate", ["session.create"]),
        ("adapter.snapshoot", ["adapter.snapshot"]),
        ("listSessions", ["session.list"]),
        ("snapshot", ["adapter.snapshot", "session.snapshot"]),
        ("nothing.here", None),
        ("s" * 10_000, None),
    ],
    ids=lambda given: str(given)[:30],
)
async def test_an_unknown_method_is_answered_with_the_nearest_names(
    automation: Serving, method: str, nearest: list[str] | None
) -> None:
    async with automation.server() as served:
        ear = await served.listen()
        ear.channel.send(request(1, method))
        error = json.loads(await ear.hear())["error"]
        assert error["code"] == -32601
        if nearest is None:
            assert error["message"] == "There is no such method."
            assert "data" not in error
        else:
            assert error["message"].endswith(f"Did you mean {' or '.join(nearest)}?")
            assert error["data"] == {"nearest": nearest}


@pytest.mark.parametrize("side", ["rows", "cols"])
@pytest.mark.parametrize(
    "size", [0, -1, 1001, 10**9, 10**30, "24", 24.5, None, True, [24]], ids=str
)
async def test_a_size_that_no_terminal_has_is_refused_everywhere(
    automation: Serving, side: str, size: Any
) -> None:
    asked = {"rows": 24, "cols": 80, side: size}
    async with automation() as client:
        session = await client.start("cat")
        for method, params in (
            ("session.create", {"program": "cat", **asked}),
            ("session.resize", {"session": session, **asked}),
            ("session.input", {"session": session, "action": {"type": "resize", "value": asked}}),
        ):
            refusal = await client.refused(method, **params)
            assert refusal.code == -32602
            assert side in refusal.message
        snapshot = await client.call("session.snapshot", session=session, cells="none")
        assert (snapshot["size"]["rows"], snapshot["size"]["cols"]) == (24, 80)
        assert (await client.call("session.list"))["sessions"] == [session]


async def test_the_smallest_and_the_largest_size_are_taken(automation: Serving) -> None:
    async with automation() as client:
        for rows, cols in ((1, 1), (1000, 1000), (1, 1000)):
            session = await client.start("stty size; cat", rows=rows, cols=cols)
            matcher = {"type": "transcript_contains", "value": f"{rows} {cols}"}
            await client.call("session.wait", session=session, matcher=matcher, cells="none")
            await client.call("session.resize", session=session, rows=cols, cols=rows)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "program"),
        ({"program": 7}, "program"),
        ({"program": "cat", "args": "x"}, "args"),
        ({"program": "cat", "args": ["a\0b"]}, "arg"),
        ({"program": "cat", "env": {"A": 7}}, "env"),
        ({"program": "cat", "env": {"A=B": "x"}}, "env"),
        ({"program": "cat", "env": {"A": "a\0b"}}, "env"),
        ({"program": "cat", "pixel_width": -1}, "pixel_width"),
        ({"program": "cat", "pixel_height": 65536}, "pixel_height"),
        ({"program": "cat", "transcript_max_chars": 0}, "transcript_max_chars"),
        ({"program": "cat", "transcript_max_chars": -5}, "transcript_max_chars"),
        ({"program": "cat", "raw_transcript_path": 7}, "raw_transcript_path"),
    ],
    ids=str,
)
async def test_parameters_that_cannot_start_a_session_are_invalid_params(
    automation: Serving, params: dict[str, Any], says: str
) -> None:
    async with automation() as client:
        refusal = await client.refused("session.create", **params)
        assert refusal.code == -32602, refusal
        assert says in refusal.message
        assert (await client.call("session.list"))["sessions"] == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session.wait", {"matcher": {"type": "process_exited"}, "timeout_ms": -1}),
        ("session.wait", {"matcher": {"type": "process_exited"}, "timeout_ms": "5"}),
        ("session.wait", {"matcher": {"type": "process_exited"}, "timeout_ms": 10**12}),
        ("session.wait", {}),
        ("session.snapshot", {"redact": "no"}),
        ("session.snapshot", {"cells": "some"}),
        ("session.transcript", {"cursor": -1}),
        ("session.resize", {"rows": 24}),
        ("session.input", {}),
        ("session.scrollback", {"count": 0}),
        ("session.record", {"path": "x", "format": 4}),
        ("session.attach", {"credit": 0}),
        ("session.lease", {"holder": ""}),
        ("session.wait", {"matcher": {"type": "contains_text", "value": "x"}, "since": "no mark"}),
    ],
    ids=str,
)
async def test_parameters_that_do_not_fit_are_refused_with_their_place(
    automation: Serving, method: str, params: dict[str, Any]
) -> None:
    async with automation() as client:
        session = await client.start("cat")
        refusal = await client.refused(method, session=session, **params)
        assert refusal.code == -32602, refusal


MISSPELT: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("session.wait", {"timeout": 5}, "unknown member `timeout` - at `$`", ["timeout_ms"]),
    ("session.snapshot", {"redacted": 1}, "unknown member `redacted` - at `$`", ["redact"]),
    ("session.input", {"action": {"type": "text", "value": "x", "delay": 1}}, "`$.action`", []),
    ("session.list", {"extra": 1}, "there are include_adapters", []),
    ("adapter.wait", {"adapter": "a1", "timeout": 5}, "`timeout`", ["timeout_ms"]),
    ("plugin.describe", {"plugin": "shell", "name": "shell"}, "there are plugin", []),
]


@pytest.mark.parametrize(("method", "params", "says", "nearest"), MISSPELT)
async def test_unknown_members_are_refused_with_the_nearest_name(
    automation: Serving, method: str, params: dict[str, Any], says: str, nearest: list[str]
) -> None:
    async with automation() as client:
        assert (await client.call("server.capabilities"))["strict_params"] is True
        of_session = method.startswith("session.") and method != "session.list"
        session = {"session": await client.start("cat")} if of_session else {}
        refusal = await client.refused(method, **session, **params)
        assert refusal.code == -32602
        assert says in refusal.message
        (unknown,) = refusal.data["unknown"]
        assert unknown["nearest"] == nearest


async def test_each_unknown_member_has_its_own_nearest_names_and_a_long_one_is_cut(
    automation: Serving,
) -> None:
    async with automation() as client:
        refusal = await client.refused("session.create", zzz=1, colum=2, **{"x" * 5000: 3})
        assert refusal.data == {
            "unknown": [
                {"name": "zzz", "at": "$", "nearest": []},
                {"name": "colum", "at": "$", "nearest": ["cols"]},
                {"name": "x" * 64 + "…", "at": "$", "nearest": []},
            ]
        }
        session = await client.start("cat")
        for params in ({"cells": "y" * 5000}, {"redaction": {"y" * 5000: 1}}):
            refusal = await client.refused("session.snapshot", session=session, **params)
            assert len(json.dumps([refusal.message, refusal.data])) < 1000


async def test_a_lenient_server_tolerates_unknown_members_and_adds_warnings(
    automation: Serving,
) -> None:
    async with automation(lenient=True) as client:
        assert (await client.call("server.capabilities"))["strict_params"] is False
        made = await client.call("session.create", program="cat", colum=40)
        warning = "unknown member `colum` - at `$`; did you mean `cols`?"
        assert made == {"session": "s1", "warnings": [warning]}
        listed = await client.call("session.list", extra=1)
        assert listed["sessions"] == ["s1"]
        assert len(listed["warnings"]) == 1
        assert await client.call("session.list") == {"sessions": ["s1"]}
        gone = await client.refused("session.close", session="s9", force=1)
        assert gone.data == {"warnings": ["unknown member `force` - at `$`; there are session"]}
        never = {"type": "contains_text", "value": "never"}
        late = await client.refused(
            "session.wait", session="s1", matcher=never, timeout_ms=1, timeout=5
        )
        assert len(late.data["warnings"]) == 1
        assert len(late.data) > 1  # what the error says anyhow is still there
        unfit = await client.refused("session.resize", session="s1", row=1)
        assert (unfit.code, len(unfit.data["warnings"])) == (-32602, 1)


async def test_a_batch_is_answered_in_one_message(automation: Serving) -> None:
    async with automation.server() as served:
        ear = await served.listen()
        members = [
            json.loads(request(1, "session.create", program="cat")),
            {"jsonrpc": "2.0", "method": "session.list"},
            json.loads(request(2, "session.list")),
            7,
            json.loads(request(3, "session.close", session="s1")),
        ]
        ear.channel.send(json.dumps(members).encode())
        answers = json.loads(await ear.hear())
        assert {answer["id"] for answer in answers} == {1, 2, 3, None}
        results = {answer["id"]: answer.get("result") for answer in answers}
        assert results[1] == {"session": "s1"}
        assert results[2] == {"sessions": ["s1"]}
        assert results[3] == {"closed": True}


async def test_a_notification_is_done_and_never_answered(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        params = {"session": session, "action": {"type": "text", "value": "silently\n"}}
        await client.peer.notify("session.input", params)
        await client.peer.notify("no.such", {})
        await client.shows(session, "silently\nsilently")
        assert client.peer.counts.malformed == client.peer.counts.faults == 0


async def test_the_sentence_of_an_error_is_redacted(automation: Serving) -> None:
    async with automation() as client:
        for refusal in (
            await client.refused("session.snapshot", session=SECRET),
            await client.refused("session.create", program=SECRET),
            await client.refused("session.create", program="cat", cwd=f"/{SECRET}"),
        ):
            assert "hunter2" not in refusal.message


async def test_a_request_can_be_cancelled_by_its_id(automation: Serving) -> None:
    async with automation.server() as served:
        ear = await served.listen()
        ear.channel.send(request(1, "session.create", program="cat"))
        await ear.hear()
        matcher = {"type": "contains_text", "value": "never"}
        ear.channel.send(request(2, "session.wait", session="s1", matcher=matcher))
        ear.channel.send(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}')
        answer = json.loads(await ear.hear())
        assert (answer["id"], answer["error"]["code"]) == (2, -32005)


@pytest.mark.parametrize("secret", ["API_KEY: Zq7Xw9Kd2LmR", "password=Zq7Xw9Kd2LmR"])
def test_no_exception_of_this_process_quotes_a_secret(secret: str) -> None:
    pattern = re.compile(f"{re.escape(secret)}(?=x)")
    with telex.spawn("cat") as term:
        for mistake in (
            lambda: term.wait(secret, 0),
            lambda: term.wait(f"{'x' * 68}{secret}", 0),
            lambda: term.wait(pattern, 0),
            lambda: term.wait(re.compile(f"{secret}(never)"), 0),
            lambda: term.find(pattern),
            lambda: term.find(secret).wait(0),
            lambda: term.find("x", below=secret).get(),
            lambda: term.find(re.compile(f"{secret}(never)")).get(),
            lambda: term.press(secret),
        ):
            with pytest.raises((ValueError, telex.SessionProblem)) as raised:
                mistake()
            assert "Zq7" not in str(raised.value)
