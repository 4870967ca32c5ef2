"""What a program waits for, as clients are told: in snapshots, by waits and by notifications."""

from __future__ import annotations

import itertools
from typing import Any

import telex
from automating import SECRET, Client, Serving

ASKING = "printf 'Name: '; read x; sleep 60"


def states(client: Client, session: str) -> list[dict[str, Any]]:
    return [
        params["input_state"]
        for method, params in client.told
        if method == "session.input_state" and params["session"] == session
    ]


async def test_a_snapshot_says_what_the_program_waits_for(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(ASKING)
        wanted = {"type": "input_wanted", "value": ["line"]}
        found = await client.call("session.wait", session=session, matcher=wanted)
        assert found["evidence"]["prompt"] == "Name:"
        state = (await client.call("session.snapshot", session=session))["input_state"]
        assert (state["state"], state["source"], state["prompt"]) == ("line", "kernel", "Name:")
        assert state["rows"] == [0]
        assert "input_state" not in found["snapshot"]


async def test_a_subscriber_is_told_each_change(automation: Serving) -> None:
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(ASKING)
        await client.until(lambda: any(one["state"] == "line" for one in states(client, session)))
        await client.act(session, "text", "Ann\n")
        await client.until(lambda: states(client, session)[-1]["state"] == "busy")
        told = [one["state"] for one in states(client, session)]
        assert all(one != other for one, other in itertools.pairwise(told))
        await client.call("session.kill", session=session)
        await client.until(lambda: client.exits(session))
        assert client.told[-1][0] == "session.exited"


async def test_secrets_in_a_prompt_are_masked_everywhere(automation: Serving) -> None:
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(f"printf 'Use {SECRET}? '; read x")
        wanted = {"type": "input_wanted"}
        found = await client.call("session.wait", session=session, matcher=wanted)
        await client.until(lambda: any(one["prompt"] for one in states(client, session)))
        seen = await client.call("session.snapshot", session=session)
        for text in (str(found), str(seen), str(client.told)):
            assert "hunter2secret" not in text
        raw = await client.call("session.snapshot", session=session, redact=False)
        assert raw["input_state"]["prompt"] == f"Use {SECRET}?"


async def test_an_unknown_kind_of_input_is_refused(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        wanted = {"type": "input_wanted", "value": ["busy"]}
        refused = await client.refused("session.wait", session=session, matcher=wanted)
        assert refused.code == -32602
        assert "busy" in refused.message


def test_python_asks_what_a_program_waits_for() -> None:
    with telex.spawn(["sh", "-c", "printf 'Pin: '; stty -echo; read x; exec sleep 60"]) as term:
        found = term.wait(telex.match.input_wanted("password"))
        assert found.evidence["prompt"] == "Pin:"
        asked = term.waiting_for()
        assert isinstance(asked, telex.InputState)
        assert asked.waiting
        assert asked.state == "password"
        term.type("1234\n")
        assert term.waiting_for().state == "busy"


async def test_python_asks_so_with_asyncio_too() -> None:
    async with telex.spawn(["cat"]) as term:
        await term.wait(telex.match.input_wanted())
        assert (await term.waiting_for()).state == "line"


async def test_an_adapter_is_asked_first(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("bash", "--norc", env={"PS1": "go: "})
        wanted = {"type": "input_wanted"}
        await client.call("session.wait", session=session, matcher=wanted)
        adapter = (await client.call("adapter.attach", plugin="less", session=session))["adapter"]
        await client.call("adapter.state", adapter=adapter)
        seen = (await client.call("session.snapshot", session=session))["input_state"]
        assert (seen["state"], seen["source"]) == ("shell", "kernel")  # less does not know it
        await client.act(session, "text", "exec seq 100 | less\n")
        await client.shows(session, "\n:")
        await client.call("session.wait", session=session, matcher=wanted)
        await client.call("adapter.state", adapter=adapter)
        seen = (await client.call("session.snapshot", session=session))["input_state"]
        assert (seen["state"], seen["source"]) == ("pager", "adapter")
