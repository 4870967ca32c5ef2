"""What others would do with a plugin's Lua: run it here, in a pool, or in a Python for each call.

None of these holds a plugin that loops, eats memory or reaches for Python; that is the point. Each
is given a plugin's files and answers what its `classify` says.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lupa
from lupa.lua54 import LuaRuntime, lua_type

Classify = Callable[[Mapping[str, Any]], object]

_PREPARE = """
local files, entrypoint = ...
telex = setmetatable({}, {__index = function() return {} end})
local function name(path) return (path:gsub("%.lua$", ""):gsub("/", ".")) end
for path, source in pairs(files) do
  package.preload[name(path)] = assert(load(source, "@" .. path))
end
return require(name(entrypoint)).classify
"""
_ECHO = """
import sys
while line := sys.stdin.buffer.readline():
    sys.stdout.buffer.write(b"{}\\n")
    sys.stdout.buffer.flush()
"""
_ONCE = """
import json, sys
sys.path.append(sys.argv[1])
from benchmarks.bare_lua import here
asked = json.load(sys.stdin)
print(json.dumps(here(asked["files"], asked["entrypoint"])(asked["shown"])))
"""
_IMPORTED = "import sys; sys.path.append(sys.argv[1]); from lupa.lua54 import LuaRuntime; "
PACKAGES = str(Path(lupa.__file__).parents[1])


def here(files: Mapping[str, str], entrypoint: str) -> Classify:
    """lupa in this process."""
    lua = LuaRuntime()
    classify = lua.execute(_PREPARE, lua.table_from(files), entrypoint)
    return lambda shown: _plain(classify(lua.table_from(shown, recursive=True)))


def _plain(value: Any) -> Any:
    if lua_type(value) != "table":
        return value
    return {key: _plain(member) for key, member in value.items()}


@contextmanager
def echo() -> Iterator[Classify]:
    """A Python at the other end of two pipes, which reads a line of JSON and answers an empty one:
    a process, and no work."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        asking, answers = child.stdin, child.stdout
        assert asking is not None
        assert answers is not None

        def ask(shown: Mapping[str, Any]) -> object:
            asking.write(json.dumps(shown).encode() + b"\n")
            asking.flush()
            return json.loads(answers.readline())

        yield ask
        asking.close()


@contextmanager
def pool(files: Mapping[str, str], entrypoint: str) -> Iterator[Classify]:
    """`multiprocessing.Pool(1)`, with lupa in its process."""
    with multiprocessing.get_context("spawn").Pool(1, _prepare, (files, entrypoint)) as workers:
        yield lambda shown: workers.apply(_classify, (shown,))


def once(files: Mapping[str, str], entrypoint: str) -> Classify:
    """A Python for each call."""

    def ask(shown: Mapping[str, Any]) -> object:
        asked = json.dumps({"files": files, "entrypoint": entrypoint, "shown": shown})
        argv = [sys.executable, "-c", _ONCE, str(Path(__file__).parents[1])]
        return subprocess.run(argv, input=asked.encode(), capture_output=True, check=True).stdout

    return ask


def start_python() -> None:
    """The least that an instance in a Python of its own needs."""
    subprocess.run([sys.executable, "-I", "-S", "-c", _IMPORTED, PACKAGES], check=True)


@contextmanager
def pythons(count: int) -> Iterator[list[int]]:
    """Processes that have a Lua each and wait. Their pids."""
    program = f"{_IMPORTED} LuaRuntime(); print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-I", "-S", "-c", program, PACKAGES]
    made = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)
    ]
    for child in made:
        assert child.stdout is not None
        child.stdout.readline()
    yield [child.pid for child in made]
    for child in made:
        child.communicate()


_in_the_pool: list[Classify] = []


def _prepare(files: Mapping[str, str], entrypoint: str) -> None:
    _in_the_pool.append(here(files, entrypoint))


def _classify(shown: Mapping[str, Any]) -> object:
    return _in_the_pool[0](shown)
