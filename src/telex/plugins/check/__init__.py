"""`telex plugin check`: a conformance kit that grades any executable, clause by clause.

    report     clauses, outcomes and the grade (pure)
    bench      the processes that clauses are tried on, and what is known of them
    handshake_clauses, message_clauses, feature_clauses, shutdown_clauses

It runs none of the plugin's commands or tasks, but for a command that it is told it may. Of what a
host does not understand, a clause says what was seen and what to do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.plugins import protocol as spec
from telex.plugins.check import (
    feature_clauses,
    handshake_clauses,
    message_clauses,
    shutdown_clauses,
)
from telex.plugins.check.bench import Bench
from telex.plugins.check.report import (
    CheckReport,
    Clause,
    ClauseBroken,
    ClauseOutcome,
    ClauseResult,
    ClauseUntried,
)
from telex.plugins.plugin_settings import COOKIE
from telex.processes.child_environment import child_environment
from telex.processes.spawn import StartFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAUSES: Final[Sequence[Clause]] = tuple(
    clause
    for chapter in (
        handshake_clauses,
        message_clauses,
        feature_clauses,
        shutdown_clauses,
    )
    for clause in chapter.CLAUSES.all
)


async def check(
    executable: Path,
    manifest: spec.PluginManifest | None = None,
    *,
    seconds: float,
    command: str | None = None,
    clauses: Sequence[Clause] = CLAUSES,
) -> CheckReport:
    """How it does with every clause. `executable` is an absolute path,
    `seconds` is for each answer."""
    env = child_environment(os.environ) | {COOKIE: "telex plugin check"}
    bench = Bench([str(executable)], env, manifest, seconds, command)
    report = CheckReport(str(executable))
    try:
        for clause in clauses:
            report.outcomes.append(await _tried(clause, bench))
    finally:
        await bench.discard()
    if (said := bench.introduced) is not None:
        report.name, report.version, report.protocol = said.name, said.version, bench.protocol
    report.stderr = bench.stderr
    return report


async def _tried(clause: Clause, bench: Bench) -> ClauseOutcome:
    try:
        await clause.test(bench)
    except ClauseUntried as why:
        return ClauseOutcome(clause, ClauseResult.UNTRIED, str(why))
    except (ClauseBroken, StartFailed) as seen:
        await bench.discard()
        return ClauseOutcome(clause, ClauseResult.FAILED, str(seen))
    return ClauseOutcome(clause, ClauseResult.PASSED)
