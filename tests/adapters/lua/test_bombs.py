"""A plugin that uses too much time or memory is ended, with a problem that names the limit.

Other instances still answer. Times are printed, and compared with bounds for a busy machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lua_plugins import plugin
from telex.adapters import limits as adapters_limits
from telex.adapters.errors import PluginProblem
from telex.adapters.lua.instance import Instance
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.lua_plugin import LuaPlugin
from telex.wire import limits

COUNTED = {
    "a loop": "while true do end",
    "a loop by goto": "::again:: goto again",
    "a loop of protected loops": "while true do pcall(function() while true do end end) end",
    "a loop that catches the end of its budget": "repeat until not pcall(function() while true do end end) while true do end",
    "a handler that loops": "xpcall(error, function() while true do end end)",
    "a loop in a loop's handler": "xpcall(function() while true do end end, function() while true do end end)",
    "a loop in a coroutine that is caught": "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "a loop when a variable is closed": """
        while true do
          pcall(function() local x <close> = setmetatable({}, {__close = function() while true do end end}) error() end)
        end""",
    "a sort that compares for ever": "local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() while true do end end)",
    "an index that loops": "return setmetatable({}, {__index = function(t, k) while true do rawget(t, k) end end}).x",
    "a length that loops": "return #setmetatable({}, {__len = function() while true do end end})",
    "a tostring that loops": "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
}
"""Ended by the instruction limit, unless the CPU limit comes first."""

TIME = {
    **COUNTED,
    "a loop of protected errors": "while true do pcall(error) end",
    "a handler that fails and loops": "while true do xpcall(error, function(e) local x = e.x.y end) end",
    "coroutines within coroutines": """
        local function deeper() coroutine.wrap(deeper)() end
        while true do pcall(deeper) end""",
    "coroutines without end": "while true do coroutine.wrap(function() for i = 1, 9000 do end end)() end",
    "a coroutine that yields for ever": "for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end",
    "a coroutine resumed for ever": "local co = coroutine.create(function() while true do coroutine.yield() end end) while true do coroutine.resume(co) end",
    "find that goes back and back": "return (('a'):rep(20000)):find('.-.-.-b')",
    "match that goes back and back": "return (('a'):rep(20000)):match('(.-)(.-)(.-)b')",
    "gmatch that goes back and back": "for m in (('a'):rep(20000)):gmatch('.-.-.-b') do end",
    "gsub that goes back and back": "return (('a'):rep(20000)):gsub('.-.-.-b', '')",
    "find that is caught": "while true do pcall(string.find, ('a'):rep(20000), '.-.-.-b') end",
    "sorts of many": "local t = {} for i = 1, 200000 do t[i] = i % 977 end while true do table.sort(t) end",
    "moves of many": "local t = {} while true do table.move(t, 1, 1e9, 2) end",
    "formats without end": "local t = {} for i = 1, 50 do t[i] = 1e300 end while true do ('%99.99f'):rep(50):format(table.unpack(t)) end",
    "unpacking and packing": "while true do local s = string.pack(('i8'):rep(100), table.unpack((function() local t = {} for i = 1, 100 do t[i] = i end return t end)())) end",
    "reversing a large string": "local s = ('x'):rep(8000000) while true do s:reverse() end",
    "concatenation of the same": "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1000) end while true do table.concat(t) end",
}

MEMORY = {
    "one string": "return #('x'):rep(1 << 40)",
    "a string that doubles": "local s = 'x' while true do s = s .. s end",
    "a table that grows": "local t = {} while true do t[#t + 1] = {} end",
    "a string of tables": "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(10000) .. i end",
    "a concatenation": "local t = {} for i = 1, 10000 do t[i] = ('x'):rep(5000) end return #table.concat(t)",
    "a replacement": "return #(('x'):rep(10000):gsub('.', ('y'):rep(100000)))",
    "closures": "local f while true do local g = f f = function() return g end end",
    "a stack": "local function f() return 1 + f() end return f()",
    "strings that are caught": "while true do pcall(string.rep, 'x', 1 << 40) end",
    "a stack that is caught": "local function f() return 1 + f() end while true do pcall(f) end",
}

FINE = "function M.fine(n) return n + 1 end"
OTHER = plugin(f"local M = {{}} {FINE} return M")


def bombed(code: str) -> LuaPlugin:
    return plugin(f"local M = {{}} function M.bomb() {code} end {FINE} return M", name="bomb")


async def slowest_while(instance: Instance, bomb: asyncio.Future[PluginProblem]) -> float:
    """Return the slowest answer of an instance while a bomb runs in another."""
    slowest = 0.0
    while not bomb.done():
        began = time.perf_counter()
        assert await instance.call("fine", 1) == 2
        slowest = max(slowest, time.perf_counter() - began)
    return slowest


async def problem_of(instance: Instance, function: str = "bomb") -> PluginProblem:
    try:
        answer = await instance.call(function)
    except PluginProblem as problem:
        return problem
    raise AssertionError(f"it answered {answer!r}")


@pytest.mark.parametrize("name", TIME)
async def test_a_bomb_of_time_ends_while_others_answer(name: str) -> None:
    async with WorkerPool() as workers:
        instance, other = workers.instance(bombed(TIME[name])), workers.instance(OTHER)
        await asyncio.gather(instance.exports(), other.exports())
        began = time.perf_counter()
        bomb = asyncio.ensure_future(problem_of(instance))
        slowest = await slowest_while(other, bomb)
        problem, took = bomb.result(), time.perf_counter() - began
        print(
            f"{problem.kind} after {took * 1000:.0f} ms; the slowest other took {slowest * 1000:.1f} ms"
        )
        # On a busy machine the CPU limit may come before the instruction limit.
        assert problem.kind in {"budget", "deadline"}, problem
        assert (problem.plugin, problem.function) == ("bomb", "bomb")
        assert problem.problem.startswith("it ")
        assert await instance.call("fine", 1) == 2


def test_endless_lua_loops_end_at_the_instruction_limit() -> None:
    """Runs in a process without the CPU timer, so only the instruction limit can end the loop."""
    program = """
