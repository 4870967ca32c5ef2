"""The tools for terminals: `terminal_open`, `terminal_do`, `terminal_see`, `terminal_wait` and
`terminal_close`, on the code of the verbs.

Their arguments and steps are those of the MCP server's tools. A result has our words first, with
what the program waits for, and then the program's text between markers: it may say anything.
`permissions.terminal_confirmation` judges the calls; what it permitted is in the `TypingPermit` of
the context, and the server checks before each input that it still holds.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, UnsetType, structs

from telex.agent.command_runner import agent_environment
from telex.agent.limits import AGENT_LEASE_SECONDS
from telex.agent.permissions.typed_input import TypedInput
from telex.agent.terminal_server import NoTerminalServer, VerbRefused
from telex.agent.terminals import TerminalAccess, TypingPermit, UnknownTerminal
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool
from telex.automation import limits as automation_limits
from telex.automation.errors import ServerGone, SessionProblem
from telex.automation.screen_text import cut, fenced, printable, quoted, wanted_input
from telex.automation.verb_arguments import (
    CloseArguments,
    DoArguments,
    OpenArguments,
    SeeArguments,
    WaitArguments,
    do_step,
    open_step,
    open_words,
    option_words,
)
from telex.automation.verb_commands import BadVerb, HelpRequest
from telex.automation.verb_protocol import ExpectedFacts
from telex.automation.verb_requests import (
    ClickRequest,
    DoRequest,
    PasteRequest,
    PressRequest,
    ResizeRequest,
    SeeRequest,
    SignalRequest,
    TypeRequest,
    WaitRequest,
)
from telex.terminal import actions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from telex.agent.terminals import AgentTerminal
    from telex.automation.verb_protocol import TypingFacts, VerbFailure, VerbParts
    from telex.automation.verb_requests import VerbRequest, VerbStep

OPEN_TOOL: Final = "terminal_open"
DO_TOOL: Final = "terminal_do"
NO_TERMINALS: Final = "terminals belong to a thread: only a run can use them"
_REQUESTS: Final = (
    *(TypeRequest, PressRequest, PasteRequest, ClickRequest, SignalRequest),
    *(SeeRequest, WaitRequest, ResizeRequest),
)


class TerminalOpen(OpenArguments, forbid_unknown_fields=True):
    """Start a program on a terminal of its own and show its first screen. It keeps running until
    you close it, so use it for REPLs, editors, debuggers, servers and background commands; for one
    command to its end use shell, which asks less. With an adapter, command may be left out."""

    command: tuple[str, ...] = ()


class TerminalDo(DoArguments, forbid_unknown_fields=True):
    """Run steps on a terminal, each an array of words, in order; stops at the first that fails.
    Steps: ["type","make test","--enter"] ["press","ctrl+c"] ["press","<esc>:wq<cr>"]
    ["wait","passed","--max","60s"] ["wait","--regex","[0-9]+ failed"] ["paste",TEXT] ["click",TEXT]
    ["see"] ["resize","120x40"] ["signal","INT"]. Shows the rows that changed, as ROW|TEXT. Typing
    asks the person, unless the terminal was allowed. Never type a password: when the program asks
    for one, send ["press","enter"] and the person is asked for it."""


class TerminalSee(SeeArguments, forbid_unknown_fields=True):
    """Show the screen of a terminal as text, and what its program waits for."""


class TerminalWait(WaitArguments, forbid_unknown_fields=True):
    """Wait for one of text, regex (RE2), gone, idle, input or exit. New text only: what appeared
    after your last input."""


class TerminalClose(CloseArguments, forbid_unknown_fields=True):
    """End a program and its terminal."""


# Steps, and what they type.


def read_steps(asked: TerminalDo) -> tuple[VerbStep, ...]:
    """Return the steps of a call. Raises ToolFailed."""
    try:
        step = do_step(asked)
    except (BadVerb, HelpRequest, ValueError) as error:
        raise ToolFailed(str(error)) from None
    assert isinstance(step.request, DoRequest)
    for one in step.request.steps:
        if not isinstance(one.request, _REQUESTS):
            raise ToolFailed(f"{one.words}: a step cannot open, close or list; there are tools")
        if one.request.session is not None:
            raise ToolFailed(f"{one.words}: name the terminal as `session` of the call")
    return step.request.steps


def types_something(asked: TerminalDo) -> bool:
    """Return whether a step sends input. Raises ToolFailed."""
    typing = (TypeRequest, PressRequest, PasteRequest, ClickRequest, SignalRequest)
    return any(isinstance(one.request, typing) for one in read_steps(asked))


async def facts_of(one: AgentTerminal, access: TerminalAccess) -> TypingFacts:
    """Return who reads the next input of a terminal. Raises ToolFailed."""
    try:
        return await access.thread.facts(one)
    except (UnknownTerminal, NoTerminalServer, SessionProblem) as problem:
        raise ToolFailed(str(problem)) from None


def typed_input(steps: Sequence[VerbStep], facts: TypingFacts) -> TypedInput:
    """Return everything that the steps send to the program."""
    return TypedInput(tuple(action for one in steps for action in step_actions(one.request, facts)))


def step_actions(request: VerbRequest, facts: TypingFacts) -> tuple[actions.Action, ...]:
    """Return the inputs of a step; none for one that only looks, or resizes."""
    match request:
        case TypeRequest(text, enter):
            return (actions.Text(text), *([actions.Key("enter")] if enter else []))
        case PressRequest(keys):
            return keys
        case PasteRequest(text):
            kind = actions.BracketedPaste if facts.bracketed_paste else actions.Paste
            return (kind(text),)
        case ClickRequest(at=at, button=button, count=count):
            row, col = at or (0, 0)
            return (actions.Mouse(actions.MouseEvent(row, col, button=button, count=count)),)
        case SignalRequest(signal):
            return (actions.Signal(signal),)
    return ()


# The tools.


async def _open(asked: TerminalOpen, context: ToolContext) -> ToolResult:
    access = _access(context)
    try:
        words = opening_words(asked, context)
    except BadVerb as error:
        raise ToolFailed(_in_tool_words(str(error))) from None
    environment = agent_environment(context.environment, context.redactor)
    environment["HISTFILE"] = "/dev/null"  # what the agent types is not the person's history
    try:
        one = await access.thread.open(words, str(context.cwd), environment)
    except VerbRefused as refused:
        return _failure(refused.failure, None, context)
    except (NoTerminalServer, SessionProblem) as problem:
        raise ToolFailed(str(problem)) from None
    return await _shown(one, context, words_before="")


def opening_words(asked: TerminalOpen, context: ToolContext) -> list[str]:
    """Return the words of `open`, with an absolute directory in the sandbox. Raises BadVerb, and
    what the sandbox raises."""
    placed = structs.replace(asked, cwd=str(opening_directory(asked, context)))
    open_step(placed)
    return open_words(placed)


def opening_directory(asked: TerminalOpen, context: ToolContext) -> Path:
    """Return the directory in which the program starts."""
    given = "." if isinstance(asked.cwd, UnsetType) else asked.cwd
    return context.sandbox.directory(given, context.cwd)


async def _do(asked: TerminalDo, context: ToolContext) -> ToolResult:
    access = _access(context)
    one = find_terminal(asked, access)
    steps = read_steps(asked)
    permit = access.permit
    if permit is None:
        raise ToolFailed("the call was not judged")
    if permit.password and permit.facts is not None:
        return await _type_secret(one, permit, permit.facts, context)
    last: VerbParts | None = None
    typed = False
    for number, step in enumerate(steps, 1):
        inputs = () if permit.facts is None else step_actions(step.request, permit.facts)
        expected = None
        if inputs and permit.facts is not None:
            expected = _expected(one, permit, first=not typed)
            if not typed:  # also if the call fails or is cancelled halfway
                one.inputs = expected.inputs
                one.pending = typed_input(steps, permit.facts).rest(one.pending)
            typed = True
        try:
            last = await access.thread.run(one, _on(one, step.words), expected=expected)
        except VerbRefused as refused:
            if expected is not None and (holder := _holder(refused.failure)) is not None:
                return await wait_for_person(one, holder, context)
            place = f"step {number} of {len(steps)}, {step.words}: " if len(steps) > 1 else ""
            return _failure(refused.failure, one, context, place, await _state(one, access))
        except ServerGone as gone:
            raise ToolFailed(str(gone)) from None
        if sent := len(inputs) or isinstance(step.request, ResizeRequest):
            # If somebody has typed right after, the last input is not this agent's.
            same = last.facts.get("inputs") == one.inputs + sent
            one.inputs = one.inputs + sent if same else -1
    if last is None or isinstance(steps[-1].request, SeeRequest):
        return await _result(one, last, context)
    if isinstance(steps[-1].request, WaitRequest):
        return await _with_state(one, last, context)
    return await _shown(one, context, since=one.sequence)


def _expected(one: AgentTerminal, permit: TypingPermit, *, first: bool) -> ExpectedFacts:
    assert permit.facts is not None
    return ExpectedFacts(
        permit.facts.inputs if first else one.inputs,
        permit.facts.group if permit.same_program else None,
        permit.states if first else (),
    )


async def _type_secret(
    one: AgentTerminal, permit: TypingPermit, facts: TypingFacts, context: ToolContext
) -> ToolResult:
    """Ask the person for what the program asks, and type it. The model's input is not sent."""
    access = _access(context)
    replacement = context.redactor.replacement
    asks = facts.input.prompt or facts.row.strip() or "a password"
    # A program may give itself any command line, so the file that runs is named first.
    secret = await access.ask_secret(
        f"{posixpath.basename(facts.executable) or one.program} asks for a password",
        f"In the terminal {one.name}, opened with {one.program}, the program "
        f"{facts.executable or 'that reads it'} asks: {one.mask(asks, replacement)}\n"
        f"It calls itself: {one.mask(facts.arguments, replacement) or 'nothing'}\n"
        "Your answer goes to that program. The model and the log do not see what is typed; what "
        "the program prints of it is masked.",
    )
    if secret is None:
        return ToolResult(
            f"{one.name}: {wanted_input(facts.input)}. A password is never typed by you, and no "
            "person answered. Nothing was typed. The person can type it with: "
            f"telex attach {one.name}",
            is_error=True,
            details={"terminal": one.details},
        )
    if not secret.isprintable():
        raise ToolFailed("the person's answer has control characters; nothing was typed")
    if secret:
        one.note_secret(secret)
    expected = ExpectedFacts(facts.inputs, facts.group, ("password",))
    words = ["type", "-s", one.id, "--enter", "--", "-"]
    try:
        answer = await access.thread.run(one, words, stdin=secret, expected=expected)
    except VerbRefused as refused:
        return _failure(refused.failure, one, context, "the password: ")
    except ServerGone as gone:
        raise ToolFailed(str(gone)) from None
    if answer.facts.get("inputs") == facts.inputs + 2:  # the text and Enter
        one.inputs = facts.inputs + 2
    return await _shown(
        one,
        context,
        words_before="The person was asked for the password, and it was typed for you. Your own "
        "input was not sent.",
        since=one.sequence,
    )


