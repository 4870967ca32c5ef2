"""Compares docs/reference/plugin-api.md with real plugins in real workers: every table of the page must
list all names and no others. The examples of the page are run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from lua_plugins import plugin, serving
from telex.adapters import adapter as adapters_adapter
from telex.adapters import classification, fixtures
from telex.adapters.classification import classify
from telex.adapters.context import STATUS_ROWS, fixture_context
from telex.adapters.errors import Kind, PluginProblem
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.lua_plugin import LuaPlugin
from telex.adapters.manifest import parse
from telex.adapters.protocol import (
    COMPLETED_TURN_STABLE_MS,
    PERMISSIONS,
    REQUIRED,
    CoreIntents,
    DefaultTarget,
    Manifest,
)
from telex.cli.doctor.checks import all_limits
from telex.terminal import limits as terminal_limits
from telex.version import __version__

PAGE = (Path(__file__).parents[2] / "docs/reference/plugin-api.md").read_text()
_CODE = re.compile(r"`([^`]+)`")

Table = list[tuple[str, ...]]


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def tables(heading: str) -> list[Table]:
    """Return the rows of each table of a section, without its header."""
    found = re.findall(r"(?:^\|.*\n)+", section(heading), re.MULTILINE)
    return [[cells(line) for line in table.splitlines()[2:]] for table in found]


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def coded(text: str) -> list[str]:
    return _CODE.findall(text)


def named(table: Table) -> list[str]:
    """Return all code spans of the first column."""
    return [name for row in table for name in coded(row[0])]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def example() -> LuaPlugin:
    """Build the plugin of the page's examples; their first line names the file."""
    files: dict[str, str] = {}
    for block in blocks("lua"):
        name = block.splitlines()[0].removeprefix("-- ")
        assert name.endswith(".lua"), block
        files[name] = files.get(name, "") + block
    manifest, _ = blocks("toml")
    return LuaPlugin(parse(manifest), files)


async def answers(source: str, *permissions: str, name: str = "deploy") -> Any:
    """Return the result of `M.ask` of a plugin, in a worker."""
    async with WorkerPool() as workers:
        made = plugin(f"local M = {{}}\n{source}\nreturn M", *permissions, name=name)
        return await workers.instance(made).call("ask")


KEYS = (
    "local function keys(t) local k = {} for name in pairs(t) do k[#k + 1] = name end return k end"
)


# Shapes.


@pytest.mark.parametrize(
    ("heading", "number", "shape"),
    [
        ("manifest.toml", 0, Manifest),
        ("manifest.toml", 1, DefaultTarget),
        ("manifest.toml", 2, CoreIntents),
        ("classify", 0, classification._StateAnswer),
        ("Intents", 0, classification._PlanAnswer),
        ("Predicates", 0, classification._OutcomeAnswer),
        ("Fixtures", 0, fixtures.Expected),
    ],
)
def test_the_fields_of_a_shape_are_on_the_page_and_no_others(
    heading: str, number: int, shape: type[msgspec.Struct]
) -> None:
    table = tables(heading)[number]
    fields = msgspec.structs.fields(shape)
    assert sorted(named(table)) == sorted(field.name for field in fields)
    needed = {row[0].strip("`") for row in table if row[1] == "needed"}
    if needed:
        assert needed == {field.name for field in fields if field.required}


def test_the_permissions_and_their_methods_are_those_of_the_host() -> None:
    (table,) = tables("Permissions")
    assert sorted(named(table)) == sorted(PERMISSIONS)
    for row in table:
        permission = row[0].strip("`")
        wanted = [method for method, needs in REQUIRED.items() if permission in needs]
        assert sorted(coded(row[1])) == sorted(wanted), permission


def test_the_numbers_are_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telex.adapters.limits.LUA_DEADLINE_MS", 800)  # not that of other tests
    (table,) = tables("Limits")
    about = {"PLAN_ACTIONS", "PLAN_STEPS", "PLAN_STEP_SECONDS"} | {
        name for name in all_limits() if name.startswith(("LUA_", "MANIFEST_"))
    }
    told = {row[0].strip("`"): row[1] for row in table}
    assert told == {
        name: f"{limit.value:,} {limit.unit}"
        for name, limit in all_limits().items()
        if name in about
    }
    assert f"last {terminal_limits.TRANSCRIPT_TAIL_CHARS:,} characters" in section("ctx")
    assert f"| {COMPLETED_TURN_STABLE_MS}: after" in section("ctx")
    assert (STATUS_ROWS, "bottom three rows" in section("ctx")) == (3, True)
    target = {row[0]: row[1] for row in tables("manifest.toml")[1]}
    assert (target["`rows`"], target["`cols`"]) == (
        str(adapters_adapter.ROWS),
        str(adapters_adapter.COLS),
    )


# The context.

