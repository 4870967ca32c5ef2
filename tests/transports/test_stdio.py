"""Standard input and output as a channel: reserved for the protocol, and restored afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any, BinaryIO

import pytest

SERVER = """
import asyncio, sys
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports.channels import FRAMINGS
from telex.transports.stdio import open_stdio

async def later(params: dict[str, int]) -> int:
    await asyncio.sleep(0.01)
    return params["n"]

def noisy(params: dict[str, int]) -> int:
    print("stray output")
    return params["n"]

async def main() -> None:
    methods = Methods()
    methods.add("later", later)
    methods.add("noisy", noisy)
    async with open_stdio(FRAMINGS[sys.argv[1]]) as channel:
        async with Peer(channel, JsonRpc(), methods) as peer:
            await peer.closed()
    print('after the channel, stdout is stdout again')

if sys.argv[2] == "uvloop":
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
"""
AFTER = b"after the channel, stdout is stdout again\n"


class Program:
    """A server on stdio, on one kind of event loop."""

    def __init__(self, loop: str) -> None:
        self.loop = loop

    def command(self, framing: str = "ndjson", source: str = SERVER) -> list[str]:
        return [sys.executable, "-c", source, framing, self.loop]

    def run(self, framing: str = "ndjson", **streams: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.command(framing), check=True, timeout=60, **streams)


@pytest.fixture(params=["asyncio", "uvloop"])
def server(request: pytest.FixtureRequest) -> Program:
    return Program(request.param)


def line(id: int, method: str) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {"n": id}}
    return json.dumps(message).encode() + b"\n"


def answers(output: bytes) -> dict[int, int]:
    return {answer["id"]: answer["result"] for answer in map(json.loads, output.splitlines())}


def test_requests_still_open_at_the_end_of_input_are_answered(server: Program) -> None:
    done = server.run(input=line(1, "later") + line(2, "later"), stdout=subprocess.PIPE)
    assert answers(done.stdout.removesuffix(AFTER)) == {1: 1, 2: 2}


def test_stray_prints_land_on_stderr_and_not_between_frames(server: Program) -> None:
    done = server.run(input=line(1, "noisy"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert answers(done.stdout.removesuffix(AFTER)) == {1: 1}
    assert b"stray output" in done.stderr


def test_lsp_framing_is_framing_on_the_same_streams(server: Program) -> None:
    body = line(1, "later").strip()
    done = server.run(
        "lsp", input=b"Content-Length: %d\r\n\r\n%b" % (len(body), body), stdout=subprocess.PIPE
    )
    head, _, rest = done.stdout.removesuffix(AFTER).partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(rest)
    assert json.loads(rest)["result"] == 1


@pytest.mark.parametrize("source", ["file", "null"])
def test_input_that_is_not_a_pipe_is_read_too(server: Program, tmp_path: Path, source: str) -> None:
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    requests.write_bytes(b"".join(line(n, "later") for n in range(1000)))
    with (
        open(requests if source == "file" else os.devnull, "rb") as stdin,
        replies.open("wb") as stdout,
    ):
        server.run(stdin=stdin, stdout=stdout)
    expected = {n: n for n in range(1000)} if source == "file" else {}
    assert answers(replies.read_bytes().removesuffix(AFTER)) == expected


def test_output_to_a_full_disk_ends_the_channel_and_not_the_program(server: Program) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            server.command(source=SERVER.replace("    print('after", "    ('after")),
            input=line(1, "later"),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert b"Traceback" not in done.stderr


def test_a_reader_that_closes_ends_the_channel(server: Program) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(server.command(), stdin=subprocess.PIPE, stdout=writing)
    os.close(writing)
    os.close(reading)
    assert process.stdin is not None
    process.stdin.write(line(1, "later"))
    process.stdin.flush()
    process.wait(timeout=60)
    process.stdin.close()


def test_a_terminal_is_left_in_blocking_mode(server: Program) -> None:
    master, slave = os.openpty()
    try:
        process = subprocess.Popen(server.command(), stdin=slave, stdout=slave)
        os.write(master, line(1, "later"))
        seen = b""
        while b'"result":1' not in seen:
            seen += os.read(master, 4096)
        os.write(master, b"\x04")
        process.wait(timeout=60)
        assert os.get_blocking(slave)
    finally:
        os.close(master)
        os.close(slave)


def test_a_request_typed_at_a_terminal_is_answered_there(server: Program) -> None:
    """Input and output are one terminal: the writer must not read the input."""
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    with subprocess.Popen(server.command(), stdin=slave, stdout=slave) as process:
        os.close(slave)
        with open(master, "r+b", buffering=0) as terminal:
            for number in range(1, 21):
                terminal.write(line(number, "later"))
                assert answers(_read_line(terminal)) == {number: number}
            terminal.write(b"\x04")
            assert process.wait(60) == 0


def _read_line(terminal: BinaryIO) -> bytes:
    text = b""
    while not text.endswith(b"\n"):
        text += terminal.read(1)
    return text
