"""`kill -9` of the real `telex agent`: the next runtime sends the same events, each once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_agents import Answer, fix_a_bug, scripted_model
from telex.agent.store import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent.model_agents import Conversation

    Message = dict[str, Any]

TEXTS = 8
ENDS = ("completed", "error", "cancelled")
CAPABLE = {"supports_confirm": True, "supports_run_attach": True}


@dataclass
class Told:
    """The messages of one run: its events by number, whether it was allowed, and its end."""

    run_id: str | None = None
    events: dict[int, object] = field(default_factory=dict)
    allowed: bool = False
    status: str | None = None

    def take(self, message: Message) -> None:
        params = message.get("params", {})
        if message.get("method") == "agent.event" and params["run_id"] == self.run_id:
            assert params["seq"] == len(self.events), "events are lost, repeated or out of order"
            self.events[params["seq"]] = params["event"]
        elif message.get("method") == "run.status" and params["run_id"] == self.run_id:
            self.status = params["status"]
        elif message.get("id") == "start":
            self.run_id = message["result"]["run_id"]


class Driven:
    """The agent process and the connection to it."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self.child, self._in, self._out = child, child.stdin, child.stdout
        hello = {"protocol_version": "0", "client": {"name": "a test", "version": "1"}}
        self.say("hello", "initialize", {**hello, "ui_capabilities": CAPABLE})

    def say(self, id: str, method: str, params: object) -> None:
        self._write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def _write(self, message: Message) -> None:
        self._in.write(json.dumps(message).encode() + b"\n")
        self._in.flush()

    def hear(self, told: Told) -> bool:
        """Read one message; answer a question with yes. False at EOF."""
        line = self._out.readline()
        if not line.endswith(b"\n"):
            return False
        message = json.loads(line)
        told.take(message)
        if message.get("method") == "ui.confirm.request":
            told.allowed = True
            self._write({"jsonrpc": "2.0", "id": message["id"], "result": {"ok": True}})
        return True

    def kill(self, told: Told) -> None:
        """Kill the process, and read the messages that it had sent; answer no more questions."""
        self.child.kill()
        for line in self._out.readlines():
            if line.endswith(b"\n"):
                told.take(json.loads(line))


@contextmanager
def agent(home: Path, work: Path, *options: str) -> Iterator[Driven]:
    argv = [sys.executable, "-m", "telex", "agent", *options]
    environ = {**os.environ, "TELEX_HOME": str(home)}
    with subprocess.Popen(
        argv, env=environ, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            yield Driven(child)
        finally:
            child.kill()


def script(work: Path) -> None:
    """Each run appends a line to a file, once, if it is allowed."""
    texts = [{"text": f"{number}" * 50} for number in range(TEXTS)]
    add = {"tool": "shell", "arguments": {"command": "echo x >> ran"}}
    steps = [*texts, add, *texts, {"final": "{input}"}]
    (work / "s.json").write_text(json.dumps({"name": "s", "steps": steps}))


def decide(conversation: Conversation) -> Answer:
    """A model that does the same as the script, once in each run."""
    if len(conversation.results) < len(conversation.said):
        return Answer("1" * 50, [("shell", {"command": "echo x >> ran"})], "2" * 50)
    return Answer("go")


@contextmanager
def model(home: Path) -> Iterator[None]:
    """Configure a model whose server runs in a thread."""
    started, stop = threading.Event(), asyncio.Event()
    urls: list[str] = []

    async def serving() -> None:
        async with scripted_model.serve(decide) as server:
            urls.append(server.url)
            started.set()
            await stop.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(serving(),))
    thread.start()
    try:
        assert started.wait(60)
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(fix_a_bug.configuration(urls[0]))
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def until_killed(driven: Driven, lines: int) -> Told:
    told = Told()
    driven.say("start", "run.start", {"input": {"type": "text", "text": "go"}})
    while lines > 0 and told.status not in ENDS and driven.hear(told):
        lines -= 1
    driven.kill(told)
    return told


def told_again(driven: Driven, run_id: str) -> Told:
    told = Told(run_id)
    driven.say("attach", "run.attach", {"run_id": run_id})
    while told.status not in ENDS:
        assert driven.hear(told), "the agent ended before it sent the end of the run"
    return told


def check(before: Told, after: Told, ran: int) -> None:
    assert before.events.items() <= after.events.items(), (
        "an event that was received is missing or differs"
    )
    assert ran <= (before.allowed or after.allowed), "the command ran without a yes, or twice"
    results = [one for one in after.events.values() if _kind(one) == "tool_result"]
    if results:
        assert ran == 1, "a result was sent, but the command did not run"
    if before.status in ENDS:
        assert after.status == before.status


def _kind(event: object) -> object:
    assert isinstance(event, dict)
    return event["type"]


@pytest.mark.counted
def test_kill_9_of_the_agent_neither_loses_nor_repeats_events_or_actions(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script(work)
    killed_again_and_again(tmp_path, counted(4, 1000), "--script", "s.json")


@pytest.mark.counted
def test_kill_9_of_an_agent_with_a_model_neither_loses_nor_repeats_events_or_actions(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    (tmp_path / "work").mkdir()
    with model(tmp_path / "home"):
        killed_again_and_again(tmp_path, counted(2, 300))


def killed_again_and_again(tmp_path: Path, kills: int, *options: str) -> None:
    chance, heard = random.Random(15), 0
    work, home, file = tmp_path / "work", tmp_path / "home", tmp_path / "work/ran"
    few = () if options else (5, 8, 11)  # a run of the model has fewer messages
    last: Told | None = None
    ends: dict[str | None, int] = {}
    for _ in range(kills + 1):
        with agent(home, work, *options) as driven:
            if last is not None and last.run_id is not None:
                after = told_again(driven, last.run_id)
                check(last, after, len(file.read_text()) // 2 if file.exists() else 0)
                heard += len(last.events)
                ends[after.status] = ends.get(after.status, 0) + 1
            file.unlink(missing_ok=True)
            last = until_killed(
                driven, chance.choice((2, chance.randrange(45), chance.randrange(45), *few))
            )
    [database] = home.rglob("telex.db")
    assert verify(database).problems == ()
    print(f"{kills} kills of telex agent, {heard} events heard before, all there; ends: {ends}")
