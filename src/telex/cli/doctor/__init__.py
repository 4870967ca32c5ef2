"""`telex doctor`: checks this machine, and says what is missing and how to get it.

`checks` makes the findings, except those of telex's own files; this file prints them. The doctor
must work where telex does not: modules beyond the standard library and click are imported inside
functions, and a failed import becomes a finding.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import textwrap
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from telex.cli.console import coloured, printable, say
from telex.cli.doctor import checks
from telex.cli.doctor.checks import TIED, Finding, FindingMark, Section, libraries, limits
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from telex.config.layers import Layer
    from telex.config.load import Config
    from telex.config.places import Places

COLOURS = {
    FindingMark.OK: "green",
    FindingMark.NOTE: "yellow",
    FindingMark.MISSING: "red",
    FindingMark.BROKEN: "red",
}

HELP = """Check what telex needs on this machine.

Exits with 1 when something required is missing or broken.

With --json, one object:

\b
  telex      this version
  ok         whether everything required was found
  problems   what is missing or broken: mark (note, missing, broken), name, text, remedy
  python     version, path
  platform   system, release, machine
  terminal   term, program, program_version, columns, rows, stdin_tty,
             stdout_tty, encoding, inside (tmux, screen, zellij, ssh)
  libraries  by name: version, wanted, required, ok
  programs   by name: path, for
  kernel     open_files, pseudo_terminals, pidfd, landlock, seccomp
  places     by name (config, data, state, runtime): path, exists, problem
  config     file, exists, project_file, warnings, error
  limits     by name: value, unit, reason

Values that cannot be determined are null.
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> int:
    sections = [
        checks.python(),
        checks.system(),
        checks.terminal(os.environ),
        libraries(),
        checks.programs(),
        checks.kernel(),
        *_own(context),
        limits(),
    ]
    findings = [finding for section in sections for finding in section.findings]
    ok = not any(one.mark in {FindingMark.MISSING, FindingMark.BROKEN} for one in findings)
    if as_json:
        say(json.dumps(_object(sections, findings, ok), indent=2))
    else:
        _print(findings)
    return 0 if ok else 1


def _own(context: click.Context) -> list[Section]:
    try:
        from telex.cli.configuration import flags_of
        from telex.config import load, places  # noqa: F401  all of it has to be there
        from telex.config.errors import ConfigError
    except ImportError as error:
        return _unseen(str(error))
    flags = flags_of(context)
    try:
        here = places.find()
    except (ConfigError, ImportError) as error:
        return _unseen(str(error))
    return [_places(here), _configuration(here, flags)]


def _unseen(why: str) -> list[Section]:
    finding = Finding(FindingMark.BROKEN, "places", f"cannot be checked: {why}")
    return [Section("places", None, (finding,)), Section("config", None, ())]


def _places(places: Places) -> Section:
    """Check each directory: whether it exists, and whether only we can use it."""
    directories = {
        "config": places.config,
        "data": places.data,
        "state": places.state,
        "runtime": places.runtime,
    }
    problems = {name: _problem(name, path) for name, path in directories.items()}
    facts = {
        name: {"path": str(path), "exists": path.exists(), "problem": problems[name]}
        for name, path in directories.items()
    }
    findings = [
        Finding(FindingMark.BROKEN, name, problem)
        if (problem := problems[name])
        else Finding(FindingMark.OK, name, f"{path}{'' if path.exists() else ' (not made yet)'}")
        for name, path in directories.items()
    ]
    return Section("places", facts, tuple(findings))


def _problem(name: str, path: Path) -> str | None:
    from telex.config.places import privacy_problem

    # The person may share the other two, or link them to another place.
    kept = name in {"state", "runtime"} and os.path.lexists(path)
    return privacy_problem(path) if kept else None


def _configuration(places: Places, flags: Layer) -> Section:
    """Check that the configuration can be read. `telex config show` prints its values."""
    from telex.config.errors import ConfigError
    from telex.config.load import load

    facts: dict[str, Any] = {
        "file": str(places.config_file),
        "exists": places.config_file.exists(),
        "project_file": None,
        "warnings": [],
        "error": None,
    }
    try:
        config = load(places, flags=flags)
    except ConfigError as error:
        facts["error"] = str(error)
        return Section("config", facts, (Finding(FindingMark.BROKEN, "settings", str(error)),))
    if found := config.project_file:
        facts["project_file"] = {"path": str(found.path), "trust": str(found.trust)}
    facts["warnings"] = list(config.warnings)
    notes = [Finding(FindingMark.NOTE, "settings", warning) for warning in config.warnings]
    return Section("config", facts, (_summary(config), *notes, *_exposed(config)))


def _summary(config: Config) -> Finding:
    from telex.config.layers import Source

    changed = [one.setting.key for one in config.values if one.origins[0].source != Source.DEFAULT]
    return Finding(
        FindingMark.OK, "settings", f"set: {', '.join(changed)}" if changed else "all defaults"
    )


def _exposed(config: Config) -> list[Finding]:
    """Return a finding if others can read a configuration with secrets."""
    from telex.config.layers import Source

    path = config.user_file
    secret = any(
        one.setting.secret and any(origin.source is Source.USER for origin in one.origins)
        for one in config.values
    )
    if not secret or not stat.S_IMODE(path.stat().st_mode) & 0o077:
        return []
    text = f"{path} holds secrets and others can read it"
    return [Finding(FindingMark.NOTE, "settings", text, f"chmod 600 {quote(str(path))}")]


def _object(sections: Iterable[Section], findings: Iterable[Finding], ok: bool) -> dict[str, Any]:
    problems = [
        {"mark": str(one.mark), "name": one.name, "text": one.text, "remedy": one.remedy}
        for one in findings
        if one.mark is not FindingMark.OK
    ]
    facts = {section.key: section.facts for section in sections}
    return {"telex": __version__, "ok": ok, "problems": problems, **facts}


def _print(findings: Iterable[Finding]) -> None:
    width = max(60, min(shutil.get_terminal_size().columns, 110))
    say(f"telex {__version__}")
    for finding in findings:
        for line in _lines(finding, width):
            # Each part is printable already; only colours were added.
            click.echo(line)


def _lines(finding: Finding, width: int) -> Iterator[str]:
    mark = f"{finding.mark:<8}"
    head = click.style(mark, fg=COLOURS[finding.mark]) if coloured() else mark
    margin = " " * 20
    body = _wrapped(finding.text, width - len(margin))
    name = printable(finding.name)
    yield f"{head}{name:<11} {body[0] if body else ''}".rstrip()
    yield from (margin + line for line in body[1:])
    if finding.remedy:
        yield f"{margin}-> {printable(finding.remedy)}"  # not wrapped, so that it can be copied


def _wrapped(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [printable(line.replace(TIED, " ")) for line in lines]
