"""`python -m benchmarks [NAME ...]`: the table, or some of its parts."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Sequence

from benchmarks.figures import Row, minutes

PARTS = {
    "wire": 10,
    "redaction": 20,
    "rpc": 20,
    "processes": 10,
    "terminal": 60,
    "input_state": 90,
    "recordings": 30,
    "testing": 10,
    "passthrough": 10,
    "verbs": 15,
    "mcp": 30,
    "mcp_client": 15,
    "sessions": 60,
    "floods": 30,
    "adapters": 45,
    "escapes": 40,
    "plugins": 30,
    "htty": 90,
    "agent": 30,
    "agent_terminals": 5,
    "models": 15,
}
"""The parts in their order, each with its rough duration in seconds on two idle cores: its
processor time, and what it waits for."""
HEAD = ("figure", "telex", "peer, same run", "ratio", "target")


def main() -> None:
    wanted = sys.argv[1:] or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print(expected(wanted), file=sys.stderr, flush=True)
    rows: list[Row] = []
    for part in wanted:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{part}").run()
    machine = f"{os.cpu_count()} cores, {platform.system()}, load {os.getloadavg()[0]:.1f}"
    print(f"Python {platform.python_version()}, {machine}\n")
    _print_table([HEAD, *(row.cells() for row in rows)])


def expected(wanted: Sequence[str]) -> str:
    """Return the first line of a run: how long these parts will take."""
    seconds = sum(PARTS[part] for part in wanted)
    idle = f"about {minutes(seconds)} on two idle cores"
    return f"this takes {idle}, three times that on busy ones: {', '.join(wanted)}"


def _print_table(lines: list[tuple[str, ...]]) -> None:
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    for number, line in enumerate(lines):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
        if number == 0:
            print("  ".join("-" * width for width in widths))


if __name__ == "__main__":
    main()
