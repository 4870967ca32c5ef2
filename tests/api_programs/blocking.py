"""A program on the blocking API. `make types` checks it with mypy and pyright; nothing runs it."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import telex
from telex import match


def drive() -> str:
    with telex.spawn("python3 -q", rows=10, env={"PYTHONSTARTUP": None}) as term:
        assert_type(term, telex.Terminal)
        mark = term.type("print(6 * 7)\n")
        found = term.wait(match.any_of("42", match.exited()), timeout=5, since=mark)
        assert_type(found, telex.Matched)
        assert_type(term.snapshot(), telex.ScreenSnapshot)
        assert_type(term.screenshot("a.png", region=(0, 0, 1, 9), theme="light"), Path)
        assert_type(term.snapshot().save(Path("a.svg")), Path)
        assert_type(term.wait_exit(), int | None)
        with term.attach() as output:
            for chunk in output:
                assert_type(chunk, telex.OutputChunk)
        return term.text()


def mistaken() -> None:
    opening: telex.DualContext[telex.AsyncTerminal, telex.Terminal] = telex.spawn("ls")
    opening.wait("x")  # type: ignore[attr-defined]  # not opened by `with`


def reach(address: str) -> tuple[str, ...]:
    try:
        with telex.connect(address, token="x") as server:
            assert_type(server, telex.Server)
            assert_type(server.spawn(["cat"]), telex.Terminal)
            assert_type(server.terminal("s1"), telex.Terminal)
            return server.sessions()
    except telex.CannotConnect:
        return ()


def adapted() -> object:
    with telex.adapt("shell") as shell:
        assert_type(shell, telex.Adapted)
        try:
            return shell.turn("run", command="true", timeout=5).metadata
        except telex.TimedOut as late:
            return late.data


def ask(question: telex.agent.UiConfirmRequestParams) -> telex.agent.UiConfirmResult:
    return telex.agent.UiConfirmResult(ok=False, reason=question.title)


def talk() -> str | None:
    with telex.agent.spawn(confirm=ask, prompt=lambda question: None, deltas=True) as agent:
        assert_type(agent, telex.agent.Agent)
        run = agent.run_start("help", meta={"from": "here"})
        assert_type(run, telex.agent.Run)
        for event in run:
            assert_type(event, telex.agent.AgentEvent)
        assert_type(run.wait(), telex.agent.RunResult)
        assert_type(agent.session_list(limit=1), telex.agent.SessionListResult)
        try:
            agent.run_cancel("run_1")
        except telex.agent.RunNotFound as error:
            return str(error)
        return run.wait().answer
