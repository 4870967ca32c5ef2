"""One session by itself, without a server: its one number, its waits, its end, what it swallows."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from telex.processes.child import Exit
from telex.processes.spawn import NoSuchProgram
from telex.terminal import actions, limits
from telex.terminal import session as module
from telex.terminal.actions import ProgramEnded, Text
from telex.terminal.cells import Size
from telex.terminal.raw_transcript import open_raw
from telex.terminal.session import Program, PtySession
from telex.terminal.waits import matchers
from telex.terminal.waits.compiler import MatcherRefused
from telex.terminal.waits.engine import ProgramGone, WaitCancelled, Waits, WaitTimedOut
from telex.terminal.waits.matchers import (
    AllOf,
    AnyOf,
    ContainsText,
    CursorAt,
    ExitCode,
    Not,
    ProcessExited,
    ScreenRegex,
    ScreenStable,
    Stability,
    TextAbsent,
    TranscriptContains,
    TranscriptRegex,
)
from telex.wire import json_escape

if TYPE_CHECKING:
    from pathlib import Path

    from telex.wire.events import Claimed

RELAY = "stty raw -echo; printf ready; exec cat"
"""Prints what is typed, as it is."""


def shell(script: str, size: Size | None = None, **how: Any) -> PtySession:
    return PtySession(Program(("sh", "-c", script), size=size or Size()), **how)


async def relay(**how: Any) -> PtySession:
    session = shell(RELAY, **how)
    await session.wait(ContainsText("ready"))
    return session


def dash() -> PtySession:
    return PtySession(Program(("sh", "-i"), env={"PS1": "> ", "ENV": None}))


# The one number.


async def test_a_session_needs_no_server() -> None:
    async with dash() as session:
        await session.wait(ContainsText("> "))
        mark = await session.act(Text("echo $((6 * 7))\n"))
        found = await session.wait(ScreenRegex(r"(?m)^42$", since=mark))
        assert found.moment.snapshot.plain_text.split("\n")[1] == "42"
        assert session.exit is None
    assert session.exit is not None


async def test_the_sequence_rises_with_output_and_with_a_new_size_and_never_falls() -> None:
    async with await relay() as session:
        numbers: list[int] = []
        session.watchers.add(lambda: numbers.append(session.sequence))
        await session.act(Text("one"))
        await session.wait(ContainsText("one"))
        session.resize(Size(30, 100))
        assert session.snapshot().sequence == session.sequence == numbers[-1]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) >= 2


async def test_a_snapshot_is_of_its_sequence_and_stays_as_it_was() -> None:
    async with await relay() as session:
        before = session.snapshot()
        await session.act(Text(" and more"))
        found = await session.wait(ContainsText("and more"))
        assert before.plain_text == "ready"
        assert found.moment.snapshot.plain_text == "ready and more"
        assert found.moment.sequence > before.sequence


async def test_two_sessions_know_nothing_of_each_other() -> None:
    async with await relay() as one, await relay() as other:
        await asyncio.gather(one.act(Text("left")), other.act(Text("right")))
        await asyncio.gather(one.wait(ContainsText("left")), other.wait(ContainsText("right")))
        assert (one.snapshot().plain_text, other.snapshot().plain_text) == (
            "readyleft",
            "readyright",
        )


async def test_a_program_that_does_not_exist_leaves_nothing() -> None:
    with pytest.raises(NoSuchProgram):
        PtySession(Program(("/nowhere/at/all",)))


# Waits.


class Looks:
    """Counts how often waits are looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        decide = Waits._decide

        def counting(waits: Waits, wait: Any) -> None:
            self.count += 1
            decide(waits, wait)

        monkeypatch.setattr(Waits, "_decide", counting)


async def test_a_wait_is_checked_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await relay() as session:
        looks = Looks(monkeypatch)
        waiting = asyncio.create_task(session.wait(ContainsText("now"), timeout=20))
        await asyncio.sleep(0.15)  # nothing happens in this time, and so nobody must look
        assert looks.count == 1
        before = session.sequence
        await session.act(Text("now"))
        await waiting
        assert looks.count == 1 + session.sequence - before


async def test_a_wait_for_stillness_sets_a_timer_and_does_not_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with await relay() as session:
        looks = Looks(monkeypatch)
        await session.wait(ScreenStable(Stability(150)))
        assert looks.count <= 3


