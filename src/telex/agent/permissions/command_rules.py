"""Which rule is about a simple command whose words are known. Pure, but for `FileLookup`.

One that denies or asks matches also when other words stand between its own, when the program is
written with a path or through a link, and among the words of any program that may run another;
one that allows matches the words as they are. `shell_commands` decides what follows from a rule.
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
"""Names in one word that are looked up."""


def is_whole(rule: ToolRule) -> bool:
    """Whether it is about all that a tool does."""
    return rule.command is None and rule.text is None and rule.path is None


@dataclass(frozen=True, slots=True)
class CommandRules:
    paths: PathPolicy
    rules: Sequence[ToolRule]

    def about(self, argv: tuple[str, ...], cwd: str, *decisions: Permission) -> ToolRule | None:
        """The first with the first of these decisions."""
        for decision in decisions:
            for rule in self._with(decision, cwd):
                if self._matches(rule, argv, cwd):
                    return rule
        return None

    def restricting(self, argv: tuple[str, ...], cwd: str, decision: Permission) -> ToolRule | None:
        """The same, and about something that this program may be told to run."""
        if rule := self.about(argv, cwd, decision):
            return rule
        forms = [
            form
            for form in (argv, *self.by_links(argv, cwd))
            if not runs_nothing(form) and not runs_no_word(form)
        ]
        for rule in self._with(decision, cwd) if forms else ():
            if rule.command and any(embeds_rule_words(rule.command, form) for form in forms):
                return rule
        return None

    def doubtful(self, argv: tuple[str, ...], cwd: str) -> ToolRule | None:
        """One that denies or asks and may be about this, though its words do not say so."""
        forms = (argv, *self.by_links(argv, cwd))
        return self._first(
            lambda command: any(may_be_rule_command(command, one) for one in forms), cwd
        )

    def by_links(self, argv: tuple[str, ...], cwd: str) -> tuple[tuple[str, ...], ...]:
        """The same words, with what links among them lead to, also in a word that is a text: any
        may be a program that another one runs. One for each link on the longest way."""
        if not self.restrict:
            return ()
        found = [self._led_to(word, cwd) for word in argv]
        return tuple(
            tuple(ways[min(at, len(ways) - 1)] for ways in found)
            for at in range(1, max(map(len, found), default=1))
        )

    def _led_to(self, word: str, cwd: str) -> list[str]:
        forms = [word]
        named = (piece for piece in dict.fromkeys(split_embedded_words(word)) if "/" in piece)
        for piece in islice(named, _MOST_LINKS):
            way = self.paths.files.resolve(self.paths.absolute(piece, cwd))
            forms += [
                word.replace(piece, place)
                for place in ((*way.passed, way.end) if way.passed else ())
                if posixpath.basename(place) != posixpath.basename(piece)
            ]
        return list(dict.fromkeys(forms))

    def may_hide(self, rule: ToolRule, argv: tuple[str, ...]) -> bool:
        """Whether words after those that a rule allows may be code for what another rule denies."""
        return self.restrict and rule.command is not None and holds_code(argv, len(rule.command))

    def in_text(self, text: str, cwd: str) -> ToolRule | None:
        """One that denies or asks and whose words are all in a text."""
        return self._first(lambda command: text_has_rule_words(command, text), cwd)

    def _first(self, fits: Callable[[tuple[str, ...]], bool], cwd: str) -> ToolRule | None:
        for decision in (Permission.DENY, Permission.ASK):
            for rule in self._with(decision, cwd):
                if rule.command and fits(rule.command):
                    return rule
        return None

    @property
    def restrict(self) -> bool:
        """Whether there is one that denies or asks: what is not known may be what it is about."""
        return any(rule.decision is not Permission.ALLOW for rule in self.rules)

    @property
    def free(self) -> bool:
        """Whether one allows the whole tool."""
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
            forms = (argv, *self.by_links(argv, cwd))
            about = rule.command is None or any(is_rule_command(rule.command, one) for one in forms)
            return about and (rule.path is None or any(self._covered(rule, argv[1:], cwd)))
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
