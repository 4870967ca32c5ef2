"""The example plugins, each in its language without dependencies, and the plugins of `new`."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import click
import pytest

from telex.cli.plugin import LANGUAGES, skeleton, write_skeleton
from telex.plugins.check import CLAUSES, check
from telex.plugins.check.bench import CheckedProcess, CheckReport, ClauseResult

EXAMPLES = Path(__file__).parent.parent.parent / "examples/plugins"
RUN_BY = {
    "greet.sh": "sh",
    "greet.mjs": "node",
    "greet.py": "python3",
    "counter.py": sys.executable,
}
LETTERS = 'Zoë "q" \\ 漢 😀'
GREETING = {"name": LETTERS, "loud": False}


@asynccontextmanager
async def started(*argv: str) -> AsyncIterator[CheckedProcess]:
    subject = await CheckedProcess.start(argv, dict(os.environ), 10.0)
    try:
        await subject.result("handshake", {"protocol": "rpp", "protocolVersion": 0})
        await subject.result("initialize", {"logging": {"enabled": True, "level": "info"}})
        yield subject
    finally:
        await subject.close()


def pairs(values: dict[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def logged(subject: CheckedProcess) -> list[str]:
    return [said["params"]["msg"] for said in subject.received if said.get("method") == "log"]


def broken(report: CheckReport) -> list[str]:
    return [
        f"{one.clause.id}: {one.seen}"
        for one in report.outcomes
        if one.result is ClauseResult.FAILED
    ]


@pytest.mark.parametrize(
    ("name", "command"),
    [("greet.sh", "hello"), ("greet.mjs", "hello"), ("greet.py", "hello"), ("counter.py", "count")],
)
async def test_every_example_passes_the_check(
    name: str, command: str, program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(RUN_BY[name])
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    report = await check(EXAMPLES / name, seconds=10.0, command=command)
    assert not broken(report), report.stderr
    untried = {one.clause.id for one in report.outcomes if one.result is ClauseResult.UNTRIED}
    gated = {"progress", "progress.unasked", "cancel", "tools.list", "tools.unknown"}
    assert untried == (set() if name == "counter.py" else gated)


@pytest.mark.parametrize(
    "argv", [("sh",), ("bash", "--posix"), ("node",), ("python3",)], ids=" ".join
)
async def test_every_example_greets_and_writes_any_letters(
    argv: tuple[str, ...], tmp_path: Path, program: Callable[[str], str]
) -> None:
    program(argv[0])
    ending = {"node": "mjs", "python3": "py"}.get(argv[0], "sh")
    async with started(*argv, str(EXAMPLES / f"greet.{ending}")) as subject:
        config = pairs(GREETING)
        await subject.result("setupCommand", {"name": "hello", "args": [], "config": config})
        await subject.result("runCommand", {"name": "hello"})
        await subject.result("runCommand", {"name": "hello"})
        loud = {"name": "hello", "args": [], "config": pairs({"loud": True})}
        await subject.result("setupCommand", loud)
        await subject.result("runCommand", {"name": "hello"})
        assert logged(subject) == [f"Hello, {LETTERS}!", "Hello, world!", "HELLO, WORLD!"]
        text = f"{LETTERS}\n\ttwo lines\n"
        task = {"type": "write", "dir": str(tmp_path)}
        written = pairs({"path": "a b.txt", "text": text})
        await subject.result("validateTask", {**task, "config": written})
        await subject.result("runTask", {**task, "config": written})
        assert (tmp_path / "a b.txt").read_text() == text
        assert await subject.refusal("validateTask", {**task, "config": []}) == -32050
        missing = pairs({"path": "no/such/place", "text": ""})
        assert await subject.refusal("runTask", {**task, "config": missing}) == -32005
        # The same characters as escapes, as many programs write them.
        escaped = r'"\u005a\u006f\u00eb \"q\" \\ \u6f22 \ud83d\ude00"'
        body = '{"params":{"config":[{"value":%s,"key":"name"}],"name":"hello"},"id":"e","method":"runCommand","jsonrpc":"2.0"}'
        content = (body % escaped).encode()
        subject.send(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        await subject.answer("e", "a command in escapes")
        assert logged(subject)[-1] == f"Hello, {LETTERS}!"


def test_new_writes_the_shell_and_node_examples() -> None:
    for language in ("shell", "node"):
        example = (EXAMPLES / LANGUAGES[language]).read_text()
        assert skeleton("greet", language) == example
        mine = skeleton("mine", language)
        assert mine != example
        assert mine.replace("mine", "greet") == example


async def test_a_new_plugin_in_python_passes_the_check(tmp_path: Path) -> None:
    write_skeleton(tmp_path / "mine", "mine", "python")
    some = ("handshake", "run", "tools.list", "stdout", "exit")
    clauses = [clause for clause in CLAUSES if clause.id in some]
    report = await check(tmp_path / "mine", seconds=10.0, command="hello", clauses=clauses)
    assert not broken(report), report.stderr
    assert (report.name, report.version) == ("mine", "1")
    with pytest.raises(click.ClickException, match="exists already"):
        write_skeleton(tmp_path / "mine", "mine", "shell")
