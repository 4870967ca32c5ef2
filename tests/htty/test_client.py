"""The terminal's side of pages: where a connection begins and ends, and when bytes are typed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies

from htty.serving_pages import PROGRAM, PYTHON, SERVER, SETTINGS
from telex.htty import tty_writer
from telex.htty.chunk_stream import GoAwayWatch, begins_connection
from telex.htty.client import HttyClient, Offer, ProcessGroup
from telex.htty.errors import ConnectionOver
from telex.htty.tty_writer import reads_raw_input
from telex.processes.proc import answerable_group
from telex.terminal.cells import Size
from telex.terminal.pty import Pty, open_pty
from telex.wire import htty_chunk, limits
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from telex.terminal.line_discipline import LineSettings

FINAL = b"\0\0\x08\x07\0\0\0\0\0" + b"\0\0\0\x05" + bytes(4)
FIRST = b"\0\0\x08\x07\0\0\0\0\0" + b"\x7f\xff\xff\xff" + bytes(4)
PING = b"\0\0\x08\x06\0\0\0\0\0" + bytes([7]) * 8
BASH = ("bash", "--norc", "--noprofile", "-i")
FLOODING = SERVER.replace(
    'elif key == b"p":',
    """elif key == b"f":
            send(frame(6, 0, 0, bytes(8)) * 1000)
        elif key == b"q":
            import select
            send(frame(6, 0, 0, bytes(8)) * 10)
            select.select([0], [], [])
            send(frame(6, 0, 0, bytes(8)) * 1000)
            termios.tcdrain(1)
            print("flooded", flush=True)
            signal.sigwait([signal.SIGUSR1])
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            print("asks", flush=True)
            print("answered", ascii(input()), flush=True)
        elif key == b"p":""",
).replace(
    "elif kind == 6 and",
    'elif kind == 7:\n            print("dismissed", payload[7])\n        elif kind == 6 and',
)
FLOODING = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n" + FLOODING
"""`f` sends too many PINGs and continues to read; `q` sends them and then prompts its person."""
CHUNK_SIZE = len(htty_chunk.encode(bytes(limits.CHUNK_BYTES)))


class Recorded:
    """A `Pty` that records the bytes typed into it."""

    def __init__(self, pty: Pty) -> None:
        self._pty = pty
        self.typed = bytearray()

    def write(self, data: bytes) -> None:
        self.typed += data
        self._pty.write(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._pty, name)


class Terminal:
    """A program on a terminal, with an `HttyClient`. Created by `terminal`."""

    def __init__(self, argv: tuple[str, ...], *, eager: bool) -> None:
        self.shown = bytearray()
        self.offers: list[Offer] = []
        self.ended: list[Offer] = []
        self.accepting = True
        self.remote = False
        self._news = asyncio.Event()
        self._demux = Demux((htty_chunk.CHUNK,))
        self.pty = open_pty(
            argv,
            size=Size(24, 80),
            env={"PS1": "$ ", "PROMPT_COMMAND": None},
            output=self._output,
            ended=self._news.set,
        )
        self.line = Recorded(self.pty)
        self.side = HttyClient(self.line, self._opened, self._over, eager=eager)  # type: ignore[arg-type]

    def _output(self, data: bytes) -> None:
        for event in self._demux.feed(data):
            match event:
                case Visible(shown):
                    self.shown += shown
                case Claimed() | Fault():
                    self.side.receive_chunk(event)
        self.side.poke()
        self._news.set()

    def _opened(self, offer: Offer) -> None:
        self.offers.append(offer)
        if self.accepting:
            self.side.accept(offer, remote=self.remote)
        self._news.set()

    def _over(self, offer: Offer) -> None:
        self.ended.append(offer)
        self._news.set()

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not true():
                self._news.clear()
                await self._news.wait()

    async def shows(self, text: str, times: int = 1) -> None:
        try:
            await self.until(lambda: self.shown.count(text.encode()) >= times)
        except TimeoutError:
            raise AssertionError(f"no {text!r} in {bytes(self.shown)!r}") from None

    async def offer(self, number: int = 1) -> Offer:
        await self.until(lambda: len(self.offers) >= number)
        return self.offers[number - 1]

    async def get(self, offer: Offer, path: str = "/") -> bytes:
        http_stream = await offer.http.request(
            [
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":authority", b"htty.local"),
                (b":path", path.encode()),
            ],
            end=True,
        )
        await http_stream.answer()
        body = b""
        while piece := await http_stream.read():
            body += piece
        return body

    def pid(self) -> int:
        return int(self.shown.rpartition(b"ready ")[2].split()[0])


@contextlib.asynccontextmanager
async def terminal(*argv: str, eager: bool = False) -> AsyncIterator[Terminal]:
    made = Terminal(argv, eager=eager)
    try:
        yield made
    finally:
        await made.side.close()
        await made.pty.end()
        made.pty.close()


def script(path: Path) -> str:
    """Write the server to a file; return the shell command that runs it."""
    path.write_text(SERVER)
    return shlex.join([*PYTHON, str(path)])


async def test_a_page_is_offered_and_responds_while_text_and_keys_pass() -> None:
    async with terminal(*PROGRAM) as here:
        offer = await here.offer()
        assert await here.get(offer, "/a") == b"session 1"
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert await here.get(offer, "/b") == b"session 1"
        assert b"HTTY" not in here.shown


async def test_before_it_is_accepted_no_byte_is_sent_to_the_program() -> None:
    async with terminal(*PROGRAM) as here:
        here.accepting = False
        offer = await here.offer()
        await offer.http.ready()
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert here.line.typed == b""
        here.side.accept(offer, remote=False)
        assert await here.get(offer) == b"session 1"


async def test_after_a_refusal_nothing_is_sent_to_the_program() -> None:
    async with terminal(*PROGRAM) as here:
        here.accepting = False
        here.side.refuse(await here.offer())
        here.pty.write(b"b")
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert here.line.typed == b""
        assert here.side.dropped == 1


async def test_after_goaway_a_second_session_follows_in_the_same_program() -> None:
    async with terminal(*PROGRAM) as here:
        first = await here.offer()
        assert await here.get(first) == b"session 1"
        here.pty.write(b"g")
        second = await here.offer(2)
        assert first in here.ended
        assert await here.get(second) == b"session 2"
        with pytest.raises(ConnectionOver):
            await here.get(first)


async def test_after_goaway_nothing_is_written_although_a_request_is_open() -> None:
    async with terminal(*PROGRAM, "hold") as here:
        offer = await here.offer()
        asking = asyncio.create_task(here.get(offer))
        await here.shows("held")
        written = len(here.line.typed)
        here.pty.write(b"p")
        await here.until(lambda: offer.goaway.seen)
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert len(here.line.typed) == written
        asking.cancel()


async def test_bytes_that_a_killed_program_has_not_read_are_discarded(tmp_path: Path) -> None:
    async with terminal(*BASH) as here:
        here.pty.write(b"PROMPT_COMMAND='sleep 0.3'\r")
        await here.shows("$ ", 2)
        here.pty.write(script(tmp_path / "page.py").encode() + b"\r")
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"z")
        await here.shows("deaf")
        asking = asyncio.create_task(here.get(offer))
        before = offer.writer.written
        async with asyncio.timeout(60):
            while offer.writer.written == before:
                await asyncio.sleep(0.01)
        os.kill(here.pid(), signal.SIGKILL)
        with pytest.raises(ConnectionOver):
            await asking
        await here.shows("$ ", 3)
        here.pty.write(b"echo mar''ked\r")
        await here.shows("\rmarked")
        assert b"HTTY" not in here.shown


@given(strategies.lists(strategies.integers(1, 12), min_size=9))
def test_the_first_goaway_of_two_is_only_an_announcement(cuts: list[int]) -> None:
    seen, rest = GoAwayWatch(), PING + FIRST + PING
    for cut in cuts:
        seen.feed(rest[:cut])
        rest = rest[cut:]
    seen.feed(rest)
    assert seen.between
    assert not seen.seen
    seen.feed(FINAL[:12])
    assert not seen.seen
    seen.feed(FINAL[12:])
    assert seen.seen
    assert seen.between


@given(strategies.binary(max_size=40), strategies.integers(1, 9))
def test_a_connection_begins_with_settings_that_acknowledge_nothing(data: bytes, n: int) -> None:
    good = (len(data) // 6 * 6).to_bytes(3) + b"\x04\0\0\0\0\0" + data
    assert begins_connection(good)
    assert begins_connection(good[:n])
    assert not begins_connection(good[:4] + b"\x01" + good[5:])
    assert not begins_connection(good[:3] + b"\0" + good[4:])
    assert not begins_connection((7).to_bytes(3) + good[3:])


@pytest.mark.parametrize("key", [b"b", b"2"])
async def test_a_broken_chunk_ends_the_connection_and_the_terminal_continues(key: bytes) -> None:
    async with terminal(*PROGRAM) as here:
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(key)
        await here.until(lambda: here.ended)
        assert "aborted" in str(offer.sentence)
        assert offer.faulty
        written = len(here.line.typed)
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert len(here.line.typed) == written
        assert b"HTTY" not in here.shown
        here.pty.write(b"g")
        assert await here.get(await here.offer(2)) == b"session 2"


async def test_a_chunk_that_is_cut_off_by_the_end_ends_the_connection() -> None:
    script = SERVER.replace(
        'print("key", key, flush=True)', 'os.write(1, b"\\x1bPHTTY;1;QQ"); os._exit(0)'
    )
    async with terminal(*PYTHON, "-c", script) as here:
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"k")
        await here.until(lambda: here.ended)
        assert offer.sentence is not None


async def test_broken_chunks_before_a_valid_one_abort_nothing() -> None:
    script = (
        'import os; os.write(1, b"\\x1bPHTTY;1;=!\\x1b\\\\\\x1bPHTTY;7;QQ==\\x1b\\\\")\n' + SERVER
    )
    async with terminal(*PYTHON, "-c", script) as here:
        assert await here.get(await here.offer()) == b"session 1"
        assert here.side.dropped == 2


async def test_chunks_are_dropped_until_one_begins_with_settings() -> None:
    data = htty_chunk.encode(b"\0\0\x04\0\0\0\0\0\x01rest") + htty_chunk.encode(
        SETTINGS[:4] + b"\x01" + SETTINGS[5:]
    )
    script = f"import os; os.write(1, {data!r})\n" + SERVER
    async with terminal(*PYTHON, "-c", script) as here:
        assert await here.get(await here.offer()) == b"session 1"
        assert len(here.offers) == 1
        assert here.side.dropped == 2


async def test_settings_may_come_byte_by_byte() -> None:
    script = SERVER.replace("3072", "1")
    async with terminal(*PYTHON, "-c", script) as here:
        assert await here.get(await here.offer()) == b"session 1"


async def test_a_file_with_chunks_that_is_printed_opens_no_page(tmp_path: Path) -> None:
    (tmp_path / "evil.log").write_bytes(htty_chunk.encode(SETTINGS) * 50 + b"shown\n")
    async with terminal(*BASH) as here:
        await here.shows("$ ")
        here.pty.write(f"cat {tmp_path}/evil.log\r".encode())
        await here.shows("shown")
        await here.shows("$ ", 2)
        here.pty.write(b"echo mar''ked\r")
        await here.shows("\rmarked")
        assert here.offers == []
        assert here.side.dropped == 50
        assert here.line.typed == b""


async def test_a_shell_that_returns_between_two_checks_is_not_taken_for_its_program() -> None:
    class Late(Recorded):
        """Reports the line settings only after the shell has the terminal again."""

        def line_settings(self) -> LineSettings:
            while (now := self._pty.line_settings()).canonical:
                time.sleep(0.001)
            return now

    async with terminal(*BASH) as here:
        await here.shows("$ ")
        here.pty.write(b"echo sle''eps; sleep 0.5\r")
        await here.shows("sleeps")
        group, shell = None, here.pty.child.pid
        async with asyncio.timeout(60):
            while group is None or group == shell:  # until the child has its own group
                await asyncio.sleep(0)
                group = answerable_group(here.pty.foreground())
        assert not reads_raw_input(Late(here.pty), group)  # type: ignore[arg-type]  # all else is the Pty's
        assert here.pty.foreground() == shell


async def test_a_killed_program_leaves_nothing_at_the_prompt(tmp_path: Path) -> None:
    """While a browser sends requests continuously."""
    async with terminal(*BASH) as here:
        await here.shows("$ ")
        here.pty.write(script(tmp_path / "page.py").encode() + b"\r")
        offer = await here.offer()

        async def poll() -> None:
            with contextlib.suppress(ConnectionOver):
                while True:
                    await here.get(offer, "/poll")
                    await asyncio.sleep(0.02)  # as a page does

        polling = [asyncio.create_task(poll()) for _ in range(2)]
        await here.get(offer)
        os.kill(here.pid(), signal.SIGKILL)
        await here.until(lambda: here.ended)
        written = len(here.line.typed)
        await asyncio.gather(*polling)
        await here.shows("$ ", 2)
        before = len(here.shown)
        here.pty.write(b"echo mar''ked\r")
        await here.shows("\rmarked")
        assert b"HTTY" not in here.shown
        assert here.shown[before:].startswith(b"echo mar''ked")
        assert len(here.line.typed) == written


async def test_in_the_background_nothing_is_written_and_in_the_foreground_writing_continues(
    tmp_path: Path,
) -> None:
    async with terminal(*BASH) as here:
        await here.shows("$ ")
        here.pty.write(script(tmp_path / "page.py").encode() + b"\r")
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"\x1a")
        await here.shows("Stopped")
        await here.shows("$ ", 2)
        written = len(here.line.typed)
        asking = asyncio.create_task(here.get(offer, "/later"))
        here.pty.write(b"echo mar''ked\r")
        await here.shows("\rmarked")
        assert len(here.line.typed) == written
        assert not asking.done()
        here.pty.write(b"fg\r")
        assert await asking == b"session 1"


async def test_another_program_in_the_foreground_replaces_the_connection(tmp_path: Path) -> None:
    async with terminal(*BASH) as here:
        await here.shows("$ ")
        command = script(tmp_path / "page.py").encode() + b"\r"
        here.pty.write(command)
        first = await here.offer()
        await here.get(first)
        here.pty.write(b"\x1a")
        await here.shows("Stopped")
        here.pty.write(command)
        second = await here.offer(2)
        assert here.ended == [first]
        assert await here.get(second) == b"session 1"


async def test_a_program_that_waits_for_the_client_gets_the_preface_first() -> None:
    argv = (*PROGRAM, "wait")
    async with terminal(*argv, eager=True) as here:
        assert await here.get(await here.offer()) == b"session 1"


async def test_a_remote_program_that_does_not_answer_counts_as_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_PING_SECONDS", 0.05)
    monkeypatch.setattr("telex.htty.limits.HTTY_PONG_SECONDS", 0.2)
    deaf = SERVER.replace("answer(binascii", "number == 1 or answer(binascii")
    async with terminal(*PYTHON, "-c", deaf) as here:
        here.remote = True
        offer = await here.offer()
        await here.until(lambda: here.ended)
        assert offer.sentence == "the page's program no longer responds"
        written = len(here.line.typed)
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert len(here.line.typed) == written


async def test_a_remote_program_is_pinged_only_while_data_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_PING_SECONDS", 0.02)
    async with terminal(*PROGRAM) as here:
        here.remote = True
        offer = await here.offer()
        for _ in range(5):
            assert await here.get(offer) == b"session 1"
            await asyncio.sleep(0.03)
        written = -1
        while written != offer.writer.written:  # the last PING, and then nothing more
            written = offer.writer.written
            await asyncio.sleep(0.1)
        assert here.ended == []


async def test_the_connection_ends_with_the_terminal() -> None:
    async with terminal(*PROGRAM) as here:
        offer = await here.offer()
        await here.get(offer)
        await here.side.close()
        with pytest.raises(ConnectionOver):
            await here.get(offer)


async def test_a_killed_program_gets_no_bytes_before_its_exit_is_reported() -> None:
    left = asyncio.Event()
    with subprocess.Popen(["sleep", "1000"], process_group=0) as program:
        members = ProcessGroup(program.pid, left.set)
        try:
            assert members.alive()
            program.kill()
            os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)  # a zombie
            assert not members.alive()
            assert not left.is_set()
            await asyncio.wait_for(left.wait(), 10)
        finally:
            members.close()
            program.kill()


async def at_the_prompt(here: Terminal, offer: Offer) -> None:
    """Check that the page has ended, and that the shell gets no input but the person's."""
    await here.until(lambda: here.ended)
    written = len(here.line.typed)
    with pytest.raises(ConnectionOver):
        await here.get(offer)
    here.pty.write(b"echo mar''ked\r")
    await here.shows("\rmarked")
    assert len(here.line.typed) == written
    assert b"HTTY" not in here.shown


