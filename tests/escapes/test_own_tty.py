"""The terminal is restored on every way out of a program, and taken again when it continues."""

from __future__ import annotations

import json
import os
import signal

import pytest

from escapes.terminals import Manners, ran, running, terminal

BLOCKING = """
from telex import escapes
with escapes.connect() as term:
    print("ready", flush=True)
    term.typed()
"""

AWAITED = """
import asyncio
from telex import escapes
async def main():
    async with escapes.connect() as term:
        print("ready", flush=True)
        await term.typed()
asyncio.run(main())
"""

UVLOOP = AWAITED.replace("asyncio.run(main())", "import uvloop; uvloop.run(main())")

NEVER_CLOSED = """
import asyncio, sys
from telex import escapes
async def main():
    term = await escapes.connect()
    print("ready", flush=True)
    sys.exit(7)
asyncio.run(main())
"""

OWN_HANDLER = """
import signal
from telex import escapes
signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(9)))
with escapes.connect() as term:
    print("ready", flush=True)
    term.typed()
"""

LEADER = """
import json, os, signal, subprocess, sys, termios, time

fd = os.open("/dev/tty", os.O_RDWR)

def in_front():
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(fd, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)

def echoes():
    return bool(termios.tcgetattr(fd)[3] & termios.ECHO)

child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=-1, preexec_fn=in_front)
child.stdout.readline()
seen = [echoes()]
os.kill(child.pid, signal.SIGTSTP)
_, status = os.waitpid(child.pid, os.WUNTRACED)
seen += [os.WIFSTOPPED(status), echoes()]
os.kill(child.pid, signal.SIGCONT)
until = time.monotonic() + 60
while echoes() and time.monotonic() < until:
    time.sleep(0.01)
seen += [echoes()]
time.sleep(float(sys.argv[2]))
os.kill(child.pid, signal.SIGTERM)
_, status = os.waitpid(child.pid, 0)
child.returncode = 0
seen += [os.WTERMSIG(status), echoes()]
print(json.dumps(seen))
"""


@pytest.mark.parametrize("program", [BLOCKING, AWAITED, UVLOOP], ids=["with", "async", "uvloop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
async def test_a_signal_that_ends_the_program_restores_the_terminal(
    program: str, number: signal.Signals
) -> None:
    async with terminal() as fake, running(fake, "-c", program) as child:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        assert not fake.restored()
        child.send_signal(number)
        await child.communicate()
        assert child.returncode == -number
        assert fake.restored()


@pytest.mark.parametrize("program", [BLOCKING, AWAITED], ids=["with", "async"])
async def test_a_signal_during_discovery_restores_the_terminal(program: str) -> None:
    patient = program.replace("connect()", "connect(timeout=20)")
    async with terminal(Manners(answers=[])) as fake, running(fake, "-c", patient) as child:
        await fake.is_asked()
        assert not fake.restored()
        child.send_signal(signal.SIGTERM)
        await child.communicate()
        assert child.returncode == -signal.SIGTERM
        assert fake.restored()


async def test_a_late_reply_to_a_program_ended_by_a_signal_does_not_reach_the_next() -> None:
    busy = AWAITED.replace("await term.typed()", "import time; time.sleep(30)")
    async with terminal() as fake, running(fake, "-c", busy) as child:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        os.write(fake.ours, b'\x1b]23199;0;{"resid":"late"}\x07')
        child.send_signal(signal.SIGTERM)
        await child.communicate()
        assert fake.restored()
        assert fake.left() == b""


@pytest.mark.parametrize("program", [BLOCKING, AWAITED], ids=["with", "async"])
async def test_an_interrupt_ends_the_block_and_restores_the_terminal(program: str) -> None:
    async with terminal() as fake, running(fake, "-c", program) as child:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        fake.type(b"\x03")  # Ctrl-C still interrupts
        _, err = await child.communicate()
        assert b"KeyboardInterrupt" in err
        assert fake.restored()


async def test_a_program_that_handles_a_signal_itself_still_does() -> None:
    async with terminal() as fake, running(fake, "-c", OWN_HANDLER) as child:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGTERM)
        await child.communicate()
        assert child.returncode == 9
        assert fake.restored()


async def test_a_terminal_that_was_not_closed_is_restored_at_exit() -> None:
    async with terminal() as fake:
        code, out, _ = await ran(fake, "-c", NEVER_CLOSED)
        assert (code, out) == (7, "ready\n")
        assert fake.restored()


@pytest.mark.parametrize("program", [BLOCKING, AWAITED], ids=["with", "async"])
async def test_a_stopped_program_restores_the_terminal_and_takes_it_again(program: str) -> None:
    async with terminal() as fake:
        code, out, err = await ran(fake, "-c", LEADER, program, "0")
        assert (code, err) == (0, "")
        assert json.loads(out) == [False, True, True, False, signal.SIGTERM, True]


async def test_after_a_stop_detect_and_subscriptions_are_repeated() -> None:
    """The terminal forgets a program that leaves its foreground."""
    asked: list[list[str]] = []

    def subscribe(data: dict[str, list[str]]) -> dict[str, list[str]]:
        asked.append(data["events"])
        return data

    program = AWAITED.replace(
        "        print(", "        await term.events('event:key').__aenter__()\n        print("
    )
    async with terminal(None, term_subscribe=subscribe) as fake:
        await ran(fake, "-c", LEADER, program, "0.5")
        assert asked == [["event:key"], ["event:key"]]
        assert sum(b'"detect"' in frame for frame in fake.frames) == 2


async def test_signals_are_as_they_were_after_the_block() -> None:
    program = AWAITED.replace(
        "        await term.typed()",
        "    import signal; print(*(signal.getsignal(n).name for n in (15, 1, 3, 20)))",
    )
    async with terminal() as fake:
        _, out, err = await ran(fake, "-c", program)
        assert (out, err) == ("ready\nSIG_DFL SIG_DFL SIG_DFL SIG_DFL\n", "")
        _, out, err = await ran(fake, "-c", program.replace("async with", "with"))
        assert "SIG_DFL SIG_DFL SIG_DFL SIG_DFL\n" in out
