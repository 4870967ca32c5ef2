"""The tool todo: the todo list of one session, and its storage in the session.

At most one entry is in progress. A change is applied whole or not at all: a change that would break
a rule leaves the list unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from telex.agent.limits import AGENT_TODOS
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool

if TYPE_CHECKING:
    from telex.agent.store import Store


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
    """An entry to add, which has no id yet."""

    content: Content
    status: Status = "pending"
    priority: Priority = 3


class TodoEntry(NewEntry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An entry of the list, with the id that `patch` names."""

    id: int


class EntryChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one entry; members that are None stay as they are."""

    id: int
    content: Content | None = None
    status: Status | None = None
    priority: Priority | None = None


class TodoArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maintain the todo list: `read` it, start a `new` one, `append` entries, `patch` some by their
    ids, or `clear` it. At most one entry may be in progress."""

    action: Literal["read", "new", "append", "patch", "clear"]
    entries: Annotated[tuple[NewEntry, ...], Meta(description="For `new` and `append`.")] = ()
    changes: Annotated[tuple[EntryChange, ...], Meta(description="For `patch`.")] = ()


class TodoList:
    """The todo list of one session."""

    def __init__(self, entries: tuple[TodoEntry, ...] = ()) -> None:
        self.entries = entries

    def change(self, asked: TodoArguments) -> None:
        """Apply a change. Raises `ToolFailed`; then the list is unchanged."""
        match asked.action:
            case "new":
                self._replace_entries(_numbered(asked.entries, 1))
            case "append":
                last = max((entry.id for entry in self.entries), default=0)
                self._replace_entries((*self.entries, *_numbered(asked.entries, last + 1)))
            case "patch":
                self._replace_entries(_patched(self.entries, asked.changes))
            case "clear":
                self.entries = ()
            case "read":
                pass

    def _replace_entries(self, entries: tuple[TodoEntry, ...]) -> None:
        if len(entries) > AGENT_TODOS:
            raise ToolFailed(f"the list has at most {AGENT_TODOS} entries")
        if sum(entry.status == "in_progress" for entry in entries) > 1:
            raise ToolFailed("at most one entry may be in_progress; complete the other one first")
        self.entries = entries

    def __str__(self) -> str:
        rows = (f"{entry.id}. {_MARKS[entry.status]} {entry.content}" for entry in self.entries)
        return "\n".join(rows) or "[nothing to do]"


def _numbered(entries: tuple[NewEntry, ...], first: int) -> tuple[TodoEntry, ...]:
    if not entries:
        raise ToolFailed("entries is empty; give at least one entry")
    return tuple(
        TodoEntry(entry.content, entry.status, entry.priority, id=id)
        for id, entry in enumerate(entries, first)
    )


def _patched(
    entries: tuple[TodoEntry, ...], changes: tuple[EntryChange, ...]
) -> tuple[TodoEntry, ...]:
    found = {entry.id: entry for entry in entries}
    for change in changes:
        if change.id not in found:
            raise ToolFailed(f"there is no entry {change.id}")
        given = {k: v for k, v in msgspec.structs.asdict(change).items() if v is not None}
        found[change.id] = msgspec.structs.replace(found[change.id], **given)
    return tuple(found.values())


async def _todo(asked: TodoArguments, context: ToolContext) -> ToolResult:
    context.todos.change(asked)
    listed = msgspec.to_builtins(context.todos.entries)
    return ToolResult(str(context.todos), details={"todos": listed})


TODO: Final = tool("todo", TodoArguments, _todo)


class _StoredTodos(msgspec.Struct):
    todos: list[TodoEntry] = []


class TodoStore:
    """The lists of all sessions, each stored in the session's `meta` beside its other members."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, session_id: str) -> TodoList:
        meta = (await self._store.thread(session_id)).meta
        if meta is None:
            return TodoList()
        try:
            return TodoList(tuple(msgspec.json.decode(meta, type=_StoredTodos).todos))
        except msgspec.ValidationError:  # an imported session with an invalid list is still usable
            return TodoList()

    async def save(self, session_id: str, todos: TodoList) -> None:
        entries = msgspec.json.encode(todos.entries)
        await self._store.set_thread_member(session_id, "todos", entries)
