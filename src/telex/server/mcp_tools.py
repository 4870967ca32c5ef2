"""The five tools of the MCP server: `telex_open`, `telex_do`, `telex_see`, `telex_wait` and
`telex_close`.

A tool is a type for its arguments, from which its JSON Schema is made, and words of the command
line that the arguments stand for. So a tool does what its verb does: `verb_commands` checks the
words, and `Verbs` runs them. The result has our words and the program's text in two blocks, and the
facts as structured content.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from telex.automation.limits import QUOTED_CHARS
from telex.automation.screen_text import cut, printable, quoted, wanted_input
from telex.automation.verb_arguments import (
    CloseArguments,
    DoArguments,
    OpenArguments,
    SeeArguments,
    WaitArguments,
    close_step,
    do_step,
    open_step,
    see_step,
    wait_step,
)
from telex.automation.verb_commands import VERBS, BadVerb, HelpRequest
from telex.automation.verb_requests import (
    DoRequest,
    OpenRequest,
    SeeRequest,
    VerbStep,
)
from telex.server import limits
from telex.server.verb_answers import VerbFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.automation.verb_requests import VerbRequest
    from telex.server.verb_answers import VerbAnswer
    from telex.server.verbs import VerbContext, Verbs


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, and the step that its arguments stand for."""

    name: str
    title: str
    description: str
    arguments: type[Struct]
    hints: dict[str, bool]
    to_step: Callable[[Any], VerbStep]

    def listed(self) -> dict[str, Any]:
        """Return the tool as `tools/list` has it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": _schema(self.arguments),
            "outputSchema": _RESULT_SCHEMA,
            "annotations": {"title": self.title, **self.hints},
        }


_RESULT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "session": {"type": "string"},
        "sequence": {"type": "integer"},
        "input": {"type": "object"},
        "screen": {"type": "string"},
    },
}


_CHECKED_HERE: Final = ("default", "minItems", "minimum", "maximum")
"""Members of a schema that cost tokens and tell a model nothing that it would do wrong."""


def _schema(arguments: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, in few words."""
    found = msgspec.json.schema_components([arguments])[1][arguments.__name__]
    properties = {
        name: {key: value for key, value in one.items() if key not in _CHECKED_HERE}
        for name, one in found["properties"].items()
    }
    if "steps" in properties:  # a step may also be one string, which the schema does not offer
        properties["steps"] = {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
        }
    required = {"required": found["required"]} if found["required"] else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool(
            "telex_open",
            "Open a terminal program",
            "Start a program on a new terminal and show its first screen. For a shell line use "
            '["bash","-c","..."]; for several commands open ["bash"].',
            OpenArguments,
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
            open_step,
        ),
        Tool(
            "telex_do",
            "Type into a program",
            "Run steps, each an array of words, in order; stops at the first that fails. Steps: "
            '["type","make test","--enter"] ["press","ctrl+c"] ["press","<esc>:wq<cr>"] '
            '["wait","passed","--max","60s"] ["wait","--regex","[0-9]+ failed"] ["paste",TEXT] '
            '["click",TEXT] ["see"] ["resize","120x40"] ["signal","INT"] ["list"]. Only the last '
            "step's output is shown; after an input that is the rows that changed, as ROW|TEXT.",
            DoArguments,
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
            do_step,
        ),
        Tool(
            "telex_see",
            "See the screen",
            "Show the screen as text, and what the program waits for. Lets the program finish "
            "drawing first.",
            SeeArguments,
            {"readOnlyHint": True, "openWorldHint": False},
            see_step,
        ),
        Tool(
            "telex_wait",
            "Wait for the screen",
            "Wait for one of text, regex (RE2), gone, idle, input or exit. New text only: what "
            "appeared after your last input.",
            WaitArguments,
            {"readOnlyHint": True, "openWorldHint": False},
            wait_step,
        ),
        Tool(
            "telex_close",
            "Close a session",
            "End a program and its session.",
            CloseArguments,
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
            close_step,
        ),
    )
}


# Calls and results.


async def call_tool(
    tool: Tool, arguments: dict[str, Any], verbs: Verbs, context: VerbContext
) -> dict[str, Any]:
    """Run a tool and return the members of its result. A failure is a result too."""
    try:
        step = tool.to_step(msgspec.convert(arguments, tool.arguments))
    except msgspec.ValidationError as error:
        known = ", ".join(tool.arguments.__struct_fields__)
        return _failed(tool, f"{error}. The arguments of {tool.name} are: {known}")
    except (BadVerb, HelpRequest) as error:
        return _failed(tool, str(error))
    try:
        answer = await verbs.perform(step.request, context)
        if isinstance(step.request, OpenRequest) or not (answer.line or answer.screen):
            answer = await _screen_after(answer, step, verbs, context)
    except VerbFailed as failed:
        request = _failed_request(step.request, failed)
        state = None
        if hasattr(request, "session"):
            state = await verbs.input_state(request.session, context)
        more = "" if state is None else f"; the program: {wanted_input(state)}"
        reasons = f"\n{failed.reasons}" if failed.reasons else ""
        return _failed(tool, f"{failed}{more}{reasons}", failed.screen)
    if (name := answer.facts.get("session")) is not None and "input_state" not in answer.facts:
        state = await verbs.input_state(name, context)
        line = answer.line or ("" if state is None else wanted_input(state))
        answer = replace(answer, line=line, facts={**answer.facts, "input_state": state})
    return _result(tool, answer)


