"""`make docs`: write every page that is generated; `--check`: say which are out of date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts import (
    render_agent,
    render_automation,
    render_escapes,
    render_plugin_protocol,
    render_python,
    render_reference,
)
from tests.clause_table import SPECS

DOCS = Path(__file__).parent.parent / "docs"


def pages() -> dict[Path, str]:
    """Every generated page, the same on every computer."""
    specs = {f"specs/{folder}.md": render_reference.render_spec(folder) for folder in SPECS}
    rendered = {
        **specs,
        "specs/README.md": render_reference.render_spec_index(),
        "reference/limits.md": render_reference.render_limits(),
        "reference/errors.md": render_reference.render_errors(),
        "reference/models.md": render_reference.render_models(),
        "reference/mcp.md": render_reference.render_mcp(),
        "reference/mcp-servers.md": render_reference.render_mcp_servers(),
        "reference/automation.md": render_automation.render(),
        "reference/agent-methods.md": render_agent.render(),
        "reference/agent-ui.schema.json": render_agent.schema(),
        "reference/keys.md": render_reference.render_keys(),
        "reference/escapes.md": render_escapes.render(),
        "reference/plugin-protocol.md": render_plugin_protocol.render(),
        "reference/cli.md": render_reference.render_commands(),
        "reference/python.md": render_python.render(),
        "explain/conversation.md": render_reference.render_conversation(),
    }
    return {DOCS / name: text for name, text in rendered.items()}


def outdated() -> dict[Path, str]:
    """The pages that are missing or say something else, as they should be."""
    return {
        page: text
        for page, text in pages().items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if out of date")
    check = parser.parse_args().check
    for page, text in (old := outdated()).items():
        print(f"docs/{page.relative_to(DOCS)} {'is out of date' if check else 'written'}")
        if not check:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
    if check and old:
        sys.exit("The documentation is behind the code: run `make docs` and commit what it writes.")


if __name__ == "__main__":
    main()
