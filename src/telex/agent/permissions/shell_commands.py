"""Judge the simple commands and the redirects of a script. Pure, except for `FileLookup`.

Rules come first (`command_rules`). Then read-only programs are allowed to read inside the root. All
other commands ask, except in mode full.

`cd` changes the directory of the commands after it. Whether it will succeed is not known, so each
later command is judged in every directory in which the script may be, and is allowed only if it is
allowed in all of them. `cd` counts only as a command of its own after `&&`, `;` or a new line. In a
pipe or a substitution it does not change the shell's directory, so it asks and changes nothing.

A pattern is expanded to names, and a name that looks like an option is an option. So the pattern is
matched with the disk, and the names are judged. If it may match other names when the command runs,
or in another shell, its names count as unknown. Used by `judge`.
"""

from __future__ import annotations

import fnmatch
import posixpath
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_COMMAND_PLACES, AGENT_GLOB_NAMES
from telex.agent.permissions.command_rules import CommandRules, is_whole
from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.embedded_commands import changes_programs, may_run_code
from telex.agent.permissions.embedded_paths import (
    HIDDEN_TOO,
    UNKNOWN,
    embedded_paths,
    names_and_directories_in_text,
    names_in_text,
)
from telex.agent.permissions.git_inspector import GitInspector, GitRead, NoIndexCheck
from telex.agent.permissions.path_policy import PathPolicy, PermissionVerdict, TouchedPath
from telex.agent.permissions.read_only_programs import (
    TAKES_ANYTHING,
    ParsedArguments,
    ReaderProgram,
    parse_reader,
    prints_contents,
    program_name,
)
from telex.agent.permissions.reader_environment import allows_by_words
from telex.agent.permissions.repeatable import is_repeatable, runs_nothing, writes_repeatably
from telex.agent.permissions.shell_parser import (
    Direction,
    ListOperator,
    Pipeline,
    Redirect,
    ShellScript,
    SimpleCommand,
    Word,
)
from telex.agent.permissions.tool_rules import SHELL_TOOL, Mode, PathAccess, Permission, ToolRule
from telex.agent.permissions.unnamed_files import RECURSIVE_PROGRAMS, UNNAMED_WRITERS, reads_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy


ALLOWED_UNCHECKED: Final = PermissionVerdict(
    Permission.ALLOW, "mode full, or a rule for the whole tool"
)
"""The verdict of a command that is allowed without a check of its words."""
UNKNOWN_NAMES: Final = "the result of a pattern or a substitution is not known"


@dataclass(frozen=True, slots=True)
class JudgedPiece:
    """A command, a redirect or a path that was judged by itself."""

    kind: str
    """`command`, `redirect`, or the name of a tool."""
    source: str
    argv: tuple[str, ...]
    verdict: PermissionVerdict
    touched: tuple[TouchedPath, ...] = ()
    repeatable: bool = False
    """The answer may be remembered, because the command will do the same later (`repeatable`)."""


@dataclass(slots=True)
class _Directories:
    """The directories in which a script may be."""

    now: tuple[str, ...]
    seen: tuple[str, ...]
    fixed: bool = False
    """Whether a `cd` is not followed here."""

    def move(self, places: tuple[str, ...]) -> None:
        self.now = places
        self.seen = tuple(dict.fromkeys((*self.seen, *places)))


