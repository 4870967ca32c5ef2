"""Run one command to its end: its output, its exit status, and why it was killed if it was.

A command leads its own process group, and its standard input is /dev/null. The call ends when the
command itself has exited. Its background processes are killed then, and also at a timeout, when the
output limit is reached, or when the call is cancelled. No process of the command runs when
`run_command` returns or raises: on Linux not even a daemon that left the process group, lost its
parent and cleared its environment. (A daemon that did all that and killed its `reaper` before
cannot be found.)

Output is collected as bytes and decoded once, so that no character is split between two reads. The
agent's own commands (the tools `shell` and `search`) run in `agent_environment`; `shell_exec` runs
commands of the person.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import uuid
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM, Signals
from typing import TYPE_CHECKING, Final

from telex.agent.excerpts import clipped, excerpt
from telex.agent.limits import (
    AGENT_COMMAND_PREVIEW_CHARS,
    AGENT_SHELL_GRACE_SECONDS,
    AGENT_SHELL_MOST_SECONDS,
    AGENT_SHELL_OUTPUT_BYTES,
    AGENT_SHELL_SECONDS,
)
from telex.agent.protocol import sessions
from telex.agent.sandbox_files import OutsideSandbox
from telex.config.errors import ConfigError
from telex.processes import spawn
from telex.processes.child_environment import child_environment
from telex.processes.shielded import run_in_thread, run_shielded
from telex.processes.termination import Rung
from telex.wire.limits import KIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from telex.agent.sandbox_files import Sandbox
    from telex.agent.tools.output_cache import OutputCache
    from telex.processes.child import Child, Exit
    from telex.processes.sandbox import Confinement
    from telex.processes.termination import Ladder
    from telex.redaction import Redactor


_LADDER: Final[Ladder] = (Rung(SIGTERM, AGENT_SHELL_GRACE_SECONDS), Rung(SIGKILL, 5.0))
_READ_BYTES: Final = 256 * KIB


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output and exit status of a command that has ended."""

    stdout: str
    stderr: str
    exit_code: int | None
    """None if the command was killed, by telex or by another signal."""
    signal: str | None
    timed_out: bool
    overflowed: bool
    """The command wrote more than `AGENT_SHELL_OUTPUT_BYTES` and was killed."""
    duration_ms: int


async def run_command(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    seconds: float,
    confinement: Confinement | None = None,
    most_bytes: int = AGENT_SHELL_OUTPUT_BYTES,
) -> CommandResult:
    """Run a command, and wait until none of its processes runs.

    Args:
        seconds: The timeout, after which the command is killed.
        confinement: The kernel sandbox for its processes.
        most_bytes: Output after which the command is killed.

    Raises:
        spawn.StartFailed: The program cannot be started.
        TreeSurvived: A process of the command cannot be killed.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    child = spawn.start(
        argv,
        stdio=spawn.Pipes(stdin=spawn.PipeEnd.NULL),
        env=env,
        cwd=str(cwd),
        reaping=True,
        confinement=confinement,
    )
    streams = _Streams(child, most_bytes)
    exited = asyncio.ensure_future(child.wait())
    ends: set[asyncio.Future[Exit] | asyncio.Future[None]] = {exited, streams.full}
    try:
        done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        exited.cancel()
        await run_shielded(_end(child, streams))
    stdout, stderr = streams.text()
    code, signal = _exit_status(child.exit)
    return CommandResult(
        stdout,
        stderr,
        code if exited in done else None,
        signal,
        timed_out=not done,
        overflowed=streams.overflowed,
        duration_ms=round((loop.time() - began) * 1000),
    )


async def _end(child: Child, streams: _Streams) -> None:
    try:
        await child.end(_LADDER)
        streams.drain()
    finally:
        streams.close()


def _exit_status(ended: Exit | None) -> tuple[int | None, str | None]:
    if ended is None or ended.signal is None:
        return (None, None) if ended is None else (ended.code, None)
    names = {known.value: known.name for known in Signals}
    return None, names.get(ended.signal, f"signal {ended.signal}")


class _Streams:
    """Collects the two output streams of a child, up to a common limit."""

    def __init__(self, child: Child, most_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._files = [file for file in (child.stdout, child.stderr) if file is not None]
        self._chunks: list[list[bytes]] = [[] for _ in self._files]
        self._left = most_bytes
        self.full: asyncio.Future[None] = self._loop.create_future()
        self.overflowed = False
        for at, file in enumerate(self._files):
            self._loop.add_reader(file.fileno(), self._read, at)

    def _read(self, at: int) -> bool:
        """Read what is available. Return False at EOF."""
        fd = self._files[at].fileno()
        data = os.read(fd, _READ_BYTES)
        if not data or self.overflowed:
            self._loop.remove_reader(fd)
            return False
        self._chunks[at].append(data[: self._left])
        if len(data) > self._left:
            self.overflowed = True
            if not self.full.done():
                self.full.set_result(None)
        self._left = max(0, self._left - len(data))
        return True

    def drain(self) -> None:
        """Read the rest of the output, after all writers have been killed."""
        for at in range(len(self._files)):
            with contextlib.suppress(BlockingIOError):  # an escaped process holds the other end
                while self._read(at):
                    pass

    def text(self) -> list[str]:
        return [b"".join(chunks).decode("utf-8", "replace") for chunks in self._chunks]

    def close(self) -> None:
        self.full.cancel()
        for file in self._files:
            self._loop.remove_reader(file.fileno())
            file.close()


_SECRET: Final = re.compile(
    r"(?:^|_)(?:API)?KEY(?:S|_ID)?$|(?:^|_)(?:PAT|AUTH|PWD|PW)$"
    r"|(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|COOKIE)S?$",
    re.IGNORECASE,
)
_PLAIN: Final = ("PWD",)
_SHELL: Final = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|IFS|CDPATH|GLOBIGNORE|BASH_FUNC_.*"
)


def agent_environment(parent: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Return the person's environment without secrets, for a command of the agent. Pure.

    A language model needs no key to run the tests, and a prompt injection cannot make it send a
    secret that it cannot read. So a variable is left out if its name is that of a secret (`*_KEY`,
    `*_TOKEN`, `PGPASSWORD`), or if the redactor recognizes its value (`DATABASE_URL` with a
    password in it). Variables that would make a shell run code before the command, or read it
    differently, are left out too: permission was given for the command as it was shown.
    """
    return {
        name: value
        for name, value in child_environment(parent).items()
        if not is_secret_variable(name, value, redactor) and not _SHELL.fullmatch(name)
    }


