"""MCP servers as tools of the agent: both eras of the protocol, servers that misbehave, permission
for every call, and nothing left of any server."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import stat
import subprocess
import sys
import threading
import urllib.request
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from starlette.responses import StreamingResponse

from agent.mcp_servers import (
    MANY,
    SECRET,
    SOON,
    a_runtime,
    configured,
    failure,
    log_of,
    one_server,
    opened,
    raw,
    sdk,
    serving,
    until,
)
from agent.model_agents import Answer, Conversation, a_model
from agent.ui_side import ALL, Agent, Ui, an_agent
from agent.working import gone
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.limits import MCP_BLOCKS, MCP_DESCRIPTION_CHARS, MCP_LIST_BYTES, MCP_LOG_BYTES
from telex.agent.mcp_client.mcp_log import McpLog, older
from telex.agent.mcp_client.mcp_streams import readable_answer
from telex.agent.mcp_client.mcp_supervisor import McpPace
from telex.agent.mcp_client.mcp_tool_list import checked_schema, read_listing, tool_name
from telex.agent.tools.tool import ToolFailed
from telex.cli.agent.composition import Wanted, served_agent
from telex.config import load, places
from telex.config.errors import ConfigError
from telex.config.mcp_settings import read_mcp_servers
from telex.processes.termination import Rung
from telex.transports.web_server import listen_without_auth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from telex.agent.mcp_client.mcp_supervisor import McpSupervisor

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
OBJECT = {"type": "object"}
ANY_LIST = "has a list of too many elements, so any arguments are offered"
ONCE = McpPace(failures=1)
PNG = b"\x89PNG"


def toml(table: dict[str, Any]) -> str:
    """The table of the server `s`, as it is in a file."""
    lines = [f"{name} = {_value(value)}" for name, value in table.items()]
    return "\n".join(["[mcp.s]", *lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


@asynccontextmanager
async def an_agent_of_files(
    directory: Path,
    patch: pytest.MonkeyPatch,
    *,
    user: str = "",
    project: str = "",
    trusted: bool = False,
) -> AsyncIterator[Ui]:
    """A UI of an agent that was built from files, as `telex agent` is."""
    home, root = directory / "home", directory / "project"
    patch.setenv("HOME", str(home))
    patch.setenv("TELEX_HOME", str(home / "telex"))
    patch.setenv("MY_SECRET", SECRET)
    (home / "telex").mkdir(parents=True, exist_ok=True)
    (home / "telex").chmod(0o700)
    (home / "telex" / "config.toml").write_text(f'[agent]\nmodel = "builtin"\n{user}')
    (root / ".telex").mkdir(parents=True, exist_ok=True)
    (root / ".telex" / "config.toml").write_text(project)
    if trusted:
        records = places.find().trusted
        file = load.read(root / ".telex" / "config.toml", records)
        assert file is not None
        load.trust(file, records)
    wanted = Wanted(root=root)
    async with served_agent(wanted, wanted.load()) as server:
        agent = Agent(server, root)
        try:
            yield await agent.connect(**ALL)
        finally:
            await agent.close()


# The server of the official SDK, in both eras.


async def use_every_tool(tmp_path: Path, table: dict[str, Any]) -> None:
    era = ERAS[table.get("protocol", "auto")]
    async with one_server(tmp_path, table) as server:
        described = server.describe()
        assert (described.state, described.source, described.tools) == ("ready", "global", 10)
        assert described.last_connected_at is not None
        assert server._connection is not None
        assert server._connection.protocol == era
        added = await server.call("mcp_s_add", {"a": 1, "b": 2})
        assert (added.text, added.details, added.is_error) == (
            "3",
            {"structured": {"result": 3}},
            False,
        )
        odd = next(tool for tool in server.listing.tools.values() if tool.title.startswith("odd"))
        assert (await server.call(odd.name, {})).text == "odd"
        shown = await server.call("mcp_s_picture", {})
        assert shown.text == "a pixel:"
        assert shown.image.startswith(PNG)
        links = await server.call("mcp_s_links", {})
        assert "[a link: notes at file:///notes.txt: my notes]" in links.text
        assert "a memo" in links.text
        assert links.details == {"structured": {"count": 3}}
        assert (await server.call("mcp_s_fail", {})).is_error
        assert "validation errors" in (await server.call("mcp_s_add", {"a": "x"})).text
        await server.call("mcp_s_grow", {})
        async with asyncio.timeout(30):
            while "mcp_s_late" not in server.listing.tools:
                await server._next_change()
        assert (await server.call("mcp_s_late", {})).text == "late"


@pytest.mark.parametrize("mode", list(ERAS))
async def test_tools_are_listed_called_and_followed_over_http(tmp_path: Path, mode: str) -> None:
    from agent.mcp_sdk_server import made

    async with serving(made().streamable_http_app()) as address:
        await use_every_tool(tmp_path, {"url": f"{address}/mcp", "protocol": mode})


@pytest.mark.parametrize(
    "mode", ["auto", *(pytest.param(one, marks=pytest.mark.soak) for one in list(ERAS)[1:])]
)
async def test_tools_are_listed_called_and_followed_over_stdio(tmp_path: Path, mode: str) -> None:
    await use_every_tool(tmp_path, sdk(protocol=mode))


# Servers that misbehave.


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood is seen, and a stubborn server killed, sooner than for a person."""
    from telex.agent.mcp_client import mcp_process

    monkeypatch.setattr(mcp_process, "MCP_UNASKED_MESSAGES", 1000)
    monkeypatch.setattr(mcp_process, "MCP_EXIT_SECONDS", 0.3)
    monkeypatch.setattr(mcp_process, "_LADDER", (Rung(SIGTERM, 0.3), Rung(SIGKILL, 5.0)))


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("die_at_start", "its process exited with code 3; its last words: cannot find my files"),
        ("flood_at_start", "it sends without an end, and was stopped"),
        ("bad_list", "it sent a message that does not match the protocol"),
    ],
)
async def test_a_server_that_cannot_start_is_tried_again_and_then_left_alone(
    tmp_path: Path, kind: str, why: str
) -> None:
    async with one_server(tmp_path, raw(kind)) as server:
        keeper = server._keeper
        assert keeper is not None
        await keeper
        assert server.state == "error"
        assert log_of(tmp_path).count("started") == SOON.failures
        described = server.describe()
        assert why in (described.last_error or "")
        assert SECRET not in log_of(tmp_path) + str(described)
        said = await failure(server, "mcp_s_work")
        assert "does not run" in said
        assert "is not tried for" in said
        assert SECRET not in said
        assert log_of(tmp_path).count("started") == SOON.failures


