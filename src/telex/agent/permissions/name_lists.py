"""Programs that are told which files to read by a list, which nobody here sees. Pure.

`tar -T list`, `cpio -o < list`, `7z a x @list`: the names of the files are in another file or come
from a pipe. So while a rule keeps something from being read, they ask. `xargs` and its like, which
run programs, are in `embedded_commands`. Used by `shell_commands`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANY: Final = re.compile(
    r"--(?:files?|paths?|names?|include)[0-9]*(?:-raw|-verbatim)?-f(?:rom)?.*"
    r"|--file-?list.*|--input-fi.*|--names-stdin|--paths-from-.*"
)
"""Options of any program."""
_ALWAYS: Final = word_set("cpio bsdcpio pax afio")
_WITH_AT: Final = word_set("""
    7z 7za 7zr 7zz rar gcc g++ cc c++ clang clang++ gfortran ld ar as javac java jar rustc bsdtar
    convert magick montage identify link
""")
"""`@list` is a list to them; to others it is the file itself."""
_OPTIONS: Final = {
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
"""Their first word is a bundle of options, also without a dash."""


def reads_names(argv: Sequence[str]) -> bool:
    """Whether it, or a program among its words, may read files that a list names."""
    if any(_ANY.fullmatch(word) for word in argv):
        return True
    return any(_is_given_list(program_name(word), argv[at + 1 :]) for at, word in enumerate(argv))


def _is_given_list(name: str, words: Sequence[str]) -> bool:
    if name in _ALWAYS:
        return True
    if name in _WITH_AT and any(word.startswith("@") for word in words):
        return True
    pattern = _OPTIONS.get(name)
    if pattern is None or not words:
        return False
    first = "-" + words[0] if name in _BUNDLED and "." not in words[0] else words[0]
    return any(pattern.fullmatch(word) for word in (first, *words))
