"""Programs that only read, and the parser of their arguments: harmless options, values and paths.
Pure.

Most programs are tables in readers.toml; programs with a language of their own are handled here. An
option that is not listed is refused, so an unknown one (of a newer version, of another system, an
abbreviation of `--output`) asks. A word that begins with `-` is also refused where a value or an
operand is expected: the program may read it as an option.

Left out on purpose, so that they ask: `awk`, `jq` and sed scripts that do more than print lines
(languages of their own), `env` and `ps` (they print secrets), `grep -r` (it reads hidden files;
`rg` and the tool `search` do not), and options that follow links, wait, or name a file to write or
a program to run.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.embedded_paths import embedded_paths

if TYPE_CHECKING:
    from collections.abc import Sequence


def word_set(text: str) -> frozenset[str]:
    """Split a text into a set of words; it keeps long lists readable."""
    return frozenset(text.split())


class Operands(StrEnum):
    """The meaning of the words that are not options."""

    PATHS = "paths"
    TEXT = "text"
    """Text that is printed, counted or compared, but never opened as a file."""
    PATTERN_THEN_PATHS = "pattern_then_paths"
    """The first is a pattern, unless an option has given one; the others are paths."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ReaderProgram:
    """A program that writes nothing and runs nothing, as long as it has only these options."""

    flags: str = ""
    """Letters of short options without a value."""
    values: str = ""
    """Letters of short options with a value that is checked like a path."""
    texts: str = ""
    """Letters of short options with a value that is never opened: a pattern, a separator."""
    numbered: str = ""
    """Letters of short options with an optional number in the same word: `-U`, `-U5`."""
    long: frozenset[str] = frozenset()
    """Long options without a value, or with a value after `=`."""
    long_texts: frozenset[str] = frozenset()
    """Long options with a required value, which may be the next word and is never opened."""
    operands: Operands = Operands.PATHS
    most: int | None = None
    """The number of operands; the program would write to a further one."""
    here: bool = False
    """Without an operand, the program reads the working directory."""
    recursive: bool = False
    """Like `here`, and the program reads everything below a directory."""
    counts: bool = False
    """`-20` is an option."""
    needs_trust: bool = False
    """The program may run other programs that files of the workspace configure."""
    pattern_options: frozenset[str] = frozenset({"e", "regexp"})
    """Options that give the pattern, so that the first operand is a path."""
    files_only: bool = False
    """A directory as an operand asks, because the program would read its hidden files too."""
    skips_hidden: bool = False
    """The program skips hidden files, unless it starts in a hidden directory."""
    prints: bool = False
    """For git: the command prints the content of tracked files."""
    shows: frozenset[str] = frozenset()
    """For git: options with which it prints the content, or whether a text is in it."""
    hides: frozenset[str] = frozenset()
    """For git: options with which it prints no content, unless one of `shows` is given too."""
    compares_files: bool = False
    """For git: with two paths of which one is outside the working tree, or without a repository,
    the command compares files that are not in the repository."""
    by_id: bool = False
    """For git: the command prints objects that are named by their ids, whatever paths follow."""
    enters_links: bool = False
    """For git: the command reads tracked files also where a directory of their path is now a
    link."""


@dataclass(slots=True)
class ParsedArguments:
    """The parsed arguments of a read-only program."""

    paths: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    everywhere: bool = False
    """The program reads the whole root, whatever its directory and its arguments."""
    options: set[str] = field(default_factory=set)
    """The letters and the long names of the options."""
    operands: tuple[str, ...] = ()
    """For git: the words that may be paths, as they are written."""
    refused: str = ""
    """Why the program may do more than read; empty if it may not."""


def prints_contents(reader: ReaderProgram, found: ParsedArguments) -> bool:
    """Return whether a git command with these options prints the content of tracked files."""
    if not found.options.isdisjoint(reader.shows):
        return True
    return reader.prints and found.options.isdisjoint(reader.hides)


def parse_arguments(reader: ReaderProgram, arguments: Sequence[str]) -> ParsedArguments:
    """Parse the arguments of a program that is described by a table."""
    return _ArgumentParser(reader, list(arguments)).parse()


