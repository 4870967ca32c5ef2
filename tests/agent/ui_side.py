"""A runtime in the test's own process, and two kinds of UI for it.

`Agent.client` is the public client (`telex.agent`), for ordinary conversations:

async with an_agent(tmp_path) as agent, agent.client(confirm=lambda question: True) as client:
    run = await client.run_start("run make")
    assert (await run.wait()).status == "completed"

`Ui` is a raw peer, for tests of the wire: it sends any message, and keeps every message that it
receives, in order. The client would hide what these tests look at: it names the session, drops
repeated events, and announces what it supports.

async with an_agent(tmp_path) as agent:
    ui = await agent.connect(supports_confirm=True)
    run = await ui.start("run make")
    question = await ui.until("ui.confirm.request")
    ui.answer(question, {"ok": True})
    assert await ui.until_ended(run) == "completed"
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pytest

from telex.agent.agent_context import AgentContext
from telex.agent.content_store import ContentStore
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.model_catalogue import BUILTIN, ModelCatalogue, ModelChoice
from telex.agent.permissions import Mode
from telex.agent.permissions.confirmation import Confirmer
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions
from telex.agent.runtime import AgentRuntime
from telex.agent.runtime_access import in_process
from telex.agent.sandbox_files import Sandbox
from telex.agent.server import AgentServer
from telex.agent.store import Store
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.tool_registry import BUILTIN_TOOLS, ToolRegistry
from telex.agent.workspace import Place, Workspace, WorkspacePolicy, Workspaces
from telex.redaction import Redactor
from telex.rpc.testing import Script, memory_channels
from telex.transports.channels import FramedChannel
from telex.wire.limits import MIB

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from telex.agent.client import AsyncAgent
    from telex.agent.cores import Core
    from telex.agent.mcp_client.mcp_tool_source import McpToolSource
    from telex.agent.permissions import RuleLayer
    from telex.agent.terminal_server import TerminalServer
    from telex.agent.ui_callbacks import UiOptions
    from telex.rpc.channel import Channel

HALF_CLOSED = ("memory", "socket")
"""Transports on which a UI can end its input and still receive."""
ENDS = ("completed", "error", "cancelled")
ALL = {
    "supports_confirm": True,
    "supports_prompt": True,
    "supports_pick": True,
    "supports_request_cancel": True,
    "supports_parallel_questions": True,
    "supports_deltas": True,
    "supports_todos": True,
}
"""What a full UI announces; without `supports_run_attach`, its leaving is a no."""

Message = dict[str, Any]


class Refused(Exception):
    """The runtime answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]
        self.data = error.get("data")


class Ui:
    """A raw peer on one connection."""

    def __init__(
        self, agent: Agent, identity: object = None, channel: Channel | None = None
    ) -> None:
        """`channel` leads to a server that serves the agent; else the two share memory."""
        theirs, ours = memory_channels()
        if identity is not None:
            theirs.identity = identity  # type: ignore[attr-defined]  # as a transport does it
        self.channel: Any = channel or ours
        self._script = Script(self.channel)
        self._serving = (
            asyncio.create_task(agent.server.converse(theirs)) if channel is None else None
        )
        self._ids = 0
        self.heard: list[Message] = []

    def say(self, message: Message | str) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self._script.say(text.encode())

    def send(self, method: str, params: object = None) -> str:
        """A request; its id."""
        self._ids += 1
        asked: Message = {"jsonrpc": "2.0", "id": f"u{self._ids}", "method": method}
        self.say(asked if params is None else {**asked, "params": params})
        return f"u{self._ids}"

    async def hear(self) -> Message:
        message: Message = json.loads(await self._script.hear())
        self.heard.append(message)
        return message

    async def reply(self, id: str) -> Any:
        """The answer to a request; what comes before it is in `heard`."""
        for message in self.heard:
            if message.get("id") == id and "method" not in message:
                return _result(message)
        while True:
            message = await self.hear()
            if message.get("id") == id and "method" not in message:
                return _result(message)

    async def call(self, method: str, params: object = None) -> Any:
        return await self.reply(self.send(method, params))

    async def refusal(self, method: str, params: object = None) -> Refused:
        try:
            result = await self.call(method, params)
        except Refused as refused:
            return refused
        raise AssertionError(f"{method} answered {result}")

    async def until(self, method: str, **members: object) -> Message:
        """The next message of a method with these params, among what has not been waited for."""
        while True:
            message = await self.hear()
            if message.get("method") == method and members.items() <= message["params"].items():
                return message

    def answer(self, question: Message, result: object) -> None:
        self.say({"jsonrpc": "2.0", "id": question["id"], "result": result})

    async def start(self, text: str, **more: object) -> str:
        started = await self.call("run.start", {"input": {"type": "text", "text": text}, **more})
        return str(started["run_id"])

    async def until_ended(self, run_id: str) -> str:
        for message in self.heard:
            if (found := _end(message, run_id)) is not None:
                return found
        while True:
            if (found := _end(await self.hear(), run_id)) is not None:
                return found

    def events(self, run_id: str) -> list[Message]:
        """Of one run, live or again, as they were heard."""
        return [
            message["params"]
            for message in self.heard
            if message.get("method") == "agent.event" and message["params"]["run_id"] == run_id
        ]

    def kinds(self, run_id: str) -> list[str]:
        return [params["event"]["type"] for params in self.events(run_id)]

    def final(self, run_id: str) -> str:
        return str(self.events(run_id)[-1]["event"]["content"])

    def statuses(self, run_id: str) -> list[str]:
        return [
            message["params"]["status"]
            for message in self.heard
            if message.get("method") == "run.status" and message["params"]["run_id"] == run_id
        ]

    async def settle(self) -> None:
        """Take in what is on its way, without waiting for more."""
        for _ in range(50):
            await asyncio.sleep(0)
            while not self._script.heard_nothing_more():
                await self.hear()

    async def until_closed(self) -> None:
        """Wait until the runtime has closed the connection."""
        if self._serving is not None:
            await self._serving
        else:
            with pytest.raises(AssertionError, match="the channel closed"):
                while True:
                    await self.hear()

    async def leave(self) -> None:
        await self.channel.close()
        if self._serving is not None:
            await self._serving

    def finish(self) -> None:
        """Say no more, and go on listening. A WebSocket cannot do that."""
        if isinstance(self.channel, FramedChannel):
            writing = self.channel._writing
            assert writing is not None
            writing.write_eof()
        else:
            self.channel.finish()


