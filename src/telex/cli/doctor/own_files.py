"""What is telex's own: its places and its configuration."""

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
    """Each directory: whether it is there, and whether it is ours alone."""
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
    # The other two are the person's own, who may share them or link them to a better place.
    kept = name in {"state", "runtime"} and os.path.lexists(path)
    return privacy_problem(path) if kept else None


def configuration(places: Places, flags: Layer) -> Section:
    """What reading the configuration brings to light. Values are `telex config show`'s subject."""
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
    """Secrets in a file of ours that others can read."""
    path = config.user_file
    secret = any(
        one.setting.secret and any(origin.source is Source.USER for origin in one.origins)
        for one in config.values
    )
    if not secret or not stat.S_IMODE(path.stat().st_mode) & 0o077:
        return []
    text = f"{path} holds secrets and others can read it"
    return [Finding(FindingMark.NOTE, "settings", text, f"chmod 600 {quote(str(path))}")]
