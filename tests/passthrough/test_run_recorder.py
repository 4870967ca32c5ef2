"""`telex record` and `telex replay`, on a person's terminal and without one."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from passthrough.person import TELEX, at_terminal
from telex.passthrough.player import PlaybackPace, steps
from telex.terminal.cells import Size
from telex.terminal.recording import (
    ExitEvent,
    Header,
    InputEvent,
    OutputEvent,
    Recording,
    SizeEvent,
    read_recording,
)

if TYPE_CHECKING:
    from pathlib import Path

RECORD = (*TELEX, "record")
SECRET = "sk-abcdefghijklmnopqrstuvwx"


def recorded(path: Path) -> Recording:
    with path.open("rb") as lines:
        return read_recording(lines)


def texts(recording: Recording, kind: type[OutputEvent | InputEvent]) -> str:
    return "".join(event.text for event in recording.events if isinstance(event, kind))


@pytest.mark.parametrize("version", [2, 3])
async def test_output_sizes_and_the_exit_code_are_recorded(tmp_path: Path, version: int) -> None:
    file = tmp_path / "demo.cast"
    script = f"trap 'echo resized; exit 4' WINCH; echo token={SECRET}; while :; do sleep 0.01; done"
    argv = (*RECORD, f"--format={version}", str(file), "--", "sh", "-c", script)
    async with at_terminal(*argv, size=Size(30, 90), TERM="vt220") as person:
        await person.sees(SECRET)
        person.pty.resize(Size(20, 50))
        assert await person.leaves() == 4
        await person.sees(f"telex: recorded in {file}\r\n")
        assert person.restored()
    recording = recorded(file)
    header = recording.header
    assert (header.version, header.size, header.term) == (version, Size(30, 90), "vt220")
    assert texts(recording, OutputEvent) == "token=[REDACTED]\r\nresized\r\n"
    sizes = [event.size for event in recording.events if isinstance(event, SizeEvent)]
    assert sizes == [Size(20, 50)]
    last = recording.events[-1]
    assert isinstance(last, ExitEvent)
    assert last.code == 4
    assert file.stat().st_mode & 0o777 == 0o600
    assert SECRET not in file.read_text()


ASK = 'echo name; read name; stty -echo; echo word; read word; stty echo; echo "$name:$word"'


@pytest.mark.parametrize(
    ("options", "typed"),
    [([], ""), (["--input"], "joe\r"), (["--input", "--raw"], "joe\rhunter22\r")],
)
async def test_input_is_recorded_on_request_and_never_without_echo(
    tmp_path: Path, options: list[str], typed: str
) -> None:
    file = tmp_path / "demo.cast"
    async with at_terminal(*RECORD, *options, str(file), "--", "sh", "-c", ASK) as person:
        await person.sees("name")
        await person.asks("joe\r", "word")
        person.type("hunter22\r")
        assert await person.leaves() == 0
    assert texts(recorded(file), InputEvent) == typed


async def test_a_killed_recorder_leaves_a_recording_up_to_the_kill(tmp_path: Path) -> None:
    file = tmp_path / "demo.cast"
    argv = (*RECORD, str(file), "--", "sh", "-c", "echo one; sleep 100")
    async with at_terminal(*argv, TMPDIR=str(tmp_path)) as person:  # its socket is left
        await person.sees("one")
        os.kill(person.pid, signal.SIGKILL)
        await person.leaves()
    assert texts(recorded(file), OutputEvent) == "one\r\n"


FLOOD = "echo first; read x; seq 20000; exit 3"


@pytest.mark.parametrize("version", [2, 3])
async def test_a_full_disk_ends_the_recording_with_a_whole_line_and_not_the_program(
    tmp_path: Path, version: int
) -> None:
    file = tmp_path / "demo.cast"
    script = 'ulimit -f 8; exec "$@"'
    argv = (*RECORD, f"--format={version}", str(file), "--", "sh", "-c", FLOOD)
    async with at_terminal("bash", "-c", script, "bash", *argv) as person:
        await person.sees("first")
        person.type("\r")
        assert await person.leaves() == 3
        await person.sees(f"the recording in {file} is incomplete: File too large")
        assert b"\r\n20000\r\n" in person.seen
    assert file.read_bytes().endswith(b"]\n")
    assert texts(recorded(file), OutputEvent).startswith("first\r\n")


PLAYED = Recording(
    Header(2, Size(), idle_time_limit=3.0),
    (OutputEvent(1.0, "a"), InputEvent(5.0, "x"), OutputEvent(9.0, "b"), OutputEvent(9.5, "c")),
)


@pytest.mark.parametrize(
    ("pace", "pauses"),
    [
        (PlaybackPace(), [1.0, 3.0, 0.5]),
        (PlaybackPace(speed=2), [0.5, 1.5, 0.25]),
        (PlaybackPace(max_pause=0.75), [0.75, 0.75, 0.5]),
        (PlaybackPace(at_once=True), [0, 0, 0]),
    ],
)
def test_pauses_are_as_recorded_as_bounded_and_as_sped_up(
    pace: PlaybackPace, pauses: list[float]
) -> None:
    assert list(steps(PLAYED, pace)) == list(zip(pauses, "abc", strict=True))


def cast(path: Path, *lines: str) -> str:
    path.write_text(
        '{"version":2,"width":100,"height":30}\n' + "".join(f"{one}\n" for one in lines)
    )
    return str(path)


async def test_a_replay_plays_the_recording_and_restores_the_terminal(tmp_path: Path) -> None:
    file = cast(
        tmp_path / "demo.cast",
        '[0.0,"o","\\u001b[?1049h\\u001b[?25l\\u001b[5 qone"]',
        '[0.01,"o","two"]',
        '[99.0,"o","never"]',
    )
    async with at_terminal(*TELEX, "replay", file) as person:
        await person.sees("100x30 (columns x rows), this terminal only 80x24")
        await person.sees("onetwo")
        assert person.raw()
        person.type(" ")
        person.type("q")
        assert await person.leaves() == 0
        await person.sees("\x1b[?1049l")
        await person.sees("\x1b[?25h")
        await person.sees("\x1b[0 q")
        assert person.restored()
    assert b"never" not in person.seen


@pytest.mark.parametrize(
    ("how", "code"), [("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_replay_can_be_quit_in_the_middle(
    tmp_path: Path, how: str | signal.Signals, code: int
) -> None:
    file = cast(tmp_path / "demo.cast", '[0.0,"o","one"]', '[99.0,"o","never"]')
    async with at_terminal(*TELEX, "replay", file) as person:
        await person.sees("one")
        if isinstance(how, str):
            person.type(how)
        else:
            os.kill(person.pid, how)
        assert await person.leaves() == code
        assert person.restored()


async def test_a_paused_replay_continues_where_it_was(tmp_path: Path) -> None:
    file = cast(tmp_path / "demo.cast", '[0.0,"o","one"]', '[0.4,"o","two"]')
    async with at_terminal(*TELEX, "replay", file) as person:
        await person.sees("one")
        person.type(" ")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.8):
                await person.sees("two")
        person.type(" ")
        await person.sees("two")
        assert await person.leaves() == 0
