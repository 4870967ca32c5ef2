"""Who belongs to a tree: a pure question about one moment of the process table.

A tree is a child we started and everything that came of it. Any one of four signs makes a member:

- its parent is a member;
- a member shares its session or process group. Every root leads a session of its own, and sessions
  are only ever inherited, so no stranger can be in one;
- it carries the tree's mark in its environment. That finds what left both its parent and its
  session, as daemons do;
- an earlier look already knew it (`known`), which keeps those that have moved since.

What escapes all four: a process that cleared its environment, left its session and lost its parent,
all before anybody looked. Behind a `reaper` it loses no parent for good. Being the subreaper
ourselves would make every orphan of the host program ours to reap: too much for a library.

Used by `ending` and `guardian`; `table` fills in the facts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

Identity = tuple[int, int]
"""A pid and when it started. Numbers are used again; the two together never are."""


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the table. Times are the table's own: they compare, and mean nothing else."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    started: int
    alive: bool = True
    """False for a zombie: it still says who was whose, and there is nothing left to end."""

    @property
    def identity(self) -> Identity:
        return self.pid, self.started


@dataclass(frozen=True, slots=True)
class Root:
    """A child we started."""

    pid: int
    started: int
    ended: int | None = None
    """When we gave its number back by reaping it; until then nobody else can have the number."""

    @property
    def identity(self) -> Identity:
        return self.pid, self.started


@dataclass(frozen=True, slots=True)
class Tree:
    """What to look for: one root for a child, all of ours for the guardian."""

    roots: tuple[Root, ...]
    mark: str
    """`:<token>.<number>:` for one child, `:<token>.` for all children of one process. A cookie is
    a run of such entries, each telex adding its own to its parent's, so that a tree inside a tree
    belongs to both."""
    since: int
    """Nothing that started earlier belongs."""


class Table:
    """One moment of the process table, indexed for walking down."""

    def __init__(
        self,
        rows: Iterable[Process],
        *,
        observer: int,
        cookie: Callable[[int], str | None],
        accounted: Collection[int] = (),
        settled: bool = True,
    ) -> None:
        """`cookie` reads one process's cookie, None if it has ended. It is asked seldom: it is
        the expensive part. `accounted` are live roots: nobody's orphans, however they look.
        """
        self.rows = {row.pid: row for row in rows}
        self._children: defaultdict[int, list[Process]] = defaultdict(list)
        self._circles: defaultdict[int, list[Process]] = defaultdict(list)
        for row in self.rows.values():
            self._children[row.ppid].append(row)
            for circle in {row.sid, row.pgid}:
                self._circles[circle].append(row)
        self.forebears = self._line(observer)
        self._accounted = accounted
        self._read_cookie = cookie
        self._cookies: dict[Identity, str] = {}
        self.settled = settled
        """False if someone may have been overlooked, or has ended before it could be asked. That
        one may have been a member and may have forked: then nobody found does not mean nobody."""

    def _line(self, pid: int) -> frozenset[int]:
        """The observer and its ancestors. They adopt orphans, and they are never members."""
        line = {0, 1}
        while pid not in line:
            line.add(pid)
            pid = self.rows[pid].ppid if pid in self.rows else 0
        return frozenset(line)

    def find(self, identity: Identity) -> Process | None:
        row = self.rows.get(identity[0])
        return row if row and row.started == identity[1] else None

    def circle(self, number: int) -> list[Process]:
        """The session and the group of that number; 0 is where the kernel shows what it hides."""
        return self._circles.get(number, []) if number > 1 else []

    def kin(self, one: Process) -> Iterator[Process]:
        """Its children, and everyone in its session or group."""
        # Rows are read one after another, and a number may change hands in between: a process
        # older than its parent is the child of the number's previous owner.
        yield from (row for row in self._children.get(one.pid, ()) if row.started >= one.started)
        yield from self.circle(one.sid)
        yield from self.circle(one.pgid)

    def orphans(self, mark: str, since: int) -> Iterator[Process]:
        """Those with the mark that no parent explains.

        A lost process is adopted by an ancestor of whoever lost it: by a member, or by one of our
        own line. So only the children of our line are candidates, and only the young ones: a scan
        of thousands of processes reads the environments of a few.
        """
        adopted = (row for parent in self._adopters() for row in self._children.get(parent, ()))
        for row in adopted:
            if row.alive and row.started >= since and mark in self._cookie(row):
                yield row

    def _adopters(self) -> Iterator[int]:
        yield from self.forebears
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
    """The living members of the tree, in no order. Never ourselves, nor an ancestor of ours."""
    found: dict[int, Process] = {}
    unvisited = list(_certain(table, tree, known))
    while unvisited:
        one = unvisited.pop()
        if one.pid not in found and one.pid not in table.forebears:
            found[one.pid] = one
            unvisited.extend(table.kin(one))
    return [one for one in found.values() if one.alive]


def _certain(table: Table, tree: Tree, known: Iterable[Identity]) -> Iterator[Process]:
    """Where the walk begins: roots, what is left of their sessions, marked orphans, the known."""
    for root in tree.roots:
        if row := table.find(root.identity):
            yield row
        yield from _left_by(root, table.circle(root.pid))
    yield from table.orphans(tree.mark, tree.since)
    yield from filter(None, map(table.find, known))


def _left_by(root: Root, circle: list[Process]) -> list[Process]:
    """The circle of the root's number, if it is still the root's own.

    A number is not given out again while a session or group has it. So a circle with anyone from
    before the root was reaped is the root's; one where all are younger may be a stranger's.
    """
    if root.ended is None or any(row.started <= root.ended for row in circle):
        return circle
    return []
