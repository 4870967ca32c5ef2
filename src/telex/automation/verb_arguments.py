"""The arguments of tools for models, and the verbs that they stand for.

A tool has a type for its arguments, from which its JSON Schema is made, and a function that returns
the verb. The words of a verb are checked by `verb_commands`, so a tool does what its verb does.
Used by the MCP server and by the terminal tools of the agent.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from telex.automation import limits
from telex.automation.screen_text import cut
from telex.automation.verb_commands import BadVerb, parse_verb
from telex.automation.verb_requests import DoRequest, SeeRequest, VerbStep, is_session_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_Session = Annotated[str, Meta(description="Default: the only one")]


class OpenArguments(Struct, forbid_unknown_fields=True):
    command: Annotated[
        tuple[str, ...],
        Meta(description='Program and arguments, e.g. ["vim","a.txt"]', min_length=1),
    ]
    name: Annotated[str, Meta(description="Session name")] | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    env: dict[str, str] | UnsetType = UNSET
    size: Annotated[str, Meta(description="COLSxROWS, default 80x24")] | UnsetType = UNSET
    adapter: str | UnsetType = UNSET


class DoArguments(Struct, forbid_unknown_fields=True):
    steps: Annotated[tuple[tuple[str, ...] | str, ...], Meta(min_length=1)]
    session: _Session | UnsetType = UNSET


class SeeArguments(Struct, forbid_unknown_fields=True):
    session: _Session | UnsetType = UNSET
    since: (
        Annotated[int, Meta(description="Show only rows changed since this seq", ge=0)] | UnsetType
    ) = UNSET
    style: Annotated[bool, Meta(description="Mark selected, bold, coloured text")] | UnsetType = (
        UNSET
    )
    scrollback: (
        Annotated[int, Meta(description="Also this many rows above", ge=1, le=10_000)] | UnsetType
    ) = UNSET


class WaitArguments(Struct, forbid_unknown_fields=True):
    session: _Session | UnsetType = UNSET
    text: str | UnsetType = UNSET
    regex: str | UnsetType = UNSET
    gone: Annotated[str, Meta(description="Until this text is gone")] | UnsetType = UNSET
    idle: (
        Annotated[int, Meta(description="Until unchanged for these ms", ge=0, le=86_400_000)]
        | UnsetType
    ) = UNSET
    input: Annotated[bool, Meta(description="Until it waits for input")] | UnsetType = UNSET
    exit: Annotated[bool, Meta(description="Until the program ends")] | UnsetType = UNSET
    seconds: (
        Annotated[float, Meta(description="At most; default 30", ge=0, le=86_400)] | UnsetType
    ) = UNSET
    anywhere: (
        Annotated[bool, Meta(description="Also text from before your last input")] | UnsetType
    ) = UNSET


class CloseArguments(Struct, forbid_unknown_fields=True):
    session: _Session | UnsetType = UNSET


def option_words(arguments: Struct, renamed: dict[str, str] | None = None) -> list[str]:
    """Return the options that arguments stand for: `--since=41`, `--style`."""
    words = []
    for name, value in msgspec.structs.asdict(arguments).items():
        if value is UNSET or value is False:
            continue
        option = f"--{(renamed or {}).get(name, name)}"
        # Never 1e-05, which is no duration.
        shown = f"{value:.6f}" if isinstance(value, float) else str(value)
        words.append(option if value is True else f"{option}={shown}")
    return words


def open_step(asked: OpenArguments) -> VerbStep:
    """Return the verb of `OpenArguments`. Raises BadVerb."""
    return parse_verb(open_words(asked))


def open_words(asked: OpenArguments) -> list[str]:
    """Return the words of `open` for `OpenArguments`. Raises BadVerb."""
    if not isinstance(asked.name, UnsetType) and not is_session_name(asked.name):
        raise BadVerb(
            f"{asked.name!r} is not a name for a session; use letters, digits, '.', '_' and '-'"
        )
    variables = {} if isinstance(asked.env, UnsetType) else asked.env
    name = () if isinstance(asked.name, UnsetType) else (asked.name,)
    bare = msgspec.structs.replace(asked, command=UNSET, name=UNSET, env=UNSET)
    environment = [f"--env={key}={value}" for key, value in variables.items()]
    return ["open", *name, *option_words(bare), *environment, "--", *asked.command]


def do_step(asked: DoArguments) -> VerbStep:
    """Return the verb of `DoArguments`. Raises BadVerb, which names the step."""
    if len(asked.steps) > limits.STEPS:
        raise BadVerb(f"there are more than {limits.STEPS} steps; use several calls")
    steps = []
    for number, given in enumerate(asked.steps, 1):
        shown = given if isinstance(given, str) else shlex.join(given)
        try:
            steps.append(parse_step(given))
        except (BadVerb, ValueError) as error:
            raise BadVerb(f"step {number}, {cut(shown, 200)}: {error}") from None
    session = None if isinstance(asked.session, UnsetType) else asked.session
    return VerbStep(DoRequest(tuple(steps), session), "do")


def parse_step(given: Sequence[str] | str) -> VerbStep:
    """Return one step of `DoArguments`. Raises BadVerb, ValueError and HelpRequest."""
    if isinstance(given, str):
        if len(given) > limits.STEP_CHARS:
            raise BadVerb(f"a step that is one string has at most {limits.STEP_CHARS:,} characters")
        given = shlex.split(given)
    words = [*given]
    if words[:1] == ["telex"]:
        del words[0]
    if words[:1] == ["do"]:
        raise BadVerb("a step cannot be another do")
    step = parse_verb(words)
    if isinstance(step.request, SeeRequest) and step.request.png is not None:
        raise BadVerb("a tool writes no picture to a file; use see without --png")
    return step


def see_step(asked: SeeArguments) -> VerbStep:
    """Return the verb of `SeeArguments`. Raises BadVerb."""
    return parse_verb(["see", *option_words(asked)])


def wait_step(asked: WaitArguments) -> VerbStep:
    """Return the verb of `WaitArguments`. Raises BadVerb."""
    text = () if isinstance(asked.text, UnsetType) else ("--", asked.text)
    bare = msgspec.structs.replace(asked, text=UNSET)
    return parse_verb(["wait", *option_words(bare, {"seconds": "max"}), *text])


def close_step(asked: CloseArguments) -> VerbStep:
    """Return the verb of `CloseArguments`. Raises BadVerb."""
    return parse_verb(["close", *option_words(asked)])
