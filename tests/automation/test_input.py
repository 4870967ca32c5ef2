"""`session.input`: every action, the order they keep, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from automating import Client, Serving

RAW = "stty raw -echo; printf 'ready '; exec cat -v"
"""Shows each byte it is given."""


async def shown_after(client: Client, session: str, *actions: dict[str, Any]) -> str:
    """What the program shows of these actions, up to a last `.` of ours."""
    await client.shows(session, "ready")
    for action in actions:
        await client.call("session.input", session=session, action=action)
    await client.act(session, "text", ".")
    return str((await client.shows(session, "."))["snapshot"]["plain_text"]).removeprefix("ready ")


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        ({"type": "text", "value": "Aé\t"}, "AM-CM-)   ."),
        ({"type": "paste", "value": "multi\nline\x1b[201~"}, "multi\n           line^[[201~."),
        ({"type": "bracketed_paste", "value": "wrap me"}, "^[[200~wrap me^[[201~."),
        ({"type": "key", "value": "enter"}, "^M."),
        ({"type": "key", "value": "up"}, "^[[A."),
        ({"type": "key", "value": "shift_tab"}, "^[[Z."),
        ({"type": "key", "value": "f5"}, "^[[15~."),
        ({"type": "key", "value": "ctrl_w"}, "^W."),
        ({"type": "key", "value": "alt_x"}, "^[x."),
        ({"type": "interrupt"}, "^C."),
        ({"type": "eof"}, "^D."),
        ({"type": "stream_text", "value": {"text": "abc", "chunk_chars": 1}}, "abc."),
        ({"type": "stream_text", "value": {"text": "abc"}}, "abc."),
    ],
    ids=lambda given: str(given),
)
async def test_an_action_is_these_bytes(
    automation: Serving, action: dict[str, Any], shown: str
) -> None:
    async with automation() as client:
        session = await client.start(RAW)
        assert await shown_after(client, session, action) == shown


async def test_each_action_is_done_by_each_way(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(RAW)
        shown = await shown_after(
            client,
            session,
            {"type": "text", "value": "a"},
            {"type": "paste", "value": "b"},
            {"type": "bracketed_paste", "value": "c"},
            {"type": "key", "value": "d"},
            {"type": "interrupt"},
            {"type": "eof"},
            {"type": "stream_text", "value": {"text": "e"}},
            {"type": "mark_transcript", "value": {"label": "here"}},
            {"type": "resize", "value": {"rows": 9, "cols": 30}},
        )
        assert shown == "ab^[[200~c^[[201~d^C^De."
        snapshot = await client.call("session.snapshot", session=session, cells="none")
        size = {"rows": 9, "cols": 30, "pixel_width": 0, "pixel_height": 0}
        assert snapshot["size"] == size
        assert (await client.act(session, "kill"))["sent"] is True
        await client.over(session)


async def test_a_bracketed_paste_cannot_be_broken_out_of(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(RAW)
        action = {"type": "bracketed_paste", "value": "a\x1b[201~rm\x9b201~b"}
        shown = await shown_after(client, session, action)
        assert shown.startswith("^[[200~a")
        assert shown.endswith("b^[[201~.")
        assert shown.count("^[") == 2
        assert "M-^[" not in shown


async def test_arrows_follow_the_mode_of_the_program(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(rf"printf '\033[?1h'; {RAW}")
        up = {"type": "key", "value": "up"}
        assert await shown_after(client, session, up) == "^[OA."


async def test_an_interrupt_is_the_terminals_own_character_and_interrupts(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start(
            "stty intr ^X; trap 'echo caught; exit' INT; echo ready; while :; do read x; done"
        )
        await client.shows(session, "ready")
        await client.act(session, "interrupt")
        await client.shows(session, "caught")


async def test_end_of_file_ends_a_program_that_reads(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat; echo finished")
        await client.act(session, "eof")
        await client.shows(session, "finished")


async def test_an_interrupt_overtakes_a_paste_that_the_program_does_not_read(
    automation: Serving,
) -> None:
    script = "trap 'echo caught; exit' INT; echo ready; while :; do sleep 0.01; done"
    async with automation() as client:
        session = await client.start(script)
        await client.shows(session, "ready")
        pasting = asyncio.create_task(client.act(session, "paste", "x\n" * 500_000))
        await client.call("server.capabilities")
        await client.act(session, "interrupt")
        await client.shows(session, "caught")
        pasting.cancel()
        await asyncio.wait({pasting})


async def test_a_signal_reaches_the_program(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(
            "trap 'echo got it; exit' USR1; echo ready; while :; do read x; done"
        )
        await client.shows(session, "ready")
        await client.act(session, "signal", "user1")
        await client.shows(session, "got it")
        session = await client.start("exec cat")
        await client.act(session, "signal", "hup")
        found = await client.over(session)
        assert found["evidence"]["kind"] == "process_exited"


async def test_the_mouse_speaks_the_protocol_that_the_program_asked_for(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start(rf"printf '\033[?1000h\033[?1006h'; {RAW}")
        click = {"type": "mouse", "value": {"row": 2, "col": 4}}
        assert await shown_after(client, session, click) == "^[[<0;5;3M^[[<0;5;3m."
        deaf = await client.start(RAW)
        await client.shows(deaf, "ready")
        refusal = await client.refused("session.input", session=deaf, action=click)
        assert refusal.code == -32602
        assert "did not ask for the mouse" in refusal.message


async def test_a_marked_place_in_the_transcript_is_an_action_of_its_own(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("cat")
        told = await client.act(session, "mark_transcript", {"label": "here"})
        assert told["sent"] is True


async def test_the_answer_says_that_it_was_sent_and_names_the_moment_before(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("cat")
        told = await client.act(session, "text", "hello\n")
        assert list(told) == ["sent", "mark", "sequence"]
        assert told["sent"] is True
        assert isinstance(told["mark"], str)
        found = await client.shows(session, "hello", since=told["mark"])
        assert found["sequence"] >= told["sequence"]


async def test_a_hundred_inputs_sent_at_once_arrive_in_order(automation: Serving) -> None:
    lines = [f"line {n:03}\n" for n in range(100)]
    async with automation() as client:
        session = await client.start("stty -echo; echo ready; exec cat")
        await client.shows(session, "ready")
        await asyncio.gather(*(client.act(session, "text", line) for line in lines))
        await client.shows(session, "line 099")
        printed = await client.transcript(session)
        assert printed.split("\r\n") == ["ready", *map(str.strip, lines), ""]


async def test_a_slow_input_holds_back_those_behind_it_and_no_other_session(
    automation: Serving,
) -> None:
    async with automation() as client:
        slow, other = await client.start(RAW), await client.start(RAW)
        await client.shows(slow, "ready")
        await client.shows(other, "ready")
        slowly = {"text": "abcdefgh", "chunk_chars": 1, "delay_ms": 20}
        streaming = asyncio.create_task(client.act(slow, "stream_text", slowly))
        behind = asyncio.create_task(client.act(slow, "text", "."))
        await client.act(other, "text", "quick")
        await client.shows(other, "quick")
        assert not behind.done()
        await asyncio.gather(streaming, behind)
        await client.shows(slow, "abcdefgh.")


async def test_an_unknown_key_is_refused_with_the_names_of_near_ones(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        refusal = await client.refused(
            "session.input", session=session, action={"type": "key", "value": "entr"}
        )
        assert refusal.code == -32602
        assert "enter" in refusal.message


@pytest.mark.parametrize(
    "action",
    [
        None,
        "text",
        {},
        {"type": "dance"},
        {"type": "text"},
        {"type": "text", "value": 7},
        {"type": "resize", "value": {"rows": 0, "cols": 80}},
        {"type": "resize", "value": {"rows": 24}},
        {"type": "signal", "value": "stop"},
        {"type": "mark_transcript", "value": {"label": ""}},
        {"type": "stream_text", "value": {"text": "x", "chunk_chars": 0}},
        {"type": "stream_text", "value": {"text": "x", "delay_ms": 101}},
        {"type": "mouse", "value": {"row": -1, "col": 0}},
    ],
    ids=str,
)
async def test_an_action_that_is_none_is_invalid_params(automation: Serving, action: Any) -> None:
    async with automation() as client:
        session = await client.start("cat")
        refusal = await client.refused("session.input", session=session, action=action)
        assert refusal.code == -32602
        assert "action" in refusal.message
