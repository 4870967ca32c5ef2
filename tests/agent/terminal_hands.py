"""The terminal tools of one thread on a server in the test's own process, without a run around.

`Hands.call` judges a call as a run does and runs it if no question is needed. Otherwise it returns
the question, which `Hands.answer` may answer.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

from telex import match
from telex.adapters.plugin_registry import builtin_plugins
from telex.agent.agent_context import AgentContext
from telex.agent.content_store import ContentStore
from telex.agent.permissions import Mode, RuleLayer, rules_from_tables
from telex.agent.permissions.confirmation import AllowedCall, Confirmer, ConfirmQuestion
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions
from telex.agent.protocol.ui_requests import UiConfirmResult
from telex.agent.questions import UiAnswer
from telex.agent.sandbox_files import Sandbox
from telex.agent.store import Store
from telex.agent.terminal_server import TerminalServer
from telex.agent.terminals import AgentTerminal, RuntimeTerminals, TerminalAccess
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.todo import TodoList
from telex.agent.tools.tool import ToolResult
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.automation.caller import SharedCaller
from telex.automation.client import AsyncTerminal
from telex.redaction import Redactor
from telex.rpc.identity import AGENT, Identity
from telex.server.telex_server import ServerOptions, TelexServer
from telex.wire.limits import MIB

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.terminal.input_state import State

PERSON = Identity("process", "telex", 4242, os.getuid())


def no_agent() -> Never:
    raise AssertionError("nobody asked for the agent")


@asynccontextmanager
async def terminal_server() -> AsyncIterator[tuple[TelexServer, TerminalServer]]:
    server = TelexServer(ServerOptions(builtin_plugins()), Redactor(), no_agent, lambda: None)

    async def own_sessions() -> SharedCaller:
        return SharedCaller(server.automation.automation, identity=AGENT)

    try:
        yield server, TerminalServer(own_sessions)
    finally:
        await server.close()


class Hands:
    """The tools of one thread."""

    def __init__(
        self,
        server: TelexServer,
        terminals: TerminalServer,
        context: AgentContext,
        permissions: WorkspacePermissions,
    ) -> None:
        self.service = server.automation.automation
        self.runtime = RuntimeTerminals(terminals)
        self.thread = self.runtime.of("a thread")
        self.root = context.sandbox.root
        self.secret: str | None = None
        self.secrets_asked: list[tuple[str, str]] = []
        self.told: list[str | None] = []
        access = TerminalAccess(self.thread, self._ask_secret, self.told.append)
        self.context = replace(context.tool_context(TodoList()), terminals=access)
        self.confirmer = Confirmer(permissions)
        self.tools = ToolRegistry(BUILTIN_TOOLS)
        self.person = SharedCaller(self.service, identity=PERSON)

    async def _ask_secret(self, title: str, message: str) -> str | None:
        self.secrets_asked.append((title, message))
        return self.secret

    async def call(self, tool: str, **arguments: Any) -> ToolResult | ConfirmQuestion | str:
        """The result, the question, or why the call is refused."""
        prepared = self.tools.prepare(tool, arguments)
        return await self._outcome(await self.confirmer.confirm(prepared, self.context))

    async def answer(
        self, question: ConfirmQuestion, *, ok: bool = True, remember: bool = False
    ) -> ToolResult | str:
        given = UiAnswer(UiConfirmResult(ok, remember), question.digest, "q1", "a test")
        found = await self._outcome(await self.confirmer.settle(question, given))
        assert not isinstance(found, ConfirmQuestion)
        return found

    async def _outcome(self, found: Any) -> ToolResult | ConfirmQuestion | str:
        if isinstance(found, ConfirmQuestion):
            return found
        if isinstance(found, AllowedCall):
            return await found.call.run(found.context)
        return found.result if hasattr(found, "result") else str(found.why)

    async def open(self, *command: str, **more: Any) -> AgentTerminal:
        """A terminal that the person allowed to open, at its first prompt."""
        question = await self.call("terminal_open", command=command, **more)
        assert isinstance(question, ConfirmQuestion), question
        result = await self.answer(question)
        assert isinstance(result, ToolResult), result
        assert not result.is_error, result
        return list(self.thread)[-1]

    async def do(self, *steps: Any, session: str | None = None) -> Any:
        named = {} if session is None else {"session": session}
        return await self.call("terminal_do", steps=list(steps), **named)

    async def until(self, one: AgentTerminal, *states: State) -> None:
        """Wait until the program waits for one of these inputs; for any without one."""
        await self.by_person(one).wait(match.input_wanted(*states), 30)

    def by_person(self, one: AgentTerminal) -> AsyncTerminal:
        """The same terminal, as a person uses it."""
        return AsyncTerminal(self.person, one.id)


@asynccontextmanager
async def hands(
    directory: Path, mode: Mode = Mode.MINIMAL, rules: list[dict[str, str]] | None = None
) -> AsyncIterator[Hands]:
    root, home = (directory / "work").resolve(), directory / "home"
    for made in (root, home):
        made.mkdir(exist_ok=True)
    redactor = Redactor()
    context = AgentContext(
        Sandbox(root),
        root,
        home,
        OutputCache(directory / "cache", redactor),
        ContentStore(directory / "versions", MIB),
        ContentStore(directory / "images", MIB),
        {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PS1": "$ "},
        redactor,
    )
    answers = RememberedAnswers(Store(directory / "telex.db"))
    layers = [RuleLayer("user", rules_from_tables(rules or [], "a test"))]
    permissions = WorkspacePermissions(str(root), str(home), answers, mode, layers)
    async with terminal_server() as (server, terminals):
        one = Hands(server, terminals, context, permissions)
        try:
            yield one
        finally:
            await one.person.close()
            await one.runtime.close()
            await asyncio.sleep(0)
