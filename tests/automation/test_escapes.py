"""JSON escapes in sessions: what the terminal does itself, and what its clients see and answer."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from automating import SECRET, Client, Serving

PROGRAM = r"""
import json, os, re, sys, termios, tty
fd = 0
before = termios.tcgetattr(fd)
tty.setraw(fd)
def tell(**packet):
    body = json.dumps(packet).encode()
    os.write(1, b"\x1b]23198;%d;%b\x07" % (len(body), body))
buffer = b""
def hear():
    global buffer
    while not (found := re.match(rb"[^\x1b]*\x1b\]23199;(\d+);([^\x07]*)\x07", buffer)):
        buffer += os.read(fd, 65536)
    buffer = buffer[found.end():]
    assert int(found[1]) == len(found[2])
    return json.loads(found[2])
def ask(command, data=None, rpcid="1", **more):
    packet = {"command": command, "rpcid": rpcid, **more}
    if data is not None:
        packet["data"] = data
    tell(**packet)
    return hear()
def say(text):
    os.write(1, text.encode() + b"\r\n")
def key():
    global buffer
    while not buffer:
        buffer = os.read(fd, 1)
    buffer = b""
"""


async def program(client: Client, script: str, **params: Any) -> str:
    params = {"escapes": True, **params}
    return await client.start(sys.executable, "-c", PROGRAM + script, **params)


async def subscribe(client: Client) -> None:
    await client.call("server.set_notifications", enabled=True)


def packets(client: Client, session: str) -> list[Any]:
    told = (params for method, params in client.told if method == "session.escape")
    return [params["packet"] for params in told if params["session"] == session]


async def asked(client: Client, session: str, command: str) -> Any:
    """The packet with this command, once it was told."""
    return await client.until(
        lambda: next((p for p in packets(client, session) if p.get("command") == command), None)
    )


async def test_a_command_takes_effect_on_the_screen_where_it_stood_in_the_output(
    automation: Serving,
) -> None:
    script = """
os.write(1, b"one")
tell(command="term:cursorset", data={"row": 5, "col": 3})
os.write(1, b"two")
tell(command="term:setstyle", data={"bold": True})
os.write(1, b"three")
key()
"""
    async with automation() as client:
        session = await program(client, script)
        found = await client.shows(session, "three", cells="full")
        assert found["snapshot"]["plain_text"] == "one\n\n\n\n  twothree"
        cells = {(c["row"], c["col"]): c for c in found["snapshot"]["cells"]}
        assert not cells[4, 2]["style"]["bold"]
        assert cells[4, 5]["style"]["bold"]
        assert "\x1b[5;3Htwo" in await client.transcript(session)


async def test_the_terminal_answers_queries_and_detect_lists_its_capabilities(
    automation: Serving,
) -> None:
    script = r"""
os.write(1, b"\x1b[c")
while not buffer.endswith(b"c"):
    buffer += os.read(fd, 100)
say(repr(buffer)); buffer = b""
os.write(1, b"\x1b[7;4H")
place = ask("term:report", {"what": "cursor"})
os.write(1, b"\x1b[H\n\n")
say(json.dumps(place))
detected = ask("detect")["data"]
say(str(detected["maxframe"]) + str(detected["capabilities"] == detected["capabilties"]))
say(json.dumps(ask("ping")))
say(ask("term:querymode", {"mode": "wrap"})["data"]["state"])
key()
"""
    async with automation() as client:
        session = await program(client, script)
        await client.shows(session, '{"resid": "1", "data": {}}')
        found = await client.shows(session, "\nset")
        text = found["snapshot"]["plain_text"]
        assert ";23198c" in text
        assert '{"resid": "1", "data": {"row": 7, "col": 4}}' in text
        assert "1048576True" in text


async def test_a_session_without_escapes_discards_packets_and_sends_no_answer(
    automation: Serving,
) -> None:
    script = r"""
