"""Find the rules that match a simple command whose words are known. Pure, except for `FileLookup`.

A rule that allows matches the first words exactly. A rule that denies or asks matches more: with
other words between its own, with the program written with a path or through a link, and among the
arguments of any program that may run another. `shell_commands` decides what follows from a match.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.embedded_commands import (
    embeds_rule_words,
    holds_code,
    is_rule_command,
    may_be_rule_command,
    runs_no_word,
    split_embedded_words,
    text_has_rule_words,
)
from telex.agent.permissions.repeatable import runs_nothing
from telex.agent.permissions.tool_rules import SHELL_TOOL, Permission, ToolRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy


_MOST_LINKS: Final = 16
"""Paths in one word whose links are resolved."""


def is_whole(rule: ToolRule) -> bool:
    """Return whether a rule matches every call of its tool."""
    return rule.command is None and rule.text is None and rule.path is None


@dataclass(frozen=True, slots=True)
class CommandRules:
    """Finds the rules that match a command in a directory."""

    paths: PathPolicy
    rules: Sequence[ToolRule]

    def matching(self, argv: tuple[str, ...], cwd: str, *decisions: Permission) -> ToolRule | None:
        """Return the first matching rule; earlier decisions take precedence."""
        for decision in decisions:
            for rule in self._with(decision, cwd):
                if self._matches(rule, argv, cwd):
                    return rule
        return None

    def restricting(self, argv: tuple[str, ...], cwd: str, decision: Permission) -> ToolRule | None:
        """Return a rule with this decision that matches the command itself, or a command that its
        arguments may make it run."""
        if rule := self.matching(argv, cwd, decision):
            return rule
        forms = [
            form
            for form in (argv, *self.with_links_resolved(argv, cwd))
            if not runs_nothing(form) and not runs_no_word(form)
        ]
        for rule in self._with(decision, cwd) if forms else ():
            if rule.command and any(embeds_rule_words(rule.command, form) for form in forms):
                return rule
        return None

    def possible(self, argv: tuple[str, ...], cwd: str) -> ToolRule | None:
        """Return a rule that denies or asks and may match, although the words do not show it."""
        forms = (argv, *self.with_links_resolved(argv, cwd))
        return self._first_restricting(
            lambda command: any(may_be_rule_command(command, form) for form in forms), cwd
        )

    def with_links_resolved(self, argv: tuple[str, ...], cwd: str) -> tuple[tuple[str, ...], ...]:
        """Return further forms of the command, with links among its words replaced by their
        targets, also inside a word that is a text: any of them may be a program that another one
        runs. There is one form for each step of the longest chain of links."""
        if not self.restrict:
            return ()
        found = [self._resolved_forms(word, cwd) for word in argv]
        return tuple(
            tuple(forms[min(at, len(forms) - 1)] for forms in found)
            for at in range(1, max(map(len, found), default=1))
        )

    def _resolved_forms(self, word: str, cwd: str) -> list[str]:
        forms = [word]
        named = (piece for piece in dict.fromkeys(split_embedded_words(word)) if "/" in piece)
        for piece in islice(named, _MOST_LINKS):
            resolved = self.paths.files.resolve(self.paths.absolute(piece, cwd))
            forms += [
                word.replace(piece, place)
                for place in ((*resolved.passed, resolved.end) if resolved.passed else ())
                if posixpath.basename(place) != posixpath.basename(piece)
            ]
        return list(dict.fromkeys(forms))

    def may_hide(self, rule: ToolRule, argv: tuple[str, ...]) -> bool:
        """Return whether the words after those of an allowing rule may be code for a restricted
        command."""
        return self.restrict and rule.command is not None and holds_code(argv, len(rule.command))

    def in_text(self, text: str, cwd: str) -> ToolRule | None:
        """Return a rule that denies or asks and whose words are all in a text."""
        return self._first_restricting(lambda command: text_has_rule_words(command, text), cwd)

    def _first_restricting(
        self, matches: Callable[[tuple[str, ...]], bool], cwd: str
    ) -> ToolRule | None:
        for decision in (Permission.DENY, Permission.ASK):
            for rule in self._with(decision, cwd):
                if rule.command and matches(rule.command):
                    return rule
        return None

    @property
    def restrict(self) -> bool:
        """Whether any rule denies or asks: an unknown command may be the one it restricts."""
        return any(rule.decision is not Permission.ALLOW for rule in self.rules)

    @property
    def free(self) -> bool:
        """Whether a rule allows every shell command."""
        return any(
            rule.is_for(SHELL_TOOL, "") and rule.decision is Permission.ALLOW
            for rule in self.rules
            if is_whole(rule)
        )

    def _with(self, decision: Permission, cwd: str) -> Iterator[ToolRule]:
        for rule in self.rules:
            if rule.decision is decision and rule.is_for(SHELL_TOOL, cwd):
                yield rule

    def _matches(self, rule: ToolRule, argv: tuple[str, ...], cwd: str) -> bool:
        if rule.text is not None or (rule.command is None and rule.path is not None):
            return False
        if rule.decision is not Permission.ALLOW:
            forms = (argv, *self.with_links_resolved(argv, cwd))
            matches = rule.command is None or any(
                is_rule_command(rule.command, form) for form in forms
            )
            return matches and (rule.path is None or any(self._covered(rule, argv[1:], cwd)))
        if rule.command is None:
            return True
        if not rule.begins(argv):
            return False
        rest = argv[len(rule.command) :]
        if rule.plain and not all(self._is_plain(word, cwd) for word in rest):
            return False
        return rule.path is None or (bool(rest) and all(self._covered(rule, rest, cwd)))

    def _covered(self, rule: ToolRule, words: Sequence[str], cwd: str) -> Iterator[bool]:
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
