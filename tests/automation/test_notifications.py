"""What a connection is told unasked, after `server.set_notifications`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

import web
from automating import SECRET, Client, Serving, request


async def subscribe(client: Client, **params: Any) -> Any:
    return await client.call("server.set_notifications", **{"enabled": True, **params})


async def test_a_connection_without_a_subscription_gets_no_notifications(
    automation: Serving,
) -> None:
    async with automation() as client:
        other = await client.another()
        await subscribe(other)
        session = await client.start("printf ready; exit")
        await client.over(session)
        await other.until(lambda: other.exits(session))
        await client.call("server.capabilities")
        assert client.told == []


async def test_notifications_are_pushed_on_an_idle_connection(automation: Serving) -> None:
    """The subscriber asks for nothing after its subscription."""
    async with automation() as client:
        watcher = await client.another()
        assert await subscribe(watcher) == {"enabled": True}
        session = await client.start("printf 'hello\\n'; read x; exit 3")
        await watcher.until(lambda: "hello\r\n" in watcher.output(session))
        await client.act(session, "key", "enter")
        await watcher.until(lambda: watcher.exits(session))
        last = await client.call("session.snapshot", session=session, cells="none")
        (ended,) = watcher.exits(session)
        assert ended == {
            "session": session,
            "sequence": last["sequence"],
            "exit_code": 3,
            "signal": None,
        }
        changed = [params for method, params in watcher.told if method == "session.changed"]
        assert all(list(params) == ["session", "sequence"] for params in changed)
        sequences = [params["sequence"] for params in changed]
        assert sequences == sorted(set(sequences))
        outputs = [params for method, params in watcher.told if method == "session.output"]
        assert all(list(params) == ["session", "sequence", "output"] for params in outputs)
        assert [method for method, _ in watcher.told][-1] == "session.exited"
        assert watcher.told[0][0] == "session.changed"
        assert watcher.told[1][0] == "session.output"


async def test_the_exit_notification_has_the_signal_that_ended_the_program(
    automation: Serving,
) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await client.start("kill -TERM $$")
        (ended,) = await client.until(lambda: client.exits(session))
        assert (ended["exit_code"], ended["signal"]) == (None, 15)


async def test_the_exit_of_a_program_is_notified_once(automation: Serving) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await client.start("printf x; exit")
        await client.until(lambda: client.exits(session))
        await client.call("session.kill", session=session)
        await client.call("session.close", session=session)
        marker = await client.start("exit")
        await client.until(lambda: client.exits(marker))
        assert len(client.exits(session)) == 1


async def test_the_last_words_come_before_the_end_and_a_close_loses_neither(
    automation: Serving,
) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await client.start("printf last; cat")
        await client.until(lambda: client.output(session) == "last")
        await client.call("session.close", session=session)
        await client.until(lambda: client.exits(session))
        assert client.told[-1][0] == "session.exited"


async def test_the_last_output_of_a_closed_session_is_still_notified(
    automation: Serving,
) -> None:
    """Its screen is gone by then, and is not asked for."""
    async with automation() as client:
        await subscribe(client)
        for _ in range(10):
            session = await client.start(
                "trap 'echo bye; exit' HUP TERM; echo ready; while :; do read x; done"
            )
            await client.shows(session, "ready")
            await client.call("session.close", session=session)
            await client.until(lambda id=session: client.exits(id))
            assert "bye" in client.output(session)
        assert (await client.call("session.list"))["sessions"] == []


async def test_changes_in_quick_succession_are_combined_in_one_notification(
    automation: Serving,
) -> None:
    """A write each millisecond, at most 125 rounds a second, and not a character lost."""
    script = "import time\nfor n in range(200): print(n, flush=True); time.sleep(0.001)"
    async with automation() as client:
        await subscribe(client)
        session = await client.start(sys.executable, "-c", script)
        began = asyncio.get_running_loop().time()
        await client.until(lambda: client.exits(session))
        seconds = asyncio.get_running_loop().time() - began
        assert client.output(session) == "".join(f"{n}\r\n" for n in range(200))
        changed = [params for method, params in client.told if method == "session.changed"]
        assert len(changed) <= seconds * 125 + 2


async def test_a_filter_narrows_them_down_and_is_answered(automation: Serving) -> None:
    async with automation() as client:
        told = await subscribe(client, adapters=["e1"], sessions=["s2"])
        assert told == {"enabled": True, "adapters": ["e1"], "sessions": ["s2"]}
        for _ in range(3):
            await client.over(await client.start("printf x"))
        await client.until(lambda: client.exits("s2"))
        await client.call("server.capabilities")
        assert client.sessions_told() == {"s2"}
        assert await subscribe(client, sessions=["s4"]) == {"enabled": True, "sessions": ["s4"]}
        assert await subscribe(client, sessions=[], adapters=[]) == {"enabled": True}


async def test_an_adapter_that_is_not_known_matches_nothing_and_is_no_mistake(
    automation: Serving,
) -> None:
    async with automation() as client:
        watcher = await client.another()
        told = await subscribe(client, adapters=["e99"])
        assert told == {"enabled": True, "adapters": ["e99"]}
        await subscribe(watcher)
        session = await client.start("printf x")
        await watcher.until(lambda: watcher.exits(session))
        await client.call("server.capabilities")
        assert client.told == []


async def test_a_session_may_be_subscribed_to_before_it_is_there(automation: Serving) -> None:
    async with automation() as client:
        watcher = await client.another()
        await subscribe(watcher, sessions=["s1"])
        await client.start("printf first")
        await watcher.until(lambda: watcher.exits("s1"))
        assert watcher.output("s1") == "first"


async def test_a_new_subscriber_gets_output_from_now_on(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("stty -echo; printf 'the past '; read x; printf present; cat")
        await client.shows(session, "past")
        await subscribe(client)
        await client.act(session, "key", "enter")
        await client.until(lambda: "present" in client.output(session))
        assert "past" not in client.output(session)


async def test_output_from_while_notifications_were_off_is_not_sent_later(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start(
            "stty -echo; printf one; read x; printf two; read x; printf three; cat"
        )
        await subscribe(client)
        await client.shows(session, "one")
        assert await subscribe(client, enabled=False) == {"enabled": False}
        before = len(client.told)
        await client.act(session, "key", "enter")
        await client.shows(session, "two")
        await client.call("server.capabilities")
        assert len(client.told) == before, "off is off"
        await subscribe(client)
        await client.act(session, "key", "enter")
        await client.until(lambda: "three" in client.output(session))
        assert "two" not in client.output(session)


async def test_subscribing_again_neither_repeats_nor_loses_anything(automation: Serving) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await client.start("stty -echo; printf one; read x; printf two; cat")
        await client.until(lambda: "one" in client.output(session))
        await subscribe(client)
        await subscribe(client, sessions=[session])
        await client.act(session, "key", "enter")
        await client.until(lambda: "two" in client.output(session))
        assert client.output(session) == "onetwo"


async def test_output_that_is_no_longer_kept_is_reported_as_dropped(automation: Serving) -> None:
    async with automation() as client:
        await subscribe(client)
        session = await client.start("seq 100000; printf end", transcript_max_chars=100)
        await client.until(lambda: client.exits(session))
        outputs = [params for method, params in client.told if method == "session.output"]
        cut = [params for params in outputs if "dropped" in params]
        assert cut
        assert all(params["dropped"] is True for params in cut)
        assert client.output(session).endswith("100000\r\nend")


async def test_a_secret_split_between_two_writes_is_hidden_in_notifications(
    automation: Serving,
) -> None:
    half = len(SECRET) - 5
    script = f"stty -echo; printf '{SECRET[:half]}'; read x; printf '{SECRET[half:]} end\\n'"
    async with automation() as client:
        await subscribe(client)
        session = await client.start(script)
        await client.shows(session, "password")
        await client.act(session, "key", "enter")
        await client.until(lambda: client.exits(session))
        assert client.output(session) == "password=[REDACTED] end\r\n"


async def test_subscriptions_belong_to_the_connection_and_sessions_outlive_it(
    automation: Serving,
) -> None:
    async with automation() as client:
        first = await client.another()
        session = await first.start("printf 'still here'; cat")
        await subscribe(first)
        await first.shows(session, "here")
        await first.leave()
        second = await client.another()
        assert (await second.call("session.list"))["sessions"] == [session]
        assert await second.screen(session) == "still here"
        await second.act(session, "text", "and alive\n")
        await second.shows(session, "and alive")
        assert second.told == []


async def hear_all(ear: web.Ear, until: str) -> list[Any]:
    """Messages up to the first notification of this kind."""
    heard: list[Any] = []
    while not heard or heard[-1].get("method") != until:
        heard.append(json.loads(await ear.hear()))
    return heard


async def test_a_response_comes_before_the_notifications_that_its_request_caused(
    automation: Serving,
) -> None:
    async with automation.server() as served:
        ear = await served.listen()
        ear.channel.send(request(1, "server.set_notifications", enabled=True))
        ear.channel.send(request(2, "session.create", program="sh", args=["-c", "exec cat"]))
        assert [json.loads(await ear.hear())["id"] for _ in range(2)] == [1, 2]
        for n in range(3, 40):
            text = {"type": "text", "value": "x\n"}
            ear.channel.send(request(n, "session.input", session="s1", action=text))
            heard = await hear_all(ear, "session.output")
            # The program has begun to wait again after the input before, maybe just now.
            heard = [one for one in heard if one.get("method") != "session.input_state"]
            assert heard[0].get("id") == n
            while "x\r\nx\r\n" not in "".join(
                m["params"]["output"] for m in heard if m.get("method") == "session.output"
            ):
                heard += await hear_all(ear, "session.output")
        ear.channel.send(request(40, "session.resize", session="s1", rows=9, cols=9))
        heard = await hear_all(ear, "session.changed")
        heard = [one for one in heard if one.get("method") != "session.input_state"]
        assert [message.get("id") for message in heard] == [40, None]
        ear.channel.send(request(41, "session.kill", session="s1"))
        heard = await hear_all(ear, "session.exited")
        heard = [one for one in heard if one.get("method") != "session.input_state"]
        assert heard[0].get("id") == 41


async def test_a_response_that_takes_its_time_comes_first_all_the_same(automation: Serving) -> None:
    script = "trap 'echo bye; exit' HUP TERM INT; stty -echo; echo ready; while :; do read x; echo $x; done"
    async with automation.server() as served:
        client, ear = await served.connect(), await served.listen()
        session = await client.start(script)
        await client.shows(session, "ready")
        ear.channel.send(request(1, "server.set_notifications", enabled=True))
        assert json.loads(await ear.hear())["id"] == 1
        slowly = {"text": "a\nb\nc\nd\n", "chunk_chars": 2, "delay_ms": 20}
        typed = {"type": "stream_text", "value": slowly}
        ear.channel.send(request(2, "session.input", session=session, action=typed))
        heard = await hear_all(ear, "session.output")
        assert [message.get("id") for message in heard[:2]] == [2, None]
        await client.shows(session, "d")
        ear.channel.send(request(3, "session.kill", session=session))
        heard = await hear_all(ear, "session.exited")
        ids = [message.get("id") for message in heard]
        told = [str(message) for message in heard]
        assert ids.index(3) < min(n for n, text in enumerate(told) if "bye" in text)


async def test_a_slow_listener_does_not_hold_up_the_others(automation: Serving) -> None:
    async with automation.server() as served:
        slow, quick = await served.connect(), await served.connect()
        await subscribe(slow)
        slow.peer._channel.pause()
        session = await quick.start("seq 200000; printf end", transcript_max_chars=1000)
        await quick.over(session)
        assert (await quick.screen(session)).endswith("end")
        slow.peer._channel.resume()
        await slow.until(lambda: slow.exits(session))
        assert slow.output(session).endswith("end")


@pytest.mark.parametrize("params", [{}, {"enabled": "yes"}, {"enabled": True, "sessions": "s1"}])
async def test_a_subscription_that_is_none_is_invalid_params(
    automation: Serving, params: dict[str, Any]
) -> None:
    async with automation() as client:
        refusal = await client.refused("server.set_notifications", **params)
        assert refusal.code == -32602


async def test_notifications_wait_for_no_slow_request(automation: Serving) -> None:
    """A pending wait is no request that acts: what happens meanwhile is told."""
    async with automation() as client:
        await subscribe(client)
        session = await client.start("printf ready; cat")
        matcher = {"type": "contains_text", "value": "never"}
        waiting = asyncio.create_task(
            client.refused("session.wait", session=session, matcher=matcher)
        )
        await client.until(lambda: "ready" in client.output(session))
        await client.call("session.close", session=session)
        assert (await waiting).code == -32002
