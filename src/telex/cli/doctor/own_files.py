"""The directories and the configuration of telex."""

from __future__ import annotations

import os
import stat
from shlex import quote
from typing import TYPE_CHECKING, Any

from telex.cli.doctor.checks import Finding, FindingMark, Section
from telex.config.errors import ConfigError
from telex.config.layers import Source
from telex.config.load import Config, load
from telex.config.places import privacy_problem

if TYPE_CHECKING:
    from pathlib import Path

    from telex.config.layers import Layer
    from telex.config.places import Places


def where(places: Places) -> Section:
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
    # The person may share the other two, or link them to another place.
    kept = name in {"state", "runtime"} and os.path.lexists(path)
    return privacy_problem(path) if kept else None


def configuration(places: Places, flags: Layer) -> Section:
    """Check that the configuration can be read. `telex config show` prints its values."""
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
    changed = [one.setting.key for one in config.values if one.origins[0].source != Source.DEFAULT]
    return Finding(
        FindingMark.OK, "settings", f"set: {', '.join(changed)}" if changed else "all defaults"
    )


def _exposed(config: Config) -> list[Finding]:
    """Return a finding if others can read a configuration with secrets."""
    path = config.user_file
    secret = any(
        one.setting.secret and any(origin.source is Source.USER for origin in one.origins)
        for one in config.values
    )
    if not secret or not stat.S_IMODE(path.stat().st_mode) & 0o077:
        return []
    text = f"{path} holds secrets and others can read it"
    return [Finding(FindingMark.NOTE, "settings", text, f"chmod 600 {quote(str(path))}")]