async def _see(asked: TerminalSee, context: ToolContext) -> ToolResult:
    access = _access(context)
    one = find_terminal(asked, access)
    words = ["see", "-s", one.id, *option_words(structs.replace(asked, session=UNSET))]
    return await _result(one, await _ran(one, words, context), context)


async def _wait(asked: TerminalWait, context: ToolContext) -> ToolResult:
    access = _access(context)
    one = find_terminal(asked, access)
    text = () if isinstance(asked.text, UnsetType) else ("--", asked.text)
    bare = structs.replace(asked, session=UNSET, text=UNSET)
    words = ["wait", "-s", one.id, *option_words(bare, {"seconds": "max"}), *text]
    try:
        found = await access.thread.run(one, words)
    except VerbRefused as refused:
        return _failure(refused.failure, one, context, state=await _state(one, access))
    except (NoTerminalServer, SessionProblem) as problem:
        raise ToolFailed(str(problem)) from None
    return await _with_state(one, found, context)


async def _close(asked: TerminalClose, context: ToolContext) -> ToolResult:
    access = _access(context)
    one = find_terminal(asked, access)
    if (holder := (await facts_of(one, access)).holder) is not None:
        raise ToolFailed(
            f"{printable(holder)} uses the terminal {one.name}, so it was not closed. Try again "
            "when it is given back"
        )
    await _ran(one, ["close", one.id], context)
    access.thread.forget(one)
    return ToolResult(f"closed {one.name}", details={"terminal": one.details})