async def test_a_server_that_does_not_answer_is_ended_at_the_deadline(tmp_path: Path) -> None:
    async with one_server(tmp_path, raw("silent", start_seconds=0.5)) as server:
        assert server.state == "error"
        assert "did not start within 0.5 s" in (server.describe().last_error or "")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("hang", "did not answer within 0.3 s"),
        ("flood", "it sends without an end, and was stopped"),
        ("ping", "it sends without an end, and was stopped"),
        ("die", "its process exited with code 3; its last words: my last words"),
        ("not_a_result", "sent a result that cannot be read"),
        ("error", "refused the call: no: "),
    ],
)
async def test_a_call_that_goes_wrong_is_a_failure_with_the_reason(
    tmp_path: Path, kind: str, said: str
) -> None:
    seconds = 0.3 if kind == "hang" else 60.0
    async with one_server(tmp_path, raw(kind, call_seconds=seconds)) as server:
        message = await failure(server, "mcp_s_work")
        assert said in message
        assert SECRET not in message + log_of(tmp_path)


async def test_a_server_that_does_not_read_is_ended_at_the_deadline_of_a_call(
    tmp_path: Path,
) -> None:
    async with one_server(tmp_path, raw("deaf", call_seconds=0.3), ONCE) as server:
        assert "did not answer within 0.3 s" in await failure(
            server, "mcp_s_work", a="x" * 2_000_000
        )
        await until_kept_no_more(server)
        assert "it does not read its input" in (server.describe().last_error or "")


async def test_a_server_that_died_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with one_server(tmp_path, raw("die", told)) as server:
        assert "may have had its effect" in await failure(server, "mcp_s_work")
        assert "may have had its effect" in await failure(server, "mcp_s_work")
        assert told.read_text().count("initialize") == 2 * 2  # and the notification


async def test_schemas_that_lie_are_loosened_and_results_that_do_not_match_are_kept(
    tmp_path: Path,
) -> None:
    async with one_server(tmp_path, raw("liar")) as server:
        tools = server.listing.tools
        titles = [tool.title for tool in tools.values()]
        names = ["none", "text", "wrong", "large", "remote", "choice", "odd", "lies", "reads"]
        assert titles[:9] == names
        assert all(tools[f"mcp_s_{title}"].schema == OBJECT for title in names)
        assert all(len(name) <= 64 and name.isascii() for name in tools)
        assert "\x1b" not in log_of(tmp_path)
        for part in ("has 100", "refers to another", "listed twice"):
            assert part in log_of(tmp_path)
        result = await server.call("mcp_s_lies", {})
        assert (result.text, result.details) == ("done", {"structured": {"b": 1}})


async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(tmp_path: Path) -> None:
    async with one_server(tmp_path, raw("nested", call_seconds=3600)) as server:
        for tool in ("mcp_s_work", "mcp_s_say"):  # the id comes first, and last
            assert "sent a result that cannot be read" in await failure(server, tool)


