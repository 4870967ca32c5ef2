"""Runs: their limit, the order of their messages, stored data, and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ui_side import ALL, an_agent
from telex.agent.cores import ModelCalled, RawEvent
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.protocol.events import EVENTS, FinalEvent, TextEvent
from telex.agent.protocol.runs import CacheUse, LlmCall, Usage
from telex.agent.run_states import (
    KINDS,
    ORDER,
    PHASES,
    EventOrder,
    EventOutOfOrder,
    EventPosition,
    RunPhase,
    RunPhases,
    RunTransition,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.agent.cores import CoreContext, CoreOutput, RunInput


class Saying:
    """A core that yields the given outputs."""

    name = "saying"
    details = BuiltinCore.details

    def __init__(self, *said: CoreOutput | Exception) -> None:
        self._said = said

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        for one in self._said:
            if isinstance(one, Exception):
                raise one
            yield one


async def test_a_session_has_one_run_at_a_time(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "ask x"}})
        question = await ui.until("ui.prompt.request")
        more = {"input": {"type": "text", "text": "help"}, "session_id": started["session_id"]}
        refused = await ui.refusal("run.start", more)
        assert refused.code == -32001
        assert started["run_id"] in refused.message
        ui.answer(question, {"value": "y"})
        await ui.until_ended(started["run_id"])
        run = await ui.start("help", session_id=started["session_id"])
        assert await ui.until_ended(run) == "completed"


async def test_the_number_of_active_runs_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.runtime.AGENT_RUNS", 3)
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        text = {"input": {"type": "text", "text": "ask x"}, "new_session": True}
        ids = [ui.send("run.start", text) for _ in range(4)]
        runs = [(await ui.reply(id))["run_id"] for id in ids[:3]]
        with pytest.raises(Exception, match="-32001"):
            await ui.reply(ids[3])
        await ui.call("run.cancel", {"run_id": runs[0]})
        assert await ui.start("help", new_session=True)
        for run in runs[1:]:
            await ui.call("run.cancel", {"run_id": run})


async def test_many_runs_at_once_each_have_their_own_order(tmp_path: Path) -> None:
    async with an_agent(
        tmp_path, Saying(*(TextEvent(str(n)) for n in range(10)), FinalEvent("x"))
    ) as agent:
        ui = await agent.connect()
        text = {"input": {"type": "text", "text": "go"}, "new_session": True}
        ids = [ui.send("run.start", text) for _ in range(20)]
        runs = [(await ui.reply(id))["run_id"] for id in ids]
        for run in runs:
            assert await ui.until_ended(run) == "completed"
            assert [params["seq"] for params in ui.events(run)] == list(range(11))
            assert ui.statuses(run) == ["running", "completed"]


async def test_an_event_is_stored_before_it_is_sent(tmp_path: Path) -> None:
    said = Saying(*(TextEvent(str(n)) for n in range(20)), FinalEvent("x"))
    async with an_agent(tmp_path, said) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        store = agent.runtime.store
        while True:
            message = await ui.hear()
            if message["method"] == "agent.event":
                seq = message["params"]["seq"]
                stored = [event.event async for event in store.events(run, seq - 1)]
                assert msgspec.json.decode(stored[0]) == message["params"]["event"]
            elif message["params"].get("status") == "completed":
                break
        assert (await store.run(run)).status == "completed"


async def test_unknown_members_survive_store_and_replay(tmp_path: Path) -> None:
    raw = b'{"type":"text","content":"a","big":12345678901234567890.50,"x":{"y":[null]}}'
    unknown = b'{"type":"x.mine","n":1}'
    core = Saying(RawEvent(msgspec.Raw(raw)), RawEvent(msgspec.Raw(unknown)), FinalEvent("b"))
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect()
        started = await ui.call("run.start", {"input": {"type": "text", "text": "go"}})
        run = started["run_id"]
        await ui.until_ended(run)
        stored = [event.event async for event in agent.runtime.store.events(run)]
        assert stored[:2] == [raw, unknown]
        await ui.call("session.history", {"session_id": started["session_id"]})
        live = ["text", "x.mine", "final"]
        assert ui.kinds(run) == [*live, "hidden_user_message", *live]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ((TextEvent("a"), RuntimeError("the secret detail")), "internal error"),
        (
            (
                msgspec.convert(
                    {"type": "tool_result", "tool": "x", "result": "", "tool_call_id": "1"},
                    EVENTS[5],
                ),
            ),
            "event 'tool_result' is not allowed",
        ),
        ((RawEvent(msgspec.Raw(b"{}")),), "without a type"),
    ],
    ids=["an exception", "out of order", "no event"],
)
async def test_a_core_that_fails_ends_its_run_with_an_error(
    tmp_path: Path, said: tuple[Any, ...], message: str
) -> None:
    async with an_agent(tmp_path, Saying(*said)) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        assert await ui.until_ended(run) == "error"
        told = ui.heard[-1]["params"]["message"]
        assert message in told
        assert "secret detail" not in told
        assert (await agent.runtime.store.run(run)).message == told


async def test_a_core_without_a_final_event_gets_an_empty_one(tmp_path: Path) -> None:
    async with an_agent(tmp_path, Saying(TextEvent("a"))) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        assert ui.kinds(run) == ["text", "final"]


CALL = LlmCall(
    "run",
    0,
    "m",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:01Z",
    1000,
    CacheUse(),
    usage=Usage(3, 4, 7, 1),
    cost_usd=0.5,
)


async def test_diagnostics_are_sent_if_enabled_and_not_stored(
    tmp_path: Path,
) -> None:
    core = Saying(ModelCalled(CALL), ModelCalled(CALL), FinalEvent("x"))
    async with an_agent(tmp_path, core, diagnostics=True) as agent:
        ui = agent.raw()
        hello = {"protocol_version": "0", "client": {"name": "u", "version": "1"}}
        told = await ui.call("initialize", hello)
        assert told["server_capabilities"]["supports_run_diagnostics"] is True
        started = await ui.call("run.start", {"input": {"type": "text", "text": "go"}})
        await ui.until_ended(started["run_id"])
        found = [m["params"] for m in ui.heard if m.get("method") == "run.diagnostics"]
        assert [one["kind"] for one in found] == ["llm_call", "llm_call", "run_summary"]
        summary = found[-1]["summary"]
        assert (summary["total_calls"], summary["total_tokens"]) == (2, 14)
        assert summary["by_model"]["m"]["cost_usd"] == 1.0
        await ui.call("session.history", {"session_id": started["session_id"]})
        assert len([m for m in ui.heard if m.get("method") == "run.diagnostics"]) == 3
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect()
        await ui.until_ended(await ui.start("go"))
        assert not [m for m in ui.heard if m.get("method") == "run.diagnostics"]


async def test_the_context_is_sent_when_it_has_changed(tmp_path: Path) -> None:
    steps = [
        ScriptStep(context=90),
        ScriptStep(context=90),
        ScriptStep(context=80),
        ScriptStep(final="x"),
    ]
    async with an_agent(tmp_path, ScriptedCore("s", steps)) as agent:
        ui = await agent.connect()
        await ui.until_ended(await ui.start("go"))
        found = [m["params"] for m in ui.heard if m.get("method") == "run.context"]
        assert [one["context_left_percent"] for one in found] == [90, 80]


async def test_deltas_are_sent_to_uis_that_support_them_and_not_stored(tmp_path: Path) -> None:
    steps = [
        ScriptStep(reasoning="why", deltas=1),
        ScriptStep(text="hello", deltas=2),
        ScriptStep(final="x"),
    ]
    async with an_agent(tmp_path, ScriptedCore("s", steps)) as agent:
        ui, plain = await agent.connect(**ALL), await agent.connect()
        run = await ui.start("go")
        await ui.until_ended(run)
        deltas = [m for m in ui.heard if str(m.get("method")).endswith(".delta")]
        assert [(m["method"], m["params"]["content"]) for m in deltas] == [
            ("reasoning.delta", "why"),
            ("text.delta", "hel"),
            ("text.delta", "lo"),
        ]
        assert ui.kinds(run) == ["reasoning", "text", "final"]
        run = await plain.start("go")
        await plain.until_ended(run)
        assert not [m for m in plain.heard if str(m.get("method")).endswith(".delta")]
        assert plain.kinds(run) == ["reasoning", "text", "final"]


async def test_a_run_can_be_steered_and_the_text_is_stored(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a.py").touch()
        ui = await agent.connect(**ALL)
        run = await ui.start("ask x")
        question = await ui.until("ui.prompt.request")
        told = await ui.call("run.steer", {"run_id": run, "text": "list *.py"})
        assert told == {"ok": True, "status": "awaiting_ui"}
        ui.answer(question, {"value": "y"})
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "You said: y\na.py"
        assert {"type": "hidden_user_message", "content": "list *.py"} in [
            params["event"] for params in ui.events(run)
        ]
        late = await ui.call("run.steer", {"run_id": run, "text": "help"})
        assert late == {"ok": False, "status": "completed"}
        assert (await ui.refusal("run.steer", {"run_id": "no", "text": "x"})).code == -32002
        assert (await ui.refusal("run.steer", {"run_id": run, "text": ""})).code == -32602


async def test_the_todo_list_is_sent_and_stored_with_its_session(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "todo bread"}})
        told = await ui.until("todos.update")
        assert told["params"]["session_id"] == started["session_id"]
        assert [entry["content"] for entry in told["params"]["todos"]] == ["bread"]
        await ui.until_ended(started["run_id"])
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("todo done 1\ntodo", session_id=started["session_id"])
        await ui.until_ended(run)
        assert "[x] bread" in ui.final(run)
        other = await ui.start("todo", new_session=True)
        await ui.until_ended(other)
        assert "bread" not in ui.final(other)


async def test_a_run_continues_without_its_ui(tmp_path: Path) -> None:
    steps = [ScriptStep(text="a"), ScriptStep(wait=0.02), ScriptStep(final="done")]
    async with an_agent(tmp_path, ScriptedCore("s", steps)) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.leave()
        await agent.runtime.runs[run].ended()
        assert (await agent.runtime.store.run(run)).status == "completed"


async def test_an_after_seq_beyond_the_last_event_is_refused(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("ask x")
        question = await ui.until("ui.prompt.request")
        last = max((params["seq"] for params in ui.events(run)), default=-1)
        for _ in ("while it waits", "after its end"):
            for beyond in (last + 1, 2**63, 2**70):
                refused = await ui.refusal("run.attach", {"run_id": run, "after_seq": beyond})
                assert refused.code == -32602
            await ui.call("run.attach", {"run_id": run, "after_seq": last})
            ui.answer(question, {"value": "y"})
            await ui.until_ended(run)
            last = await agent.runtime.store.last_seq(run)


@pytest.mark.parametrize("number", [2**62, 2**63 - 1, 2**63, 2**64])
async def test_a_limit_beyond_64_bits_means_all(tmp_path: Path, number: int) -> None:
    async with an_agent(tmp_path, Saying(FinalEvent("x"))) as agent:
        ui = await agent.connect()
        started = await ui.call("run.start", {"input": {"type": "text", "text": "go"}})
        await ui.until_ended(started["run_id"])
        assert len((await ui.call("session.list", {"limit": number}))["sessions"]) == 1
        asked = {"session_id": started["session_id"], "max_runs": number, "max_events": number}
        told = await ui.call("session.history", asked)
        assert (told["runs"], told["truncated"]) == (1, False)


async def test_the_meta_of_a_ui_is_stored_byte_for_byte(tmp_path: Path) -> None:
    meta = '{"a":1.50,"telex":"mine","a":2}'
    async with an_agent(tmp_path, Saying(FinalEvent("x"))) as agent:
        ui = await agent.connect()
        ui.say(
            '{"jsonrpc":"2.0","id":"m","method":"run.start","params":'
            f'{{"input":{{"type":"text","text":"go"}},"meta":{meta}}}}}'
        )
        run = (await ui.reply("m"))["run_id"]
        await ui.until_ended(run)
        kept = (await agent.runtime.store.run(run)).meta
        assert kept is not None
        assert kept.startswith(b'{"telex":{"model":"saying",')
        assert kept.endswith(b'},"meta":%b}' % meta.encode())


@pytest.mark.parametrize("todos", ['"x"', '[{"bad":1}]', '[{"id":1,"content":""}]'])
async def test_a_session_with_an_unreadable_todo_list_has_an_empty_one(
    tmp_path: Path, todos: str
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "help"}})
        await ui.until_ended(started["run_id"])
        session, meta = started["session_id"], f'{{"todos":{todos},"other":1}}'.encode()
        await agent.runtime.store.set_thread_meta(session, meta)
        run = await ui.start("todo bread", session_id=session)
        assert await ui.until_ended(run) == "completed"
        kept = (await agent.runtime.store.thread(session)).meta or b""
        assert [entry["content"] for entry in msgspec.json.decode(kept)["todos"]] == ["bread"]
        assert msgspec.json.decode(kept)["other"] == 1


# The tables.


@given(st.lists(st.sampled_from(list(RunTransition))))
def test_a_run_that_is_cancelled_never_acts_again(steps: list[RunTransition]) -> None:
    phases, cancelled = RunPhases(), False
    for step in steps:
        before = phases.phase
        moved = phases.step(step)
        assert moved == (step in PHASES[before])
        cancelled = cancelled or (moved and step is RunTransition.CANCEL)
        if cancelled:
            assert not phases.may_act
            assert phases.phase in (RunPhase.CANCELLING, RunPhase.CANCELLED)


def test_every_phase_but_the_ends_can_be_cancelled_and_all_can_be_reached() -> None:
    ends = {RunPhase.COMPLETED, RunPhase.ERROR, RunPhase.CANCELLED}
    assert {phase for phase, steps in PHASES.items() if not steps} == ends
    for phase in set(PHASES) - ends - {RunPhase.CANCELLING}:
        assert PHASES[phase][RunTransition.CANCEL] is RunPhase.CANCELLING
    assert {then for steps in PHASES.values() for then in steps.values()} == set(RunPhase)


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=30))
def test_every_sequence_that_the_order_allows_is_well_formed(kinds: list[str]) -> None:
    order, taken = EventOrder(), []
    for kind in kinds:
        try:
            order.take(kind)
        except EventOutOfOrder:
            assert kind not in ORDER[order.position]
        else:
            taken.append(kind)
    assert taken.count("final") <= 1
    assert "final" not in taken[:-1]
    opened = taken.count("step_start") - taken.count("step_complete")
    assert opened == (
        order.position not in (EventPosition.BETWEEN, EventPosition.COMPACTING, EventPosition.OVER)
    )
    assert taken.count("tool_result") <= taken.count("tool_call")


def test_the_order_knows_every_kind_of_event() -> None:
    assert {kind.__struct_config__.tag for kind in EVENTS} == KINDS
    assert len(EVENTS) == 13
