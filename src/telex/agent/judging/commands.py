"""Simple commands and redirects of a script, each judged. Pure, but for `Files`.

Rules first (`command_rules`). Then readers, which may read inside the root. All else asks, but in
mode full.

`cd` moves the rest. Whether it succeeded is not known, so that every directory the script may be in
is tried, and a command is allowed only if it is in all of them. It moves only as a command of its
own after `&&`, `;` or a new line: in a pipe or a substitution the shell stays where it is, so that
such a `cd` asks and moves nothing here either. Used by `judge`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.agent.judging.command_rules import CommandRules
from telex.agent.judging.expanding import as_text, changes_files, expanded
from telex.agent.judging.lasting import is_lasting, writes_lastingly
from telex.agent.judging.modes import SHELL_TOOL, Access, Mode
from telex.agent.judging.nested import may_run_a_shell
from telex.agent.judging.paths import Paths, Touched, Verdict
from telex.agent.judging.programs import TAKES_ANYTHING, reading
from telex.agent.judging.rules import Decision, Rule
from telex.agent.judging.script import (
    Command,
    Direction,
    Joint,
    Pipeline,
    Redirect,
    Script,
    Word,
)
from telex.agent.judging.within import parts
from telex.wire.limits import AGENT_COMMAND_PLACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that was judged by itself."""

    kind: str
    """`command`, `redirect`, or the name of a tool."""
    source: str
    argv: tuple[str, ...]
    verdict: Verdict
    touched: tuple[Touched, ...] = ()
    lasting: bool = False
    """It does the same tomorrow (`lasting`)."""


@dataclass(slots=True)
class _Where:
    """The directories a script may be in."""

    now: tuple[str, ...]
    seen: tuple[str, ...]
    fixed: bool = False
    """A `cd` here is not followed."""
    moved: bool = False

    def move(self, places: tuple[str, ...]) -> None:
        self.now, self.moved = places, True
        self.seen = tuple(dict.fromkeys((*self.seen, *places)))