tell(command="term:setstyle", data={"bold": True})
tell(command="ping", rpcid="1")
os.write(1, b"\x1b[c")
while not buffer.endswith(b"c"):
    buffer += os.read(fd, 100)
say(repr(buffer))
key()
"""
    async with automation() as client:
        await subscribe(client)
        session = await program(client, script, escapes=False)
        found = await client.shows(session, "c'")
        assert found["snapshot"]["plain_text"] == "b'\\x1b[?62;22c'"
        assert packets(client, session) == []
        refusal = await client.refused("session.escape_reply", session=session, resid="1")
        assert "escapes: true" in refusal.message


async def test_a_client_sees_each_packet_and_answers_commands_unknown_to_the_terminal(
    automation: Serving,
) -> None:
    script = """
say(json.dumps(ask("weather:ask", {"city": "Köln"}, "w1")))
key()
"""
    async with automation() as client:
        await subscribe(client)
        session = await program(client, script)
        packet = await asked(client, session, "weather:ask")
        assert packet == {"command": "weather:ask", "rpcid": "w1", "data": {"city": "Köln"}}
        other = await client.another()
        reply = {"session": session, "resid": "w1"}
        first = await client.call("session.escape_reply", **reply, data={"sky": "grün\n"})
        second = await other.call("session.escape_reply", **reply, data={"sky": "grey"})
        assert (first, second) == ({"accepted": True}, {"accepted": False})
        await client.shows(session, '{"resid": "w1", "data": {"sky": "gr\\u00fcn\\n"}}')


async def test_a_command_that_the_terminal_answers_is_notified_and_accepts_no_other_answer(
    automation: Serving,
) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await program(client, 'say(json.dumps(ask("ping", rpcid="p"))); key()')
        await asked(client, session, "ping")
        reply = await client.call("session.escape_reply", session=session, resid="p", data=1)
        assert reply == {"accepted": False}
        await client.shows(session, '{"resid": "p", "data": {}}')


async def test_an_answer_may_come_in_parts_as_bytes_or_as_an_error(automation: Serving) -> None:
    script = """
for n in "123":
    tell(command="x:get", rpcid=n)
    while True:
        part = hear()
        say(json.dumps(part))
        if not part.get("cont"):
            break
key()
"""
    async with automation() as client:
        await subscribe(client)
        session = await program(client, script)

        async def reply(resid: str, **answer: Any) -> None:
            params = {"session": session, "resid": resid, **answer}
            assert await client.call("session.escape_reply", **params) == {"accepted": True}

        await client.until(lambda: len(packets(client, session)) == 1)
        await reply("1", data="a", cont=True)
        await reply("1", data="b", cont=True)
        await reply("1", data="c")
        await client.until(lambda: len(packets(client, session)) == 2)
        await reply("2", data64="AAEC/w==")
        await client.until(lambda: len(packets(client, session)) == 3)
        await reply("3", error="ECROUTE: no way there")
        found = await client.shows(session, "ECROUTE")
        assert found["snapshot"]["plain_text"].split("\n") == [
            '{"resid": "1", "cont": true, "data": "a"}',
            '{"resid": "1", "cont": true, "data": "b"}',
            '{"resid": "1", "data": "c"}',
            '{"resid": "2", "datatype": "binary", "data64": "AAEC/w=="}',
            '{"resid": "3", "error": "ECROUTE: no way there"}',
        ]


async def test_a_misspelt_command_gets_a_suggestion_with_and_without_a_subscriber(
    automation: Serving,
) -> None:
    script = """
say("alone " + ask("term:titel", timeout=200)["error"])
key()
say("heard " + ask("term:titel", timeout=200)["error"])
key()
"""
    meant = "ECNOCMD: There is no such method. Did you mean term:title?"
    async with automation() as client:
        session = await program(client, script)
        await client.shows(session, f"alone {meant}")
        await subscribe(client)
        await client.act(session, "text", "x")
        await client.shows(session, f"heard {meant}")


async def test_a_command_without_an_answer_in_time_is_reported_as_unknown(
    automation: Serving,
) -> None:
    script = """
