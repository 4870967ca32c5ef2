"""Every plugin in `zoo/` has the expected outcome, with an error that names it, leaves no process
behind (see conftest), and does not grow the host's memory."""

from __future__ import annotations

import asyncio
import logging
import re
import resource
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from automating import alive
from plugins.animals import QUICK, ZOO, RecordingHost, animal
from telex.plugins import errors
from telex.plugins.client import start
from telex.plugins.limits import PLUGIN_STDERR_LINE_CHARS
from telex.plugins.supervisor import PluginSupervisors, RestartPolicy
from telex.wire.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < 48 * MIB, "the host grew with what the plugin sent"


# Plugins whose handshake fails.

UNINTRODUCED = {
    "never_answers_the_handshake": "did not answer handshake within 0.4 s; its standard output may be buffered until it exits",
    "buffers_its_output": "did not answer handshake within 0.4 s; its standard output may be buffered until it exits",
    "speaks_another_framing": 'did not answer handshake within 1 s; what it wrote is no message: {"jsonrpc": "2.0", "id": 1,',
    "speaks_another_protocol": 'speaks "lsp", and not rpp or reginald',
    "speaks_another_version": "speaks version 7 of rpp; telex speaks version 0",
    "refuses_the_handshake": "answered handshake with an error: I speak with nobody. (-32001)",
    "refuses_to_initialize": "answered initialize with an error: The key `colour` is missing. (-32050)",
    "exits_at_once": "exited with code 3 before it was introduced; its last words: cannot find my configuration",
}


@pytest.mark.parametrize("name", UNINTRODUCED)
async def test_a_plugin_whose_handshake_fails_is_ended_and_the_error_has_the_reason(
    name: str,
) -> None:
    (seconds,) = re.findall("within ([0-9.]+) s", UNINTRODUCED[name]) or ["5"]
    host = RecordingHost(deadlines=replace(QUICK, handshake=float(seconds)))
    plugin = start(animal(name), host.settings())
    with pytest.raises(errors.PluginHandshakeFailed) as raised:
        await plugin.begin()
    assert str(raised.value).startswith(f"the plugin {name} {UNINTRODUCED[name]}")
    assert raised.value.code == -32001
    assert plugin.end_reason == str(raised.value).replace(" before it was introduced", "")


# Plugins that fail at a call: the exception, its message, and the counted faults.

CALLED: dict[str, tuple[type[errors.PluginError] | None, str, dict[str, int]]] = {
    "answers_twice": (None, "'once'", {"unasked": 1}),
    "answers_an_unknown_id": (None, "'yours'", {"unasked": 1}),
    "writes_a_byte_at_a_time": (None, "'done'", {}),
    "prints_before_the_handshake": (None, "None", {"strays": 1}),
    "prints_between_frames": (None, "'done'", {"strays": 1}),
    "never_answers": (errors.PluginTimedOut, "did not answer work within 0.1 s", {}),
    "answers_late": (errors.PluginTimedOut, "did not answer work within 0.1 s", {"late": 1}),
    "declares_a_gigabyte": (
        errors.PluginBadResult,
        "gave no proper answer to work: It has over 16777216 bytes of content.",
        {"mistakes": 1},
    ),
    "writes_an_endless_header": (
        errors.PluginTimedOut,
        "did not answer work within 1 s; some of what it wrote is no message (1 so far)",
        {"strays": 1},
    ),
    "answers_without_an_id": (
        errors.PluginTimedOut,
        "did not answer work",
        {"responses_without_id": 2},
    ),
    "answers_with_the_id_in_quotes": (errors.PluginTimedOut, "did not answer", {"unasked": 1}),
    "answers_in_a_batch": (errors.PluginBadResult, "gave no proper answer", {"mistakes": 1}),
    "writes_invalid_utf8": (errors.PluginBadResult, "gave no proper answer", {"mistakes": 1}),
    "writes_a_bom": (errors.PluginBadResult, "gave no proper answer", {"mistakes": 1}),
    "answers_with_deep_json": (errors.PluginBadResult, "gave no proper answer", {"mistakes": 1}),
    "answers_with_half_a_character": (
        errors.PluginBadResult,
        "gave no proper answer to work: The message is not valid JSON.",
        {"mistakes": 1},
    ),
    "answers_with_both": (
        errors.PluginBadResult,
        "gave no proper answer to work: The message is not a valid request. It has both",
        {"mistakes": 1},
    ),
    "answers_with_neither": (
        errors.PluginBadResult,
        "gave no proper answer to work: The message is not a valid request. It has no",
        {"mistakes": 1},
    ),
    "exits_mid_header": (errors.PluginEnded, "exited with code 0", {"mistakes": 1}),
    "closes_its_input": (errors.PluginEnded, "closed its standard input and ran on", {}),
    "closes_its_output": (errors.PluginEnded, "closed its standard output and ran on", {}),
    "crashes_at_each_call": (errors.PluginEnded, "ended by SIGSEGV", {}),
}
STUCK = ("declares_a_gigabyte", "writes_an_endless_header")
"""Plugins that keep writing and read nothing any more."""