def is_secret_variable(name: str, value: str, redactor: Redactor) -> bool:
    """Whether the name is that of a secret, or the value looks like one. Pure."""
    if name in _PLAIN:
        return False
    return _SECRET.search(name) is not None or bool(redactor.spans(value))


_PLAIN_SHELL: Final = "/bin/sh"


class BadShellParams(ValueError):
    """Parameters of a command that cannot be run; the message is for the caller (-32602)."""


async def shell_exec(
    command: str,
    timeout_seconds: float | None,
    cwd: str | None,
    *,
    sandbox: Sandbox,
    working_dir: Path,
    environment: Mapping[str, str],
    cache: OutputCache,
) -> sessions.ShellExecResult:
    """Run a command that the person typed, and return an excerpt of its output.

    It needs no permission, runs in the person's login shell, and has their whole environment:
    without its keys `gh` or `aws` would not work, and the person could have typed the command in
    any terminal. The result is for the person and is not redacted; the copy in the cache is. The
    whole output is cached only if the result is an excerpt.

    Raises `BadShellParams`, and the exceptions of `run_command`.
    """
    command = command.strip()
    if not command or "\0" in command:
        raise BadShellParams("command is required" if not command else "command contains a NUL")
    ran = await run_command(
        [_shell(environment), "-lc", command],
        env=child_environment(environment),
        cwd=_directory(sandbox, cwd, working_dir),
        seconds=bounded_seconds(timeout_seconds),
    )
    return await shell_result(command, ran, cache)


async def shell_result(
    command: str, ran: CommandResult, cache: OutputCache
) -> sessions.ShellExecResult:
    """Return excerpts of the output, and put the whole output in the cache. If it cannot be cached,
    the result says so: the command has run all the same."""
    id = uuid.uuid4().hex
    stdout, stdout_cut, stdout_id = await _excerpt_and_cache(ran.stdout, f"{id}_stdout", cache)
    stderr, stderr_cut, stderr_id = await _excerpt_and_cache(ran.stderr, f"{id}_stderr", cache)
    return sessions.ShellExecResult(
        command_preview=clipped(command, AGENT_COMMAND_PREVIEW_CHARS, "...[truncated]"),
        exit_code=ran.exit_code,
        signal=ran.signal,
        stdout=stdout,
        stderr=stderr,
        truncated=sessions.TruncatedStreams(
            stdout_cut, stderr_cut, stdout_cut or stderr_cut or ran.overflowed
        ),
        duration_ms=ran.duration_ms,
        stdout_cache_id=stdout_id,
        stderr_cache_id=stderr_id,
        timed_out=ran.timed_out,
        overflowed=ran.overflowed,
    )


async def _excerpt_and_cache(
    whole: str, id: str, cache: OutputCache
) -> tuple[str, bool, str | None]:
    """Return the text or an excerpt, whether it is an excerpt, and the cache id of the whole."""
    shown, cut = excerpt(whole)
    if not cut:
        return shown, cut, None
    try:
        await run_in_thread(lambda _: cache.save(id, whole))
    except (OSError, ConfigError) as error:
        return f"{shown}\n{not_kept_note(error)}", cut, None
    return shown, cut, id


def not_kept_note(error: OSError | ConfigError) -> str:
    why = error.strerror if isinstance(error, OSError) else error
    return f"[the rest could not be cached: {why}]"


def bounded_seconds(seconds: float | None) -> float:
    """Return the timeout of a command, limited to 1 to 300 s."""
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
        raise BadShellParams(f"cannot use cwd: {error.strerror}") from error


def _shell(environment: Mapping[str, str]) -> str:
    """Return the person's shell, or /bin/sh if `SHELL` is not an executable file."""
    shell = environment.get("SHELL", "")
    return shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else _PLAIN_SHELL
