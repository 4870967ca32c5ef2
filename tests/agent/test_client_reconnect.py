"""A connection that is lost in the middle of a run: the client dials again and attaches, and its
program receives every event once."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import telex.agent as agent_api
import web
from agent.ui_side import an_agent
from telex.agent.client import AsyncAgent
from telex.agent.client_connection import Dialer
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.rpc.memory import memory_channels
from telex.transports import unix, websocket
from telex.transports.errors import NoServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.ui_side import Agent
    from telex.rpc.channel import Channel, Receiver
    from telex.wire.events import Event

    Dial = Callable[[], Awaitable[Channel]]

NEVER = 1 << 30
STEPS = [
    ScriptStep(text="a"),
    ScriptStep(tool="write", arguments={"file_path": "made", "content": "x"}),
    ScriptStep(prompt="Who?"),
    ScriptStep(text="b"),
    ScriptStep(final="{last}"),
]


class CutChannel:
    """Delegates to a channel, and loses it after so many frames in one direction."""

    def __init__(self, channel: Channel, *, received: int = NEVER, sent: int = NEVER) -> None:
        self._channel = channel
        self._receiver: Receiver | None = None
        self._received = received
        self._sent = sent
        self._closing: asyncio.Task[None] | None = None

    @property
    def unsent(self) -> int:
        return self._channel.unsent

    @property
    def binary(self) -> bool:
        return self._channel.binary

    @property
    def was_cut(self) -> bool:
        return self._closing is not None

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._channel.open(self)
        if not (self._received and self._sent):
            self.cut()

    def send(self, frame: bytes) -> None:
        if self._receiver is not None and self._sent:
            self._sent -= 1
            self._channel.send(frame)
            if not self._sent:
                self.cut()

    async def drained(self) -> None:
        await self._channel.drained()

    def pause(self) -> None:
        self._channel.pause()

    def resume(self) -> None:
        self._channel.resume()

    async def close(self) -> None:
        await self._channel.close()
        if self._closing is not None:
            await self._closing

    def received(self, events: list[Event]) -> None:
        for event in events:
            if self._receiver is not None and self._received:
                self._received -= 1
                self._receiver.received([event])
                if not self._received:
                    self.cut()

    def finished(self) -> None:
        self.lost("the runtime finished")

    def lost(self, why: str) -> None:
        if (receiver := self._receiver) is not None:
            self._receiver = None
            receiver.lost("cut" if self.was_cut else why)

    def cut(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._channel.close())
            asyncio.get_running_loop().call_soon(self.lost, "cut")


class Cutting:
    """Dials: the first channels are cut as they are told, the others never."""

    def __init__(self, dial: Dial, *cuts: dict[str, int]) -> None:
        self._dial = dial
        self._cuts = list(cuts)
        self.channels: list[CutChannel] = []
        self.refuse = False

    async def __call__(self) -> Channel:
        if self.refuse:
            raise NoServer("nobody is there")
        how = self._cuts.pop(0) if self._cuts else {}
        self.channels.append(CutChannel(await self._dial(), **how))
        return self.channels[-1]

    @property
    def used(self) -> bool:
        """Whether a channel was cut."""
        return any(channel.was_cut for channel in self.channels)


class Person:
    """Answers, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def confirm(self, question: agent_api.UiConfirmRequestParams) -> bool:
        self.asked.append(question.title)
        await asyncio.sleep(0)
        return True

    def prompt(self, question: agent_api.UiPromptRequestParams) -> str:
        self.asked.append(question.title)
        return "Ada"


@asynccontextmanager
async def in_memory(agent: Agent, directory: Path) -> AsyncIterator[Dial]:
    serving: list[asyncio.Task[None]] = []

    async def dial() -> Channel:
        theirs, ours = memory_channels()
        serving.append(asyncio.create_task(agent.server.converse(theirs)))
        return ours

    yield dial
    await asyncio.gather(*serving)


@asynccontextmanager
async def over_unix(agent: Agent, directory: Path) -> AsyncIterator[Dial]:
    path = Path(os.path.relpath(directory / "a.sock"))
    async with (
        asyncio.TaskGroup() as serving,
        unix.listen(path, lambda one: serving.create_task(agent.server.converse(one))),
    ):
        yield lambda: unix.connect(path)


