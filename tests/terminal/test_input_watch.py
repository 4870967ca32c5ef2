"""Who is told what a program waits for, and how often is looked: after events, and not in between."""

from __future__ import annotations

import asyncio
import sys

import pytest

from telex.processes import foreground
from telex.terminal.actions import Key, Text
from telex.terminal.input_state import InputState
from telex.terminal.pty import Program
from telex.terminal.session import PtySession
from telex.terminal.waits.engine import ProgramGone, WaitTimedOut
from telex.terminal.waits.matchers import AnyOf, ContainsText, InputWanted, Not, ProcessExited

SECONDS = 60


def shell(script: str) -> Program:
    return Program(("sh", "-c", script))


async def wanted(session: PtySession, *kinds: str) -> dict[str, object]:
    found = await session.wait(InputWanted(kinds), SECONDS)  # type: ignore[arg-type]  # as callers write them
    return found.evidence.render()


@pytest.mark.each_loop
async def test_a_wait_for_input_ends_when_the_program_reads() -> None:
    async with PtySession(
        shell("printf 'Name: '; read x; stty -echo; printf 'Pin: '; read y")
    ) as one:
        evidence = await wanted(one)
        assert (evidence["state"], evidence["prompt"]) == ("line", "Name:")
        assert evidence["kind"] == "input_wanted"
        await one.act(Text("Ann\n"))
        assert (await wanted(one, "password"))["prompt"] == "Pin:"
        await one.act(Text("1\n"))
        with pytest.raises(ProgramGone, match="a wait for input did not come"):
            await wanted(one)


async def test_a_program_that_begins_to_read_without_a_word_is_noticed() -> None:
    async with PtySession(shell("sleep 0.3; exec cat")) as session:
        assert (await wanted(session))["state"] == "line"


async def test_a_typed_line_ends_the_wait_for_it_at_once() -> None:
    """The program has not run yet, and is still blocked in its read: the input is there, though."""
    async with PtySession(shell("read x; exec sleep 60")) as session:
        await wanted(session)
        for _ in range(50):
            await session.act(Text("half a line"))
            assert session.input_state().state == "line"
            await session.act(Key("ctrl_u"))
        await session.act(Key("enter"))
        for _ in range(50):
            assert session.input_state().state == "busy"


async def test_a_busy_program_is_explained() -> None:
    async with PtySession(shell("exec sleep 60")) as session:
        with pytest.raises(WaitTimedOut) as late:
            await session.wait(InputWanted(), 0.3)
        assert "the state is busy: sleep does not wait" in str(late.value.explanation["why"])


async def test_a_wait_for_other_kinds_of_input_goes_on() -> None:
    async with PtySession(shell("echo begun; exec cat")) as session:
        either = AnyOf((InputWanted(("password",)), Not(InputWanted()), ProcessExited()))
        pending = asyncio.create_task(session.wait(either, SECONDS))
        await wanted(session, "line")
        await session.act(Key("ctrl_d"))
        found = await pending
        assert found.evidence.matched is not None


async def test_nothing_is_looked_at_without_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(foreground, "look", lambda *facts: looks.append(facts))
    async with PtySession(shell("echo begun; read x; echo ended; read y")) as session:
        await session.wait(ContainsText("begun"))
        await session.act(Text("x\n"))
        await session.wait(ContainsText("ended"))
        assert looks == []
        session.input_state()
        assert len(looks) == 1


async def test_a_program_that_waits_for_input_alone_is_not_looked_at_again() -> None:
    async with PtySession(shell("echo begun; exec cat")) as session:
        heard = asyncio.Event()
        session.input_watch.listen(heard.set)
        while (seen := session.input_watch.noted) is None or not seen.waiting:
            await heard.wait()
            heard.clear()
        assert session.input_watch._timer is None
        await session.act(Text("x\n"))
        assert session.input_watch._timer is not None
        session.input_watch.unlisten(heard.set)
        assert session.input_watch._timer is None


async def test_a_busy_program_is_looked_at_less_and_less_often() -> None:
    async with PtySession(shell("exec sleep 60")) as session:
        session.input_watch.listen(lambda: None)
        delays = []
        while len(delays) < 6:
            if (delay := session.input_watch._delay) not in delays:
                delays.append(delay)
            await asyncio.sleep(0)
        assert delays == sorted(delays)
        assert delays[-1] > 10 * delays[0]


async def test_an_adapter_decides_where_the_kernel_allows_it() -> None:
    says = InputState("menu", "adapter", 0.8, "the adapter says so", choices=("Yes", "No"))
    reads = "import sys, tty; tty.setraw(0); print('x', flush=True); sys.stdin.read(1)"
    async with PtySession(Program((sys.executable, "-c", reads))) as session:
        await wanted(session, "key")
        session.input_watch.set_hint(says, session.sequence)
        assert session.input_state() == says
        session.input_watch.set_hint(says, session.sequence - 1)
        assert session.input_state().state == "key"
    async with PtySession(shell("echo begun; exec sleep 60")) as session:
        await session.wait(ContainsText("begun"))
        session.input_watch.set_hint(says, session.sequence)
        assert session.input_state().state == "busy"


async def test_a_session_can_be_closed_while_it_is_watched() -> None:
    async with PtySession(shell("exec cat")) as session:
        session.input_watch.listen(lambda: None)
    assert session.input_watch._timer is None
    assert session.input_state().state == "exited"