@pytest.mark.parametrize("how", ["exec", "no job control"])
async def test_a_page_ends_with_its_program_although_a_shell_of_its_group_continues(
    tmp_path: Path, how: str
) -> None:
    command = script(tmp_path / "page.py")
    execs = ("sh", "-c", f"{command}; stty sane; exec {shlex.join(BASH)}")
    async with terminal(*(execs if how == "exec" else BASH)) as here:
        if how != "exec":
            here.pty.write(f"set +m; {command}\r".encode())
        offer = await here.offer()
        assert await here.get(offer) == b"session 1"
        await here.shows("ready")
        os.kill(here.pid(), signal.SIGKILL)
        await at_the_prompt(here, offer)


async def test_bytes_that_a_stopped_program_has_not_read_are_discarded(tmp_path: Path) -> None:
    async with terminal(*BASH) as here:
        here.pty.write(b"PROMPT_COMMAND='sleep 0.3'\r")
        await here.shows("$ ", 2)
        here.pty.write(script(tmp_path / "page.py").encode() + b"\r")
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"z")
        await here.shows("deaf")
        asking = asyncio.create_task(here.get(offer))
        async with asyncio.timeout(60):
            while not here.pty.unread():
                await asyncio.sleep(0.01)
        os.kill(here.pid(), signal.SIGSTOP)
        with pytest.raises(ConnectionOver):
            await asking
        assert "before it had read" in str(offer.sentence)
        await here.shows("$ ", 3)
        await at_the_prompt(here, offer)


