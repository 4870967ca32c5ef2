"""Plugins in their workers: how soon a screen is a state, how many start, what each holds.

What is paid for is that a plugin can be killed. The same Lua in this process is the floor, a
process that does nothing is the next; `bare_lua` has them. Contestants take turns.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import bare_lua, peers, streams
from benchmarks.figures import Row, memory
from telex.adapters.context import fixture_context
from telex.adapters.fixtures import DIRECTORY, read_fixtures
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.lua_plugin import LuaPlugin
from telex.adapters.plugin_registry import builtin_plugins
from telex.adapters.protocol import PERMISSIONS, Manifest, OfAdapter, Start
from telex.adapters.server import AutomationServer
from telex.automation import protocol as spec
from telex.automation.notices import Connection
from telex.redaction import Redactor
from telex.terminal import actions, limits
from telex.terminal.waits import matchers

ROUNDS, CALLS, STARTS, TYPED = 7, 200, 24, 100
COUNTS = (1, 16, 64)
FIXTURE = "completed_after_tools"
"""Of claude-code: a turn with tools in it, over, and the box to type in."""
VIEW = files("telex.adapters.lua").joinpath("view.lua").read_text()
"""The module that telex provides to every plugin."""
IN_PROCESS, IDLE, POOL, ONCE = (
    "lupa, in this process",
    "JSON to an idle Python",
    "Pool(1).apply",
    "subprocess.run",
)

Round = Callable[[], Awaitable[list[float]]]
"""One round of a contestant: the seconds of each call."""
Measured = Mapping[str, list[list[float]]]
"""By contestant, ours first: its rounds."""
Ask = Callable[[str, object], Awaitable[Any]]
"""The service, by a method's name and its params."""


def run() -> list[Row]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_all())


async def _all() -> list[Row]:
    shell, agent = _shown_of_shell(), _shown_of_agent()
    return [
        *await _classified(TRIVIAL, shell),
        *await _classified(SHELL, shell),
        *await _classified(AGENT, agent),
        *await _asked(agent),
        *await _instances(agent),
        *await _adapters(),
        *await _kept(agent),
        *await _found(),
    ]


# Plugins, and what they are shown.


def _plugin(name: str, source: str) -> LuaPlugin:
    manifest = Manifest(
        name=name,
        kind="adapter",
        version="1",
        runtime="lua",
        entrypoint="main.lua",
        permissions=PERMISSIONS,
    )
    return LuaPlugin(manifest, {"main.lua": source})


TRIVIAL = _plugin(
    "trivial",
    "return {classify = function() return {state='ready', confidence=1, evidence='is'} end}",
)
FINDING = _plugin(
    "finding",
    "return {shows = function(at) return at.screen:find(at.params.text, 1, true) ~= nil end}",
)
BUILTIN = {plugin.name: plugin for plugin in builtin_plugins()}
AGENT, SHELL = BUILTIN["claude-code"], BUILTIN["shell"]


def _agent_screen() -> str:
    assert AGENT.directory is not None
    found, _ = read_fixtures(AGENT.directory / DIRECTORY)
    text = next(one.text for one in found if one.name == FIXTURE)
    return "\n".join(row[: peers.COLS] for row in text.split("\n"))


def _shown_of_agent() -> dict[str, Any]:
    return _shown(_agent_screen(), streams.programs(100_000).decode(errors="replace"))


def _shown_of_shell() -> dict[str, Any]:
    printed = streams.plain(limits.TRANSCRIPT_TAIL_CHARS).decode()
    rows = [row[: peers.COLS] for row in printed.split("\r\n")[: peers.ROWS - 1]]
    prompt = "\x1b]133;D;0\x07\x1b]133;A\x07ann@box:~$ \x1b]133;B\x07"
    return _shown("\n".join([*rows, "ann@box:~$"]), f"\x1b]133;C\x07{printed}{prompt}")


def _shown(screen: str, transcript: str) -> dict[str, Any]:
    """With as much of a transcript as a session has that was used for a while."""
    seen = {
        "transcript": transcript[-limits.TRANSCRIPT_TAIL_CHARS :],
        "screen_cursor": {"row": peers.ROWS - 1, "col": 11, "visible": True},
    }
    return fixture_context(screen, {"last_intent": "prompt_submitted", "context": seen})


# A screen becomes a state.


