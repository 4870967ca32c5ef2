"""`log` notifications of either generation, written as records of a logger. Otherwise pure.

A has `fields`, B has `attrs`: a list of pairs, in which a group is again a list of pairs. Levels
are words in upper or lower case. Go's logger adds an offset to a level between two words: its trace
is `DEBUG-4`. An unknown level is `info`.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

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


# Sends records of the `logging` module as `log` notifications, so that a plugin only calls
# `logging.info("…")`.
#
# The `extra` of a record becomes its fields, and a traceback becomes the field `traceback`. Hosts
# of the two generations read different members, and each ends the conversation if it cannot read
# one: A's host accepts no other members, and B's host has a level below debug only as an offset.


_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
"""Attributes that every record has; all others are from `extra`."""


class HostLogHandler(logging.Handler):
    """A handler that sends each record to the host."""

    def __init__(self, notify: Callable[[str, object], None]) -> None:
        super().__init__()
        self.protocol = spec.PROTOCOL_A
        """The protocol name of the host's generation."""
        self._notify = notify

    def emit(self, record: logging.LogRecord) -> None:
        try:
            is_b = self.protocol == spec.PROTOCOL_B
            self._notify("log", as_log_of_b(record) if is_b else as_log(record))
        except Exception:  # noqa: BLE001  as `logging` does: it prints the error of a failed record
            self.handleError(record)


def install_log_handler(settings: spec.LoggingConfig, handler: logging.Handler) -> None:
    """Add the handler to the root logger, with the level that the host requested."""
    root = logging.getLogger()
    root.removeHandler(handler)
    if settings.enabled:
        root.addHandler(handler)
        root.setLevel(level_number(settings.level))


def as_log(record: logging.LogRecord) -> dict[str, Any]:
    """Return generation A's form. The level is always present: other hosts have no default."""
    line = {"level": _level(record.levelno), "msg": record.getMessage()}
    fields = _fields(record)
    return {**line, "fields": fields} if fields else line


def as_log_of_b(record: logging.LogRecord) -> dict[str, Any]:
    """Return generation B's form, which is that of Go's `log/slog`."""
    level = _level(record.levelno)
    return {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        "level": "DEBUG-4" if level == "trace" else level.upper(),
        "msg": record.getMessage(),
        "attrs": [{"key": name, "value": value} for name, value in _fields(record).items()],
    }


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: _json(value) for name, value in vars(record).items() if name not in _OWN}
    if record.name != "root":
        fields["logger"] = record.name
    if record.exc_info and record.exc_info[0] is not None:
        fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
    return fields


def _level(number: int) -> spec.Level:
    words: tuple[spec.Level, ...] = ("error", "warn", "info", "debug")
    return next((word for word in words if number >= LEVELS[word]), "trace")


def _json(value: object) -> Any:
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except TypeError:
        return repr(value)


logging.addLevelName(TRACE, "TRACE")