async def _ran(one: AgentTerminal, words: list[str], context: ToolContext) -> VerbParts:
    try:
        return await _access(context).thread.run(one, words)
    except VerbRefused as refused:
        raise ToolFailed(_failure(refused.failure, one, context).text) from None
    except (NoTerminalServer, SessionProblem) as problem:
        raise ToolFailed(str(problem)) from None


# A person who has the terminal.


async def wait_for_person(one: AgentTerminal, holder: str, context: ToolContext) -> ToolResult:
    """Wait until a person gives the terminal back, and return what it shows then. Nothing of the
    call is sent: it was meant for another screen."""
    access = _access(context)
    access.tell(f"{printable(holder)} uses the terminal {one.name}; the agent waits")
    try:
        async with asyncio.timeout(AGENT_LEASE_SECONDS):
            await access.thread.lease_end(one)
    except TimeoutError:
        return ToolResult(
            f"{one.name}: {printable(holder)} still uses this terminal after "
            f"{AGENT_LEASE_SECONDS:g} s. Nothing was typed. Do something else, or ask the person.",
            is_error=True,
            details={"terminal": one.details},
        )
    except (NoTerminalServer, SessionProblem) as problem:
        raise ToolFailed(str(problem)) from None
    finally:
        access.tell(None)
    told = (
        f"{printable(holder)} used this terminal until now, so nothing of this call was typed. "
        "Look at the screen and decide again."
    )
    return replace(await _shown(one, context, words_before=told), is_error=True)


