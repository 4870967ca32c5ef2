"""todo: what is to be done in one thread, as a list. At most one entry is being worked on.

A change is made whole or not at all: a list that would break a rule stays as it was.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool
from telex.wire.limits import AGENT_TODOS

Status = Literal["pending", "in_progress", "completed", "cancelled"]
Content = Annotated[str, Meta(min_length=1, max_length=1000)]
Priority = Annotated[int, Meta(ge=1, le=5, description="1 is the most urgent.")]

_MARKS: Final[dict[Status, str]] = {
    "pending": "[ ]",
    "in_progress": "[>]",
    "completed": "[x]",
    "cancelled": "[-]",
}


class NewEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing to do."""

    content: Content
    status: Status = "pending"
    priority: Priority = 3


class Entry(NewEntry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same, with the number by which it is changed."""

    id: int


class EntryChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is different about one entry from now on."""

    id: int
    content: Content | None = None
    status: Status | None = None
    priority: Priority | None = None


class Todo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keep the list of what is to be done: `read` it, begin a `new` one, `append` entries, `patch`
    some by their ids, or `clear` it. At most one entry is in progress."""

    action: Literal["read", "new", "append", "patch", "clear"]
    entries: Annotated[tuple[NewEntry, ...], Meta(description="For `new` and `append`.")] = ()
    changes: Annotated[tuple[EntryChange, ...], Meta(description="For `patch`.")] = ()


class Todos:
    """One thread's list."""

    def __init__(self, entries: tuple[Entry, ...] = ()) -> None:
        self.entries = entries

    def change(self, asked: Todo) -> None:
        """Raises `ToolFailed`, and then nothing has changed."""
        match asked.action:
            case "new":
                self._become(_numbered(asked.entries, 1))
            case "append":
                last = max((entry.id for entry in self.entries), default=0)
                self._become((*self.entries, *_numbered(asked.entries, last + 1)))
            case "patch":
                self._become(_patched(self.entries, asked.changes))
            case "clear":
                self.entries = ()
            case "read":
                pass

    def _become(self, entries: tuple[Entry, ...]) -> None:
        if len(entries) > AGENT_TODOS:
            raise ToolFailed(f"a list has at most {AGENT_TODOS} entries")
        if sum(entry.status == "in_progress" for entry in entries) > 1:
            raise ToolFailed("at most one entry may be in_progress; finish the other one first")
        self.entries = entries

    def __str__(self) -> str:
        rows = (f"{one.id}. {_MARKS[one.status]} {one.content}" for one in self.entries)
        return "\n".join(rows) or "[nothing to do]"


def _numbered(entries: tuple[NewEntry, ...], first: int) -> tuple[Entry, ...]:
    if not entries:
        raise ToolFailed("there are no entries in the call; give at least one")
    return tuple(
        Entry(one.content, one.status, one.priority, id=id) for id, one in enumerate(entries, first)
    )


def _patched(entries: tuple[Entry, ...], changes: tuple[EntryChange, ...]) -> tuple[Entry, ...]:
    found = {entry.id: entry for entry in entries}
    for change in changes:
        if change.id not in found:
            raise ToolFailed(f"there is no entry {change.id}")
        given = {k: v for k, v in msgspec.structs.asdict(change).items() if v is not None}
        found[change.id] = msgspec.structs.replace(found[change.id], **given)
    return tuple(found.values())


async def _todo(asked: Todo, context: ToolContext) -> ToolResult:
    context.todos.change(asked)
    listed = msgspec.to_builtins(context.todos.entries)
    return ToolResult(str(context.todos), details={"todos": listed})


TODO: Final = tool("todo", Todo, _todo)
