"""The policy of the MCP server: the programs that its clients may open, from `[mcp_server]`.

A program is compared by its place: the directory with its links resolved, and the name of the file.
An entry without `/` is looked up in the server's own PATH, so that a client cannot pass another
file of that name off for it. `deny` and `confirm` also compare the bare names, and the file behind
links. Pure, except for the lookup.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from telex.config.settings import McpServerSettings

ANY: Final = "*"
_HARMLESS: Final = re.compile(
    r"(?:TERM|COLORTERM|LANG|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES)"
    r"=(?!/|:|.*\.\.)[\w.@:+,/-]*"
)
"""Variables that a client may set for an allowed program: the look of its output. Their values name
no file by a full path. Most others name code to run, for one program or another: LD_PRELOAD,
LESSOPEN, PAGER, PYTHONSTARTUP, GIT_SSH_COMMAND."""


@dataclass(frozen=True, slots=True)
class McpPolicy:
    """The judgement about programs. Without entries every program is allowed."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: McpServerSettings) -> McpPolicy:
        return cls(settings.allow, settings.deny, settings.confirm)

    def refusal(self, argv: Sequence[str], env: Mapping[str, str | None], cwd: str) -> str:
        """Return why clients may not use a program; empty if they may."""
        place = _place(argv[0], env.get("PATH"), cwd)
        if ANY in self.deny or _named(argv[0], place, self.deny):
            return f"the setting mcp_server.deny forbids {argv[0]}"
        if self.allow and ANY not in self.allow and not _listed(place, self.allow):
            return f"the setting mcp_server.allow has {', '.join(self.allow)}, and not {argv[0]}"
        return ""

    def environment_refusal(self, changes: Iterable[tuple[str, str]]) -> str:
        """Return why a client may not set variables; empty if it may. While `allow` is set, a
        variable must not make an allowed program run another."""
        if not self.allow or ANY in self.allow:
            return ""
        wrong = [key for key, value in changes if not _HARMLESS.fullmatch(f"{key}={value}")]
        if not wrong:
            return ""
        return (
            f"the setting mcp_server.allow is there, so `env` may not set {', '.join(wrong)}, only "
            "TERM, LANG, LC_*, TZ, COLUMNS, LINES and colours, to plain words"
        )

    def must_confirm(self, argv: Sequence[str], env: Mapping[str, str | None], cwd: str) -> bool:
        """Whether the person must confirm that a program is opened."""
        if ANY in self.confirm:
            return True
        place = _place(argv[0], env.get("PATH"), cwd)
        return _named(argv[0], place, self.confirm)


def _named(program: str, place: str, entries: Sequence[str]) -> bool:
    """Whether entries name a program: by its name, its place, or the file behind its links."""
    real = os.path.realpath(place)
    names = {os.path.basename(one) for one in (program, place, real)}
    if not names.isdisjoint(entries) or _listed(place, entries):
        return True
    return real in {os.path.realpath(_entry_place(entry)) for entry in entries}


def _listed(place: str, entries: Iterable[str]) -> bool:
    return place in map(_entry_place, entries)


def _entry_place(entry: str) -> str:
    return _place(os.path.expanduser(entry), os.environ.get("PATH"), "/")


def _place(program: str, path: str | None, cwd: str) -> str:
    """Return the path of a program: the file that would run, with the links of its directory
    resolved. The file itself may be a link: some programs are links to one that acts by its
    name. A relative entry of PATH begins at the directory in which the program starts."""
    found = program
    if "/" not in found:
        given = os.environ.get("PATH", os.defpath) if path is None else path
        searched = [os.path.join(cwd, entry or os.curdir) for entry in given.split(os.pathsep)]
        found = shutil.which(found, path=os.pathsep.join(searched)) or found
    directory, name = os.path.split(os.path.join(cwd, found))
    return os.path.join(os.path.realpath(directory), name)
