"""The libraries telex asks for, against those installed. Nothing is imported to find out."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from telex.cli.doctor.findings import TIED, Finding, Mark, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LINE = re.compile(r"(?P<name>[\w.-]+)\s*(?P<wanted>[^;]*)(;.*extra\s*==\s*['\"](?P<extra>\w+).*)?")

FOR_BUILDERS: Final = frozenset({"bench", "dev"})
"""Extras for who works on telex: the tools of its tests, and whom the benchmarks compare with."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of our own metadata. Other projects write wilder ones, which are not our concern."""

    name: str
    wanted: str
    extra: str | None
    """The optional group it belongs to; None for what is required."""

    @classmethod
    def parse(cls, line: str) -> Requirement:
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"not a requirement: {line!r}")
        return cls(found["name"], found["wanted"].strip(), found["extra"])

    def met_by(self, version: str) -> bool:
        have = _release(version)
        for sign, bound in re.findall(r"(>=|<|==)([\d.]+)", self.wanted):
            limit = _release(bound)
            if not {">=": have >= limit, "<": have < limit, "==": have == limit}[sign]:
                return False
        return True


def requirements() -> list[str]:
    """Our own list; empty when telex runs from a directory and was never installed."""
    try:
        return importlib.metadata.requires("telex") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def libraries(
    lines: Iterable[str] | None = None, version_of: Callable[[str], str | None] = installed
) -> Section:
    """One summary of what is there, and a finding for each that is not."""
    wanted = [Requirement.parse(line) for line in (requirements() if lines is None else lines)]
    pairs = [(one, version_of(one.name)) for one in wanted if one.extra not in FOR_BUILDERS]
    facts = {one.name: _fact(one, version) for one, version in pairs}
    fine = [f"{name}{TIED}{fact['version']}" for name, fact in facts.items() if fact["ok"]]
    summary = Finding(Mark.OK, "libraries", ", ".join(fine) or "none known")
    lacking = [_lacking(one, version) for one, version in pairs if not facts[one.name]["ok"]]
    return Section("libraries", facts, (summary, *lacking))


def _fact(one: Requirement, version: str | None) -> dict[str, Any]:
    return {
        "version": version,
        "wanted": one.wanted,
        "required": one.extra is None,
        "ok": version is not None and one.met_by(version),
    }


def _lacking(one: Requirement, version: str | None) -> Finding:
    found = f"{version} is installed" if version else "not installed"
    pip = f"{quote(sys.executable)} -m pip install"
    if one.extra is None:
        text = f"{found}, {one.wanted} is required"
        return Finding(Mark.MISSING, one.name, text, f"{pip} '{one.name}{one.wanted}'")
    return Finding(Mark.NOTE, one.name, f"{found} (optional)", f"{pip} 'telex[{one.extra}]'")


def _release(version: str) -> list[int]:
    """The numbers our bounds are written in: 4.3 is 4.3.0, and a `rc1` after them is not seen."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return numbers + [0] * (3 - len(numbers))