class _ArgumentParser:
    """Parses arguments from left to right, and stops at the first that is refused."""

    def __init__(self, reader: ReaderProgram, rest: list[str]) -> None:
        self._reader, self._rest = reader, rest
        self._used = ParsedArguments()
        self._operands: list[str] = []
        self._has_pattern = False

    def parse(self) -> ParsedArguments:
        while self._rest and not self._used.refused:
            word = self._rest.pop(0)
            if word == "--":
                self._after_dashes()
                break
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and word != "-":
                self._short(word)
            else:
                self._operands.append(word)
        if not self._used.refused:
            self._place_operands()
        return self._used

    def _after_dashes(self) -> None:
        # For git, `--` may be the value of the option before it, and a later word an option again.
        dashed = [word for word in self._rest if word.startswith("-") and word != "-"]
        if dashed and (self._reader.needs_trust or self._reader.operands is Operands.PATHS):
            self._used.refused = f"{in_quotes(dashed[0])} may be an option"
        self._operands += self._rest

    def _long(self, word: str) -> None:
        name, equals, value = word[2:].partition("=")
        reader = self._reader
        self._used.options.add(name)
        if name in reader.long:
            self._has_pattern |= name in reader.pattern_options
            return
        if name in reader.long_texts:
            self._value(name, value if equals else None, text=True)
        else:
            self._used.refused = f"the option {in_quotes(f'--{name}')} is not known to be harmless"

    def _short(self, word: str) -> None:
        reader = self._reader
        if self._is_count(word):
            return
        for at, letter in enumerate(word[1:], start=2):
            self._used.options.add(letter)
            if letter in reader.flags:
                continue
            if letter in reader.numbered and re.fullmatch(r"[0-9]*", word[at:], re.ASCII):
                return
            if letter not in reader.values and letter not in reader.texts:
                option = in_quotes(f"-{letter}")
                self._used.refused = f"the option {option} is not known to be harmless"
            else:
                self._value(letter, word[at:] or None, text=letter in reader.texts)
            return

    def _is_count(self, word: str) -> bool:
        """Return whether the word is a count such as `-20`. After `-n` it is harmless too, as an
        option or as a value."""
        return self._reader.counts and re.fullmatch(r"-[0-9]+", word, re.ASCII) is not None

    def _value(self, option: str, value: str | None, *, text: bool) -> None:
        if value is None and not self._rest:
            self._used.refused = f"the option {in_quotes(option)} needs a value"
            return
        if value is None:
            value = self._rest.pop(0)
            if value.startswith("-") and value != "-" and not self._is_count(value):
                self._used.refused = (
                    f"{in_quotes(value)} may be an option and not the value of {in_quotes(option)}"
                )
        (self._used.texts if text else self._used.paths).append(value)
        self._has_pattern |= option in self._reader.pattern_options

    def _place_operands(self) -> None:
        reader, operands = self._reader, self._operands
        if reader.most is not None and len(operands) > reader.most:
            self._used.refused = "with this many arguments, it may write to one of them"
            return
        match reader.operands:
            case Operands.TEXT:
                self._used.texts += operands
            case Operands.NONE if operands:
                self._used.refused = "with an argument, it may change something"
            case Operands.PATTERN_THEN_PATHS if operands and not self._has_pattern:
                self._used.texts.append(operands.pop(0))
        if reader.operands in (Operands.PATHS, Operands.PATTERN_THEN_PATHS):
            self._used.paths += [path for path in operands if path != "-"]
            if (reader.here or reader.recursive) and not self._used.paths:
                self._used.paths.append(".")


SHELLS: Final = word_set("sh bash dash ash ksh mksh lksh zsh fish rbash csh tcsh busybox toybox")


def program_name(program: str) -> str:
    """Return the name of a program without its path and version: `/usr/bin/bash-5.2` is `bash`. Use
    it only to restrict, never to allow."""
    return re.sub(r"[-.]?[0-9][0-9.]*$", "", program.rpartition("/")[2])


def parse_reader(argv: Sequence[str]) -> tuple[ReaderProgram, ParsedArguments] | None:
    """Parse a command of a read-only program; None for any other program. The name must have no
    path: `./ls` is not `ls`."""
    match argv:
        case [name, *rest] if name in TAKES_ANYTHING:
            return READERS["echo"], ParsedArguments(texts=rest)
        case ["printf", *rest]:
            return READERS["echo"], _printf(rest)
        case ["find", *rest]:
            return READERS["find"], _find(rest)
        case ["sed", *rest]:
            return READERS["sed"], _sed(rest)
        case ["git", *rest]:
            return _git(rest)
        case ["date", *rest]:
            return READERS["date"], _date(rest)
        case [name, *rest] if name in READERS:
            return READERS[name], parse_arguments(READERS[name], rest)
    return None


def _printf(arguments: Sequence[str]) -> ParsedArguments:
    # `-v` and `%n` write a variable, and in bash its name may contain a command.
    good = arguments and _PRINTF.fullmatch(arguments[0])
    return ParsedArguments(
        texts=list(arguments), refused="" if good else "the format may do more than print"
    )


def _find(arguments: Sequence[str]) -> ParsedArguments:
    """Parse the start directories and then tests without effect: no `-exec`, `-delete`,
    `-fprint`."""
    result = ParsedArguments()
    rest = list(arguments)
    while rest and rest[0][:1] not in ("-", "(", "!", ")", ","):
        result.paths.append(rest.pop(0))
    result.paths = result.paths or ["."]
    while rest:
        word = rest.pop(0)
        if word in _FIND_VALUES and rest:
            result.texts.append(rest.pop(0))
        elif word not in _FIND_TESTS:
            result.refused = f"the test {in_quotes(word)} is not known to be harmless"
            break
    return result


