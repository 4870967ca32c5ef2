"""The builtin adapters say what their programs wait for, in every state that they name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from builtin import fixtures, running_builtin
from telex.adapters.classification import input_states

LABELS = tomllib.loads(
    (Path(__file__).parent.parent / "terminal/situations/adapters.toml").read_text()
)


@pytest.mark.parametrize("name", LABELS)
async def test_every_state_of_an_adapter_is_labelled(name: str) -> None:
    async with running_builtin(name) as plugin:
        catalogue = await plugin.catalogue()
    said = input_states(catalogue)
    states = [one["name"] for one in catalogue.states]
    assert {state: said.get(state, "unknown") for state in states} == LABELS[name]
    named = {one.expected.state for one in fixtures(name).values()}
    assert named <= set(LABELS[name])


async def test_a_word_that_is_no_input_state_is_ignored() -> None:
    from telex.adapters.classification import PluginCatalogue

    states = [{"name": "a", "input": "line"}, {"name": "b", "input": "tea"}, {"name": "c"}, "d", 1]
    assert input_states(PluginCatalogue(states=states)) == {"a": "line"}