async def _classified(plugin: LuaPlugin, shown: Mapping[str, Any]) -> list[Row]:
    lua = {"telex/view.lua": VIEW, **plugin.files}, plugin.manifest.entrypoint or ""
    figure = f"classify, {plugin.name}"
    with ExitStack() as stack:
        echo, pool = stack.enter_context(bare_lua.echo()), stack.enter_context(bare_lua.pool(*lua))
        async with WorkerPool() as workers:
            instance = workers.instance(plugin)
            measured = await _in_turns(
                {
                    "telex": _calls(lambda: instance.call("classify", shown)),
                    IN_PROCESS: _blocking(bare_lua.here(*lua), shown),
                    IDLE: _blocking(echo, shown),
                    POOL: _blocking(pool, shown),
                    ONCE: _blocking(bare_lua.once(*lua), shown, calls=1),
                }
            )
    return [*_middles(figure, measured), *_late(figure, measured, IN_PROCESS, IDLE, POOL)]


async def _asked(shown: Mapping[str, Any]) -> list[Row]:
    """The same by the service: the session looked at, the answer checked and redacted."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "screen"
        text = f"{shown['transcript']}\x1bc{_agent_screen()}".replace("\n", "\r\n")
        file.write_bytes(text.encode())
        async with _serving() as ask, WorkerPool() as workers:
            began = await ask("adapter.start", _on("sh", "-c", f"cat {file}; exec cat"))
            drawn = matchers.ContainsText(_agent_screen().split()[-1])
            await ask("session.wait", spec.Wait(session=began.session, matcher=drawn))
            instance = workers.instance(AGENT)
            measured = await _in_turns(
                {
                    "telex": _calls(lambda: ask("adapter.state", OfAdapter(began.adapter))),
                    "classify alone": _calls(lambda: instance.call("classify", shown)),
                }
            )
    figure = f"adapter.state, {AGENT.name}"
    return [*_middles(figure, measured), *_late(figure, measured, "classify alone")]


# Starting. What was started is closed when the clock stands still.


async def _instances(shown: Mapping[str, Any]) -> list[Row]:
    async with WorkerPool() as workers:

        async def begin() -> Any:
            instance = workers.instance(AGENT)
            await instance.call("classify", shown)
            return instance

        async def python() -> None:
            bare_lua.start_python()

        measured = await _in_turns(
            {
                "telex": _starts(begin, lambda instance: instance.close()),
                "python -c 'import lupa'": _calls(python, STARTS),
            }
        )
    return _rates("instances begun, first state told", measured)


async def _adapters() -> list[Row]:
    create = spec.Create(program="cat", rows=peers.ROWS, cols=peers.COLS)
    async with _serving() as ask:

        def start() -> Awaitable[Any]:
            return ask("adapter.start", _on("cat"))

        def leave(adapter: Any) -> Awaitable[Any]:
            return ask("adapter.close", OfAdapter(adapter.adapter))

        async def at_once() -> list[float]:
            began = time.perf_counter()
            made = await asyncio.gather(*(start() for _ in range(STARTS)))
            took = time.perf_counter() - began
            await asyncio.gather(*map(leave, made))
            return [took / STARTS] * STARTS

        def close(session: Any) -> Awaitable[Any]:
            return ask("session.close", spec.OfSession(session.session))

        peer = "session.create"
        measured = await _in_turns(
            {
                "one by one": _starts(start, leave),
                "at once": at_once,
                peer: _starts(lambda: ask(peer, create), close),
            }
        )
    rows: list[Row] = []
    for how in "one by one", "at once":
        rows += _rates(f"adapter.start, {how}", {how: measured[how], peer: measured[peer]})
    return rows


def _starts(begin: Callable[[], Awaitable[Any]], end: Callable[[Any], Awaitable[Any]]) -> Round:
    async def measure() -> list[float]:
        made: list[Any] = []

        async def one() -> None:
            made.append(await begin())

        took = await _calls(one, STARTS)()
        await asyncio.gather(*map(end, made))
        return took

    return measure


# What they hold.


async def _kept(shown: Mapping[str, Any]) -> list[Row]:
    """Workers and the process that makes them, together, by each worker."""
    ours = [await _held_by_workers(count, shown) for count in COUNTS]
    theirs = [_held_by_pythons(count) for count in COUNTS]
    peer = "a Python with lupa each"
    more = COUNTS[-1] - COUNTS[-2]
    return [
        *(
            Row(f"memory of each of {count}", mine / count, "MB", its / count, peer)
            for count, mine, its in zip(COUNTS, ours, theirs, strict=True)
        ),
        Row(
            "memory of one more",
            (ours[-1] - ours[-2]) / more,
            "MB",
            (theirs[-1] - theirs[-2]) / more,
            peer,
        ),
    ]


async def _held_by_workers(count: int, shown: Mapping[str, Any]) -> float:
    async with WorkerPool() as workers:
        instances = [workers.instance(AGENT) for _ in range(count)]
        await asyncio.gather(*(instance.call("classify", shown) for instance in instances))
        pids = [instance.pid for instance in instances if instance.pid]
        return sum(map(memory, [*pids, _parent(pids[0])]))


def _held_by_pythons(count: int) -> float:
    with bare_lua.pythons(count) as pids:
        return sum(map(memory, pids))


def _parent(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


# Waiting for a predicate: type, the child says it again, the wait returns.


async def _found() -> list[Row]:
    program, *args = peers.ECHO
    async with _serving() as ask:
        create = spec.Create(program=program, args=tuple(args), rows=peers.ROWS, cols=peers.COLS)
        session = (await ask("session.create", create)).session
        numbers = itertools.count()

        async def typed(looking_for: Callable[[str], matchers.Matcher]) -> None:
            said = f"said{next(numbers)}."
            await ask("session.input", spec.Input(session, actions.Text(f"{said}\n")))
            wanted = looking_for(said)
            await ask("session.wait", spec.Wait(session=session, matcher=wanted, cells="none"))

        measured = await _in_turns(
            {
                "telex": _calls(lambda: typed(_by_predicate), TYPED),
                "contains_text": _calls(lambda: typed(matchers.ContainsText), TYPED),
            }
        )
    figure = "typed to found by a predicate"
    return [*_middles(figure, measured), *_late(figure, measured, "contains_text")]


def _by_predicate(text: str) -> matchers.Matcher:
    return matchers.Lua(matchers.Predicate(FINDING.name, "shows", {"text": text}))


# How it is measured, and what becomes of it.


@asynccontextmanager
async def _serving() -> AsyncIterator[Ask]:
    server = AutomationServer([*BUILTIN.values(), FINDING])
    who = Connection(None, Redactor())

    async def ask(method: str, params: object) -> Any:
        answer = server.automation.handlers[method](params, who)
        return await answer if asyncio.iscoroutine(answer) else answer

    try:
        yield ask
    finally:
        await server.close()


def _on(program: str, *args: str) -> Start:
    return Start(plugin=AGENT.name, program=program, args=args, rows=peers.ROWS, cols=peers.COLS)


def _calls(once: Callable[[], Awaitable[object]], calls: int = CALLS) -> Round:
    async def measure() -> list[float]:
        took = []
        for _ in range(calls):
            began = time.perf_counter()
            await once()
            took.append(time.perf_counter() - began)
        return took

    return measure


def _blocking(classify: bare_lua.Classify, shown: Mapping[str, Any], calls: int = CALLS) -> Round:
    async def once() -> None:
        classify(shown)

    return _calls(once, calls)


async def _in_turns(contestants: Mapping[str, Round]) -> dict[str, list[list[float]]]:
    """Round by round, after one that does not count."""
    rounds: dict[str, list[list[float]]] = {name: [] for name in contestants}
    for number in range(ROUNDS + 1):
        for name, measure in contestants.items():
            took = await measure()
            if number:
                rounds[name].append(took)
    return rounds


def _middles(figure: str, measured: Measured) -> list[Row]:
    """p50, and the lowest and highest of a round of ours."""
    (_, ours), *others = measured.items()
    middles = [statistics.median(took) * 1e3 for took in ours]
    spread = min(middles), max(middles)
    return [
        Row(f"{figure}, p50", _late_by(ours, 50), "ms", _late_by(theirs, 50), name, spread=spread)
        for name, theirs in others
    ]


def _late(figure: str, measured: Measured, *names: str) -> list[Row]:
    ours = next(iter(measured.values()))
    return [
        Row(f"{figure}, p99", _late_by(ours, 99), "ms", _late_by(measured[name], 99), name)
        for name in names
    ]


def _late_by(rounds: list[list[float]], percent: int) -> float:
    """Milliseconds, of all calls of all rounds."""
    took = [*itertools.chain(*rounds)]
    return statistics.quantiles(took, n=100)[percent - 1] * 1e3


def _rates(figure: str, measured: Measured) -> list[Row]:
    """The middle of the rounds."""
    (_, ours), *others = (
        (name, sorted(len(took) / sum(took) for took in rounds))
        for name, rounds in measured.items()
    )
    spread = ours[0], ours[-1]
    return [
        Row(figure, statistics.median(ours), "/s", statistics.median(theirs), name, spread=spread)
        for name, theirs in others
    ]