say(json.dumps(ask("x:unknown", timeout=200)))
key()
say(json.dumps(ask("x:unknown", timeout=300)))
key()
"""
    async with automation() as client:
        session = await program(client, script)
        await client.shows(session, "ECNOCMD: There is no such method.")
        await subscribe(client)
        await client.act(session, "text", "x")
        await asked(client, session, "x:unknown")
        late = await client.another()
        found = await late.shows(session, 'method."}\n{"resid')
        assert found["snapshot"]["plain_text"].count("ECNOCMD") == 2
        reply = await client.call("session.escape_reply", session=session, resid="1", data=1)
        assert reply == {"accepted": False}


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": 1, "data64": "AA=="},
        {"data": 1, "error": "no"},
        {"error": "no", "cont": True},
        {"data64": "not base64"},
    ],
    ids=["both", "data and error", "more after an error", "no base64"],
)
async def test_an_answer_that_is_none_is_refused_and_another_may_follow(
    automation: Serving, wrong: dict[str, Any]
) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await program(client, 'say(json.dumps(ask("x:y"))); key()')
        await asked(client, session, "x:y")
        reply = {"session": session, "resid": "1"}
        assert (await client.refused("session.escape_reply", **reply, **wrong)).code == -32602
        assert (await client.call("session.escape_reply", **reply, data=7))["accepted"]
        await client.shows(session, '{"resid": "1", "data": 7}')


async def test_secrets_in_a_packet_are_masked_and_its_id_is_not(automation: Serving) -> None:
    script = f"""
tell(command="x:a", rpcid="password:hunter2secret", data={{"text": "{SECRET}"}})
tell(command="x:b", data={{"password": "hunter2secret", "n": [1, "{SECRET}"]}})
key()
"""
    async with automation() as client:
        await subscribe(client)
        session = await program(client, script)
        first = await asked(client, session, "x:a")
        second = await asked(client, session, "x:b")
        assert first["rpcid"] == "password:hunter2secret"
        assert "hunter2" not in json.dumps([first["data"], second])


async def test_a_client_that_may_not_type_may_not_answer(automation: Serving) -> None:
    async with automation() as client:
        await subscribe(client)
        other = await client.another()
        session = await program(client, 'say(json.dumps(ask("x:y"))); key()')
        await asked(client, session, "x:y")
        await client.call("session.lease", session=session, holder="me")
        reply = {"session": session, "resid": "1", "data": 1}
        assert "me" in (await other.refused("session.escape_reply", **reply)).message
        assert (await client.call("session.escape_reply", **reply))["accepted"]


async def test_a_flood_of_packets_is_notified_in_part_and_reports_the_dropped_packets(
    automation: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
body = b''.join(b'\\x1b]23198;0;{"command":"x:%d"}\\x07' % n for n in range(5000))
while body:
    body = body[os.write(1, body):]
tell(command="term:write", data={"text": "done"})
key()
tell(command="x:last")
key()
"""
    monkeypatch.setattr("telex.automation.limits.NEWS_WAITING", 10)
    async with automation() as client:
        await subscribe(client)
        session = await program(client, script)
        await client.shows(session, "done")
        monkeypatch.undo()
        await client.act(session, "text", "x")
        await asked(client, session, "x:last")
        told = [params for method, params in client.told if method == "session.escape"]
        assert len(told) < 5000
        assert any(params.get("dropped") for params in told)
        assert await client.screen(session) == "done"


async def test_escapes_are_among_the_capabilities_of_the_server(automation: Serving) -> None:
    async with automation() as client:
        found = await client.call("server.capabilities")
        assert "session.escape_reply" in found["methods"]
        assert "session.escape" in found["notifications"]
