"""The automation server by each of the four ways to it, or by one where the way cannot matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from automating import WAYS, Serving


@pytest.fixture(params=WAYS)
def each_way(request: pytest.FixtureRequest, tmp_path: Path) -> Serving:
    """`async with each_way() as client:` a server, and a connection to it, by each way in turn."""
    return Serving(request.param, tmp_path)


@pytest.fixture
def automation(tmp_path: Path) -> Serving:
    """The same by a unix socket, for what no transport can change."""
    return Serving("unix, ndjson", tmp_path)
