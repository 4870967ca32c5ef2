"""What git reads besides the root: its repository, if that is elsewhere, and the person's settings.

Git ends with an error where it finds one of these and may not read it. They are the person's own,
or of a workspace they trust, and the same code says so as for the judge (`judging.git_layout`).
Looks at the disk; used by `confinement`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.agent.judging.git_repository import GitSettings
from telex.config.errors import ConfigError
from telex.config.places import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telex.agent.judging.paths import Paths

_DEEP: Final = 5
"""As many files that include each other."""
_NAMES_A_FILE: Final = re.compile(
    r'^\s*(?:path|excludesfile|attributesfile)\s*=\s*"?([^"\n]+?)"?\s*$',
    re.IGNORECASE | re.MULTILINE,
)


def git_places(paths: Paths, environment: Mapping[str, str]) -> list[str]:
    """Files and directories; some may not be there. Of a repository that git may not read without
    a question, there are none."""
    home = paths.home
    xdg = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    own = [os.path.join(xdg, "git", name) for name in ("config", "ignore", "attributes")]
    settings = [os.path.join(home, ".gitconfig"), own[0]]
    included = [path for file in settings for path in _named_in(file, home, _DEEP)]
    return [*settings, *own[1:], *included, *GitSettings(paths).places()]


def _named_in(settings: str, home: str, depth: int) -> Iterator[str]:
    """Files that a file of settings includes or names. Read without understanding: one too many is
    still a file that the person named there."""
    if depth == 0:
        return
    for name in _NAMES_A_FILE.findall(_read(settings)):
        path = os.path.join(os.path.dirname(settings), re.sub(r"^~(?=/)", lambda _: home, name))
        if os.path.isfile(path):
            yield path
            yield from _named_in(path, home, depth - 1)


def _read(path: str) -> str:
    """Nothing where there is no such file, or git could not read it either."""
    try:
        return os.fsdecode(read_file(Path(path)) or b"")
    except ConfigError:
        return ""
