"""Tests of terminal programs: the pytest plugin, golden screens, and tests written by use.

pytest loads `pytest_plugin` by its entry point, in every run of every project that has telex
installed. So that file imports the standard library and pytest only; the rest is loaded when a test
uses the fixture `telex` or `golden`, or fails after that.

    pytest_plugin     options, fixtures, hooks
    spawned_programs  the fixture `telex`: starts programs, and ends them after the test
    terminal_trace    the steps of one terminal: what was typed, what was waited for, and its screen
    golden_fixture    the fixture `golden`: compares a screen with its file
    golden_file       the value of such a file, and its text format
    failure_report    the last screen, the steps and the frames of a failed test
    failure_page      all failures of a run as one HTML page
    codegen           a test written from what a person did; codegen_panel watches the person, and
                      codegen_log keeps the inputs, the screens and what of them is secret
    golden_place      the names of golden files, and the unused ones

Tests may import from here: the exceptions of `golden`, which are `MissingGolden`, `GoldenMismatch`
and `BadGolden` with its kind `NewerGolden`; and the types of the two fixtures, `SpawnedPrograms`
and `Golden`, for annotations. They are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.testing.golden_file import BadGolden as BadGolden
    from telex.testing.golden_file import NewerGolden as NewerGolden
    from telex.testing.golden_fixture import Golden as Golden
    from telex.testing.golden_fixture import GoldenMismatch as GoldenMismatch
    from telex.testing.golden_fixture import MissingGolden as MissingGolden
    from telex.testing.spawned_programs import SpawnedPrograms as SpawnedPrograms

_FILES = {
    "BadGolden": "golden_file",
    "Golden": "golden_fixture",
    "GoldenMismatch": "golden_fixture",
    "MissingGolden": "golden_fixture",
    "NewerGolden": "golden_file",
    "SpawnedPrograms": "spawned_programs",
}
__all__ = [*_FILES]


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module 'telex.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"telex.testing.{_FILES[name]}"), name)
