"""The command line of the verbs: their options, their help, and the parser.

The server parses, so that the client need not import this. `VERBS` has the click commands, which
`telex open --help`, completion and the reference of the command line use too. `parse_verb` turns
the words of a call into a `VerbStep`, which has the verb as a value of `verb_requests`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from telex.automation import limits
from telex.automation.verb_requests import (
    ClickRequest,
    CloseRequest,
    DoRequest,
    ListRequest,
    OpenRequest,
    PasteRequest,
    PressRequest,
    ResizeRequest,
    SeeRequest,
    SignalRequest,
    TypeRequest,
    VerbRequest,
    VerbStep,
    WaitRequest,
    is_session_id,
    is_session_name,
)
from telex.rpc.nearest import did_you_mean, nearest_names
from telex.terminal import actions
from telex.terminal.cells import Size
from telex.terminal.keys import UnknownKey, parse_key

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_LONGEST_SECONDS: Final = 86_400
_TOKEN: Final = re.compile(r"<([^<>\s]+|[<>])>")
_VIM_NAMES: Final = {"lt": "<", "gt": ">", "bar": "|", "bslash": "\\", "nl": "enter"}
_VIM_ALT: Final = re.compile(r"\b[aA]-(?=.)")
_SIGNALS: Final = {
    **{name: name for name in ("term", "hup", "quit", "int", "kill")},
    "usr1": "user1",
    "usr2": "user2",
}


class BadVerb(Exception):
    """The words are not a verb with its options; exit code 2."""


class HelpRequest(Exception):
    """The help of a verb was asked for; the text is the message."""


def _by(read: Callable[[str], Any]) -> Callable[..., Any]:
    """Return the callback of a parameter that is read by a function, which raises ValueError with
    a sentence."""

    def callback(_: click.Context, __: click.Parameter, given: Any) -> Any:
        try:
            if isinstance(given, tuple):
                return tuple([read(one) for one in given])
            return None if given is None else read(given)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


def _duration(text: str, unit: str = "s") -> float:
    """Return the seconds of 500ms, 10s, 2m or 1h; a bare number has the given unit."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration; write it as 500ms, 10s, 2m or 1h")
    seconds = float(found[1]) * _UNITS[found[2] or unit]
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is more than a day")
    return seconds


def _size(text: str) -> Size:
    size = Size.parse(text)
    if size is None or not (1 <= size.cols <= 1000 and 1 <= size.rows <= 1000):
        raise ValueError(f"{text!r} is not COLSxROWS, each from 1 to 1000, as in 80x24")
    return size


def _keys(word: str) -> tuple[actions.Action, ...]:
    try:
        return parse_keys(word)
    except UnknownKey as error:
        raise ValueError(f"{error}; for text use: telex type {shlex.quote(word)}") from None


def _regex(text: str) -> str:
    from telex.terminal.patterns import Pattern, PatternError

    try:
        Pattern(text)
    except PatternError as error:
        raise ValueError(f"{text!r} is not a regular expression (RE2): {error}") from None
    return text


def _signal(text: str) -> str:
    """Return the protocol's word for a signal, given with or without SIG."""
    name = text.lower().removeprefix("sig")
    if name not in _SIGNALS:
        known = ", ".join(one.upper() for one in _SIGNALS)
        raise ValueError(f"the signal {text!r} cannot be sent; use one of {known}")
    return _SIGNALS[name]


def _name(text: str) -> str:
    if not is_session_name(text):
        raise ValueError(
            f"{text!r} is not a name for a session; use letters, digits, '.', '_' and '-', at most "
            "64, beginning with a letter or a digit"
        )
    if is_session_id(text):
        raise ValueError(f"{text!r} would be the id of a session; choose another name")
    return text


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return key, value


def _cell(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,3}),(\d{1,3})", text)
    if found is None:
        raise ValueError(f"{text!r} is not ROW,COL, each counted from 0 to 999")
    return int(found[1]), int(found[2])


def parse_keys(word: str) -> tuple[actions.Action, ...]:
    """Return the actions of one word of `press`: a key by its name, or text with keys between `<`
    and `>` as vim writes them. Raises UnknownKey."""
    if len(word) == 1 or not _TOKEN.search(word):
        parse_key(word)
        return (actions.Key(word),)
    made: list[actions.Action] = []
    end = 0
    for token in _TOKEN.finditer(word):
        if text := word[end : token.start()]:
            made.append(actions.Text(text))
        name = _VIM_NAMES.get(token[1].lower()) or _VIM_ALT.sub("M-", token[1])
        parse_key(name)
        made.append(actions.Key(name))
        end = token.end()
    if text := word[end:]:
        made.append(actions.Text(text))
    return tuple(made)