@asynccontextmanager
async def over_websocket(agent: Agent, directory: Path) -> AsyncIterator[Dial]:
    async with web.serving(agent.server.converse) as site:
        yield lambda: websocket.connect(site.websocket_url, web.TOKEN)


@pytest.mark.parametrize("direction", ["received", "sent"])
@pytest.mark.parametrize("transport", [in_memory, over_unix, over_websocket])
async def test_a_cut_after_any_message_loses_and_repeats_no_event(
    tmp_path: Path, transport: Any, direction: str
) -> None:
    async with (
        an_agent(tmp_path, ScriptedCore("s", STEPS)) as agent,
        transport(agent, tmp_path) as dial,
    ):
        messages = 0
        while True:
            cutting, person = Cutting(dial, {direction: messages}), Person()
            events = await a_run(agent, cutting, person, f"cut {messages}")
            kinds = [type(one.event).__name__ for one in events]
            assert [one.seq for one in events] == list(range(len(events))), messages
            assert kinds[0] == "TextEvent", messages
            assert kinds[-1] == "FinalEvent", messages
            assert len(person.asked) == 2, messages
            if not cutting.used:
                break
            messages += 1
        assert messages > (15 if direction == "received" else 4)


async def a_run(
    agent: Agent, cutting: Cutting, person: Person, text: str
) -> list[agent_api.RunEvent]:
    """One run with a client whose connection is cut: its events, as the program received them and
    as they are stored."""
    while True:
        client = AsyncAgent(
            Dialer(cutting), reconnect=20, confirm=person.confirm, prompt=person.prompt
        )
        try:
            await client.open()
            break
        except agent_api.ConnectionLost:  # the first connection is not made twice
            assert cutting.used
    async with client:
        run = await started(client, text)
        received = [one async for one in run.messages() if isinstance(one, agent_api.RunEvent)]
        if run.result is not None and run.result.message == "its UI left before the run began":
            assert not received
            run = await client.run_start(text)
            received = [one async for one in run.messages() if isinstance(one, agent_api.RunEvent)]
        assert run.result == agent_api.RunResult("completed", None, "Ada"), text
        history = await client.session_history(run.session_id)
    stored = [one for one in history.events if one.run_id == run.run_id and one.seq >= 0]
    assert [(one.seq, one.raw) for one in received] == [(one.seq, one.raw) for one in stored], text
    return received


async def started(client: AsyncAgent, text: str) -> agent_api.AsyncRun:
    """A lost connection leaves open whether the run was started: then the sessions show it."""
    try:
        return await client.run_start(text)
    except agent_api.ConnectionLost:
        listed = await client.session_list(limit=1)
        for last in listed.sessions:
            if last.last_user_message == text and last.run_id is not None:
                return await client.run_attach(last.run_id)
        return await client.run_start(text)


