"""`session.wait`: what can be waited for, what the answer tells, and why there was none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from automating import SECRET, Client, Serving
from telex.automation import protocol as spec
from telex.terminal.waits import matchers as waits_matchers


async def wait(client: Client, session: str, matcher: Any, **params: Any) -> Any:
    params = {"cells": "none", **params}
    return await client.call("session.wait", session=session, matcher=matcher, **params)


async def failed(client: Client, session: str, matcher: Any, **params: Any) -> Any:
    params = {"cells": "none", "timeout_ms": 30, **params}
    return await client.refused("session.wait", session=session, matcher=matcher, **params)


def text(value: str) -> dict[str, str]:
    return {"type": "contains_text", "value": value}


async def test_the_answer_has_exactly_the_members_of_the_spec_and_evidence(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        found = await client.call("session.wait", session=session, matcher=text("ready"))
        snapshot = await client.call("session.snapshot", session=session)
    del snapshot["input_state"]  # our addition, where the screen is read
    assert list(found) == [
        "matched",
        "sequence",
        "elapsed_ms",
        "snapshot",
        "transcript_tail",
        "evidence",
    ]
    assert found["matched"] is True
    assert found["snapshot"] == snapshot
    assert found["sequence"] == snapshot["sequence"]
    assert isinstance(found["elapsed_ms"], int)
    assert 0 <= found["elapsed_ms"] < 10_000
    assert found["transcript_tail"] == "ready"
    assert found["evidence"] == {"kind": "contains_text", "text": "ready"}


@pytest.mark.parametrize(
    ("matcher", "evidence"),
    [
        (text("ready"), {"kind": "contains_text", "text": "ready"}),
        (
            {"type": "screen_regex", "value": "r(ea).y"},
            {"kind": "screen_regex", "pattern": "r(ea).y", "capture": "ea"},
        ),
        (
            {"type": "transcript_contains", "value": "ready"},
            {"kind": "transcript_contains", "text": "ready"},
        ),
        (
            {"type": "transcript_regex", "value": "rea.y"},
            {"kind": "transcript_regex", "pattern": "rea.y", "capture": "ready"},
        ),
        (
            {"type": "cursor_at", "value": {"row": 0, "col": 5}},
            {"kind": "cursor_at", "row": 0, "col": 5},
        ),
        (
            {"type": "screen_stable", "value": {"min_ms": 20}},
            {"kind": "screen_stable", "min_ms": 20},
        ),
        (
            {"type": "any", "value": [text("never"), text("ready")]},
            {"kind": "any", "matched": {"kind": "contains_text", "text": "ready"}},
        ),
        (
            {"type": "all", "value": [text("rea"), text("dy")]},
            {
                "kind": "all",
                "matched": [
                    {"kind": "contains_text", "text": "rea"},
                    {"kind": "contains_text", "text": "dy"},
                ],
            },
        ),
    ],
    ids=lambda given: str(given.get("type", "")),
)
async def test_each_matcher_of_the_spec_matches_and_says_what(
    automation: Serving, matcher: dict[str, Any], evidence: dict[str, Any]
) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        await client.shows(session, "ready")
        assert (await wait(client, session, matcher))["evidence"] == evidence


@pytest.mark.parametrize(
    "matcher",
    [
        text("absent"),
        {"type": "screen_regex", "value": "^absent$"},
        {"type": "transcript_contains", "value": "absent"},
        {"type": "transcript_regex", "value": "absen."},
        {"type": "cursor_at", "value": {"row": 5, "col": 5}},
        {"type": "screen_stable", "value": {"min_ms": 10_000}},
        {"type": "process_exited"},
        {"type": "exit_code", "value": 0},
        {"type": "title", "value": "absent"},
        {"type": "text_absent", "value": "ready"},
        {"type": "not", "value": text("ready")},
        {"type": "any", "value": [text("absent"), text("missing")]},
        {"type": "all", "value": [text("ready"), text("absent")]},
    ],
    ids=lambda matcher: str(matcher["type"]),
)
async def test_each_matcher_can_fail_in_time_and_says_which(
    automation: Serving, matcher: dict[str, Any]
) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        await client.shows(session, "ready")
        refusal = await failed(client, session, matcher)
        assert refusal.code == -32001
        assert matcher["type"] in str(refusal.data["why"])


async def test_the_end_of_the_program_can_be_waited_for(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("read x; exit 3")
        waits = [
            asyncio.create_task(wait(client, session, matcher))
            for matcher in ({"type": "process_exited"}, {"type": "exit_code", "value": 3})
        ]
        await client.act(session, "key", "enter")
        ended, with_code = await asyncio.gather(*waits)
        assert ended["evidence"]["kind"] == "process_exited"
        assert with_code["evidence"]["kind"] == "exit_code"
        again = await wait(client, session, {"type": "process_exited"})
        assert again["matched"] is True


async def test_a_wait_can_match_text_that_disappears_or_is_absent(
    automation: Serving,
) -> None:
    script = r"printf 'loading'; read x; printf '\r\033[2Kdone\033]2;the title\007'; cat"
    async with automation() as client:
        session = await client.start(f"stty -echo; {script}")
        await client.shows(session, "loading")
        matchers = [
            {"type": "text_absent", "value": "loading"},
            {"type": "not", "value": text("loading")},
            {"type": "title", "value": "the title"},
        ]
        waits = [asyncio.create_task(wait(client, session, matcher)) for matcher in matchers]
        await client.call("server.capabilities")
        assert not any(task.done() for task in waits)
        await client.act(session, "key", "enter")
        kinds = [found["evidence"]["kind"] for found in await asyncio.gather(*waits)]
        assert kinds == ["text_absent", "not", "title"]


async def test_the_evidence_names_the_nested_branch_that_matched(automation: Serving) -> None:
    matcher = {
        "type": "any",
        "value": [
            {"type": "process_exited"},
            {"type": "all", "value": [text("rea"), {"type": "any", "value": [text("dy")]}]},
        ],
    }
    async with automation() as client:
        session = await client.start("printf ready; cat")
        found = await wait(client, session, matcher)
        branch = found["evidence"]["matched"]
        assert branch["kind"] == "all"
        assert branch["matched"][1] == {
            "kind": "any",
            "matched": {"kind": "contains_text", "text": "dy"},
        }


async def test_stability_counts_from_the_wait_unless_asked_from_the_change(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        await client.shows(session, "ready")
        strict = await wait(client, session, {"type": "screen_stable", "value": {"min_ms": 600}})
        assert strict["elapsed_ms"] >= 600
        quick = {"type": "screen_stable", "value": {"min_ms": 600, "since": "change"}}
        assert (await wait(client, session, quick))["elapsed_ms"] < 600


async def test_a_wait_times_out_after_thirty_seconds_by_default() -> None:
    assert spec.Wait(session="s1", matcher=waits_matchers.ProcessExited()).timeout_ms == 30_000


async def test_a_timeout_reports_the_elapsed_time_the_unmatched_parts_and_the_screen(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start(f"printf 'user\\nReady now {SECRET}'; cat")
        await client.shows(session, "now")
        matcher = {"type": "any", "value": [text("ready now"), {"type": "process_exited"}]}
        refusal = await failed(client, session, matcher, timeout_ms=40)
    assert refusal.code == -32001
    data = refusal.data
    assert data["elapsed_ms"] >= 40
    assert data["timeout_ms"] == 40
    assert data["child"] == {"state": "running"}
    assert data["screen_tail"].startswith("user\nReady now password=")
    assert "hunter2" not in str(refusal)
    why = str(data["why"])
    assert "contains_text" in why
    assert "process_exited" in why
    assert "Ready now" in why, "the nearest miss"


async def test_a_timeout_of_nothing_looks_once(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        await client.shows(session, "ready")
        assert (await wait(client, session, text("ready"), timeout_ms=0))["matched"] is True
        assert (await failed(client, session, text("never"), timeout_ms=0)).code == -32001


async def test_a_wait_for_a_program_that_is_gone_says_so_at_once(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("printf ready; exit 4")
        refusal = await failed(client, session, text("never"), timeout_ms=20_000)
        assert refusal.code == -32002
        assert refusal.data["child"] == {"state": "exited", "exit_code": 4, "signal": None}
        assert refusal.data["screen_tail"] == "ready"
        assert "never" in str(refusal.data["why"])
        assert (await wait(client, session, text("ready")))["matched"] is True
        stable = {"type": "screen_stable", "value": {"min_ms": 20}}
        assert (await wait(client, session, stable))["matched"] is True
        either = {"type": "any", "value": [text("never"), stable]}
        assert (await wait(client, session, either))["evidence"]["kind"] == "any"


@pytest.mark.parametrize("kind", ["screen_regex", "transcript_regex"])
async def test_a_pattern_that_is_none_is_refused_at_once(automation: Serving, kind: str) -> None:
    async with automation() as client:
        session = await client.start("cat")
        bad = {"type": kind, "value": "rea(y"}
        for matcher in (bad, {"type": "any", "value": [text("x"), bad]}):
            refusal = await failed(client, session, matcher, timeout_ms=20_000)
            assert refusal.code == -32602
            assert "rea(y" in refusal.message


@pytest.mark.parametrize(
    "matcher",
    [
        None,
        "ready",
        {},
        {"type": "wish", "value": "x"},
        {"type": "contains_text"},
        {"type": "cursor_at", "value": {"row": 1}},
        {"type": "screen_stable", "value": {"min_ms": -1}},
        {"type": "any", "value": "x"},
        {"type": "all", "value": [[]]},
    ],
    ids=str,
)
async def test_a_matcher_that_is_none_is_invalid_params(automation: Serving, matcher: Any) -> None:
    async with automation() as client:
        session = await client.start("cat")
        refusal = await failed(client, session, matcher)
        assert refusal.code == -32602
        assert "matcher" in refusal.message


async def test_none_of_nothing_is_ever_true_and_all_of_nothing_is_at_once(
    automation: Serving,
) -> None:
    nothing = {"type": "any", "value": []}
    everything: dict[str, Any] = {"type": "all", "value": []}
    async with automation() as client:
        session = await client.start("cat")
        assert (await failed(client, session, nothing, timeout_ms=50)).code == -32001
        found = await wait(client, session, everything)
        assert found["evidence"] == {"kind": "all", "matched": []}
        either = {"type": "any", "value": [nothing, everything]}
        assert (await wait(client, session, either))["evidence"]["matched"]["kind"] == "all"
        both = {"type": "all", "value": [nothing, everything]}
        assert (await failed(client, session, both, timeout_ms=50)).code == -32001
        await client.call("session.kill", session=session)
        assert (await failed(client, session, nothing)).code == -32002
        assert (await wait(client, session, everything))["matched"]


async def test_a_pending_wait_blocks_nothing(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        waiting = [asyncio.create_task(wait(client, session, text(f"sign {n}"))) for n in range(20)]
        told = await client.call("server.capabilities")
        assert told["name"] == "telex"
        other = await client.start("printf other; cat")
        await client.shows(other, "other")
        assert not any(task.done() for task in waiting)
        await client.act(session, "text", "".join(f"sign {n}\n" for n in range(20)))
        found = await asyncio.gather(*waiting)
        assert [one["evidence"]["text"] for one in found] == [f"sign {n}" for n in range(20)]


async def test_many_connections_wait_on_one_session(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        others = [await client.another() for _ in range(3)]
        waits = [asyncio.create_task(wait(one, session, text("sign"))) for one in others]
        await client.act(session, "text", "sign")
        assert all(found["matched"] for found in await asyncio.gather(*waits))
