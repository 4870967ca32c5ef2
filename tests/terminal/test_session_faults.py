"""Sessions in numbers and under strain: nothing lost, nothing left, nobody else slowed down."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from processes.trees import SHAPES, Lifeline, shape
from telex.automation import protocol as spec
from telex.automation.notices import Connection
from telex.automation.server import AutomationService
from telex.processes.child import Exit
from telex.redaction import Redactor
from telex.rpc import limits
from telex.terminal import limits as terminal_limits
from telex.terminal.actions import Text
from telex.terminal.session import Program, PtySession
from telex.terminal.waits.matchers import ContainsText
from telex.transports import unix
from telex.wire import limits as wire_limits
from terminal.test_pty_faults import in_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from telex.rpc.channel import Channel

LENGTHS = (1, 2, 79, 4095, 4096, 4097, 10_000, 65_536, 70_001, 131_072)
LETTERS = "".join(itertools.islice(itertools.cycle(map(chr, range(33, 127))), max(LENGTHS)))


@pytest.mark.counted
@pytest.mark.each_loop
async def test_the_output_of_children_that_exit_at_once_is_whole(
    counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    letters = tmp_path / "letters"
    letters.write_text(LETTERS)

    async def one(length: int) -> None:
        program = Program(("head", "-c", str(length), str(letters)))
        async with PtySession(program, transcript_chars=max(LENGTHS)) as session:
            assert await session.ended() == Exit(0)
            assert session.transcript.text() == LETTERS[:length]
            shown = session.snapshot().plain_text.replace("\n", "")
            assert shown == LETTERS[:length][-len(shown) :]

    count = counted(100, 5_000)
    await in_batches((one(LENGTHS[n % len(LENGTHS)]) for n in range(count)), 8)


@pytest.mark.counted
@pytest.mark.each_loop
async def test_creating_and_closing_leaves_no_descriptor_thread_or_zombie(
    counted: Callable[[int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """At four moments of a session's life: new, waited on, typed into, over."""
    service, here = AutomationService(), Connection(None, Redactor())

    async def one(number: int) -> None:
        asked = spec.Create(program="sh", args=("-c", "echo up; exec cat"))
        id = service.create(asked, here).session
        session = service._sessions.find(id)
        if number % 4:
            await session.wait(ContainsText("up"))
        if number % 4 > 1:
            await session.act(Text("words\n"))
        if number % 4 > 2:
            await session.kill()
        assert (await service.close_session(spec.OfSession(id), here)).closed

    await in_batches(map(one, range(4)), 4)  # the guardian is started, the caches are filled
    threads, fds = threading.active_count(), len(os.listdir("/proc/self/fd"))
    before = _resident()
    count = counted(30, 2_500)
    await in_batches(map(one, range(count)), 10)
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == fds
    assert service.list(spec.ListSessions(), here).sessions == ()
    assert not service._readers
    with capsys.disabled():
        print(f"\n{count} sessions created and closed: {_resident() - before:+.1f} MB")
    await service.close()


def _resident() -> float:
    """Of this process, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


@pytest.mark.counted
async def test_closing_a_session_ends_the_whole_of_a_hostile_tree(
    counted: Callable[[int, int], int],
) -> None:
    async def one(name: str) -> None:
        line = Lifeline()
        argv, count = shape(name)
        argv[2] = f"trap '' HUP; exec 2>/proc/{os.getpid()}/fd/{line.writing}; {argv[2]}"
        try:
            session = PtySession(Program(tuple(argv)))
            await line.ready(count)
            await session.close()
            await line.gone()
            assert session.exit is not None
        finally:
            line.close()

    names = itertools.islice(itertools.cycle(SHAPES), counted(len(SHAPES), 1_000))
    await in_batches(map(one, names), len(SHAPES))


# Slow and vanished clients.


class Wire:
    """A client of the unix socket that reads when it wants to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ids = itertools.count(1)
        self.gaps = self.outputs = 0

    async def call(self, method: str, **params: Any) -> Any:
        """Ask, and read on until the answer. What is told meanwhile is counted."""
        id = self.ask(method, **params)
        while True:
            told = json.loads(await self._reader.readuntil(b"\n"))
            if told.get("id") == id:
                assert "error" not in told, told
                return told["result"]
            self.note(told)

    def ask(self, method: str, **params: Any) -> int:
        id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self._writer.write(json.dumps(message).encode() + b"\n")
        return id

    async def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(await self._reader.readuntil(b"\n"))
        self.note(told)
        return told

    def note(self, told: dict[str, Any]) -> None:
        if told.get("method") == "session.output":
            self.outputs += 1
            self.gaps += told["params"].get("dropped", False)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    def vanish(self) -> None:
        self._writer.transport.abort()


async def connected(path: Path) -> Wire:
    return Wire(*await asyncio.open_unix_connection(path, limit=wire_limits.LINE_BYTES))


