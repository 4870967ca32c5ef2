"""Plans that continue after a condition on the screen (`next`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lua_plugins import plugin, serving
from telex.adapters.protocol import DefaultTarget

SOURCE = """
local a, m = telex.action, telex.matcher
local function step(actions, intent, text, within, params)
  local when = m.contains_text and m.contains_text(text) or {type = "contains_text", value = text}
  return {actions = actions, last_intent = "typed",
    next = {intent = intent, when = when, within_ms = within, params = params}}
end
local M = {}
function M.classify(ctx) return {state = ctx.last_intent or "none", confidence = 1} end
function M.say(p) return step({a.text(p.text)}, "said", p.shows, p.within or 10000, {text = p.text}) end
function M.said(p)
  if not p.matched then telex.refuse("not_shown", p.text .. " does not show") end
  return {actions = {a.key("enter")}, last_intent = "said"}
end
function M.again(p) return step({}, "again", "", 0) end
function M.nobody(p) return step({}, "nobody_there", "", 0) end
function M.bad(p) return {actions = {}, next = {intent = "said", when = {type = "wish"}, within_ms = 1}} end
function M.late(p) return step({}, "said", "never", 30001) end
function M.leave(p) return step({a.text("leave\\r")}, "said", "never", 10000, {text = "x"}) end
return M
"""
ECHO = DefaultTarget(
    "sh", ("-c", "while read line; do [ $line = leave ] && exit 3; echo got $line; done")
)


async def state(caller: Any, adapter: str = "e1") -> str:
    return str((await caller.call("adapter.state", adapter=adapter))["state"]["state"])


async def test_a_plan_continues_when_its_matcher_matches() -> None:
    async with serving(plugin(SOURCE, target=ECHO)) as caller:
        await caller.call("adapter.start", plugin="chatty")
        params = {"text": "hello", "shows": "hello"}
        told = await caller.call("adapter.send", adapter="e1", intent="say", params=params)
        assert told["state"]["state"] == "said"
        text = {"type": "contains_text", "value": "got hello"}
        await caller.call("session.wait", session="s1", matcher=text)


async def test_a_plan_whose_wait_times_out_continues_with_matched_false() -> None:
    async with serving(plugin(SOURCE, target=ECHO)) as caller:
        await caller.call("adapter.start", plugin="chatty")
        params = {"text": "hello", "shows": "nothing like it", "within": 50}
        sent = {"adapter": "e1", "intent": "say", "params": params}
        refused = await caller.refused("adapter.send", **sent)
        assert (refused.data["reason"], refused.data["function"]) == ("not_shown", "said")
        assert await state(caller) == "typed"


@pytest.mark.parametrize(
    ("intent", "words"),
    [
        ("again", "its plan has more than 32 steps"),
        ("nobody", "no intent 'nobody_there'"),
        ("bad", "not the right shape"),
        ("late", "not the right shape"),
    ],
)
async def test_a_plan_with_an_invalid_next_is_a_plugin_problem(intent: str, words: str) -> None:
    async with serving(plugin(SOURCE, target=ECHO)) as caller:
        await caller.call("adapter.start", plugin="chatty")
        refused = await caller.refused("adapter.send", adapter="e1", intent=intent)
        assert words in refused.message


async def test_a_plan_ends_when_its_program_exits() -> None:
    async with serving(plugin(SOURCE, target=ECHO)) as caller:
        await caller.call("adapter.start", plugin="chatty")
        told = await caller.call("adapter.send", adapter="e1", intent="leave")
        assert told["state"]["state"] == "typed"


async def test_a_plan_with_next_needs_matcher_wait() -> None:
    permitted = ("session.spawn", "screen.read", "input.write")
    async with serving(plugin(SOURCE, *permitted, target=ECHO)) as caller:
        await caller.call("adapter.start", plugin="chatty")
        params = {"text": "hello", "shows": "hello"}
        refused = await caller.refused("adapter.send", adapter="e1", intent="say", params=params)
        assert refused.data["required_permission"] == "matcher.wait"
        seen = await caller.call("adapter.snapshot", adapter="e1", cells="none")
        assert seen["plain_text"] == "", "nothing of it was done"


async def test_no_other_input_comes_between_two_steps_and_close_ends_them() -> None:
    async with serving(plugin(SOURCE, target=ECHO)) as caller:
        await caller.call("adapter.start", plugin="chatty")
        params = {"text": "one", "shows": "nothing like it", "within": 20000}
        first = asyncio.create_task(
            caller.refused("adapter.send", adapter="e1", intent="say", params=params)
        )
        text = {"type": "contains_text", "value": "one"}
        await caller.call("session.wait", session="s1", matcher=text)
        second = asyncio.create_task(
            caller.refused("adapter.send", adapter="e1", intent="say", params=params)
        )
        done, _ = await asyncio.wait({first, second}, timeout=0.1)
        assert not done
        await caller.call("adapter.close", adapter="e1")
        for task in (first, second):
            assert "closed" in (await task).message
