"""The checks of `telex doctor`: facts for programs, findings for people."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import os
import pkgutil
import platform
import re
import resource
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import telex
from telex.processes import proc
from telex.processes.sandbox import Kernel, asked_kernel, lacking
from telex.wire.limits import KIB, MIB, Limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType


DISTRIBUTION: Final = "telex-terminal"
"""The name on the package index, where `telex` is taken."""
TIED: Final = "\N{NO-BREAK SPACE}"
"""Joins two words that should stay on one line; printed as a space."""


class FindingMark(StrEnum):
    """The kind of a finding. The last two make the exit code 1."""

    OK = "ok"
    NOTE = "note"
    """It works, and could be better."""
    MISSING = "missing"
    """It is required, and missing."""
    BROKEN = "broken"
    """It is present, but not usable."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    mark: FindingMark
    name: str
    text: str
    remedy: str = ""
    """A command or an advice, if there is one."""


@dataclass(frozen=True, slots=True)
class Section:
    """One subject: its key and value in `--json`, and its lines in the report."""

    key: str
    facts: Any
    findings: tuple[Finding, ...]


# Python, the system, the terminal, programs, and the kernel's limits.
#
# Standard library only, and no process is started: a fact without a file or a call is null.


AROUND = {"TMUX": "tmux", "STY": "screen", "ZELLIJ": "zellij", "SSH_CONNECTION": "ssh"}
"""Variables of programs between us and the person's terminal."""

PROGRAMS = {"bash": "what most sessions run"}
"""Programs that most sessions need, and what for."""

FEW_FILES = 1024
"""Fewer open files than this are too few for some hundred sessions of three descriptors."""


def python() -> Section:
    facts = {"version": platform.python_version(), "path": sys.executable}
    text = f"{facts['version']}, {facts['path']}"
    return Section("python", facts, (Finding(FindingMark.OK, "python", text),))


def system(name: str = sys.platform) -> Section:
    facts = {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
    }
    finding = Finding(FindingMark.OK, "platform", " ".join(facts.values()))
    if name not in {"linux", "darwin"}:
        remedy = "use Linux or macOS; WSL is Linux"
        finding = Finding(
            FindingMark.MISSING, "platform", f"{finding.text} is not supported yet", remedy
        )
    return Section("platform", facts, (finding,))


def terminal(environ: Mapping[str, str]) -> Section:
    size = _terminal_size()
    facts = {
        "term": environ.get("TERM"),
        "program": environ.get("TERM_PROGRAM"),
        "program_version": environ.get("TERM_PROGRAM_VERSION"),
        "columns": size and size.columns,
        "rows": size and size.lines,
        "stdin_tty": _is_terminal(sys.stdin),
        "stdout_tty": _is_terminal(sys.stdout),
        "encoding": getattr(sys.stdout, "encoding", None),
        "inside": [name for variable, name in AROUND.items() if environ.get(variable)],
    }
    return Section("terminal", facts, (Finding(FindingMark.OK, "terminal", _terminal_text(facts)),))


def _terminal_text(facts: Mapping[str, Any]) -> str:
    parts = [facts["term"] or "TERM is not set"]
    if facts["columns"]:
        parts.append(f"{facts['columns']}x{facts['rows']}")
    if facts["program"]:
        parts.append(" ".join(filter(None, (facts["program"], facts["program_version"]))))
    parts += [f"inside {name}" for name in facts["inside"]]
    parts += [f"{name} is no terminal" for name in ("stdin", "stdout") if not facts[f"{name}_tty"]]
    return ", ".join(parts)


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def _terminal_size() -> os.terminal_size | None:
    for stream in (sys.stdout, sys.stdin, sys.stderr):
        if _is_terminal(stream):
            return os.get_terminal_size(stream.fileno())
    return None


def programs(which: Callable[[str], str | None] = shutil.which) -> Section:
    facts = {name: {"path": which(name), "for": use} for name, use in PROGRAMS.items()}
    found = [f"{name} {fact['path']}" for name, fact in facts.items() if fact["path"]]
    findings = [Finding(FindingMark.OK, "programs", ", ".join(found))] if found else []
    for name, fact in facts.items():
        if not fact["path"]:
            text = f"not found on PATH: {fact['for']}"
            remedy = f"install the package {name}, with your system's package manager"
            findings.append(Finding(FindingMark.NOTE, name, text, remedy))
    return Section("programs", facts, tuple(findings))


LANDLOCK = "boot Linux 5.13 or newer, with landlock in its list of modules (lsm=landlock,...)"


def kernel(offers: Kernel | None = None) -> Section:
    offers = offers or asked_kernel()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    facts = {
        "open_files": {"soft": _finite(soft), "hard": _finite(hard)},
        "pseudo_terminals": {"max": proc.most_ptys(), "in_use": proc.ptys_in_use()},
        "pidfd": _has_pidfd(),
        "landlock": offers.landlock,
        "seccomp": bool(offers.machine),
    }
    findings = [Finding(FindingMark.OK, "kernel", _kernel_text(facts))]
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        few = Finding(
            FindingMark.NOTE, "open files", f"only {soft} for one process", "ulimit -n 4096"
        )
        findings.append(few)
    return Section("kernel", facts, (*findings, *_sandbox(offers)))


