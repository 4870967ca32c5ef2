"""Shell text to a `ShellScript`, or to `UnparsedShell`. Pure.

It reads a small part of the language, the part in which `bash` and `sh` agree: simple commands,
pipelines, `&&`, `||`, `;`, new lines, comments, quotes, `$(…)`, `*` and `?`, a leading `~/`, and
redirects from and to a named file. All else is refused: variables, because nobody here knows what
is in them; backticks, here-documents, `&`, loops, functions, assignments, arithmetic, braces,
process substitution, because a judgement of them would be a guess. So a `ShellScript` holds only
what the parser is sure of, and nobody has to remember to look for a loop in one.

It is no validator either: what it understands, a shell reads the same way (a test asks a real one),
and what it refuses may be fine. Why no library does this: docs/decisions/0032-permissions.md.
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
    """What stands before a pipeline."""

    START = ""
    THEN = ";"
    """Also a new line."""
    AND = "&&"
    OR = "||"


class Direction(StrEnum):
    """Of a redirect."""

    READ = "<"
    WRITE = ">"
    APPEND = ">>"


@dataclass(frozen=True, slots=True)
class Word:
    """One word, after quotes were taken off."""

    source: str
    """As it is written."""
    text: str
    """What the program gets, unless one of the next three says otherwise."""
    is_home: bool = False
    """It begins with an unquoted `~`, which `text` still has."""
    is_pattern: bool = False
    """`*` and `?` in `text` stand for names; none of them was quoted."""
    scripts: tuple[ShellScript, ...] = ()
    """What is in its `$(…)`. What they print is in the word, so that nobody knows `text`."""

    @property
    def is_plain(self) -> bool:
        return not (self.is_home or self.is_pattern or self.scripts)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A file in place of standard input, output or error. `2>&1` opens no file and is not kept."""

    source: str
    direction: Direction
    target: Word


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command. No words: only its redirects happen."""

    source: str
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]

    @property
    def scripts(self) -> Iterator[ShellScript]:
        """Whatever runs before it does."""
        for word in (*self.words, *(redirect.target for redirect in self.redirects)):
            yield from word.scripts


@dataclass(frozen=True, slots=True)
class Pipeline:
    joint: ListOperator
    commands: tuple[SimpleCommand, ...]


@dataclass(frozen=True, slots=True)
class ShellScript:
    pipelines: tuple[Pipeline, ...]

    def commands(self) -> Iterator[SimpleCommand]:
        """Every simple command, those in substitutions first, as they run."""
        for pipeline in self.pipelines:
            for command in pipeline.commands:
                for script in command.scripts:
                    yield from script.commands()
                yield command


@dataclass(frozen=True, slots=True)
class UnparsedShell:
    """Why a text was not read, and where. Whoever gets one asks the person."""

    why: str
    at: int
    """The character's offset."""


RESERVED_WORDS: Final = re.compile(
    r"if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|select|time|coproc|\[\[|[{}!]"
)
"""Words with which no simple command begins. Refused also where quoted; that loses little."""

_BLANK: Final = " \t"
_ENDS_WORD: Final = " \t\n|&;<>()"
_REFUSED: Final = {
    "`": "a substitution in backticks",
    "{": "braces",
    "}": "braces",
    "[": "a bracket pattern",
    "!": "an exclamation mark outside quotes",
    "^": "a caret outside quotes, which is a pipe or a pattern to some shells",
}
_GLOB: Final = "*?"
_SPECIAL_IN_PATTERNS: Final = frozenset("*?[]\\")


def parse_shell(text: str) -> ShellScript | UnparsedShell:
    """The whole text, or nothing of it."""
    if len(text) > AGENT_COMMAND_CHARS:
        return UnparsedShell("it is too long to be read", AGENT_COMMAND_CHARS)
    for at, char in enumerate(text):
        if _is_strange(char):
            return UnparsedShell(f"character U+{ord(char):04X} is not one to be seen", at)
    try:
        return _ShellReader(text).script(depth=0)
    except _RefusedSyntax as refused:
        return UnparsedShell(refused.why, refused.at)


def _is_strange(char: str) -> bool:
    # What a person does not see must not be what decides, and blanks are different ones in
    # different locales. A lone surrogate is a byte that was no UTF-8.
    return char not in " \t\n" and unicodedata.category(char)[0] in "CZ"


class _RefusedSyntax(Exception):
    """Ends the reading from any depth; never leaves this file."""

    def __init__(self, why: str, at: int) -> None:
        self.why, self.at = why, at
        super().__init__(why)


@dataclass(slots=True)
class _WordBuilder:
    """A word while it is read."""

    start: int
    text: list[str]
    scripts: list[ShellScript]
    has_glob: bool = False
    has_quoted_special: bool = False
    is_quoted: bool = False

    def literal(self, chars: str) -> None:
        self.text.append(chars)
        self.has_quoted_special |= not _SPECIAL_IN_PATTERNS.isdisjoint(chars)


