"""Parse git configuration files, and find the files that a setting makes git read or run. Pure.

The syntax is parsed as git parses it. Text that git may parse differently is refused with
`UnreadableGitConfig`, and the callers treat such a file as one that may contain any setting.

Git passes the value of some settings to a shell. The shell may change the directory first, expand
variables or search programs in another PATH, and an interpreter adds a suffix to a name. So each
word of a value counts as a prefix of the paths that may be run (`run_prefixes`). A value that may
still run other files is not `is_fully_named`: an agent could write those files unnoticed, so git
asks. Used by `git_inspector`, and by `guarded_files`.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import SHELLS, program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator


_SECTION: Final = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
_NAME: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_BLANK: Final = re.compile(r"[ \t\n]+")
_COMMENT: Final = re.compile(r"[#;][^\n]*")
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "b": "\b"}
_WORDS: Final = re.compile(r"[^\s'\"`;|&()<>=$!{}]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_NAMES_A_PLACE: Final = re.compile(
    r"core\.(?:hookspath|attributesfile)|init\.templatedir|include(?:if\.\*)?\.path"
)
_NAMES_DATA: Final = re.compile(
    r"core\.excludesfile|blame\.ignorerevsfile|mailmap\.file|commit\.template|diff\.orderfile"
    r"|gpg\.\*\.(?:allowedsignersfile|revocationfile)|http\.(?:\*\.)?cookiefile|fsck\.skiplist"
)
_COMMAND_URL: Final = "ext::"
"""The scheme of a URL that is a command."""
_NESTED: Final = 3
"""Levels of quotes within quotes that are split into words."""
HARMLESS: Final = word_set("""
    advice.* branch.*.* color.* color.*.* column.ui commit.gpgsign core.abbrev core.autocrlf
    core.bare core.bigfilethreshold core.checkstat core.commitgraph core.compression core.eol
    core.filemode core.ignorecase core.logallrefupdates core.longpaths core.multipackindex
    core.precomposeunicode core.preloadindex core.protecthfs core.protectntfs core.quotepath
    core.repositoryformatversion core.safecrlf core.sparsecheckout core.sparsecheckoutcone
    core.symlinks core.trustctime core.untrackedcache core.whitespace diff.algorithm
    diff.colormoved diff.context diff.mnemonicprefix diff.noprefix diff.renamelimit diff.renames
    extensions.objectformat extensions.refstorage extensions.worktreeconfig feature.manyfiles
    fetch.parallel fetch.prune fetch.prunetags gc.auto gui.geometry gui.wmstate
    http.*.extraheader http.postbuffer http.sslverify index.threads index.version
    init.defaultbranch lfs.*.access lfs.*.locksverify lfs.repositoryformatversion
    log.abbrevcommit log.date log.decorate maintenance.auto maintenance.strategy
    merge.conflictstyle merge.ff merge.renamelimit pack.threads pull.ff pull.rebase
    push.autosetupremote push.default push.followtags rebase.autosquash rebase.autostash
    remote.*.fetch remote.*.gh-resolved remote.*.mirror remote.*.prune remote.*.prunetags
    remote.*.push remote.*.pushurl remote.*.tagopt remote.*.url remote.pushdefault
    rerere.enabled safe.directory status.branch status.short status.showuntrackedfiles
    submodule.*.active submodule.*.url submodule.active tag.gpgsign url.*.insteadof
    url.*.pushinsteadof user.email user.name user.signingkey user.useconfigonly
