"""`log` notifications of either generation, written as records of a logger. Otherwise pure.

A has `fields`, B has `attrs`: a list of pairs, in which a group is again a list of pairs. Levels
are words in upper or lower case. Go's logger adds an offset to a level between two words: its trace
is `DEBUG-4`. An unknown level is `info`.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.plugins import protocol as spec

TRACE: Final = 5
LEVELS: Final = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


_SPELT: Final = re.compile(r"([a-z]+)([+-][0-9]{1,4})?", re.IGNORECASE)
_GO_NUMBERS: Final = {"trace": -8, "debug": -4, "info": 0, "warn": 4, "warning": 4, "error": 8}
_IN_ORDER: Final = (("error", 8), ("warn", 4), ("info", 0), ("debug", -4))


def level_number(level: str) -> int:
    """Return the Python level of a protocol level, such as `TRACE`, `warn`, `INFO+2`."""
    spelt = _SPELT.fullmatch(level)
    base = _GO_NUMBERS.get(spelt[1].lower()) if spelt else None
    if spelt is None or base is None:
        return logging.INFO
    number = base + int(spelt[2] or 0)
    return LEVELS[next((word for word, least in _IN_ORDER if number >= least), "trace")]


def write_log(logger: logging.Logger, line: spec.Log, redact: Callable[[str], str]) -> None:
    """Write a log notification to the logger, redacted."""
    level = level_number(line.level)
    if not logger.isEnabledFor(level):
        return
    fields = {**(line.fields or {}), **{pair.key: _plain(pair.value) for pair in line.attrs or []}}
    text = redact(line.msg or line.message or "")
    logger.log(level, "%s", text, extra={"fields": _redacted(fields, redact)})


def level_of_logger(logger: logging.Logger) -> spec.Level:
    """Return the lowest level that the logger accepts, as a level of the protocol."""
    least = logger.getEffectiveLevel()
    words: tuple[spec.Level, ...] = ("trace", "debug", "info", "warn")
    return next((word for word in words if least <= LEVELS[word]), "error")


def _plain(value: object) -> object:
    """Convert B's groups to dicts. A group with one group in it is a pair without a list."""
    match value:
        case {"key": str() as key, **rest} if rest.keys() <= {"value"}:
            return {key: _plain(rest.get("value"))}
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
