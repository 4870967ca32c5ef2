"""The agent's way to the sessions of the one server: in its process, and over the unix socket."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Never

import pytest

from server.test_start import wait_ended
from shell_verbs import ENVIRONMENT
from telex.agent.terminal_server import NoTerminalServer, TerminalServer, VerbRefused
from telex.automation.caller import SharedCaller
from telex.automation.errors import ServerGone
from telex.cli.agent import server_connection
from telex.cli.agent.server_connection import connect_server
from telex.redaction import Redactor
from telex.rpc.identity import AGENT
from telex.server.telex_server import ServerOptions, TelexServer

if TYPE_CHECKING:
    from pathlib import Path

    from server.conftest import Telex


def no_agent() -> Never:
    raise AssertionError("nobody asked for the agent")


async def test_the_agent_of_a_server_uses_the_sessions_of_that_server(tmp_path: Path) -> None:
    server = TelexServer(ServerOptions(), Redactor(), no_agent, lambda: None)

    async def own_sessions() -> SharedCaller:
        return SharedCaller(server.automation.automation, identity=AGENT)

    terminals = TerminalServer(own_sessions)
    env = {**ENVIRONMENT, "PATH": os.environ["PATH"], "MINE": "seen"}
    words = ["open", "one", "--", "bash", "--norc", "-c", 'echo "$MINE" in "$PWD"; read line']
    try:
        opened = await terminals.run_verb(words, cwd=str(tmp_path), env=env)
        assert opened.facts["session"] == "one"
        assert opened.facts["opened_by"] == "the agent"
        await terminals.run_verb(["wait", f"seen in {tmp_path}", "-s", "one"])
        seen = await terminals.run_verb(["see", "-s", "one"])
        assert seen.line.startswith("one: bash")
        assert seen.screen.startswith(f"seen in {tmp_path}")
        with pytest.raises(VerbRefused, match="no session 'two'") as refused:
            await terminals.run_verb(["see", "-s", "two"])
        assert refused.value.failure.code == 1
        with pytest.raises(VerbRefused, match="no verb 'look'") as refused:
            await terminals.run_verb(["look"])
        assert refused.value.failure.code == 2
        with pytest.raises(VerbRefused) as refused:
            await terminals.run_verb(["wait", "never", "-s", "one", "--max", "10ms"])
        assert refused.value.failure.code == 124
        assert refused.value.failure.screen.startswith("seen in")
        await terminals.close()
        assert server.automation.automation.session_ids(), "the sessions of the server stay"
    finally:
        await terminals.close()
        await server.close()


async def test_a_runtime_without_a_server_says_so() -> None:
    with pytest.raises(NoTerminalServer, match="no server"):
        await TerminalServer().run_verb(["list"])


async def test_an_agent_of_its_own_process_starts_the_one_server_and_comes_back_to_a_new_one(
    telex: Telex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TELEX_HOME", "HOME"):
        monkeypatch.setenv(name, telex.environ[name])
    terminals = TerminalServer(connect_server)
    try:
        assert (await terminals.run_verb(["list"])).facts == {"sessions": []}
        (pid,) = telex.servers()
        await terminals.run_verb(["open", "one", "--", "cat"], cwd="/", env=telex.environ)
        assert "one" in telex("list").stdout, "a person sees it"
        os.kill(pid, signal.SIGKILL)
        wait_ended(pid)
        with pytest.raises(ServerGone):
            await terminals.run_verb(["list"])
        assert (await terminals.run_verb(["list"])).facts == {"sessions": []}
        assert telex.servers() != [pid]
    finally:
        await terminals.close()


async def test_a_server_that_cannot_start_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(server_connection, "_START", ("-c", "raise SystemExit('the disk is full')"))
    with pytest.raises(NoTerminalServer, match="did not start: the disk is full"):
        await TerminalServer(connect_server).caller()


async def test_a_terminal_of_a_lost_connection_is_no_session_of_the_next_one(
    tmp_path: Path,
) -> None:
    """A new server begins again with the ids of its sessions."""
    server = TelexServer(ServerOptions(), Redactor(), no_agent, lambda: None)

    async def own_sessions() -> SharedCaller:
        return SharedCaller(server.automation.automation, identity=AGENT)

    terminals = TerminalServer(own_sessions)
    env = {**ENVIRONMENT, "PATH": os.environ["PATH"]}
    try:
        await terminals.run_verb(["open", "one", "--", "cat"], cwd=str(tmp_path), env=env)
        found_on = terminals.connection
        await terminals.run_verb(["see", "-s", "one"], connection=found_on)
        await terminals.close()
        with pytest.raises(ServerGone, match="and they with it"):
            await terminals.run_verb(["see", "-s", "one"], connection=found_on)
    finally:
        await terminals.close()
        await server.close()
