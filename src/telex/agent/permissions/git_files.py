"""Git's own files, parsed: its configuration, and the index of tracked files and submodules. Pure.

The configuration's syntax is read as git reads it, and what git may read differently is refused:
`UnreadableGitConfig`. Whoever gets that takes the file for one that may say anything. An index that
is not of a known version, or is kept in two files, raises one of `NOT_AN_INDEX`. Used by
`git_repository`, which asks about what git would run, and by `guarded_files`, for the files named.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import struct
from dataclasses import dataclass
from hashlib import blake2b, sha1, sha256
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import word_set
from telex.agent.permissions.sensitive_names import is_secret

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
"""What can be set without having a reading git run a program or look elsewhere. Left out on
purpose: a promisor's remote (git fetches what is missing), `alias`, `log.showsignature`."""


class UnreadableGitConfig(ValueError):
    """Not a configuration that is read here."""


@dataclass(frozen=True, slots=True)
class GitSetting:
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


def parse_git_config(content: bytes) -> Iterator[GitSetting]:
    """Each setting, in order; raises `UnreadableGitConfig`."""
    text = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if _CONTROL.search(text) or text.startswith("\ufeff"):
        raise UnreadableGitConfig
    return _read(text)


def _read(text: str) -> Iterator[GitSetting]:
    at = 0
    section: tuple[str, str | None] | None = None
    while at < len(text):
        if skipped := _BLANK.match(text, at) or _COMMENT.match(text, at):
            at = skipped.end()
        elif header := _SECTION.match(text, at):
            section, at = _header(header), header.end()
        elif section is not None and (name := _NAME.match(text, at)):
            value, at = _value(text, name.end())
            yield GitSetting(*section, name[1].lower(), value)
        else:
            raise UnreadableGitConfig


def _header(found: re.Match[str]) -> tuple[str, str | None]:
    written, quoted = found.groups()
    section, dot, older = written.lower().partition(".")
    if quoted is None:
        return section, older if dot else None
    if dot:
        raise UnreadableGitConfig  # both ways of writing a subsection at once
    return section, re.sub(r"\\(.)", r"\1", quoted)


def _value(text: str, at: int) -> tuple[str, int]:
    """What follows a name, and where it ends."""
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
            raise UnreadableGitConfig  # a quote that is not closed
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


# A git index, read: the names of tracked files and of submodules. Pure.
#
# It is read as git reads it: by the lengths in the entries, by several threads from the offsets in
# an extension, and without the checksum. An unknown version or extension, a split index, or two
# statements that differ raise `ValueError`, `IndexError` or `struct.error`.


