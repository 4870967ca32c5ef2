"""The README's own programs under `telex run`, as somebody does who reads it for the first time."""

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
    """The one program of the README with this word in it, as a command."""
    (text,) = [block for block in BLOCKS if word in block]
    (home / "readme.py").write_text(text)
    return (sys.executable, str(home / "readme.py"))


def unspoilt(person: Seated) -> bool:
    return not any(word in person.seen for word in (b"Traceback", b"Error", b"Interrupt"))


async def test_after_a_no_the_terminal_says_so_and_ctrl_c_ends_the_program_without_a_word(
    tmp_path: Path,
) -> None:
    async with seated(*RUN, *saved(tmp_path, "htty.run"), home=tmp_path) as person:
        await person.shows(ASKED)
        await asyncio.sleep(QUIET_SECONDS + 0.1)  # a key that is typed sooner is not an answer
        person.type("n")
        await person.shows("telex: no page is shown: ")
        person.type("\x03")
        assert await person.leaves() == 0
        assert unspoilt(person), bytes(person.seen)
        assert person.restored()


async def test_a_program_says_where_it_is_and_what_the_terminal_can(tmp_path: Path) -> None:
    async with seated(*RUN, *saved(tmp_path, "escapes.connect"), home=tmp_path) as person:
        await person.shows("terminal 24 80 ")
        assert await person.leaves() == 0
        assert unspoilt(person), bytes(person.seen)
        assert person.restored()


async def test_outside_of_telex_run_a_page_ends_with_the_sentence_that_names_it(
    tmp_path: Path,
) -> None:
    async with seated(*saved(tmp_path, "htty.run"), home=tmp_path, HTTY=None, TMUX=None) as person:
        assert await person.leaves() == 1
    said = person.seen.decode().replace("\r\n", "\n")
    assert said.count("Traceback") == 1, "not how we came to know it"
    assert len(re.findall("^  File ", said, re.MULTILINE)) == 2, "the program's line, and ours"
    assert "telex run -- COMMAND" in said