@dataclass(frozen=True, slots=True)
class CommandJudge:
    """Judges the pieces of a shell script."""

    paths: PathPolicy
    rules: CommandRules
    mode: Mode
    trusted: bool

    def judge(self, script: ShellScript, cwd: str) -> tuple[JudgedPiece, ...]:
        """Return the judged pieces of a script that starts in `cwd`."""
        directories = _Directories((cwd,), (cwd,))
        return tuple(self._script(script, directories, may_change_files(script)))

    def _script(
        self, script: ShellScript, directories: _Directories, changing: bool
    ) -> Iterator[JudgedPiece]:
        # With `||` in the script it is not known which commands before it run at all.
        unsure = any(pipeline.joint is ListOperator.OR for pipeline in script.pipelines)
        for pipeline in script.pipelines:
            directories.fixed = directories.fixed or pipeline.joint is ListOperator.OR
            if unsure or pipeline.joint is not ListOperator.AND:
                directories.now = directories.seen
            yield from self._pipeline(pipeline, directories, changing)

    def _pipeline(
        self, pipeline: Pipeline, directories: _Directories, changing: bool
    ) -> Iterator[JudgedPiece]:
        now = directories.now
        for command in pipeline.commands:
            for inner in command.scripts:
                yield from self._script(inner, _Directories(now, now, True), changing)
            yield from (self._redirect(redirect, now) for redirect in command.redirects)
            if command.words and command.words[0].is_plain and command.words[0].text == "cd":
                yield self._cd(command, directories, alone=len(pipeline.commands) == 1)
            elif command.words:
                yield self._command(command, now, changing)

    def _cd(self, command: SimpleCommand, directories: _Directories, *, alone: bool) -> JudgedPiece:
        argv = tuple(word.text for word in command.words)
        restricting = self.rules.matching(argv, directories.now[0], Permission.DENY, Permission.ASK)
        if restricting:
            return _piece(command, argv, _by_rule(restricting))
        if directories.fixed or not alone:
            why = "cd in a pipe, in a substitution or after || may not change the shell's directory"
            return _piece(command, argv, self._unless_restricted(why))
        match command.words:
            case (_, Word(is_pattern=False, scripts=()) as target) if target.text[:1] not in (
                "-",
                "",
            ):
                pass
            case _:
                # Without a known directory, no command after it can be judged.
                why = "the directory of cd is not known"
                return _piece(command, argv, self._unless_restricted(why))
        path = word_text(target, self.paths)
        places = tuple(
            place
            for cwd in directories.now
            for place in _cd_targets(self.paths.absolute(path, cwd))
        )
        if not self._is_free() and not all(map(self.paths.is_inside, places)):
            why = f"cd goes to {in_quotes(path)}, outside the workspace root"
            return _piece(command, argv, PermissionVerdict(Permission.ASK, why))
        directories.move(places)
        if len(directories.seen) > AGENT_COMMAND_PLACES:
            directories.now = directories.seen = directories.seen[:AGENT_COMMAND_PLACES]
            why = "the command has too many cd to follow"
            return _piece(command, argv, PermissionVerdict(Permission.ASK, why))
        verdict = PermissionVerdict(Permission.ALLOW, "cd stays inside the workspace root")
        return _piece(command, argv, verdict, repeatable=True)

    def _redirect(self, redirect: Redirect, cwds: tuple[str, ...]) -> JudgedPiece:
        access = PathAccess.READ if redirect.direction is Direction.READ else PathAccess.WRITE
        word = redirect.target
        if word.is_pattern or word.scripts:
            named = tuple(path for cwd in cwds for path in self._named_in_scripts((word,), cwd))
            why = "the file of the redirect is not known"
            verdict = _first_not_allowed(named) or self._unless_restricted(why)
            return JudgedPiece("redirect", redirect.source, (word.text,), verdict, named)
        path = word_text(word, self.paths)
        touched = tuple(self.paths.touched(access, path, cwd, SHELL_TOOL) for cwd in cwds)
        verdict = _strictest([each.verdict for each in touched])
        repeatable = access is PathAccess.READ or all(
            writes_repeatably(path, cwd, self.paths) for cwd in cwds
        )
        return JudgedPiece("redirect", redirect.source, (path,), verdict, touched, repeatable)

    def _command(
        self, command: SimpleCommand, cwds: tuple[str, ...], changing: bool
    ) -> JudgedPiece:
        words = command.words
        written = tuple(word_text(word, self.paths) for word in words)
        verdicts: list[PermissionVerdict] = []
        touched: list[TouchedPath] = []
        for cwd in cwds:
            known = expand_words(words, cwd, self.paths, changing=changing)
            verdict, found = self._in_directory(written, known, cwd, words)
            objection = self._listing_objection(verdict, words, cwd)
            verdicts += (objection, verdict) if objection else (verdict,)
            touched += found
        varying = any(word.is_pattern or word.scripts for word in words)
        repeatable = not varying and all(is_repeatable(written, cwd, self.paths) for cwd in cwds)
        return _piece(
            command,
            written,
            _strictest(verdicts),
            tuple(dict.fromkeys(touched)),
            repeatable=repeatable,
        )

    def _in_directory(
        self,
        written: tuple[str, ...],
        known: tuple[str, ...] | None,
        cwd: str,
        words: tuple[Word, ...],
    ) -> tuple[PermissionVerdict, tuple[TouchedPath, ...]]:
        """Judge a command in one directory. `known` are its words, or None if a word is unknown."""
        argv = written if known is None else known
        named = (*self._named(argv, cwd), *self._named_in_scripts(words, cwd))
        denied = [path.verdict for path in named if path.verdict.decision is Permission.DENY]
        if rule := self.rules.restricting(argv, cwd, Permission.DENY):
            return _by_rule(rule), named
        if denied:
            return denied[0], named
        if known is None:
            return self._with_unknown_words(argv, cwd, words[0], named), named
        verdict, touched = self._with_known_words(argv, cwd, named)
        return verdict, (*named, *touched)

    def _listing_objection(
        self, verdict: PermissionVerdict, words: tuple[Word, ...], cwd: str
    ) -> PermissionVerdict | None:
        """Return why the shell must not list the directories of its patterns without a question,
        whatever the program does with the names. A rule that allows the command by its words also
        allows the listing, except of secrets and of paths that another rule denies."""
        found = listed_directories(words, cwd, self.paths)
        if found is None:
            return None if self._is_free() else PermissionVerdict(Permission.ASK, UNKNOWN_NAMES)
        for directory, inside in found.items():
            listed = self._read(directory, cwd)
            is_restricted = listed.is_secret or listed.verdict.decision is Permission.DENY
            if listed.verdict.decision is Permission.ALLOW or (
                allows_by_words(verdict.rule) and not is_restricted
            ):
                continue
            # A rule may allow the names and not their directory.
            read = [self._read(name, cwd).verdict.decision for name in inside]
            if not read or any(decision is not Permission.ALLOW for decision in read):
                return listed.verdict
        return None

    def _read(self, path: str, cwd: str) -> TouchedPath:
        return self.paths.touched(PathAccess.READ, path, cwd, SHELL_TOOL)

    def _with_unknown_words(
        self, argv: tuple[str, ...], cwd: str, first: Word, named: tuple[TouchedPath, ...]
    ) -> PermissionVerdict:
        """Judge a command with a word from a pattern or a substitution, which may be any option or
        path."""
        if rule := self.rules.matching(argv, cwd, Permission.ASK):
            return _by_rule(rule)
        if first.is_plain and argv[0] in TAKES_ANYTHING:
            return PermissionVerdict(Permission.ALLOW, f"{argv[0]} is harmless with any arguments")
        return _first_not_allowed(named) or self._unless_restricted(UNKNOWN_NAMES)

    def _with_known_words(
        self, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...]
    ) -> tuple[PermissionVerdict, tuple[TouchedPath, ...]]:
        """Judge a command whose words are all known."""
        if rule := self.rules.matching(argv, cwd, Permission.ALLOW):
            return self._allowed_by_rule(rule, argv, cwd, named), ()
        if rule := self.rules.restricting(argv, cwd, Permission.ASK):
            return _by_rule(rule), ()
        found = parse_reader(argv)
        if found is None:
            why = f"{in_quotes(argv[0])} is not a known read-only program"
            return self._not_a_reader(argv, cwd, named, why), ()
        reader, used = found
        if objection := self._reader_objection(argv[0], reader, used, cwd):
            return self._not_a_reader(argv, cwd, named, objection), ()
        touched = tuple(
            self.paths.touched(
                PathAccess.READ,
                path,
                cwd,
                SHELL_TOOL,
                recursive=reader.recursive,
                skips_hidden=reader.skips_hidden,
            )
            for path in (*used.paths, *((self.paths.root,) if used.everywhere else ()))
        )
        allowed = PermissionVerdict(
            Permission.ALLOW, f"{argv[0]} only reads inside the workspace root"
        )
        return _strictest([*(each.verdict for each in touched), allowed]), touched

    def _reader_objection(
        self, program: str, reader: ReaderProgram, used: ParsedArguments, cwd: str
    ) -> str | None:
        """Return why a known read-only program may do more than read here; None if it may not."""
        if used.refused:
            return f"{program}: {used.refused}"
        if reader.needs_trust and not self.trusted:
            return (
                f"{program} may run programs that the workspace configures, and the workspace is "
                "not trusted (to trust it, run: telex config trust)"
            )
        if reader.needs_trust and self.paths.is_other_repository(cwd):
            return f"{program} may use a repository other than the trusted one here"
        if reader.needs_trust and (objection := self._git_objection(reader, used, cwd)):
            return objection
        if reader.files_only and any(self._is_directory(path, cwd) for path in used.paths):
            return f"{program} also reads the hidden files of a directory"
        return None

    def _git_objection(self, reader: ReaderProgram, used: ParsedArguments, cwd: str) -> str | None:
        real = self.paths.files.real(cwd)
        places = (posixpath.normpath(posixpath.join(real, path)) for path in used.paths)
        reads = GitRead(
            prints_contents(reader, used),
            reader.enters_links,
            ("/",) if used.everywhere else tuple(places),
        )
        if objection := GitInspector(self.paths).objection(reads):
            return objection
        if reader.compares_files:
            return NoIndexCheck(self.paths).objection(used.operands, cwd)
        return None

    def _is_directory(self, path: str, cwd: str) -> bool:
        return self.paths.files.is_directory(self.paths.absolute(path, cwd))

    def _not_a_reader(
        self, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...], why: str
    ) -> PermissionVerdict:
        """Judge a command that does not only read. Only mode full, or a rule for the whole tool,
        allows it; a named secret asks even then."""
        if objection := self._objection(argv, cwd, named):
            return objection
        forms = (argv, *self.rules.with_links_resolved(argv, cwd))
        if any(may_run_code(form) or changes_programs(form) for form in forms):
            return self._unless_restricted(why)
        return self._unless_full(why)

    def _objection(
        self, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...]
    ) -> PermissionVerdict | None:
        """Return why a command asks in every mode: it names a secret, or a rule may restrict it."""
        if asked := _first_not_allowed(named):
            return asked
        if not self.rules.restrict:
            return None
        if written := self._restricted_write(argv, cwd):
            why = f"the command may write {in_quotes(written.path)}, and a rule restricts that"
            return PermissionVerdict(Permission.ASK, why, written.verdict.rule)
        if reached := self._restricted_walk(argv, cwd):
            why = f"the command may read below {in_quotes(reached.path)}, and a rule restricts that"
            return PermissionVerdict(Permission.ASK, why, reached.verdict.rule)
        forms = (argv, *self.rules.with_links_resolved(argv, cwd))
        if (rule := self.paths.rule_for_reading(cwd)) and any(map(reads_names, forms)):
            why = "the command may read files from a list, and a rule restricts some files"
            return PermissionVerdict(Permission.ASK, why, rule)
        if rule := self.rules.possible(argv, cwd):
            words = in_quotes(" ".join(rule.command or ()))
            why = f"the command may run {words}, which a rule restricts"
            return PermissionVerdict(Permission.ASK, why, rule)
        return None

    def _restricted_walk(self, argv: tuple[str, ...], cwd: str) -> TouchedPath | None:
        """Return a directory among the words, or the working directory, that contains a restricted
        path: with an option that is not known here, the program may read everything below it."""
        found = parse_reader(argv)
        if found and not found[1].refused:
            reader, used = found
            recursive, paths = reader.recursive, [*used.paths]
            paths += [self.paths.root] * used.everywhere
        else:
            recursive, paths = True, [part for word in argv[1:] for part in embedded_paths(word)]
            programs = self._possible_programs(argv, cwd)
            paths += ["."] * (found is not None or not programs.isdisjoint(RECURSIVE_PROGRAMS))
            paths += [self.paths.root] * ("git" in programs)
        for path in paths:
            touched = self.paths.touched(
                PathAccess.READ, path, cwd, SHELL_TOOL, recursive=recursive
            )
            if touched.verdict.rule and touched.verdict.decision is not Permission.ALLOW:
                return touched
            may_follow_links = found is None or found[1].refused
            if may_follow_links and (linked := self._restricted_link(touched, cwd)):
                return linked
        return None

    def _restricted_link(self, directory: TouchedPath, cwd: str) -> TouchedPath | None:
        """Return a link below the directory that leads to a restricted path."""
        rule = self.paths.rule_for_reading(cwd)
        if rule is None or not self.paths.files.is_directory(directory.real):
            return None
        below = self.paths.files.scan(directory.real, whole=True)
        if below is None or len(below.links) > AGENT_GLOB_NAMES:
            why = "the directory has too many links to check"
            return replace(directory, verdict=PermissionVerdict(Permission.ASK, why, rule))
        for link in below.links:
            touched = self.paths.touched(PathAccess.READ, link, cwd, SHELL_TOOL, recursive=True)
            if touched.verdict.rule and touched.verdict.decision is not Permission.ALLOW:
                return touched
        return None

    def _possible_programs(self, argv: tuple[str, ...], cwd: str) -> set[str]:
        """Return the names of all words that may be programs, also with links resolved."""
        forms = (argv, *self.rules.with_links_resolved(argv, cwd))
        return {program_name(word) for form in forms for word in form}

    def _restricted_write(self, argv: tuple[str, ...], cwd: str) -> TouchedPath | None:
        """Return a path that a rule restricts and that the command may write: one among its words;
        one in the working directory, unless the program writes only files that it names; or one
        below the root, if the program is one of `UNNAMED_WRITERS`."""
        rule, path = None, cwd
        if not self._possible_programs(argv, cwd).isdisjoint(UNNAMED_WRITERS):
            rule, path = self.paths.rule_for_writing_below(self.paths.root), self.paths.root
        elif not runs_nothing(argv):
            rule = self.paths.rule_for_writing_around(cwd)
        if rule:
            touched = self.paths.touched(PathAccess.WRITE, path, cwd, SHELL_TOOL)
            verdict = replace(touched.verdict, decision=rule.decision, rule=rule)
            return replace(touched, verdict=verdict)
        for part in (part for word in argv[1:] for part in embedded_paths(word)):
            touched = self.paths.touched(PathAccess.WRITE, part, cwd, SHELL_TOOL)
            if touched.verdict.rule and touched.verdict.decision is not Permission.ALLOW:
                return touched
        return None

    def _allowed_by_rule(
        self, rule: ToolRule, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...]
    ) -> PermissionVerdict:
        """Judge a command that a rule allows by its words. It may still name a secret, or a path
        that another rule restricts."""
        objection = self._objection(argv, cwd, named) if rule.path is None else None
        if objection is None and self.rules.may_hide(rule, argv):
            objection = PermissionVerdict(
                Permission.ASK, "an argument may be code that runs a restricted command"
            )
        if objection is None and is_whole(rule) and self.rules.restrict:
            why = "the command may do something that a rule restricts"
            objection = self._not_a_reader(argv, cwd, named, why)
        if objection is None and not self._is_free() and _runs_git(argv):
            setting = GitInspector(self.paths).unguarded_setting()
            why = f"{setting} may make git run a file that the agent can write"
            objection = PermissionVerdict(Permission.ASK, why) if setting else None
        if objection is None or objection.decision is Permission.ALLOW:
            return _by_rule(rule)
        return objection

    def _named(self, argv: tuple[str, ...], cwd: str) -> tuple[TouchedPath, ...]:
        """Return the paths among the words that are secrets or that a rule denies."""
        found: list[TouchedPath] = []
        deep = bool(argv) and not runs_nothing(argv)
        hidden = deep and HIDDEN_TOO.search(" ".join(argv)) is not None
        for word in argv[1:]:
            found += self._secret_or_denied(embedded_paths(word), cwd)
            for name in (names_in_text(word, self.paths.home) or ()) if deep else ():
                found += self._secret_or_denied(self._matches(name, cwd, hidden=hidden), cwd)
        return tuple(found)

    def named_in(self, text: str, cwd: str) -> tuple[TouchedPath, ...] | None:
        """Return the same for a text that is not parsed as commands, relative to `cwd` and to each
        directory to which the text may change. None if it has too many names."""
        found, moved = names_and_directories_in_text(text, self.paths.home)
        if found is None or len(moved) > AGENT_COMMAND_PLACES:
            return None
        places = dict.fromkeys((cwd, *(self.paths.absolute(place, cwd) for place in moved)))
        hidden = HIDDEN_TOO.search(text) is not None
        named = (
            self._secret_or_denied(self._matches(name, place, hidden=hidden), place)
            for place in places
            for name in found
        )
        return tuple(dict.fromkeys(chain.from_iterable(named)))

    def _secret_or_denied(self, paths: Iterable[str], cwd: str) -> Iterator[TouchedPath]:
        """Yield the paths that are secrets or that a rule denies."""
        for path in paths:
            touched = self.paths.touched(PathAccess.READ, path, cwd, SHELL_TOOL)
            if touched.is_secret or touched.verdict.decision is Permission.DENY:
                yield touched

    def _matches(self, name: str, cwd: str, *, hidden: bool = False) -> Iterable[str]:
        """Return the paths that a name with unknown parts matches; with `hidden`, also hidden
        names, which a shell skips, and likely secrets in deeper directories."""
        if set("*?" + UNKNOWN).isdisjoint(name):
            return (name,)
        if name.startswith(UNKNOWN + "/"):
            return (name.lstrip(UNKNOWN),)  # the unknown part may be empty
        pattern = name.replace(UNKNOWN, "*")
        found = self.paths.files.glob(self.paths.absolute(pattern, cwd))
        if found is None:
            return _likely_secrets(pattern)
        # A part that is not known may begin with a dot.
        hidden_too = hidden or name.rpartition("/")[2].startswith(UNKNOWN)
        matches = self._hidden_matches(pattern, cwd, likely=hidden) if hidden_too else ()
        return (pattern, *found, *matches)

    def _hidden_matches(self, pattern: str, cwd: str, *, likely: bool) -> Iterator[str]:
        above, _, last = pattern.rpartition("/")
        if last[:1] not in ("*", "?", "."):
            return
        names = self.paths.files.glob(self.paths.absolute(posixpath.join(above, ".*"), cwd))
        for name in names or ():
            if fnmatch.fnmatchcase(posixpath.basename(name).casefold(), last.casefold()):
                yield name
        if likely and last.strip("*?") not in ("", "."):
            yield from _likely_secrets(pattern.casefold())

    def _named_in_scripts(self, words: Sequence[Word], cwd: str) -> Iterator[TouchedPath]:
        """Yield the same for substitutions: a word there may be printed, and become a path here."""
        for script in (script for word in words for script in word.scripts):
            for command in script.commands():
                yield from self._named(
                    tuple(word_text(word, self.paths) for word in command.words), cwd
                )

    def _unless_full(self, why: str) -> PermissionVerdict:
        if self._is_free():
            return ALLOWED_UNCHECKED
        return PermissionVerdict(Permission.ASK, why)

    def _is_free(self) -> bool:
        return self.mode is Mode.FULL or self.rules.free

    def _unless_restricted(self, why: str) -> PermissionVerdict:
        """Like `_unless_full`, but ask while a rule restricts anything: an unknown command may be
        the one it restricts."""
        if self.rules.restrict:
            return PermissionVerdict(Permission.ASK, why)
        return self._unless_full(why)


