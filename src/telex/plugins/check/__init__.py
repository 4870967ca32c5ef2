"""`telex plugin check`: a conformance check of any executable, clause by clause.

    bench      the processes that clauses test, and what is known of them; clauses, their
               outcomes and the grade
    lifecycle_clauses, message_clauses, feature_clauses

The check runs no command or task of the plugin, except the command that the person names. A failed
clause has what was observed and advice for the author.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.plugins import protocol as spec
from telex.plugins.check.bench import (
    Bench,
    CheckReport,
    Clause,
    ClauseBroken,
    ClauseOutcome,
    ClauseResult,
    ClauseUntried,
)
from telex.plugins.check.feature_clauses import FEATURES
from telex.plugins.check.lifecycle_clauses import ENDING, STARTING
from telex.plugins.check.message_clauses import MESSAGES
from telex.plugins.plugin_settings import COOKIE
from telex.processes.child_environment import child_environment
from telex.processes.spawn import StartFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAUSES: Final[Sequence[Clause]] = (*STARTING.all, *MESSAGES.all, *FEATURES.all, *ENDING.all)


async def check(
    executable: Path,
    manifest: spec.PluginManifest | None = None,
    *,
    seconds: float,
    command: str | None = None,
    clauses: Sequence[Clause] = CLAUSES,
) -> CheckReport:
    """Test every clause and return the report.

    Args:
        executable: the absolute path of the plugin.
        seconds: the timeout of each answer.
        command: a command of the plugin that may be run.
    """
    env = child_environment(os.environ) | {COOKIE: "telex plugin check"}
    bench = Bench([str(executable)], env, manifest, seconds, command)
    report = CheckReport(str(executable))
    try:
        for clause in clauses:
            report.outcomes.append(await _test(clause, bench))
    finally:
        await bench.discard()
    if (introduced := bench.introduced) is not None:
        report.name, report.version = introduced.name, introduced.version
        report.protocol = bench.protocol
    report.stderr = bench.stderr
    return report


async def _test(clause: Clause, bench: Bench) -> ClauseOutcome:
    try:
        await clause.test(bench)
    except ClauseUntried as why:
        return ClauseOutcome(clause, ClauseResult.UNTRIED, str(why))
    except (ClauseBroken, StartFailed) as seen:
        await bench.discard()
        return ClauseOutcome(clause, ClauseResult.FAILED, str(seen))
    return ClauseOutcome(clause, ClauseResult.PASSED)
