"""Runs the commands on the page about using plugins, and compares their output."""

from __future__ import annotations

import re
from pathlib import Path

from typed_pages import check_typed

PAGE = (Path(__file__).parents[2] / "docs/how-to/use-plugins.md").read_text()


def test_the_commands_on_the_page_print_the_shown_output(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "tasks.toml").write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])
    check_typed(PAGE, home)
