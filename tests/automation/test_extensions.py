"""What telex adds to the protocol: each is asked for, and a client of the original never meets it."""

from __future__ import annotations

import asyncio
import base64
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from automating import SECRET, Client, Serving
from telex.automation import limits
from telex.terminal import recording
from telex.terminal.cells import STANDARD, Size
from telex.terminal.screen import Screen

# How a screen and a transcript are told.


async def test_cells_may_come_in_runs_or_not_at_all(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(r"printf 'plain \033[1;31mred bold\033[0m end'; cat")
        await client.shows(session, "end")
        none = await client.call("session.snapshot", session=session, cells="none")
        assert none["cells"] == []
        assert "runs" not in none
        told = await client.call("session.snapshot", session=session, cells="runs")
        assert told["cells"] == []
        runs = [run for run in told["runs"] if run["text"].strip()]
        assert [(run["row"], run["col"], run["text"]) for run in runs[:2]] == [
            (0, 0, "plain "),
            (0, 6, "red bold"),
        ]
        assert all(
            list(run) == ["row", "col", "width", "text", "style"] and run["width"] for run in runs
        )
        assert (runs[1]["style"]["foreground"], runs[1]["style"]["bold"]) == ("idx:1", True)
        found = await client.shows(session, "end", cells="runs")
        assert found["snapshot"]["runs"] == told["runs"]


async def test_a_transcript_can_be_read_without_its_escape_sequences(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(r"printf '\033[1mbold\033[0m\033]0;title\007 end'; cat")
        await client.shows(session, "end")
        assert await client.transcript(session) == "\x1b[1mbold\x1b[0m\x1b]0;title\x07 end"
        assert await client.transcript(session, strip=True) == "bold end"


async def test_a_transcript_can_be_read_on_from_where_one_stopped(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(
            "stty -echo; printf one; read x; printf two; read x; seq 1000; cat",
            transcript_max_chars=100,
        )
        await client.shows(session, "one")
        first = await client.call("session.transcript", session=session)
        assert first == {"text": "one", "cursor": 3, "dropped": False}
        await client.act(session, "key", "enter")
        await client.shows(session, "two")
        second = await client.call("session.transcript", session=session, cursor=first["cursor"])
        assert second == {"text": "two", "cursor": 6, "dropped": False}
        await client.act(session, "key", "enter")
        await client.shows(session, "1000")
        third = await client.call("session.transcript", session=session, cursor=second["cursor"])
        assert third["dropped"] is True
        assert len(third["text"]) == 100
        assert third["text"].endswith("1000\r\n")


async def test_lines_that_scrolled_off_the_screen_can_be_read(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("seq 1 124; cat", rows=24, cols=80)
        await client.shows(session, "124")
        told = await client.call("session.scrollback", session=session)
        assert list(told) == ["total", "start", "lines", "wrapped"]
        assert told["total"] == 101
        assert told["start"] == 0
        assert told["lines"] == [str(n) for n in range(1, 102)]
        assert set(told["wrapped"]) == {False}
        newest = await client.call("session.scrollback", session=session, start=-2)
        assert (newest["start"], newest["lines"]) == (99, ["100", "101"])
        middle = await client.call("session.scrollback", session=session, start=10, count=2)
        assert (middle["start"], middle["lines"]) == (10, ["11", "12"])
        beyond = await client.call("session.scrollback", session=session, start=5000)
        assert (beyond["start"], beyond["lines"]) == (101, [])
        before = await client.call("session.scrollback", session=session, start=-5000, count=1)
        assert (before["start"], before["lines"]) == (0, ["1"])
        runs = await client.call(
            "session.scrollback", session=session, start=0, count=2, cells="runs"
        )
        assert [(run["row"], run["text"]) for run in runs["runs"]] == [(0, "1"), (1, "2")]
        full = await client.call(
            "session.scrollback", session=session, start=0, count=2, cells="full"
        )
        assert len(full["cells"]) == 2 * 80


@pytest.mark.parametrize(
    "printed",
    [
        r"\033[?1049hx\033[22J\033[48He\033[22J",
        r"\033[?47hx\033[22J\033[48He\033[22J",
        r"\033[?1047h\033[2J\033[99Hx\033[22J\033[99S",
    ],
)
async def test_reading_the_scrollback_of_the_alternate_screen_ends_at_once(
    automation: Serving, printed: str
) -> None:
    async with automation() as client:
        session = await client.start(f"printf '{printed}'; echo; echo here; cat")
        await client.shows(session, "here")
        told = await client.call("session.scrollback", session=session)
        assert (told["total"], told["lines"]) == (0, [])
        assert await client.call("session.list")


async def test_scrollback_marks_wrapped_rows_and_hides_secrets(automation: Serving) -> None:
    async with automation() as client:
        script = f"echo 0123456789{SECRET}; seq 30; cat"
        session = await client.start(script, rows=5, cols=20)
        await client.shows(session, "30")
        told = await client.call("session.scrollback", session=session, start=0, count=2)
        assert told["wrapped"] == [True, False]
        assert "hunter2" not in "".join(told["lines"])
        raw = await client.call(
            "session.scrollback", session=session, start=0, count=2, redact=False
        )
        assert "".join(raw["lines"]) == f"0123456789{SECRET}"


# `since`.


async def test_text_shown_before_an_input_does_not_match_since_that_input(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("stty -echo; echo ok; read x; read y; echo ok; cat")
        await client.shows(session, "ok")
        told = await client.act(session, "key", "enter")
        for since in (told["mark"], told["sequence"]):
            refusal = await client.refused(
                "session.wait",
                session=session,
                matcher={"type": "contains_text", "value": "ok", "since": since},
                timeout_ms=30,
            )
            assert refusal.code == -32001
        waiting = asyncio.create_task(client.shows(session, "ok", since=told["mark"]))
        await client.act(session, "key", "enter")
        assert (await waiting)["snapshot"]["plain_text"] == "ok\nok"


async def test_the_echo_of_an_input_does_not_match_since_the_mark_of_that_input(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("printf '$ '; read x; read go; echo $x; cat")
        await client.shows(session, "$")
        told = await client.act(session, "text", "marker\n")
        await client.shows(session, "marker")
        refusal = await client.refused(
            "session.wait",
            session=session,
            matcher={"type": "contains_text", "value": "marker"},
            since=told["mark"],
            timeout_ms=30,
        )
        assert refusal.code == -32001
        await client.act(session, "key", "enter")
        found = await client.shows(session, "marker", since=told["mark"])
        assert found["snapshot"]["plain_text"].count("marker") == 2


# `session.cancel_wait`.


@pytest.mark.parametrize("whose", ["same", "another"])
async def test_a_wait_can_be_cancelled_by_its_name_from_any_connection(
    automation: Serving, whose: str
) -> None:
    async with automation() as client:
        other = client if whose == "same" else await client.another()
        session = await client.start("cat")
        matcher = {"type": "contains_text", "value": "never"}
        waiting = asyncio.create_task(
            client.refused("session.wait", session=session, matcher=matcher, wait_id="mine")
        )
        await client.call("server.capabilities")  # the wait was read before this
        told = await other.call("session.cancel_wait", wait_id="mine")
        assert told == {"cancelled": True, "wait_id": "mine", "session": session}
        refusal = await waiting
        assert refusal.code == -32005
        assert "mine" in refusal.message
        again = await other.call("session.cancel_wait", wait_id="mine")
        assert again == {"cancelled": False, "wait_id": "mine"}


async def test_a_wait_that_matched_echoes_its_name_and_frees_it(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        for _ in range(2):
            found = await client.shows(session, "ready", wait_id="mine")
            assert found["wait_id"] == "mine"
        assert "wait_id" not in await client.shows(session, "ready")
        told = await client.call("session.cancel_wait", wait_id="mine")
        assert told == {"cancelled": False, "wait_id": "mine"}


async def test_a_name_is_for_one_wait_at_a_time(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        matcher = {"type": "contains_text", "value": "never"}
        waiting = asyncio.create_task(
            client.refused("session.wait", session=session, matcher=matcher, wait_id="mine")
        )
        await client.call("server.capabilities")
        refusal = await client.refused(
            "session.wait", session=session, matcher=matcher, wait_id="mine"
        )
        assert refusal.code == -32602
        await client.call("session.cancel_wait", wait_id="mine")
        assert (await waiting).code == -32005


# `session.record`.


@pytest.mark.parametrize("version", [2, 3])
async def test_a_recording_is_an_asciicast_that_can_be_read(
    automation: Serving, tmp_path: Path, version: int
) -> None:
    path = tmp_path / "demo.cast"
    async with automation() as client:
        session = await client.start("printf 'the past '; cat; exit 3", rows=10, cols=40)
        await client.shows(session, "past")
        told = await client.call(
            "session.record", session=session, path=str(path), format=version, input=True
        )
        assert told == {"recording": True, "path": str(path)}
        await client.act(session, "text", f"hello {SECRET}\n")
        await client.call("session.resize", session=session, rows=11, cols=41)
        await client.act(session, "eof")
        await client.over(session)
    read = recording.read_recording(path.read_bytes().splitlines(keepends=True))
    assert read.header.version == version
    assert read.header.size == Size(10, 40)
    kinds = [type(event) for event in read.events]
    output = "".join(
        event.text for event in read.events if isinstance(event, recording.OutputEvent)
    )
    assert "the past" in output
    assert "hello password=" in output
    assert recording.InputEvent in kinds
    (resized,) = [event for event in read.events if isinstance(event, recording.SizeEvent)]
    assert resized.size == Size(11, 41)
    assert kinds[-1] is recording.ExitEvent
    assert read.events[-1].code == 3
    assert b"hunter2" not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_recording_without_a_path_stops_the_one_there_is(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "demo.cast"
    async with automation() as client:
        session = await client.start("cat")
        idle = await client.call("session.record", session=session)
        assert idle == {"recording": False, "path": None}
        await client.call("session.record", session=session, path=str(path), redact=False)
        await client.act(session, "text", f"{SECRET}\n")
        await client.shows(session, "\npassword=")
        told = await client.call("session.record", session=session)
        assert told == {"recording": False, "path": str(path)}
        recorded = path.read_bytes()
        assert SECRET.encode() in recorded, "raw was asked for"
        await client.act(session, "text", "afterwards\n")
        await client.shows(session, "afterwards\nafterwards")
        assert path.read_bytes() == recorded
        refusal = await client.refused("session.record", session=session, path=str(path))
        assert refusal.code == -32602
        assert "exists" in refusal.message


# `session.attach`.


class Reader:
    """Feeds what an attachment gets into a screen of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._taken = 0
        self.screen = Screen(STANDARD)
        self.got = 0
        self.resets = 0

    def text(self) -> str:
        told = [params for method, params in self._client.told if method == "session.bytes"]
        pieces = [(base64.b64decode(p["data64"]), p.get("reset", False)) for p in told]
        pieces += [(frame[5:], bool(frame[4] & 1)) for frame in self._client.frames]
        for data, reset in pieces[self._taken :]:
            if reset:
                self.resets += 1
                self.screen.close()
                self.screen = Screen(STANDARD)
            self.screen.feed(data)
            self.got += len(data)
        self._taken = len(pieces)
        return self.screen.snapshot(0).plain_text

    async def until(self, text: str) -> None:
        await self._client.until(lambda: text in self.text())


@asynccontextmanager
async def reading(client: Client) -> AsyncIterator[Reader]:
    reader = Reader(client)
    try:
        yield reader
    finally:
        reader.screen.close()


def drawn(screen: Screen) -> list[tuple[str, str, str, bool]]:
    return [
        (cell.text, cell.style.foreground, cell.style.background, cell.style.bold)
        for row in screen.rows()
        for cell in row.cells
    ]


def told_cells(snapshot: Any) -> list[tuple[str, str, str, bool]]:
    return [
        (cell["text"], *(cell["style"][name] for name in ("foreground", "background", "bold")))
        for cell in snapshot["cells"]
    ]


async def test_an_attachment_draws_the_screen_and_then_follows(automation: Serving) -> None:
    script = r"printf '\033[?1h\033]0;the title\007\033[5;3H\033[1;31mred 漢字\033[0m'; cat"
    async with automation() as client, reading(client) as reader:
        session = await client.start(script)
        await client.shows(session, "漢字")
        told = await client.call("session.attach", session=session, redact=False)
        assert list(told) == ["attachment", "size", "sequence", "binary"]
        size = {"rows": 24, "cols": 80, "pixel_width": 0, "pixel_height": 0}
        assert (told["size"], told["binary"]) == (size, False)
        await reader.until("漢字")
        snapshot = await client.call("session.snapshot", session=session)
        cursor = reader.screen.cursor
        assert drawn(reader.screen) == told_cells(snapshot)
        assert (cursor.row, cursor.col) == (snapshot["cursor"]["row"], snapshot["cursor"]["col"])
        assert (reader.screen.title, reader.screen.application_cursor) == ("the title", True)
        await client.act(session, "text", "live\n")
        await reader.until("live\nlive")
        snapshot = await client.call("session.snapshot", session=session)
        assert drawn(reader.screen) == told_cells(snapshot)
        assert reader.resets == 1


async def test_an_attachment_sends_no_more_than_it_has_credit_for(automation: Serving) -> None:
    async with automation() as client, reading(client) as reader:
        session = await client.start("printf 'hello'; read x; seq 10; printf end; cat")
        await client.shows(session, "hello")
        told = await client.call("session.attach", session=session, credit=10)
        await client.act(session, "key", "enter")
        await client.shows(session, "end")
        await client.call("server.capabilities")
        await client.until(lambda: reader.text() is not None and reader.got == 10)
        await client.call("server.capabilities")
        reader.text()
        assert reader.got == 10
        name = told["attachment"]
        granted = await client.call("session.credit", attachment=name, bytes=5)
        assert granted == {"credit": 5}
        await client.until(lambda: reader.text() is not None and reader.got == 15)
        await client.call("session.credit", attachment=name, bytes=1_000_000)
        await reader.until("end")
        assert reader.text() == await client.screen(session)
        assert reader.resets == 1


async def test_a_reader_that_falls_too_far_behind_gets_the_whole_screen_again(
    automation: Serving,
) -> None:
    async with automation() as client, reading(client) as reader:
        session = await client.start(
            "stty -echo; printf begin; read x; seq 300000; printf end; cat"
        )
        await client.shows(session, "begin")
        told = await client.call("session.attach", session=session, credit=1)
        await client.act(session, "key", "enter")
        await client.shows(session, "end")
        printed = (await client.call("session.transcript", session=session))["cursor"]
        assert printed > limits.ATTACHED_BYTES
        await client.call(
            "session.credit", attachment=told["attachment"], bytes=limits.ATTACHED_BYTES
        )
        await reader.until("end")
        assert reader.resets == 2
        assert reader.got < 100_000, "the present, and not the past"
        assert reader.text() == await client.screen(session)


async def test_on_a_websocket_the_bytes_may_come_in_binary_frames(automation: Serving) -> None:
    async with automation() as client, reading(client) as reader:
        session = await client.start(r"printf 'hello \377'; cat")
        await client.shows(session, "hello")
        told = await client.call("session.attach", session=session, binary=True)
        assert told["binary"] is (automation.way == "websocket")
        await reader.until("hello")
        await client.act(session, "text", "more\n")
        await reader.until("more\nmore")
        assert bool(client.frames) is told["binary"]
        number = int(told["attachment"][1:])
        assert {int.from_bytes(frame[:4], "big") for frame in client.frames} <= {number}
        assert [bool(frame[4]) for frame in client.frames][1:].count(True) == 0


async def test_an_attachment_hides_secrets_unless_redaction_is_off(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(f"printf 'a {SECRET} b'; read x; printf '{SECRET} c'; cat")
        await client.shows(session, " b")
        await client.call("session.attach", session=session)
        async with reading(client) as reader:
            await reader.until(" b")
            await client.act(session, "key", "enter")
            await reader.until(" c")
            assert "hunter2" not in reader.text()
        other = await client.another()
        await other.call("session.attach", session=session, redact=False)
        async with reading(other) as reader:
            await reader.until(SECRET)


async def test_a_detached_reader_receives_no_more_output(automation: Serving) -> None:
    async with automation() as client, reading(client) as reader:
        session = await client.start("printf hello; cat")
        told = await client.call("session.attach", session=session)
        await reader.until("hello")
        assert await client.call("session.detach", attachment=told["attachment"]) == {
            "detached": True
        }
        await client.act(session, "text", "more\n")
        await client.shows(session, "more\nmore")
        await client.call("server.capabilities")
        assert "more" not in reader.text()
        for method, params in (("session.detach", {}), ("session.credit", {"bytes": 1})):
            refusal = await client.refused(method, attachment=told["attachment"], **params)
            assert refusal.code == -32602
            assert told["attachment"] in refusal.message


async def test_an_attachment_ends_with_its_session(automation: Serving) -> None:
    async with automation() as client, reading(client) as reader:
        session = await client.start(
            "stty -echo; printf begin; read x; seq 300000; printf end; cat"
        )
        await client.shows(session, "begin")
        told = await client.call("session.attach", session=session, credit=1)
        await client.act(session, "key", "enter")
        await client.shows(session, "end")  # it missed so much that its screen is to be drawn anew
        await client.call("session.close", session=session)
        refusal = await client.refused("session.credit", attachment=told["attachment"], bytes=1000)
        assert refusal.code == -32602
        for _ in range(10):  # what would be sent has its turns meanwhile
            await client.call("session.list")
        reader.text()
        assert reader.got == 1


async def test_an_attachment_is_its_connections_own(automation: Serving) -> None:
    async with automation() as client:
        other = await client.another()
        session = await client.start("cat")
        told = await client.call("session.attach", session=session)
        refusal = await other.refused("session.credit", attachment=told["attachment"], bytes=1)
        assert refusal.code == -32602


# `session.lease`.


async def test_only_the_lease_holder_can_type_and_a_refusal_names_the_holder(
    automation: Serving,
) -> None:
    async with automation() as client:
        other = await client.another()
        session = await client.start("cat")
        leased = await client.call("session.lease", session=session, holder="Ada")
        assert list(leased) == ["holder", "who"]
        assert leased["holder"] == "Ada"
        text = {"type": "text", "value": "x"}
        for method, params in (
            ("session.input", {"action": text}),
            ("session.resize", {"rows": 10, "cols": 10}),
            ("session.lease", {"holder": "Bob"}),
        ):
            refusal = await other.refused(method, session=session, **params)
            assert refusal.code == -32004
            named = {"method": method, "session": session, **leased}
            assert refusal.data == named
            assert "Ada" in refusal.message
        await other.screen(session)  # reading is not typing
        assert (await client.act(session, "text", "mine\n"))["sent"] is True
        await other.shows(session, "mine\nmine")
        released = await client.call("session.lease", session=session, holder="Ada", release=True)
        assert released == {"holder": None}
        assert (await other.act(session, "text", "ours\n"))["sent"] is True


async def test_a_lease_can_be_taken_over(automation: Serving) -> None:
    async with automation() as client:
        other = await client.another()
        session = await client.start("cat")
        await client.call("session.lease", session=session, holder="Ada")
        taken = await other.call("session.lease", session=session, holder="Bob", take_over=True)
        assert taken["holder"] == "Bob"
        refusal = await client.refused(
            "session.input", session=session, action={"type": "text", "value": "x"}
        )
        assert (refusal.code, refusal.data["holder"]) == (-32004, "Bob")


async def test_a_lease_ends_with_its_connection(automation: Serving) -> None:
    async with automation() as client:
        other = await client.another()
        session = await client.start("cat")
        await other.call("session.lease", session=session, holder="Bob")
        await other.leave()
        assert (await client.act(session, "text", "free\n"))["sent"] is True


async def test_a_lease_is_of_one_session(automation: Serving) -> None:
    async with automation() as client:
        other = await client.another()
        first, second = await client.start("cat"), await client.start("cat")
        await client.call("session.lease", session=first, holder="Ada")
        assert (await other.act(second, "text", "x"))["sent"] is True
