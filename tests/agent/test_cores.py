"""The cores: plain commands, and files of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import an_agent
from telex.agent import CompactionCompleteEvent, CompactionStartEvent, FinalEvent, RunResult
from telex.agent.cores.builtin import BadCommand, BuiltinCore, call_of, commands
from telex.agent.cores.scripted import BadScript, ScriptedCore, ScriptStep, read_script

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent import AgentEvent, AsyncAgent
    from telex.agent.cores import Core


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("list", ("list", {})),
        ("list *.py", ("list", {"pattern": "*.py"})),
        ("LIST *.py", ("list", {"pattern": "*.py"})),
        ("read a b.txt", ("read", {"file_path": "a b.txt"})),
        ("search two words", ("search", {"pattern": "two words"})),
        ("run ls -la | head", ("shell", {"command": "ls -la | head"})),
        (
            "edit a.txt: old text => new => text",
            ("edit", {"file_path": "a.txt", "old_string": "old text", "new_string": "new => text"}),
        ),
        ("edit a: x => ", ("edit", {"file_path": "a", "old_string": "x", "new_string": ""})),
        ("write a: b: c", ("write", {"file_path": "a", "content": "b: c"})),
        ("todo", ("todo", {"action": "read"})),
        ("todo milk", ("todo", {"action": "append", "entries": [{"content": "milk"}]})),
        (
            "todo done 2",
            ("todo", {"action": "patch", "changes": [{"id": 2, "status": "completed"}]}),
        ),
        ("please list the files", None),
        ("listen", None),
    ],
)
def test_a_command_becomes_a_tool_call(line: str, call: Any) -> None:
    assert call_of(line) == call


@pytest.mark.parametrize("line", ["read", "search ", "run", "edit a", "edit a: b", "write a"])
def test_an_incomplete_command_is_answered_with_its_syntax(line: str) -> None:
    with pytest.raises(BadCommand, match="Write it as"):
        call_of(line)


def test_each_line_is_a_command() -> None:
    assert commands(" list\n\n  read a \n") == ["list", "read a"]


async def said(client: AsyncAgent, text: str) -> str:
    run = await client.run_start(text)
    result = await run.wait()
    assert result.status == "completed"
    return result.answer or ""


async def events_of(client: AsyncAgent, text: str, **more: Any) -> list[AgentEvent]:
    return [event async for event in await client.run_start(text, **more)]


async def test_the_builtin_core_executes_commands_and_says_that_it_is_no_model(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path, mode="trusted") as agent, agent.client() as client:
        (agent.root / "a.txt").write_text("one\ntwo\n")
        assert "no language model" in await said(client, "help")
        assert "no language model" in await said(client, "")
        assert "no language model" in await said(client, "compose a poem")
        assert "two" in await said(client, "read a.txt")
        assert "a.txt:2:two" in await said(client, "search two")
        assert "a.txt" in await said(client, "run ls")
        await said(client, "edit a.txt: two => three")
        assert (agent.root / "a.txt").read_text() == "one\nthree\n"
        await said(client, "write b.txt: new")
        assert (agent.root / "b.txt").read_text() == "new"
        assert await said(client, "read") == "Write it as: read FILE"
        assert "a.txt\nb.txt" in await said(client, "list *.txt\nread nothing")


@pytest.mark.parametrize("core", [BuiltinCore(), ScriptedCore("s", [ScriptStep(final="x")])])
async def test_a_core_without_a_model_has_nothing_to_compact(tmp_path: Path, core: Core) -> None:
    async with an_agent(tmp_path, core) as agent, agent.client() as client:
        began, over, final = await events_of(client, "", force_compaction=True)
        assert isinstance(began, CompactionStartEvent)
        assert isinstance(over, CompactionCompleteEvent)
        assert over.compacted is False
        assert isinstance(final, FinalEvent)


@pytest.mark.parametrize(
    ("ids", "chosen"), [(["c"], ""), (["c", "b", "a"], "b"), ([], "")], ids=str
)
async def test_only_one_of_the_offered_items_can_be_chosen(
    tmp_path: Path, ids: list[str], chosen: str
) -> None:
    core = ScriptedCore("s", [ScriptStep(pick=["a", "b"])])
    async with an_agent(tmp_path, core) as agent, agent.client(pick=lambda q: ids) as client:
        assert await said(client, "go") == chosen


SCRIPT = """
{"name": "demo", "steps": [
  {"reasoning": "They want to see the files."},
  {"text": "Let me look.", "deltas": 3},
  {"tool": "list", "arguments": {"pattern": "*.py"}},
  {"confirm": "Go on?", "message": "It may take a while."},
  {"prompt": "Your name"}, {"pick": ["one", "two"]},
  {"context": 80}, {"retry": "overloaded"}, {"compact": true},
  {"event": {"type": "text", "content": "with members of your own", "x": 1}},
  {"wait": 0.001},
  {"final": "You said {input}; the last answer was {last}."}]}
"""


async def test_the_scripted_core_plays_its_file_through_every_kind_of_step(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(SCRIPT)
    core = read_script(tmp_path / "script.json")
    async with (
        an_agent(tmp_path, core) as agent,
        agent.client(
            confirm=lambda question: True,
            prompt=lambda question: "Ada",
            pick=lambda question: ["two"],
        ) as client,
    ):
        assert (await client.model_list()).current == "demo"
        run = await client.run_start("hello")
        kinds = [event.__struct_config__.tag async for event in run]
        assert run.result is not None
        assert run.result.answer == "You said hello; the last answer was two."
        assert kinds == [
            *("reasoning", "text", "step_start", "tool_call", "tool_result", "step_complete"),
            *("llm.retry", "compaction_start", "compaction_complete", "text", "final"),
        ]


async def test_a_script_can_fail_and_its_message_is_sent(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"steps": [{"fail": "as it was told to"}]}')
    core = read_script(tmp_path / "script.json")
    async with an_agent(tmp_path, core) as agent, agent.client() as client:
        run = await client.run_start("go")
        assert await run.wait() == RunResult("error", "as it was told to", None)


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": [{"txet": "x"}]}', '{"steps": 3}'])
def test_an_invalid_script_is_refused_with_the_position(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(BadScript, match=r"s\.json is not a valid script"):
        read_script(tmp_path / "s.json")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ('{"text": "a", "final": "b"}', "step 1: text and final are two steps"),
        ('{"message": "a"}', "step 1: the step has no action"),
        ('{"context": 800}', "<= 100"),
    ],
)
def test_a_step_has_one_action_and_valid_values(tmp_path: Path, step: str, why: str) -> None:
    (tmp_path / "s.json").write_text(f'{{"steps": [{step}]}}')
    with pytest.raises(BadScript, match=why):
        read_script(tmp_path / "s.json")