NOSY = f"""
{KEYS}
local M = {{}}
function M.classify(ctx) return {{state = "x", confidence = 1, metadata = {{keys = keys(ctx)}}}} end
function M.leave()
  local action = telex.action
  return {{actions = {{action.mark_transcript("sent"), action.key("enter")}}, last_intent = "left"}}
end
function M.wait_turn_matcher() return telex.matcher.process_exited() end
function M.look(input)
  input.keys = keys(input)
  return {{matched = true, evidence = input}}
end
return M
"""
TITLED = (
    "print('\\x1b]0;a title\\x07one', *range(2, 8), sep='\\n')\ninput('words')\nraise SystemExit(3)"
)


async def shown_to(*permissions: str) -> tuple[list[str], dict[str, Any]]:
    """Return the fields of `ctx` and `input` for a program that set a title and exited."""
    nosy, looking = plugin(NOSY, name="nosy"), plugin(NOSY, *permissions, name="looking")
    async with serving(nosy, looking) as caller:
        program = {"program": sys.executable, "args": ["-c", TITLED]}
        started = await caller.call("adapter.start", plugin="nosy", **program)
        adapter, session = started["adapter"], started["session"]
        text = {"type": "contains_text", "value": "words"}
        await caller.call("session.wait", session=session, matcher=text)
        turn = await caller.call("adapter.turn", adapter=adapter, send={"intent": "leave"})
        predicate = {"type": "lua", "value": {"plugin": "looking", "predicate": "look"}}
        waited = await caller.call("session.wait", session=session, matcher=predicate)
        return turn["state"]["metadata"]["keys"], waited["evidence"]["evidence"]


async def test_the_fields_of_ctx_and_input_are_on_the_page_and_no_others() -> None:
    (table,) = tables("ctx")
    ctx, seen = await shown_to()
    assert sorted(named(table)) == sorted(ctx)
    assert sorted(seen["keys"]) == sorted({*ctx, "params"} - {"last_intent"})


async def test_values_without_their_permission_are_blank() -> None:
    _, everything = await shown_to()
    (table,) = tables("ctx")
    for permission in ("screen.read", "transcript.read"):
        others = [one for one in PERMISSIONS if one != permission]
        _, seen = await shown_to(*others)
        lost = {name for name in everything if not seen.get(name) and everything[name]}
        blank = {row[0].strip("`") for row in table if row[2] == f"`{permission}`"}
        assert lost == blank, permission
        assert "title" in seen["keys"] or permission == "screen.read"


def test_a_fixture_has_the_context_on_the_page() -> None:
    shown = fixture_context("x", {})
    assert shown["stable_ms"] == COMPLETED_TURN_STABLE_MS
    assert (shown["size"], shown["transcript"]) == ({"rows": 24, "cols": 80}, "")
    missing = set(named(tables("ctx")[0])) - set(shown) - {"last_intent", "exit_code"}
    (sentence,) = re.findall(r"transcript is\nempty, and (.*?) are nil", section("Fixtures"))
    assert missing == set(coded(sentence))


# The host's functions.


def calls() -> Table:
    return tables("telex")[1]


@pytest.mark.parametrize("permission", [*PERMISSIONS, "none"])
async def test_a_permission_adds_the_functions_on_the_page(permission: str) -> None:
    found = await answers(
        f"""{KEYS} function M.ask()
          return {{action = keys(telex.action), matcher = keys(telex.matcher)}} end""",
        permission,
    )
    there = {f"telex.{table}.{name}" for table, names in found.items() for name in names}
    told = [coded(row[0])[0] for row in calls() if row[2] == f"`{permission}`"]
    assert there == {re.split(r"[ ({]", call)[0] for call in told}


@pytest.mark.parametrize("row", calls(), ids=lambda row: row[0].strip("`"))
async def test_a_host_function_returns_the_value_on_the_page(row: tuple[str, ...]) -> None:
    call, answer = coded(row[0])[0], json.loads(coded(row[1])[0])
    found = await answers(f"function M.ask() return {call} end")
    assert found == answer
    if call.startswith("telex.action."):
        assert classification.read_plan("deploy", "ask", [found]).actions
    else:
        assert classification.read_matcher("deploy", "ask", found)


async def test_the_globals_are_on_the_page_and_no_others() -> None:
    names, libraries = tables("The sandbox")
    listed = {row[0].strip("`"): sorted(coded(row[1])) for row in libraries}
    found = await answers(
        f"""{KEYS} function M.ask()
          local t = {{all = keys(_G), telex = keys(telex), same = rawequal(telex, ptywright)}}
          for _, name in ipairs {{ {", ".join(map(repr, listed))} }} do t[name] = keys(_G[name]) end
          t.version, t.plugin = telex.version, telex.plugin
          return t
        end"""
    )
    assert sorted(found["all"]) == sorted(named(names))
    assert {name: sorted(found[name]) for name in listed} == listed
    assert [f"telex.{name}" for name in sorted(found["telex"])] == sorted(named(tables("telex")[0]))
    assert (found["same"], found["version"], found["plugin"]) == (True, __version__, "deploy")


