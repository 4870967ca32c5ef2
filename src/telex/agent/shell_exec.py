"""`shell.exec`: a command of the person's own, run beside the agent, and answered with an excerpt.

The person typed it, so nobody is asked, it runs in their own shell as at a login, and it has their
whole environment: without its keys `gh` or `aws` would not work, and they could have typed it in
any terminal. (A command of the agent is the shell tool's business, and has no keys.) The result is
the person's too and is not redacted; what goes to the cache is.

The whole output is kept only where the answer has less than all of it. Used by the server.
"""

from __future__ import annotations

import math
import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent import commands
from telex.agent.excerpts import clipped, excerpt
from telex.agent.sandbox import OutsideSandbox
from telex.agent.uninterrupted import in_thread
from telex.config.errors import ConfigError
from telex.processes.child_environment import child_environment
from telex.wire.limits import (
    AGENT_COMMAND_PREVIEW_CHARS,
    AGENT_SHELL_MOST_SECONDS,
    AGENT_SHELL_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from telex.agent.output_cache import OutputCache
    from telex.agent.sandbox import Sandbox

_PLAIN_SHELL: Final = "/bin/sh"


class BadShellParams(ValueError):
    """Not a command that can be run; the sentence is for the caller (-32602)."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """Which streams are excerpts."""

    stdout: bool
    stderr: bool
    combined: bool
    """One of them is, or the command was ended because it wrote too much."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """The members of the answer. `timed_out` and `overflowed` are ours: without them, a command
    that was ended looks like one that somebody else killed."""

    command_preview: str
    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    truncated: Truncated
    duration_ms: int
    stdout_cache_id: str | None
    stderr_cache_id: str | None
    timed_out: bool
    overflowed: bool


async def shell_exec(
    command: str,
    timeout_seconds: float | None,
    cwd: str | None,
    *,
    sandbox: Sandbox,
    working_dir: Path,
    environment: Mapping[str, str],
    cache: OutputCache,
) -> ShellResult:
    """Raises `BadShellParams`, and what `commands.run` raises."""
    command = command.strip()
    if not command or "\0" in command:
        raise BadShellParams("command is required" if not command else "command holds a NUL")
    ran = await commands.run(
        [_shell(environment), "-lc", command],
        env=child_environment(environment),
        cwd=_directory(sandbox, cwd, working_dir),
        seconds=bounded(timeout_seconds),
    )
    return await answer(command, ran, cache)


async def answer(command: str, ran: commands.Ran, cache: OutputCache) -> ShellResult:
    """The excerpts, with the whole in the cache. Where that has no room, the command ran all the
    same, and an answer without it is still the answer."""
    id = uuid.uuid4().hex
    stdout, stdout_cut, stdout_id = await _kept(ran.stdout, f"{id}_stdout", cache)
    stderr, stderr_cut, stderr_id = await _kept(ran.stderr, f"{id}_stderr", cache)
    return ShellResult(
        command_preview=clipped(command, AGENT_COMMAND_PREVIEW_CHARS, "...[truncated]"),
        exit_code=ran.exit_code,
        signal=ran.signal,
        stdout=stdout,
        stderr=stderr,
        truncated=Truncated(stdout_cut, stderr_cut, stdout_cut or stderr_cut or ran.overflowed),
        duration_ms=ran.duration_ms,
        stdout_cache_id=stdout_id,
        stderr_cache_id=stderr_id,
        timed_out=ran.timed_out,
        overflowed=ran.overflowed,
    )


async def _kept(whole: str, id: str, cache: OutputCache) -> tuple[str, bool, str | None]:
    """An excerpt, whether it is one, and where the whole is."""
    shown, cut = excerpt(whole)
    if not cut:
        return shown, cut, None
    try:
        await in_thread(lambda _: cache.save(id, whole))
    except (OSError, ConfigError) as error:
        return f"{shown}\n{not_kept(error)}", cut, None
    return shown, cut, id


def not_kept(error: OSError | ConfigError) -> str:
    why = error.strerror if isinstance(error, OSError) else error
    return f"[the rest could not be kept: {why}]"


def bounded(seconds: float | None) -> float:
    """The time a command has: 1 to 300 s."""
    if seconds is None:
        return AGENT_SHELL_SECONDS
    if math.isnan(seconds) or seconds <= 0:
        raise BadShellParams("timeout_seconds must be more than 0")
    return min(max(seconds, 1.0), AGENT_SHELL_MOST_SECONDS)


def _directory(sandbox: Sandbox, cwd: str | None, working_dir: Path) -> Path:
    try:
        return sandbox.directory(cwd or ".", working_dir)
    except OutsideSandbox as error:
        raise BadShellParams(f"cwd is outside sandbox root: {error}") from error
    except OSError as error:
        raise BadShellParams(f"cwd cannot be entered: {error.strerror}") from error


def _shell(environment: Mapping[str, str]) -> str:
    """The person's, if it is a program; a login shell that is missing is no reason to fail."""
    shell = environment.get("SHELL", "")
    return shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else _PLAIN_SHELL
