"""`telex mcp` and `/mcp` with the official Python SDK, in each of its modes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from server.mcp_clients import MODES, shown
from token_count import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.mcp_clients import McpSite

EVERYWHERE = pytest.mark.parametrize(
    ("transport", "mode"), [(one, mode) for one in ("stdio", "http") for mode in MODES]
)
PYTHON = ["python3", "-q"]


@EVERYWHERE
async def test_a_client_opens_types_waits_sees_and_closes(
    site: McpSite, transport: str, mode: str
) -> None:
    async with site.client(transport, mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [
            *("telex_open", "telex_do", "telex_see", "telex_wait", "telex_close")
        ]
        name = f"{transport}-{mode}"
        opened = await client.call_tool("telex_open", {"command": PYTHON, "name": name})
        assert not opened.is_error
        assert opened.structured_content
        assert opened.structured_content["session"] == name
        steps = [["type", "6 * 7", "--enter"], ["wait", "42"]]
        done = await client.call_tool("telex_do", {"steps": steps, "session": name})
        assert not done.is_error
        assert shown(done).endswith("42")
        assert done.structured_content
        assert "state" in done.structured_content["input"]
        typed = await client.call_tool(
            "telex_do", {"steps": [["type", "9 * 9", "--enter"]], "session": name}
        )
        assert "|81" in shown(typed)
        seen = await client.call_tool("telex_see", {"session": name})
        assert ">>> 6 * 7\n42\n>>> 9 * 9\n81" in shown(seen)
        late = await client.call_tool("telex_wait", {"text": "X", "seconds": 0, "session": name})
        assert late.is_error
        assert "81" in shown(late)
        uri = f"telex://session/{name}/screen"
        assert uri in [str(one.uri) for one in (await client.list_resources()).resources]
        read = await client.read_resource(uri)
        assert "81" in read.contents[0].text
        closed = await client.call_tool("telex_close", {"session": name})
        assert closed.structured_content == {"closed": [name]}
        gone = await client.call_tool("telex_see", {"session": name})
        assert gone.is_error
        assert "telex_open opens one" in shown(gone)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_listen_of_the_new_protocol_hears_of_changed_screens_and_new_sessions(
    site: McpSite, transport: str
) -> None:
    async with site.client(transport, "2026-07-28") as client:
        await client.call_tool("telex_open", {"command": PYTHON, "name": "heard"})
        uri = "telex://session/heard/screen"
        missing = "telex://session/nobody/screen"
        listening = client.listen(
            resources_list_changed=True, resource_subscriptions=[uri, missing]
        )
        async with listening as changes:
            assert changes.honored.resource_subscriptions == [uri]
            step = {"steps": [["type", "1 + 1", "--enter"], ["wait", "2"]], "session": "heard"}
            await client.call_tool("telex_do", step)
            kinds = [type(await anext(aiter(changes))).__name__]
            await client.call_tool("telex_open", {"command": PYTHON, "name": "another"})
            await client.call_tool("telex_close", {"session": "another"})
            while "ResourcesListChanged" not in kinds:
                kinds.append(type(await anext(aiter(changes))).__name__)
            assert kinds[0] == "ResourceUpdated"
        await client.call_tool("telex_close", {"session": "heard"})


@pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_subscription_of_the_old_protocol_hears_of_changed_screens(
    site: McpSite, transport: str
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def handle(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.put_nowait(str(message.params.uri))

    async with site.client(transport, "legacy", message_handler=handle) as client:
        await client.call_tool("telex_open", {"command": PYTHON, "name": "old"})
        uri = "telex://session/old/screen"
        await client.subscribe_resource(uri)
        await client.call_tool(
            "telex_do", {"steps": [["type", "3 + 4", "--enter"]], "session": "old"}
        )
        assert await heard.get() == uri
        await client.unsubscribe_resource(uri)
        await client.call_tool("telex_close", {"session": "old"})


@pytest.mark.counted
@pytest.mark.deadline(300)
async def test_any_process_answers_the_next_call(
    site: McpSite, counted: Callable[[int, int], int]
) -> None:
    """Two processes of `telex mcp` and one HTTP client take turns on one session."""
    count = counted(60, 1000)
    async with (
        site.client("stdio", "2026-07-28") as first,
        site.client("stdio", "legacy") as second,
        site.client("http", "2026-07-28") as third,
    ):
        clients = [first, second, third]
        await first.call_tool("telex_open", {"command": ["cat"], "name": "turns"})
        for number in range(count):
            step = ["type", f"line {number}.", "--enter"]
            typed = await clients[number % 3].call_tool(
                "telex_do", {"session": "turns", "steps": [step, ["wait", f"line {number}."]]}
            )
            assert not typed.is_error, shown(typed)
        await second.call_tool("telex_close", {"session": "turns"})
    print(f"\n{count} calls in turns over 3 connections, 0 lost")


async def test_the_list_of_tools_is_short(site: McpSite) -> None:
    async with site.client("stdio", "legacy") as client:
        tools = await client.list_tools()
    listed = tools.model_dump(mode="json", by_alias=True, exclude_none=True)
    tokens = count_tokens(json.dumps(listed["tools"], separators=(",", ":")))
    assert tokens <= 1200, tokens
