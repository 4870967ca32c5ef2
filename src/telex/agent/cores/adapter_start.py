"""The start of the TUI of another agent: the question to the person, and the terminal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from telex.agent.cores.adapter_screen import AskedQuestion
from telex.agent.cores.adapter_terminal import open_terminal
from telex.agent.limits import AGENT_ADAPTER_PROGRAMS
from telex.agent.permissions import Permission
from telex.agent.terminal_server import NoTerminalServer, VerbRefused
from telex.agent.tools.tool import new_id
from telex.automation.errors import SessionProblem
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from telex.agent.cores import CoreContext
    from telex.agent.cores.adapter_core import AdapterCore
    from telex.agent.cores.adapter_terminal import AdapterTerminal


class AdapterFailed(Exception):
    """The TUI cannot go on with the run; the message says why and what to do."""


async def start_refusal(core: AdapterCore, context: CoreContext, answered: bool | None) -> str:
    """Ask the person whether the program may be started, once for each thread, unless a rule
    decides. Return why it may not; empty if it may.

    Args:
        answered: The answer of the person, if it was given before a restart.

    Raises:
        AdapterFailed: The program is missing, a rule forbids it, or nobody can be asked.
    """
    path = shutil.which(core.argv[0], path=context.program_environment.get("PATH"))
    if path is None:
        raise AdapterFailed(f"there is no program {core.argv[0]} on PATH; install it")
    if context.session_id in core.allowed:
        return ""
    command = " ".join(core.argv)
    judged = await context.judge_program(core.argv)
    if judged.decision is Permission.DENY:
        raise AdapterFailed(f"{command} may not be started: {judged.why}")
    if judged.decision is Permission.ASK and answered is None:
        answer = await context.confirm(
            f"Start {core.name}?",
            f"{command}\n\nwhich is {path}\nin {context.cwd}\n\nIt is the model of this session: "
            "telex types your messages into it, on a terminal. It runs with your rights, outside "
            "the kernel's sandbox, and its own questions come to you.",
            data=question_data(AskedQuestion()),
        )
        if answer is None:
            raise AdapterFailed(
                f"{command} was not started: no UI can ask you. Connect one that answers "
                "ui.confirm.request, or allow the command by a rule"
            )
        answered = answer.ok
    if judged.decision is Permission.ASK and not answered:
        return f"{core.name} was not started, as you said."
    core.allowed.add(context.session_id)
    return ""


async def start_terminal(core: AdapterCore, context: CoreContext) -> AdapterTerminal:
    """Start the program of a thread on a new terminal. Raises AdapterFailed."""
    await _make_room(core)

    async def opened() -> AdapterTerminal:
        terminal = await open_terminal(
            core.server,
            core.name,
            f"{core.name}-{new_id()[:6]}",
            cwd=context.cwd,
            environment=context.program_environment,
        )
        core.terminals[context.session_id] = terminal
        return terminal

    try:
        return await run_shielded(opened())
    except (VerbRefused, NoTerminalServer, SessionProblem) as problem:
        raise AdapterFailed(f"{core.name} could not be started: {problem}") from None


async def start_note(terminal: AdapterTerminal, context: CoreContext) -> str:
    """Return the first text about a new terminal."""
    name = terminal.plugin
    note = f"{name} runs in the terminal {terminal.name}. To see it: {terminal.attach_command}"
    if len(await context.messages()) > len(context.run_messages):
        note += f"\nIt is a new {name}, which does not know the conversation before."
    return note


def question_data(question: AskedQuestion) -> Raw:
    """Return a question in the form in which it is stored."""
    return Raw(msgspec.json.encode(question))


async def _make_room(core: AdapterCore) -> None:
    """Forget programs that have ended. Raises AdapterFailed if too many run."""
    if len(core.terminals) < AGENT_ADAPTER_PROGRAMS:
        return
    for thread, terminal in list(core.terminals.items()):
        if not await terminal.is_live():
            await core.end_terminal(thread)
    if len(core.terminals) >= AGENT_ADAPTER_PROGRAMS:
        raise AdapterFailed(
            f"{AGENT_ADAPTER_PROGRAMS} programs of {core.name} run already; end one: telex list, "
            "telex close NAME"
        )
