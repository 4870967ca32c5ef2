"""What a command that an agent runs learns of the person's environment: all but the secrets. Pure.

A language model needs no key to run the tests, and what it cannot see it cannot be talked into
sending somewhere. So a variable leaves by its name (`*_KEY`, `*_TOKEN`, `PGPASSWORD`), or by a
value that the redactor knows for a secret (`DATABASE_URL` with a password in it).

What would make a shell run something before the command, or something else in its place, leaves
too: permission was given for the command as it was shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.processes.child_environment import child_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.redaction import Redactor

_SECRET: Final = re.compile(
    r"(?:^|_)(?:API)?KEY(?:S|_ID)?$|(?:^|_)(?:PAT|AUTH|PWD|PW)$"
    r"|(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|COOKIE)S?$",
    re.IGNORECASE,
)
_PLAIN: Final = ("PWD",)
_SHELL: Final = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|IFS|CDPATH|GLOBIGNORE|BASH_FUNC_.*"
)


def agent_environment(parent: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """What a command of the agent gets."""
    return {
        name: value
        for name, value in child_environment(parent).items()
        if not _is_secret(name, value, redactor) and not _SHELL.fullmatch(name)
    }


def _is_secret(name: str, value: str, redactor: Redactor) -> bool:
    if name in _PLAIN:
        return False
    return _SECRET.search(name) is not None or bool(redactor.spans(value))
