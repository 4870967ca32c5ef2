"""Decide whether typed input may go to a program on a terminal without a question. Pure.

An input is judged when a submitting key is sent: the line that was typed so far, plus the new text.
Without a question there are only

    text and its corrections at the prompt of a plain shell, which run nothing yet
    Enter there, if the line is known, plain, and a command that the judge allows
    keys that only move through a pager
    ctrl+c, and signals that end a program

A plain shell is one that `terminal_open` started as `bash --norc` or `sh`, and whose memory is as
it was at its start: only programs were run in it, so no alias, function or option gives a word
another meaning. Its line is known while only this agent typed there, and only text that stands for
itself. Everything else asks, with the exact text; so does whatever is not understood.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args

from telex.agent.permissions.read_only_programs import word_set
from telex.agent.permissions.reader_environment import runs_in_restricted_environment
from telex.agent.permissions.shell_parser import UnparsedShell, parse_shell
from telex.agent.permissions.tool_rules import Permission
from telex.terminal import actions
from telex.terminal.input_state import State
from telex.terminal.keys import parse_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from telex.agent.permissions.judge import Judgement
    from telex.automation.verb_protocol import TypingFacts

    JudgeLine = Callable[[str], Judgement]

SHELLS: Final = ("bash", "sh", "dash")
_SHELL_OPTIONS: Final = ("--norc", "--noprofile", "-i")
_PAGERS: Final = ("less", "more")
_PAGER_KEYS: Final = frozenset(
    ("space", "up", "down", "left", "right", "page_up", "page_down", "home", "end")
)
_PAGER_LETTERS: Final = frozenset(" bdfgGjkqu")
_ENDING_SIGNALS: Final = frozenset(("int", "term", "hup", "quit", "kill"))
_PLAIN: Final = re.compile(r"""[A-Za-z0-9 _./,:@%+='"|&;-]*""")
"""Text that stands for itself, in a line editor and in a shell. Left out, for one of the two: `!`,
`^`, `#`, `$`, backticks, backslashes, braces, parentheses, redirects, patterns and `~`."""
_ALONE: Final = re.compile(r"(?<!&)&(?!&)")
ANY_STATE: Final = get_args(State)
_LONGEST: Final = 1000
"""Characters of a known line: the kernel cuts a longer one, and a screen shows no more."""
_HARMLESS_BUILTINS: Final = word_set("echo printf pwd true false test [")
_CHANGING: Final = word_set("""
    . : alias bg bind break builtin caller case cd command compgen complete compopt continue coproc
    declare dirs disown do done elif else enable esac eval exec exit export fc fg fi for function
    getopts hash help history if in jobs kill let local logout mapfile popd pushd read readarray
    readonly return select set shift shopt source suspend then time times trap type typeset ulimit
    umask unalias unset until wait while { } [[ ]] !
    stty tput reset tset
""")
"""Words that change the shell, or that run a word in another way than as a program; and programs
that change how the terminal passes on what is typed."""

UNKNOWN_LINE: Final = "the line in the terminal is not known"
NOT_A_SHELL: Final = "telex does not know what the program does with this input"


@dataclass(frozen=True, slots=True)
class KnownLine:
    """The line in a terminal, as far as this agent knows it."""

    draft: str | None = ""
    """The typed text that was not submitted yet; None if it is not known."""
    inputs: int = 0
    """The number of the terminal's last input, which was this agent's."""
    plain_shell: bool = False
    """Whether a plain shell was opened, and only programs were run in it since."""


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Inputs that are judged: what each does, and the texts that they submit."""

    actions: tuple[actions.Action, ...]

    def texts(self, before: str) -> tuple[str, ...]:
        """Return every line that these inputs may submit or leave, `before` at its beginning."""
        return tuple(dict.fromkeys(one for one in self._lines(before) if one.strip()))

    def rest(self, before: str) -> str:
        """Return the text after the last of these inputs that is a key or a line end."""
        return self._lines(before)[-1]

    def _lines(self, before: str) -> list[str]:
        lines, line = list[str](), before
        for action in self.actions:
            text = _text(action)
            if text is None:
                lines.append(line)
                line = ""
                continue
            *whole, last = re.split(r"[\r\n]", line + text)
            lines += whole
            line = last
        return [*lines, line]


@dataclass(frozen=True, slots=True)
class FreeInput:
    """Inputs that may be sent without a question."""

    after: KnownLine
    """What is known of the line afterwards."""
    states: tuple[str, ...] = ()
    """The input states of which one must hold when the first input is written."""
    plain: bool = False


@dataclass(frozen=True, slots=True)
class AskedInput:
    """Inputs that need a question, and why."""

    why: str


def is_plain_shell(argv: Sequence[str]) -> bool:
    """Return whether a command line starts a shell that reads no file of settings. The place of
    the program is judged by `judge_input`, as it runs."""
    name, *options = argv
    if posixpath.basename(name) != name or name not in SHELLS:
        return False
    return all(one in _SHELL_OPTIONS for one in options) and (name != "bash" or "--norc" in options)


def judge_input(
    typed: TypedInput, line: KnownLine, facts: TypingFacts, root: str, judge: JudgeLine
) -> FreeInput | AskedInput:
    """Decide about inputs for the program that reads the terminal now.

    Args:
        root: The workspace: no shell in it is a plain one.
        judge: Judges a command line in the directory of the shell.
    """
    if _only_interrupts(typed):
        # At its prompt a shell begins a new line. A program that runs in it gets the key itself.
        untouched = line.draft == "" and facts.inputs == line.inputs
        known = "" if _reads_prompt(line, facts, root) or untouched else None
        return FreeInput(replace(line, draft=known), ANY_STATE)
    if facts.input.state == "pager" and posixpath.basename(facts.executable) in _PAGERS:
        if all(_moves_pager(action) for action in typed.actions):
            return FreeInput(replace(line, draft=None), ("pager",))
        return AskedInput("not all of these keys only move through a pager")
    if not line.plain_shell or facts.group != facts.root:
        return AskedInput(NOT_A_SHELL)
    if facts.inputs != line.inputs:
        return AskedInput("somebody else has typed into the terminal")
    if not _reads_prompt(line, facts, root):
        return AskedInput("the shell does not wait at its prompt")
    if facts.alters_typing:
        return AskedInput("the terminal is set to change typed text")
    if line.draft is None:
        return AskedInput(f"{UNKNOWN_LINE}; ctrl+c, in a call of its own, begins a new one")
    return _judge_at_prompt(typed, line, judge)


def _judge_at_prompt(
    typed: TypedInput, line: KnownLine, judge: JudgeLine
) -> FreeInput | AskedInput:
    draft, submitted = line.draft or "", False
    for action in typed.actions:
        if submitted:
            return AskedInput("what follows a command in one call may be read by that command")
        text = _text(action)
        if isinstance(action, actions.Key) and text is None:
            pressed = parse_key(action.value)
            if pressed == parse_key("backspace"):
                draft = draft[:-1]
            elif pressed == parse_key("ctrl+u"):
                draft = ""
            elif pressed == parse_key("enter"):
                submitted = True
            else:
                return AskedInput("the effect of this key on the line is not known")
            continue
        if text is not None and text.endswith(("\r", "\n")):
            text, submitted = text[:-1], True
        if text is None or not _PLAIN.fullmatch(text) or isinstance(action, actions.Mouse):
            return AskedInput("not all of this input stands for itself in the line of a shell")
        draft += text
    if len(draft) > _LONGEST:
        return AskedInput(f"the line is longer than {_LONGEST} characters")
    if not submitted:
        return FreeInput(replace(line, draft=draft), ("shell",), plain=True)
    if draft.strip() and (why := _question_about(draft, judge(draft))):
        return AskedInput(why)
    return FreeInput(replace(line, draft=""), ("shell",), plain=True)


def _question_about(command: str, judged: Judgement) -> str:
    """Return why a known line asks; empty if it may run."""
    if judged.decision is not Permission.ALLOW:
        return judged.why
    if _ALONE.search(command):
        return "a command in the background reads the terminal beside the shell"
    if not keeps_shell(command):
        return "the command changes the shell, or uses what is in its memory"
    if runs_in_restricted_environment(judged.pieces):
        return "git and rg only read in an environment that a terminal does not have"
    return ""


def keeps_shell(command: str) -> bool:
    """Return whether a command runs nothing but programs, so that the shell is as before. `cd` is
    allowed where it stands alone: the directory is read again before the next command."""
    script = parse_shell(command)
    if isinstance(script, UnparsedShell) or _ALONE.search(command):
        return False
    commands = [one for pipeline in script.pipelines for one in pipeline.commands]
    names = [one.words[0] for one in commands if one.words]
    if len(commands) == len(names) == 1 and names[0].is_plain and names[0].text == "cd":
        return True
    return all(
        name.is_plain
        and (name.text in _HARMLESS_BUILTINS or name.text not in _CHANGING)
        and posixpath.basename(name.text) not in _CHANGING
        and "=" not in name.text
        and not name.text.startswith("%")
        and not _sets_variable(name.text, [word.text for word in one.words])
        for name, one in zip(names, commands, strict=False)
    ) and len(names) == len(commands)


def _sets_variable(name: str, words: Sequence[str]) -> bool:
    return name in ("printf", "test", "[") and any(word.startswith("-v") for word in words[1:])


def line_after(typed: TypedInput, line: KnownLine, facts: TypingFacts, root: str) -> KnownLine:
    """Return what is known of a line after inputs that the person allowed. The shell may have read
    what another program was to read."""
    shell = _reads_prompt(line, facts, root) and line.draft is not None
    draft = line.draft or ""
    for action in typed.actions:
        text = _text(action)
        enter = isinstance(action, actions.Key) and parse_key(action.value) == parse_key("enter")
        if text is not None and text.endswith(("\r", "\n")):
            text, enter = text[:-1], True
        if (text is None and not enter) or (text is not None and not _PLAIN.fullmatch(text)):
            return KnownLine(None, line.inputs)
        draft += text or ""
        if enter:
            shell = shell and keeps_shell(draft)
            draft = ""
    return KnownLine(draft if shell else None, line.inputs, shell)


def _reads_prompt(line: KnownLine, facts: TypingFacts, root: str) -> bool:
    """Return whether the plain shell itself waits for a command."""
    shell = facts.executable
    inside = (shell + "/").startswith(root.rstrip("/") + "/")
    return (
        line.plain_shell
        and facts.inputs == line.inputs
        and facts.group == facts.root
        and posixpath.basename(shell) in SHELLS
        and not inside
        and facts.input.state == "shell"
        and bool(facts.cwd)
    )


def _text(action: actions.Action) -> str | None:
    """Return the text that an input types; None for a key that is no text."""
    match action:
        case actions.Text(value) | actions.Paste(value) | actions.BracketedPaste(value):
            return value
        case actions.Key(value):
            pressed = parse_key(value)
            if pressed.ctrl or pressed.alt or pressed.shift:
                return None
            if pressed.key == "space":
                return " "
            return pressed.key if len(pressed.key) == 1 else None
    return None


def _only_interrupts(typed: TypedInput) -> bool:
    """Return whether all inputs only end a program: one ctrl+c, or signals that do."""
    keys = [one for one in typed.actions if not isinstance(one, actions.Signal)]
    signals = [one for one in typed.actions if isinstance(one, actions.Signal)]
    if any(one.value not in _ENDING_SIGNALS for one in signals):
        return False
    return not keys or (
        not signals
        and len(keys) == 1
        and isinstance(keys[0], actions.Key)
        and parse_key(keys[0].value) == parse_key("ctrl+c")
    )


def _moves_pager(action: actions.Action) -> bool:
    match action:
        case actions.Text(value):
            return set(value) <= _PAGER_LETTERS
        case actions.Key(value):
            pressed = parse_key(value)
            if pressed.ctrl or pressed.alt or pressed.shift:
                return False
            return pressed.key in _PAGER_KEYS or pressed.key in _PAGER_LETTERS
    return False
