"""What every test of `processes` gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from processes.trees import Lifeline
from telex.processes import guardian

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _guarded() -> None:
    """The guardian and its descriptors come with the first start and stay: have them now."""
    guardian.ensure()


@pytest.fixture
def lifeline() -> Iterator[Lifeline]:
    line = Lifeline()
    yield line
    line.close()
