"""The pages about the agent: commands print the output shown, and messages match the schema."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.protocol import METHODS
from typed_pages import check_typed

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "reference/agent-ui.schema.json").read_text())


@pytest.mark.parametrize("name", ["tutorial/ask-the-agent.md", "how-to/script-an-agent.md"])
def test_the_commands_on_the_page_print_the_output_shown(name: str, tmp_path: Path) -> None:
    page = (DOCS / name).read_text()
    home = tmp_path / "home"
    work = home / "work"
    work.mkdir(parents=True)
    for script in re.findall(r"```json\n(.*?)```", page, re.DOTALL):
        (work / "demo.json").write_text(script)
    check_typed(page, home, "work")


def fits(shape: dict[str, object], value: object) -> None:
    jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], **shape}).validate(value)


async def test_messages_of_a_run_match_the_schema(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("list\nrun touch one\ntodo rest")
        question = await ui.until("ui.confirm.request")
        ui.answer(question, {"ok": True})
        await ui.until_ended(run)
        told = [message for message in ui.heard if "method" in message and "id" not in message]
    assert {message["method"] for message in told} >= {"agent.event", "run.status", "todos.update"}
    for message in told:
        fits(SCHEMA["notifications"][message["method"]]["params"], message["params"])
    fits(SCHEMA["requests"]["ui.confirm.request"]["params"], question["params"])


async def test_results_match_the_schema(tmp_path: Path) -> None:
    asked = {
        "session.list": {},
        "model.list": {"include_details": True},
        "tool.call": {"name": "list"},
        "mcp.list": {},
        "skills.list": {},
        "commands.list": {},
        "context.inspect": {"include_agents": True, "include_skills": True},
        "shell.exec": {"command": "echo hi"},
        "permission.explain": {"tool": "shell", "arguments": {"command": "ls"}},
    }
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        for method, params in asked.items():
            fits(SCHEMA["methods"][method]["params"], params)
            fits(SCHEMA["methods"][method]["result"], await ui.call(method, params))


def test_the_schema_has_every_method_and_refuses_invalid_messages() -> None:
    assert SCHEMA["methods"].keys() == METHODS.keys()
    told = SCHEMA["notifications"]["agent.event"]["params"]
    fits(told, {"run_id": "r", "seq": 0, "event": {"type": "of a core's own"}})
    for event in ({"type": "text"}, {"content": "x"}, 3):
        with pytest.raises(jsonschema.ValidationError):
            fits(told, {"run_id": "r", "seq": 0, "event": event})
