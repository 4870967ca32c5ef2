"""The automation server by each of the four ways to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from automating import WAYS, Serving


@pytest.fixture(params=WAYS)
def automation(request: pytest.FixtureRequest, tmp_path: Path) -> Serving:
    """`async with automation() as client:` a server, and a connection to it, by each way in turn."""
    return Serving(request.param, tmp_path)
