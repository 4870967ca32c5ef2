"""The claude-code adapter: its fixtures, the need for each anchor, its intents and its waits."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from telex.adapters.classification import read_catalogue, read_matcher, read_plan, read_state
from telex.adapters.context import fixture_context
from telex.adapters.errors import PluginProblem
from telex.adapters.fixtures import Expected, Fixture, differences, read_fixtures
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.plugin_registry import builtin_plugins
from telex.adapters.protocol import PERMISSIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.adapters.lua.instance import Instance
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import AdapterState

PLUGIN = next(plugin for plugin in builtin_plugins() if plugin.name == "claude-code")
assert PLUGIN.directory is not None
FILES, PROBLEMS = read_fixtures(PLUGIN.directory / "fixtures")

STATES = [
    "starting",
    "ready",
    "waiting_for_login",
    "waiting_for_trust",
    "waiting_for_model_select",
    "waiting_for_enter_plan_mode",
    "waiting_for_plan_approval",
    "waiting_for_permission",
    "waiting_for_external_editor",
    "usage_screen",
    "local_ui_screen",
    "waiting_for_user_input",
    "thinking",
    "cancelling",
    "completed_turn",
    "error",
]
INTENTS = [
    "send_prompt",
    "approve",
    "deny",
    "choose_option",
    "cancel",
    "force_cancel",
    "steer",
    "key",
    "approve_trust",
    "deny_trust",
    "dismiss_welcome",
    "expand",
    "model_effort_left",
    "model_effort_right",
    "slash_command",
    "attach_file",
]


RULE = "─" * 40
BOX = f"{RULE}\n❯ \n{RULE}\n  ? for shortcuts"
DONE = f"❯ say hello\n\n⏺ Hello.\n\n✻ Brewed for 2s\n\n{BOX}"


def fnv1a(text: str) -> str:
    sum_ = 0x811C9DC5
    for byte in text.encode():
        sum_ = (sum_ ^ byte) * 0x01000193 % 2**32
    return f"{sum_:08x}"


# The adapter's memory of the screen before a prompt, which no fixture file has.
BEFORE = {"baseline": fnv1a("❯ say hello\n⏺ Hello.\n✻ Brewed for 2s")}
BEHIND_IT = {"screen_cursor": {"row": 7, "col": 10, "visible": False}}
FIXTURES = [
    *FILES,
    Fixture(
        "submitted_and_nothing_changed",
        DONE,
        Expected(state="thinking", last_intent="prompt_submitted", context=BEFORE),
    ),
    Fixture("nothing_submitted", DONE, Expected(state="completed_turn", context=BEFORE)),
    *(
        Fixture(
            f"drafted_{state}_after_{intent}",
            DONE.replace("❯ \n", "❯ say more\n"),
            Expected(state=state, last_intent=intent, context={**before, **BEHIND_IT}),
        )
        for state, intent, before in (
            ("unsent_draft", "prompt_submitted", BEFORE),
            ("completed_turn", "prompt_submitted", {"baseline": "another"}),
            ("completed_turn", None, BEFORE),
        )
    ),
]


@asynccontextmanager
async def running(plugin: LuaPlugin = PLUGIN) -> AsyncIterator[Instance]:
    workers = WorkerPool()
    try:
        yield workers.instance(plugin)
    finally:
        await workers.close()


def shown(screen: str, last_intent: str | None = None, **context: Any) -> dict[str, Any]:
    return fixture_context(screen, {"last_intent": last_intent, "context": context})


# Fixtures.


async def _classified() -> dict[str, AdapterState]:
    async with running() as plugin:
        told = {}
        for fixture in FIXTURES:
            answer = await plugin.call("classify", fixture.context())
            told[fixture.name] = read_state(PLUGIN.name, answer, 1, None)
        return told


@pytest.fixture(scope="module")
def classified() -> dict[str, AdapterState]:
    return asyncio.run(_classified())


def red(fixture: Fixture, got: AdapterState) -> list[str]:
    return [
        f"{each.field}: wanted {each.wanted}, got {each.got}"
        for each in differences(fixture.expected, got)
    ]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_each_fixture_is_classified_as_expected(
    fixture: Fixture, classified: dict[str, AdapterState]
) -> None:
    got = classified[fixture.name]
    assert not red(fixture, got), got


def test_every_state_has_a_fixture_and_every_file_is_one_of_a_pair() -> None:
    assert not PROBLEMS
    counted = Counter(fixture.expected.state for fixture in FIXTURES)
    assert set(counted) == {*STATES, "unsent_draft", "unknown"}
    assert counted.total() >= 45


async def test_a_screen_without_a_matching_rule_is_unknown() -> None:
    async with running() as plugin:
        state = await plugin.call("classify", shown("Something else\nis on the screen", "said"))
    assert (state["state"], state["rule"]) == ("unknown", "none")


def test_every_state_has_its_rule_and_evidence(classified: dict[str, AdapterState]) -> None:
    for name, got in classified.items():
        assert isinstance(got.rule, str), name
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+|none", got.rule), name
        assert " " in got.evidence, name


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://claude.ai/oauth?a=b", True),
        ("https://console.anthropic.com/login", True),
        ("https://CLAUDE.ai/oauth", True),
        ("http://claude.ai/oauth", False),
        ("https://notclaude.ai/oauth", False),
        ("https://claude.ai.example/oauth", False),
        ("https://claude.ai@example.org/oauth", False),
        ("https://claude.ai:443@example.org/oauth", False),
        ("https://example.org\\@claude.ai/oauth", False),
        ("https://example.org#.claude.ai", False),
        ("https://example.org?.claude.ai", False),
        ("https://сlaude.ai/oauth", False),  # the first letter is Cyrillic
    ],
)
async def test_only_a_link_to_a_login_is_returned(url: str, told: bool) -> None:
    async with running() as plugin:
        screen = f"Log in to Claude\n\nPress Enter to log in, or open the link:\n\n{url}\n"
        state = await plugin.call("classify", shown(screen))
    assert state["state"] == "waiting_for_login"
    assert state.get("metadata") == ({"login": {"url": url}} if told else None)


# Anchors. A wrapper removes one, classifies every fixture again, and restores it.

TAKING_AWAY = (Path(__file__).parent / "claude_code_anchors.lua").read_text("utf-8")
AT_ONCE = 25
"""How many fixtures one call classifies, well within its budget."""


def wrapped() -> LuaPlugin:
    manifest = msgspec.structs.replace(PLUGIN.manifest, entrypoint="taking_away.lua")
    return replace(
        PLUGIN, manifest=manifest, files={**PLUGIN.files, "taking_away.lua": TAKING_AWAY}
    )


async def reddened(plugin: Instance, path: list[Any]) -> str | None:
    """Return a fixture that fails without the anchor at this path."""
    fixtures = {fixture.name: fixture for fixture in FIXTURES}
    await plugin.call("take", path)
    try:
        for first in range(1, len(FIXTURES) + 1, AT_ONCE):
            for name, answer in dict(await plugin.call("changed", first, AT_ONCE) or {}).items():
                if red(fixtures[name], read_state(PLUGIN.name, answer, 1, None)):
                    return name
    finally:
        await plugin.call("put_back")
    return None


@pytest.mark.deadline(120)
async def test_every_anchor_and_every_wording_is_needed_by_a_fixture() -> None:
    async with running(wrapped()) as plugin:
        for fixture in FIXTURES:
            await plugin.call("add", fixture.name, fixture.context())
        anchors = await plugin.call("anchors")
        assert len(anchors) > 100
        unneeded = [
            anchor["name"] for anchor in anchors if not await reddened(plugin, anchor["path"])
        ]
        assert not unneeded
        assert not await plugin.call("changed", 1, AT_ONCE), "what was taken is back"


async def test_a_screen_quoted_in_an_answer_is_not_taken_for_a_real_one() -> None:
    async with running() as plugin:
        for fixture in FIXTURES:
            quoted = "\n".join(f"  {row}".rstrip() for row in fixture.text.split("\n"))
            answer = f"❯ show me\n\n⏺ It looks like this:\n\n{quoted}\n\n"
            for end, state in (("✻ Brewed for 2s\n\n", "completed_turn"), ("", "ready")):
                told = await plugin.call("classify", shown(f"{answer}{end}{BOX}"))
                assert told["state"] == state, (fixture.name, told)


# Intents. The screens are minimal; the fixtures have complete ones.

IDLE = f"⏺ Hello.\n\n{BOX}"
SPINNING = f"❯ say hello\n\n✶ Brewing… (3s)\n\n{BOX}"
PERMISSION = f"""{RULE}
 Bash command

   rm -r build

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don’t ask again for rm commands
   3. No, and tell Claude what to do differently (esc)
