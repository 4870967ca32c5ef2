"""The rules in force in one workspace: the person's files, and what they asked to be remembered.

What is remembered is stored first and counts from then on, in this runtime and the next, and only
in the workspace it was said in: a tool that is fine here may do something else elsewhere.
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
"""The workspace's, beside the members of the rule."""


@dataclass(slots=True)
class WorkspacePermissions:
    """`judge` is the one to ask; it is another after something was remembered."""

    root: str
    home: str
    mode: Mode = Mode.MINIMAL
    layers: Sequence[RuleLayer] = ()
    trusted: bool = False
    own: Sequence[str] = ()
    """Telex's own places, which no mode but full writes to unasked."""
    remembered: tuple[ToolRule, ...] = ()
    judge: Judge = field(init=False)

    def __post_init__(self) -> None:
        self._renew()

    async def load(self, store: Store) -> None:
        """What was remembered before. A decision that cannot be read any more is not one."""
        found: list[ToolRule] = []
        for decision in await store.decisions():
            try:
                table = msgspec.json.decode(decision.rule, type=dict[str, object])
                if table.pop(_ROOT, None) == self.root:
                    found += rules_from_tables([table], f"decision {decision.id}")
            except (InvalidRule, msgspec.DecodeError):
                continue
        self.remembered = tuple(found)
        self._renew()

    async def remember(
        self, store: Store, scope: RememberScope, *, allowed: bool, by: str, request_id: str
    ) -> None:
        rule = scope.rule if allowed else scope.denying()
        table = {_ROOT: self.root, **rule_to_table(rule)}
        await store.remember(msgspec.json.encode(table), by, request_id)
        self.remembered = (*self.remembered, replace(rule, place=f"answer to {request_id}"))
        self._renew()

    def _renew(self) -> None:
        layers = (*self.layers, RuleLayer(REMEMBERED, self.remembered))
        self.judge = Judge(
            layers, self.mode, self.root, self.home, DiskLookup(), self.trusted, self.own
        )
