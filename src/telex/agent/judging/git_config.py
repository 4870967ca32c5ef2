"""A git configuration file, read. Pure.

It reads the syntax as git does and refuses what git may read differently: `Unreadable`. Whoever
gets that takes the file for one that may say anything. Used by `git_repository`, which asks about
what git would run, and by `guards`, for the files that are named.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.judging.options import names

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
_RUNS: Final = "ext::"
"""An address that is a command."""
_NESTED: Final = 3
"""Quotes within quotes that are looked into."""
HARMLESS: Final = names("""
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
"""What can be set without having a reading git run a program or look elsewhere. Left out on
purpose: a promisor's remote (git fetches what is missing), `alias`, `log.showsignature`."""


class Unreadable(ValueError):
    """Not a configuration that is read here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of it."""

    section: str
    """In lower case."""
    subsection: str | None
    name: str
    """In lower case."""
    value: str
    """`true` where there is none."""

    @property
    def key(self) -> str:
        """As git names it."""
        return ".".join(filter(None, (self.section, self.subsection, self.name)))

    @property
    def kind(self) -> str:
        """The key with `*` for the subsection."""
        return ".".join((self.section, *("*",) * (self.subsection is not None), self.name))

    @property
    def is_include(self) -> bool:
        """Whether the value is another configuration file."""
        return self.section in ("include", "includeif") and self.name == "path"

    @property
    def names_place(self) -> bool:
        """Whether the whole value is a file or a directory that git obeys."""
        return _NAMES_A_PLACE.fullmatch(self.kind) is not None

    @property
    def names_data(self) -> bool:
        """Whether the whole value is a file that git only reads."""
        return _NAMES_DATA.fullmatch(self.kind) is not None

    @property
    def is_harmless(self) -> bool:
        if _RUNS in f"{self.subsection}{self.value}":
            return False  # also as a branch's remote, or within another address
        wide = f"{self.section}.*" if self.subsection is None else f"{self.section}.*.*"
        return not {self.kind, wide}.isdisjoint(HARMLESS)

    def words(self) -> list[str]:
        """What may be a file that git obeys or runs. The list of settings that name a program would
        never be whole, so that this is every setting that is not known to be harmless. A command
        is not read as a shell reads it: each of its words may be a file, also with spaces in it."""
        if self.names_place:
            return [self.value]
        if self.is_harmless or self.names_data:
            return []
        return list(dict.fromkeys((self.value, *_apart(self.value), *_WORDS.findall(self.value))))


def _apart(text: str, depth: int = _NESTED) -> Iterator[str]:
    """The words of a command, and those of a word that is itself one."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed
        return
    for word in words:
        yield word
        if depth and re.search(r"\s", word):
            yield from _apart(word, depth - 1)


def settings(content: bytes) -> Iterator[Setting]:
    """Each setting, in order; raises `Unreadable`."""
    text = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if _CONTROL.search(text) or text.startswith("\ufeff"):
        raise Unreadable
    return _read(text)


def _read(text: str) -> Iterator[Setting]:
    at = 0
    section: tuple[str, str | None] | None = None
    while at < len(text):
        if skipped := _BLANK.match(text, at) or _COMMENT.match(text, at):
            at = skipped.end()
        elif header := _SECTION.match(text, at):
            section, at = _header(header), header.end()
        elif section is not None and (name := _NAME.match(text, at)):
            value, at = _value(text, name.end())
            yield Setting(*section, name[1].lower(), value)
        else:
            raise Unreadable


def _header(found: re.Match[str]) -> tuple[str, str | None]:
    written, quoted = found.groups()
    section, dot, older = written.lower().partition(".")
    if quoted is None:
        return section, older if dot else None
    if dot:
        raise Unreadable  # both ways of writing a subsection at once
    return section, re.sub(r"\\(.)", r"\1", quoted)


def _value(text: str, at: int) -> tuple[str, int]:
    """What follows a name, and where it ends."""
    following = text[at : at + 1]
    if following in ("", "\n", "#", ";"):
        return "true", at
    if following != "=":
        raise Unreadable
    value, quoted, at = "", False, at + 1
    while at < len(text) and (quoted or text[at] not in "\n#;"):
        char, after = text[at], text[at + 1 : at + 2]
        at += 1
        if char == "\n":
            raise Unreadable  # a quote that is not closed
        if char == '"':
            quoted = not quoted
        elif char == "\\":
            if after != "\n" and after not in _ESCAPES:
                raise Unreadable
            value += _ESCAPES.get(after, "")
            at += 1
        else:
            value += char
    if quoted:
        raise Unreadable
    return value.strip(" \t"), at