def _result(message: Message) -> Any:
    if "error" in message:
        raise Refused(message["error"])
    return message["result"]


def _end(message: Message, run_id: str) -> str | None:
    if message.get("method") != "run.status" or message["params"]["run_id"] != run_id:
        return None
    status: str = message["params"]["status"]
    return status if status in ENDS else None


class Agent:
    """A runtime in this process."""

    def __init__(self, server: AgentServer, root: Path) -> None:
        self.server = server
        self.runtime = server.runtime
        self.root = root
        self.dial: Callable[[], Awaitable[Channel]] | None = None
        """Opens a channel of `connect`, if the agent is behind a transport."""
        self._uis: list[Ui] = []

    def raw(self, identity: object = None) -> Ui:
        """A connection before `initialize`."""
        self._uis.append(Ui(self, identity))
        return self._uis[-1]

    async def first(self, identity: object = None) -> Ui:
        """The same, by the transport that the agent is behind."""
        if self.dial is None:
            return self.raw(identity)
        self._uis.append(Ui(self, channel=await self.dial()))
        return self._uis[-1]

    def client(
        self, *, reconnect: float = 0.0, **ui: Unpack[UiOptions]
    ) -> AbstractAsyncContextManager[AsyncAgent]:
        """The public client, for `async with`."""
        return in_process(self.server.converse, reconnect=reconnect, **ui)

    async def connect(
        self, *, workspace: Message | None = None, identity: object = None, **capabilities: bool
    ) -> Ui:
        """A raw peer that announced these capabilities."""
        ui = await self.first(identity)
        hello = {
            "protocol_version": "0",
            "client": {"name": "a test", "version": "1"},
            "ui_capabilities": capabilities,
            "workspace": workspace,
        }
        await ui.call("initialize", hello)
        return ui

    async def workspace(self) -> Workspace:
        """The default workspace, while somebody keeps it."""
        return await self.runtime.open_workspace()

    async def close(self) -> None:
        await self.server.close()
        for ui in self._uis:
            await ui.leave()


@asynccontextmanager
async def an_agent(
    directory: Path,
    *cores: Core | ModelChoice,
    mode: str = "minimal",
    diagnostics: bool = False,
    tools: ToolRegistry | None = None,
    policy: WorkspacePolicy | None = None,
    trusted: bool = False,
    layers: Sequence[RuleLayer] = (),
    mcp: McpToolSource | None = None,
    terminals: TerminalServer | None = None,
) -> AsyncIterator[Agent]:
    """Its root is `work` in the directory; the same directory again is the runtime's restart."""
    real = Path(os.path.realpath(directory))
    root, home = real / "work", real / "home"
    for made in (root, home):
        made.mkdir(exist_ok=True)
    store = Store(real / "state" / "telex.db")
    answers, redactor = RememberedAnswers(store), Redactor()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    given = tools or ToolRegistry(BUILTIN_TOOLS, *filter(None, (mcp,)))

    async def make(place: Place) -> Workspace:
        permissions = WorkspacePermissions(
            place.root, str(home), answers, place.mode, layers, trusted
        )
        context = AgentContext(
            Sandbox(Path(place.root)),
            Path(place.cwd),
            home,
            OutputCache(real / "cache", redactor),
            ContentStore(real / "versions", MIB),
            ContentStore(real / "images", 16 * MIB),
            environment,
            redactor,
            trusted,
            permissions.read_restriction,
            home / ".config" / "telex" / "commands",
        )
        return Workspace(place, context, Confirmer(permissions), given, mcp)

    choices = [
        core if isinstance(core, ModelChoice) else ModelChoice(BUILTIN, core)
        for core in cores or (BuiltinCore(),)
    ]

    async def discover() -> list[ModelChoice]:
        return choices

    models = ModelCatalogue(store, discover)
    policy = policy or WorkspacePolicy(Mode(mode), root)
    workspaces = Workspaces(policy, answers, make)
    runtime = AgentRuntime(store, workspaces, models, diagnostics=diagnostics, terminals=terminals)
    agent = Agent(AgentServer(runtime), root)
    try:
        yield agent
    finally:
        await agent.close()
