"""What a program says by escapes: every dialect, however the reads are cut."""

from __future__ import annotations

import pytest

from telex.terminal.status_escapes import ProgramStatus, StatusReader

SAID: list[tuple[bytes, ProgramStatus | None]] = [
    (b"\x1b]133;A\x07$ \x1b]133;B\x07", "prompt"),
    (b"\x1b]133;B\x1b\\\x1b]133;C\x1b\\", "command"),
    (b"\x1b]133;C\x07\x1b]133;D;0\x07", None),
    (b"\x1b]633;A\x07\x1b]633;B\x07", "prompt"),
    (b"\x1b]633;E;ls;nonce\x07", None),
    (b"\x1b]16162;C;{}\x07", "command"),
    (b"\x1b]9;4;3\x07", "working"),
    (b"\x1b]9;4;1;40\x1b\\", "working"),
    (b"\x1b]9;4;3\x07\x1b]9;4;0\x07", None),
    (b"\x1b]9;a notification\x07", None),
    (b"\x1b]26;CodeAgent=x;Status=running;TaskProgress=1/4\x07", "working"),
    (b"\x1b]26;Status=awaiting-input\x1b\\", "idle"),
    (b"\x1b]26;Status=awaiting-approval\x1b\\", "asking"),
    ("\x1b]0;⠂ Fix the tests\x07".encode(), "working"),
    ("\x1b]0;⠂ Fix the tests\x07\x1b]0;✳ Fix the tests\x07".encode(), "idle"),
    ("\x1b]2;✋ Action Required\x07".encode(), "asking"),
    (b"\x1b]0;vim\x07", None),
    (b"\x1b]133;B\x07\x1b]9;4;3\x07", "working"),
    (b"plain text and \x1b[31mcolours\x1b[0m", None),
    (b"\x1b]133;B and no end", None),
    (b"\x1b]99999;B\x07\x1b]133;\x07\x1b]133;Z\x07\x1b]26;Status=new\x07", None),
]


@pytest.mark.parametrize(("said", "status"), SAID)
def test_a_program_is_understood_however_its_output_is_cut(
    said: bytes, status: ProgramStatus | None
) -> None:
    for cut in range(len(said) + 1):
        reader = StatusReader()
        reader.feed(said[:cut])
        reader.feed(said[cut:])
        assert reader.status == status, f"cut at {cut}"
    reader = StatusReader()
    for at in range(len(said)):
        reader.feed(said[at : at + 1])
    assert reader.status == status


def test_a_prompt_is_over_when_its_line_was_ended() -> None:
    reader = StatusReader()
    reader.feed(b"\x1b]133;B\x07")
    reader.line_finished()
    assert reader.status is None
    reader.feed(b"\x1b]9;4;3\x07")
    reader.line_finished()
    assert reader.status == "working"


def test_an_escape_without_an_end_takes_little_memory() -> None:
    reader = StatusReader()
    for _ in range(1000):
        reader.feed(b"\x1b]133;" + b"x" * 1000)
    assert len(reader._rest) <= 4096
