"""Every method of adapters with every subset of permissions, and the permissions of plans."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import pytest

from lua_plugins import SOURCE, Caller, plugin, serving
from telex.adapters.lua_plugin import LuaPlugin
from telex.terminal.pty import Program

ALL = (
    "session.spawn",
    "session.kill",
    "session.resize",
    "screen.read",
    "transcript.read",
    "input.write",
    "matcher.wait",
)
SUBSETS = [frozenset(chosen) for size in range(8) for chosen in itertools.combinations(ALL, size)]

# The spec's table "Permission gating", with a call of each method.
NEEDS: dict[str, tuple[str, ...]] = {
    "adapter.start": ("session.spawn",),
    "adapter.resume": ("session.spawn",),
    "adapter.send": ("input.write",),
    "adapter.wait": ("matcher.wait",),
    "adapter.turn": ("input.write", "matcher.wait"),
    "adapter.cancel_wait": (),
    "adapter.snapshot": ("screen.read",),
    "adapter.state": ("screen.read",),
    "adapter.inspect": ("screen.read",),
    "adapter.transcript": ("transcript.read",),
    "adapter.close": ("session.kill",),
    "adapter.list": (),
    "adapter.live": (),
    "adapter.attach": ("screen.read",),  # an addition
}
AT_ONCE = {"intent": "wait_text_matcher", "params": {"text": ""}, "timeout_ms": 0}
CALLS: dict[str, dict[str, Any]] = {
    "adapter.start": {"plugin": "{plugin}", "program": "cat"},
    "adapter.resume": {"plugin": "{plugin}", "program": "cat", "prior_adapter": "e999"},
    "adapter.attach": {"plugin": "{plugin}", "session": "s1"},
    "adapter.send": {"adapter": "{adapter}", "intent": "forget"},
    "adapter.wait": {"adapter": "{adapter}", **AT_ONCE},
    "adapter.turn": {"adapter": "{adapter}", "send": {"intent": "forget"}, "wait": AT_ONCE},
    "adapter.cancel_wait": {"wait_id": "w"},
    "adapter.snapshot": {"adapter": "{adapter}", "cells": "none"},
    "adapter.state": {"adapter": "{adapter}"},
    "adapter.inspect": {"adapter": "{adapter}"},
    "adapter.transcript": {"adapter": "{adapter}"},
    "adapter.close": {"adapter": "{adapter}"},
    "adapter.list": {},
    "adapter.live": {},
}

# Without host functions, for plugins without permissions.
PLAIN = """
return {
  classify = function(ctx) return {state = "seen", confidence = 1, evidence = ctx.screen,
    metadata = {printed = ctx.transcript, cursor = ctx.cursor, title = ctx.title}} end,
  forget = function() return {actions = {}} end,
  wait_text_matcher = function(p) return {type = "contains_text", value = p.text} end,
}
"""


async def adapter_of(caller: Caller, named: LuaPlugin, *, owns: bool) -> str:
    """Create an adapter with any permissions: no method would create some of these."""
    live = caller.server._adapters
    if owns:
        session, _ = caller.server.automation.open(Program(("cat",)))
        return live._bound(named, session, owns=True).id
    return live.attach(named, "s1").id


def test_the_table_has_every_method() -> None:
    assert set(CALLS) == set(NEEDS)
    assert len(SUBSETS) == 128


@pytest.mark.parametrize("method", NEEDS)
async def test_a_method_needs_exactly_its_permissions(method: str) -> None:
    plugins = [
        plugin(PLAIN, *(chosen or {"none"}), name=f"p{n}") for n, chosen in enumerate(SUBSETS)
    ]
    refusals = 0
    async with serving(*plugins) as caller:
        await caller.call("session.create", program="cat")
        assert method in caller.server.automation.handlers
        for named, chosen in zip(plugins, SUBSETS, strict=True):
            adapter = "none"
            if "{adapter}" in str(CALLS[method]):
                adapter = await adapter_of(caller, named, owns=method == "adapter.close")
            filled = {"{plugin}": named.name, "{adapter}": adapter}
            params = {
                name: filled.get(value, value) if isinstance(value, str) else value
                for name, value in CALLS[method].items()
            }
            missing = [one for one in NEEDS[method] if one not in chosen]
            if missing:
                refusals += 1
                problem = await caller.refused(method, **params)
                assert problem.code == -32004
                assert problem.data == {"method": method, "required_permission": missing[0]}
                assert named.name in problem.message
            else:
                await caller.call(method, **params)
    assert refusals == 128 - 128 // 2 ** len(NEEDS[method])


async def test_closing_an_attached_adapter_ends_no_program_and_needs_no_permission() -> None:
    async with serving(plugin(PLAIN, "screen.read")) as caller:
        await caller.call("session.create", program="cat")
        await caller.call("adapter.attach", plugin="chatty", session="s1")
        assert await caller.call("adapter.close", adapter="e1") == {"closed": True}
        assert await caller.call("session.list") == {"sessions": ("s1",)}


async def test_without_screen_read_the_screen_is_blank() -> None:
    source = "import sys; print('\\x1b]0;named\\x07shown', flush=True); sys.stdin.read()"
    shown = {"program": sys.executable, "args": ["-c", source]}
    seeing = ("session.spawn", "matcher.wait", "screen.read")
    plugins = [
        plugin(PLAIN, *seeing, name="sees"),
        plugin(PLAIN, *seeing[:2], "transcript.read", name="reads"),
        plugin(PLAIN, *seeing[:2], name="blind"),
    ]
    told = {}
    async with serving(*plugins) as caller:
        for named in plugins:
            start = await caller.call("adapter.start", plugin=named.name, **shown)
            found = await caller.call(
                "adapter.wait",
                adapter=start["adapter"],
                intent="wait_text_matcher",
                params={"text": "shown"},
            )
            told[named.name] = found["state"]
    assert told["sees"]["evidence"] == "shown"
    assert told["sees"]["metadata"] == {"printed": "", "cursor": 0, "title": "named"}
    assert told["reads"]["evidence"] == ""
    assert "shown" in told["reads"]["metadata"]["printed"]
    assert told["blind"]["evidence"] == ""
    assert told["blind"]["metadata"] == {"printed": "", "cursor": 0}


LYING = """
return {
  classify = function() return {state = "fine", confidence = 1} end,
  kill = function() return {actions = {{type = "text", value = "typed"}, {type = "kill"}}} end,
  signal = function() return {actions = {{type = "signal", value = "term"}}} end,
  resize = function() return {actions = {{type = "resize", value = {rows = 5, cols = 5}}}} end,
  wait_text_matcher = function(p) return {type = "contains_text", value = p.text} end,
}
"""


@pytest.mark.parametrize(
    ("intent", "action", "permission"),
    [
        ("kill", "kill", "session.kill"),
        ("signal", "signal", "session.kill"),
        ("resize", "resize", "session.resize"),
    ],
)
async def test_a_plan_may_contain_only_permitted_actions(
    intent: str, action: str, permission: str
) -> None:
    allowed = [one for one in ALL if one != permission]
    async with serving(plugin(LYING, *allowed)) as caller:
        start = await caller.call("adapter.start", plugin="chatty", program="cat")
        adapter = start["adapter"]
        for method, params in (
            ("adapter.send", {"intent": intent}),
            ("adapter.turn", {"send": {"intent": intent}}),
        ):
            problem = await caller.refused(method, adapter=adapter, **params)
            assert problem.code == -32004
            assert problem.data == {"method": method, "required_permission": permission}
            assert f"chatty: `{intent}`: the action '{action}'" in problem.message
        seen = await caller.call("adapter.snapshot", adapter=adapter, cells="none")
        assert seen["plain_text"] == ""  # also the actions before it were not executed
        assert seen["size"]["rows"] == 40


async def test_host_functions_exist_only_with_their_permission() -> None:
    source = """
    return {classify = function() return {state = "x", confidence = 1, metadata = {
      text = telex.action and telex.action.text ~= nil,
      kill = telex.action and telex.action.kill ~= nil,
      resize = telex.action and telex.action.resize ~= nil,
      any = telex.matcher and telex.matcher.any ~= nil,
      alias = ptywright == telex}} end}
    """
    has = {
        "text": "input.write",
        "kill": "session.kill",
        "resize": "session.resize",
        "any": "matcher.wait",
    }
    for chosen in SUBSETS[:: len(SUBSETS) // 16]:
        allowed = {"screen.read", *chosen}
        async with serving(plugin(source, *allowed)) as caller:
            await caller.call("session.create", program="cat")
            answer = await caller.call("adapter.attach", plugin="chatty", session="s1")
            there = answer["state"]["metadata"]
            assert there.pop("alias") is True
            assert {name: bool(there.get(name)) for name in has} == {
                name: permission in allowed for name, permission in has.items()
            }


async def test_permissions_are_those_the_adapter_was_started_with(tmp_path: Any) -> None:
    manifest = tmp_path / "manifest.toml"
    (tmp_path / "main.lua").write_text(SOURCE)

    def write(permissions: list[str]) -> None:
        manifest.write_text(
            'name = "mine"\nkind = "adapter"\nversion = "1"\nruntime = "lua"\n'
            f'entrypoint = "main.lua"\npermissions = {permissions}\n'
        )

    write(["session.spawn", "session.kill"])
    async with serving(may_load=True) as caller:
        await caller.call("plugin.load", manifest_path=str(manifest))
        start = await caller.call("adapter.start", plugin="mine", program="cat")
        write(list(ALL))
        problem = await caller.refused("adapter.state", adapter=start["adapter"])
        assert problem.data["required_permission"] == "screen.read"
