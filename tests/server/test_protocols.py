"""One server for every protocol: on its socket and at one HTTP origin, with the same sessions."""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import an_agent
from telex.redaction import Redactor
from telex.server import telex_server
from telex.server.telex_server import IdleExit, ServerOptions, TelexServer, _is_newer
from telex.transports import unix
from telex.transports.auth import Authenticator
from telex.transports.http import routes
from telex.transports.web_server import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.agent.server import AgentServer

TOKEN = "a-token-of-forty-characters-or-more-0123456789"
HELLO = {
    "protocol_version": "0",
    "client": {"name": "test", "version": "1"},
}


def no_agent() -> Any:
    raise AssertionError("nobody asked for the agent")


def opening_agent(directory: Path) -> Any:
    @asynccontextmanager
    async def open_agent() -> AsyncIterator[AgentServer]:
        async with an_agent(directory) as agent:
            yield agent.server

    return open_agent


@asynccontextmanager
async def running(
    socket: Path, open_agent: Any = no_agent, **options: Any
) -> AsyncIterator[tuple[TelexServer, asyncio.Event]]:
    stop = asyncio.Event()
    server = TelexServer(ServerOptions(**options), Redactor(), open_agent, stop.set)
    tasks: set[asyncio.Task[None]] = set()

    def accept(channel: Any) -> None:
        tasks.add(asyncio.create_task(server.converse_on_socket(channel)))

    try:
        async with unix.listen(socket, accept):
            yield server, stop
            await server.leave()
        await asyncio.gather(*tasks)
    finally:
        await server.close()


