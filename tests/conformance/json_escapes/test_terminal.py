"""The terminal that the spec asks for, as a program on one finds it: `telex run` on a real PTY."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from passthrough.seat import RUN, printing, seated
from telex.escapes.commands import COMMANDS, EVENTS
from telex.escapes.protocol import ATTRIBUTE, NoData
from telex.passthrough.query_replies import AttributeFilter
from telex.terminal.cells import PLAIN, Style

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOVE = b'\x1b]23198;49;{"command": "term:cursormove", "data": {"y": -2}}\x07'
STYLE = (
    b'\x1b]23198;0;{"command": "term:setstyle", '
    b'"data": {"color": 31, "bgcolor": "#aaaaaa", "bold": true}}\x07'
)
RESET = b'\x1b]23198;0;{"command": "term:resetstyle"}\x07'
CLICK = b'\x1b]23199;0;{"command": "event:mouseclick", "data": {"row": 10, "col": 20}}\x07'
"""The four examples of the spec, as they are printed there."""


async def test_the_examples_of_the_spec_take_effect_and_none_of_them_is_shown(
    tmp_path: Path,
) -> None:
    printed = (b"1\r\n2\r\n3", MOVE, STYLE, b"red", RESET, CLICK, b"plain")
    async with seated(*RUN, *printing(tmp_path / "out", *printed), home=tmp_path) as person:
        assert await person.leaves() == 0
        assert person.rows()[:3] == ["1redplain", "2", "3"]
        assert b"2319" not in person.seen
        red, plain = person.screen.rows()[0].cells[1], person.screen.rows()[0].cells[4]
    assert red.style == Style("idx:1", "rgb:170:170:170", bold=True)
    assert plain.style == PLAIN


def test_a_vt100_with_json_escapes_answers_as_the_spec_has_it() -> None:
    between = AttributeFilter(ATTRIBUTE)
    between.program_output(b"\x1b[c", 0.0)
    assert between.person_input(b"\x1b[?1c", 0.1) == b"\x1b[?1;23198c"


def test_systems_and_subsystems_are_separated_by_colons() -> None:
    named = {*COMMANDS, *EVENTS} - {"detect", "ping"}
    assert all(name.count(":") == 1 and all(name.split(":")) for name in named)
    assert {one.system for one in COMMANDS.values()} > {"term", "clip", "notify", "image"}


def test_every_command_that_takes_data_has_a_type_for_it() -> None:
    taking = [one for one in COMMANDS.values() if one.payload is not NoData]
    assert len(taking) > 40
    assert all(one.payload.__struct_fields__ for one in taking)


# A program that uses the library, over whatever there is.

PROGRAM = """
import json, sys
from telex import escapes
with escapes.connect() as term:
    report = term.call("term:report", {"what": "size-cells"})
    said = [term.via, report, term.detect(), term.supports("term:title"), term.supports("x:y")]
json.dump(said, open(sys.argv[1], "w"))
"""


async def said(tmp_path: Path, *without: str) -> list[Any]:
    """What the program learns; `without` is what keeps its terminal from being asked."""
    out = tmp_path / "said"
    argv = (*without, sys.executable, "-c", PROGRAM, str(out))
    async with seated(*RUN, *argv, home=tmp_path) as person:
        assert await person.leaves() == 0, bytes(person.seen)
    told: list[Any] = json.loads(out.read_text())
    return told


async def test_detect_lists_the_capabilities_by_system(tmp_path: Path) -> None:
    via, _, capabilities, title, nonsense = await said(tmp_path)
    assert (via, title, nonsense) == ("terminal", True, False)
    assert capabilities["term"]["level"] == 2
    assert capabilities["term"]["include"] == ["term:*"]
    assert {"clip", "notify"} < {*capabilities}
    assert "image" not in capabilities, "the person's terminal here shows none"
    assert {*capabilities["clip"]} <= {"level", "include", "exclude", "unverified"}


@pytest.mark.parametrize("way", ["terminal", "socket"])
async def test_the_same_client_code_works_through_a_terminal_and_beside_it(
    way: str, tmp_path: Path, program: Callable[[str], str]
) -> None:
    without = () if way == "terminal" else (program("setsid"), "--wait")
    via, report, *_ = await said(tmp_path, *without)
    assert (via, report) == (way, {"rows": 24, "cols": 80})
