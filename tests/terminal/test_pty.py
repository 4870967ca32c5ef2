"""A child on a terminal: what it finds there, what it prints, what is typed to it, how it ends."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from telex.processes.child import Exit
from telex.processes.spawn import NoSuchDirectory, NoSuchProgram
from telex.processes.termination import AT_ONCE
from telex.terminal import limits
from telex.terminal.cells import Size
from telex.terminal.pty import (
    LINGER_SECONDS,
    QUIET_SECONDS,
    InputQueue,
    InputQueueFull,
    LineSettings,
    OutOfTerminals,
    Pty,
    PtyClosed,
    open_pty,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Heard:
    """What a terminal said, with waits for it."""

    def __init__(self) -> None:
        self.said = bytearray()
        self.reads = 0
        self.ends = 0
        self._changed = asyncio.Event()

    def output(self, data: bytes) -> None:
        assert data
        assert not self.ends, "more was said after the end"
        self.said += data
        self.reads += 1
        self._changed.set()

    def ended(self) -> None:
        assert not self.ends, "the end was told twice"
        self.ends += 1
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    async def text(self, *pieces: bytes) -> None:
        await self.until(lambda: all(piece in self.said for piece in pieces))

    async def end(self) -> bytes:
        await self.until(lambda: self.ends)
        return bytes(self.said)


def opened(argv: list[str], **how: Any) -> tuple[Pty, Heard]:
    heard = Heard()
    how = {"size": Size(), "output": heard.output, "ended": heard.ended} | how
    return open_pty(argv, **how), heard


def shell(script: str, **how: Any) -> tuple[Pty, Heard]:
    return opened(["sh", "-c", script], **how)


async def said(script: str, **how: Any) -> str:
    """All that a script prints."""
    pty, heard = shell(script, **how)
    async with pty:
        return (await heard.end()).decode().replace("\r\n", "\n")


async def in_foreground(pty: Pty, name: str) -> None:
    """Nobody announces a change of the foreground group, nor that a shell's child has become what
    it was forked for; before that a signal to it can be lost."""
    while _comm(pty.foreground()) != name:
        await asyncio.sleep(0)


def _comm(pid: int | None) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


# What the child finds.


@pytest.mark.each_loop
async def test_the_child_is_on_a_terminal_of_its_own() -> None:
    script = "tty; test -t 0 && test -t 1 && test -t 2 && echo all; ps -o tty= -p $$"
    name, all_three, controlling = (await said(script)).split()
    assert re.fullmatch(r"/dev/pts/\d+", name)
    assert all_three == "all"
    assert name == f"/dev/{controlling}"


async def test_the_size_is_there_before_the_child_is() -> None:
    assert await said("stty size", size=Size(33, 101)) == "33 101\n"


PIXELS = "import fcntl, struct, termios; print(struct.unpack('HHHH', fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))))"


async def test_the_size_has_pixels(program: Callable[[str], str]) -> None:
    pty, heard = opened([program("python3"), "-c", PIXELS], size=Size(24, 80, 640, 480))
    async with pty:
        assert b"(24, 80, 640, 480)" in await heard.end()


async def test_the_terminal_is_sane_and_erases_whole_characters() -> None:
    settings = (await said("stty -a")).split()
    for expected in ("icanon", "echo", "isig", "icrnl", "opost", "onlcr", "iutf8"):
        assert expected in settings


async def test_the_environment_follows_the_rules_and_the_overrides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("GONE", "gone")
    monkeypatch.setenv("TMUX", "/outer")
    script = "echo $TERM,$KEPT,$GONE,$TMUX,$MORE"
    env = {"GONE": None, "MORE": "more"}
    assert await said(script, env=env) == "xterm-256color,kept,,,more\n"


async def test_the_child_starts_in_its_directory(tmp_path: Path) -> None:
    assert await said("pwd", cwd=str(tmp_path)) == f"{tmp_path}\n"


async def test_an_interactive_shell_has_job_control(program: Callable[[str], str]) -> None:
    argv = [program("bash"), "--norc", "--noprofile", "-i"]
    pty, heard = opened(argv, env={"PS1": "ready> "})
    async with pty:
        await heard.text(b"ready> ")
        pty.write(b"sleep 1000 & jobs\n")
        await heard.text(b"Running")
        pty.write(b"fg\n")
        await heard.until(lambda: heard.said.count(b"sleep 1000") >= 3)
        await in_foreground(pty, "sleep")
        pty.write(pty.line_settings().interrupt)
        await heard.text(b"^C")
        pty.write(b"exit 7\n")
        assert await pty.child.wait() == Exit(7)
    assert b"job control" not in heard.said


async def test_a_resize_reaches_the_program() -> None:
    script = "trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.01; done"
    pty, heard = shell(script)
    async with pty:
        await heard.text(b"up")
        pty.resize(Size(10, 20))
        await heard.text(b"10 20")


@pytest.mark.parametrize(
    ("argv", "how", "failure"),
    [(["no such"], {}, NoSuchProgram), (["true"], {"cwd": "/no/such"}, NoSuchDirectory)],
)
async def test_a_failed_start_reports_its_reason_and_leaves_nothing(
    argv: list[str], how: dict[str, str], failure: type[Exception]
) -> None:
    with pytest.raises(failure, match="no such"):
        opened(argv, **how)


async def test_running_out_of_terminals_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "openpty", none_left)
    with pytest.raises(OutOfTerminals, match="No space left"):
        opened(["true"])


# What is typed.


@pytest.mark.each_loop
async def test_input_reaches_the_program_and_its_output_comes_back() -> None:
    pty, heard = shell("read line; echo got $line")
    async with pty:
        pty.write(b"this\n")
        assert b"got this" in await heard.end()
    assert pty.child.exit == Exit(0)


@pytest.mark.each_loop
async def test_a_megabyte_goes_through_a_program_that_answers_every_byte() -> None:
    """Both sides write at once, and neither waits for the other for ever."""
    pty, heard = shell("stty raw -echo; echo up; exec cat")
    async with pty:
        await heard.text(b"up")
        heard.said.clear()
        sent = os.urandom(limits.INPUT_BYTES_QUEUED)
        pty.write(sent)
        assert pty.unsent > 0
        await pty.drained()
        assert pty.unsent == 0
        await heard.until(lambda: len(heard.said) == len(sent))
        assert heard.said == sent


async def test_input_beyond_the_bound_is_refused_whole() -> None:
    pty, heard = shell("stty raw -echo; echo up; read x; exec sleep 1000")
    async with pty:
        await heard.text(b"up")
        pty.write(bytes(limits.INPUT_BYTES_QUEUED))
        queued = pty.unsent
        assert 0 < queued < limits.INPUT_BYTES_QUEUED
        room = limits.INPUT_BYTES_QUEUED - queued
        with pytest.raises(InputQueueFull, match=f"{room + 1} bytes"):
            pty.write(bytes(room + 1))
        assert pty.unsent == queued
        pty.write(bytes(room))
        pty.write(b"\x03", urgent=True)
        await pty.end(AT_ONCE)
        await pty.drained()
        assert pty.unsent == 0


def test_urgent_bytes_overtake_queued_input_and_not_each_other() -> None:
    box = InputQueue()
    box.put(b"paste")
    box.taken(2)
    box.put(b"\x03", urgent=True)
    box.put(b"\x04", urgent=True)
    box.put(b"more")
    assert box.next() == b"\x03\x04stemore"
    box.taken(1)
    box.put(b"\x05", urgent=True)
    assert box.next() == b"\x04\x05stemore"
    box.taken(3)
    box.put(b"\x06", urgent=True)
    assert box.next() == b"\x06temore"


def test_urgent_bytes_have_room_of_their_own_and_a_bound() -> None:
    box = InputQueue()
    box.put(bytes(limits.INPUT_BYTES_QUEUED))
    box.put(bytes(limits.URGENT_BYTES_QUEUED), urgent=True)
    for urgent in (True, False):
        with pytest.raises(InputQueueFull):
            box.put(b"x", urgent=urgent)
    assert len(box) == limits.INPUT_BYTES_QUEUED + limits.URGENT_BYTES_QUEUED


@pytest.mark.each_loop
@pytest.mark.parametrize("settings", ["icanon", "-icanon", "-icanon -echo"])
@pytest.mark.parametrize("lines", [1, 60, 600, 10_000])
async def test_an_interrupt_reaches_a_program_that_does_not_read_its_paste(
    settings: str, lines: int
) -> None:
    pty, heard = shell(f"stty {settings}; echo up; exec sleep 1000")
    async with pty:
        await heard.text(b"up")
        pty.write((b"x" * 79 + b"\n") * lines)
        pty.interrupt()
        assert await pty.child.wait() == Exit(signal=signal.SIGINT)


async def test_input_typed_before_an_interrupt_is_discarded(
    program: Callable[[str], str],
) -> None:
    argv = [program("bash"), "--norc", "--noprofile", "-i"]
    pty, heard = opened(argv, env={"PS1": "ready> "})
    async with pty:
        await heard.text(b"ready> ")
        pty.write(b"stty -echo; echo up; sleep 1000\n")
        await heard.text(b"up\r\n")
        await in_foreground(pty, "sleep")
        pty.write(b"echo obeyed\n" * 10_000)
        pty.interrupt()
        pty.write(b"echo after\n")
        await heard.text(b"after")
    assert b"obeyed" not in heard.said


async def test_an_interrupt_that_is_input_overtakes_the_paste_and_loses_nothing(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pty, heard = shell(f"stty raw -echo; echo up; read x <{gate}; exec cat")
    async with pty:
        await heard.text(b"up")
        heard.said.clear()
        pty.write(b"p" * 200_000)
        assert pty.unsent > 0
        pty.interrupt()
        gate.write_text("open\n")
        await heard.until(lambda: len(heard.said) >= 200_001)
        assert heard.said.count(b"p") == 200_000
        assert heard.said.count(b"\x03") == 1
        assert heard.said.index(b"\x03") < 100_000


# Reading, held back.


@pytest.mark.each_loop
async def test_a_paused_terminal_makes_its_program_wait() -> None:
    pty, heard = opened(["yes"])
    async with pty:
        await heard.text(b"y")
        pty.pause()
        pty.pause()
        reads = heard.reads
        await asyncio.sleep(0.05)
        assert heard.reads == reads
        assert _waits_in_kernel(pty.child.pid)
        pty.resume()
        pty.resume()
        await heard.until(lambda: heard.reads > reads + 100)


def _waits_in_kernel(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


async def test_reading_can_be_paused_from_the_callback_itself() -> None:
    reads: list[bytes] = []

    def output(data: bytes) -> None:
        reads.append(data)
        pty.pause()

    pty, heard = opened(["yes"], output=output)
    async with pty:
        for count in range(1, 20):
            while len(reads) < count:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(reads) == count
            pty.resume()
    assert heard.ends == 1


async def test_the_last_output_is_kept_while_paused() -> None:
    pty, heard = shell("echo last words")
    async with pty:
        pty.pause()
        await pty.child.wait()
        await asyncio.sleep(0.15)
        assert (bytes(heard.said), heard.ends) == (b"", 0)
        pty.resume()
        assert await heard.end() == b"last words\r\n"


async def test_the_last_output_is_delivered_at_the_exit_even_if_paused() -> None:
    pty, heard = shell("echo last words")
    pty.pause()
    async with pty:
        await pty.child.wait()
    assert (bytes(heard.said), heard.ends) == (b"last words\r\n", 1)


# The line discipline.


async def test_the_special_characters_are_those_the_program_set() -> None:
    script = "read x; stty intr ^X eof ^Y erase ^H susp undef -echo; echo up; read x"
    pty, heard = shell(script)
    async with pty:
        assert pty.line_settings() == LineSettings()
        pty.write(b"\n")
        await heard.text(b"up")
        now = pty.line_settings()
        assert (now.interrupt, now.eof, now.erase, now.suspend) == (b"\x18", b"\x19", b"\x08", b"")
        assert (now.echo, now.canonical, now.signals) == (False, True, True)
        assert pty.foreground() == pty.child.pid
    assert pty.line_settings() == LineSettings()
    assert pty.foreground() is None


async def test_a_terminal_whose_child_has_exited_can_still_be_queried() -> None:
    pty, heard = shell("exit 3")
    async with pty:
        await heard.end()
        assert pty.line_settings() == LineSettings()
        assert pty.foreground() is None
        pty.resize(Size(10, 10))
        pty.write(b"too late")
        assert pty.unsent == 0
        await pty.drained()
        pty.pause()
        pty.resume()


# The end.


@pytest.mark.each_loop
@pytest.mark.parametrize(
    ("script", "how"), [("exit 3", Exit(3)), ("kill -9 $$", Exit(signal=signal.SIGKILL))]
)
async def test_the_exit_has_its_code_or_signal(script: str, how: Exit) -> None:
    over: asyncio.Future[Exit | None] = asyncio.get_running_loop().create_future()
    pty, _ = shell(script, ended=lambda: over.set_result(pty.child.exit))
    async with pty:
        assert await over == how


async def test_a_program_left_in_the_background_does_not_delay_the_exit() -> None:
    loop = asyncio.get_running_loop()
    pty, heard = shell("trap '' HUP; sleep 1000 & echo bye")
    began = loop.time()
    async with pty:
        assert await heard.end() == b"bye\r\n"
        assert loop.time() - began >= QUIET_SECONDS


async def test_output_of_a_program_left_in_the_background_is_read_until_it_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.terminal.pty.QUIET_SECONDS", 2.0)  # 0.05 s may last longer
    monkeypatch.setattr("telex.terminal.pty.LINGER_SECONDS", 60.0)
    pty, heard = shell(
        "trap '' HUP; (for n in 1 2 3 4 5 6; do sleep 0.05; echo $n; done; sleep 9) &"
    )
    async with pty:
        assert (await heard.end()).split() == [b"1", b"2", b"3", b"4", b"5", b"6"]


@pytest.mark.parametrize("listener", ["steady", "halting"])
async def test_endless_output_of_a_program_left_in_the_background_is_cut_off(
    listener: str,
) -> None:
    loop = asyncio.get_running_loop()

    def output(data: bytes) -> None:
        if listener == "halting":
            pty.pause()
            loop.call_later(0.001, pty.resume)

    pty, heard = shell("trap '' HUP; yes &", output=output)
    began = loop.time()
    async with pty:
        await heard.end()
        assert loop.time() - began >= LINGER_SECONDS


async def test_all_output_of_the_child_is_read_however_slow_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Although something in the background keeps talking, long after the time for that."""
    monkeypatch.setattr("telex.terminal.limits.OUTPUT_BYTES", 4096)
    loop = asyncio.get_running_loop()
    said = bytearray()

    def output(data: bytes) -> None:
        said.extend(data)
        pty.pause()
        loop.call_later(0.12, pty.resume)

    script = "trap '' HUP; stty -opost; head -c 10000 /dev/zero | tr '\\0' x; printf END; yes &"
    pty, heard = shell(script, output=output)
    pty.pause()
    async with pty:
        await pty.child.wait()
        await asyncio.sleep(2.1)
        pty.resume()
        await heard.end()
    assert b"END" in said


