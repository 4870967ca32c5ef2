"""The `claude-code` adapter on a program that behaves like that TUI, from its first screen to its
last: everything by `adapter.*`, everything the program got read from its own log."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lua_plugins import Caller, serving
from telex.adapters.plugin_registry import builtin_plugins
from telex.automation import protocol as spec
from telex.rpc.errors import RpcError

FAKE = Path(__file__).parent.parent / "adapters" / "fake_claude.py"


class Claude:
    """One adapter, and what its program was given."""

    def __init__(self, caller: Caller, adapter: str, log: Path) -> None:
        self.caller = caller
        self.adapter = adapter
        self._log = log

    async def state(self) -> Any:
        return (await self.caller.call("adapter.state", adapter=self.adapter))["state"]

    async def send(self, intent: str, **params: Any) -> Any:
        asked = {"adapter": self.adapter, "intent": intent, "params": params}
        return (await self.caller.call("adapter.send", **asked))["state"]

    async def refused(self, intent: str, **params: Any) -> Any:
        asked = {"adapter": self.adapter, "intent": intent, "params": params}
        return await self.caller.refused("adapter.send", **asked)

    async def turn(self, intent: str, **params: Any) -> Any:
        send = {"intent": intent, "params": params}
        wait = {"timeout_ms": 20_000}
        return (await self.caller.call("adapter.turn", adapter=self.adapter, send=send, wait=wait))[
            "state"
        ]

    async def until(self, *states: str) -> Any:
        found = await self.caller.call(
            "adapter.wait",
            adapter=self.adapter,
            intent="wait_state_matcher",
            params={"states": list(states)},
            timeout_ms=20_000,
        )
        assert found["state"]["state"] in states
        return found["state"]

    def typed(self) -> list[Any]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@asynccontextmanager
async def claude(
    tmp_path: Path, *args: str, step_ms: int = 30, cols: int = 200, **fake: Any
) -> AsyncIterator[Claude]:
    """The adapter at the fake's first screen."""
    log = tmp_path / "typed"
    log.touch()
    knobs = {f"FAKE_{name.upper()}": str(value) for name, value in fake.items()}
    async with serving(*builtin_plugins()) as caller:
        start = await caller.call(
            "adapter.start",
            plugin="claude-code",
            program=sys.executable,
            args=["-S", str(FAKE), *args],
            env={"FAKE_LOG": str(log), "FAKE_STEP_MS": str(step_ms), **knobs},
            rows=60,
            cols=cols,
        )
        yield Claude(caller, start["adapter"], log)


@asynccontextmanager
async def trusted(tmp_path: Path, **how: Any) -> AsyncIterator[Claude]:
    """The adapter at the prompt."""
    async with claude(tmp_path, **how) as one:
        await one.until("waiting_for_trust")
        await one.send("approve_trust")
        await one.until("ready", "starting", "waiting_for_user_input")
        yield one


async def test_trust_prompt_thinking_permission_completion(tmp_path: Path) -> None:
    async with claude(tmp_path, step_ms=150) as one:
        asked = await one.until("waiting_for_trust")
        assert asked["metadata"]["options"]
        assert asked["rule"]
        await one.send("approve_trust")
        await one.until("ready", "starting")
        assert one.typed() == [{"key": "1"}, {"key": "enter"}]
        after = await one.send("send_prompt", prompt="please ask permission\nfor that")
        assert after["last_intent"] == "prompt_submitted"
        await one.until("thinking")
        assert {"paste": "please ask permission\nfor that"} in one.typed()
        asked = await one.until("waiting_for_permission")
        assert asked["metadata"]["permission"]["options"]
        assert asked["metadata"]["permission"]["tool"] == "Bash"
        dialog = asked["metadata"]["dialog_id"]
        stale = await one.refused("approve", dialog_id="00000000")
        assert (stale.code.name, stale.data["reason"]) == ("PARAMS", "stale_dialog")
        done = await one.turn("approve", dialog_id=dialog)
        assert done["state"] == "completed_turn"


