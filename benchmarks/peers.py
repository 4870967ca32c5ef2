"""What others do, for comparison: tmux, tui-test (PyPI), and pexpect with pyte.

Each is given what it needs to be at its best: tmux no client to draw for, pexpect no pause before
it types, pyte no scrollback.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

ROWS, COLS = 24, 80
ECHO = ["sh", "-c", "stty -echo; echo ready; exec cat"]
"""A child that says again each line it is told, on a terminal that does not."""


@contextmanager
def tmux() -> Iterator[list[str]]:
    """A tmux of its own: the words to begin a command to it with."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Path(directory) / "tmux.conf"
        settings.write_text("set -g history-limit 10000\n")
        server = ["tmux", "-S", f"{directory}/socket", "-f", str(settings)]
        try:
            yield server
        finally:
            subprocess.run([*server, "kill-server"], capture_output=True)


def shown_by_tmux(file: Path) -> float:
    """Seconds until `cat` is over and all of it is on the screen."""
    with tmux() as server:
        size = ["-x", str(COLS), "-y", str(ROWS)]
        # Not how fast it starts is measured: that begins with `go`.
        command = f"tmux wait-for go; cat {file}; tmux wait-for -S done; sleep 100"
        subprocess.run([*server, "new-session", "-d", *size, command], check=True)
        began = time.perf_counter()
        subprocess.run([*server, "wait-for", "-S", "go"], check=True)
        subprocess.run([*server, "wait-for", "done"], check=True)
        return time.perf_counter() - began


@asynccontextmanager
async def tui_test(*argv: str, cols: int = COLS, rows: int = ROWS) -> AsyncIterator[object]:
    """A program under tui-test."""
    from tui_test import TuiTest

    with tempfile.TemporaryDirectory() as directory:
        async with TuiTest.ephemeral(recording={"directory": directory}) as terminal:
            await terminal.run(*argv, cols=cols, rows=rows)
            yield terminal


def shown_by_tui_test(file: Path) -> float:
    async def show() -> float:
        began = time.perf_counter()
        async with tui_test("cat", str(file)) as terminal:
            await terminal.wait_exit(timeout=120_000)  # type: ignore[attr-defined]
            return time.perf_counter() - began

    return asyncio.run(show())


def shown_by_pyte(file: Path) -> float:
    """pexpect reads, pyte draws. Raises what pyte raises."""
    import pexpect
    import pyte

    stream = pyte.ByteStream(pyte.Screen(COLS, ROWS))
    began = time.perf_counter()
    child = pexpect.spawn("cat", [str(file)], dimensions=(ROWS, COLS))
    try:
        while True:
            stream.feed(child.read_nonblocking(65536, timeout=30))
    except pexpect.EOF:
        return time.perf_counter() - began
    finally:
        child.close(force=True)


def echoed_to_tui_test(rounds: int) -> list[float]:
    async def type_and_wait() -> list[float]:
        took = []
        async with tui_test(*ECHO) as terminal:
            await terminal.get_by_text("ready").wait()  # type: ignore[attr-defined]
            for n in range(rounds):
                began = time.perf_counter()
                await terminal.type(f"said{n}.\n")  # type: ignore[attr-defined]
                await terminal.get_by_text(f"said{n}.").wait()  # type: ignore[attr-defined]
                took.append(time.perf_counter() - began)
        return took

    return asyncio.run(type_and_wait())


def located_by_tui_test(argv: list[str], text: str, cols: int, rows: int) -> list[float]:
    """Milliseconds of finding a text that is on the screen."""

    async def locate() -> list[float]:
        took = []
        async with tui_test(*argv, cols=cols, rows=rows) as terminal:
            locator = terminal.get_by_text(text)  # type: ignore[attr-defined]
            await locator.wait()
            for _ in range(100):
                began = time.perf_counter()
                await locator.wait()
                took.append((time.perf_counter() - began) * 1000)
        return took

    return asyncio.run(locate())


def echoed_to_pexpect(rounds: int) -> list[float]:
    import pexpect

    child = pexpect.spawn(ECHO[0], ECHO[1:], dimensions=(ROWS, COLS))
    child.delaybeforesend = None
    child.expect_exact("ready")
    took = []
    for n in range(rounds):
        began = time.perf_counter()
        child.send(f"said{n}.\n")
        child.expect_exact(f"said{n}.")
        took.append(time.perf_counter() - began)
    child.close(force=True)
    return took


def compared_by_tui_test(rounds: int) -> list[float]:
    """Milliseconds of comparing an unchanged screen with its snapshot."""

    async def compare() -> list[float]:
        took = []
        with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
            async with tui_test(*ECHO) as terminal:
                await terminal.get_by_text("ready").wait()  # type: ignore[attr-defined]
                for n in range(rounds + 1):
                    began = time.perf_counter()
                    await terminal.expect_snapshot(  # type: ignore[attr-defined]
                        "one", update=n == 0, include_style=True, include_title=True
                    )
                    took.append((time.perf_counter() - began) * 1000)
        return took[1:]

    return asyncio.run(compare())
