"""Parse shell text to a `ShellScript`, or to `UnparsedShell`. Pure.

The parser supports a small part of the language, in which `bash` and `sh` agree: simple commands,
pipelines, `&&`, `||`, `;`, new lines, comments, quotes, `$(…)`, `*` and `?`, a leading `~/`, and
redirects from and to a named file. All other syntax is refused: variables, because their values are
not known; backticks, here-documents, `&`, loops, functions, assignments, arithmetic, braces and
process substitution, because judging them would be a guess. So a `ShellScript` has only syntax that
is fully understood, and its users need not handle loops or other syntax.

The parser is not a validator. A text that it parses is read the same way by a shell (a test
compares it with real ones); a text that it refuses may be valid. docs/decisions/0032-permissions.md
explains why no library is used.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NoReturn

from telex.agent.limits import AGENT_COMMAND_CHARS, AGENT_COMMAND_DEPTH, AGENT_COMMAND_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator


class ListOperator(StrEnum):
    """The operator before a pipeline."""

    START = ""
    THEN = ";"
    """A semicolon or a new line."""
    AND = "&&"
    OR = "||"


class Direction(StrEnum):
    """The operator of a redirect."""

    READ = "<"
    WRITE = ">"
    APPEND = ">>"


@dataclass(frozen=True, slots=True)
class Word:
    """One word with its quotes removed."""

    source: str
    """The word as it is written."""
    text: str
    """The argument that the program gets, if `is_plain`."""
    is_home: bool = False
    """The word begins with an unquoted `~`, which is still in `text`."""
    is_pattern: bool = False
    """`*` and `?` in `text` are wildcards; none of them was quoted."""
    scripts: tuple[ShellScript, ...] = ()
    """The scripts in its `$(…)`. Their output becomes a part of the word, so `text` is not
    known."""

    @property
    def is_plain(self) -> bool:
        """Whether the program gets exactly `text`."""
        return not (self.is_home or self.is_pattern or self.scripts)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect of standard input, output or error to a file. `2>&1` opens no file and is
    dropped."""

    source: str
    direction: Direction
    target: Word


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command. It may have no words, only redirects."""

    source: str
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]

    @property
    def scripts(self) -> Iterator[ShellScript]:
        """The scripts of its substitutions, which run before the command."""
        for word in (*self.words, *(redirect.target for redirect in self.redirects)):
            yield from word.scripts


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`, and the operator before the first one."""

    joint: ListOperator
    commands: tuple[SimpleCommand, ...]


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A parsed text: pipelines in order."""

    pipelines: tuple[Pipeline, ...]

    def commands(self) -> Iterator[SimpleCommand]:
        """Yield every simple command, those in substitutions first, because they run first."""
        for pipeline in self.pipelines:
            for command in pipeline.commands:
                for script in command.scripts:
                    yield from script.commands()
                yield command


@dataclass(frozen=True, slots=True)
class UnparsedShell:
    """The result for a text that was not parsed; the judge then asks."""

    why: str
    """The unsupported syntax, as a noun phrase."""
    at: int
    """The offset of the character."""


RESERVED_WORDS: Final = re.compile(
    r"if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|select|time|coproc|\[\[|[{}!]"
)
"""Words that cannot begin a simple command. They are refused also if quoted, which loses little."""

_BLANK: Final = " \t"
_ENDS_WORD: Final = " \t\n|&;<>()"
_REFUSED: Final = {
    "`": "a substitution in backticks",
    "{": "braces",
    "}": "braces",
    "[": "a bracket pattern",
    "!": "an exclamation mark outside quotes",
    "^": "a caret outside quotes (some shells read it as a pipe or a pattern)",
}
_GLOB: Final = "*?"
_SPECIAL_IN_PATTERNS: Final = frozenset("*?[]\\")


def parse_shell(text: str) -> ShellScript | UnparsedShell:
    """Parse the whole text, or nothing of it."""
    if len(text) > AGENT_COMMAND_CHARS:
        return UnparsedShell("a text that is too long", AGENT_COMMAND_CHARS)
    for at, char in enumerate(text):
        if _is_invisible(char):
            return UnparsedShell(f"the invisible character U+{ord(char):04X}", at)
    try:
        return _ShellParser(text).script(depth=0)
    except _RefusedSyntax as refused:
        return UnparsedShell(refused.why, refused.at)


def _is_invisible(char: str) -> bool:
    # A character that the user does not see must not change the meaning of a command, and shells
    # disagree about blanks in different locales. A lone surrogate is a byte that is not UTF-8.
    return char not in " \t\n" and unicodedata.category(char)[0] in "CZ"


class _RefusedSyntax(Exception):
    """Ends the parsing from any depth; caught by `parse_shell`."""

    def __init__(self, why: str, at: int) -> None:
        self.why, self.at = why, at
        super().__init__(why)


@dataclass(slots=True)
class _WordBuilder:
    """Collects the parts of one word."""

    start: int
    text: list[str]
    scripts: list[ShellScript]
    has_glob: bool = False
    has_quoted_special: bool = False
    is_quoted: bool = False

    def literal(self, chars: str) -> None:
        self.text.append(chars)
        self.has_quoted_special |= not _SPECIAL_IN_PATTERNS.isdisjoint(chars)


class _ShellParser:
    """A recursive descent parser that reads the text once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._words = 0

    def script(self, depth: int) -> ShellScript:
        """Parse up to the end of the text, or up to the `)` that ends a substitution."""
        if depth > AGENT_COMMAND_DEPTH:
            self._refuse("substitutions that are nested too deeply")
        self._depth = depth
        pipelines: list[Pipeline] = []
        joint = ListOperator.START
        while True:
            self._skip_lines()
            if self._is_at_end():
                break
            pipelines.append(Pipeline(joint, self._pipeline()))
            joint = self._joint()
            if joint is ListOperator.START:
                break
        if joint in (ListOperator.AND, ListOperator.OR):
            self._refuse("a missing command")
        if self._peek() != (")" if depth else ""):
            self._refuse("an unclosed parenthesis" if depth else "a parenthesis")
        return ShellScript(tuple(pipelines))

    def _pipeline(self) -> tuple[SimpleCommand, ...]:
        commands = [self._command()]
        while self._peek() == "|" and self._peek(1) not in ("|", "&"):
            self._at += 1
            self._skip_lines()
            commands.append(self._command())
        return tuple(commands)

    def _joint(self) -> ListOperator:
        """Return the operator after a pipeline; START if there is none."""
        two = self._text[self._at : self._at + 2]
        match two:
            case "&&" | "||":
                self._at += 2
                return ListOperator(two)
            case ";;" | ";&" | ";|" | "|&":
                self._refuse(f"the operator {two}")
        match self._peek():
            case ";" | "\n":
                self._at += 1
                return ListOperator.THEN
            case "&":
                self._refuse("a command in the background")
        return ListOperator.START

    def _command(self) -> SimpleCommand:
        start = self._at
        words: list[Word] = []
        redirects: list[Redirect] = []
        end = start
        while True:
            self._skip_blanks()
            char = self._peek()
            if char in ("<", ">") or self._is_descriptor():
                redirects += self._redirect(self._at)
            elif char == "" or char in _ENDS_WORD:
                break
            else:
                words.append(self._word(first=not words))
            end = self._at
        if end == start:
            self._refuse("a missing command")
        return SimpleCommand(self._text[start:end], tuple(words), tuple(redirects))

    def _is_descriptor(self) -> bool:
        """Return whether a number is directly before `<` or `>`, where it is not a word."""
        at = self._at
        while self._text[at : at + 1].isdigit():
            at += 1
        return at > self._at and self._text[at : at + 1] in ("<", ">")

    def _redirect(self, start: int) -> list[Redirect]:
        descriptor = ""
        while (char := self._peek()) not in ("<", ">"):
            descriptor += char
            self._at += 1
        operator = char
        self._at += 1
        if descriptor not in ("", "0", "1", "2"):
            self._refuse("a redirect of a descriptor other than 0, 1 and 2")
        if operator == ">" and self._peek() == "&":
            return self._duplicate()
        if operator == ">" and self._peek() == ">":
            operator = ">>"
            self._at += 1
        if self._peek() in ("<", ">", "&", "|", "("):
            self._refuse(f"the redirect {operator}{self._peek()}")
        self._skip_blanks()
        if self._peek() == "" or self._peek() in _ENDS_WORD or self._is_descriptor():
            self._refuse("a redirect without a file")
        target = self._word(first=False)
        return [Redirect(self._text[start : self._at], Direction(operator), target)]

    def _duplicate(self) -> list[Redirect]:
        """Parse `>&1` and `>&2`, which open no file."""
        self._at += 1
        target, after = self._peek(), self._peek(1)
        if target not in ("1", "2") or (after and after not in _ENDS_WORD) or after in ("<", ">"):
            self._refuse("a redirect to a descriptor other than 1 and 2")
        self._at += 1
        return []

    def _word(self, *, first: bool) -> Word:
        self._words += 1
        if self._words > AGENT_COMMAND_WORDS:
            self._refuse("too many words")
        builder = _WordBuilder(self._at, [], [])
        equals = False
        while (char := self._peek()) and char not in _ENDS_WORD:
            equals |= char == "="
            self._part(char, builder)
        if self._peek() == "(":
            self._refuse("a parenthesis in a word")
        word = self._build(builder)
        if first and equals:
            self._refuse("an assignment", builder.start)
        if first and RESERVED_WORDS.fullmatch(word.text):
            self._refuse(f"the reserved word {word.text}", builder.start)
        return word

    def _build(self, builder: _WordBuilder) -> Word:
        if builder.has_glob and (builder.has_quoted_special or builder.scripts):
            self._refuse("a pattern that is partly quoted", builder.start)
        source, text = self._text[builder.start : self._at], "".join(builder.text)
        is_home = source.startswith("~")
        if is_home and source != "~" and not source.startswith("~/"):
            self._refuse("the home directory of a user (~name)", builder.start)
        return Word(source, text, is_home, builder.has_glob, tuple(builder.scripts))

    def _part(self, char: str, builder: _WordBuilder) -> None:
        """Parse one character, one quoted part or one substitution."""
        match char:
            case "'":
                self._single(builder)
            case '"':
                self._double(builder)
            case "\\":
                self._escaped(builder)
            case "$":
                self._dollar(builder, quoted=False)
            case "~" if self._at > builder.start and self._text[self._at - 1] in "=:":
                self._refuse("a ~ after = or : (some shells expand it)")
            case "=" if self._at == builder.start:
                self._refuse("a = at the start of a word (some shells expand it)")
            case _ if char in _REFUSED:
                self._refuse(_REFUSED[char])
            case _:
                builder.has_glob |= char in _GLOB
                builder.text.append(char)
                self._at += 1

    def _single(self, builder: _WordBuilder) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self._refuse("an unclosed quote")
        builder.literal(self._text[self._at + 1 : end])
        self._at = end + 1

    def _double(self, builder: _WordBuilder) -> None:
        opened = self._at
        self._at += 1
        while (char := self._peek()) != '"':
            match char:
                case "":
                    self._refuse("an unclosed quote", opened)
                case "`":
                    self._refuse(_REFUSED["`"])
                case "$":
                    self._dollar(builder, quoted=True)
                case "\\" if self._peek(1) == "\n":
                    self._at += 2
                case "\\" if self._peek(1) and self._peek(1) in '$`"\\':
                    builder.literal(self._peek(1))
                    self._at += 2
                case _:
                    builder.literal(char)
                    self._at += 1
        self._at += 1

    def _escaped(self, builder: _WordBuilder) -> None:
        match self._peek(1):
            case "":
                self._refuse("a backslash at the end")
            case "\n":
                # A shell removes a backslash and new line before it splits words, so a `~`, a `2>`
                # or an operator may be split by it. Between words, `_skip_blanks` removes it.
                self._refuse("a line continuation inside a word")
            case char:
                builder.literal(char)
                self._at += 2

    def _dollar(self, builder: _WordBuilder, *, quoted: bool) -> None:
        following = self._peek(1)
        if following == "(" and self._peek(2) != "(":
            self._at += 2
            depth = self._depth
            builder.scripts.append(self.script(depth + 1))
            self._depth = depth
            self._at += 1
        elif following == "" or following in (' \n"' if quoted else " \t\n"):
            builder.literal("$")  # as in "^end$": without a name, `$` is literal
            self._at += 1
        elif following == "(":
            self._refuse("arithmetic")
        else:
            self._refuse("a variable or an expansion")

    def _skip_blanks(self) -> None:
        """Skip blanks, line continuations and a comment, where a word could begin."""
        while True:
            if (char := self._peek()) and char in _BLANK:
                self._at += 1
            elif char == "\\" and self._peek(1) == "\n" and self._is_after_blank():
                self._at += 2
            else:
                break
        if self._peek() == "#":
            self._skip_comment()

    def _is_after_blank(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in " \t\n"

    def _skip_comment(self) -> None:
        # In `$(…)` a comment may contain the `)`, and shells differ about that.
        if self._depth:
            self._refuse("a comment in a substitution")
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _skip_lines(self) -> None:
        self._skip_blanks()
        while self._peek() == "\n":
            self._at += 1
            self._skip_blanks()

    def _is_at_end(self) -> bool:
        return self._peek() in ("", ")")

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _refuse(self, why: str, at: int | None = None) -> NoReturn:
        raise _RefusedSyntax(why, self._at if at is None else at)