class _ShellReader:
    """Goes through the text once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._words = 0

    def script(self, depth: int) -> ShellScript:
        """Up to the end of the text, or up to the `)` that ends a substitution."""
        if depth > AGENT_COMMAND_DEPTH:
            self._refuse("substitutions lie too deep in each other")
        self._depth = depth
        pipelines: list[Pipeline] = []
        joint = ListOperator.START
        while True:
            self._skip_lines()
            if self._is_over():
                break
            pipelines.append(Pipeline(joint, self._pipeline()))
            joint = self._joint()
            if joint is ListOperator.START:
                break
        if joint in (ListOperator.AND, ListOperator.OR):
            self._refuse("a command is missing")
        if self._peek() != (")" if depth else ""):
            self._refuse("a parenthesis is not closed" if depth else "a parenthesis")
        return ShellScript(tuple(pipelines))

    def _pipeline(self) -> tuple[SimpleCommand, ...]:
        commands = [self._command()]
        while self._peek() == "|" and self._peek(1) not in ("|", "&"):
            self._at += 1
            self._skip_lines()
            commands.append(self._command())
        return tuple(commands)

    def _joint(self) -> ListOperator:
        """What stands after a pipeline; START when nothing does."""
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
            self._refuse("a command is missing")
        return SimpleCommand(self._text[start:end], tuple(words), tuple(redirects))

    def _is_descriptor(self) -> bool:
        """Whether a number stands right before `<` or `>`, where it is no word."""
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
            self._refuse("a redirect of another descriptor than 0, 1 and 2")
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
        """`>&1` and `>&2`, which lead where something leads already."""
        self._at += 1
        target, after = self._peek(), self._peek(1)
        if target not in ("1", "2") or (after and after not in _ENDS_WORD) or after in ("<", ">"):
            self._refuse("a redirect to a descriptor other than 1 and 2")
        self._at += 1
        return []

    def _word(self, *, first: bool) -> Word:
        self._words += 1
        if self._words > AGENT_COMMAND_WORDS:
            self._refuse("there are too many words")
        grown = _WordBuilder(self._at, [], [])
        equals = False
        while (char := self._peek()) and char not in _ENDS_WORD:
            equals |= char == "="
            self._piece(char, grown)
        if self._peek() == "(":
            self._refuse("a parenthesis in a word")
        word = self._finished(grown)
        if first and equals:
            self._refuse("an assignment", grown.start)
        if first and RESERVED_WORDS.fullmatch(word.text):
            self._refuse(f"the word {word.text}", grown.start)
        return word

    def _finished(self, grown: _WordBuilder) -> Word:
        if grown.has_glob and (grown.has_quoted_special or grown.scripts):
            self._refuse("a pattern that is quoted in part", grown.start)
        source, text = self._text[grown.start : self._at], "".join(grown.text)
        is_home = source.startswith("~")
        if is_home and source != "~" and not source.startswith("~/"):
            self._refuse("the home of somebody", grown.start)
        return Word(source, text, is_home, grown.has_glob, tuple(grown.scripts))

    def _piece(self, char: str, grown: _WordBuilder) -> None:
        """One character or one quoted stretch."""
        match char:
            case "'":
                self._single(grown)
            case '"':
                self._double(grown)
            case "\\":
                self._escaped(grown)
            case "$":
                self._dollar(grown, quoted=False)
            case "~" if self._at > grown.start and self._text[self._at - 1] in "=:":
                self._refuse("a ~ after = or :, which some shells expand")
            case "=" if self._at == grown.start:
                self._refuse("a = at the start of a word, which some shells expand")
            case _ if char in _REFUSED:
                self._refuse(_REFUSED[char])
            case _:
                grown.has_glob |= char in _GLOB
                grown.text.append(char)
                self._at += 1

    def _single(self, grown: _WordBuilder) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self._refuse("a quote is not closed")
        grown.literal(self._text[self._at + 1 : end])
        self._at = end + 1

    def _double(self, grown: _WordBuilder) -> None:
        opened = self._at
        self._at += 1
        while (char := self._peek()) != '"':
            match char:
                case "":
                    self._refuse("a quote is not closed", opened)
                case "`":
                    self._refuse(_REFUSED["`"])
                case "$":
                    self._dollar(grown, quoted=True)
                case "\\" if self._peek(1) == "\n":
                    self._at += 2
                case "\\" if self._peek(1) and self._peek(1) in '$`"\\':
                    grown.literal(self._peek(1))
                    self._at += 2
                case _:
                    grown.literal(char)
                    self._at += 1
        self._at += 1

    def _escaped(self, grown: _WordBuilder) -> None:
        match self._peek(1):
            case "":
                self._refuse("a backslash at the end")
            case "\n":
                # A shell takes it away before it looks for words: a `~`, a `2>` or an operator in
                # two halves is what it is without. Between words `_skip_blanks` takes it.
                self._refuse("a line that goes on in the middle of a word")
            case char:
                grown.literal(char)
                self._at += 2

    def _dollar(self, grown: _WordBuilder, *, quoted: bool) -> None:
        following = self._peek(1)
        if following == "(" and self._peek(2) != "(":
            self._at += 2
            depth = self._depth
            grown.scripts.append(self.script(depth + 1))
            self._depth = depth
            self._at += 1
        elif following == "" or following in (' \n"' if quoted else " \t\n"):
            grown.literal("$")  # as in "^end$": with nothing to name, it is itself
            self._at += 1
        elif following == "(":
            self._refuse("arithmetic")
        else:
            self._refuse("a variable or an expansion")

    def _skip_blanks(self) -> None:
        """Blanks, lines that go on, and a comment, which may stand where a word may begin."""
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
        # In `$(…)` a comment may hold the `)`, and shells have not always agreed on that.
        if self._depth:
            self._refuse("a comment in a substitution")
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _skip_lines(self) -> None:
        self._skip_blanks()
        while self._peek() == "\n":
            self._at += 1
            self._skip_blanks()

    def _is_over(self) -> bool:
        return self._peek() in ("", ")")

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _refuse(self, why: str, at: int | None = None) -> NoReturn:
        raise _RefusedSyntax(why, self._at if at is None else at)