@pytest.mark.parametrize("count", [500])
async def test_many_waits_on_one_session_each_get_their_own_match(count: int) -> None:
    async with await relay() as session:
        waits = [
            asyncio.create_task(session.wait(TranscriptContains(f"<{number}>")))
            for number in range(count)
        ]
        await asyncio.sleep(0)
        await session.act(Text("".join(f"<{number}>" for number in range(count))))
        found = await asyncio.gather(*waits)
        assert all(f"<{n}>" in each.moment.transcript.tail for n, each in enumerate(found))
        assert not session._waits


async def test_a_wait_returns_the_frame_that_matched() -> None:
    """Each frame is wiped by the next, in the same turn of the loop as it is looked at."""
    async with await relay() as session:
        waiting = [
            asyncio.create_task(session.wait(ContainsText(f"frame {number}")))
            for number in range(5)
        ]
        await asyncio.sleep(0)
        for number in range(5):
            session._output(f"\x1b[2J\x1b[Hframe {number}".encode())
        for number, wait in enumerate(waiting):
            assert (await wait).moment.snapshot.plain_text == f"frame {number}"


async def test_stillness_right_after_an_input_does_not_come_before_its_effect() -> None:
    """The screen was still for long, the program takes its time: still is what comes after."""
    slow = "stty raw -echo; printf ready; while k=$(dd bs=1 count=1 2>/dev/null); do sleep 0.1; printf done; done"
    async with shell(slow) as session:
        await session.wait(ScreenStable(Stability(300)))
        await session.act(Text("x"))
        found = await session.wait(ScreenStable(Stability(250)))
        assert found.moment.snapshot.plain_text == "readydone"


