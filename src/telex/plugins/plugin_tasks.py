"""A plugin's tasks: validate all of them, then run them in the order of their requirements.

A task starts when the tasks it requires have succeeded, at the same time as others. A failed task
stops the tasks that require it, and no others. A plugin of generation A validates the values
itself; for B `task_plan` has checked them. If a plugin ends while tasks run, its supervisor starts
it again for the next tasks. `task_plan.TaskSchedule` has the order; `cli` prints the progress.
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
    """The results of all tasks."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """The failed tasks with the reason."""
    stopped: Mapping[str, str] = field(default_factory=dict)
    """The tasks that did not start, each with a required task that failed or was stopped."""

    @property
    def ok(self) -> bool:
        return not (self.failed or self.stopped)


async def validate(
    supervisor: PluginSupervisor, introduced: spec.Introduced, plan: TaskPlan
) -> None:
    """Send `validateTask` for each task to a plugin of generation A. Raises BadTasks."""
    if introduced.protocol != spec.PROTOCOL_A:
        return
    problems: list[str] = []

    async def validate_one(task: Planned) -> None:
        try:
            await supervisor.call("validateTask", spec.ValidateTask(task.type, task.config or None))
        except errors.PluginErrorReply as refused:
            if refused.code != _METHOD_NOT_FOUND:  # a plugin need not validate
                problems.append(f"task {task.id}: {refused.message}")

    for start in range(0, len(plan.tasks), PLUGIN_TASKS_AT_ONCE):
        some = plan.tasks[start : start + PLUGIN_TASKS_AT_ONCE]
        await asyncio.gather(*map(validate_one, some))
    if problems:
        raise BadTasks(supervisor.name, problems)


@dataclass(frozen=True, slots=True)
class TaskObserver:
    """Callbacks for the progress of each task, and for its end, with the reason if it failed."""

    progress: Callable[[str, spec.ProgressNotice], None]
    ends: Callable[[str, str | None], None]


async def run(
    supervisor: PluginSupervisor,
    introduced: spec.Introduced,
    plan: TaskPlan,
    observer: TaskObserver,
) -> TasksOutcome:
    """Run all tasks, without a deadline. A failed task is in the outcome and not raised."""
    by_id = {task.id: task for task in plan.tasks}
    schedule = task_plan.TaskSchedule(plan.requires)
    outcome = TasksOutcome(stopped=schedule.stopped)

    async def do(one: str) -> None:
        params = _params(by_id[one], introduced, plan.directory)
        failure = await _run_task(
            supervisor, params, lambda progress: observer.progress(one, progress)
        )
        if failure is None:
            outcome.done.append(one)
        else:
            outcome.failed[one] = failure
        schedule.finished(one, ok=failure is None)
        observer.ends(one, failure)

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


async def _run_task(
    supervisor: PluginSupervisor,
    params: spec.RunTask,
    progress: Callable[[spec.ProgressNotice], None],
) -> str | None:
    """Run a task. Return None, or why it failed."""
    try:
        await supervisor.call("runTask", params, timeout=None, on_progress=progress)
    except errors.PluginErrorReply as refused:
        return refused.message
    except errors.PluginError as failure:
        return str(failure)
    return None


async def _in_order(schedule: task_plan.TaskSchedule, do: Callable[[str], Awaitable[None]]) -> None:
    """Run each task as soon as it may start, at most PLUGIN_TASKS_AT_ONCE at a time."""
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
