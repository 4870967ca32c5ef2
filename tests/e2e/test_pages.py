"""Pages through the terminal, end to end: a real `telex run`, ssh, tmux, a shell, a browser.

The parts are tested in `tests/htty` and `tests/passthrough/test_page_filter.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from browser import browser
from e2e.test_escapes_end_to_end import loopback, resident, tmux
from htty.serving_pages import PYTHON
from htty.visitor import visiting
from passthrough.person import BASH, TELEX
from passthrough.seat import RUN, seated
from passthrough.test_page_filter import ASKED, says, sent
from passthrough.test_page_filter import browser as noting

if TYPE_CHECKING:
    from collections.abc import Callable

    from htty.visitor import Visitor
    from passthrough.seat import Seated

    Find = Callable[[str], str]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
ALWAYS = (*RUN, "--open", "always")
SERVE = shlex.join([*TELEX, "htty", "serve", "--dir"])
MB = 1_000_000


# In a real browser.


async def test_a_page_over_ssh_has_clicks_uploads_and_updates_while_text_scrolls_and_ctrl_c_ends_it(
    program: Find, tmp_path: Path
) -> None:
    given = random.Random(1).randbytes(2 * MB)
    (tmp_path / "given.bin").write_bytes(given)
    served = shlex.join([sys.executable, str(PROGRAMS / "shows_a_page.py")])
    async with (
        loopback(program, tmp_path) as ssh,
        seated(*ALWAYS, *ssh, served, home=tmp_path, BROWSER=noting(tmp_path)) as person,
        browser(program("chromium"), tmp_path) as chromium,
    ):
        tab = await chromium.open(await sent(tmp_path))
        assert await tab.evaluate("document.title") == "a page through ssh"
        await tab.click("button")
        await person.sees("click 1 came")
        assert await tab.until("document.getElementById('clicks').textContent") == "1 clicked"
        await tab.choose_file("input", tmp_path / "given.bin")
        await person.sees(f"file of {len(given)} bytes came")
        received = await tab.until("document.getElementById('sent').textContent")
        assert received == f"{len(given)} {hashlib.sha256(given).hexdigest()}"
        before = int(await tab.until("document.getElementById('live').textContent"))
        await tab.until(f"Number(document.getElementById('live').textContent) > {before} + 9")
        await tab.screenshot(tmp_path / "page.png")
        person.type("\x03")
        await person.sees("interrupted, and over")
        assert await person.leaves() == 7
        await tab.close()
    assert_only_text(person, rb"(line \d+ of the text|click 1|file of|interrupted)")


TERMINAL_ASKED = re.compile(
    rb"\x1b\[[?>]?[\d$]*[cnqp]|\x1b_G[^\x1b]*\x1b\\|\x1b\]1337;ReportCellSize\x1b\\"
)
"""Queries to the terminal: at the start and the end, and when a program checks its features."""


def assert_only_text(person: Seated, allowed: bytes) -> None:
    """Check that every visible line begins like this, and contains no part of a chunk."""
    assert b"HTTY" not in person.seen
    text = re.sub(rb"\r|\^C", b"", TERMINAL_ASKED.sub(b"", person.seen))
    lines = [line for line in text.split(b"\n") if line]
    assert [line for line in lines if not re.match(allowed, line)] == []


async def test_the_picker_opens_after_a_yes_and_a_click_ends_the_program_with_its_path(
    program: Find, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.txt").write_text("x")
    example = (sys.executable, str(ROOT / "examples" / "pick_file.py"), str(tmp_path / "files"))
    async with (
        seated(*RUN, *example, home=tmp_path, BROWSER=noting(tmp_path)) as person,
        browser(program("chromium"), tmp_path) as chromium,
    ):
        await person.shows(ASKED)
        await says(person, "y")
        tab = await chromium.open(await sent(tmp_path))
        await tab.screenshot(tmp_path / "picker.png")
        await tab.click("li button")
        await person.sees(f"{tmp_path}/files/notes.txt")
        assert "You can close this tab" in await tab.until("document.body.innerText")
        assert await person.leaves() == 0
        await tab.close()


async def test_the_example_of_the_readme_shows_its_page_until_ctrl_c(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "htty.run" in block]
    (tmp_path / "hello.py").write_text(code)
    argv = (*ALWAYS, sys.executable, str(tmp_path / "hello.py"))
    async with seated(*argv, home=tmp_path, BROWSER=noting(tmp_path)) as person:
        async with visiting(await sent(tmp_path)) as visitor:
            assert (await visitor.get()).text == "<h1>through the terminal</h1>"
            await person.shows("somebody looks")
        person.type("\x03")
        assert await person.leaves() == 0
        assert b"Traceback" not in person.seen
        assert person.restored()


# In a shell.


async def starts(person: Seated, path: Path) -> int:
    """Start a server of this directory at the prompt; return its pid."""
    at = len(person.seen)
    person.type(f"sh -c 'echo pid $$; exec {SERVE} {shlex.quote(str(path))}'\r")
    await person.sees("Serving ", after=at)
    found = re.findall(rb"pid (\d+)", person.seen)
    return int(found[-1])


async def ask_until_refused(visitor: Visitor) -> None:
    """Poll as a page does, until it is refused. A response may be cut in the middle."""
    with contextlib.suppress(httpx.RemoteProtocolError):
        while (await visitor.get("/notes.txt?`touch%20pwned`")).status_code == 200:
            await asyncio.sleep(0.05)


async def asks_again(person: Seated, keys: str, answer: str) -> int:
    """Type keys that begin with Ctrl-U and wait for the answer, up to three times.

    After a kill, bash may read the end of a chunk before telex discards it (decision 0029), and
    telex may discard keys of the person together with the chunk. A chunk has no line end, so
    nothing of it has run; Ctrl-U removes it from the prompt.
    """
    for _ in range(2):
        with contextlib.suppress(AssertionError):
            return await person.asks(keys, answer)
    return await person.asks(keys, answer)


@pytest.mark.counted
async def test_a_server_killed_during_requests_runs_nothing_at_the_prompt(
    counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("noted")
    argv, env = (*ALWAYS, *BASH), {"BROWSER": noting(tmp_path), "HOME": str(tmp_path)}
    async with seated(*argv, home=tmp_path / "home", **env) as person:
        await person.shows("$")
        await person.asks("cd; echo at ho''me\r", "at home")
        pid = await starts(person, tmp_path)
        async with visiting(await sent(tmp_path)) as visitor:
            for n in range(counted(3, 50)):
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(4):
                        tasks.create_task(ask_until_refused(visitor))
                    for _ in range(5):  # so that requests are in progress
                        assert (await visitor.get("/notes.txt")).text == "noted"
                    at = len(person.seen)
                    os.kill(pid, signal.SIGKILL)
                assert (await visitor.get()).status_code == 503
                await person.sees("Killed", after=at)
                at = await asks_again(person, f"\x15clear; echo rou''nd {n}\r", f"round {n}")
                await person.sees("$ ", after=at)
                assert person.rows()[:3] == [f"round {n}", "$", ""]
                pid = await starts(person, tmp_path)  # it takes over the page
                await sent(tmp_path, n + 2)
        await person.asks("q", "$ ")
        await person.asks("echo la''st $?\r", "last 0")
    assert not (tmp_path / "pwned").exists()
    assert b"not found" not in person.seen


async def test_a_download_stops_with_ctrl_z_and_continues_with_fg(tmp_path: Path) -> None:
    large = random.Random(2).randbytes(12 * MB)
    (tmp_path / "large.bin").write_bytes(large)
    argv, env = (*ALWAYS, *BASH), {"BROWSER": noting(tmp_path)}
    async with seated(*argv, home=tmp_path / "home", **env) as person:
        await person.shows("$")
        await starts(person, tmp_path)
        async with visiting(await sent(tmp_path)) as visitor:
            found = hashlib.sha256()
            async with visitor.stream("/large.bin") as pieces:
                found.update(await anext(pieces))
                person.type("\x1a")
                await person.sees("Stopped")
                await person.asks("echo mar''ked\r", "\rmarked")
                person.type("fg\r")
                async for piece in pieces:
                    found.update(piece)
            assert found.digest() == hashlib.sha256(large).digest()
            await person.asks("q", "$ ")
            assert b"HTTY" not in person.seen
            assert (await visitor.get("/")).status_code == 503


# In tmux.


async def test_a_page_inside_a_tmux_that_passes_it_on(program: Find, tmp_path: Path) -> None:
    given = random.Random(3).randbytes(200_000)
    (tmp_path / "given.bin").write_bytes(given)
    argv = tmux(tmp_path, program, "on", *TELEX, "htty", "serve", "--dir", str(tmp_path))
    env = {"BROWSER": noting(tmp_path), "TMUX": None, "TERM": "xterm-256color"}
    async with seated(*ALWAYS, *argv, home=tmp_path / "home", **env) as person:
        async with visiting(await sent(tmp_path)) as visitor:
            assert (await visitor.get("/given.bin")).content == given
        person.type("q")
        assert await person.leaves() == 0
        assert b"HTTY" not in person.seen


async def test_inside_a_tmux_that_drops_chunks_the_error_names_the_setting(
    program: Find, tmp_path: Path
) -> None:
    served = shlex.join([*TELEX, "htty", "serve", "--dir", str(tmp_path)])
    argv = tmux(tmp_path, program, "off", "sh", "-c", f"{served}; echo code $?; read -r line")
    env = {"TMUX": None, "TERM": "xterm-256color"}
    async with seated(*ALWAYS, *argv, home=tmp_path / "home", **env) as person:
        await person.shows("code 3")
        assert "tmux set -g allow-passthrough on" in " ".join("".join(person.rows()).split())
        person.type("\r")
        assert await person.leaves() == 0


# With a hostile program.


@pytest.mark.counted
@pytest.mark.parametrize(
    ("kind", "expected"),
    [("unknown", "too many useless frames"), ("broken", "aborted")],
)
async def test_a_flood_is_aborted_and_the_terminal_continues(
    counted: Callable[[int, int], int], tmp_path: Path, kind: str, expected: str
) -> None:
    count = counted(200_000, 10_000_000)
    argv = (*ALWAYS, *PYTHON, str(PROGRAMS / "floods_its_terminal.py"), kind, str(count))
    async with seated(*argv, home=tmp_path, BROWSER=noting(tmp_path)) as person:
        await sent(tmp_path)
        before = resident(person.pid)
        await person.shows("flooded")
        assert expected in "".join(person.rows())
        person.type("still here\r")
        await person.shows("typed still here")
        assert resident(person.pid) - before < 16 * MB
        assert await person.leaves() == 0
        assert b"HTTY;1" not in person.seen
        assert b"shown?" not in person.seen
        assert not any("telex" in row for row in person.rows()[2:])
