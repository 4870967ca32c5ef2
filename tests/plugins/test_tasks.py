"""Tasks: read with all problems, planned by the plugin's declarations, validated, run in order."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plugins.animals import RecordingHost, written
from telex.plugins import plugin_tasks, task_plan
from telex.plugins import protocol as spec
from telex.plugins.discovery import FoundPlugin
from telex.plugins.limits import PLUGIN_TASKS_AT_ONCE
from telex.plugins.supervisor import PluginSupervisor, RestartPolicy
from telex.plugins.task_plan import BadTasks, RequestedTask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.plugins.plugin_settings import PluginSettings

WHERE = Path("/project/tasks.toml")


def wrong(content: str) -> tuple[str, ...]:
    with pytest.raises(BadTasks) as caught:
        task_plan.read(content.encode(), "tasks.toml")
    return caught.value.problems


# Read.


def test_a_file_of_tasks_is_read() -> None:
    content = b"""
    [[task]]
    id = "folder"
    type = "greet/make"
    [[task]]
    id = "motd"
    type = "write"
    requires = ["folder"]
    config = { path = "motd", lines = [1, 2] }
    """
    assert task_plan.read(content, "it") == [
        RequestedTask("folder", "greet/make"),
        RequestedTask("motd", "write", ["folder"], {"path": "motd", "lines": [1, 2]}),
    ]
    assert task_plan.read(b"", "it") == []


def test_all_problems_of_a_task_file_are_reported_at_once() -> None:
    assert wrong(
        """
        tasks = 3
        [[task]]
        id = "a"
        type = 3
        require = ["b"]
        [[task]]
        type = "x"
        """
    ) == (
        "tasks is not known; tasks are [[task]]",
        "task a: `type` must be text; it is 3",
        "task a: `require` is not known; did you mean requires?",
        "task 2: `id` is missing",
    )


def test_a_duplicate_id_an_unknown_id_and_a_cycle_are_reported() -> None:
    one = '[[task]]\nid = "a"\ntype = "x"\n'
    assert wrong(one + one) == ("2 tasks have the id a",)
    assert wrong(one + 'requires = ["b"]') == ("a requires b, which does not exist",)
    two = '[[task]]\nid = "b"\ntype = "x"\nrequires = ["a"]\n'
    (circle,) = wrong(one + 'requires = ["b"]\n' + two)
    assert circle.endswith(("a → b → a", "b → a → b"))


@pytest.mark.parametrize("content", ["[[task", "\xff", "task = 3", "[task]\nid = 'a'"])
def test_an_invalid_task_file_is_reported(content: str) -> None:
    assert len(wrong(content)) == 1


# Planned.

WRITE = spec.Task(
    "write",
    configs=[
        spec.ConfigEntry("path", type="path", flag_only=True),
        spec.ConfigEntry("mode", 420, "int"),
        spec.ConfigEntry("text"),
    ],
)


def planned(
    *wanted: RequestedTask,
    protocol: str = "rpp",
    task: spec.Task = WRITE,
    domain: str | None = None,
) -> task_plan.TaskPlan:
    manifest = spec.PluginManifest("greet", "it", domain=domain)
    found = FoundPlugin("greet", Path("/it"), manifest, Path("/it"))
    introduced = spec.Introduced(protocol, 0, "greet", tasks=[task])
    return task_plan.plan(wanted, found, introduced, WHERE, "/home/me")


def test_a_tilde_is_the_persons_home_and_no_variable_sets_a_tasks_value() -> None:
    task = spec.Task("write", configs=[spec.ConfigEntry("path", type="path", env_override="HOME")])
    plan = planned(RequestedTask("a", "write", config={"path": "~/motd"}), task=task)
    assert plan.tasks[0].config == [spec.KeyValue("path", "/home/me/motd", "path")]


def test_values_are_typed_by_the_entries_with_defaults_and_paths_from_the_files_directory() -> None:
    plan = planned(RequestedTask("a", "write", config={"path": "motd"}))
    values = [spec.KeyValue("path", "/project/motd", "path"), spec.KeyValue("mode", 420, "int")]
    assert plan.tasks == (task_plan.Planned("a", "write", (), values),)
    assert plan.directory == Path("/project")


@pytest.mark.parametrize("word", ["write", "greet/write", "files/write"])
def test_a_type_may_be_named_with_the_plugin_or_its_domain(word: str) -> None:
    assert planned(RequestedTask("a", word), domain="files").tasks[0].type == "write"


def test_an_unknown_task_type_is_reported_with_the_known_types() -> None:
    with pytest.raises(BadTasks) as caught:
        planned(RequestedTask("a", "other/write"))
    (problem,) = caught.value.problems
    assert problem == ("task a: greet has no tasks of the type other/write; there are: write")


def test_a_value_of_the_wrong_type_is_named_with_its_task() -> None:
    with pytest.raises(BadTasks) as caught:
        planned(RequestedTask("a", "write", config={"mode": "x"}))
    assert caught.value.problems == (
        'task a: greet.write.mode must be a whole number of 64 bits; it is "x"',
    )


def test_an_undeclared_key_is_a_hint_for_generation_a_and_a_problem_for_b() -> None:
    wanted = RequestedTask("a", "write", config={"txet": "hi"})
    plan = planned(wanted)
    said = "task a: write does not declare txet; did you mean text?"
    assert plan.hints == (said,)
    assert spec.KeyValue("txet", "hi", "string") in plan.tasks[0].config
    with pytest.raises(BadTasks) as caught:
        planned(wanted, protocol="reginald")
    assert caught.value.problems == (said,)


U1 = {"key": "u1", "type": "stringList", "value": []}
U2 = {"key": "u2", "type": "int", "value": 1}
U3 = {
    "key": "u3",
    "keyType": "path",
    "values": [{"key": "deep", "type": "bool", "value": True}, {"key": "name", "type": "string"}],
}
UNION = spec.Task("link", config=[{"alternatives": [U1, U2, U3]}])


def given(config: dict[str, Any], task: spec.Task = UNION) -> list[Any]:
    """Return the values of a task as they are sent to generation B."""
    plan = planned(RequestedTask("a", "link", config=config), protocol="reginald", task=task)
    return [list(one.values()) for one in msgspec.to_builtins(plan.tasks[0].config)]


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({}, [["u1", [], "stringList"]]),
        ({"u1": ["x"]}, [["u1", ["x"], "stringList"]]),
        ({"u2": 5}, [["u2", 5, "int"]]),
    ],
)
def test_a_union_uses_the_set_value_or_the_first_default(
    config: dict[str, Any], values: object
) -> None:
    assert given(config) == values


def test_a_table_is_sent_as_nested_typed_values_with_absolute_paths_as_keys() -> None:
    deep = {"key": "deep", "value": True, "type": "bool"}
    name = {"key": "name", "value": "n", "type": "string"}
    table = {"key": "/project/a", "value": [deep, name], "type": "configs"}
    expected = [["u3", [table], "configs"]]
    assert given({"u3": {"a": {"name": "n"}}}) == expected
    assert given({"u3": {"a": {"name": "n"}}}, spec.Task("link", config=[U3])) == expected
    assert given({}, spec.Task("link", config=[U3])) == []


def test_one_key_may_have_alternatives_of_several_types() -> None:
    alternatives = [one | {"key": "of"} for one in (U2, U1, U3)]
    task = spec.Task("link", config=[{"alternatives": alternatives}])
    assert given({"of": ["x"]}, task) == [["of", ["x"], "stringList"]]
    assert given({"of": 3}, task) == [["of", 3, "int"]]
    assert given({"of": {}}, task) == [["of", [], "configs"]]
    assert given({}, task) == [["of", 1, "int"]]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"u2": "x"}, 'greet.link.u2 must be a whole number of 64 bits; it is "x"'),
        ({"u1": [], "u2": 5}, "link takes one of u1, u2, and all of them are set"),
        ({"u3": 5}, "greet.link.u3 must be a table of tables"),
        ({"u3": {"a": 5}}, "greet.link.u3 must be a table of tables"),
        ({"u3": {"a": {"nmae": "n"}}}, "link.u3.a does not declare nmae; did you mean"),
        ({"u3": {"a": {"deep": 1}}}, "greet.link.u3.a.deep must be true or false; it is 1"),
        ({"other": 5}, "link does not declare other"),
    ],
)
def test_wrong_values_in_a_union_or_table_are_reported_by_place(
    config: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadTasks) as caught:
        given(config)
    assert f"task a: {problem}" in caught.value.problems[0]


def test_an_undeclared_value_has_the_type_of_its_toml_form() -> None:
    config = {"b": True, "i": 5, "s": "x", "l": ["x"], "n": [1], "e": [], "t": {"in": False}}
    plan = planned(RequestedTask("a", "echo", config=config), task=spec.Task("echo"))
    inner = [spec.KeyValue("in", value=False, type="bool")]
    assert plan.tasks[0].config == [
        spec.KeyValue("b", value=True, type="bool"),
        spec.KeyValue("i", 5, "int"),
        spec.KeyValue("s", "x", "string"),
        spec.KeyValue("l", ["x"], "stringList"),
        spec.KeyValue("n", [1], "intList"),
        spec.KeyValue("e", [], "stringList"),
        spec.KeyValue("t", inner, "configs"),
    ]
    for strange in (1.5, [1, "x"], {"deep": 0.5}):
        with pytest.raises(BadTasks, match="task a: echo: key must be true or false, a whole"):
            planned(RequestedTask("a", "echo", config={"key": strange}), task=spec.Task("echo"))


# Validated and run.

WORKS = """
import json, os, threading
lock = threading.Lock()
barriers = {}
def values(m):
    return {v["key"]: v["value"] for v in m["params"].get("config") or []}
