"""The tools read, read_line, view_image, write, edit and list, for the files of the sandbox.

`read` numbers lines from 1, as compilers, editors and `search` do; `offset` is the number of lines
to skip. The hash in its result is what `write` and `edit` take as `expected_hash`.

`edit` works on bytes and exactly: it fails if the old text is not found, or is found more than
once. `write` and `edit` can preview their change, and bind the call to the file that the preview
shows, because the file may change between the preview and the call.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.diffs import marked_lines, unified_diff
from telex.agent.excerpts import count_lines, fitting, nth_line, page, part_of_line
from telex.agent.images import check_image
from telex.agent.limits import (
    AGENT_FILE_BYTES,
    AGENT_LINE_PART_CHARS,
    AGENT_LISTED,
    AGENT_READ_LINES,
)
from telex.agent.permissions import escaped, in_quotes
from telex.agent.sandbox_files import (
    BadGlob,
    FileChanged,
    FileRefused,
    Glob,
    SandboxEntry,
    WalkedTooFar,
    list_directory,
    printable_path,
    read_text,
    read_whole,
    replace_file,
    sha256_hex,
    walk,
)
from telex.agent.tools.tool import Preview, S, ToolContext, ToolFailed, ToolResult, tool
from telex.agent.undo import ABSENT
from telex.processes.shielded import run_in_thread
from telex.wire.limits import MIB

if TYPE_CHECKING:
    import threading

    from telex.agent.sandbox_files import Sandbox


Path = Annotated[str, Meta(min_length=1, description="Inside the sandbox root.")]
Count = Annotated[int, Meta(ge=0)]
Limit = Annotated[int, Meta(ge=1, le=AGENT_READ_LINES)]
PartLimit = Annotated[int, Meta(ge=1, le=AGENT_LINE_PART_CHARS)]


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a text file: numbered lines, and the SHA-256 of the whole file. At most 2000 lines and
    64 KiB at a time; continue with `offset`."""

    file_path: Path
    offset: Annotated[int, Meta(ge=0, description="Number of lines to skip.")] = 0
    limit: Limit = AGENT_READ_LINES


class ReadLineArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a part of one line that is too long for `read`."""

    file_path: Path
    line_number: Annotated[int, Meta(ge=1, description="As `read` numbers them, from 1.")]
    char_offset: Count = 0
    char_limit: PartLimit = 10_000


class ViewImageArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Look at an image file: PNG, JPEG, GIF or WebP, at most 5 MiB."""

    file_path: Path


