"""A page's stream through a program's own terminal: whole chunks among text, keys in their order."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import re
import signal
import sys
import termios
import threading
from typing import TYPE_CHECKING

import pytest

from escapes.terminals import running, terminal
from htty.far_ends import far_end
from telex.escapes.probe import RoundTrip
from telex.htty import limits
from telex.htty.tty_stream import open_stream
from telex.wire import htty_chunk
from telex.wire import limits as wire_limits
from telex.wire.events import Frame, Visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.htty.tty_stream import TtyStream

YES = {"HTTY": "1"}
TMUX = {"HTTY": "1", "TMUX": "x"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for a response that will not arrive."""
    monkeypatch.setattr("telex.htty.support.RoundTrip", lambda: RoundTrip(0.2))


async def read_all(stream: TtyStream, size: int) -> bytes:
    came = b""
    while len(came) < size and (data := await stream.read()):
        assert len(data) <= limits.HTTY_READ_BYTES
        came += data
    return came


@pytest.mark.each_loop
async def test_bytes_go_both_ways_and_are_never_visible(loop: str) -> None:
    async with far_end() as end:
        async with open_stream(fd=end.fd, environ=YES) as stream:
            stream.write(b"from the program")
            await end.carries(b"from the program")
            end.send(b"from the terminal")
            assert await stream.read() == b"from the terminal"
        assert bytes(end.shown) == b""
        assert end.restored()


async def test_it_switches_lines_and_echo_off_and_keeps_signals_and_output() -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES):
        iflag, oflag, _, lflag, *_ = end.modes()
        gone = termios.ICANON | termios.ECHO | termios.IEXTEN
        assert not lflag & gone
        assert lflag & termios.ISIG
        assert lflag & termios.NOFLSH, "Ctrl-Z would throw away what is under way"
        assert not iflag & (termios.ICRNL | termios.INLCR | termios.ISTRIP | termios.IXON)
        assert oflag == end.found[1]


@pytest.mark.counted
async def test_output_of_other_threads_never_lands_inside_a_chunk(
    counted: Callable[[int, int], int],
) -> None:
    size = counted(5, 50) * wire_limits.MIB
    data = random.Random(6).randbytes(size)
    stop = threading.Event()
    printed = [0, 0]

    def chatter(me: int, fd: int) -> None:
        dice = random.Random(me)
        line = (b"<%d>" % me) * 800
        while not stop.is_set():
            printed[me] += os.write(fd, line[: 3 * dice.randrange(1, 800)])

    async with far_end() as end:
        async with open_stream(fd=end.fd, environ=YES) as stream:
            threads = [threading.Thread(target=chatter, args=(me, end.fd)) for me in (0, 1)]
            for thread in threads:
                thread.start()
            for at in range(0, size, 50_000):
                stream.write(data[at : at + 50_000])
                await stream.drained()
                assert stream.unsent < limits.HTTY_UNSENT_BYTES
            await end.until(lambda: len(end.carried) == size)
            stop.set()
            while any(thread.is_alive() for thread in threads):
                await asyncio.sleep(0.001)
        assert not end.faults
        assert end.carried == data
        await end.until(lambda: len(end.shown) == sum(printed))
        assert b"HTTY" not in end.shown
        assert min(printed) > 0


async def test_keys_between_chunks_reach_the_program_in_order() -> None:
    typed: list[bytes] = []
    async with far_end() as end:
        async with open_stream(fd=end.fd, environ=YES, keys=typed.append) as stream:
            for number in range(200):
                end.type(b"%d\r" % number)
                end.send(b"%d," % number)
            expected = b"".join(b"%d," % number for number in range(200))
            assert await read_all(stream, len(expected)) == expected
        assert b"".join(typed) == b"".join(b"%d\r" % number for number in range(200))
        assert not end.shown


async def test_an_error_in_the_keys_callback_loses_no_chunk() -> None:
    faults: list[object] = []

    def fail(data: bytes) -> None:
        raise ValueError(data)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    async with far_end() as end, open_stream(fd=end.fd, environ=YES, keys=fail) as stream:
        end.type(b"k" + htty_chunk.encode(b"whole"))
        assert await stream.read() == b"whole"
        await asyncio.sleep(0)
        assert len(faults) == 1


async def test_without_a_callback_typed_keys_wait_to_be_read() -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.type(b"abc")
        assert await stream.typed() == b"abc"


async def test_escape_alone_is_a_key_and_its_sequence_is_too() -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.type(b"\x1b")
        assert await stream.typed() == b"\x1b"
        end.type(b"\x1b[A")
        assert await stream.typed() == b"\x1b[A"
        end.type(b"\x1b")
        await asyncio.sleep(0.005)
        end.type(b"P")  # the beginning of a chunk, and nothing after it
        typed = b""
        while len(typed) < 2:
            typed += await stream.typed()
        assert typed == b"\x1bP"


