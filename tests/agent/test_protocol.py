"""The methods of the agent UI protocol: `initialize` first, their results, and their errors."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.protocol import METHODS
from telex.agent.protocol.runs import UiCapabilities
from telex.agent.store import NewRun, Status

if TYPE_CHECKING:
    from pathlib import Path

HELLO = {"protocol_version": "0", "client": {"name": "a UI", "version": "1"}}


async def test_nothing_is_served_before_initialize_and_it_is_served_once(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        for method in ("session.list", "run.start", "no.such.thing"):
            assert (await ui.refusal(method, {})).code == -32600
        answer = await ui.call("initialize", HELLO)
        assert answer["protocol_version"] == "0"
        assert answer["server"]["name"] == "telex-agent"
        assert (await ui.refusal("initialize", HELLO)).code == -32600
        assert (await ui.call("session.list"))["sessions"] == []


async def test_an_invalid_initialize_opens_nothing(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        assert (await ui.refusal("initialize", {"protocol_version": 0})).code == -32602
        assert (await ui.refusal("session.list")).code == -32600
        await ui.call("initialize", HELLO)


async def test_initialize_returns_our_version_for_any_version_of_the_ui(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        for version in ("0", "1", "2031-01-01", ""):
            answer = await agent.raw().call("initialize", {**HELLO, "protocol_version": version})
            assert answer["protocol_version"] == "0"


async def test_an_initialize_without_an_id_opens_nothing(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        ui.say({"jsonrpc": "2.0", "method": "initialize", "params": HELLO})
        assert (await ui.refusal("session.list")).code == -32600
        await ui.call("initialize", HELLO)


async def test_a_null_id_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        params = {"input": {"type": "text", "text": "help"}}
        ui.say({"jsonrpc": "2.0", "id": None, "method": "run.start", "params": params})
        answer = await ui.hear()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert (await ui.call("session.list"))["sessions"] == []


def optional(kind: Any) -> list[Any]:
    """Return the types of all members that may be omitted, also of nested structs."""
    found: list[Any] = []
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            found += [] if field.required else [field.type]
            found += optional(field.type)
    return found + [one for inner in get_args(kind) for one in optional(inner)]


@pytest.mark.parametrize("method", METHODS)
def test_null_means_the_same_as_an_omitted_member(method: str) -> None:
    for kind in optional(METHODS[method][0]):
        msgspec.json.decode(b"null", type=kind)


async def test_capabilities_and_numbers_may_be_null(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        can = dict.fromkeys(UiCapabilities.__struct_fields__)
        await ui.call("initialize", {**HELLO, "ui_capabilities": can})
        run = await ui.start("run touch x")
        await ui.until_ended(run)
        assert "Permission denied" in ui.final(run)
        assert (await ui.call("run.attach", {"run_id": run, "after_seq": None}))["run_id"] == run


async def test_requests_in_the_same_read_as_initialize_are_served_after_it(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = agent.raw()
        first, second = ui.send("initialize", HELLO), ui.send("session.list", {})
        assert (await ui.reply(second))["sessions"] == []
        assert (await ui.reply(first))["server_capabilities"]["supports_run_cancel"] is True


async def test_reserved_namespaces_are_refused_with_a_hint(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        for name in ("artifact", "workspace", "history", "todos", "shell"):
            refused = await ui.refusal(f"{name}.something", {})
            assert refused.code == -32601
            assert "is reserved" in refused.message
        assert (await ui.refusal("nothing.like.it")).code == -32601


async def test_a_misspelt_method_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        for misspelt, meant in (
            ("run.strat", "run.start"),
            ("sesion.history", "session.history"),
            ("shell.exce", "shell.exec"),
        ):
            refused = await ui.refusal(misspelt, {})
            assert refused.code == -32601
            assert refused.message.endswith(f"Did you mean {meant}?")
            assert refused.data == {"nearest": [meant]}


async def test_the_response_of_a_run_precedes_its_notifications_from_running_to_its_end(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a.py").write_text("1\n")
        ui = await agent.connect(**ALL)
        id = ui.send("run.start", {"input": {"type": "text", "text": "list *.py"}})
        first = await ui.hear()
        assert first["id"] == id
        run = first["result"]["run_id"]
        assert first["result"]["session_id"]
        assert (await ui.hear())["params"] == {"run_id": run, "status": "running"}
        assert await ui.until_ended(run) == "completed"
        assert [params["seq"] for params in ui.events(run)] == list(range(5))
        kinds = ["step_start", "tool_call", "tool_result", "step_complete", "final"]
        assert ui.kinds(run) == kinds
        assert ui.final(run) == "a.py"
        assert not any("meta" in one and "replay" in one["meta"] for one in ui.events(run))


async def test_an_invalid_input_is_refused_and_starts_nothing(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        for params in (
            {},
            {"input": "list"},
            {"input": {"type": "parts", "parts": []}},
            {"input": {"type": "text"}},
            {"input": {"type": "text", "text": "x"}, "meta": 3},
            {"input": {"type": "text", "text": "x"}, "ui_context": {"cwd": 1}},
            {"input": {"type": "text", "text": "x"}, "session_id": 4},
        ):
            assert (await ui.refusal("run.start", params)).code == -32602, params
        assert (await ui.call("session.list"))["sessions"] == []


async def test_a_session_can_be_continued_and_an_unknown_session_is_not_found(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        started = await ui.call("run.start", {"input": {"type": "text", "text": "help"}})
        await ui.until_ended(started["run_id"])
        again = await ui.start("help me", session_id=started["session_id"])
        await ui.until_ended(again)
        [session] = (await ui.call("session.list"))["sessions"]
        assert session["session_id"] == started["session_id"]
        assert session["run_id"] == again
        assert session["message_count"] == 4
        assert session["last_user_message"] == "help me"
        refused = await ui.refusal(
            "run.start", {"input": {"type": "text", "text": "x"}, "session_id": "nowhere"}
        )
        assert refused.code == -32004
        refused = await ui.refusal(
            "run.start", {"input": {"type": "text", "text": "x"}, "session_id": ""}
        )
        assert refused.code == -32004
        assert "session_" not in refused.message


async def test_sessions_and_history_have_default_limits(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        store, said = agent.runtime.store, b'{"type":"text","content":""}'
        for number in range(60):
            session = "long" if number < 25 else f"s{number}"
            new = number == 0 or number >= 25
            await store.start_run(NewRun(f"r{number}", session, b"{}", "", new_thread=new))
            if number == 24:
                kept = [store.appending("r24", said) for _ in range(1600)]
                await asyncio.gather(*kept)
            await store.end_run(f"r{number}", Status.COMPLETED)
        ui = await agent.connect()
        assert len((await ui.call("session.list"))["sessions"]) == 36
        for number in range(60, 80):
            await store.start_run(NewRun(f"r{number}", f"s{number}", b"{}", "", new_thread=True))
            await store.end_run(f"r{number}", Status.COMPLETED)
        assert len((await ui.call("session.list"))["sessions"]) == 50
        assert len((await ui.call("session.list", {"limit": 0}))["sessions"]) == 56
        long = await ui.call("session.history", {"session_id": "long"})
        assert long == {"runs": 1, "events_sent": 1500, "truncated": True}
        more = await ui.call("session.history", {"session_id": "long", "max_events": 9999})
        assert (more["runs"], more["truncated"]) == (20, True)
        every = {"session_id": "long", "max_events": 9999, "max_runs": 30}
        assert (await ui.call("session.history", every))["truncated"] is False


async def test_a_refused_run_does_not_change_the_context(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        await ui.call("ui.context.update", {"cwd": "/a"})
        params = {"input": {"type": "text", "text": "x"}, "ui_context": {"cwd": "/b"}}
        assert (await ui.refusal("run.start", {**params, "session_id": "no"})).code == -32004
        assert (await ui.call("context.inspect"))["ui_context"] == {"cwd": "/a"}
        await ui.until_ended((await ui.call("run.start", params))["run_id"])
        assert (await ui.call("context.inspect"))["ui_context"] == {"cwd": "/b"}


async def test_history_is_sent_before_the_response_and_marked_as_replay(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        meta = {"mine": [1, {"x": None}]}
        started = await ui.call(
            "run.start", {"input": {"type": "text", "text": "help", "extra": 1}, "meta": meta}
        )
        run = started["run_id"]
        await ui.until_ended(run)
        other = await agent.connect()
        answer = await other.call("session.history", {"session_id": started["session_id"]})
        assert answer == {"runs": 1, "events_sent": 2, "truncated": False}
        said, final = other.events(run)
        assert said["seq"] == -1
        assert said["event"] == {"type": "hidden_user_message", "content": "help"}
        assert final["event"]["type"] == "final"
        assert said["meta"]["replay"] is True
        assert final["meta"]["replay"] is True
        assert other.heard[-1]["result"] == answer
        few = await other.call(
            "session.history", {"session_id": started["session_id"], "max_events": 1}
        )
        assert few == {"runs": 1, "events_sent": 1, "truncated": True}
        assert other.events(run)[-1]["seq"] == final["seq"]
        assert (await other.refusal("session.history", {"session_id": "no"})).code == -32004
        bad = {"session_id": started["session_id"], "max_runs": -1}
        assert (await other.refusal("session.history", bad)).code == -32602


async def test_the_model_list_has_the_builtin_model_and_its_details(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        assert await ui.call("model.list") == {
            "provider": "builtin",
            "models": ["builtin"],
            "source": "config",
            "current": "builtin",
        }
        assert (await ui.call("model.list", {"include_details": True}))["details"] == {
            "builtin": {"supports_images": False}
        }
        assert await ui.call("model.set", {"name": "builtin", "provider": "builtin"}) == {
            "provider": "builtin",
            "name": "builtin",
            "source": "config",
        }
        assert (await ui.refusal("model.set", {"name": "gpt"})).code == -32602
        run = await ui.start("what is the weather?")
        await ui.until_ended(run)
        assert "no language model" in ui.final(run)


async def test_empty_lists_are_returned_empty(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        for scope in ("loaded", "configured"):
            assert await ui.call("mcp.list", {"scope": scope}) == {"servers": []}
        assert (await ui.refusal("mcp.list", {"scope": "all"})).code == -32602
        assert await ui.call("skills.list") == {"skills": [], "errors": [], "truncated": False}


async def test_skills_are_cached_until_a_reload(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        assert (await ui.call("skills.list"))["skills"] == []
        skill = agent.root / ".agents" / "skills" / "baking"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: baking\ndescription: Bread.\n---\n")
        assert (await ui.call("skills.list"))["skills"] == []
        [found] = (await ui.call("skills.list", {"force_reload": True}))["skills"]
        assert (found["name"], found["scope"]) == ("baking", "repo")
        assert (await ui.refusal("skills.list", {"cwd": "/etc"})).code == -32602


async def test_skills_are_cached_for_a_limited_number_of_existing_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.agent_context.AGENT_SKILLS_PLACES", 2)
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        places = ["a", "b", "c"]
        for name in places:
            (agent.root / name).mkdir()
        for cwd in (*places, "not/there"):
            assert (await ui.call("skills.list", {"cwd": cwd}))["skills"] == []
        skill = agent.root / ".agents" / "skills" / "baking"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: baking\ndescription: Bread.\n---\n")
        found = {
            cwd: len((await ui.call("skills.list", {"cwd": cwd}))["skills"])
            for cwd in ("b", "c", "not/there", "a")
        }
        assert found == {"b": 0, "c": 0, "not/there": 1, "a": 1}


async def test_the_context_can_be_inspected_and_an_update_replaces_the_uis_part(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "AGENTS.md").write_text("be brief\n")
        ui = await agent.connect()
        update = {"cwd": "/a", "active_file": {"path": "/a/b"}, "unknown": {"y": None}}
        assert await ui.call("ui.context.update", update) is None
        seen = await ui.call("context.inspect")
        assert seen["runtime_sandbox_root"] == str(agent.root)
        assert seen["ui_context"] == {"cwd": "/a", "active_file_path": "/a/b"}
        [file] = seen["agents"]["initial_files"]
        assert file["path"] == str(agent.root / "AGENTS.md")
        assert seen["skills"]["catalog"]["skills"] == []
        ui.say({"jsonrpc": "2.0", "method": "ui.context.update", "params": {"cwd": "/b"}})
        seen = await ui.call("context.inspect", {"include_agents": False, "include_skills": False})
        assert seen["ui_context"] == {"cwd": "/b"}
        assert "agents" not in seen
        assert "skills" not in seen
        assert (await ui.refusal("ui.context.update", {"selection": {}})).code == -32602


async def test_a_tool_can_be_called_and_its_failure_is_not_a_protocol_error(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a").write_text("one\n")
        ui = await agent.connect()
        read = await ui.call("tool.call", {"name": "read", "arguments": {"file_path": "a"}})
        assert read["ok"] is True
        assert "one" in json.dumps(read["result"])
        missing = await ui.call("tool.call", {"name": "read", "arguments": {"file_path": "b"}})
        assert missing["ok"] is False
        for params in (
            {"name": "nothing"},
            {"name": "read"},
            {"name": "read", "arguments": {"file_path": 3}},
            {"name": "read", "arguments": [1]},
            {},
        ):
            assert (await ui.refusal("tool.call", params)).code == -32602, params


async def test_a_tool_call_obeys_permissions(tmp_path: Path) -> None:
    write = {"name": "write", "arguments": {"file_path": "a", "content": "x"}}
    async with an_agent(tmp_path) as agent:
        mute = await agent.connect()
        denied = await mute.call("tool.call", write)
        assert denied["ok"] is False
        assert "Permission denied" in denied["result"]
        ui = await agent.connect(**ALL)
        for answer in ({"ok": False}, {"ok": False, "reason": "not now"}):
            asked = ui.send("tool.call", write)
            ui.answer(await ui.until("ui.confirm.request"), answer)
            with pytest.raises(Exception, match="-32003"):
                await ui.reply(asked)
        assert not (agent.root / "a").exists()
        asked = ui.send("tool.call", write)
        question = await ui.until("ui.confirm.request")
        assert question["id"].startswith("ui_")
        ui.answer(question, {"ok": True})
        assert (await ui.reply(asked))["ok"] is True
        assert (agent.root / "a").read_text() == "x"


async def test_a_command_of_the_person_runs_outside_any_run(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "sub").mkdir()
        ui = await agent.connect()
        ran = await ui.call("shell.exec", {"command": " pwd; exit 3 ", "cwd": "sub"})
        assert ran["stdout"].strip() == str(agent.root / "sub")
        assert (ran["exit_code"], ran["signal"]) == (3, None)
        assert ran["truncated"] == {"stdout": False, "stderr": False, "combined": False}
        for params in (
            {"command": "  "},
            {"command": "ls", "cwd": "/"},
            {"command": "ls", "timeout_seconds": 0},
            {},
        ):
            assert (await ui.refusal("shell.exec", params)).code == -32602, params


async def test_signing_out_asks_first_and_forgets_the_stored_keys(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        mute = await agent.connect()
        no = {"ok": False, "auth_cleared": False, "session_cleared": False, "cancelled": True}
        assert await mute.call("auth.logout") == no
        ui = await agent.connect(**ALL)
        run = await ui.start("help")
        await ui.until_ended(run)
        asked = ui.send("auth.logout", {})
        question = await ui.until("ui.confirm.request")
        assert question["params"]["danger_level"] == "danger"
        assert "telex agent login" in question["params"]["message"]
        ui.answer(question, {"ok": False})
        assert await ui.reply(asked) == no
        asked = ui.send("auth.logout", {})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        yes = {"ok": True, "auth_cleared": False, "session_cleared": True}
        assert await ui.reply(asked) == yes
        agent.runtime.models.forget_keys = lambda: ("openai",)
        asked = ui.send("auth.logout", {"clear_session": False})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        assert await ui.reply(asked) == {**yes, "auth_cleared": True, "session_cleared": False}


async def test_store_failures_have_the_codes_of_the_spec(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        started = await ui.call("run.start", {"input": {"type": "text", "text": "help"}})
        await ui.until_ended(started["run_id"])
        await agent.runtime.store.close()
        assert (await ui.refusal("session.list")).code == -32006
        history = {"session_id": started["session_id"]}
        assert (await ui.refusal("session.history", history)).code == -32005
        again = {"input": {"type": "text", "text": "help"}}
        assert (await ui.refusal("run.start", {**again, "new_session": True})).code == -32000
        assert (await ui.refusal("run.start", again)).code == -32005
        assert (await ui.refusal("run.start", {**again, **history})).code == -32005


async def test_permission_can_be_explained_without_asking_or_running(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        told = await ui.call(
            "permission.explain", {"tool": "shell", "arguments": {"command": "touch a; ls"}}
        )
        assert told["decision"] == "ask"
        assert len(told["details"]["pieces"]) == 2
        assert not (agent.root / "a").exists()
        allowed = await ui.call("permission.explain", {"tool": "list"})
        assert allowed["decision"] == "allow"
        assert (await ui.refusal("permission.explain", {"tool": "nothing"})).code == -32602
        for cwd in ("nowhere", "..", "file"):
            (agent.root / "file").touch()
            asked = {"tool": "shell", "arguments": {"command": "ls", "cwd": cwd}}
            assert (await ui.refusal("permission.explain", asked)).code == -32602, cwd


async def test_batches_and_invalid_json_are_answered(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        ui.say("[]")
        assert (await ui.hear())["error"]["code"] == -32600
        ui.say("{")
        assert (await ui.hear())["error"]["code"] == -32700
        ui.say(r'{"jsonrpc":"2.0","id":"1","method":"session.list","params":{"x":"\ud800"}}')
        error = (await ui.hear())["error"]
        assert error["code"] == -32700
        assert "surrogate" in error["message"]
        assert (await ui.call("session.list"))["sessions"] == []
