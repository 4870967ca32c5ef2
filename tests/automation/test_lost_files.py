"""A recording or a raw transcript that cannot be written is told, and what was written is whole."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import telex
from automating import Client, Serving
from disks import KINDS, fill, limited, mounted, small_disk
from telex.terminal import recording

__all__ = ["small_disk"]

NO_ROOM = {errno.ENOSPC, errno.EFBIG}
FLOOD = "read x; seq 100000; printf end; read x"


@pytest.fixture
def automation(tmp_path: Path) -> Serving:
    """One way is enough: how a notice travels is tested elsewhere."""
    return Serving("unix, ndjson", tmp_path)


def failures(client: Client) -> list[dict[str, Any]]:
    return [params for method, params in client.told if method == "session.recording_failed"]


def whole(path: Path) -> recording.Recording:
    """A recording of whole lines only."""
    content = path.read_bytes()
    assert content.endswith(b"\n")
    return recording.read_recording(content.splitlines(keepends=True))


async def flooded(client: Client, session: str) -> None:
    await client.act(session, "text", "\n")
    await client.shows(session, "end")


async def test_a_recording_that_fills_the_disk_reports_an_error_and_ends_with_a_whole_line(
    automation: Serving, small_disk: Path
) -> None:
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        path = small_disk / "demo.cast"
        session = await client.start(FLOOD)
        await client.call("session.record", session=session, path=str(path))
        await flooded(client, session)
        await client.until(lambda: failures(client))
        (failed,) = failures(client)
        assert failed.pop("errno") in NO_ROOM
        assert failed.pop("sequence") > 0
        assert " " in failed.pop("reason")
        assert failed == {"session": session, "kind": "recording", "path": str(path)}
        assert whole(path).events, "what came before is kept"
        refusal = await client.refused("session.record", session=session)
        assert refusal.code == -32603
        assert refusal.data["kind"] == "recording_failed"
        assert refusal.data["path"] == str(path)
        assert "is incomplete" in refusal.message
        assert await client.call("session.record", session=session) == {
            "recording": False,
            "path": None,
        }


async def test_a_raw_transcript_that_fills_the_disk_reports_an_error_and_keeps_the_part_that_fits(
    automation: Serving, small_disk: Path
) -> None:
    async with automation() as client:
        path = small_disk / "raw"
        session = await client.start(FLOOD, raw_transcript_path=str(path))
        await flooded(client, session)
        late = await client.another()
        await late.call("server.set_notifications", enabled=True)
        await late.until(lambda: failures(late))
        (failed,) = failures(late)
        assert failed["kind"] == "raw_transcript"
        assert failed["errno"] in NO_ROOM
        assert path.read_bytes().lstrip().startswith(b"1\r\n2\r\n3\r\n")
        assert path.stat().st_size > 10_000


@pytest.mark.skipif("tmpfs" not in KINDS, reason="file systems cannot be mounted here")
async def test_on_a_full_disk_nothing_is_begun_and_no_file_is_left(
    automation: Serving, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk):
        filled = fill(disk)
        async with automation() as client:
            refusal = await client.refused(
                "session.create", program="cat", raw_transcript_path=str(disk / "raw")
            )
            assert refusal.code == -32602
            assert "is full" in refusal.message
            session = await client.start("cat")
            refusal = await client.refused(
                "session.record", session=session, path=str(disk / "demo.cast")
            )
            assert refusal.code == -32602
            assert "is full" in refusal.message
            assert [path.name for path in disk.iterdir()] == ["filled"]
            filled.unlink()
            told = await client.call(
                "session.record", session=session, path=str(disk / "demo.cast")
            )
            assert told["recording"]


async def test_a_screen_that_does_not_fit_is_no_recording(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "demo.cast"
    async with automation() as client:
        session = await client.start("seq 1000; cat")
        await client.shows(session, "1000")
        with limited(60):
            refusal = await client.refused("session.record", session=session, path=str(path))
        assert (refusal.code, refusal.data["kind"]) == (-32603, "recording_failed")
        assert not path.exists()


@pytest.mark.parametrize("kind", ["recording", "raw_transcript"])
@pytest.mark.parametrize("deed", ["removed", "replaced", "emptied"])
async def test_a_file_removed_or_replaced_during_recording_reports_an_error(
    automation: Serving, tmp_path: Path, kind: str, deed: str
) -> None:
    path, raw = tmp_path / "file", tmp_path / "raw"
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start("printf one; cat", raw_transcript_path=str(raw))
        await client.call("session.record", session=session, path=str(path))
        await client.shows(session, "one")
        taken = path if kind == "recording" else raw
        match deed:
            case "removed":
                taken.unlink()
            case "replaced":
                (tmp_path / "new").write_bytes(b"new")
                os.replace(tmp_path / "new", taken)
            case "emptied":
                os.truncate(taken, 0)
        await client.act(session, "text", "two\n")
        await client.until(lambda: failures(client))
        (failed,) = failures(client)
        assert failed["kind"] == kind
        assert ("removed or replaced" if deed != "emptied" else "truncated") in failed["reason"]
        if deed == "replaced":
            assert taken.read_bytes() == b"new"


async def test_stopping_a_recording_whose_file_was_removed_reports_an_error(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "demo.cast"
    async with automation() as client:
        session = await client.start("cat")
        await client.call("session.record", session=session, path=str(path))
        path.unlink()
        refusal = await client.refused("session.record", session=session)
        assert "removed or replaced" in refusal.message


async def test_the_python_client_raises_an_error_for_an_incomplete_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "demo.cast"
    async with telex.spawn(["sh", "-c", FLOOD]) as term:
        await term.record(path)
        with limited():
            await term.type("\n")
            await term.wait("end")
        assert whole(path).events
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        with pytest.raises(telex.RecordingLost, match="is incomplete"):
            await term.record(None)
        await term.record(None)


async def test_closing_a_terminal_with_an_incomplete_recording_warns(
    tmp_path: Path,
) -> None:
    path = tmp_path / "demo.cast"
    term = await telex.spawn("cat")
    await term.record(path)
    path.unlink()
    with pytest.warns(RuntimeWarning, match="is incomplete: the file was removed"):
        await term.close()


async def test_a_failed_file_does_not_stop_the_session_nor_the_other_file(
    automation: Serving, tmp_path: Path
) -> None:
    path, raw = tmp_path / "demo.cast", tmp_path / "raw"
    async with automation() as client:
        session = await client.start("printf one; cat", raw_transcript_path=str(raw))
        await client.shows(session, "one")
        await client.call("session.record", session=session, path=str(path))
        raw.unlink()
        await client.act(session, "text", "two\n")
        await client.shows(session, "two\ntwo")
        assert await client.call("session.record", session=session) == {
            "recording": False,
            "path": str(path),
        }
        assert "two" in "".join(
            event.text for event in whole(path).events if isinstance(event, recording.OutputEvent)
        )


async def test_a_file_error_during_close_is_reported_before_the_session_is_removed(
    automation: Serving, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start("cat", raw_transcript_path=str(raw))
        raw.unlink()
        await client.call("session.close", session=session)
        await client.until(lambda: failures(client))
        await asyncio.sleep(0)
        assert len(failures(client)) == 1