_SESSION: Final = click.Option(
    ["-s", "--session"],
    metavar="NAME",
    help="The session. By default that of TELEX_SESSION, or the only one there is.",
)
_JSON: Final = click.Option(["--json", "as_json"], is_flag=True, help="Print the answer as JSON.")
_FENCE: Final = click.Option(
    ["--fence"],
    is_flag=True,
    help="Put text of the program between markers that it cannot contain.",
)


class OpenCommand(click.Command):
    """A command whose program stands after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:at])
        ctx.params["command"] = tuple(args[at + 1 :])
        if len(args) - at <= 1 and ctx.params.get("adapter") is None and not ctx.resilient_parsing:
            name = ctx.params.get("name")
            example = f"telex open -- {name or 'bash'}"
            raise click.UsageError(f"the program is missing; write it after --: {example}", ctx)
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


def _verb(
    name: str, text: str, *params: click.Parameter, kind: type[click.Command] = click.Command
) -> click.Command:
    given = [*params, _JSON]
    return kind(
        name, params=given, help=text, context_settings={"help_option_names": ["-h", "--help"]}
    )


_STYLE: Final = click.Option(
    ["--style"],
    is_flag=True,
    help="Mark text that stands out: ‹sel|selected›, ‹b|bold›, ‹red|coloured›, ‹u|underlined›.",
)
_OPEN: Final = """Start a program on a new terminal, in your directory and with your environment.

NAME is the name of the session; by default that of the program. The session is held until it is not
used for 60 minutes (--ttl, --keep), also after its program has ended.

\b
  telex open -- vim notes.txt
  telex open db --size 120x40 -- psql mydb
"""
_SEE: Final = """Show the screen as text.

The first line has the name, the program, the size, the cursor (row,column, from 0), the sequence of
this screen, and the title. Blank rows at the end are left out, repeated rows folded. The program
gets up to half a second to react to an input, and to finish what it is drawing.

\b
  telex see
  telex see --since 41     only the rows that changed since that sequence
  telex see --png now.png  a picture, also .svg, .html, .ansi or .txt
"""
_WAIT: Final = """Wait until a text stands on the screen, or for another condition.

TEXT and --regex do not match what stood there before your last inputs, nor the echo of them: the
inputs since you last looked by `see` or `wait`. Before any input the whole screen counts, and
always with --anywhere. The line with the match is printed. If the time is over, the exit code is
124, and the nearest miss and the screen are shown.

\b
  telex wait "passed" --max 2m
  telex wait --regex '(\\d+) failed'
  telex wait --gone Loading
  telex wait --idle 500    nothing changed for 500 ms
  telex wait --input       it waits for a line, a key, a password, ...: prints which, and the prompt
"""
_DO: Final = """Run several verbs in one call.

Each argument is a step; without arguments, each line of standard input is one, and lines that begin
with # are comments. The steps are quoted as in a shell. All steps are read before the first runs.
The first step that fails ends the call: standard error has its number, the reason and the screen.
Only the last step prints.

\b
  telex do 'type "make test" --enter' 'wait passed --max 60s' see
"""
_PRESS: Final = """Press keys.

Names are enter, esc, tab, up, page_down, f5, ctrl+c, alt+x, shift+tab, a; also C-c, ^C and Up. A
word with keys between < and > is typed with these keys in it.

\b
  telex press down down enter
  telex press ctrl+c
  telex press '<esc>:wq<cr>'