def _sed(arguments: Sequence[str]) -> ParsedArguments:
    result = parse_arguments(READERS["sed"], arguments)
    if not result.refused and not (result.texts and _SED_PRINTS.fullmatch(result.texts[0])):
        result.refused = "the script may do more than print or delete lines by number"
    return result


def _date(arguments: Sequence[str]) -> ParsedArguments:
    result = parse_arguments(READERS["date"], arguments)
    if not all(word.startswith(("+", "-")) for word in arguments):
        result.refused = "the arguments may set the clock"
    return result


def _git(arguments: Sequence[str]) -> tuple[ReaderProgram, ParsedArguments] | None:
    rest = list(arguments)
    while rest and (rest[0] in ("--no-pager", "--no-optional-locks") or rest[:2] == ["-C", "."]):
        rest = rest[2:] if rest[0] == "-C" else rest[1:]
    taken = 2 if " ".join(("git", *rest[:2])) in READERS else 1
    reader = READERS.get(" ".join(("git", *rest[:taken])))
    if reader is None:
        return None
    result = parse_arguments(reader, rest[taken:])
    limited = not reader.by_id and _is_limited(rest, result)
    reads_others = not result.options.isdisjoint(_READS_OTHER_FILES)
    result.everywhere = (reader.recursive and not limited) or reads_others
    result.operands = tuple(result.paths)
    # `HEAD:.env` contains a path.
    result.paths = [part for path in result.paths for part in embedded_paths(path)]
    return reader, result


def _is_limited(words: Sequence[str], found: ParsedArguments) -> bool:
    """Return whether git reads only the paths it is given, after `--`. A word before `--` may be a
    revision; a word after it may be a pattern or an exclusion. An object id may be that of a file
    or a directory, for which the paths limit nothing or are relative to it."""
    dashes = words.index("--") if "--" in words else len(words)
    before, after = words[:dashes], words[dashes + 1 :]
    if any(_ID.search(word) for word in before if word in found.paths):
        return False
    return bool(after) and all(
        word in found.paths and not word.startswith(":") and set("*?[\\").isdisjoint(word)
        for word in after
    )


class _ReaderTable(msgspec.Struct, forbid_unknown_fields=True):
    """A table of readers.toml."""

    flags: str = ""
    values: str = ""
    texts: str = ""
    numbered: str = ""
    long: str = ""
    long_texts: str = ""
    operands: Operands = Operands.PATHS
    most: int | None = None
    here: bool = False
    recursive: bool = False
    counts: bool = False
    needs_trust: bool = False
    pattern_options: str = "e regexp"
    files_only: bool = False
    skips_hidden: bool = False
    prints: bool = False
    shows: str = ""
    hides: str = ""
    by_id: bool = False
    enters_links: bool = False
    compares_files: bool = False


def _reader_program(name: str, written: _ReaderTable) -> ReaderProgram:
    for word in (*written.long.split(), *written.long_texts.split()):
        if word.endswith("-"):
            raise ValueError(f"readers.toml: {name}: {word} is half a name; do not split it")
    return ReaderProgram(
        written.flags,
        written.values,
        written.texts,
        written.numbered,
        word_set(written.long),
        word_set(written.long_texts),
        written.operands,
        written.most,
        written.here,
        written.recursive,
        written.counts,
        written.needs_trust,
        word_set(written.pattern_options),
        written.files_only,
        written.skips_hidden,
        written.prints,
        word_set(written.shows),
        word_set(written.hides),
        written.compares_files,
        written.by_id,
        written.enters_links,
    )


_TABLES: Final = tomllib.loads(files(__package__).joinpath("readers.toml").read_text("utf-8"))
READERS: Final = {
    name: _reader_program(name, written)
    for name, written in msgspec.convert(_TABLES, dict[str, _ReaderTable]).items()
}
"""The read-only programs by name; those of git with their subcommand."""

TAKES_ANYTHING: Final = frozenset({"echo", "true", "false"})
"""Programs that are harmless with any arguments, also with unknown ones."""
_ID: Final = re.compile(r"(?:(?<![\w/-])|-g)[0-9a-f]{4,64}(?![\w/-])", re.ASCII | re.IGNORECASE)
"""Text that git may take as the prefix of an object id, also after a name as `describe` prints
it."""
_READS_OTHER_FILES: Final = word_set("C follow find-copies find-copies-harder")
"""Options of git with which it also reads files other than the given paths, to find copies."""
_PRINTF: Final = re.compile(r"(?!-)(?:[^%]|%[0-9.]*[sdxqb%])*")
_LINES: Final = r"(?:[0-9]{1,9}|\$)(?:,(?:\+?[0-9]{1,9}|\$))?[pdq]"
_SED_PRINTS: Final = re.compile(rf"{_LINES}(?:; ?{_LINES})*")
_FIND_TESTS: Final = word_set("""
    ( ) ! , -not -a -and -o -or -true -false -empty -readable -writable -executable -print -print0
    -prune -ls -nouser -nogroup -mount -xdev -depth -noleaf -daystart
""")
_FIND_VALUES: Final = word_set("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -maxdepth
    -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -links -inum -lname
""")
