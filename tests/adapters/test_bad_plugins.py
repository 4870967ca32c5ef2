"""Plugins with invalid results, errors or endless loops: the error for the caller, and other clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lua_plugins import SOURCE, Caller, plugin, serving

BODIES = {
    "nothing": ("", "shape", "null"),
    "a number": ("return 7", "shape", "int"),
    "a text": ("return 'ready'", "shape", "str"),
    "no state": ("return {confidence = 1}", "shape", "state"),
    "an empty state": ("return {state = '', confidence = 1}", "shape", "$.state"),
    "a wrong state": ("return {state = 7, confidence = 1}", "shape", "$.state"),
    "no confidence": ("return {state = 'x'}", "shape", "confidence"),
    "too much confidence": ("return {state = 'x', confidence = 2}", "shape", "$.confidence"),
    "no number": ("return {state = 'x', confidence = 0/0}", "shape", "confidence"),
    "wrong evidence": (
        "return {state = 'x', confidence = 1, evidence = {}}",
        "shape",
        "$.evidence",
    ),
    "a function": (
        "return {state = 'x', confidence = 1, metadata = {f = print or pairs}}",
        "shape",
        "metadata",
    ),
    "itself": ("local t = {state = 'x', confidence = 1} t.metadata = t return t", "shape", ""),
    "a thread": (
        "return {state = 'x', confidence = 1, metadata = {coroutine.create(pairs)}}",
        "shape",
        "",
    ),
    "wrong candidates": (
        "return {state = 'x', confidence = 1, candidates = {7}}",
        "shape",
        "candidates",
    ),
    "an error": ("error('no idea')", "threw", "main.lua:1: no idea"),
    "an error that is a table": ("error({a = 1})", "threw", ""),
    "an error that is nothing": ("error()", "threw", ""),
    "a nil called": ("return nothing.at.all", "threw", "main.lua:1"),
    "an endless loop": ("while true do end", "budget", "instructions"),
    "an endless loop that is caught": (
        "while true do pcall(function() while true do end end) end",
        "budget",
        "",
    ),
    "a pattern that never ends": ("return (('a'):rep(4000)):find('.-.-.-b')", "deadline", ""),
    "all memory": ("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end", "memory", ""),
}


@pytest.mark.parametrize("case", BODIES)
async def test_a_classifier_that_fails_is_a_state_with_its_reason(case: str) -> None:
    body, kind, hint = BODIES[case]
    bad = plugin(f"return {{classify = function(ctx) {body} end}}", name="bad")
    async with serving(bad, plugin()) as caller:
        fine = await caller.call("adapter.start", plugin="chatty")
        start = await caller.call("adapter.start", plugin="bad", program="cat")
        state = start["state"]
        assert state["state"] == "plugin_error"
        assert state["confidence"] == 0
        assert state["evidence"].startswith("bad: `classify`: ")
        assert hint in state["evidence"]
        assert "Traceback" not in state["evidence"]
        assert state["metadata"]["kind"] == kind
        assert (state["metadata"]["plugin"], state["metadata"]["function"]) == ("bad", "classify")
        told = await caller.call("adapter.state", adapter=fine["adapter"])
        assert told["state"]["state"] in {"starting", "ready"}


async def test_a_hanging_plugin_does_not_block_others() -> None:
    hanging = "return {classify = function() return (('a'):rep(9000)):find('.-.-.-b') end}"
    async with serving(plugin(hanging, name="bad"), plugin()) as caller:
        fine = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        begun = asyncio.create_task(caller.call("adapter.start", plugin="bad", program="cat"))
        answered = 0
        while not begun.done():
            await caller.call("adapter.state", adapter=fine)
            answered += 1
        assert (await begun)["state"]["state"] == "plugin_error"
        assert answered > 20, "the other adapter answered all the while"


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("7", "int"),
        ("nil", "null"),
        ("{actions = 7}", "$.actions"),
        ("{actions = {{type = 'sing'}}}", "$.actions[0]"),
        ("{actions = {{type = 'text'}}}", "$.actions[0]"),
        ("{actions = {{type = 'key', value = 'any'}}}", "'any'"),
        ("{actions = {}, last_intent = 7}", "$.last_intent"),
        (
            "{actions = (function() local t = {} for i = 1, 300 do t[i] = {type='eof'} end return t end)()}",
            "256",
        ),
    ],
)
async def test_a_plan_of_the_wrong_shape_is_an_error_and_nothing_is_done(
    answer: str, hint: str
) -> None:
    bad = SOURCE.replace("return M", f"function M.bad() return {answer} end\nreturn M")
    async with serving(plugin(bad)) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty", program="cat"))["adapter"]
        problem = await caller.refused("adapter.send", adapter=adapter, intent="bad")
        assert problem.data["kind"] == "shape"
        assert problem.message.startswith("chatty: `bad`: ")
        assert hint in problem.message
        seen = await caller.call("adapter.snapshot", adapter=adapter, cells="none")
        assert seen["plain_text"] == ""


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("7", "int"),
        ("{type = 'contains_text'}", "value"),
        ("{type = 'guess', value = 1}", "guess"),
        ("telex.matcher.any{}", "array"),
        ("telex.matcher.screen_regex('(')", "pattern"),
        ("telex.matcher.lua('nowhere')", "nowhere"),
    ],
)
async def test_a_matcher_of_the_wrong_shape_is_an_error_at_once(answer: str, hint: str) -> None:
    bad = SOURCE.replace("return M", f"function M.bad_matcher() return {answer} end\nreturn M")
    async with serving(plugin(bad)) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        async with asyncio.timeout(60):
            problem = await caller.refused("adapter.wait", adapter=adapter, intent="bad_matcher")
        assert hint in problem.message


@pytest.mark.parametrize("answer", ["7", "'yes'", "{}", "{matched = 'yes'}", "{matched = 1}"])
async def test_a_predicate_of_the_wrong_shape_ends_the_wait(answer: str) -> None:
    bad = SOURCE.replace("return M", f"function M.bad() return {answer} end\nreturn M")
    async with serving(plugin(bad)) as caller:
        problem = await waited(caller, "bad")
        assert problem.message.startswith("chatty: `bad`: ")
        assert problem.data["kind"] == "shape"


async def waited(caller: Caller, predicate: str) -> Any:
    await caller.call("session.create", program="cat")
    matcher = {"type": "lua", "value": {"plugin": "chatty", "predicate": predicate}}
    async with asyncio.timeout(60):
        return await caller.refused("session.wait", session="s1", matcher=matcher)


async def test_a_predicate_that_loops_ends_the_wait_and_not_the_server() -> None:
    bad = SOURCE.replace("return M", "function M.bad() while true do end end\nreturn M")
    async with serving(plugin(bad)) as caller:
        problem = await waited(caller, "bad")
        assert problem.data["kind"] == "budget"
        asked = {"plugin": "chatty", "predicate": "shows", "params": {"text": ""}}
        matcher = {"type": "lua", "value": asked}
        found = await caller.call("session.wait", session="s1", matcher=matcher, cells="none")
        assert found["matched"] is True


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("this is not Lua", "main.lua:1"),
        ("return 7", "table"),
        ("", "table"),
        ("error('at once')", "at once"),
        ("return require('nowhere')", "nowhere"),
        ("while true do end", ""),
    ],
)
async def test_a_source_that_does_not_load_gives_the_state_plugin_error(
    text: str, hint: str
) -> None:
    async with serving(plugin(text)) as caller:
        start = await caller.call("adapter.start", plugin="chatty")
        assert start["state"]["state"] == "plugin_error"
        assert hint in start["state"]["evidence"]
        problem = await caller.refused("plugin.describe", plugin="chatty")
        assert "chatty" in problem.message


async def test_predicates_see_no_state_of_an_adapter() -> None:
    source = """
    local told = "nothing"
    return {
      classify = function() return {state = told, confidence = 1} end,
      tell = function(p) told = p.text return {actions = {}} end,
      was_told = function(input) return {matched = true, capture = told} end,
      wait_turn_matcher = function() return telex.matcher.lua("was_told") end,
    }
    """
    async with serving(plugin(source)) as caller:
        first = (await caller.call("adapter.start", plugin="chatty", program="cat"))["adapter"]
        second = (await caller.call("adapter.start", plugin="chatty", program="cat"))["adapter"]
        params = {"text": "a secret of the first"}
        await caller.call("adapter.send", adapter=first, intent="tell", params=params)
        told = await caller.call("adapter.state", adapter=first)
        assert told["state"]["state"] == "a secret of the first"
        told = await caller.call("adapter.state", adapter=second)
        assert told["state"]["state"] == "nothing"
        found = await caller.call("adapter.wait", adapter=first)
        assert "secret" not in str(found["matched"])


async def test_a_mark_of_a_classifier_is_set() -> None:
    source = """return {
      classify = function(ctx) return {state = ctx.markers.here and "marked" or "not yet",
        confidence = 1, host_marks = {{label = "here"}}} end}"""
    async with serving(plugin(source)) as caller:
        start = await caller.call("adapter.start", plugin="chatty")
        assert start["state"]["state"] == "not yet"
        told = await caller.call("adapter.state", adapter="e1")
        assert told["state"]["state"] == "marked"
        assert told["state"]["host_marks"] == ({"label": "here"},)


async def test_a_cancelled_start_request_leaves_nothing() -> None:
    slow = "return {classify = function() return (('a'):rep(9000)):find('.-.-.-b') end}"
    async with serving(plugin(slow)) as caller:
        begun = asyncio.create_task(caller.call("adapter.start", plugin="chatty", program="cat"))
        while not (await caller.call("adapter.live"))["adapters"]:
            await asyncio.sleep(0)
        begun.cancel()
        await asyncio.wait({begun})
        assert (await caller.call("adapter.live"))["adapters"] == ()
        assert (await caller.call("session.list", include_adapters=True))["sessions"] == ()


async def test_a_cancelled_close_continues_to_its_end() -> None:
    async with serving(plugin()) as caller:
        await caller.call("adapter.start", plugin="chatty")
        closing = asyncio.create_task(caller.call("adapter.close", adapter="e1"))
        while (await caller.call("adapter.live"))["adapters"]:
            await asyncio.sleep(0)
        closing.cancel()
        while (await caller.call("session.list", include_adapters=True))["sessions"]:
            await asyncio.sleep(0)
