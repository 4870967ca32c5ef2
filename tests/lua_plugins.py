"""Small Lua plugins for tests, a program that they know, and a server in this process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, get_type_hints

import msgspec
import pytest

from telex.adapters.lua_plugin import LuaPlugin
from telex.adapters.protocol import PERMISSIONS, DefaultTarget, Manifest
from telex.adapters.server import AutomationServer
from telex.automation.notices import Connection
from telex.redaction import Redactor
from telex.rpc.errors import RpcError

CHATTY = (
    "import sys\n"
    "print('ready>', end='', flush=True)\n"
    "for line in sys.stdin:\n"
    "    print('did', line.strip())\n"
    "    if line.strip() == 'leave': sys.exit(3)\n"
    "    print('ready>', end='', flush=True)\n"
)
"""Reads a line, prints that it was done, and prompts again. There is no blank after the prompt, because
the echo of the next input could come before the blank."""

TARGET = DefaultTarget(sys.executable, ("-c", CHATTY))

SOURCE = """
local M = {}
local action, matcher = telex.action, telex.matcher
local seen = 0

function M.classify(ctx)
  seen = seen + 1
  if ctx.process_exited then return {state = "gone", confidence = 1, evidence = "it ended"} end
  local last = ctx.screen:match("([^\\n]*)$")
  local state = last == "" and "starting" or last:find("^ready>") and "ready" or "busy"
  return {
    state = state, confidence = 0.87654, evidence = "the last row is " .. last, rule = "last-row",
    metadata = {intent = ctx.last_intent, seen = seen, rows = ctx.size.rows},
  }
end

function M.say(params, ctx)
  if not params.text then telex.refuse("bad_params", "say what") end
  return {actions = {action.text(params.text), action.key("enter")}, last_intent = "said"}
end
function M.press(params) return {actions = {action.key(params.key)}} end
function M.forget() return {actions = {}, last_intent = ""} end
function M.params_of(params)
  return {actions = {}, last_intent = type(params) .. (next(params) and " of some" or " of none")}
end

function M.wait_turn_matcher(params)
  return matcher.screen_regex("did .*\\\\nready>")
end
function M.wait_text_matcher(params) return matcher.contains_text(params.text) end
function M.wait_predicate_matcher(params) return matcher.lua("shows", {text = params.text}) end

function M.shows(input)
  local at = input.screen:find(input.params.text, 1, true)
  if not at then return false end
  return {matched = true, evidence = "at " .. at, capture = input.params.text}
end
return M
"""


def plugin(
    source: str = SOURCE,
    *permissions: str,
    name: str = "chatty",
    target: DefaultTarget | None = TARGET,
    kind: str = "adapter",
    **files: str,
) -> LuaPlugin:
    """Return a plugin with this source, with all permissions unless `permissions` names some (or `none`)."""
    allowed: Any = tuple(p for p in PERMISSIONS if p in permissions) if permissions else PERMISSIONS
    manifest = Manifest(
        name=name,
        kind=kind,  # type: ignore[arg-type]  # tests name wrong ones too
        version="1",
        runtime="lua",
        entrypoint="main.lua",
        permissions=allowed,
        default_target=target,
    )
    sources = {"main.lua": source, **{f"{key}.lua": text for key, text in files.items()}}
    return LuaPlugin(manifest, sources)


class Caller:
    """Calls the server in this process by the method names of the wire."""

    def __init__(self, server: AutomationServer) -> None:
        self.server = server
        self._handlers = server.automation.handlers
        self._who = Connection(None, Redactor())

    async def call(self, method: str, **params: Any) -> Any:
        handler = self._handlers[method]
        asked = msgspec.convert(params, get_type_hints(handler)["asked"])
        answer = handler(asked, self._who)
        return msgspec.to_builtins(await answer if hasattr(answer, "__await__") else answer)

    async def refused(self, method: str, **params: Any) -> Any:
        with pytest.raises(RpcError) as caught:
            await self.call(method, **params)
        return caught.value.problem


@asynccontextmanager
async def serving(*plugins: LuaPlugin, **how: Any) -> AsyncIterator[Caller]:
    server = AutomationServer(plugins, **how)
    try:
        yield Caller(server)
    finally:
        await server.close()
