"""The list of what is to be done, kept with its session beside whatever else is kept with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from telex.agent.tools.todo import Entry, Todos

if TYPE_CHECKING:
    from telex.agent.store import Store


class _Kept(msgspec.Struct):
    todos: list[Entry] = []


class TodoLists:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, session_id: str) -> Todos:
        meta = (await self._store.thread(session_id)).meta
        if meta is None:
            return Todos()
        try:
            return Todos(tuple(msgspec.json.decode(meta, type=_Kept).todos))
        except msgspec.ValidationError:  # of an import; a session is more than its list
            return Todos()

    async def keep(self, session_id: str, todos: Todos) -> None:
        meta = (await self._store.thread(session_id)).meta
        members = msgspec.json.decode(meta or b"{}", type=dict[str, msgspec.Raw])
        kept = {**members, "todos": todos.entries}
        await self._store.set_thread_meta(session_id, msgspec.json.encode(kept))