class Slow:
    """A person who thinks until they are told to answer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.times = 0
        self.cancelled = 0

    async def confirm(self, question: agent_api.UiConfirmRequestParams) -> bool:
        self.times += 1
        self.asked.set()
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return True


@asynccontextmanager
async def asked_client(
    tmp_path: Path, slow: Slow, **more: Any
) -> AsyncIterator[tuple[Agent, AsyncAgent, agent_api.AsyncRun, Cutting]]:
    """A client whose person was asked a question."""
    steps = [ScriptStep(confirm="Go on?"), ScriptStep(final="{last}")]
    async with (
        an_agent(tmp_path, ScriptedCore("s", steps)) as agent,
        in_memory(agent, tmp_path) as dial,
    ):
        cutting = Cutting(dial)
        client = AsyncAgent(Dialer(cutting), confirm=slow.confirm, **more)
        async with await client.open():
            run = await client.run_start("go")
            await slow.asked.wait()
            yield agent, client, run, cutting


@pytest.mark.parametrize("answered", ["before", "after"])
async def test_a_question_that_is_open_at_the_cut_is_sent_again_and_the_person_asked_once(
    tmp_path: Path, answered: str
) -> None:
    slow = Slow()
    async with asked_client(tmp_path, slow, reconnect=20) as (_, client, run, cutting):
        cutting.channels[-1].cut()
        if answered == "before":  # the person answers while there is no connection
            slow.answer.set()
        await client.session_list()  # there is one again
        assert len(cutting.channels) == 2
        slow.answer.set()
        assert (await run.wait()).answer == "yes"
        assert (slow.times, slow.cancelled) == (1, 0)


async def test_a_question_that_another_ui_answered_meanwhile_is_withdrawn(tmp_path: Path) -> None:
    slow = Slow()
    async with asked_client(tmp_path, slow, reconnect=20) as (agent, _, run, cutting):
        cutting.channels[-1].cut()
        async with agent.client(confirm=lambda q: True) as other:
            second = await other.run_attach(run.run_id)
            assert (await second.wait()).answer == "yes"
        assert (await run.wait()).answer == "yes"
        assert (slow.times, slow.cancelled) == (1, 1)


async def test_without_reconnecting_a_cut_ends_the_run_and_its_questions(tmp_path: Path) -> None:
    slow = Slow()
    async with asked_client(tmp_path, slow) as (agent, client, run, cutting):
        cutting.channels[-1].cut()
        with pytest.raises(agent_api.ConnectionLost, match="cut"):
            await run.wait()
        with pytest.raises(agent_api.ConnectionLost, match="cut"):
            await client.session_list()
        await client.close()
        assert (slow.times, slow.cancelled) == (1, 1)
        if (active := agent.runtime.runs.get(run.run_id)) is not None:
            await active.ended()
        assert (await agent.runtime.store.run(run.run_id)).status.value == "completed"


async def test_dialling_again_gives_up_in_time(tmp_path: Path) -> None:
    slow = Slow()
    async with asked_client(tmp_path, slow, reconnect=0.1) as (_, client, run, cutting):
        cutting.refuse = True
        cutting.channels[-1].cut()
        with pytest.raises(agent_api.ConnectionLost, match=r"cut; .* nobody is there"):
            await run.wait()
        with pytest.raises(agent_api.ConnectionLost):
            await client.run_start("go on")


async def test_the_context_and_the_session_are_kept_over_a_cut(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent, in_memory(agent, tmp_path) as dial:
        cutting = Cutting(dial)
        async with await AsyncAgent(Dialer(cutting), reconnect=20).open() as client:
            context = agent_api.UiContext(active_file=agent_api.ActiveFile("a.py"))
            await client.ui_context_update(context)
            first = await client.run_start("todo water the plants")
            await first.wait()
            cutting.channels[-1].cut()
            inspected = await client.context_inspect()
            assert len(cutting.channels) == 2
            assert inspected.ui_context is not None
            assert inspected.ui_context.active_file_path == "a.py"
            second = await client.run_start("todo")
            assert second.session_id == first.session_id
            assert "water the plants" in ((await second.wait()).answer or "")


async def test_a_history_that_is_cut_is_read_again_whole(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent, in_memory(agent, tmp_path) as dial:
        async with await AsyncAgent(Dialer(dial)).open() as client:
            run = await client.run_start("list\nlist")
            await run.wait()
        whole = run.last_seq + 2
        for number in range(1, whole + 2):
            cutting = Cutting(dial, {"received": number})
            async with await AsyncAgent(Dialer(cutting), reconnect=20).open() as client:
                history = await client.session_history(run.session_id)
            assert [one.seq for one in history.events] == list(range(-1, run.last_seq + 1))
            assert cutting.used


async def test_a_runtime_that_is_killed_is_started_again_and_its_question_answered(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    slow = Slow()
    with (tmp_path / "log").open("w") as log:
        opening = agent_api.spawn(
            cwd=work,
            env={"TELEX_HOME": str(tmp_path / "home")},
            stderr=log.fileno(),
            reconnect=25,
            confirm=slow.confirm,
        )
        async with opening as client:
            run = await client.run_start("run touch done")
            await slow.asked.wait()
            (pid,) = runtimes()
            os.kill(pid, signal.SIGKILL)
            slow.answer.set()
            assert (await run.wait()).status == "completed"
    assert (work / "done").exists()
    assert slow.times == 1


def runtimes() -> list[int]:
    """The `telex agent` processes that are children of this one."""
    listed = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    pids = [int(pid) for text in listed for pid in text.split()]
    return [
        pid for pid in pids if b"agent" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]
