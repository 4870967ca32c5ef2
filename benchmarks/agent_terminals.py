"""`terminal_do` beside the verb and the library call: one line into `cat`, and its echo on the
screen.

All three act on sessions of one server in this process, in turns. `terminal_do` judges the input
first, as in mode full, looks who reads it, and returns what changed on the screen; the verb types
and waits; the library call does the same without words. So the difference is the judgement and the
result for a model.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Never

from benchmarks.figures import Row
from telex import match
from telex.agent.agent_context import AgentContext
from telex.agent.content_store import ContentStore
from telex.agent.permissions import Mode
from telex.agent.permissions.confirmation import AllowedCall, Confirmer
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions
from telex.agent.sandbox_files import Sandbox
from telex.agent.store import Store
from telex.agent.terminal_server import TerminalServer
from telex.agent.terminals import RuntimeTerminals, TerminalAccess
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.todo import TodoList
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.automation.caller import SharedCaller
from telex.automation.client import AsyncTerminal
from telex.redaction import Redactor
from telex.rpc.identity import AGENT
from telex.server.telex_server import ServerOptions, TelexServer
from telex.wire.limits import MIB

ROUNDS = 30
SECONDS = 10.0


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        taken = asyncio.run(_measure(Path(directory).resolve()))
    tool, verb, library = (sorted(each)[len(each) // 2] * 1000 for each in taken)
    return [
        Row("terminal_do: a line and its echo", tool, "ms", verb, "the verbs"),
        Row("the verbs: a line and its echo", verb, "ms", library, "the library call"),
    ]


def _no_agent() -> Never:
    raise AssertionError("nobody asked for the agent")


async def _no_secret(title: str, message: str) -> None:
    return None


async def _measure(directory: Path) -> tuple[list[float], list[float], list[float]]:
    redactor = Redactor()
    context = AgentContext(
        Sandbox(directory),
        directory,
        directory,
        OutputCache(directory / "cache", redactor),
        ContentStore(directory / "versions", MIB),
        ContentStore(directory / "images", MIB),
        {"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"},
        redactor,
    )
    answers = RememberedAnswers(Store(directory / "telex.db"))
    confirmer = Confirmer(WorkspacePermissions(str(directory), str(directory), answers, Mode.FULL))
    server = TelexServer(ServerOptions(), redactor, _no_agent, lambda: None)
    service = server.automation.automation

    async def own_sessions() -> SharedCaller:
        return SharedCaller(service, identity=AGENT)

    runtime = RuntimeTerminals(TerminalServer(own_sessions))
    thread = runtime.of("a thread")
    access = TerminalAccess(thread, _no_secret, lambda why: None)
    tools = ToolRegistry(BUILTIN_TOOLS)
    given = context.tool_context(TodoList())
    taken: tuple[list[float], list[float], list[float]] = ([], [], [])

    async def call(tool: str, **arguments: object) -> None:
        prepared = tools.prepare(tool, arguments)
        found = await confirmer.confirm(prepared, replace(given, terminals=access))
        assert isinstance(found, AllowedCall), found
        result = await found.call.run(found.context)
        assert not result.is_error, result.text

    try:
        await call("terminal_open", command=["cat"], name="cat")
        verbs = TerminalServer(own_sessions)
        await verbs.run_verb(["open", "other", "--", "cat"], env={"PATH": os.environ["PATH"]})
        caller = await own_sessions()
        (id,) = [one for one in service.session_ids() if one not in {t.id for t in thread}]
        library = AsyncTerminal(caller, id)
        for number in range(ROUNDS):
            text = f"line{number}x"
            began = time.perf_counter()
            await call("terminal_do", steps=[["type", text, "--enter"], ["wait", text]])
            taken[0].append(time.perf_counter() - began)
            began = time.perf_counter()
            await verbs.run_verb(["type", "--enter", "-s", "other", "--", f"v{text}"])
            await verbs.run_verb(["wait", "-s", "other", "--", f"v{text}"])
            taken[1].append(time.perf_counter() - began)
            began = time.perf_counter()
            mark = await library.type(f"l{text}\r")
            await library.wait(match.text(f"l{text}"), SECONDS, since=mark)
            taken[2].append(time.perf_counter() - began)
        await caller.close()
        await verbs.close()
    finally:
        await runtime.close()
        await server.close()
    return taken
