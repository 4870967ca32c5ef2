"""A plugin cannot escape from its Lua by any of these attempts, and still answers afterwards.

Most attempts are also made in an unprotected Lua, where they succeed: an attempt that could never
succeed would prove nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import lupa.lua54
import pytest

from lua_plugins import plugin
from telex.adapters import limits
from telex.adapters.errors import PluginProblem
from telex.adapters.lua.instance import Instance
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.lua_plugin import LuaPlugin

ESCAPES = {
    "reads a file": "return io.open('/etc/passwd') ~= nil",
    "reads a file's lines": "for line in io.lines('/etc/passwd') do return true end",
    "reads from the host's input": "return io.stdin ~= nil",
    "writes a file": "return io.open('/dev/null', 'w') ~= nil",
    "runs a program": "return os.execute('true')",
    "runs a program on a pipe": "return type(io.popen) == 'function'",
    "reads the environment": "return os.getenv('PATH') ~= nil",
    "removes a file": "return type(os.remove) == 'function'",
    "makes a temporary file": "return type(io.tmpfile) == 'function'",
    "ends the process": "return type(os.exit) == 'function'",
    "reads the clock": "return os.time() > 0",
    "reads the processor's clock": "return os.clock() >= 0",
    "runs a file": "dofile('/dev/null') return true",
    "loads a file": "return loadfile('/dev/null') ~= nil",
    "loads text": "return load('return 1')() == 1",
    "loads bytecode": "return load(string.dump(function() return 1 end), 'x', 'b')() == 1",
    "dumps bytecode": "return #string.dump(function() end) > 0",
    "dumps bytecode by a method": "return #('').dump(function() end) > 0",
    "finds the library behind strings": "return getmetatable('').__index.dump ~= nil",
    "poisons all strings": "getmetatable('').__index = function() return 'bad' end return ('x').y == 'bad'",
    "adds to all strings": "getmetatable('').__call = function() return true end return ('x')()",
    "loads a C library": "return type(package.loadlib) == 'function'",
    "finds modules loaded before": "return package.loaded.os ~= nil",
    "adds a searcher": "package.searchers[1] = function() end return true",
    "changes where modules are looked for": "package.path = '/?.lua' return package.path == '/?.lua'",
    "preloads a module": "package.preload.x = function() return 1 end return require('x') == 1",
    "requires os": "return require('os').getenv ~= nil",
    "requires io": "return require('io').open ~= nil",
    "requires debug": "return require('debug').getinfo ~= nil",
    "requires package": "return require('package').loadlib ~= nil",
    "requires the globals": "return require('_G').io ~= nil",
    "requires Python": "return require('python') ~= nil",
    "finds Python": "return python ~= nil",
    "evaluates Python": "return python.eval('1 + 1') == 2",
    "finds Python's builtins": "return python.builtins.open ~= nil",
    "gets a Python attribute": "return python.as_attrgetter(python.none) ~= nil",
    "wraps Python's nothing": "return python.none ~= false and type(python.iter) == 'function'",
    "reads the registry": "return debug.getregistry() ~= nil",
    "looks at the stack": "return debug.getinfo(1) ~= nil",
    "takes the budget's hook away": "debug.sethook() return true",
    "reads the host's locals": "return debug.getlocal(1, 1) ~= 1",
    "reads upvalues": "return type(debug.getupvalue) == 'function'",
    "writes upvalues": "return type(debug.setupvalue) == 'function'",
    "changes the metatable of numbers": "debug.setmetatable(0, {}) return true",
    "asks the collector": "return collectgarbage('count') > 0",
    "finds os by a computed name": "return _G['o' .. 's'] ~= nil",
    "finds os in its environment": "return _ENV.os ~= nil",
    "finds os through globals of globals": "return _G._G._G.os ~= nil",
    "finds os by looking through all": "for name in pairs(_G) do if name == 'os' then return true end end",
    "finds os in a coroutine": "return coroutine.wrap(function() return os end)() ~= nil",
    "finds io in a coroutine's environment": "return coroutine.wrap(function() return _ENV end)().io ~= nil",
    "finds os in another environment": "local _ENV = {o = _G} return o.os ~= nil",
    "has a finalizer run": """
        local ran = false
        setmetatable({}, {__gc = function() ran = true end})
        for i = 1, 100000 do local t = {i} end
        return ran""",
    "prints": "return type(print) == 'function'",
    "warns": "return type(warn) == 'function'",
}

CLOSED_ONLY = {
    "requires a file above its directory": "return require('../other')",
    "requires by an absolute path": "return require('/etc/passwd')",
    "requires by dots": "return require('...other')",
    "requires through a directory and back": "return require('lib/../../other')",
    "requires nothing": "return require('')",
    "requires a zero byte": "return require('strings\\0')",
    "requires another plugin": "return require('claude-code.main')",
    "requires what is no name": "return require(setmetatable({}, {__tostring = function() return 'strings' end}))",
    "requires bytecode": "return require('bytecode')",
    "adds a finalizer afterwards": """
        local meta, ran = {}, false
        setmetatable({}, meta)
        meta.__gc = function() ran = true end
        for i = 1, 100000 do local t = {i} end
        return ran""",
    "hides a finalizer behind an index": """
        local ran = false
        setmetatable({}, setmetatable({}, {__index = {__gc = function() ran = true end}}))
        for i = 1, 100000 do local t = {i} end
        return ran""",
    "asks for an environment the old way": "return setfenv or getfenv or loadstring or module or newproxy",
    "finds a metatable of its globals": "return getmetatable(_G) or getmetatable(_ENV)",
    "finds a metatable of a function": "return getmetatable(pcall) or getmetatable(function() end)",
    "finds a metatable of a coroutine": "return getmetatable(coroutine.running())",
    "sets a metatable of a string": "return setmetatable('', {})",
    "resumes the host": "return (coroutine.resume((coroutine.running())))",
    "closes the host": "return coroutine.close((coroutine.running()))",
    "closes the host from a coroutine": "local host = coroutine.running() return coroutine.wrap(function() return coroutine.close(host) end)()",
    "has an index that asks itself": "return setmetatable({}, {__index = function(t, k) return t[k] end}).x",
    "yields to the host": "return coroutine.yield(1)",
    "formats with an answer that is no string": "return string.format('%s', setmetatable({}, {__tostring = function() return {} end}))",
    "sorts beyond the end": "local t = {3, 1, 2} table.sort(t, function() return true end) return t[0]",
    "moves a table beyond memory": "return table.move({1}, 1, math.maxinteger, 2)",
    "unpacks beyond the stack": "return select('#', table.unpack({}, 1, 1e7)) > 0",
    "recurses through a protected call": "local function f() return pcall(f) end return not f()",
}

SOURCE = """
local M = {}
function M.try() ATTEMPT end
function M.fine(value) return {value = value, text = ("a-b"):upper(), list = {1, 2}} end
return M
"""

NAMES = (
    "_G _VERSION assert coroutine error getmetatable ipairs math next pairs pcall ptywright rawequal rawget rawlen "
    "rawset require select setmetatable string table telex tonumber tostring type utf8 xpcall"
)


def attempt(code: str) -> LuaPlugin:
    return plugin(
        SOURCE.replace("ATTEMPT", code),
        strings="return {}",
        bytecode="\x1bLua\x54\x00\x19\x93\r\n\x1a\n",
    )


@pytest.mark.parametrize("name", [*ESCAPES, *CLOSED_ONLY])
async def test_no_plugin_escapes_the_sandbox(name: str) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(attempt({**ESCAPES, **CLOSED_ONLY}[name]))
        assert not await _answer(instance)
        assert await instance.call("fine", 7) == {"value": 7, "text": "A-B", "list": [1, 2]}


async def _answer(instance: Instance) -> object:
    """Return the result of the attempt; an error of the plugin counts as no result."""
    try:
        return await instance.call("try")
    except PluginProblem as problem:
        return None if problem.kind == "threw" else problem


@pytest.mark.parametrize("name", ESCAPES)
def test_each_escape_works_in_an_unprotected_lua(name: str) -> None:
    assert lupa.lua54.LuaRuntime().execute(ESCAPES[name])


async def test_a_plugin_finds_these_names_and_no_others() -> None:
    async with WorkerPool() as workers:
        source = "local names = {} for name in pairs(_G) do names[#names + 1] = name end\n"
        instance = workers.instance(plugin(source + "return {names = function() return names end}"))
        assert " ".join(sorted(await instance.call("names"))) == NAMES


async def test_changes_in_one_instance_are_invisible_to_others() -> None:
    async with WorkerPool() as workers:
        spoiling = plugin("""
            local M = {}
            function M.spoil()
              for _, t in pairs {string, table, math, utf8, coroutine, telex, telex.action, telex.matcher} do
                for k in next, t do t[k] = function() return "spoilt" end end
              end
              local g = _G
                  for name in next, g do g[name] = "spoilt" end
              shared = "spoilt"
              return true
            end
            function M.seen() return shared or ("x"):upper() end
            return M
        """)
        spoilt, other = workers.instance(spoiling), workers.instance(spoiling)
        assert await spoilt.call("spoil") is True
        assert await spoilt.call("seen") == "spoilt"
        assert await other.call("seen") == "X"


async def test_changes_to_libraries_by_a_plugin_do_not_affect_the_host() -> None:
    """The guards and the host's functions work even if every global was replaced."""
    async with WorkerPool() as workers:
        source = """
            local refuse, keep = telex.refuse, {next = next, pairs = pairs}
            local evil = function() return true, true, true end
            for _, t in keep.pairs {string, table, math, utf8, coroutine} do
              for name in keep.next, t do t[name] = evil end
            end
            local g = _G
            for name in keep.next, g do if name ~= "telex" then g[name] = evil end end
            return {
              no = function() refuse("busy", "not now") end,
              spin = function() while true do end end,
              plan = function() return telex.action.key("enter") end,
            }
        """
        instance = workers.instance(plugin(source))
        assert await instance.exports() == ("no", "plan", "spin")
        assert await instance.call("plan") == {"type": "key", "value": "enter"}
        with pytest.raises(PluginProblem, match="not now"):
            await instance.call("no")
        with pytest.raises(PluginProblem, match="instructions"):
            await instance.call("spin")


