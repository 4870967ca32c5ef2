"""The spec's own examples (§10), held as one conversation with a runtime, line by line as written.

A name, a version and an id are ours where the runtime gives them. The example's `initialize` has no
capabilities and would be asked nothing; for the question one is announced. All else is as written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.ui_side import an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.protocol import METHODS, NOTIFICATIONS, REQUESTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("every_transport")

INITIALIZE = '{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"0","client":{"name":"codelia-tui","version":"0.0.0"}}}'
INITIALIZED = '{"jsonrpc":"2.0","id":"1","result":{"protocol_version":"0","server":{"name":"codelia-runtime","version":"0.0.0"}}}'
START = '{"jsonrpc":"2.0","id":"2","method":"run.start","params":{"input":{"type":"text","text":"List TypeScript files"}}}'
STARTED = '{"jsonrpc":"2.0","id":"2","result":{"run_id":"run_123"}}'
EVENT = '{"jsonrpc":"2.0","method":"agent.event","params":{"run_id":"run_123","seq":0,"event":{"type":"reasoning","content":"...","timestamp":1730000000000}}}'
CONFIRM = '{"jsonrpc":"2.0","id":"9","method":"ui.confirm.request","params":{"run_id":"run_123","title":"Run command?","message":"rg -n \\"AgentEvent\\" -S packages"}}'
CONFIRMED = '{"jsonrpc":"2.0","id":"9","result":{"ok":true}}'

REASONING = msgspec.Raw(b'{"type":"reasoning","content":"...","timestamp":1730000000000}')
SCRIPT = [
    ScriptStep(event=REASONING),
    ScriptStep(confirm="Run command?", message='rg -n "AgentEvent" -S packages'),
    ScriptStep(final="{last}"),
]


def has(heard: Any, written: Any) -> bool:
    """Whether all that the spec wrote is there; there may be more."""
    if isinstance(written, dict):
        return isinstance(heard, dict) and all(
            name in heard and has(heard[name], value) for name, value in written.items()
        )
    return bool(heard == written)


async def test_the_specs_examples_are_held_as_a_conversation(tmp_path: Path) -> None:
    async with an_agent(tmp_path, ScriptedCore("s", SCRIPT)) as agent:
        ui = await agent.first()
        ui.say(INITIALIZE)
        written = json.loads(INITIALIZED)
        written["result"]["server"] = {"name": "telex-agent"}
        assert has(await ui.hear(), written)
        ui.say(START)
        started = await ui.hear()
        run = started["result"]["run_id"]
        assert has(started, json.loads(STARTED.replace("run_123", run)))
        event = await ui.until("agent.event")
        assert event == json.loads(EVENT.replace("run_123", run))
        assert await ui.until_ended(run) == "completed"


async def test_the_specs_question_is_put_to_a_ui_that_announces_it(tmp_path: Path) -> None:
    hello = json.loads(INITIALIZE)
    hello["params"]["ui_capabilities"] = {"supports_confirm": True}
    async with an_agent(tmp_path, ScriptedCore("s", SCRIPT)) as agent:
        ui = await agent.first()
        ui.say(hello)
        ui.say(START)
        run = (await ui.reply("2"))["run_id"]
        question = await ui.until("ui.confirm.request")
        written = json.loads(CONFIRM.replace("run_123", run))
        # A core asks here, and no core may pass for the runtime, which asks about permission.
        written["params"]["title"] = "The agent asks: Run command?"
        assert has(question, {**written, "id": question["id"]})
        ui.say(CONFIRMED.replace('"9"', json.dumps(question["id"])))
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "yes"


async def test_a_ui_that_says_nothing_of_itself_is_served_and_asked_nothing(
    tmp_path: Path,
) -> None:
    """The example's `initialize` has no capabilities: such a UI can confirm nothing."""
    async with an_agent(tmp_path, ScriptedCore("s", SCRIPT)) as agent:
        ui = await agent.first()
        for line in (INITIALIZE, START):
            ui.say(line)
        run = (await ui.reply("2"))["run_id"]
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "no"
        assert not [m for m in ui.heard if m.get("method") == "ui.confirm.request"]


async def test_notifications_and_requests_of_a_runtime_match_the_published_types(
    tmp_path: Path,
) -> None:
    """Everything that a runtime sends in a long run is decoded by the type that we publish."""
    steps = [
        *SCRIPT[:2],
        ScriptStep(text="x", deltas=2),
        ScriptStep(prompt="p", message="m"),
        ScriptStep(pick=["a"]),
        ScriptStep(tool="todo", arguments={"action": "append", "entries": [{"content": "x"}]}),
        ScriptStep(context=5),
        ScriptStep(final="y"),
    ]
    answers = {"confirm": {"ok": True}, "prompt": {"value": "v"}, "pick": {"ids": ["a"]}}
    every = {f"supports_{what}": True for what in (*answers, "deltas", "todos", "request_cancel")}
    async with an_agent(tmp_path, ScriptedCore("s", steps), diagnostics=True) as agent:
        ui = await agent.connect(**every)
        run = await ui.start("go")
        while "completed" not in ui.statuses(run):
            message = await ui.hear()
            if message.get("method") in REQUESTS:
                params, result = REQUESTS[message["method"]]
                msgspec.convert(message["params"], params)
                answer = answers[message["method"].split(".")[1]]
                msgspec.convert(answer, result)
                ui.answer(message, answer)
            elif "method" in message:
                raw = json.dumps(message["params"]).encode()
                msgspec.json.decode(raw, type=NOTIFICATIONS[message["method"]])
    told = {message["method"] for message in ui.heard if "method" in message}
    assert told >= set(NOTIFICATIONS) - {"ui.request.cancel", "reasoning.delta"}


async def test_every_method_of_the_table_is_served(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        assert {method.name for method in agent.server.methods} == set(METHODS)
        assert agent.server.methods.schema()["methods"].keys() == METHODS.keys()
