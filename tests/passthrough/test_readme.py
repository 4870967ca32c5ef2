"""The programs of the README run under `telex run`."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from passthrough.seat import RUN, Seated, seated
from telex.passthrough.question_row import QUIET_SECONDS

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
ASKED = "wants to show a page in your browser. Open it? (y/n)"


def saved(home: Path, word: str) -> tuple[str, ...]:
    """Save the only program of the README with this word. Return its command."""
    (text,) = [block for block in BLOCKS if word in block]
    (home / "readme.py").write_text(text)
    return (sys.executable, str(home / "readme.py"))


def unspoilt(person: Seated) -> bool:
    return not any(word in person.seen for word in (b"Traceback", b"Error", b"Interrupt"))


async def test_after_a_no_a_notice_is_shown_and_ctrl_c_ends_the_program_quietly(
    tmp_path: Path,
) -> None:
    async with seated(*RUN, *saved(tmp_path, "htty.run"), home=tmp_path) as person:
        await person.shows(ASKED)
        await asyncio.sleep(QUIET_SECONDS + 0.1)  # an earlier key is not an answer
        person.type("n")
        await person.shows("telex: no page is shown: ")
        person.type("\x03")
        assert await person.leaves() == 0
        assert unspoilt(person), bytes(person.seen)
        assert person.restored()


async def test_the_escapes_example_prints_its_connection_and_the_size(tmp_path: Path) -> None:
    async with seated(*RUN, *saved(tmp_path, "escapes.connect"), home=tmp_path) as person:
        await person.shows("terminal 24 80 ")
        assert await person.leaves() == 0
        assert unspoilt(person), bytes(person.seen)
        assert person.restored()


async def test_outside_of_telex_run_a_page_fails_with_advice(
    tmp_path: Path,
) -> None:
    async with seated(*saved(tmp_path, "htty.run"), home=tmp_path, HTTY=None, TMUX=None) as person:
        assert await person.leaves() == 1
    said = person.seen.decode().replace("\r\n", "\n")
    assert said.count("Traceback") == 1, "not how we came to know it"
    assert len(re.findall("^  File ", said, re.MULTILINE)) == 2, "the program's line, and ours"
    assert "telex run -- COMMAND" in said
