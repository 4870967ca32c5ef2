"""`telex mcp` and `/mcp` with the official TypeScript SDK, in each of its modes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from originals.installing import from_npm
from server.mcp_clients import MODES, McpSite, mcp_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGE, VERSION = "@modelcontextprotocol/client", "2.4.0"
SCRIPT = Path(__file__).with_name("mcp_client.mjs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpSite]:
    yield from mcp_site(tmp_path_factory.mktemp("mcp"))


@pytest.mark.deadline(600)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_sdk_opens_types_reads_and_closes(
    site: McpSite, program: Callable[[str], str], transport: str, mode: str
) -> None:
    sdk = from_npm(program, PACKAGE, VERSION, "dist").parent
    relay = json.dumps([sys.executable, "-m", "telex", "mcp"])
    target = relay if transport == "stdio" else site.url
    ran = subprocess.run(
        [program("node"), str(SCRIPT), str(sdk), transport, target, mode],
        env={**os.environ, **site.environ, "TOKEN": site.token},
        cwd=site.work,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["version"] == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert told["tools"] == [*("telex_open", "telex_do", "telex_see", "telex_wait", "telex_close")]
    assert told["done"]["line"] == "42"
    assert ">>> 6 * 7\n42" in told["screen"]
    assert told["failed"]
