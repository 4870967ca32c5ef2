"""Judge the calls of `terminal_open` and `terminal_do`, and create their questions.

A program is opened as a shell command would be run, but a terminal has no kernel sandbox: so what
the shell tool would run without a question only because of that sandbox asks here. `typed_input`
judges the inputs. A question shows the exact inputs, who reads them and the line on the
screen. A yes counts for that program and that line only; the person may also allow everything that
is typed into this terminal. That is kept with the terminal, and ends with it.
"""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UnsetType

from telex.agent.permissions.confinement import is_allowed_by_user
from telex.agent.permissions.display_text import in_line, in_quotes, in_sentence, marked_off
from telex.agent.permissions.judge import Judgement, PermissionRequest
from telex.agent.permissions.tool_rules import SHELL_ARGUMENT, SHELL_TOOL, Mode, Permission
from telex.agent.permissions.typed_input import (
    ANY_STATE,
    FreeInput,
    judge_input,
)
from telex.agent.terminals import TypingPermit
from telex.agent.tools.terminal_tools import (
    DO_TOOL,
    OPEN_TOOL,
    TerminalDo,
    TerminalOpen,
    opening_directory,
    opening_words,
    read_steps,
    typed_input,
)
from telex.agent.tools.tool import ToolFailed
from telex.automation.screen_text import wanted_input
from telex.automation.verb_commands import BadVerb

if TYPE_CHECKING:
    from telex.agent.permissions.judge import Judge
    from telex.agent.permissions.typed_input import TypedInput
    from telex.agent.terminals import AgentTerminal
    from telex.agent.tools.tool import ToolContext
    from telex.automation.verb_protocol import TypingFacts
    from telex.automation.verb_requests import VerbStep

JUDGED_TOOLS: Final = frozenset((OPEN_TOOL, DO_TOOL))
UNCONFINED: Final = "a program on a terminal runs outside the kernel's sandbox"
SETS_VARIABLES: Final = "the call sets variables of the program"
REMEMBER_TERMINAL: Final = (
    "Remember (don't ask again): everything that is typed into this terminal, until it is closed "
    "or telex ends. A typed text that a rule denies or asks about, or that names a secret, is "
    "still judged; what a program makes of other keys is not known."
)


@dataclass(frozen=True, slots=True)
class JudgedTerminal:
    """The judgement about a call, what the question shows, and the permit of a yes."""

    judged: Judgement
    message: str
    context: ToolContext
    """With the permit."""
    terminal: AgentTerminal | None = None
    """The terminal that the person may allow as a whole."""
    command: str = ""
    """Of a program that is opened: the command line, whose files the answer is bound to."""
    cwd: str = ""
    moment: tuple[Any, ...] = ()
    """What must be as it was when the question was asked."""


# Opening.


def judge_open(asked: TerminalOpen, judge: Judge, context: ToolContext) -> JudgedTerminal:
    """Judge the start of a program. Blocks. Raises ToolFailed, and what the sandbox raises."""
    try:
        opening_words(asked, context)
    except BadVerb as error:
        raise ToolFailed(str(error)) from None
    cwd = str(opening_directory(asked, context))
    command = shlex.join(asked.command)
    adapter = "" if isinstance(asked.adapter, UnsetType) else asked.adapter
    variables = {} if isinstance(asked.env, UnsetType) else asked.env
    named = command or adapter
    if "\0" in named:
        raise ToolFailed("the command contains a NUL")
    arguments = msgspec.to_builtins(asked)
    by_tool = judge.judge(PermissionRequest(OPEN_TOOL, arguments, cwd))
    judged = judge.judge(PermissionRequest(SHELL_TOOL, {SHELL_ARGUMENT: named}, cwd))
    judged = _opening(judge, judged, by_tool, sets_more=bool(variables) or not command)
    lines = [marked_off(command or f"the program of the adapter {adapter}")]
    lines += [f"{in_quotes(name)} = {in_quotes(value)}" for name, value in variables.items()]
    if command and adapter:
        lines.append(f"adapter: {in_quotes(adapter)}")
    lines.append(f"on a terminal, in {in_quotes(cwd)}")
    return JudgedTerminal(judged, "\n".join(lines), context, command=command, cwd=cwd)


def _opening(judge: Judge, judged: Judgement, by_tool: Judgement, *, sets_more: bool) -> Judgement:
    """Join the judgement about the command with the one about the tool."""
    judged = replace(judged, remember=())
    if by_tool.decision is Permission.DENY and judged.decision is not Permission.DENY:
        return replace(by_tool, remember=())
    if judged.decision is Permission.DENY:
        return judged
    if by_tool.rule is not None and by_tool.decision is Permission.ASK:
        return replace(judged, decision=Permission.ASK, why=by_tool.why, rule=by_tool.rule)
    restricted = judged.decision is Permission.ASK and judged.rule is not None
    if by_tool.rule is not None and by_tool.decision is Permission.ALLOW and not restricted:
        return replace(judged, decision=Permission.ALLOW, why=by_tool.why, rule=by_tool.rule)
    if judged.decision is Permission.ALLOW and judge.mode is not Mode.FULL:
        if sets_more:
            return replace(judged, decision=Permission.ASK, why=SETS_VARIABLES, rule=None)
        if not is_allowed_by_user(judged, judge):
            return replace(judged, decision=Permission.ASK, why=UNCONFINED, rule=None)
    return judged


