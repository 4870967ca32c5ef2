"""The examples about JSON escapes on the pages run under `telex run`."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from passthrough.seat import RUN, Kitty, seated
from telex.passthrough.question_row import QUIET_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from passthrough.seat import Seated

ROOT = Path(__file__).parents[2]
TALK = (ROOT / "docs/how-to/talk-to-the-terminal.md").read_text()
README = (ROOT / "README.md").read_text()


def block(page: str, language: str, part: str) -> str:
    """Return the only block of a page that contains this part."""
    (found,) = [
        one for one in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) if part in one
    ]
    return str(found)


@asynccontextmanager
async def running(home: Path, code: str, *, python: bool = True) -> AsyncIterator[Seated]:
    """Run code at a terminal, with `telex` on the PATH."""
    programs = home / "bin"
    programs.mkdir()
    (programs / "telex").write_text(f'#!/bin/sh\nexec {sys.executable} -m telex "$@"\n')
    (programs / "telex").chmod(0o755)
    example = home / "example"
    example.write_text(code)
    interpreter = sys.executable if python else "bash"
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    go = ("bash", "-c", 'cd "$0" && exec "$@"', str(home))
    argv = (*go, *RUN, interpreter, str(example))
    async with seated(*argv, home=home, kind=Kitty, PATH=path) as person:
        yield person


async def test_a_shell_script_sends_commands_to_its_terminal(tmp_path: Path) -> None:
    code = block(TALK, "sh", "build.log") + block(TALK, "sh", "printf")
    async with running(tmp_path, code, python=False) as person:
        assert await person.leaves() == 0
        told = [b"]2;building", b"]9;4;1;40", b"]9;4;0;0", b"]777;notify;built;", b"\a"]
        assert [part for part in told if part not in person.seen] == []


async def test_a_shell_script_queries_its_terminal(tmp_path: Path) -> None:
    code = block(TALK, "sh", "term:report")
    async with running(tmp_path, code, python=False) as person:
        assert await person.leaves() == 0
        assert code.partition("# ")[2].strip() in person.rows()


async def test_detect_prints_the_output_on_the_page(tmp_path: Path) -> None:
    async with running(tmp_path, "telex detect\n", python=False) as person:
        assert await person.leaves() == 0
        said = bytes(person.seen).decode().replace("\r\n", "\n")
    page = block(TALK, "text", "JSON escapes: yes").partition("telex detect\n")[2]
    told = page.splitlines()
    assert [line for line in told if line not in said and "slowest" not in line] == []


async def test_the_asynchronous_example_runs(tmp_path: Path) -> None:
    async with running(tmp_path, block(TALK, "py", "async def main")) as person:
        assert await person.leaves() == 0
        assert person.rows()[0] == "hello ends before column 6"


async def test_the_blocking_example_runs(tmp_path: Path) -> None:
    async with running(tmp_path, block(TALK, "py", "term.progress()")) as person:
        assert await person.leaves() == 0
        assert person.rows()[0] == "terminal {'rows': 24, 'cols': 80}"
        assert b"]9;4;1;75" in person.seen


async def test_the_example_with_events_runs(tmp_path: Path) -> None:
    async with running(tmp_path, block(TALK, "py", "term.events")) as person:
        await person.shows("term:subscribe")
        await asyncio.sleep(QUIET_SECONDS + 0.1)  # an earlier key is not an answer
        person.type(b"y")
        await person.shows("q quits")
        person.type(b"\x1b[<0;5;3M")
        await person.shows("a click at 3,5")
        person.type(b"q")
        assert await person.leaves() == 0
        assert b"\x1b[?1000l" in person.seen


async def test_the_example_with_a_picture_runs(tmp_path: Path) -> None:
    async with running(tmp_path, block(TALK, "py", "image:show")) as person:
        assert await person.leaves() == 0
        assert b"\x1b_Ga=T,f=100," in person.seen


async def test_without_support_it_degrades(tmp_path: Path) -> None:
    code = block(TALK, "py", "degrade")
    async with seated(sys.executable, "-c", code, home=tmp_path) as person:
        assert await person.leaves() == 0
        assert person.rows()[0] == "in colour, wherever this is"
        assert b"23198" not in person.seen


async def test_the_example_in_the_readme_works_when_pasted(tmp_path: Path) -> None:
    code = block(README, "python", "escapes.connect")
    async with running(tmp_path, code) as person:
        assert await person.leaves() == 0
        assert person.rows()[0] == code.rpartition("# ")[2].strip()
