"""A program on the asyncio API. `make types` checks it with mypy and pyright; nothing runs it."""

from __future__ import annotations

from typing import assert_type

import telex
from telex import match


async def drive() -> str:
    async with telex.spawn(["python3", "-q"], cols=100) as term:
        assert_type(term, telex.AsyncTerminal)
        mark = await term.type("print(6 * 7)\n")
        found = await term.wait(match.regex("4(2)"), since=mark)
        assert_type(found, telex.Matched)
        async with term.attach(redact=False) as output:
            async for chunk in output:
                assert_type(chunk, telex.OutputChunk)
        return await term.text(redact=False)


async def reach(address: str) -> tuple[str, ...]:
    async with telex.connect(address) as server:
        assert_type(server, telex.AsyncServer)
        assert_type(await server.spawn("cat"), telex.AsyncTerminal)
        return await server.sessions()


async def adapted() -> str:
    async with telex.adapt("shell") as shell:
        assert_type(shell, telex.AsyncAdapted)
        return (await shell.turn("run", command="true")).state


async def pick(question: telex.agent.UiPickRequestParams) -> list[str]:
    return [item.id for item in question.items]


async def talk(address: str) -> int:
    async with telex.agent.connect(address, token="x", reconnect=5, pick=pick) as agent:
        assert_type(agent, telex.agent.AsyncAgent)
        run = await agent.run_attach("run_1", after_seq=3)
        assert_type(run, telex.agent.AsyncRun)
        async for message in run.messages():
            match message:
                case telex.agent.RunEvent(seq=seq, event=telex.agent.TextEvent(content=content)):
                    assert_type(seq, int)
                    assert_type(content, str)
                case telex.agent.RunStatusNotify(status="error"):
                    break
        history = await agent.session_history(run.session_id)
        assert_type(history.events, list[telex.agent.RunEvent])
        return run.last_seq
