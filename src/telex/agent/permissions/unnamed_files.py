"""Programs that read or write files which their arguments do not name. Pure.

While a rule restricts reading, programs ask that get file names from a list, in a file or a pipe
(`reads_names`): `tar -T list`, `cpio -o < list`, `7z a x @list`. Programs also ask that walk a
directory by default (`RECURSIVE_PROGRAMS`). While a rule restricts writing, programs ask
that extract or download files (`UNNAMED_WRITERS`). `xargs` and similar programs, which run other
programs, are in `embedded_commands`. Used by `shell_commands`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

RECURSIVE_PROGRAMS: Final = word_set("""
    ack ag bfs broot cloc cscope ctags diff dir du dust egrep exa eza fd fdfind fgrep find fselect
    fzf gdu ggrep grep gtags ls lsd mkid ncdu rg rgrep scc sk tokei tree ucg ugrep vdir zgrep
""")
"""Programs that walk their working directory by default or with some option, also if another
program runs them."""

UNNAMED_WRITERS: Final = word_set("""
    7z 7za 7zr 7zz ar aria2c arj atool aunpack bsdcpio bsdtar bunzip bzr cabextract cpio csplit curl
    cvs darcs dpkg dpkg-deb dtrx fossil ftp gpatch gtar gunzip hg innoextract jar lftp lha lhasa
    lzma munpack ouch pax p7zip patch pigz pijul quilt rar rcp rpm rpm2archive rsync sftp shar star
    svn tar tarfile tnef unar uncompress unp unrar unshar unsquashfs unxz unzip unzstd uudecode
    wget wiggle xar xz yt-dlp zip zipfile zstd
""")
"""Programs that write files which none of their arguments names: the names come from an archive, a
patch, a server or a repository, and may contain `..`."""

_LIST_OPTIONS: Final = re.compile(
    r"--(?:files?|paths?|names?|include)[0-9]*(?:-raw|-verbatim)?-f(?:rom)?.*"
    r"|--file-?list.*|--input-fi.*|--names-stdin|--paths-from-.*"
)
"""Options that take a list, in any program."""
_LIST_READERS: Final = word_set("cpio bsdcpio pax afio")
"""Programs that always read a list."""
_AT_LIST_PROGRAMS: Final = word_set("""
    7z 7za 7zr 7zz rar gcc g++ cc c++ clang clang++ gfortran ld ar as javac java jar rustc bsdtar
    convert magick montage identify link
""")
"""Programs for which `@list` is a list; for other programs it is the file itself."""
_PROGRAM_LIST_OPTIONS: Final = {
    name: re.compile(pattern, re.DOTALL)
    for programs, pattern in (
        ("tar gtar bsdtar star", r"-[a-zA-Z]*T.*|--files-.*"),
        ("zip", r"-[a-zA-Z]*@.*"),
        ("7z 7za 7zr 7zz", r"-i.*@.*"),
        ("curl", r"-[a-zA-Z#]*K.*|--conf.*"),
        ("wget aria2c", r"-[a-zA-Z]*i.*|--input.*"),
        ("file", r"-[a-zA-Z]*f.*"),
        ("sort wc du", r"--files0.*"),
        ("rsync", r"--files-f.*"),
        ("ffmpeg ffplay ffprobe mpv", r".*concat.*"),
        ("cscope", r"-[a-zA-Z]*i.*"),
        ("ctags", r"-[a-zA-Z]*L.*"),
        ("cloc", r"--list-file.*"),
    )
    for name in programs.split()
}
_BUNDLED: Final = word_set("tar gtar bsdtar star")
"""Programs whose first argument is a group of options, also without a dash."""


def reads_names(argv: Sequence[str]) -> bool:
    """Return whether the command, or a program among its arguments, may read files from a list."""
    if any(_LIST_OPTIONS.fullmatch(word) for word in argv):
        return True
    return any(_is_given_list(program_name(word), argv[at + 1 :]) for at, word in enumerate(argv))


def _is_given_list(name: str, words: Sequence[str]) -> bool:
    if name in _LIST_READERS:
        return True
    if name in _AT_LIST_PROGRAMS and any(word.startswith("@") for word in words):
        return True
    pattern = _PROGRAM_LIST_OPTIONS.get(name)
    if pattern is None or not words:
        return False
    first = "-" + words[0] if name in _BUNDLED and "." not in words[0] else words[0]
    return any(pattern.fullmatch(word) for word in (first, *words))