# Typing.


def judge_do(
    asked: TerminalDo,
    one: AgentTerminal,
    facts: TypingFacts,
    judge: Judge,
    context: ToolContext,
) -> JudgedTerminal:
    """Judge the inputs of a call. Blocks. Raises ToolFailed."""
    steps = read_steps(asked)
    typed = typed_input(steps, facts)
    cwd = facts.cwd or str(context.cwd)
    by_tool = judge.judge(PermissionRequest(DO_TOOL, msgspec.to_builtins(asked), cwd))
    if not typed.actions:
        judged = Judgement(Permission.ALLOW, "the call types nothing")
        if by_tool.rule is not None:
            judged = replace(by_tool, remember=())
        return _with_permit(judged, "", context, TypingPermit())

    def judge_line(text: str) -> Judgement:
        return judge.judge(PermissionRequest(SHELL_TOOL, {SHELL_ARGUMENT: text}, cwd))

    judgements = [judge_line(text) for text in typed.texts(one.pending)]
    message = _typing_message(steps, one, facts, context.redactor.replacement)
    judged, permit = _decide(typed, one, facts, by_tool, judgements)
    found = _with_permit(judged, message, context, permit)
    moment = (facts.id, facts.inputs, facts.group, facts.executable, facts.input.state)
    return replace(found, terminal=one, cwd=cwd, moment=moment)


def _decide(
    typed: TypedInput,
    one: AgentTerminal,
    facts: TypingFacts,
    by_tool: Judgement,
    judgements: list[Judgement],
) -> tuple[Judgement, TypingPermit]:
    permit = TypingPermit(facts)
    for judged in (by_tool, *judgements):
        if judged.decision is Permission.DENY:
            return replace(judged, remember=()), permit
    free = judge_input(typed, facts)
    interrupts = isinstance(free, FreeInput) and free.states == ANY_STATE
    if facts.input.state == "password" and not interrupts:
        why = "the person is asked for the password"
        return Judgement(Permission.ALLOW, why), replace(permit, password=True)
    restricting = next(filter(_restricts, judgements), None)
    if by_tool.rule is not None and by_tool.decision is Permission.ASK:
        return Judgement(Permission.ASK, by_tool.why, by_tool.rule), permit
    if isinstance(free, FreeInput):
        why = "it only moves through a pager, or ends a program"
        return Judgement(Permission.ALLOW, why, by_tool.rule), TypingPermit(facts, free.states)
    if restricting is not None:
        return Judgement(Permission.ASK, restricting.why, restricting.rule), permit
    if by_tool.decision is Permission.ALLOW:
        return Judgement(Permission.ALLOW, by_tool.why, by_tool.rule), _any_program(permit)
    if one.allowed and facts.inputs == one.inputs:
        return Judgement(Permission.ALLOW, "the person allowed this terminal"), _any_program(permit)
    return Judgement(Permission.ASK, free.why), permit


def _restricts(judged: Judgement) -> bool:
    """Return whether a text asks whatever the person allowed before: a rule says so, or it names a
    secret."""
    if judged.decision is not Permission.ASK:
        return False
    secret = any(path.is_secret for piece in judged.pieces for path in piece.touched)
    return judged.rule is not None or secret


def _any_program(permit: TypingPermit) -> TypingPermit:
    return replace(permit, same_program=False)


def _with_permit(
    judged: Judgement, message: str, context: ToolContext, permit: TypingPermit
) -> JudgedTerminal:
    access = context.terminals
    if access is None:
        raise ToolFailed("terminals belong to a thread: only a run can use them")
    return JudgedTerminal(
        judged, message, replace(context, terminals=replace(access, permit=permit))
    )


def _typing_message(
    steps: tuple[VerbStep, ...], one: AgentTerminal, facts: TypingFacts, replacement: str
) -> str:
    """Return what the person is asked to allow: every step, who reads it, and the line. Secrets
    that the person typed there are masked, as the question is stored."""
    reader = facts.arguments or posixpath.basename(facts.executable) or "a program"
    lines = [marked_off("\n".join(in_line(step.words) for step in steps))]
    lines.append(
        f"into the terminal {in_quotes(one.name)}, which {in_quotes(reader)} reads; "
        f"{in_sentence(wanted_input(facts.input))}"
    )
    if facts.cwd:
        lines.append(f"in {in_quotes(facts.cwd)}")
    if one.pending:
        lines.append(f"typed there before, and not submitted yet: {in_quotes(one.pending)}")
    lines.append(f"the line on its screen: {in_quotes(facts.row.rstrip())}")
    lines.append(f"to look, or to type yourself: telex attach {one.name}")
    return one.mask("\n".join(lines), replacement)
