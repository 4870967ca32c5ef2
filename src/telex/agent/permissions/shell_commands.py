"""Simple commands and redirects of a script, each judged. Pure, but for `FileLookup`.

Rules first (`command_rules`). Then readers, which may read inside the root. All else asks, but in
mode full.

`cd` moves the rest. Whether it succeeded is not known, so that every directory the script may be in
is tried, and a command is allowed only if it is in all of them. It moves only as a command of its
own after `&&`, `;` or a new line: in a pipe or a substitution the shell stays where it is, so that
such a `cd` asks and moves nothing here either.

A pattern stands for names, and a name that looks like an option is one: so it is looked up, and
what it stands for is judged. Where it may stand for others by the time the command is run, or in
another shell, nobody knows. Used by `judge`.
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
from telex.agent.permissions.git_no_index import GitOutside
from telex.agent.permissions.git_repository import GitInspector, GitRead
from telex.agent.permissions.name_lists import reads_names
from telex.agent.permissions.path_policy import PathPolicy, PermissionVerdict, TouchedPath
from telex.agent.permissions.read_only_programs import (
    TAKES_ANYTHING,
    ParsedArguments,
    ReaderProgram,
    parse_reader,
    prints_contents,
    program_name,
    word_set,
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from telex.agent.permissions.path_policy import PathPolicy


ALLOWED_UNCHECKED: Final = PermissionVerdict(
    Permission.ALLOW, "mode full, or a rule for the whole tool"
)
"""What nobody looked into is allowed."""
UNKNOWN_NAMES: Final = "nobody knows what a pattern or a substitution stands for"
RECURSIVE_PROGRAMS: Final = word_set("""
    ack ag bfs broot cloc cscope ctags diff dir du dust egrep exa eza fd fdfind fgrep find fselect
    fzf gdu ggrep grep gtags ls lsd mkid ncdu rg rgrep scc sk tokei tree ucg ugrep vdir zgrep
""")
"""Programs that go through the directory they are in without being told, at least by some option,
also where another program runs them."""

UNNAMED_WRITERS: Final = word_set("""
    7z 7za 7zr 7zz ar aria2c arj atool aunpack bsdcpio bsdtar bunzip bzr cabextract cpio csplit curl
    cvs darcs dpkg dpkg-deb dtrx fossil ftp gpatch gtar gunzip hg innoextract jar lftp lha lhasa
    lzma munpack ouch pax p7zip patch pigz pijul quilt rar rcp rpm rpm2archive rsync sftp shar star
    svn tar tarfile tnef unar uncompress unp unrar unshar unsquashfs unxz unzip unzstd uudecode
    wget wiggle xar xz yt-dlp zip zipfile zstd
