"""The rules of one workspace: those of the configuration files, and the remembered answers.

A remembered answer is stored first, and counts from then on, in this runtime and later ones, in
every mode. An answer counts only in the root in which it was given, because the same tool may do
something else in another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.permissions import (
    InvalidRule,
    Judge,
    Mode,
    Permission,
    RuleLayer,
    ToolRule,
    repeatable,
    rule_to_table,
    rules_from_tables,
)
from telex.agent.permissions.disk import DiskLookup
from telex.agent.permissions.tool_rules import SKILL_TOOL, PathAccess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.permissions import RememberScope
    from telex.agent.store import Store, StoredDecision

REMEMBERED: Final = repeatable.REMEMBERED_LAYER
_ROOT = "root"
"""The member with the workspace's root, next to the members of a stored rule."""


class RememberedAnswers:
    """The remembered answers of all roots, which the workspaces of one runtime share."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: dict[str, tuple[ToolRule, ...]] = {}
        self._added = 0
        """The number of answers that were added since the start."""

    def rules(self, root: str) -> tuple[ToolRule, ...]:
        return self._rules.get(root, ())

    async def load(self) -> None:
        """Load the answers again: other processes add and revoke some."""
        while True:
            added = self._added
            found = _by_root(await self._store.decisions())
            if added == self._added:  # else an answer that was stored meanwhile would be lost
                self._rules = found
                return

    async def remember(
        self, root: str, scope: RememberScope, *, allowed: bool, by: str, request_id: str
    ) -> None:
        """Store an answer, then let it count."""
        rule = scope.rule if allowed else scope.denying()
        table = {_ROOT: root, **rule_to_table(rule)}
        await self._store.remember(msgspec.json.encode(table), by, request_id)
        self._rules[root] = (*self.rules(root), replace(rule, place=f"answer to {request_id}"))
        self._added += 1


def _by_root(decisions: Sequence[StoredDecision]) -> dict[str, tuple[ToolRule, ...]]:
    """Return the rules of each root. A stored decision that cannot be parsed is ignored."""
    found: dict[str, tuple[ToolRule, ...]] = {}
    for decision in decisions:
        try:
            table = msgspec.json.decode(decision.rule, type=dict[str, object])
            root = str(table.pop(_ROOT, ""))
            parsed = rules_from_tables([table], f"decision {decision.id}")
        except (InvalidRule, msgspec.DecodeError):
            continue
        found[root] = (*found.get(root, ()), *parsed)
    return found


@dataclass(slots=True)
class WorkspacePermissions:
    """The rules of a workspace, and the `judge` for them. `judge` is replaced when an answer is
    remembered, so do not keep a reference to it."""

    root: str
    home: str
    answers: RememberedAnswers
    mode: Mode = Mode.MINIMAL
    layers: Sequence[RuleLayer] = ()
    trusted: bool = False
    own: Sequence[str] = ()
    """The directories of telex, which only mode full writes without a question."""
    _judge: Judge | None = field(init=False, default=None)

    @property
    def judge(self) -> Judge:
        layers = (*self.layers, RuleLayer(REMEMBERED, self.answers.rules(self.root)))
        if self._judge is None or self._judge.layers != layers:
            self._judge = Judge(
                layers, self.mode, self.root, self.home, DiskLookup(), self.trusted, self.own
            )
        return self._judge

    def read_restriction(self, path: str) -> str:
        """Return why a rule forbids to read a file of a skill; empty if none does. A rule that asks
        about reading counts too, because a skill is read without a question; not one that asks
        about each call of the tool, because the judge did. Blocks."""
        paths = self.judge.paths
        verdict = paths.touched(PathAccess.READ, path, self.root, SKILL_TOOL).verdict
        rule = verdict.rule
        if rule is None or verdict.decision is Permission.ALLOW:
            return ""
        of_calls = rule.path is None and rule.is_for(SKILL_TOOL, self.root)
        return "" if of_calls and verdict.decision is Permission.ASK else verdict.why