def answer(**members):
    with lock:
        speaking.write(**members)
def validate(m):
    if "bad" in values(m):
        answer(id=m["id"], error={"code": -32050, "message": values(m)["bad"]})
    else:
        answer(id=m["id"], result={})
def work(m):
    given = values(m)
    if "crash" in given:
        os._exit(3)
    if "meet" in given:  # as many have to come as it says, at the same time
        barriers.setdefault(given["meet"], threading.Barrier(given["meet"])).wait(60)
    if "fail" in given:
        answer(id=m["id"], error={"code": -32005, "message": given["fail"]})
    else:
        os.write(2, json.dumps(m["params"]).encode() + b"\\n")
        answer(id=m["id"], result={})
def run(m):
    os.write(2, b"begun\\n")
    threading.Thread(target=work, args=(m,), daemon=True).start()
speaking.serve(
    handshake=lambda m: answer(id=m["id"], result=speaking.introduction(tasks=[{"type": "x"}])),
    validateTask=validate, runTask=run)
"""


@asynccontextmanager
async def prepared(
    directory: Path, *wanted: RequestedTask, source: str = WORKS, host: RecordingHost | None = None
) -> AsyncIterator[tuple[PluginSupervisor, spec.Introduced, task_plan.TaskPlan]]:
    found = written(directory, source)
    supervisor = PluginSupervisor(
        found, (host or RecordingHost()).settings(), RestartPolicy(backoff=0.01)
    )
    try:
        async with supervisor.acquire() as plugin:
            introduced = plugin.introduced
        yield (
            supervisor,
            introduced,
            task_plan.plan(wanted, found, introduced, directory / "t.toml", "/home/me"),
        )
    finally:
        await supervisor.close()


async def ran(
    directory: Path, *wanted: RequestedTask
) -> tuple[plugin_tasks.TasksOutcome, list[str]]:
    ended: list[str] = []
    told = plugin_tasks.TaskObserver(
        lambda one, progress: None, lambda one, failure: ended.append(one)
    )
    async with prepared(directory, *wanted) as (supervisor, introduced, plan):
        return await plugin_tasks.run(supervisor, introduced, plan, told), ended


async def test_all_tasks_are_validated_and_every_problem_is_reported(tmp_path: Path) -> None:
    wanted = [RequestedTask("a", "x", config={"bad": "no"}), RequestedTask("b", "x")]
    wanted += [RequestedTask(f"c{at}", "x", config={"bad": f"{at}"}) for at in range(10)]
    async with prepared(tmp_path, *wanted) as (supervisor, introduced, plan):
        with pytest.raises(BadTasks) as caught:
            await plugin_tasks.validate(supervisor, introduced, plan)
    assert {*caught.value.problems} == {"task a: no", *(f"task c{at}: {at}" for at in range(10))}


async def test_a_plugin_without_validate_task_accepts_all_tasks(tmp_path: Path) -> None:
    without = WORKS.replace("validateTask=validate", "validateTask=refuse").replace(
        "def run(m)",
        "def refuse(m):\n    answer(id=m['id'], error={'code': -32601, 'message': 'no'})\ndef run(m)",
    )
    async with prepared(tmp_path, RequestedTask("a", "x"), source=without) as (
        supervisor,
        introduced,
        plan,
    ):
        await plugin_tasks.validate(supervisor, introduced, plan)


async def test_tasks_run_in_the_order_of_their_requirements(tmp_path: Path) -> None:
    wanted = [
        RequestedTask("c", "x", ["b"]),
        RequestedTask("b", "x", ["a"]),
        RequestedTask("a", "x"),
    ]
    outcome, ended = await ran(tmp_path, *wanted)
    assert ended == ["a", "b", "c"]
    assert outcome.ok
    assert outcome.done == ended


async def test_independent_tasks_run_at_the_same_time(tmp_path: Path) -> None:
    config = {"meet": PLUGIN_TASKS_AT_ONCE}
    meeting = [RequestedTask(f"t{at}", "x", config=config) for at in range(PLUGIN_TASKS_AT_ONCE)]
    outcome, _ = await ran(tmp_path, *meeting)
    assert len(outcome.done) == len(meeting)


class Crowd(PluginSupervisor):
    """Counts concurrent calls."""

    now = most = 0

    async def call(self, *args: Any, **more: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1


async def test_not_too_many_run_at_the_same_time() -> None:
    plan = planned(*(RequestedTask(f"t{at}", "write") for at in range(3 * PLUGIN_TASKS_AT_ONCE)))
    crowd = Crowd(FoundPlugin("greet", Path("/it"), None, Path("/it")))
    told = plugin_tasks.TaskObserver(lambda one, progress: None, lambda one, failure: None)
    outcome = await plugin_tasks.run(crowd, spec.Introduced("rpp", 0, "greet"), plan, told)
    assert len(outcome.done) == len(plan.tasks)
    assert crowd.most == PLUGIN_TASKS_AT_ONCE


async def test_a_failed_task_stops_tasks_that_require_it_and_no_others(
    tmp_path: Path,
) -> None:
    outcome, _ = await ran(
        tmp_path,
        RequestedTask("bad", "x", config={"fail": "it broke"}),
        RequestedTask("next", "x", ["bad"]),
        RequestedTask("last", "x", ["next", "good"]),
        RequestedTask("good", "x"),
    )
    assert not outcome.ok
    assert outcome.done == ["good"]
    assert outcome.failed == {"bad": "it broke"}
    assert outcome.stopped == {"next": "bad", "last": "next"}


async def test_a_plugin_that_crashes_in_a_task_is_started_again_for_the_next(
    tmp_path: Path,
) -> None:
    outcome, _ = await ran(
        tmp_path,
        RequestedTask("first", "x"),
        RequestedTask("crash", "x", ["first"], {"crash": True}),
        RequestedTask("after", "x", ["first"]),
        RequestedTask("later", "x", ["after"]),
    )
    assert outcome.failed["crash"].startswith("the plugin own ")
    # `after` ran at the same time and may have been lost too; no task is run twice.
    assert {*outcome.done} | {*outcome.failed} | {*outcome.stopped} == {
        "first",
        "crash",
        "after",
        "later",
    }


async def test_generation_b_gets_only_type_and_values(tmp_path: Path) -> None:
    lines: list[str] = []
    manifest = spec.PluginManifest("own", "own.py", tasks=[spec.Task(task_type="x")])
    source = WORKS.replace(
        'speaking.introduction(tasks=[{"type": "x"}])',
        '{"protocol": "reginald", "protocolVersion": 0, "name": "own"}',
    )
    found = written(tmp_path, source, manifest)
    supervisor = PluginSupervisor(found, RecordingHost(lines=lines).settings())
    try:
        async with supervisor.acquire() as plugin:
            introduced = plugin.introduced
        plan = task_plan.plan([RequestedTask("a", "own/x")], found, introduced, WHERE, "/home/me")
        await plugin_tasks.validate(supervisor, introduced, plan)
        told = plugin_tasks.TaskObserver(lambda one, progress: None, lambda one, failure: None)
        assert (await plugin_tasks.run(supervisor, introduced, plan, told)).ok
    finally:
        await supervisor.close()
    assert lines == ["[own] begun", '[own] {"taskType": "x", "config": []}']


async def test_cancelled_tasks_leave_nothing_running(tmp_path: Path) -> None:
    begun = asyncio.Event()

    class Listening(RecordingHost):
        def settings(self, **more: Any) -> PluginSettings:
            return super().settings(on_stderr_line=lambda line: begun.set(), **more)

    told = plugin_tasks.TaskObserver(lambda one, progress: None, lambda one, failure: None)
    alone = RequestedTask("a", "x", config={"meet": 2})
    async with prepared(tmp_path, alone, host=Listening()) as (supervisor, introduced, plan):
        running = asyncio.create_task(plugin_tasks.run(supervisor, introduced, plan, told))
        await begun.wait()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        assert supervisor.running is None
