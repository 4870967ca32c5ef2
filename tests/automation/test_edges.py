"""What happens at the edges: clients that vanish, programs that do not read, screens too large."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from automating import Serving, alive
from telex.automation.session_reader import SessionReader
from telex.redaction import Redactor
from telex.rpc import limits as rpc_limits
from telex.terminal import limits
from telex.terminal import session as sessions
from telex.terminal.cells import Size
from telex.terminal.recording import ExitEvent, read_recording
from telex.terminal.redact import draw_screen
from telex.terminal.session import Program, PtySession
from telex.terminal.waits import matchers

DEAF = "trap '' HUP TERM; echo $$; printf up; while :; do sleep 100; done"


async def gone(pid: int) -> None:
    """Until the process has ended: the kernel says so."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop.add_reader(fd, ended.set)
    try:
        async with asyncio.timeout(60):
            await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def test_a_close_continues_after_its_client_disconnects(automation: Serving) -> None:
    async with automation() as client:
        other = await client.another()
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(DEAF)
        await client.shows(session, "up")
        pid = int((await client.screen(session)).split()[0])
        closing = asyncio.create_task(other.call("session.close", session=session))
        await other.call("server.capabilities")  # the close was read before this
        closing.cancel()
        await other.leave()
        await gone(pid)
        assert not alive(pid)
        await client.until(lambda: client.exits(session))
        assert len(client.exits(session)) == 1


async def test_a_cancelled_close_can_be_awaited_again() -> None:
    session = PtySession(Program(("sh", "-c", DEAF)))
    first = asyncio.create_task(session.close())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    await session.close()
    assert session.exit is not None