class Client:
    """A connection to the socket that speaks lines of JSON."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def dial(cls, socket: Path) -> Client:
        return cls(*await asyncio.open_unix_connection(socket))

    async def call(self, method: str, params: Any = None, id: int = 1) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        self.writer.write(json.dumps(message).encode() + b"\n")
        while line := await self.reader.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == id:
                return answer
        raise AssertionError("the server closed the connection")

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def test_the_first_message_of_a_connection_chooses_its_protocol(tmp_path: Path) -> None:
    async with running(tmp_path / "s", opening_agent(tmp_path)):
        automation, agent = await Client.dial(tmp_path / "s"), await Client.dial(tmp_path / "s")
        said = await automation.call("server.capabilities")
        assert "session.create" in said["result"]["methods"]
        said = await agent.call("initialize", HELLO)
        assert said["result"]["server"]["name"] == "telex-agent"
        refused = await agent.call("session.create", {"program": "sh"}, 2)
        assert "error" in refused
        await automation.close()
        await agent.close()


async def test_the_agent_is_opened_by_the_first_connection_that_asks_for_it(tmp_path: Path) -> None:
    opened = 0

    @asynccontextmanager
    async def open_agent() -> AsyncIterator[AgentServer]:
        nonlocal opened
        opened += 1
        async with opening_agent(tmp_path)() as agent:
            yield agent

    async with running(tmp_path / "s", open_agent):
        client = await Client.dial(tmp_path / "s")
        assert "result" in await client.call("session.list")
        assert opened == 0
        uis = [await Client.dial(tmp_path / "s") for _ in range(3)]
        answers = await asyncio.gather(*[ui.call("initialize", HELLO) for ui in uis])
        assert all("result" in answer for answer in answers)
        assert opened == 1
        for one in (client, *uis):
            await one.close()


async def test_every_protocol_has_its_path_at_one_origin(tmp_path: Path) -> None:
    import httpx
    from starlette.applications import Starlette

    async with running(tmp_path / "s", opening_agent(tmp_path)) as (server, _):
        app = Starlette(routes=routes(server.on_http()))
        async with (
            listen(app, auth=Authenticator(TOKEN)) as address,
            httpx.AsyncClient(
                base_url=address.url, headers={"Authorization": f"Bearer {TOKEN}"}
            ) as http,
        ):

            async def post(path: str, method: str, params: Any) -> Any:
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                return await http.post(path, json=message)

            made = await post(
                "/rpc/automation", "session.create", {"program": "cat", "escapes": True}
            )
            assert made.json()["result"] == {"session": "s1"}
            listed = await Client.dial(tmp_path / "s")
            assert (await listed.call("session.list"))["result"] == {"sessions": ["s1"]}
            hello = await post("/rpc/agent", "initialize", HELLO)
            assert hello.json()["result"]["server"]["name"] == "telex-agent"
            packet = {
                "type": "rpc",
                "command": "term:title",
                "rpcid": "r1",
                "data": {"title": "hi"},
            }
            titled = await http.post("/rpc/escapes/s1", json=packet)
            assert titled.status_code in (200, 202), titled.text
            shown = await listed.call("session.properties", {"session": "s1"}, 2)
            assert shown["result"]["title"] == "hi"
            missing = await http.post("/rpc/escapes/s9", json=packet)
            assert missing.status_code == 404
            assert "unknown session: s9" in missing.text
            plain = await post("/rpc/automation", "session.create", {"program": "cat"})
            without = await http.post(
                f"/rpc/escapes/{plain.json()['result']['session']}", json=packet
            )
            assert without.status_code == 404
            assert "escapes: true" in without.text
            await listed.close()


async def test_a_server_that_holds_nothing_stops_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telex_server, "IDLE_SECONDS", 0.05)
    async with running(tmp_path / "s", on_demand=True) as (_, stop):
        client = await Client.dial(tmp_path / "s")
        made = await client.call("session.create", {"program": "cat"})
        await client.close()
        again = await Client.dial(tmp_path / "s")
        assert not stop.is_set()
        await again.call("session.close", {"session": made["result"]["session"]})
        await again.close()
        await stop.wait()


async def test_only_nothing_at_all_counts_as_idle() -> None:
    held = {"sessions": 1}
    stopped = asyncio.Event()
    idle = IdleExit(0, lambda: bool(held["sessions"]), stopped.set)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not stopped.is_set()
    held["sessions"] = 0
    idle.check()
    held["sessions"] = 1
    idle.check()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not stopped.is_set()
    held["sessions"] = 0
    idle.check()
    await stopped.wait()
    idle.close()


async def test_an_older_server_is_replaced_when_it_holds_nothing(tmp_path: Path) -> None:
    async with running(tmp_path / "s") as (_, stop):
        client = await Client.dial(tmp_path / "s")
        newer = {"argv": ["see"], "cwd": "/", "version": "99.0"}
        made = await client.call("session.create", {"program": "cat"})
        held = (await client.call("verb.run", newer))["result"]
        assert held["code"] == 1
        assert "holds 1 sessions" in held["stderr"]
        assert "telex server stop" in held["stderr"]
        assert not stop.is_set()
        listed = (await client.call("verb.run", newer | {"argv": ["list"]}))["result"]
        assert listed["code"] == 0
        await client.call("session.close", {"session": made["result"]["session"]})
        empty = (await client.call("verb.run", newer))["result"]
        assert empty["again"]
        assert "is replaced" in empty["stderr"]
        assert stop.is_set()
        await client.close()


async def test_a_verb_ends_with_its_caller_and_nothing_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path / "s") as (server, _):
        client = await Client.dial(tmp_path / "s")
        made = await client.call("session.create", {"program": "cat"})
        session = server.automation.automation.find(made["result"]["session"])[0]
        steps = ["do", "wait never", "type x"]
        verb = {"argv": steps, "cwd": "/", "env": {}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "verb.run", "params": verb}
        client.writer.write(json.dumps(message).encode() + b"\n")
        while not session.followers:
            await asyncio.sleep(0)
        await client.close()
        while session.followers:
            await asyncio.sleep(0)
        again = await Client.dial(tmp_path / "s")
        shown = await again.call("session.inputs", {"session": made["result"]["session"]})
        assert shown["result"]["inputs"] == []
        await again.close()
    gc.collect()  # a task's exception that nobody read is logged when the task is collected
    assert not caplog.records


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.2.0", "0.1.9"), ("0.1.0", "0.1.0.dev0"), ("0.1.0.dev2", "0.1.0.dev1"), ("1.0", "0.9.9")],
)
def test_versions_are_compared_by_their_numbers(one: str, other: str) -> None:
    assert _is_newer(one, other)
    assert not _is_newer(other, one)
    assert not _is_newer(one, one)