"""

_COMMANDS: Final = (
    _verb(
        "open",
        _OPEN,
        click.Argument(["name"], required=False, callback=_by(_name)),
        click.Option(
            ["--size"],
            callback=_by(_size),
            default=None,
            metavar="COLSxROWS",
            help="Size of the terminal: columns first. 80x24, or that of the adapter.",
        ),
        click.Option(["--cwd"], metavar="DIR", help="The working directory; by default yours."),
        click.Option(
            ["--env"],
            callback=_by(_pair),
            multiple=True,
            metavar="KEY=VALUE",
            help="Set a variable on top of your environment.",
        ),
        click.Option(
            ["--adapter"],
            metavar="A",
            help="An adapter that knows the program's states; `see` then shows the state.",
        ),
        click.Option(
            ["--ttl"],
            callback=_by(_duration),
            metavar="TIME",
            help="End the session after this time without input or reader; by default 60m.",
        ),
        click.Option(["--keep"], is_flag=True, help="Hold the session until it is closed."),
        kind=OpenCommand,
    ),
    _verb(
        "see",
        _SEE,
        _SESSION,
        click.Option(
            ["--since"],
            type=click.IntRange(min=0),
            metavar="SEQ",
            help="Show only what changed since that screen.",
        ),
        _STYLE,
        click.Option(["--png"], metavar="FILE", help="Draw a picture to a file instead."),
        click.Option(
            ["--scrollback"],
            type=click.IntRange(1, 10_000),
            metavar="N",
            help="Also the last N rows that scrolled off the top.",
        ),
        _FENCE,
    ),
    _verb(
        "type",
        "Type text, exactly as given: no Enter is added.\n\nA TEXT of - is read from standard "
        "input.",
        click.Argument(["text"]),
        click.Option(["--enter"], is_flag=True, help="Press Enter after it."),
        _SESSION,
    ),
    _verb(
        "press",
        _PRESS,
        click.Argument(["keys"], nargs=-1, required=True, callback=_by(_keys)),
        _SESSION,
    ),
    _verb(
        "paste",
        "Paste text, marked as pasted if the program asks for that (bracketed paste).\n\nA TEXT of "
        "- is read from standard input.",
        click.Argument(["text"]),
        _SESSION,
    ),
    _verb(
        "click",
        "Click a text on the screen, or a cell.\n\nThe program must use the mouse.",
        click.Argument(["text"], required=False),
        click.Option(
            ["--at"],
            callback=_by(_cell),
            metavar="ROW,COL",
            help="A cell instead of a text.",
        ),
        click.Option(["--button"], type=click.Choice(["left", "middle", "right"]), default="left"),
        click.Option(["--count"], type=click.IntRange(1, 100), default=1, help="Clicks."),
        _SESSION,
        _FENCE,
    ),
    _verb(
        "wait",
        _WAIT,
        click.Argument(["text"], required=False),
        click.Option(["--regex"], callback=_by(_regex), metavar="R", help="A pattern (RE2)."),
        click.Option(["--gone"], metavar="TEXT", help="Until this text is not on the screen."),
        click.Option(
            ["--idle"],
            callback=_by(partial(_duration, unit="ms")),
            metavar="MS",
            help="Until the screen has not changed for this time.",
        ),
        click.Option(["--input"], is_flag=True, help="Until the program waits for input."),
        click.Option(["--exit"], is_flag=True, help="Until the program has ended."),
        click.Option(
            ["--max"],
            callback=_by(_duration),
            default="30s",
            show_default=True,
            metavar="TIME",
            help="How long at most: 500ms, 10s, 2m; a bare number is seconds.",
        ),
        click.Option(
            ["--since"],
            type=click.IntRange(min=0),
            metavar="SEQ",
            help="Only what appeared after that sequence of `see`.",
        ),
        click.Option(["--anywhere"], is_flag=True, help="Also what stood there before."),
        _SESSION,
        _FENCE,
    ),
    _verb("do", _DO, click.Argument(["steps"], nargs=-1), _SESSION, _FENCE),
    _verb("list", "List the sessions: program, size, state, idle time, until when each is held."),
    _verb(
        "resize",
        "Change the size of the terminal.",
        click.Argument(["size"], callback=_by(_size)),
        _SESSION,
    ),
    _verb(
        "signal",
        "Send a signal to the foreground program: INT, TERM, HUP, QUIT, KILL, USR1 or 2.",
        click.Argument(["signal"], callback=_by(_signal)),
        _SESSION,
    ),
    _verb(
        "close",
        "End the programs of sessions, and the sessions.",
        click.Argument(["names"], nargs=-1, metavar="[NAME]..."),
        click.Option(["--all"], is_flag=True, help="All sessions that `telex open` opened."),
        _SESSION,
    ),
)
VERBS: Final[dict[str, click.Command]] = {str(command.name): command for command in _COMMANDS}
"""The verbs by name, in the order of their help."""


_REQUESTS: Final[dict[str, Callable[..., VerbRequest]]] = {
    "open": OpenRequest,
    "see": SeeRequest,
    "type": TypeRequest,
    "paste": PasteRequest,
    "click": ClickRequest,
    "wait": WaitRequest,
    "list": ListRequest,
    "resize": ResizeRequest,
    "signal": SignalRequest,
    "close": CloseRequest,
}
"""The verbs whose options are the members of their requests."""


def parse_verb(words: Sequence[str], stdin: str | None = None) -> VerbStep:
    """Return the verb of a call.

    Args:
        stdin: The text that `type -`, `paste -` and a `do` without steps read.

    Raises:
        BadVerb: The words are no verb with its options.
        HelpRequest: They ask for help.
    """
    name, *args = words or ("",)
    command = VERBS.get(name)
    if command is None:
        near = did_you_mean(nearest_names(name, VERBS)) or f"There are {', '.join(VERBS)}."
        raise BadVerb(f"there is no verb {name!r}. {near}")
    path = f"telex {name}"
    before = args[: args.index("--")] if "--" in args else args
    if "--help" in before or "-h" in before:
        with command.make_context(path, [], resilient_parsing=True) as context:
            raise HelpRequest(command.get_help(context))
    try:
        with command.make_context(path, list(args)) as context:
            options = dict(context.params)
        _check(name, options)
    except click.UsageError as error:
        what = " ".join(error.format_message().split())
        raise BadVerb(f"{what}{_hint(name, error)} (try: {path} --help)") from None
    fence, as_json = options.pop("fence", False), options.pop("as_json")
    request: VerbRequest
    if name == "do":
        steps = parse_steps(options["steps"] or (stdin or "").splitlines())
        fence = fence or any(step.fence for step in steps)
        as_json = as_json or any(step.as_json for step in steps)
        request = DoRequest(steps, options["session"])
    elif name == "press":
        keys = tuple([key for word in options["keys"] for key in word])
        request = PressRequest(keys, options["session"])
    else:
        if name in ("type", "paste") and options["text"] == "-":
            options["text"] = _from_stdin(name, stdin)
        request = _REQUESTS[name](**options)
    return VerbStep(request, shlex.join(words), fence, as_json)


def _from_stdin(name: str, stdin: str | None) -> str:
    if stdin is None:
        raise BadVerb(f"telex {name} - reads standard input, and there is none")
    return stdin


def parse_steps(lines: Sequence[str]) -> tuple[VerbStep, ...]:
    """Return the steps of `telex do`. Raises BadVerb, which names the step."""
    steps: list[VerbStep] = []
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        number = len(steps) + 1
        if number > limits.STEPS:
            raise BadVerb(f"there are more than {limits.STEPS} steps; use several calls")
        if len(line) > limits.STEP_CHARS:
            raise BadVerb(
                f"step {number} has {len(line):,} characters, and a step at most "
                f"{limits.STEP_CHARS:,}; send long texts by: telex paste -"
            )
        try:
            words = shlex.split(line)
            if words[:1] == ["telex"]:
                del words[0]
            if words[:1] == ["do"]:
                raise BadVerb("a step cannot be another do")
            steps.append(parse_verb(words))
        except ValueError as error:
            raise BadVerb(f"step {number}, {line.strip()}: {str(error).lower()}") from None
        except BadVerb as error:
            raise BadVerb(f"step {number}, {line.strip()}: {error}") from None
    if not steps:
        raise BadVerb(
            "there is no step; give each as an argument, or one per line on standard input, as in: "
            "telex do 'press enter' see"
        )
    return tuple(steps)


def _hint(name: str, error: click.UsageError) -> str:
    if name in ("type", "paste", "wait", "click"):
        if isinstance(error, click.NoSuchOption):
            return f" For text that begins with '-', put -- before it: telex {name} -- TEXT."
        if "extra argument" in error.format_message():
            return " Quote the text, so that it is one argument."
    if name == "open" and "extra argument" in error.format_message():
        return ". Write the program after --: telex open -- vim notes.txt"
    if name in ("see", "list", "do") and "extra argument" in error.format_message():
        return ". Name a session with -s NAME"
    return ""


def _check(name: str, options: dict[str, Any]) -> None:
    """Raise UsageError for options that exclude each other."""
    if options.get("fence") and options.get("as_json"):
        raise click.UsageError("--fence is for text; in JSON the text of the program is a string")
    if name == "see":
        ways = [options["since"], options["png"], options["scrollback"]]
        if sum(one is not None for one in ways) > 1:
            raise click.UsageError("--since, --png and --scrollback exclude each other")
    if name == "open" and options["keep"] and options["ttl"] is not None:
        raise click.UsageError("--keep and --ttl exclude each other")
    if name == "open" and options["ttl"] == 0:
        raise click.UsageError("--ttl is 0; give a time, as in --ttl 10m")
    if name == "click" and (options["text"] is None) == (options["at"] is None):
        raise click.UsageError("give either a TEXT or --at ROW,COL")
    if name == "click":
        _refuse_empty(options["text"])
    if name == "wait":
        kinds = [options["text"], options["regex"], options["gone"], options["idle"]]
        given = sum(one is not None for one in kinds) + options["input"] + options["exit"]
        if given != 1:
            raise click.UsageError(
                "give one of TEXT, --regex R, --gone TEXT, --idle MS, --input and --exit"
            )
        _refuse_empty(options["text"], options["regex"], options["gone"])
        if options["since"] is not None and options["anywhere"]:
            raise click.UsageError("--since and --anywhere exclude each other")
    if name == "close" and options["all"] and (options["names"] or options["session"]):
        raise click.UsageError("give names or --all")


def _refuse_empty(*texts: str | None) -> None:
    if "" in texts:
        raise click.UsageError("the text or pattern is empty")