@pytest.mark.parametrize("name", CALLED)
async def test_a_call_of_each_animal_has_the_expected_outcome_and_the_plugin_stays_usable(
    name: str,
) -> None:
    failure, words, counted = CALLED[name]
    async with start(animal(name), RecordingHost().settings()) as plugin:
        if failure is None:
            assert repr(await plugin.call("work")) == words
        else:
            # A plugin that still reads has sent all its output when it answers `ping`.
            timed = {errors.PluginTimedOut: 1.0 if name in STUCK else 0.1}.get(failure, 5)
            with pytest.raises(failure) as raised:
                await plugin.call("work", timeout=timed)
            assert str(raised.value).startswith(f"the plugin {name} {words}")
        if failure is errors.PluginEnded:
            assert plugin.end_reason is not None
            assert plugin.failed
            with pytest.raises(errors.PluginEnded):
                await plugin.call("ping")
        elif name not in STUCK:
            await plugin.call("ping")  # the connection is usable also after a timeout
            assert plugin.end_reason is None
        seen = {count: getattr(plugin.faults, count) for count in counted}
        assert seen == counted


async def test_stray_output_however_often_is_skipped_and_does_not_end_a_plugin() -> None:
    async with start(animal("prints_between_frames"), RecordingHost().settings()) as plugin:
        for _ in range(10):
            assert await plugin.call("work") == "done"
        assert plugin.faults.strays == 10
        assert plugin.end_reason is None


async def test_the_fifth_protocol_error_ends_a_plugin() -> None:
    async with start(animal("is_not_json"), RecordingHost().settings()) as plugin:
        with pytest.raises(errors.PluginBadResult, match="gave no proper answer to work"):
            await plugin.call("work")
        await plugin.wait_ended()
        assert plugin.failed
        assert str(plugin.end_reason).startswith("the plugin is_not_json made 5 protocol errors")


async def test_an_unreadable_response_fails_its_own_call_at_once() -> None:
    async with start(animal("answers_with_half_a_character"), RecordingHost().settings()) as plugin:
        other = asyncio.create_task(plugin.call("answer_later", timeout=None))
        with pytest.raises(errors.PluginBadResult):
            await plugin.call("work", timeout=None)
        with pytest.raises(errors.PluginBadResult, match="It has over 16777216 bytes"):
            await plugin.call("work_much", timeout=None)
        assert not other.done()
        await plugin.notify("now")
        assert await other == "later"


