"""`telex htty check`: test the connection to a program that serves pages."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from telex.cli.console import say
from telex.cli.run import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.htty.tools.connection_check import ConnectionReport

HELP = """Run a program that serves pages, and report what breaks its connection.

The command runs on a terminal of its own. It may be the program itself, or the program behind ssh
or in tmux. Each hop is reported with advice; then the round trip and the speed are measured, and
the page is fetched. The exit code is 1 if something breaks the connection.

\b
  telex htty check -- telex htty serve --dir .
  telex htty check -- ssh -t host telex htty serve --dir .
  telex htty check --path /large.bin -- ./server
"""


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@click.option("--path", default="/", show_default=True, help="Path to fetch; large for a speed.")
@click.option("--eager", is_flag=True, help="Send first, for programs that wait for HTTP/2.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@program
def command(path: str, eager: bool, as_json: bool, program: tuple[str, ...]) -> int:
    from telex.cli import event_loop
    from telex.htty.tools.connection_check import check

    report = event_loop.run(check(program, path=path, eager=eager))
    if as_json:
        say(json.dumps({"ok": report.ok, **asdict(report)}))
    else:
        for line in _lines(report):
            say(line)
    return 0 if report.ok else 1


def _lines(report: ConnectionReport) -> Iterator[str]:
    figures = list(_figures(report))
    width = max(len(name) for name, *_ in [*figures, *[(one.name,) for one in report.findings]])
    for one in report.findings:
        yield f"{one.name:{width}}  {'BREAKS' if one.breaks else 'ok    '}  {one.sentence}"
        if one.advice:
            yield f"{'':{width}}          {one.advice}"
    for name, figure in figures:
        yield f"{name:{width}}          {figure}"


def _figures(report: ConnectionReport) -> Iterator[tuple[str, str]]:
    if report.round_trip_ms is not None:
        yield "round trip", f"{report.round_trip_ms:.2f} ms"
    if report.up_mb_s is not None:
        yield "to the program", f"{report.up_mb_s:.1f} MB/s"
    if report.down_mb_s is not None:
        each = f"{report.requests_s:.0f} responses a second of {report.body_bytes} bytes"
        yield "from the program", f"{report.down_mb_s:.1f} MB/s: {each}"