async def test_lone_surrogates_of_a_server_are_replaced(tmp_path: Path) -> None:
    async with one_server(tmp_path, raw("surrogates")) as server:
        assert (await server.call("mcp_s_work", {})).text == "a\ufffdb\\ud800 \U0001f600"


async def test_blocks_that_are_too_many_or_no_blocks_are_left_out(tmp_path: Path) -> None:
    async with one_server(tmp_path, raw("blocks")) as server:
        result = await server.call("mcp_s_work", {})
        assert result.text == "kept\n[5000 more blocks are left out]"


@pytest.mark.parametrize(
    ("method", "answer", "kept"),
    [
        ("tools/call", {"content": [{"type": "text", "text": ""}] * 300_000}, MCP_BLOCKS + 1),
        ("initialize", {"serverInfo": {"icons": [1] * 300_000}}, 100),
        ("server/discover", {"capabilities": {"experimental": [[1]] * 300_000}}, 100),
    ],
)
def test_an_answer_is_cut_before_the_sdk_checks_its_members(
    method: str, answer: dict[str, Any], kept: int
) -> None:
    value: Any = readable_answer(method, answer)
    while isinstance(value, dict):
        (value,) = value.values()
    assert len(value) == kept


async def test_a_list_without_an_end_ends(tmp_path: Path) -> None:
    async with one_server(tmp_path, raw("endless_list")) as server:
        assert list(server.listing.tools) == ["mcp_s_one"]


@pytest.mark.each_loop
async def test_garbage_between_messages_goes_to_the_log_redacted_and_private(
    tmp_path: Path,
) -> None:
    async with one_server(tmp_path, raw("garbage")) as server:
        result = await server.call("mcp_s_work", {"a": SECRET})
        assert result.text == '[REDACTED] {"a": "[REDACTED]"}'
    log = log_of(tmp_path)
    assert "[stdout] Welcome \\x1b[31mto" in log
    assert "[stderr] ready, with \\x1b[2J[REDACTED]" in log
    assert SECRET not in log
    (file,) = (tmp_path / "state" / "logs").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.each_loop
async def test_a_server_that_ignores_signals_and_forks_leaves_no_process(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with one_server(tmp_path, raw("stubborn", told)) as server:
        assert server.state == "ready"
    pids = [int(line) for line in told.read_text().splitlines() if line.isdigit()]
    assert len(pids) == 2
    assert all(map(gone, pids))


async def test_the_end_of_a_start_that_hangs_does_not_wait(tmp_path: Path) -> None:
    async with configured(tmp_path, s=raw("silent", start_seconds=3600)) as source:
        source.list_servers(start=True)
        (described,) = source.list_servers(start=True)
        assert described.state == "connecting"


async def test_servers_of_a_workspace_that_nobody_has_any_more_are_ended(tmp_path: Path) -> None:
    sources = a_runtime(tmp_path)
    source = opened(sources, tmp_path, s=raw("plain"))
    assert opened(sources, tmp_path, s=raw("plain")) is source
    await source.specs()
    keeper = source.supervisors[0]._keeper
    assert keeper is not None
    del source
    gc.collect()
    await asyncio.wait({keeper}, timeout=60)
    assert keeper.done()
    await sources.close()


# Servers over HTTP that misbehave.


async def answer_badly(scope: Any, receive: Any, send: Any) -> None:
    """An app whose paths are its faults."""
    if scope["type"] != "http":
        return
    kind = scope["path"].strip("/")
    if kind == "silent":
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    headers = {"content-type": "application/json"}
    body: Any = b"{"
    if kind == "packed":
        headers["content-encoding"] = "gzip"
    if kind == "page":
        headers["content-type"] = "text/html"
    if kind == "long":
        body = (b" " * 10_000 for _ in range(1_000))
    if kind == "elsewhere":
        headers["location"] = "http://192.0.2.1/mcp"
    status = {"broken": 500, "elsewhere": 307}.get(kind, 200)
    chunks = [body] if isinstance(body, bytes) else body
    await StreamingResponse(_each(chunks), status, headers)(scope, receive, send)


async def _each(chunks: Any) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("broken", "error response"),
        ("page", "Unexpected content type"),
        ("packed", "compresses its answers"),
        ("long", "sends without an end"),
        ("elsewhere", "Redirect to http://192.0.2.1/mcp not followed"),
        ("silent", "did not start within 0.5 s"),
        ("unreachable", ""),
    ],
)
async def test_an_address_that_does_not_answer_as_a_server_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, why: str
) -> None:
    from telex.agent.mcp_client import mcp_http_client

    monkeypatch.setattr(mcp_http_client, "MCP_UNASKED_BYTES", 100_000)
    async with listen_without_auth(answer_badly) as address:
        base = "http://127.0.0.1:9" if kind == "unreachable" else address.url
        seconds = 0.5 if kind == "silent" else 30
        table = {"url": f"{base}/{kind}", "protocol": "legacy", "start_seconds": seconds}
        async with one_server(tmp_path, {**table, "token": {"env": "MY_SECRET"}}) as server:
            described = server.describe()
            assert described.state in ("error", "connecting")
            assert why in (described.last_error or "")
            assert described.last_error
            assert SECRET not in log_of(tmp_path) + str(described)