""")
"""Programs that write files which no word of theirs names: an archive, a patch, a server or a
repository does, and a name there may lead upwards."""


@dataclass(frozen=True, slots=True)
class JudgedPiece:
    """One thing that was judged by itself."""

    kind: str
    """`command`, `redirect`, or the name of a tool."""
    source: str
    argv: tuple[str, ...]
    verdict: PermissionVerdict
    touched: tuple[TouchedPath, ...] = ()
    repeatable: bool = False
    """It does the same tomorrow (`repeatable`)."""


@dataclass(slots=True)
class _Where:
    """The directories a script may be in."""

    now: tuple[str, ...]
    seen: tuple[str, ...]
    fixed: bool = False
    """A `cd` here is not followed."""

    def move(self, places: tuple[str, ...]) -> None:
        self.now = places
        self.seen = tuple(dict.fromkeys((*self.seen, *places)))


@dataclass(frozen=True, slots=True)
class CommandJudge:
    paths: PathPolicy
    rules: CommandRules
    mode: Mode
    trusted: bool

    def judge(self, script: ShellScript, cwd: str) -> tuple[JudgedPiece, ...]:
        return tuple(self._script(script, _Where((cwd,), (cwd,)), may_change_files(script)))

    def _script(self, script: ShellScript, where: _Where, changing: bool) -> Iterator[JudgedPiece]:
        # After `||` nobody knows which of the commands before were run at all.
        unsure = any(pipeline.joint is ListOperator.OR for pipeline in script.pipelines)
        for pipeline in script.pipelines:
            where.fixed = where.fixed or pipeline.joint is ListOperator.OR
            if unsure or pipeline.joint is not ListOperator.AND:
                where.now = where.seen
            yield from self._pipeline(pipeline, where, changing)

    def _pipeline(self, pipeline: Pipeline, where: _Where, changing: bool) -> Iterator[JudgedPiece]:
        now = where.now
        for command in pipeline.commands:
            for inner in command.scripts:
                yield from self._script(inner, _Where(now, now, True), changing)
            yield from (self._redirect(redirect, now) for redirect in command.redirects)
            if command.words and command.words[0].is_plain and command.words[0].text == "cd":
                yield self._cd(command, where, alone=len(pipeline.commands) == 1)
            elif command.words:
                yield self._command(command, now, changing)

    def _cd(self, command: SimpleCommand, where: _Where, *, alone: bool) -> JudgedPiece:
        argv = tuple(word.text for word in command.words)
        restricting = self.rules.about(argv, where.now[0], Permission.DENY, Permission.ASK)
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
        path = word_text(target, self.paths)
        places = tuple(
            place for cwd in where.now for place in _places(self.paths.absolute(path, cwd))
        )
        if not self._is_free() and not all(map(self.paths.is_inside, places)):
            return _piece(
                command,
                argv,
                PermissionVerdict(Permission.ASK, f"cd to {in_quotes(path)}, outside the root"),
            )
        where.move(places)
        if len(where.seen) > AGENT_COMMAND_PLACES:
            where.now = where.seen = where.seen[:AGENT_COMMAND_PLACES]
            return _piece(
                command, argv, PermissionVerdict(Permission.ASK, "cd too often to follow")
            )
        verdict = PermissionVerdict(Permission.ALLOW, "cd inside the root")
        return _piece(command, argv, verdict, repeatable=True)

    def _redirect(self, redirect: Redirect, cwds: tuple[str, ...]) -> JudgedPiece:
        access = PathAccess.READ if redirect.direction is Direction.READ else PathAccess.WRITE
        word = redirect.target
        if word.is_pattern or word.scripts:
            named = tuple(one for cwd in cwds for one in self._printed((word,), cwd))
            why = "nobody knows the redirect's file"
            verdict = _asked(named) or self._unless_restricted(why)
            return JudgedPiece("redirect", redirect.source, (word.text,), verdict, named)
        path = word_text(word, self.paths)
        touched = tuple(self.paths.touched(access, path, cwd, SHELL_TOOL) for cwd in cwds)
        verdict = _worst([one.verdict for one in touched])
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
            verdict, found = self._one(written, known, cwd, words)
            objection = self._listing(verdict, words, cwd)
            verdicts += (objection, verdict) if objection else (verdict,)
            touched += found
        varying = any(word.is_pattern or word.scripts for word in words)
        repeatable = not varying and all(is_repeatable(written, cwd, self.paths) for cwd in cwds)
        return _piece(
            command, written, _worst(verdicts), tuple(dict.fromkeys(touched)), repeatable=repeatable
        )

    def _one(
        self,
        written: tuple[str, ...],
        known: tuple[str, ...] | None,
        cwd: str,
        words: tuple[Word, ...],
    ) -> tuple[PermissionVerdict, tuple[TouchedPath, ...]]:
        """A command in one directory. `known` are its words, if they are all known."""
        argv = written if known is None else known
        named = (*self._named(argv, cwd), *self._printed(words, cwd))
        denied = [one.verdict for one in named if one.verdict.decision is Permission.DENY]
        if rule := self.rules.restricting(argv, cwd, Permission.DENY):
            return _by_rule(rule), named
        if denied:
            return denied[0], named
        if known is None:
            return self._unknown(argv, cwd, words[0], named), named
        verdict, touched = self._plain(argv, cwd, named)
        return verdict, (*named, *touched)

    def _listing(
        self, verdict: PermissionVerdict, words: tuple[Word, ...], cwd: str
    ) -> PermissionVerdict | None:
        """What is wrong with the directories that a shell lists for its patterns, whatever the
        program then does with the names. A rule that allows the command by its words allows that,
        but for secrets and what another rule keeps."""
        found = listed_directories(words, cwd, self.paths)
        if found is None:
            return None if self._is_free() else PermissionVerdict(Permission.ASK, UNKNOWN_NAMES)
        for directory, inside in found.items():
            one = self._read_by_name(directory, cwd)
            is_kept = one.is_secret or one.verdict.decision is Permission.DENY
            if one.verdict.decision is Permission.ALLOW or (
                allows_by_words(verdict.rule) and not is_kept
            ):
                continue
            # A rule may be about the names and not about their directory.
            read = [self._read_by_name(name, cwd).verdict.decision for name in inside]
            if not read or any(decision is not Permission.ALLOW for decision in read):
                return one.verdict
        return None

    def _read_by_name(self, path: str, cwd: str) -> TouchedPath:
        return self.paths.touched(PathAccess.READ, path, cwd, SHELL_TOOL)

    def _unknown(
        self, argv: tuple[str, ...], cwd: str, first: Word, named: tuple[TouchedPath, ...]
    ) -> PermissionVerdict:
        """A word of it stands for names, or is printed by another command: an option, any path."""
        if rule := self.rules.about(argv, cwd, Permission.ASK):
            return _by_rule(rule)
        if first.is_plain and argv[0] in TAKES_ANYTHING:
            return PermissionVerdict(Permission.ALLOW, f"{argv[0]} may get any arguments")
        return _asked(named) or self._unless_restricted(UNKNOWN_NAMES)

    def _plain(
        self, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...]
    ) -> tuple[PermissionVerdict, tuple[TouchedPath, ...]]:
        """A command whose words are all known."""
        if rule := self.rules.about(argv, cwd, Permission.ALLOW):
            return self._allowed(rule, argv, cwd, named), ()
        if rule := self.rules.restricting(argv, cwd, Permission.ASK):
            return _by_rule(rule), ()
        found = parse_reader(argv)
        if found is None:
            return self._unread(
                argv, cwd, named, f"{in_quotes(argv[0])} is not known to only read"
            ), ()
        reader, used = found
        if used.refused:
            return self._unread(argv, cwd, named, f"{argv[0]}: {used.refused}"), ()
        if reader.needs_trust and not self.trusted:
            why = f"{argv[0]} runs what the workspace tells it to, and the workspace is not trusted"
            return self._unread(argv, cwd, named, why), ()
        if reader.needs_trust and self.paths.is_other_repository(cwd):
            why = f"{argv[0]} may find another repository here than the one that is trusted"
            return self._unread(argv, cwd, named, why), ()
        if reader.needs_trust and (objection := self._git_objection(reader, used, cwd)):
            return self._unread(argv, cwd, named, objection), ()
        if reader.files_only and any(self._is_directory(path, cwd) for path in used.paths):
            why = f"{argv[0]} reads the hidden files of a directory too"
            return self._unread(argv, cwd, named, why), ()
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
        fine = PermissionVerdict(Permission.ALLOW, f"{argv[0]} only reads, and inside the root")
        return _worst([*(one.verdict for one in touched), fine]), touched

    def _git_objection(self, reader: ReaderProgram, used: ParsedArguments, cwd: str) -> str | None:
        real = self.paths.files.real(cwd)
        places = (posixpath.normpath(posixpath.join(real, path)) for path in used.paths)
        reads = GitRead(
            prints_contents(reader, used),
            reader.enters_links,
            ("/",) if used.everywhere else tuple(places),
        )
        settings = GitInspector(self.paths)
        return settings.objection(reads) or (
            GitOutside(self.paths, settings).objection(used.operands, cwd)
            if reader.compares_files
            else None
        )

    def _is_directory(self, path: str, cwd: str) -> bool:
        return self.paths.files.is_directory(self.paths.absolute(path, cwd))

    def _unread(
        self, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...], why: str
    ) -> PermissionVerdict:
        """Whatever is no reader: only mode full lets it, and even there a secret is asked about."""
        if objection := self._objection(argv, cwd, named):
            return objection
        forms = (argv, *self.rules.by_links(argv, cwd))
        if any(may_run_code(form) or changes_programs(form) for form in forms):
            return self._unless_restricted(why)
        return self._unless_full(why)

    def _objection(
        self, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...]
    ) -> PermissionVerdict | None:
        """Why it asks whatever the mode: by a secret, or by a rule that it may be about."""
        if asked := _asked(named):
            return asked
        if not self.rules.restrict:
            return None
        if written := self._may_write(argv, cwd):
            return PermissionVerdict(
                Permission.ASK, f"it may write {in_quotes(written.path)}", written.verdict.rule
            )
        if reached := self._may_reach(argv, cwd):
            return PermissionVerdict(
                Permission.ASK, f"it may go below {in_quotes(reached.path)}", reached.verdict.rule
            )
        forms = (argv, *self.rules.by_links(argv, cwd))
        if (rule := self.paths.rule_for_reading(cwd)) and any(map(reads_names, forms)):
            return PermissionVerdict(
                Permission.ASK, "it may read what a list names, and a rule is about", rule
            )
        if rule := self.rules.doubtful(argv, cwd):
            about = in_quotes(" ".join(rule.command or ()))
            return PermissionVerdict(
                Permission.ASK, f"it may be {about}, about which there is a rule", rule
            )
        return None

    def _may_reach(self, argv: tuple[str, ...], cwd: str) -> TouchedPath | None:
        """A directory among the words, or the one it is in, that holds what a rule is about: by an
        option that is not known here it may go through all that is below."""
        found = parse_reader(argv)
        if found and not found[1].refused:
            reader, used = found
            recursive, paths = reader.recursive, [*used.paths]
            paths += [self.paths.root] * used.everywhere
        else:
            recursive, paths = True, [part for word in argv[1:] for part in embedded_paths(word)]
            programs = self._programs(argv, cwd)
            paths += ["."] * (found is not None or not programs.isdisjoint(RECURSIVE_PROGRAMS))
            paths += [self.paths.root] * ("git" in programs)
        for path in paths:
            one = self.paths.touched(PathAccess.READ, path, cwd, SHELL_TOOL, recursive=recursive)
            if one.verdict.rule and one.verdict.decision is not Permission.ALLOW:
                return one
            if (found is None or found[1].refused) and (behind := self._behind_links(one, cwd)):
                return behind
        return None

    def _behind_links(self, directory: TouchedPath, cwd: str) -> TouchedPath | None:
        """A link below, by which a program that follows it comes by what a rule is about."""
        rule = self.paths.rule_for_reading(cwd)
        if rule is None or not self.paths.files.is_directory(directory.real):
            return None
        below = self.paths.files.scan(directory.real, whole=True)
        if below is None or len(below.links) > AGENT_GLOB_NAMES:
            return replace(
                directory, verdict=PermissionVerdict(Permission.ASK, "too many links", rule)
            )
        for link in below.links:
            one = self.paths.touched(PathAccess.READ, link, cwd, SHELL_TOOL, recursive=True)
            if one.verdict.rule and one.verdict.decision is not Permission.ALLOW:
                return one
        return None

    def _programs(self, argv: tuple[str, ...], cwd: str) -> set[str]:
        """Whatever may be one among the words, by its own name and by those that links lead to."""
        forms = (argv, *self.rules.by_links(argv, cwd))
        return {program_name(word) for form in forms for word in form}

    def _may_write(self, argv: tuple[str, ...], cwd: str) -> TouchedPath | None:
        """A path among the words that a rule keeps from being written; or what is in the directory
        it is in, unless it writes only what it names; or anything below the root."""
        rule, path = None, cwd
        if not self._programs(argv, cwd).isdisjoint(UNNAMED_WRITERS):
            rule, path = self.paths.rule_for_writing_below(self.paths.root), self.paths.root
        elif not runs_nothing(argv):
            rule = self.paths.rule_for_writing_around(cwd)
        if rule:
            one = self.paths.touched(PathAccess.WRITE, path, cwd, SHELL_TOOL)
            return replace(one, verdict=replace(one.verdict, decision=rule.decision, rule=rule))
        for part in (part for word in argv[1:] for part in embedded_paths(word)):
            one = self.paths.touched(PathAccess.WRITE, part, cwd, SHELL_TOOL)
            if one.verdict.rule and one.verdict.decision is not Permission.ALLOW:
                return one
        return None

    def _allowed(
        self, rule: ToolRule, argv: tuple[str, ...], cwd: str, named: tuple[TouchedPath, ...]
    ) -> PermissionVerdict:
        """What a rule allows by its words may still name a secret, or what another rule keeps."""
        objection = self._objection(argv, cwd, named) if rule.path is None else None
        if objection is None and self.rules.may_hide(rule, argv):
            objection = PermissionVerdict(
                Permission.ASK, "a word of it may be code for what a rule is about"
            )
        if objection is None and is_whole(rule) and self.rules.restrict:
            objection = self._unread(argv, cwd, named, "it may be what a rule is about")
        if objection is None and not self._is_free() and _runs_git(argv):
            setting = GitInspector(self.paths).unguarded()
            why = f"{setting} may have git run what the agent may write"
            objection = PermissionVerdict(Permission.ASK, why) if setting else None
        if objection is None or objection.decision is Permission.ALLOW:
            return _by_rule(rule)
        return objection

    def _named(self, argv: tuple[str, ...], cwd: str) -> tuple[TouchedPath, ...]:
        """Paths that a rule denies or that are secrets, wherever among the words they are."""
        found: list[TouchedPath] = []
        deep = bool(argv) and not runs_nothing(argv)
        hidden = deep and HIDDEN_TOO.search(" ".join(argv)) is not None
        for word in argv[1:]:
            found += self._kept(embedded_paths(word), cwd)
            for name in (names_in_text(word, self.paths.home) or ()) if deep else ():
                found += self._kept(self._known(name, cwd, hidden=hidden), cwd)
        return tuple(found)

    def named_in(self, text: str, cwd: str) -> tuple[TouchedPath, ...] | None:
        """The same in a text that is not read as commands, from where it begins and from where it
        may go. None where it has too many names."""
        found, moved = names_and_directories_in_text(text, self.paths.home)
        if found is None or len(moved) > AGENT_COMMAND_PLACES:
            return None
        places = dict.fromkeys((cwd, *(self.paths.absolute(place, cwd) for place in moved)))
        hidden = HIDDEN_TOO.search(text) is not None
        named = (
            self._kept(self._known(name, at, hidden=hidden), at) for at in places for name in found
        )
        return tuple(dict.fromkeys(chain.from_iterable(named)))

    def _kept(self, paths: Iterable[str], cwd: str) -> Iterator[TouchedPath]:
        """Those that are secrets, or that a rule denies."""
        for path in paths:
            one = self.paths.touched(PathAccess.READ, path, cwd, SHELL_TOOL)
            if one.is_secret or one.verdict.decision is Permission.DENY:
                yield one

    def _known(self, name: str, cwd: str, *, hidden: bool = False) -> Iterable[str]:
        """The paths that a name with unknown parts stands for; with `hidden`, also those that a
        shell would pass over, and what may lie deeper."""
        if set("*?" + UNKNOWN).isdisjoint(name):
            return (name,)
        if name.startswith(UNKNOWN + "/"):
            return (name.lstrip(UNKNOWN),)  # what is before it may be nothing
        pattern = name.replace(UNKNOWN, "*")
        found = self.paths.files.glob(self.paths.absolute(pattern, cwd))
        if found is None:
            return _likely(pattern)
        return (pattern, *found, *(self._hidden(pattern, cwd) if hidden else ()))

    def _hidden(self, pattern: str, cwd: str) -> Iterator[str]:
        above, _, last = pattern.rpartition("/")
        if last[:1] not in ("*", "?", "."):
            return
        names = self.paths.files.glob(self.paths.absolute(posixpath.join(above, ".*"), cwd))
        for name in names or ():
            if fnmatch.fnmatchcase(posixpath.basename(name).casefold(), last.casefold()):
                yield name
        if last.strip("*?") not in ("", "."):
            yield from _likely(pattern.casefold())

    def _printed(self, words: Sequence[Word], cwd: str) -> Iterator[TouchedPath]:
        """The same in substitutions: what is a word there may be printed, and be a path here."""
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
        """As above, but what is not known may be what a rule is about."""
        if self.rules.restrict:
            return PermissionVerdict(Permission.ASK, why)
        return self._unless_full(why)


def _likely(pattern: str) -> Iterable[str]:
    """Secrets that a pattern for too many names may stand for."""
    above, _, last = pattern.rpartition("/")
    for name in (".env", ".ssh/x", ".netrc", "id_rsa", "x.pem", "x.key", "credentials"):
        if fnmatch.fnmatchcase(name.split("/")[0], last):
            yield posixpath.join(above, name)


def _places(path: str) -> tuple[str, ...]:
    """After a link, `..` is the directory the link is in to a shell, and another to all others."""
    return tuple(dict.fromkeys((path, posixpath.normpath(path))))


def _runs_git(argv: Sequence[str]) -> bool:
    return any(
        program_name(word) == "git" or program_name(word).startswith("git-") for word in argv
    )


def _by_rule(rule: ToolRule) -> PermissionVerdict:
    about = in_quotes(" ".join(rule.command) if rule.command else rule.tool)
    return PermissionVerdict(rule.decision, f"a rule says {rule.decision} for {about}", rule)


def _worst(verdicts: Sequence[PermissionVerdict]) -> PermissionVerdict:
    order = (Permission.DENY, Permission.ASK, Permission.ALLOW)
    return min(verdicts, key=lambda verdict: order.index(verdict.decision))


def _asked(named: Sequence[TouchedPath]) -> PermissionVerdict | None:
    """The first that is not allowed."""
    found = (one.verdict for one in named if one.verdict.decision is not Permission.ALLOW)
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
    """Whether a pattern may stand for other names by the time it is its turn."""
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
    """With names in place of patterns; None if not all of them are known."""
    if any(word.scripts for word in words):
        return None
    argv: list[str] = []
    for word in words:
        text = word_text(word, paths)
        if not word.is_pattern:
            argv.append(text)
            continue
        names = paths.files.glob(paths.absolute(text, cwd))
        if changing or names is None or word is words[0] or _is_odd(text, cwd):
            return None
        argv += [_as_written(name, text) for name in names] or [text]
    return tuple(argv)


def listed_directories(
    words: tuple[Word, ...], cwd: str, paths: PathPolicy
) -> dict[str, tuple[str, ...]] | None:
    """The directories that a shell looks into for the patterns among the words, each with the names
    that it finds there: also a program that reads nothing prints what a pattern stands for. None if
    not all of them are known."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        if not word.is_pattern:
            continue
        pattern = paths.absolute(word_text(word, paths), cwd)
        found.setdefault(posixpath.dirname(pattern[: _first_unknown(pattern)]), ())
        names = paths.files.glob(pattern)
        if names is None:
            return None
        for name in names:
            above = posixpath.dirname(name)
            found[above] = (*found.get(above, ()), name)
    return found


def _first_unknown(pattern: str) -> int:
    return min(at for at in (pattern.find("*"), pattern.find("?")) if at >= 0)


def word_text(word: Word, paths: PathPolicy) -> str:
    return paths.home + word.text[1:] if word.is_home else word.text


def _may_change(argv: list[str]) -> bool:
    found = parse_reader(argv)
    return argv[0] != "cd" and (found is None or found[1].refused != "")


def _as_written(name: str, pattern: str) -> str:
    """As the shell gives it: relative where the pattern is, with as many parts as that has."""
    if pattern.startswith("/"):
        return name
    parts = [part for part in pattern.split("/") if part]
    return "/".join(name.split("/")[-len(parts) :])


def _is_odd(pattern: str, cwd: str) -> bool:
    """Where a pattern's own directory is one, or after a link `..` would be another. To some shells
    `.*` is `..` too."""
    leads_up = any(
        fnmatch.fnmatchcase("..", part) for part in pattern.split("/") if part[:1] == "."
    )
    return leads_up or "*" in cwd or "?" in cwd