"""
POINTS_AT_NO = PERMISSION.replace("❯ 1", "  1").replace("  3. No", "❯ 3. No")
PERMISSION_BY_KEYS = "Allow Bash command: rm -r build\n\n [enter] allow  [esc] deny"
TRUST = """ Do you trust the files in this folder?

 /home/ada/engine

 ❯ 1. Yes, proceed
   2. No, exit
"""
PLAN = (
    f"{RULE}\n Ready to code?\n\n Do it.\n\n ❯ 1. Yes, and use auto mode\n   2. No, keep planning"
)
PLAN_MODE = (
    f"{RULE}\n Enter plan mode?\n\n ❯ 1. Yes, enter plan mode\n   2. No\n\n"
    " Enter to confirm · Esc to cancel"
)
MODEL = f"{RULE}\n Select a model:\n\n ❯ 1. Opus\n   2. Sonnet\n\n Enter to select"
PANEL = f"{RULE}\n Claude Code health\n\n All is well.\n\n Esc to close"
WELCOME = f" Welcome back Ada!\n Tips for getting started\n\n{BOX}"
FIRST_START = " Welcome to Claude Code\n\n Press Enter to continue"


def plan(*actions: tuple[str, str], last_intent: str | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"actions": [{"type": kind, "value": value} for kind, value in actions]}
    return told if last_intent is None else {**told, "last_intent": last_intent}


ENTER, ESCAPE = ("key", "enter"), ("key", "escape")


def typed(option: str) -> dict[str, Any]:
    return plan(("text", option), ENTER)


PLANS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "send_prompt",
        {"prompt": "one\ntwo"},
        DONE,
        plan(("bracketed_paste", "one\ntwo"), last_intent="prompt_pending"),
    ),
    (
        "send_prompt",
        {"prompt": "x", "force": True},
        PERMISSION,
        plan(("bracketed_paste", "x"), ENTER, last_intent="prompt_submitted"),
    ),
    ("steer", {"prompt": "be brief"}, SPINNING, plan(("bracketed_paste", "be brief"))),
    (
        "slash_command",
        {"command": "usage"},
        IDLE,
        plan(("bracketed_paste", "/usage")),
    ),
    (
        "slash_command",
        {"name": "/model opus"},
        IDLE,
        plan(("bracketed_paste", "/model opus")),
    ),
    ("attach_file", {"path": "/tmp/a b.png"}, IDLE, plan(("bracketed_paste", "/tmp/a b.png"))),
    ("approve", {}, PERMISSION, plan(ENTER)),
    ("approve", {}, PERMISSION_BY_KEYS, plan(ENTER)),
    ("approve", {}, PLAN, plan(ENTER)),
    ("approve", {}, PLAN_MODE, plan(ENTER)),
    ("approve", {}, MODEL, plan(ENTER)),
    ("deny", {}, PERMISSION, plan(ESCAPE, last_intent="")),
    ("deny", {}, PLAN, plan(ESCAPE, last_intent="")),
    ("deny", {}, PANEL, plan(ESCAPE, last_intent="")),
    ("choose_option", {"index": 2}, PERMISSION, typed("2")),
    ("choose_option", {"option": "2"}, PERMISSION, typed("2")),
    ("choose_option", {"option": "yes"}, PERMISSION, typed("1")),
    ("choose_option", {"option": "No, and tell"}, PERMISSION, typed("3")),
    ("choose_option", {"option": "Sonnet"}, MODEL, typed("2")),
    ("choose_option", {"option": "No, exit"}, TRUST, typed("2")),
    ("cancel", {}, SPINNING, plan(ESCAPE, last_intent="cancelling")),
    ("force_cancel", {}, SPINNING, plan(ESCAPE, ESCAPE, last_intent="cancelling")),
    ("key", {"key": "Ctrl-C"}, IDLE, plan(("key", "ctrl_c"))),
    ("key", {"key": "shift-tab"}, IDLE, plan(("key", "shift_tab"))),
    ("key", {"key": "backtab"}, IDLE, plan(("key", "shift_tab"))),
    ("key", {"key": "Page-Up"}, IDLE, plan(("key", "page_up"))),
    ("key", {"key": "pageup"}, IDLE, plan(("key", "page_up"))),
    ("key", {"key": "C-x"}, IDLE, plan(("key", "ctrl_x"))),
    ("key", {"key": "ctrl_alt_left"}, IDLE, plan(("key", "ctrl_alt_left"))),
    ("key", {"key": "Return"}, IDLE, plan(ENTER)),
    ("key", {"key": "f5"}, IDLE, plan(("key", "f5"))),
    ("key", {"key": "y"}, IDLE, plan(("text", "y"))),
    ("key", {"key": "c-3po, go up"}, IDLE, plan(("text", "c-3po, go up"))),
    ("approve_trust", {}, TRUST, typed("1")),
    ("deny_trust", {}, TRUST, typed("2")),
    ("dismiss_welcome", {}, WELCOME, plan(ENTER)),
    ("dismiss_welcome", {}, FIRST_START, plan(ENTER)),
    ("expand", {}, DONE, plan(("key", "ctrl_o"))),
    ("model_effort_left", {}, MODEL, plan(("key", "left"))),
    ("model_effort_right", {}, MODEL, plan(("key", "right"))),
]


PASTING = {"send_prompt", "steer", "slash_command", "attach_file"}
"""These continue when the pasted text is shown: see tests/e2e/test_claude_code.py."""


async def test_each_intent_types_what_the_spec_says() -> None:
    async with running() as plugin:
        for intent, params, screen, wanted in PLANS:
            told = await plugin.call(intent, params, shown(screen))
            goes_on = intent in PASTING and not params.get("force")
            assert goes_on == (told.pop("next", None) is not None)
            assert told == wanted, (intent, params)
            read_plan(PLUGIN.name, intent, told)
    assert {intent for intent, *_ in PLANS} == set(INTENTS)


REFUSALS: list[tuple[str, dict[str, Any], str, str]] = [
    *((intent, {}, IDLE, "no_dialog") for intent in ("approve", "deny")),
    *((intent, {}, PERMISSION, "no_dialog") for intent in ("approve_trust", "deny_trust")),
    *((intent, {}, TRUST, "no_dialog") for intent in ("approve", "deny", "dismiss_welcome")),
    ("approve", {}, f"⏺ It asks:\n\n{PERMISSION}\n\n{BOX}", "no_dialog"),
    ("approve", {}, "", "no_dialog"),
    ("approve", {}, PANEL, "no_dialog"),
    ("dismiss_welcome", {}, "", "no_dialog"),
    ("dismiss_welcome", {}, IDLE, "no_dialog"),
    ("choose_option", {"index": 1}, IDLE, "no_dialog"),
    ("choose_option", {"index": 1}, PERMISSION_BY_KEYS, "no_dialog"),
    ("approve", {}, POINTS_AT_NO, "not_selected"),
    ("approve", {"dialog_id": "00000000"}, PERMISSION, "stale_dialog"),
    ("deny", {"dialog_id": "00000000"}, MODEL, "stale_dialog"),
    ("approve_trust", {"dialog_id": "00000000"}, TRUST, "stale_dialog"),
    ("choose_option", {"index": 1, "dialog_id": 7}, PERMISSION, "stale_dialog"),
    ("choose_option", {"index": 4}, PERMISSION, "unknown_option"),
    ("choose_option", {"option": "Maybe"}, PERMISSION, "unknown_option"),
    ("choose_option", {"option": "No,"}, TRUST.replace("Yes, p", "No, p"), "unknown_option"),
    ("choose_option", {}, PERMISSION, "bad_params"),
    ("choose_option", {"index": 1, "option": "1"}, PERMISSION, "bad_params"),
    ("choose_option", {"index": "1"}, PERMISSION, "bad_params"),
    ("choose_option", {"index": 1.5}, PERMISSION, "bad_params"),
    ("choose_option", {"option": 1}, PERMISSION, "bad_params"),
    ("choose_option", {"option": " "}, PERMISSION, "bad_params"),
    *((intent, {}, IDLE, "bad_params") for intent in ("send_prompt", "steer", "attach_file")),
    ("send_prompt", {"prompt": 7}, IDLE, "bad_params"),
    ("send_prompt", {"prompt": " \n"}, IDLE, "bad_params"),
    ("slash_command", {}, IDLE, "bad_params"),
    ("key", {"key": ""}, IDLE, "bad_params"),
    ("key", {}, IDLE, "bad_params"),
    *(
        ("send_prompt", {"prompt": "y"}, screen, "dialog_open")
        for screen in (PERMISSION, TRUST, PLAN, PLAN_MODE, MODEL, PANEL)
    ),
    ("steer", {"prompt": "y"}, PERMISSION, "dialog_open"),
    ("slash_command", {"command": "usage"}, PERMISSION, "dialog_open"),
    ("attach_file", {"path": "1"}, PERMISSION, "dialog_open"),
]


async def test_an_impossible_intent_is_refused_with_a_code() -> None:
    async with running() as plugin:
        for intent, params, screen, code in REFUSALS:
            with pytest.raises(PluginProblem) as refused:
                await plugin.call(intent, params, shown(screen))
            assert (refused.value.kind, refused.value.code) == ("refused", code), (intent, params)


async def test_an_unknown_option_is_refused_with_the_known_options() -> None:
    async with running() as plugin:
        with pytest.raises(
            PluginProblem, match=r"no option is Perhaps; there are: 1\. Opus; 2\. So"
        ):
            await plugin.call("choose_option", {"option": "Perhaps"}, shown(MODEL))


@pytest.mark.parametrize(
    ("screen", "named", "intent"),
    [
        (PERMISSION, "perm:Bash:rm -r build", "approve"),
        (PERMISSION_BY_KEYS, "perm:Bash:rm -r build", "deny"),
        (PLAN, "plan:Do it.", "approve"),
        (TRUST, "trust:/home/ada/engine", "approve_trust"),
    ],
)
async def test_a_dialog_is_answered_by_its_id(screen: str, named: str, intent: str) -> None:
    async with running() as plugin:
        told = await plugin.call("classify", shown(screen))
        assert told["metadata"]["dialog_id"] == fnv1a(named)
        answer = await plugin.call(intent, {"dialog_id": fnv1a(named)}, shown(screen))
        assert answer["actions"]


# Waits.


async def asked(plugin: Instance, params: dict[str, Any], screen: str, **context: Any) -> Any:
    """Return the result of `turn_over`, called as the host calls it, in another worker."""
    seen = {**shown(screen, **context), "params": params}
    told = await plugin.call("turn_over", seen)
    return told and told["capture"]


def params_of(matcher: Any) -> dict[str, Any]:
    """Return the parameters that a matcher passes to its predicate."""
    if matcher["type"] == "lua":
        return dict(matcher["value"]["params"])
    members = [each for each in matcher["value"] if each["type"] in ("lua", "all", "any")]
    return params_of(members[-1])


WAIT = {"completed_turn_stable_ms": 300}


async def test_the_end_of_the_turn_before_does_not_end_this_one() -> None:
    async with running() as plugin, running() as elsewhere:
        await plugin.call("send_prompt", {"prompt": "say hello"}, shown(DONE))
        after = shown(DONE, "prompt_submitted")
        assert (await plugin.call("classify", after))["rule"] == "working.untouched"
        params = params_of(await plugin.call("wait_turn_matcher", WAIT, after))

        drafted = DONE.replace(BOX, BOX.replace("❯ ", "❯ say hello"))
        echoed = DONE.replace(BOX, f"❯ say hello\n\n{BOX}")
        spinning = DONE.replace(BOX, f"❯ say hello\n\n✻ Brewing…\n\n{BOX}")
        for screen in (DONE, drafted, echoed, spinning):
            assert not await asked(elsewhere, params, screen)
        done = DONE.replace(BOX, f"❯ say hello\n\n⏺ Hello.\n\n✻ Brewed for 2s\n\n{BOX}")
        assert await asked(elsewhere, params, done) == "completed_turn"


async def test_a_dialog_that_was_answered_does_not_end_the_wait_while_it_is_still_shown() -> None:
    async with running() as plugin, running() as elsewhere:
        await plugin.call("approve", {}, shown(PERMISSION, "prompt_submitted"))
        after = shown(PERMISSION, "prompt_submitted")
        params = params_of(await plugin.call("wait_turn_matcher", WAIT, after))
        assert not await asked(elsewhere, params, PERMISSION)
        another = f"⏺ Bash(rm -r build)\n  ⎿  Done\n\n{PERMISSION}"
        assert await asked(elsewhere, params, another) == "waiting_for_permission"
        again = await asked(elsewhere, params, PERMISSION, stable_ms=3000)
        assert again == "waiting_for_permission", "nobody took the answer, or it is the next one"


async def test_a_turn_without_an_end_marker_is_complete_after_a_long_silence() -> None:
    async with running() as plugin:
        await plugin.call("send_prompt", {"prompt": "say hello"}, shown(BOX))
        answered = f"❯ say hello\n\n⏺ Hello.\n\n{BOX}"
        after = shown(answered, "prompt_submitted")
        matcher = await plugin.call("wait_turn_matcher", WAIT, after)
        params = params_of(matcher)
        assert not await asked(plugin, params, answered, stable_ms=300)
        assert await asked(plugin, params, answered, stable_ms=3000) == "completed_turn"
        waits = [each["value"][0]["value"] for each in matcher["value"] if each["type"] == "all"]
        assert [wait["min_ms"] for wait in waits] == [300, 3000], "the host looks again by then"


@pytest.mark.parametrize(
    ("screen", "over"),
    [
        (PERMISSION, "waiting_for_permission"),
        (TRUST, "waiting_for_trust"),
        (PANEL, "local_ui_screen"),
        (f"❯ say hello\n\n  ⎿  API Error: 529\n\n{BOX}", "error"),
        (f"❯ say hello\n\n  ⎿  Interrupted by user\n\n{BOX}", "ready"),
        (SPINNING, None),
        ("", None),
        ("what is this", None),
    ],
)
async def test_a_turn_is_over_when_a_person_is_needed(screen: str, over: str | None) -> None:
    async with running() as plugin:
        params = {**WAIT, "last_intent": "prompt_submitted"}
        assert (await asked(plugin, params, screen) or None) == over


async def test_the_host_accepts_each_wait_matcher() -> None:
    async with running() as plugin:
        for name in ("wait_turn_matcher", "wait_ready_matcher", "wait_dialog_matcher"):
            told = await plugin.call(name, WAIT, shown(DONE))
            read_matcher(PLUGIN.name, name, told)
            assert {"type": "process_exited"} in told["value"]
        states = {**WAIT, "states": ["thinking", "error"]}
        told = await plugin.call("wait_state_matcher", states, shown(DONE))
        read_matcher(PLUGIN.name, "wait_state_matcher", told)
        for bad in ({}, {"states": []}, {"states": "error"}, {"states": [1]}):
            with pytest.raises(PluginProblem) as refused:
                await plugin.call("wait_state_matcher", {**WAIT, **bad}, shown(DONE))
            assert refused.value.code == "bad_params"


@pytest.mark.parametrize(
    ("matcher", "params", "met", "unmet"),
    [
        ("wait_ready_matcher", {}, (DONE, IDLE, WELCOME), (SPINNING, PERMISSION, "")),
        ("wait_dialog_matcher", {}, (PERMISSION, TRUST, PLAN), (DONE, SPINNING, "")),
        ("wait_state_matcher", {"states": ["thinking"]}, (SPINNING,), (DONE, PERMISSION)),
    ],
)
async def test_a_wait_is_met_by_its_states_only(
    matcher: str, params: dict[str, Any], met: tuple[str, ...], unmet: tuple[str, ...]
) -> None:
    async with running() as plugin:
        told = await plugin.call(matcher, {**WAIT, **params}, shown(DONE))
        asks = params_of(told)
        for screen in (*met, *unmet):
            answer = await plugin.call("in_state", {**shown(screen), "params": asks})
            assert bool(answer) == (screen in met), screen


# `describe`.


async def test_it_describes_exactly_the_states_and_intents_of_the_spec() -> None:
    async with running() as plugin:
        told = read_catalogue(PLUGIN.name, await plugin.call("describe"))
        exports = await plugin.exports()
    assert [each["name"] for each in told.intents] == INTENTS
    # Two states are additions: the spec has none for an unknown screen, nor for a draft.
    ours = ["unsent_draft", "unknown"]
    assert sorted(each["name"] for each in told.states) == sorted([*STATES, *ours])
    waits = [each["name"] for each in told.wait_matchers]
    predicates = {"turn_over", "in_state", "draft_shows", "draft_gone", "input_shows"}
    steps = {"begin_draft", "submit_draft", "clear_draft"}
    assert set(exports) == {*INTENTS, *waits, "classify", "describe", *predicates, *steps}
    assert all(each["description"] for each in (*told.intents, *told.wait_matchers, *told.states))
    assert all(
        each["params_schema"]["type"] == "object" for each in (*told.intents, *told.wait_matchers)
    )


def test_the_manifest_has_all_permissions_and_starts_claude_on_a_large_screen() -> None:
    target = PLUGIN.manifest.default_target
    assert set(PLUGIN.permissions) == set(PERMISSIONS)
    assert target is not None
    assert (target.program, target.rows, target.cols) == ("claude", 60, 200)
    assert target.required_env["CLAUDE_CODE_DISABLE_MOUSE"] == "1"


async def test_no_screen_makes_it_slow_or_throw() -> None:
    """Screens that repeat one row, each for one rule; all must be within a call's budget."""
    rows = (
        *("Plan", "1. step", "Do you want to proceed?", "❯ 1. Yes", "✻ Brewing…", "⏺ x(y)"),
        *("│" * 200, "─" * 200, " " * 199 + "x", "x " * 100, "[" * 200, "https://claude.ai/" * 11),
        *("\u00a0" * 200, "❯" * 200, "⎿" * 200, "error:" * 33, "1. 2. " * 33, "\u2028\ufeff"),
    )
    async with running() as plugin:
        for row in rows:
            for screen in ("\n".join([row] * 200), "\n".join([row, "❯ 1. a", "  2. b"] * 60)):
                assert (await plugin.call("classify", shown(screen)))["state"]
