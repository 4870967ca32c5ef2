"""The tool shell: runs a command of the agent without the person's keys, and in the kernel's
sandbox unless the person approved the command.

The command runs with bash or sh, not in the person's shell and not as a login shell, unlike
`shell_exec`. Permission was given to a text that was parsed by the rules of `sh`; zsh or fish may
read the same text differently (a pattern of zsh can run code). And a login profile would set the
removed keys again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent import command_runner
from telex.agent.command_runner import agent_environment, bounded_seconds, shell_result
from telex.agent.permissions.confinement import describe_confinement, was_refused_by_kernel
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from telex.agent.command_runner import CommandResult
    from telex.agent.protocol.sessions import ShellExecResult

_SHELLS: Final = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


class ShellArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run a command with bash, or with sh if there is no bash. Its standard input is empty, its
    timeout is 120 seconds by default, and its background processes are killed when it ends."""

    command: Annotated[str, Meta(min_length=1)]
    label: Annotated[str, Meta(max_length=80, description="What it is for.")] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, description="1 to 300.")] | None = None
    cwd: Annotated[str, Meta(description="A directory inside the sandbox root.")] = "."
    outside_sandbox: Annotated[
        bool,
        Meta(
            description="Ask the person to run it outside the kernel's sandbox. Commands that need "
            "no question run inside it."
        ),
    ] = False


async def _shell(asked: ShellArguments, context: ToolContext) -> ToolResult:
    if not asked.command.strip() or "\0" in asked.command:
        raise ToolFailed("command is empty or contains a NUL")
    program = next((path for path in _SHELLS if os.access(path, os.X_OK)), "/bin/sh")
    ran = await command_runner.run_command(
        [program, "-c", asked.command],
        env=agent_environment(context.environment, context.redactor),
        cwd=context.sandbox.directory(asked.cwd, context.cwd),
        seconds=bounded_seconds(asked.timeout_seconds),
        confinement=context.confinement,
    )
    # Redacted before it is cut, because half a secret is not recognized.
    safe = await run_in_thread(lambda _: _redacted(ran, context))
    result = await shell_result(asked.command, safe, context.cache)
    details = {
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "duration_ms": result.duration_ms,
        "stdout_cache_id": result.stdout_cache_id,
        "stderr_cache_id": result.stderr_cache_id,
        "kernel_sandbox": context.confinement is not None,
    }
    notes = _sandbox_notes(ran, context)
    return ToolResult(_message_text(result, notes), is_error=result.exit_code != 0, details=details)


def _redacted(ran: CommandResult, context: ToolContext) -> CommandResult:
    redact = context.redactor.redact
    return replace(ran, stdout=redact(ran.stdout), stderr=redact(ran.stderr))


def _sandbox_notes(ran: CommandResult, context: ToolContext) -> list[str]:
    """Return notes about the kernel's sandbox if it may be the reason why a command failed.

    The kernel does not report what refused an access, and programs report a missing network in
    their own words, so this is a guess.
    """
    held = context.confinement
    if held is None:
        return []
    limits = describe_confinement(held, context.sandbox.root)
    sandboxed = f"this command ran without a question to the person, so it {limits}"
    if was_refused_by_kernel(ran, context.environment):
        return [
            "an access was refused, by the kernel's sandbox unless file modes refuse it as well",
            sandboxed,
            'call shell again with "outside_sandbox": true to ask the person',
        ]
    return [sandboxed] if ran.exit_code != 0 and ran.stderr else []


def _message_text(result: ShellExecResult, sandbox_notes: list[str]) -> str:
    notes = [
        f"the whole {stream} is in the tool output cache: {id}"
        for stream, id in (("stdout", result.stdout_cache_id), ("stderr", result.stderr_cache_id))
        if id is not None
    ]
    parts = [result.stdout.rstrip("\n")]
    if result.stderr:
        parts += ["[stderr]", result.stderr.rstrip("\n")]
    if not (result.stdout or result.stderr):
        notes.insert(0, "no output")
    if ending := _ending(result):
        notes.append(ending)
    notes += sandbox_notes
    return "\n".join([*filter(None, parts), *(f"[{note}]" for note in notes)])


def _ending(result: ShellExecResult) -> str:
    if result.timed_out:
        return f"timed out and killed after {result.duration_ms / 1000:.1f} s"
    if result.overflowed:
        return "killed because it wrote too much"
    if result.signal is not None:
        return f"killed by {result.signal}"
    return f"exit code {result.exit_code}" if result.exit_code else ""


SHELL: Final = tool("shell", ShellArguments, _shell)