""")
"""Settings with which a git command that only reads runs no program and reads no other files. Left
out on purpose: a promisor remote (git fetches missing objects), `alias`, `log.showsignature`."""


class UnreadableGitConfig(ValueError):
    """The text is not a configuration, or git may parse it differently."""


@dataclass(frozen=True, slots=True)
class GitSetting:
    """One setting of a configuration file."""

    section: str
    """In lower case."""
    subsection: str | None
    name: str
    """In lower case."""
    value: str
    """`true` if the setting has no value."""

    @property
    def key(self) -> str:
        """The key as git writes it: `section.subsection.name`."""
        return ".".join(filter(None, (self.section, self.subsection, self.name)))

    @property
    def kind(self) -> str:
        """The key with `*` for the subsection."""
        return ".".join((self.section, *("*",) * (self.subsection is not None), self.name))

    @property
    def is_include(self) -> bool:
        """Whether the value is the path of another configuration file."""
        return self.section in ("include", "includeif") and self.name == "path"

    @property
    def names_place(self) -> bool:
        """Whether the whole value is the path of a file or directory that configures git."""
        return _NAMES_A_PLACE.fullmatch(self.kind) is not None

    @property
    def names_data(self) -> bool:
        """Whether the whole value is the path of a file that git only reads."""
        return _NAMES_DATA.fullmatch(self.kind) is not None

    @property
    def is_harmless(self) -> bool:
        """Whether the setting is in `HARMLESS` and has no command in a URL."""
        if _COMMAND_URL in f"{self.subsection}{self.value}":
            return False  # also as the remote of a branch, or inside another URL
        wide = f"{self.section}.*" if self.subsection is None else f"{self.section}.*.*"
        return not {self.kind, wide}.isdisjoint(HARMLESS)

    def words(self) -> list[str]:
        """Return the words of the value that may be paths of files that git reads as settings or
        runs. A list of the settings that name a program would never be complete, so every setting
        counts that is not known to be harmless. A command is not parsed as a shell parses it: each
        of its words may be a path, including words with spaces."""
        if self.names_place:
            return [self.value]
        if self.is_harmless or self.names_data:
            return []
        words = (self.value, *_split_command(self.value), *_WORDS.findall(self.value))
        return list(dict.fromkeys(words))


def _split_command(text: str, depth: int = _NESTED) -> Iterator[str]:
    """Yield the words of a command, and the words of each word that is a command itself."""
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote
        return
    for word in words:
        yield word
        if depth and re.search(r"\s", word):
            yield from _split_command(word, depth - 1)


def parse_git_config(content: bytes) -> Iterator[GitSetting]:
    """Yield each setting in order. Raise `UnreadableGitConfig`, also during the iteration."""
    text = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if _CONTROL.search(text) or text.startswith("\ufeff"):
        raise UnreadableGitConfig
    return _settings(text)


def _settings(text: str) -> Iterator[GitSetting]:
    at = 0
    section: tuple[str, str | None] | None = None
    while at < len(text):
        if skipped := _BLANK.match(text, at) or _COMMENT.match(text, at):
            at = skipped.end()
        elif header := _SECTION.match(text, at):
            section, at = _section(header), header.end()
        elif section is not None and (name := _NAME.match(text, at)):
            value, at = _value(text, name.end())
            yield GitSetting(*section, name[1].lower(), value)
        else:
            raise UnreadableGitConfig


def _section(found: re.Match[str]) -> tuple[str, str | None]:
    """Return the section and the subsection of a header."""
    written, quoted = found.groups()
    section, dot, older = written.lower().partition(".")
    if quoted is None:
        return section, older if dot else None
    if dot:
        raise UnreadableGitConfig  # both syntaxes of a subsection at once
    return section, re.sub(r"\\(.)", r"\1", quoted)


def _value(text: str, at: int) -> tuple[str, int]:
    """Return the value after a setting's name, and the offset after the value."""
    following = text[at : at + 1]
    if following in ("", "\n", "#", ";"):
        return "true", at
    if following != "=":
        raise UnreadableGitConfig
    value, quoted, at = "", False, at + 1
    while at < len(text) and (quoted or text[at] not in "\n#;"):
        char, after = text[at], text[at + 1 : at + 2]
        at += 1
        if char == "\n":
            raise UnreadableGitConfig  # an unclosed quote
        if char == '"':
            quoted = not quoted
        elif char == "\\":
            if after != "\n" and after not in _ESCAPES:
                raise UnreadableGitConfig
            value += _ESCAPES.get(after, "")
            at += 1
        else:
            value += char
    if quoted:
        raise UnreadableGitConfig
    return value.strip(" \t"), at


_VARIABLE: Final = re.compile(r"\$(?:\w+|[@*#?!$-])")
_BETWEEN: Final = re.compile(r"[\s'\"`;|&()<>=$!{},:\\]+")
_WILD: Final = re.compile(r"[*?\[]")
_PLAIN: Final = re.compile(r"!?[\w@%+,./-]*(?:[ \t]+[\w@%+=:,./-]+)*")
_OTHER_HOME: Final = re.compile(r"~([^/]+)(/.*)?", re.DOTALL)
_PREFIX: Final = "%(prefix)/"
_PREFIXES: Final = ("/usr", "/usr/local", "/opt/local", "/opt/homebrew")
"""Directories in which git may be installed."""
_SUBCOMMAND_PROGRAMS: Final = word_set(
    "git-lfs git-crypt git-annex gh glab osxkeychain manager manager-core"
)
"""Programs whose arguments are subcommands and never files."""
_TEXT: Final = re.compile(
    r"diff\.(?:\*\.)?(?:xfuncname|funcname|wordregex)|(?:format|pretty|grep|i18n|log|notes|user|gui"
    r"|versionsort|status|column|credential|merge|diff)\.(?:\*\.)?"
    r"(?:name|email|username|pretty|signature|date|tool|guitool|conflictstyle|encoding|\w+encoding)"
    r"|pretty\.\w+|gui\.recentrepo|remote\.\*\.(?:promisor|partialclonefilter|skip\w+)"
    r"|extensions\.\w+"
)
"""Settings whose value is neither a command nor a path."""
RUNNERS: Final = SHELLS | word_set("""
    ansible ant awk bazel bmake bun bundle bunx busybox cargo cmake composer deno doas docker dotnet
    env exec find gawk gmake go gradle gradlew invoke java julia just lua luajit make meson mise mix
    mvn mvnw nice ninja node nodejs nohup nox npm npx perl php pipenv pnpm podman poetry pypy python
    R rake Rscript ruby scons setsid sudo task tclsh timeout tox ts-node tsx uv uvx xargs yarn
""")
"""Programs that run files which they find in a directory, or which their arguments name in ways
that are not parsed here."""


