"""Sessions that nobody uses end by themselves, and sessions that somebody uses do not."""

from __future__ import annotations

import asyncio
import time

import pytest

from shell_verbs import Opening, ShellVerbs
from telex.automation import protocol as spec
from telex.automation.caller import LocalCaller

HOUR = 3600.0


async def names(telex: ShellVerbs) -> list[str]:
    return [one["session"] for one in (await telex.json("list"))["sessions"]]


async def test_an_unused_session_ends_after_an_hour(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "parrot")
        await telex("open", "kept", "--keep", "--", "parrot")
        await telex("open", "short", "--ttl", "10m", "--", "parrot")
        session = telex.server.automation.find("s1")[0]
        telex.clock.now += 11 * 60
        assert await names(telex) == ["parrot", "kept"]
        telex.clock.now += HOUR
        assert telex.verbs.open_count() == 1
        assert await names(telex) == ["kept"]
        await session.ended()


async def test_every_use_holds_a_session(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "parrot")
        for use in (
            ("see",),
            ("type", "x"),
            ("press", "a"),
            ("wait", "--idle", "1"),
            ("resize", "90x30"),
        ):
            telex.clock.now += HOUR - 1
            await telex(*use)
        telex.clock.now += HOUR - 1
        other = LocalCaller(telex.server.automation)
        await other.call("session.transcript", spec.ReadTranscript(session="s1"), object)
        other.leave()
        telex.clock.now += HOUR - 1
        assert await names(telex) == ["parrot"]
        telex.clock.now += 1
        assert await names(telex) == [], "listing is no use"


async def test_a_pending_wait_and_an_attachment_hold_a_session(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "parrot")
        waiting = asyncio.create_task(telex.run("wait", "done", "--max", "20"))
        while not telex.server.automation.find("s1")[0].followers:
            await asyncio.sleep(0)
        telex.clock.now += 3 * HOUR
        assert await names(telex) == ["parrot"]
        await telex("type", "done")
        assert (await waiting).code == 0
        person = LocalCaller(telex.server.automation)
        await person.call("session.attach", spec.Attach(session="s1"), spec.Attached)
        telex.clock.now += 3 * HOUR
        assert await names(telex) == ["parrot"]
        person.leave()
        telex.clock.now += HOUR - 1
        assert await names(telex) == ["parrot"], "it was used until the attachment ended"
        telex.clock.now += 1
        assert await names(telex) == []


async def test_an_ended_program_is_held_as_long(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "sh", "-c", "echo bye")
        await telex("wait", "--exit")
        telex.clock.now += HOUR - 1
        assert "bye" in await telex("see")
        telex.clock.now += HOUR
        assert "there is no session" in await telex.fails(1, "see")


@pytest.mark.each_loop
async def test_a_timer_ends_a_session_without_another_call(verbs: Opening) -> None:
    closed = asyncio.Event()
    async with verbs(clock=time.monotonic) as telex:
        telex.server.automation.closers.add(lambda _: closed.set())
        await telex("open", "--ttl", "300ms", "--", "parrot")
        async with asyncio.timeout(60):
            await closed.wait()
        assert telex.verbs.open_count() == 0
