"""Commands of the person: limited in time, directory and output, and killed with all descendants."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.working import TOOLS, call, context_in, gone
from telex.agent import command_runner
from telex.agent.command_runner import BadShellParams, shell_exec
from telex.agent.excerpts import excerpt, lines_of
from telex.agent.protocol.sessions import ShellExecResult
from telex.agent.tools.output_cache import OutputCache
from telex.agent.tools.tool import AgentTool, ToolContext, ToolResult
from telex.agent.tools.tool_registry import ToolRegistry
from telex.redaction import Redactor

SH = {"SHELL": "/bin/sh"}


async def execute(
    context: ToolContext, command: str, timeout: float | None = None, cwd: str | None = None
) -> ShellExecResult:
    return await shell_exec(
        command,
        timeout,
        cwd,
        sandbox=context.sandbox,
        working_dir=context.cwd,
        environment=context.environment,
        cache=context.cache,
    )


async def run(directory: Path, command: str, seconds: float) -> command_runner.CommandResult:
    return await command_runner.run_command(
        ["/bin/sh", "-c", command], env=os.environ, cwd=directory, seconds=seconds
    )


async def test_a_command_runs_in_the_persons_shell_and_returns_its_output(tmp_path: Path) -> None:
    result = await execute(context_in(tmp_path, **SH), "  echo out; echo err >&2; pwd; exit 3  ")
    assert result.stdout == f"out\n{tmp_path / 'work'}\n"
    assert (result.stderr, result.exit_code, result.signal) == ("err\n", 3, None)
    assert result.command_preview == "echo out; echo err >&2; pwd; exit 3"
    assert not any((result.timed_out, result.overflowed, result.truncated.combined))
    assert result.stdout_cache_id is None
    assert {"exit_code", "signal", "truncated"} <= msgspec.to_builtins(result).keys()


async def test_a_command_has_the_persons_keys_and_shell(tmp_path: Path) -> None:
    shell = tmp_path / "myshell"
    shell.write_text('#!/bin/sh\necho "$@ with $GH_TOKEN"\n')
    shell.chmod(0o755)
    context = context_in(tmp_path, SHELL=str(shell), GH_TOKEN="mine")
    assert (await execute(context, "gh pr list")).stdout == "-lc gh pr list with mine\n"


@pytest.mark.parametrize("shell", ["/no/such/shell", "sh", ""])
async def test_a_shell_that_is_not_executable_is_replaced_by_sh(tmp_path: Path, shell: str) -> None:
    assert (await execute(context_in(tmp_path, SHELL=shell), "echo $0")).stdout == "/bin/sh\n"


@pytest.mark.parametrize(
    ("command", "timeout", "cwd", "told"),
    [
        ("", None, None, "command is required"),
        (" \n\t", None, None, "command is required"),
        ("a\0b", None, None, "NUL"),
        ("true", 0, None, "timeout_seconds"),
        ("true", -1, None, "timeout_seconds"),
        ("true", float("nan"), None, "timeout_seconds"),
        ("true", None, "..", "cwd is outside sandbox root"),
        ("true", None, "out", "cwd is outside sandbox root"),
        ("true", None, "/", "cwd is outside sandbox root"),
        ("true", None, "missing", "No such"),
        ("true", None, "file", "Not a directory"),
    ],
)
async def test_invalid_params_are_refused_with_a_reason(
    tmp_path: Path, command: str, timeout: float | None, cwd: str | None, told: str
) -> None:
    context = context_in(tmp_path, **SH)
    (context.cwd / "out").symlink_to(tmp_path)
    (context.cwd / "file").touch()
    with pytest.raises(BadShellParams, match=told):
        await execute(context, command, timeout, cwd)


async def test_a_directory_whose_name_begins_with_dots_is_inside(tmp_path: Path) -> None:
    context = context_in(tmp_path, **SH)
    (context.cwd / "..foo").mkdir()
    result = await execute(context, "pwd", 1e9, "..foo")
    assert result.stdout == f"{context.cwd / '..foo'}\n"


async def test_a_command_that_times_out_is_killed_and_reported(tmp_path: Path) -> None:
    result = await execute(context_in(tmp_path, **SH), "echo begun; exec sleep 60", 0.1)
    assert (result.timed_out, result.exit_code, result.signal) == (True, None, "SIGTERM")
    assert result.stdout == "begun\n"
    assert 900 < result.duration_ms < 5000, "a timeout below one second is one second"


async def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    result = await run(tmp_path, "trap '' TERM; echo $$; while :; do sleep 60; done", 0.2)
    assert (result.timed_out, result.signal) == (True, "SIGKILL")
    assert gone(int(result.stdout))


async def test_a_command_that_exits_after_its_timeout_has_no_exit_code(tmp_path: Path) -> None:
    result = await run(tmp_path, "trap 'exit 0' TERM; sleep 60 & wait", 0.2)
    assert (result.timed_out, result.exit_code, result.signal) == (True, None, None)


async def test_background_processes_are_killed(tmp_path: Path) -> None:
    result = await execute(context_in(tmp_path, **SH), "sleep 60 & echo $!")
    assert result.exit_code == 0
    assert result.duration_ms < 50_000
    assert gone(int(result.stdout))


async def test_a_command_that_writes_too_much_is_killed(tmp_path: Path) -> None:
    ran = await command_runner.run_command(
        ["/usr/bin/env", "yes"], env=os.environ, cwd=tmp_path, seconds=20, most_bytes=100_001
    )
    assert (ran.overflowed, ran.timed_out, ran.exit_code) == (True, False, None)
    assert len(ran.stdout) == 100_001


async def test_standard_input_is_closed(tmp_path: Path) -> None:
    assert (await execute(context_in(tmp_path, **SH), "cat; echo done")).stdout == "done\n"


async def test_a_character_written_in_two_pieces_is_decoded_as_one(tmp_path: Path) -> None:
    command = r"printf '\342'; sleep 0.1; printf '\202'; sleep 0.1; printf '\254'"
    assert (await execute(context_in(tmp_path, **SH), command)).stdout == "€"


@pytest.mark.each_loop
async def test_a_cancelled_command_has_ended_with_its_whole_tree(tmp_path: Path) -> None:
    context = context_in(tmp_path, **SH)
    os.mkfifo(tmp_path / "pids")
    command = f"(sleep 61 & setsid sleep 62 & echo $$ $!; wait) > {tmp_path / 'pids'}"
    task = asyncio.ensure_future(execute(context, command))
    line = await asyncio.to_thread(_first, tmp_path)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # a second cancel does not shorten the cleanup
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(gone(int(pid)) for pid in line.split())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize("then", ["sleep 60", "exit"])
async def test_a_daemon_that_hides_is_killed_too(tmp_path: Path, then: str) -> None:
    """The daemon has left the session, lost its parent and cleared its environment."""
    os.mkfifo(tmp_path / "pids")
    daemon = f"(sh -c 'echo $$ > {tmp_path}/pids; exec sleep 61') & exit"
    command = f'setsid env -i /bin/sh -c "{daemon.replace("$", chr(92) + "$")}"; {then}'
    task = asyncio.ensure_future(execute(context_in(tmp_path, **SH), command))
    pid = int(await asyncio.to_thread(_first, tmp_path))
    if then == "exit":
        assert (await task).exit_code == 0
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert gone(pid)


def _first(directory: Path) -> str:
    with (directory / "pids").open() as pipe:
        return pipe.readline()


async def test_a_long_output_is_cut_and_cached_whole_without_secrets(tmp_path: Path) -> None:
    context = context_in(tmp_path, **SH)
    command = (
        "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); done; echo password=hunter22; echo >&2"
    )
    result = await execute(context, command)
    lines = lines_of(result.stdout)
    assert lines[79:82] == ["79", "...[41 lines omitted]...", "121"]
    assert lines[-1] == "password=hunter22", "the result for the person is not redacted"
    assert (result.truncated.stdout, result.truncated.stderr) == (True, False)
    assert result.truncated.combined
    assert result.stderr_cache_id is None
    id = result.stdout_cache_id
    assert id is not None
    assert id.endswith("_stdout")
    kept = (tmp_path / "cache" / f"{id}.txt").read_text()
    assert lines_of(kept)[:200] == [str(at) for at in range(200)]
    assert "hunter22" not in kept
    assert (tmp_path / "cache" / f"{id}.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", ["a file", "a file/below"])
async def test_a_command_returns_its_result_even_if_its_output_cannot_be_cached(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "a file").touch()
    cache = OutputCache(tmp_path / place, Redactor())
    context = replace(context_in(tmp_path, **SH), cache=cache)
    result = await execute(context, "yes | head -500; touch done")
    assert (result.exit_code, result.truncated.stdout) == (0, True)
    assert result.stdout_cache_id is None
    assert "\n[the rest could not be cached: " in result.stdout
    told = await call(context, "shell", command="yes | head -500")
    assert not told.is_error
    assert "[the rest could not be cached: " in told.text

    async def talk(arguments: object, context: ToolContext) -> ToolResult:
        return ToolResult("x" * 300_000)

    foreign = AgentTool("talk", "From a plugin.", {"type": "object"}, msgspec.json.decode, talk)
    talked = await ToolRegistry([*TOOLS, foreign]).call("talk", {}, context)
    assert "[the rest could not be cached: " in talked.text


async def test_a_long_command_is_shown_in_part(tmp_path: Path) -> None:
    result = await execute(context_in(tmp_path, **SH), "true " + "x" * 1000)
    assert result.command_preview == "true " + "x" * 395 + "...[truncated]"


async def test_a_signal_of_another_process_is_reported(tmp_path: Path) -> None:
    result = await execute(context_in(tmp_path, **SH), "kill -9 $$")
    assert (result.signal, result.exit_code, result.timed_out) == ("SIGKILL", None, False)
    assert signal.SIGKILL.name == result.signal


def test_exactly_the_limit_is_not_cut() -> None:
    text = "line\n" * 160
    assert excerpt(text) == (text, False)
    assert excerpt(text + "more")[1]


def test_a_text_of_few_long_lines_is_cut_by_size_between_characters() -> None:
    shown, cut = excerpt("€" * 30_000)
    begin, mark, end = shown.split("\n")
    assert cut
    assert mark == "...[truncated by size]..."
    assert set(begin + end) == {"€"}
    assert len(shown.encode()) <= 65_536 + len(mark) + 2


@given(st.text(alphabet="a€\n", max_size=2000).map(lambda text: text * 20))
def test_an_excerpt_is_bounded_and_begins_and_ends_as_the_text(text: str) -> None:
    shown, cut = excerpt(text, 4096)
    assert cut == (shown != text)
    assert len(shown.encode()) <= 4096 + 30
    assert len(lines_of(shown)) <= 163
    assert shown[:50] == text[:50]
    assert shown[-50:] == text[-50:]
