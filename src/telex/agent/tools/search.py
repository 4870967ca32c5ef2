"""The tool search: lines that contain a text or match a pattern, in every file below a directory.

ripgrep is used if it is installed: it is fast and skips files that `.gitignore` names. Otherwise
the search runs in Python. Both skip hidden files, and files whose names are those of secrets,
unless the given path is such a file: the path itself was judged, and the files below it were not.
Patterns are checked with RE2 in both cases, so that a pattern that works on one machine works on
another. ripgrep reads no configuration file, which could name a program to run.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent import command_runner
from telex.agent.command_runner import agent_environment
from telex.agent.excerpts import clip, fitting, line_pattern, matching_lines
from telex.agent.limits import AGENT_LINE_CHARS, AGENT_LISTED, AGENT_SHELL_SECONDS
from telex.agent.permissions.path_policy import is_secret
from telex.agent.sandbox_files import (
    SKIPPED_DIRECTORIES,
    FileRefused,
    OutsideSandbox,
    WalkedTooFar,
    read_text,
    walk,
)
from telex.agent.tools.file_tools import from_cwd, read_glob
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool
from telex.processes.shielded import run_in_thread
from telex.terminal.patterns import Pattern, PatternError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from telex.agent.sandbox_files import Glob


class SearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find the lines that contain a text, in a file or in all files below a directory. Hidden files
    and files with names of secrets are skipped. Returns `path:line:text`, lines counted from 1."""

    pattern: Annotated[str, Meta(min_length=1)]
    path: str = "."
    regex: Annotated[bool, Meta(description="The pattern is a regular expression (RE2).")] = False
    ignore_case: bool = False
    glob: (
        Annotated[str, Meta(min_length=1, description="Only in matching files, as in `list`.")]
        | None
    ) = None
    max_matches: Annotated[int, Meta(ge=1, le=AGENT_LISTED)] = 200


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A matching line. `place` is relative to the root; lines are counted from 1."""

    place: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matching lines, one more than were asked for if there are more."""

    hits: list[SearchHit]
    note: str = ""


async def _search(asked: SearchArguments, context: ToolContext) -> ToolResult:
    return _answer(await find_lines(asked, context), asked.max_matches, context)


async def find_lines(asked: SearchArguments, context: ToolContext) -> SearchResult:
    """Find the matching lines. Raises `ToolFailed`, `OutsideSandbox` and `OSError`."""
    pattern = read_pattern(asked.pattern, regex=asked.regex, ignore_case=asked.ignore_case)
    glob = read_glob(asked.glob) if asked.glob is not None else None
    place = context.sandbox.place(asked.path, context.cwd)
    with context.sandbox.opened(place) as descriptor:
        before, program = os.fstat(descriptor), _ripgrep(context)
        mode = before.st_mode
        # A single file is searched in Python: ripgrep opens it by name, and it could be replaced.
        if program and stat.S_ISDIR(mode):
            found = await _search_with_ripgrep(program, asked, place, glob, context)
            _check_unchanged(context, place, before)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            found = await run_in_thread(
                lambda stop: _search_in_python(pattern, asked, place, glob, context, stop)
            )
        else:  # reading from a named pipe could block forever
            raise ToolFailed(f"{place} is neither a file nor a directory")
    return found


def _ripgrep(context: ToolContext) -> str | None:
    program = shutil.which("rg", path=context.environment.get("PATH", os.defpath))
    return os.path.abspath(program) if program else None


def read_pattern(source: str, *, regex: bool, ignore_case: bool = False) -> Pattern:
    try:
        return line_pattern(source, regex=regex, ignore_case=ignore_case)
    except PatternError as error:
        raise ToolFailed(f"{source!r} is not a valid regular expression: {error}") from error


def _answer(found: SearchResult, most: int, context: ToolContext) -> ToolResult:
    hits = found.hits[:most]
    rows = list(
        fitting(f"{from_cwd(hit.place, context)}:{hit.line}:{clip(hit.text)}" for hit in hits)
    )
    cut = len(rows) < len(found.hits)
    notes = [f"the first {len(rows)} matches; narrow the search for more"] if cut else []
    notes += [] if rows else ["no matches"]
    notes += [found.note] if found.note else []
    text = "\n".join([*rows, *(f"[{note}]" for note in notes)])
    return ToolResult(text, details={"matches": len(rows), "truncated": cut})