def _sandbox(offers: Kernel) -> list[Finding]:
    """Return a finding if the kernel cannot confine an agent's commands."""
    missing = lacking(offers)
    if not missing:
        return []
    held = "not fully confined" if offers.is_whole else "not confined"
    text = f"an agent's unasked commands are {held} by the kernel: {'; '.join(missing)}"
    return [Finding(FindingMark.NOTE, "sandbox", text, "" if offers.landlock else LANDLOCK)]


def _kernel_text(facts: Mapping[str, Any]) -> str:
    files, ptys = facts["open_files"], facts["pseudo_terminals"]
    text = f"open files {files['soft'] or 'unlimited'} (at most {files['hard'] or 'unlimited'})"
    if ptys["max"]:
        text += f", pseudo-terminals {ptys['in_use']} of {ptys['max']} in use"
    text += f", pidfd {'yes' if facts['pidfd'] else 'no'}, Landlock {facts['landlock'] or 'no'}"
    return f"{text}, seccomp {'yes' if facts['seccomp'] else 'no'}"


def _finite(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit


def _has_pidfd() -> bool:
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a container that forbids the call
        return False
    return True


# The required libraries, compared with the installed ones. None is imported.


_LINE = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*"
    r"(?P<wanted>[^;]*)(;.*extra\s*==\s*['\"](?P<extra>\w+).*)?"
)

FOR_BUILDERS: Final = frozenset({"bench", "dev"})
"""Extras for people who work on telex: tools of its tests, and peers for the benchmarks."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement in our own metadata; only the forms that we use are parsed."""

    name: str
    wanted: str
    extra: str | None
    """The extra that it belongs to; None if it is required."""

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
    """Return our requirements; empty if telex runs from a directory without installation."""
    try:
        return importlib.metadata.requires(DISTRIBUTION) or []
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
    """Return one line for the installed libraries, and a finding for each that is missing."""
    wanted = [Requirement.parse(line) for line in (requirements() if lines is None else lines)]
    pairs = [(one, version_of(one.name)) for one in wanted if one.extra not in FOR_BUILDERS]
    facts = {one.name: _fact(one, version) for one, version in pairs}
    fine = [f"{name}{TIED}{fact['version']}" for name, fact in facts.items() if fact["ok"]]
    summary = Finding(FindingMark.OK, "libraries", ", ".join(fine) or "none known")
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
        return Finding(FindingMark.MISSING, one.name, text, f"{pip} '{one.name}{one.wanted}'")
    return Finding(
        FindingMark.NOTE, one.name, f"{found} (optional)", f"{pip} '{DISTRIBUTION}[{one.extra}]'"
    )


def _release(version: str) -> list[int]:
    """Return the first three numbers of a version: 4.3 is 4.3.0, and `rc1` is ignored."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return numbers + [0] * (3 - len(numbers))


# Limits of telex; `docs/reference/limits.md` has the reasons.


TOLD = ("SESSIONS", "LINE_BYTES", "CALLS_IN_FLIGHT", "TRANSCRIPT_CHARS")
"""The limits that people meet most often; all of them would fill a page."""


def all_limits() -> dict[str, Limit]:
    """Return the limits of every package by name, by reading each `limits.py`."""
    found: dict[str, Limit] = {}
    for package in pkgutil.iter_modules(telex.__path__, "telex."):
        if package.ispkg and importlib.util.find_spec(f"{package.name}.limits"):
            module = importlib.import_module(f"{package.name}.limits")
            declared = _limits_of(module)
            assert not declared.keys() & found.keys(), f"a limit of {module.__name__} exists twice"
            found |= declared
    return found


def _limits_of(module: ModuleType) -> dict[str, Limit]:
    """Return the integers of a module that have a docstring, which is `unit: reason`."""
    found: dict[str, Limit] = {}
    for pair in itertools.pairwise(ast.parse(inspect.getsource(module)).body):
        match pair:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                unit, _, reason = " ".join(text.split()).partition(": ")
                found[name] = Limit(getattr(module, name), unit, reason)
    return found


def limits() -> Section:
    table = all_limits()
    facts = {
        name: {"value": limit.value, "unit": limit.unit, "reason": limit.reason}
        for name, limit in table.items()
    }
    named = ", ".join(f"{name}{TIED}{_amount(table[name])}" for name in TOLD)
    text = f"{named}, and {len(table) - len(TOLD)} more that --json lists"
    return Section("limits", facts, (Finding(FindingMark.OK, "limits", text),))


def _amount(limit: Limit) -> str:
    if limit.unit == "bytes":
        for size, unit in ((MIB, "MiB"), (KIB, "KiB")):
            if limit.value % size == 0:
                return f"{limit.value // size}{TIED}{unit}"
    return str(limit.value)