async def test_a_long_input_that_the_program_does_not_read_times_out_and_frees_the_session(
    automation: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.terminal.limits.INPUT_SECONDS", 0.2)
    async with automation() as client:
        session = await client.start("stty raw -echo; printf up; exec sleep 1000")
        await client.shows(session, "up")
        paste = {"type": "paste", "value": "x" * (limits.INPUT_BYTES_QUEUED // 2 + 1)}
        refusal = await client.refused("session.input", session=session, action=paste)
        assert (refusal.code, refusal.data["kind"]) == (-32603, "input_not_read")
        assert await client.call("session.resize", session=session, rows=5, cols=5)


async def test_a_slow_action_on_one_session_does_not_silence_another(automation: Serving) -> None:
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        slow, other = await client.start("exec cat"), await client.start("exec cat")
        value = {"text": "y" * 200, "chunk_chars": 1, "delay_ms": 100}
        typing = asyncio.create_task(client.act(slow, "stream_text", value))
        await client.act(other, "text", "heard")
        await client.until(lambda: "heard" in client.output(other))
        assert not typing.done()
        typing.cancel()
        await asyncio.wait({typing})


async def test_large_output_is_sent_in_several_notifications(
    automation: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.automation.limits.OUTPUT_CHARS_TOLD", 10)
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start("seq -s ' ' 1 200")
        await client.until(lambda: client.exits(session))
        whole = " ".join(str(number) for number in range(1, 201))
        assert client.output(session).startswith(whole)
        told = [params for method, params in client.told if method == "session.output"]
        assert max(len(params["output"]) for params in told) == 10


async def test_a_screen_too_large_for_one_message_is_sent_as_runs(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("printf here; exec cat", rows=300, cols=300)
        matcher = {"type": "contains_text", "value": "here"}
        found = await client.call("session.wait", session=session, matcher=matcher)
        assert found["matched"]
        assert found["snapshot"]["cells"] == []
        assert found["snapshot"]["runs"][0]["text"] == "here"


async def test_an_attachment_gets_the_last_letters_too(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("read x; printf 'bye e'")
        await client.call("session.attach", session=session)
        await client.act(session, "key", "enter")
        await client.over(session)

        def last() -> bool:
            told = [params for method, params in client.told if method == "session.bytes"]
            data = b"".join(base64.b64decode(params["data64"]) for params in told)
            return data.endswith(b"bye e")

        await client.until(last)


async def test_however_many_waits_are_open_they_can_be_cancelled(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("exec cat")
        never = {"type": "contains_text", "value": "never"}
        waits = [
            asyncio.create_task(
                client.call("session.wait", session=session, matcher=never, wait_id=f"w{n}")
            )
            for n in range(rpc_limits.CALLS_IN_FLIGHT + 1)
        ]
        assert await client.call("session.list") == {"sessions": [session]}
        told = await client.call("session.cancel_wait", wait_id="w0")
        assert told["cancelled"]
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)


async def test_a_wait_that_can_no_longer_match_fails_at_once(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("exit 0")
        await client.over(session)
        never = {"type": "contains_text", "value": "never"}
        still = {"type": "screen_stable", "value": {"min_ms": 60_000}}
        both = {"type": "any", "value": [never, {"type": "all", "value": [never, still]}]}
        refusal = await client.refused("session.wait", session=session, matcher=both)
        assert refusal.code == -32002


async def test_a_program_that_did_not_start_leaves_no_raw_transcript(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "raw"
    async with automation() as client:
        refusal = await client.refused(
            "session.create", program="no-such-program", raw_transcript_path=str(path)
        )
        assert refusal.code == -32603
        assert not path.exists()


@pytest.mark.parametrize("since", ["m" + "9" * 5000, "m0", "mm1", "m01", -1])
async def test_an_unknown_mark_is_invalid_params(automation: Serving, since: object) -> None:
    async with automation() as client:
        session = await client.start("exec cat")
        await client.act(session, "text", "x")
        matcher = {"type": "contains_text", "value": "x", "since": since}
        refusal = await client.refused("session.wait", session=session, matcher=matcher)
        assert refusal.code == -32602


async def test_a_recording_has_the_end_also_when_the_session_is_closed(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "cast"
    async with automation() as client:
        session = await client.start("printf up; exec cat")
        await client.shows(session, "up")
        await client.call("session.record", session=session, path=str(path))
        await client.call("session.close", session=session)
    events = read_recording(path.read_bytes().splitlines(keepends=True)).events
    assert isinstance(events[-1], ExitEvent)


async def test_a_refused_recording_leaves_the_one_before_it(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "cast"
    async with automation() as client:
        session = await client.start("exec cat")
        await client.call("session.record", session=session, path=str(path))
        refusal = await client.refused("session.record", session=session, path=str(path))
        assert refusal.code == -32602
        stopped = await client.call("session.record", session=session)
        assert stopped == {"recording": False, "path": str(path)}


async def test_no_program_gets_the_token(
    automation: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEX_TOKEN", "a-token-of-many-letters")
    async with automation() as client:
        session = await client.start("printf '(%s)' \"$TELEX_TOKEN\"")
        await client.over(session)
        assert await client.screen(session) == "()"


async def test_a_secret_that_scrolls_away_within_a_long_turn_stays_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = (
        b"password=" + b"AKzHUNTER2secret0123456789abcdefghijklmnopqrstuvwxyzSECRETEND0123456789x"
    )
    async with PtySession(Program(("cat",), size=Size(3, 20))) as session:
        redactor = Redactor()
        session._output(b"l1\r\nl2\r\nl3\r\nl4\r\n")
        SessionReader(session, redactor).snapshot("none", redactor)  # somebody looks
        monkeypatch.setattr(sessions, "TURN_SECONDS", 0)
        session._output(b"\x1b[m" * 100 + secret + b"\x1b[m" * 3000)
        assert session._work, "it was to take more than one turn"
        assert b"SECRETEND" not in draw_screen(session, redactor)
        seen = SessionReader(session, redactor).snapshot("none", redactor)
        assert "SECRETEND" not in seen.plain_text
        found = await session.wait(matchers.ContainsText("SECRETEND"), 5)
        assert "SECRETEND" in found.moment.text
