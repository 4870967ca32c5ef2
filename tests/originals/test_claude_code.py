"""Claude Code itself under the claude-code adapter, behind a stand-in API."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lua_plugins import Caller, serving
from originals.installing import from_npm
from originals.stand_in_api import stand_in
from telex.adapters.plugin_registry import builtin_plugins

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

VERSIONS = ["2.1.197", "2.1.326"]
PACKAGE = "@anthropic-ai/claude-code-linux-x64"
LONG = "\n".join(f"row {n}" for n in range(30))
FOLDED = "word " * 400


class Claude:
    def __init__(self, caller: Caller, adapter: str) -> None:
        self.caller = caller
        self.adapter = adapter

    async def turn(self, intent: str, **params: Any) -> Any:
        send = {"intent": intent, "params": params}
        asked = {"adapter": self.adapter, "send": send, "wait": {"timeout_ms": 60_000}}
        return (await self.caller.call("adapter.turn", **asked))["state"]


@asynccontextmanager
async def started(claude: Path, home: Path, api: str | None) -> AsyncIterator[Claude]:
    """At its first moment: what is asked of it then has to wait. With no API it is a first start,
    which looks for the real one."""
    work, temporary = home / "garden", home / "tmp"
    work.mkdir(parents=True)
    temporary.mkdir()
    key = "sk-ant-" + "x" * 40
    known = {
        "hasCompletedOnboarding": api is not None,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(work): {"hasTrustDialogAccepted": True}},
    }
    (home / ".claude.json").write_text(json.dumps(known))
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    temporaries = {"TMPDIR": str(temporary), "CLAUDE_CODE_TMPDIR": str(temporary)}
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9"}
    asks = nowhere if api is None else {"ANTHROPIC_BASE_URL": api, "ANTHROPIC_API_KEY": key}
    async with serving(*builtin_plugins()) as caller:
        told = await caller.call(
            "adapter.start",
            plugin="claude-code",
            program=str(claude),
            cwd=str(work),
            env={"HOME": str(home), **temporaries, **quiet, **asks},
            rows=40,
            cols=120,
        )
        yield Claude(caller, told["adapter"])


@pytest.mark.counted
@pytest.mark.deadline(900)
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_first_prompt_is_sent_and_every_turn_ends(
    tmp_path: Path, program: Callable[[str], str], counted: Callable[[int, int], int], version: str
) -> None:
    claude = from_npm(program, PACKAGE, version, "claude")
    with stand_in() as api:
        firsts = counted(1, 7)
        for number in range(firsts):
            async with started(claude, tmp_path / str(number), api.url) as one:
                done = await one.turn("send_prompt", prompt=f"the first prompt {number}")
                assert done["state"] == "completed_turn", done
                assert api.heard(f"the first prompt {number}")
        async with started(claude, tmp_path / "more", api.url) as one:
            for prompt in ("one\ntwo", LONG, FOLDED.strip(), "x" * 300):
                done = await one.turn("send_prompt", prompt=prompt)
                assert done["state"] == "completed_turn", (prompt[:20], done)
                assert api.heard(prompt)
            usage = await one.turn("slash_command", command="usage")
            assert usage["state"] == "usage_screen", usage
            await one.turn("deny")
            for prompt in ("limit-me", "key-me"):
                failed = await one.turn("send_prompt", prompt=prompt)
                assert failed["state"] == "error", (prompt, failed)
    print(
        f"\nClaude Code {version}: {firsts} of {firsts} first prompts sent, {len(api.prompts)} in all"
    )


@pytest.mark.counted
@pytest.mark.deadline(300)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_start_without_a_network_is_an_error(
    tmp_path: Path, program: Callable[[str], str], version: str
) -> None:
    claude = from_npm(program, PACKAGE, version, "claude")
    async with started(claude, tmp_path / "home", None) as one:
        asked = {"adapter": one.adapter, "timeout_ms": 60_000}
        states = {"intent": "wait_state_matcher", "params": {"states": ["error"]}}
        found = await one.caller.call("adapter.wait", **asked, **states)
        assert found["state"]["metadata"]["error"]["kind"] == "connection"
