"""Where a command may be when it runs what it names, and why that cannot be known. Pure.

Shells go elsewhere by `cd` and `pushd`, programs by options; and some run what they find. Found in
the words of a command, in texts among them, and in a text that was not understood; more than there
is, as it is for what binds. Used by `bound_files`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN: Final = re.compile(r"[\s'\"`;|&()<>=]+")
_GO: Final = word_set("cd pushd chdir")
_OPTIONS: Final = re.compile(
    r"-C|-D|-chdir|--(?:chdir|directory|cwd|dir|prefix|working-dir|workdir|work-tree|project"
    r"|project-dir|rootdir|root|source)"
)
_GLUED: Final = re.compile(r"-[CD](.+)", re.DOTALL)
_FINDERS: Final = word_set("xargs parallel run-parts entr fd fdfind watchexec")
_IN_EACH: Final = word_set("-execdir -okdir")
_ELSEWHERE: Final = "it goes to a directory that nobody knows before it runs"
_FOUND: Final = "it runs something for what it finds"
_WORDS: Final = 4
"""After `cd`, options among them."""


@dataclass(frozen=True, slots=True)
class Going:
    surely: list[str] = field(default_factory=list)
    perhaps: list[str] = field(default_factory=list)
    """Only what is a directory."""
    unknown: str = ""


def run_directories(words: Sequence[str]) -> Going:
    """`words` may be texts with words in them."""
    apart = [word for word in _BETWEEN.split(" ".join(words)) if word]
    surely: list[str] = []
    perhaps: list[str] = []
    unknown = ""
    for at, word in enumerate(apart):
        after = apart[at + 1 : at + 1 + _WORDS]
        if word in _GO:
            target = next((one for one in after if not one.startswith("-")), "")
            is_known = target != "" and "-" not in after[:1] and not re.search(r"[$*?\[]", target)
            surely += [target] if is_known else []
            unknown = unknown if is_known else _ELSEWHERE
        elif _OPTIONS.fullmatch(word):
            perhaps += after[:1]
        elif glued := _GLUED.fullmatch(word):
            perhaps.append(glued[1])
        elif word in _IN_EACH:
            perhaps += [one for one in apart if not one.startswith("-")]
            unknown = unknown or _FOUND
        elif program_name(word) in _FINDERS or word in ("-exec", "-ok"):
            unknown = unknown or _FOUND
    return Going(surely, perhaps, unknown)