async def test_a_child_may_close_its_terminal_and_open_it_again() -> None:
    script = "exec <&- >&- 2>&-; sleep 0.2; exec </dev/tty >/dev/tty; echo back; read x; echo $x"
    pty, heard = shell(script)
    async with pty:
        await heard.text(b"back")
        pty.write(b"again\n")
        assert (await heard.end()).endswith(b"again\r\n")


# Closing.


async def test_after_closing_nothing_is_called_back_and_nothing_can_be_typed() -> None:
    pty, heard = opened(["yes"])
    await heard.text(b"y")
    pty.close()
    pty.close()
    reads = heard.reads
    for use in (lambda: pty.write(b"x"), lambda: pty.resize(Size())):
        with pytest.raises(PtyClosed):
            use()
    await pty.drained()
    assert await pty.child.wait() == Exit(signal=signal.SIGHUP)
    await pty.end()
    assert (heard.reads, heard.ends) == (reads, 0)
    assert (pty.line_settings(), pty.foreground(), pty.unsent) == (LineSettings(), None, 0)


async def test_a_terminal_can_be_closed_from_its_own_callback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "telex.terminal.limits.TURN_MILLISECONDS", 10_000
    )  # the turn is not over by time
    closed = asyncio.Event()

    def output(data: bytes) -> None:
        pty.write(bytes(100_000))
        pty.close()
        closed.set()

    pty, heard = opened(["yes"], output=output)
    await closed.wait()
    await pty.end(AT_ONCE)
    assert heard.ends == 0


async def test_closing_wakes_callers_that_wait_for_a_drain() -> None:
    pty, heard = shell("stty raw -echo; echo up; exec sleep 1000")
    await heard.text(b"up")
    pty.write(bytes(limits.INPUT_BYTES_QUEUED))
    waiting = asyncio.create_task(pty.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    pty.close()
    await waiting
    await pty.child.end(AT_ONCE)