@dataclass(frozen=True, slots=True)
class RunPrefix:
    """A path, from the top of the working tree, that a setting may run: the path itself, a file
    below it, or the path with a suffix."""

    path: str
    only_if_exists: bool = False
    """The prefix counts only if such a file exists: most words are not paths."""
    is_pattern: bool = False
    """The prefix ended at a wildcard, so any name that begins with it counts."""


def run_prefixes(setting: GitSetting) -> Iterator[RunPrefix]:
    """Yield the prefixes of the paths that a setting may make git run."""
    value = setting.value
    if setting.is_harmless or setting.names_data or setting.names_place:
        return
    if _TEXT.fullmatch(setting.kind):
        return
    if setting.section == "alias" and not value.startswith("!"):
        return  # an alias for another git command
    words = [word for word in _BETWEEN.split(_VARIABLE.sub(" ", value)) if word]
    if words and program_name(words[0]) in _SUBCOMMAND_PROGRAMS:
        return
    before = ""
    for at, word in enumerate(words):
        if re.fullmatch(r"-[A-Za-z]\S+", word):
            yield from _word_prefixes(word[2:], is_module=False)
            if module := re.fullmatch(r"-[A-Za-z]*?m([A-Za-z_][\w.]*)", word):
                yield from _word_prefixes(module[1], is_module=True)
        elif not word.startswith("-") and (at or "/" in word):
            is_module = re.fullmatch(r"-[A-Za-z]*m", before) is not None
            yield from _word_prefixes(word, is_module=is_module)
        before = word


def _word_prefixes(word: str, *, is_module: bool) -> Iterator[RunPrefix]:
    if is_module:
        yield RunPrefix(word.split(".")[0])
        return
    known = _WILD.split(word)[0].lstrip("/")
    known = re.sub(r"^(?:~[^/]*/|(?:\.?/)+)+", "", known)
    if known not in ("", ".", "..", "~"):
        is_pattern = _WILD.search(word) is not None
        yield RunPrefix(known, "/" not in word and not is_pattern, is_pattern)


def expand_git_path(value: str, home: str) -> tuple[str, ...]:
    """Return the paths that git may expand a value to: `~/` and `~user/` are home directories, and
    `%(prefix)/` is the directory in which git is installed."""
    if value.startswith(_PREFIX):
        return tuple(f"{top}/{value.removeprefix(_PREFIX)}" for top in _PREFIXES)
    if value == "~" or value.startswith("~/"):
        return (home + value[1:],)
    if other := _OTHER_HOME.fullmatch(value):
        user, rest = other[1], other[2] or ""
        above = home.rpartition("/")[0]
        homes = [f"{above}/{user}", f"/home/{user}", f"/Users/{user}"]
        homes += ["/root", "/var/root"] if user == "root" else []
        homes += [home] if home.endswith(f"/{user}") else []
        return (value, *dict.fromkeys(directory + rest for directory in homes))
    return (value,)


def is_fully_named(setting: GitSetting) -> bool:
    """Return whether the value names all files that it makes git run, so that all of them can be
    guarded: the program searches for nothing by itself, and the shell expands no word."""
    if setting.is_harmless or setting.names_data or setting.section == "alias":
        return True
    if _TEXT.fullmatch(setting.kind):
        return True
    value = setting.value
    if setting.names_place:
        return _OTHER_HOME.fullmatch(value) is None and not value.startswith(_PREFIX)
    words = value.removeprefix("!").split()
    return not words or (
        _PLAIN.fullmatch(value) is not None
        and _COMMAND_URL not in setting.key + value
        and program_name(words[0]) not in RUNNERS
    )
