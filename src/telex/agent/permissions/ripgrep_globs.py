"""The names of secrets as globs that `rg` ignores. Pure.

rg reads them from a file, `ripgreprc`, which stands beside this module and is written by
`python -m telex.agent.permissions.ripgrep_globs > ripgreprc`. A test runs rg over files with names
of every kind and compares what it prints with `sensitive_names.is_secret`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.sensitive_names import BACKUP_NAMES, OF_SECRETS, SECRET_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN: Final = """\
# Written by rg_globs.py, from names.toml.
# What rg obeys when nobody was asked (environment.py). A glob counts more than any ignore file, so
# that none can have hidden files searched, nor secrets in plain sight (names.toml); those that are
# named are still read, as naming one asks. An ignore file may be a link to a secret, and rg quotes
# the lines that it cannot parse, so it reports nothing about ignore files. That it cannot open or
# read a file it still reports (no --no-messages): such a message holds a path and no content.
# Copies of files (backups, what editors leave) are left out altogether: one may be of a secret.
--no-ignore-messages
--glob=!.*
"""
_NUMBERED: Final = "[.-][0-9]*"
"""What is left of a copy's name where others are left out by the end of theirs."""


def configuration() -> str:
    return _BEGIN + "".join(f"--iglob=!{glob}\n" for glob in dict.fromkeys(_globs()))


def _globs() -> Iterator[str]:
    yield from BACKUP_NAMES["around"]
    for one in (
        *SECRET_NAMES.single,
        *(f"*{_any_number(added)}" for added in BACKUP_NAMES["added"]),
    ):
        if not one.startswith("."):
            yield one
            yield one + _NUMBERED
    for one in OF_SECRETS:
        # All of it: no glob says that a name has no ending. `search` shows the code in there.
        yield one
        yield one + _NUMBERED
    for one in SECRET_NAMES.deep:
        parts = one.split("/")
        # From the file system's root, a workspace has none; what is hidden is left out already.
        if parts[0] not in ("", *OF_SECRETS) and not any(part[0] == "." for part in parts):
            yield "/".join(("**", *map(_with_copies, parts)))


def _with_copies(part: str) -> str:
    return part if part in ("*", "**") else f"{{{part},{part}{_NUMBERED}}}"


def _any_number(added: str) -> str:
    return added.replace("[0-9]", "[0-9]*")


if __name__ == "__main__":
    sys.stdout.write(configuration())
