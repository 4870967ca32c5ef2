"""The `logging` module's records as `log` notifications: `logging.info("…")` is all a plugin does.

What is given as `extra` becomes the fields. A traceback is a field of its own. Hosts of the two
generations read different members, and each ends the conversation over one it cannot read: A's
takes none but its own, and B's knows no level below debug but by an offset.
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
"""What every record has; the rest is `extra`."""


class HostLogHandler(logging.Handler):
    """Sends every record on."""

    def __init__(self, tell: Callable[[str, object], None]) -> None:
        super().__init__()
        self.protocol = spec.PROTOCOL_A
        """What the host speaks."""
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        try:
            is_b = self.protocol == spec.PROTOCOL_B
            self._tell("log", as_log_of_b(record) if is_b else as_log(record))
        except Exception:  # noqa: BLE001  logging's own way: a record that cannot be written is told
            self.handleError(record)


def install_log_handler(settings: spec.LoggingConfig, handler: logging.Handler) -> None:
    """Send what the host wants to hear, from all loggers."""
    root = logging.getLogger()
    root.removeHandler(handler)
    if settings.enabled:
        root.addHandler(handler)
        root.setLevel(level_number(settings.level))


def as_log(record: logging.LogRecord) -> dict[str, Any]:
    """In generation A's words. The level is always said: other hosts have no default for it."""
    said = {"level": _level(record.levelno), "msg": record.getMessage()}
    fields = _fields(record)
    return {**said, "fields": fields} if fields else said


def as_log_of_b(record: logging.LogRecord) -> dict[str, Any]:
    """In generation B's words, which are those of Go's `log/slog`."""
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
