"""The reference page is rendered from the commands, the same everywhere."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from telex.cli.root import COMMANDS
from telex.config.settings import TABLE

if TYPE_CHECKING:
    import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "render_reference.py"


def test_the_page_has_every_command_option_and_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    narrow: str = runpy.run_path(str(SCRIPT))["render_commands"]()
    monkeypatch.setenv("COLUMNS", "200")
    assert runpy.run_path(str(SCRIPT))["render_commands"]() == narrow
    for name in (*COMMANDS, "config show", "config path", "config trust", "config untrust"):
        assert f"\n## `telex {name}`\n" in narrow
    assert "| `--json` | One JSON object instead of lines. |" in narrow
    for setting in TABLE.values():
        assert f"| `{setting.key}` | {setting.expected} |" in narrow
    assert "\b" not in narrow
