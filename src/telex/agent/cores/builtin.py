"""The core that is always available. It has no language model: it executes plain commands.

    list *.py        read FILE       search TEXT       run CMD
    edit FILE: OLD => NEW            write FILE: TEXT
    ask QUESTION     pick ONE, ANOTHER                 todo THING · todo · todo done N
    help

Each line is a command. Commands use the same tools, permissions and events as the calls of a model,
so that the whole agent can be tried without a model. Any other text is answered with how to
configure a model. Blocks with the output of the person's own commands (`<shell_result>`) before the
first command are skipped.
"""

from __future__ import annotations

import re
import time
from collections import deque
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from telex.agent.conversation import message_text
from telex.agent.cores import ContextLeft
from telex.agent.messages import ToolResultMessage, UserMessage
from telex.agent.protocol import events
from telex.agent.protocol.sessions import ModelDetails
from telex.agent.protocol.ui_requests import PickItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.messages import Message


HELP: Final = """\
I am the builtin core: no language model, only plain commands.
  list [PATTERN]         list files, as in `list *.py`
  read FILE              show a file with line numbers
  search TEXT            find lines that contain a text
  run CMD                run a command, if you permit it
  edit FILE: OLD => NEW  replace a text in a file
  write FILE: TEXT       write a whole file
  ask QUESTION           ask you for a line of text
  pick ONE, ANOTHER      ask you to choose
  todo [THING]           show the todo list, or add to it; `todo done N` completes an entry
  help                   show this list"""

NO_MODEL: Final = """\
I cannot answer that: no language model is configured, and I am only the builtin core. To use one, \
do one of these, and start telex agent again:
  - set OPENAI_API_KEY or ANTHROPIC_API_KEY, or store a key: telex agent login anthropic
  - start a local server such as Ollama
  - add [models.NAME] to the configuration; `telex config path` prints the file
`telex agent models` lists the models that were found, and why not others."""

WORDS: Final = ("list", "read", "search", "run", "edit", "write", "ask", "pick", "todo", "help")
_EDIT: Final = re.compile(r"(?P<file>[^:]+):\s?(?P<old>.*?) => ?(?P<new>.*)", re.DOTALL)
_WRITE: Final = re.compile(r"(?P<file>[^:]+):\s?(?P<text>.*)", re.DOTALL)
SKILL_LOADED: Final = (
    "The skill is in the conversation now. The builtin core is no language model, so it cannot "
    "follow it; see: telex agent models"
)
_DONE: Final = re.compile(r"done (\d+)")

Call = tuple[str, dict[str, Any]]


class BadCommand(ValueError):
    """A command with missing or malformed arguments; the message is the answer."""


class BuiltinCore:
    """A core that executes plain commands. It keeps no state between runs."""

    name = "builtin"
    details = ModelDetails(supports_images=False)

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        past = list(context.run_messages)
        commander = _Commander(context, past)
        yield ContextLeft(100)
        if asked.compact and not commander.is_resumed:
            yield events.CompactionStartEvent(_now())
            yield events.CompactionCompleteEvent(_now(), compacted=False)
        if asked.is_skill:
            yield events.FinalEvent(SKILL_LOADED)
            return
        lines = _lines(asked)
        for message in past[1:]:
            if isinstance(message, UserMessage):  # steering that was read before a restart
                lines += commands(message_text(message))
        answers = [await commander.run_line(line) for line in lines]
        while (more := await context.steered()) is not None:
            answers += [await commander.run_line(line) for line in commands(more)]
        yield events.FinalEvent("\n".join(answers))


def _lines(asked: RunInput) -> list[str]:
    found = commands(asked.text)
    if not found and asked.compact:
        return []
    return found or ["help"]


def commands(text: str) -> list[str]:
    """Return the commands of an input, one per line, without the blocks that the UI put before
    them. Pure."""
    lines = without_shell_results(text).splitlines()
    return [line.strip() for line in lines if line.strip()]


