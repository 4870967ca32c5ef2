"""Decides which processes belong to a tree: a pure function of one scan of the process table.

A tree is a child that we started and all its descendants. A process with any of four signs is a
member:

- its parent is a member;
- a member shares its session or process group. Every root leads a session of its own, and a session
  can only be inherited, so no foreign process can be in it;
- its environment carries the tree's mark. This finds processes that left both their parent and
  their session, as daemons do;
- an earlier scan already found it (`known`), which keeps members that have moved since.

One kind of process has none of the four signs: it cleared its environment, left its session and
lost its parent, all before the first scan. Behind a `reaper` it still has a parent. If this process
were the subreaper itself, it would have to reap every orphan of the host program: too much for a
library.

Used by `termination` and `guardian`; `proc` fills in the facts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

Identity = tuple[int, int]
"""A pid and its start time. Pids are recycled; the pair is unique."""


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the table. Times are in the table's own unit, and are only compared."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    started: int
    alive: bool = True
    """False for a zombie: it still shows relationships, but there is nothing left to end."""

    @property
    def identity(self) -> Identity:
        return self.pid, self.started


@dataclass(frozen=True, slots=True)
class Root:
    """The process of a child that we started; the root of its tree."""

    pid: int
    started: int
    ended: int | None = None
    """When it was reaped, which frees its pid. Until then no other process can have the pid."""

    @property
    def identity(self) -> Identity:
        return self.pid, self.started


@dataclass(frozen=True, slots=True)
class Tree:
    """The description of a tree to search for: one root for a child, all roots for the guardian."""

    roots: tuple[Root, ...]
    mark: str
    """`:<token>.<number>:` for one child, `:<token>.` for all children of one process. A cookie is
    a sequence of such entries: each telex appends its own to its parent's, so that a tree inside a
    tree belongs to both."""
    since: int
    """Processes that started earlier do not belong."""


class Table:
    """One scan of the process table, indexed by parent, session and group."""

    def __init__(
        self,
        rows: Iterable[Process],
        *,
        observer: int,
        cookie: Callable[[int], str | None],
        accounted: Collection[int] = (),
        settled: bool = True,
    ) -> None:
        """Index the rows.

        Args:
            cookie: Reads the cookie of a process; None if the process has exited. It is called
                rarely, because it is expensive.
            accounted: Pids of live roots, which are never orphans, whatever their parent is.
        """
        self.rows = {row.pid: row for row in rows}
        self._children: defaultdict[int, list[Process]] = defaultdict(list)
        self._by_group: defaultdict[int, list[Process]] = defaultdict(list)
        for row in self.rows.values():
            self._children[row.ppid].append(row)
            for number in {row.sid, row.pgid}:
                self._by_group[number].append(row)
        self.ancestors = self._line(observer)
        self._accounted = accounted
        self._read_cookie = cookie
        self._cookies: dict[Identity, str] = {}
        self.settled = settled
        """False if a process may have been missed, or exited before its cookie was read. It may
        have been a member and may have forked, so an empty result is then not final."""

    def _line(self, pid: int) -> frozenset[int]:
        """Return the observer and its ancestors. They adopt orphans, and are never members."""
        line = {0, 1}
        while pid not in line:
            line.add(pid)
            pid = self.rows[pid].ppid if pid in self.rows else 0
        return frozenset(line)

    def find(self, identity: Identity) -> Process | None:
        row = self.rows.get(identity[0])
        return row if row and row.started == identity[1] else None

    def in_group(self, number: int) -> list[Process]:
        """Return the session and the group of that number; the kernel shows 0 for hidden ones."""
        return self._by_group.get(number, []) if number > 1 else []

    def relatives(self, one: Process) -> Iterator[Process]:
        """Return its children, and every process in its session or group."""
        # Rows are read one after another, and a pid may be recycled in between: a process that is
        # older than its parent is the child of the pid's previous owner.
        yield from (row for row in self._children.get(one.pid, ()) if row.started >= one.started)
        yield from self.in_group(one.sid)
        yield from self.in_group(one.pgid)

    def orphans(self, mark: str, since: int) -> Iterator[Process]:
        """Return the processes with the mark whose parent is not a member.

        An orphan is adopted by an ancestor of the parent that it lost: by a member, or by one of
        our own ancestors. So only children of our ancestors are candidates, and only those that
        are young enough: a scan of thousands of processes reads the environments of a few.
        """
        adopted = (row for parent in self._adopters() for row in self._children.get(parent, ()))
        for row in adopted:
            if row.alive and row.started >= since and mark in self._cookie(row):
                yield row

    def _adopters(self) -> Iterator[int]:
        yield from self.ancestors
        yield from (pid for pid in self._children if pid not in self.rows and pid > 1)

    def _cookie(self, row: Process) -> str:
        if row.pid in self._accounted:
            return ""
        if row.identity not in self._cookies:
            cookie = self._read_cookie(row.pid)
            self.settled &= cookie is not None
            self._cookies[row.identity] = (cookie or "") + ":"
        return self._cookies[row.identity]


def members(table: Table, tree: Tree, known: Iterable[Identity] = ()) -> list[Process]:
    """Return the living members of the tree, unordered. Never ourselves or an ancestor of ours."""
    found: dict[int, Process] = {}
    unvisited = list(_certain(table, tree, known))
    while unvisited:
        one = unvisited.pop()
        if one.pid not in found and one.pid not in table.ancestors:
            found[one.pid] = one
            unvisited.extend(table.relatives(one))
    return [one for one in found.values() if one.alive]


def _certain(table: Table, tree: Tree, known: Iterable[Identity]) -> Iterator[Process]:
    """Return where the search begins: roots, the rest of their sessions, orphans, known members."""
    for root in tree.roots:
        if row := table.find(root.identity):
            yield row
        yield from _left_by(root, table.in_group(root.pid))
    yield from table.orphans(tree.mark, tree.since)
    yield from filter(None, map(table.find, known))


def _left_by(root: Root, group: list[Process]) -> list[Process]:
    """Return the session and group with the root's number, if they are still the root's own.

    A pid is not reused while a session or group has it. So a group with any process from before the
    root was reaped is the root's; a group in which all are younger may be a foreign one.
    """
    if root.ended is None or any(row.started <= root.ended for row in group):
        return group
    return []