async def test_stillness_since_the_last_change_is_there_at_once() -> None:
    async with await relay() as session:
        await session.wait(ScreenStable(Stability(120)))
        waiting = asyncio.create_task(session.wait(ScreenStable(Stability(100, "change"))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting.done()
        assert await waiting


async def test_stillness_since_the_last_change_is_not_there_right_after_typing() -> None:
    async with await relay() as session:
        await session.wait(ScreenStable(Stability(120)))
        await session.act(Text("x"))
        began = time.monotonic()
        await session.wait(ScreenStable(Stability(100, "change")))
        assert time.monotonic() - began >= 0.099


async def test_output_that_changes_nothing_visible_does_not_disturb_stillness_since_change() -> (
    None
):
    async with await relay() as session:
        await session.wait(ScreenStable(Stability(60)))
        busy = asyncio.create_task(_keep_printing(session, b"\x1b[m\x1b[s"))
        try:
            await session.wait(ScreenStable(Stability(50, "change")), timeout=60)
        finally:
            busy.cancel()
            await asyncio.wait({busy})


async def _keep_printing(session: PtySession, data: bytes) -> None:
    while True:
        session._output(data)
        await asyncio.sleep(0.005)  # a program that is never quiet


async def test_a_failed_wait_has_the_nearest_miss() -> None:
    async with await relay() as session:
        with pytest.raises(WaitTimedOut) as failed:
            await session.wait(AllOf((ContainsText("ready"), ContainsText("steady"))), timeout=0.05)
        assert "50 ms" in str(failed.value) or "ms" in str(failed.value)
        assert failed.value.moment.snapshot.plain_text == "ready"
        assert "steady" in str(failed.value.explanation)


async def test_an_invalid_pattern_is_refused_before_the_wait() -> None:
    async with await relay() as session:
        with pytest.raises(MatcherRefused):
            await session.wait(ScreenRegex("("))
        assert not session._waits


async def test_a_cancelled_wait_leaves_nothing() -> None:
    async with await relay() as session:
        waiting = asyncio.create_task(session.wait(ContainsText("never")))
        await asyncio.sleep(0)
        assert session._waits
        waiting.cancel()
        await asyncio.wait({waiting})
        assert not session._waits


async def test_waits_of_every_kind_come_true() -> None:
    async with await relay() as session:
        session._output(b"\x1b]2;a title\x1b\\\r\nsecond")
        for matcher in (
            ContainsText("second"),
            TranscriptRegex("rea.y"),
            TextAbsent("third"),
            Not(ContainsText("third")),
            matchers.Title("a tit"),
            CursorAt(matchers.CellPosition(1, 6)),
            AnyOf((ContainsText("third"), ContainsText("second"))),
        ):
            assert await session.wait(matcher, timeout=60)


# Since.


@pytest.mark.parametrize(
    "program",
    [
        ("bash", "--norc", "--noprofile"),
        (sys.executable, "-q", "-c", "while True: print('got', input('> '))"),
        ("cat",),
    ],
    ids=["bash", "python", "cat"],
)
async def test_since_does_not_match_the_echo_of_typed_input(
    program: tuple[str, ...],
) -> None:
    """`hello` is typed, and echoed; only the program's own hello counts."""
    async with PtySession(Program(program, env={"PS1": "> "})) as session:
        if program[0] != "cat":
            await session.wait(ContainsText("> "))
        typed = "echo hello" if program[0] == "bash" else "hello"
        mark = await session.act(Text(typed))
        await session.wait(ContainsText(typed))  # the echo is there
        with pytest.raises(WaitTimedOut):
            await session.wait(ContainsText("hello", since=mark), timeout=0.05)
        mark = await session.act(Text("\n"))
        found = await session.wait(ContainsText("hello", since=mark))
        assert found.moment.text.count("hello") == 2


async def test_since_a_sequence_does_not_match_older_text() -> None:
    async with await relay() as session:
        sequence = session.mark_sequence()
        with pytest.raises(WaitTimedOut):
            await session.wait(ContainsText("ready"), timeout=0.02, since=sequence)
        await session.act(Text("\r\nready"))
        assert await session.wait(ContainsText("ready"), since=sequence)


async def test_a_mark_that_was_never_given_is_refused() -> None:
    async with await relay() as session:
        with pytest.raises(MatcherRefused):
            await session.wait(ContainsText("x", since="m99"))


# The end.


async def test_the_last_output_of_a_child_that_exits_at_once_is_there() -> None:
    async with shell("printf 'the last words'; exit 3") as session:
        assert await session.ended() == Exit(3)
        assert session.snapshot().plain_text == "the last words"
        assert session.transcript.text() == "the last words"


async def test_a_wait_matches_the_exit_and_its_code() -> None:
    async with shell("read x; exit 7") as session:
        both = AllOf((ProcessExited(), ExitCode(7)))
        waiting = asyncio.create_task(session.wait(both))
        await session.act(Text("\n"))
        assert (await waiting).moment.exit == Exit(7)
        assert await session.wait(ProcessExited())  # and again, when it has long been so


async def test_a_wait_that_can_no_longer_match_fails_at_once_after_the_exit() -> None:
    async with shell("read x; printf bye") as session:
        waiting = asyncio.create_task(session.wait(ContainsText("never"), timeout=600))
        both = asyncio.create_task(
            session.wait(AnyOf((ContainsText("never"), ProcessExited())), timeout=600)
        )
        await session.act(Text("\n"))
        with pytest.raises(ProgramGone) as gone:
            await waiting
        assert "bye" in gone.value.moment.snapshot.plain_text
        assert gone.value.moment.exit == Exit(0)
        assert await both
        with pytest.raises(ProgramGone):
            await session.wait(ExitCode(1), timeout=600)


async def test_the_last_output_is_still_found_after_the_exit() -> None:
    async with shell("printf found") as session:
        assert await session.wait(ContainsText("found"))
        await session.ended()
        assert await session.wait(ContainsText("found"))


async def test_input_to_a_program_that_has_exited_is_refused() -> None:
    async with shell("exit 0") as session:
        await session.ended()
        for action in (
            Text("x"),
            actions.Key("enter"),
            actions.Interrupt(),
            actions.Eof(),
            actions.Kill(),
        ):
            with pytest.raises(ProgramEnded):
                await session.act(action)


async def test_watchers_are_called_once_more_after_the_exit_is_set() -> None:
    ends = []
    async with shell("read x") as session:
        session.watchers.add(lambda: ends.append(session.exit))
        await session.act(Text("\n"))
        await session.ended()
    assert ends[-1] == Exit(0)
    assert ends.count(Exit(0)) == 1


async def test_killing_leaves_a_session_that_can_be_read() -> None:
    async with await relay() as session:
        await session.kill()
        assert session.exit is not None
        assert session.snapshot().plain_text == "ready"
        await session.kill()


@pytest.mark.each_loop
async def test_closing_in_the_middle_of_everything_leaves_nothing() -> None:
    """Waits end with a sentence; a paste nobody reads, a slow typist and an ending one too."""
    session = shell("stty raw -echo; printf ready; exec sleep 1000")
    await session.wait(ContainsText("ready"))
    slow = actions.StreamText(actions.Streamed("x" * 100_000, chunk_chars=1, delay_ms=1))
    big = actions.Paste("y" * 5 * limits.INPUT_BYTES_QUEUED)
    waits = [asyncio.create_task(session.wait(ContainsText("never"))) for _ in range(10)]
    acts = [asyncio.create_task(session.act(each)) for each in (slow, big, Text("z"))]
    ended = asyncio.create_task(session.ended())
    await asyncio.sleep(0.01)  # all are under way
    await asyncio.gather(session.close(), session.close())
    told = await asyncio.gather(*waits, return_exceptions=True)
    assert all(isinstance(each, WaitCancelled) for each in told)
    async with asyncio.timeout(60):
        done = await asyncio.gather(*acts, return_exceptions=True)
    assert all(isinstance(each, Exception) for each in done), done
    assert await ended


async def test_closing_twice_does_nothing_twice() -> None:
    session = await relay()
    await session.close()
    await session.close()


# Turns.


async def test_a_hostile_read_does_not_stall_another_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """4 KiB of resets take long to obey. In turns of the loop the other is answered as ever."""
    monkeypatch.setattr(module, "TURN_SECONDS", 0.0)  # every slice is a turn, however fast we are
    async with await relay() as hostile, await relay() as other:
        turns = _Turns()
        waiting = asyncio.create_task(other.wait(ContainsText("here")))
        await asyncio.sleep(0)
        hostile._output(b"\x1bc" * 2048 + b"the end")
        assert hostile._work, "one turn worked through all of it"
        with turns:
            other._output(b"here")
            await waiting
            assert turns.count <= 3
            assert hostile._work, "it was over before the other was answered"
            await hostile.wait(ContainsText("the end"))
        assert turns.count > 3


class _Turns:
    """Counts the turns of the loop."""

    def __enter__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_soon(self._turn)

    def __exit__(self, *_: object) -> None:
        self._next.cancel()

    def _turn(self) -> None:
        self.count += 1
        self._next = self._loop.call_soon(self._turn)


async def test_a_session_that_is_behind_reads_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 0.0)
    async with await relay() as session:
        session._output(b"\x1bc" * 2048 + b"x")
        assert session._work
        assert session.pty._paused
        await session._caught_up.wait()
        assert not session._work
        assert not session.pty._paused
        await session.act(Text("and on"))
        await session.wait(ContainsText("and on"))


async def test_nothing_is_lost_or_out_of_order_over_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 0.0)
    letters = "".join(f"{number:07}\r\n" for number in range(3_000))
    async with shell("seq -f %07g 0 2999", transcript_chars=1 << 20) as session:
        await session.ended()
        assert session.transcript.text() == letters


