"""How much goes without a question where no rule says anything. Pure.

| | minimal | trusted | full |
|---|---|---|---|
| read inside the root, known readers in a shell | yes | yes | yes |
| write inside the root | asks | yes | yes |
| read or write outside the root, any command | asks | asks | yes |
| secrets that are named | asks | asks | asks |

Deny and ask rules count in each. `git` reads by programs that its repository names, so it is a
reader only in a workspace that is trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    MINIMAL = "minimal"
    TRUSTED = "trusted"
    FULL = "full"


class Access(StrEnum):
    """What is done to a path. The values are the tools that rules name for it, in a shell too."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class PathTool:
    """A tool of our own that works on one path."""

    access: Access
    recursive: bool = False
    """It goes below a directory, and without a path it is about the working directory."""
    skips_hidden: bool = False
    """It reads what is there, but nothing hidden, unless it begins there."""
    filters: tuple[str, ...] = ()
    """Arguments that say which names below."""


PATH_TOOLS: Final = {
    "read": PathTool(Access.READ),
    "read_line": PathTool(Access.READ),
    "list": PathTool(Access.READ, recursive=True, filters=("pattern", "glob")),
    "search": PathTool(Access.READ, recursive=True, skips_hidden=True, filters=("glob",)),
    "write": PathTool(Access.WRITE),
    "edit": PathTool(Access.WRITE),
}
PATH_ARGUMENTS: Final = ("path", "file_path")
HARMLESS_TOOLS: Final = frozenset(
    {"todo", "tool_output_cache", "tool_output_cache_line", "tool_output_cache_grep"}
)
"""They touch only what the run itself made."""
SHELL_TOOL: Final = "shell"
SHELL_ARGUMENT: Final = "command"
