"""Real programs, each in a labelled situation: the answer is the label, and never a waiting state
while the program works. The labels are in `situations/`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import situations
from benchmarks.situations import Outcome, Situation, Workspace

RIGHT = 0.98


@pytest.fixture(scope="module")
def workspace() -> Iterator[Workspace]:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as home,  # the path of a socket must be short
        situations.workspace(Path(home)) as made,
    ):
        yield made


def runnable(chosen: list[Situation]) -> list[Situation]:
    missing = sorted({one.needs for one in chosen if one.needs})
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"not installed: {', '.join(missing)}")
    return [one for one in chosen if one.needs is None]


def wrong(outcomes: list[Outcome]) -> list[str]:
    return [
        f"{one.situation.name}: {one.situation.state} expected, {one.answer}"
        for one in outcomes
        if not one.ended and not (one.right and one.evident)
    ]


def false_alarms(outcomes: list[Outcome]) -> list[str]:
    return [f"{one.situation.name}: {one.false_alarms[0]}" for one in outcomes if one.false_alarms]


async def test_programs_are_said_to_wait_for_what_they_wait_for(workspace: Workspace) -> None:
    sample = runnable([one for one in situations.load() if one.sample])
    outcomes = await situations.observe_all(sample, workspace, hold=0.1, at_once=16)
    assert not false_alarms(outcomes), "\n".join(false_alarms(outcomes))
    assert not wrong(outcomes), "\n".join(wrong(outcomes))


@pytest.mark.soak
@pytest.mark.counted
async def test_all_situations(workspace: Workspace) -> None:
    outcomes = await situations.observe_all(runnable(situations.load()), workspace)
    answered = [one for one in outcomes if not one.ended]
    share = 1 - len(wrong(outcomes)) / len(answered)
    print(f"{len(answered)} situations, {share:.1%} right", *wrong(outcomes), sep="\n")
    assert not false_alarms(outcomes), "\n".join(false_alarms(outcomes))
    assert share >= RIGHT


def test_there_are_labels_for_more_than_eighty_situations_and_a_sample_of_every_state() -> None:
    labelled = situations.load()
    assert len(labelled) == len({one.name for one in labelled}) > 80
    states = {one.state for one in labelled}
    assert states - {one.state for one in labelled if one.sample} <= {"unknown"}
