"""`adapter.*`: a program by what it is doing, through a plugin that knows it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from automating import SECRET, Client, Serving
from lua_plugins import CHATTY, SOURCE, TARGET, plugin, serving
from telex.adapters import server
from telex.adapters.protocol import DefaultTarget
from telex.automation import protocol as spec


async def started(client: Client, **params: Any) -> Any:
    return await client.call("adapter.start", **{"plugin": "chatty", **params})


async def ready(client: Client, **params: Any) -> str:
    """An adapter whose program is ready."""
    adapter = str((await started(client, **params))["adapter"])
    await client.call(
        "adapter.wait", adapter=adapter, intent="wait_text_matcher", params={"text": "ready>"}
    )
    return adapter


async def state(client: Client, adapter: str) -> Any:
    return (await client.call("adapter.state", adapter=adapter))["state"]


async def say(client: Client, adapter: str, text: str) -> Any:
    return await client.call("adapter.send", adapter=adapter, intent="say", params={"text": text})


def waits(adapter: str, text: str, **params: Any) -> dict[str, Any]:
    return {"adapter": adapter, "intent": "wait_text_matcher", "params": {"text": text}, **params}


async def test_the_manifests_are_listed(automation: Serving) -> None:
    async with automation(plugin()) as client:
        plugins = (await client.call("adapter.list"))["plugins"]
    names = [one["name"] for one in plugins]
    assert names == sorted(names)
    assert {"chatty", "claude-code", "shell", "python-repl", "less"} <= set(names)
    (mine,) = [one for one in plugins if one["name"] == "chatty"]
    assert mine["default_target"] == {"program": TARGET.program, "args": list(TARGET.args)}


async def test_an_adapter_is_started_by_its_default_target(automation: Serving) -> None:
    async with automation(plugin()) as client:
        answer = await started(client)
        assert list(answer) == ["adapter", "plugin", "session", "state"]
        assert (answer["adapter"], answer["plugin"], answer["session"]) == ("e1", "chatty", "s1")
        assert answer["state"]["state"] in {"starting", "ready"}
        live = (await client.call("adapter.live"))["adapters"]
    (only,) = live
    assert list(only) == ["adapter", "plugin", "session", "sequence", "finished"]
    assert (only["adapter"], only["session"], only["finished"]) == ("e1", "s1", False)


async def test_a_state_has_the_members_of_the_wire(automation: Serving) -> None:
    async with automation(plugin()) as client:
        told = await state(client, await ready(client))
    assert told["state"] == "ready"
    assert told["confidence"] == 0.877
    assert told["evidence"] == "the last row is ready>"
    assert told["rule"] == "last-row"
    assert told["candidates"] == []
    assert told["last_intent"] is None
    assert told["sequence"] > 0
    assert told["metadata"]["rows"] == 40


async def test_the_caller_overrides_the_manifest_which_overrides_ours(automation: Serving) -> None:
    shows = "import os,sys;print(*(os.environ.get(n) for n in ('A','B','C','D')));sys.stdin.read()"
    target = DefaultTarget(
        TARGET.program, ("-c", shows), 30, None, {"A": "m", "B": "m"}, {"C": "m", "D": "m"}
    )
    async with automation(plugin(target=target)) as client:
        env = {"B": "caller", "C": "caller", "D": None}
        adapter = (await started(client, env=env, cols=90))["adapter"]
        await client.call("adapter.wait", **waits(adapter, "m caller m m"))
        seen = await client.call("adapter.snapshot", adapter=adapter, cells="none")
        assert (seen["size"]["rows"], seen["size"]["cols"]) == (30, 90)
        other = (await started(client, program="cat", rows=7))["adapter"]
        seen = await client.call("adapter.snapshot", adapter=other, cells="none")
        assert (seen["size"]["rows"], seen["size"]["cols"]) == (7, 120)


async def test_optional_parameters_can_be_null(automation: Serving) -> None:
    absent = ("program", "args", "cwd", "env", "rows", "cols", "pixel_width", "pixel_height")
    async with automation(plugin()) as client:
        adapter = (await started(client, **dict.fromkeys(absent)))["adapter"]
        await client.call("adapter.wait", **waits(adapter, "ready>", timeout_ms=None, wait_id=None))
        sent = await client.call("adapter.send", adapter=adapter, intent="params_of", params=None)
        assert sent["state"]["last_intent"] == "table of none"
        send = {"intent": "say", "params": {"text": "hi"}}
        turn = await client.call("adapter.turn", adapter=adapter, send=send, wait=None)
        assert turn["state"]["state"] == "ready"


async def test_a_plugin_without_a_target_needs_a_program(automation: Serving) -> None:
    async with automation(plugin(target=None)) as client:
        refused = await client.refused("adapter.start", plugin="chatty")
        assert (refused.code, refused.data) == (-32602, {"reason": "no_program"})
        await started(client, program=TARGET.program, args=["-c", CHATTY])
        assert (await client.call("session.list", include_adapters=True))["sessions"] == ["s1"]


async def test_a_program_that_cannot_be_started_leaves_no_adapter(automation: Serving) -> None:
    async with automation(plugin()) as client:
        refused = await client.refused("adapter.start", plugin="chatty", program="/no/such")
        assert (refused.code, refused.data["program"]) == (-32603, "/no/such")
        assert (await client.call("adapter.live"))["adapters"] == []


async def test_an_unknown_name_is_refused_with_the_names_that_exist(automation: Serving) -> None:
    async with automation(plugin()) as client:
        refused = await client.refused("adapter.state", adapter="e9")
        assert (refused.code, refused.message) == (-32602, "unknown adapter: e9; there are none")
        adapter = await ready(client)
        refused = await client.refused("adapter.close", adapter="e9")
        assert refused.message == "unknown adapter: e9; there are e1"
        refused = await client.refused("adapter.start", plugin="chaty")
        assert refused.code == -32602
        assert "chatty" in refused.message
        refused = await client.refused("adapter.send", adapter=adapter, intent="sing")
        assert refused.code == -32602
        assert "forget, params_of, press, say" in refused.message
        refused = await client.refused("adapter.wait", adapter=adapter, intent="say")
        assert refused.code == -32602
        assert "wait_turn_matcher" in refused.message
        refused = await client.refused("adapter.send", adapter=adapter, intent="classify")
        assert refused.code == -32602


async def test_an_intent_becomes_keystrokes_and_the_state_after_it(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        answer = await say(client, adapter, "one")
        assert list(answer) == ["state"]
        assert answer["state"]["last_intent"] == "said"
        assert answer["state"]["metadata"]["intent"] == "said"
        found = await client.call("adapter.wait", adapter=adapter)
        assert found["matched"]["kind"] == "screen_regex"
        assert found["state"]["state"] == "ready"
        assert "wait_id" not in found


async def test_a_last_intent_stays_until_a_plan_says_another_or_none(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        await say(client, adapter, "one")
        key = {"key": "space"}
        kept = await client.call("adapter.send", adapter=adapter, intent="press", params=key)
        assert kept["state"]["last_intent"] == "said"
        forgotten = await client.call("adapter.send", adapter=adapter, intent="forget")
        assert forgotten["state"]["last_intent"] is None


async def test_a_plugin_may_refuse_in_its_own_words(automation: Serving) -> None:
    async with automation(plugin()) as client:
        refused = await client.refused("adapter.send", adapter=await ready(client), intent="say")
    assert (refused.code, refused.message) == (-32602, "chatty: `say`: say what")
    assert refused.data["reason"] == "bad_params"
    assert (refused.data["plugin"], refused.data["function"]) == ("chatty", "say")


async def test_a_wait_that_times_out_reports_the_last_state(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        refused = await client.refused("adapter.wait", **waits(adapter, "never", timeout_ms=30))
    assert refused.code == spec.TIMED_OUT
    assert refused.data["timeout_ms"] == 30
    assert refused.data["state"]["state"] == "ready"
    assert refused.data["why"]["text"] == "never"


async def test_a_wait_lasts_two_minutes_unless_it_says(
    automation: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.WAIT_SECONDS == 120
    monkeypatch.setattr(server, "WAIT_SECONDS", 0.03)
    async with automation(plugin()) as client:
        refused = await client.refused("adapter.wait", **waits(await ready(client), "never"))
    assert (refused.code, refused.data["timeout_ms"]) == (spec.TIMED_OUT, 30)


async def test_the_snapshot_and_transcript_of_an_adapter_equal_those_of_its_session(
    automation: Serving,
) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        await client.call("session.wait", session="s1", matcher={"type": "input_wanted"})
        for what in ("snapshot", "transcript"):
            mine = await client.call(f"adapter.{what}", adapter=adapter)
            assert mine == await client.call(f"session.{what}", session="s1")
        stripped = await client.call("adapter.transcript", adapter=adapter, strip=True, cursor=1)
        assert stripped["text"] == "eady>"


async def test_a_wait_on_a_program_that_ended_is_a_closed_session(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        waiting = asyncio.create_task(client.refused("adapter.wait", **waits(adapter, "never")))
        await say(client, adapter, "leave")
        refused = await waiting
        assert refused.code == spec.SESSION_CLOSED
        assert refused.data["child"]["exit_code"] == 3
        assert refused.data["state"]["state"] == "gone"
        (only,) = (await client.call("adapter.live"))["adapters"]
        assert only["finished"] is True


async def test_a_turn_sends_and_waits(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        turn = await client.call(
            "adapter.turn",
            adapter=adapter,
            send={"intent": "say", "params": {"text": "one"}},
            wait={"intent": "wait_text_matcher", "params": {"text": "did one"}, "wait_id": "w"},
        )
        assert turn["matched"] == {"kind": "contains_text", "text": "did one"}
        assert turn["wait_id"] == "w"


async def test_a_turn_blocks_other_input_but_not_reads(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        other = await client.another()
        turn = asyncio.create_task(
            client.call(
                "adapter.turn",
                adapter=adapter,
                send={"intent": "say", "params": {"text": "one"}},
                wait={"intent": "wait_text_matcher", "params": {"text": "never"}, "wait_id": "w"},
            )
        )
        await other.call("adapter.wait", adapter=adapter, intent="wait_turn_matcher", params={})
        second = asyncio.create_task(say(other, adapter, "two"))
        for _ in range(3):
            assert (await state(other, adapter))["state"] == "ready"
            await other.call("adapter.inspect", adapter=adapter)
            seen = await other.call("adapter.snapshot", adapter=adapter, cells="none")
            assert "two" not in seen["plain_text"]
        assert not second.done()
        assert (await other.call("adapter.cancel_wait", wait_id="w"))["cancelled"] is True
        await asyncio.wait({turn})
        assert "-32005" in str(turn.exception())
        await second
        await other.call("adapter.wait", **waits(adapter, "did two"))


async def test_a_wait_is_cancelled_by_its_id_from_anywhere_and_again(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        other = await client.another()
        for canceller in (other, client):
            wait = waits(adapter, "never", wait_id="w")
            waiting = asyncio.create_task(client.refused("adapter.wait", **wait))
            while not (answer := await canceller.call("adapter.cancel_wait", wait_id="w"))[
                "cancelled"
            ]:
                pass
            assert answer == {"cancelled": True, "adapter": adapter, "wait_id": "w"}
            assert (await waiting).code == spec.CANCELLED
            again = await canceller.call("adapter.cancel_wait", wait_id="w")
            assert again == {"cancelled": False}


async def test_a_wait_id_in_use_is_refused(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        first = waits(adapter, "never", wait_id="w")
        waiting = asyncio.create_task(client.refused("adapter.wait", **first))
        await state(client, adapter)  # the wait is under way when this is answered
        assert (await client.refused("adapter.wait", **first)).code == -32602
        await client.call("adapter.cancel_wait", wait_id="w")
        assert (await waiting).code == spec.CANCELLED


async def test_a_turn_that_queues_can_be_cancelled_and_sends_nothing(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)

        def turn(text: str, id: str) -> Any:
            wait = {"intent": "wait_text_matcher", "params": {"text": "never"}, "wait_id": id}
            send = {"intent": "say", "params": {"text": text}}
            asked = {"adapter": adapter, "send": send, "wait": wait}
            return asyncio.create_task(client.refused("adapter.turn", **asked))

        first = turn("one", "w1")
        await client.call("adapter.wait", **waits(adapter, "did one"))
        second = turn("two", "w2")
        while not (await client.call("adapter.cancel_wait", wait_id="w2"))["cancelled"]:
            pass
        assert (await second).code == spec.CANCELLED
        await client.call("adapter.cancel_wait", wait_id="w1")
        assert (await first).code == spec.CANCELLED
        await say(client, adapter, "three")
        await client.call("adapter.wait", **waits(adapter, "did three"))
        seen = await client.call("adapter.snapshot", adapter=adapter, cells="none")
        assert "two" not in seen["plain_text"]


async def test_closing_ends_the_program_its_waits_and_queued_turns(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        send = {"intent": "say", "params": {"text": "x"}}
        wait = {"intent": "wait_text_matcher", "params": {"text": "never"}}
        pending = [
            asyncio.create_task(client.refused("adapter.wait", **waits(adapter, "never"))),
            asyncio.create_task(
                client.refused("adapter.turn", adapter=adapter, send=send, wait=wait)
            ),
            asyncio.create_task(
                client.refused("adapter.turn", adapter=adapter, send=send, wait=wait)
            ),
        ]
        await client.call("adapter.wait", **waits(adapter, "did x"))
        assert await client.call("adapter.close", adapter=adapter) == {"closed": True}
        assert [(await one).code for one in pending] == [spec.SESSION_CLOSED] * 3
        assert (await client.refused("adapter.state", adapter=adapter)).code == -32602
        assert (await client.call("session.list", include_adapters=True))["sessions"] == []


async def test_resuming_closes_the_prior_adapter_first(automation: Serving) -> None:
    async with automation(plugin()) as client:
        first = await ready(client)
        second = await client.call("adapter.resume", plugin="chatty", prior_adapter=first)
        assert (second["adapter"], second["session"]) == ("e2", "s2")
        live = (await client.call("adapter.live"))["adapters"]
        assert [one["adapter"] for one in live] == ["e2"]
        for prior in (first, "e77", None):
            await client.call("adapter.resume", plugin="chatty", prior_adapter=prior)


async def test_a_prior_adapter_survives_a_resume_that_was_never_possible(
    automation: Serving,
) -> None:
    async with automation(plugin()) as client:
        first = await ready(client)
        await client.refused("adapter.resume", plugin="nobody", prior_adapter=first)
        assert (await state(client, first))["state"] == "ready"


async def test_an_adapters_session_is_its_own(automation: Serving) -> None:
    async with automation(plugin()) as client:
        mine = await client.start("cat")
        adapter = await ready(client)
        assert (await client.call("session.list"))["sessions"] == [mine]
        listed = await client.call("session.list", include_adapters=True)
        assert listed["sessions"] == [mine, "s2"]
        writing: list[tuple[str, dict[str, Any]]] = [
            ("session.input", {"action": {"type": "text", "value": "x"}}),
            ("session.resize", {"rows": 5, "cols": 5}),
            ("session.kill", {}),
            ("session.close", {}),
            ("session.lease", {"holder": "me"}),
        ]
        for method, params in writing:
            refused = await client.refused(method, session="s2", **params)
            assert (refused.code, refused.data) == (-32602, {"adapter": adapter}), method
            assert adapter in refused.message
        assert "ready>" in await client.screen("s2")


async def test_the_count_of_sessions_is_one(automation: Serving) -> None:
    async with automation(plugin()) as client:
        assert await client.start("cat") == "s1"
        assert (await started(client))["session"] == "s2"
        assert await client.start("cat") == "s3"


async def test_inspect_shows_the_input_of_the_classifier(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        for text in ("one", "two", "three"):
            small = await client.call("adapter.inspect", adapter=adapter)
            await say(client, adapter, text)
            await client.call("adapter.wait", **waits(adapter, f"did {text}\nready>"))
        seen = await client.call("adapter.inspect", adapter=adapter)
    assert (
        small["plain_text"]
        == small["body_text"]
        == "ready>one\ndid one\nready>two\ndid two\nready>"
    )
    assert small["status_text"] == ""
    assert set(seen) == {
        "adapter",
        "plugin",
        "session",
        "state",
        "plain_text",
        "body_text",
        "status_text",
        "transcript_tail",
        "sequence",
    }
    assert seen["plain_text"] == f"{seen['body_text']}\n{seen['status_text']}"
    assert seen["status_text"] == "ready>three\ndid three\nready>"
    assert seen["transcript_tail"].endswith("did three\r\nready>")
    assert seen["state"]["state"] == "ready"


async def test_no_adapter_method_returns_a_secret(automation: Serving) -> None:
    async with automation(plugin()) as client:
        adapter = await ready(client)
        turn = await client.call(
            "adapter.turn", adapter=adapter, send={"intent": "say", "params": {"text": SECRET}}
        )
        read = [
            turn,
            await client.call("adapter.state", adapter=adapter),
            await client.call("adapter.snapshot", adapter=adapter),
            await client.call("adapter.transcript", adapter=adapter),
            await client.call("adapter.inspect", adapter=adapter),
            (await client.refused("adapter.wait", **waits(adapter, "no", timeout_ms=1))).data,
        ]
        assert "hunter2secret" not in str(read)
        raw = await client.call("adapter.inspect", adapter=adapter, redact=False)
        assert "hunter2secret" in raw["plain_text"]
        assert "hunter2secret" in raw["transcript_tail"]


async def test_a_secret_quoted_by_a_plugin_is_hidden_in_the_state(automation: Serving) -> None:
    quoting = SOURCE.replace(
        'evidence = "the last row is " .. last', "evidence = ctx.screen"
    ).replace(
        "metadata = {",
        "candidates = {{state = 'x', confidence = 1, evidence = ctx.screen}}, "
        "metadata = {screen = ctx.screen, deep = {list = {ctx.screen}}, ",
    )
    async with automation(plugin(quoting)) as client:
        adapter = await ready(client)
        await say(client, adapter, SECRET)
        await client.call("adapter.wait", **waits(adapter, "did "))
        told = await state(client, adapter)
    assert "did" in told["evidence"]
    assert "did" in told["metadata"]["deep"]["list"][0]
    assert "hunter2secret" not in str(told)


async def test_an_adapter_can_be_attached_to_a_session(automation: Serving) -> None:
    async with automation(plugin()) as client:
        session = await client.start(TARGET.program, "-c", CHATTY)
        await client.shows(session, "ready>")
        answer = await client.call("adapter.attach", plugin="chatty", session=session)
        assert (answer["adapter"], answer["session"]) == ("e1", session)
        assert answer["state"]["state"] == "ready"
        await say(client, "e1", "one")
        await client.act(session, "text", "two\n")
        await client.call("adapter.wait", **waits("e1", "did two"))
        assert (await client.call("session.list"))["sessions"] == [session]
        waiting = asyncio.create_task(client.refused("adapter.wait", **waits("e1", "never")))
        await client.call("adapter.state", adapter="e1")
        await client.call("adapter.close", adapter="e1")
        assert (await waiting).code == spec.SESSION_CLOSED
        assert "did two" in await client.screen(session)
        assert (
            await client.refused("adapter.attach", plugin="chatty", session="s9")
        ).code == -32602


async def test_an_attached_adapter_goes_with_its_session(automation: Serving) -> None:
    async with automation(plugin()) as client:
        session = await client.start("cat")
        await client.call("adapter.attach", plugin="chatty", session=session)
        await client.call("session.close", session=session)
        assert (await client.call("adapter.live"))["adapters"] == []


async def test_an_attached_adapter_respects_a_lease(automation: Serving) -> None:
    async with automation(plugin()) as client:
        session = await client.start("cat")
        await client.call("adapter.attach", plugin="chatty", session=session)
        other = await client.another()
        await other.call("session.lease", session=session, holder="a person")
        params = {"text": "x"}
        refused = await client.refused("adapter.send", adapter="e1", intent="say", params=params)
        assert "a person" in refused.message
        assert await client.screen(session) == ""


async def test_notifications_follow_adapters_and_sessions(automation: Serving) -> None:
    async with automation(plugin()) as client:
        chosen = {"enabled": True, "adapters": ["e2"], "sessions": ["s1"]}
        echoed = await client.call("server.set_notifications", **chosen)
        assert echoed == chosen
        first = await client.start("printf one; cat")
        await ready(client)
        adapter = await ready(client)
        assert adapter == "e2"
        await client.until(lambda: "ready>" in client.output("s3"))
        await client.until(lambda: "one" in client.output(first))
        assert client.sessions_told() == {first, "s3"}
        await say(client, adapter, "leave")
        await client.until(lambda: client.exits("s3"))


async def test_a_lua_matcher_works_wherever_a_matcher_does(automation: Serving) -> None:
    async with automation(plugin()) as client:
        session = await client.start("printf 'well ready'; cat")
        asked = {"plugin": "chatty", "predicate": "shows", "params": {"text": "ready"}}
        lua = {"type": "lua", "value": asked}
        found = await client.call("session.wait", session=session, matcher=lua, cells="none")
        told = {"kind": "lua", "plugin": "chatty", "predicate": "shows"}
        assert found["evidence"] == {**told, "evidence": "at 6", "capture": "ready"}
        absent = {"type": "lua", "value": {**asked, "params": {"text": "nowhere"}}}
        both = {"type": "all", "value": [lua, {"type": "not", "value": absent}]}
        found = await client.call("session.wait", session=session, matcher=both, cells="none")
        assert found["evidence"]["matched"][1] == {"kind": "not"}
        adapter = await ready(client)
        found = await client.call(
            "adapter.wait", adapter=adapter, intent="wait_predicate_matcher", params={"text": "re"}
        )
        assert found["matched"] == {**told, "evidence": "at 1", "capture": "re"}


SAYS = """
local M = {}
function M.classify() return {state = "x", confidence = 1, evidence = "x"} end
function M.says(input)
  if not input.screen:find("over", 1, true) then return false end
  local key = input.screen:match("password=(%w+)")
  local made = input.params.said:gsub("KEY", key)
  if input.params.lower then made = made:lower() end
  return {matched = true, evidence = "it says " .. made, capture = made}
