"""`log` notifications, in either generation's spelling, as records of a logger. Pure but for that.

A says `msg` and `fields`; B says `message` and `attrs`, a list of pairs whose groups are lists of
pairs again. Levels are words in any case; an unknown one is `info`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.protocols import plugin_v0 as spec

TRACE: Final = 5
LEVELS: Final = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def record(logger: logging.Logger, line: spec.Log, redact: Callable[[str], str]) -> None:
    """Write one."""
    level = LEVELS.get(line.level.lower(), logging.INFO)
    if not logger.isEnabledFor(level):
        return
    fields = {**(line.fields or {}), **{pair.key: _plain(pair.value) for pair in line.attrs or []}}
    text = redact(line.msg or line.message or "")
    logger.log(level, "%s", text, extra={"fields": _redacted(fields, redact)})


def level_of(logger: logging.Logger) -> spec.Level:
    """The least that the logger takes, in the protocol's words."""
    least = logger.getEffectiveLevel()
    words: tuple[spec.Level, ...] = ("trace", "debug", "info", "warn")
    return next((word for word in words if least <= LEVELS[word]), "error")


def _plain(value: object) -> object:
    """B's groups as mappings."""
    match value:
        case [{"key": str()}, *_]:
            return {
                pair["key"]: _plain(pair.get("value")) for pair in value if isinstance(pair, dict)
            }
        case _:
            return value


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: _redacted(its, redact) for key, its in value.items()}
        case list():
            return [_redacted(its, redact) for its in value]
        case _:
            return value
