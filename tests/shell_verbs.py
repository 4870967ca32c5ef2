"""The verbs as a shell script would use them, on an automation server in the test's own process."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from telex.adapters.plugin_registry import builtin_plugins
from telex.adapters.server import AutomationServer
from telex.automation.verb_protocol import VerbOutput
from telex.rpc.identity import Identity
from telex.server.verb_calls import VerbCall, run_call
from telex.server.verbs import Verbs

ENVIRONMENT = {"LANG": "C.UTF-8", "PS1": "$ ", "HISTFILE": "/dev/null"}


CALLER = Identity("process", "bash", 42, os.getuid())


class Clock:
    """A clock that moves when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class ShellVerbs:
    """One caller. A call fails the test unless its exit code is the expected one. The program
    `parrot` says `ready` and repeats each line."""

    def __init__(
        self, server: AutomationServer, directory: Path, clock: Callable[[], float] | None
    ) -> None:
        self.server = server
        self.clock = Clock()
        self.verbs = Verbs(server, clock=clock or self.clock)
        self.cwd = str(directory)
        programs = directory.with_name(f"{directory.name}-programs")
        programs.mkdir()
        (programs / "parrot").write_text("#!/bin/sh\necho ready\nexec cat\n")
        (programs / "parrot").chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self.env = {**ENVIRONMENT, "PATH": path, "HOME": str(directory)}
        self.announced: list[float] = []

    async def run(self, *argv: str, stdin: str | None = None) -> VerbOutput:
        call = VerbCall(argv, self.cwd, self.env, stdin, CALLER)
        return await run_call(self.verbs, call, self.announced.append)

    async def __call__(self, *argv: str, stdin: str | None = None) -> str:
        """What a call that works prints."""
        result = await self.run(*argv, stdin=stdin)
        assert (result.code, result.stderr) == (0, ""), result
        return result.stdout

    async def json(self, *argv: str) -> Any:
        return json.loads(await self(*argv, "--json"))

    async def fails(self, code: int, *argv: str, stdin: str | None = None) -> str:
        """What a call that fails says."""
        result = await self.run(*argv, stdin=stdin)
        assert (result.code, result.stdout) == (code, ""), result
        assert result.stderr.startswith("telex: ")
        return result.stderr

    async def shell(self, *options: str) -> None:
        """Open bash with a short prompt, and wait for the prompt."""
        await self("open", *options, "--", "bash", "--norc", "--noprofile")
        await self("wait", "$")


@asynccontextmanager
async def opened_verbs(
    directory: Path, clock: Callable[[], float] | None = None
) -> AsyncIterator[ShellVerbs]:
    server = AutomationServer(builtin_plugins())
    telex = ShellVerbs(server, directory, clock)
    try:
        yield telex
    finally:
        await telex.verbs.close()
        await server.close()


Opening = Callable[..., AbstractAsyncContextManager[ShellVerbs]]