KEPT = 64 * wire_limits.KIB
"""The characters of a transcript that a flood overtakes."""


@pytest.mark.counted
async def test_slow_and_vanished_clients_beside_floods_harm_no_other_client(
    counted: Callable[[int, int], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs that print for ever. One client subscribes and never reads, one attaches and never
    grants, one vanishes in the middle of a line; another is served all the while."""
    floods = counted(5, 20)
    rounds = counted(20, 400)
    service = AutomationService()
    path = tmp_path / "s"
    async with AsyncExitStack() as stack:
        stack.push_async_callback(service.close)
        conversations = await stack.enter_async_context(asyncio.TaskGroup())

        def converse(channel: Channel) -> None:
            conversations.create_task(service.converse(channel))

        await stack.enter_async_context(unix.listen(path, converse))
        good = await connected(path)
        for _ in range(floods):
            flood = {"program": "yes", "args": ["all work and no play"]}
            await good.call("session.create", **flood, transcript_max_chars=KEPT)
        mine = (await good.call("session.create", program="cat"))["session"]

        slow, attached, vanishing = [await connected(path) for _ in range(3)]
        await slow.call("server.set_notifications", enabled=True)
        for number in range(floods):
            await attached.call("session.attach", session=f"s{number + 1}", credit=1000)
        await vanishing.call("server.set_notifications", enabled=True)
        for _ in range(50):
            await vanishing.told()
        vanishing.vanish()

        transcripts = [service._sessions.find(f"s{n + 1}").transcript for n in range(floods)]
        before, begun = _resident(), None
        for number in itertools.count():
            if begun is None and _unsent(service) >= limits.OUTBOUND_BYTES:
                begun = [transcript.cursor for transcript in transcripts]
            overtaken = begun is not None and all(
                transcript.cursor > cursor + KEPT
                for transcript, cursor in zip(transcripts, begun, strict=True)
            )
            if number >= rounds and overtaken:
                break
            mark = await _sent(good, mine, f"round {number}")
            found = await good.call(
                "session.wait",
                session=mine,
                matcher={"type": "screen_regex", "value": f"(?m)^round {number}$", "since": mark},
                timeout_ms=60_000,
                cells="none",
            )
            assert found["matched"]
        grown = _resident() - before
        held = _unsent(service)
        # Now the slow one reads, and is told what it missed.
        async with asyncio.timeout(60):
            while not slow.gaps:
                await slow.told()
        for client in good, slow, attached:
            await client.close()
        with capsys.disabled():
            print(f"\n{floods} floods, {rounds} rounds: {grown:+.1f} MB, {held} bytes held for one")
        assert held < 2 * limits.OUTBOUND_BYTES
        assert grown < floods * terminal_limits.SCROLLBACK_BYTES / 1e6


def _unsent(service: AutomationService) -> int:
    """The bytes that wait for the slowest client."""
    return max(
        connection.peer._channel.unsent  # type: ignore[union-attr]  # each of them has a peer
        for connection in service._connections.values()
    )


async def _sent(wire: Wire, session: str, line: str) -> str:
    action = {"type": "text", "value": f"{line}\n"}
    mark: str = (await wire.call("session.input", session=session, action=action))["mark"]
    return mark


@pytest.mark.counted
async def test_missing_output_is_always_reported_as_a_gap(
    counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    """Numbered lines from a program that is faster than its reader: between two that do not follow
    each other there was a notice that says `dropped`."""
    service = AutomationService()
    path = tmp_path / "s"
    async with AsyncExitStack() as stack:
        stack.push_async_callback(service.close)
        conversations = await stack.enter_async_context(asyncio.TaskGroup())

        def converse(channel: Channel) -> None:
            conversations.create_task(service.converse(channel))

        await stack.enter_async_context(unix.listen(path, converse))
        client = await connected(path)
        await client.call("server.set_notifications", enabled=True)
        last = counted(300_000, 3_000_000)
        script = f"read x; seq {last}"
        create = {"program": "sh", "args": ["-c", script], "transcript_max_chars": 4096}
        session = (await client.call("session.create", **create))["session"]
        await _sent(client, session, "")
        text = ""
        while (told := await client.told()).get("method") != "session.exited":
            if told.get("method") == "session.output":
                text += "<gap>" * told["params"].get("dropped", False) + told["params"]["output"]
        await client.close()
    assert client.gaps, "the reader was never too slow, and so nothing was shown"
    numbers = text.split("seq", 1)[-1]
    for part in numbers.split("<gap>"):
        lines = part.split("\r\n")[1:-1]  # the first and the last may be cut by the gap
        whole = [int(line) for line in lines if line]
        assert whole == list(range(whole[0], whole[0] + len(whole))) if whole else True
    assert f"{last}" in numbers
