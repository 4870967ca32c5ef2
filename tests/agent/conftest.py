"""With TELEX_SOAK=1, more modules run behind each transport of the one server."""

from __future__ import annotations

import os
from typing import Final

import pytest

MODULES: Final = frozenset(
    f"test_{name}"
    for name in (
        *("agent_pages", "bound_files", "confinement", "confirm_schedules", "cores", "departures"),
        *("event_publisher", "paths", "plugin_tools", "protocol", "runtime", "sessions"),
        "stubborn_cores",
    )
)
"""Those that neither end a UI at an exact moment, nor need the rights of a process of this user."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    soak = os.environ.get("TELEX_SOAK") == "1"
    if soak and metafunc.module.__name__.rpartition(".")[2] in MODULES:
        metafunc.fixturenames.append("every_transport")
        others = [pytest.param(name, marks=pytest.mark.counted) for name in ("socket", "http")]
        metafunc.parametrize("every_transport", ["memory", *others], indirect=True)