async def test_a_chunk_that_arrives_byte_by_byte_is_not_a_key() -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.send(b"first")
        assert await stream.read() == b"first"
        chunk = htty_chunk.encode(b"slow")
        for at in range(len(chunk)):
            end.type(chunk[at : at + 1])
            await asyncio.sleep(0.03 if at < 3 else 0.001)  # longer than a lone ESC is held
        assert await stream.read() == b"slow"
        end.type(b"k")
        assert await stream.typed() == b"k"


async def test_every_task_that_waits_for_room_gets_it() -> None:
    async def write(stream: TtyStream, letter: bytes) -> None:
        for _ in range(20):
            stream.write(letter * 30_000)
            await stream.drained()

    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        await asyncio.gather(*(write(stream, letter) for letter in (b"a", b"b", b"c", b"d")))
        await end.until(lambda: len(end.carried) == 4 * 20 * 30_000)


@pytest.mark.deadline(20)
async def test_both_directions_full_is_no_deadlock() -> None:
    """The other end writes all its data before it reads anything."""
    size = 1 * wire_limits.MIB
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.pause()
        stream.write(b"p" * size)
        end.send(b"t" * size)
        reading = asyncio.create_task(read_all(stream, size))
        await end.until(lambda: end.unsent == 0)
        assert await reading == b"t" * size
        end.resume()
        await end.until(lambda: len(end.carried) == size)
        await stream.drained()


async def test_unread_bytes_are_bounded_and_complete_when_they_are_read() -> None:
    size = 3 * limits.HTTY_UNREAD_BYTES
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.send(b"x" * size)
        left = -1
        while left != end.unsent:  # until nothing more is read
            left = end.unsent
            await asyncio.sleep(0.2)
        assert left > 0
        assert len(stream._received) <= limits.HTTY_UNREAD_BYTES + limits.HTTY_READ_BYTES
        assert len(await read_all(stream, size)) == size


async def test_close_is_local_and_a_second_session_follows() -> None:
    async with far_end() as end:
        for number in (1, 2):
            async with open_stream(fd=end.fd, environ=YES) as stream:
                stream.write(b"session %d" % number)
                end.send(b"hello")
                assert await stream.read() == b"hello"
                stream.close()
                stream.close()
                stream.write(b"lost")
                assert await stream.read() == b""
                await stream.drained()
                os.write(end.fd, b"text %d " % number)
        assert bytes(end.carried) == b"session 1session 2"
        assert bytes(end.shown) == b"text 1 text 2 "
        assert end.restored()


async def test_bytes_that_the_terminal_had_under_way_are_not_left_to_the_shell() -> None:
    typed: list[bytes] = []
    async with far_end() as end:
        async with open_stream(fd=end.fd, environ=YES, keys=typed.append) as stream:
            stream.write(b"bye")
            await end.carries(b"bye")
            end.send(b"late " * 2000)
            end.type(b"ls\r")
        assert end.left() == b""
        assert b"".join(typed) == b"ls\r"


async def test_unread_bytes_are_not_left_to_the_shell_either() -> None:
    async with far_end() as end:
        async with open_stream(fd=end.fd, environ=YES) as stream:
            end.send(b"x" * 2 * limits.HTTY_UNREAD_BYTES)
            while stream._reading:
                await asyncio.sleep(0.01)
        assert end.unsent == 0
        assert end.left() == b""


@pytest.mark.usefixtures("impatient")
async def test_a_terminal_that_does_not_respond_is_handled_the_same_way() -> None:
    async with far_end(answers=False) as end:
        async with open_stream(fd=end.fd, environ=YES):
            end.send(b"late " * 100)
        assert end.restored()
        assert end.left() == b""


@pytest.mark.parametrize("broken", [b"\x1bPHTTY;2;QQ==\x1b\\", b"\x1bPHTTY;1;!\x1b\\"])
async def test_a_broken_chunk_ends_the_stream_and_not_the_terminal(broken: bytes) -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.send(b"good")
        assert await stream.read() == b"good"
        end.type(broken)
        end.send(b"swallowed")
        end.type(b"key")
        assert await stream.read() == b""
        assert stream.why is not None
        assert "aborted" in stream.why
        assert await stream.typed() == b"key"
        stream.write(b"never")
        os.write(end.fd, b"text")
        await end.shows(b"text")
        assert not end.carried


async def test_a_broken_chunk_before_any_valid_one_ends_nothing() -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        end.type(b"\x1bPHTTY;1;!\x1b\\")
        end.send(b"good")
        assert await stream.read() == b"good"


@pytest.mark.each_loop
async def test_a_terminal_that_hangs_up_ends_the_stream(loop: str) -> None:
    async with far_end() as end, open_stream(fd=end.fd, environ=YES) as stream:
        stream.write(b"x" * wire_limits.MIB)
        end.hang_up()
        assert await stream.read() == b""
        assert stream.why is not None
        await stream.drained()


