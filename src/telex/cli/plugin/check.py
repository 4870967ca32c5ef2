"""`telex plugin check`: test an executable against every clause of the plugin protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from telex.cli.console import coloured, printable, say
from telex.plugins import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.plugins.check.bench import CheckReport, ClauseOutcome
    from telex.plugins.protocol import PluginManifest

HELP = """Grade how an executable implements the plugin protocol.

PATH is the executable, or a directory with a manifest.json. The executable is started several
times, gets valid and invalid requests, and is ended. None of its commands is run unless --run
names one; a command that runs for a while and reports progress tests most clauses.

A clause passes (✓), fails (✗) or could not be tested (–). A failed clause is shown with advice.
The exit code is 0 if every MUST passes, else 1.

\b
  telex plugin check ./greet
  telex plugin check --run count ./counter.py
"""
_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "untried": ("–", "yellow")}


@click.command(help=HELP)
@click.option(
    "--run", "command", metavar="COMMAND", help="A command of the plugin that may be run."
)
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0.1),
    default=limits.PLUGIN_CHECK_SECONDS,
    show_default=True,
    help="Seconds for each answer.",
)
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def command(command: str | None, seconds: float, as_json: bool, path: Path) -> int:
    from telex.cli import event_loop
    from telex.plugins.check import check

    executable, manifest = _target(path.absolute())
    report = event_loop.run(check(executable, manifest, seconds=seconds, command=command))
    if as_json:
        say(json.dumps(_as_json(report), ensure_ascii=False))
    else:
        for line in _lines(report):
            click.echo(line)
    return 0 if report.ok else 1


def _target(path: Path) -> tuple[Path, PluginManifest | None]:
    if not path.is_dir():
        return path, None
    from telex.plugins import discovery, plugin_manifest

    file = path / plugin_manifest.NAME
    if not file.exists():
        raise click.UsageError(f"{path} has no {plugin_manifest.NAME}; name the executable itself")
    try:
        its = plugin_manifest.read_manifest(file)
    except plugin_manifest.BadPluginManifest as bad:
        said = "; ".join(map(str, bad.problems))
        raise click.ClickException(f"{file} cannot be used: {said}") from bad
    executable = path / its.executable
    if problem := discovery.leads_out(executable, path):
        raise click.ClickException(problem)
    return executable, its


def _as_json(report: CheckReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "name": report.name,
        "version": report.version,
        "protocol": report.protocol,
        "ok": report.ok,
        "grade": report.grade,
        "score": _score(report),
        "clauses": [_clause(outcome) for outcome in report.outcomes],
        "stderr": report.stderr,
    }


def _clause(outcome: ClauseOutcome) -> dict[str, str]:
    clause = outcome.clause
    advice = {"advice": clause.advice} if outcome.result.value == "failed" else {}
    return {
        "id": clause.id,
        "level": clause.level.value,
        "text": clause.text,
        "result": outcome.result.value,
        "seen": outcome.seen,
        **advice,
    }


def _score(report: CheckReport) -> dict[str, dict[str, int]]:
    from telex.plugins.check.bench import ClauseLevel, ClauseResult

    return {
        level.value: {result.value: report.count(level, result) for result in ClauseResult}
        for level in ClauseLevel
    }


def _lines(report: CheckReport) -> Iterator[str]:
    wide = max(len(outcome.clause.id) for outcome in report.outcomes)
    for outcome in report.outcomes:
        clause = outcome.clause
        head = f"{clause.id:{wide}}  {clause.level.value:6}  {clause.text}"
        yield f"{_mark(outcome)} {printable(head)}"
        indent = " " * (wide + 12)
        if outcome.seen:
            yield f"{indent}{printable(outcome.seen)}"
        if outcome.result.value == "failed":
            yield f"{indent}{printable(clause.advice)}"
    if not report.ok and report.stderr:
        yield "\nThe end of its standard error:"
        yield from (f"  {printable(line)}" for line in report.stderr[-5:])
    yield f"\n{printable(_sum(report))}"


def _mark(outcome: ClauseOutcome) -> str:
    mark, colour = _MARKS[outcome.result.value]
    return click.style(mark, fg=colour) if coloured() else mark


def _sum(report: CheckReport) -> str:
    score = _score(report)
    counted = ", ".join(
        f"{level} {counts['passed']} of {counts['passed'] + counts['failed']}"
        for level, counts in score.items()
    )
    untried = sum(counts["untried"] for counts in score.values())
    rest = f", {untried} not tried" if untried else ""
    return f"{report.name or report.path} {report.grade} ({counted}{rest})."
