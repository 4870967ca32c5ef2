"""`python -m benchmarks [NAME ...]`: the table, or some of its parts."""

from __future__ import annotations

import importlib
import os
import platform
import sys

from benchmarks.figures import Row

PARTS = [
    "wire",
    "redaction",
    "rpc",
    "processes",
    "terminal",
    "passthrough",
    "sessions",
    "floods",
    "adapters",
    "escapes",
    "plugins",
    "htty",
    "agent",
]
HEAD = ("figure", "telex", "peer, same run", "ratio", "target")


def main() -> None:
    wanted = sys.argv[1:] or PARTS
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    rows: list[Row] = []
    for part in wanted:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{part}").run()
    machine = f"{os.cpu_count()} cores, {platform.system()}, load {os.getloadavg()[0]:.1f}"
    print(f"Python {platform.python_version()}, {machine}\n")
    _print_table([HEAD, *(row.cells() for row in rows)])


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
