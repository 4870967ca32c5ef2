"""Commands that do tomorrow what they do today, so that a person may agree to their text. Pure, but
for `Files`.

They run nothing else: readers, as readers.toml has them, and the few here that change files, with
options that name no file and names inside the root that no program obeys and that hold no such.
Nobody has to know all interpreters, wrappers and build tools: what is not here does not last. Nor
does git, which runs what its repository says, nor what a pattern stands for. Used by `commands` for
`remembering`, and where a rule may be about what another program is told to run.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from telex.agent.judging.paths import NOWHERE
from telex.agent.judging.programs import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.judging.paths import Paths

CHANGING: Final = {
    "chmod": "v",
    "cp": "finpPuv",
    "ln": "finsv",
    "mkdir": "pv",
    "mv": "finuv",
    "rm": "dfiv",
    "rmdir": "pv",
    "touch": "achm",
}
"""Programs that change files and run nothing, with the letters of options that have no value. None
that goes below a directory: what lies there tomorrow was not seen."""
_INTO: Final = frozenset({"cp", "ln", "mv"})
"""Of these, a directory as the last word is where the others go."""


def runs_nothing(argv: Sequence[str]) -> bool:
    found = reading(argv)
    return argv[0] in CHANGING if found is None else not found[1].refused


def is_lasting(argv: Sequence[str], cwd: str, paths: Paths) -> bool:
    if found := reading(argv):
        reader, used = found
        return not used.refused and not reader.needs_trust
    letters = CHANGING.get(argv[0])
    if letters is None:
        return False
    words = [*argv[1:], *_inside(argv, cwd, paths)]
    return all(_is_tame(word, letters, cwd, paths) for word in words)


def _inside(argv: Sequence[str], cwd: str, paths: Paths) -> list[str]:
    """The names that are written in a directory: they may be links, or obeyed there."""
    if argv[0] not in _INTO or not paths.files.is_directory(paths.absolute(argv[-1], cwd)):
        return []
    return [posixpath.join(argv[-1], posixpath.basename(word.rstrip("/"))) for word in argv[1:-1]]


def writes_lastingly(path: str, cwd: str, paths: Paths) -> bool:
    """Not where what is written is run one day: what it is may be another thing tomorrow."""
    absolute = paths.absolute(path, cwd)
    return absolute in NOWHERE or (paths.is_inside(absolute) and not paths.is_guarded(absolute))


def _is_tame(word: str, letters: str, cwd: str, paths: Paths) -> bool:
    if word.startswith("-"):
        return word[1:] != "" and set(word[1:]) <= set(letters)
    absolute = paths.absolute(word, cwd)
    whole = paths.is_root(absolute) or paths.has_guarded(paths.files.real(absolute))
    return not whole and writes_lastingly(word, cwd, paths)
