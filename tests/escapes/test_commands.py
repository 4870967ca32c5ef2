"""The commands are complete, typed and safe; their schema matches the decoder."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from payloads import payloads
from telex.escapes import protocol as spec
from telex.escapes.commands import COMMANDS, EVENTS, LIFTS, core, schema
from telex.escapes.protocol import Guard
from telex.rpc.dialects.json_escapes import CODES
from telex.terminal.cells import STANDARD
from telex.terminal.screen import Screen

LEVEL_1 = """
    cursormove cursorset cursorline cursorhome cursorsave cursorrestore cursorvisible erase erasechars
    insertchars deletechars insertlines deletelines scroll scrollregion index reverseindex nextline
    setstyle resetstyle setmode tabset tabclear tab charset shift lineattr reset bell report write
    subscribe unsubscribe
"""
LEVEL_2 = """
    cursorstyle repeat pushstyle popstyle querymode altscreen title titlepush titlepop cwd resize
    window palette hyperlink sync
"""
EXTENSIONS = """
    term:batch clip:write clip:read clip:types notify:show notify:close progress:set shell:prompt
    shell:command shell:output shell:done image:show image:delete file:download file:upload var:set
"""


def test_every_command_exists_with_its_level() -> None:
    expected = {f"term:{name}": 1 for name in LEVEL_1.split()} | {"detect": 1, "ping": 1}
    expected |= {f"term:{name}": 2 for name in LEVEL_2.split()}
    assert {name: one.level for name, one in COMMANDS.items()} == {
        **expected,
        **dict.fromkeys(EXTENSIONS.split()),
    }


def test_a_command_is_output_or_returns_a_result() -> None:
    for one in COMMANDS.values():
        assert (one.lower is None) == (one.returns is not None), one.name


def test_no_command_that_reads_data_of_the_person_is_free() -> None:
    asked = {name for name, one in COMMANDS.items() if one.guard is Guard.PERSON}
    assert asked == {
        "clip:read", "clip:types", "file:download", "file:upload", "term:resize", "term:window",
    }  # fmt: skip
    remote = {name for name, one in COMMANDS.items() if one.guard is Guard.REMOTE}
    assert remote == {"clip:write", "notify:show", "term:subscribe"}


def test_no_command_runs_a_program() -> None:
    for name in COMMANDS:
        assert not re.search(r"run|exec|spawn|eval|open|launch", name)


def test_commands_and_events_are_registered_by_their_names() -> None:
    assert all(name == one.name for name, one in (*COMMANDS.items(), *EVENTS.items()))
    assert all(name.startswith("event:") for name in EVENTS)
    assert all(one.about.endswith(".") for one in (*COMMANDS.values(), *EVENTS.values()))


def test_the_events_of_the_spec_sample_exist() -> None:
    sample = msgspec.json.decode(b'{"row": 10, "col": 20}', type=EVENTS["event:mouseclick"].payload)
    assert sample == core.MouseInput(row=10, col=20)


def test_every_error_code_of_the_conversation_has_its_name() -> None:
    named = {value for name, value in vars(spec).items() if name.startswith("EC")}
    assert {*CODES.values()} <= named
    assert all(getattr(spec, code) == code for code in named)


def test_a_screen_with_the_attribute_reports_it_in_da1() -> None:
    screen = Screen(STANDARD, attributes=(spec.ATTRIBUTE,))
    assert screen.feed(b"\x1b[c").endswith(b";23198c")
    screen.close()


@given(
    st.sampled_from(sorted(COMMANDS)).flatmap(lambda name: st.tuples(st.just(name), payloads(name)))
)
def test_every_valid_payload_survives_json(command: tuple[str, msgspec.Struct]) -> None:
    name, payload = command
    read = msgspec.json.decode(msgspec.json.encode(payload), type=COMMANDS[name].payload)
    assert read == payload


def test_the_schema_names_every_command_and_event() -> None:
    found = schema()
    assert found["commands"].keys() == COMMANDS.keys()
    assert found["events"].keys() == EVENTS.keys()
    for one in (*found["commands"].values(), *found["events"].values()):
        for member in ("data", "returns"):
            if member in one:
                assert one[member]["$ref"].removeprefix("#/$defs/") in found["$defs"]
    assert found["commands"]["clip:read"]["guard"] == "person"


def test_the_schemas_patterns_refuse_a_newline_at_the_end() -> None:
    """Python's `$` matches before a final newline, also in checkers written in Python."""

    def patterns(value: object) -> list[str]:
        match value:
            case {"pattern": str(one)}:
                return [one]
            case dict():
                return [found for inner in value.values() for found in patterns(inner)]
            case list():
                return [found for inner in value for found in patterns(inner)]
        return []

    found = {*patterns(schema())}
    assert len(found) > 6
    assert not [one for one in found if "$" in one or r"\Z" in one]


def test_every_lift_gives_commands_that_can_be_lowered() -> None:
    assert len(LIFTS) > 80
    assert all(key[:1] in b"\x1b\x07\x0e\x0f" for key in LIFTS)


def test_the_reference_page_has_every_command_and_event() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "escapes.md").read_text("utf-8")
    for name in (*COMMANDS, *EVENTS):
        assert f"`{name}`\n" in page
