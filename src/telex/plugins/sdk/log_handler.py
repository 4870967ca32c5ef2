"""Sends records of the `logging` module as `log` notifications, so that a plugin only calls
`logging.info("…")`.

The `extra` of a record becomes its fields, and a traceback becomes the field `traceback`. Hosts of
the two generations read different members, and each ends the conversation if it cannot read one:
A's host accepts no other members, and B's host has a level below debug only as an offset.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from telex.plugins import protocol as spec
from telex.plugins.plugin_logs import LEVELS, TRACE, level_number

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
