"""Programs by name: those that only read, with the options known to do no harm. Pure. Most are in
readers.toml; here are those with a language of their own.

Left out on purpose, so that they ask: `awk`, `jq` and all of sed but printing lines (languages of
their own), `env` and `ps` (they print secrets), `grep -r` (it reads hidden files; `rg` and the tool
`search` do not), options that follow links, that wait, or that name a file to write or a program to
run.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.judging.options import Operands, Reader, Used, names, used
from telex.agent.judging.showing import in_quotes
from telex.agent.judging.within import parts

if TYPE_CHECKING:
    from collections.abc import Sequence


SHELLS: Final = names("sh bash dash ash ksh mksh lksh zsh fish rbash csh tcsh busybox toybox")


def base(program: str) -> str:
    """`/usr/bin/bash-5.2` is bash; for what restricts, never for what allows."""
    return re.sub(r"[-.]?[0-9][0-9.]*$", "", program.rpartition("/")[2])


def reading(argv: Sequence[str]) -> tuple[Reader, Used] | None:
    """How a command reads; None when it is no reader. Its name is bare: `./ls` is not `ls`."""
    match argv:
        case [name, *rest] if name in TAKES_ANYTHING:
            return READERS["echo"], Used(texts=rest)
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
            return READERS[name], used(READERS[name], rest)
    return None


def _printf(arguments: Sequence[str]) -> Used:
    # `-v` and `%n` write a variable, and in bash the name of one may hold a command.
    good = arguments and _PRINTF.fullmatch(arguments[0])
    return Used(texts=list(arguments), refused="" if good else "this may do more than print")


def _find(arguments: Sequence[str]) -> Used:
    """Where to begin, then tests that only test: no `-exec`, `-delete`, `-fprint`."""
    result = Used()
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


def _sed(arguments: Sequence[str]) -> Used:
    result = used(READERS["sed"], arguments)
    if not result.refused and not (result.texts and _SED_PRINTS.fullmatch(result.texts[0])):
        result.refused = "its script does more than print or drop lines by number"
    return result


def _date(arguments: Sequence[str]) -> Used:
    result = used(READERS["date"], arguments)
    if not all(word.startswith(("+", "-")) for word in arguments):
        result.refused = "this may set the clock"
    return result


def _git(arguments: Sequence[str]) -> tuple[Reader, Used] | None:
    rest = list(arguments)
    while rest and (rest[0] in ("--no-pager", "--no-optional-locks") or rest[:2] == ["-C", "."]):
        rest = rest[2:] if rest[0] == "-C" else rest[1:]
    taken = 2 if " ".join(("git", *rest[:2])) in READERS else 1
    reader = READERS.get(" ".join(("git", *rest[:taken])))
    if reader is None:
        return None
    result = used(reader, rest[taken:])
    limited = not reader.by_id and _is_limited(rest, result)
    goes_on = not result.options.isdisjoint(_LOOKS_ELSEWHERE)
    result.everywhere = (reader.recursive and not limited) or goes_on
    result.operands = tuple(result.paths)
    # `HEAD:.env` has a path in it.
    result.paths = [part for path in result.paths for part in parts(path)]
    return reader, result


def _is_limited(words: Sequence[str], found: Used) -> bool:
    """Whether git is given paths and goes nowhere else: a word before `--` may be a revision, and
    after it a pattern, or what is left out. An object's id may be that of a file or a directory,
    where paths limit nothing or begin anew."""
    dashes = words.index("--") if "--" in words else len(words)
    before, after = words[:dashes], words[dashes + 1 :]
    if any(_ID.search(word) for word in before if word in found.paths):
        return False
    return bool(after) and all(
        word in found.paths and not word.startswith(":") and set("*?[\\").isdisjoint(word)
        for word in after
    )


class _Written(msgspec.Struct, forbid_unknown_fields=True):
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


def _read(name: str, written: _Written) -> Reader:
    for word in (*written.long.split(), *written.long_texts.split()):
        if word.endswith("-"):
            raise ValueError(f"readers.toml: {name}: {word} is half a name; write it in one line")
    return Reader(
        written.flags,
        written.values,
        written.texts,
        written.numbered,
        names(written.long),
        names(written.long_texts),
        written.operands,
        written.most,
        written.here,
        written.recursive,
        written.counts,
        written.needs_trust,
        names(written.pattern_options),
        written.files_only,
        written.skips_hidden,
        written.prints,
        names(written.shows),
        names(written.hides),
        written.compares_files,
        written.by_id,
        written.enters_links,
    )


_TABLES: Final = tomllib.loads(files(__package__).joinpath("readers.toml").read_text("utf-8"))
READERS: Final = {
    name: _read(name, written)
    for name, written in msgspec.convert(_TABLES, dict[str, _Written]).items()
}
"""By name; those of git with their subcommand."""

TAKES_ANYTHING: Final = frozenset({"echo", "true", "false"})
"""Harmless whatever their arguments are, so also with arguments that nobody knows yet."""
_ID: Final = re.compile(r"(?:(?<![\w/-])|-g)[0-9a-f]{4,64}(?![\w/-])", re.ASCII | re.IGNORECASE)
"""What git may take for the beginning of one, also behind a name as `describe` prints it."""
_LOOKS_ELSEWHERE: Final = names("C follow find-copies find-copies-harder")
"""Options of git by which it looks into other files than those it is given, for what was copied,
and goes on with them."""
_PRINTF: Final = re.compile(r"(?!-)(?:[^%]|%[0-9.]*[sdxqb%])*")
_LINES: Final = r"(?:[0-9]{1,9}|\$)(?:,(?:\+?[0-9]{1,9}|\$))?[pdq]"
_SED_PRINTS: Final = re.compile(rf"{_LINES}(?:; ?{_LINES})*")
_FIND_TESTS: Final = names("""
    ( ) ! , -not -a -and -o -or -true -false -empty -readable -writable -executable -print -print0
    -prune -ls -nouser -nogroup -mount -xdev -depth -noleaf -daystart
""")
_FIND_VALUES: Final = names("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -maxdepth
    -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -links -inum -lname
""")
