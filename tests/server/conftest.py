"""`telex` with a server of its own, and verbs on an automation server in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from server.mcp_clients import McpSite, mcp_site
from shell_verbs import Opening, opened_verbs
from telex.config.runtime_directory import SOCKET_NAME, find_runtime_directory
from telex.processes.leftovers import end_leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60


class Telex:
    """Runs `telex` in an environment whose server is its own."""

    def __init__(self, home: Path, work: Path) -> None:
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(work),
            "TELEX_HOME": str(home),
            "TERM": "xterm",
        }
        self.work = work
        self.runtime = Path(find_runtime_directory(self.environ))
        self.socket = self.runtime / SOCKET_NAME

    def start(self, *args: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "telex", *args],
            env=self.environ | more,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *args: str, **more: str) -> CompletedProcess[str]:
        with self.start(*args, **more) as child:
            out, err = child.communicate(timeout=SECONDS)
            return CompletedProcess(args, child.returncode, out, err)

    def servers(self) -> list[int]:
        """The pids of the servers of this environment, in any state but ended."""
        mark = f"TELEX_HOME={self.environ['TELEX_HOME']}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                try:
                    words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
                    variables = Path("/proc", entry, "environ").read_bytes().split(b"\0")
                    if b"--on-demand" in words and mark in variables:
                        found.append(int(entry))
                except OSError:
                    continue
        return found


@pytest.fixture
def telex(tmp_path: Path) -> Iterator[Telex]:
    """A `telex` of its own. Its server and every program of it are ended after the test."""
    work = tmp_path / "work"
    work.mkdir()
    one = Telex(tmp_path / "home", work)
    yield one
    for pid in one.servers():
        process = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(process, signal.SIGCONT)
            signal.pidfd_send_signal(process, signal.SIGTERM)
            _wait(process)
        finally:
            os.close(process)
    end_leftovers(str(one.runtime))


def _wait(process: int) -> None:
    import select

    poll = select.poll()
    poll.register(process, select.POLLIN)
    assert poll.poll(SECONDS * 1000), "the server did not end"


@pytest.fixture
def verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opening:
    """`async with verbs() as telex: await telex("open", "--", "bash")`.

    Programs have longer to react than for a person: a test must not depend on the machine's speed.
    """
    monkeypatch.setattr("telex.server.verbs.REACTION_SECONDS", 15.0)
    return partial(opened_verbs, tmp_path)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpSite]:
    """A server for MCP clients, at a unix socket and by HTTP."""
    yield from mcp_site(tmp_path_factory.mktemp("mcp"))
