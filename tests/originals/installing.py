"""Programs from registries, kept beside the environment of the tests: installed once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT = Path(sys.prefix) / ".originals"
SECONDS = 1800


def from_npm(program: Callable[[str], str], package: str, version: str, path: str) -> Path:
    """A program of an npm package for this machine."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip(f"{package} is built for Linux on x86-64")
    where = KEPT / f"{package.replace('/', '+')}-{version}"
    found = where / "node_modules" / package / path
    if not found.exists():
        npm = [program("npm"), "install", "--no-audit", "--no-fund", "--prefix", str(where)]
        _install([*npm, f"{package}@{version}"])
    return found


def from_crates(program: Callable[[str], str], crate: str, version: str) -> Path:
    """A program that cargo builds."""
    where = KEPT / f"{crate}-{version}"
    found = where / "bin" / crate
    if not found.exists():
        cargo = [program("cargo"), "install", "--quiet", "--locked", "--root", str(where)]
        _install([*cargo, crate, "--version", version, "--no-default-features"])
    return found


def _install(argv: list[str]) -> None:
    KEPT.mkdir(exist_ok=True)
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say(f"{' '.join(argv)} failed: {done.stderr[-500:]}")