async def test_the_functions_of_the_view_are_on_the_page_and_no_others() -> None:
    found = await answers(f'{KEYS} function M.ask() return keys(require("telex.view")) end')
    told = {call.partition("(")[0] for call in named(tables("require")[0])}
    assert {f"view.{name}" for name in found} == told


async def test_a_file_of_the_plugin_goes_before_a_module_of_the_host() -> None:
    made = plugin('return {ask = function() return require("telex.view") end}')
    own = LuaPlugin(made.manifest, {**made.files, "telex/view.lua": 'return "own"'})
    async with WorkerPool() as workers:
        assert await workers.instance(own).call("ask") == "own"


async def test_names_that_the_page_excludes_do_not_exist() -> None:
    (sentence,) = re.findall(r"Not available: (.*?)\. A plugin", section("The sandbox"), re.DOTALL)
    names = coded(sentence)
    assert len(names) > 10
    assert await answers(f"function M.ask() return {{ {', '.join(names)} }} end") == {}


# Failures.

FAILING = {
    "threw": "error('no')",
    "refused": "pcall(telex.refuse, 'no', 'not now')",
    "shape": "return print or pairs",
    "budget": "pcall(function() while true do end end)",
    "memory": "return ('x'):rep(1 << 26)",
    "deadline": "return (('a'):rep(20000)):find('.-.-.-b')",
}


def test_the_kinds_of_problems_are_on_the_page_and_no_others() -> None:
    (table,) = tables("Failures")
    assert sorted(named(table)) == sorted(get_args(Kind))


@pytest.mark.parametrize("kind", [*FAILING, "no_function"])
async def test_a_worker_survives_or_is_replaced_as_on_the_page(kind: str) -> None:
    (table,) = tables("Failures")
    (what,) = [row[2] for row in table if row[0] == f"`{kind}`"]
    body = FAILING.get(kind)
    source = f"local M = {{}} {f'function M.ask() {body} end' if body else ''} return M"
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(source))
        await instance.exports()
        before = instance.pid
        with pytest.raises(PluginProblem) as caught:
            await instance.call("ask")
        assert caught.value.kind == kind
        assert what == ("is kept" if instance.pid == before else "replaced")


# The examples.

DEPLOY = (
    "print('Plan: 3 machines, 1 restart', *['-'] * 4, sep='\\n')\n"
    "if input('Deploy web? [y/N] ') == 'y': print('done')\n"
)


async def test_the_example_drives_a_program() -> None:
    async with serving(example()) as caller:
        program = {"program": sys.executable, "args": ["-c", DEPLOY]}
        started = await caller.call("adapter.start", plugin="deploy", **program)
        adapter = started["adapter"]
        waited = await caller.call("adapter.wait", adapter=adapter, params={"what": "web"})
        assert waited["state"]["metadata"] == {"what": "web"}
        assert waited["matched"]["matched"]["matched"][1]["capture"] == "web"
        approve = {"intent": "approve"}
        turn = await caller.call("adapter.turn", adapter=adapter, send=approve)
        assert turn["state"]["evidence"] == "exited with code 0"
        assert turn["state"]["last_intent"] == "approved"
        refusal = await caller.refused("adapter.send", adapter=adapter, **approve)
        assert refusal.data["reason"] == "not_asking"


async def test_the_example_forgets_its_state_when_it_is_stopped() -> None:
    async with serving(example()) as caller:
        program = {"program": sys.executable, "args": ["-c", DEPLOY]}
        started = await caller.call("adapter.start", plugin="deploy", **program)
        adapter = started["adapter"]
        await caller.call("adapter.wait", adapter=adapter)
        state = (await caller.call("adapter.send", adapter=adapter, intent="stop"))["state"]
        assert state["last_intent"] is None


async def test_the_example_presses_enter_when_its_answer_is_shown() -> None:
    async with serving(example()) as caller:
        program = {"program": sys.executable, "args": ["-c", DEPLOY]}
        adapter = (await caller.call("adapter.start", plugin="deploy", **program))["adapter"]
        await caller.call("adapter.wait", adapter=adapter)
        answer = {"intent": "answer", "params": {"text": "y"}}
        turn = await caller.call("adapter.turn", adapter=adapter, send=answer)
        assert turn["state"]["evidence"] == "exited with code 0"
        assert turn["state"]["last_intent"] == "answered"


async def test_the_example_describes_itself_and_exports_nothing_untested() -> None:
    async with serving(example()) as caller:
        told = await caller.call("plugin.describe", plugin="deploy")
    listed = [one["name"] for one in (*told["intents"], *told["wait_matchers"])]
    async with WorkerPool() as workers:
        exports = await workers.instance(example()).exports()
    assert sorted(exports) == sorted(
        [*listed, "asks", "answer", "answer_shown", "classify", "describe"]
    )


async def test_the_fixture_on_the_page_passes() -> None:
    (fixture,), problems = fixtures.parse_fixtures(blocks("toml")[1])
    assert not problems
    async with WorkerPool() as workers:
        said = await classify(workers.instance(example()), fixture.context())
    assert said.problem is None
    assert fixtures.differences(fixture.expected, said.state) == []
