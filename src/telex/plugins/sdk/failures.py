"""What a plugin's functions raise to say no. Anything else they raise is a failure too, and its
traceback goes to the log."""

from __future__ import annotations


class Failed(Exception):
    """It did not work. The sentence is for the person who asked."""

    def __init__(self, sentence: str, data: object = None) -> None:
        super().__init__(sentence)
        self.data = data
        """Any JSON, for programs."""


class InvalidConfig(Failed):
    """A value of the configuration is not one to work with."""
