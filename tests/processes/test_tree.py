"""Which processes belong to a tree, on tables made by hand and by a simulated kernel.

The simulated kernel forks, moves sessions, clears environments, exits, adopts, reaps and recycles
pids, by the rules of the real one, and it remembers the true parent of every process.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from telex.processes.tree import Process, Root, Table, Tree, members

US = 10
LINE = [Process(1, 0, 1, 1, 0), Process(5, 1, 5, 5, 1), Process(US, 5, 5, 5, 2)]


def pids_of(
    rows: list[Process],
    root: Root,
    cookies: dict[int, str] | None = None,
    known: list[tuple[int, int]] | None = None,
    accounted: tuple[int, ...] = (),
) -> set[int]:
    marks = cookies or {}
    table = Table(
        [*LINE, *rows], observer=US, cookie=lambda pid: marks.get(pid, ""), accounted=accounted
    )
    found = members(table, Tree((root,), ":t.1:", root.started), known or ())
    return {process.pid for process in found}


ROOT = Root(20, 100)
ROOT_ROW = Process(20, US, 20, 20, 100)


def test_descendants_belong() -> None:
    rows = [ROOT_ROW, Process(21, 20, 21, 21, 101), Process(22, 21, 22, 22, 102)]
    assert pids_of(rows, ROOT) == {20, 21, 22}


def test_foreign_processes_and_siblings_do_not_belong() -> None:
    rows = [ROOT_ROW, Process(30, US, 30, 30, 101), Process(31, 30, 31, 31, 102)]
    assert pids_of(rows, ROOT) == {20}


def test_the_session_of_the_root_belongs_after_root_and_parents_exited() -> None:
    left = Process(22, 1, 22, 20, 101)
    assert pids_of([left], replace(ROOT, ended=110)) == {22}


def test_a_session_with_the_number_of_a_reaped_root_may_be_foreign() -> None:
    stranger = [Process(20, 1, 20, 20, 120), Process(22, 20, 20, 20, 121)]
    assert pids_of(stranger, replace(ROOT, ended=110)) == set()


def test_younger_processes_belong_while_an_older_one_keeps_the_session() -> None:
    rows = [Process(22, 1, 22, 20, 101), Process(23, 1, 23, 20, 150)]
    assert pids_of(rows, replace(ROOT, ended=110)) == {22, 23}


def test_another_process_with_the_roots_pid_does_not_belong() -> None:
    assert pids_of([Process(20, US, 20, 20, 120)], replace(ROOT, ended=110)) == set()


def test_an_orphan_with_the_mark_belongs_and_so_do_its_children() -> None:
    rows = [Process(40, 1, 40, 40, 105), Process(41, 40, 41, 41, 106)]
    assert pids_of(rows, ROOT, {40: ":t.1"}) == {40, 41}


def test_an_orphan_adopted_by_an_ancestor_of_ours_is_found() -> None:
    assert pids_of([Process(40, 5, 40, 40, 105)], ROOT, {40: ":outer.3:t.1"}) == {40}


def test_an_orphan_whose_parent_we_cannot_see_is_found() -> None:
    assert pids_of([Process(40, 7, 40, 40, 105)], ROOT, {40: ":t.1"}) == {40}


def test_a_process_that_exits_before_its_cookie_is_read_leaves_the_table_unsettled() -> None:
    rows = [*LINE, Process(40, 1, 40, 40, 105)]
    for cookie, settled in ((None, False), ("", True)):
        table = Table(rows, observer=US, cookie=lambda _, value=cookie: value)
        assert members(table, Tree((ROOT,), ":t.1:", 100)) == []
        assert table.settled is settled


def test_the_mark_of_another_child_or_of_a_longer_number_is_not_ours() -> None:
    rows = [Process(40, 1, 40, 40, 105), Process(41, 1, 41, 41, 105)]
    assert pids_of(rows, ROOT, {40: ":t.2", 41: ":t.11"}) == set()


def test_cookies_of_processes_older_than_the_root_are_not_read() -> None:
    def cookie(pid: int) -> str:
        raise AssertionError(f"the environment of {pid} was read")

    rows = [*LINE, ROOT_ROW, Process(40, 1, 40, 40, 99), Process(41, 20, 41, 41, 105)]
    table = Table(rows, observer=US, cookie=cookie, accounted=(20,))
    assert len(members(table, Tree((ROOT,), ":t.1:", 100))) == 2


def test_a_known_member_stays_one_without_another_sign() -> None:
    lost = Process(50, 1, 50, 50, 105)
    assert pids_of([lost], ROOT) == set()
    assert pids_of([lost], ROOT, known=[(50, 105)]) == {50}
    assert pids_of([lost], ROOT, known=[(50, 104)]) == set()


def test_the_children_of_a_pids_previous_owner_do_not_belong() -> None:
    rows = [ROOT_ROW, Process(21, 20, 5, 5, 90)]
    assert pids_of(rows, ROOT) == {20}


def test_a_zombie_is_not_a_member_but_its_children_are() -> None:
    rows = [replace(ROOT_ROW, alive=False), Process(22, 1, 22, 20, 101)]
    assert pids_of(rows, ROOT) == {22}


def test_we_and_our_ancestors_never_belong_whatever_the_table_says() -> None:
    rows = [ROOT_ROW, Process(21, 20, 5, 5, 101)]  # a member that says it is in our own session
    assert pids_of(rows, ROOT, {5: ":t.1", US: ":t.1"}).isdisjoint({1, 5, US})


def test_a_session_numbered_zero_has_no_members() -> None:
    rows = [replace(ROOT_ROW, sid=0, pgid=0), Process(60, 1, 0, 0, 105)]
    assert pids_of(rows, ROOT) == {20}


def test_the_guardian_finds_all_trees_of_one_process_by_the_token() -> None:
    rows = [Process(40, 1, 40, 40, 105), Process(41, 1, 41, 41, 106), Process(42, 1, 42, 42, 107)]
    marks = {40: ":t.1", 41: ":t.77:inner.1", 42: ":tt.1"}
    table = Table([*LINE, *rows], observer=US, cookie=lambda pid: marks.get(pid, ""))
    assert {one.pid for one in members(table, Tree((), ":t.", 100))} == {40, 41}


@dataclass
class Truth:
    """One process of the simulated kernel, and the tree it truly belongs to (0: none of ours)."""

    row: Process
    tree: int
    cookie: str


@dataclass
class Kernel:
    procs: dict[int, Truth] = field(default_factory=dict)
    roots: dict[int, Root] = field(default_factory=dict)
    clock: int = 100

    def __post_init__(self) -> None:
        self.procs = {row.pid: Truth(row, 0, "") for row in LINE}

    def number(self) -> int | None:
        """Return the lowest free pid: never one that a process, a group or a session still has."""
        rows = [truth.row for truth in self.procs.values()]
        used = {n for row in rows for n in (row.pid, row.pgid, row.sid)}
        return next((n for n in range(11, 24) if n not in used), None)

    def fork(self, parent: int) -> int | None:
        pid = self.number()
        if pid is not None and self.procs[parent].row.alive:
            source = self.procs[parent]
            row = replace(source.row, pid=pid, ppid=parent, started=self.clock)
            self.procs[pid] = replace(source, row=row)
            return pid
        return None

    def start(self, _: int) -> None:
        pid = self.fork(US)
        if pid is not None:
            tree = len(self.roots) + 1
            row = replace(self.procs[pid].row, pgid=pid, sid=pid)
            self.procs[pid] = Truth(row, tree, f":t.{tree}")
            self.roots[tree] = Root(pid, self.clock)

    def setsid(self, pid: int) -> None:
        row = self.procs[pid].row
        if pid > US and row.alive and row.pgid != pid:
            self.procs[pid].row = replace(row, pgid=pid, sid=pid)

    def setpgid(self, pid: int) -> None:
        row = self.procs[pid].row
        if pid > US and row.alive and row.sid != pid:
            self.procs[pid].row = replace(row, pgid=pid)

    def scrub(self, pid: int) -> None:
        self.procs[pid].cookie = ""

    def exit(self, pid: int) -> None:
        if pid <= US or not self.procs[pid].row.alive:
            return
        self.procs[pid].row = replace(self.procs[pid].row, alive=False)
        for other in list(self.procs.values()):
            if other.row.ppid == pid:
                other.row = replace(other.row, ppid=1)
                if not other.row.alive:
                    del self.procs[other.row.pid]
        if self.procs[pid].row.ppid == 1:
            del self.procs[pid]

    def reap(self, pid: int) -> None:
        truth = self.procs[pid]
        if not truth.row.alive:
            del self.procs[pid]
            root = self.roots.get(truth.tree)
            if root and root.identity == truth.row.identity:
                self.roots[truth.tree] = replace(root, ended=self.clock)

    def do(self, what: str, whom: int) -> None:
        self.clock += 1
        pid = sorted(self.procs)[whom % len(self.procs)]
        getattr(self, what)(pid)

    def found(self, tree: int) -> set[int]:
        table = Table(
            [truth.row for truth in self.procs.values()],
            observer=US,
            cookie=lambda pid: self.procs[pid].cookie,
        )
        root = self.roots[tree]
        return {p.pid for p in members(table, Tree((root,), f":t.{tree}:", root.started))}

    def missed(self, tree: int) -> set[int]:
        true = {pid for pid, p in self.procs.items() if p.tree == tree and p.row.alive}
        return true - self.found(tree)

    def strangers(self, tree: int) -> set[int]:
        return {pid for pid in self.found(tree) if self.procs[pid].tree != tree}

    def eldest(self, pid: int) -> Truth:
        """Return the highest living ancestor that truly belongs to the same tree."""
        one = self.procs[pid]
        while (above := self.procs.get(one.row.ppid)) and above.tree == one.tree:
            one = above
        return one


deeds = st.sampled_from(["start", "fork", "fork", "setsid", "setpgid", "scrub", "exit", "reap"])
histories = st.lists(st.tuples(deeds, st.integers(0, 15)), max_size=60)


@settings(max_examples=300)
@given(histories)
def test_no_foreign_process_is_ever_a_member_however_pids_are_recycled(
    history: list[tuple[str, int]],
) -> None:
    kernel = Kernel()
    for what, whom in history:
        kernel.do(what, whom)
    for tree in kernel.roots:
        assert kernel.strangers(tree) == set()


@settings(max_examples=300)
@given(histories)
def test_only_processes_that_cleared_their_environment_and_left_session_and_parent_are_missed(
    history: list[tuple[str, int]],
) -> None:
    kernel = Kernel()
    for what, whom in history:
        kernel.do(what, whom)
    for tree in kernel.roots:
        for pid in kernel.missed(tree):
            eldest = kernel.eldest(pid)
            assert eldest.row.ppid == 1
            assert eldest.cookie == ""
            assert eldest.row.sid not in {kernel.procs[n].row.sid for n in kernel.found(tree)}
