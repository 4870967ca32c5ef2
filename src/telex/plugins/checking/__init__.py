"""`telex plugin check`: a conformance kit that grades any executable, clause by clause.

    report     clauses, outcomes and the grade (pure)
    subject    one process, with its bytes in our own hands
    bench      where processes are started for the clauses, and what is known of the plugin
    beginning, messages, frames, giving, ending    the clauses

It runs none of the plugin's commands or tasks, but for a command that it is told it may. Of what a
host does not understand, a clause says what was seen and what to do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.plugins.checking import beginning, ending, frames, giving, messages
from telex.plugins.checking.bench import Bench
from telex.plugins.checking.report import Broken, Clause, Outcome, Report, Result, Untried
from telex.plugins.settings import COOKIE
from telex.processes.child_environment import child_environment
from telex.processes.spawn import StartFailed
from telex.protocols import plugin_v0 as spec

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAUSES: Final[Sequence[Clause]] = tuple(
    clause
    for chapter in (beginning, messages, frames, giving, ending)
    for clause in chapter.CLAUSES.all
)


async def check(
    executable: Path,
    manifest: spec.Manifest | None = None,
    *,
    seconds: float,
    command: str | None = None,
    clauses: Sequence[Clause] = CLAUSES,
) -> Report:
    """How it does with every clause. `executable` is an absolute path,
    `seconds` is for each answer."""
    env = child_environment(os.environ) | {COOKIE: "telex plugin check"}
    bench = Bench([str(executable)], env, manifest, seconds, command)
    report = Report(str(executable))
    try:
        for clause in clauses:
            report.outcomes.append(await _tried(clause, bench))
    finally:
        await bench.discard()
    if (said := bench.introduced) is not None:
        report.name, report.version, report.protocol = said.name, said.version, bench.protocol
    report.stderr = bench.stderr
    return report


async def _tried(clause: Clause, bench: Bench) -> Outcome:
    try:
        await clause.test(bench)
    except Untried as why:
        return Outcome(clause, Result.UNTRIED, str(why))
    except (Broken, StartFailed) as seen:
        await bench.discard()
        return Outcome(clause, Result.FAILED, str(seen))
    return Outcome(clause, Result.PASSED)
