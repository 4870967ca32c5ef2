"""`telex wait`: what it matches after which inputs, and what it says when the time is over."""

from __future__ import annotations

from shell_verbs import Opening
from telex import AsyncTerminal
from telex.automation.caller import LocalCaller


async def test_text_that_stood_there_before_the_input_does_not_match(verbs: Opening) -> None:
    """Else `make test` would have passed before it ran."""
    async with verbs() as telex:
        await telex.shell()
        await telex("do", "type 'echo pas''sed' --enter", "wait passed")
        await telex("type", "true", "--enter")
        told = await telex.fails(124, "wait", "passed", "--max", "200ms")
        assert (
            "it stood there before your last input, or is its echo: --anywhere counts that too"
            in told
        )
        told = await telex.fails(124, "wait", "--regex", "pas+ed", "--max", "100ms")
        assert "--anywhere" in told
        assert await telex("wait", "passed", "--anywhere") == "passed\n"


async def test_the_echo_of_inputs_does_not_match_however_they_were_split(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex.shell()
        for inputs in (
            ["type 'true passed' --enter"],
            ["type 'true passed'", "press enter"],
            ["type 'true pas'", "type sed", "press enter"],
            ["type true", "press space p a", "type ssed --enter"],
            ["type 'true pal'", "press backspace", "type ssed --enter"],
            ["type 'true palled'", "press <bs><bs><bs><bs>", "type ssed --enter"],
            ["type wrong", "press ctrl+u", "type 'true passed' --enter"],
            ["press enter", "type 'true passed' --enter"],
        ):
            await telex("do", *inputs)
            told = await telex.fails(124, "wait", "passed", "--max", "150ms")
            assert "did not come" in told, inputs


async def test_the_answer_to_the_first_of_several_inputs_matches(verbs: Opening) -> None:
    """vim shows INSERT after `i`, at the latest while the text is typed: which of both comes first
    must not decide whether the wait ends."""
    async with verbs() as telex:
        await telex("open", "--", "vim", "-u", "NONE", "-N", "--cmd", "set showmode")
        await telex("press", "i")
        other = LocalCaller(telex.server.automation)
        await AsyncTerminal(other, "s1").wait("INSERT")
        other.leave()
        await telex("type", "hello")
        assert "INSERT" in await telex("wait", "INSERT")


async def test_a_look_ends_the_inputs_that_a_wait_considers(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex.shell()
        await telex("do", "type 'echo on''ce' --enter", "wait once")
        assert await telex("wait", "once") == "once\n", "the same question, the same answer"
        await telex("see")
        assert await telex("wait", "once") == "once\n", "a look alone changes nothing"
        await telex("press", "enter")
        await telex.fails(124, "wait", "once", "--max", "100ms")


async def test_before_any_input_the_whole_screen_counts(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "sh", "-c", "echo ready; read x")
        await telex("see")
        assert await telex("wait", "ready") == "ready\n"


async def test_since_counts_from_a_screen_that_was_seen(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex.shell()
        first = (await telex.json("see"))["sequence"]
        await telex("do", "type 'echo on''ce' --enter", "wait once")
        await telex("press", "enter")
        assert await telex("wait", "once", "--since", str(first)) == "once\n"
        last = (await telex.json("see"))["sequence"]
        told = await telex.fails(124, "wait", "once", "--since", str(last), "--max", "50ms")
        assert "before that sequence" in told


async def test_the_line_with_the_match_is_printed(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "sh", "-c", "echo '== 12 passed in 3 s =='; echo end; read x")
        assert await telex("wait", "passed") == "== 12 passed in 3 s ==\n"
        assert await telex("wait", "--regex", r"(\d+) passed") == "== 12 passed in 3 s ==\n"
        told = await telex.json("wait", "--regex", r"(\d+) passed")
        assert told["evidence"]["capture"] == "12"
        assert told["line"] == "== 12 passed in 3 s =="


async def test_gone_idle_and_exit(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex(
            "open", "--", "sh", "-c", "printf Loading; read x; printf '\\033[H\\033[Jdone'; read y"
        )
        told = await telex.fails(124, "wait", "--gone", "Loading", "--max", "50ms")
        assert "still on the screen" in told
        await telex("press", "enter")
        assert await telex("wait", "--gone", "Loading") == ""
        assert await telex("wait", "--idle", "30") == ""
        told = await telex.fails(124, "wait", "--exit", "--max", "10ms")
        assert "still running" in told
        await telex("press", "enter")
        assert await telex("wait", "--exit") == "exited 0\n"
        assert await telex("wait", "--idle", "30ms") == ""


async def test_a_timeout_shows_the_nearest_miss_and_the_screen_once(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "sh", "-c", "echo 'Tests: PASSED'; read x")
        told = await telex.fails(124, "wait", "Tests: passed", "--max", "50ms")
        assert told.startswith("telex: 'Tests: passed' did not come within ")
        assert "nearest: " in told
        assert told.endswith("\nTests: PASSED\n")
        data = await telex.run("wait", "x", "--max", "10ms", "--json")
        assert data.code == 124
        assert '"code":124' in data.stdout
        assert not data.stderr


async def test_the_client_is_told_how_long_a_wait_may_take(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "sh", "-c", "echo go; read x")
        assert telex.announced == []
        await telex("do", "wait go --max 2m", "wait go --max 500ms", "wait go")
        longest = [seconds for seconds in telex.announced if seconds != 30.0]
        assert longest == [125.0, 5.5, 35.0]
        assert telex.announced[-1] == 30.0


async def test_durations_and_conditions_that_make_no_sense(verbs: Opening) -> None:
    async with verbs() as telex:
        await telex("open", "--", "parrot")
        assert "500ms, 10s, 2m or 1h" in await telex.fails(2, "wait", "x", "--max", "soon")
        assert "more than a day" in await telex.fails(2, "wait", "x", "--max", "25h")
        assert "give one of TEXT" in await telex.fails(2, "wait")
        assert "give one of TEXT" in await telex.fails(2, "wait", "x", "--exit")
        assert "is empty" in await telex.fails(2, "wait", "")
        assert "RE2" in await telex.fails(2, "wait", "--regex", "(")
        assert "exclude" in await telex.fails(2, "wait", "x", "--since", "1", "--anywhere")