async def _read(asked: ReadArguments, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    return await run_in_thread(
        lambda _: text_page(asked.offset, asked.limit, place, read_text(context.sandbox, place))
    )


def text_page(offset: int, limit: int, place: str, content: bytes) -> ToolResult:
    """Return numbered lines of a text, and how to go on. Raises `ToolFailed` beyond its end."""
    found, notes = page(content, offset, limit, first=1), []
    if offset and offset >= found.total:
        raise _too_far(place, found.total)
    if found.clipped:
        notes.append("long lines are clipped: use read_line to read them")
    if (after := offset + found.shown) < found.total:
        notes.append(
            f"lines {offset + 1} to {after} of {found.total}: continue with offset {after}"
        )
    if b"\r\n" in content:
        notes.append("lines end in CR LF")
    sha256 = sha256_hex(content)
    note = "; ".join([*notes, f"sha256 {sha256}"])
    text = f"{found.text}\n[{note}]" if found.total else f"[the file is empty; {note}]"
    return ToolResult(text, details={"sha256": sha256, "lines": found.total})


async def _read_line(asked: ReadLineArguments, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    content = await run_in_thread(lambda _: read_text(context.sandbox, place))
    line = nth_line(content, asked.line_number - 1)
    if line is None:
        raise _too_far(place, count_lines(content))
    return ToolResult(part_of_line(line, asked.char_offset, asked.char_limit))


async def _view_image(asked: ViewImageArguments, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    content = await run_in_thread(lambda _: read_whole(context.sandbox, place))
    kind = check_image(content, place)
    details = {"media_type": kind, "sha256": sha256_hex(content)}
    return ToolResult(f"{place}: {kind}, {len(content)} bytes", details=details, image=content)


def _too_far(place: str, lines: int) -> ToolFailed:
    return ToolFailed(f"{place} has only {lines} lines")


READ: Final = tool("read", ReadArguments, _read, only_reads=True)
READ_LINE: Final = tool("read_line", ReadLineArguments, _read_line, only_reads=True)
VIEW_IMAGE: Final = tool("view_image", ViewImageArguments, _view_image, only_reads=True)


Hash = Annotated[
    str,
    Meta(
        pattern="^([0-9a-f]{64})?$",
        description="SHA-256 of the file when it was last read; empty if the file must not exist.",
    ),
]


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write a whole file; missing directories are created."""

    file_path: Path
    content: str
    expected_hash: Hash | None = None


class EditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace a text in a file by another. The text must occur exactly once, unless `replace_all`
    is set; an empty text means the whole file."""

    file_path: Path
    old_string: str
    new_string: str
    replace_all: bool = False
    dry_run: Annotated[bool, Meta(description="Only show the change.")] = False
    expected_hash: Hash | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of one file: its content before and after."""

    place: str
    before: bytes | None
    after: bytes
    note: str
    asked: str
    """The change in one line, for the question to the person."""

    @property
    def hash_before(self) -> str:
        return ABSENT if self.before is None else sha256_hex(self.before)

    def result(self, *, done: bool) -> ToolResult:
        diff = unified_diff(self.place, self.before, self.after)
        summary = self.note if done else f"{self.note} (dry run: nothing was written)"
        sha256 = sha256_hex(self.after)
        details = {
            "path": self.place,
            "diff": diff.text,
            "truncated": diff.truncated,
            "written": done,
            "sha256_before": self.hash_before,
        }
        shown_diff = diff.text.removesuffix("\n")
        text = "\n".join(filter(None, [summary, shown_diff, f"[sha256 {sha256}]"]))
        return ToolResult(text, details={**details, "sha256": sha256})


async def _write(asked: WriteArguments, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    return await run_in_thread(
        lambda unwanted: _apply(context, _write_change(asked, place, context), unwanted)
    )


async def _edit(asked: EditArguments, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    if asked.dry_run:
        return await run_in_thread(lambda _: _edit_change(asked, place, context).result(done=False))
    return await run_in_thread(
        lambda unwanted: _apply(context, _edit_change(asked, place, context), unwanted)
    )


async def _preview_write(asked: WriteArguments, context: ToolContext) -> Preview[WriteArguments]:
    place = context.sandbox.place(asked.file_path, context.cwd)
    return await run_in_thread(
        lambda _: _preview(
            _write_change(asked, place, context), asked, marked_lines("+", asked.content)
        )
    )


async def _preview_edit(asked: EditArguments, context: ToolContext) -> Preview[EditArguments]:
    place = context.sandbox.place(asked.file_path, context.cwd)
    whole = [*marked_lines("-", asked.old_string), *marked_lines("+", asked.new_string)]
    return await run_in_thread(
        lambda _: _preview(_edit_change(asked, place, context), asked, whole)
    )


def _preview(change: _Change, asked: S, whole: list[str]) -> Preview[S]:
    """Return the preview of a change. `whole` is the complete text of the call; it is shown if the
    diff is truncated, or if the file is new."""
    pinned = msgspec.structs.replace(asked, expected_hash=change.hash_before)
    diff = unified_diff(change.place, change.before, change.after)
    rows = whole if diff.truncated or change.before is None else diff.rows
    message = "\n".join([change.asked, *map(_shown_row, rows)])
    return Preview(change.place, diff.text, diff.truncated, message, pinned)


def _shown_row(row: str) -> str:
    # After a line feed, `escaped` leaves spaces as they are, because they are an indent.
    indented = escaped(f"\n{row[1:]}").removeprefix("\\u{a}").removeprefix("\n")
    return f"| {row[:1]}{indented}"


def _apply(context: ToolContext, change: _Change, unwanted: threading.Event) -> ToolResult:
    if unwanted.is_set():
        raise ToolFailed(f"{change.place} is unchanged: the call was cancelled")
    if change.before != change.after:
        if change.before is not None:
            context.versions.save(change.before)
        replace_file(context.sandbox, change.place, change.after)
    return change.result(done=True)


def _write_change(asked: WriteArguments, place: str, context: ToolContext) -> _Change:
    before = _before(context.sandbox, place)
    _expect(asked.expected_hash, before, place)
    after = _within_limit(asked.content.encode(), place)
    done = "created" if before is None else "written"
    instead = "a new file" if before is None else f"in place of {_size(before)}"
    asked_as = f"Write {in_quotes(place)}, {_size(after)}, {instead}"
    same = ": no change" if before == after else ":"
    return _Change(place, before, after, f"{place} {done}: {_size(after)}", asked_as + same)


def _edit_change(asked: EditArguments, place: str, context: ToolContext) -> _Change:
    before = read_text(context.sandbox, place)
    _expect(asked.expected_hash, before, place)
    old, new = asked.old_string.encode(), asked.new_string.encode()
    if old == new:
        raise ToolFailed("old_string and new_string are equal; there is nothing to change")
    count = before.count(old) if old else 1
    if not count:
        raise ToolFailed(f"old_string is not in {place}{_hint(before, old)}")
    if count > 1 and not asked.replace_all:
        raise ToolFailed(
            f"old_string occurs {count} times in {place}; include more of the text around it, "
            "or set replace_all"
        )
    after = _within_limit(before.replace(old, new) if old else new, place)
    times = "1 place" if count == 1 else f"{count} places"
    dry = " (dry run: nothing is written)" if asked.dry_run else ""
    return _Change(
        *(place, before, after, f"{place} edited in {times}"),
        asked=f"Edit {in_quotes(place)} in {times}{dry}:",
    )


def _before(sandbox: Sandbox, place: str) -> bytes | None:
    try:
        return read_text(sandbox, place)
    except FileNotFoundError:
        return None


def _expect(expected: str | None, before: bytes | None, place: str) -> None:
    found = ABSENT if before is None else sha256_hex(before)
    if expected is not None and expected != found:
        state = f"its sha256 is {found}" if found else "it does not exist"
        raise FileChanged(f"{place} is not the expected file: {state}; read it again")


def _size(content: bytes) -> str:
    return "1 byte" if len(content) == 1 else f"{len(content)} bytes"


def _within_limit(content: bytes, place: str) -> bytes:
    if len(content) > AGENT_FILE_BYTES:
        raise FileRefused(f"{place} would be larger than {AGENT_FILE_BYTES // MIB} MiB")
    return content


def _hint(content: bytes, old: bytes) -> str:
    if b"\r\n" in content and old.replace(b"\n", b"\r\n") in content:
        return ": its lines end in CR LF"
    if b" ".join(old.split()) in b" ".join(content.split()):
        return ", only with other white space; read that part again"
    return "; read it again"


WRITE: Final = tool("write", WriteArguments, _write, _preview_write)
EDIT: Final = tool("edit", EditArguments, _edit, _preview_edit)


class ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """List a directory; with a pattern, all files below it that match, at any depth. Hidden
    directories are searched only if the pattern names one. Directories end in `/`, links in `@`."""

    path: str = "."
    pattern: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="A glob: `*.py` for names, `src/**/*.{ts,tsx}` for paths.",
            ),
        ]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=AGENT_LISTED)] = AGENT_LISTED


async def _list(asked: ListArguments, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.path, context.cwd)
    notes: list[str] = []
    if asked.pattern is None:
        found = await run_in_thread(lambda _: list_directory(context.sandbox, place))
    else:
        glob = read_glob(asked.pattern)
        found, notes = await run_in_thread(
            lambda stop: _matching_entries(glob, place, asked, context, stop)
        )
    rows = list(fitting(_list_row(entry, place, context) for entry in found[: asked.limit]))
    if len(rows) < len(found):
        notes = [f"the first {len(rows)}; narrow the pattern or the path for more", *notes]
    if not rows:
        notes = ["no matching files" if asked.pattern else "the directory is empty", *notes]
    text = "\n".join([*rows, *(f"[{note}]" for note in notes)])
    return ToolResult(text, details={"count": len(rows), "truncated": len(rows) < len(found)})


def read_glob(source: str) -> Glob:
    try:
        return Glob(source)
    except BadGlob as error:
        raise ToolFailed(str(error)) from error


def _matching_entries(
    glob: Glob, place: str, asked: ListArguments, context: ToolContext, unwanted: threading.Event
) -> tuple[list[SandboxEntry], list[str]]:
    found: list[SandboxEntry] = []
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


def _list_row(entry: SandboxEntry, place: str, context: ToolContext) -> str:
    mark = "/" if entry.is_directory else "@" if entry.is_link else ""
    return from_cwd(os.path.join(place, entry.path), context) + mark


def from_cwd(place: str, context: ToolContext) -> str:
    """Return a place as a path relative to the cwd, which tools accept."""
    return printable_path(os.path.relpath(context.sandbox.root / place, context.cwd))


LIST: Final = tool("list", ListArguments, _list, only_reads=True)
