"""What telex stands on: Python, the system, the terminal, programs, and the kernel's limits.

Standard library only, and no process is started: where a fact has no file or call, it is null.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telex.cli.doctor.findings import Finding, Mark, Section
from telex.processes.sandbox import Kernel, asked_kernel, lacking

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AROUND = {"TMUX": "tmux", "STY": "screen", "ZELLIJ": "zellij", "SSH_CONNECTION": "ssh"}
"""Variables that tell what stands between us and the person's terminal."""

PROGRAMS = {"bash": "what most sessions run"}
"""Programs telex is of little use without, and what for."""

FEW_FILES = 1024
"""Open files below which a few hundred sessions, at three descriptors each, do not fit."""


def python() -> Section:
    facts = {"version": platform.python_version(), "path": sys.executable}
    text = f"{facts['version']}, {facts['path']}"
    return Section("python", facts, (Finding(Mark.OK, "python", text),))


def system(name: str = sys.platform) -> Section:
    facts = {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
    }
    finding = Finding(Mark.OK, "platform", " ".join(facts.values()))
    if name not in {"linux", "darwin"}:
        remedy = "use Linux or macOS; WSL is Linux"
        finding = Finding(Mark.MISSING, "platform", f"{finding.text} is not supported yet", remedy)
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
    return Section("terminal", facts, (Finding(Mark.OK, "terminal", _terminal_text(facts)),))


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
    findings = [Finding(Mark.OK, "programs", ", ".join(found))] if found else []
    for name, fact in facts.items():
        if not fact["path"]:
            text = f"not found on PATH: {fact['for']}"
            remedy = f"install the package {name}, with your system's package manager"
            findings.append(Finding(Mark.NOTE, name, text, remedy))
    return Section("programs", facts, tuple(findings))


LANDLOCK = "boot Linux 5.13 or newer, with landlock in its list of modules (lsm=landlock,...)"


def kernel(offers: Kernel | None = None) -> Section:
    offers = offers or asked_kernel()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    facts = {
        "open_files": {"soft": _finite(soft), "hard": _finite(hard)},
        "pseudo_terminals": {
            "max": _number("/proc/sys/kernel/pty/max"),
            "in_use": _number("/proc/sys/kernel/pty/nr"),
        },
        "pidfd": _has_pidfd(),
        "landlock": offers.landlock,
        "seccomp": bool(offers.machine),
    }
    findings = [Finding(Mark.OK, "kernel", _kernel_text(facts))]
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        few = Finding(Mark.NOTE, "open files", f"only {soft} for one process", "ulimit -n 4096")
        findings.append(few)
    return Section("kernel", facts, (*findings, *_sandbox(offers)))


def _sandbox(offers: Kernel) -> list[Finding]:
    """What does not hold a command of an agent that runs without a question."""
    missing = lacking(offers)
    if not missing:
        return []
    held = "not wholly held" if offers.is_whole else "not held"
    text = f"what an agent runs unasked is {held} by the kernel: {'; '.join(missing)}"
    return [Finding(Mark.NOTE, "sandbox", text, "" if offers.landlock else LANDLOCK)]


def _kernel_text(facts: Mapping[str, Any]) -> str:
    files, ptys = facts["open_files"], facts["pseudo_terminals"]
    text = f"open files {files['soft'] or 'unlimited'} (at most {files['hard'] or 'unlimited'})"
    if ptys["max"]:
        text += f", pseudo-terminals {ptys['in_use']} of {ptys['max']} in use"
    text += f", pidfd {'yes' if facts['pidfd'] else 'no'}, Landlock {facts['landlock'] or 'no'}"
    return f"{text}, seccomp {'yes' if facts['seccomp'] else 'no'}"


def _finite(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # no such file outside Linux, and in some containers
        return None


def _has_pidfd() -> bool:
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a container that forbids the call
        return False
    return True