def _failed_request(request: VerbRequest, failed: VerbFailed) -> VerbRequest:
    """Return the request that failed: of several steps, that of the step."""
    if isinstance(request, DoRequest) and isinstance(failed.data, dict):
        number = failed.data.get("step")
        return request if number is None else request.steps[number - 1].request
    return request


async def _screen_after(
    answer: VerbAnswer, step: VerbStep, verbs: Verbs, context: VerbContext
) -> VerbAnswer:
    """Return the screen of a new session; after an input, what changed since the last screen."""
    name = answer.facts.get("session")
    if name is None:
        return answer
    one, since = verbs.find(name), None
    if isinstance(step.request, OpenRequest):
        one.note_look()  # `open` has let the program draw
    elif one.screens:
        since = one.screens[-1].sequence
    return await verbs.perform(SeeRequest(name, since), context)


def _failed(tool: Tool, sentence: str, screen: str = "") -> dict[str, Any]:
    told = cut(_for_clients(tool, sentence), limits.FACT_CHARS)
    return {"content": _blocks(told, screen), "isError": True}


def _for_clients(tool: Tool, sentence: str) -> str:
    """Return a sentence of a verb with the words of the tools. The options of a verb are arguments
    of its tool; in the steps of `telex_do` they are options."""
    arguments = () if tool.arguments is DoArguments else _ARGUMENTS
    for shell, ours in (*_TOOL_WORDS, *arguments):
        sentence = shell.sub(ours, sentence)
    return sentence


def _rules(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(shell), ours) for shell, ours in pairs)


_TOOL_WORDS: Final = _rules(
    (r"telex open -- PROGRAM opens one", "telex_open opens one"),
    (r"choose by -s NAME or TELEX_SESSION", "give its name as `session`"),
    (r"Name a session with -s NAME", "Name a session with `session`"),
    (r"or end it: telex close \S+", "or end it with telex_close"),
    (r"--anywhere counts that too", "`anywhere` (in a step: --anywhere) counts that too"),
    (r" \(try: telex \w+ --help\)", ""),
    (r"; for text use: telex type .*", "; for text use a step with type"),
    (r"send long texts by: telex paste -", 'send long texts as ["paste", TEXT]'),
    (r"Quote the text, so that it is one argument", "Give the text as one string"),
    (rf"(?<!`)\btelex ({'|'.join(VERBS)})\b", r"\1"),
)
"""The words of the shell in failures of verbs, and those of the tools. A command between backticks
is for the person."""
_SAME_NAMES: Final = (
    *("regex", "gone", "idle", "input", "exit", "since"),
    *("size", "cwd", "env", "adapter", "scrollback", "session"),
)
"""Options of verbs that are arguments of tools."""
_ARGUMENTS: Final = _rules(
    (r"--max\b", "`seconds`"),
    (r"\bTEXT, ", "`text`, "),
    (rf"--({'|'.join(_SAME_NAMES)})\b(?: (?:R|TEXT|MS|SEQ|TIME)\b)?", r"`\1`"),
)


def _result(tool: Tool, answer: VerbAnswer) -> dict[str, Any]:
    facts = msgspec.to_builtins(answer.facts)
    words = _for_clients(tool, answer.line) if facts.get("sessions") == [] else answer.line
    if answer.title:
        words = f"{words}  {quoted(answer.title)}"
    if answer.note:
        words = f"{words}\n{answer.note}"
    screen = cut(printable(answer.screen), limits.RESULT_CHARS)
    structured = {
        name: facts[name]
        for name in ("session", "sequence", "line", "elapsed_ms", "closed", "sessions")
        if facts.get(name) is not None
    }
    if (state := facts.get("input_state")) is not None:
        known = ("state", "prompt", "choices", "selected")
        structured["input"] = {
            name: state[name] for name in known if state[name] not in (None, [], ())
        }
    if facts.get("state") == "exited":
        structured |= {"exit_code": facts["exit_code"], "signal": facts["signal"]}
    structured = _Budget(limits.FACT_CHARS).within(structured)
    if screen:
        structured["screen"] = screen
    return {"content": _blocks(words, screen), "structuredContent": structured, "isError": False}


class _Budget:
    """The characters that the texts of a value may have together. Lists end where it ends."""

    def __init__(self, chars: int) -> None:
        self._left = chars

    def within(self, value: Any) -> Any:
        """Return a value with its texts printable and cut."""
        match value:
            case str():
                text = cut(printable(value), max(self._left, QUOTED_CHARS))
                self._left -= len(text)
                return text
            case dict():
                return {name: self.within(one) for name, one in value.items()}
            case list() | tuple():
                kept = []
                for one in value:
                    if self._left <= 0:
                        break
                    kept.append(self.within(one))
                return kept
            case _:
                return value


def _blocks(line: str, screen: str) -> list[dict[str, Any]]:
    """Return our words, and the program's text in a block of its own."""
    texts = [text for text in (line, screen) if text] or ["done"]
    shown = [cut(printable(text), limits.RESULT_CHARS) for text in texts]
    return [{"type": "text", "text": text} for text in shown]
