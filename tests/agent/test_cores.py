"""The cores: plain commands, and files of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.cores.builtin import BadCommand, call_of, commands
from telex.agent.cores.scripted import BadScript, ScriptedCore, ScriptStep, read_script

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Ui


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
def test_a_command_is_the_call_of_a_tool(line: str, call: Any) -> None:
    assert call_of(line) == call


@pytest.mark.parametrize("line", ["read", "search ", "run", "edit a", "edit a: b", "write a"])
def test_a_command_without_what_it_needs_says_how_it_is_written(line: str) -> None:
    with pytest.raises(BadCommand, match="Write it as"):
        call_of(line)


def test_each_line_is_a_command() -> None:
    assert commands(" list\n\n  read a \n") == ["list", "read a"]


async def said(ui: Ui, text: str, **more: object) -> str:
    run = await ui.start(text, **more)
    assert await ui.until_ended(run) == "completed"
    return ui.final(run)


async def test_the_builtin_core_obeys_and_says_that_it_is_no_model(tmp_path: Path) -> None:
    async with an_agent(tmp_path, mode="trusted") as agent:
        (agent.root / "a.txt").write_text("one\ntwo\n")
        ui = await agent.connect(**ALL)
        assert "no language model" in await said(ui, "help")
        assert "no language model" in await said(ui, "")
        assert "no language model" in await said(ui, "compose a poem")
        assert "two" in await said(ui, "read a.txt")
        assert "a.txt:2:two" in await said(ui, "search two")
        assert "a.txt" in await said(ui, "run ls")
        await said(ui, "edit a.txt: two => three")
        assert (agent.root / "a.txt").read_text() == "one\nthree\n"
        await said(ui, "write b.txt: new")
        assert (agent.root / "b.txt").read_text() == "new"
        assert await said(ui, "read") == "Write it as: read FILE"
        assert "a.txt\nb.txt" in await said(ui, "list *.txt\nread nothing")


async def test_the_builtin_core_has_nothing_to_make_smaller(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("", force_compaction=True)
        await ui.until_ended(run)
        assert ui.kinds(run) == ["compaction_start", "compaction_complete", "final"]
        assert ui.events(run)[1]["event"].get("compacted", False) is False


async def test_a_script_has_nothing_to_make_smaller_either(tmp_path: Path) -> None:
    async with an_agent(tmp_path, ScriptedCore("s", [ScriptStep(final="x")])) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("", force_compaction=True)
        await ui.until_ended(run)
        assert ui.kinds(run) == ["compaction_start", "compaction_complete", "final"]


async def test_only_what_was_offered_can_be_chosen_and_one_of_it(tmp_path: Path) -> None:
    async with an_agent(tmp_path, ScriptedCore("s", [ScriptStep(pick=["a", "b"])])) as agent:
        ui = await agent.connect(**ALL)
        for ids, chosen in ((["c"], ""), (["c", "b", "a"], "b"), ([], "")):
            run = await ui.start("go")
            ui.answer(await ui.until("ui.pick.request"), {"ids": ids})
            await ui.until_ended(run)
            assert ui.final(run) == chosen


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
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        assert (await ui.call("model.list"))["current"] == "demo"
        run = await ui.start("hello")
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        ui.answer(await ui.until("ui.prompt.request"), {"value": "Ada"})
        ui.answer(await ui.until("ui.pick.request"), {"ids": ["two"]})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "You said hello; the last answer was two."
        assert ui.kinds(run) == [
            *("reasoning", "text", "step_start", "tool_call", "tool_result", "step_complete"),
            *("llm.retry", "compaction_start", "compaction_complete", "text", "final"),
        ]


async def test_a_script_can_fail_and_its_sentence_is_told(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"steps": [{"fail": "as it was told to"}]}')
    async with an_agent(tmp_path, read_script(tmp_path / "script.json")) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        assert await ui.until_ended(run) == "error"
        assert ui.heard[-1]["params"]["message"] == "as it was told to"


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": [{"txet": "x"}]}', '{"steps": 3}'])
def test_a_file_that_is_no_script_is_refused_with_the_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(BadScript, match=r"s\.json is no script"):
        read_script(tmp_path / "s.json")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ('{"text": "a", "final": "b"}', "step 1: text and final are two steps"),
        ('{"message": "a"}', "step 1: it says nothing to do"),
        ('{"context": 800}', "<= 100"),
    ],
)
def test_a_step_is_one_thing_and_within_its_bounds(tmp_path: Path, step: str, why: str) -> None:
    (tmp_path / "s.json").write_text(f'{{"steps": [{step}]}}')
    with pytest.raises(BadScript, match=why):
        read_script(tmp_path / "s.json")
