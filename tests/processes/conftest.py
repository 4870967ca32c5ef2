"""Fixtures for the tests of `processes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from processes.trees import Lifeline

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def lifeline() -> Iterator[Lifeline]:
    line = Lifeline()
    yield line
    line.close()