def _likely_secrets(pattern: str) -> Iterable[str]:
    """Yield typical secrets that a pattern matches, for a pattern with too many matches."""
    above, _, last = pattern.rpartition("/")
    for name in (".env", ".ssh/x", ".netrc", "id_rsa", "x.pem", "x.key", "credentials"):
        if fnmatch.fnmatchcase(name.split("/")[0], last):
            yield posixpath.join(above, name)


def _cd_targets(path: str) -> tuple[str, ...]:
    """Return the directories to which `cd` may go. After a link, `..` is the parent of the link for
    a shell, and the parent of the link's target for all other programs."""
    return tuple(dict.fromkeys((path, posixpath.normpath(path))))


def _runs_git(argv: Sequence[str]) -> bool:
    return any(
        program_name(word) == "git" or program_name(word).startswith("git-") for word in argv
    )


def _by_rule(rule: ToolRule) -> PermissionVerdict:
    matched = in_quotes(" ".join(rule.command) if rule.command else rule.tool)
    return PermissionVerdict(rule.decision, f"a rule says {rule.decision} for {matched}", rule)


def _strictest(verdicts: Sequence[PermissionVerdict]) -> PermissionVerdict:
    order = (Permission.DENY, Permission.ASK, Permission.ALLOW)
    return min(verdicts, key=lambda verdict: order.index(verdict.decision))


