"""The recorded conversation of Codelia's TUI, held with our runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.ui_side import an_agent

if TYPE_CHECKING:
    from agent.ui_side import Ui

RECORDED = json.loads(
    (Path(__file__).parents[2] / "corpus/agent_ui/codelia_tui.json").read_text("utf-8")
)
NEEDED = {
    "initialize": {"protocol_version", "server", "server_capabilities"},
    "model.list": {"provider", "models", "current", "source"},
    "skills.list": {"skills", "errors", "truncated"},
    "run.start": {"run_id", "session_id"},
    "shell.exec": {"command_preview", "exit_code", "signal", "stdout", "stderr", "duration_ms"},
    "context.inspect": {"runtime_working_dir", "runtime_sandbox_root"},
    "mcp.list": {"servers"},
    "auth.logout": {"ok", "auth_cleared", "session_cleared"},
    "session.list": {"sessions", "current_workspace_root"},
    "session.history": {"runs", "events_sent"},
}
"""What the TUI reads of each answer."""


async def said(ui: Ui, messages: list[dict[str, Any]], session: str = "") -> list[str]:
    """Say it as it was said: each once what came before it is answered. The runs' sessions."""
    sessions = []
    asks: dict[str, Any] = {}
    """The request that led to a question."""
    for message in json.loads(json.dumps(messages).replace("SESSION", session)):
        if "method" in message:
            ui.say(message)
            if message["method"] == "auth.logout" or "touch" in str(message):
                asks = message
                continue
        else:
            ui.answer(await question(ui, message["id"]), message["result"])
            message = asks
        answer = await ui.reply(message["id"])
        assert NEEDED[message["method"]] <= answer.keys(), message["method"]
        if message["method"] == "run.start":
            sessions.append(answer["session_id"])
            assert await ui.until_ended(answer["run_id"]) == "completed"
    return sessions


async def question(ui: Ui, id: str) -> dict[str, Any]:
    while not (found := [one for one in ui.heard if one.get("id") == id and "method" in one]):
        await ui.hear()
    return found[0]


async def test_recorded_requests_of_the_codelia_tui_get_the_expected_answers(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path, diagnostics=True) as agent:
        (agent.root / "README.md").write_text("hi\n")
        (agent.root / "a.py").touch()
        ui = agent.raw()
        *before, after = await said(ui, RECORDED["first"])
        assert len(set(before)) == 1, "until the sign-out all of it is one session"
        assert after not in before
        assert (agent.root / "made").exists()
        told = [one["params"] for one in ui.heard if one.get("method") == "agent.event"]
        finals = [one["event"]["content"] for one in told if one["event"]["type"] == "final"]
        assert not any("Unknown command" in final for final in finals)
        assert any(one["event"].get("compacted") is False for one in told)
        assert any(one.get("method") == "run.diagnostics" for one in ui.heard)
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        assert await said(ui, RECORDED["later"], after) == [after]
        listed = [
            one["result"]["sessions"] for one in ui.heard if "sessions" in one.get("result", {})
        ]
        assert [one["session_id"] for one in listed[0]] == [after, before[0]]
        assert len({one["session_id"][:8] for one in listed[0]}) == 2
        assert listed[0] == listed[1]