# What never reaches a screen.


async def test_claimed_strings_are_swallowed_and_counted_whatever_the_cut() -> None:
    strings = (
        b'\x1b]23198;{"jsonrpc":"2.0","method":"x"}\x07',
        b"\x1bPHTTY;whatever\x1b\\",
    )
    async with await relay() as session:
        for string in strings:
            for cut in range(1, len(string)):
                before = session.swallowed
                session._output(b"\r\n[" + string[:cut])
                session._output(string[cut:] + b"]")
                assert session.swallowed > before, (string, cut)
        shown = session.snapshot().plain_text + session.transcript.text()
        assert "HTTY" not in shown
        assert "jsonrpc" not in shown
        assert "[]" in shown


async def test_a_claimant_gets_its_strings_and_no_other() -> None:
    got: list[Claimed] = []
    claimants = {json_escape.TO_TERMINAL: got.append}
    async with shell(RELAY, claimants=claimants) as session:
        await session.wait(ContainsText("ready"))
        session._output(b'a\x1b]23198;{"n":1}\x07b\x1bPHTTY;x\x1b\\c')
        assert session.snapshot().plain_text == "readyabc"
        assert len(got) == 1
        assert b'{"n":1}' in got[0].body
        assert session.swallowed == 1


async def test_the_raw_transcript_has_every_byte_before_any_processing(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    sent = b'a\x1b]23198;{"n":1}\x07b\x1bPHTTY;x\x1b\\c\xff\x00\x1b[31md'
    async with shell(RELAY, raw=open_raw(str(path))) as session:
        await session.wait(ContainsText("ready"))
        session._output(sent)
    assert path.read_bytes() == b"ready" + sent
