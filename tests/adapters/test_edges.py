"""Edge cases: secrets in every part of a plugin's results, interrupted plans, floods, and calls that
end while others continue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lua_plugins import SOURCE, Caller, plugin, serving
from telex.adapters.protocol import DefaultTarget

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123"
QUOTING = """
local function secret(ctx) return ctx.screen:match("sk%-%w+") or "nothing" end
local kept = "nothing"
return {
  classify = function(ctx)
    local s = secret(ctx)
    return {state = s, confidence = 1, evidence = s, rule = s, metadata = {[s] = {[s] = {s}}},
      candidates = {{state = s, evidence = s}}, host_marks = {{label = s}}}
  end,
  remember = function(p, ctx) return {actions = {}, last_intent = secret(ctx)} end,
  boom = function(p, ctx) error(secret(ctx)) end,
  no = function(p, ctx) telex.refuse(secret(ctx), "because " .. secret(ctx)) end,
  misshapen = function(p, ctx) return {actions = {{type = secret(ctx)}}} end,
  wait_turn_matcher = function(p, ctx) return telex.matcher.contains_text(secret(ctx) .. "never") end,
  wait_predicate_matcher = function(p, ctx) return telex.matcher.lua("quotes") end,
  quotes = function(input) kept = secret(input) return {matched = true, evidence = {[kept] = kept}, capture = kept} end,
  throws = function(input) error(secret(input)) end,
  describe = function() return {intents = {{name = kept, [kept] = kept}}} end,
}
"""


async def answer(caller: Caller, method: str, **params: Any) -> Any:
    """Return the result or the error."""
    try:
        return await caller.call(method, **params)
    except Exception as error:  # noqa: BLE001  all of it is looked at
        return repr(getattr(error, "problem", error))


async def test_results_of_a_plugin_are_redacted() -> None:
    target = DefaultTarget("sh", ("-c", f"printf {SECRET}; cat"))
    async with serving(plugin(QUOTING, target=target)) as caller:
        start = await caller.call("adapter.start", plugin="chatty")
        await caller.call(
            "session.wait",
            session="s1",
            matcher={"type": "contains_text", "value": "sk-"},
            cells="none",
        )
        e1 = start["adapter"]
        lua = {"type": "lua", "value": {"plugin": "chatty", "predicate": "throws"}}
        said = [
            await answer(caller, "adapter.state", adapter=e1),
            *[
                await answer(caller, "adapter.send", adapter=e1, intent=intent)
                for intent in ("remember", "boom", "no", "misshapen")
            ],
            await answer(caller, "adapter.wait", adapter=e1, timeout_ms=20),
            await answer(caller, "adapter.wait", adapter=e1, intent="wait_predicate_matcher"),
            await answer(caller, "session.wait", session="s1", matcher=lua),
            await answer(caller, "plugin.describe", plugin="chatty"),
            await answer(caller, "adapter.list"),
            await answer(caller, "adapter.inspect", adapter=e1),
        ]
    for one in said:
        assert "REDACTED" in str(one), one
        assert "klmnop" not in str(one), one


async def test_a_plan_is_completed_even_if_its_caller_disconnects() -> None:
    slow = SOURCE.replace(
        "return M",
        """function M.slowly() return {actions = {
          telex.action.stream_text("abcdefghij", {chunk_chars = 1, delay_ms = 20}), telex.action.key("enter")},
          last_intent = "slowly"} end
        return M""",
    )
    async with serving(plugin(slow)) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        wait = {"adapter": adapter, "intent": "wait_text_matcher"}
        await caller.call("adapter.wait", **wait, params={"text": "ready>"})
        turn = {"adapter": adapter, "send": {"intent": "slowly"}, "wait": {"wait_id": "w"}}
        begun = asyncio.create_task(caller.call("adapter.turn", **turn))
        await caller.call("adapter.wait", **wait, params={"text": "ready>a"})
        await caller.call("adapter.cancel_wait", wait_id="w")
        say = {"adapter": adapter, "intent": "say", "params": {"text": "NEXT"}}
        after = await caller.call("adapter.send", **say)
        await caller.call("adapter.wait", **wait, params={"text": "did NEXT"})
        with pytest.raises(Exception, match="cancelled"):
            await begun
        seen = await caller.call("adapter.snapshot", adapter=adapter, cells="none")
    assert "did abcdefghij\n" in seen["plain_text"]
    assert after["state"]["last_intent"] == "said"


async def test_a_predicate_slower_than_the_output_still_matches() -> None:
    slow = "return {yes = function() for i = 1, 600000 do end return true end}"
    async with serving(plugin(slow)) as caller:
        await caller.call("session.create", program="yes")
        matcher = {"type": "lua", "value": {"plugin": "chatty", "predicate": "yes", "params": None}}
        found = await caller.call("session.wait", session="s1", matcher=matcher, cells="none")
        assert found["matched"] is True


async def test_marks_of_a_classifier_are_few_short_and_permitted() -> None:
    def marking(what: str) -> str:
        return f"return {{classify = function() return {{state = 'x', confidence = 1, host_marks = {what}}} end}}"

    many = "(function() local t = {} for i = 1, 17 do t[i] = {label = 'm' .. i} end return t end)()"
    plugins = [
        plugin(marking("{{label = ('x'):rep(129)}}"), name="long"),
        plugin(marking(many), name="many"),
        plugin(marking("{{label = 'here'}}"), "session.spawn", "screen.read", name="forbidden"),
    ]
    async with serving(*plugins) as caller:
        for named in plugins:
            start = await caller.call("adapter.start", plugin=named.name, program="cat")
            assert start["state"]["state"] == "plugin_error", named.name
            assert "host_marks" in start["state"]["evidence"]


async def test_requests_interrupted_by_close_fail_with_session_closed() -> None:
    slow = SOURCE.replace(
        "return M",
        "function M.wait_slow_matcher() for i = 1, 4e6 do end return telex.matcher.contains_text('x') end\n"
        "function M.classify() for i = 1, 4e6 do end return {state = 'x', confidence = 1} end\nreturn M",
    )
    async with serving(plugin(slow)) as caller:
        for method, params in (
            ("adapter.wait", {"intent": "wait_slow_matcher"}),
            ("adapter.inspect", {}),
            ("adapter.state", {}),
        ):
            adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
            asked = asyncio.create_task(caller.refused(method, adapter=adapter, **params))
            await asyncio.sleep(0)
            await caller.call("adapter.close", adapter=adapter)
            problem = await asked
            assert problem.code == -32002, (method, problem)


async def test_two_concurrent_closes_both_wait_for_the_end() -> None:
    async with serving(plugin()) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        both = [caller.call("adapter.close", adapter=adapter) for _ in range(2)]
        assert await asyncio.gather(*both) == [{"closed": True}] * 2
        assert (await caller.call("session.list", include_adapters=True))["sessions"] == ()
        assert "unknown adapter" in (await caller.refused("adapter.close", adapter=adapter)).message


async def test_a_failed_resume_closes_nothing() -> None:
    macro = plugin(name="macro", kind="matcher")
    async with serving(plugin(), macro, plugin(name="bare", target=None)) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        for wrong in ("macro", "bare", "nobody"):
            await caller.refused("adapter.resume", plugin=wrong, prior_adapter=adapter)
        (only,) = (await caller.call("adapter.live"))["adapters"]
        assert only["adapter"] == adapter


async def test_an_endless_predicate_does_not_fail_the_waits_of_others() -> None:
    source = "return {look = function(input) while input.params.loop do end return input.screen:find('ready') ~= nil end}"
    async with serving(plugin(source)) as caller:
        await caller.call("session.create", program="cat")

        def wait(**params: Any) -> dict[str, Any]:
            asked = {"plugin": "chatty", "predicate": "look", "params": params}
            return {"session": "s1", "matcher": {"type": "lua", "value": asked}, "cells": "none"}

        bad = [caller.refused("session.wait", **wait(loop=True)) for _ in range(4)]
        await asyncio.gather(*bad)
        innocent = asyncio.create_task(caller.call("session.wait", **wait()))
        await asyncio.sleep(0)
        action = {"type": "text", "value": "ready\n"}
        await caller.call("session.input", session="s1", action=action)
        assert (await innocent)["matched"] is True


async def test_params_are_bounded_before_the_plugin_sees_them() -> None:
    async with serving(plugin()) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        params = {"text": "x" * 300_000}
        problem = await caller.refused("adapter.send", adapter=adapter, intent="say", params=params)
        assert problem.code.name == "PARAMS"
        deep: dict[str, Any] = {}
        for _ in range(900):
            deep = {"deeper": deep}
        problem = await caller.refused(
            "adapter.send", adapter=adapter, intent="params_of", params=deep
        )
        assert "deep" in problem.message
        assert (await caller.call("adapter.state", adapter=adapter))["state"][
            "state"
        ] != "plugin_error"


async def test_unloading_a_plugin_fails_the_waits_on_it(tmp_path: Any) -> None:
    (tmp_path / "main.lua").write_text("return {never = function() return false end}")
    manifest = tmp_path / "manifest.toml"
    manifest.write_text(
        'name = "mine"\nkind = "matcher"\nversion = "1"\nruntime = "lua"\nentrypoint = "main.lua"\n'
    )
    async with serving(may_load=True) as caller:
        await caller.call("plugin.load", manifest_path=str(manifest))
        await caller.call("session.create", program="cat")
        matcher = {"type": "lua", "value": {"plugin": "mine", "predicate": "never"}}
        waiting = asyncio.create_task(
            caller.refused("session.wait", session="s1", matcher=matcher, timeout_ms=60_000)
        )
        await asyncio.sleep(0.4)  # the predicate was called, and the next call is some time away
        await caller.call("plugin.unload", plugin="mine")
        async with asyncio.timeout(60):
            problem = await waiting
        assert "unloaded" in problem.message


async def test_a_refused_matcher_is_a_plugin_problem() -> None:
    bad = SOURCE.replace(
        "return M",
        "function M.pattern_matcher() return telex.matcher.screen_regex('(') end\n"
        "function M.mark_matcher() return {type = 'contains_text', value = 'x', since = 'nonsense'} end\nreturn M",
    )
    async with serving(plugin(bad)) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        for function in ("pattern_matcher", "mark_matcher"):
            problem = await caller.refused("adapter.wait", adapter=adapter, intent=function)
            assert problem.code.name == "INTERNAL"
            assert (problem.data["plugin"], problem.data["function"]) == ("chatty", function)


async def test_a_wait_returns_no_text_that_a_snapshot_would_refuse() -> None:
    source = """return {classify = function() return {state = "x", confidence = 1} end,
      wait_turn_matcher = function() return {type = "transcript_regex", value = "hidden (%w+|\\\\w+)"} end,
      wait_screen_matcher = function() return {type = "screen_regex", value = "hidden (\\\\w+)"} end,
      wait_other_matcher = function() return {type = "lua", value = {plugin = "sees", predicate = "tells"}} end,
      wait_never_matcher = function() return {type = "contains_text", value = "hidden treasures"} end}"""
    sees = plugin(
        "return {tells = function(i) return {matched = true, evidence = i.screen, capture = i.screen} end}",
        name="sees",
    )
    blind = plugin(source, "session.spawn", "matcher.wait", "session.kill", name="blind")
    shown = {"program": "sh", "args": ["-c", "echo hidden treasure; cat"]}
    async with serving(sees, blind) as caller:
        adapter = (await caller.call("adapter.start", plugin="blind", **shown))["adapter"]
        said = [
            await caller.call("adapter.wait", adapter=adapter, intent=intent)
            for intent in ("wait_turn_matcher", "wait_screen_matcher", "wait_other_matcher")
        ]
        vain = {"adapter": adapter, "intent": "wait_never_matcher", "timeout_ms": 10}
        said.append((await caller.refused("adapter.wait", **vain)).data)
    for one in said:
        assert "treasure\\n" not in repr(one)
        assert "capture" not in str(one)
        assert "screen_tail" not in one
    assert "hidden treasure'" not in repr(said)


async def test_an_unknown_intent_is_reported_even_if_describe_fails() -> None:
    broken = SOURCE.replace("return M", "function M.describe() error('broken') end\nreturn M")
    async with serving(plugin(broken)) as caller:
        adapter = (await caller.call("adapter.start", plugin="chatty"))["adapter"]
        problem = await caller.refused("adapter.send", adapter=adapter, intent="sing")
        assert problem.code.name == "PARAMS"
        assert "say" in problem.message
        matcher = {"type": "lua", "value": {"plugin": "chatty", "predicate": "shines"}}
        problem = await caller.refused("session.wait", session="s1", matcher=matcher)
        assert "shows" in problem.message