async def test_a_terminal_that_accepts_nothing_is_given_up_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.transports.limits.CLOSE_SECONDS", 0.2)
    async with far_end() as end:
        async with open_stream(fd=end.fd, environ=YES) as stream:
            end.pause()
            stream.write(b"x" * 4 * limits.HTTY_UNSENT_BYTES)  # more than any terminal buffers
        assert end.restored()
        end.resume()
        assert await asyncio.to_thread(stream._writes.ended.wait, 15)


@pytest.mark.usefixtures("impatient")
async def test_inside_tmux_each_chunk_is_wrapped_separately() -> None:
    data = random.Random(2).randbytes(10_000)
    wrapped = re.compile(rb"\x1bPtmux;\x1b\x1bPHTTY;1;([^\x1b]+)\x1b\x1b\\\x1b\\")
    async with far_end(claims=()) as end:
        async with open_stream(fd=end.fd, environ=TMUX, force=True) as stream:
            stream.write(data)
            await end.until(lambda: len(wrapped.findall(end.shown)) == 4)
        chunks = [base64.b64decode(one) for one in wrapped.findall(end.shown)]
        assert b"".join(chunks) == data
        assert max(map(len, chunks)) == 3072
        assert wrapped.sub(b"", end.shown) == b""
        assert end.restored()


PIPED = """
import asyncio, sys
from telex.htty.tty_stream import open_stream
async def main():
    async with open_stream() as stream:
        print("text", flush=True)
        while data := await stream.read():
            stream.write(data)
            await stream.drained()
        print("end:", stream.why, flush=True)
asyncio.run(main())
"""


async def test_pipes_carry_the_same_stream_in_atomic_writes() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PIPED,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"HTTY": "1", "PATH": os.environ["PATH"]},
    )
    data = random.Random(1).randbytes(300_000)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(htty_chunk.encode(data))
    decoder = htty_chunk.HttyChunkDecoder()
    events = []
    while out := await child.stdout.read(65536):
        events += decoder.feed(out)
        if sum(len(event.body) for event in events if isinstance(event, Frame)) == len(data):
            child.stdin.close()
    await child.wait()
    frames = [event.body for event in events if isinstance(event, Frame)]
    assert b"".join(frames) == data
    assert max(map(len, frames)) * 4 / 3 + 11 <= 4096
    shown = b"".join(event.data for event in events if isinstance(event, Visible))
    assert shown == b"text\nend: standard input has ended\n"


HELD = """
import asyncio, sys
from telex.htty.tty_stream import open_stream
async def main():
    async with open_stream() as stream:
        stream.write(b"x" * {size})
        print("ready", flush=True)
        await stream.read()
asyncio.run(main())
"""

ENDINGS = [
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGINT,
    signal.SIGUSR1,
    signal.SIGALRM,
]


@pytest.mark.parametrize("number", ENDINGS)
async def test_a_signal_that_ends_the_program_restores_the_terminal(
    number: signal.Signals,
) -> None:
    program = HELD.format(size=1)
    async with terminal() as fake, running(fake, "-c", program, piped=False, HTTY="1") as child:
        await fake.sees(b"ready")
        assert not fake.restored()
        child.send_signal(number)
        await child.wait()
        assert child.returncode == -number
        assert fake.restored()


async def test_a_signal_while_the_terminal_accepts_nothing_restores_it_too() -> None:
    program = HELD.format(size=1_000_000)
    async with far_end() as end, running(end, "-c", program, piped=False, HTTY="1") as child:
        await end.shows(b"ready")
        end.pause()
        while end.readable() < 4000:
            await asyncio.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), 5) == -signal.SIGTERM
        assert end.restored()


STOPPED = """
import asyncio
from telex.htty.tty_stream import open_stream
async def main():
    async with open_stream() as stream:
        print("ready", flush=True)
        while data := await stream.read():
            stream.write(b"x" * int(data))
asyncio.run(main())
"""

SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def in_front():
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], preexec_fn=in_front)
os.waitpid(child.pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
os.write(1, b"<prompt>")
os.tcsetpgrp(0, child.pid)
os.kill(child.pid, signal.SIGCONT)
child.wait()
"""


async def test_ctrl_z_in_the_middle_of_a_chunk_stops_the_program_at_its_end() -> None:
    """Otherwise the shell's prompt would land inside it, and the connection would be aborted."""
    async with far_end() as end, running(end, "-c", SHELL, STOPPED, piped=False, HTTY="1"):
        await end.shows(b"ready")
        end.pause()
        end.send(b"100000")
        while end.readable() < 4000:  # until its output fills the buffer
            await asyncio.sleep(0.01)
        end.type(b"\x1a")
        await asyncio.sleep(0.1)  # it has received the signal by now, and must wait
        end.resume()
        await end.shows(b"<prompt>")
        await end.until(lambda: len(end.carried) == 100_000)
        end.send(b"5")
        await end.until(lambda: len(end.carried) == 100_005)
        assert not end.faults