end
return M
"""


async def test_a_capture_made_by_a_predicate_is_returned_unless_it_quotes_a_secret() -> None:
    """Made of what stands nowhere on the screen, it is still its own; a secret is still one."""
    secret = "Correct" + "Horse7Battery"
    async with serving(plugin(SAYS, name="says")) as caller:
        program = {"program": "sh", "args": ["-c", f"echo password={secret}; echo over; cat"]}
        session = (await caller.call("session.create", **program))["session"]

        async def told(said: str, **more: Any) -> dict[str, Any]:
            asked = {"plugin": "says", "predicate": "says", "params": {"said": said, **more}}
            matcher = {"type": "any", "value": [{"type": "lua", "value": asked}]}
            found = await caller.call("session.wait", session=session, matcher=matcher)
            evidence: dict[str, Any] = found["evidence"]["matched"]
            return evidence

        for said in ("3 files, 2 of them new", "over", "Cor", "a horse", "over and out"):
            assert await told(said) == {
                "kind": "lua",
                "plugin": "says",
                "predicate": "says",
                "evidence": f"it says {said}",
                "capture": said,
            }
        for said in ("KEY", "it is KEY now", secret[3:12], secret[:9] + "?"):
            for lower in (False, True):
                one = await told(said, lower=lower)
                assert one["capture"] == one["evidence"] == "[REDACTED]", (said, lower)
        assert (await told(secret[-4:]))["capture"] == "[REDACTED]"
        ruled = await told("password=another")
        assert ruled["capture"] == "password=[REDACTED]"


async def test_a_lua_matcher_is_evaluated_again_on_later_output(automation: Serving) -> None:
    async with automation(plugin()) as client:
        session = await client.start("cat")
        asked = {"plugin": "chatty", "predicate": "shows", "params": {"text": "later"}}
        matcher = {"type": "lua", "value": asked}
        wait = client.call("session.wait", session=session, matcher=matcher, cells="none")
        waiting = asyncio.create_task(wait)
        await client.act(session, "text", "sooner\n")
        await client.shows(session, "sooner")
        assert not waiting.done()
        await client.act(session, "text", "later\n")
        assert "later" in (await waiting)["snapshot"]["plain_text"]


async def test_a_lua_matcher_with_an_unknown_plugin_or_predicate_is_refused_at_once(
    automation: Serving,
) -> None:
    async with automation(plugin()) as client:
        session = await client.start("cat")

        async def refusal(**asked: Any) -> Any:
            matcher = {"type": "lua", "value": asked}
            return await client.refused("session.wait", session=session, matcher=matcher)

        unknown = await refusal(plugin="nobody", predicate="shows")
        assert unknown.code == -32602
        assert "chatty" in unknown.message
        missing = await refusal(plugin="chatty", predicate="shines")
        assert missing.code == -32602
        assert "shines" in missing.message
        thrown = await refusal(plugin="chatty", predicate="shows")
        assert thrown.code == -32603
        assert thrown.data["function"] == "shows"
