"""Calls of one instance: arguments, results, order, and problems."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lua_plugins import plugin
from telex.adapters import limits
from telex.adapters.errors import PluginProblem
from telex.adapters.lua.instance import Instance
from telex.adapters.lua.lua_state import LuaState
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.protocol import PERMISSIONS

ECHO = "return {echo = function(...) return ... end, pack = function(...) return {n = select('#', ...), ...} end}"


async def problem_of(instance: Instance, function: str, *arguments: Any) -> PluginProblem:
    with pytest.raises(PluginProblem) as caught:
        await instance.call(function, *arguments)
    return caught.value


def answering(code: str) -> str:
    return f"return {{f = function(...) {code} end}}"


@pytest.mark.each_loop
async def test_a_function_is_called_and_returns_a_value() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin())
        assert "classify" in await instance.exports()
        state = await instance.call("classify", {"screen": "hello\nready> ", "size": {"rows": 24}})
        assert state["state"] == "ready"
        assert state["metadata"] == {"seen": 1, "rows": 24}
        assert instance.plugin.name == "chatty"


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    plain | texts,
    lambda inner: (
        st.lists(inner.filter(lambda item: item is not None), min_size=1, max_size=5)
        | st.dictionaries(texts, inner, max_size=5)
    ),
    max_leaves=20,
)


def _without_nothing(value: Any) -> Any:
    """Return the value without null members, as Lua has it."""
    match value:
        case dict():
            return {key: _without_nothing(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_nothing(item) for item in value]
    return value


_lua = LuaState()
assert "exports" in _lua.load("echo", "1", (), {"main.lua": ECHO}, "main.lua")


@given(values)
def test_values_survive_a_round_trip_through_lua(value: Any) -> None:
    assert _lua.call("echo", [value]) == {"value": _without_nothing(value)}


async def test_arguments_keep_their_places_and_large_numbers_their_size() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ECHO))
        assert await instance.call("pack") == {"n": 0}
        assert await instance.call("echo", 2**80) == float(2**80)
        assert "is -inf" in (await problem_of(instance, "echo", -(10**400))).problem
        assert await instance.call("echo", {"a": {}, "b": []}) == {"a": {}, "b": {}}
        assert await instance.call("echo", [1, [2, [3]]]) == [1, [2, [3]]]
        assert await instance.call("echo", "é🎉\0\n") == "é🎉\0\n"
        assert await instance.call("echo", 1, 2) == 1


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("return", None),
        ("return 'caf\\xe9'", "caf\ufffd"),
        ("return '\\xed\\xa0\\x80'", "\ufffd\ufffd\ufffd"),
        ("return {['\\xff'] = 1}", {"\ufffd": 1}),
        ("return 3.0", 3.0),
        ("return math.maxinteger", 2**63 - 1),
        ("local t = {} t.a, t.b = {}, {} return t", {"a": {}, "b": {}}),
        ("local t = {1} return {t, t}", [[1], [1]]),
        ("return {1, 2, nil}", [1, 2]),
    ],
)
async def test_a_result_is_returned_as_json_values(code: str, answer: Any) -> None:
    async with WorkerPool() as workers:
        assert await workers.instance(plugin(answering(code))).call("f") == answer


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "return {a = {b = {1, print or f or function() end}}}",
            "a.b[2] is a function, which is no data",
        ),
        ("return {coroutine.running()}", "[1] is a thread, which is no data"),
        ("return {a = 0/0}", "a is nan, which JSON cannot express"),
        ("return -1/0", "its answer is -inf, which JSON cannot express"),
        (
            "return {1, 2, x = 3}",
            "its answer is neither a list from 1 on without gaps nor a table of names",
        ),
        ("return {a = {1, nil, 3}}", "a is neither a list"),
        ("return {[true] = 1}", "its answer has a key that is neither a string nor a whole number"),
        ("return {[1.5] = 1}", "its answer has a key that is neither"),
        ("local t = {} t.t = t return t", "more than 32 levels; does it hold itself?"),
        ("local t = {} for i = 1, 30000 do t[i] = i end return t", "more than 20,000 values"),
        ("return ('x'):rep(2000000)", "more than 1,048,576 bytes"),
        ("return {[('x'):rep(2000000)] = 1}", "more than 1,048,576 bytes"),
    ],
)
async def test_a_result_that_is_no_json_names_the_place(code: str, problem: str) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(answering(code)))
        await instance.exports()
        worker = instance.pid
        told = await problem_of(instance, "f")
        assert told.kind == "shape"
        assert problem in told.problem
        assert instance.pid == worker


async def test_an_endlessly_nested_result_is_read_up_to_the_limit() -> None:
    """Thirty tables, each twice in the one above: a billion values with little memory."""
    async with WorkerPool() as workers:
        instance = workers.instance(
            plugin(answering("local t = {} for i = 1, 30 do t = {t, t} end return t"))
        )
        assert (await problem_of(instance, "f")).kind == "shape"


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("error('no prompt')", "threw", "main.lua:1: no prompt"),
        ("error('plain', 0)", "threw", "plain"),
        ("error({code = 1})", "threw", "an error that is no string but a table"),
        ("error()", "threw", "an error that is no string but a nil"),
        ("error(42, 0)", "threw", "42"),
        ("local x = nil + 1", "threw", "main.lua:1: attempt to perform arithmetic on a nil value"),
        ("return telex.action.stream_text('x', 1)", "threw", "attempt to index a number"),
        ("telex.refuse('busy', 'it is not ready')", "refused", "it is not ready"),
        ("pcall(telex.refuse, 'busy', 'it is not ready') return 1", "refused", "it is not ready"),
        (
            "coroutine.resume(coroutine.create(telex.refuse), 'busy', 'it is not ready') return 1",
            "refused",
            "it is not ready",
        ),
        (
            "coroutine.wrap(function() telex.refuse('busy', 'it is not ready') end)()",
            "refused",
            "it is not ready",
        ),
        ("telex.refuse(1)", "threw", "main.lua:1: telex.refuse takes a code and a message"),
    ],
)
async def test_an_error_of_the_plugin_names_the_line(code: str, kind: str, said: str) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(answering(code), name="wrong"))
        problem = await problem_of(instance, "f")
        assert problem.kind == kind
        assert said in problem.problem
        assert str(problem).startswith("wrong: ")
        assert problem.code == ("busy" if kind == "refused" else None)
        assert problem.facts()["kind"] == kind
        assert "Traceback" not in str(problem)
        assert os.getcwd() not in str(problem)


async def test_a_long_error_message_is_cut() -> None:
    async with WorkerPool() as workers:
        for code in (
            "error(('x'):rep(5000000))",
            "telex.refuse('c', ('x'):rep(5000000))",
            "return {[('x'):rep(9999)] = type}",
        ):
            problem = await problem_of(workers.instance(plugin(answering(code))), "f", 10**30)
            assert 4000 < len(problem.problem) <= limits.LUA_PROBLEM_CHARS


async def test_pcall_catches_errors_of_lua_as_usual() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(
            plugin("""
            local M = {}
            function M.caught() local ok, e = pcall(error, {x = 1}) return {ok, e} end
            function M.handled() return {xpcall(function() error("a", 0) end, function(e) return e .. "b" end)} end
            function M.passed() return {pcall(function(...) return ... end, 1, 2)} end
            function M.yields()
              local co = coroutine.wrap(function(a)
                local ok, b = pcall(function() return coroutine.yield(a + 1) end)
                return b * 2
              end)
              return {co(1), co(10)}
            end
            function M.wrapped() return {pcall(coroutine.wrap(function() error("in it", 0) end))} end
            function M.closes()
              local seen = {}
              pcall(function() local x <close> = setmetatable({}, {__close = function(_, e) seen[1] = e end}) error("e", 0) end)
              return seen
            end
            return M
        """)
        )
        assert await instance.call("caught") == [False, {"x": 1}]
        assert await instance.call("handled") == [False, "ab"]
        assert await instance.call("passed") == [True, 1, 2]
        assert await instance.call("yields") == [2, 20]
        assert await instance.call("wrapped") == [False, "in it"]
        assert await instance.call("closes") == ["e"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("return {", "main.lua:1: unexpected symbol near <eof>"),
        ("local x = 1", "main.lua answered a nil where a table of functions is wanted"),
        ("return 5", "main.lua answered a number"),
        ("error('at load', 0)", "at load"),
        (
            "return require('absent')",
            "there is no module 'absent': the plugin has neither absent.lua nor absent/init.lua",
        ),
        ("return require('main')", "main.lua requires itself"),
        ("return require('a')", "requires itself"),
        ("return require('broken')", "broken.lua:1: <name> expected"),
        ("telex.refuse('no', 'I will not')", "I will not"),
        ("\x1bLua", "attempt to load a binary chunk"),
    ],
)
async def test_a_plugin_that_does_not_load_fails_each_call(source: str, said: str) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(
            plugin(source, a="return require('b')", b="return require('a')", broken="local =")
        )
        for _ in range(5):
            problem = await problem_of(instance, "classify")
            assert problem.kind == "load"
            assert said in problem.problem
        with pytest.raises(PluginProblem, match="chatty: "):
            await instance.exports()


async def test_modules_are_found_in_the_plugins_own_directory_and_run_once() -> None:
    source = """
        local strings, x, y = require("strings"), require("lib.x"), require("lib/y")
        return {f = function() return {strings.name, x.n, y.n, require("lib.x") == x, require("silent"), ...} end}
    """.replace(", ...", "")
    files = {
        "strings": "return {name = 'strings'}",
        "lib/x": "count = (count or 0) + 1 return {n = count}",
        "lib/y/init": "return {n = require('lib.x').n}",
        "silent": "",
    }
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(source, **files))
        assert await instance.call("f") == ["strings", 1, 1, True, True]


async def test_only_functions_are_exported_and_only_they_can_be_called() -> None:
    source = (
        "return setmetatable({b = type, a = pcall, n = 1, [1] = type}, {__index = {hidden = type}})"
    )
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(source))
        assert await instance.exports() == ("a", "b")
        for name in ("n", "hidden", "absent", "", "__index"):
            assert (await problem_of(instance, name)).kind == "no_function"


HOST = {
    "input.write": {
        "text",
        "stream_text",
        "paste",
        "bracketed_paste",
        "key",
        "interrupt",
        "eof",
        "mark_transcript",
    },
    "session.kill": {"kill", "signal"},
    "session.resize": {"resize"},
}
MATCHERS = (
    "all any contains_text cursor_at exit_code input_wanted lua none process_exited screen_regex screen_stable text_absent title "
    "transcript_contains transcript_regex"
)
TOLD = """
local function names(t) local found = {} for name in pairs(t) do found[#found + 1] = name end return found end
return {told = function() return {
  action = names(telex.action), matcher = names(telex.matcher), same = telex == ptywright,
  plugin = telex.plugin, version = telex.version,
} end}
"""


@pytest.mark.parametrize("permission", [*PERMISSIONS, "none"])
async def test_a_plugin_finds_the_functions_its_manifest_permits(permission: str) -> None:
    async with WorkerPool() as workers:
        told = await workers.instance(plugin(TOLD, permission)).call("told")
    assert set(told["action"]) == HOST.get(permission, set())
    assert " ".join(sorted(told["matcher"])) == (MATCHERS if permission == "matcher.wait" else "")
    assert told["same"] is True
    assert told["plugin"] == "chatty"
    assert told["version"]


async def test_results_of_host_functions_are_valid_on_the_wire() -> None:
    source = """
        local a, m = telex.action, telex.matcher
        return {f = function() return {
          a.text("t"), a.stream_text("t", {delay_ms = 5, x = 1}), a.paste("p"), a.bracketed_paste("b"), a.key("enter"),
          a.interrupt(), a.eof(), a.mark_transcript("l"), a.kill(), a.signal("term"), a.resize(24, 80),
        } end, m = function() return m.any{
          m.contains_text("c"), m.screen_regex("s"), m.transcript_contains("t"), m.transcript_regex("r"),
          m.screen_stable(300), m.screen_stable{min_ms = 1, since = "change"}, m.process_exited(), m.text_absent("x"),
          m.title("t"), m.cursor_at(1, 2), m.exit_code(0), m.none(m.all{m.lua("p", {a = 1})}), m.lua("q"),
        } end}
    """
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(source, name="mine"))
        assert await instance.call("f") == [
            {"type": "text", "value": "t"},
            {"type": "stream_text", "value": {"text": "t", "delay_ms": 5}},
            {"type": "paste", "value": "p"},
            {"type": "bracketed_paste", "value": "b"},
            {"type": "key", "value": "enter"},
            {"type": "interrupt"},
            {"type": "eof"},
            {"type": "mark_transcript", "value": {"label": "l"}},
            {"type": "kill"},
            {"type": "signal", "value": "term"},
            {"type": "resize", "value": {"rows": 24, "cols": 80}},
        ]
        assert await instance.call("m") == {
            "type": "any",
            "value": [
                {"type": "contains_text", "value": "c"},
                {"type": "screen_regex", "value": "s"},
                {"type": "transcript_contains", "value": "t"},
                {"type": "transcript_regex", "value": "r"},
                {"type": "screen_stable", "value": {"min_ms": 300}},
                {"type": "screen_stable", "value": {"min_ms": 1, "since": "change"}},
                {"type": "process_exited"},
                {"type": "text_absent", "value": "x"},
                {"type": "title", "value": "t"},
                {"type": "cursor_at", "value": {"row": 1, "col": 2}},
                {"type": "exit_code", "value": 0},
                {
                    "type": "not",
                    "value": {
                        "type": "all",
                        "value": [
                            {
                                "type": "lua",
                                "value": {"plugin": "mine", "predicate": "p", "params": {"a": 1}},
                            }
                        ],
                    },
                },
                {"type": "lua", "value": {"plugin": "mine", "predicate": "q"}},
            ],
        }


ORDERED = "local seen = {} return {add = function(n) seen[#seen + 1] = n return #seen end, seen = function() return seen end, spin = function() while true do end end}"


async def test_calls_are_answered_in_the_order_they_were_made() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ORDERED))
        answers = await asyncio.gather(*(instance.call("add", n) for n in range(200)))
        assert answers == list(range(1, 201))
        assert await instance.call("seen") == list(range(200))


async def test_cancelling_a_call_does_not_disturb_others() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ORDERED))
        calls = [asyncio.ensure_future(instance.call("add", n)) for n in range(4)]
        await asyncio.sleep(0)
        calls[0].cancel()  # running, or its plugin is being loaded
        calls[2].cancel()  # not sent yet
        assert isinstance(
            (await asyncio.gather(*calls, return_exceptions=True))[0], asyncio.CancelledError
        )
        seen = await instance.call("seen")
        assert seen in ([1, 3], [0, 1, 3])
        under_way = asyncio.ensure_future(instance.call("add", 4))
        await asyncio.sleep(0)
        under_way.cancel()
        assert await instance.call("seen") == [*seen, 4]


async def test_calls_after_a_failed_call_run_in_another_worker() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ORDERED))
        assert await instance.call("add", 1) == 1
        first = instance.pid
        spin, after = await asyncio.gather(
            instance.call("spin"), instance.call("add", 2), return_exceptions=True
        )
        assert isinstance(spin, PluginProblem)
        assert spin.kind == "budget"
        assert after == 1
        assert instance.pid != first


async def test_a_plugin_that_fails_repeatedly_rests_and_is_retried() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ORDERED))
        kinds = [(await problem_of(instance, "spin")).kind for _ in range(3)]
        assert kinds == ["budget"] * 3
        resting = await problem_of(instance, "add", 1)
        assert resting.kind == "resting"
        assert "failed 3 times in a row" in resting.problem
        assert "instructions" in resting.problem
        async with asyncio.timeout(60):
            while (await _kind(instance, "add", 1)) == "resting":
                await asyncio.sleep(0.02)
        assert (await problem_of(instance, "spin")).kind == "budget"
        assert await instance.call("add", 1) == 1  # a success resets the count of failures


async def _kind(instance: Instance, function: str, *arguments: Any) -> str:
    try:
        await instance.call(function, *arguments)
    except PluginProblem as problem:
        return problem.kind
    return ""


async def test_a_worker_that_does_not_answer_is_killed_at_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.adapters.limits.LUA_DEADLINE_MS", 1000)
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ORDERED))
        await instance.exports()
        stopped = instance.pid or 0
        os.kill(stopped, signal.SIGSTOP)
        problem = await problem_of(instance, "add", 1)
        assert problem.kind == "deadline"
        assert f"{limits.LUA_DEADLINE_MS} ms" in problem.problem
        assert await instance.call("add", 1) == 1
        async with asyncio.timeout(60):
            while os.path.exists(f"/proc/{stopped}"):
                await asyncio.sleep(0.005)


async def test_a_closed_instance_fails_every_call() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(ORDERED))
        await instance.exports()
        pid = instance.pid
        waiting = [asyncio.ensure_future(instance.call("add", n)) for n in range(3)]
        await asyncio.sleep(0)
        await instance.close()
        assert not os.path.exists(f"/proc/{pid}")
        for call in waiting:
            with pytest.raises(PluginProblem, match="was closed"):
                await call
        assert (await problem_of(instance, "add", 1)).kind == "closed"
        with pytest.raises(PluginProblem):
            await instance.exports()
        await instance.close()


@pytest.mark.each_loop
async def test_large_arguments_and_answers_pass_whole() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(
            plugin("return {f = function(s) return {#s, s:sub(1, 1000000)} end}")
        )
        text = "é\n" * 1_000_000
        assert await instance.call("f", text) == [
            3_000_000,
            text.encode()[:1_000_000].decode(errors="replace"),
        ]
