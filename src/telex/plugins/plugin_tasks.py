"""A plugin's tasks: all looked at before any is run, then run in the order they need.

A task begins when those it requires have ended well, and at the same time as others; one that fails
stops those that need it, and no others. Generation A is asked whether values are valid; for B
`task_plan` has judged them. A plugin that ends while tasks run is started again for the next ones,
by its supervisor. `task_plan.TaskSchedule` is the order; `cli` tells people.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.plugins import errors, task_plan
from telex.plugins import protocol as spec
from telex.plugins.limits import PLUGIN_TASKS_AT_ONCE
from telex.plugins.task_plan import BadTasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from telex.plugins.supervisor import PluginSupervisor
    from telex.plugins.task_plan import Planned, TaskPlan

_METHOD_NOT_FOUND: Final = -32601


@dataclass(frozen=True, slots=True)
class TasksOutcome:
    """How all of them ended."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """With the reason."""
    stopped: Mapping[str, str] = field(default_factory=dict)
    """With what each required and did not get."""

    @property
    def ok(self) -> bool:
        return not (self.failed or self.stopped)


async def validate(
    supervisor: PluginSupervisor, introduced: spec.Introduced, plan: TaskPlan
) -> None:
    """Have the plugin look at all of them, if it is of the generation that does."""
    if introduced.protocol != spec.PROTOCOL_A:
        return
    wrong: list[str] = []

    async def look(task: Planned) -> None:
        try:
            await supervisor.call("validateTask", spec.ValidateTask(task.type, task.config or None))
        except errors.PluginErrorReply as refused:
            if refused.code != _METHOD_NOT_FOUND:  # else it has nothing to object
                wrong.append(f"task {task.id}: {refused.message}")

    for start in range(0, len(plan.tasks), PLUGIN_TASKS_AT_ONCE):
        some = plan.tasks[start : start + PLUGIN_TASKS_AT_ONCE]
        await asyncio.gather(*map(look, some))
    if wrong:
        raise BadTasks(supervisor.name, wrong)


@dataclass(frozen=True, slots=True)
class TaskObserver:
    """Who hears how it goes: the progress of each, and its end with why it failed."""

    progress: Callable[[str, spec.ProgressNotice], None]
    ends: Callable[[str, str | None], None]


async def run(
    supervisor: PluginSupervisor, introduced: spec.Introduced, plan: TaskPlan, told: TaskObserver
) -> TasksOutcome:
    """Run all that can be, as long as it takes. What fails is an outcome."""
    by_id = {task.id: task for task in plan.tasks}
    schedule = task_plan.TaskSchedule(plan.requires)
    outcome = TasksOutcome(stopped=schedule.stopped)

    async def do(one: str) -> None:
        params = _params(by_id[one], introduced, plan.directory)
        failure = await _done(supervisor, params, lambda progress: told.progress(one, progress))
        if failure is None:
            outcome.done.append(one)
        else:
            outcome.failed[one] = failure
        schedule.finished(one, ok=failure is None)
        told.ends(one, failure)

    try:
        await _in_order(schedule, do)
    except asyncio.CancelledError:
        if supervisor.running is not None:
            supervisor.running.interrupt()
        raise
    return outcome


def _params(task: Planned, introduced: spec.Introduced, directory: Path) -> spec.RunTask:
    if introduced.protocol == spec.PROTOCOL_A:
        return spec.RunTask(type=task.type, dir=str(directory), config=task.config or None)
    return spec.RunTask(task_type=task.type, config=task.config)


async def _done(
    supervisor: PluginSupervisor,
    params: spec.RunTask,
    progress: Callable[[spec.ProgressNotice], None],
) -> str | None:
    """None, or why it failed."""
    try:
        await supervisor.call("runTask", params, timeout=None, on_progress=progress)
    except errors.PluginErrorReply as refused:
        return refused.message
    except errors.PluginError as failure:
        return str(failure)
    return None


async def _in_order(schedule: task_plan.TaskSchedule, do: Callable[[str], Awaitable[None]]) -> None:
    """Each when it may begin, and not too many at once."""
    waiting: deque[str] = deque()
    running: set[asyncio.Future[None]] = set()
    try:
        while True:
            waiting += schedule.ready()
            while waiting and len(running) < PLUGIN_TASKS_AT_ONCE:
                running.add(asyncio.ensure_future(do(waiting.popleft())))
            if not running:
                return
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for one in ended:
                one.result()
    finally:
        for one in running:
            one.cancel()
        if running:
            await asyncio.wait(running)