@pytest.mark.parametrize("mode", [pytest.param("auto", marks=pytest.mark.soak), "legacy"])
async def test_a_server_over_http_that_was_away_is_used_again(tmp_path: Path, mode: str) -> None:
    from agent.mcp_sdk_server import made

    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        url = await first.enter_async_context(serving(made().streamable_http_app()))
        table = {"url": f"{url}/mcp", "protocol": mode}
        server = await stack.enter_async_context(one_server(tmp_path, table, MANY))
        assert (await server.call("mcp_s_echo", {"text": "1"})).text == "1"
        await first.aclose()
        assert "may have had its effect" in await failure(server, "mcp_s_echo", text="2")
        port = int(url.rpartition(":")[2])
        await stack.enter_async_context(serving(made().streamable_http_app(), port))
        async with asyncio.timeout(60):
            while server.state != "ready":
                await server._next_change()
        assert (await server.call("mcp_s_echo", {"text": "3"})).text == "3"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_stream_of_changes_over_http_may_be_silent_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    import httpx2

    from agent.mcp_sdk_server import made

    waits: dict[str, Any] = {}
    opened = asyncio.Event()
    send = httpx2.AsyncHTTPTransport.handle_async_request

    async def noted(self: Any, request: Any) -> Any:
        name = request.headers.get("mcp-method") or request.method
        waits[name] = request.extensions["timeout"]["read"]
        if name in ("GET", "subscriptions/listen"):
            opened.set()
        return await send(self, request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", noted)
    async with (
        serving(made().streamable_http_app()) as address,
        one_server(tmp_path, {"url": f"{address}/mcp", "protocol": mode}),
    ):
        await asyncio.wait_for(opened.wait(), 30)
    assert waits.pop("GET" if mode == "legacy" else "subscriptions/listen") is None
    assert None not in waits.values()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_over_http_that_forgot_the_session_is_asked_for_another(
    tmp_path: Path, mode: str
) -> None:
    from agent.mcp_sdk_server import made

    apps = [made().streamable_http_app() for _ in range(2)]

    async def either(scope: Any, receive: Any, send: Any) -> None:
        await apps[0](scope, receive, send)

    async with (
        apps[0].router.lifespan_context(apps[0]),
        serving(apps[1], front=either) as address,
        one_server(tmp_path, {"url": f"{address}/mcp", "protocol": mode}, MANY) as server,
    ):
        assert (await server.call("mcp_s_echo", {"text": "1"})).text == "1"
        apps.reverse()
        if mode == "legacy":  # the other revision has no sessions
            await failure(server, "mcp_s_echo", text="2")
        assert (await server.call("mcp_s_echo", {"text": "3"})).text == "3"


# A model.


async def test_a_model_is_offered_tools_that_appear_during_its_run(tmp_path: Path) -> None:
    def decide(talk: Conversation) -> Answer:
        if "mcp_s_late" in talk.tools:
            return Answer("seen")
        return Answer(calls=[("mcp_s_work", {})])

    async with (
        configured(tmp_path, s=raw("grow")) as source,
        a_model(decide, window=None) as (choice, _),
        an_agent(tmp_path, choice, mode="full", mcp=source) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "seen"


# States.


async def test_without_the_sdk_the_state_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.startswith("telex.agent.mcp_client.mcp_conn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    async with one_server(tmp_path, raw("plain")) as server:
        assert server.state == "error"
        assert "pip install 'telex-terminal[mcp]'" in (server.describe().last_error or "")
        assert "pip install 'telex-terminal[mcp]'" in await failure(server, "mcp_s_work")


async def test_a_missing_secret_or_program_is_an_error_with_the_name(tmp_path: Path) -> None:
    for table, said in (
        ({"command": "no-such-program"}, "there is no program no-such-program"),
        (
            {"command": "cat", "env": {"A": {"env": "NOT_SET"}}},
            "mcp.s.env.A: the variable NOT_SET is not set",
        ),
        (
            {"command": "cat", "env": {"A": {"command": "sh -c 'echo hunter2; exit 3'"}}},
            "the command for the key of mcp.s.env.A failed (exit code 3)",
        ),
        ({"command": "cat", "cwd": "missing"}, "there is no such directory"),
    ):
        async with one_server(tmp_path, table) as server:
            assert said in (server.describe().last_error or "")
            assert "hunter2" not in log_of(tmp_path)


async def test_mcp_list_answers_during_a_run_with_the_states_of_the_specification(
    tmp_path: Path,
) -> None:
    tables = {
        "good": raw("plain"),
        "off": raw("plain", enabled=False),
        "bad": raw("die_at_start"),
        "slow": raw("silent", start_seconds=3600),
    }
    work = ScriptStep(tool="mcp_good_work", arguments={"x": 1})
    async with (
        configured(tmp_path, **tables) as source,
        an_agent(tmp_path, ScriptedCore("s", [work]), mcp=source) as agent,
    ):
        ui = await agent.connect(**ALL)
        whole = (await ui.call("mcp.list", {"scope": "configured"}))["servers"]
        assert [one["id"] for one in whole] == ["good", "off", "bad", "slow"]
        assert {one["id"]: one["state"] for one in whole}["off"] == "disabled"
        assert all(server._keeper is None for server in source.supervisors)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        await ui.call("mcp.list")
        await until(source.supervisors[0], "ready")
        await until(source.supervisors[2], "error")
        listed = (await ui.call("mcp.list", {"scope": "loaded"}))["servers"]
        found = {one["id"]: one for one in listed}
        assert list(found) == ["good", "bad", "slow"]
        good = found["good"]
        assert (good["state"], good["tools"], good["transport"]) == ("ready", 2, "stdio")
        assert found["slow"]["state"] == "connecting"
        assert found["bad"]["state"] in ("error", "connecting")
        assert "cannot find my files" in found["bad"]["last_error"]
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"


# Permission.


async def test_a_call_is_asked_about_with_server_tool_and_arguments_and_remembered_exactly(
    tmp_path: Path,
) -> None:
    steps = [
        ScriptStep(tool="mcp_s_reads", arguments={"say": "\x1b[2Jhi", "n": 1}),
        ScriptStep(tool="mcp_s_reads", arguments={"say": "\x1b[2Jhi", "n": 1}),
        ScriptStep(tool="mcp_s_reads", arguments={"say": "\x1b[2Jhi", "n": 2}),
    ]
    async with (
        configured(tmp_path, s=raw("liar")) as source,
        an_agent(tmp_path, ScriptedCore("s", steps), mcp=source) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        assert source.supervisors[0]._keeper is None, "the server runs before it is permitted"
        message = question["params"]["message"]
        assert message.startswith('| mcp_s_reads\nIt is "reads" of the MCP server "s".\n')
        assert "\x1b" not in message
        assert "n: 1" in message
        ui.answer(question, {"ok": True, "remember": True})
        other = await ui.until("ui.confirm.request")  # the second call is not asked about
        assert "n: 2" in other["params"]["message"]
        ui.answer(other, {"ok": False, "reason": "not this one"})
        assert await ui.until_ended(run) == "completed"
        results = [one["event"] for one in ui.events(run) if one["event"]["type"] == "tool_result"]
        assert [one["result"] for one in results] == [
            "done",
            "done",
            "Permission denied: not this one",
        ]
        assert SECRET not in json.dumps(ui.heard)


async def test_a_rule_for_the_tools_of_a_server_allows_or_denies_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    rules = """
[[permission.rule]]
tool = "mcp_s_*"
decision = "allow"
[[permission.rule]]
tool = "mcp_s_say"
decision = "deny"
reason = "it talks"
"""
    async with an_agent_of_files(
        tmp_path, monkeypatch, user=rules + toml(raw("plain", told))
    ) as ui:
        work = await ui.call("tool.call", {"name": "mcp_s_work", "arguments": {"x": 1}})
        assert work["ok"]
        assert (
            '{"x": 1}' in work["result"]["text"]
            if isinstance(work["result"], dict)
            else work["result"]
        )
        said = await ui.call("tool.call", {"name": "mcp_s_say"})
        assert not said["ok"]
        assert "it talks" in said["result"]
        assert told.read_text().count("tools/call") == 1


async def test_the_servers_of_a_project_start_once_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    table = toml(raw("plain", told))
    async with an_agent_of_files(tmp_path, monkeypatch, project=table) as ui:
        assert await ui.call("mcp.list", {"scope": "configured"}) == {"servers": []}
        assert await ui.call("mcp.list", {"scope": "loaded"}) == {"servers": []}
        assert (await ui.refusal("tool.call", {"name": "mcp_s_work"})).code == -32602
    assert not told.exists()
    async with an_agent_of_files(tmp_path, monkeypatch, project=table, trusted=True) as ui:
        (one,) = (await ui.call("mcp.list", {"scope": "configured"}))["servers"]
        assert (one["id"], one["source"], one["state"]) == ("s", "project", "connecting")
        assert not told.exists()
        answer = ui.send("tool.call", {"name": "mcp_s_work"})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        assert (await ui.reply(answer))["ok"]
    assert "tools/call" in told.read_text()


# A cancel.


async def test_a_cancel_of_the_run_cancels_the_call_at_the_server(tmp_path: Path) -> None:
    told = tmp_path / "told"
    work = ScriptStep(tool="mcp_s_work", arguments={})
    async with (
        configured(tmp_path, s=raw("hang", told)) as source,
        an_agent(tmp_path, ScriptedCore("s", [work]), mode="full", mcp=source) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await until_told(told, "tools/call")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"]
        await until_told(told, "notifications/cancelled")
        assert source.supervisors[0].state == "ready"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancel_reaches_a_server_over_http(tmp_path: Path, mode: str) -> None:
    from agent.mcp_sdk_server import made

    told = tmp_path / "told"
    hang = ScriptStep(tool="mcp_s_hang", arguments={"told": str(told)})
    async with (
        serving(made().streamable_http_app()) as address,
        configured(tmp_path, s={"url": f"{address}/mcp", "protocol": mode}) as source,
        an_agent(tmp_path, ScriptedCore("s", [hang]), mode="full", mcp=source) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await until_told(told, "began")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"]
        await until_told(told, "cancelled")


async def until_told(told: Path, text: str) -> None:
    """Wait until a server has written a text into its file."""
    async with asyncio.timeout(30):
        while not (told.exists() and text in told.read_text()):
            await asyncio.sleep(0.01)


# Results, names, schemas, logs and tables.


async def test_a_long_result_is_bounded_and_its_rest_is_in_the_cache(tmp_path: Path) -> None:
    async with (
        configured(tmp_path, s=raw("long")) as source,
        an_agent(tmp_path, mode="full", mcp=source) as agent,
    ):
        ui = await agent.connect(**ALL)
        answer = await ui.call("tool.call", {"name": "mcp_s_work"})
        assert len(answer["result"]) < 100_000
        assert "the whole result is in the tool output cache" in answer["result"]


def test_names_of_tools_fit_model_apis_and_differ() -> None:
    titles = ["a", "a b", "a_b", "a/b", "x" * 100, "x" * 101, "é"]
    names = [tool_name("my-server", title) for title in titles]
    assert len(set(names)) == len(titles)
    assert names[0] == "mcp_my-server_a"
    assert names[2] == "mcp_my-server_a_b"
    assert all(len(name) <= 64 and name.isascii() for name in names)


def test_a_schema_is_kept_unless_a_provider_would_refuse_it() -> None:
    good = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": OBJECT}}
    assert checked_schema(good) == (good, "")
    deep: dict[str, Any] = {}
    for _ in range(1000):
        deep = {"properties": {"a": deep}}
    for bad in (
        None,
        [],
        {"type": "array"},
        {"type": 5},
        deep,
        {"a": "x" * 40_000},
        {"a": "\ud800"},
    ):
        schema, why = checked_schema(bad)
        assert schema == OBJECT
        assert why


MIXED = [[], *range(4500)]


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-04/schema#", "a": {"enum": MIXED[:500]}},
        {"properties": {"a": {"required": MIXED[:500]}}},
        {"properties": {"a": {"type": [{"a": number} for number in range(500)]}}},
        {"properties": {"a": {"enum": list(range(501))}}},
    ],
)
def test_a_schema_with_a_list_that_takes_long_to_check_is_loosened(schema: dict[str, Any]) -> None:
    assert checked_schema(schema) == (OBJECT, ANY_LIST)


def test_the_meta_schema_is_not_one_that_the_server_names() -> None:
    named = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}
    kept = {**named, "properties": {"a": {"enum": ["a", "a"]}}}  # draft 4 refuses it
    assert checked_schema(kept) == (kept, "")


def test_a_list_of_tools_is_bounded_before_the_sdk_checks_it() -> None:
    tool = {"name": "a", "description": "x" * 7_000_000, "annotations": 1}
    page = readable_answer("tools/list", {"tools": [5, tool] * 3000, "_meta": 1, "nextCursor": "b"})
    assert page["nextCursor"] == "b"
    assert 256 < len(page["tools"]) <= 1024
    assert len(page["tools"][0]["description"]) == 2 * MCP_DESCRIPTION_CHARS


def test_the_bytes_of_all_tools_of_a_server_are_bounded() -> None:
    large = {"type": "object", "description": "x" * 32_000}
    first = read_listing("s", [(f"a{number}", "", large) for number in range(30)])
    assert (len(first.tools), first.is_full) == (30, False)
    both = read_listing(
        "s", [(f"b{number}", "y" * 5000, OBJECT) for number in range(30)], None, first
    )
    assert both.is_full
    assert 30 < len(both.tools) < 60
    assert (
        MCP_LIST_BYTES - 5000
        < sum(
            len(one.description) + len(json.dumps(one.schema, separators=(",", ":")))
            for one in both.tools.values()
        )
        <= MCP_LIST_BYTES
    )
    assert "the rest is left out" in both.problems[-1]


def test_a_list_of_tools_that_nobody_wants_any_more_is_not_read() -> None:
    unwanted = threading.Event()
    unwanted.set()
    assert read_listing("s", [("a", "", OBJECT)], unwanted).tools == {}


async def test_a_changed_list_that_does_not_come_ends_the_session(tmp_path: Path) -> None:
    async with one_server(tmp_path, raw("no_second_list"), ONCE) as server:
        msgspec.structs.force_setattr(server.section, "start_seconds", 0.5)
        await server.call("mcp_s_work", {})
        await until_kept_no_more(server)
        assert "did not list its tools within 0.5 s" in (server.describe().last_error or "")


def test_a_log_is_bounded_and_keeps_the_part_before(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    log = McpLog(directory / "s.log")
    line = "x" * 1023
    for number in range(3 * MCP_LOG_BYTES // 1024):
        log.write(f"{number:04}{line[4:]}")
    log.close()
    sizes = [path.stat().st_size for path in (log.path, older(log.path))]
    assert sizes == [MCP_LOG_BYTES, MCP_LOG_BYTES]
    assert len(list(directory.iterdir())) == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "must have either `command` or `url`"),
        ({"command": "a", "url": "http://b"}, "must have either"),
        ({"command": "a", "comand": "b"}, "unknown member comand"),
        ({"command": "a", "headers": {}, "token": {"env": "A"}}, "token has no use with `command`"),
        ({"url": "http://a", "args": ["b"]}, "args has no use with `url`"),
        ({"url": "ftp://a"}, "must begin with http"),
        (
            {"url": "http://a", "headers": {"Authorization": "hunter2"}},
            "does not belong in this file",
        ),
        ({"url": "http://a", "headers": {"X": "hunter2\n"}}, "not a header with a text"),
        ({"url": "http://a", "token": "hunter2"}, 'must be { env = "NAME" }'),
        ({"command": "a", "env": {"B": {"env": "C", "command": "hunter2"}}}, "must be {"),
        ({"command": "a", "env": {"B": {"file": "hunter2"}}}, "unknown member file"),
        ({"command": "a", "call_seconds": 0}, "call_seconds"),
        ({"command": "a", "protocol": "2024"}, "protocol"),
        ({"command": 5}, "command"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_mcp_servers({"s": table}, "config.toml: mcp")
    assert said in str(caught.value)
    assert "config.toml: mcp.s" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="the name of an MCP server"):
        read_mcp_servers({"a_b": {"command": "a"}}, "mcp")


async def test_a_disabled_server_has_no_tools(tmp_path: Path) -> None:
    async with configured(tmp_path, s=raw("plain", enabled=False)) as source:
        assert await source.specs() == []
        assert source.named("mcp_s_work") is None
        with pytest.raises(ToolFailed, match="disabled"):
            await source.supervisors[0].call("mcp_s_work", {})


# Logins.


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_login_is_needed_given_in_the_browser_kept_private_and_renewed(
    tmp_path: Path, mode: str
) -> None:
    import httpx2

    from agent.mcp_login_site import LoginSite
    from agent.mcp_sdk_server import made
    from telex.agent.mcp_client.mcp_login import log_in

    site = LoginSite(made().streamable_http_app())
    async with serving(site.app) as address:
        table = {"url": f"{address}/mcp", "protocol": mode}
        async with one_server(tmp_path, table) as server:
            said = server.describe()
            assert said.state == "auth_required"
            assert said.last_error == "a login is needed: telex agent mcp login s"
            assert "telex agent mcp login s" in await failure(server, "mcp_s_add", a=1, b=2)
            assert site.grants == []
            server.wake()  # without tokens nothing is tried again
            await until_kept_no_more(server)
            assert log_of(tmp_path).count("started") == 1

            async def agree(asked: str) -> None:
                async with httpx2.AsyncClient(follow_redirects=True) as browser:
                    assert "You can close this page" in (await browser.get(asked)).text

            browsers: list[asyncio.Task[None]] = []
            listing = await log_in(
                server._server,
                server._site,
                lambda asked: browsers.append(asyncio.create_task(agree(asked))),
            )
            await asyncio.gather(*browsers)
            assert "mcp_s_add" in listing.tools
            file = tmp_path / "state" / "tokens.json"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert "secret-token-1" in file.read_text()
            assert (await server.call("mcp_s_add", {"a": 1, "b": 2})).text == "3"
            assert server.state == "ready"
        stored = json.loads(file.read_text())
        stored["s"]["expires_at"] = 1.0
        file.write_text(json.dumps(stored))
        site.valid = "another"
        async with one_server(tmp_path, table) as server:  # as after a restart
            assert (await server.call("mcp_s_add", {"a": 2, "b": 2})).text == "4"
        assert site.grants == ["authorization_code", "refresh_token"]
        site.valid = "revoked"
        stored = json.loads(file.read_text())
        del stored["s"]["tokens"]["refresh_token"]
        file.write_text(json.dumps(stored))
        async with one_server(tmp_path, table) as server:
            assert server.state == "auth_required"
        other = {**table, "url": f"{address}/mcp/"}
        async with one_server(
            tmp_path, other
        ) as server:  # the tokens are not those of this address
            assert server.state == "auth_required"
        assert site.grants == ["authorization_code", "refresh_token"]
    assert "secret-token" not in log_of(tmp_path)


async def until_kept_no_more(server: McpSupervisor) -> None:
    keeper = server._keeper
    assert keeper is not None
    await asyncio.wait({keeper}, timeout=60)


async def test_a_configured_token_that_is_refused_is_an_error(tmp_path: Path) -> None:
    from agent.mcp_login_site import LoginSite
    from agent.mcp_sdk_server import made

    site = LoginSite(made().streamable_http_app())
    async with serving(site.app) as address:
        token = {"env": "MY_SECRET"}
        table = {"url": f"{address}/mcp", "protocol": "legacy", "token": token}
        async with one_server(tmp_path, table) as server:
            assert "refuses the configured token" in (server.describe().last_error or "")
            assert SECRET not in log_of(tmp_path)
        site.valid = SECRET
        async with one_server(tmp_path, table) as server:
            assert (await server.call("mcp_s_echo", {"text": SECRET})).text == "[REDACTED]"


# Ends.


@pytest.mark.soak
async def test_a_runtime_that_is_killed_leaves_no_server(tmp_path: Path) -> None:
    from telex.processes import spawn
    from telex.processes.termination import AT_ONCE

    told, home = tmp_path / "told", tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[agent]\nmodel = "builtin"\n' + toml(raw("stubborn", told)))
    env = {"PATH": os.environ["PATH"], "TELEX_HOME": str(home), "MY_SECRET": SECRET}
    argv = [sys.executable, "-m", "telex", "agent"]
    child = spawn.start(argv, env=env, cwd=str(tmp_path), stdio=spawn.Pipes(stderr=2))
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        hello = {"protocol_version": "0", "client": {"name": "t", "version": "1"}}
        for number, (method, params) in enumerate([("initialize", hello), ("mcp.list", {})]):
            asked = {"jsonrpc": "2.0", "id": str(number), "method": method, "params": params}
            child.stdin.write(json.dumps(asked).encode() + b"\n")
        await until_told(told, "tools/list")
        os.kill(child.pid, SIGKILL)
        pids = [int(line) for line in told.read_text().splitlines() if line.isdigit()]
        assert len(pids) == 2
        async with asyncio.timeout(60):  # the guardian ends them
            while not all(map(gone, pids)):
                await asyncio.sleep(0.05)
    finally:
        await child.end(AT_ONCE)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


@pytest.mark.counted
@pytest.mark.deadline(600)
async def test_servers_that_start_and_end_many_times_leave_nothing(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    """Descriptors, tasks and processes are checked after every test (`tests/conftest.py`)."""
    told = tmp_path / "told"
    kinds = ("stubborn", "die", "flood", "garbage", "plain")
    for number in range(counted(1, 30)):
        tables = {kind: raw(kind, told) for kind in kinds}
        async with configured(tmp_path, **tables) as source:
            if number % 2:
                source.list_servers(start=True)  # and end while they start
                await asyncio.sleep(0)
                continue
            await source.specs()
            calls = (one.call(f"mcp_{one.name}_work", {}) for one in source.supervisors)
            await asyncio.gather(*calls, return_exceptions=True)
    pids = [int(line) for line in told.read_text().splitlines() if line.isdigit()]
    assert all(map(gone, pids))


@pytest.mark.soak
async def test_the_command_prints_the_address_of_the_login_and_ends_when_the_person_agreed(
    tmp_path: Path,
) -> None:
    from agent.mcp_login_site import LoginSite
    from agent.mcp_sdk_server import made
    from telex.processes.shielded import run_in_thread

    site = LoginSite(made().streamable_http_app())
    async with serving(site.app) as address:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(f'[mcp.s]\nurl = "{address}/mcp"\n')
        env = {"PATH": os.environ["PATH"], "TELEX_HOME": str(home)}
        ended = await run_in_thread(lambda _: log_in_by_command(tmp_path, env))
    assert ended == f"logged in at s, which has 10 tools; only {address}/mcp gets the tokens\n"
    assert site.grants == ["authorization_code"]
    file = home / "state" / "mcp-tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def log_in_by_command(directory: Path, env: dict[str, str]) -> str:
    """Run `telex agent mcp login`, open the printed address, and return what the command said."""
    argv = [sys.executable, "-m", "telex", "agent", "mcp", "login", "s"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, env=env, cwd=directory, stdout=pipe, stderr=pipe, text=True
    ) as running:
        assert running.stderr is not None
        shown = next(line for line in running.stderr if line.strip().startswith("http"))
        with urllib.request.urlopen(shown.strip()) as page:
            assert b"You can close this page" in page.read()
        return running.communicate(timeout=60)[0]