@dataclass(frozen=True, slots=True)
class Commands:
    paths: Paths
    rules: CommandRules
    mode: Mode
    trusted: bool

    def judge(self, script: Script, cwd: str) -> tuple[Piece, ...]:
        return tuple(self._script(script, _Where((cwd,), (cwd,)), changes_files(script)))

    def _script(self, script: Script, where: _Where, changing: bool) -> Iterator[Piece]:
        # After `||` nobody knows which of the commands before were run at all.
        unsure = any(pipeline.joint is Joint.IF_BAD for pipeline in script.pipelines)
        for pipeline in script.pipelines:
            where.fixed = where.fixed or pipeline.joint is Joint.IF_BAD
            if unsure or pipeline.joint is not Joint.IF_GOOD:
                where.now = where.seen
            yield from self._pipeline(pipeline, where, changing)

    def _pipeline(self, pipeline: Pipeline, where: _Where, changing: bool) -> Iterator[Piece]:
        now = where.now
        for command in pipeline.commands:
            for inner in command.scripts:
                yield from self._script(inner, _Where(now, now, True, where.moved), changing)
            yield from (self._redirect(redirect, now) for redirect in command.redirects)
            if command.words and command.words[0].is_plain and command.words[0].text == "cd":
                yield self._cd(command, where, alone=len(pipeline.commands) == 1)
            elif command.words:
                yield self._command(command, now, changing, moved=where.moved)

    def _cd(self, command: Command, where: _Where, *, alone: bool) -> Piece:
        argv = tuple(word.text for word in command.words)
        restricting = self.rules.about(argv, where.now[0], Decision.DENY, Decision.ASK)
        if restricting:
            return _piece(command, argv, _by_rule(restricting))
        if where.fixed or not alone:
            why = "cd in a pipe, in a substitution or after || may not move the shell"
            return _piece(command, argv, self._unless_restricted(why))
        match command.words:
            case (_, Word(is_pattern=False, scripts=()) as target) if target.text[:1] not in (
                "-",
                "",
            ):
                pass
            case _:
                # Without a known place, nothing after it can be judged.
                return _piece(command, argv, self._unless_restricted("cd to an unknown place"))
        path = as_text(target, self.paths)
        places = tuple(
            place for cwd in where.now for place in _places(self.paths.absolute(path, cwd))
        )
        if not self._is_free() and not all(map(self.paths.is_inside, places)):
            return _piece(command, argv, Verdict(Decision.ASK, f"cd to {path}, outside the root"))
        where.move(places)
        if len(where.seen) > AGENT_COMMAND_PLACES:
            where.now = where.seen = where.seen[:AGENT_COMMAND_PLACES]
            return _piece(command, argv, Verdict(Decision.ASK, "cd too often to follow"))
        verdict = Verdict(Decision.ALLOW, "cd inside the root")
        return _piece(command, argv, verdict, lasting=True)

    def _redirect(self, redirect: Redirect, cwds: tuple[str, ...]) -> Piece:
        access = Access.READ if redirect.direction is Direction.READ else Access.WRITE
        word = redirect.target
        if word.is_pattern or word.scripts:
            named = tuple(one for cwd in cwds for one in self._printed((word,), cwd))
            why = "nobody knows the redirect's file"
            verdict = _asked(named) or self._unless_restricted(why)
            return Piece("redirect", redirect.source, (word.text,), verdict, named)
        path = as_text(word, self.paths)
        touched = tuple(self.paths.touched(access, path, cwd, SHELL_TOOL) for cwd in cwds)
        verdict = _worst([one.verdict for one in touched])
        lasting = access is Access.READ or all(
            writes_lastingly(path, cwd, self.paths) for cwd in cwds
        )
        return Piece("redirect", redirect.source, (path,), verdict, touched, lasting)

    def _command(
        self, command: Command, cwds: tuple[str, ...], changing: bool, *, moved: bool
    ) -> Piece:
        words = command.words
        written = tuple(as_text(word, self.paths) for word in words)
        verdicts: list[Verdict] = []
        touched: list[Touched] = []
        for cwd in cwds:
            known = expanded(words, cwd, self.paths, changing=changing)
            verdict, found = self._one(written, known, cwd, words, moved=moved)
            verdicts.append(verdict)
            touched += found
        varying = any(word.is_pattern or word.scripts for word in words)
        lasting = not varying and all(is_lasting(written, cwd, self.paths) for cwd in cwds)
        return _piece(
            command, written, _worst(verdicts), tuple(dict.fromkeys(touched)), lasting=lasting
        )

    def _one(
        self,
        written: tuple[str, ...],
        known: tuple[str, ...] | None,
        cwd: str,
        words: tuple[Word, ...],
        *,
        moved: bool,
    ) -> tuple[Verdict, tuple[Touched, ...]]:
        """A command in one directory. `known` are its words, if they are all known."""
        argv = written if known is None else known
        named = (*self._named(argv, cwd), *self._printed(words, cwd))
        denied = [one.verdict for one in named if one.verdict.decision is Decision.DENY]
        if rule := self.rules.restricting(argv, cwd, Decision.DENY):
            return _by_rule(rule), named
        if denied:
            return denied[0], named
        if known is None:
            return self._unknown(argv, cwd, words[0], named), named
        verdict, touched = self._plain(argv, cwd, named, moved=moved)
        return verdict, (*named, *touched)

    def _unknown(
        self, argv: tuple[str, ...], cwd: str, first: Word, named: tuple[Touched, ...]
    ) -> Verdict:
        """A word of it stands for names, or is printed by another command: an option, any path."""
        if rule := self.rules.about(argv, cwd, Decision.ASK):
            return _by_rule(rule)
        if first.is_plain and argv[0] in TAKES_ANYTHING:
            return Verdict(Decision.ALLOW, f"{argv[0]} may get any arguments")
        return _asked(named) or self._unless_restricted(
            "nobody knows what a pattern or a substitution stands for"
        )

    def _plain(
        self, argv: tuple[str, ...], cwd: str, named: tuple[Touched, ...], *, moved: bool
    ) -> tuple[Verdict, tuple[Touched, ...]]:
        """A command whose words are all known."""
        if rule := self.rules.about(argv, cwd, Decision.ALLOW):
            return self._allowed(rule, named), ()
        if rule := self.rules.restricting(argv, cwd, Decision.ASK):
            return _by_rule(rule), ()
        found = reading(argv)
        if found is None:
            return self._unread(argv, cwd, named, f"{argv[0]} is not known to only read"), ()
        reader, used = found
        if used.refused:
            return self._unread(argv, cwd, named, f"{argv[0]}: {used.refused}"), ()
        if reader.needs_trust and not self.trusted:
            why = f"{argv[0]} runs what the workspace tells it to, and the workspace is not trusted"
            return self._unread(argv, cwd, named, why), ()
        elsewhere = moved and not self.paths.is_root(cwd)
        if reader.needs_trust and (elsewhere or self.paths.is_other_repository(cwd)):
            why = f"{argv[0]} may find another repository here than the one that is trusted"
            return self._unread(argv, cwd, named, why), ()
        if reader.files_only and any(self._is_directory(path, cwd) for path in used.paths):
            why = f"{argv[0]} reads the hidden files of a directory too"
            return self._unread(argv, cwd, named, why), ()
        touched = tuple(
            self.paths.touched(
                Access.READ,
                path,
                cwd,
                SHELL_TOOL,
                recursive=reader.recursive,
                skips_hidden=reader.skips_hidden,
            )
            for path in (*used.paths, *((self.paths.root,) if used.everywhere else ()))
        )
        fine = Verdict(Decision.ALLOW, f"{argv[0]} only reads, and inside the root")
        return _worst([*(one.verdict for one in touched), fine]), touched

    def _is_directory(self, path: str, cwd: str) -> bool:
        return self.paths.files.is_directory(self.paths.absolute(path, cwd))

    def _unread(
        self, argv: tuple[str, ...], cwd: str, named: tuple[Touched, ...], why: str
    ) -> Verdict:
        """Whatever is no reader: only mode full lets it, and even there a secret is asked about."""
        if asked := _asked(named):
            return asked
        if written := self._may_write(argv, cwd):
            return Verdict(Decision.ASK, f"it may write {written.path}", written.verdict.rule)
        if may_run_a_shell(argv) or argv[0] in ("eval", "source", ".", "exec", "trap"):
            return self._unless_restricted(why)
        return self._unless_full(why)

    def _may_write(self, argv: tuple[str, ...], cwd: str) -> Touched | None:
        """A path among the words that a rule keeps from being written."""
        for part in (part for word in argv[1:] for part in parts(word)):
            one = self.paths.touched(Access.WRITE, part, cwd, SHELL_TOOL)
            if one.verdict.rule and one.verdict.decision is not Decision.ALLOW:
                return one
        return None

    def _allowed(self, rule: Rule, named: tuple[Touched, ...]) -> Verdict:
        """What a rule allows by its words may still name a secret."""
        return (_asked(named) if rule.path is None else None) or _by_rule(rule)

    def _named(self, argv: tuple[str, ...], cwd: str) -> tuple[Touched, ...]:
        """Paths that a rule denies or that are secrets, wherever among the words they are."""
        found: list[Touched] = []
        for word in argv[1:]:
            for part in parts(word):
                one = self.paths.touched(Access.READ, part, cwd, SHELL_TOOL)
                if one.is_secret or one.verdict.decision is Decision.DENY:
                    found.append(one)
        return tuple(found)

    def _printed(self, words: Sequence[Word], cwd: str) -> Iterator[Touched]:
        """The same in substitutions: what is a word there may be printed, and be a path here."""
        for script in (script for word in words for script in word.scripts):
            for command in script.commands():
                yield from self._named(
                    tuple(as_text(word, self.paths) for word in command.words), cwd
                )

    def _unless_full(self, why: str) -> Verdict:
        if self._is_free():
            return Verdict(Decision.ALLOW, "mode full, or a rule for the whole tool")
        return Verdict(Decision.ASK, why)

    def _is_free(self) -> bool:
        return self.mode is Mode.FULL or self.rules.free

    def _unless_restricted(self, why: str) -> Verdict:
        """As above, but what is not known may be what a rule is about."""
        if self.rules.restrict:
            return Verdict(Decision.ASK, why)
        return self._unless_full(why)


def _places(path: str) -> tuple[str, ...]:
    """After a link, `..` is the directory the link is in to a shell, and another to all others."""
    return tuple(dict.fromkeys((path, posixpath.normpath(path))))


def _by_rule(rule: Rule) -> Verdict:
    about = " ".join(rule.command) if rule.command else rule.tool
    return Verdict(rule.decision, f"a rule says {rule.decision} for {about}", rule)


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    order = (Decision.DENY, Decision.ASK, Decision.ALLOW)
    return min(verdicts, key=lambda verdict: order.index(verdict.decision))


def _asked(named: Sequence[Touched]) -> Verdict | None:
    """The first that is not allowed."""
    found = (one.verdict for one in named if one.verdict.decision is not Decision.ALLOW)
    return next(found, None)


def _piece(
    command: Command,
    argv: tuple[str, ...],
    verdict: Verdict,
    touched: tuple[Touched, ...] = (),
    *,
    lasting: bool = False,
) -> Piece:
    return Piece("command", command.source, argv, verdict, touched, lasting)
