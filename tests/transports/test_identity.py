"""The identity of a connection: a fact of the kernel or of the authenticator, on every transport."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from websockets.asyncio.client import connect as dial

from telex.processes import proc
from telex.processes.child_environment import child_environment
from telex.rpc.channel import Channel
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.handler_tasks import CallContext
from telex.rpc.identity import IN_PROCESS, STDIO, UNKNOWN, Identity
from telex.rpc.memory import memory_channels
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import http, unix, web_server, websocket
from telex.transports.auth import Authenticator, WeakToken, named_tokens
from web import TOKEN

CI = "dGhlIHRva2VuIG9mIHRoZSBjb250aW51b3VzIGludGVncmF0aW9u"
ASK = {"jsonrpc": "2.0", "id": 1, "method": "who"}


async def converse(channel: Channel) -> None:
    methods = Methods()

    def who(asked: Any, call: CallContext) -> str:
        return str(call.peer.identity)

    methods.add("who", who)
    async with Peer(channel, JsonRpc(), methods) as peer:
        await peer.closed()


@asynccontextmanager
async def web_site() -> AsyncIterator[tuple[web_server.Address, Authenticator]]:
    auth = Authenticator(TOKEN, more_tokens={"ci": CI})
    app = Starlette(routes=http.routes({"automation": converse}))
    async with web_server.listen(app, auth=auth) as address:
        yield address, auth


@pytest.mark.each_loop
async def test_a_process_at_a_unix_socket_is_named_by_the_kernel(tmp_path: Path) -> None:
    channels: asyncio.Queue[Channel] = asyncio.Queue()
    connect = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); input()"
    )
    async with unix.listen(tmp_path / "t.sock", channels.put_nowait) as listener:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", connect, str(listener.path), stdin=asyncio.subprocess.PIPE
        )
        found = (await channels.get()).identity
        name = proc.read(child.pid, "comm").decode().strip() if proc.HAS_PROC else ""
        assert found == Identity("process", name, child.pid, os.getuid())
        assert str(found) == (f"{name} (pid {child.pid})" if name else f"pid {child.pid}")
        await child.communicate(b"\n")
        ours = await unix.connect(listener.path)
        assert ours.identity.pid == (await channels.get()).identity.pid == os.getpid()
        await ours.close()


async def test_a_program_that_has_ended_has_its_pid_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(pid: int, name: str) -> bytes:
        raise ProcessLookupError

    monkeypatch.setattr(unix.proc, "read", gone)
    channels: asyncio.Queue[Channel] = asyncio.Queue()
    async with unix.listen(tmp_path / "t.sock", channels.put_nowait) as listener:
        ours = await unix.connect(listener.path)
        assert str((await channels.get()).identity) == f"pid {os.getpid()}"
        await ours.close()


async def test_every_way_of_http_has_the_name_of_its_token() -> None:
    async with web_site() as (address, _), httpx.AsyncClient() as client:
        url = f"{address.url}/rpc"
        for token, name in ((TOKEN, "default"), (CI, "ci")):
            bearer = {"Authorization": f"Bearer {token}"}
            answer = await client.post(url, json=ASK, headers=bearer)
            assert answer.json()["result"] == f'token "{name}"'
            accept = {"Accept": "text/event-stream"}
            async with client.stream("POST", url, json=ASK, headers=bearer | accept) as stream:
                lines = stream.aiter_lines()
                async with aclosing(lines):
                    data = await _data(lines)
                assert json.loads(data)["result"] == f'token "{name}"'
            channel = await websocket.connect(f"{address.websocket_url}/rpc", token)
            async with Peer(channel, JsonRpc()) as peer:
                assert await peer.call("who", timeout=10) == f'token "{name}"'
            async with dial(f"{address.websocket_url}/rpc") as late:
                await late.send(json.dumps({"token": token}))
                await late.send(json.dumps(ASK))
                assert json.loads(await late.recv())["result"] == f'token "{name}"'


async def _data(lines: AsyncIterator[str]) -> str:
    """Return the data of the next event."""
    async for line in lines:
        if line.startswith("data:"):
            return line.removeprefix("data:")
    raise AssertionError("the stream ended")


async def test_a_cookie_is_the_token_whose_link_it_came_from() -> None:
    async with web_site() as (address, auth), httpx.AsyncClient() as client:
        link = auth.new_link(asyncio.get_running_loop().time(), "ci")
        await client.get(f"{address.url}{link}")
        origin = {"Origin": address.url}
        answer = await client.post(f"{address.url}/rpc", json=ASK, headers=origin)
        assert answer.json()["result"] == 'token "ci"'


async def test_another_token_cannot_speak_in_a_conversation_of_this_one() -> None:
    async with web_site() as (address, _), httpx.AsyncClient() as client:
        url, accept = f"{address.url}/rpc", {"Accept": "text/event-stream"}
        ours = {"Authorization": f"Bearer {TOKEN}"}
        theirs = {"Authorization": f"Bearer {CI}"}
        async with client.stream("POST", url, json=ASK, headers=ours | accept) as stream:
            conversation = {"Telex-Conversation": stream.headers["Telex-Conversation"]}
            refused = await client.post(url, json=ASK, headers=theirs | conversation)
            assert (refused.status_code, refused.json()["reason"]) == (404, "conversation")
            accepted = await client.post(url, json=ASK, headers=ours | conversation)
            assert accepted.status_code == 202


async def test_a_channel_in_memory_is_in_process() -> None:
    one, other = memory_channels()
    assert one.identity == other.identity == IN_PROCESS
    assert [str(each) for each in (IN_PROCESS, STDIO, UNKNOWN)] == [
        *("in process", "standard input", "unknown")
    ]


@pytest.mark.parametrize(
    "given",
    ["short=abc", CI, f"={CI}", f"a b={CI}", f"default={CI}", f"ci={CI} ci={CI}", f"c\x07i={CI}"],
)
def test_a_named_token_is_as_strong_as_the_default_one_and_has_its_own_name(given: str) -> None:
    with pytest.raises(WeakToken, match="TELEX_TOKENS") as caught:
        named_tokens({"TELEX_TOKENS": given})
    assert CI not in str(caught.value)


def test_named_tokens_are_read_and_no_child_inherits_them() -> None:
    environment = {"TELEX_TOKENS": f"ci={CI} my.phone-2={TOKEN}=="}
    assert named_tokens(environment) == {"ci": CI, "my.phone-2": f"{TOKEN}=="}
    assert named_tokens({}) == child_environment(environment) == {}
