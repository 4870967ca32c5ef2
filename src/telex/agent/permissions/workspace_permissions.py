"""The rules of one workspace: those of the configuration files, and the remembered answers.

A remembered answer is stored first, and counts from then on, in this runtime and later ones. It
counts only in the workspace in which it was given, because the same tool may do something else in
another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.permissions import (
    InvalidRule,
    Judge,
    Mode,
    RuleLayer,
    ToolRule,
    repeatable,
    rule_to_table,
    rules_from_tables,
)
from telex.agent.permissions.disk import DiskLookup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.permissions import RememberScope
    from telex.agent.store import Store

REMEMBERED: Final = repeatable.REMEMBERED_LAYER
_ROOT = "root"
"""The member with the workspace's root, next to the members of a stored rule."""


@dataclass(slots=True)
class WorkspacePermissions:
    """The rules of a workspace, and the `judge` for them. `judge` is replaced when an answer is
    remembered, so do not keep a reference to it."""

    root: str
    home: str
    mode: Mode = Mode.MINIMAL
    layers: Sequence[RuleLayer] = ()
    trusted: bool = False
    own: Sequence[str] = ()
    """The directories of telex, which only mode full writes without a question."""
    remembered: tuple[ToolRule, ...] = ()
    judge: Judge = field(init=False)

    def __post_init__(self) -> None:
        self._new_judge()

    async def load(self, store: Store) -> None:
        """Load the remembered answers. A stored decision that cannot be parsed is ignored."""
        found: list[ToolRule] = []
        for decision in await store.decisions():
            try:
                table = msgspec.json.decode(decision.rule, type=dict[str, object])
                if table.pop(_ROOT, None) == self.root:
                    found += rules_from_tables([table], f"decision {decision.id}")
            except (InvalidRule, msgspec.DecodeError):
                continue
        self.remembered = tuple(found)
        self._new_judge()

    async def remember(
        self, store: Store, scope: RememberScope, *, allowed: bool, by: str, request_id: str
    ) -> None:
        """Store an answer, then let it count."""
        rule = scope.rule if allowed else scope.denying()
        table = {_ROOT: self.root, **rule_to_table(rule)}
        await store.remember(msgspec.json.encode(table), by, request_id)
        self.remembered = (*self.remembered, replace(rule, place=f"answer to {request_id}"))
        self._new_judge()

    def _new_judge(self) -> None:
        layers = (*self.layers, RuleLayer(REMEMBERED, self.remembered))
        self.judge = Judge(
            layers, self.mode, self.root, self.home, DiskLookup(), self.trusted, self.own
        )
