"""The UIs that left a run and may come back: whoever waits for an answer may wait for them. Pure.

A UI has no name that would tell it from another, so one that comes is taken for one that left if it
can answer all that the other could, and may come back as well. Who only watches is somebody else.

Used by `Run`; the questions ask through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.agent.connection import can_answer
from telex.protocols.agent_ui import REQUESTS, asking
from telex.protocols.agent_ui.running import UiCapabilities

if TYPE_CHECKING:
    from collections.abc import Iterable


class Away:
    """Of one run."""

    def __init__(self) -> None:
        self._left: list[UiCapabilities] = []

    def left(self, can: UiCapabilities) -> None:
        if can.supports_run_attach:
            self._left.append(can)

    def came(self, can: UiCapabilities) -> None:
        """One that came is one that left, not all of them."""
        for one in self._left:
            if can.supports_run_attach and _covers(can, one):
                self._left.remove(one)
                return

    def may_answer(self, method: str) -> bool:
        return any(can_answer(can, method) for can in self._left)


def who_answers(methods: Iterable[str]) -> UiCapabilities:
    """One of whom nothing else is known, as after a restart."""
    asked = set(methods)
    return UiCapabilities(
        supports_confirm=asking.CONFIRM in asked,
        supports_prompt=asking.PROMPT in asked,
        supports_pick=asking.PICK in asked,
        supports_run_attach=True,
    )


def _covers(can: UiCapabilities, other: UiCapabilities) -> bool:
    return all(can_answer(can, method) or not can_answer(other, method) for method in REQUESTS)