async def test_a_turn_waits_for_this_turns_end_and_not_the_last_ones(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        for word in ("first", "second", "third"):
            done = await one.turn("send_prompt", prompt=f"the {word} thing")
            assert done["state"] == "completed_turn"
            seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
            assert f"the {word} thing" in seen["plain_text"]
        assert [typed["paste"] for typed in one.typed() if "paste" in typed] == [
            "the first thing",
            "the second thing",
            "the third thing",
        ]


async def test_a_turn_ends_where_a_person_is_needed(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        asked = await one.turn("send_prompt", prompt="make a plan")
        assert asked["state"] == "waiting_for_plan_approval"
        assert asked["metadata"]["plan"]
        done = await one.turn("approve")
        assert done["state"] in {"completed_turn", "ready"}
        failed = await one.turn("send_prompt", prompt="an error please")
        assert failed["state"] == "error"
        assert failed["metadata"]["error"]["kind"]


async def test_a_long_turn_is_cancelled(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        await one.send("send_prompt", prompt="a slow thing")
        await one.until("thinking")
        cancelling = await one.send("cancel")
        assert cancelling["state"] == "cancelling"
        assert cancelling["last_intent"] == "cancelling"
        await one.until("ready", "waiting_for_user_input")
        assert {"key": "escape"} in one.typed()


async def test_a_wait_is_cancelled_while_the_program_thinks_on(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        send = {"intent": "send_prompt", "params": {"prompt": "a slow thing"}}
        asked = {"adapter": one.adapter, "send": send, "wait": {"wait_id": "w"}}
        turn = asyncio.create_task(one.caller.call("adapter.turn", **asked))
        await one.until("thinking")
        assert (await one.caller.call("adapter.cancel_wait", wait_id="w"))["cancelled"] is True
        with pytest.raises(RpcError) as cancelled:
            await turn
        assert spec.CODES[cancelled.value.problem.code] == spec.CANCELLED  # type: ignore[index]  # a condition
        assert (await one.state())["state"] == "thinking"


async def test_options_are_chosen_by_number_and_by_label(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        asked = await one.turn("send_prompt", prompt="ask permission")
        options = asked["metadata"]["permission"]["options"]
        unknown = await one.refused("choose_option", option="Perhaps")
        assert unknown.data["reason"] == "unknown_option"
        assert options[0] in unknown.message
        await one.turn("choose_option", option=options[-1])
        assert {"key": str(len(options))} in one.typed()


async def test_answers_are_given_only_to_dialogs(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        before = one.typed()
        for intent in ("approve", "deny", "approve_trust", "deny_trust"):
            refused = await one.refused(intent)
            assert refused.data["reason"] == "no_dialog", intent
        assert one.typed() == before
        await one.turn("send_prompt", prompt="ask permission")
        refused = await one.refused("send_prompt", prompt="into the dialog")
        assert refused.data["reason"] == "dialog_open"
        assert "into the dialog" not in str(one.typed())


@pytest.mark.parametrize(
    ("command", "state"),
    [
        ("usage", "usage_screen"),
        ("model", "waiting_for_model_select"),
        ("doctor", "local_ui_screen"),
    ],
)
async def test_panels_are_opened_known_and_left(tmp_path: Path, command: str, state: str) -> None:
    async with trusted(tmp_path) as one:
        await one.send("slash_command", command=command)
        await one.until(state)
        await one.send("key", key="escape")
        await one.until("ready", "starting", "completed_turn", "waiting_for_user_input")


async def test_the_state_of_the_login_screen_has_its_url(tmp_path: Path) -> None:
    async with claude(tmp_path, "--login") as one:
        asked = await one.until("waiting_for_login")
        assert asked["metadata"]["login"]["url"].startswith("https://claude.ai/")


async def test_denying_trust_ends_the_program(tmp_path: Path) -> None:
    async with claude(tmp_path) as one:
        await one.until("waiting_for_trust")
        await one.send("deny_trust")
        await one.caller.call("adapter.wait", adapter=one.adapter, timeout_ms=20_000)
        (live,) = (await one.caller.call("adapter.live"))["adapters"]
        assert live["finished"] is True
        assert (await one.state())["state"] == "unknown"


# Drafts: what real builds do to an Enter.


def pressed(one: Claude) -> list[str]:
    """What was typed after the folder was trusted, without the text of pastes."""
    return ["paste" if "paste" in typed else typed["key"] for typed in one.typed()][2:]


async def box(one: Claude) -> str:
    seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
    rows = seen["plain_text"].split("\n")
    edges = [at for at, row in enumerate(rows) if row.startswith("─" * 10)]
    return "".join(row[2:] for row in rows[edges[-2] + 1 : edges[-1]])


MANY = "\n".join(f"row {n} " + "." * 60 for n in range(20))
WRAPPED = "a word and then " * 40


@pytest.mark.parametrize(
    ("prompt", "knobs"),
    [
        ("the first thing", {"swallow": 3}),
        ("one\ntwo\n\nfour", {"swallow": 1}),
        (MANY, {"swallow": 1}),
        (WRAPPED.strip(), {"swallow": 1, "cols": 40}),
        ("Try this", {"swallow": 1, "suggestion": "Try this"}),
        ("the late thing to see", {"slow_ms": 300}),
        ("drawn again", {"swallow": 1, "redraw_ms": 30}),
        ("all at once", {"swallow": 2, "slow_ms": 100, "redraw_ms": 20, "cols": 60}),
    ],
    ids=["swallows", "lines", "folded", "wrapped", "suggested", "slow", "redraws", "all"],
)
async def test_a_prompt_is_sent_whatever_becomes_of_its_first_enter(
    tmp_path: Path, prompt: str, knobs: dict[str, Any]
) -> None:
    async with trusted(tmp_path, **knobs) as one:
        only_slow = "slow_ms" in knobs and "swallow" not in knobs
        retry_ms = 2_000 if only_slow else 60
        sent = await one.send("send_prompt", prompt=prompt, retry_ms=retry_ms)
        assert sent["last_intent"] == "prompt_submitted"
        done = await one.until("completed_turn")
        assert done["state"] == "completed_turn"
        keys = pressed(one)
        assert keys[0] == "paste"
        assert keys.count("paste") == 1
        assert 1 + knobs.get("swallow", 0) <= keys.count("enter") <= 5
        if only_slow:
            assert keys == ["paste", "enter"], "it is pressed once the draft shows, and not before"
        seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
        assert f"You said {len(prompt)} characters" in seen["plain_text"]


async def test_a_draft_that_cannot_be_sent_is_named_and_the_next_prompt_replaces_it(
    tmp_path: Path,
) -> None:
    async with trusted(tmp_path, swallow=8) as one:
        state = await one.send("send_prompt", prompt="the first\nthing", retry_ms=10)
        assert (state["state"], state["metadata"]["draft"]) == ("unsent_draft", "the first\nthing")
        assert state["last_intent"] == "prompt_pending"
        assert pressed(one) == ["paste", *["enter"] * 5], "bounded"
        await one.send("send_prompt", prompt="the second thing", retry_ms=10)
        done = await one.until("completed_turn")
        seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
        assert "You said 16 characters: the second thing" in seen["plain_text"]
        assert "the first" not in seen["plain_text"]
        assert done["last_intent"] == "prompt_submitted"


async def test_a_turn_whose_prompt_cannot_be_sent_ends_with_the_draft(tmp_path: Path) -> None:
    async with trusted(tmp_path, swallow=99) as one:
        send = {"intent": "send_prompt", "params": {"prompt": "never", "retry_ms": 10}}
        wait = {"timeout_ms": 20_000, "params": {"completed_turn_stable_ms": 30}}
        turn = await one.caller.call("adapter.turn", adapter=one.adapter, send=send, wait=wait)
        assert turn["state"]["state"] == "unsent_draft"


async def test_an_existing_draft_is_neither_extended_nor_cleared_without_a_request(
    tmp_path: Path,
) -> None:
    async with trusted(tmp_path) as one:
        await one.send("key", key="half a sentence")
        state = await one.until("unsent_draft")
        assert state["metadata"]["draft"] == "half a sentence"
        for intent, params in (
            ("send_prompt", {"prompt": "x"}),
            ("slash_command", {"command": "usage"}),
            ("attach_file", {"path": "/tmp/x"}),
        ):
            refused = await one.refused(intent, **params)
            assert refused.data["reason"] == "unsent_draft"
            assert "half a sentence" in refused.message
        assert await box(one) == "half a sentence"
        await one.send("send_prompt", prompt="a whole one", force=True)
        await one.until("completed_turn")
        assert {"paste": "a whole one"} in one.typed()
        seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
        assert "You said 11 characters: a whole one" in seen["plain_text"]


async def test_a_prompt_joins_the_file_that_was_attached_for_it(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        left = await one.send("attach_file", path="beds/a.txt ")
        assert left["state"] == "unsent_draft"
        await one.send("send_prompt", prompt="what is in it?")
        await one.until("completed_turn")
        seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
        assert ": beds/a.txt what is in it?" in seen["plain_text"]


async def test_a_running_turn_is_steered_through_a_swallowed_enter(tmp_path: Path) -> None:
    async with trusted(tmp_path) as one:
        await one.send("send_prompt", prompt="slow work")
        await one.until("thinking")
        state = await one.send("steer", prompt="be quick", retry_ms=30)
        assert state["last_intent"] == "prompt_submitted"
        assert await box(one) == ""
        await one.send("cancel")
        await one.until("completed_turn")
        seen = await one.caller.call("adapter.snapshot", adapter=one.adapter, cells="none")
        assert "You said 8 characters: be quick" in seen["plain_text"]


async def test_a_prompt_sent_before_the_program_reads_input_waits_and_is_not_lost(
    tmp_path: Path,
) -> None:
    start = tmp_path / "start"
    os.mkfifo(start)
    async with claude(tmp_path, start=start) as one, asyncio.TaskGroup() as group:
        assert (await one.state())["rule"] == "starting.blank"
        asked = group.create_task(one.refused("send_prompt", prompt="too soon"))
        await asyncio.sleep(0)  # it is asked before what follows
        await one.caller.call("adapter.list")
        with open(os.open(start, os.O_RDWR)):  # its reader goes on, now or when it comes
            refused = await asked
        assert refused.data["reason"] == "dialog_open", "the first thing it shows is a question"
        assert one.typed() == []
        await one.send("approve_trust")
        await one.until("ready", "starting", "waiting_for_user_input")
        await one.send("send_prompt", prompt="soon enough")
        await one.until("completed_turn")
        assert pressed(one)[0] == "paste"