def _first_not_allowed(named: Sequence[TouchedPath]) -> PermissionVerdict | None:
    found = (path.verdict for path in named if path.verdict.decision is not Permission.ALLOW)
    return next(found, None)


def _piece(
    command: SimpleCommand,
    argv: tuple[str, ...],
    verdict: PermissionVerdict,
    touched: tuple[TouchedPath, ...] = (),
    *,
    repeatable: bool = False,
) -> JudgedPiece:
    return JudgedPiece("command", command.source, argv, verdict, touched, repeatable)


def may_change_files(script: ShellScript) -> bool:
    """Return whether the script may change files, so that a pattern may match other names when its
    command runs."""
    commands = list(script.commands())
    writes = any(
        redirect.direction is not Direction.READ and redirect.target.text != "/dev/null"
        for command in commands
        for redirect in command.redirects
    )
    programs = [[word.text for word in command.words] for command in commands if command.words]
    return writes or (len(programs) > 1 and any(_may_change(argv) for argv in programs))


def expand_words(
    words: tuple[Word, ...], cwd: str, paths: PathPolicy, *, changing: bool
) -> tuple[str, ...] | None:
    """Return the words with patterns expanded to names; None if a word is not known."""
    if any(word.scripts for word in words):
        return None
    argv: list[str] = []
    for word in words:
        text = word_text(word, paths)
        if not word.is_pattern:
            argv.append(text)
            continue
        names = paths.files.glob(paths.absolute(text, cwd))
        if changing or names is None or word is words[0] or _is_ambiguous(text, cwd):
            return None
        argv += [_as_written(name, text) for name in names] or [text]
    return tuple(argv)


