"""The shape of a command line whose program takes a secret as an argument: `sshpass -p …`, `curl -u
user:…`.

`program_options` says which options of which program take one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from telex.redaction.program_options import (
    APART,
    COMMA,
    COMMANDS,
    COUNTED,
    PERCENT,
    SAME,
    USER,
    WITHOUT_SECRETS,
)
from telex.redaction.secret_values import (
    JUDGED_CHARS,
    LABEL_CHARS,
    is_argument_mention,
)
from telex.redaction.shapes import BLANK, BLANKS, LINE_ENDS, QUOTES, CandidateOnly

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.candidate import Candidate
    from telex.redaction.shapes import Reading, Verdict

_SHELL_WORD: Final = r"""^\s'"\\;|&`"""
_OPTION: Final = r"""^\s'"\\;|&`="""
_COMMAND_ENDS: Final = frozenset(";|&`)\n") | {""}


@dataclass(frozen=True, slots=True)
class CommandShape(CandidateOnly):
    """The arguments of a program that takes a secret as one of them.

    It reads word by word to the end of the command and shows everything but the secret.
    """

    rest: str = r"""^\s'";|&"""
    lookahead: str = ""

    def decide(self, text: str, position: int) -> Verdict | None:
        line = _REST_OF_LINE.match(text, position)
        if line is None:
            return None
        options = _options_of(text[max(0, position - LABEL_CHARS) : position])
        others = _OPTIONS_BY_HEAD.keys() & _ALNUM.findall(line[0])
        for each in (frozenset(options), *map(_OPTIONS_BY_HEAD.__getitem__, others)):
            if _any_option(each).search(text, position, line.end()):
                return None
        return position, position, position

    def read(self, candidate: Candidate) -> Reading:
        options = _options_of(candidate.behind(LABEL_CHARS))
        place, switched = 0, False
        while (yield from self._next_word(candidate)):
            candidate.hold()
            word, after = yield from candidate.word(_OPTION, JUDGED_CHARS)
            candidate.show()
            kind = options.get(word)
            flags = _FLAGS.fullmatch(word)
            grouped = flags and options.get(f"-{flags[1]}")
            is_word = not _SWITCH.fullmatch(word) and not (switched and word.isdigit())
            switched = not is_word
            place += is_word + sum(
                options.get(f"-{each}") == COUNTED for each in (flags and word) or ""
            )
            if is_word and options.get(f"#{place}"):
                yield from self._value(candidate, options.pop(f"#{place}"))
            elif (colon := word.find(":") + 1) and options.get(word[:colon]):
                yield from candidate.run(_OPTION, colon)
                yield from self._value(candidate, options[word[:colon]])
            elif kind == COUNTED:
                yield from self._skip_word(candidate)
            elif kind is not None and kind != SAME:
                yield from candidate.run(_OPTION, len(word))
                yield from candidate.run("=", 1)
                if (yield from self._next_word(candidate)):
                    yield from self._value(candidate, kind)
            elif (
                options.get(word[:2], APART) not in _NEVER_JOINED
                and word[1:2] != "-"
                and (kind is None or after in QUOTES)
            ):
                yield from candidate.run(_OPTION, 2)
                yield from self._value(candidate, options[word[:2]])
            elif grouped and grouped not in _NEVER_GROUPED:
                yield from candidate.run(_OPTION, len(word))
                if (yield from self._next_word(candidate)):
                    yield from self._value(candidate, grouped)
            else:
                program = word.rpartition("/")[2]
                if program in COMMANDS or program in WITHOUT_SECRETS:
                    options, place = dict(COMMANDS.get(program, {})), 0
                yield from self._skip_word(candidate)

    def _next_word(self, candidate: Candidate) -> Generator[None, None, bool]:
        """Read to the next word, which may stand in the next row of the screen or after a
        backslash."""
        while True:
            yield from candidate.run(BLANKS)
            character = yield from candidate.peek()
            if character == "\\":
                yield from candidate.run(r"\\", 1)
                yield from candidate.run("\r", 1)
                if not (yield from candidate.run("\n", 1)):
                    return True
            elif character == "\r":
                yield from candidate.run("\r", 1)
                if (yield from candidate.peek()) in LINE_ENDS:
                    return False
            else:
                return character not in _COMMAND_ENDS

    def _skip_word(self, candidate: Candidate) -> Reading:
        while True:
            yield from candidate.run(_SHELL_WORD)
            character = yield from candidate.peek()
            if character in QUOTES:
                yield from candidate.run(character, 1)
                yield from candidate.run(rf"^{character}\r\n")
                yield from candidate.run(character, 1)
            elif character == "\\":
                yield from candidate.run(r"\\", 1)
                yield from candidate.run(r"^\r\n", 1)
            else:
                return

    def _value(self, candidate: Candidate, kind: str) -> Reading:
        quote = yield from candidate.peek()
        is_quoted = quote in QUOTES
        if is_quoted:
            yield from candidate.run(quote, 1)
        mark = _USER_SEPARATORS.get(kind)
        if mark:
            yield from candidate.run(rf"{self.rest}{mark}")
            if not (yield from candidate.reads(mark)):
                return
        candidate.hold()
        characters = rf"^{quote}\r\n" if is_quoted else self.rest
        value, _ = yield from candidate.word(characters, JUDGED_CHARS)
        if value and not is_argument_mention(value):
            candidate.hide()
            yield from candidate.run_out(characters, ends=False)
        candidate.show()
        if is_quoted:
            yield from candidate.run(quote, 1)
        if candidate.behind(1) not in BLANK:  # `run_out` has read a blank after the value
            yield from self._skip_word(candidate)