async def _search_with_ripgrep(
    program: str, asked: SearchArguments, place: str, glob: Glob | None, context: ToolContext
) -> SearchResult:
    options = [
        *("--no-config", "--no-messages", "--color=never", "--no-heading"),
        *("--with-filename", "--line-number", "--null", "--sort=path"),
        *(f"--glob=!{name}" for name in SKIPPED_DIRECTORIES),
        *(f"--max-count={asked.max_matches + 1}", f"--max-columns={4 * AGENT_LINE_CHARS}"),
        "--max-columns-preview",
        *(["--ignore-case"] if asked.ignore_case else []),
        *([] if asked.regex else ["--fixed-strings"]),
        f"--regexp={asked.pattern}",
    ]
    ran = await command_runner.run_command(
        [program, *options, "--", f"./{place}"],
        env=agent_environment(context.environment, context.redactor),
        cwd=context.sandbox.root,
        seconds=AGENT_SHELL_SECONDS,
        confinement=context.confinement,
    )
    if ran.exit_code not in (0, 1) and not (ran.stdout or ran.timed_out):
        raise ToolFailed(f"ripgrep failed: {ran.stderr.strip() or ran.signal or ran.exit_code}")
    ended = ran.timed_out or ran.overflowed
    hits = list(_read(ran.stdout, place, glob))
    return SearchResult(hits, "the search was stopped early; narrow it" if ended else "")


def _check_unchanged(context: ToolContext, place: str, before: os.stat_result) -> None:
    """Discard the result if the directory was replaced meanwhile: ripgrep opens it by name."""
    with context.sandbox.opened(place) as descriptor:
        if not os.path.samestat(os.fstat(descriptor), before):
            raise ToolFailed(f"{place} was replaced while it was searched")


def _may_be_searched(path: str, place: str) -> bool:
    """Return whether the judgement of `place` covers a file below it: not hidden, not a secret."""
    if path == place:
        return True
    hidden = any(part.startswith(".") for part in _inside(path, place).split("/"))
    # `/./` makes the path relative to the root: a directory `dev` in it is not the system's /dev.
    return not hidden and (is_secret(f"/./{place}") or not is_secret(f"/./{path}"))


def _read(output: str, place: str, glob: Glob | None) -> Iterator[SearchHit]:
    """Parse the output of ripgrep: `path NUL number : text` in each line."""
    for row in output.split("\n"):
        path, found, rest = row.partition("\0")
        number, colon, text = rest.partition(":")
        if not (found and colon and number.isdigit()):
            continue
        path = os.path.normpath(path)
        if _may_be_searched(path, place) and (glob is None or glob.matches(_inside(path, place))):
            yield SearchHit(path, int(number), text)


def _inside(path: str, place: str) -> str:
    """Return a path relative to the searched directory, or the name of the searched file."""
    return os.path.basename(path) if path == place else os.path.relpath(path, place)


def _search_in_python(
    pattern: Pattern,
    asked: SearchArguments,
    place: str,
    glob: Glob | None,
    context: ToolContext,
    unwanted: threading.Event,
) -> SearchResult:
    hits: list[SearchHit] = []
    try:
        for path in _files(place, context, unwanted):
            if glob is None or glob.matches(_inside(path, place)):
                hits.extend(_in_file(pattern, path, context, asked.max_matches + 1 - len(hits)))
            if len(hits) > asked.max_matches:
                break
    except WalkedTooFar as limit:
        return SearchResult(hits, str(limit))
    return SearchResult(hits)


def _files(place: str, context: ToolContext, unwanted: threading.Event) -> Iterator[str]:
    with context.sandbox.opened(place) as descriptor:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            yield place
            return
    for entry in walk(context.sandbox, place, unwanted):
        if not (entry.is_directory or entry.is_link):
            path = os.path.normpath(os.path.join(place, entry.path))
            if _may_be_searched(path, place):
                yield path


def _in_file(pattern: Pattern, place: str, context: ToolContext, most: int) -> list[SearchHit]:
    try:
        text = read_text(context.sandbox, place).decode("utf-8", "replace")
    except (FileRefused, OutsideSandbox, OSError):  # binary, too large, not readable, deleted
        return []
    found = islice(matching_lines(pattern, text), most)
    return [SearchHit(place, number + 1, line) for number, line in found]


SEARCH: Final = tool("search", SearchArguments, _search, only_reads=True)