NOT_AN_INDEX: Final = (struct.error, ValueError, IndexError)
_GITLINK_MODE: Final = 0o160000
_DIRECTORY_MODE: Final = 0o040000
_GITLINK: Final = b"\x00\x00\xe0\x00"
"""The mode of a submodule, as it is written."""
_MODE: Final = struct.Struct(">24xL12x")
_FLAGS: Final = struct.Struct(">H")
_EXTENDED: Final = 0x4000
_LONG_NAME: Final = 0xFFF
"""Of the flags, a name's length; or that it is at least so long."""
_HEADER: Final = 12
_COMPRESSED: Final = 4
"""The version in which a name is what differs from the one before."""
_SHA1: Final = 20
_END_OF_ENTRIES: Final = b"EOIE"
_OFFSETS: Final = b"IEOT"
_EXTENSIONS: Final = frozenset({b"TREE", b"REUC", b"UNTR", b"FSMN", _END_OF_ENTRIES, _OFFSETS})
"""By which no other files are tracked. Not `link`, half an index, nor `sdir`, a sparse one."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    name: str
    """From the top of the working tree."""
    is_submodule: bool


@dataclass(frozen=True, slots=True)
class TrackedFiles:
    """What an index says, as far as anybody here asks."""

    submodules: tuple[str, ...]
    secrets: tuple[str, ...]
    """Files that are secrets by their names, or whose names lead out of the working tree."""
    directories: tuple[str, ...]
    """Above any file."""


_ODD: Final = frozenset({"", ".", "..", ".git"})
"""Names that git puts into no index, and reads from one."""
_KEPT: Final = 8
"""Indexes whose `TrackedFiles` is kept: to look through the names of a large one takes a second."""
_kept: dict[tuple[bytes, int], TrackedFiles] = {}


def tracked_files(index: bytes, hash_bytes: int) -> TrackedFiles:
    key = (blake2b(index).digest(), hash_bytes)
    if key not in _kept:
        found = _tracked(index, hash_bytes)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = found
    return _kept[key]


def _tracked(index: bytes, hash_bytes: int) -> TrackedFiles:
    submodules, secrets = [], []
    directories: set[str] = set()
    for entry in index_entries(index, hash_bytes):
        above = posixpath.dirname(entry.name)
        while above and above not in directories:
            directories.add(above)
            above = posixpath.dirname(above)
        if entry.is_submodule:
            submodules.append(entry.name)
        if is_secret("/" + entry.name) or not _ODD.isdisjoint(entry.name.lower().split("/")):
            secrets.append(entry.name)
    return TrackedFiles(tuple(submodules), tuple(secrets), tuple(sorted(directories)))


def may_have_submodules(index: bytes) -> bool:
    """Whether it is worth reading for them; a split index may have them in its other file."""
    return _GITLINK in index or b"link" in index


def index_entries(index: bytes, hash_bytes: int) -> Iterator[IndexEntry]:
    """All of them, in order. Whoever stops before the end does not know whether it is an index."""
    version, count = struct.unpack_from(">4xLL", index)
    if not index.startswith(b"DIRC") or version not in (2, 3, 4):
        raise ValueError("not an index")
    end = len(index) - hash_bytes
    _check_sum(index[:end], index[end:])
    at, name = _HEADER, b""
    begins: dict[int, tuple[int, bool]] = {}
    for number in range(count):
        begin = at
        (mode,) = _MODE.unpack_from(index, at)
        at += _MODE.size + hash_bytes
        (flags,) = _FLAGS.unpack_from(index, at)
        at += 4 if flags & _EXTENDED else 2
        kept = 0
        if version == _COMPRESSED:
            dropped, at = _varint(index, at)
            kept = len(name) - dropped
            if kept < 0:
                raise ValueError("more is left out of a name than it has")
        name_end = index.index(b"\x00", at, end)
        name = name[:kept] + index[at:name_end]
        if min(len(name), _LONG_NAME) != flags & _LONG_NAME:
            raise ValueError("a name is not as long as it says")
        at = name_end + 1 if version == _COMPRESSED else name_end + 8 - (name_end - begin) % 8
        if index[name_end:at].strip(b"\x00") or at > end:
            raise ValueError("something is between two entries")
        begins[begin] = (number, kept == 0)
        if mode == _DIRECTORY_MODE:
            raise ValueError("a sparse index: what is in the directory is not in it")
        yield IndexEntry(name.decode("utf-8", "surrogateescape"), mode == _GITLINK_MODE)
    _check_extensions(index[:end], at, begins, count)


def _check_sum(content: bytes, written: bytes) -> None:
    """Git may be told to write none."""
    made = sha1(content, usedforsecurity=False) if len(written) == _SHA1 else sha256(content)
    if written.strip(b"\x00") and made.digest() != written:
        raise ValueError("the checksum is another")


def _check_extensions(
    content: bytes, at: int, begins: dict[int, tuple[int, bool]], count: int
) -> None:
    entries_end = at
    while at < len(content):
        (size,) = struct.unpack_from(">4xL", content, at)
        kind, data = content[at : at + 4], content[at + 8 : at + 8 + size]
        at += 8 + size
        if kind not in _EXTENSIONS:
            raise ValueError("a split or sparse index, or an extension that is not known")
        if kind == _END_OF_ENTRIES and struct.unpack_from(">L", data)[0] != entries_end:
            raise ValueError("the entries end elsewhere")
        if kind == _OFFSETS:
            _check_offsets(data, begins, count)
    if at != len(content):
        raise ValueError("an extension is longer than the index")


def _check_offsets(data: bytes, begins: dict[int, tuple[int, bool]], count: int) -> None:
    """From each of these places a thread of git reads so many entries, the first of which has its
    whole name."""
    (version,) = struct.unpack_from(">L", data)
    blocks = list(struct.iter_unpack(">LL", data[4:]))
    done = 0
    for place, number in blocks:
        if begins.get(place) != (done, True):
            raise ValueError("a thread reads from elsewhere")
        done += number
    if version != 1 or done != count:
        raise ValueError("threads read other entries")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 127)
    return value, at + 1