import json, sys
from telex.adapters.lua.lua_state import LuaState
code = sys.stdin.read()
lua = LuaState()
lua.load("bomb", "0", [], {"main.lua": code}, "main.lua")
print(lua.call("bomb", [])["kind"])
"""
    for name, code in COUNTED.items():
        source = bombed(code).files["main.lua"]
        ran = subprocess.run(
            [sys.executable, "-c", program],
            input=source,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.stdout == "budget\n", (name, ran.stdout, ran.stderr)


@pytest.mark.parametrize("name", MEMORY)
async def test_a_bomb_of_memory_is_capped(name: str) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(bombed(MEMORY[name]))
        await instance.exports()
        bomb = asyncio.ensure_future(problem_of(instance))
        peak, problem = await _peak_until(bomb, instance.pid), bomb.result()
        print(f"{problem.kind}, at most {peak / limits.MIB:.0f} MiB")
        assert problem.kind in {"memory", "budget", "deadline", "threw"}, problem
        assert peak < 64 * limits.MIB
        assert await instance.call("fine", 1) == 2


async def _peak_until(bomb: asyncio.Future[PluginProblem], pid: int | None) -> int:
    """Return the peak memory of a process, as far as it is visible while the process runs."""
    peak = 0
    while not bomb.done():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            peak = int(found[1]) * 1024 if found else peak
        await asyncio.wait([bomb], timeout=0.005)
    return peak


async def test_the_kernel_ends_a_loop_in_c() -> None:
    async with WorkerPool() as workers:
        problem = await problem_of(workers.instance(bombed(TIME["find that goes back and back"])))
        assert problem.kind == "deadline"
        assert (
            problem.problem
            == f"it took more than {adapters_limits.LUA_CPU_MS} ms of processor time"
        )


@pytest.mark.parametrize("code", ["while true do end", "return (('a'):rep(20000)):find('.-.-.-b')"])
async def test_a_bomb_when_the_plugin_is_loaded_ends_too(code: str) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(code))
        assert (await problem_of(instance)).kind in {"budget", "deadline"}


async def test_all_bombs_at_once_do_not_stop_another_instance() -> None:
    async with WorkerPool() as workers:
        other = workers.instance(OTHER)
        await other.exports()
        instances = [workers.instance(bombed(code)) for code in TIME.values()]
        bombs = asyncio.gather(*map(problem_of, instances))
        slowest = await slowest_while(other, bombs)
        print(
            f"{len(instances)} bombs at once; the slowest other answer took {slowest * 1000:.0f} ms"
        )
        assert {problem.kind for problem in bombs.result()} <= {"budget", "deadline", "memory"}


async def test_a_plugin_out_of_memory_fails_its_call_and_not_the_worker() -> None:
    """The plugin keeps so much memory that the arguments of the next call do not fit. This takes only
    a few ms of CPU time, so the memory limit is reached before the other two."""
    source = """
        local M, kept = {}, {}
        local function megabyte(i) return ("x"):rep(1000 * 1000) .. i end
        function M.fill() pcall(function() while true do kept[#kept + 1] = megabyte(#kept) end end) end
        function M.nearly() for i = 1, 24 do kept[i] = megabyte(i) end return #kept end
        function M.fine(text) return {#text} end
        return M
    """
    argument = "y" * 10_000_000
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(source))
        assert (await problem_of(instance, "fill")).kind == "memory"
        assert await instance.call("nearly") == 24
        with pytest.raises(PluginProblem) as caught:
            await instance.call("fine", argument)
        assert caught.value.problem == "it needed more than 32 MiB of memory"
        assert await instance.call("fine", argument) == [10_000_000]
