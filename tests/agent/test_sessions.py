"""The session of a run, and the list of sessions, as UIs of the original expect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.cores.builtin import without_shell_results
from telex.agent.protocol import events, runs
from telex.agent.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Ui


async def started(ui: Ui, text: str = "help", **more: object) -> str:
    """Run to the end, and return the session."""
    answer = await ui.call("run.start", {"input": {"type": "text", "text": text}, **more})
    assert await ui.until_ended(answer["run_id"]) == "completed"
    return str(answer["session_id"])


async def listed(ui: Ui, **params: object) -> list[str]:
    answer = await ui.call("session.list", params)
    return [one["session_id"] for one in answer["sessions"]]


# The current session of a connection.


async def test_a_run_without_a_session_continues_the_current_session_of_its_connection(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(), await agent.connect()
        first = await started(ui, "todo bread")
        assert await started(ui, "todo") == first
        assert await started(ui, "todo", session_id=None, new_session=False) == first
        assert "bread" in ui.final(ui.heard[-1]["params"]["run_id"])
        assert await started(other) != first


async def test_a_new_session_begins_on_request_and_becomes_the_current_one(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        first = await started(ui)
        second = await started(ui, new_session=True)
        assert second != first
        assert await started(ui) == second
        assert await started(ui, session_id=first) == first
        assert await started(ui) == first


async def test_a_refused_run_does_not_change_the_current_session(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        first = await started(ui)
        text = {"input": {"type": "text", "text": "help"}}
        assert (await ui.refusal("run.start", {**text, "session_id": "none"})).code == -32004
        both = {**text, "session_id": first, "new_session": True}
        assert (await ui.refusal("run.start", both)).code == -32602
        assert await started(ui) == first


async def test_two_runs_in_one_read_are_in_one_session_and_the_second_is_busy(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        text = {"input": {"type": "text", "text": "ask x"}}
        ids = [ui.send("run.start", text) for _ in range(2)]
        first = await ui.reply(ids[0])
        with pytest.raises(
            Exception, match=f"-32001: session {first['session_id']} has an active run"
        ):
            await ui.reply(ids[1])
        await ui.call("run.cancel", {"run_id": first["run_id"]})
        assert await started(ui) == first["session_id"]


@pytest.mark.parametrize("clear_session", [None, True, False])
async def test_signing_out_clears_the_current_session_unless_clear_session_is_false(
    tmp_path: Path, clear_session: bool | None
) -> None:
    cleared = clear_session is not False
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        first = await started(ui)
        asked = ui.send("auth.logout", {"clear_session": clear_session})
        question = await ui.until("ui.confirm.request")
        begins = "the next run starts a new session" in question["params"]["message"]
        assert begins is cleared
        ui.answer(question, {"ok": True})
        assert (await ui.reply(asked))["session_cleared"] is cleared
        assert (await started(ui) != first) is cleared
        assert first in await listed(ui)


async def test_a_sign_out_that_the_person_denied_clears_nothing(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        first = await started(ui)
        asked = ui.send("auth.logout", {})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": False})
        assert (await ui.reply(asked))["session_cleared"] is False
        assert await started(ui) == first


# Lists.


async def test_the_ids_of_sessions_differ_in_their_first_eight_characters(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        for _ in range(20):
            await started(ui, new_session=True)
        ids = await listed(ui)
        assert len({id[:8] for id in ids}) == 20


async def test_sessions_are_listed_by_workspace_on_request(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    async with an_agent(tmp_path) as agent:
        here, there = await agent.connect(), await agent.connect()
        there.say({"jsonrpc": "2.0", "method": "ui.context.update", "params": _at(elsewhere)})
        one, two = await started(here), await started(there)
        assert await listed(here) == await listed(there, scope="all") == [two, one]
        assert await listed(here, scope="current_workspace") == [one]
        assert await listed(there, scope="current_workspace") == [two]
        assert await listed(here, workspace_root=str(tmp_path / "link")) == [two]
        assert await listed(here, scope="current_workspace", workspace_root="../elsewhere") == [two]
        assert await listed(here, scope="all", workspace_root=str(elsewhere)) == [two, one]
        assert await listed(here, workspace_root="/nowhere\0") == []
        assert await listed(here, scope="current_workspace", limit=0) == [one]
        assert (await here.refusal("session.list", {"scope": "mine"})).code == -32602
        answer = await here.call("session.list", {"workspace_root": str(elsewhere)})
        assert answer["current_workspace_root"] == str(agent.root)
        assert answer["sessions"][0]["workspace_root"] == str(elsewhere)


def _at(workspace: Path) -> dict[str, Any]:
    return {"workspace_root": str(workspace)}


async def test_a_session_is_listed_where_its_last_run_was(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        session = await started(ui)
        assert await started(ui, ui_context=_at(elsewhere)) == session
        assert await listed(ui, workspace_root=str(agent.root)) == []
        assert await listed(ui, scope="current_workspace") == [session]


async def test_the_workspace_of_a_session_is_exported_and_imported(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        session = await started(await agent.connect())
        lines = [line async for line in agent.runtime.store.export()]
    file = tmp_path / "exported"
    file.write_bytes(b"".join(lines))
    async with await Store.open(tmp_path / "new" / "telex.db") as store:
        await store.import_(file)
        (thread,) = await store.threads(None, str(agent.root))
        assert thread.session_id == session
        renamed = await store.import_(file, new_ids=True)
        assert renamed.sessions[session][:8] != session[:8]


# Models, and members that are always present.


async def test_an_unknown_provider_has_no_models_and_the_current_model_is_returned(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        for provider in ("openai", "anthropic", "openrouter", "moonshot", "zai", "xai", ""):
            answer = await ui.call("model.list", {"provider": provider, "include_details": True})
            assert answer == {
                "provider": provider,
                "models": [],
                "source": "config",
                "current": "builtin",
            }
        chosen = {"provider": "openai", "name": "builtin"}
        assert (await ui.refusal("model.set", chosen)).code == -32602


async def test_a_compaction_reports_whether_it_compacted_anything(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        run = await ui.start("help", force_compaction=True)
        await ui.until_ended(run)
        (told,) = [e["event"] for e in ui.events(run) if e["event"]["type"].endswith("_complete")]
        assert told["compacted"] is False


def test_members_that_the_original_requires_are_never_omitted() -> None:
    """A value that equals the default of its member must still be sent."""
    told: list[tuple[msgspec.Struct, set[str]]] = [
        (events.CompactionCompleteEvent(1, False), {"timestamp", "compacted"}),
        (events.LlmRetryEvent("p", "timeout", 2, 3, 0, "backoff"), {"delay_ms", "delay_source"}),
        (runs.CacheUse(), {"hit_state", "cache_read_tokens", "cache_creation_tokens"}),
        (runs.RunSummary(), set(runs.RunSummary.__struct_fields__)),
        (events.StepCompleteEvent("s", "completed", 0), {"step_id", "status", "duration_ms"}),
        (events.FinalEvent(""), {"content"}),
    ]
    for struct, required in told:
        assert required <= msgspec.to_builtins(struct).keys(), type(struct).__name__


# Blocks that a UI puts before the input.

RESULT = '<shell_result>\n{"id":"bang_1","command_preview":"ls","stdout":"run rm\\nlist"}\n</shell_result>'


async def test_results_of_the_persons_commands_are_context_and_not_commands(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a.py").touch()
        ui = await agent.connect(**ALL)
        run = await ui.start(f"{RESULT}\n{RESULT}\nlist *.py")
        await ui.until_ended(run)
        assert [e["event"]["tool"] for e in ui.events(run) if "tool" in e["event"]] == ["list"] * 2
        assert "a.py" in ui.final(run)
        assert "no language model" not in ui.final(run)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("list", "list"),
        (f"{RESULT}\nlist", "list"),
        (f"\n {RESULT}\n\n{RESULT}\n\nlist\nhelp", "list\nhelp"),
        ("<shell_result>{}</shell_result> list", "list"),
        ("<shell_result>\r\n{}\r\n</shell_result>\r\nlist", "list"),
        ('<shell_result>\n{"stdout":"</shell_result> list"}\n</shell_result>\nhelp', "help"),
        ("<shell_result>\nno JSON\n</shell_result>\nlist", "list"),
        (RESULT, ""),
        ("<shell_result>\nlist", "<shell_result>\nlist"),
        (f"list\n{RESULT}", f"list\n{RESULT}"),
        ("<shell_results>\n</shell_results>", "<shell_results>\n</shell_results>"),
    ],
)
def test_leading_blocks_of_results_are_removed_from_a_text(text: str, left: str) -> None:
    assert without_shell_results(text).strip() == left
