"""Commands that do tomorrow what they do today, so that a person may agree to their text. Pure, but
for `Files`.

They run nothing else: readers, as readers.toml has them, and the few here that change files, with
options that name no file and names inside the root that no program obeys. Nobody has to know all
interpreters, wrappers and build tools: what is not here does not last. Nor does git, which runs
what its repository says, nor what a pattern stands for. Used by `commands` for `remembering`, and
where a rule may be about what another program is told to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.agent.judging.paths import NOWHERE
from telex.agent.judging.programs import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.agent.judging.paths import Paths

CHANGING: Final = {
    "chmod": "Rv",
    "cp": "afinpPrRuv",
    "ln": "finsv",
    "mkdir": "pv",
    "mv": "finuv",
    "rm": "dfirRv",
    "rmdir": "pv",
    "touch": "achm",
}
"""Programs that change files and run nothing, with the letters of options that have no value."""


def runs_nothing(argv: Sequence[str]) -> bool:
    found = reading(argv)
    return argv[0] in CHANGING if found is None else not found[1].refused


def is_lasting(argv: Sequence[str], cwd: str, paths: Paths) -> bool:
    if found := reading(argv):
        reader, used = found
        return not used.refused and not reader.needs_trust
    letters = CHANGING.get(argv[0])
    return letters is not None and all(_is_tame(word, letters, cwd, paths) for word in argv[1:])


def writes_lastingly(path: str, cwd: str, paths: Paths) -> bool:
    """Not where what is written is run one day: what it is may be another thing tomorrow."""
    absolute = paths.absolute(path, cwd)
    return absolute in NOWHERE or (paths.is_inside(absolute) and not paths.is_guarded(absolute))


def _is_tame(word: str, letters: str, cwd: str, paths: Paths) -> bool:
    if word.startswith("-"):
        return word[1:] != "" and set(word[1:]) <= set(letters)
    return writes_lastingly(word, cwd, paths)