EVIL_METATABLE = """
    local calls = 0
    local function called() calls = calls + 1 return "evil" end
    local meta = {
      __tostring = called, __index = called, __len = called, __pairs = called, __call = called, __name = "evil",
      __concat = called, __eq = called, __metatable = {}, __newindex = called, __close = called,
    }
    local M = {}
    function M.throw() error(setmetatable({}, meta)) end
    function M.answer() return setmetatable({a = 1}, meta) end
    function M.nested() return {setmetatable({1, 2}, meta)} end
    function M.calls() return calls end
    return M
"""


async def test_metatables_of_errors_and_results_are_never_used() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(EVIL_METATABLE))
        with pytest.raises(PluginProblem, match="an error that is no string but a table"):
            await instance.call("throw")
        assert await instance.call("answer") == {"a": 1}
        assert await instance.call("nested") == [[1, 2]]
        assert await instance.call("calls") == 0


@pytest.mark.fresh_start
async def test_a_worker_process_has_few_rights_even_outside_of_lua() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin())
        await instance.exports()
        proc = Path(f"/proc/{instance.pid}")
        fds = {fd.name: os.readlink(fd) for fd in (proc / "fd").iterdir()}
        assert fds.pop("0").startswith("socket:")
        assert fds == {"1": "/dev/null", "2": "/dev/null"}
        held = _limits(proc)
        assert held["Max open files"] == held["Max file size"] == held["Max core file size"] == "0"
        assert held["Max processes"] == "0"
        assert int(held["Max address space"]) < 8 * limits.LUA_PROCESS_BYTES
        assert "NoNewPrivs:\t1" in (proc / "status").read_text()
        assert os.readlink(proc / "cwd") == "/"
        variables = (proc / "environ").read_bytes().split(b"\0")
        assert {v.split(b"=")[0] for v in variables} <= {b"", b"TELEX_TREE", b"LD_LIBRARY_PATH"}


def _limits(proc: Path) -> dict[str, str]:
    rows = (proc / "limits").read_text().splitlines()[1:]
    return {row[:26].strip(): row[26:].split()[0] for row in rows}
