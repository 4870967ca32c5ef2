"""Which rule is about a simple command whose words are known. Pure, but for `Files`.

One that denies or asks matches also when other words stand between its own, when the program is
written with a path, and among the words of any program that may run another; one that allows
matches the words as they are. What follows from a rule is the affair of `commands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.agent.judging.lasting import runs_nothing
from telex.agent.judging.modes import SHELL_TOOL
from telex.agent.judging.nested import is_about, is_told
from telex.agent.judging.rules import Decision, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.agent.judging.paths import Paths


@dataclass(frozen=True, slots=True)
class CommandRules:
    paths: Paths
    rules: Sequence[Rule]

    def about(self, argv: tuple[str, ...], cwd: str, *decisions: Decision) -> Rule | None:
        """The first with the first of these decisions."""
        for decision in decisions:
            for rule in self._with(decision, cwd):
                if self._matches(rule, argv, cwd):
                    return rule
        return None

    def restricting(self, argv: tuple[str, ...], cwd: str, decision: Decision) -> Rule | None:
        """The same, and about something that this program may be told to run."""
        if (rule := self.about(argv, cwd, decision)) or runs_nothing(argv):
            return rule
        for rule in self._with(decision, cwd):
            if rule.command and is_told(rule.command, argv):
                return rule
        return None

    @property
    def restrict(self) -> bool:
        """Whether there is one that denies or asks: what is not known may be what it is about."""
        return any(rule.decision is not Decision.ALLOW for rule in self.rules)

    @property
    def free(self) -> bool:
        """Whether one allows the whole tool."""
        return any(
            rule.is_for(SHELL_TOOL, "") and rule.decision is Decision.ALLOW
            for rule in self.rules
            if rule.command is None and rule.text is None and rule.path is None
        )

    def _with(self, decision: Decision, cwd: str) -> Iterator[Rule]:
        for rule in self.rules:
            if rule.decision is decision and rule.is_for(SHELL_TOOL, cwd):
                yield rule

    def _matches(self, rule: Rule, argv: tuple[str, ...], cwd: str) -> bool:
        if rule.text is not None or (rule.command is None and rule.path is not None):
            return False
        if rule.decision is not Decision.ALLOW:
            about = rule.command is None or is_about(rule.command, argv)
            return about and (rule.path is None or any(self._covered(rule, argv[1:], cwd)))
        if rule.command is None:
            return True
        if not rule.begins(argv):
            return False
        rest = argv[len(rule.command) :]
        if rule.plain and not all(self._is_plain(word, cwd) for word in rest):
            return False
        return rule.path is None or (bool(rest) and all(self._covered(rule, rest, cwd)))

    def _covered(self, rule: Rule, words: Sequence[str], cwd: str) -> Iterator[bool]:
        for word in words:
            absolute = self.paths.absolute(word, cwd)
            yield self.paths.covers(rule, absolute, self.paths.files.real(absolute))

    def _is_plain(self, word: str, cwd: str) -> bool:
        absolute = self.paths.absolute(word, cwd)
        return (
            not word.startswith(("-", "+", "@"))
            and "=" not in word
            and self.paths.is_inside(absolute)
            and not self.paths.is_guarded(absolute)
        )
