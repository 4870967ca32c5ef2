"""The backlog of a program's output draws the same screen as the whole output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from telex.passthrough.output_backlog import OutputBacklog
from telex.terminal.cells import Size
from telex.terminal.screen import Screen

SIZE = Size(4, 10)

lines = st.text(st.sampled_from("ab c"), max_size=12).map(lambda text: text.encode() + b"\r\n")
floods = st.lists(lines, min_size=6, max_size=30).map(b"".join)
others = st.sampled_from(
    [b"x", b"\r\n", b"\n", b"\x1b[2;3r", b"\x1b[r", b"\x1b[H", b"\x1b[31m", b"\x1b[?7l", b"\x1b[4h",
     b"\x0e", b"\x0f", b"\x1b(0", b"\x1b]0;title", b"\x07", b"\x1b[", b"\xc3", b"\xbc", b"\x1b[?1049h",
     b"\x1b[?1049l", b"\x1b[3;2H", b"\x1b[?6h", b"\t", b"\x08", b"\x18",
     b"\x1b[2;", b"3r", b"r", b"\x1b[?69h", b"\x1b[?6;69h", b"\x1b[2;5s", b"\x1b[s"]
)  # fmt: skip


def drawn(parts: list[bytes | Size]) -> tuple[object, ...]:
    screen = Screen(SIZE, scrollback=0)
    try:
        for part in parts:
            screen.resize(part) if isinstance(part, Size) else screen.feed(part)
        return [row.text for row in screen.rows()], screen.cursor, screen.restore()
    finally:
        screen.close()


@given(st.lists(st.one_of(floods, others, lines, st.sampled_from([Size(3, 8), SIZE])), max_size=12))
def test_the_backlog_draws_the_same_as_all_output(parts: list[bytes | Size]) -> None:
    backlog = OutputBacklog(SIZE)
    for part in parts:
        backlog.resized(part) if isinstance(part, Size) else backlog.add(part)
    assert drawn(backlog.take()) == drawn(parts)
    assert not backlog.take()


def test_a_flood_of_plain_lines_takes_the_memory_of_a_screen() -> None:
    backlog = OutputBacklog(SIZE)
    for _ in range(1000):
        backlog.add(b"a line\r\n" * 100)
    kept = backlog.take()
    assert sum(len(part) for part in kept if isinstance(part, bytes)) < 100


@given(
    st.lists(st.one_of(floods, others, lines, st.sampled_from([Size(3, 8), SIZE])), max_size=12),
    st.integers(1, 200),
)
def test_taken_in_slices_while_more_is_printed_it_draws_the_same(
    parts: list[bytes | Size], most: int
) -> None:
    backlog = OutputBacklog(SIZE)
    taken: list[bytes | Size] = []
    for part in parts:
        backlog.resized(part) if isinstance(part, Size) else backlog.add(part)
        taken += backlog.take(most)
    while backlog.pending:
        taken += backlog.take(most)
    assert drawn(taken) == drawn(parts)


def test_a_slice_exceeds_its_size_by_at_most_one_part() -> None:
    backlog = OutputBacklog(SIZE)
    for _ in range(10):
        backlog.add(b"\x1b[31m" + b"x" * 95)
    assert len(backlog.take(250)) == 3
    assert len(backlog.take()) == 7
    assert not backlog.above_soft_limit
