"""Conversations of cores: results for every call, cuts, instructions, and the model of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agent.ui_side import ALL, an_agent
from telex.agent.compaction import cut_index, files_used, transcript
from telex.agent.conversation import (
    NO_RESULT,
    message_text,
    result_message,
    to_stored,
    unanswered_calls,
    user_message,
    with_all_results,
)
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.instructions import build_instructions
from telex.agent.messages import (
    AssistantMessage,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    decode_message,
)
from telex.agent.model_catalogue import ModelChoice
from telex.agent.protocol.events import FinalEvent
from telex.agent.protocol.sessions import ModelDetails
from telex.agent.run_settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.messages import Message


def calling(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolCallPart(id, "read", Raw(b"{}")) for id in ids), "m")


def test_a_call_without_a_result_gets_one_and_a_late_result_is_moved() -> None:
    said = [
        user_message("a"),
        calling("1", "2", "3"),
        result_message("2", "two"),
        user_message("b"),
        result_message("1", "late"),
        result_message("9", "of no call"),
    ]
    indexes, whole = zip(*with_all_results(said), strict=True)
    assert indexes == (0, 1, 4, 2, None, 3)
    assert [message_text(one) for one in whole if isinstance(one, ToolResultMessage)] == [
        *("late", "two", NO_RESULT)
    ]
    assert unanswered_calls(said[:3]) == (calling("1", "2", "3").parts[0], calling("3").parts[0])
    assert unanswered_calls(said[:1]) == ()
    again = [calling("1"), result_message("1", "a"), calling("1"), result_message("1", "b")]
    assert [index for index, _ in with_all_results(again)] == [0, 1, 2, 3]


def test_a_stored_message_is_one_line_and_unchanged() -> None:
    broken = Raw(b'{\n  "text": "a\\nb"\n}')
    said = AssistantMessage((ToolCallPart("1", "write", broken),), "m")
    stored = to_stored(said)
    assert b"\n" not in stored
    again = decode_message(stored)
    assert isinstance(again, AssistantMessage)
    assert bytes(again.tool_calls[0].arguments) == b'{"text":"a\\nb"}'


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    said: list[Message] = []
    for turn in range(draw(st.integers(1, 8))):
        if draw(st.booleans()):
            said.append(user_message("x" * draw(st.integers(0, 50))))
        ids = [f"{turn}.{n}" for n in range(draw(st.integers(0, 3)))]
        said.append(calling(*ids) if ids else AssistantMessage((TextPart("y"),), "m"))
        said += [result_message(id, "z" * draw(st.integers(0, 50))) for id in ids]
    return said


@given(conversations(), st.integers(0, 300))
def test_a_cut_is_never_between_a_call_and_its_result(said: list[Message], most: int) -> None:
    sizes = [len(message_text(one)) for one in said]
    at = cut_index(said, sizes, most)
    assert 1 <= at <= len(said)
    assert sum(sizes[at:]) <= most
    for part in (said[:at], said[at:]):
        assert [index for index, _ in with_all_results(part)] == list(range(len(part)))


@given(conversations(), st.integers(10, 2_000))
def test_a_transcript_is_bounded_and_has_both_ends(said: list[Message], most: int) -> None:
    whole = transcript(said, 100_000)
    short = transcript(said, most)
    assert len(short.encode()) <= most + 200
    if len(whole) < most // 2:
        assert short == whole
    assert short[:5] == whole[:5]


def test_the_files_of_a_summary_are_the_last_used_ones() -> None:
    calls = [
        ToolCallPart(str(n), "read", Raw(b'{"file_path": "f%d"}' % (n % 40))) for n in range(100)
    ]
    found = files_used([AssistantMessage((call,), "m") for call in calls])
    assert found[-1] == "f19"
    assert len(found) == 30
    assert len(set(found)) == 30


async def test_the_instructions_have_the_project_its_skills_and_the_editor(tmp_path: Path) -> None:
    async with an_agent(tmp_path, trusted=True) as agent:
        (agent.root / "AGENTS.md").write_text("Use tabs.")
        skill = agent.root / ".agents" / "skills" / "release"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to release.\n---\n")
        workspace = await agent.workspace()
        text = await build_instructions(
            workspace,
            b'{"active_file":{"path":"a.py"},"selection":{"path":"a.py","selected_text":"x = 1",'
            b'"range":{"start":{"line":2,"column":0},"end":{"line":3,"column":0}}}}',
        )
        for part in ("Use tabs.", "release: How to release.", "a.py, line 3 to 4", "x = 1"):
            assert part in text
        assert str(agent.root) in text
        assert "mode minimal" in text


async def test_instructions_that_are_a_link_to_a_secret_are_not_read(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / ".env").write_text("TOKEN=1234")
        (agent.root / "AGENTS.md").symlink_to(".env")
        assert "1234" not in await build_instructions(await agent.workspace(), None)


async def test_instructions_that_are_too_long_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.instructions.AGENT_INSTRUCTION_BYTES", 10)
    async with an_agent(tmp_path) as agent:
        (agent.root / "AGENTS.md").write_text("0123456789 and more")
        text = await build_instructions(await agent.workspace(), None)
        assert "0123456789\n[cut: the file is longer]" in text
        assert "and more" not in text


# The conversation that the cores without a model leave behind.


class Remembering:
    """A core that answers with the conversation."""

    name = "remembering"
    details = BuiltinCore.details

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        said = await context.messages()
        yield FinalEvent(" | ".join(type(one).__name__[0] for one in said))


async def test_a_core_gets_what_the_cores_before_it_said(tmp_path: Path) -> None:
    script = ScriptedCore(
        "script",
        [
            ScriptStep(text="a"),
            ScriptStep(tool="list"),
            ScriptStep(prompt="?"),
            ScriptStep(final="b"),
        ],
    )
    async with an_agent(tmp_path, script, Remembering()) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        ui.answer(await ui.until("ui.prompt.request"), {"value": "answer"})
        assert await ui.until_ended(run) == "completed"
        await ui.call("model.set", {"name": "remembering"})
        run = await ui.start("again")
        assert await ui.until_ended(run) == "completed"
        # The input; a text; a call and its result; a question and its answer; the final text.
        assert ui.final(run) == "U | A | A | T | A | T | A | U"


# The models of sessions.


class Named(BuiltinCore):
    def __init__(self, name: str, released: str | None = None) -> None:
        self.name = name  # type: ignore[misc]  # each has its own
        self.details = ModelDetails(release_date=released, context_window=1000)  # type: ignore[misc]  # as above

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        yield FinalEvent(self.name)


def several() -> list[ModelChoice]:
    return [
        ModelChoice("one", Named("b", "2026-01-01")),
        ModelChoice("one", Named("undated")),
        ModelChoice("one", Named("a", "2026-05-01")),
        ModelChoice("two", Named("a")),
        ModelChoice("builtin", BuiltinCore()),
    ]


async def test_models_of_several_providers_are_listed_the_newest_first(tmp_path: Path) -> None:
    async with an_agent(tmp_path, *several()) as agent:
        ui = await agent.connect(**ALL)
        listed = await ui.call("model.list", {"include_details": True})
        assert listed["provider"] == "one"
        assert listed["models"] == ["a", "b", "undated"]
        assert (listed["current"], listed["source"]) == ("b", "config")
        assert listed["details"]["a"] == {"release_date": "2026-05-01", "context_window": 1000}
        assert (await ui.call("model.list", {"provider": "two"}))["models"] == ["a"]
        chosen = await ui.call("model.set", {"name": "builtin"})
        assert chosen == {"provider": "builtin", "name": "builtin", "source": "config"}
        refused = await ui.refusal("model.set", {"name": "a", "provider": "three"})
        assert "one, two" in refused.message
        assert (await ui.refusal("model.set", {})).code == -32602


async def test_a_session_keeps_its_own_model_also_after_a_restart(tmp_path: Path) -> None:
    async def answer(session: str | None = None) -> tuple[str, str]:
        more = {} if session is None else {"session_id": session}
        asked = {"input": {"type": "text", "text": "go"}, **more}
        started = await ui.call("run.start", asked)
        await ui.until_ended(started["run_id"])
        return ui.final(started["run_id"]), started["session_id"]

    async with an_agent(tmp_path, *several()) as agent:
        ui = await agent.connect(**ALL)
        two = {"name": "a", "provider": "two", "scope": "session"}
        assert (await ui.call("model.set", two))["source"] == "session"
        said, session = await answer()
        assert said == "a"
        other = await agent.connect(**ALL)
        assert (await other.call("model.list"))["current"] == "b", "only that session has it"
        assert (await ui.call("model.list"))["source"] == "session"
        assert (await ui.call("model.list"))["provider"] == "two"
    async with an_agent(tmp_path, *several()) as agent:
        ui = await agent.connect(**ALL)
        assert (await ui.call("model.list"))["source"] == "config"
        assert await answer(session) == ("a", session)
        reset = await ui.call("model.set", {"reset": True})
        assert reset == {"provider": "one", "name": "b", "source": "config"}
        assert await answer(session) == ("b", session)


async def test_a_run_is_continued_by_the_model_of_its_session_or_the_one_that_began_it(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path, *several()) as agent:
        ui, models = await agent.connect(**ALL), agent.runtime.models
        started = await ui.call("run.start", {"input": {"type": "text", "text": "go"}})
        await ui.until_ended(started["run_id"])
        session = started["session_id"]

        async def continued_by(model: str, provider: str) -> str | None:
            found = await models.for_resume(session, RunSettings(model, provider))
            return found and f"{found.provider}/{found.name}"

        assert await continued_by("a", "two") == "two/a"
        assert await continued_by("builtin", "") == "builtin/builtin"
        assert await continued_by("gone", "three") == "one/b", "the default"
        await ui.call("model.set", {"name": "undated", "scope": "session"})
        assert await continued_by("a", "two") == "one/undated"
        await ui.call("model.set", {"reset": True})
        await ui.call("model.set", {"name": "builtin"})
        assert await continued_by("gone", "three") is None


async def test_a_model_that_is_gone_is_not_the_model_of_its_session(tmp_path: Path) -> None:
    async with an_agent(tmp_path, *several()) as agent:
        ui = await agent.connect(**ALL)
        await ui.call("model.set", {"name": "undated", "scope": "session"})
        started = await ui.call("run.start", {"input": {"type": "text", "text": "go"}})
        await ui.until_ended(started["run_id"])
    async with an_agent(tmp_path, BuiltinCore()) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("help", session_id=started["session_id"])
        assert await ui.until_ended(run) == "completed"
        assert "no language model" in ui.final(run)