def listed_directories(
    words: tuple[Word, ...], cwd: str, paths: PathPolicy
) -> dict[str, tuple[str, ...]] | None:
    """Return the directories that a shell lists for the patterns among the words, each with its
    matches. They count for every program, because a program that reads nothing may print the names
    too. None if the matches are not known."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        if not word.is_pattern:
            continue
        pattern = paths.absolute(word_text(word, paths), cwd)
        found.setdefault(posixpath.dirname(pattern[: _first_wildcard(pattern)]), ())
        names = paths.files.glob(pattern)
        if names is None:
            return None
        for name in names:
            above = posixpath.dirname(name)
            found[above] = (*found.get(above, ()), name)
    return found


def _first_wildcard(pattern: str) -> int:
    return min(at for at in (pattern.find("*"), pattern.find("?")) if at >= 0)


def word_text(word: Word, paths: PathPolicy) -> str:
    """Return the text of a word with a leading `~` expanded."""
    return paths.home + word.text[1:] if word.is_home else word.text


def _may_change(argv: list[str]) -> bool:
    found = parse_reader(argv)
    return argv[0] != "cd" and (found is None or found[1].refused != "")


def _as_written(name: str, pattern: str) -> str:
    """Return a match as the shell passes it: relative if the pattern is, with as many names."""
    if pattern.startswith("/"):
        return name
    parts = [part for part in pattern.split("/") if part]
    return "/".join(name.split("/")[-len(parts) :])


def _is_ambiguous(pattern: str, cwd: str) -> bool:
    """Return whether shells may expand the pattern differently: it may match `..`, as `.*` does in
    some shells, or its own directory has a wildcard in its name."""
    leads_up = any(
        fnmatch.fnmatchcase("..", part) for part in pattern.split("/") if part[:1] == "."
    )
    return leads_up or "*" in cwd or "?" in cwd