def _holder(failure: VerbFailure) -> str | None:
    data = failure.data
    return str(data["holder"]) if isinstance(data, dict) and data.get("holder") else None


# Results.


async def _shown(
    one: AgentTerminal,
    context: ToolContext,
    *,
    words_before: str = "",
    since: int | None = None,
) -> ToolResult:
    """Return the screen, or what changed on it."""
    words = ["see", "-s", one.id, *([] if since is None else [f"--since={since}"])]
    result = await _result(one, await _ran(one, words, context), context)
    return replace(result, text=f"{words_before}\n{result.text}") if words_before else result


async def _result(one: AgentTerminal, parts: VerbParts | None, context: ToolContext) -> ToolResult:
    if parts is None:
        return await _shown(one, context)
    facts = parts.facts
    if isinstance(facts.get("sequence"), int) and "cursor" in facts:
        one.sequence = facts["sequence"]
    line = parts.line
    if parts.title:
        line = f"{line}  {quoted(one.mask(parts.title, context.redactor.replacement))}"
    text = "\n".join(filter(None, (line, parts.note))) or "done"
    screen = printable(one.mask(parts.screen, context.redactor.replacement))
    shown = f"{printable(one.mask(text, context.redactor.replacement))}"
    if screen:
        shown += f"\n{fenced(screen)}"
    return ToolResult(shown, details=_details(one, facts))


async def _with_state(one: AgentTerminal, parts: VerbParts, context: ToolContext) -> ToolResult:
    """Return the answer of a wait, with what the program waits for."""
    state = await _state(one, _access(context))
    line = "  ".join(filter(None, (one.name, state or parts.line)))
    return await _result(one, _replaced(parts, line), context)


def _replaced(parts: VerbParts, line: str) -> VerbParts:
    return type(parts)(line, parts.screen, parts.facts, parts.title, parts.note)


async def _state(one: AgentTerminal, access: TerminalAccess) -> str:
    try:
        facts = await access.thread.facts(one)
    except (UnknownTerminal, NoTerminalServer):
        return ""
    return "exited" if facts.exited else wanted_input(facts.input)


def _details(one: AgentTerminal, facts: dict[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {"terminal": one.details}
    state = facts.get("input_state")
    if isinstance(state, dict):
        found["input"] = state.get("state")
    return found


def _failure(
    failure: VerbFailure,
    one: AgentTerminal | None,
    context: ToolContext,
    place: str = "",
    state: str = "",
) -> ToolResult:
    told = "\n".join(filter(None, (f"{place}{failure.sentence}", failure.reasons)))
    told = cut(_in_tool_words(told), automation_limits.STEP_CHARS)
    if state:
        told += f"\nThe program: {state}"
    if one is not None:
        told = one.mask(told, context.redactor.replacement)
    text = printable(told)
    if failure.screen:
        screen = failure.screen
        if one is not None:
            screen = one.mask(screen, context.redactor.replacement)
        text += f"\n{fenced(printable(screen))}"
    details = {} if one is None else {"terminal": one.details}
    return ToolResult(text, is_error=True, details=details)


_SHELL_HINTS: Final = re.compile(r" \(try: telex \w+ --help\)")


def _in_tool_words(sentence: str) -> str:
    sentence = _SHELL_HINTS.sub("", sentence)
    return sentence.replace("or end it: telex close", "or end it with terminal_close:").replace(
        "telex open -- PROGRAM opens one", "terminal_open opens one"
    )


def _access(context: ToolContext) -> TerminalAccess:
    if context.terminals is None:
        raise ToolFailed(NO_TERMINALS)
    return context.terminals


def find_terminal(asked: Any, access: TerminalAccess) -> AgentTerminal:
    """Return the terminal of a call. Raises ToolFailed."""
    name = None if isinstance(asked.session, UnsetType) else asked.session
    try:
        return access.thread.find(name)
    except UnknownTerminal as missing:
        raise ToolFailed(str(missing)) from None


def _on(one: AgentTerminal, words: str) -> list[str]:
    """Return the words of a step, for this terminal."""
    verb, *rest = shlex.split(words)
    return [verb, "-s", one.id, *rest]


def names_terminal(arguments: Struct) -> str | None:
    """Return the terminal that a call names; None if it names none."""
    name = getattr(arguments, "session", UNSET)
    return None if isinstance(name, UnsetType) else str(name)


OPEN: Final = tool(OPEN_TOOL, TerminalOpen, _open)
DO: Final = tool(DO_TOOL, TerminalDo, _do)
SEE: Final = tool("terminal_see", TerminalSee, _see, only_reads=True)
WAIT: Final = tool("terminal_wait", TerminalWait, _wait, only_reads=True)
CLOSE: Final = tool("terminal_close", TerminalClose, _close)
TERMINAL_TOOLS: Final = (OPEN, DO, SEE, WAIT, CLOSE)
