"""write, edit: a file replaced whole, or a text in it by another.

`edit` works on bytes and exactly: what it does not find it does not guess at, and what stands there
twice it does not choose from. Both can say what they would change (`preview`), and bind the change
to the file as it was then: between the showing and the doing, a file may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from telex.agent.differences import difference, marked
from telex.agent.files import FileChanged, FileRefused, digest, read_text, replace
from telex.agent.judging import in_quotes, shown
from telex.agent.tools.reading import Path
from telex.agent.tools.tool import Preview, S, ToolContext, ToolFailed, ToolResult, tool
from telex.agent.uninterrupted import in_thread
from telex.wire.limits import AGENT_FILE_BYTES, MIB

if TYPE_CHECKING:
    import threading

    from telex.agent.sandbox import Sandbox

ABSENT: Final = ""
"""The hash of a file that is not there."""

Hash = Annotated[
    str,
    Meta(
        pattern="^([0-9a-f]{64})?$",
        description="SHA-256 of the file as it was last read; empty if there must be none yet.",
    ),
]


class Write(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write a file, whole; directories on the way to it are made."""

    file_path: Path
    content: str
    expected_hash: Hash | None = None


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace a text in a file by another. The text must stand there exactly once, unless
    `replace_all` is set; an empty one stands for the whole file."""

    file_path: Path
    old_string: str
    new_string: str
    replace_all: bool = False
    dry_run: Annotated[bool, Meta(description="Only say what would change.")] = False
    expected_hash: Hash | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """One file, before and after."""

    place: str
    before: bytes | None
    after: bytes
    note: str
    asked: str
    """What a person is asked about, in a line."""

    @property
    def hash_before(self) -> str:
        return ABSENT if self.before is None else digest(self.before)

    def result(self, *, done: bool) -> ToolResult:
        diff = difference(self.place, self.before, self.after)
        said = self.note if done else f"{self.note} (dry run: nothing was written)"
        sha256 = digest(self.after)
        details = {"path": self.place, "diff": diff.text, "truncated": diff.truncated}
        told = diff.text.removesuffix("\n")
        text = "\n".join(filter(None, [said, told, f"[sha256 {sha256}]"]))
        return ToolResult(text, details={**details, "sha256": sha256})


async def _write(asked: Write, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    return await in_thread(
        lambda unwanted: _done(context.sandbox, _written(asked, place, context), unwanted)
    )


async def _edit(asked: Edit, context: ToolContext) -> ToolResult:
    place = context.sandbox.place(asked.file_path, context.cwd)
    if asked.dry_run:
        return await in_thread(lambda _: _edited(asked, place, context).result(done=False))
    return await in_thread(
        lambda unwanted: _done(context.sandbox, _edited(asked, place, context), unwanted)
    )


async def _preview_write(asked: Write, context: ToolContext) -> Preview[Write]:
    place = context.sandbox.place(asked.file_path, context.cwd)
    return await in_thread(
        lambda _: _shown(_written(asked, place, context), asked, marked("+", asked.content))
    )


async def _preview_edit(asked: Edit, context: ToolContext) -> Preview[Edit]:
    place = context.sandbox.place(asked.file_path, context.cwd)
    whole = [*marked("-", asked.old_string), *marked("+", asked.new_string)]
    return await in_thread(lambda _: _shown(_edited(asked, place, context), asked, whole))


def _shown(change: _Change, asked: S, whole: list[str]) -> Preview[S]:
    """`whole` is all that the call brings, for where the difference has not all of it."""
    pinned = msgspec.structs.replace(asked, expected_hash=change.hash_before)
    diff = difference(change.place, change.before, change.after)
    rows = whole if diff.truncated or change.before is None else diff.rows
    says = "\n".join([change.asked, *map(_row, rows)])
    return Preview(change.place, diff.text, diff.truncated, says, pinned)


def _row(row: str) -> str:
    # Behind a new line, `shown` takes spaces for what they are: an indent.
    indented = shown(f"\n{row[1:]}").removeprefix("\\u{a}").removeprefix("\n")
    return f"| {row[:1]}{indented}"


def _done(sandbox: Sandbox, change: _Change, unwanted: threading.Event) -> ToolResult:
    if unwanted.is_set():
        raise ToolFailed(f"{change.place} is as it was: the call was cancelled")
    if change.before != change.after:
        replace(sandbox, change.place, change.after)
    return change.result(done=True)


def _written(asked: Write, place: str, context: ToolContext) -> _Change:
    before = _before(context.sandbox, place)
    _expect(asked.expected_hash, before, place)
    after = _within(asked.content.encode(), place)
    made = "made" if before is None else "written"
    instead = "a new file" if before is None else f"in place of {_size(before)}"
    asked_as = f"Write {in_quotes(place)}, {_size(after)}, {instead}"
    same = ": it stays as it is" if before == after else ":"
    return _Change(place, before, after, f"{place} {made}: {_size(after)}", asked_as + same)


def _edited(asked: Edit, place: str, context: ToolContext) -> _Change:
    before = read_text(context.sandbox, place)
    _expect(asked.expected_hash, before, place)
    old, new = asked.old_string.encode(), asked.new_string.encode()
    if old == new:
        raise ToolFailed("old_string and new_string are the same; there is nothing to change")
    count = before.count(old) if old else 1
    if not count:
        raise ToolFailed(f"old_string does not stand in {place}{_hint(before, old)}")
    if count > 1 and not asked.replace_all:
        raise ToolFailed(
            f"old_string stands {count} times in {place}; give more of what is around it, "
            "or set replace_all"
        )
    after = _within(before.replace(old, new) if old else new, place)
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
    found = ABSENT if before is None else digest(before)
    if expected is not None and expected != found:
        told = f"its sha256 is {found}" if found else "it is not there"
        raise FileChanged(f"{place} is not the file that was expected: {told}; read it again")


def _size(content: bytes) -> str:
    return "1 byte" if len(content) == 1 else f"{len(content)} bytes"


def _within(content: bytes, place: str) -> bytes:
    if len(content) > AGENT_FILE_BYTES:
        raise FileRefused(f"{place} would be larger than {AGENT_FILE_BYTES // MIB} MiB")
    return content


def _hint(content: bytes, old: bytes) -> str:
    if b"\r\n" in content and old.replace(b"\n", b"\r\n") in content:
        return ": its lines end in CR LF"
    if b" ".join(old.split()) in b" ".join(content.split()):
        return ": it does with other white space; read that part again"
    return "; read it again"


WRITE: Final = tool("write", Write, _write, _preview_write)
EDIT: Final = tool("edit", Edit, _edit, _preview_edit)
