"""The ways to a runtime: `spawn` starts one, `connect` uses one that runs already, and `in_process`
uses one in the same process.

`spawn` and `connect` return one object for both worlds: `async with` gives the `AsyncAgent` of
`client`, `with` the blocking `Agent` of `sync`.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from telex.agent import limits
from telex.agent.client import AsyncAgent
from telex.agent.client_connection import Dialer
from telex.agent.ui_callbacks import UiOptions
from telex.automation.portal import DualContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from telex.agent.sync import Agent
    from telex.automation.portal import Portal
    from telex.rpc.channel import Channel


def spawn(
    command: str | Sequence[str] | None = None,
    *,
    arguments: Sequence[str] = (),
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | None] | None = None,
    stderr: int | None = None,
    reconnect: float = 0.0,
    **ui: Unpack[UiOptions],
) -> DualContext[AsyncAgent, Agent]:
    """Start a runtime as a child of this program, and talk to it on its standard streams.

    Args:
        command: The program and its arguments, as a list or as a shell would split a string. By
            default `telex agent` of this Python.
        arguments: Added to the command, such as `["--mode", "trusted"]`.
        cwd: The directory that the runtime starts in, which decides its workspace.
        env: Changes to this program's environment; None removes a variable.
        stderr: A file descriptor for the runtime's log; by default this program's standard error.
        reconnect: For how many seconds to start the runtime again after it ended unexpectedly. Runs
            that wait for an answer continue in the new one. 0 by default: it is not started again.
        **ui: See `UiOptions`: functions that answer questions, and more.

    Returns:
        An object for `async with`, which gives an `AsyncAgent`, or for `with`, which gives an
        `Agent`. The end of the block ends the runtime.

    Raises:
        CannotConnect: The program cannot be started.
        ConnectionLost: The program ended, or is not a runtime.

    Example:
        async with telex.agent.spawn(arguments=["--mode", "trusted"]) as agent:
            run = await agent.run_start("write notes.md: a line")
            result = await run.wait()
            print(result.answer)
    """
    given = _default_command() if command is None else _words(command)

    async def dial() -> Channel:
        from telex.processes.child_environment import child_environment
        from telex.transports.stdio import connect_child

        return await connect_child(
            [*given, *arguments],
            env=child_environment(os.environ, env),
            cwd=None if cwd is None else os.fspath(cwd),
            stderr=2 if stderr is None else stderr,
        )

    return _dual("telex.agent.spawn()", Dialer(dial), reconnect, ui)


def connect(
    address: str,
    *,
    token: str | None = None,
    reconnect: float = limits.AGENT_CLIENT_RECONNECT_SECONDS,
    **ui: Unpack[UiOptions],
) -> DualContext[AsyncAgent, Agent]:
    """Talk to a runtime that runs already: `telex agent --socket PATH` or `--http HOST:PORT`.

    Args:
        address: `unix:PATH`, or the URL that the runtime printed.
        token: For a URL; by default TELEX_TOKEN of the environment.
        reconnect: For how many seconds to dial again when the connection is lost. Runs then
            continue after their last event, and open questions wait. 0 turns it off.
        **ui: See `UiOptions`: functions that answer questions, and more.

    Returns:
        An object for `async with`, which gives an `AsyncAgent`, or for `with`, which gives an
        `Agent`. The end of the block closes the connection; runs continue in the runtime.

    Raises:
        CannotConnect: No runtime listens there, or the token is wrong.
        ConnectionLost: Something listens there that is not a runtime.

    Example:
        with telex.agent.connect("unix:/run/user/1000/agent.sock") as agent:
            for session in agent.session_list().sessions:
                print(session.session_id, session.last_user_message)
    """

    async def dial() -> Channel:
        from telex.transports.addresses import AGENT, open_channel

        return await open_channel(address, token, AGENT)

    return _dual("telex.agent.connect(…)", Dialer(dial), reconnect, ui)


@asynccontextmanager
async def in_process(
    converse: Callable[[Channel], Awaitable[None]],
    *,
    reconnect: float = 0.0,
    **ui: Unpack[UiOptions],
) -> AsyncIterator[AsyncAgent]:
    """Talk to a runtime in this process, by channels in memory.

    Args:
        converse: Serves one channel until it is closed, such as `AgentServer.converse`.
        reconnect: For how many seconds to call `converse` again after it has returned.
        **ui: See `UiOptions`: functions that answer questions, and more.

    Raises:
        ConnectionLost: `converse` returned before it answered.
    """
    from telex.rpc.memory import memory_channels

    serving: set[asyncio.Task[None]] = set()

    async def dial() -> Channel:
        theirs, ours = memory_channels()
        serving.add(asyncio.ensure_future(_until_closed(converse, theirs)))
        return ours

    async def close() -> None:
        await asyncio.gather(*serving)

    async with await AsyncAgent(Dialer(dial, close), reconnect=reconnect, **ui).open() as agent:
        yield agent


async def _until_closed(converse: Callable[[Channel], Awaitable[None]], channel: Channel) -> None:
    try:
        await converse(channel)
    finally:
        await channel.close()


def _dual(
    made_by: str, dialer: Dialer, reconnect: float, ui: UiOptions
) -> DualContext[AsyncAgent, Agent]:
    async def start() -> AsyncAgent:
        return await AsyncAgent(dialer, reconnect=reconnect, **ui).open()

    def blocking(agent: AsyncAgent, portal: Portal) -> Agent:
        from telex.agent.sync import Agent

        return Agent(agent, portal)

    return DualContext(start, blocking, made_by, "agent")


def _default_command() -> list[str]:
    """`-P`: Python must not import modules from the runtime's directory, which is not trusted."""
    return [sys.executable, "-P", "-m", "telex", "agent"]


def _words(command: str | Sequence[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command)
