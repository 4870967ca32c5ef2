"""The errors of a configuration, with messages for the person who wrote it.

Each message states the problem, the place, and the remedy. None quotes the value of a secret
setting.
"""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration cannot be used as it is."""


class BadPlace(ConfigError):
    """A variable that names a directory has an unusable value."""


class NotPrivate(ConfigError):
    """Other users could change a file or directory that must be private."""


class Unreadable(ConfigError):
    """A file exists but cannot be read as a configuration file."""


class BrokenToml(ConfigError):
    """A file is not valid TOML."""


class WrongValue(ConfigError):
    """A value does not fit the type of its setting."""


class UnknownSetting(ConfigError):
    """A flag names a setting that does not exist, or a table of a model or of an MCP server has an
    unknown member. (The
    other parts of a file may have unknown keys, with a warning.)"""


def kind_in_words(value: object) -> str:
    """Name the kind of a value in TOML or JSON, for a message that must not quote the value."""
    match value:
        case None:
            return "null"
        case str():
            return "text"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or a time"