async def test_a_flood_of_answers_without_an_id_is_logged_briefly_and_ends_the_plugin(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "floods_answers_to_nobody"
    with caplog.at_level(logging.DEBUG, f"telex.plugins.{name}"):
        async with start(animal(name), RecordingHost().settings()) as plugin:
            with pytest.raises(errors.PluginEnded, match="responses without an id"):
                await plugin.call("work", timeout=None)
    assert caplog.text.count("sent a response without an id") == 5


async def test_failures_without_a_receiver_are_logged_without_control_characters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "answers_without_an_id"
    with caplog.at_level(logging.DEBUG, f"telex.plugins.{name}"):
        async with start(animal(name), RecordingHost().settings()) as plugin:
            with pytest.raises(errors.PluginTimedOut):
                await plugin.call("work", timeout=0.1)
    assert r"I could not read \x1b[31mthat." in caplog.text


async def test_a_flood_of_notifications_is_absorbed_and_other_calls_continue(
    counted: Callable[[int, int], int],
) -> None:
    host = RecordingHost(arguments=[str(counted(200, 5_000))])
    flooding = start(animal("floods_notifications"), host.settings())
    async with flooding, start(animal("answers_twice"), RecordingHost().settings()) as other:
        work = asyncio.create_task(flooding.call("work"))
        assert await other.call("work", timeout=10) == "once"
        assert await work == "done"


async def test_a_flood_on_standard_error_blocks_no_call_and_long_lines_are_cut(
    counted: Callable[[int, int], int],
) -> None:
    host = RecordingHost(arguments=[str(counted(300, 16_000))])
    async with start(animal("floods_stderr"), host.settings()) as plugin:
        assert await plugin.call("work") == "done"
    long, short = host.lines
    prefix = "[floods_stderr] "
    assert long.startswith(prefix + "e" * PLUGIN_STDERR_LINE_CHARS + " … (the rest")
    assert len(long) < PLUGIN_STDERR_LINE_CHARS + 100
    assert short == prefix + "short"


async def test_detached_grandchildren_end_with_their_plugin() -> None:
    async with start(animal("forks_grandchildren"), RecordingHost().settings()) as plugin:
        pids = await plugin.call("work", returns=list[int])
        assert [alive(pid) for pid in pids] == [True, True]
    assert [alive(pid) for pid in pids] == [False, False]


@pytest.mark.parametrize("name", ["ignores_sigterm", "hangs_at_shutdown", "stops_reading"])
async def test_a_plugin_that_does_not_exit_is_killed(name: str) -> None:
    plugin = start(animal(name), RecordingHost().settings())
    await plugin.begin()
    if name == "stops_reading":
        for _ in range(2):  # more than a pipe and a buffer take, so a request to end cannot be sent
            with pytest.raises(errors.PluginTimedOut):
                await plugin.call("work", {"much": "x" * 2 * MIB}, timeout=0.1)
    async with asyncio.timeout(60):  # five steps of 0.2 s, on a machine that may be busy
        await plugin.close()


async def test_a_plugin_that_answers_shutdown_with_false_is_still_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "answers_shutdown_with_false"
    with caplog.at_level(logging.INFO, f"telex.plugins.{name}"):
        async with start(animal(name), RecordingHost().settings()):
            pass
    assert "answered shutdown with false" in caplog.text


async def test_an_unknown_method_of_the_host_is_answered_as_such() -> None:
    async with start(animal("asks_the_unknown"), RecordingHost().settings()) as plugin:
        answer = await plugin.call("work", returns=dict)
        assert (answer["id"], answer["error"]["code"]) == (1, -32601)
        assert answer["error"]["data"] == {"nearest": ["$/progress"]}


async def test_a_plugin_that_crashes_at_each_call_is_suspended_and_others_continue() -> None:
    pace = RestartPolicy(failures=3, window=60, backoff=0.01)
    both = [animal("crashes_at_each_call"), animal("answers_twice")]
    async with PluginSupervisors(both, RecordingHost().settings(), pace) as supervisors:
        for _ in range(3):
            with pytest.raises(errors.PluginEnded, match="crashes_at_each_call ended by SIGSEGV"):
                await supervisors["crashes_at_each_call"].call("work")
            assert await supervisors["answers_twice"].call("work") == "once"
        with pytest.raises(errors.PluginSuspended) as raised:
            await supervisors["crashes_at_each_call"].call("work")
        assert re.fullmatch(
            r"the plugin crashes_at_each_call failed 3 times within 60 s and is suspended for "
            r"[1-6]?[0-9] s; the last time it ended by SIGSEGV",
            str(raised.value),
        )


def test_every_animal_is_visited() -> None:
    source = Path(__file__).read_text()
    animals = {path.stem for path in ZOO.iterdir() if path.suffix in {".py", ".sh"}} - {"speaking"}
    assert len(animals) > 25
    assert [name for name in sorted(animals) if f'"{name}"' not in source] == []