class _Commander:
    """Executes the commands of one run. Commands that were executed before a restart get their
    stored results, in order."""

    def __init__(self, context: CoreContext, past: list[Message]) -> None:
        self._context = context
        self._results = deque(one for one in past if isinstance(one, ToolResultMessage))
        self.is_resumed = bool(self._results)

    async def run_line(self, line: str) -> str:
        """Return the answer to a command."""
        word, _, rest = line.partition(" ")
        match word.lower(), rest.strip():
            case "ask", question:
                answer = await self._prompt(question or "What do you say?")
                return "No answer." if answer is None else f"You said: {answer}"
            case "pick", given:
                return await self._picked(given)
            case "help", _:
                return HELP
        try:
            call = call_of(line)
        except BadCommand as misread:
            return str(misread)
        if call is None:
            return _unknown(line)
        if self._results:
            return message_text(self._results.popleft())
        tool, arguments = call
        return (await self._context.call(tool, arguments, line)).text

    async def _prompt(self, question: str) -> str | None:
        if self._results:
            result = self._results.popleft()
            return None if result.is_error else message_text(result)
        return await self._context.prompt("A question", question)

    async def _picked(self, given: str) -> str:
        labels = [label.strip() for label in given.split(",") if label.strip()]
        if not labels:
            return "Write it as: pick ONE, ANOTHER"
        items = [PickItem(str(number), label) for number, label in enumerate(labels, 1)]
        if self._results:
            result = self._results.popleft()
            chosen = [] if result.is_error else message_text(result).split("\n")
        else:
            chosen = await self._context.pick("Choose one", items)
        names = [item.label for item in items if item.id in chosen]
        return f"You chose: {', '.join(names)}" if names else "No choice."


def _unknown(line: str) -> str:
    """Answer a text that is no command: most people who write one expect a model."""
    word = line.partition(" ")[0]
    near = get_close_matches(word.lower(), WORDS, 1)
    if near:
        meant = f" Did you mean `{near[0]}`?"
        return f"Unknown command {word!r}; I am no language model.{meant}\n\n{HELP}"
    return f"{NO_MODEL}\n\n{HELP}"


def call_of(line: str) -> Call | None:
    """Return the tool call that a command stands for; None if it is not a command. Pure."""
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    match word.lower():
        case "list":
            return "list", {"pattern": _unquoted(rest)} if rest else {}
        case "read":
            return "read", {"file_path": _unquoted(_needed(rest, "read FILE"))}
        case "search":
            return "search", {"pattern": _needed(rest, "search TEXT")}
        case "run":
            return "shell", {"command": _needed(rest, "run CMD")}
        case "edit":
            return "edit", _parts(_EDIT, rest, "edit FILE: OLD => NEW", "old_string", "new_string")
        case "write":
            return "write", _parts(_WRITE, rest, "write FILE: TEXT", "content")
        case "todo":
            return "todo", _todo(rest)
    return None


def _needed(rest: str, how: str) -> str:
    if not rest:
        raise BadCommand(f"Write it as: {how}")
    return rest


def _unquoted(name: str) -> str:
    """Remove quotes around a whole name, which people add from habit in shells."""
    quoted = len(name) > 2 and name[0] == name[-1] and name[0] in "\"'"
    return name[1:-1] if quoted else name


def _parts(form: re.Pattern[str], rest: str, how: str, *names: str) -> dict[str, Any]:
    found = form.fullmatch(rest)
    if found is None:
        raise BadCommand(f"Write it as: {how}")
    file, *others = found.groups()
    return {"file_path": file.strip(), **dict(zip(names, others, strict=True))}


def _todo(rest: str) -> dict[str, Any]:
    if not rest:
        return {"action": "read"}
    if (done := _DONE.fullmatch(rest)) is not None:
        return {"action": "patch", "changes": [{"id": int(done[1]), "status": "completed"}]}
    return {"action": "append", "entries": [{"content": rest}]}


def _now() -> int:
    return time.time_ns() // 1_000_000


_OPENING: Final = re.compile(r"\s*<shell_result>([ \t]*\r?(?=\n))?")
_CLOSING: Final = "</shell_result>"


def without_shell_results(text: str) -> str:
    """Return the text after its leading `<shell_result>` blocks. Pure.

    After `!ls` a UI begins the next input with one block for each command that the person ran, each
    block a JSON object. The blocks are context, not commands:

        <shell_result>
        {"id": "bang_1", "command_preview": "ls", "exit_code": 0, "stdout": "README.md"}
        </shell_result>
        read README.md

    A block of several lines ends at a line that begins with the closing mark. JSON strings contain
    no line breaks, so the output of a command cannot end a block. A block without an end is left in
    the text.
    """
    at = 0
    while (opening := _OPENING.match(text, at)) is not None:
        mark = _CLOSING if opening[1] is None else f"\n{_CLOSING}"
        end = text.find(mark, opening.end())
        if end < 0:
            break
        at = end + len(mark)
    return text[at:]