async def test_little_is_written_to_a_program_that_does_not_read() -> None:
    async with terminal(*PROGRAM) as here:
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"z")
        await here.shows("deaf")
        before = len(here.line.typed)
        asking = [asyncio.create_task(here.get(offer, f"/{n}" + "x" * 4000)) for n in range(9)]
        async with asyncio.timeout(60):
            while not here.pty.unread() or len(here.line.typed) == before:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # several polls
        assert offer.writer.waiting
        # Out of nine chunks; the number in the kernel's buffers depends on its load.
        assert len(here.line.typed) - before <= 4 * CHUNK_SIZE
        for one in asking:
            one.cancel()


async def test_a_program_that_violates_http2_gets_goaway_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tty_writer, "LAST_SECONDS", 5)
    async with terminal(*PYTHON, "-c", FLOODING) as here:
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"f")
        await here.until(lambda: here.ended)
        assert "violated HTTP/2" in str(offer.sentence)
        await here.shows("dismissed 11")  # ENHANCE_YOUR_CALM
        written = len(here.line.typed)
        here.pty.write(b"k")
        await here.shows("key b'k'")
        assert len(here.line.typed) == written


async def test_a_program_that_violates_http2_and_does_not_read_finds_no_goaway_later() -> None:
    async with terminal(*PYTHON, "-c", FLOODING) as here:
        offer = await here.offer()
        await here.get(offer)
        here.pty.write(b"q")
        await here.shows("flooded")
        await here.until(lambda: here.ended)
        await offer.writer.closed()
        os.kill(here.pid(), signal.SIGUSR1)
        await here.shows("asks")
        here.pty.write(b"hello\r")
        await here.shows("answered 'hello'")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_the_exit_of_a_program_on_an_inner_terminal_is_detected_or_found_by_a_ping(
    tmp_path: Path,
    program: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    how: signal.Signals,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_PING_SECONDS", 0.05)
    monkeypatch.setattr("telex.htty.limits.HTTY_PONG_SECONDS", 8)
    argv = (program("script"), "-q", "/dev/null", "-c", shlex.join(["env", "PS1=$ ", *BASH]))
    async with terminal(*argv) as here:
        await here.shows("$ ")
        here.pty.write(script(tmp_path / "page.py").encode() + b"\r")
        offer = await here.offer()
        assert await here.get(offer) == b"session 1"
        os.kill(here.pid(), how)
        monkeypatch.setattr("telex.htty.limits.HTTY_PONG_SECONDS", 0.2)
        if how is signal.SIGKILL:
            await at_the_prompt(here, offer)
        else:
            with pytest.raises(ConnectionOver):
                await here.get(offer)
            assert offer.sentence == "the page's program no longer responds"
