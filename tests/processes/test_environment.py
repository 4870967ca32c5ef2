"""The environment that a child inherits."""

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


def test_a_child_on_a_terminal_gets_the_variables_of_that_terminal() -> None:
    environment = child_environment({"TERM": "vt100", "HOME": "/home/a"}, terminal=True)
    assert environment == {
        "HOME": "/home/a",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TELEX": __version__,
    }


def test_a_child_on_a_terminal_does_not_inherit_the_outer_terminals_variables() -> None:
    around = {"LINES": "24", "COLUMNS": "80", "TERM_PROGRAM": "x", "TERM_PROGRAM_VERSION": "1"}
    assert around.keys().isdisjoint(child_environment(around, terminal=True))


@given(environments, st.booleans())
def test_variables_about_our_own_terminal_are_never_inherited(
    ours: dict[str, str], terminal: bool
) -> None:
    environment = child_environment(ours, terminal=terminal)
    assert environment.keys().isdisjoint({"HTTY", "TELEX_SOCKET", "TMUX", "STY"})


@given(environments, st.dictionaries(names, st.none() | st.text(max_size=3)), st.booleans())
def test_an_override_takes_precedence_and_none_removes(
    ours: dict[str, str], overrides: dict[str, str | None], terminal: bool
) -> None:
    environment = child_environment(ours, overrides, terminal=terminal)
    assert {name: environment.get(name) for name in overrides} == overrides


def test_the_environment_given_is_not_changed() -> None:
    ours = {"TMUX": "x"}
    child_environment(ours, {"A": "b"}, terminal=True)
    assert ours == {"TMUX": "x"}
