"""What a child inherits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from telex.processes.child_environment import child_environment
from telex.version import __version__

names = st.sampled_from(
    ["HTTY", "TELEX_SOCKET", "TMUX", "STY", "TERM", "TELEX", "LINES", "HOME", "PATH"]
)
environments = st.dictionaries(names, st.text(max_size=3))


def test_a_child_on_pipes_gets_our_environment() -> None:
    ours = {"HOME": "/home/a", "TERM": "vt100", "LINES": "24"}
    assert child_environment(ours) == ours


def test_a_child_on_a_terminal_is_told_about_that_terminal() -> None:
    told = child_environment({"TERM": "vt100", "HOME": "/home/a"}, terminal=True)
    assert told == {
        "HOME": "/home/a",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TELEX": __version__,
    }


def test_a_child_on_a_terminal_does_not_hear_of_the_terminal_around_us() -> None:
    around = {"LINES": "24", "COLUMNS": "80", "TERM_PROGRAM": "x", "TERM_PROGRAM_VERSION": "1"}
    assert around.keys().isdisjoint(child_environment(around, terminal=True))


@given(environments, st.booleans())
def test_what_is_said_about_our_own_terminal_is_never_inherited(
    ours: dict[str, str], terminal: bool
) -> None:
    told = child_environment(ours, terminal=terminal)
    assert told.keys().isdisjoint({"HTTY", "TELEX_SOCKET", "TMUX", "STY"})


@given(environments, st.dictionaries(names, st.none() | st.text(max_size=3)), st.booleans())
def test_an_override_has_the_last_word_and_none_removes(
    ours: dict[str, str], overrides: dict[str, str | None], terminal: bool
) -> None:
    told = child_environment(ours, overrides, terminal=terminal)
    assert {name: told.get(name) for name in overrides} == overrides


def test_the_environment_given_is_not_changed() -> None:
    ours = {"TMUX": "x"}
    child_environment(ours, {"A": "b"}, terminal=True)
    assert ours == {"TMUX": "x"}
