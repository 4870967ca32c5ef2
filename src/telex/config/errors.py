"""What can be wrong with a configuration, in sentences for the person who wrote it.

Each says what is wrong, where, and what to do. None quotes the value of a secret setting.
"""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration cannot be used as it stands."""


class BadPlace(ConfigError):
    """A variable that says where things live says nothing usable."""


class NotPrivate(ConfigError):
    """A file or directory that only we should be able to change is not ours alone."""


class Unreadable(ConfigError):
    """A file is there, and cannot be read as a configuration file."""


class BrokenToml(ConfigError):
    """A file is not TOML."""


class WrongValue(ConfigError):
    """A value does not fit its setting."""


class UnknownSetting(ConfigError):
    """A flag names a setting that does not exist. (In a file that is only a warning.)"""
