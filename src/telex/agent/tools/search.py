"""search: lines that hold a text or fit a pattern, in every file beneath a directory.

With ripgrep where it is installed: it is fast and leaves out what `.gitignore` names. Without it we
look ourselves. Neither looks into hidden files and such as hold secrets by their names, unless the
path given is one: that was judged, and what lies below it was not. Patterns are RE2's in both
cases, and refused by us, so that one which works on one machine works on another. ripgrep reads
no configuration: that could name a program to run.
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
    """Find the lines that hold a text, in a file or in all files beneath a directory, without those
    that are hidden or hold secrets. Answers `path:line:text`, lines counted from 1."""

    pattern: Annotated[str, Meta(min_length=1)]
    path: str = "."
    regex: Annotated[bool, Meta(description="The pattern is a regular expression (RE2).")] = False
    ignore_case: bool = False
    glob: (
        Annotated[str, Meta(min_length=1, description="Only in files that fit, as in `list`.")]
        | None
    ) = None
    max_matches: Annotated[int, Meta(ge=1, le=AGENT_LISTED)] = 200


@dataclass(frozen=True, slots=True)
class _SearchHit:
    place: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class _SearchResult:
    hits: list[_SearchHit]
    note: str = ""


async def _search(asked: SearchArguments, context: ToolContext) -> ToolResult:
    pattern = read_pattern(asked.pattern, regex=asked.regex, ignore_case=asked.ignore_case)
    glob = read_glob(asked.glob) if asked.glob is not None else None
    place = context.sandbox.place(asked.path, context.cwd)
    with context.sandbox.opened(place) as descriptor:
        before, program = os.fstat(descriptor), _ripgrep(context)
        mode = before.st_mode
        # By its name, a single file could be another one by the time ripgrep opens it.
        if program and stat.S_ISDIR(mode):
            found = await _search_with_ripgrep(program, asked, place, glob, context)
            _must_be_as_it_was(context, place, before)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            found = await run_in_thread(
                lambda stop: _search_in_python(pattern, asked, place, glob, context, stop)
            )
        else:  # whoever reads from a pipe waits for somebody who may never write
            raise ToolFailed(f"{place} is neither a file nor a directory")
    return _answer(found, asked.max_matches, context)


def _ripgrep(context: ToolContext) -> str | None:
    program = shutil.which("rg", path=context.environment.get("PATH", os.defpath))
    return os.path.abspath(program) if program else None


def read_pattern(source: str, *, regex: bool, ignore_case: bool = False) -> Pattern:
    try:
        return line_pattern(source, regex=regex, ignore_case=ignore_case)
    except PatternError as error:
        raise ToolFailed(f"{source!r} is no regular expression: {error}") from error


def _answer(found: _SearchResult, most: int, context: ToolContext) -> ToolResult:
    hits = found.hits[:most]
    rows = list(
        fitting(f"{from_cwd(hit.place, context)}:{hit.line}:{clip(hit.text)}" for hit in hits)
    )
    cut = len(rows) < len(found.hits)
    notes = [f"the first {len(rows)} matches; narrow the search for others"] if cut else []
    notes += [] if rows else ["nothing was found"]
    notes += [found.note] if found.note else []
    text = "\n".join([*rows, *(f"[{note}]" for note in notes)])
    return ToolResult(text, details={"matches": len(rows), "truncated": cut})


async def _search_with_ripgrep(
    program: str, asked: SearchArguments, place: str, glob: Glob | None, context: ToolContext
) -> _SearchResult:
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
    return _SearchResult(hits, "the search was ended early; narrow it" if ended else "")


def _must_be_as_it_was(context: ToolContext, place: str, before: os.stat_result) -> None:
    """ripgrep goes by names: what it found where another directory was put is not answered."""
    with context.sandbox.opened(place) as descriptor:
        if not os.path.samestat(os.fstat(descriptor), before):
            raise ToolFailed(f"{place} became another directory while it was searched")


def _is_open(path: str, place: str) -> bool:
    """Whether a file below the place was judged with it: not by itself hidden, nor a secret."""
    if path == place:
        return True
    hidden = any(part.startswith(".") for part in _inside(path, place).split("/"))
    # Below the root: a directory `dev` there is not the system's.
    return not hidden and (is_secret(f"/./{place}") or not is_secret(f"/./{path}"))


def _read(output: str, place: str, glob: Glob | None) -> Iterator[_SearchHit]:
    """`path NUL number : text` in each line."""
    for row in output.split("\n"):
        path, found, rest = row.partition("\0")
        number, colon, text = rest.partition(":")
        if not (found and colon and number.isdigit()):
            continue
        path = os.path.normpath(path)
        if _is_open(path, place) and (glob is None or glob.matches(_inside(path, place))):
            yield _SearchHit(path, int(number), text)


def _inside(path: str, place: str) -> str:
    """A path from the directory searched, or the name of the file searched."""
    return os.path.basename(path) if path == place else os.path.relpath(path, place)


def _search_in_python(
    pattern: Pattern,
    asked: SearchArguments,
    place: str,
    glob: Glob | None,
    context: ToolContext,
    unwanted: threading.Event,
) -> _SearchResult:
    hits: list[_SearchHit] = []
    try:
        for path in _files(place, context, unwanted):
            if glob is None or glob.matches(_inside(path, place)):
                hits.extend(_in_file(pattern, path, context, asked.max_matches + 1 - len(hits)))
            if len(hits) > asked.max_matches:
                break
    except WalkedTooFar as limit:
        return _SearchResult(hits, str(limit))
    return _SearchResult(hits)


def _files(place: str, context: ToolContext, unwanted: threading.Event) -> Iterator[str]:
    with context.sandbox.opened(place) as descriptor:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            yield place
            return
    for entry in walk(context.sandbox, place, unwanted):
        if not (entry.is_directory or entry.is_link):
            path = os.path.normpath(os.path.join(place, entry.path))
            if _is_open(path, place):
                yield path


def _in_file(pattern: Pattern, place: str, context: ToolContext, most: int) -> list[_SearchHit]:
    try:
        text = read_text(context.sandbox, place).decode("utf-8", "replace")
    except (FileRefused, OutsideSandbox, OSError):  # binary, huge, not ours to read, gone
        return []
    found = islice(matching_lines(pattern, text), most)
    return [_SearchHit(place, number + 1, line) for number, line in found]


SEARCH: Final = tool("search", SearchArguments, _search)
