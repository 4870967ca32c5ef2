"""The order of tasks: requirements, cycles with their path, and the tasks that a failure stops."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from telex.plugins.task_plan import TaskSchedule, cycle, order_problems, stages


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    """Generate requirements without a cycle: each task may require earlier ones; the order is shuffled."""
    names = [str(number) for number in range(draw(st.integers(0, 8)))]
    needs = [
        (name, draw(st.lists(st.sampled_from(names[:at]), max_size=3)) if at else [])
        for at, name in enumerate(names)
    ]
    return dict(draw(st.permutations(needs)))


def closure(one: str, requires: dict[str, list[str]]) -> set[str]:
    return {one}.union(*(closure(need, requires) for need in requires[one]))


def test_stages_group_independent_tasks() -> None:
    requires = {"roof": ["wall", "beam"], "wall": ["ground"], "beam": ["ground"], "ground": []}
    assert stages(requires) == [["ground"], ["wall", "beam"], ["roof"]]


def test_a_cycle_is_reported_with_its_path() -> None:
    requires = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}
    path = cycle(requires)
    assert path is not None
    assert path[0] == path[-1]
    assert {*path} == {"a", "b", "c"}
    assert all(after in requires[one] for one, after in pairwise(path))
    assert list(order_problems(requires)) == [
        f"these require each other in a circle: {' → '.join(path)}"
    ]


def test_a_task_that_requires_itself_is_a_cycle() -> None:
    assert cycle({"a": ["a"]}) == ["a", "a"]


def test_an_unknown_id_is_reported_with_the_nearest_one() -> None:
    requires = {"folder": [], "motd": ["foldr", "x"]}
    assert list(order_problems(requires)) == [
        "motd requires foldr, which does not exist; did you mean folder?",
        "motd requires x, which does not exist",
    ]


@given(requires=acyclic())
def test_each_task_is_ready_once_and_after_its_requirements(requires: dict[str, list[str]]) -> None:
    assert not list(order_problems(requires))
    seen: list[str] = []
    for stage in stages(requires):
        for one in stage:
            assert {*requires[one]} <= {*seen}
        seen += stage
    assert sorted(seen) == sorted(requires)


@given(requires=acyclic(), data=st.data())
def test_a_failure_stops_exactly_the_direct_and_indirect_dependents(
    requires: dict[str, list[str]], data: st.DataObject
) -> None:
    bad = data.draw(st.sets(st.sampled_from(sorted(requires)))) if requires else set()
    schedule, begun = TaskSchedule(requires), []
    while ready := schedule.ready():
        for one in ready:
            begun.append(one)
            schedule.finished(one, ok=one not in bad)
    doomed = {one for one in requires if (closure(one, requires) - {one}) & bad}
    assert {*schedule.stopped} == doomed
    assert {*begun} == {*requires} - doomed
    assert all(lack in requires[one] for one, lack in schedule.stopped.items())
