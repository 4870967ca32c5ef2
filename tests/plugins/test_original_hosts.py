"""Plugins of telex's SDK with the original hosts of both generations: the recorded requests are sent
again, and the answers are compared."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from telex.plugins.check.bench import CheckedProcess, Message, frame
from telex.plugins.plugin_logs import LEVELS, level_number

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HERE = Path(__file__).parent
CORPUS = HERE.parent / "corpus" / "plugin_v0" / "conversations.json"
RECORDED = {one["name"]: one for one in json.loads(CORPUS.read_text()) if one["side"] == "host"}


@asynccontextmanager
async def hey() -> AsyncIterator[CheckedProcess]:
    argv = [sys.executable, str(HERE / "hey.py")]
    subject = await CheckedProcess.start(argv, dict(os.environ), 20.0)
    try:
        yield subject
    finally:
        await subject.close()


def timeless(said: Message) -> Message:
    """Return a message in which the time of a log record is replaced by a constant."""
    params = said.get("params")
    if not isinstance(params, dict) or "time" not in params:
        return said
    return said | {"params": params | {"time": "then"}}


@pytest.mark.parametrize("name", RECORDED)
async def test_a_recorded_host_gets_the_recorded_answers(name: str, tmp_path: Path) -> None:
    text = json.dumps(RECORDED[name]["messages"]).replace("/project", str(tmp_path))
    answers: list[Message] = []
    async with hey() as subject:
        for who, recorded in json.loads(text):
            if who == "host":
                subject.send(frame(recorded))
            else:
                answers.append(recorded)
            if "id" in recorded and who == "plugin":
                await subject.answer(recorded["id"], "what the host asked")
        assert (await subject.exit()).code == 0
        assert [timeless(one) for one in subject.received] == [timeless(one) for one in answers]
    if name == "A: a task":
        assert (tmp_path / "out.txt").read_text() == "hi"


@pytest.mark.parametrize(
    ("level", "lowest"),
    [
        ("TRACE", "trace"),
        ("Trace", "trace"),
        ("DEBUG-4", "trace"),
        ("debug", "debug"),
        ("INFO-1", "debug"),
        ("INFO", "info"),
        ("info+1", "info"),
        ("WARN", "warn"),
        ("Warning", "warn"),
        ("ERROR", "error"),
        ("nonsense", "info"),
    ],
)
def test_a_level_may_be_in_any_case_and_have_an_offset(level: str, lowest: str) -> None:
    assert level_number(level) == LEVELS[lowest]


async def test_a_plugin_uses_the_log_level_of_the_host_and_accepts_null_arguments() -> None:
    async with hey() as subject:
        await subject.result("handshake", {"protocol": "rpp", "protocolVersion": 0})
        await subject.result("initialize", {"logging": {"enabled": True, "level": "WARN+1"}})
        await subject.result("setupCommand", {"name": "hello", "args": None, "config": None})
        await subject.result("runCommand", {"name": "hello"})
        assert [line["level"] for line in logged(subject)] == ["warn", "error"]


async def test_values_of_a_command_in_plugin_config_are_ignored() -> None:
    """A host of generation B sends the values of all commands among those of the plugin."""
    inner = [{"key": "greeting", "value": "no", "type": "string"}]
    own = [
        {"key": "greeting", "value": inner, "type": "configs"},
        {"key": "greeting", "value": "Hi", "type": "string"},
        {"key": "loud", "value": None, "type": "bool"},
    ]
    async with hey() as subject:
        await subject.result("handshake", {"protocol": "reginald", "protocolVersion": 0})
        params = {"cmd": "hello", "config": None, "pluginConfig": own}
        assert await subject.result("runCommand", params) == {}
        assert await subject.result("shutdown") is True
        subject.send_message("exit")
        await subject.exit()
        assert "Hi world" in subject.stderr


def logged(subject: CheckedProcess) -> list[dict[str, Any]]:
    return [said["params"] for said in subject.received if said.get("method") == "log"]
