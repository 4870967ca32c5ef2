"""`plugin.*`: what plugins there are, what they offer, and loading more while a server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from automating import Serving
from lua_plugins import SOURCE, plugin

MANIFEST = {
    "name": "mine",
    "kind": "adapter",
    "version": "1.0",
    "runtime": "lua",
    "entrypoint": "main.lua",
    "permissions": ["session.spawn", "screen.read", "session.kill"],
}


def written(directory: Path, source: str = SOURCE, **changes: Any) -> str:
    """A plugin on disk; the path of its manifest."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "main.lua").write_text(source)
    lines = [f"{name} = {value!r}" for name, value in {**MANIFEST, **changes}.items()]
    (directory / "manifest.toml").write_text("\n".join(lines))
    return str(directory / "manifest.toml")


async def test_capabilities_are_those_of_the_original(automation: Serving) -> None:
    async with automation() as client:
        told = await client.call("plugin.capabilities")
    assert list(told) == ["permissions", "embedded_lua", "wasm", "builtin_plugins"]
    assert len(told["permissions"]) == 7
    assert (told["embedded_lua"], told["wasm"]) == (True, False)
    names = {one["name"] for one in told["builtin_plugins"]}
    assert names == {"claude-code", "shell", "python-repl", "less"}


async def test_a_manifest_is_valid_or_every_problem_is_named(automation: Serving) -> None:
    async with automation() as client:
        assert await client.call("plugin.validate_manifest", manifest=MANIFEST) == {"valid": True}
        wrong = {
            **MANIFEST,
            "name": "",
            "kind": "thing",
            "permissions": ["screen.read", "screen.write"],
            "entrypoint": "../main.lua",
            "default_target": {"rows": 0},
        }
        refused = await client.refused("plugin.validate_manifest", manifest=wrong)
    assert refused.code == -32602
    assert refused.data["reason"] == "bad_manifest"
    fields = {one["field"] for one in refused.data["problems"]}
    assert fields == {
        "name",
        "kind",
        "permissions[1]",
        "entrypoint",
        "default_target.program",
        "default_target.rows",
    }
    assert all(" " in one["problem"] for one in refused.data["problems"])


async def test_the_description_that_a_plugin_exports_is_returned_verbatim(
    automation: Serving,
) -> None:
    source = """
    return {classify = function() end, describe = function() return {
      intents = {{name = "go", description = "Goes.", params_schema = {type = "object"}}},
      wait_matchers = {}, states = {{name = "going", colour = "red"}}} end}
    """
    async with automation(plugin(source)) as client:
        told = await client.call("plugin.describe", plugin="chatty")
    assert list(told) == ["plugin", "manifest", "intents", "wait_matchers", "states"]
    schema = {"type": "object"}
    go = {"name": "go", "description": "Goes.", "params_schema": schema}
    assert told["intents"] == [go]
    assert told["wait_matchers"] == []
    assert told["states"] == [{"name": "going", "colour": "red"}]
    assert told["manifest"]["name"] == told["plugin"] == "chatty"


async def test_a_plugin_without_a_description_is_described_by_its_exports(
    automation: Serving,
) -> None:
    async with automation(plugin()) as client:
        told = await client.call("plugin.describe", plugin="chatty")
    names = {key: [one["name"] for one in told[key]] for key in ("intents", "wait_matchers")}
    assert names["intents"] == ["forget", "params_of", "press", "say", "shows"]
    assert names["wait_matchers"] == [
        "wait_predicate_matcher",
        "wait_text_matcher",
        "wait_turn_matcher",
    ]
    assert told["states"] == []


async def test_loading_needs_leave(automation: Serving, tmp_path: Path) -> None:
    path = written(tmp_path / "mine")
    async with automation() as client:
        for method, params in (
            ("plugin.load", {"manifest_path": path}),
            ("plugin.unload", {"plugin": "claude-code"}),
        ):
            refused = await client.refused(method, **params)
            assert refused.code == -32004
            reason = "server_did_not_grant_plugin_load"
            assert refused.data == {"method": method, "reason": reason}
            assert "--allow-plugin-load" in refused.message


async def test_a_plugin_is_loaded_used_and_unloaded(automation: Serving, tmp_path: Path) -> None:
    path = written(tmp_path / "mine")
    async with automation(may_load=True) as client:
        assert await client.call("plugin.load", manifest_path=path) == {"plugin": "mine"}
        listed = (await client.call("adapter.list"))["plugins"]
        assert "mine" in [one["name"] for one in listed]
        adapter = (await client.call("adapter.start", plugin="mine", program="cat"))["adapter"]
        refused = await client.refused("plugin.unload", plugin="mine")
        assert refused.code == -32602
        assert refused.data == {"reason": "still_in_use", "adapters": [adapter]}
        await client.call("adapter.close", adapter=adapter)
        assert await client.call("plugin.unload", plugin="mine") == {"unloaded": True}
        refused = await client.refused("plugin.unload", plugin="mine")
        assert (refused.code, refused.data) == (-32602, {"reason": "unknown_plugin"})
        assert await client.call("plugin.load", manifest_path=path) == {"plugin": "mine"}


async def test_names_are_taken_and_builtins_stay(automation: Serving, tmp_path: Path) -> None:
    async with automation(may_load=True) as client:
        mine = written(tmp_path / "mine")
        await client.call("plugin.load", manifest_path=mine)
        for path in (mine, written(tmp_path / "other", name="claude-code")):
            refused = await client.refused("plugin.load", manifest_path=path)
            assert (refused.code, refused.data) == (-32602, {"reason": "name_taken"})
        refused = await client.refused("plugin.unload", plugin="claude-code")
        assert (refused.code, refused.data) == (-32602, {"reason": "builtin_stays"})


@pytest.mark.parametrize("entrypoint", ["/etc/passwd", "../outside.lua", "link.lua"])
async def test_an_entrypoint_outside_is_refused(
    automation: Serving, tmp_path: Path, entrypoint: str
) -> None:
    (tmp_path / "outside.lua").write_text("return {}")
    path = written(tmp_path / "mine", entrypoint=entrypoint)
    (tmp_path / "mine" / "link.lua").symlink_to(tmp_path / "outside.lua")
    async with automation(may_load=True) as client:
        refused = await client.refused("plugin.load", manifest_path=path)
        assert refused.code == -32602
        assert refused.data["reason"] in {"bad_manifest", "plugin_refused"}
        assert "mine" not in [one["name"] for one in (await client.call("adapter.list"))["plugins"]]


async def test_a_missing_manifest_is_reported(automation: Serving, tmp_path: Path) -> None:
    async with automation(may_load=True) as client:
        refused = await client.refused("plugin.load", manifest_path=str(tmp_path / "no.toml"))
    assert refused.code == -32602
    assert "no.toml" in refused.message


async def test_an_adapter_keeps_the_plugin_it_was_started_with(
    automation: Serving, tmp_path: Path
) -> None:
    source = 'return {classify = function() return {state = "one", confidence = 1} end}'
    path = written(tmp_path / "mine", source)
    async with automation(may_load=True) as client:
        await client.call("plugin.load", manifest_path=path)
        start = await client.call("adapter.start", plugin="mine", program="cat")
        written(tmp_path / "mine", source.replace("one", "two"), version="2.0")
        again = await client.call("adapter.state", adapter=start["adapter"])
    assert start["state"]["state"] == again["state"]["state"] == "one"
