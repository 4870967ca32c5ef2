"""Every example of the Python reference runs, and every public name is described."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from scripts.render_python import SECTIONS, Documented, documented

import telex
from serving import Serve, serving, telex_child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = [
    "sh",
    "-c",
    r"printf '\033]2;demo\007version 12 ready\r\n'; cat",
]
"""Shows what the examples of a terminal wait for; the cursor is at the start of row 1."""
EXAMPLES = [
    pytest.param(one, code, id=f"{one.name}-{number}")
    for one in documented()
    for number, code in enumerate(one.examples())
] + [
    pytest.param(Documented(section.title, section), section.example, id=section.title)
    for section in SECTIONS
    if section.example
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    with serving(tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an agent that has a session."""
    work = tmp_path_factory.mktemp("agent")
    environ = {**os.environ, "TELEX_HOME": str(work / "home")}
    with telex_child(environ, work, "agent", "--socket", "a.sock") as child:
        assert child.stderr is not None
        assert "listening" in child.stderr.readline()
        address = f"unix:{os.path.relpath(work / 'a.sock')}"
        with telex.agent.connect(address) as here:
            here.run_start("help").wait()
        yield address


@pytest.mark.parametrize(("one", "code"), EXAMPLES)
def test_the_example_runs(
    one: Documented,
    code: str,
    server: Serve,
    agent: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names that an example takes for granted are what the page says they are: `term` is a
    terminal, `server` a connection, `agent` a client of an agent. `unix:` is the address of a
    server."""
    agent = f"unix:{os.path.abspath(agent.removeprefix('unix:'))}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TELEX_HOME", str(tmp_path / "home"))
    code = code.replace('"unix:"', repr(server.unix))
    code = code.replace('"unix:/run/user/1000/agent.sock"', repr(agent))
    names: dict[str, Any] = {"telex": telex, "sys": sys, "asyncio": asyncio}
    if _needs_loop(code):
        asyncio.run(_run_in_loop(code, names, agent))
        return
    if _assumes(code, "term"):
        with telex.spawn(PROGRAM) as term:
            term.wait("ready")
            exec(compile(code, one.name, "exec"), {**names, "term": term})
    elif _assumes(code, "server"):
        with telex.connect(server.unix) as there:
            exec(compile(code, one.name, "exec"), {**names, "server": there})
    elif _assumes(code, "agent"):
        with telex.agent.connect(agent) as here:
            exec(compile(code, one.name, "exec"), {**names, "agent": here})
    elif _assumes(code, "shell"):
        with telex.adapt("shell") as shell:
            exec(compile(code, one.name, "exec"), {**names, "shell": shell})
    else:
        exec(compile(code, one.name, "exec"), names)


async def _run_in_loop(code: str, names: dict[str, Any], agent: str) -> None:
    source = f"async def example():\n{textwrap.indent(code, '    ')}"
    exec(compile(source, "example", "exec"), names)
    if _assumes(code, "term"):
        async with telex.spawn(PROGRAM) as term:
            await term.wait("ready")
            names["term"] = term
            await names["example"]()
    elif _assumes(code, "agent"):
        async with telex.agent.connect(agent) as names["agent"]:
            await names["example"]()
    else:
        await names["example"]()


def _needs_loop(code: str) -> bool:
    """Whether the code awaits outside of a function, as the examples of asyncio do."""
    try:
        compile(code, "example", "exec")
    except SyntaxError:
        return True
    return False


def _assumes(code: str, name: str) -> bool:
    """Whether the code reads a name that it does not make itself."""
    tree = ast.parse(f"async def example():\n{textwrap.indent(code, '    ')}")
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    made = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return name in used - made


@pytest.mark.parametrize("one", [*documented()], ids=lambda one: one.name)
def test_a_public_name_is_described_with_its_parameters(one: Documented) -> None:
    assert len(one.doc.split()) >= 3, f"{one.name} needs a docstring"
    if inspect.isfunction(one.value):
        named = {name for name in inspect.signature(one.value).parameters if name != "self"}
        section = one.doc.partition("Args:")[2].partition("\n\n")[0]
        listed = {line.split(":")[0].strip(" *") for line in section.splitlines() if ":" in line}
        assert named <= listed, f"{one.name} does not describe {named - listed}"


def test_every_public_name_is_on_the_page() -> None:
    on_page = {one.name for one in documented()}
    modules = {"agent", "escapes", "htty", "match", "plugins", "recordings", "__version__"}
    assert {f"telex.{name}" for name in telex.__all__ if name not in modules} <= on_page
