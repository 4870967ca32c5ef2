"""The MCP server: tokens and processor time, beside terminal-mcp and an empty Python.

terminal-mcp needs another version of the MCP SDK than the tests, so it is installed at the first
run into an environment of its own, inside that of telex. Both servers are asked by the same client,
which speaks the handshake of 2025-06-18, and do the same ten steps.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import Row, in_turns
from benchmarks.verbs import token_counter

PEER = "terminal-mcp==0.4.7"
ROUNDS = 10
LINES = {
    "echo one": "one",
    "seq 5": "5",
    "uname -s": "Linux|Darwin",
    "python3 -q": ">>>",
    "6 * 7": "42",
    "exit()": "[$] ",
    "less /etc/hosts": "localhost",
    "q": "[$] ",
}
"""The steps between opening a shell and closing it, each with the pattern that is waited for."""
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def run() -> list[Row]:
    count, counter = token_counter()
    with tempfile.TemporaryDirectory() as directory:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": directory,
            "TELEX_HOME": directory,
            "TERM": "xterm-256color",
            "PS1": "$ ",
        }
        telex = [str(Path(sys.executable).parent / "telex")]
        try:
            rows = _processor_time([*telex, "mcp"], environ)
            with connected([*telex, "mcp"], environ) as ours:
                listed = count(_packed(ours.ask("tools/list")["tools"]))
                flow = count("\n".join(_telex_flow(ours)))
                batch = count("\n".join(_telex_batch(ours)))
        finally:
            subprocess.run([*telex, "server", "stop"], env=environ, check=False)
        theirs: tuple[float | None, float | None] = (None, None)
        if (peer := _installed_peer()) is not None:
            with connected([str(peer)], environ) as other:
                tools = count(_packed(other.ask("tools/list")["tools"]))
                theirs = tools, count("\n".join(_peer_flow(other)))
    name = f"terminal-mcp ({counter})"
    return [
        Row("tools/list", listed, "tokens", theirs[0], name, "<= 1200"),
        Row("ten steps, ten calls", flow, "tokens", theirs[1], name),
        Row("ten steps, three calls", batch, "tokens", theirs[1], name),
        *rows,
    ]


class McpProcess:
    """A server on standard input and output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._count = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._count:
                return dict(message["result"])

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def call(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """Call a tool; return the arguments and the text of the result, as a model sees them."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        text = "\n".join(block["text"] for block in result["content"])
        return _packed(arguments), text


@contextmanager
def connected(command: list[str], environ: dict[str, str]) -> Iterator[McpProcess]:
    """A server after its handshake."""
    with subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        server = McpProcess(process)
        server.ask("initialize", **HELLO)
        server.send({"method": "notifications/initialized"})
        yield server
        assert process.stdin is not None
        process.stdin.close()


def _packed(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _telex_steps(line: str) -> list[list[str]]:
    typed = ["press", line] if line == "q" else ["type", line, "--enter"]
    return [typed, ["wait", "--regex", LINES[line]]]


def _telex_flow(server: McpProcess) -> Iterator[str]:
    yield from server.call("telex_open", command=["bash", "--norc"])
    for line in LINES:
        yield from server.call("telex_do", steps=_telex_steps(line))
    yield from server.call("telex_close")


def _telex_batch(server: McpProcess) -> Iterator[str]:
    yield from server.call("telex_open", command=["bash", "--norc"])
    steps = [step for line in LINES for step in _telex_steps(line)]
    yield from server.call("telex_do", steps=[*steps, ["see"]])
    yield from server.call("telex_close")


def _peer_flow(server: McpProcess) -> Iterator[str]:
    asked, opened = server.call("session_create", command="bash --norc")
    yield from (asked, opened)
    id = json.loads(opened)["session_id"]
    for line, pattern in LINES.items():
        more: dict[str, Any] = {"press_enter": False} if line == "q" else {}
        asks = {"session_id": id, "input": line, "wait_for": pattern, **more}
        yield from server.call("session_interact", **asks)
    yield from server.call("session_close", session_id=id)


def _processor_time(command: list[str], environ: dict[str, str]) -> list[Row]:
    """From the start to the first answer: with a server that runs, and with one to start."""
    contestants: dict[str, Callable[[], float]] = {
        "mcp": lambda: _spent(command, environ, _first_answer),
        "python": lambda: _spent([sys.executable, "-c", "pass"], environ, lambda process: None),
    }
    began = time.perf_counter()
    _spent(command, environ, _first_answer)
    cold = time.perf_counter() - began
    measured = in_turns(contestants, ROUNDS)
    ours, bare = (statistics.median(measured[name]) for name in ("mcp", "python"))
    return [
        Row(
            "telex mcp to its first answer, processor", ours, "ms", bare, "python -c pass", "<= 250"
        ),
        Row("telex mcp to its first answer, time with a new server", cold * 1000, "ms"),
    ]


def _first_answer(process: subprocess.Popen[str]) -> None:
    McpProcess(process).ask("initialize", **HELLO)


def _spent(
    command: list[str], environ: dict[str, str], use: Callable[[subprocess.Popen[str]], None]
) -> float:
    """Return the milliseconds of processor time of one process."""
    process = subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    use(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return (usage.ru_utime + usage.ru_stime) * 1000


def _installed_peer() -> Path | None:
    """Return the command of terminal-mcp; None if it cannot be installed."""
    place = Path(sys.prefix) / ".peers" / PEER
    command = place / "bin" / "terminal-mcp"
    if not command.exists():
        venv.create(place, with_pip=True)
        pip = [str(place / "bin" / "pip"), "install", "--quiet", PEER]
        if subprocess.run(pip, check=False).returncode:
            return None
    return command
