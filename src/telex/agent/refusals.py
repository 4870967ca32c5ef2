"""Whether a command was refused something by the kernel, as far as its output tells.

The kernel tells the command alone, and that writes what the C library says to it, in the language
of its environment. Used by the shell tool.
"""

from __future__ import annotations

import errno
import gettext
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.command_runner import CommandResult

_TRANSLATIONS: Final = "/usr/share/locale"
_BAD_CALL: Final = "SIGSYS"
"""By which a filter ends a program that was built for another machine."""


def is_refused(
    ran: CommandResult, environment: Mapping[str, str], translations: str = _TRANSLATIONS
) -> bool:
    """Its standard output counts only where it failed: it may be a file about something else."""
    output = ran.stderr if ran.exit_code == 0 else ran.stderr + ran.stdout
    said = _refusals(tuple(_languages(environment)), translations)
    return ran.signal == _BAD_CALL or any(text in output for text in said)


def _languages(environment: Mapping[str, str]) -> list[str]:
    names = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next(filter(None, names), "C")
    return [*filter(None, environment.get("LANGUAGE", "").split(":")), locale]


@lru_cache(maxsize=8)
def _refusals(languages: tuple[str, ...], translations: str) -> frozenset[str]:
    spoken = gettext.translation("libc", translations, languages, fallback=True)
    plain = [os.strerror(number) for number in (errno.EACCES, errno.EPERM)]
    return frozenset([*plain, *map(spoken.gettext, plain)])
