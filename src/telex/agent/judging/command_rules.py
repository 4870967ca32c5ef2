"""Which rule is about a simple command whose words are known. Pure, but for `Files`.

One that denies or asks matches also when other words stand between its own, when the program is
written with a path, and among the words of any program that may run another; one that allows
matches the words as they are. What follows from a rule is the affair of `commands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.agent.judging.code_words import holds_code, runs_no_word
from telex.agent.judging.lasting import runs_nothing
from telex.agent.judging.modes import SHELL_TOOL
from telex.agent.judging.nested import holds_words_of, is_about, is_doubtful, is_told
from telex.agent.judging.rules import Decision, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from telex.agent.judging.paths import Paths


def is_whole(rule: Rule) -> bool:
    """Whether it is about all that a tool does."""
    return rule.command is None and rule.text is None and rule.path is None


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
        if (rule := self.about(argv, cwd, decision)) or runs_nothing(argv) or runs_no_word(argv):
            return rule
        for rule in self._with(decision, cwd):
            if rule.command and is_told(rule.command, argv):
                return rule
        return None

    def doubtful(self, argv: tuple[str, ...], cwd: str) -> Rule | None:
        """One that denies or asks and may be about this, though its words do not say so."""
        return self._first(lambda command: is_doubtful(command, argv), cwd)

    def may_hide(self, rule: Rule, argv: tuple[str, ...]) -> bool:
        """Whether words after those that a rule allows may be code for what another rule denies."""
        return self.restrict and rule.command is not None and holds_code(argv, len(rule.command))

    def in_text(self, text: str, cwd: str) -> Rule | None:
        """One that denies or asks and whose words are all in a text."""
        return self._first(lambda command: holds_words_of(command, text), cwd)

    def _first(self, fits: Callable[[tuple[str, ...]], bool], cwd: str) -> Rule | None:
        for decision in (Decision.DENY, Decision.ASK):
            for rule in self._with(decision, cwd):
                if rule.command and fits(rule.command):
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
            if is_whole(rule)
        )

    def _with(self, decision: Decision, cwd: str) -> Iterator[Rule]:
        for rule in self.rules:
            if rule.decision is decision and rule.is_for(SHELL_TOOL, cwd):
                yield rule

    def _matches(self, rule: Rule, argv: tuple[str, ...], cwd: str) -> bool:
        if rule.text is not None or (rule.command is None and rule.path is not None):
            return False
        if rule.decision is not Decision.ALLOW:
            forms = (argv, *self._by_its_link(argv, cwd))
            about = rule.command is None or any(is_about(rule.command, one) for one in forms)
            return about and (rule.path is None or any(self._covered(rule, argv[1:], cwd)))
        if rule.command is None:
            return True
        if not rule.begins(argv):
            return False
        rest = argv[len(rule.command) :]
        if rule.plain and not all(self._is_plain(word, cwd) for word in rest):
            return False
        return rule.path is None or (bool(rest) and all(self._covered(rule, rest, cwd)))

    def _by_its_link(self, argv: tuple[str, ...], cwd: str) -> Iterator[tuple[str, ...]]:
        """The program under the name that a link leads to."""
        if "/" in argv[0]:
            yield (self.paths.files.real(self.paths.absolute(argv[0], cwd)), *argv[1:])

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
