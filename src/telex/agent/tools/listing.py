"""list: the entries of a directory, or every file beneath it whose name fits a pattern."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.excerpts import fitting
from telex.agent.globs import Glob, NoGlob
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool
from telex.agent.uninterrupted import in_thread
from telex.agent.walking import Entry, WalkedTooFar, entries, shown, walk
from telex.wire.limits import AGENT_LISTED

if TYPE_CHECKING:
    import threading


class List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """List a directory; with a pattern, the files beneath it that fit, at any depth, in hidden
    directories only if the pattern names one. Directories end in `/`, links in `@`."""

    path: str = "."
    pattern: (
        Annotated[
            str, Meta(min_length=1, description="`*.py` by name; `src/**/*.{ts,tsx}` by path.")
        ]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=AGENT_LISTED)] = AGENT_LISTED


async def _list(asked: List, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.path, context.cwd)
    notes: list[str] = []
    if asked.pattern is None:
        found = await in_thread(lambda _: entries(context.sandbox, place))
    else:
        glob = read_glob(asked.pattern)
        found, notes = await in_thread(lambda stop: _fitting(glob, place, asked, context, stop))
    rows = list(fitting(_row(entry, place, context) for entry in found[: asked.limit]))
    if len(rows) < len(found):
        notes = [f"the first {len(rows)}; narrow the pattern or the path for others", *notes]
    if not rows:
        notes = ["nothing fits" if asked.pattern else "the directory is empty", *notes]
    text = "\n".join([*rows, *(f"[{note}]" for note in notes)])
    return ToolResult(text, details={"count": len(rows), "truncated": len(rows) < len(found)})


def read_glob(source: str) -> Glob:
    try:
        return Glob(source)
    except NoGlob as error:
        raise ToolFailed(str(error)) from error


def _fitting(
    glob: Glob, place: str, asked: List, context: ToolContext, unwanted: threading.Event
) -> tuple[list[Entry], list[str]]:
    found: list[Entry] = []
    try:
        hidden = "/." in f"/{asked.pattern}"
        for entry in walk(context.sandbox, place, unwanted, hidden=hidden):
            if not entry.is_directory and glob.matches(entry.path):
                found.append(entry)
                if len(found) > asked.limit:
                    break
    except WalkedTooFar as limit:
        return found, [str(limit)]
    return found, []


def _row(entry: Entry, place: str, context: ToolContext) -> str:
    mark = "/" if entry.is_directory else "@" if entry.is_link else ""
    return from_cwd(os.path.join(place, entry.path), context) + mark


def from_cwd(place: str, context: ToolContext) -> str:
    """A place as a path that can be given to a tool."""
    return shown(os.path.relpath(context.sandbox.root / place, context.cwd))


LIST: Final = tool("list", List, _list)