_REST_OF_LINE: Final = re.compile(r"[^\\\r\n]*+(?=\r?\n)")
"""The rest of a line after which no command continues."""
_ALNUM: Final = re.compile("[A-Za-z0-9]+")
_OPTIONS_BY_HEAD: Final[dict[str, frozenset[str]]] = {}
"""The options of all programs whose name begins with this run of letters and digits."""
for _program, _options in COMMANDS.items():
    _head = _ALNUM.findall(_program)[0]
    _OPTIONS_BY_HEAD[_head] = _OPTIONS_BY_HEAD.get(_head, frozenset()).union(_options)


def _options_of(before: str) -> dict[str, str]:
    """Return the options of the programs with whose names this text ends."""
    before = before.rstrip()
    options: dict[str, str] = {}
    for program in _PROGRAMS_BY_END.get(before[-2:], ()):
        if before.endswith(program):
            options |= COMMANDS[program]
    return options


@cache
def _any_option(options: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern for any of these options, alone or after other flags in one word."""
    if any(option.startswith("#") for option in options):
        return re.compile("")
    flags = "".join(option[1] for option in options if _FLAG.fullmatch(option))
    forms = [re.escape(option) for option in sorted(options)]
    if flags:
        forms.append(rf"-[A-Za-z]{{1,6}}[{flags}](?:[\s'\"\\;|&`=]|\Z)")
    return re.compile(rf"(?<!\S)(?:{'|'.join(forms)})")


_FLAG: Final = re.compile("-[A-Za-z]")
_PROGRAMS_BY_END: Final[dict[str, list[str]]] = {}
for _program in COMMANDS:
    _PROGRAMS_BY_END.setdefault(_program[-2:], []).append(_program)
_USER_SEPARATORS: Final = {USER: ":", PERCENT: "%", COMMA: ","}
_NEVER_JOINED: Final = frozenset({APART, COUNTED})
_NEVER_GROUPED: Final = frozenset({SAME, APART, COUNTED})
_SWITCH: Final = re.compile(r"-.*|/[A-Za-z]+(?::.*)?", re.DOTALL)
_FLAGS: Final = re.compile(r"-[A-Za-z]{0,6}([A-Za-z])")
